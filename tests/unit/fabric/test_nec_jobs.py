"""One job runs at a time for a whole fabric, orders wait their turn, and who must see to a job is told what to do."""

import asyncio
import re
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import nec
from jackfield.codec.nec import Status
from jackfield.fabric import Line
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed, Working
from jackfield.model.names import OrderID, PhysicalID, Seconds
from jackfield.ports import Retry
from unit.fabric.nec_bench import (
    ORDER,
    ask,
    attaches,
    jobs,
    other,
    play,
    posted,
    put,
    settled,
    there,
    told,
)

# --- one job at a time


def test_orders_wait_for_each_other_in_the_order_they_came_and_each_is_a_job(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        orders = [other(number, "n-1" if number % 2 else "n-2") for number in (5, 1, 4, 2, 3)]
        for order in orders:
            await ask(fabric.attach, order)
        for order in orders:
            assert isinstance(await settled(server, fabric.attach, order), Done)
        done = [one.procedures or () for one in await jobs(server)]
        assert [[step.device for step in steps] for steps in done] == [[one.device] for one in orders]

    play(tmp_path, scene, 0.5)


def test_more_orders_than_can_wait_are_turned_away_with_nothing_sent(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, verb="attach"))
        many = [msgspec.structs.replace(ORDER, id=OrderID(f"many-{number}")) for number in range(256)]
        await asyncio.gather(*(ask(fabric.attach, one) for one in many))
        with pytest.raises(Retry, match=r"256 orders wait already; nothing was sent$"):
            await fabric.attach(ORDER)

    play(tmp_path, scene, queueSeconds=3600.0, effectSeconds=3600.0)


def test_an_order_that_waits_too_long_for_another_is_not_sent(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, verb="attach"))
        assert await ask(fabric.attach, other(2)) == Working()
        assert (
            str(await told(server, fabric.attach)) == f"{server.url}: other jobs took 12 s; nothing was sent"
        )
        assert len(await jobs(server)) == 1

    play(tmp_path, scene)


def test_a_job_of_somebody_else_is_waited_for(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        theirs = await posted(server, "a-2")
        assert isinstance(await settled(server, fabric.attach), Done)
        first, second = await jobs(server)
        assert first.apply_id == theirs
        assert [one.id for one in await there(fabric, "n-2")] == ["a-2"]
        assert second.status == Status.COMPLETED

    play(tmp_path, scene, 3.0)


def test_a_job_of_somebody_else_that_does_not_end_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, device=PhysicalID("a-2")))
        theirs = await posted(server, "a-2")
        words = str(await told(server, fabric.attach))
        assert words.startswith(f"nothing was done: layout apply {theirs} is IN_PROGRESS since ")
        assert len(await jobs(server)) == 1

    play(tmp_path, scene)


# --- jobs that wait for an operator


@pytest.mark.parametrize("action", ["resume", "cancel"])
def test_a_suspended_job_is_told_with_what_to_do_and_orders_go_on_by_themselves_afterwards(
    tmp_path: Path, action: str
) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.SUSPEND, device=PhysicalID("a-2")))
        theirs = await posted(server, "a-2")
        error = await told(server, fabric.attach)
        assert f"layout apply {theirs} is SUSPENDED" in str(error)
        assert f"PUT {server.url}{nec.APPLIES}/{theirs}?action=resume" in str(error)
        assert error.after == 60.0
        assert len(await jobs(server)) == 1
        await put(server, theirs, action)
        assert isinstance(await settled(server, fabric.attach), Done)

    play(tmp_path, scene)


def test_our_own_order_that_was_suspended_is_done_once_an_operator_has_resumed_it(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.SUSPEND, verb="attach", times=1))
        error = await told(server, fabric.attach)
        (job,) = await jobs(server)
        assert f"layout apply {job.apply_id} is SUSPENDED" in str(error)
        await put(server, job.apply_id, "resume")
        assert isinstance(await settled(server, fabric.attach), Done)
        assert len(await jobs(server)) == attaches(server) == 1

    play(tmp_path, scene)


def test_a_detach_is_not_done_while_a_suspended_job_may_yet_attach_its_device(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.SUSPEND, verb="attach", times=1))
        await told(server, fabric.attach)
        assert "is SUSPENDED" in str(await told(server, fabric.detach))
        elsewhere = other(2)
        assert await settled(server, fabric.detach, elsewhere) == Done(elsewhere.device)
        (job,) = await jobs(server)
        await put(server, job.apply_id, "resume")
        assert isinstance(await settled(server, fabric.detach), Done)
        assert await there(fabric) == ()

    play(tmp_path, scene)


def test_an_attach_that_takes_too_long_is_cancelled(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        hang = await server.manager.set_fault(Fault(Kind.HANG, verb="attach", times=1))
        assert await ask(fabric.attach, ORDER) == Working()
        while [one.status for one in await jobs(server)] != [Status.CANCELING]:
            await server.manager.clock.sleep(Seconds(1.0))
        await server.manager.clear_fault(hang.id)
        assert isinstance(await settled(server, fabric.attach), Done)
        (job,) = await jobs(server)
        assert (job.status, job.execute_rollback) == (Status.COMPLETED, True)

    play(tmp_path, scene)


def test_a_job_that_does_not_even_end_when_cancelled_is_told(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, verb="attach"))
        words = str(await told(server, fabric.attach))
        assert re.search(r"layout apply \w+ has not ended within 8 s, nor after it was cancelled;", words)

    play(tmp_path, scene)


def test_a_job_that_somebody_deleted_is_not_waited_for(tmp_path: Path) -> None:
    async def scene(server: Server, fabric: Line) -> None:
        await server.manager.set_fault(Fault(Kind.HANG, verb="attach"))
        while not await jobs(server):
            await ask(fabric.attach, ORDER)
        await server.manager.set_fault(Fault(Kind.STATUS, verb="jobs", status=404))
        answer = await settled(server, fabric.attach)
        assert isinstance(answer, Failed)
        assert answer.reason.endswith(" is DELETED")

    play(tmp_path, scene, 2.0)
