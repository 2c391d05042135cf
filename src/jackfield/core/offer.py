"""What a driver has on its node, and the slices there are → the slices to create, change and delete.

Knows how a pool is cut into slices so that a change costs one write and disturbs nobody, and which differences from
what the API server stored mean nothing. Must not know what the devices are, nor who writes.
"""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import count, islice

import msgspec
from msgspec.structs import replace

from jackfield.model import quantity
from jackfield.model.device import (
    CapacityRequestPolicy,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
)
from jackfield.model.meta import ObjectMeta, OwnerReference
from jackfield.model.names import NodeName, Uid
from jackfield.model.policy import SLICE_DEVICES_MAX
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec

COUNTER_SETS_MAX = 8
"""Sets of counters in one slice."""
NAME_MAX = 253
DIGEST_LENGTH = 8


class Pool(msgspec.Struct, frozen=True):
    """Devices that are published together."""

    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    """What the devices consume from, for those that are partitions of one thing."""
    name: str = ""
    """Unique in the cluster for this driver; empty means that it is called like the node."""


class Publisher(msgspec.Struct, frozen=True):
    """Whose slices they are."""

    driver: str
    node: NodeName
    node_uid: Uid = Uid("")
    """The slices go with the node; empty means that nobody knows it yet, and nothing is said about it."""


class Echo(msgspec.Struct, frozen=True):
    """What we wrote, and what the API server made of it: fields whose feature is off are dropped without a word."""

    meant: ResourceSliceSpec
    stored: ResourceSliceSpec


class Create(msgspec.Struct, frozen=True):
    """A slice that does not exist yet."""

    slice: ResourceSlice


class Change(msgspec.Struct, frozen=True):
    """A slice that exists, in the version its metadata names, as it should be."""

    slice: ResourceSlice


class Delete(msgspec.Struct, frozen=True):
    """A slice that nobody needs any more."""

    slice: ResourceSlice


Step = Create | Change | Delete


def steps(
    publisher: Publisher,
    pools: Iterable[Pool],
    slices: Iterable[ResourceSlice],
    echoes: Mapping[str, Echo] = {},
) -> tuple[Step, ...]:
    """Return what to do, in this order, so that the publisher's slices on its node show these pools and no others.

    Nothing is deleted before what replaces it is there. Whoever is cut short in between calls again.
    """
    there: dict[str, list[ResourceSlice]] = {}
    for one in sorted(slices, key=lambda one: one.metadata.name):
        meant = _as_meant(one, echoes.get(one.metadata.name))
        there.setdefault(one.spec.pool.name, []).append(meant)
    wanted = [replace(pool, name=pool.name or publisher.node) for pool in pools]
    planned = [step for pool in wanted for step in _pool(publisher, pool, there.pop(pool.name, []))]
    left = [Delete(one) for surplus in there.values() for one in surplus]
    return (
        *(one for one in planned if not isinstance(one, Delete)),
        *(one for one in planned if isinstance(one, Delete)),
        *left,
    )


def dropped(echo: Echo) -> tuple[str, ...]:
    """Return, for people, what the API server left out of a slice that we wrote, and which feature gate that needs."""
    stored = {one.name: one for one in echo.stored.devices}
    pairs = [(one, stored.get(one.name, Device(one.name))) for one in echo.meant.devices]
    found: list[str] = []
    for field, gate in _GATES.items():
        names = [meant.name for meant, kept in pairs if getattr(meant, field) and not getattr(kept, field)]
        if names:
            found.append(f"{_spelt(field)} of {_few(names)}: feature gate {gate} is off")
    policies = [meant.name for meant, kept in pairs if _policies(meant) and not _policies(kept)]
    if policies:
        found.append(f"requestPolicy of {_few(policies)}: feature gate DRAConsumableCapacity is off")
    if echo.meant.shared_counters and not echo.stored.shared_counters:
        found.append("sharedCounters: feature gate DRAPartitionableDevices is off")
    return tuple(found)


_GATES = {
    "taints": "DRADeviceTaints",
    "consumes_counters": "DRAPartitionableDevices",
    "allow_multiple_allocations": "DRAConsumableCapacity",
    "binding_conditions": "DRADeviceBindingConditions",
}


# --- one pool


