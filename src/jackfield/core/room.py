"""Room on a node: how many more devices it can take, and of which models.

Knows limits, coexistence, blame and the plugin's heartbeat. Must not know who is served with the room.
"""

import msgspec

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import RELEASED, ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Machine
from jackfield.model.lease import Lease
from jackfield.model.meta import condition
from jackfield.model.names import LONG_AGO, DeviceID, FabricName, ModelName, NodeName, Seconds, seconds
from jackfield.model.node import HEARTBEATS, OPT_OUT, Node
from jackfield.model.plan import LabelNode, Phase, Plan
from jackfield.model.policy import DRIVER, READY, DeviceModel, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Delta, Failure, InventoryChanged, ObjectChanged, View

NODE_FAILURES_MAX = 2
"""A node on which so many devices failed is to blame itself."""

_LEAVING = (ResourceState.DETACHING, ResourceState.DELETING)


class Limits(msgspec.Struct, frozen=True, gc=False):
    """How many devices of a model a node may have."""

    least: int
    most: int


def decide(view: View, node: NodeName, policy: Policy, now: Seconds) -> Plan:
    """Return the labels that make a node eligible for open entries, where they are not what they should be."""
    found = view.node(node)
    if found is None:
        return Plan()
    if _unheard(view, found, policy):
        return Plan(again_at=Seconds(now + policy.inventory_seconds))
    wanted = _labels(view, found, policy, now)
    changed = {key: value for key, value in wanted.items() if found.metadata.labels.get(key) != value}
    again_at = _silent_at(view, node, policy, now)
    if not changed:
        return Plan(again_at=again_at)
    because = ", ".join(f"{key}={value or 'none'}" for key, value in sorted(changed.items()))
    label = LabelNode(phase=Phase.OFFERED, node=node, labels=changed, because=f"room changed: {because}")
    return Plan((label,), again_at=again_at)


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[NodeName, ...]:
    """Return the nodes whose room a change is about."""
    match delta:
        case InventoryChanged(nodes=nodes):
            return nodes
        case ObjectChanged(old=Lease() as old, new=Lease() as new):
            # A plugin that keeps living is no news; one that falls silent makes no event but a time to look again.
            silent = seconds(old.spec.renew_time) + policy.heartbeat_seconds
            return _nodes_of(view, new) if seconds(new.spec.renew_time) > silent else ()
        case ObjectChanged(old=old, new=new):
            names = dict.fromkeys((*_nodes_of(view, old), *_nodes_of(view, new)))
            return tuple(name for name in names if name) if names else ()
        case _:
            return ()


def refusal(view: View, node: NodeName, model: DeviceModel, policy: Policy, now: Seconds) -> str:
    """Return why no device of the model may be attached to the node at all; empty if one may."""
    found = view.node(node)
    if found is None:
        return f"node {node} does not exist"
    if found.deleting:
        return f"node {node} is being deleted"
    if found.metadata.labels.get(OPT_OUT) == "true":
        return f"node {node} has opted out by the label {OPT_OUT}"
    if view.machine(node) is None:
        return f"node {node} is not a machine of any fabric"
    if model.binds and now >= view.heartbeat(node) + policy.heartbeat_seconds:
        return f"the plugin on {node} has given no sign of life for {policy.heartbeat_seconds:.0f} s"
    if len(_failed(view, node, policy, now)) >= NODE_FAILURES_MAX:
        return f"several devices failed on {node} lately"
    return ""


def limits(view: View, node: NodeName, model: DeviceModel, policy: Policy) -> Limits:
    """Return how many devices of a model the node may have, by its labels or the policy."""
    found = view.node(node)
    labels = found.metadata.labels if found else {}
    label = policy.room_label(model)
    least, most = labels.get(f"{label}-size-min", ""), labels.get(f"{label}-size-max", "")
    return Limits(
        int(least) if least.isdecimal() else policy.per_node_min,
        int(most) if most.isdecimal() else policy.per_node_max,
    )


def coexistence(model: DeviceModel, others: tuple[ModelName, ...], policy: Policy) -> str:
    """Return the model among the others that this one cannot stand beside; empty if there is none."""
    for name in others:
        other = policy.model(name)
        if other is None or other.index == model.index:
            continue
        if other.index in model.cannot_coexist_with or model.index in other.cannot_coexist_with:
            return name
    return ""


def present(view: View, node: NodeName) -> tuple[ComposableResource, ...]:
    """Return the resources that take room on the node and are there to stay."""
    return tuple(one for one in view.resources_on(node) if one.stands)


def strangers(view: View, node: NodeName) -> int:
    """Return how many devices take room on the node though no resource there says so: others', or lost by another node.

    A device of ours in nobody's books is none: it fills the next slot that is asked for, or is returned.
    """
    here = [(one, _resource_with(view, node, one)) for one in view.attached(node)]
    return sum(not one.ours if resource is None else resource.node != node for one, resource in here)


