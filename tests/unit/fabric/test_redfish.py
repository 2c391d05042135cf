"""Whatever a Redfish service and the way to it do, no order becomes two devices, and nothing foreign is touched."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric import Line
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Attached, Batch, HostPort, Machine, Switch, SwitchName
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, FabricDevice, Failed, Order, Progress, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from unit.fabric.redfish_bench import MODES, line, serving
from unit.fabric_manager.lab import FABRIC, SMALL
from unit.sim.hasty import Hasty

T = Seconds(50.0)
"""Queue and effect of the bench's settings together."""
SPECIFIC = ("action", "patch")

Scene = Callable[[Server, Line], Awaitable[None]]


def an_order(mode: str, name: str = "o-1", device: str = "a-1", node: str = "n-1") -> Order:
    told = PhysicalID("" if mode == "constrained" else device)
    return Order(OrderID(name), FABRIC, NodeName(node), ModelName("A100"), told)


def within(work: Coroutine[object, object, None]) -> None:
    """Do the work; whatever never ends fails."""

    async def bounded() -> None:
        async with asyncio.timeout(120.0):
            await work

    asyncio.run(bounded())


def play(folder: Path, mode: str, scene: Scene, seconds: float = 0.0, held: float = 0.0) -> None:
    async def main() -> None:
        face = Redfish(answer_seconds=Seconds(held))
        async with (
            serving(folder, Fixed(Seconds(seconds)), face=face) as server,
            line(server.url, server.manager.clock, **MODES[mode]) as fabric,
        ):
            await scene(server, fabric)

    within(main())


