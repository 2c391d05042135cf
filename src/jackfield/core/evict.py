"""Devices that somebody else attached and that the policy names: put into the books, then detached like our own.

Nothing that is not ours is touched unless `detachForeign` names it, and then only by the way that everything goes: a
resource, the intent, nobody who uses it, the node that lets go, the manager. Knows what the policy names and what
stands in the way. Must not know how a device is detached.
"""

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice
from jackfield.model.meta import holds
from jackfield.model.names import NEVER, FabricName, Seconds
from jackfield.model.node import OPT_OUT
from jackfield.model.plan import FreeResource, MarkState, Phase, Plan, Waiting
from jackfield.model.policy import READY, Foreign, Policy
from jackfield.model.view import View


def named(view: View, fabric: FabricName, device: FabricDevice, policy: Policy) -> bool:
    """Return whether a device is somebody else's, on a node of ours, and named by the policy as one to detach."""
    node = view.node(device.node)
    if device.ours or node is None or node.metadata.labels.get(OPT_OUT) == "true":
        return False
    return any(_agrees(one, fabric, device) for one in policy.detach_foreign)


def _agrees(rule: Foreign, fabric: FabricName, device: FabricDevice) -> bool:
    """Whether a device is all that a rule names; one that names nothing but a fabric names no device."""
    if not (rule.device or rule.model or rule.node):
        return False
    pairs = (
        (rule.device, device.id),
        (rule.model, device.model),
        (rule.node, device.node),
        (rule.fabric, fabric),
    )
    return all(not wanted or wanted == found for wanted, found in pairs)


def decide(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    """Return the first step of a resource that was made for such a device: out of its node, if nobody uses it."""
    device, fabric = _there(view, resource), _fabric(resource, policy)
    if resource.deleting or (device is None and view.inventory(fabric) is not None):
        return _dropped(resource, f"{resource.foreign} is not on {resource.node} any more")
    if device is None:
        return _waiting(resource, "Silent", "the fabric manager to answer")
    if not named(view, fabric, device, policy):
        return _dropped(resource, f"the policy does not want {resource.foreign} off {resource.node} any more")
    if policy.paused or fabric in policy.fabrics_paused:
        return _waiting(resource, "Paused", "detaching to be resumed")
    users = _users(view, resource, device)
    if users:
        # A claim that knows it by its driver's name makes no news for us when it goes.
        again_at = Seconds(now + policy.inventory_seconds)
        return _waiting(resource, "Claimed", f"claim {users[0].key} to give it up", again_at)
    leave = MarkState(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        state=ResourceState.DETACHING,
        device=device.id,  # the node is asked by this id whether anybody holds it
        serial=device.serial,
        because=f"somebody else attached {device.id} to {resource.node}, and detachForeign names it",
    )
    return Plan((leave,))


def is_over(view: View, resource: ComposableResource) -> bool:
    """Return whether what was to leave has left, and an order of ours has brought the same device to the node since."""
    device = _there(view, resource) if resource.foreign else None
    return device is not None and device.ours


def _users(view: View, resource: ComposableResource, device: FabricDevice) -> tuple[ResourceClaim, ...]:
    """Return the claims whose pods may use the device: by its driver's name, or by ours if they were told Ready.

    One that was only allocated it does not keep it (rule 13): each would wait for the other.
    """
    assert resource.device is not None
    ready = (
        claim
        for claim in view.claims_holding(resource.device)
        if holds(claim.conditions(resource.device), READY)
    )
    names = view.published(device.serial) or view.unshown(resource.device.driver, resource.node)
    theirs = (claim for name in names for claim in view.claims_holding(name))
    return (*ready, *theirs)


def _there(view: View, resource: ComposableResource) -> FabricDevice | None:
    return next((one for one in view.attached(resource.node) if one.id == resource.foreign), None)


def _fabric(resource: ComposableResource, policy: Policy) -> FabricName:
    assert resource.device is not None
    fabric = naming.fabric_of(resource.device, policy)
    assert fabric is not None
    return fabric


def _dropped(resource: ComposableResource, because: str) -> Plan:
    """Take the resource out of the books: nothing was asked of anybody for it yet."""
    free = FreeResource(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because=because,
    )
    return Plan((free,))


def _waiting(resource: ComposableResource, reason: str, what: str, again_at: Seconds = NEVER) -> Plan:
    return Plan(waiting=(Waiting(f"resource/{resource.metadata.name}", reason, what),), again_at=again_at)
