"""Inventory → slices: which devices are offered, and to which nodes.

Knows open, pinned and closed entries, devices and slots. Must not know who is allocated them: safety never rests
on a slice (rule 3 of the protocol), open, pinned and closed only save time.
"""

from collections.abc import Iterable
from itertools import islice
from typing import assert_never

import msgspec

from jackfield.core import naming, room
from jackfield.core.shelf import AsItIs, Closed, Offer, Open, Pinned, Shelf, recent_failures
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from jackfield.model.names import NEVER, DeviceID, FabricName, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.plan import Phase, Plan, PutSlice, SliceKey
from jackfield.model.policy import (
    FAILED,
    READY,
    RESCHEDULE,
    SLICE_DEVICES_MAX,
    DeviceModel,
    Policy,
)
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.view import (
    Delta,
    FactsChanged,
    InventoryChanged,
    ObjectChanged,
    SupplyChanged,
    View,
    failures,
)

WHOLE_POOL = -1
"""The index of a SliceKey that means the pool itself: which devices it has, and in which slice each is."""

CLOSED = NodeSelector(
    (NodeSelectorTerm((NodeSelectorRequirement("jackfield.dev/offered", "In", ("never",)),)),)
)
"""A selector that no node matches."""


def decide(view: View, key: SliceKey, policy: Policy, now: Seconds) -> Plan:
    """Return what must change in one slice, or in a pool as a whole."""
    inventory = view.inventory(key.fabric)
    if inventory is None:
        return Plan()
    if key.index == WHOLE_POOL:
        return _decide_pool(view, key, policy, now)
    name = naming.slice_name(key.driver, key.pool, key.index)
    current = next((one for one in view.slices(key.driver, key.pool) if one.metadata.name == name), None)
    if current is None:
        return Plan()
    entries = _entries(Shelf(view, policy, now), key, (entry.name for entry in current.spec.devices))
    again_at = _forgiven_at(view, key, policy, now, entries)
    if entries == current.spec.devices:
        return Plan(again_at=again_at)
    changed = [entry.name for entry in entries if entry not in current.spec.devices]
    spec = msgspec.structs.replace(current.spec, devices=entries)
    put = _put(msgspec.structs.replace(current, spec=spec), f"{_few(changed)} changed")
    return Plan((put,), again_at=again_at)


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[SliceKey, ...]:
    """Return the slices that a change is about."""
    match delta:
        case InventoryChanged(fabric=fabric, devices=devices):
            pools = tuple(SliceKey(fabric, *pool, WHOLE_POOL) for pool in _pools(fabric, policy))
            return tuple(dict.fromkeys((*pools, *_slices_with(view, policy, devices))))
        case SupplyChanged(fabric=fabric, model=name):
            model = policy.model(name)
            if model is None:
                return ()
            driver, pool = model.driver_name, naming.pool(fabric, model)
            indexes = [naming.slice_index(one.metadata.name) for one in view.slices(driver, pool)]
            inventory = view.inventory(fabric)
            # Where the manager chooses, a pool has as many slots as there are devices that somebody has, or may have.
            indexes += [WHOLE_POOL] if inventory is not None and inventory.traits.chooses_device else []
            return tuple(SliceKey(fabric, driver, pool, index) for index in indexes)
        case ObjectChanged(old=ResourceSlice() as gone, new=None):
            return _slice_keys(gone, policy, WHOLE_POOL)
        case ObjectChanged(old=ResourceSlice() | None as old, new=ResourceSlice() as new):
            return _written(policy, old, new)
        case ObjectChanged(old=old, new=new):
            touched = tuple(dict.fromkeys((*_devices(view, old), *_devices(view, new))))
            if not touched:
                return ()
            bearing = _slices_with(view, policy, (one for one in touched if _bears(view, policy, one, delta)))
            # A device that has vanished leaves its pool when the last to hold it lets go.
            vanished = (one for one in touched if room.vanished(view, one, policy))
            pools = _slices_with(view, policy, vanished)
            leaving = (msgspec.structs.replace(key, index=WHOLE_POOL) for key in pools)
            return tuple(dict.fromkeys((*leaving, *bearing)))
        case FactsChanged():
            return ()
        case _ as never:
            assert_never(never)


