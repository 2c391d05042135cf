"""Which pools a node sees, and in which order their devices are tried.

Knows generations and completeness, and what of yesterday's work is still good. Must not know claims, beyond
the matchers that pick devices.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.offers import PLACES_MAX, WISHES_MAX, Entry, Listing, Places
from jackfield.core.allocate.outcome import Reason
from jackfield.core.allocate.pools import Candidate, Pool, PoolState
from jackfield.core.allocate.selectors import Matcher
from jackfield.model.names import NodeName
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice

EVERYBODY: Final = NodeName("")
"""No node in particular."""


class Seen:
    """What one node sees: its pools in the order they are tried, and their devices by matcher."""

    def __init__(self, node: Node, pools: tuple[Pool, ...], places: Places) -> None:
        self.node = node
        self.pools = pools
        self._places = places
        self._candidates: dict[Matcher, tuple[Candidate, ...]] = {}

    @property
    def reason(self) -> Reason:
        """Why nothing was found here: a pool that is invalid may have been meant."""
        invalid = any(pool.state is PoolState.INVALID for pool in self.pools)
        return Reason.INVALID_POOLS if invalid else Reason.DEVICES

    def here(self, entry: Entry) -> bool:
        """Return whether the device can be used from the node."""
        return self._places.match(entry.place, self.node)

    def candidates(self, matcher: Matcher) -> tuple[Candidate, ...]:
        """Return the devices for this node that the matcher means, and all that it cannot judge.

        A selector that fails on another node's device fails here too, since upstream asks it before the node.
        """
        known = self._candidates.get(matcher)
        if known is None:
            if len(self._candidates) >= WISHES_MAX:
                self._candidates.clear()
            known = self._candidates[matcher] = tuple(self._here(matcher))
        return known

    def _here(self, matcher: Matcher) -> Iterable[Candidate]:
        match, around, node = self._places.match, self._places.around(self.node), self.node
        for pool in self.pools:
            for one in pool.possible(matcher):
                place = one.entry.place
                here = around.get(place)
                if one.fault is not None or (match(place, node) if here is None else here):
                    yield one


class Pools:
    """All slices, by pool and by node, and what each node sees of them."""

    def __init__(
        self, slices: Iterable[ResourceSlice], features: Features, before: "Pools | None" = None
    ) -> None:
        """Prepare the slices; work on those that `before` has already is taken from there."""
        self.features: Features = features
        self.places: Places = Places()
        known: dict[int, Listing] = {}
        pools: dict[tuple[int, ...], Pool] = {}
        if before is not None and before.features == features and len(before.places) < PLACES_MAX:
            self.places, known, pools = before.places, before.listings, before.pools
        self.listings: dict[int, Listing] = {}
        """By the identity of the slice, which the listing keeps alive."""
        for one in slices:
            self.listings[id(one)] = known.get(id(one)) or Listing(one, features, self.places)
        self.pools: dict[tuple[int, ...], Pool] = {
            key: pool for key, pool in pools.items() if self._has(pool)
        }
        """By the identity of its slices, which the pool keeps alive, so that no other can take their place."""
        self._seen: dict[NodeName, Seen] = {}
        self._by_pool: dict[tuple[str, str], list[Listing]] = {}
        self._by_node: dict[NodeName, list[Listing]] = {}
        self._by_any: list[Listing] = []
        for listing in self.listings.values():
            self._index(listing)

    @property
    def newest(self) -> tuple[Listing, ...]:
        """The slices with devices that count: those of the newest generation of every pool."""
        newest = {pool: max(one.generation for one in found) for pool, found in self._by_pool.items()}
        return tuple(
            [one for one in self.listings.values() if one.generation == newest[one.pool] and not one.counts]
        )

    def owners(self, pool: tuple[str, str]) -> tuple[NodeName, ...]:
        """Return the nodes that the pool's slices are for, or EVERYBODY where a slice may concern several."""
        return tuple([EVERYBODY if one.counts else one.spec.node_name for one in self._by_pool.get(pool, ())])

    def seen(self, node: Node) -> Seen:
        """Return what the node sees."""
        known = self._seen.get(node.name)
        if known is None or known.node is not node:
            known = self._seen[node.name] = Seen(node, self.gather(node), self.places)
        return known

    def _index(self, listing: Listing) -> None:
        self._by_pool.setdefault(listing.pool, []).append(listing)
        if listing.partitions and not self.features.partitionable_devices:
            return
        if listing.spec.node_name:
            self._by_node.setdefault(listing.spec.node_name, []).append(listing)
        else:
            self._by_any.append(listing)

    def _has(self, pool: Pool) -> bool:
        return all(self.listings.get(id(one.origin)) is one for one in pool.listings)

    def gather(self, node: Node) -> tuple[Pool, ...]:
        """Return the pools that the node sees, in the order they are tried, and remember nothing of the node."""
        relevant: dict[tuple[str, str], list[Listing]] = {}
        for listing in (*self._by_node.get(node.name, ()), *self._by_any):
            if (listing.counts and self._counters_are_everywhere) or listing.targets(node):
                relevant.setdefault(listing.pool, []).append(listing)
        pools = [pool for name, pool in self._strangers if name != node.name]
        for listing in self._scattered:
            if listing.spec.node_name != node.name:
                relevant.setdefault(listing.pool, []).append(listing)
        for found in relevant.values():
            pool = self._pool(found)
            if pool is not None:
                pools.append(pool)
        return tuple(sorted(pools, key=lambda pool: (pool.binding, pool.driver, pool.name)))

    @property
    def _counters_are_everywhere(self) -> bool:
        """In 1.36 every node sees all counters, so that one node's unfinished pool blocks `All` on the others."""
        return self.features.profile is Profile.V1_36

    @cached_property
    def _scattered(self) -> tuple[Listing, ...]:
        """Counters on a node that other nodes see, of pools that are not that node's alone."""
        return tuple(one for one in self._local_counters if not self._belongs(one))

    @cached_property
    def _strangers(self) -> tuple[tuple[NodeName, Pool], ...]:
        """Pools of one node that others see for their counters. All that matters to them is what is wrong."""
        local: dict[tuple[str, str], list[Listing]] = {}
        for one in self._local_counters:
            if self._belongs(one):
                local.setdefault(one.pool, []).append(one)
        pools = [(found[0].spec.node_name, self._pool(found)) for found in local.values()]
        return tuple(
            (name, pool) for name, pool in pools if pool is not None and pool.state is not PoolState.USABLE
        )

    @cached_property
    def _local_counters(self) -> tuple[Listing, ...]:
        if not self._counters_are_everywhere:
            return ()
        return tuple(one for found in self._by_node.values() for one in found if one.counts)

    def _belongs(self, listing: Listing) -> bool:
        name = listing.spec.node_name
        return all(one.spec.node_name == name for one in self._by_pool[listing.pool])

    def _pool(self, relevant: list[Listing]) -> Pool | None:
        """Return the pool of these slices; None where a newer generation elsewhere replaces it."""
        newest = max(one.generation for one in relevant)
        seen = [one for one in relevant if one.generation == newest]
        everywhere = self._by_pool[seen[0].pool]
        unseen: list[Listing] = []
        count = seen[0].spec.pool.resource_slice_count
        if len(seen) != count:
            if any(one.generation > newest for one in everywhere):
                return None
            unseen = [one for one in everywhere if one.generation == newest and one not in seen]
        complete = len(seen) + len(unseen) == count
        key = (complete, *(id(one) for one in seen), 0, *(id(one) for one in unseen))
        if key not in self.pools:
            make = Pool if complete else Pool.incomplete
            self.pools[key] = make(sorted(seen, key=_name), sorted(unseen, key=_name), self.features)
        return self.pools[key]


def _name(listing: Listing) -> str:
    return listing.origin.metadata.name
