"""What one node sees, so written down that nodes which see alike are recognised.

Knows the two kinds of pool a node sees: its own, which are compared by what is in them, and those of others, which
are the same object for every node that sees the same of them. Must not know claims, beyond their lens.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias
from weakref import WeakValueDictionary

from jackfield.core.allocate.gathering import Pools, Seen
from jackfield.core.allocate.ledger import Ledger
from jackfield.core.allocate.looks import Condition, Here, Lens, Look, Looks, Shape
from jackfield.core.allocate.offers import WISHES_MAX, Entry, Place, Places
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Candidate, Pool
from jackfield.core.allocate.selectors import Answer, Fault, Matcher
from jackfield.model.names import NodeName
from jackfield.model.node import Node


class Own:
    """A pool with slices of the node's own. What it looks like changes as claims come and go."""

    __slots__ = ("condition", "pool", "shape")

    def __init__(self, pool: Pool, shape: Shape, condition: Condition) -> None:
        self.pool = pool
        self.shape = shape
        self.condition = condition

    def candidates(self, matcher: Matcher, node: Node, places: Places) -> Iterable[Candidate]:
        """Return the devices for the node that the matcher means, and all that it cannot judge."""
        # Not asked of the pool, which would remember it: there are as many such pools as nodes.
        pool = self.pool
        for entry, here in zip(pool.entries, self.shape.heres, strict=True):
            if not pool.offers(entry):
                continue
            verdict = matcher.verdict(entry)
            if isinstance(verdict, Fault):
                yield Candidate(pool, entry, verdict)
            elif verdict is Answer.MEANT and (places.match(entry.place, node) if here is None else here):
                yield Candidate(pool, entry, None)


class Common:
    """A pool of others, and which of its devices can be used from some nodes. Equal ones are one object."""

    __slots__ = ("__weakref__", "_candidates", "others", "pinned", "pool")

    def __init__(self, pool: Pool, pinned: tuple[Entry, ...], others: "Common | None") -> None:
        self.pool = pool
        self.pinned = pinned
        """Devices for one node by name."""
        self.others = others
        """What nodes see that differ from this one in the pinned devices alone."""
        self._candidates: dict[Matcher, tuple[Candidate, ...]] = {}

    def look(self, lens: Lens, ledger: Ledger) -> Look:
        """Return what claims see of it: pinned devices that they cannot have make no difference."""
        if self.others is None or not lens.plain:
            return self
        held = ledger.held(self.pool)
        free = tuple([entry for entry in self.pinned if entry not in held and lens.means(entry)])
        return (self.others, free) if free else self.others

    def candidates(self, matcher: Matcher, node: Node, places: Places) -> Iterable[Candidate]:
        """Return the devices for the node that the matcher means, and all that it cannot judge."""
        if self.others is not None:
            # There may be as many such views of the pool as nodes; none of them remembers anything.
            return self._here(matcher, node, places)
        known = self._candidates.get(matcher)
        if known is None:
            if len(self._candidates) >= WISHES_MAX:
                self._candidates.clear()
            known = self._candidates[matcher] = tuple(self._here(matcher, node, places))
        return known

    def _here(self, matcher: Matcher, node: Node, places: Places) -> Iterable[Candidate]:
        for one in self.pool.possible(matcher):
            if one.fault is not None or places.match(one.entry.place, node):
                yield one


Sight: TypeAlias = Own | Common


class View(Seen):
    """What one node sees, for one search."""

    def __init__(self, node: Node, sights: Sequence[Sight], places: Places) -> None:
        super().__init__(node, tuple(one.pool for one in sights), places)
        self._sights = sights

    def candidates(self, matcher: Matcher) -> tuple[Candidate, ...]:
        """Return the devices for this node that the matcher means, and all that it cannot judge."""
        node, places = self.node, self._places
        return tuple([one for sight in self._sights for one in sight.candidates(matcher, node, places)])


class _Patches:
    """A pool whose devices are for different nodes."""

    __slots__ = ("by_name", "places")

    def __init__(self, pool: Pool) -> None:
        found = dict.fromkeys(entry.place for entry in pool.entries)
        self.places: tuple[Place, ...] = tuple(place for place in found if not place.node_name)
        self.by_name: dict[NodeName, list[Entry]] = {}
        for entry in pool.entries:
            if entry.place.node_name:
                self.by_name.setdefault(entry.place.node_name, []).append(entry)


class Sights:
    """Writes down what nodes see. Remembers what is in sight of some node now, and nothing else."""

    def __init__(self, pools: Pools, looks: Looks, ledger: Ledger) -> None:
        self.pools = pools
        self.looks = looks
        self.ledger = ledger
        self._patches: dict[Pool, _Patches] = {}
        self._commons: WeakValueDictionary[tuple[object, ...], Common] = WeakValueDictionary()

    def of(self, node: Node, before: Sequence[Sight] = ()) -> tuple[Sight, ...]:
        """Return what the node sees, in the order it is tried. Raises AllocationError where nobody can tell.

        What it saw before saves work on pools that are still the same.
        """
        known = {one.pool: one for one in before if isinstance(one, Own) and not one.pool.patched}
        return tuple(known.get(pool) or self._sight(pool, node) for pool in self.pools.gather(node))

    def renew(self, own: Own) -> bool:
        """Look at a pool of the node's own again; return whether it looks different."""
        before = own.condition
        own.condition = self.looks.condition(own.shape, own.pool, self.ledger)
        return own.condition is not before

    def forget(self, pool: Pool) -> None:
        """Forget a pool that is no longer on offer."""
        self._patches.pop(pool, None)

    def _sight(self, pool: Pool, node: Node) -> Sight:
        patched = pool.patched
        if any(one.spec.node_name == node.name for one in pool.listings):
            heres = tuple(self._here(entry.place, node) if patched else True for entry in pool.entries)
            shape = self.looks.shape(pool, heres)
            return Own(pool, shape, self.looks.condition(shape, pool, self.ledger))
        # Asked here, so that the ledger knows the pool before the first change.
        self.ledger.held(pool)
        return self._patched(pool, node) if patched else self._common((pool,), pool, (), None)

    def _patched(self, pool: Pool, node: Node) -> Common:
        patches = self._patches.get(pool)
        if patches is None:
            patches = self._patches[pool] = _Patches(pool)
        heres = tuple(self._here(place, node) for place in patches.places)
        others = self._common((pool, heres), pool, (), None)
        pinned = patches.by_name.get(node.name)
        if not pinned:
            return others
        return self._common((pool, heres, node.name), pool, tuple(pinned), others)

    def _common(
        self, key: tuple[object, ...], pool: Pool, pinned: tuple[Entry, ...], others: Common | None
    ) -> Common:
        found = self._commons.get(key)
        if found is None:
            found = self._commons[key] = Common(pool, pinned, others)
        return found

    def _here(self, place: Place, node: Node) -> Here:
        try:
            return self.pools.places.match(place, node)
        except AllocationError:
            return None