class _Shelf(msgspec.Struct, frozen=True):
    """One slice as it should be: which devices or sets of counters it has, and what it is now, if it is."""

    names: tuple[str, ...]
    current: ResourceSlice | None = None
    counters: bool = False


def _pool(publisher: Publisher, pool: Pool, current: list[ResourceSlice]) -> Iterator[Step]:
    shelves, moved = _shelves(pool, current)
    kept = [one for one in shelves if one.names]
    # A pool without devices has a slice all the same: it tells an operator that the driver is there, and has nothing.
    kept = kept or shelves[:1] or [_Shelf(())]
    generation = max((one.spec.pool.generation for one in current), default=0)
    place = ResourcePool(pool.name, generation, len(current))
    fill = _Filling(publisher, pool, current)
    specs = [fill.spec(one, place) for one in kept]
    differing = [
        one for one, spec in zip(kept, specs, strict=True) if not one.current or one.current.spec != spec
    ]
    # A device and the counters it consumes from must not disagree, not even for a moment.
    torn = any(one.counters for one in differing) and not all(one.counters for one in differing)
    # Whoever was cut short on the way to a new generation goes on to it: until all are there, nobody uses any of it.
    if moved or torn or len(kept) != len(current):
        place = ResourcePool(pool.name, generation + 1, len(kept))
        specs = [fill.spec(one, place) for one in kept]
    names = _names(publisher, pool.name, [one.metadata.name for one in current])
    for shelf, spec in zip(kept, specs, strict=True):
        if shelf.current is None:
            new = ObjectMeta(name=next(names), owner_references=_owner(publisher))
            yield Create(ResourceSlice(metadata=new, spec=spec))
        elif shelf.current.spec != spec or not _is_owned(publisher, shelf.current):
            metadata = replace(shelf.current.metadata, owner_references=_owner(publisher))
            yield Change(ResourceSlice(metadata=metadata, spec=spec))
    useful = [one.current.metadata.name for one in kept if one.current]
    yield from (Delete(one) for one in current if one.metadata.name not in useful)


def _shelves(pool: Pool, current: list[ResourceSlice]) -> tuple[list[_Shelf], bool]:
    """Return the slices of a pool, the emptied ones too, and whether a device leaves its slice for another one."""
    # Since 1.35 a slice has devices or counters; one that has both is from before, and keeps its devices.
    with_counters = [one for one in current if one.spec.shared_counters and not one.spec.devices]
    with_devices = [one for one in current if one not in with_counters]
    counters, counters_moved = _homes(
        [[one.name for one in each.spec.shared_counters] for each in with_counters],
        [one.name for one in pool.counters],
        COUNTER_SETS_MAX,
    )
    devices, devices_moved = _homes(
        [[one.name for one in each.spec.devices] for each in with_devices],
        [one.name for one in pool.devices],
        # A device that is tainted or consumes counters halves what its slice may have. Any device may be tainted at
        # any time, and then none must move: so no slice ever has more.
        SLICE_DEVICES_MAX,
    )
    shelves = [*_beside(devices, with_devices), *_beside(counters, with_counters, counters=True)]
    return shelves, counters_moved or devices_moved


def _beside(
    homes: list[list[str]], current: list[ResourceSlice], *, counters: bool = False
) -> Iterator[_Shelf]:
    for index, names in enumerate(homes):
        yield _Shelf(tuple(names), current[index] if index < len(current) else None, counters)


def _homes(current: list[list[str]], wanted: list[str], room: int) -> tuple[list[list[str]], bool]:
    """Return which name is where, and whether one moves: what has a place keeps it, what is new takes what is free."""
    rest = dict.fromkeys(wanted)
    homes: list[list[str]] = []
    for names in current:
        kept = [name for name in dict.fromkeys(names) if name in rest][:room]
        homes.append(kept)
        for name in kept:
            del rest[name]
    listed = {name for names in current for name in names}
    moved = any(name in listed for name in rest)
    new = iter(rest)
    for home in homes:
        home.extend(islice(new, room - len(home)))
    while more := list(islice(new, room)):
        homes.append(more)
    return homes, moved


