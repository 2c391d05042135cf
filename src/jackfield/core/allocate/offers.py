"""What slices offer, prepared once and shared by all claims and nodes.

Knows a slice's devices and the nodes they can be used from. Must not know claims, nor which slices form a
pool.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

import msgspec

from jackfield.core import cel
from jackfield.core.allocate.features import Features
from jackfield.core.allocate.nodes import node_matches
from jackfield.core.allocate.outcome import AllocationError
from jackfield.model import quantity
from jackfield.model.device import Device, DeviceAttribute
from jackfield.model.meta import NodeSelector
from jackfield.model.names import DeviceID, NodeName
from jackfield.model.node import Node
from jackfield.model.quantity import Quantity
from jackfield.model.slice import ResourceSlice

PLACES_MAX: Final = 10_000
"""So many distinct node selections are remembered; beyond it one starts afresh."""
WISHES_MAX: Final = 256
"""So many kinds of wish are remembered for a device, a pool or a node; beyond it one starts afresh.

Users choose selectors and amounts freely, and slices can live long.
"""


class Place:
    """Which nodes something can be used from. Equal places are one object, each matched once a node."""

    __slots__ = ("all_nodes", "node_name", "selector")

    def __init__(self, node_name: NodeName, selector: NodeSelector | None, *, all_nodes: bool) -> None:
        self.node_name = node_name
        self.selector = selector
        self.all_nodes = all_nodes

    @property
    def known(self) -> bool:
        """Whether anything is said that we understand; a future kind of selection is passed over."""
        return bool(self.node_name) or self.all_nodes or self.selector is not None

    def matches(self, node: Node) -> bool:
        """Return whether it can be used from the node, by its labels; whether by its name, `Places` says."""
        return self.all_nodes or (self.selector is not None and node_matches(self.selector, node))


class Places:
    """All places, and which of them a node is in."""

    def __init__(self) -> None:
        self._places: dict[tuple[NodeName, NodeSelector | None, bool], Place] = {}
        self._nodes: dict[NodeName, tuple[Node, dict[Place, bool]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def place(self, node_name: NodeName, selector: NodeSelector | None, *, all_nodes: bool) -> Place:
        """Return the one place of this description."""
        key = (node_name, selector, all_nodes)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = Place(node_name, selector, all_nodes=all_nodes)
        return found

    def around(self, node: Node) -> dict[Place, bool]:
        """Return what is known of the node so far; it is forgotten when the node changes."""
        known = self._nodes.get(node.name)
        if known is None or known[0] is not node:
            known = self._nodes[node.name] = (node, {})
        return known[1]

    def forget(self, node: NodeName) -> None:
        """Forget a node that is gone."""
        self._nodes.pop(node, None)

    def match(self, place: Place, node: Node) -> bool:
        """Return whether the node is in the place."""
        if place.node_name:
            # Not worth remembering: there may be as many such places as nodes, for every node.
            return place.node_name == node.name
        around = self.around(node)
        found = around.get(place)
        if found is None:
            found = around[place] = place.matches(node)
        return found


class Value(msgspec.Struct, frozen=True):
    """An attribute as constraints compare it: what kind, and the values (one, but for lists)."""

    kind: str
    values: frozenset[str | int | bool]


class Entry:
    """One device on offer. It is compared by identity; what claims ask of it is worked out once."""

    __slots__ = ("__dict__", "device", "id", "place", "shareable")

    def __init__(self, id_: DeviceID, device: Device, place: Place, *, shareable: bool) -> None:
        self.id = id_
        self.device = device
        self.place = place
        self.shareable = shareable
        self.demands: dict[object, Mapping[str, Quantity] | None] = {}
        self._values: dict[tuple[str, bool], Value | None] = {}

    @cached_property
    def subject(self) -> cel.Subject:
        """The device as expressions see it."""
        return cel.subject(self.id.driver, self.device)

    @cached_property
    def fingerprint(self) -> bytes:
        """All that an expression can see of the device, so that answers outlive the object."""
        device = self.device
        seen = (self.id.driver, device.attributes, device.capacity, device.allow_multiple_allocations)
        return msgspec.msgpack.encode(seen)

    @cached_property
    def capacity(self) -> Mapping[str, Quantity]:
        """How much there is of each capacity."""
        return {name: self.read(one.value) for name, one in self.device.capacity.items()}

    @cached_property
    def consumption(self) -> tuple[tuple[tuple[str, str], int], ...]:
        """What the device takes out of its pool's counters, in billionths."""
        return tuple(
            ((one.counter_set, name), self.read(counter.value).nano)
            for one in self.device.consumes_counters
            for name, counter in one.counters.items()
        )

    def read(self, text: str) -> Quantity:
        """Return the quantity that a text of this device stands for."""
        try:
            return quantity.parse(text)
        except quantity.QuantityError as error:
            raise AllocationError(f"device {self.id}: {error}") from error

    def value(self, attribute: str, *, lists: bool) -> Value | None:
        """Return the attribute of that qualified name, or None where the device has none.

        A name in the driver's own domain also finds the bare one.
        """
        key = (attribute, lists)
        if key not in self._values:
            if len(self._values) >= WISHES_MAX:
                self._values.clear()
            found = self.device.attributes.get(attribute)
            domain, slash, bare = attribute.partition("/")
            if found is None and slash and domain == self.id.driver:
                found = self.device.attributes.get(bare)
            self._values[key] = None if found is None else _value(found, lists=lists)
        return self._values[key]


