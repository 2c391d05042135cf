"""Where the devices of a request go that names none: nodes by its policy, devices by what is free.

Knows `samenode`, `differentnode`, `roundrobin`, `target_node` and `other_spec`, and which device goes first when a
request shrinks. Must not know claims beyond the fact that a device is in use.
"""

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
from jackfield.model.names import DeviceID, FabricName, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import View

SLOTS_SEARCHED_MAX = 4096
"""How many numbers are tried for a free slot."""

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
        return f"the policy has no model {wish.model!r}; add it to device-info or correct spec.resource.model"
    if wish.type != model.type:
        return f"{wish.model} is of type {model.type!r}, not {wish.type!r}"
    if wish.allocation_policy is AllocationPolicy.DIFFERENTNODE and wish.target_node:
        return "allocation_policy differentnode and target_node contradict each other; remove one"
    for older in site.view.requests_for(wish.model):
        if older.key == site.request.key:
            break
        if not older.scalers and _same_wish(older, site.request):
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
    nodes = _eligible(site, model)
    chosen: list[Place] = []
    on = [one.node for one in children]
    for _ in range(count):
        place = _next_place(site, model, nodes, on, [device for device, _ in chosen])
        if place is None:
            break
        chosen.append(place)
        on.append(place[1])
    if len(chosen) == count:
        return tuple(chosen), ""
    return tuple(chosen), _shortage(site, model, nodes, count - len(chosen))


def _shortage(site: Site, model: DeviceModel, nodes: tuple[NodeName, ...], missing: int) -> str:
    target = site.request.spec.resource.target_node
    if target and not nodes:
        return room.refusal(site.view, target, model, site.policy, site.now) or f"room on {target}"
    if not nodes:
        return f"a node that can take {model.cdi_model_name} and has what other_spec asks for"
    return f"{missing} more of {model.cdi_model_name} to be free, on a node with room"


def _eligible(site: Site, model: DeviceModel) -> tuple[NodeName, ...]:
    wish = site.request.spec.resource
    if wish.target_node:
        candidates: tuple[NodeName, ...] = (wish.target_node,)
    else:
        candidates = tuple(node for one in site.view.fabrics() for node in site.view.nodes_of(one))
    return tuple(node for node in candidates if _may_take(site, model, node))


def _may_take(site: Site, model: DeviceModel, node: NodeName) -> bool:
    found = site.view.node(node)
    wish = site.request.spec.resource
    if found is None or not found.ready or found.spec.unschedulable:
        return False
    if wish.other_spec is not None and not _has(found, wish.other_spec):
        return False
    models = tuple(dict.fromkeys(one.spec.model for one in room.present(site.view, node)))
    if room.coexistence(model, models, site.policy):
        return False
    return not room.refusal(site.view, node, model, site.policy, site.now)


def _next_place(
    site: Site, model: DeviceModel, nodes: tuple[NodeName, ...], on: list[NodeName], taken: list[DeviceID]
) -> Place | None:
    """One device more: on the node that the policy prefers and that has room, with a device that is free."""
    for node in _preferred(site, nodes, on):
        if _space(site, model, node, on) <= 0:
            continue
        fabric = site.view.fabric_of(node)
        device = _free(site, fabric, model, taken) if fabric is not None else None
        if device is not None:
            return device, node
    return None


def _preferred(site: Site, nodes: tuple[NodeName, ...], on: list[NodeName]) -> list[NodeName]:
    policy = site.request.spec.resource.allocation_policy
    match policy:
        case AllocationPolicy.SAMENODE if on:
            return [node for node in nodes if node == on[0]]
        case AllocationPolicy.SAMENODE:
            return sorted(nodes, key=lambda node: (len(room.present(site.view, node)), node))
        case AllocationPolicy.DIFFERENTNODE:
            return sorted(
                (node for node in nodes if node not in on),
                key=lambda node: (len(room.present(site.view, node)), node),
            )
        case AllocationPolicy.ROUNDROBIN:
            return sorted(nodes, key=lambda node: (on.count(node), len(room.present(site.view, node)), node))


def _space(site: Site, model: DeviceModel, node: NodeName, on: list[NodeName]) -> int:
    machine = site.view.machine(node)
    if machine is None:
        return 0
    there = room.present(site.view, node)
    mine = {one.metadata.name for one in site.view.resources_of(site.request.metadata.name)}
    others = sum(one.metadata.name not in mine for one in there)
    alike = sum(one.spec.model == model.cdi_model_name and one.metadata.name not in mine for one in there)
    most = room.limits(site.view, node, model, site.policy).most
    return min(machine.slots - others, most - alike) - on.count(node)


def _free(site: Site, fabric: FabricName, model: DeviceModel, taken: list[DeviceID]) -> DeviceID | None:
    inventory = site.view.inventory(fabric)
    if inventory is None or site.view.free(fabric, model.cdi_model_name) <= len(taken):
        return None
    if not inventory.traits.chooses_device:
        free = site.view.free_devices(fabric, model.cdi_model_name, len(taken) + 1)
        return next((one for one in free if one not in taken), None)
    listed = (naming.slot(fabric, model, number) for number in range(SLOTS_SEARCHED_MAX))
    return next((one for one in listed if one not in taken and _unowned(site.view, one)), None)


def _unowned(view: View, slot: DeviceID) -> bool:
    return view.resource_of(slot) is None and not view.claims_holding(slot)


def _has(node: Node, other: OtherSpec) -> bool:
    """Whether the node can give what else is asked for, by what it may allocate."""
    allocatable = node.status.allocatable
    return (
        quantity.milli(allocatable.get("cpu", "0")) >= other.milli_cpu
        and quantity.as_int(allocatable.get("memory", "0")) >= other.memory
        and quantity.as_int(allocatable.get("ephemeral-storage", "0")) >= other.ephemeral_storage
        and quantity.as_int(allocatable.get("pods", "0")) >= other.allowed_pod_number
    )
