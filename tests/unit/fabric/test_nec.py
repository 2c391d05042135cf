"""Whatever becomes of jobs and answers, no order is two devices, one job runs at a time, nothing foreign is touched."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from jackfield.codec.nec import Status
from jackfield.fabric import Line
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Attached
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed, Order
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Refused
from unit.fabric.nec_bench import (
    ORDER,
    Option,
    ask,
    attaches,
    jobs,
    line,
    other,
    play,
    posted,
    settled,
    there,
    told,
)
from unit.fabric_manager.lab import SMALL

# --- calls and answers that go wrong

FAULTS = [
    Fault(Kind.STATUS, times=3, status=409, reason="somebody was quicker"),
    Fault(Kind.STATUS, times=2, status=429, seconds=Seconds(2.0)),
    Fault(Kind.STATUS, times=2, status=503, seconds=Seconds(1.0)),
    Fault(Kind.STATUS, times=1, status=500),
    Fault(Kind.STATUS, times=1, status=502),
    Fault(Kind.LOST, times=1),
    Fault(Kind.LATE, times=1, seconds=Seconds(5.0)),
    Fault(Kind.UNAUTHORIZED, times=1),
]
NAMES = [
    f"{one.kind} {one.status if one.kind is Kind.STATUS else ''}{'+' * bool(one.seconds)}" for one in FAULTS
]


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_an_order_is_one_device_and_one_job_whatever_befalls_its_attach(tmp_path: Path, fault: Fault) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(msgspec.structs.replace(fault, verb="attach"))
        assert isinstance(await settled(server, fabric.attach), Done)
        assert [one.id for one in await there(fabric)] == ["a-1"]
        assert len(await jobs(server)) == attaches(server) == 1

    play(tmp_path, scene, 1.0)


@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_device_is_taken_back_whatever_befalls_its_detach(tmp_path: Path, fault: Fault) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        assert isinstance(await settled(server, fabric.attach), Done)
        await server.manager.set_fault(msgspec.structs.replace(fault, verb="detach"))
        assert await settled(server, fabric.detach) == Done(ORDER.device)
        assert await there(fabric) == ()
        assert len(await jobs(server)) == 2

    play(tmp_path, scene, 1.0)


@pytest.mark.parametrize("verb", ["inventory", "jobs"])
@pytest.mark.parametrize("fault", FAULTS, ids=NAMES)
def test_a_burst_of_faults_in_everything_read_makes_no_second_job(
    tmp_path: Path, fault: Fault, verb: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        burst = msgspec.structs.replace(fault, verb=verb, times=5, seconds=min(fault.seconds, Seconds(1.0)))
        await server.manager.set_fault(burst)
        assert isinstance(await settled(server, fabric.attach), Done)
        assert len(await jobs(server)) == attaches(server) == 1

    play(tmp_path, scene, 0.5)


def test_a_job_that_began_though_nobody_said_so_is_found_and_why_it_failed_is_told(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.LOST, verb="attach", times=1))
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="the link stays down"))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith("is FAILED: failed: the link stays down")
        assert len(await jobs(server)) == 1

    play(tmp_path, scene, 1.0)


def test_an_older_job_for_the_same_device_is_not_taken_for_one_that_never_began(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1))
        assert isinstance(await settled(server, fabric.attach), Failed)
        await server.manager.set_fault(Fault(Kind.STATUS, verb="attach", status=500, times=1))
        assert "no layout apply for a-1 is known to have begun" in str(await told(server, fabric.attach))
        assert len(await jobs(server)) == 1

    play(tmp_path, scene)


def test_a_job_of_somebody_else_is_not_taken_for_ours_that_never_began(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.STATUS, verb="attach", node=NodeName("n-1"), status=500))
        asked = asyncio.create_task(told(server, fabric.attach))
        while not [one for one in server.manager.faults if one.seen]:
            await server.manager.clock.sleep(Seconds(0.1))
        theirs = await posted(server, "a-2")
        assert re.search(r"E40018: as it was told to \(500\); no layout apply for a-1", str(await asked))
        assert [one.apply_id for one in await jobs(server)] == [theirs]

    play(tmp_path, scene, 1.0)


# --- what came of a job


def test_an_attach_that_failed_is_told_with_its_reason_and_leaves_nothing(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="the link stays down"))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert re.search(r"^http://\S+: layout apply \w+ is FAILED: failed: the link stays", answer.reason)
        assert await there(fabric) == ()
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene, 1.0)


def test_a_detach_that_failed_is_told_and_tried_again(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach)
        await server.manager.set_fault(Fault(Kind.FAIL, verb="detach", times=1, reason="it is stuck"))
        answer = await settled(server, fabric.detach)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith("it is stuck")
        assert isinstance(await settled(server, fabric.detach), Done)

    play(tmp_path, scene, 1.0)


def test_another_device_than_was_asked_for_is_told_shown_and_can_be_returned(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.WRONG, verb="attach", times=1))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith("is COMPLETED, but not a-1 came to n-1 but h-1")
        assert [(one.id, one.ours) for one in await there(fabric)] == [("h-1", True)]
        surplus = msgspec.structs.replace(ORDER, id=OrderID("back"), device=PhysicalID("h-1"))
        assert isinstance(await settled(server, fabric.detach, surplus), Done)
        assert await there(fabric) == ()

    play(tmp_path, scene)


def test_a_job_whose_effect_the_configuration_does_not_show_is_told(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach)
        await server.manager.set_fault(Fault(Kind.STALE, seconds=Seconds(1000.0)))
        assert re.search(
            r"is COMPLETED, but the configuration manager does not show a-2 on n-1$",
            str(await told(server, lambda _: fabric.attach(other(2)))),
        )

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (msgspec.structs.replace(ORDER, node=NodeName("n-9")), "fabric rack-a has no machine n-9"),
        (msgspec.structs.replace(ORDER, device=PhysicalID("a-99")), "there is no device a-99"),
        (msgspec.structs.replace(ORDER, device=PhysicalID("")), "an order must name its device"),
        (msgspec.structs.replace(ORDER, model=ModelName("H100")), "device a-1 is of model A100, not H100"),
        (other(2), "device a-2 is taken by n-2"),
        (other(3), "device a-3 is not available: see its status and annotation"),
        (other(4), "device a-4 is not ours, by options.models, groups or foreign"),
    ],
)
def test_what_cannot_be_attached_fails_with_words_and_without_a_job(
    tmp_path: Path, order: Order, words: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach, other(2, "n-2"))
        await server.manager.set_fault(Fault(Kind.ILL, device=PhysicalID("a-3")))
        assert await settled(server, fabric.attach, order) == Failed(f"{server.url}: {words}")
        assert len(await jobs(server)) == 1

    play(tmp_path, scene, foreign=["a-4"])


def test_a_device_that_vanishes_is_not_shown_and_its_detach_is_done(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach)
        await server.manager.set_fault(Fault(Kind.VANISH, device=ORDER.device))
        assert ORDER.device not in [one.id for one in (await fabric.inventory()).devices]
        assert await settled(server, fabric.detach) == Done(ORDER.device)

    play(tmp_path, scene)


def test_a_device_that_falls_ill_is_shown_so(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach)
        await server.manager.set_fault(Fault(Kind.ILL, device=ORDER.device))
        assert [one.healthy for one in await there(fabric)] == [False]

    play(tmp_path, scene)


# --- restarts


def test_what_a_process_had_under_way_when_it_ended_its_successor_finds(tmp_path: Path) -> None:
    async def scene(server: Server, _: Line) -> None:
        clock = server.manager.clock
        async with line(server.url, clock) as first:
            while not await jobs(server):
                await ask(first.attach, ORDER)
        async with line(server.url, clock) as second:
            assert isinstance(await settled(server, second.attach), Done)
            assert isinstance(await settled(server, second.detach), Done)
            assert attaches(server) == 1

    play(tmp_path, scene, 4.0)


def test_a_manager_that_is_killed_in_mid_job_carries_it_on(tmp_path: Path) -> None:
    async def before(server: Server, fabric: Line) -> None:
        while not await jobs(server):
            await ask(fabric.attach, ORDER)

    async def after(server: Server, fabric: Line) -> None:
        assert isinstance(await settled(server, fabric.attach), Done)
        assert [one.status for one in await jobs(server)] == [Status.COMPLETED]
        assert attaches(server) == 1

    play(tmp_path, before, 100.0, effectSeconds=1000.0)
    play(tmp_path, after, 1.0)


# --- somebody else's


def test_what_somebody_else_attached_is_shown_as_such_and_never_detached(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        (device,) = await there(fabric)
        assert (device.id, device.ours) == ("a-1", False)
        with pytest.raises(Refused, match=r"device a-1 was attached by somebody else$"):
            await settled(server, fabric.detach)
        assert isinstance(await settled(server, fabric.attach, other(2)), Done)
        assert [one.ours for one in await there(fabric)] == [False, True]

    before = (Attached(device=PhysicalID("a-1"), machine=NodeName("n-1")),)
    play(tmp_path, scene, base=msgspec.structs.replace(SMALL, attached=before))


def test_what_the_policy_names_is_detached_though_it_is_somebody_elses(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await settled(server, fabric.attach)
        async with line(server.url, server.manager.clock, foreign=["a-1"]) as careful:
            named = msgspec.structs.replace(ORDER, foreign=True)
            assert await settled(server, careful.detach, named) == Done(ORDER.device)
        assert await there(fabric) == ()

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("options", "ours"),
    [
        ({}, [True, True]),
        ({"foreign": ["a-1"]}, [False, True]),
        ({"foreign": ["GPU-1"], "serials": {"a-1": "GPU-1"}}, [False, True]),
        ({"groups": ["00000000-0000-7000-8000-000000000000"]}, [True, True]),
        ({"groups": ["another"]}, [False, False]),
        ({"models": [{"name": "a100", "type": "GPU"}]}, [True, True]),
        ({"models": [{"name": "H100"}]}, [False, False]),
    ],
)
def test_the_options_say_what_is_ours(tmp_path: Path, options: dict[str, Option], ours: list[bool]) -> None:
    async def scene(_: Server, fabric: Line) -> None:
        shown = {one.id: one.ours for one in (await fabric.inventory()).devices}
        assert [shown[PhysicalID("a-1")], shown[PhysicalID("a-2")]] == ours

    play(tmp_path, scene, 0.0, SMALL, **options)
