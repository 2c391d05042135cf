"""Devices counted by where they drop out, and those kept that came nearest.

Knows how causes are grouped, and which of two devices came nearer. Must not know how causes come about.
"""

from collections.abc import Iterable, Sequence
from heapq import nsmallest
from typing import Final, TypeAlias

from jackfield.core.allocate.causes import ELSEWHERE
from jackfield.core.allocate.reasons import GROUPS_MAX, Cause, Group, Miss, Removed, Step
from jackfield.model.names import DeviceID

_ORDER: Final = {step: number for number, step in enumerate(Step)}
_OTHERS: Final = {
    Step.SELECTOR: 1,
    Step.FAULT: 1,
    Step.NODE: 2,
    Step.POOL: 2,
    Step.GATE: 2,
    Step.CLASS: 3,
}
"""How far off a device is that is not the one that was meant; 0 where only others are in its way."""


Remoteness: TypeAlias = tuple[int, int, int]


def remoteness(causes: Sequence[Cause], *, aborted: bool = False) -> Remoteness:
    """Return how far a device is from being had: the less the nearer.

    What ends the whole search comes first, where something did. Then a device that is meant and somehow taken comes
    before one that is not meant, whatever else it lacks; then fewer obstacles before more, and later before earlier.
    """
    first = causes[0].step
    if aborted and first in {Step.FAULT, Step.POOL}:
        return -1, len(causes), -_ORDER[first]
    return max(_OTHERS.get(one.step, 0) for one in causes), len(causes), -_ORDER[first]


def meant_here(causes: Sequence[Cause]) -> bool:
    """Return whether a device is on the node and of the class, so that none elsewhere comes nearer."""
    return all(_OTHERS.get(one.step, 0) <= _OTHERS[Step.SELECTOR] for one in causes)


class Tally:
    """Counts the devices of one request."""

    def __init__(self, before: "Tally | None" = None) -> None:
        """Begin at nothing, or where another one ended."""
        self.counts: dict[Cause, int] = {} if before is None else dict(before.counts)
        self.examples: dict[Cause, DeviceID] = {} if before is None else dict(before.examples)

    def add(self, cause: Cause, device: DeviceID, devices: int = 1) -> None:
        """Count a device that drops out for a cause, or several of which this is the first."""
        if cause.rule == ELSEWHERE:
            # There may be as many such nodes as there are, and which they are says nothing.
            cause = Cause(cause.step, cause.rule, seen=cause.seen)
        self.counts[cause] = self.counts.get(cause, 0) + devices
        self.examples.setdefault(cause, device)

    @property
    def removed(self) -> tuple[Removed, ...]:
        """Every step at which devices drop out, with the causes of most of them."""
        steps: dict[Step, list[Group]] = {}
        for cause, count in self.counts.items():
            steps.setdefault(cause.step, []).append(Group(cause, count, self.examples[cause]))
        return tuple(_removed(step, steps[step]) for step in Step if step in steps)


def _removed(step: Step, groups: Sequence[Group]) -> Removed:
    total = sum(one.devices for one in groups)
    # The sort is stable: of equals the one that was met first.
    told = tuple(sorted(groups, key=lambda one: -one.devices)[:GROUPS_MAX])
    return Removed(step, total, told, total - sum(one.devices for one in told))


def nearest(misses: Iterable[Miss], count: int, *, aborted: bool) -> tuple[Miss, ...]:
    """Return so many devices that came nearest; of equals those that were met first."""
    return tuple(nsmallest(count, misses, key=lambda one: remoteness(one.causes, aborted=aborted)))
