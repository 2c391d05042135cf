"""Whose claim Kubernetes itself takes back though the pod is bound, and whose must never be."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.cluster.history import Event, EventType, Stored
from jackfield.codec import kinds
from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import Object
from jackfield.model.pod import Pod
from jackfield.sim.audit import forsaken
from jackfield.sim.audit.forsaken import Forsaken
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


def change(old: Object | None, new: Object, by: str = forsaken.CONTROLLER_MANAGER) -> Event:
    return Event(EventType.MODIFIED, 2, stored(new), stored(old) if old is not None else None, by)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_only_who_was_taken_off_before_is_forsaken(row: Row) -> None:
    found = Forsaken().pods(change(row.old, row.new, row.by), b.world(*row.pods))
    assert tuple(one.metadata.name for one in found) == row.found


UNBOUND = b.pod("bound", "shared", uid="pods-bound")
GIVEN = b.claim("shared", reserved=("bound",))
TAKEN_BACK = change(GIVEN, FREE, forsaken.SCHEDULER)


class Bind(NamedTuple):
    """What happened to a claim, and whether its pod is forsaken when it is bound after that."""

    before: tuple[Event, ...]
    old: Pod = UNBOUND
    new: Pod = BOUND
    is_forsaken: bool = False


BINDS = {
    "by a scheduler that took its claim back": Bind((TAKEN_BACK,), is_forsaken=True),
    "with a claim that was given something anew": Bind((TAKEN_BACK, change(FREE, GIVEN, forsaken.SCHEDULER))),
    "with a claim that a replica of ours took back": Bind((change(GIVEN, FREE, "jackfield"),)),
    "with a claim that the controller manager took back": Bind((change(GIVEN, FREE),)),
    "with a claim that had nothing to be taken back": Bind((change(FREE, FREE, forsaken.SCHEDULER),)),
    "with a claim that nothing happened to": Bind(()),
    "but not in this change": Bind((TAKEN_BACK,), old=BOUND),
    "not at all": Bind((TAKEN_BACK,), new=UNBOUND),
    "with another claim": Bind((TAKEN_BACK,), old=replace(ELSEWHERE, spec=UNBOUND.spec), new=ELSEWHERE),
}


@pytest.mark.parametrize("row", BINDS.values(), ids=BINDS)
def test_only_who_is_bound_by_a_scheduler_that_took_his_claim_back_is_forsaken(row: Bind) -> None:
    told, store = Forsaken(), b.world(FREE, UNBOUND)
    for event in row.before:
        told.pods(event, store)
    assert told.pods(change(row.old, row.new, forsaken.SCHEDULER), store) == (
        (row.new,) if row.is_forsaken else ()
    )
