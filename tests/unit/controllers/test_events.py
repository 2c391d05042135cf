"""An Event says something once and counts how often it was said again; nobody waits for it."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from jackfield.cluster.api import Client, EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.controllers.events import QUIET_SECONDS, UNSAID_MAX, Teller
from jackfield.model.claim import ResourceClaim
from jackfield.model.event import Event
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Seconds, Version
from jackfield.model.node import Node
from jackfield.ports import Changed, Refused, Synced
from jackfield.sim import loop
from jackfield.sim.chance import Chance
from jackfield.sim.clock import VirtualClock, running
from jackfield.testing import builders as b
from unit.kube.test_permissions import T, Watched

ABOUT = b.claim("a", uid="u-1")
WORDS = Event(type="Warning", reason="NoRoom", message="n1 is full")


class Stage:
    """A cluster, a clock, and one who tells."""

    def __init__(self) -> None:
        self.clock: VirtualClock = running()
        self.cluster = EmbeddedCluster(Store(self.clock.now, Chance(1).generator))
        self.client: Client = self.cluster.client("jackfield")
        self.teller = Teller(self.client, self.clock)

    async def wait(self, seconds: float = 0.001) -> None:
        await self.clock.sleep(Seconds(seconds))

    async def said(self) -> list[Event]:
        found: list[Event] = []
        async for change in self.cluster.watch(Event):
            if isinstance(change, Synced):
                return found
            if isinstance(change, Changed) and isinstance(change.object, Event):
                found.append(change.object)
        raise asyncio.CancelledError


def play(scene: Callable[[Stage], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        stage = Stage()
        running_task = asyncio.get_running_loop().create_task(stage.teller.run())
        try:
            await scene(stage)
        finally:
            running_task.cancel()

    loop.run(main())


def test_the_same_words_are_one_event_that_counts() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(3):
            stage.teller.tell(ABOUT, WORDS)
            await stage.wait(60)
        (event,) = await stage.said()
        assert (event.count, event.type, event.reason, event.message) == (
            3,
            "Warning",
            "NoRoom",
            "n1 is full",
        )
        assert event.first_timestamp < event.last_timestamp
        assert (event.involved_object.kind, event.involved_object.uid) == ("ResourceClaim", ABOUT.uid)
        assert event.source.component == "jackfield"
        assert stage.client.writes == 3
        assert stage.client.calls["get", "Event"] == 0

    play(scene)


def test_the_same_words_again_and_again_cost_one_write_in_ten_seconds() -> None:
    async def scene(stage: Stage) -> None:
        stage.teller.tell(ABOUT, WORDS)
        await stage.wait()
        assert [one.count for one in await stage.said()] == [1]
        for _ in range(100):
            stage.teller.tell(ABOUT, WORDS)
            await stage.wait(0.05)
        assert stage.client.writes == 1
        await stage.wait(QUIET_SECONDS)
        assert stage.client.writes == 2
        assert [one.count for one in await stage.said()] == [101]

    play(scene)


def test_other_words_and_other_objects_are_other_events() -> None:
    async def scene(stage: Stage) -> None:
        for about in (ABOUT, b.claim("a", uid="u-2")):
            for message in ("one", "two"):
                stage.teller.tell(about, Event(reason="R", message=message))
        await stage.wait()
        assert len(await stage.said()) == 4

    play(scene)


def test_what_an_earlier_life_said_is_counted_on() -> None:
    async def scene(stage: Stage) -> None:
        stage.teller.tell(ABOUT, WORDS)
        await stage.wait()
        later = Teller(stage.client, stage.clock)
        task = asyncio.get_running_loop().create_task(later.run())
        for _ in range(2):
            later.tell(ABOUT, WORDS)
            await stage.wait(QUIET_SECONDS + 1)
        task.cancel()
        assert [one.count for one in await stage.said()] == [3]
        assert stage.client.calls["get", "Event"] == 1

    play(scene)


def test_what_the_server_forgot_is_said_anew() -> None:
    async def scene(stage: Stage) -> None:
        stage.teller.tell(ABOUT, WORDS)
        await stage.wait()
        (event,) = await stage.said()
        await stage.cluster.delete(Event, event.key, Version(""))
        for _ in range(2):
            stage.teller.tell(ABOUT, WORDS)
            await stage.wait(QUIET_SECONDS + 1)
        assert [one.count for one in await stage.said()] == [2]

    play(scene)


@pytest.mark.parametrize(
    ("about", "place"),
    [
        (ABOUT, "default"),
        (ResourceClaim(metadata=ObjectMeta(name="x" * 253, namespace="n")), "n"),
        (ResourceClaim(metadata=ObjectMeta(name="x" * 239 + "." + "y" * 13, namespace="n")), "n"),
        (ResourceClaim(metadata=ObjectMeta(name="x" * 239 + "-" + "y" * 13, namespace="n")), "n"),
        (Node(metadata=ObjectMeta(name="n1")), "default"),
    ],
)
def test_every_object_gets_an_event_whatever_its_name(about: Object, place: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.teller.tell(about, Event(reason="R", message="x" * 5_000))
        await stage.wait()
        (event,) = await stage.said()
        assert event.metadata.namespace == place
        assert len(event.metadata.name) <= 253
        assert len(event.message) == 1024

    play(scene)


def test_an_event_that_cannot_be_written_stops_nothing() -> None:
    async def scene(stage: Stage) -> None:
        odd = ResourceClaim(metadata=ObjectMeta(name="50%", namespace="default"))
        stage.teller.tell(odd, Event(reason="", message="x"))
        stage.teller.tell(ABOUT, WORDS)
        await stage.wait()
        assert [one.reason for one in await stage.said()] == ["NoRoom"]

    play(scene)


def test_a_flood_is_cut_off_and_nobody_waits_for_it() -> None:
    async def scene(stage: Stage) -> None:
        for number in range(UNSAID_MAX + 10):
            stage.teller.tell(ABOUT, Event(reason="R", message=str(number)))
        assert stage.client.writes == 0
        await stage.wait()
        assert stage.client.writes == UNSAID_MAX

    play(scene)


class Forbidding(Watched):
    """A cluster in which nothing may be created."""

    async def create(self, new: T) -> T:
        raise Refused(f"may not create in {new.metadata.namespace}")


def test_an_event_that_may_not_be_written_is_told_and_the_next_is_tried() -> None:
    heard: list[str] = []

    async def scene(stage: Stage) -> None:
        teller = Teller(Forbidding(stage.client, set()), stage.clock, heard.append)
        writing = asyncio.get_running_loop().create_task(teller.run())
        for reason in ("One", "Two"):
            teller.tell(ABOUT, Event(reason=reason, message="words"))
        await stage.wait(1.0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)

    play(scene)
    assert heard == ["may not create in default"] * 2


def test_whoever_is_mute_writes_nothing() -> None:
    async def scene(stage: Stage) -> None:
        stage.teller.mute = True
        stage.teller.tell(b.claim("c"), Event(reason="Waits", message="for a device"))
        await stage.wait()
        assert await stage.said() == []

    play(scene)
