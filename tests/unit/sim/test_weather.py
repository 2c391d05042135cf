"""Bad weather between a program and the API: what is lost, what is done all the same, and who dies of it."""

import asyncio
import random
from collections.abc import Callable, Coroutine

import pytest

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import LONG_AGO, Seconds, named
from jackfield.model.node import Node
from jackfield.ports import EVERYTHING, Changed, Conflict, Gone, Retry, Rewound, Selection, Synced
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import VirtualClock, running
from jackfield.sim.loop import Process
from jackfield.sim.weather import LAGS, TIMEOUT, Fuse, Mishap, RoughClient, Spell, Weather


class Site:
    """A cluster, and a program out of doors."""

    def __init__(self) -> None:
        self.clock: VirtualClock = running()
        self.cluster = EmbeddedCluster(Store(self.clock.now, random.Random("names")))  # noqa: S311 - a test's chance
        client = self.cluster.client("program", RoughClient)
        assert isinstance(client, RoughClient)
        self.client = client
        self.weather = client.weather = Weather(self.clock, Chance(1))

    def storm(self, mishap: Mishap) -> None:
        self.weather.spells = (Spell(mishap, 1.0, Seconds(self.clock.now() + 1.0)),)

    async def there(self) -> bool:
        try:
            await self.cluster.read(Node, named("n"))
        except Gone:
            return False
        return True


