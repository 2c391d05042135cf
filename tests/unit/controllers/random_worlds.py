"""Random worlds: what may be heard in any order, and everything that can be asked of a store.

Knows the words of the builders and the View's questions. Must not know any right answer.
"""

import random
from collections.abc import Iterable

from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import FINALIZER, ResourceState
from jackfield.model.device import Device
from jackfield.model.fabric import Inventory, Traits
from jackfield.model.host import Facts, Seen
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import DeviceID, FabricName, Key, ModelName, NodeName, PhysicalID, Uid, Version
from jackfield.model.node import NODE_GROUP
from jackfield.model.policy import FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.view import Delta
from jackfield.testing.builders import (
    NOW,
    claim,
    device,
    heartbeat,
    inventory,
    model,
    node,
    pod,
    policy,
    request,
    resource,
    showing,
    vendor_slice,
)

POLICY = policy(model("A100", spares=1), model("H100", driver="gpu.example.com"), "L40")
RACK, HALL = FabricName("rack-a"), FabricName("hall")
NODES = tuple(NodeName(one) for one in ("n1", "n2", "n3"))
CLAIMS = ("a", "b", "c")
UUIDS = ("GPU-1", "GPU-2")
PHYSICAL = tuple(PhysicalID(one) for one in ("1", "2", "3", "4"))
DEVICES = (
    device("a100-1"),
    device("a100-2"),
    device("l40-0", fabric=HALL),
    device("l40-1", fabric=HALL),
    device("gpu.example.com/h100-fabricrack-a/h100-3"),
    device("gpu.example.com/h100-fabricrack-a/h100-4"),
)
VENDORS = tuple(device(f"gpu.example.com/{on}/{name}") for on in NODES for name in ("gpu-0", "gpu-1"))
POOLS = tuple(dict.fromkeys((one.driver, one.pool) for one in (*DEVICES, *VENDORS)))
OWN_POOLS = tuple(
    dict.fromkeys(
        (fabric, one.driver_name, naming.pool(fabric, one))
        for fabric in (RACK, HALL)
        for one in POLICY.models
    )
)
"""The pools that are ours to publish, by fabric."""

_MODELS = {"a100": "A100", "h100": "H100", "l40": "L40"}
_nodes = st.sampled_from(NODES)
_times = st.sampled_from([NOW - 2000, NOW - 700, NOW - 300, NOW - 20, NOW])


def model_of(name: DeviceID) -> ModelName:
    return ModelName(_MODELS[name.device.partition("-")[0]])


# --- what may be heard

claims = st.builds(
    claim,
    st.sampled_from(CLAIMS),
    devices=st.lists(st.sampled_from(DEVICES + VENDORS), max_size=2, unique=True),
    on=st.sampled_from([*NODES, ""]),
    uid=st.sampled_from(["u-1", "u-2"]),
    told=st.sampled_from(["", READY, RESCHEDULE, FAILED]),
    admin=st.sampled_from([False, False, True]),
    allocated=_times,
    waits=st.sampled_from([(READY,), (READY,), ()]),
    reserved=st.sampled_from([(), ("p",)]),
)


@st.composite
def resources(draw: st.DrawFn) -> Object:
    of = draw(st.sampled_from(DEVICES))
    seen = Condition("Visible", "True", last_transition_time=heartbeat(at=draw(_times)).spec.renew_time)
    return resource(
        of,
        on=draw(_nodes),
        model=model_of(of),
        state=draw(st.sampled_from(list(ResourceState))),
        record=draw(st.none() | claims),
        holder=draw(st.sampled_from(["", "", "u-1"])),
        uuid=draw(st.sampled_from(["", *UUIDS])),
        physical=draw(st.sampled_from(["", *PHYSICAL])),
        used=draw(_times),
        conditions=draw(st.sampled_from([(), (seen,)])),
        finalizers=(FINALIZER,),
    )


@st.composite
def requests(draw: st.DrawFn) -> Object:
    on = draw(_nodes)
    if draw(st.booleans()):
        return request(draw(st.integers(0, 2)), on=on, of=draw(st.sampled_from(["A100", "L40"])))
    wanted = draw(
        st.dictionaries(st.sampled_from(DEVICES).map(str), st.sampled_from(["", *CLAIMS]), max_size=2)
    )
    return request(wanted, on=on, of=draw(st.sampled_from(["A100", "H100", "L40"])))