def booked(view: View, node: NodeName, device: FabricDevice) -> bool:
    """Return whether a resource for this very node has the device; one for another node has lost it."""
    resource = _resource_with(view, node, device)
    return resource is not None and resource.node == node


def _resource_with(view: View, node: NodeName, device: FabricDevice) -> ComposableResource | None:
    fabric = view.fabric_of(node)
    return view.resource_with(fabric, device.id) if fabric is not None else None


def failures(view: View, device: DeviceID, claim: ResourceClaim) -> tuple[Failure, ...]:
    """Return how often a device failed on the claim's node since the claim was given it."""
    found = view.failures_on(claim.node)
    return tuple(one for one in found if one.device == device and one.at >= claim.given_at)


def vanished(view: View, device: DeviceID, policy: Policy) -> bool:
    """Return whether the device's manager shows what it has, and this is not among it any more.

    Where the manager chooses, a name stands for no device in particular; and of a model that has left the policy no
    device has a name.
    """
    fabric = naming.fabric_of(device, policy)
    inventory = view.inventory(fabric) if fabric is not None else None
    if inventory is None or inventory.traits.chooses_device or naming.model_of(device, policy) is None:
        return False
    return view.physical(device) is None


def gone_at(view: View, resource: ComposableResource, policy: Policy) -> Seconds:
    """Return when a resource's device counts as gone, unless it is shown again before; NEVER while all is well.

    A manager that forgets half of what it has for a minute must not make us give up half of what we have.
    """
    return Seconds(view.missing_since(resource) + policy.missing_seconds)


def kept(resource: ComposableResource) -> str:
    """Return who on its node does not let go of a device that is to leave; empty if nobody is known to keep it."""
    told = condition(resource.status.conditions, RELEASED)
    leaving = resource.deleting or resource.state in _LEAVING
    return told.message if leaving and told is not None and not told.true else ""


def busy(view: View, resource: ComposableResource) -> bool:
    """Return whether a resource must stay: recorded, held, claimed, or asked for by somebody else."""
    return lent(view, resource) or bool(holders(view, resource))


def lent(view: View, resource: ComposableResource) -> bool:
    """Return whether somebody has a resource, whoever else may have been given its device: recorded, held, or asked."""
    if resource.record is not None or resource.holder:
        return True
    request = view.request(resource.request)
    return request is not None and not request.scalers


def node_gone(view: View, node: NodeName) -> bool:
    """A deleted node with no pod bound to it stands for an empty holder and `Released` (rule 16); NotReady does not."""
    return view.node(node) is None and not view.pods_on(node)


def holders(view: View, resource: ComposableResource) -> tuple[ResourceClaim, ...]:
    """Return the claims that hold the resource's device, under our name for it or the vendor's."""
    names = names_of(view, resource)
    found = {claim.key: claim for name in names for claim in view.claims_holding(name)}
    return tuple(claim for claim in found.values() if claim.node in {resource.node, NodeName("")})


def names_of(view: View, resource: ComposableResource) -> tuple[DeviceID, ...]:
    """Return all names under which a claim may hold the resource's device.

    From a vendor's driver nobody has anything on a node that is gone (rule 16): a claim that a scheduler has left
    there, given and reserved for nobody, stays so for as long as no pod comes for it.
    """
    ours = (resource.device,) if resource.device is not None else ()
    return (*ours, *(() if node_gone(view, resource.node) else drivers_names(view, resource)))


def full(view: View, resource: ComposableResource, machine: Machine, fabric: FabricName) -> bool:
    """Return whether what leaves the node has not left yet: its manager would refuse, and the node would be blamed."""
    there = view.attached(machine.node)
    nobodys = [one for one in there if one.ours and view.resource_with(fabric, one.id) is None]
    if any(one.order in {"", resource.order} for one in nobodys):
        return False  # it may be what was ordered, though nobody has said so yet
    ahead = [one for one in waiting(view, machine.node) if one < resource.metadata.name]
    # An order that was given up under way may have its slot until it is closed.
    ahead += waiting(view, machine.node, ResourceState.DETACHING)
    return max(len(there), len(there) - len(nobodys) + len(ahead)) >= machine.slots


def waiting(view: View, node: NodeName, state: ResourceState = ResourceState.ATTACHING) -> tuple[str, ...]:
    """Return the resources in a state for which no device is known yet."""
    return tuple(
        one.metadata.name
        for one in view.resources_on(node)
        if one.state is state and not one.status.cdi_device_id
    )


def awaiting(view: View, resource: ComposableResource) -> tuple[str, ...]:
    """Return who on its node may wait for what becomes of a resource: for its room, or to know whose a device is.

    What an order brought that was given up unanswered may be any device that a vendor's driver shows and that is in
    nobody's books.
    """
    beside = waiting(view, resource.node) if resource.state in _LEAVING else ()
    vendors = resource.device is not None and resource.device.driver != DRIVER
    return (*beside, *(waiting(view, resource.node, ResourceState.DETACHING) if vendors else ()))


