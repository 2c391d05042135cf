"""Whatever Fsas' managers and the way to them do, no order becomes two devices, and nothing foreign is touched."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import fsas
from jackfield.fabric import Line
from jackfield.fabric.fsas import Client, Options, Site, credentials, read_options
from jackfield.fabric.http import Answer, Request, Wire
from jackfield.fabric.vendors.fsas_cm import ClusterOptions, FsasClusterManager
from jackfield.fabric.vendors.fsas_fm import FsasFabricManager
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.fsas import Fsas
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Attached
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.fabric import Done, FabricDevice, Failed, Order, Progress, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from unit.fabric.fsas_bench import ENVIRONMENT, TYPES, line, serving, settings
from unit.fabric_manager.lab import FABRIC, SMALL, TOKEN, lab, managing
from unit.sim.hasty import Hasty

ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"))
T = Seconds(30.0)
"""Queue and effect of the bench's settings together."""

Scene = Callable[[Server, Line], Awaitable[None]]


def play(folder: Path, kind: str, scene: Scene, seconds: float = 0.0, lifetime: float = 300.0) -> None:
    async def main() -> None:
        async with (
            serving(folder, Fixed(Seconds(seconds)), lifetime=lifetime) as server,
            line(kind, server.url, server.manager.clock) as fabric,
        ):
            async with asyncio.timeout(20.0):
                await scene(server, fabric)

    asyncio.run(main())