nodes = st.builds(
    node,
    _nodes,
    cordoned=st.booleans(),
    failures=st.dictionaries(st.sampled_from(DEVICES).map(str), _times, max_size=2),
    labels=st.sampled_from([{}, {NODE_GROUP: "big"}, {"cohdi.io/a100-size-min": "1"}]),
)
pods = st.builds(
    pod,
    st.sampled_from(["p", "q"]),
    st.sampled_from(CLAIMS),
    on=st.sampled_from(["", *NODES]),
    phase=st.sampled_from(["Pending", "Running", "Succeeded"]),
)
heartbeats = st.builds(heartbeat, _nodes, _times)
vendor_slices = st.builds(
    vendor_slice, st.sampled_from(UUIDS), on=_nodes, name=st.sampled_from(["gpu-0", "gpu-1"])
)


@st.composite
def own_slices(draw: st.DrawFn) -> Object:
    _, driver, pool = draw(st.sampled_from(OWN_POOLS))
    listed = draw(st.lists(st.sampled_from(DEVICES), max_size=3, unique=True))
    entries = tuple(
        Device(one.device, binding_conditions=(READY,))
        for one in listed
        if (one.driver, one.pool) == (driver, pool)
    )
    name = naming.slice_name(driver, pool, draw(st.integers(0, 1)))
    spec = ResourceSliceSpec(driver, ResourcePool(pool, 1, draw(st.integers(1, 2))), devices=entries)
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=spec)


objects = st.one_of(claims, resources(), requests(), nodes, pods, heartbeats, vendor_slices, own_slices())


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    on = st.sampled_from(["", *NODES])
    machines = draw(st.lists(_nodes, unique=True, max_size=3))
    attached = {str(one): draw(on) for one in PHYSICAL}
    if draw(st.booleans()):
        traits = Traits(chooses_device=True, knows_orders=False)
        placed = {one: where for one, where in attached.items() if where}
        return inventory(
            HALL, models={"L40": draw(st.integers(0, 3))}, machines=machines, traits=traits, attached=placed
        )
    shown = inventory(RACK, models={"A100": 2, "H100": 2}, machines=machines, attached=attached)
    sick = [replace(one, healthy=False) for one in shown.devices if draw(st.integers(0, 5)) == 0]
    fewer = replace(shown, devices=shown.devices[: draw(st.integers(2, 4))])
    return showing(fewer, *sick)


facts = st.tuples(_nodes, st.builds(Facts, st.sampled_from([(), (Seen(PHYSICAL[0], "GPU-1"),)])))

Step = Object | Inventory | tuple[NodeName, Facts] | None
"""Something that is heard; None: one of the objects known is gone."""

step = st.one_of(objects, objects, objects, inventories(), facts, st.none())
steps = st.lists(step, max_size=20)


# --- hearing it


def versioned(one: Object, version: int) -> Object:
    return replace(one, metadata=replace(one.metadata, resource_version=Version(str(version))))


def known(store: Store) -> tuple[Object, ...]:
    return tuple(one for kind in store.kinds() for one in store.all(kind))


def tell(store: Store, step: Step, version: int) -> tuple[Delta, ...]:
    """Tell the store one thing more."""
    match step:
        case Inventory():
            return store.see(step)
        case Object():
            return store.put(versioned(step, version))
        case (on, seen):
            return store.sense(on, seen)
        case None:
            there = known(store)
            return store.remove(versioned(there[version % len(there)], version)) if there else ()


def hear(told: Iterable[Step], by: Policy = POLICY) -> Store:
    """Return a store that heard it all, one after the other."""
    store = Store(by)
    for version, step in enumerate(told, start=1):
        tell(store, step, version)
    return store


def asked_again(store: Store) -> Store:
    """Have every manager say the same again: whether its word is current depends on what came last, not on what is."""
    for fabric in store.fabrics():
        shown = store.inventory(fabric)
        assert shown is not None
        store.ask(fabric, NOW)
        store.see(shown)
    return store


