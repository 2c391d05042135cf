"""Orders on a manager without a wire: limits, owners, restarts, faults, back ends."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric_manager import hardware
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.store import BadStore, Store
from jackfield.model.fabric import Done, Failed, Order, Working
from jackfield.model.names import FabricName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Gone, Refused, Retry
from unit.fabric_manager.lab import FABRIC, SMALL, SOON, attached, detached, lab, on, order, places

SLOW = Fixed(Seconds(1000.0))
"""Ten seconds by the hasty clock: longer than any test here."""


# --- limits

LIMITED = hardware.parse(
    """
fabric: rack-a
switches: [{name: s1, powerWatts: 500}, {name: s2}]
machines:
  - {name: n-1, slots: 2, ports: [{switch: s1}]}
  - {name: n-2, slots: 8}
devices:
  - {name: a, count: 3, model: A100, switch: s1, powerWatts: 300}
  - {name: f, count: 3, model: VU9P, type: fpga, switch: s2}
  - {name: c, count: 3, model: CXL, type: cxlmemory, switch: s1}
""",
    "limited",
)
LIMITS = (
    ([order("o", "a-1"), order("p", "a-2")], "device a-2 draws 300 W, s1 has 200 W left"),
    ([order("o", "f-1", model="VU9P")], "no port of n-1 leads to s2, where device f-1 is"),
    (
        [order("o", "c-1", model="CXL"), order("p", "c-2", model="CXL"), order("q", "c-3", model="CXL")],
        "all 2 slots of n-1 are taken",
    ),
    ([order("o", "", model="H100")], "fabric rack-a has no devices of model H100"),
    ([order("o", "x-1")], "fabric rack-a has no device x-1"),
    ([order("o", "c-1")], "device c-1 is of model CXL, not A100"),
    ([order("o", "a-1"), order("p", "a-1", node="n-2")], "device a-1 is taken by n-1"),
    ([order("o", "", model="VU9P")], "no port of n-1 leads to s2, where device f-3 is"),
)


@pytest.mark.parametrize(("placed", "reason"), LIMITS)
def test_the_last_order_fails_at_the_limit(tmp_path: Path, placed: list[Order], reason: str) -> None:
    async def play(manager: Manager) -> None:
        *fine, last = [await attached(manager, one) for one in placed]
        assert all(isinstance(one, Done) for one in fine)
        assert last == Failed(reason)

    on(tmp_path, LIMITED, play)


def test_power_is_given_back_with_the_device(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o", "a-1")), Done)
        assert isinstance(await detached(manager, order("o", "a-1")), Done)
        assert isinstance(await attached(manager, order("p", "a-2")), Done)

    on(tmp_path, LIMITED, play)


# --- owners


def test_nobody_detaches_what_another_attached(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        with pytest.raises(Refused, match="placed by somebody else"):
            await manager.detach(order("o"), "redfish")
        assert isinstance(await detached(manager, order("p")), Done)
        assert await places(manager) == {"a-1": "n-1"}
        ours = {one.id: (one.ours, one.order) for one in (await manager.inventory("native")).devices}
        theirs = {one.id: (one.ours, one.order) for one in (await manager.inventory("redfish")).devices}
        assert ours[PhysicalID("a-1")] == (True, "o")
        assert theirs[PhysicalID("a-1")] == (False, "")

    on(tmp_path, lab(), play)


def test_what_was_there_before_is_nobodys_and_seeded_once(tmp_path: Path) -> None:
    before = hardware.Attached(device=PhysicalID("a-3"), machine=NodeName("n-2"))
    of = Hardware(msgspec.structs.replace(SMALL, attached=(before,)))

    async def first(manager: Manager) -> None:
        assert await places(manager) == {"a-3": "n-2"}
        assert [one.ours for one in (await manager.inventory("native")).devices if one.node] == [False]
        assert isinstance(await detached(manager, order("before/a-3", "a-3", "n-2"), "before"), Done)

    async def second(manager: Manager) -> None:
        assert await places(manager) == {}

    on(tmp_path, of, first)
    on(tmp_path, of, second)


def test_an_order_of_another_fabric_is_refused(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        with pytest.raises(Refused, match="is for fabric rack-b"):
            await manager.attach(msgspec.structs.replace(order("o"), fabric=FabricName("rack-b")), "native")

    on(tmp_path, lab(), play)


# --- restarts


def test_orders_under_way_are_carried_on_after_a_restart(tmp_path: Path) -> None:
    names = [f"o-{number}" for number in range(1, 7)]

    async def first(manager: Manager) -> None:
        for number, name in enumerate(names, 1):
            assert await manager.attach(order(name, f"a-{number}"), "native") == Working()
        assert await manager.detach(order("o-2", "a-2"), "native") == Working()
        assert isinstance(await manager.detach(order("o-6", "a-6"), "native"), Done)

    async def second(manager: Manager) -> None:
        answers = [await attached(manager, order(name, f"a-{at}")) for at, name in enumerate(names, 1)]
        assert [type(one) for one in answers] == [Done, Failed, Done, Done, Done, Failed]
        assert isinstance(await detached(manager, order("o-2", "a-2")), Done)
        assert sorted(await places(manager)) == ["a-1", "a-3", "a-4", "a-5"]

    on(tmp_path, lab(SLOW), first)
    on(tmp_path, lab(), second)


def test_answers_times_and_faults_survive_a_restart(tmp_path: Path) -> None:
    async def first(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        assert isinstance(await attached(manager, order("p", "x")), Failed)
        await manager.set_fault(Fault(Kind.ILL, device=PhysicalID("a-7")))
        shown.append(await manager.inventory("native"))

    async def second(manager: Manager) -> None:
        assert await manager.inventory("native") == shown[0]
        assert isinstance(await manager.attach(order("o"), "native"), Done)
        assert await manager.attach(order("p", "x"), "native") == Failed("fabric rack-a has no device x")
        assert [one.kind for one in manager.faults] == [Kind.ILL]

    shown: list[object] = []
    on(tmp_path, lab(), first)
    on(tmp_path, lab(), second)


def test_what_is_attached_cannot_leave_the_file(tmp_path: Path) -> None:
    async def first(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("h", "h-1", model="H100")), Done)

    async def second(_: Manager) -> None:
        raise AssertionError("it must not start")

    on(tmp_path, lab(), first)
    less = Hardware(msgspec.structs.replace(SMALL, devices=SMALL.devices[:1]))
    with pytest.raises(BadStore, match="device h-1 is not in the file any more"):
        on(tmp_path, less, second)


# --- faults


def test_work_fails_for_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="no link"))
        assert await attached(manager, order("o")) == Failed("no link")
        assert await places(manager) == {}
        assert isinstance(await attached(manager, order("p")), Done)
        await manager.set_fault(Fault(Kind.FAIL, verb="detach", times=1, reason="stuck"))
        assert await detached(manager, order("p")) == Failed("stuck")
        assert await places(manager) == {"a-1": "n-1"}
        assert isinstance(await detached(manager, order("p")), Done)

    on(tmp_path, lab(), play)


def test_work_hangs_until_the_fault_is_cleared(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        hang = await manager.set_fault(Fault(Kind.HANG, node=NodeName("n-1")))
        assert await manager.settle(
            lambda: manager.attach(order("o"), "native"), OrderID("o"), Seconds(0.1)
        ) == (Working())
        assert isinstance(await attached(manager, order("p", "a-2", "n-2")), Done)
        await manager.clear_fault(hang.id)
        assert isinstance(await attached(manager, order("o")), Done)
        with pytest.raises(Gone):
            await manager.clear_fault(hang.id)

    on(tmp_path, lab(), play)


def test_a_wrong_device_is_answered_and_taken_back_as_what_it_is(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        await manager.set_fault(Fault(Kind.WRONG, times=1))
        answer = await attached(manager, order("o"))
        assert isinstance(answer, Done)
        assert answer.device == "h-1"
        assert await places(manager) == {"h-1": "n-1"}
        assert isinstance(await detached(manager, order("o", "h-1")), Done)
        assert await places(manager) == {}

    on(tmp_path, lab(), play)


def test_a_device_vanishes_from_under_its_order_and_comes_back(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        fault = await manager.set_fault(Fault(Kind.VANISH, device=PhysicalID("a-1")))
        assert PhysicalID("a-1") not in {one.id for one in (await manager.inventory("native")).devices}
        assert await attached(manager, order("o")) == Failed("device a-1 vanished")
        assert isinstance(await detached(manager, order("o")), Done)
        assert await attached(manager, order("p")) == Failed("fabric rack-a has no device a-1")
        await manager.clear_fault(fault.id)
        assert isinstance(await attached(manager, order("q")), Done)

    on(tmp_path, lab(), play)


def test_an_ill_device_is_shown_so_and_not_given_out(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        fault = await manager.set_fault(Fault(Kind.ILL, device=PhysicalID("h-1")))
        healthy = {one.id: one.healthy for one in (await manager.inventory("native")).devices}
        assert not healthy[PhysicalID("h-1")]
        assert healthy[PhysicalID("a-1")]
        answer = await attached(manager, order("o", "", model="H100"))
        assert answer == Failed("device h-1 is not healthy")
        await manager.clear_fault(fault.id)
        assert isinstance(await attached(manager, order("p", "", model="H100")), Done)

    on(tmp_path, lab(), play)


def test_a_fault_on_what_is_not_there_is_refused(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        for fault in (
            Fault(Kind.ILL, device=PhysicalID("x")),
            Fault(Kind.FAIL, node=NodeName("x")),
            Fault(Kind.LATE),
        ):
            with pytest.raises(Refused):
                await manager.set_fault(fault)
        assert list(manager.faults) == []

    on(tmp_path, lab(), play)


# --- what happened


def test_every_movement_is_told_once_and_in_order(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        later = asyncio.create_task(manager.events(0, SOON))
        await attached(manager, order("o"))
        assert [one.what for one in await later] == ["attached"]
        await detached(manager, order("o"))
        events = await manager.events(0, Seconds(0.0))
        assert [(one.number, one.what, one.device, one.node, one.order) for one in events] == [
            (1, "attached", "a-1", "n-1", "o"),
            (2, "detached", "a-1", "n-1", "o"),
        ]
        assert await manager.events(2, Seconds(0.01)) == ()

    on(tmp_path, lab(), play)


# --- the database


def test_only_one_manager_uses_a_database(tmp_path: Path) -> None:
    async def play(_: Manager) -> None:
        with pytest.raises(BadStore, match="another manager uses it"):
            Store(tmp_path / "manager.db", FABRIC)

    on(tmp_path, lab(), play)


def test_a_database_of_another_fabric_is_refused(tmp_path: Path) -> None:
    async def play(_: Manager) -> None:
        pass

    on(tmp_path, lab(), play)
    with pytest.raises(BadStore, match="belongs to another fabric: fabric is 'rack-a', not 'rack-b'"):
        Store(tmp_path / "manager.db", FabricName("rack-b"))


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manager.db").write_text("words\n" * 1000)
    with pytest.raises(BadStore, match="cannot be used"):
        Store(tmp_path / "manager.db", FABRIC)


def test_nothing_is_answered_that_could_not_be_written(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        assert isinstance(await attached(manager, order("o")), Done)
        manager.store.close()  # as a disk that went away
        with pytest.raises(Retry, match="cannot be written"):
            await manager.detach(order("o"), "native")
        assert manager.store.broken.is_set()
        with pytest.raises(Retry, match="cannot be written"):
            await manager.inventory("native")

    on(tmp_path, lab(), play)