class _Filling:
    """Puts devices and counters into specs, in the spelling of the API server."""

    def __init__(self, publisher: Publisher, pool: Pool, current: list[ResourceSlice]) -> None:
        known = {device.name: device for one in current for device in one.spec.devices}
        self._publisher = publisher
        self._devices = {one.name: _settled(_device(one), known.get(one.name)) for one in pool.devices}
        self._counters = {one.name: _counter_set(one) for one in pool.counters}

    def spec(self, shelf: _Shelf, place: ResourcePool) -> ResourceSliceSpec:
        spec = ResourceSliceSpec(self._publisher.driver, place, node_name=self._publisher.node)
        if shelf.counters:
            return replace(spec, shared_counters=tuple(self._counters[name] for name in shelf.names))
        return replace(spec, devices=tuple(self._devices[name] for name in shelf.names))


def _owner(publisher: Publisher) -> tuple[OwnerReference, ...]:
    if not publisher.node_uid:
        return ()
    return (OwnerReference("v1", "Node", publisher.node, publisher.node_uid, controller=True),)


def _is_owned(publisher: Publisher, one: ResourceSlice) -> bool:
    owners = [owner.uid for owner in one.metadata.owner_references]
    return not publisher.node_uid or publisher.node_uid in owners


def _names(publisher: Publisher, pool: str, taken: list[str]) -> Iterator[str]:
    """Return names for new slices of a pool, without end; the scheduler looks at slices in the order of their names."""
    whose = f"{publisher.node}/{publisher.driver}/{pool}"
    digest = sha256(whose.encode()).hexdigest()[:DIGEST_LENGTH]
    stem = f"{publisher.node}-{publisher.driver.lower()}"[: NAME_MAX - DIGEST_LENGTH - 6].rstrip("-.")
    names = (f"{stem}-{digest}-{index:04x}" for index in count())
    return (name for name in names if name not in taken)


# --- differences that mean nothing


def _as_meant(one: ResourceSlice, echo: Echo | None) -> ResourceSlice:
    """Return a slice as its writer meant it: what the server is known to drop is not missing."""
    if echo is not None and one.spec == echo.stored:
        stored = {device.name: device for device in one.spec.devices}
        devices = tuple(_settled(device, stored.get(device.name)) for device in echo.meant.devices)
        return replace(one, spec=replace(echo.meant, devices=devices))
    spec = replace(
        one.spec,
        devices=tuple(_device(device) for device in one.spec.devices),
        shared_counters=tuple(_counter_set(each) for each in one.spec.shared_counters),
    )
    return replace(one, spec=spec)


def _settled(wanted: Device, known: Device | None) -> Device:
    """Return a device whose taints began when they began: the server gives one without a time the time of writing."""
    times = {(one.key, one.value, one.effect): one.time_added for one in (known.taints if known else ())}
    taints = tuple(
        one
        if one.time_added
        else replace(one, time_added=times.get((one.key, one.value, one.effect), one.time_added))
        for one in wanted.taints
    )
    return replace(wanted, taints=taints)


def _device(one: Device) -> Device:
    return replace(
        one,
        capacity={name: _capacity(each) for name, each in one.capacity.items()},
        consumes_counters=tuple(
            replace(each, counters=_counters(each.counters)) for each in one.consumes_counters
        ),
    )


def _capacity(one: DeviceCapacity) -> DeviceCapacity:
    policy = one.request_policy
    return DeviceCapacity(_amount(one.value), _policy(policy) if policy is not None else None)


def _policy(one: CapacityRequestPolicy) -> CapacityRequestPolicy:
    between = one.valid_range
    if between is not None:
        between = replace(
            between, min=_amount(between.min), max=_if_said(between.max), step=_if_said(between.step)
        )
    return CapacityRequestPolicy(
        _if_said(one.default), tuple(_amount(each) for each in one.valid_values), between
    )


def _counter_set(one: CounterSet) -> CounterSet:
    return replace(one, counters=_counters(one.counters))


def _counters(given: Mapping[str, Counter]) -> dict[str, Counter]:
    return {name: Counter(_amount(one.value)) for name, one in given.items()}


def _if_said(text: str | None) -> str | None:
    return _amount(text) if text is not None else None


def _amount(text: str) -> str:
    """Return an amount as the server spells it: 1024Mi is 1Gi."""
    try:
        return str(quantity.parse(text))
    except quantity.QuantityError:
        return text  # who writes it is told by the server


# --- words


def _policies(device: Device) -> bool:
    return any(one.request_policy is not None for one in device.capacity.values())


def _spelt(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(one.capitalize() for one in others)


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > len(names[:3]) else "")