def _written(policy: Policy, old: ResourceSlice | None, new: ResourceSlice) -> tuple[SliceKey, ...]:
    """Return what to look at when a slice is heard of: that may be a write of ours which was given up long ago."""
    if old is not None and old.spec == new.spec:
        return ()
    whole = () if old is not None and _listed(old) == _listed(new) else (WHOLE_POOL,)
    return _slice_keys(new, policy, *whole, naming.slice_index(new.metadata.name))


def _listed(one: ResourceSlice) -> tuple[object, ...]:
    return (one.spec.pool, *(entry.name for entry in one.spec.devices))


def _forgiven_at(
    view: View, key: SliceKey, policy: Policy, now: Seconds, entries: tuple[Device, ...]
) -> Seconds:
    """When to look again: blame that runs out makes no event."""
    devices = (DeviceID(key.driver, key.pool, entry.name) for entry in entries)
    recent = (one for device in devices for one in recent_failures(view, device, policy, now))
    return min((Seconds(one.at + policy.blame_seconds) for one in recent), default=NEVER)


# --- a pool as a whole


def _decide_pool(view: View, key: SliceKey, policy: Policy, now: Seconds) -> Plan:
    """Find a slice for every device that has none; entries never move between slices."""
    inventory = view.inventory(key.fabric)
    assert inventory is not None
    shown = view.slices(key.driver, key.pool)
    # CoHDI's own slices of the pool are outlived: to a scheduler only the newest generation counts.
    current = tuple(one for one in shown if naming.slice_index(one.metadata.name) >= 0)
    members = _members(view, key, policy, inventory)
    listed = dict.fromkeys(entry.name for one in current for entry in one.spec.devices)
    gone = [one for one in listed if one not in members and not _held(view, key, one)]
    added = [one for one in members if one not in listed]
    generation = max((one.spec.pool.generation for one in shown), default=0)
    pool = ResourcePool(key.pool, generation, len(current))
    # Else somebody deleted a slice, or we were cut short.
    whole = all(one.spec.pool == pool for one in current)
    if not gone and not added and whole:
        return Plan()
    contents = _contents(current, gone, added)
    if not whole or len(contents) != len(current):
        pool = ResourcePool(key.pool, generation + 1, len(contents))
    numbers, because = _indexes(current, len(contents)), _pool_news(added, gone)
    puts = []
    for index, names in enumerate(contents):
        entries = _entries(Shelf(view, policy, now), key, names)
        old = current[index] if index < len(current) else None
        if old is None or old.spec.devices != entries or old.spec.pool != pool:
            puts.append(_put(_slice(key, numbers[index], pool, entries, old), because))
    return Plan(tuple(puts))


def _indexes(current: tuple[ResourceSlice, ...], count: int) -> list[int]:
    """Indexes for so many slices at least: those there are keep theirs, new ones get what is not used."""
    used = [naming.slice_index(one.metadata.name) for one in current]
    return used + [index for index in range(count) if index not in used]


def _pool_news(added: list[str], gone: list[str]) -> str:
    news = [f"{_few(names)} {verb}" for names, verb in ((added, "joined"), (gone, "left")) if names]
    return f"the pool changed: {', '.join(news) or 'a slice is missing'}"


def _contents(current: tuple[ResourceSlice, ...], gone: list[str], added: list[str]) -> list[list[str]]:
    left = dict.fromkeys(gone)
    contents = [[entry.name for entry in one.spec.devices if entry.name not in left] for one in current]
    rest = iter(added)
    for names in contents:
        names.extend(islice(rest, SLICE_DEVICES_MAX - len(names)))
    while more := list(islice(rest, SLICE_DEVICES_MAX)):
        contents.append(more)
    return contents


def _members(view: View, key: SliceKey, policy: Policy, inventory: Inventory) -> dict[str, None]:
    """The names that the pool should list, in the manager's order."""
    models = [
        one
        for one in policy.models
        if (one.driver_name, naming.pool(key.fabric, one)) == (key.driver, key.pool)
    ]
    if inventory.traits.chooses_device:
        return {name: None for model in models for name in _slots(view, key, model, inventory)}
    names = {one.cdi_model_name: one for one in models}
    return {
        naming.device(key.fabric, names[device.model], device.id).device: None
        for device in inventory.devices
        if device.model in names
    }