def _value(attribute: DeviceAttribute, *, lists: bool) -> Value:
    scalars: tuple[tuple[str, str | int | bool | None], ...] = (
        ("string", attribute.string),
        ("int", attribute.int_),
        ("bool", attribute.bool_),
        ("version", attribute.version),
    )
    for kind, scalar in scalars:
        if scalar is not None:
            return Value(kind, frozenset((scalar,)))
    many: tuple[tuple[str, tuple[str | int | bool, ...] | None], ...] = (
        ("string", attribute.strings),
        ("int", attribute.ints),
        ("bool", attribute.bools),
        ("version", attribute.versions),
    )
    for kind, values in many:
        if lists and values is not None:
            return Value(kind, frozenset(values))
    return Value("", frozenset())


class Listing:
    """One slice, prepared when it is first looked into."""

    def __init__(self, origin: ResourceSlice, features: Features, places: Places) -> None:
        spec = origin.spec
        self.origin = origin
        self.spec = spec
        self.pool = (spec.driver, spec.pool.name)
        self.generation = spec.pool.generation
        self.counts = bool(spec.shared_counters)
        """Whether it lists counters, not devices."""
        self.partitions = self.counts or spec.per_device_node_selection
        self.place = places.place(spec.node_name, spec.node_selector, all_nodes=spec.all_nodes)
        self._features = features
        self._places = places

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The devices, in the slice's order."""
        return tuple(self._entry(device) for device in self.spec.devices)

    @cached_property
    def binding(self) -> bool:
        """Whether any device here has binding conditions."""
        return any(device.binding_conditions for device in self.spec.devices)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where its devices can be used, each place once."""
        return tuple(dict.fromkeys(entry.place for entry in self.entries))

    def targets(self, node: Node) -> bool:
        """Return whether any device here could be used from the node."""
        if self.spec.per_device_node_selection:
            return any(self._places.match(place, node) for place in self.places)
        return self.place.known and self._places.match(self.place, node)

    def _entry(self, device: Device) -> Entry:
        place = self.place
        if self.spec.per_device_node_selection:
            place = self._places.place(device.node_name, device.node_selector, all_nodes=device.all_nodes)
        shareable = self._features.consumable_capacity and device.allow_multiple_allocations
        id_ = DeviceID(self.spec.driver, self.spec.pool.name, device.name)
        return Entry(id_, device, place, shareable=shareable)
