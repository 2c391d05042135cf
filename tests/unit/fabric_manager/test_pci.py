"""Devices on a machine's PCI bus, on a tree of files where a task plays the kernel."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from jackfield.cli.clock import WallClock
from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.faults import Kind
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import Done, Failed, Progress
from jackfield.model.names import NodeName, PhysicalID, Seconds
from jackfield.ports import Clock
from unit.fabric_manager.lab import SMALL, managing, order, places
from unit.sim.hasty import Hasty

CARD = "0000:3b:00.0"
AUDIO = "0000:3b:00.1"
NEIGHBOUR = "0000:3b:01.0"
BRIDGE = "0000:3a:00.0"
GPU = "10de:20b5"
LONG = Seconds(60.0)
"""Real seconds that nothing here takes."""


class Kernel:
    """A machine with a bus on which cards come when it is scanned, and go when they are removed."""

    def __init__(self, folder: Path) -> None:
        self.sysfs = folder / "sys"
        self.bus = self.sysfs / "bus" / "pci"
        (self.bus / "devices").mkdir(parents=True)
        (self.bus / "rescan").touch()
        self.waiting: list[dict[str, str]] = []
        """What each of the next scans finds."""
        self.done: list[str] = []

    def device(self, address: str) -> Path:
        return self.bus / "devices" / address

    def plug(self, address: str, number: str = GPU) -> None:
        new = self.bus / f"new-{address}"
        new.mkdir()
        for name, value in zip(("vendor", "device"), number.split(":"), strict=True):
            (new / name).write_text(f"0x{value}\n")
        for name in ("remove", "rescan"):
            (new / name).touch()
        new.rename(self.device(address))

    def bind(self, address: str, driver: str) -> Path:
        """Give a device to a driver; return what is written to take it away."""
        home = self.bus / "drivers" / driver
        home.mkdir(parents=True, exist_ok=True)
        unbind = home / "unbind"
        if not unbind.exists():
            unbind.touch()
        (self.device(address) / "driver").symlink_to(home)
        return unbind

    async def run(self) -> None:
        """Do what is written into files, for ever."""
        while True:
            for path in (*self.bus.glob("rescan"), *self.bus.glob("devices/*/rescan")):
                self._scan(path)
            for path in self.bus.glob("drivers/*/unbind"):
                self._unbind(path)
            for path in self.bus.glob("devices/*/remove"):
                if _told(path):
                    self.done.append(f"remove {path.parent.name}")
                    shutil.rmtree(path.parent)
            await asyncio.sleep(0.002)  # noqa: TID251 - files cannot be waited for

    def _scan(self, path: Path) -> None:
        if _told(path):
            path.write_text("")
            self.done.append("scan" if path.parent == self.bus else f"scan {path.parent.name}")
            for address, number in (self.waiting.pop(0) if self.waiting else {}).items():
                self.plug(address, number)

    def _unbind(self, path: Path) -> None:
        address = _told(path)
        if address:
            path.write_text("")
            self.done.append(f"unbind {address}")
            (self.device(address) / "driver").unlink()


def _told(path: Path) -> str:
    with suppress(OSError):
        return path.read_text() if path.is_file() and not path.is_symlink() else ""
    return ""


def place(**more: str) -> wiring.Place:
    return wiring.Place(device=PhysicalID("a-1"), machine=NodeName("n-1"), address=CARD, id=GPU, **more)


def lab(kernel: Kernel, **more: object) -> Hardware:
    said = {"places": (place(),), "timeout_seconds": LONG, **more}
    backend = wiring.Pci(sysfs=str(kernel.sysfs), **said)  # type: ignore[arg-type]  # each test says one of them
    return Hardware(msgspec.structs.replace(SMALL, backend=backend))


async def settled(manager: Manager, verb: str) -> Progress:
    ask = manager.attach if verb == "attach" else manager.detach
    return await manager.settle(lambda: ask(order("o"), "native"), order("o").id, LONG)


@asynccontextmanager
async def at_work(tmp_path: Path, of: Hardware, kernel: Kernel, clock: Clock) -> AsyncIterator[Manager]:
    running = asyncio.create_task(kernel.run())
    try:
        async with managing(tmp_path, of, clock=clock) as manager:
            yield manager
    finally:
        running.cancel()


def on(
    tmp_path: Path,
    of: Hardware,
    kernel: Kernel,
    play: Callable[[Manager], Awaitable[None]],
    clock: Clock | None = None,
) -> None:
    async def main() -> None:
        async with at_work(tmp_path, of, kernel, clock or WallClock()) as manager:
            await play(manager)

    asyncio.run(main())


# --- attach


def test_the_bus_is_scanned_until_the_device_is_there(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.waiting = [{}, {CARD: GPU}]  # its link was not up yet when the bus was scanned first

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        assert kernel.device(CARD).exists()
        assert kernel.done.count("scan") >= 2
        assert await places(manager) == {"a-1": "n-1"}

    on(tmp_path, lab(kernel), kernel, play)


def test_a_bridge_that_is_named_is_scanned_alone(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(BRIDGE, "10b5:8796")
    kernel.waiting = [{CARD: GPU}]

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        assert kernel.done == [f"scan {BRIDGE}"]

    on(tmp_path, lab(kernel, places=(place(bridge=BRIDGE),)), kernel, play)


def test_what_is_there_already_is_attached(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(CARD)

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        assert kernel.done == []

    on(tmp_path, lab(kernel), kernel, play)


def test_another_device_at_the_address_is_not_taken_for_it_and_left_alone(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.waiting = [{CARD: "8086:0b60"}]

    async def play(manager: Manager) -> None:
        words = f"at {CARD} there is 8086:0b60, not a-1, which is {GPU}"
        assert await settled(manager, "attach") == Failed(words)
        assert kernel.device(CARD).exists()
        (ill,) = manager.faults
        assert (ill.kind, ill.device) == (Kind.ILL, "a-1")

    on(tmp_path, lab(kernel), kernel, play)


def test_a_device_that_never_appears_is_a_failure_with_advice(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)

    async def play(manager: Manager) -> None:
        answer = await settled(manager, "attach")
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(f"a-1 did not appear at {CARD} within 60 s")
        assert "see that the switch leads to n-1" in answer.reason
        assert "scan" in kernel.done
        assert list(manager.faults) == []

    on(tmp_path, lab(kernel), kernel, play, Hasty())


UNREADY = (
    ((), "a-1 has no PCI address on n-1: add one to backend.places"),
    ((place(bridge=BRIDGE),), f"bridge {BRIDGE} is not there: see that its box is on"),
)


@pytest.mark.parametrize(("known", "words"), UNREADY)
def test_what_nothing_is_known_of_fails_and_stays_free(
    tmp_path: Path, known: tuple[wiring.Place, ...], words: str
) -> None:
    kernel = Kernel(tmp_path)

    async def play(manager: Manager) -> None:
        answer = await settled(manager, "attach")
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(words)
        assert list(manager.faults) == []

    on(tmp_path, lab(kernel, places=known), kernel, play)


def test_a_machine_without_a_bus_is_told_at_once(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    (kernel.bus / "rescan").unlink()

    async def play(manager: Manager) -> None:
        answer = await settled(manager, "attach")
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(f"{kernel.bus} has no rescan: see that backend.sysfs is where")

    on(tmp_path, lab(kernel), kernel, play)


def test_a_manager_that_may_not_write_says_what_it_needs(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)  # not even root may write it
    fcntl.fcntl(sealed, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    (kernel.bus / "rescan").unlink()
    (kernel.bus / "rescan").symlink_to(f"/proc/{os.getpid()}/fd/{sealed}")

    async def play(manager: Manager) -> None:
        answer = await settled(manager, "attach")
        assert isinstance(answer, Failed)
        assert "rescan cannot be written: Operation not permitted" in answer.reason
        assert "must run as root" in answer.reason

    try:
        on(tmp_path, lab(kernel), kernel, play)
    finally:
        os.close(sealed)


# --- detach


def test_a_device_goes_with_all_its_functions_once_their_drivers_let_go(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(CARD)
    kernel.plug(AUDIO, "10de:1aef")
    kernel.plug(NEIGHBOUR)
    kernel.bind(CARD, "nvidia")
    kernel.bind(AUDIO, "snd_hda_intel")

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        assert isinstance(await settled(manager, "detach"), Done)
        assert [one.name for one in sorted((kernel.bus / "devices").iterdir())] == [NEIGHBOUR]
        assert kernel.done == [f"unbind {AUDIO}", f"unbind {CARD}", f"remove {AUDIO}", f"remove {CARD}"]

    on(tmp_path, lab(kernel), kernel, play)


def test_what_is_gone_already_is_detached(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(CARD)

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        shutil.rmtree(kernel.device(CARD))
        assert isinstance(await settled(manager, "detach"), Done)
        assert kernel.done == []

    on(tmp_path, lab(kernel), kernel, play)


def test_a_device_that_a_driver_has_is_not_removed_where_that_is_refused(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(CARD)
    kernel.bind(CARD, "nvidia")

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        answer = await settled(manager, "detach")
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(f"driver nvidia still has a-1 at {CARD}: stop what uses it")
        assert await places(manager) == {"a-1": "n-1"}
        (kernel.device(CARD) / "driver").unlink()
        assert isinstance(await settled(manager, "detach"), Done)
        assert kernel.done == [f"remove {CARD}"]

    on(tmp_path, lab(kernel, bound="refuse"), kernel, play)


def test_a_driver_that_does_not_let_go_is_named_and_nothing_is_removed(tmp_path: Path) -> None:
    kernel = Kernel(tmp_path)
    kernel.plug(CARD)
    unbind = kernel.bind(CARD, "nvidia")
    unbind.unlink()
    os.mkfifo(unbind)  # whoever writes it waits, as for a driver whose device is open

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach"), Done)
        answer = await settled(manager, "detach")
        assert isinstance(answer, Failed)
        words = "driver nvidia does not let go of a-1: the kernel did not answer within 1 s"
        assert answer.reason.startswith(words)
        assert await places(manager) == {"a-1": "n-1"}
        assert kernel.done == []

    on(tmp_path, lab(kernel, timeout_seconds=Seconds(1.0)), kernel, play)
