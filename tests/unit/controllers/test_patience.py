"""What is waited for long is told once, on the object that waits, if that is one we know."""

import pytest

from jackfield.controllers.patience import PATIENCE_SECONDS, REMEMBERED_MAX, Patience
from jackfield.model.composition import ComposabilityRequest
from jackfield.model.event import Event
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import NEVER, Seconds
from jackfield.model.plan import Waiting
from jackfield.testing import builders as b

ROOM = Waiting("claim/default/c", "NoRoom", "a free slot on n1")
DEVICE = Waiting("claim/default/c", "NoRoom", "device a100-1 on n1")
OTHER = Waiting("claim/default/c", "Busy", "a free slot on n1")
MANAGER = Waiting("resource/a100-1.rack-a", "Attaching", "the manager of rack-a")


class Told:
    """A patience over a store with one object of each kind, and what it told."""

    def __init__(self, *others: Object) -> None:
        self.heard: list[tuple[str, str, str]] = []
        store = b.world(b.claim("c"), b.resource(), b.request(1), b.node(), *others)
        self.patience = Patience(store, self._tell)

    def _tell(self, about: Object, event: Event) -> None:
        self.heard.append((f"{type(about).__name__} {about.key}", event.reason, event.message))

    def wait(self, at: float, *waiting: Waiting) -> float:
        """Return in how many seconds of the table to look again."""
        return self.patience.take(waiting, Seconds(b.NOW + at)) - b.NOW


def said(waiting: Waiting, about: str = "ResourceClaim default/c") -> tuple[str, str, str]:
    return (about, waiting.reason, f"waiting for {waiting.what}")


ROWS: dict[str, tuple[list[tuple[float, Waiting]], list[tuple[str, str, str]]]] = {
    "over soon": ([(0, ROOM), (4.9, ROOM)], []),
    "long enough": ([(0, ROOM), (5, ROOM)], [said(ROOM)]),
    "long, and heard of late": ([(0, ROOM), (300, ROOM)], [said(ROOM)]),
    "the same for ever": ([(0, ROOM), (5, ROOM), (6, ROOM), (5000, ROOM)], [said(ROOM)]),
    "other words begin anew": ([(0, ROOM), (4, DEVICE), (8, DEVICE)], []),
    "another reason begins anew": ([(0, ROOM), (4, OTHER), (8, OTHER)], []),
    "other words are told as well": (
        [(0, ROOM), (5, ROOM), (6, DEVICE), (11, DEVICE)],
        [said(ROOM), said(DEVICE)],
    ),
    "words that come back are told again": (
        [(0, ROOM), (5, ROOM), (6, DEVICE), (7, ROOM), (12, ROOM)],
        [said(ROOM), said(ROOM)],
    ),
    "each object has its own": (
        [(0, ROOM), (3, MANAGER), (5, ROOM), (7, MANAGER), (8, MANAGER)],
        [said(ROOM), said(MANAGER, "ComposableResource a100-1.rack-a")],
    ),
}


@pytest.mark.parametrize(("waits", "told"), ROWS.values(), ids=ROWS)
def test_what_is_waited_for_is_told_once_when_it_has_lasted(
    waits: list[tuple[float, Waiting]], told: list[tuple[str, str, str]]
) -> None:
    table = Told()
    for at, waiting in waits:
        table.wait(at, waiting)
    assert table.heard == told


def test_it_is_looked_at_again_when_it_is_to_be_told_and_not_after() -> None:
    table = Told()
    assert table.wait(0, ROOM) == PATIENCE_SECONDS
    assert table.wait(2, ROOM) == PATIENCE_SECONDS
    assert table.wait(2, ROOM, MANAGER) == PATIENCE_SECONDS
    assert table.wait(5, ROOM, MANAGER) == 2 + PATIENCE_SECONDS
    assert table.wait(7, ROOM, MANAGER) == NEVER
    assert table.wait(7) == NEVER


@pytest.mark.parametrize(
    ("waiting", "about"),
    [
        ("claim/default/c", "ResourceClaim default/c"),
        ("resource/a100-1.rack-a", "ComposableResource a100-1.rack-a"),
        ("request/by-hand", "ComposabilityRequest by-hand"),
    ],
)
def test_what_is_told_is_told_about_the_object_itself(waiting: str, about: str) -> None:
    table = Told()
    one = Waiting(waiting, "Why", "something")
    table.wait(0, one)
    assert table.wait(5, one) == NEVER
    assert table.heard == [said(one, about)]


@pytest.mark.parametrize(
    "other",
    ["node/n1", "fabric/rack-a", "kind/Pod", "claims/default/c", "claim/other/c", "claim/c", "resource/gone"],
)
def test_for_what_is_told_to_nobody_nothing_is_looked_at_again(other: str) -> None:
    table = Told()
    one = Waiting(other, "Why", "something")
    assert table.wait(0, one) == NEVER
    assert table.wait(5, one) == NEVER
    assert table.wait(6, one, ROOM) == 6 + PATIENCE_SECONDS
    assert table.heard == []


def test_what_was_not_heard_of_for_longest_is_forgotten_first() -> None:
    names = [f"r{number}" for number in range(REMEMBERED_MAX)]
    table = Told(*(ComposabilityRequest(metadata=ObjectMeta(name=name)) for name in names))
    many = tuple(Waiting(f"request/{name}", "Why", "x") for name in names)
    table.wait(0, ROOM)
    table.wait(1, *many[1:])
    table.wait(2, ROOM)  # heard of again: now the last that would be forgotten
    table.wait(3, many[0])
    table.wait(5, ROOM)
    assert table.heard == [said(ROOM)]
    table.wait(5.5, *many)
    table.wait(7, ROOM)
    assert table.heard == [said(ROOM)]
    table.wait(12, ROOM)
    assert table.heard == [said(ROOM)] * 2, "what was forgotten may be told twice"
    assert len(table.patience._waits) == REMEMBERED_MAX  # noqa: SLF001 - what it remembers is bounded
