"""An Event says something once and counts how often it was said again."""

import asyncio
from collections.abc import Callable, Coroutine

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.controllers import events
from jackfield.model.claim import ResourceClaim
from jackfield.model.event import Event
from jackfield.model.names import Key, Seconds
from jackfield.ports import Changed, Synced
from jackfield.sim import loop
from jackfield.sim.chance import Chance
from jackfield.sim.clock import VirtualClock, running
from jackfield.testing import builders as b

Play = Callable[[EmbeddedCluster, VirtualClock], Coroutine[None, None, None]]
ABOUT = b.claim("a", uid="u-1")


def play(scene: Play) -> None:
    async def main() -> None:
        clock = running()
        await scene(EmbeddedCluster(Store(clock.now, Chance(1).generator)), clock)

    loop.run(main())


async def said(cluster: EmbeddedCluster) -> list[Event]:
    found: list[Event] = []
    async for change in cluster.watch(Event):
        if isinstance(change, Synced):
            return found
        if isinstance(change, Changed) and isinstance(change.object, Event):
            found.append(change.object)
    raise asyncio.CancelledError


def test_the_same_words_are_one_event_that_counts() -> None:
    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        for _ in range(3):
            await events.tell(
                cluster, clock, ABOUT, Event(type="Warning", reason="NoRoom", message="n1 is full")
            )
            await clock.sleep(Seconds(60.0))
        (event,) = await said(cluster)
        assert (event.count, event.type, event.reason, event.message) == (
            3,
            "Warning",
            "NoRoom",
            "n1 is full",
        )
        assert event.first_timestamp < event.last_timestamp
        assert (event.involved_object.kind, event.involved_object.uid) == ("ResourceClaim", ABOUT.uid)
        assert event.source.component == "jackfield"

    play(scene)


def test_other_words_and_other_objects_are_other_events() -> None:
    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        for about in (ABOUT, b.claim("a", uid="u-2")):
            for message in ("one", "two"):
                await events.tell(cluster, clock, about, Event(reason="R", message=message))
        assert len(await said(cluster)) == 4

    play(scene)


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    async def scene(cluster: EmbeddedCluster, clock: VirtualClock) -> None:
        nameless = ResourceClaim()
        await events.tell(cluster, clock, nameless, Event(reason="", message="x" * 100_000))
        assert await said(cluster) == []
        assert Key("", "") == nameless.key

    play(scene)
