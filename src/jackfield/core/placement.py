"""Where the devices of a request go that names none: nodes by its policy, devices by what is free.

Knows `samenode`, `differentnode`, `roundrobin`, `target_node` and `other_spec`, and which device goes first when a
request shrinks. Must not know claims beyond the fact that a device is in use.
"""

import itertools
from typing import assert_never

import msgspec

from jackfield.core import naming, room
from jackfield.model import quantity
from jackfield.model.composition import (
    DELETE_DEVICE,
    AllocationPolicy,
    ComposabilityRequest,
    ComposableResource,
    OtherSpec,
    ResourceState,
)
from jackfield.model.names import NEVER, DeviceID, FabricName, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import View

SLOTS_SEARCHED_MAX = 4096
"""How many numbers are tried for a free slot."""
DEVICE_FAILURES_MAX = 2
"""A device that failed on so many nodes is to blame itself."""

Place = tuple[DeviceID, NodeName]


class Site(msgspec.Struct, frozen=True):
    """A request at a moment."""

    view: View
    request: ComposabilityRequest
    policy: Policy
    now: Seconds


def invalid(site: Site) -> str:
    """Return what is wrong with a request, alone or beside an older one; empty if nothing is."""
    wish = site.request.spec.resource
    model = site.policy.model(wish.model)
    if model is None:
        return f"the policy has no model {wish.model!r}; add it to the policy's models, or correct spec.resource.model"
    if wish.type != model.type:
        return f"{wish.model} is of type {model.type!r}, not {wish.type!r}"
    if wish.allocation_policy is AllocationPolicy.DIFFERENTNODE and wish.target_node:
        return "allocation_policy differentnode and target_node contradict each other; remove one"
    alike = site.view.requests_by_hand(wish.model)
    for older in itertools.takewhile(lambda one: one.key != site.request.key, alike):
        if _same_wish(older, site.request):
            return f"{older.metadata.name} is older and asks for the same; resize that one or delete it"
    return ""


def _same_wish(older: ComposabilityRequest, younger: ComposabilityRequest) -> bool:
    one, two = older.spec.resource, younger.spec.resource
    return (one.type, one.model, one.allocation_policy, one.target_node) == (
        two.type,
        two.model,
        two.allocation_policy,
        two.target_node,
    )


def kept(site: Site, children: tuple[ComposableResource, ...]) -> tuple[ComposableResource, ...]:
    """Return the resources that still fit the request's words."""
    wish = site.request.spec.resource
    fitting: list[ComposableResource] = []
    for child in sorted(children, key=lambda one: (one.metadata.creation_timestamp, one.metadata.name)):
        node = site.view.node(child.node)
        if (child.spec.type, child.spec.model) != (wish.type, wish.model) or node is None:
            continue
        if wish.target_node and child.node != wish.target_node:
            continue
        if wish.other_spec is not None and not _has(node, wish.other_spec):
            continue
        if _fits_policy(wish.allocation_policy, child, fitting):
            fitting.append(child)
    return tuple(fitting)


def _fits_policy(
    policy: AllocationPolicy, child: ComposableResource, fitting: list[ComposableResource]
) -> bool:
    match policy:
        case AllocationPolicy.SAMENODE:
            return all(child.node == one.node for one in fitting)
        case AllocationPolicy.DIFFERENTNODE:
            return all(child.node != one.node for one in fitting)
        case AllocationPolicy.ROUNDROBIN:
            return True
        case _ as never:
            assert_never(never)


def victims(
    view: View, children: tuple[ComposableResource, ...], count: int
) -> tuple[ComposableResource, ...]:
    """Return which resources go first: never attached, marked, attaching, idle longest; what is in use last."""

    def rank(one: ComposableResource) -> tuple[int, Seconds, str]:
        attached = bool(one.status.cdi_device_id)
        if room.holders(view, one) or one.record is not None or one.holder:
            order = 4
        elif not attached:
            order = 0
        elif DELETE_DEVICE in one.metadata.annotations:
            order = 1
        else:
            order = 2 if one.state is ResourceState.ATTACHING else 3
        return (order, one.last_used, one.metadata.name)

    return tuple(sorted(children, key=rank)[:count])


