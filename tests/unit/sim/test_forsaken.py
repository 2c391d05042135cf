"""Whose claim Kubernetes itself takes back though the pod is bound, and whose must never be."""

from typing import NamedTuple

import pytest

from jackfield.cluster.history import Event, EventType, Stored
from jackfield.codec import kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import Object
from jackfield.model.pod import Pod
from jackfield.sim.audit import forsaken
from jackfield.testing import builders as b

BOUND = b.pod("bound", "shared", on="n1", uid="pods-bound")
ENDED = b.pod("ended", "shared", on="n1", phase="Succeeded", uid="pods-ended")
WAITING = b.pod("waiting", "shared", uid="pods-waiting")
ELSEWHERE = b.pod("elsewhere", "another", on="n1", uid="pods-elsewhere")
FREE = b.claim("shared", devices=())


class Row(NamedTuple):
    """A claim as it was, what somebody makes of it, and which of the pods are left without."""

    old: Object | None
    new: Object = FREE
    by: str = forsaken.CONTROLLER_MANAGER
    pods: tuple[Pod, ...] = (BOUND, ENDED, WAITING, ELSEWHERE)
    found: tuple[str, ...] = ()


ROWS = {
    "a bound pod that the scheduler has taken off, when the last of the others ends": Row(
        b.claim("shared", reserved=("ended",)), found=("bound",)
    ),
    "a bound pod that it was still reserved for": Row(b.claim("shared", reserved=("bound", "ended"))),
    "by a scheduler": Row(b.claim("shared", reserved=("ended",)), by="scheduler"),
    "by a replica of ours": Row(b.claim("shared"), by="jackfield"),
    "a claim that nothing is taken from": Row(b.claim("shared", reserved=("ended",)), b.claim("shared")),
    "a claim that had nothing": Row(FREE),
    "a claim that is new": Row(None),
    "something else": Row(BOUND, BOUND),
    "nobody is bound": Row(b.claim("shared", reserved=("ended",)), pods=(WAITING, ELSEWHERE)),
}


def stored(one: Object) -> Stored:
    return Stored(kinds.of(ResourceClaim), 1, {}, one)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_only_who_was_taken_off_before_is_forsaken(row: Row) -> None:
    before = stored(row.old) if row.old is not None else None
    event = Event(EventType.MODIFIED, 2, stored(row.new), before, row.by)
    found = forsaken.pods(event, b.world(*row.pods))
    assert tuple(one.metadata.name for one in found) == row.found