async def ask(call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
    try:
        return await call(order)
    except Retry:
        return Working()


async def there(fabric: Line, node: str = "n-1") -> tuple[FabricDevice, ...]:
    """Return what stands on a node, however often one must ask."""
    for _ in range(20):
        try:
            return tuple(one for one in (await fabric.inventory()).devices if one.node == node)
        except Retry:
            continue
    raise AssertionError("the manager never showed its inventory")


async def carefully_attached(server: Server, fabric: Line) -> FabricDevice:
    """Attach as the operator does: send, look, and send again only when all is quiet."""
    clock = server.manager.clock
    for _ in range(4):
        answer = await ask(fabric.attach, ORDER)
        assert not isinstance(answer, Failed), answer
        until = clock.now() + T
        while clock.now() < until:
            found = await there(fabric)
            if found:
                (device,) = found
                return device
            await clock.sleep(Seconds(1.0))
    raise AssertionError("nothing came")


async def carefully_detached(server: Server, fabric: Line, order: Order) -> None:
    clock = server.manager.clock
    for _ in range(4):
        await ask(fabric.detach, order)
        until = clock.now() + T
        while clock.now() < until:
            if not await there(fabric):
                return
            await clock.sleep(Seconds(1.0))
    raise AssertionError("it is still there")


def attaches(server: Server) -> int:
    """Return how often the manager attached anything."""
    return sum(event.what == "attached" for event in server.manager.store.events(0))


FAULTS = [
    Fault(Kind.STATUS, times=3, status=409, reason="the machine is being updated"),
    Fault(Kind.STATUS, times=3, status=429, seconds=Seconds(2.0)),
    Fault(Kind.STATUS, times=2, status=503, seconds=Seconds(1.0)),
    Fault(Kind.STATUS, times=1, status=500),
    Fault(Kind.STATUS, times=1, status=502),
    Fault(Kind.STATUS, times=1, status=503),
    Fault(Kind.LOST, times=1),
    Fault(Kind.LATE, times=1, seconds=Seconds(5.0)),
    Fault(Kind.UNAUTHORIZED, times=1),
]
NAMES = [
    f"{one.kind} {one.status if one.kind is Kind.STATUS else ''}{'+' * bool(one.seconds)}" for one in FAULTS
]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
@pytest.mark.parametrize("kind", TYPES)
def test_an_order_is_one_device_whatever_befalls_its_attach(tmp_path: Path, kind: str, fault: Fault) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(msgspec.structs.replace(fault, verb="attach"))
        await carefully_attached(server, fabric)
        await server.manager.clock.sleep(T)
        assert len(await there(fabric)) == 1
        assert attaches(server) == 1

    play(tmp_path, kind, scene, 2.0)


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_device_is_taken_back_whatever_befalls_its_detach(tmp_path: Path, kind: str, fault: Fault) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await carefully_attached(server, fabric)
        await server.manager.set_fault(msgspec.structs.replace(fault, verb="detach"))
        await carefully_detached(server, fabric, msgspec.structs.replace(ORDER, device=device.id))
        await server.manager.clock.sleep(T)
        assert await there(fabric) == ()
        assert attaches(server) == 1

    play(tmp_path, kind, scene, 2.0)


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_burst_of_faults_in_everything_read_makes_no_second_device(
    tmp_path: Path, kind: str, fault: Fault
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(
            msgspec.structs.replace(
                fault, verb="inventory", times=7, seconds=min(fault.seconds, Seconds(2.0))
            )
        )
        await carefully_attached(server, fabric)
        await server.manager.clock.sleep(T)
        assert attaches(server) == 1

    play(tmp_path, kind, scene, 2.0)


class Twice(Wire):
    """A way on which every change is delivered twice."""

    async def call(self, request: Request) -> Answer:
        if request.method != "GET" and "id_manager" not in request.path:
            await super().call(request)
        return await super().call(request)


def over_twice(kind: str, server: Server) -> Line:
    given, clock = settings(kind, server.url), server.manager.clock
    found = read_options(given, ClusterOptions if kind == "fsas-cm" else Options)
    client = Client(Twice(given, fsas.JSON), credentials(found, ENVIRONMENT), clock)
    site = Site(FABRIC, found, client, clock)
    return FsasClusterManager(site, "c-1") if kind == "fsas-cm" else FsasFabricManager(site)


@pytest.mark.parametrize(("kind", "came"), [("fsas-fm", 2), ("fsas-cm", 1)])
def test_a_call_that_is_delivered_twice_is_one_count_or_a_surplus_that_is_seen_and_can_be_returned(
    tmp_path: Path, kind: str, came: int
) -> None:
    async def scene(server: Server, _: Line) -> None:
        async with over_twice(kind, server) as fabric:
            answer = await _settled(server, fabric)
            shown = await there(fabric)
            assert isinstance(answer, Done)
            assert answer.device in [one.id for one in shown]
            assert [one.ours for one in shown] == [True] * came
            for number, one in enumerate(shown):
                order = msgspec.structs.replace(ORDER, id=OrderID(f"back-{number}"), device=one.id)
                while not isinstance(await ask(fabric.detach, order), Done):
                    pass
            assert await there(fabric) == ()

    play(tmp_path, kind, scene)


# --- answers in time


@pytest.mark.parametrize("kind", TYPES)
def test_an_attach_that_takes_minutes_is_answered_within_a_second_and_sent_once(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        clock = Hasty(4.0)
        async with (
            serving(tmp_path, Fixed(Seconds(4.0)), clock) as server,
            line(kind, server.url, clock) as fabric,
        ):
            for _ in range(3):
                before = clock.now()
                assert await fabric.attach(ORDER) == Working()
                assert clock.now() - before < 2.0
            while not await there(fabric):
                await clock.sleep(Seconds(0.5))
            assert attaches(server) == 1
            done = await fabric.attach(ORDER)
            (device,) = await there(fabric)
            assert done == Done(device.id, device.serial)
            assert attaches(server) == 1

    asyncio.run(main())


@pytest.mark.parametrize("kind", TYPES)
def test_a_manager_that_hangs_on_one_machine_does_not_hold_up_another(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, node=NodeName("n-1")))
        assert await fabric.attach(ORDER) == Working()
        other = msgspec.structs.replace(ORDER, id=OrderID("o-2"), node=NodeName("n-2"))
        while not await there(fabric, "n-2"):
            assert not isinstance(await ask(fabric.attach, other), Failed)
        assert await there(fabric) == ()

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_what_a_process_had_under_way_when_it_ended_its_successor_finds(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, _: Line) -> None:
        clock = server.manager.clock
        async with line(kind, server.url, clock) as first:
            while not server.manager.books.unfinished():
                await ask(first.attach, ORDER)
        async with line(kind, server.url, clock) as second:
            while not (found := await there(second)):
                await clock.sleep(Seconds(1.0))
            await carefully_detached(server, second, msgspec.structs.replace(ORDER, device=found[0].id))
            assert attaches(server) == 1

    play(tmp_path, kind, scene, 5.0)


# --- what failed


async def _settled(server: Server, fabric: Line) -> Progress:
    for _ in range(200):
        answer = await ask(fabric.attach, ORDER)
        if not isinstance(answer, Working):
            return answer
        await server.manager.clock.sleep(Seconds(0.5))
    raise AssertionError("it never ended")


@pytest.mark.parametrize("kind", TYPES)
def test_an_attach_that_failed_is_told_with_its_reason_and_leaves_nothing(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="the link stays down"))
        answer = await _settled(server, fabric)
        assert isinstance(answer, Failed)
        assert "the link stays down" in answer.reason
        assert await there(fabric) == ()
        assert isinstance(await _settled(server, fabric), Done)
        assert len(await there(fabric)) == 1

    play(tmp_path, kind, scene, 2.0)


@pytest.mark.parametrize("kind", TYPES)
def test_another_model_than_was_asked_for_is_taken_back_and_told(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.WRONG, verb="attach", times=1))
        answer = await _settled(server, fabric)
        assert isinstance(answer, Failed)
        assert "attached h-1 of model 'H100' instead of A100; it was taken back" in answer.reason
        assert await there(fabric) == ()

    play(tmp_path, kind, scene, 1.0)