def places(site: Site, children: tuple[ComposableResource, ...], count: int) -> tuple[tuple[Place, ...], str]:
    """Return devices and nodes for so many more, and why there are fewer if there are."""
    model = site.policy.model(site.request.spec.resource.model)
    assert model is not None
    nodes = tuple(node for node in _candidates(site) if not _obstacle(site, model, node))
    chosen: list[Place] = []
    on = [one.node for one in children]
    while len(chosen) < count:
        stage = Stage(model, nodes, tuple(on), tuple(device for device, _ in chosen), count - len(chosen))
        place = _next_place(site, stage)
        if place is None:
            return tuple(chosen), _shortage(site, model, nodes, count - len(chosen))
        chosen.append(place)
        on.append(place[1])
    return tuple(chosen), ""


def again_at(site: Site) -> Seconds:
    """Return when the next blame runs out among the nodes that the request may use: that makes no event."""
    failures = (one for node in _candidates(site) for one in site.view.failures_on(node))
    ends = (one.at + site.policy.blame_seconds for one in failures)
    return Seconds(min((end for end in ends if end > site.now), default=NEVER))


class Stage(msgspec.Struct, frozen=True):
    """How far the search for places has come."""

    model: DeviceModel
    nodes: tuple[NodeName, ...]
    on: tuple[NodeName, ...]
    """The nodes of what the request has, once for each device."""
    taken: tuple[DeviceID, ...]
    missing: int


def _shortage(site: Site, model: DeviceModel, nodes: tuple[NodeName, ...], missing: int) -> str:
    target = site.request.spec.resource.target_node
    if target and not nodes:
        return _obstacle(site, model, target)
    if not nodes:
        return f"a node that can take {model.cdi_model_name} and has what other_spec asks for"
    return f"{missing} more of {model.cdi_model_name} to be free, on a node with room"


def _candidates(site: Site) -> tuple[NodeName, ...]:
    target = site.request.spec.resource.target_node
    if target:
        return (target,)
    return tuple(node for fabric in site.view.fabrics() for node in site.view.nodes_of(fabric))


def _obstacle(site: Site, model: DeviceModel, node: NodeName) -> str:
    """Return why the node takes no device of the model; empty if it does, while there is room."""
    refusal = room.refusal(site.view, node, model, site.policy, site.now)
    found = site.view.node(node)
    if refusal or found is None:
        return refusal
    if not found.ready:
        return f"node {node} to be ready"
    if found.spec.unschedulable:
        return f"node {node} to be uncordoned"
    other = site.request.spec.resource.other_spec
    if other is not None and not _has(found, other):
        return f"{node} to have what other_spec asks for"
    models = tuple(dict.fromkeys(one.spec.model for one in room.present(site.view, node)))
    clash = room.coexistence(model, models, site.policy)
    return f"{clash} to leave {node}, which it cannot share with {model.cdi_model_name}" if clash else ""


def _next_place(site: Site, stage: Stage) -> Place | None:
    """One device more: on the node that the policy prefers and that has room, with a device that is free."""
    for node in _preferred(site, stage):
        free = _free(site, stage, node) if _space(site, stage, node) > 0 else ()
        if free:
            return free[0], node
    return None


def _preferred(site: Site, stage: Stage) -> list[NodeName]:
    """The nodes in the order in which they are tried; those with the fewest devices first, all else being equal."""

    def load(node: NodeName) -> tuple[int, NodeName]:
        return len(_others(site, node)), node

    def short(node: NodeName) -> int:
        free = site.view.free(_fabric(site, node), stage.model.cdi_model_name)
        return max(0, stage.missing - min(_space(site, stage, node), free))

    match site.request.spec.resource.allocation_policy:
        case AllocationPolicy.SAMENODE if stage.on:
            return [node for node in stage.nodes if node == stage.on[0]]
        case AllocationPolicy.SAMENODE:  # all of them will stand where the first one does
            return sorted(stage.nodes, key=lambda node: (short(node), *load(node)))
        case AllocationPolicy.DIFFERENTNODE:
            return sorted((node for node in stage.nodes if node not in stage.on), key=load)
        case AllocationPolicy.ROUNDROBIN:
            return sorted(stage.nodes, key=lambda node: (stage.on.count(node), *load(node)))
        case _ as never:
            assert_never(never)


