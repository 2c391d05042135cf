"""Many nodes at a glance: how many devices of a pool a request could have, and how near the others came.

Knows that a device looks the same from every node that can use it, so that each is looked at once for all nodes.
Must not know searches: what several requests take from one another is not seen at a glance.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jackfield.core.allocate.allocator import Allocator
from jackfield.core.allocate.causes import Selection, closure, wherever
from jackfield.core.allocate.offers import Place
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Candidate, Pool, PoolState
from jackfield.core.allocate.reasons import Cause, Step
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.tally import Remoteness, remoteness
from jackfield.core.allocate.trial import NOBODY, Trial
from jackfield.model.names import NodeName
from jackfield.model.node import Node

ELSEWHERE: Final = (Cause(Step.NODE),)


class Glance(msgspec.Struct, frozen=True):
    """Some devices, seen for one request."""

    passing: int
    nearest: Remoteness
    """Of those that do not pass."""
    step: Step
    """Where the nearest drops out."""


NOTHING: Final = Glance(0, remoteness(ELSEWHERE), Step.NODE)
"""A node without devices: all there are, if any, are elsewhere."""


class Glances:
    """What nodes see, for each of some requests for itself."""

    def __init__(self, allocator: Allocator, wishes: Sequence[Wish]) -> None:
        features = allocator.features
        self._places = allocator.pools.places
        self.selection = Selection(allocator.selectors, lists=features.list_attributes)
        self._trial = Trial(wishes, allocator.usage, features, NOBODY)
        self._pools: dict[tuple[Pool, Ask], _Pool] = {}

    def of(self, claim: int, ask: Ask, pools: Iterable[Pool], node: Node) -> Glance | None:
        """Return what the request sees on a node; None where a closer look is needed."""
        found = NOTHING
        for pool in pools:
            if pool.state is not PoolState.USABLE:
                causes = (closure(pool),)
                found = _both(found, Glance(0, remoteness(causes), Step.POOL))
                continue
            known = self._pools.get((pool, ask))
            if known is None:
                known = self._pools[pool, ask] = self._look(claim, ask, pool)
            if known.unclear:
                return None
            found = _both(found, known.by_name.get(node.name, NOTHING))
            for place, one in known.by_place.items():
                try:
                    here = self._places.match(place, node)
                except AllocationError:
                    return None
                found = _both(found, one) if here else found
        return found

    def _look(self, claim: int, ask: Ask, pool: Pool) -> "_Pool":
        found = _Pool()
        for entry in pool.entries:
            one = Candidate(pool, entry, None)
            try:
                causes = tuple(wherever(self.selection, self._trial, claim, ask, one))
            except AllocationError:
                found.unclear = True
                continue
            found.unclear |= any(cause.step is Step.FAULT for cause in causes)
            found.add(entry.place, glance(causes))
        return found


class _Pool:
    """The devices of a pool, by where they can be used."""

    def __init__(self) -> None:
        self.by_name: dict[NodeName, Glance] = {}
        self.by_place: dict[Place, Glance] = {}
        self.unclear = False
        """Whether a device cannot be judged, so that a search may end in an error."""

    def add(self, place: Place, one: Glance) -> None:
        if place.node_name:
            self.by_name[place.node_name] = _both(self.by_name.get(place.node_name, NOTHING), one)
        else:
            self.by_place[place] = _both(self.by_place.get(place, NOTHING), one)


def glance(causes: Sequence[Cause]) -> Glance:
    """Return one device, given all that keeps it from the request."""
    if not causes:
        return Glance(1, NOTHING.nearest, NOTHING.step)
    return Glance(0, remoteness(causes), causes[0].step)


def _both(one: Glance, other: Glance) -> Glance:
    nearer = min(one, other, key=lambda each: each.nearest)
    return Glance(one.passing + other.passing, nearer.nearest, nearer.step)
