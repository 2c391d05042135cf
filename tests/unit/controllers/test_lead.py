"""Leases on virtual time: who leads when, and that two never lead the same."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TypeVar

import pytest

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store as ApiStore
from jackfield.controllers.lead import (
    INSTANCE,
    REPLICAS,
    SKEW_SECONDS,
    Alone,
    Identity,
    Leases,
)
from jackfield.core import lead
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import NEVER, FabricName, Key, Seconds, Version, rfc3339_micro
from jackfield.ports import EVERYTHING, Apply, Change, Merge, Refused, Retry, Selection, Synced
from jackfield.sim import loop
from jackfield.sim.clock import running

T = TypeVar("T", bound=Object)

LEASE = Seconds(10.0)
THIRD = LEASE / 3
FABRICS = tuple(FabricName(f"rack-{number}") for number in range(6))
EVERY = frozenset(FABRICS)
TICK = 0.05
"""How often it is looked whether two lead the same."""


class Wire:
    """A replica's line to the API server, on which calls may fail, stand still, or go wrong after all was done."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._moving = asyncio.Event()
        self._moving.set()
        self.away = False
        self.refusing = False
        self.answers_lost = 0
        self.deaf = False
        """Whether the watch tells nothing new, while calls are answered."""
        self.writes = 0

    def stop(self) -> None:
        """Let nothing through in either direction, as if the process were stopped."""
        self._moving.clear()

    def go_on(self) -> None:
        self._moving.set()

    async def _pass(self) -> None:
        await self._moving.wait()
        if self.away:
            raise Retry("nobody answers")
        if self.refusing:
            raise Refused("you may not")

    async def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncIterator[Change]:
        await self._pass()
        synced = False
        async for change in self._cluster.watch(kind, selection):
            await self._moving.wait()
            if not (self.deaf and synced):
                yield change
            synced = synced or isinstance(change, Synced)

    async def read(self, kind: type[T], key: Key) -> T:
        await self._pass()
        return await self._answered(await self._cluster.read(kind, key))

    async def create(self, new: T) -> T:
        await self._pass()
        return await self._answered(await self._cluster.create(new))

    async def write(self, patch: Merge | Apply) -> Object:
        await self._pass()
        self.writes += 1
        written = await self._cluster.write(patch)
        if self.answers_lost:
            self.answers_lost -= 1
            raise Retry("the answer was lost")
        return await self._answered(written)

    async def delete(self, kind: type[Object], key: Key, version: Version) -> None:
        await self._pass()
        await self._cluster.delete(kind, key, version)

    async def _answered(self, answer: T) -> T:
        await self._moving.wait()
        return answer


class Process:
    """One process that keeps a lease, and what it heard."""

    def __init__(self, stage: "Stage", name: str) -> None:
        stage.born += 1
        self.name = name
        self.wire = Wire(stage.cluster)
        self.leases = Leases(self.wire, running(), Identity(name, f"process {stage.born}"), LEASE)
        self.told = 0
        self._task = asyncio.get_running_loop().create_task(self.leases.run(self._tell))

    def _tell(self) -> None:
        self.told += 1

    @property
    def led(self) -> frozenset[FabricName]:
        return frozenset(one for one in FABRICS if self.leases.leads(one))

    async def kill(self) -> None:
        """End it as SIGKILL would: nothing is given back."""
        self.wire.stop()
        await self._end()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        await self._end()
        await self.leases.release()

    async def _end(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def error(self) -> str:
        """What it ended with, which it must have done by itself."""
        assert self._task.done(), f"{self.name} still runs"
        group = self._task.exception()
        assert isinstance(group, ExceptionGroup)
        assert [type(one) for one in group.exceptions] == [Refused]
        return str(group.exceptions[0])


class Stage:
    """A cluster with replicas. Whatever happens, no two lead the same."""

    def __init__(self) -> None:
        self.clock = running()
        self.cluster = EmbeddedCluster(ApiStore(self.clock.now, random.Random("names")))  # noqa: S311 - a test's chance
        self.born = 0
        self.processes: list[Process] = []
        self._watch = asyncio.get_running_loop().create_task(self._look_out())

    def start(self, name: str) -> Process:
        started = Process(self, name)
        self.processes.append(started)
        return started

    async def wait(self, duration: float) -> None:
        await self.clock.sleep(Seconds(duration))
        if self._watch.done():
            self._watch.result()

    async def _look_out(self) -> None:
        while True:
            for fabric in FABRICS:
                leaders = [one.name for one in self.processes if one.leases.leads(fabric)]
                assert len(leaders) <= 1, f"{fabric} is led by {leaders}"
            await self.clock.sleep(Seconds(TICK))

    async def until(self, condition: Callable[[], bool], seconds_max: float = 60.0) -> float:
        """Wait until something holds; return how long that took."""
        began = self.clock.now()
        while not condition():
            assert self.clock.now() - began < seconds_max, "not in time"
            await self.wait(TICK)
        return self.clock.now() - began

    async def lease(self, name: str) -> Lease:
        return await self.cluster.read(Lease, Key(REPLICAS, name))

    async def names(self) -> list[str]:
        found = []
        async for change in self.cluster.watch(Lease):
            if isinstance(change, Synced):
                found = sorted(key.name for key in change.keys)
                break
        return found

    async def left_behind(self, name: str, ago: float, duration: int = 10) -> None:
        """Put a lease there that somebody renewed last so long ago."""
        at = rfc3339_micro(Seconds(self.clock.now() - ago))
        meta = ObjectMeta(name=name, namespace=REPLICAS, annotations={INSTANCE: "long ago"})
        await self.cluster.create(Lease(metadata=meta, spec=LeaseSpec(name, duration, at, at)))

    async def two(self) -> tuple[Process, Process]:
        """Start two, and wait until each has its share."""
        one, two = self.start("one"), self.start("two")
        await self.until(lambda: one.led == share("one", "two") and two.led == share("two", "one"))
        return one, two


def share(name: str, *others: str) -> frozenset[FabricName]:
    names = tuple(sorted((name, *others)))
    return frozenset(one for one in FABRICS if lead.leader(one, names) == name)


def play(scene: Callable[[Stage], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await scene(Stage())

    loop.run(main())


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


def test_a_lease_long_dead_is_swept_and_nobody_waits_for_it() -> None:
    async def scene(stage: Stage) -> None:
        await stage.left_behind("old", ago=LEASE + SKEW_SECONDS + 1.0)
        await stage.left_behind("recent", ago=LEASE + SKEW_SECONDS - 3.0)
        two = stage.start("two")
        await stage.wait(1.0)
        assert not two.led, "recent may live by another clock"
        assert await stage.names() == ["old", "recent", "two"]
        await stage.until(lambda: two.led == EVERY)
        await stage.wait(4.0)
        assert await stage.names() == ["two"]
        one = stage.start("one")
        await stage.left_behind("old", ago=3600.0)
        await stage.until(lambda: bool(one.led))
        assert await stage.names() == ["one", "two"]

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


# --- one name


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


def test_a_lease_that_a_restored_backup_shows_is_outlived() -> None:
    async def scene(stage: Stage) -> None:
        one = stage.start("one")
        await stage.wait(1.0)
        body = {"metadata": {"annotations": {INSTANCE: "before"}}}
        await stage.cluster.write(Merge(Lease, Key(REPLICAS, "one"), Version(""), body))
        await stage.wait(0.1)
        assert not one.led
        assert await stage.until(lambda: one.led == EVERY) == pytest.approx(LEASE - 0.1, abs=0.1)

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
