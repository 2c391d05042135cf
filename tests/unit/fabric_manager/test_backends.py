"""Who moves a device: what becomes of orders when a back end or an operator's command fails, hangs or says nothing."""

import asyncio
import fcntl
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric_manager import hardware, wiring
from jackfield.fabric_manager.backends import BackendError
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Device, Hardware
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.store import Store
from jackfield.model.fabric import Done, Failed, Progress, Working
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from unit.fabric_manager.lab import FABRIC, SMALL, attached, detached, lab, managing, on, order, places


class Broken:
    """A back end that fails as it is told to."""

    def __init__(self, *fails: str) -> None:
        self.fails = fails
        self.calls: list[str] = []

    async def attach(self, device: Device, node: NodeName) -> None:
        self._do("attach", device, node)

    async def detach(self, device: Device, node: NodeName) -> None:
        self._do("detach", device, node)

    def close(self) -> None:
        self.calls.append("close")

    def _do(self, verb: str, device: Device, node: NodeName) -> None:
        self.calls.append(f"{verb} {device.id} {node}")
        if verb in self.fails:
            raise BackendError(f"{verb} does not work")


def test_a_failed_attach_is_undone_by_the_back_end(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Broken("attach")
        async with managing(tmp_path, lab(), backend) as manager:
            assert await attached(manager, order("o")) == Failed("attach does not work")
            assert list(manager.faults) == []
        assert backend.calls == ["attach a-1 n-1", "detach a-1 n-1", "close"]

    asyncio.run(main())


def test_a_device_that_may_be_half_attached_is_not_given_out(tmp_path: Path) -> None:
    async def main() -> None:
        async with managing(tmp_path, lab(), Broken("attach", "detach")) as manager:
            assert await attached(manager, order("o")) == Failed("attach does not work")
            assert await attached(manager, order("p")) == Failed("device a-1 is not healthy")
            (fault,) = manager.faults
            assert fault.reason == "it may still be on n-1: detach does not work"

    asyncio.run(main())


def test_a_device_that_vanishes_under_way_never_arrives(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        hang = await manager.set_fault(Fault(Kind.HANG))
        assert await manager.attach(order("o"), "native") == Working()
        await manager.store.committed()
        vanish = await manager.set_fault(Fault(Kind.VANISH, device=PhysicalID("a-1")))
        await manager.clear_fault(vanish.id)
        await manager.clear_fault(hang.id)
        assert isinstance(await attached(manager, order("p", node="n-2")), Done)
        assert await places(manager) == {"a-1": "n-2"}
        told = [(one.what, one.node) for one in await manager.events(0, Seconds(0.0))]
        assert told == [("vanished", ""), ("back", ""), ("attached", "n-2")]

    async def main() -> None:
        backend = Broken()
        async with managing(tmp_path, lab(), backend) as manager:
            await play(manager)
        assert backend.calls == ["attach a-1 n-2", "close"]

    asyncio.run(main())


class Looking(Broken):
    """A back end that looks what a crash right now would leave."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self.left: list[str] = []

    def _do(self, verb: str, device: Device, node: NodeName) -> None:
        after = self._folder / f"crash-{len(self.left)}"
        after.mkdir()
        for path in self._folder.glob("manager.db*"):
            shutil.copy(path, after)
        store = Store(after / "manager.db", FABRIC)
        self.left += [f"{verb}: {entry.state} {entry.device}" for entry in store.live()]
        store.close()
        super()._do(verb, device, node)


def test_what_is_meant_is_on_disk_before_anything_is_moved(tmp_path: Path) -> None:
    async def main() -> None:
        backend = Looking(tmp_path)
        async with managing(tmp_path, lab(), backend) as manager:
            assert isinstance(await attached(manager, order("o")), Done)
            assert isinstance(await detached(manager, order("o")), Done)
        assert backend.left == ["attach: attaching a-1", "detach: detaching a-1"]

    asyncio.run(main())


SCRIPTS = (
    ("exit 0", Done),
    ('[ "$1 $2 $3" = "attach a-1 n-1" ] && [ "$JACKFIELD_MODEL" = A100 ] && [ -z "$HOME" ]', Done),
    ("echo first >&2; echo the switch is off >&2; exit 3", "the switch is off"),
    ("exit 4", "attach of a-1 ended with status 4"),
    ("sleep 100", "attach of a-1 did not end within 2 s"),
    ("head -c 300000 /dev/zero >&2; echo >&2; echo much was said >&2; exit 1", "much was said"),
    ("sleep 100 & exit 0", Done),
    ("setsid sleep 3 & echo no >&2; exit 1", "no"),
)


@pytest.mark.parametrize(("body", "expected"), SCRIPTS)
def test_a_command_says_by_its_status_how_it_went(
    tmp_path: Path, body: str, expected: type[Done] | str
) -> None:
    script = tmp_path / "switch"
    script.write_text(f'#!/bin/sh\n[ "$1" = detach ] && exit 0\n{body}\n')
    script.chmod(0o700)
    backend = wiring.Script(command=(str(script),), timeout_seconds=Seconds(2.0))

    async def play(manager: Manager) -> None:
        answer = await attached(manager, order("o"))
        if isinstance(expected, str):
            assert answer == Failed(expected)
        else:
            assert isinstance(answer, expected)

    on(tmp_path, Hardware(msgspec.structs.replace(SMALL, backend=backend)), play)


def test_no_shell_reads_a_name(tmp_path: Path) -> None:
    script = tmp_path / "switch"
    script.write_text('#!/bin/sh\nprintf "%s" "$3" >"${0%/*}/told"\n')
    script.chmod(0o700)
    node = NodeName("$(touch bad); `touch bad`")
    of = Hardware(
        msgspec.structs.replace(
            SMALL,
            machines=(hardware.Machine(name=node),),
            backend=wiring.Script(command=(str(script),)),
        )
    )

    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o", node=node)), Done)

    on(tmp_path, of, play)
    assert (tmp_path / "told").read_text() == node
    assert not (tmp_path / "bad").exists()


def test_a_command_that_is_not_there_is_a_failure_with_its_name(tmp_path: Path) -> None:
    backend = wiring.Script(command=(str(tmp_path / "nothing"),))

    async def play(manager: Manager) -> None:
        answer = await attached(manager, order("o"))
        assert isinstance(answer, Failed)
        assert "nothing cannot be run" in answer.reason

    on(tmp_path, Hardware(msgspec.structs.replace(SMALL, backend=backend)), play)


@pytest.mark.parametrize(("patience", "expected"), [(1000.0, Done), (1.0, Failed)])
def test_no_command_runs_beside_one_of_an_earlier_manager(
    tmp_path: Path, patience: float, expected: type[Progress]
) -> None:
    backend = wiring.Script(command=("/bin/true",), timeout_seconds=Seconds(patience))

    async def play(manager: Manager) -> None:
        earlier = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(earlier, fcntl.LOCK_SH)  # as a command inherits it
        first = manager.settle(lambda: manager.attach(order("o"), "native"), OrderID("o"), Seconds(0.2))
        assert isinstance(await first, Failed if expected is Failed else Working)
        os.close(earlier)
        assert isinstance(await attached(manager, order("o")), expected)

    on(tmp_path, Hardware(msgspec.structs.replace(SMALL, backend=backend)), play)
