"""What is left of what is on offer.

Knows which devices claims hold, and what that leaves of counters and capacities. Must not know the claims
to come.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from operator import itemgetter
from typing import Final

import msgspec

from jackfield.core.allocate.features import Features
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.pools import Pool
from jackfield.core.allocate.state import Allocated
from jackfield.model.names import DeviceID
from jackfield.model.quantity import Quantity

_NOTHING: Final[Mapping[str, Quantity]] = {}


class Remaining(msgspec.Struct, frozen=True):
    """What allocated devices leave of a pool's counters, in billionths."""

    counters: Mapping[tuple[str, str], int]
    overdrawn: bool
    """Whether more is in use than there is of any counter; then no device that counts can be had."""


class Usage:
    """The state of one cycle, worked out pool by pool as pools are looked at."""

    def __init__(self, allocated: Allocated, features: Features) -> None:
        self.allocated = allocated
        self._features = features
        # A scheduler that knows no shares takes them for whole devices.
        whole = allocated.devices
        self._whole = whole if features.consumable_capacity or not allocated.shared else whole | self._shared
        self._held: dict[Pool, frozenset[Entry]] = {}
        self._remaining: dict[Pool, Remaining] = {}

    @cached_property
    def _shared(self) -> frozenset[DeviceID]:
        return frozenset(map(itemgetter(0), self.allocated.shared))

    def held(self, pool: Pool) -> AbstractSet[Entry]:
        """Return the devices of the pool that are in use as a whole."""
        known = self._held.get(pool)
        if known is None:
            whole = self._whole
            known = (
                frozenset([entry for entry in pool.entries if entry.id in whole]) if whole else frozenset()
            )
            self._held[pool] = known
        return known

    def used(self, entry: Entry) -> Mapping[str, Quantity]:
        """Return how much shares use of the device."""
        return self.allocated.capacity.get(entry.id, _NOTHING)

    def shared(self, entry: Entry) -> bool:
        """Return whether a share of the device is in use, which then has paid for its counters."""
        return entry.id in self.allocated.capacity

    def remaining(self, pool: Pool) -> Remaining:
        """Return what is left of the pool's counters."""
        known = self._remaining.get(pool)
        if known is None:
            known = self._remaining[pool] = self._count(pool)
        return known

    def _count(self, pool: Pool) -> Remaining:
        left = dict(pool.counters)
        for entry in (*pool.entries, *pool.others):
            if entry.device.consumes_counters and self._in_use(entry.id):
                for counter, amount in entry.consumption:
                    left[counter] -= amount
        return Remaining(left, overdrawn=any(amount < 0 for amount in left.values()))

    def _in_use(self, device: DeviceID) -> bool:
        held = self.allocated
        return device in held.devices or device in held.capacity or device in self._shared
