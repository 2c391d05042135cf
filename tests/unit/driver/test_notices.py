"""What went wrong on a node is told as an Event of it, once."""

import asyncio
import logging
import random
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from jackfield.cluster.api import Client, EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.driver.notices import ADVICE, DAMAGED, MESSAGE_BYTES_MAX, TRIES_MAX, Notices
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import NodeName, Seconds
from jackfield.model.node import Node
from jackfield.ports import PortError, Refused, Retry

T = TypeVar("T", bound=Object)
AWAY = Retry("the API server is away", Seconds(0.0))


class Line(Client):
    """A handle to the API by which an Event is refused so often as there are errors."""

    errors: list[PortError]

    async def create(self, new: T) -> T:
        if self.errors:
            raise self.errors.pop()
        return await super().create(new)


class Desk:
    """A node of a cluster, and what is told of it."""

    def __init__(self) -> None:
        cluster = EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("notices")))  # noqa: S311 - a test
        self.store = cluster.store
        self.store.create(Node, {"metadata": {"name": "n1"}})
        self.line = Line(self.store, cluster._feeds, "driver")  # noqa: SLF001 - as `client` does
        self.line.errors = []

    def notices(self) -> Notices:
        return Notices(self.line, NodeName("n1"), "lamps.example.com", lambda: 1.7e9)

    def events(self) -> list[Event]:
        return [one.object for one in self.store.list(Event).items if isinstance(one.object, Event)]

    async def told(self, notices: Notices) -> None:
        """Go on when all that was told is written, or given up."""
        running = asyncio.create_task(notices.run())
        await notices.told()
        running.cancel()
        await asyncio.wait([running])


def played(scene: Coroutine[object, object, None]) -> None:
    asyncio.run(asyncio.wait_for(scene, 300))


def test_a_damaged_checkpoint_is_an_event_of_the_node_once_whatever_life_tells_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()

    async def scene() -> None:
        for _ in ("this life", "the next"):
            notices = desk.notices()
            notices.damaged(["/p/checkpoint.jsonl: a line is damaged", "its last line is missing"])
            notices.damaged([])
            await desk.told(notices)

    played(scene())
    assert caplog.records == []
    (event,) = desk.events()
    node = desk.store.list(Node).items[0].object
    assert (event.type, event.reason, event.metadata.namespace) == ("Warning", DAMAGED, "default")
    assert event.message == (
        f"lamps.example.com: /p/checkpoint.jsonl: a line is damaged; its last line is missing. {ADVICE}"
    )
    about = event.involved_object
    assert (about.kind, about.api_version, about.name, about.uid) == ("Node", "v1", "n1", node.uid)
    assert (event.source.component, event.first_timestamp) == ("lamps.example.com", event.last_timestamp)
    assert event.first_timestamp.startswith("2023-11-14T22:13:20")


def test_however_much_was_found_what_to_do_about_it_is_said() -> None:
    desk = Desk()

    async def scene() -> None:
        notices = desk.notices()
        notices.damaged(["ä" * 5000])
        await desk.told(notices)

    played(scene())
    (event,) = desk.events()
    assert len(event.message.encode()) <= MESSAGE_BYTES_MAX
    assert event.message.endswith(ADVICE)


@pytest.mark.parametrize(
    ("errors", "written", "said"),
    [
        ([AWAY] * (TRIES_MAX - 1), 1, ""),
        ([AWAY] * TRIES_MAX, 0, "could not be told as an Event of node n1: the API server is away"),
        (
            [Refused("events is forbidden")],
            0,
            "could not be told as an Event of node n1: events is forbidden",
        ),
    ],
    ids=["away for a while", "away for long", "without the right"],
)
def test_an_api_server_that_does_not_take_it_is_asked_again_or_told_of(
    errors: list[PortError], written: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk()

    async def scene() -> None:
        desk.line.errors = list(errors)
        notices = desk.notices()
        notices.damaged(["a line is damaged"])
        await desk.told(notices)

    with caplog.at_level(logging.WARNING, "jackfield.driver.notices"):
        played(scene())
    assert len(desk.events()) == written
    assert [one.getMessage().removeprefix(f"{DAMAGED} ") for one in caplog.records] == (
        [said] if said else []
    )
