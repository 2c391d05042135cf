"""Leases on virtual time: who leads when, and that two never lead the same."""

import pytest

from jackfield.controllers.lead import INSTANCE, REPLICAS, SKEW_SECONDS, Alone
from jackfield.model.lease import Lease
from jackfield.model.names import NEVER, Key, Seconds, Version
from unit.controllers.replicas import EVERY, FABRICS, LEASE, THIRD, Stage, play, share

# --- coming


def test_the_only_replica_there_is_needs_no_lease() -> None:
    alone = Alone()
    alone.need(Seconds(1000.0))
    assert alone.leads(FABRICS[0])
    assert alone.left() == NEVER


def test_whoever_is_alone_leads_at_once() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(0.001)
        assert one.led == EVERY
        assert one.told == 1
        lease = await stage.lease("one")
        assert lease.spec.holder_identity == "one"
        assert float(lease.spec.lease_duration_seconds) == LEASE
        assert lease.metadata.annotations == {INSTANCE: "process 1"}

    play(scene)


def test_a_lease_is_renewed_three_times_before_it_would_run_out_and_nobody_is_told() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(101.0)
        assert one.wire.writes == 101 // THIRD
        assert one.leases.left() > LEASE - THIRD - 0.1
        assert one.told == 1

    play(scene)


def test_a_joiner_waits_for_one_lease_and_the_others_give_way_at_once() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        two = stage.start("two")
        await stage.wait(0.1)
        assert one.led == share("one", "two")
        assert not two.led
        assert await stage.until(lambda: bool(two.led)) == pytest.approx(LEASE - 0.1, abs=0.1)
        assert two.led == share("two", "one")
        assert two.told == 1
        assert one.told == 2

    play(scene)


def test_a_joiner_waits_for_the_longest_lease_there_is() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.leases.need(Seconds(30.0))
        await stage.wait(1.0)
        two = stage.start("two")
        assert await stage.until(lambda: bool(two.led)) == pytest.approx(LEASE + 30.0, abs=0.1)

    play(scene)


def test_two_that_start_together_share_after_one_lease() -> None:
    async def scene(stage: Stage) -> None:
        one, two = stage.start("one"), stage.start("two")
        took = await stage.until(lambda: bool(one.led) and bool(two.led))
        assert took <= LEASE + 0.1
        assert one.led | two.led == EVERY

    play(scene)


def test_a_joiner_is_known_to_all_even_if_their_watches_tell_nothing() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.wire.deaf = True
        two = stage.start("two")
        await stage.until(lambda: bool(two.led))
        assert one.led == share("one", "two")

    play(scene)


# --- going


def test_what_a_dead_one_led_moves_when_its_lease_has_run_out_and_nothing_else_does() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        three = stage.start("three")
        await stage.until(lambda: bool(three.led))
        before = two.led
        await one.kill()
        took = await stage.until(lambda: two.led | three.led == EVERY)
        assert LEASE - THIRD <= took <= LEASE + 0.1
        assert before < two.led
        assert two.led == share("two", "three")

    play(scene)


def test_what_one_led_that_was_told_to_end_moves_at_once() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        await one.end()
        assert not one.led
        await stage.wait(0.05)
        assert two.led == EVERY
        assert await stage.names() == ["two"]

    play(scene)


def test_one_that_is_told_to_end_while_nobody_answers_just_ends() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.wire.away = True
        await one.end()
        assert not one.led
        assert await stage.names() == ["one"]

    play(scene)


def test_nobody_is_taken_for_dead_because_a_watch_tells_nothing() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.deaf = two.wire.deaf = True
        await stage.wait(60.0)
        assert one.led == share("one", "two")
        assert two.led == share("two", "one")

    play(scene)


def test_one_whose_watches_hang_gives_up_what_it_cannot_lead_and_comes_back_as_a_joiner() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.hangs = True
        took = await stage.until(lambda: two.led == EVERY)
        assert LEASE - THIRD <= took <= LEASE + 2 * THIRD + 0.2
        assert not one.led
        one.wire.hangs = False
        assert await stage.until(lambda: bool(one.led)) >= LEASE - 0.1
        assert one.led | two.led == EVERY

    play(scene)


def test_one_whose_watches_hang_for_a_moment_loses_nothing() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        before, told = one.led, two.told
        one.wire.hangs = True
        await stage.wait(THIRD)
        one.wire.hangs = False
        await stage.wait(2 * LEASE)
        assert one.led == before
        assert two.told == told

    play(scene)


def test_a_lease_long_dead_is_swept_once_it_has_been_waited_for() -> None:
    async def scene(stage: Stage) -> None:
        await stage.left_behind("old", ago=LEASE + SKEW_SECONDS + 1.0)
        await stage.left_behind("recent", ago=LEASE + SKEW_SECONDS - 3.0)
        two = stage.start("two")
        await stage.wait(LEASE - 0.1)
        assert not two.led, "recent may live by another clock, and old where a backup was restored"
        assert await stage.names() == ["old", "recent", "two"]
        await stage.until(lambda: two.led == EVERY)
        await stage.wait(4.0)
        assert await stage.names() == ["two"]
        one = stage.start("one")
        await stage.left_behind("old", ago=3600.0)
        await stage.until(lambda: bool(one.led))
        await stage.wait(4.0)
        assert await stage.names() == ["one", "two"]

    play(scene)


def test_those_that_run_other_parts_lead_beside_us_and_take_nothing() -> None:
    async def scene(stage: Stage) -> None:
        publisher, operator = stage.start("one", "publisher"), stage.start("two", "operator")
        await stage.wait(1.0)
        assert publisher.led == operator.led == EVERY
        rival = stage.start("three", "operator")
        await stage.until(lambda: rival.led == share("three", "two"))
        assert publisher.led == EVERY
        assert operator.led == share("two", "three")

    play(scene)