async def ask(call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
    try:
        return await call(order)
    except Retry:
        return Working()


async def there(fabric: Line, node: str = "n-1") -> tuple[FabricDevice, ...]:
    """Return what stands on a node, however often one must ask."""
    for _ in range(50):
        try:
            return tuple(one for one in (await fabric.inventory()).devices if one.node == node)
        except Retry:
            continue
    raise AssertionError("the manager never showed its inventory")


async def settled(server: Server, call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
    """Ask until it is done or has failed, as the port allows where the device is named."""
    for _ in range(2000):
        answer = await ask(call, order)
        if not isinstance(answer, Working):
            return answer
        await server.manager.clock.sleep(Seconds(0.5))
    raise AssertionError("it never ended")


async def attached(server: Server, fabric: Line, mode: str) -> FabricDevice:
    """Attach as the operator does: where the service chooses, send again only when all is quiet."""
    clock = server.manager.clock
    for _ in range(4):
        answer = await ask(fabric.attach, an_order(mode))
        assert not isinstance(answer, Failed), answer
        until = clock.now() + T
        while clock.now() < until:
            found = await there(fabric)
            if found:
                (device,) = found
                return device
            if mode != "constrained":
                assert not isinstance(await ask(fabric.attach, an_order(mode)), Failed)
            await clock.sleep(Seconds(1.0))
    raise AssertionError("nothing came")


async def detached(server: Server, fabric: Line, device: FabricDevice) -> None:
    order = an_order("", device=device.id)
    while not isinstance(await settled(server, fabric.detach, order), Done):
        await server.manager.clock.sleep(Seconds(1.0))


async def health(fabric: Line) -> dict[str, bool]:
    """Return which of the first two devices are shown as healthy."""
    shown = (await fabric.inventory()).devices
    return {str(one.id): one.healthy for one in shown if one.id in {"a-1", "a-2"}}


def attaches(server: Server) -> int:
    """Return how often the manager attached anything."""
    return sum(event.what == "attached" for event in server.manager.store.events(0))


async def kept(server: Server) -> list[str]:
    """Return the reservations that are left."""
    return [key for key in server.manager.store.notes("redfish") if key.startswith("reserved/")]


# --- faults of the wire

FAULTS = [
    Fault(Kind.STATUS, times=3, status=409, reason="the machine is being updated"),
    Fault(Kind.STATUS, times=3, status=429, seconds=Seconds(2.0)),
    Fault(Kind.STATUS, times=2, status=503, seconds=Seconds(1.0)),
    Fault(Kind.STATUS, times=1, status=500),
    Fault(Kind.STATUS, times=1, status=502),
    Fault(Kind.STATUS, times=1, status=412),
    Fault(Kind.LOST, times=1),
    Fault(Kind.LATE, times=1, seconds=Seconds(5.0)),
    Fault(Kind.UNAUTHORIZED, times=1),
]
TELLING = tuple(one for one in FAULTS if one.kind is not Kind.LATE and one.status in {409, 412, 500, 503})
"""Those that are met in ways of their own, however a device is attached."""


def named(mode: str, fault: Fault) -> object:
    status = str(fault.status) if fault.kind is Kind.STATUS else ""
    return pytest.param(mode, fault, id=f"{mode}-{fault.kind}{status}{'+' * bool(fault.seconds)}")


@pytest.mark.parametrize(
    ("mode", "fault"),
    [
        *(named(mode, fault) for mode in ("action", "constrained") for fault in FAULTS),
        *(named("patch", fault) for fault in TELLING),
    ],
)
def test_an_order_is_one_device_and_goes_back_whatever_befalls_its_calls(
    tmp_path: Path, mode: str, fault: Fault
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        for verb in ("attach", "reserve"):
            await server.manager.set_fault(msgspec.structs.replace(fault, verb=verb))
        device = await attached(server, fabric, mode)
        await server.manager.clock.sleep(T)
        assert [one.id for one in await there(fabric)] == [device.id]
        assert attaches(server) == 1
        await server.manager.set_fault(msgspec.structs.replace(fault, verb="detach"))
        await detached(server, fabric, device)
        assert await there(fabric) == ()
        assert await kept(server) == []

    play(tmp_path, mode, scene, 2.0)


@pytest.mark.parametrize(("mode", "fault"), [named(mode, fault) for mode in MODES for fault in TELLING[2:]])
def test_a_burst_of_faults_in_everything_read_makes_no_second_device(
    tmp_path: Path, mode: str, fault: Fault
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        # A password that is refused again and again is not shown any more, and rightly.
        times = 1 if mode == "patch" and fault.kind is Kind.UNAUTHORIZED else 7
        burst = {"verb": "inventory", "times": times, "seconds": min(fault.seconds, Seconds(2.0))}
        await server.manager.set_fault(msgspec.structs.replace(fault, **burst))
        await attached(server, fabric, mode)
        await server.manager.clock.sleep(T)
        assert attaches(server) == 1

    play(tmp_path, mode, scene, 2.0)


# --- answers in time


@pytest.mark.parametrize("held", [0.0, 1.0], ids=["by task", "at once"])
@pytest.mark.parametrize("mode", MODES)
def test_an_attach_that_takes_long_is_answered_meanwhile_and_sent_once(
    tmp_path: Path, mode: str, held: float
) -> None:
    async def main() -> None:
        clock = Hasty(4.0)
        async with (
            serving(
                tmp_path, Fixed(Seconds(4.0)), clock=clock, face=Redfish(answer_seconds=Seconds(held))
            ) as server,
            line(server.url, clock, **MODES[mode]) as fabric,
        ):
            order = an_order(mode)
            assert await ask(fabric.attach, order) == Working()
            assert await ask(fabric.attach, order) == Working()
            while not await there(fabric):
                await clock.sleep(Seconds(0.5))
            done = await settled(server, fabric.attach, order)
            (device,) = await there(fabric)
            assert done == Done(device.id, device.serial)
            assert attaches(server) == 1

    within(main())


def test_a_manager_that_hangs_on_one_machine_does_not_hold_up_another(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, node=NodeName("n-1")))
        assert await ask(fabric.attach, an_order("patch")) == Working()
        other = an_order("patch", "o-2", "a-2", "n-2")
        assert isinstance(await settled(server, fabric.attach, other), Done)
        assert await there(fabric) == ()

    play(tmp_path, "patch", scene)


# --- a process that ended


@pytest.mark.parametrize("mode", SPECIFIC)
def test_what_a_process_had_under_way_when_it_ended_its_successor_finds(tmp_path: Path, mode: str) -> None:
    async def scene(server: Server, _: Line) -> None:
        clock = server.manager.clock
        async with line(server.url, clock, **MODES[mode]) as first:
            while not server.manager.books.unfinished():
                await ask(first.attach, an_order(mode))
        async with line(server.url, clock, **MODES[mode]) as second:
            assert isinstance(await settled(server, second.attach, an_order(mode)), Done)
            assert attaches(server) == 1
            (device,) = await there(second)
            await detached(server, second, device)

    play(tmp_path, mode, scene, 5.0)


@pytest.mark.parametrize("mode", SPECIFIC)
def test_a_reservation_that_a_process_left_behind_does_not_last(tmp_path: Path, mode: str) -> None:
    async def scene(server: Server, _: Line) -> None:
        clock = server.manager.clock
        await server.manager.set_fault(Fault(Kind.STATUS, verb="attach", status=503, seconds=Seconds(1.0)))
        async with line(server.url, clock, **MODES[mode]) as first:
            while not await kept(server):
                await ask(first.attach, an_order(mode))
        (fault,) = server.manager.faults
        await server.manager.clear_fault(fault.id)
        async with line(server.url, clock, **MODES[mode]) as second:
            while isinstance(await settled(server, second.attach, an_order(mode)), Failed):
                await clock.sleep(Seconds(1.0))
            assert [one.id for one in await there(second)] == ["a-1"]
            assert await kept(server) == []

    play(tmp_path, mode, scene)


def test_what_somebody_else_reserved_is_not_taken_nor_offered(tmp_path: Path) -> None:
    async def main() -> None:
        face = Redfish(reservation_seconds=Seconds(10_000.0))
        async with (
            serving(tmp_path, face=face) as server,
            line(server.url, server.manager.clock) as theirs,
            line(server.url, server.manager.clock) as ours,
        ):
            never = Fault(Kind.STATUS, verb="attach", status=503, seconds=Seconds(1.0))
            await server.manager.set_fault(never)
            while not await kept(server):
                await ask(theirs.attach, an_order("action"))
            end = await settled(server, ours.attach, an_order("action"))
            assert end == Failed(f"{server.url}: a-1 is reserved by somebody else")
            assert await health(ours) == {"a-1": False, "a-2": True}

    within(main())


# --- what failed


@pytest.mark.parametrize("held", [0.0, 5.0], ids=["by task", "at once"])
@pytest.mark.parametrize("mode", MODES)
def test_an_attach_that_failed_is_told_with_its_reason_and_leaves_nothing(
    tmp_path: Path, mode: str, held: float
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="the link stays down"))
        answer = await settled(server, fabric.attach, an_order(mode))
        assert isinstance(answer, Failed)
        assert "the link stays down" in answer.reason
        assert await there(fabric) == ()
        assert await kept(server) == []
        assert isinstance(await settled(server, fabric.attach, an_order(mode)), Done)
        assert len(await there(fabric)) == 1

    play(tmp_path, mode, scene, 2.0, held)


@pytest.mark.parametrize("mode", MODES)
def test_another_device_than_was_asked_for_is_taken_back_and_told(tmp_path: Path, mode: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.WRONG, verb="attach", times=1))
        answer = await settled(server, fabric.attach, an_order(mode))
        assert isinstance(answer, Failed)
        assert "attached h-1 of model 'H100' instead of" in answer.reason
        assert answer.reason.endswith("it was taken back")
        assert await there(fabric) == ()

    play(tmp_path, mode, scene, 1.0)


@pytest.mark.parametrize("mode", MODES)
def test_a_detach_that_failed_is_told_and_tried_again(tmp_path: Path, mode: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await attached(server, fabric, mode)
        order = an_order("", device=device.id)
        await server.manager.set_fault(Fault(Kind.FAIL, verb="detach", times=1, reason="it is stuck"))
        answer = await settled(server, fabric.detach, order)
        assert isinstance(answer, Failed)
        assert "it is stuck" in answer.reason
        await detached(server, fabric, device)
        assert await there(fabric) == ()

    play(tmp_path, mode, scene, 1.0)


@pytest.mark.parametrize("mode", MODES)
def test_a_device_that_vanishes_is_not_shown_and_its_detach_is_done(tmp_path: Path, mode: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await attached(server, fabric, mode)
        await server.manager.set_fault(Fault(Kind.VANISH, device=device.id))
        assert await there(fabric) == ()
        gone = await ask(fabric.detach, an_order("", device=device.id))
        assert isinstance(gone, Done)
        assert gone.device == device.id

    play(tmp_path, mode, scene)


def test_a_device_that_falls_ill_is_shown_so_and_never_ordered(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await attached(server, fabric, "action")
        for name in (device.id, PhysicalID("a-2")):
            await server.manager.set_fault(Fault(Kind.ILL, device=name))
        assert await health(fabric) == {"a-1": False, "a-2": False}
        end = await settled(server, fabric.attach, an_order("action", "o-2", "a-2"))
        assert isinstance(end, Failed)
        assert "a-2 cannot be used" in end.reason

    play(tmp_path, "action", scene)


TWO_BOXES = msgspec.structs.replace(
    SMALL,
    switches=(Switch(name=SwitchName("left")), Switch(name=SwitchName("right"))),
    machines=(
        Machine(name=NodeName("n-1"), ports=(HostPort(switch=SwitchName("left")),)),
        Machine(name=NodeName("n-2"), ports=(HostPort(switch=SwitchName("right")),)),
    ),
    devices=(
        Batch(name="a", model=ModelName("A100"), count=2, switch=SwitchName("left")),
        Batch(name="b", model=ModelName("A100"), count=2, switch=SwitchName("right")),
    ),
)


@pytest.mark.parametrize("mode", SPECIFIC)
def test_what_is_in_no_zone_with_the_machine_is_refused_before_anything_is_sent(
    tmp_path: Path, mode: str
) -> None:
    async def main() -> None:
        async with (
            serving(tmp_path, base=TWO_BOXES) as server,
            line(server.url, server.manager.clock, **MODES[mode]) as fabric,
        ):
            end = await settled(server, fabric.attach, an_order(mode, device="b-1"))
            assert end == Failed(f"{server.url}: b-1 and n-1 are in no ResourceZone together")
            assert not server.manager.books.inventory("redfish").devices[2].node
            assert isinstance(await settled(server, fabric.attach, an_order(mode)), Done)
            switches = {str(one.id): one.switch for one in (await fabric.inventory()).devices}
            assert (switches["a-1"], switches["b-1"]) == ("left", "right")

    within(main())


@pytest.mark.parametrize(
    ("device", "model", "said"),
    [
        ("a-99", "A100", "there is no device 'a-99'"),
        ("compute-n-1", "A100", "there is no device 'compute-n-1'"),
        ("h-1", "A100", "h-1 is of model 'H100', not 'A100'"),
    ],
)
def test_an_order_that_makes_no_sense_fails_with_words(
    tmp_path: Path, device: str, model: str, said: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        order = msgspec.structs.replace(an_order("", device=device), model=ModelName(model))
        assert await settled(server, fabric.attach, order) == Failed(f"{server.url}: {said}")

    play(tmp_path, "action", scene)


# --- somebody else's


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("told", ["foreign", "client"])
def test_what_somebody_else_attached_is_shown_as_such_and_never_detached(
    tmp_path: Path, mode: str, told: str
) -> None:
    async def main() -> None:
        before = (Attached(device=PhysicalID("a-1"), machine=NodeName("n-1")),)
        base = msgspec.structs.replace(SMALL, attached=before)
        named = {"foreign": ["a-1"]} if told == "foreign" else {"client": "redfish"}
        async with (
            serving(tmp_path, base=base) as server,
            line(server.url, server.manager.clock, **MODES[mode], **named) as fabric,
        ):
            (device,) = await there(fabric)
            assert (device.id, device.ours) == ("a-1", False)
            with pytest.raises(Refused, match=r"device a-1 was attached by somebody else$"):
                await settled(server, fabric.detach, an_order("", device="a-1"))
            if mode != "constrained":
                taken = await settled(server, fabric.attach, an_order(mode))
                assert taken == Failed(f"{server.url}: a-1 is on n-1, but is somebody else's")
            other = an_order(mode, "o-2", "a-2")
            assert isinstance(await settled(server, fabric.attach, other), Done)
            assert [one.ours for one in await there(fabric)] == [False, True]

    within(main())


def test_a_device_of_a_model_that_is_not_offered_is_shown_as_not_ours(tmp_path: Path) -> None:
    async def main() -> None:
        offered = {"models": [{"name": "big", "model": "A100"}]}
        async with (
            serving(tmp_path) as server,
            line(server.url, server.manager.clock, **offered) as fabric,
        ):
            shown = {str(one.id): (one.model, one.ours) for one in (await fabric.inventory()).devices}
            assert (shown["a-1"], shown["h-1"]) == (("big", True), ("H100", False))

    within(main())


# --- sessions


@pytest.mark.parametrize("mode", MODES)
def test_a_session_that_ends_in_the_middle_is_followed_by_another(tmp_path: Path, mode: str) -> None:
    async def main() -> None:
        face = Redfish(answer_seconds=Seconds(0.0), session_seconds=Seconds(6.0))
        async with (
            serving(tmp_path, Fixed(Seconds(8.0)), face=face) as server,
            line(server.url, server.manager.clock, **MODES[mode]) as fabric,
        ):
            device = await attached(server, fabric, mode)
            await server.manager.clock.sleep(Seconds(20.0))
            await detached(server, fabric, device)
            assert attaches(server) == 1

    within(main())


def test_a_session_is_ended_when_nobody_needs_it_any_more(tmp_path: Path) -> None:
    async def scene(server: Server, _: Line) -> None:
        async with line(server.url, server.manager.clock) as fabric:
            await fabric.inventory()
            assert [key for key in server.manager.store.notes("redfish") if key.startswith("session/")]
        assert not [key for key in server.manager.store.notes("redfish") if key.startswith("session/")]

    play(tmp_path, "patch", scene)