@pytest.mark.parametrize("kind", TYPES)
def test_a_detach_that_failed_is_told_and_tried_again(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await carefully_attached(server, fabric)
        order = msgspec.structs.replace(ORDER, device=device.id)
        await server.manager.set_fault(Fault(Kind.FAIL, verb="detach", times=1, reason="it is stuck"))
        answer: Progress = Working()
        while isinstance(answer, Working):
            answer = await ask(fabric.detach, order)
        assert isinstance(answer, Failed)
        assert "it is stuck" in answer.reason
        while not isinstance(answer, Done):
            answer = await ask(fabric.detach, order)
        assert await there(fabric) == ()

    play(tmp_path, kind, scene, 1.0)


@pytest.mark.parametrize("kind", TYPES)
def test_a_node_that_has_no_room_left_fails_with_words(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        for number in range(10):
            order = msgspec.structs.replace(ORDER, id=OrderID(f"many-{number}"))
            while isinstance(await ask(fabric.attach, order), Working):
                pass
        answer = await _settled(server, fabric)
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(server.url)

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_a_device_that_vanishes_is_not_shown_and_its_detach_is_done(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await carefully_attached(server, fabric)
        before = (await fabric.inventory()).free[ModelName("A100")]
        await server.manager.set_fault(Fault(Kind.VANISH, device=device.id))
        assert await there(fabric) == ()
        gone: Progress = Working()
        while isinstance(gone, Working):
            gone = await ask(fabric.detach, msgspec.structs.replace(ORDER, device=device.id))
        assert isinstance(gone, Done)
        assert gone.device == device.id
        assert (await fabric.inventory()).free[ModelName("A100")] == before

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_an_attach_takes_nothing_that_stands_there_for_what_came(tmp_path: Path, kind: str) -> None:
    """A device of another model stands in another list: taken for the answer, it would be given back as wrong."""

    async def scene(server: Server, fabric: Line) -> None:
        first = await carefully_attached(server, fabric)
        other = msgspec.structs.replace(ORDER, id=OrderID("o-2"), model=ModelName("H100"))
        answer: Progress = Working()
        while isinstance(answer, Working):
            answer = await ask(fabric.attach, other)
        assert isinstance(answer, Done), answer
        assert {one.id for one in await there(fabric)} == {first.id, answer.device}

    play(tmp_path, kind, scene, seconds=5.0)


HICCUPS = (
    Fault(Kind.STATUS, verb="inventory", times=3, status=500),
    Fault(Kind.STATUS, verb="inventory", times=3, status=409),
    Fault(Kind.STATUS, verb="inventory", times=3, status=429),
    Fault(Kind.LOST, verb="inventory", times=3),
)


@pytest.mark.parametrize("hiccup", HICCUPS, ids=lambda one: f"{one.kind} {one.status}")
@pytest.mark.parametrize("kind", TYPES)
def test_a_manager_that_fails_now_and_then_shows_its_inventory(
    tmp_path: Path, kind: str, hiccup: Fault
) -> None:
    """It takes a question for every machine: were none repeated, a large fabric would never be seen."""

    async def scene(server: Server, fabric: Line) -> None:
        fault = await server.manager.set_fault(hiccup)
        assert {one.node for one in (await fabric.inventory()).machines} == {"n-1", "n-2"}
        seen = server.manager.faults.get(fault.id)
        assert seen is not None
        assert seen.seen > hiccup.times

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_a_manager_that_wants_to_be_left_alone_is_not_asked_again_at_once(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        fault = await server.manager.set_fault(
            Fault(Kind.STATUS, verb="inventory", status=429, seconds=Seconds(7.0))
        )
        with pytest.raises(Retry, match="429") as raised:
            await fabric.inventory()
        assert raised.value.after == 7.0
        seen = server.manager.faults.get(fault.id)
        assert seen is not None
        assert seen.seen == 1

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_a_device_that_falls_ill_is_shown_so(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await carefully_attached(server, fabric)
        assert device.healthy
        await server.manager.set_fault(Fault(Kind.ILL, device=device.id))
        assert [one.healthy for one in await there(fabric)] == [False]

    play(tmp_path, kind, scene)


# --- tokens


@pytest.mark.parametrize("kind", TYPES)
def test_a_token_that_expires_in_the_middle_is_renewed_and_nothing_is_done_twice(
    tmp_path: Path, kind: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        device = await carefully_attached(server, fabric)
        await carefully_detached(server, fabric, msgspec.structs.replace(ORDER, device=device.id))
        assert attaches(server) == 1

    play(tmp_path, kind, scene, 8.0, lifetime=2.0)


@pytest.mark.parametrize("kind", TYPES)
def test_id_manager_that_fails_for_a_while_is_asked_again(tmp_path: Path, kind: str) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.STATUS, verb="token", times=2, status=500))
        for _ in range(2):
            with pytest.raises(
                Retry, match=r"^http://127.0.0.1:\d+: id_manager gives no token: it answered 500$"
            ):
                await fabric.inventory()
        assert (await fabric.inventory()).fabric == FABRIC

    play(tmp_path, kind, scene)


@pytest.mark.parametrize("kind", TYPES)
def test_credentials_that_are_not_accepted_are_told_and_not_shown(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with serving(tmp_path) as server:
            from_directory = tmp_path / "credentials"
            from_directory.mkdir()
            for name in ("realm", "client_id", "client_secret", "username", "password"):
                (from_directory / name).write_text(f"wrong-{name}\n")
            options = {"credentialsPrefix": "", "credentialsDirectory": str(from_directory)}
            async with line(kind, server.url, server.manager.clock, **options) as fabric:
                with pytest.raises(Retry, match=r"it answered 401, invalid_grant$") as caught:
                    await fabric.inventory()
                assert "wrong" not in str(caught.value)
                (from_directory / "password").write_text(TOKEN.reveal())
                assert (await fabric.inventory()).fabric == FABRIC

    asyncio.run(main())


# --- somebody else's


@pytest.mark.parametrize("kind", TYPES)
def test_what_somebody_else_attached_is_shown_as_such_and_never_detached(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        before = (Attached(device=PhysicalID("a-1"), machine=NodeName("n-1")),)
        base = msgspec.structs.replace(SMALL, attached=before)
        async with (
            managing(tmp_path, lab(base=base)) as manager,
            Server(manager, (Fsas(),), Gate(TOKEN)) as server,
        ):
            named = {"foreign": ["a-1"]} if kind == "fsas-fm" else {}
            async with line(kind, server.url, manager.clock, **named) as fabric:
                (device,) = await there(fabric)
                assert (device.id, device.ours) == ("a-1", False)
                with pytest.raises(Refused, match=r"device a-1 was attached by somebody else$"):
                    await fabric.detach(msgspec.structs.replace(ORDER, device=device.id))
                assert isinstance(await _settled(server, fabric), Done)
                assert [one.ours for one in await there(fabric)] == [False, True]

    asyncio.run(main())
