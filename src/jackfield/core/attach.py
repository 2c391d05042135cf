"""A resource's next step: attach, wait, come online, let go, detach, give up.

Knows the states of rule 2 and the orders of rules 5, 13, 15 and 16; orders to managers without ids are in
`quiet`. Must not know which manager it is.
"""

from jackfield.core import naming, quiet, room
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    FINALIZER,
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.fabric import Order
from jackfield.model.meta import holds
from jackfield.model.names import FabricName, Key, NodeName, PhysicalID, Seconds, seconds
from jackfield.model.node import Node
from jackfield.model.plan import (
    AnyAction,
    Attach,
    Blame,
    Detach,
    FreeResource,
    MarkState,
    Phase,
    Plan,
    Waiting,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View


def decide(view: View, name: str, policy: Policy, now: Seconds) -> Plan:
    """Return the next step of one resource."""
    resource = view.resource(name)
    if resource is None or resource.device is None or naming.fabric_of(resource.device, policy) is None:
        return Plan()  # gone, or somebody else's
    match resource.state:
        case ResourceState.NEW:
            return _begin(resource)
        case ResourceState.ATTACHING:
            return _attach(view, resource, policy, now)
        case ResourceState.ONLINE:
            return _stay(view, resource)
        case ResourceState.DETACHING:
            return _detach(view, resource, policy, now)
        case ResourceState.DELETING:
            return Plan((_free(resource, "its order is closed and nothing of it is attached"),))


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the resources that a change is about."""
    del policy
    names: dict[str, None] = {}
    match delta:
        case InventoryChanged(nodes=nodes):
            names |= {one.metadata.name: None for node in nodes for one in view.resources_on(node)}
        case ObjectChanged(old=old, new=new):
            for one in (old, new):
                names |= dict.fromkeys(_resources(view, one))
        case _:
            pass
    return tuple(names)


def _resources(view: View, one: object) -> tuple[str, ...]:
    match one:
        case ComposableResource():
            return (one.metadata.name,)
        case ResourceClaim():
            found = (view.resource_of(result.id) for result in one.results)
            recording = view.resources_recording(one.key)
            return tuple(each.metadata.name for each in (*found, *recording) if each is not None)
        case Node():
            return tuple(each.metadata.name for each in view.resources_on(one.name))
        case Pod() if one.spec.node_name and view.node(one.spec.node_name) is None:
            return tuple(each.metadata.name for each in view.resources_on(one.spec.node_name))
        case ResourceSlice() if one.spec.node_name:
            return tuple(each.metadata.name for each in view.resources_on(one.spec.node_name))
        case _:
            return ()


def order(resource: ComposableResource, policy: Policy, view: View) -> Order:
    """Return the order of a resource; the same resource always gives the same order."""
    assert resource.device is not None
    fabric = naming.fabric_of(resource.device, policy)
    assert fabric is not None
    physical = view.physical(resource.device)
    chosen = resource.status.cdi_device_id or (physical.id if physical is not None else PhysicalID(""))
    return Order(
        id=resource.order,
        fabric=fabric,
        node=resource.node,
        model=resource.spec.model,
        device=chosen,
        type=resource.spec.type,
        force=resource.spec.force_detach,
    )


# --- the states


def _begin(resource: ComposableResource) -> Plan:
    if resource.deleting:
        return Plan((_free(resource, "nothing was ordered for it yet"),))
    return Plan(
        (
            _mark(
                resource,
                ResourceState.ATTACHING,
                Phase.ATTACHING,
                "the intent is written before the fabric hears",
            ),
        )
    )


def _attach(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    reason = _give_up(view, resource, policy, now)
    if reason:
        return _withdraw(view, resource, policy, now, reason)
    if resource.status.cdi_device_id:
        return _come_online(view, resource, policy)
    if policy.paused or _fabric(resource, policy) in policy.fabrics_paused:
        return Plan(waiting=(_wait(resource, "Paused", "attaching to be resumed"),))
    inventory = view.inventory(_fabric(resource, policy))
    if inventory is None:
        return Plan(waiting=(_wait(resource, "Silent", "the fabric manager to answer"),))
    if not inventory.traits.knows_orders:
        return quiet.attach(view, resource, order(resource, policy, view), policy, now)
    attach = Attach(
        phase=Phase.ATTACHING,
        claim=_claim(view, resource),
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order(resource, policy, view),
        because=f"{resource.node} should have it",
    )
    return Plan(
        (attach,), (_wait(resource, "Attaching", "the fabric manager to attach it"),), _soon(policy, now)
    )


def _give_up(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> str:
    """Return why an attach is given up; empty if it goes on."""
    if resource.status.error:
        return f"the attach failed: {resource.status.error}"
    if resource.deleting:
        return "nobody wants it any more"
    if view.node(resource.node) is None:
        return f"node {resource.node} is gone"
    if now >= _deadline(resource, policy):
        return f"it did not come within {policy.attach_deadline_seconds:.0f} s"
    return ""


def _withdraw(view: View, resource: ComposableResource, policy: Policy, now: Seconds, reason: str) -> Plan:
    if (
        resource.record is not None or resource.holder
    ):  # rule 13; cannot be while attaching, but is not ours to assume
        return Plan(waiting=(_wait(resource, "Recorded", "its claim to be forgotten"),))
    inventory = view.inventory(_fabric(resource, policy))
    if inventory is not None and not inventory.traits.knows_orders:
        again = quiet.may_give_up(view, resource, inventory.fabric, now)
        if again > now:
            return Plan(
                waiting=(_wait(resource, "Quiet", "the manager to be quiet about it"),), again_at=again
            )
    actions: list[AnyAction] = []
    blamed = resource.status.error or now >= _deadline(resource, policy)
    if blamed and resource.device is not None and not _blamed(view, resource):
        blame = Blame(
            phase=Phase.ATTACHING, node=resource.node, device=resource.device, at=now, because=reason
        )
        actions.append(blame)
    actions.append(_mark(resource, ResourceState.DETACHING, Phase.DETACHED, reason))
    return Plan(tuple(actions))


def _blamed(view: View, resource: ComposableResource) -> bool:
    since = seconds(resource.metadata.creation_timestamp)
    return any(one.device == resource.device and one.at >= since for one in view.failures_on(resource.node))


def _come_online(view: View, resource: ComposableResource, policy: Policy) -> Plan:
    """Online needs Visible on this very object (rule 6); in `reschedule` the vendor's driver is the eye."""
    model = policy.model(resource.spec.model)
    by_plugin = holds(resource.status.conditions, VISIBLE)
    by_driver = model is not None and not model.binds and bool(view.published(resource.status.device_id))
    if by_plugin or by_driver:
        return Plan((_mark(resource, ResourceState.ONLINE, Phase.ONLINE, f"{resource.node} sees it"),))
    waiting = _wait(resource, "Visible", f"{resource.node} to see {resource.status.cdi_device_id}")
    return Plan(waiting=(waiting,), again_at=_deadline(resource, policy))


def _stay(view: View, resource: ComposableResource) -> Plan:
    if not resource.deleting:
        return Plan()
    if not resource.spec.force_detach:
        if resource.record is not None or resource.holder:
            return Plan(waiting=(_wait(resource, "Recorded", "its claim to be forgotten"),))
        holders = room.holders(view, resource)
        if holders:
            return Plan(waiting=(_wait(resource, "Claimed", f"claim {holders[0].key} to give it up"),))
    reason = "force_detach was asked for" if resource.spec.force_detach else "nobody holds it"
    return Plan((_mark(resource, ResourceState.DETACHING, Phase.DETACHED, reason),))


def _detach(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    waiting = _not_released(view, resource, policy)
    if waiting:
        return Plan(waiting=(_wait(resource, "Released", waiting),))
    inventory = view.inventory(_fabric(resource, policy))
    if inventory is None:
        return Plan(waiting=(_wait(resource, "Silent", "the fabric manager to answer"),))
    if policy.paused or _fabric(resource, policy) in policy.fabrics_paused:
        return Plan(waiting=(_wait(resource, "Paused", "detaching to be resumed"),))
    if not inventory.traits.knows_orders:
        return quiet.detach(view, resource, order(resource, policy, view), policy, now)
    detach = Detach(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order(resource, policy, view),
        because="released; its order is to be closed",
    )
    return Plan(
        (detach,), (_wait(resource, "Detaching", "the fabric manager to take it back"),), _soon(policy, now)
    )


def _not_released(view: View, resource: ComposableResource, policy: Policy) -> str:
    """Return who has not let go yet; empty when the fabric may be asked."""
    if holds(resource.status.conditions, RELEASED) or _node_gone(view, resource.node):
        return ""
    model = policy.model(resource.spec.model)
    if model is not None and not model.binds:
        users = [
            one for name in view.published(resource.status.device_id) for one in view.claims_holding(name)
        ]
        return f"claim {users[0].key} to give it up" if users and not resource.spec.force_detach else ""
    return f"the plugin on {resource.node} to release it"


def _node_gone(view: View, node: NodeName) -> bool:
    return view.node(node) is None and not view.pods_on(node)


# --- small things


def _deadline(resource: ComposableResource, policy: Policy) -> Seconds:
    return Seconds(seconds(resource.metadata.creation_timestamp) + policy.attach_deadline_seconds)


def _soon(policy: Policy, now: Seconds) -> Seconds:
    return Seconds(now + policy.poll_seconds)


def _fabric(resource: ComposableResource, policy: Policy) -> FabricName:
    assert resource.device is not None
    fabric = naming.fabric_of(resource.device, policy)
    assert fabric is not None
    return fabric


def _claim(view: View, resource: ComposableResource) -> Key:
    assert resource.device is not None
    claims = view.claims_holding(resource.device)
    return claims[0].key if claims else Key("", "")


def _mark(resource: ComposableResource, state: ResourceState, phase: Phase, because: str) -> MarkState:
    return MarkState(
        phase=phase,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        state=state,
        because=because,
    )


def _free(resource: ComposableResource, because: str) -> FreeResource:
    assert FINALIZER in resource.metadata.finalizers
    return FreeResource(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because=because,
    )


def _wait(resource: ComposableResource, reason: str, what: str) -> Waiting:
    return Waiting(f"resource/{resource.metadata.name}", reason, what)
