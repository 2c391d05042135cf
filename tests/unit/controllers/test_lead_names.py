"""Leases and names: a process that is started again by its name goes on where the one before it was, and no further."""

import pytest

from jackfield.controllers.lead import REPLICAS
from jackfield.model.lease import Lease
from jackfield.model.names import Key, Version
from unit.controllers.replicas import EVERY, LEASE, THIRD, Stage, play, share


def test_one_that_is_started_again_by_the_same_name_leads_at_once() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        await one.kill()
        await stage.wait(1.0)
        again = stage.start("one")
        await stage.wait(0.1)
        assert again.led == share("one", "two")
        assert two.led == share("two", "one")

    play(scene)


@pytest.mark.parametrize("later", [6.0, 7.0, 9.0, 10.5])
def test_one_that_comes_back_when_its_lease_may_have_run_out_waits(later: float) -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        await stage.until(lambda: one.leases.left() > LEASE - 0.1)
        await one.kill()
        await stage.wait(later)
        again = stage.start("one")
        await stage.wait(0.1)
        assert bool(again.led) == (later < LEASE - THIRD)
        await stage.until(lambda: again.led | two.led == EVERY)

    play(scene)


@pytest.mark.parametrize("later", [0.01, 1.0, 5.0, 9.0])
def test_one_that_is_started_again_while_its_name_waits_to_lead_waits_too(later: float) -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.stop()
        await stage.until(lambda: two.led == EVERY)
        two.wire.deaf = True
        one.wire.go_on()
        await stage.wait(later)
        await one.kill()
        again = stage.start("one")
        await stage.wait(0.1)
        assert not again.led
        await stage.until(lambda: again.led == share("one", "two") and two.led == share("two", "one"))

    play(scene)


def test_a_renewal_that_came_too_late_does_not_let_the_next_of_its_name_lead() -> None:
    async def scene(stage: Stage) -> None:
        one = await stage.one_renews_too_late()
        one.wire.go_on()
        await stage.wait(0.01)
        await one.kill()
        again = stage.start("one")
        await stage.wait(0.1)
        assert not again.led
        await stage.until(lambda: again.led == share("one", "two"))

    play(scene)


def test_a_lease_says_that_it_has_been_acquired_when_one_may_lead() -> None:
    async def scene(stage: Stage) -> None:
        stage.start("one")
        two = stage.start("two")
        await stage.wait(LEASE - 1.0)
        assert not (await stage.lease("two")).spec.acquire_time
        await stage.until(lambda: bool(two.led))
        await stage.wait(0.2)
        began = (await stage.lease("two")).spec.acquire_time
        assert began
        await stage.wait(3 * LEASE)
        assert (await stage.lease("two")).spec.acquire_time == began

    play(scene)


def test_of_two_processes_of_one_name_the_first_ends_and_says_why() -> None:
    async def scene(stage: Stage) -> None:
        first = stage.start("one")
        await stage.wait(1.0)
        stage.processes.clear()  # for the moment until the first hears of it both lead
        second = stage.start("one")
        await stage.wait(0.05)
        assert not first.led
        assert second.led == EVERY
        await stage.wait(LEASE)
        assert await first.error() == (
            "another process runs as replica 'one'; give each a name of its own (--identity)"
        )
        assert second.led == EVERY

    play(scene)


@pytest.mark.parametrize("others", [(), ("two",)])
def test_a_lease_that_somebody_deleted_is_made_anew(others: tuple[str, ...]) -> None:
    async def scene(stage: Stage) -> None:
        one = (await stage.two())[0] if others else stage.start("one")
        await stage.wait(1.0)
        stage.processes = [] if others else [one]  # two is told at the same moment, and may be first
        await stage.cluster.delete(Lease, Key(REPLICAS, "one"), Version(""))
        await stage.wait(0.02)
        assert not one.led
        took = await stage.until(lambda: one.led == share("one", *others))
        assert took == pytest.approx(1.0 + (LEASE if others else 0.0), abs=0.1)

    play(scene)
