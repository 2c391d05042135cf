"""What is left of what is on offer, kept current claim by claim.

Knows what each claim holds, and which pools that changes. Must not know nodes: who sees a pool is told which
pools changed, and does the rest.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

import msgspec

from jackfield.core.allocate.features import Features
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.pools import Pool
from jackfield.core.allocate.state import Allocated
from jackfield.core.allocate.usage import Usage
from jackfield.model import quantity
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.names import DeviceID, Key
from jackfield.model.quantity import Quantity

_NOTHING: Final[Mapping[str, Quantity]] = {}

Changes: TypeAlias = tuple[tuple[Pool, Entry | None], ...]
"""The pools that changed, and their devices that did; none where it is a device that the pool only counts."""


class _Part(msgspec.Struct, frozen=True, gc=False):
    """What one result takes: a device, or a share of one."""

    id: DeviceID
    share_id: str
    amounts: Mapping[str, Quantity]


class _Device:
    """Who uses one device. A device that nobody uses has no such record."""

    __slots__ = ("amounts", "consumers", "holders", "shares")

    def __init__(self) -> None:
        self.holders = 0
        """How many hold the whole device. More than one is somebody's mistake, and both have to let go."""
        self.shares: dict[str, int] = {}
        self.consumers = 0
        """How many shares say how much they use."""
        self.amounts: dict[str, Quantity] = {}

    @property
    def idle(self) -> bool:
        return not self.holders and not self.shares and not self.consumers

    def add(self, one: _Part, sign: int) -> None:
        """Count a part, or with -1 take it back."""
        if not one.share_id:
            self.holders += sign
            return
        self.shares[one.share_id] = self.shares.get(one.share_id, 0) + sign
        if not self.shares[one.share_id]:
            del self.shares[one.share_id]
        if one.amounts:
            self.consumers += sign
            for name, amount in one.amounts.items():
                before = self.amounts.get(name, quantity.ZERO)
                self.amounts[name] = before + amount if sign > 0 else before - amount


class Ledger(Usage):
    """What claims hold; a claim that comes or goes costs what it holds, however many others there are.

    It remembers for each pool that was asked about which of its devices are in use: memory grows with the devices of
    these pools and with the results of the claims.
    """

    def __init__(self, allocated: Allocated, features: Features) -> None:
        """Begin with what is in use by nobody in particular, which stays so."""
        super().__init__(allocated, features)
        self._devices: dict[DeviceID, _Device] = {}
        self._claims: dict[Key, tuple[_Part, ...]] = {}
        self._in_pool: dict[Pool, set[Entry]] = {}
        self._entries: dict[Pool, dict[str, Entry]] = {}
        self._pools: dict[tuple[str, str], list[Pool]] = {}
        self.consumed = len(allocated.capacity)
        """How many devices have shares that say how much they use."""
        for id_ in sorted(allocated.devices):
            self._device(id_).holders = 1
        for id_, share in sorted(allocated.shared):
            self._device(id_).shares[share] = 1
        for id_, amounts in allocated.capacity.items():
            self._device(id_).consumers = 1
            self._device(id_).amounts = dict(amounts)

    # --- changes

    def hold(self, claim: ResourceClaim) -> Changes:
        """Count what the claim holds now, instead of what it held before."""
        # Read first: a result that cannot be read changes nothing.
        parts = tuple(_part(one) for one in claim.results if not one.admin_access)
        before = self._claims.pop(claim.key, ())
        if parts:
            self._claims[claim.key] = parts
        return self._exchange(before, parts)

    def release(self, claim: Key) -> Changes:
        """Forget what the claim holds."""
        return self._exchange(self._claims.pop(claim, ()), ())

    def forget(self, pool: Pool) -> None:
        """Forget a pool that is no longer on offer; what claims hold of it is kept."""
        if self._in_pool.pop(pool, None) is not None:
            del self._entries[pool]
            self._pools[pool.driver, pool.name].remove(pool)
            if not self._pools[pool.driver, pool.name]:
                del self._pools[pool.driver, pool.name]
        self._remaining.pop(pool, None)

    def _exchange(self, old: Iterable[_Part], new: Iterable[_Part]) -> Changes:
        touched: dict[DeviceID, None] = {}
        for sign, parts in ((-1, old), (1, new)):
            for one in parts:
                touched[one.id] = None
                device = self._device(one.id)
                self.consumed -= device.consumers > 0
                device.add(one, sign)
                self.consumed += device.consumers > 0
        changed: list[tuple[Pool, Entry | None]] = []
        for id_ in touched:
            if self._devices[id_].idle:
                del self._devices[id_]
            pools = self._pools.get((id_.driver, id_.pool), ())
            changed.extend([(pool, self._note(pool, id_)) for pool in pools])
        return tuple(changed)

    def _note(self, pool: Pool, id_: DeviceID) -> Entry | None:
        self._remaining.pop(pool, None)
        entry = self._entries[pool].get(id_.device)
        if entry is not None:
            if self._is_whole(id_):
                self._in_pool[pool].add(entry)
            else:
                self._in_pool[pool].discard(entry)
        return entry

    def _device(self, id_: DeviceID) -> _Device:
        found = self._devices.get(id_)
        if found is None:
            found = self._devices[id_] = _Device()
        return found

    # --- answers

    def held(self, pool: Pool) -> AbstractSet[Entry]:
        """Return the devices of the pool that are in use as a whole; the set changes as claims do."""
        known = self._in_pool.get(pool)
        if known is None:
            known = {entry for entry in pool.entries if self._is_whole(entry.id)}
            self._in_pool[pool] = known
            self._entries[pool] = {entry.id.device: entry for entry in pool.entries}
            self._pools.setdefault((pool.driver, pool.name), []).append(pool)
        return known

    def used(self, entry: Entry) -> Mapping[str, Quantity]:
        """Return how much shares use of the device."""
        known = self._devices.get(entry.id)
        return known.amounts if known is not None and known.consumers else _NOTHING

    def shared(self, entry: Entry) -> bool:
        """Return whether a share of the device is in use, which then has paid for its counters."""
        known = self._devices.get(entry.id)
        return known is not None and known.consumers > 0

    def _is_whole(self, id_: DeviceID) -> bool:
        known = self._devices.get(id_)
        if known is None:
            return False
        # A scheduler that knows no shares takes them for whole devices.
        return known.holders > 0 or (bool(known.shares) and not self._features.consumable_capacity)

    def _in_use(self, device: DeviceID) -> bool:
        return device in self._devices


def _part(one: DeviceRequestAllocationResult) -> _Part:
    shares = one.consumed_capacity if one.share_id else {}
    return _Part(one.id, one.share_id, {name: quantity.parse(text) for name, text in shares.items()})