def play(scene: Callable[[Site], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await scene(Site())

    loop.run(main())


NODE = Node(metadata=ObjectMeta(name="n"))
LINES = [
    ("", EVERYTHING, False),
    ("Node", EVERYTHING, False),
    ("Pod", EVERYTHING, True),
    ("Node", Selection(namespace="default"), True),
    ("", Selection(namespace="default"), False),
]
MISHAPS = [
    (Mishap.CONFLICT, Conflict, False),
    (Mishap.BUSY, Retry, False),
    (Mishap.ERROR, Retry, False),
    (Mishap.BEFORE, Retry, False),
    (Mishap.AFTER, Retry, True),
    (Mishap.LATE, Retry, False),
]


@pytest.mark.parametrize(("mishap", "error", "done"), MISHAPS)
def test_a_call_that_came_to_grief_was_done_or_not(
    mishap: Mishap, error: type[Exception], *, done: bool
) -> None:
    async def scene(site: Site) -> None:
        site.storm(mishap)
        with pytest.raises(error):
            await site.client.create(NODE)
        assert await site.there() is done

    play(scene)


def test_a_slow_call_is_done_and_answered() -> None:
    async def scene(site: Site) -> None:
        site.storm(Mishap.SLOW)
        began = site.clock.now()
        assert await site.client.create(NODE) == await site.cluster.read(Node, named("n"))
        assert 0.0 < site.clock.now() - began < TIMEOUT

    play(scene)


def test_a_late_call_is_done_though_its_program_is_dead() -> None:
    async def scene(site: Site) -> None:
        site.storm(Mishap.LATE)
        with pytest.raises(Retry):
            await site.client.create(NODE)
        site.client.kill()
        await site.clock.sleep(Seconds(10 * TIMEOUT))
        assert await site.there()

    play(scene)


@pytest.mark.parametrize("effect", [False, True])
def test_a_program_dies_at_the_call_that_was_meant_with_or_without_its_effect(*, effect: bool) -> None:
    burnt: list[float] = []

    async def scene(site: Site) -> None:
        site.weather.fuse = Fuse(1, effect=effect, burn=lambda: burnt.append(site.clock.now()))
        with pytest.raises(Gone):
            await site.client.read(Node, named("n"))
        with pytest.raises(asyncio.CancelledError):
            await site.client.create(NODE)
        assert await site.there() is effect
        assert len(burnt) == 1

    play(scene)


def test_a_watch_that_breaks_lists_anew_and_events_come_when_it_hears_again() -> None:
    async def scene(site: Site) -> None:
        told: list[object] = []

        async def watch() -> None:
            async for change in site.client.watch(Node):
                told.append(change)  # noqa: PERF401 - it never ends

        task = asyncio.get_running_loop().create_task(watch())
        await site.clock.sleep(Seconds(1.0))
        site.weather.deafen("", Seconds(site.clock.now() + 50.0))
        site.client.drop_watches()
        await site.cluster.create(NODE)
        await site.clock.sleep(Seconds(20.0))
        assert [type(one) for one in told] == [Synced]
        await site.clock.sleep(Seconds(40.0))
        assert [type(one) for one in told] == [Synced, Changed, Synced]
        task.cancel()

    play(scene)


@pytest.mark.parametrize(("kind", "selection", "hears"), LINES)
def test_who_does_not_hear_of_a_kind_hears_of_others_and_of_what_it_asks_for(
    kind: str, selection: Selection, *, hears: bool
) -> None:
    async def scene(site: Site) -> None:
        site.weather.deafen(kind, Seconds(site.clock.now() + 50.0))
        assert site.weather.deaf_until == site.clock.now() + 50.0
        assert (site.weather.hears_at(Node, selection) <= site.clock.now()) is hears
        site.weather.clear()
        assert site.weather.hears_at(Node, selection) == LONG_AGO

    play(scene)


def test_a_program_that_comes_back_may_be_shown_what_was_and_then_what_is() -> None:
    async def scene(site: Site) -> None:
        told: list[object] = []

        async def watch() -> None:
            async for change in site.client.watch(Node):
                told.append(change)  # noqa: PERF401 - it never ends

        await site.cluster.create(NODE)
        site.weather.stale = 5
        while not site.weather.deaf:  # a list may be old or new
            told.clear()
            task = asyncio.get_running_loop().create_task(watch())
            await site.clock.sleep(Seconds(1.0))
            task.cancel()
        assert [type(one) for one in told] == [Synced]
        task = asyncio.get_running_loop().create_task(watch())
        await site.clock.sleep(Seconds(max(LAGS) * 3))
        assert [type(one) for one in told][-2:] == [Changed, Synced]
        task.cancel()

    play(scene)


def test_a_process_that_stands_still_goes_on_where_it_stood() -> None:
    heard: list[float] = []

    async def main() -> None:
        clock, process = running(), Process("p")

        async def beat() -> None:
            while True:
                await clock.sleep(Seconds(10.0))
                heard.append(clock.now() - loop.START)

        task = asyncio.get_running_loop().create_task(beat(), context=process.context())
        await clock.sleep(Seconds(15.0))
        process.stop()
        assert process.stopped
        await clock.sleep(Seconds(60.0))
        process.go_on()
        await clock.sleep(Seconds(12.0))
        task.cancel()

    loop.run(main())
    assert heard == [10.0, 75.0, 85.0]


# --- a backup that is restored


def test_who_watches_notices_that_a_backup_was_restored() -> None:
    async def scene(site: Site) -> None:
        backup = site.cluster.store.backup()
        watch, plain = site.client.watch(Node), site.cluster.watch(Node)
        await site.cluster.create(NODE)
        assert [type(await anext(one)) for one in (watch, watch, plain, plain)] == [Changed, Synced] * 2
        assert site.client.age == 0
        site.cluster.store.restore(backup)
        with pytest.raises(Rewound):
            await anext(watch)
        assert site.client.age == 1
        assert await anext(plain) == Synced(Node, frozenset())
        assert await anext(site.client.watch(Node)) == Synced(Node, frozenset())

    play(scene)


@pytest.mark.parametrize("mishap", [None, Mishap.SLOW, Mishap.LATE])
def test_a_call_that_is_under_way_when_a_backup_is_restored_has_no_effect(mishap: Mishap | None) -> None:
    async def scene(site: Site) -> None:
        backup = site.cluster.store.backup()
        site.weather.latency = Fixed(Seconds(1.0))
        if mishap is not None:
            site.weather.latency = Fixed(Seconds(0.0))
            site.storm(mishap)
        call = asyncio.get_running_loop().create_task(site.client.create(NODE))
        await site.clock.sleep(Seconds(0.01))
        site.cluster.store.restore(backup)
        with pytest.raises(Retry):
            await call
        await site.clock.sleep(Seconds(60.0))
        assert not await site.there()

    play(scene)