def _slots(view: View, key: SliceKey, model: DeviceModel, inventory: Inventory) -> list[str]:
    """Slots that somebody has, and as many more as the manager has devices that nobody has."""
    free = view.free(key.fabric, model.cdi_model_name)
    entries = (entry.name for one in view.slices(key.driver, key.pool) for entry in one.spec.devices)
    # Those that are listed come first, so that a pool of the same size stays as it is.
    listed = dict.fromkeys(one for one in entries if _is_slot(key, model, one))
    attached = sum(one.model == model.cdi_model_name for one in inventory.devices)
    # All that are free are among so many: what is not is either attached or spoken for, and both are counted.
    numbers = range(max(len(listed), attached + inventory.free.get(model.cdi_model_name, 0)))
    names = listed | {naming.slot(key.fabric, model, number).device: None for number in numbers}
    slots: list[str] = []
    for name in names:
        if _held(view, key, name):
            slots.append(name)
        elif free > 0:
            slots.append(name)
            free -= 1
    return slots


def _is_slot(key: SliceKey, model: DeviceModel, name: str) -> bool:
    """Whether it is the name of a slot of the model, and of no device in particular."""
    number = naming.slot_number(DeviceID(key.driver, key.pool, name))
    return name == naming.slot(key.fabric, model, number).device


def _held(view: View, key: SliceKey, name: str) -> bool:
    device = DeviceID(key.driver, key.pool, name)
    return bool(view.claims_holding(device)) or view.resource_of(device) is not None


def _slice(
    key: SliceKey, index: int, pool: ResourcePool, entries: tuple[Device, ...], old: ResourceSlice | None
) -> ResourceSlice:
    spec = ResourceSliceSpec(driver=key.driver, pool=pool, per_device_node_selection=True, devices=entries)
    name = naming.slice_name(key.driver, key.pool, index)
    return ResourceSlice(metadata=old.metadata if old else ObjectMeta(name=name), spec=spec)


# --- entries


def _entries(shelf: Shelf, key: SliceKey, names: Iterable[str]) -> tuple[Device, ...]:
    devices = (DeviceID(key.driver, key.pool, name) for name in names)
    return tuple(_entry(shelf.view, device, shelf.policy, shelf.offer(device)) for device in devices)


def _entry(view: View, device: DeviceID, policy: Policy, given: Offer) -> Device:
    if isinstance(given, AsItIs):
        known = _known(view, device)
        if known is not None:
            return known
        resource = view.resource_of(device)
        assert resource is not None
        given = Pinned(resource.node)
    model, fabric = naming.model_of(device, policy), naming.fabric_of(device, policy)
    resource = view.resource_of(device)
    # Open to all it is nowhere that one could count on; and it reads the same when it is back in the pool.
    online = resource is not None and resource.state is ResourceState.ONLINE
    attached = online and isinstance(given, Pinned)
    entry = Device(
        name=device.device,
        binds_to_node=True,
        binding_conditions=(READY,),
        binding_failure_conditions=(RESCHEDULE, FAILED),
    )
    if model is not None and fabric is not None:
        entry = msgspec.structs.replace(
            entry,
            attributes=_attributes(model, fabric, view.physical(device), attached=attached),
            capacity=_capacity(view.physical(device)),
        )
    match given:
        case Open(but=but):
            assert model is not None
            assert fabric is not None
            return msgspec.structs.replace(entry, node_selector=_with_room(model, fabric, policy, but))
        case Pinned(node=node):
            return msgspec.structs.replace(entry, node_name=node)
        case Closed():
            return msgspec.structs.replace(entry, node_selector=CLOSED)
        case _ as never:
            assert_never(never)


def _known(view: View, device: DeviceID) -> Device | None:
    listed = view.slice_with(device)
    entries = listed.spec.devices if listed is not None else ()
    return next((one for one in entries if one.name == device.device), None)


def _attributes(
    model: DeviceModel, fabric: FabricName, physical: FabricDevice | None, *, attached: bool
) -> dict[str, DeviceAttribute]:
    texts = {"fabric": fabric, "model": model.cdi_model_name, **model.dra_attributes}
    if physical is not None:
        texts |= {"switch": physical.switch, "serial": physical.serial, **physical.attributes}
    attributes = {
        name: DeviceAttribute(string=text)
        for name, text in texts.items()
        if text or name in model.dra_attributes
    }
    return attributes | ({"attached": DeviceAttribute(bool_=attached)} if model.binds else {})


