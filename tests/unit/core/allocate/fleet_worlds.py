"""Random worlds of several nodes, small enough that nodes often look alike and devices often run out."""

from collections.abc import Sequence
from typing import Final

import msgspec
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import DeviceConstraint, DeviceRequest, DeviceToleration, ResourceClaim
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity, DeviceTaint
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    DRIVER,
    alternative,
    claim,
    consumes,
    counters,
    device,
    different,
    every,
    first_of,
    generation,
    node,
    request,
    same,
    selects,
    slice_,
    wants,
    where,
)

NODES: Final = ("n1", "n2", "n3", "n4", "n5")
MODEL: Final = f"device.attributes['{DRIVER}'].model"
SELECTORS: Final = (
    (),
    selects(f"{MODEL} == 'a'"),
    selects(f"{MODEL} == 'b'"),
    selects(f"'model' in device.attributes['{DRIVER}'] && {MODEL} == 'a'"),
    selects(f"device.capacity['{DRIVER}'].memory.compareTo(quantity('2Gi')) >= 0"),
)
TWO_TERMS: Final = NodeSelector((*where(zone="a").node_selector_terms, *where(zone="b").node_selector_terms))
UNREADABLE: Final = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Near", ("a",)),)),))
PLACES: Final = (where(zone="a"), where(zone="b"), where(rack="1"), TWO_TERMS)
FEATURES: Final = (
    allocate.Features(),
    allocate.Features(profile=allocate.Profile.V1_37),
    allocate.Features(consumable_capacity=False),
    allocate.Features(partitionable_devices=False),
    allocate.Features(device_taints=False, binding_conditions=False),
)
WAITING: Final[dict[str, object]] = {
    "binding_conditions": ("Ready",),
    "binding_failure_conditions": ("Failed",),
}


class Stage(msgspec.Struct):
    """A world of several nodes."""

    nodes: Sequence[Node]
    slices: Sequence[ResourceSlice]
    features: allocate.Features


KINDS: Final = ("plain",) * 8 + ("unique", "tainted", "noted", "shared", "waiting", "bound")


@st.composite
def single(draw: st.DrawFn, name: str, *, counted: bool = False) -> Device:
    """Return a device; now and then it lacks what selectors ask for, or is special in another way."""
    one = device(
        name,
        model=draw(st.sampled_from(("a", "a", "a", "b", "b", ""))),
        numa=draw(st.sampled_from((0, 1, 1, None))),
        memory=draw(st.sampled_from(("1Gi", "4Gi"))),
    )
    if counted:
        amount = draw(st.sampled_from(("", "1Gi", "2Gi")))
        one = replace(one, consumes_counters=consumes(amount) if amount else ())
    return _special(one, draw(st.sampled_from(KINDS)))


@st.composite
def devices(draw: st.DrawFn, *, counted: bool = False) -> tuple[Device, ...]:
    """Return up to four devices."""
    return tuple(draw(single(f"d{at}", counted=counted)) for at in range(draw(st.integers(0, 4))))


@st.composite
def alike(draw: st.DrawFn, listed: tuple[Device, ...], *, counted: bool) -> tuple[Device, ...]:
    """Return the same devices but for one thing about one of them."""
    if not listed:
        return listed
    at = draw(st.integers(0, len(listed) - 1))
    other = draw(single(listed[at].name, counted=counted))
    field = draw(
        st.sampled_from(
            ("attributes", "attributes", "capacity", "taints", "binds_to_node", "consumes_counters")
        )
    )
    changed = replace(listed[at], **{field: getattr(other, field)})
    return (*listed[:at], changed, *listed[at + 1 :])


def _special(one: Device, kind: str) -> Device:
    changes: dict[str, dict[str, object]] = {
        "plain": {},
        "unique": {"attributes": {**one.attributes, "uuid": DeviceAttribute(string=one.name)}},
        "tainted": {"taints": (DeviceTaint("broken", effect="NoSchedule"),)},
        "noted": {"taints": (DeviceTaint("broken", effect="None"),)},
        "shared": {"allow_multiple_allocations": True, "capacity": {"memory": DeviceCapacity("4Gi")}},
        "waiting": WAITING,
        "bound": {**WAITING, "binds_to_node": True},
    }
    return replace(one, **changes[kind])


