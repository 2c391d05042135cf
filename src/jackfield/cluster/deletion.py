"""What becomes of an object that somebody asks to delete.

Knows grace, finalizers and propagation. Must not know where objects are kept, nor who else depends on one.
"""

from enum import StrEnum
from typing import Final

import msgspec

from jackfield.cluster.history import Stored
from jackfield.codec import Raw
from jackfield.model.event import Event
from jackfield.model.names import Seconds, rfc3339, seconds
from jackfield.model.namespace import Namespace
from jackfield.model.pod import Pod

FOREGROUND: Final = "foregroundDeletion"
"""Finalizer of an object that waits for its dependents to go first."""
ORPHAN: Final = "orphan"
"""Finalizer of an object whose dependents are to forget it before it goes."""


class Propagation(StrEnum):
    """What becomes of an object's dependents."""

    UNSAID = ""
    """As the finalizers that are there already say; with none of them, in the background."""
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Deletion(msgspec.Struct, frozen=True):
    """How something is deleted."""

    grace_seconds: int | None = None
    propagation: Propagation = Propagation.UNSAID
    dry_run: bool = False


class Outcome(msgspec.Struct, frozen=True):
    """What a deletion comes to."""

    raw: Raw
    """The object as it is to be written; the old one itself if nothing is."""
    gone: bool
    """Whether it is removed after that."""


PLAINLY: Final = Deletion()


def outcome(old: Stored, how: Deletion, now: Seconds) -> Outcome:
    """Return what becomes of the object."""
    match old.object:
        case Namespace() if not old.object.deleting:
            return Outcome(_terminating(old, how, now), gone=False)
        case Namespace() if old.object.spec.finalizers:
            return Outcome(old.raw, gone=False)
        case Pod():
            return _pod(old, old.object, how, now)
        case _:
            return _at_once(old, how, now)


def _pod(old: Stored, pod: Pod, how: Deletion, now: Seconds) -> Outcome:
    """A running pod gets time to end; what was granted can only be cut."""
    metadata = old.raw["metadata"]
    granted = metadata.get("deletionGracePeriodSeconds", 0)
    if pod.deleting and not granted:
        return _at_once(old, how, now)
    grace = _grace_seconds(pod, how)
    until = now + grace
    if pod.deleting:
        if how.grace_seconds is None or grace >= granted:
            return Outcome(old.raw, gone=False)
        until = seconds(metadata["deletionTimestamp"]) - granted + grace
        if until < now:
            # What is asked for is over already: whoever ends the pod gets the shortest notice there is.
            until, grace = now, min(grace, 1)
    marked = _with_finalizers(_marked(metadata, Seconds(until), grace), _finalizers(old, how))
    return Outcome({**old.raw, "metadata": marked}, gone=not grace and not marked.get("finalizers"))


def _grace_seconds(pod: Pod, how: Deletion) -> int:
    """Return how long a pod may take to end; one that runs nowhere takes no time."""
    if not pod.deleting and (pod.finished or not pod.spec.node_name):
        return 0
    grace = pod.spec.termination_grace_period_seconds if how.grace_seconds is None else how.grace_seconds
    return grace if grace >= 0 else 1


def _at_once(old: Stored, how: Deletion, now: Seconds) -> Outcome:
    """Whatever needs no time goes now, unless a finalizer holds it."""
    finalizers = _finalizers(old, how)
    if not finalizers:
        return Outcome(old.raw, gone=True)
    metadata = old.raw["metadata"]
    if "deletionTimestamp" in metadata and seconds(metadata["deletionTimestamp"]) <= now:
        now = seconds(metadata["deletionTimestamp"])
    raw = {**old.raw, "metadata": _with_finalizers(_marked(metadata, now, 0), finalizers)}
    return Outcome(old.raw if raw == old.raw else raw, gone=False)


def _terminating(old: Stored, how: Deletion, now: Seconds) -> Raw:
    metadata = {**old.raw["metadata"], "deletionTimestamp": rfc3339(now)}
    return {
        **old.raw,
        "metadata": _with_finalizers(metadata, _finalizers(old, how)),
        "status": {**old.raw.get("status", {}), "phase": "Terminating"},
    }


def _marked(metadata: Raw, until: Seconds, grace: int) -> Raw:
    """Return the metadata of an object that is to go; its first marking counts as a change of what is wanted."""
    marked = {**metadata, "deletionTimestamp": rfc3339(until), "deletionGracePeriodSeconds": grace}
    if "deletionTimestamp" not in metadata and metadata.get("generation"):
        marked["generation"] = metadata["generation"] + 1
    return marked


def _finalizers(old: Stored, how: Deletion) -> list[str]:
    """Return the finalizers with those that stand for the propagation asked for."""
    there: list[str] = list(old.raw["metadata"].get("finalizers", ()))
    if how.propagation is Propagation.UNSAID or isinstance(old.object, Event):
        return there
    kept = [one for one in there if one not in (FOREGROUND, ORPHAN)]
    match how.propagation:
        case Propagation.FOREGROUND:
            kept.append(FOREGROUND)
        case Propagation.ORPHAN:
            kept.append(ORPHAN)
        case Propagation.BACKGROUND:
            pass
    return there if sorted(kept) == sorted(there) else kept


def _with_finalizers(metadata: Raw, finalizers: list[str]) -> Raw:
    kept = {name: value for name, value in metadata.items() if name != "finalizers"}
    return {**kept, "finalizers": finalizers} if finalizers else kept