def _capacity(physical: FabricDevice | None) -> dict[str, DeviceCapacity]:
    return {name: DeviceCapacity(value) for name, value in physical.capacity.items()} if physical else {}


def _with_room(
    model: DeviceModel, fabric: FabricName, policy: Policy, but: tuple[NodeName, ...]
) -> NodeSelector:
    return NodeSelector(
        (
            NodeSelectorTerm(
                (
                    NodeSelectorRequirement(policy.fabric_label(), "In", (fabric,)),
                    NodeSelectorRequirement(policy.room_label(model), "In", ("true",)),
                ),
                match_fields=tuple(NodeSelectorRequirement("metadata.name", "NotIn", (one,)) for one in but),
            ),
        )
    )


def _put(new: ResourceSlice, because: str) -> PutSlice:
    return PutSlice(phase=Phase.OFFERED, slice=new, because=because)


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return shown if len(names) <= len(names[:3]) else f"{shown} and {len(names) - 3} more"


# --- waking


def _pools(fabric: FabricName, policy: Policy) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys((one.driver_name, naming.pool(fabric, one)) for one in policy.models))


def _bears(view: View, policy: Policy, device: DeviceID, delta: ObjectChanged) -> bool:
    """Whether a change can alter a device's offer; most changes of a claim or a resource cannot.

    While devices are free none is moved on demand, and who holds one alters nothing: only what a resource is, and
    where, counts then, and that nobody holds it any more.
    """
    model, fabric = naming.model_of(device, policy), naming.fabric_of(device, policy)
    scarce = model is None or fabric is None or view.free(fabric, model.cdi_model_name) == 0
    match delta:
        case ObjectChanged(old=ComposabilityRequest() as old, new=new):
            # What ends with a request is closed in a moment by its own end.
            return scarce and isinstance(new, ComposabilityRequest) and old.scalers != new.scalers
        case _ if scarce:
            return True
        case ObjectChanged(old=ComposableResource() as old, new=ComposableResource() as new):
            return _standing(old) != _standing(new)
        case ObjectChanged(old=ResourceClaim()) | ObjectChanged(new=ResourceClaim()):
            return view.resource_of(device) is not None and not view.claims_holding(device)
        case _:
            return True


def _standing(resource: ComposableResource) -> tuple[object, ...]:
    failed, kept = bool(resource.status.error), bool(room.kept(resource))
    return (resource.state, resource.deleting, resource.uid, bool(resource.holder), failed, kept)


def _devices(view: View, one: object) -> tuple[DeviceID, ...]:
    """The devices whose offer an object bears on."""
    match one:
        case ResourceClaim():
            return tuple(result.id for result in one.results)
        case ComposableResource():
            return (one.device,) if one.device is not None else ()
        case ComposabilityRequest():  # only what the scaler asked for moves on demand
            return tuple(child.device for child in view.resources_of(one.metadata.name) if child.device)
        case Node():
            leaving = (each.device for each in view.resources_on(one.name) if not each.stands and each.device)
            return (*(failure.device for failure in failures(one)), *leaving)
        case _:
            return ()


def _slice_keys(one: ResourceSlice, policy: Policy, *indexes: int) -> tuple[SliceKey, ...]:
    """The keys of a slice that somebody deleted, or that is heard of for the first time; none for others' slices."""
    driver, pool = one.spec.driver, one.spec.pool.name
    devices = (DeviceID(driver, pool, f"{model.k8s_device_name}-") for model in policy.models)
    fabrics = (naming.fabric_of(device, policy) for device in devices)
    fabric = next((found for found in fabrics if found is not None), None) or naming.forsaken(one)
    return tuple(SliceKey(fabric, driver, pool, index) for index in indexes) if fabric is not None else ()


def _slices_with(view: View, policy: Policy, devices: Iterable[DeviceID]) -> tuple[SliceKey, ...]:
    keys: dict[SliceKey, None] = {}
    for device in devices:
        fabric = naming.fabric_of(device, policy)
        listed = view.slice_with(device)
        if fabric is not None:
            # What no slice lists yet, such as the slot of a device that was adopted, is the pool's business.
            index = naming.slice_index(listed.metadata.name) if listed is not None else WHOLE_POOL
            keys[SliceKey(fabric, device.driver, device.pool, index)] = None
    return tuple(keys)
