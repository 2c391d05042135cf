"""A real machine behind the Host port: what it sees, lets go of and remembers."""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.cli.clock import WallClock
from jackfield.driver.store import PreparedStore
from jackfield.model.host import HostDevice
from jackfield.model.names import NEVER, Key, PhysicalID, Seconds, Uid
from jackfield.model.policy import DRIVER, LOCAL_DRIVER, Policy
from jackfield.node.bus import Bus
from jackfield.node.host import LEISURE_SECONDS, Manners, NodeHost
from jackfield.node.sysfs import Roots, Sysfs
from jackfield.ports import Clock, Prepared, Refused, Retry
from jackfield.testing.sysfs import Machine, PciDevice, Process

ADDRESS = "0000:17:00.0"
CARD = PciDevice(ADDRESS, driver="nvidia", uuid="GPU-ab12-cd", minor=0, serial=0x1B21FFFFAABBCC)
SOUND = PciDevice("0000:17:00.1", pci_class="040300")
OTHER = PciDevice("0000:65:00.0", driver="nvidia", uuid="GPU-77-ff", minor=1)
NAME = f"{DRIVER}/rack-a/a100-1"
FOR_CLAIM = Prepared(
    Uid("u-1"), Key("default", "c"), PhysicalID("block-7"), NAME, PhysicalID("GPU-ab12-cd"), ("gpu",)
)


class Site:
    """A machine, and the host that looks at it."""

    def __init__(self, folder: Path, manners: Manners | None = None, policy: Policy = Policy()) -> None:
        self.machine = Machine(folder / "host")
        self.folder = folder
        (folder / "cdi").mkdir()
        (folder / "plugins").mkdir()
        self.machine.plug(CARD)
        self.store = self.opened(DRIVER)
        self._manners = manners or Manners(uevents=nobody_speaks, look_closely_seconds=NEVER)
        self._policy = policy
        self.host = self.looked_at()

    def opened(self, driver: str) -> PreparedStore:
        store = PreparedStore(driver, self.folder / "plugins", self.folder / "cdi")
        assert store.open() == ()
        return store

    def looked_at(self, clock: Clock = WallClock()) -> NodeHost:
        roots = Roots(self.machine.sysfs, self.machine.proc, self.machine.dev)
        return NodeHost(
            Sysfs(roots),
            self.store,
            clock,
            self._policy,
            replace(self._manners, pod_logs=self.machine.pod_logs),
        )

    def edits(self) -> tuple[list[str], list[dict[str, str]]]:
        """Return the variables and device files that a container of the claim gets."""
        (file,) = (self.folder / "cdi").glob("*u-1*.json")
        (device,) = json.loads(file.read_text())["devices"]
        return device["containerEdits"]["env"], device["containerEdits"]["deviceNodes"]


def nobody_speaks() -> socket.socket:
    raise OSError(1, "Operation not permitted")