def rebuilt(store: Store, chance: random.Random) -> Store:
    """Return a store that heard only how things are in the end, in any order."""
    there: list[Object | Inventory] = list(known(store))
    there += [shown for one in store.fabrics() if (shown := store.inventory(one)) is not None]
    chance.shuffle(there)
    again = Store(POLICY)
    for one in there:
        if isinstance(one, Inventory):
            again.see(one)
        else:
            again.put(one)
    for on in NODES:
        seen = store.facts(on)
        if seen is not None:
            again.sense(on, seen)
    return again


# --- asking


def answers(store: Store) -> dict[str, object]:
    """Return all that the store answers."""
    said: dict[str, object] = {
        "fabrics": store.fabrics(),
        "nodes": store.nodes(),
        "pods_unschedulable": store.pods_unschedulable(),
        "group": store.nodes_in_group("big"),
    }
    for fabric in (RACK, HALL):
        said |= _of_fabric(store, fabric)
    for on in (*NODES, NodeName("")):
        said |= _of_node(store, on)
    for name in (*DEVICES, *VENDORS):
        said |= _of_device(store, name)
    for each in CLAIMS:
        key = Key("default", each)
        said[f"{each} claim"] = store.claim(key)
        said[f"{each} pods"] = store.pods_using(key)
        said[f"{each} recording"] = store.resources_recording(key)
    for uid in ("u-1", "u-2"):
        said[f"{uid} held by"] = store.resources_held_by(Uid(uid))
    said["claims in"] = store.claims_in("default")
    said["recorded in"] = store.resources_recorded_in("default")
    for driver, pool in POOLS:
        said[f"{driver}/{pool} slices"] = store.slices(driver, pool)
    for uuid in ("", *UUIDS):
        said[f"{uuid} published"] = store.published(uuid)
    return said


def _of_fabric(store: Store, fabric: FabricName) -> dict[str, object]:
    said: dict[str, object] = {
        f"{fabric} inventory": store.inventory(fabric),
        f"{fabric} congested": store.congested(fabric),
        f"{fabric} attach": store.attach_seconds(fabric),
        f"{fabric} under way": store.under_way(fabric),
        f"{fabric} nodes": store.nodes_of(fabric),
        f"{fabric} ahead": [
            store.ahead(fabric, one) for one in store.all(ResourceClaim) if isinstance(one, ResourceClaim)
        ],
    }
    for one in POLICY.models:
        kind = one.cdi_model_name
        said[f"{fabric} {kind} free"] = store.free(fabric, kind)
        said[f"{fabric} {kind} free devices"] = store.free_devices(fabric, kind, 9)
        said[f"{fabric} {kind} idle"] = store.idle(fabric, kind)
        said[f"{fabric} {kind} handing over"] = store.handing_over(fabric, kind)
        said[f"{kind} requests"] = store.requests_by_hand(kind)
    for physical in PHYSICAL:
        said[f"{fabric} {physical} resource"] = store.resource_with(fabric, physical)
    return said


def _of_node(store: Store, on: NodeName) -> dict[str, object]:
    return {
        f"{on} node": store.node(on),
        f"{on} unshown": store.unshown("gpu.example.com", on),
        f"{on} fabric": store.fabric_of(on),
        f"{on} machine": store.machine(on),
        f"{on} attached": store.attached(on),
        f"{on} heartbeat": store.heartbeat(on),
        f"{on} failures": store.failures_on(on),
        f"{on} facts": store.facts(on),
        f"{on} claims": store.claims_on(on),
        f"{on} pods": store.pods_on(on),
        f"{on} requests": store.requests_on(on),
        f"{on} resources": store.resources_on(on),
        f"{on} children": tuple(
            store.resources_of(f"jackfield-{one.k8s_device_name}-{on}") for one in POLICY.models
        ),
        f"{on} scaler's": tuple(
            store.request(f"jackfield-{one.k8s_device_name}-{on}") for one in POLICY.models
        ),
    }


def _of_device(store: Store, name: DeviceID) -> dict[str, object]:
    return {
        f"{name} physical": store.physical(name),
        f"{name} failures": store.failures_of(name),
        f"{name} slice": store.slice_with(name),
        f"{name} claims": store.claims_holding(name),
        f"{name} requests": store.requests_wanting(name),
        f"{name} resource": store.resource_of(name),
        f"{name} behind": store.resource_behind(name),
        f"{name} by name": store.resource(f"{name.device}.rack-a") or store.resource(f"{name.device}.hall"),
    }