def _others(site: Site, node: NodeName) -> tuple[ComposableResource, ...]:
    """Return what the node has for others."""
    name = site.request.metadata.name
    return tuple(one for one in room.present(site.view, node) if one.request != name)


def _fabric(site: Site, node: NodeName) -> FabricName:
    fabric = site.view.fabric_of(node)
    assert fabric is not None  # else there would be an obstacle
    return fabric


def _space(site: Site, stage: Stage, node: NodeName) -> int:
    """Return how many more the node can take, beside what others have on it."""
    machine = site.view.machine(node)
    assert machine is not None  # else there would be an obstacle
    others = _others(site, node)
    alike = sum(one.spec.model == stage.model.cdi_model_name for one in others)
    foreign = sum(not one.ours for one in site.view.attached(node))
    most = room.limits(site.view, node, stage.model, site.policy).most
    return min(machine.slots - len(others) - foreign, most - alike) - stage.on.count(node)


def _free(site: Site, stage: Stage, node: NodeName) -> tuple[DeviceID, ...]:
    """Return devices that nobody has and the node may try, as many as are missing at most.

    Those first that older requests leave: were all to try the same, all but one would try in vain, again and again.
    """
    view, fabric = site.view, _fabric(site, node)
    inventory = view.inventory(fabric)
    assert inventory is not None  # it shows the node
    count = view.free(fabric, stage.model.cdi_model_name)
    if inventory.traits.chooses_device:
        pool = naming.pool(fabric, stage.model)
        count -= sum(one.pool == pool for one in stage.taken)
        slots = (naming.slot(fabric, stage.model, number) for number in range(SLOTS_SEARCHED_MAX))
        listed = (one for one in slots if view.resource_of(one) is None and not view.claims_holding(one))
    else:
        listed = (one for one in view.free_devices(fabric, stage.model.cdi_model_name, count))
    untaken = tuple(itertools.islice((one for one in listed if one not in stage.taken), max(0, count)))
    first = _wanted_before(site) % len(untaken) if untaken else 0
    fit = (one for one in (*untaken[first:], *untaken[:first]) if not _blamed(site, one, node))
    return tuple(itertools.islice(fit, stage.missing))


def _wanted_before(site: Site) -> int:
    """Return how many devices older requests that are not met yet may want of those that are free."""
    alike = site.view.requests_by_hand(site.request.spec.resource.model)
    older = itertools.takewhile(lambda one: one.key != site.request.key, alike)
    return sum(_lacks(site.view, one) for one in older if one.unmet)


def _lacks(view: View, request: ComposabilityRequest) -> int:
    has = sum(one.stands for one in view.resources_of(request.metadata.name))
    return max(0, request.spec.resource.size - has)


def _blamed(site: Site, device: DeviceID, node: NodeName) -> bool:
    """Whether the device failed lately, on this node or on so many that it is to blame itself."""
    since = site.now - site.policy.blame_seconds
    nodes = [one.node for one in site.view.failures_of(device) if one.at > since]
    return node in nodes or len(nodes) >= DEVICE_FAILURES_MAX


def _has(node: Node, other: OtherSpec) -> bool:
    """Whether the node can give what else is asked for, by what it may allocate."""
    allocatable = node.status.allocatable
    return (
        quantity.milli(allocatable.get("cpu", "0")) >= other.milli_cpu
        and quantity.as_int(allocatable.get("memory", "0")) >= other.memory
        and quantity.as_int(allocatable.get("ephemeral-storage", "0")) >= other.ephemeral_storage
        and quantity.as_int(allocatable.get("pods", "0")) >= other.allowed_pod_number
    )