def play(folder: Path, scene: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        site = Site(folder)
        async with site.machine:
            await scene(site)

    asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await WallClock().sleep(Seconds(0.01))


# --- eyes


def test_a_device_is_seen_by_its_best_name(tmp_path: Path) -> None:
    (seen,) = Site(tmp_path).host.seen()
    assert (seen.physical, seen.device, seen.address, seen.uuid) == (
        "GPU-ab12-cd",
        "GPU-ab12-cd",
        ADDRESS,
        "GPU-ab12-cd",
    )


def test_what_nobody_could_want_is_not_seen(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.machine.plug(PciDevice("0000:00:1f.0", pci_class="060100"))
    site.machine.plug(SOUND)
    site.host.look()
    assert [one.address for one in site.host.seen()] == [ADDRESS]
    assert [one.address for one in site.host.devices()] == [ADDRESS]


def test_whoever_listens_hears_of_what_came_and_only_then(tmp_path: Path) -> None:
    site = Site(tmp_path)
    heard: list[int] = []
    end = site.host.listen(lambda: heard.append(len(site.host.seen())))
    site.host.look()
    site.machine.plug(OTHER)
    site.host.look()
    end()
    site.machine.pull(OTHER.address)
    site.host.look()
    assert heard == [2]


def test_a_device_that_comes_is_found_by_looking_where_nobody_speaks(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        task = asyncio.get_running_loop().create_task(site.host.run())
        await until(lambda: site.host.deaf != "")
        site.machine.plug(OTHER)
        await until(lambda: len(site.host.seen()) == 2)
        site.machine.pull(OTHER.address)
        await until(lambda: len(site.host.seen()) == 1)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    play(tmp_path, scene)


class Interrupted(WallClock):
    """Lets something happen when somebody who looks at leisure gives others a turn for the first time."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.turns = 0
        self._happens = happens

    async def sleep(self, duration: Seconds) -> None:
        self.turns += duration == LEISURE_SECONDS
        if duration == LEISURE_SECONDS and self.turns == 1:
            self._happens()
        await super().sleep(duration)


def test_what_is_seen_while_all_devices_are_looked_at_in_passing_is_not_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        site = Site(tmp_path, Manners(uevents=nobody_speaks, look_closely_seconds=Seconds(0.0)))

        def comes() -> None:
            site.machine.plug(OTHER)
            host.look()

        clock = Interrupted(comes)
        host = site.looked_at(clock)
        heard: list[int] = []
        host.listen(lambda: heard.append(len(host.seen())))
        task = asyncio.get_running_loop().create_task(host.run())
        await until(lambda: clock.turns > 4)  # it has looked twice since
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert heard == [2]

    asyncio.run(run())


def test_a_device_is_looked_at_again_when_the_kernel_speaks(tmp_path: Path) -> None:
    """Its UUID comes late, and no name on the bus changes with it: only the kernel's word tells."""

    async def run() -> None:
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        site = Site(tmp_path, Manners(uevents=lambda: ours, look_closely_seconds=NEVER))
        information = site.machine.proc / "driver/nvidia/gpus" / ADDRESS / "information"
        with kernels:
            task = asyncio.get_running_loop().create_task(site.host.run())
            information.write_text("GPU UUID: GPU-new-0\nDevice Minor: 0\n")
            kernels.send(b"bind@/x\0ACTION=bind\0DEVPATH=/x\0SUBSYSTEM=pci")
            await until(lambda: [one.uuid for one in site.host.seen()] == ["GPU-new-0"])
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert site.host.deaf == ""

    asyncio.run(run())


def test_what_a_driver_says_late_is_found_by_looking_closely_now_and_then(tmp_path: Path) -> None:
    async def run() -> None:
        site = Site(tmp_path, Manners(uevents=nobody_speaks, look_closely_seconds=Seconds(0.0)))
        task = asyncio.get_running_loop().create_task(site.host.run())
        information = site.machine.proc / "driver/nvidia/gpus" / ADDRESS / "information"
        information.write_text("GPU UUID: GPU-new-0\nDevice Minor: 0\n")
        await until(lambda: [one.uuid for one in site.host.seen()] == ["GPU-new-0"])
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


# --- hands


def test_a_device_that_waits_for_it_is_found_by_a_rescan(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        site.machine.plug_unseen(OTHER)
        await asyncio.gather(site.host.rescan(), site.host.rescan())
        assert len(site.host.seen()) == 2
        assert site.machine.rescans == 1

    play(tmp_path, scene)


def test_a_card_is_let_go_with_all_its_functions(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        site.machine.plug(SOUND)
        site.machine.plug(OTHER)
        await site.host.release(PhysicalID("GPU-ab12-cd"), force=False)
        assert Sysfs(Roots(site.machine.sysfs)).pci.addresses() == (OTHER.address,)
        assert [one.address for one in site.host.seen()] == [OTHER.address]
        await site.host.release(PhysicalID("GPU-ab12-cd"), force=False)  # gone is gone

    play(tmp_path, scene)


@pytest.mark.parametrize("force", [False, True])
def test_a_card_that_somebody_uses_is_let_go_only_by_force(tmp_path: Path, *, force: bool) -> None:
    async def scene(site: Site) -> None:
        site.machine.plug(SOUND)
        uid = "0a1b2c3d-0000-4000-8000-0123456789ab"
        site.machine.pod("default", "train", uid)
        site.machine.run(Process(4711, opens=("/dev/nvidia0",), pod=uid))
        if force:
            await site.host.release(PhysicalID("GPU-ab12-cd"), force=True)
        else:
            used = r"GPU-ab12-cd at 0000:17:00.0 is used by python \(pid 4711\) of pod default/train$"
            with pytest.raises(Refused, match=used):
                await site.host.release(PhysicalID("GPU-ab12-cd"), force=False)
        assert (site.host.seen() == ()) == force

    play(tmp_path, scene)


def test_a_card_that_another_driver_of_ours_has_prepared_is_not_let_go(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        local = site.opened(LOCAL_DRIVER)
        other = NodeHost(
            Sysfs(Roots(site.machine.sysfs, site.machine.proc, site.machine.dev)),
            local,
            WallClock(),
            Policy(),
        )
        await other.write(FOR_CLAIM, Uid("u-1"))
        site.host.beside(local)
        with pytest.raises(Refused, match="GPU-ab12-cd is prepared for claim default/c"):
            await site.host.release(PhysicalID("GPU-ab12-cd"), force=False)

    play(tmp_path, scene)


def test_a_bus_that_may_not_be_touched_says_what_to_do(tmp_path: Path) -> None:
    bus = Bus(tmp_path, WallClock())
    with pytest.raises(Refused, match="--sysfs-root is where the host's sysfs is mounted"):
        asyncio.run(bus.rescan())
    (tmp_path / "bus/pci/devices/x").mkdir(parents=True)
    (tmp_path / "bus/pci/rescan").mkdir()
    with pytest.raises(Retry, match="Is a directory"):
        asyncio.run(bus.rescan())


def test_what_goes_while_it_is_removed_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        folder = tmp_path / "bus/pci/devices/x"
        folder.mkdir(parents=True)
        removal = asyncio.get_running_loop().create_task(Bus(tmp_path, WallClock()).remove("x"))
        await WallClock().sleep(Seconds(0.0))  # it has seen the folder, which has no such file
        folder.rmdir()
        await removal

    asyncio.run(scene())


# --- the checkpoint


def test_what_is_prepared_is_written_and_remembered(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        site.machine.device_file("nvidiactl")
        await site.host.write(FOR_CLAIM, Uid("u-1"))
        await site.host.write(FOR_CLAIM, Uid("u-1"))
        assert site.host.prepared() == (FOR_CLAIM,)
        assert site.looked_at().prepared() == (FOR_CLAIM,)
        variables, files = site.edits()
        assert "JACKFIELD_DEVICE_A100_1=GPU-ab12-cd" in variables
        assert f"JACKFIELD_DEVICE_A100_1_ADDRESS={ADDRESS}" in variables
        dev = site.machine.dev
        assert [(one["path"], one["hostPath"]) for one in files] == [
            ("/dev/nvidia0", f"{dev}/nvidia0"),
            ("/dev/nvidiactl", f"{dev}/nvidiactl"),
        ]
        await site.host.write(None, Uid("u-1"))
        await site.host.write(None, Uid("u-1"))
        assert site.host.prepared() == ()
        assert [*(tmp_path / "cdi").iterdir()] == []

    play(tmp_path, scene)


def test_two_devices_of_a_claim_are_one_entry(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        site.machine.plug(OTHER)
        site.host.look()
        second = Prepared(
            Uid("u-1"), Key("default", "c"), PhysicalID("block-8"), f"{NAME}-2", PhysicalID("GPU-77-ff")
        )
        await site.host.write(FOR_CLAIM, Uid("u-1"))
        await site.host.write(second, Uid("u-1"))
        assert site.host.prepared() == (FOR_CLAIM, second)
        assert len(site.store.entries()) == 1
        with pytest.raises(Refused, match=r"prepared for claim default/c$"):
            await site.host.release(PhysicalID("GPU-77-ff"), force=False)

    play(tmp_path, scene)


def test_whoever_listens_hears_once_of_all_that_is_written_together(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        heard: list[int] = []
        site.host.listen(lambda: heard.append(len(site.host.prepared())))
        claims = [replace(FOR_CLAIM, uid=Uid(f"u-{number}")) for number in (1, 2, 3)]
        await asyncio.gather(*(site.host.write(one, one.uid) for one in claims))
        await asyncio.gather(*(site.host.write(None, one.uid) for one in claims))
        await site.host.write(None, Uid("u-1"))
        assert heard == [3, 0]

    play(tmp_path, scene)


def test_a_device_that_has_just_gone_is_not_prepared(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        site.machine.pull(ADDRESS)
        site.host.look()
        with pytest.raises(Retry, match="GPU-ab12-cd has just gone out of sight"):
            await site.host.write(FOR_CLAIM, Uid("u-1"))
        assert site.host.prepared() == ()

    play(tmp_path, scene)


def test_a_device_without_its_device_file_is_not_prepared(tmp_path: Path) -> None:
    async def scene(site: Site) -> None:
        (site.machine.dev / "nvidia0").unlink()
        with pytest.raises(Retry, match="nvidia0 does not exist yet: its driver is loaded"):
            await site.host.write(FOR_CLAIM, Uid("u-1"))

    play(tmp_path, scene)


class Tool:
    """A vendor's tool that wrote a spec of its own."""

    def cdi(self, device: HostDevice) -> tuple[str, ...]:
        return (f"nvidia.com/gpu={device.uuid}",)


def test_what_the_vendors_tool_wrote_comes_first(tmp_path: Path) -> None:
    site = Site(tmp_path, Manners(vendors=(Tool(),), uevents=nobody_speaks))
    asyncio.run(site.host.write(FOR_CLAIM, Uid("u-1")))
    ((held,),) = (one.held for one in site.store.entries())
    assert held.cdi == ("nvidia.com/gpu=GPU-ab12-cd",)
    assert held.edits.device_nodes == ()
    assert held.edits.env["JACKFIELD_DEVICE_A100_1"] == "GPU-ab12-cd"


@pytest.mark.parametrize("moves", [False, True])
def test_interfaces_move_into_containers_where_that_is_wanted(tmp_path: Path, *, moves: bool) -> None:
    site = Site(tmp_path, Manners(interfaces=moves, uevents=nobody_speaks))
    site.machine.plug(PciDevice("0000:18:00.0", pci_class="020000", serial=77, interfaces={"eth7": "aa"}))
    site.host.look()
    prepared = Prepared(
        Uid("u-1"), Key("default", "c"), PhysicalID("n"), NAME, PhysicalID("00-00-00-00-00-00-00-4d")
    )
    asyncio.run(site.host.write(prepared, Uid("u-1")))
    ((held,),) = (one.held for one in site.store.entries())
    assert [one.name for one in held.edits.net_devices] == (["eth7"] if moves else [])
    assert held.attributes["interface"].string == "eth7"