def drivers_names(view: View, resource: ComposableResource) -> tuple[DeviceID, ...]:
    """Return the names under which claims may have the device from another driver, which publishes it on its node.

    A kubelet that starts, or that has missed the driver for a while, deletes the driver's slices, while pods go on
    using what was in them. Then any device may be meant that a claim has there and that nobody shows.
    """
    names = offered(view, resource)
    if resource.device is None or names:
        return names
    return view.unshown(resource.device.driver, resource.node)


def shown(view: View, resource: ComposableResource) -> bool:
    """Return whether a driver on the resource's own node publishes its device."""
    return bool(offered(view, resource))


def offered(view: View, resource: ComposableResource) -> tuple[DeviceID, ...]:
    """Return the names under which drivers on the resource's own node publish its device.

    Until its driver looks again, the node that it came from may still publish it. Who is given it there has nothing:
    nobody waits for him, as nobody would hear of his end either.
    """
    found = ((name, view.slice_with(name)) for name in view.published(resource.status.device_id))
    return tuple(name for name, one in found if one is not None and one.spec.node_name == resource.node)


# --- inside


def _unheard(view: View, node: Node, policy: Policy) -> bool:
    """Whether the manager of the fabric that a node is labelled with has shown nothing yet: its labels may be right."""
    label = FabricName(node.metadata.labels.get(policy.fabric_label(), ""))
    return bool(label) and view.fabric_of(node.name) is None and view.inventory(label) is None


def _labels(view: View, node: Node, policy: Policy, now: Seconds) -> dict[str, str | None]:
    fabric = view.fabric_of(node.name)
    labels: dict[str, str | None] = {policy.fabric_label(): fabric}
    taken = tuple(one.spec.model for one in view.resources_on(node.name) if _takes_room(view, one))
    taken += _waiting(view, node.name, policy)
    machine = view.machine(node.name)
    full = machine is not None and len(taken) + strangers(view, node.name) >= machine.slots
    for model in policy.models:
        room = (
            not full
            and taken.count(model.cdi_model_name) < limits(view, node.name, model, policy).most
            and not coexistence(model, tuple(dict.fromkeys(taken)), policy)
            and not refusal(view, node.name, model, policy, now)
        )
        labels[policy.room_label(model)] = "true" if room else None
    return labels


def _takes_room(view: View, resource: ComposableResource) -> bool:
    """Whether others cannot have a resource's room: it is to stay, or is to go and does not, as somebody has it.

    Whoever was given what leaves waits until it has left, and has its room then.
    """
    if resource.stands:
        return busy(view, resource)
    stays = resource.state not in _LEAVING and not resource.withdrawn
    return stays or bool(holders(view, resource))


def _waiting(view: View, node: NodeName, policy: Policy) -> tuple[ModelName, ...]:
    """The models of devices that are allocated to the node and have no resource there yet."""
    results = (result for claim in view.claims_on(node) for result in claim.results)
    waited_for = (one.id for one in results if READY in one.binding_conditions and not one.admin_access)
    resources = ((device, view.resource_of(device)) for device in dict.fromkeys(waited_for))
    models = (naming.model_of(device, policy) for device, one in resources if one is None or one.node != node)
    return tuple(model.cdi_model_name for model in models if model is not None)


def _failed(view: View, node: NodeName, policy: Policy, now: Seconds) -> tuple[DeviceID, ...]:
    since = now - policy.blame_seconds
    return tuple(dict.fromkeys(one.device for one in view.failures_on(node) if one.at > since))


def _silent_at(view: View, node: NodeName, policy: Policy, now: Seconds) -> Seconds:
    """When to look again: a plugin that falls silent makes no event, nor does blame that runs out.

    Nor does one that only seemed silent, because its signs of life reached us late (see `wakes`).
    """
    silent_at = Seconds(view.heartbeat(node) + policy.heartbeat_seconds)
    times = [silent_at if now < silent_at or silent_at == LONG_AGO else now + policy.heartbeat_seconds]
    times += [failure.at + policy.blame_seconds for failure in view.failures_on(node)]
    return Seconds(min((one for one in times if one > now), default=float("inf")))


def _nodes_of(view: View, one: object) -> tuple[NodeName, ...]:
    match one:
        case Node():
            return (one.name,)
        case ComposableResource():
            return (one.node,)
        case ComposabilityRequest():
            return (one.spec.resource.target_node,)
        case ResourceClaim():
            resources = (view.resource_of(result.id) for result in one.results)
            return (one.node, *(resource.node for resource in resources if resource is not None))
        case Lease() if one.metadata.namespace == HEARTBEATS:
            return (NodeName(one.metadata.name),)
        case ResourceSlice():  # who uses a vendor's device is known by the name that its driver publishes
            return (one.spec.node_name,)
        case _:
            return ()