@st.composite
def local_slices(draw: st.DrawFn, shapes: Sequence[tuple[Device, ...]], name: str) -> list[ResourceSlice]:
    """Return the slices of a node's own pool: one of few shapes, whole or not, in a pool of its own or a joint one."""
    listed = draw(st.sampled_from(shapes))
    pool = draw(st.sampled_from((name, name, name, f"z-{name}", "joint")))
    of = draw(st.sampled_from((1, 1, 1, 1, 2)))
    if any(one.consumes_counters for one in listed):
        both = draw(st.sampled_from((True, True, True, False)))
        parts = [
            slice_(listed, f"{name}-devices", pool, 2, node_name=name),
            slice_((), f"{name}-counters", pool, 2, node_name=name, shared_counters=counters("3Gi")),
        ]
        return parts if both else parts[:1]
    one = slice_(listed, f"{name}-{draw(st.sampled_from('xy'))}", pool, of, node_name=name)
    return [generation(draw(st.sampled_from((1, 1, 2))), one)]


@st.composite
def shared_slices(draw: st.DrawFn, number: int) -> list[ResourceSlice]:
    """Return a pool that several nodes may see."""
    name = draw(st.sampled_from(("fabric", "a-fabric", "joint")))
    kind = draw(st.sampled_from(("all", "some", "patched", "patched", "counted")))
    if kind == "all":
        return [slice_(draw(devices()), f"s{number}", f"{name}-{number}")]
    if kind == "some":
        place = draw(st.sampled_from((*PLACES, *PLACES, UNREADABLE)))
        return [
            slice_(draw(devices()), f"s{number}", name, draw(st.sampled_from((1, 2))), node_selector=place)
        ]
    if kind == "counted":
        listed = draw(devices(counted=True))
        return [
            slice_(listed, f"s{number}-devices", f"{name}-{number}", 2),
            slice_((), f"s{number}-counters", f"{name}-{number}", 2, shared_counters=counters("3Gi")),
        ]
    places: list[dict[str, object]] = [
        *[dict[str, object](node_name=one) for one in NODES[:3]],
        *[dict[str, object](node_selector=one) for one in (*PLACES, UNREADABLE)],
        {"all_nodes": True},
    ]
    listed = tuple(replace(one, **draw(st.sampled_from(places))) for one in draw(devices()))
    return [slice_(listed, f"s{number}", f"{name}-{number}", per_device_node_selection=True)]


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    """Return some nodes with few different labels."""
    chosen = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=5, unique=True))
    labels = st.sampled_from(({"zone": "a"}, {"zone": "a"}, {"zone": "b"}, {"rack": "1"}, {}))
    return [node(name, **draw(labels)) for name in chosen]


@st.composite
def offers(draw: st.DrawFn) -> list[ResourceSlice]:
    """Return slices for all nodes there may be."""
    counted = draw(st.integers(0, 3)) == 0
    base = draw(devices(counted=counted))
    shapes = [base, draw(alike(base, counted=counted)), draw(alike(base, counted=counted))]
    found: list[ResourceSlice] = []
    for name in NODES:
        if draw(st.integers(0, 5)):
            found += draw(local_slices(shapes, name))
    for number in range(draw(st.integers(0, 2))):
        found += draw(shared_slices(number))
    return found


@st.composite
def stages(draw: st.DrawFn) -> Stage:
    """Return a world."""
    features = draw(st.sampled_from((FEATURES[0], *FEATURES)))
    return Stage(draw(nodes()), draw(offers()), features)


@st.composite
def requests(draw: st.DrawFn, name: str) -> DeviceRequest:
    """Return a request of any kind; most are of the plainest."""
    fields: dict[str, object] = {"selectors": draw(st.sampled_from(SELECTORS))}
    kind = draw(st.sampled_from(("plain",) * 6 + ("every", "admin", "either", "amount", "tolerant")))
    count = draw(st.integers(1, 3))
    match kind:
        case "every":
            return every(name, **fields)
        case "admin":
            return request(name, count, admin_access=True, **fields)
        case "either":
            return first_of(alternative("x", count, **fields), alternative("y"), name=name)
        case "amount":
            return request(name, count, capacity=wants(draw(st.sampled_from(("1Gi", "3Gi")))), **fields)
        case "tolerant":
            return request(name, count, tolerations=(DeviceToleration("broken", "Exists"),), **fields)
        case _:
            return request(name, count, **fields)


@st.composite
def claims(draw: st.DrawFn, number: int) -> ResourceClaim:
    """Return a claim with one or two requests, and a constraint now and then."""
    wanted = [draw(requests(name)) for name in ("r", "s")[: draw(st.integers(1, 2))]]
    rules: tuple[tuple[DeviceConstraint, ...], ...] = ((), (), (same("numa"),), (different("model"),))
    return claim(*wanted, name=f"c{number}", constraints=draw(st.sampled_from(rules)))