# --- coming back


def test_one_that_was_stopped_past_its_lease_leads_only_after_another_lease() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.stop()
        await stage.until(lambda: two.led == EVERY)
        assert not one.led
        await stage.wait(30.0)
        one.wire.go_on()
        took = await stage.until(lambda: bool(one.led))
        assert LEASE <= took <= LEASE + THIRD + 1.0
        assert one.led == share("one", "two")
        assert two.led == share("two", "one")

    play(scene)


@pytest.mark.parametrize("stopped", [number * 0.9 for number in range(16)])
def test_no_two_lead_the_same_however_long_one_is_stopped(stopped: float) -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        await stage.wait(stopped / 7)
        one.wire.stop()
        await stage.wait(stopped)
        one.wire.go_on()
        await stage.until(lambda: one.led == share("one", "two") and two.led == share("two", "one"))

    play(scene)


def test_an_api_server_away_for_longer_than_a_lease_costs_all_another_lease() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.away = two.wire.away = True
        await stage.wait(LEASE + 1.0)
        assert not one.led
        assert not two.led
        assert one.leases.left() == 0.0
        one.wire.away = two.wire.away = False
        took = await stage.until(lambda: bool(one.led) and bool(two.led))
        assert LEASE - 0.1 <= took <= LEASE + 2.0

    play(scene)


def test_an_api_server_away_for_less_than_that_costs_nothing() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        told = one.told
        one.wire.away = two.wire.away = True
        await stage.wait(LEASE - THIRD - 1.5)
        one.wire.away = two.wire.away = False
        await stage.wait(LEASE)
        assert one.led | two.led == EVERY
        assert one.told == told

    play(scene)


def test_whoever_is_alone_leads_as_soon_as_the_api_server_is_back() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.wire.away = True
        await stage.until(lambda: not one.led)
        await stage.wait(30.0)
        one.wire.away = False
        assert await stage.until(lambda: one.led == EVERY) <= 1.1

    play(scene)


@pytest.mark.parametrize("refused", ["refusing", "away"])
def test_one_that_starts_while_nobody_answers_leads_later(refused: str) -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        setattr(one.wire, refused, True)
        await stage.wait(0.1)
        if refused == "refusing":
            assert await one.error() == "you may not"
            return
        assert not one.led
        one.wire.away = False
        assert await stage.until(lambda: one.led == EVERY) <= 1.1

    play(scene)


def test_a_server_that_refuses_for_a_while_ends_nobody() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.wire.refusing = True
        await stage.wait(LEASE)
        assert not one.led
        one.wire.refusing = False
        await stage.wait(1.1)
        assert one.led == EVERY

    play(scene)


def test_an_answer_that_was_lost_costs_nothing() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.wire.answers_lost = 1
        await stage.wait(LEASE)
        assert one.led == EVERY
        assert one.told == 1

    play(scene)


# --- what must not be: the moments at which two could lead the same


def test_a_renewal_that_was_under_way_when_the_lease_ran_out_comes_too_late() -> None:
    async def scene(stage: Stage) -> None:
        one = await stage.one_renews_too_late()
        await stage.wait(0.5)
        one.wire.go_on()
        await stage.wait(0.01)
        assert not one.led
        await stage.until(lambda: bool(one.led))

    play(scene)


def test_a_lease_counts_from_before_it_was_renewed_however_late_the_answer_comes() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.answers_late = 3.0
        writes = one.wire.writes
        await stage.until(lambda: one.wire.writes == writes + 1)
        await stage.wait(3.1)
        one.wire.away = True
        assert LEASE - 3.3 < one.leases.left() < LEASE - 3.0
        await stage.until(lambda: two.led == EVERY)

    play(scene)


def test_one_whose_lease_is_missing_is_not_taken_for_dead_before_it_would_have_run_out() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        one.wire.deaf = two.wire.deaf = True
        await stage.cluster.delete(Lease, Key(REPLICAS, "one"), Version(""))
        two.leases.need(Seconds(1.0))  # has it look now, before one finds out
        await stage.wait(0.5)
        assert one.led == share("one", "two")
        await stage.until(lambda: one.led == share("one", "two") and two.led == share("two", "one"))

    play(scene)


def test_old_news_of_an_end_does_not_touch_one_that_is_back() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        two.wire.lag = LEASE + 1.0
        await one.end()
        again = stage.start("one")
        await stage.until(lambda: again.led == share("one", "two"))
        await stage.wait(60.0)
        assert again.led == share("one", "two")

    play(scene)


# --- a longer lease


def test_a_longer_lease_is_had_soon_and_whoever_takes_over_waits_for_it() -> None:
    async def scene(stage: Stage) -> None:
        one, two = await stage.two()
        assert one.leases.left() <= LEASE
        one.leases.need(Seconds(30.0))
        one.leases.need(Seconds(20.0))
        await stage.wait(0.001)
        assert one.leases.left() == pytest.approx(LEASE + 30.0, abs=0.01)
        assert (await stage.lease("one")).spec.lease_duration_seconds == LEASE + 30
        for _ in range(20):
            await stage.wait(0.7)
            assert one.leases.left() > 30.0
        one.wire.stop()
        took = await stage.until(lambda: two.led == EVERY)
        assert LEASE + 30.0 - THIRD <= took <= LEASE + 30.1

    play(scene)


def test_a_lease_counts_whole_seconds_and_never_fewer_than_meant() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        one.leases.need(Seconds(2.5))
        await stage.wait(0.001)
        assert (await stage.lease("one")).spec.lease_duration_seconds == 13

    play(scene)
