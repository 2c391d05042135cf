"""A pool: slices that belong together, and the devices in them that a matcher means.

Knows what makes a pool invalid. Must not know nodes, nor claims beyond their matchers.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cached_property

from jackfield.core.allocate.features import Features
from jackfield.core.allocate.offers import WISHES_MAX, Entry, Listing
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.selectors import Answer, Fault, Matcher
from jackfield.model import quantity


class PoolState(StrEnum):
    """Whether a pool can be used."""

    USABLE = "usable"
    INCOMPLETE = "currently being updated"
    INVALID = "currently invalid"


class Candidate:
    """A device that a matcher means, or could not judge, in the pool it is seen in."""

    __slots__ = ("entry", "fault", "pool")

    def __init__(self, pool: "Pool", entry: Entry, fault: Fault | None) -> None:
        self.pool = pool
        self.entry = entry
        self.fault = fault


class Pool:
    """A pool as those nodes see it that are targeted by the same slices of it."""

    def __init__(self, seen: Sequence[Listing], unseen: Sequence[Listing], features: Features) -> None:
        """Take the slices that target the node and those that only count, in the order they are tried."""
        self.driver, self.name = seen[0].pool
        self.state = PoolState.USABLE
        self.binding = any(one.binding for one in seen if not one.counts)
        self.entries = tuple(entry for one in seen if not one.counts for entry in one.entries)
        self.others = tuple(entry for one in unseen if not one.counts for entry in one.entries)
        self.size = len(self.entries)
        """How many devices the node is shown, be they usable or not."""
        self.listings = (*seen, *unseen)
        self.shown = tuple(seen)
        """The slices of it that the node is shown."""
        self.patched = any(one.spec.per_device_node_selection for one in seen)
        """Whether its devices are for different nodes."""
        self._features = features
        self._counter_sets = tuple(found for one in self.listings for found in one.spec.shared_counters)
        self._possible: dict[Matcher, tuple[Candidate, ...]] = {}
        self.flaw = self._flaw()
        """What makes it unusable; empty where nothing does."""
        if self.flaw:
            self._close(PoolState.INVALID)

    @classmethod
    def incomplete(cls, seen: Sequence[Listing], unseen: Sequence[Listing], features: Features) -> "Pool":
        """Return the marker of a pool of which slices are missing."""
        pool = cls(seen, unseen, features)
        pool.flaw = f"{len(pool.listings)} of {seen[0].spec.pool.resource_slice_count} slices are there"
        pool._close(PoolState.INCOMPLETE)
        return pool

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"

    @cached_property
    def counters(self) -> dict[tuple[str, str], int]:
        """What there is of each counter, in billionths."""
        try:
            return {
                (counter_set.name, name): quantity.parse(counter.value).nano
                for counter_set in self._counter_sets
                for name, counter in counter_set.counters.items()
            }
        except quantity.QuantityError as error:
            raise AllocationError(f"resource pool {self}: {error}") from error

    def offers(self, entry: Entry) -> bool:
        """Return whether the device may be given at all: not one to wait for, by a scheduler that cannot."""
        return self._features.binding_conditions or not entry.device.binding_conditions

    def possible(self, matcher: Matcher) -> tuple[Candidate, ...]:
        """Return the devices that the matcher means or cannot judge, whatever node they are for."""
        known = self._possible.get(matcher)
        if known is None:
            if len(self._possible) >= WISHES_MAX:
                self._possible.clear()
            known = self._possible[matcher] = tuple(self._judged(matcher))
        return known

    def _judged(self, matcher: Matcher) -> Iterable[Candidate]:
        for entry in self.entries:
            if not self.offers(entry):
                continue
            verdict = matcher.verdict(entry)
            if isinstance(verdict, Fault):
                yield Candidate(self, entry, verdict)
            elif verdict is Answer.MEANT:
                yield Candidate(self, entry, None)

    def _close(self, state: PoolState) -> None:
        self.state = state
        self.binding = False
        self.entries = self.others = ()

    def _flaw(self) -> str:
        names = [entry.id.device for entry in self.entries]
        sets = [one.name for one in self._counter_sets]
        if len(set(names)) < len(names):
            return f"device {_twice(names)} is listed twice"
        if len(set(sets)) < len(sets):
            return f"counter set {_twice(sets)} is listed twice"
        if not self._features.partitionable_devices:
            return ""
        known = {(one.name, counter) for one in self._counter_sets for counter in one.counters}
        for entry in (*self.entries, *self.others):
            for one in entry.device.consumes_counters:
                if one.counter_set not in sets:
                    return f"device {entry.id.device} uses counter set {one.counter_set}, which is not there"
                for name in one.counters:
                    if (one.counter_set, name) not in known:
                        return f"device {entry.id.device} uses counter {one.counter_set}/{name}, which is not there"
        return ""


def _twice(names: Sequence[str]) -> str:
    return next(name for name, count in Counter(names).items() if count > 1)
