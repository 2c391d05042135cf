"""What a node's own pools look like, whatever they are called.

Knows which pools a search cannot tell apart, for all claims or for one. Must not know nodes, nor search.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from jackfield.core.allocate.features import Features
from jackfield.core.allocate.ledger import Ledger
from jackfield.core.allocate.offers import WISHES_MAX, Entry
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Pool, PoolState
from jackfield.core.allocate.requests import Wish
from jackfield.core.allocate.selectors import Answer, Fault, Matcher, Verdict

LOOKS_MAX: Final = 100_000
"""So many looks are remembered; beyond it all are forgotten, and worked out anew."""

Here: TypeAlias = bool | None
"""Whether a device can be used from the node; None where its node selector cannot be read."""
Look: TypeAlias = object
"""What a search sees. It finds the same in what looks equal: the same devices in the same places, or none."""


class Lens:
    """What some claims see of a device: whether they mean it, and the attributes they compare."""

    __slots__ = ("attributes", "matchers", "plain")

    def __init__(self, matchers: tuple[Matcher, ...], attributes: tuple[str, ...], *, plain: bool) -> None:
        self.matchers = matchers
        self.attributes = attributes
        self.plain = plain
        """Whether devices in use are out of sight: true but for `All` and admin access."""

    def verdicts(self, entry: Entry) -> tuple[Verdict, ...]:
        """Return what each of the selectors says of the device."""
        return tuple(matcher.verdict(entry) for matcher in self.matchers)

    def means(self, entry: Entry) -> bool:
        """Return whether any of the selectors means the device."""
        return any(matcher.verdict(entry) is Answer.MEANT for matcher in self.matchers)


class Shape:
    """Devices in their order, all that is lasting about them but their names. Equal shapes are one object."""

    __slots__ = ("__weakref__", "entries", "heres", "simple", "state", "traits")

    def __init__(self, pool: Pool, traits: tuple[bytes, ...], heres: tuple[Here, ...]) -> None:
        self.state = pool.state
        self.traits = traits
        """What of each device matters to a search once selectors and constraints have been asked."""
        self.heres = heres
        self.entries = pool.entries
        """Those of the first pool of this shape, which answer for all."""
        self.simple = not any(one.shareable or one.device.consumes_counters for one in pool.entries)
        """Whether a device is in use or not, and nothing in between."""


class Condition:
    """A shape, and what of it is in use. Equal conditions are one object: they look equal to every claim."""

    __slots__ = ("__weakref__", "held", "more", "shape")

    def __init__(self, shape: Shape, held: frozenset[int], more: tuple[object, ...]) -> None:
        self.shape = shape
        self.held = held
        """The positions of the devices in use."""
        self.more = more
        """What shares use, and what is left of counters."""


class Looks:
    """All shapes and conditions there are at the moment, and how claims see them.

    Shapes and conditions go when no node has them any more. What claims see is remembered up to LOOKS_MAX answers, each
    no longer than its pool has devices.
    """

    def __init__(self, features: Features) -> None:
        self._features = features
        self._shapes: WeakValueDictionary[tuple[object, ...], Shape] = WeakValueDictionary()
        self._conditions: WeakValueDictionary[tuple[object, ...], Condition] = WeakValueDictionary()
        self._lenses: dict[tuple[object, ...], Lens] = {}
        self._facets: dict[tuple[object, ...], int] = {}
        self._numbered = 0
        self._seen: dict[tuple[Shape, Lens], tuple[int, ...]] = {}
        self._looks: dict[tuple[Condition, Lens], Look] = {}

    def lens(self, wishes: Sequence[Wish]) -> Lens:
        """Return how these claims see devices; claims that see them alike have one lens."""
        asks = [ask for wish in wishes for request in wish.requests for ask in request.asks]
        matchers = tuple(dict.fromkeys(ask.matcher for ask in asks))
        attributes = tuple(
            one.match_attribute or one.distinct_attribute
            for wish in wishes
            for one in wish.claim.spec.devices.constraints
        )
        plain = not any(ask.admin or ask.all_devices for ask in asks)
        key = (matchers, attributes, plain)
        found = self._lenses.get(key)
        if found is None:
            if len(self._lenses) >= WISHES_MAX:
                self._lenses.clear()
            found = self._lenses[key] = Lens(matchers, attributes, plain=plain)
        return found

    def shape(self, pool: Pool, heres: tuple[Here, ...]) -> Shape:
        """Return the shape of a pool, given which of its devices can be used from the node."""
        traits = tuple(_trait(entry) for entry in pool.entries)
        contents = tuple(entry.fingerprint for entry in pool.entries)
        key = (pool.state, traits, contents, heres)
        found = self._shapes.get(key)
        if found is None:
            found = self._shapes[key] = Shape(pool, traits, heres)
        return found

    def condition(self, shape: Shape, pool: Pool, ledger: Ledger) -> Condition:
        """Return the condition a pool of this shape is in."""
        held = ledger.held(pool)
        positions = (
            frozenset([at for at, entry in enumerate(pool.entries) if entry in held]) if held else _NONE
        )
        more = () if shape.simple and not ledger.consumed else _more(pool, ledger, self._features)
        key = (shape, positions, more)
        found = self._conditions.get(key)
        if found is None:
            found = self._conditions[key] = Condition(shape, positions, more)
        return found

    def look(self, condition: Condition, lens: Lens) -> Look:
        """Return what claims see of a pool in this condition.

        Where devices are in use or not and nothing in between, that is a sequence of devices that can be had; all
        that counts of them is which request means them, what constraints compare, taints and capacities.
        """
        shape = condition.shape
        if shape.state is not PoolState.USABLE:
            return shape.state
        if not lens.plain or not shape.simple or condition.more:
            return condition
        found = self._looks.get((condition, lens))
        if found is None:
            if len(self._looks) >= LOOKS_MAX:
                self._looks.clear()
            held = condition.held
            facets = enumerate(self._shown(shape, lens))
            found = self._looks[condition, lens] = tuple(
                [one for at, one in facets if one >= 0 and at not in held]
            )
        return found

    def _shown(self, shape: Shape, lens: Lens) -> tuple[int, ...]:
        """Return a number for how each device is seen, the same for devices seen alike; -1 for one not seen."""
        found = self._seen.get((shape, lens))
        if found is None:
            if len(self._seen) >= LOOKS_MAX:
                self._seen.clear()
            found = self._seen[shape, lens] = tuple(
                [self._facet(shape, lens, at) for at in range(len(shape.entries))]
            )
        return found

    def _facet(self, shape: Shape, lens: Lens, at: int) -> int:
        entry, here = shape.entries[at], shape.heres[at]
        verdicts = lens.verdicts(entry)
        fault = any(isinstance(one, Fault) for one in verdicts)
        # A selector that fails on a device fails wherever the device is.
        if not fault and (here is False or Answer.MEANT not in verdicts):
            return -1
        lists = self._features.list_attributes
        values = tuple(entry.value(name, lists=lists) for name in lens.attributes)
        seen = tuple("fault" if isinstance(one, Fault) else one for one in verdicts)
        key = (here, seen, shape.traits[at], values)
        found = self._facets.get(key)
        if found is None:
            if len(self._facets) >= LOOKS_MAX:
                # Numbers are never used twice, so what was numbered before is only not recognised.
                self._facets.clear()
            self._numbered += 1
            found = self._facets[key] = self._numbered
        return found


_NONE: Final[frozenset[int]] = frozenset()


def _trait(entry: Entry) -> bytes:
    device, place = entry.device, entry.place
    return msgspec.msgpack.encode(
        (
            device.capacity,
            device.consumes_counters,
            [(one.key, one.value, one.effect) for one in device.taints],
            bool(device.binding_conditions),
            device.binds_to_node,
            bool(place.node_name),
            # An allocation names the nodes of its devices, which fails for some selectors.
            None if place.node_name else place.selector,
        )
    )


def _more(pool: Pool, ledger: Ledger, features: Features) -> tuple[object, ...]:
    used = tuple(
        (at, tuple(sorted((name, amount.nano) for name, amount in ledger.used(entry).items())))
        for at, entry in enumerate(pool.entries)
        if ledger.shared(entry)
    )
    if not features.partitionable_devices or not any(one.device.consumes_counters for one in pool.entries):
        return used
    try:
        left = ledger.remaining(pool)
    except AllocationError:
        return (*used, "no counters")
    return (*used, left.overdrawn, tuple(sorted(left.counters.items())))
