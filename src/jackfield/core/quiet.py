"""Orders to managers without ids, which attach twice when asked twice (rules 18 to 20).

*Quiet* means: for the time a call may take to have its effect, nothing was sent and nothing came or went, as an
inventory shows that was asked for when that time was over. Only then may a call be repeated, an order be given up, or a
resource whose device is gone be deleted. Knows the inventory. Must not know states other than the two it works in.
"""

import msgspec

from jackfield.core import evict
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Order
from jackfield.model.names import NEVER, FabricName, NodeName, OrderID, Seconds
from jackfield.model.plan import Adopt, Attach, Detach, MarkState, Phase, Plan, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import View


def attach(view: View, resource: ComposableResource, order: Order, policy: Policy, now: Seconds) -> Plan:
    """Fill the slot with a device of ours that stands there unclaimed; else send, or repeat when quiet."""
    adopted = _adopt(view, resource, order)
    if adopted is not None:
        return Plan((adopted,))
    verb, _ = resource.sent
    if not due(view, resource, order.fabric):
        booked = _booked(view, resource, order.fabric)
        what = booked or "the manager to attach it; it is asked again only when quiet"
        return Plan(waiting=(_wait(resource, what),), again_at=Seconds(now + policy.poll_seconds))
    send = Attach(
        phase=Phase.ATTACHING,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order if verb != "attach" else _anew(order, resource),
        mark_sent=True,
        ask=verb == "attach",
        because=f"{resource.node} should have it" if verb != "attach" else "all is quiet and nothing came",
    )
    return Plan((send,), again_at=Seconds(now + policy.poll_seconds))


def due(view: View, resource: ComposableResource, fabric: FabricName) -> bool:
    """Return whether an attach may be sent as far as earlier calls of its own go: it never was, or all is quiet.

    What it brought may be in the books of another node still: then it came, though nobody may take it yet.
    """
    if _booked(view, resource, fabric):
        return False
    return resource.sent[0] != "attach" or _quiet(view, resource, fabric)


def _booked(view: View, resource: ComposableResource, fabric: FabricName) -> str:
    """Return what a call that was sent waits for whose device stands there, booked where it was before; or nothing.

    A manager that chooses takes what it has just been given back. Its last resource goes only when quiet, as its
    detach may take effect once more, and until then the device is no other's (rule 20). But it came, and one is enough.
    """
    inventory = view.inventory(fabric)
    if resource.sent[0] != "attach" or inventory is None or not inventory.traits.chooses_device:
        return ""  # where one can choose, a device has one name, and so one resource
    standing = [one for one in view.attached(resource.node) if one.ours and one.model == resource.spec.model]
    books = [(one.id, view.resource_with(fabric, one.id)) for one in standing]
    leaving = [(one, last) for one, last in books if last is not None and _leaves(last, resource.node)]
    free = sum(last is None for _, last in books)  # is taken first
    sent = [one.metadata.name for one in _waiting(view, resource) if one.sent[0] == "attach"]
    if not leaving or sent.index(resource.metadata.name) >= len(leaving) + free:
        return ""
    device, last = leaving[0]
    return f"{device}, which stands on {resource.node}, to leave the books of {last.metadata.name}"


def _leaves(resource: ComposableResource, node: NodeName) -> bool:
    """Whether a resource is on its way out of another node."""
    return resource.node != node and resource.state in {ResourceState.DETACHING, ResourceState.DELETING}


def at_work(view: View, resource: ComposableResource, timeout: Seconds, now: Seconds) -> bool:
    """Return whether the manager may still be at the last call for a resource."""
    return now < resource.sent[1] + timeout and _unanswered(view, resource)


def _unanswered(view: View, resource: ComposableResource) -> bool:
    """Whether nothing is seen yet of what was last asked for."""
    device = resource.status.cdi_device_id
    if resource.state is ResourceState.ATTACHING:
        return not device and not resource.status.error
    return resource.sent[0] == "detach" and any(one.id == device for one in view.attached(resource.node))


def _anew(order: Order, resource: ComposableResource) -> Order:
    """Return the order under another id: what the first one brought may be another's by now, and is not meant."""
    return msgspec.structs.replace(order, id=OrderID(f"{order.id}/{resource.sent[1]:.6f}"))


def detach(view: View, resource: ComposableResource, order: Order, policy: Policy, now: Seconds) -> Plan:
    """Send, repeat when quiet, and let the resource go when its device is gone and all is quiet."""
    standing = [one for one in view.attached(resource.node) if one.id == resource.status.cdi_device_id]
    there = standing if not evict.is_over(view, resource) else []
    verb, _ = resource.sent
    quiet = _quiet(view, resource, order.fabric)
    if not there and (not resource.status.cdi_device_id or verb == "detach" or quiet):
        if verb and not quiet:
            return _until_quiet(view, resource, order, policy, now)
        gone = MarkState(
            phase=Phase.DETACHED,
            resource=resource.metadata.name,
            version=resource.metadata.resource_version,
            state=ResourceState.DELETING,
            because="its device is gone and all is quiet",
        )
        return Plan((gone,))
    if verb == "detach" and not quiet:
        again_at = Seconds(now + policy.poll_seconds)
        return Plan(waiting=(_wait(resource, "the manager to take it back"),), again_at=again_at)
    send = Detach(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order,
        mark_sent=True,
        because="released" if verb != "detach" else "all is quiet and it is still there",
    )
    return Plan((send,), again_at=Seconds(now + policy.poll_seconds))


def unsettled(
    view: View, resource: ComposableResource, order: Order, policy: Policy, now: Seconds
) -> Plan | None:
    """Return what must come before an attach is given up; None if it may be: it has its device, or none will come."""
    if resource.status.cdi_device_id:
        return None
    adopted = _adopt(view, resource, order)
    if adopted is not None:
        return Plan((adopted,))
    if resource.sent[0] != "attach" or _quiet(view, resource, order.fabric):
        return None
    return _until_quiet(view, resource, order, policy, now)


def _until_quiet(
    view: View, resource: ComposableResource, order: Order, policy: Policy, now: Seconds
) -> Plan:
    """Wait until the time is over, and then for an inventory that was asked for since."""
    quiet_at = _quiet_at(view, resource, order.fabric)
    again_at = quiet_at if now < quiet_at < NEVER else Seconds(now + policy.poll_seconds)
    return Plan(waiting=(_wait(resource, "the manager to be quiet about it"),), again_at=again_at)


def _adopt(view: View, resource: ComposableResource, order: Order) -> Adopt | None:
    """Take what stands on the node and belongs to nobody: the very device, or any where the manager chooses.

    Of several that wait the first by name takes the first: two never take the same.
    """
    inventory = view.inventory(order.fabric)
    if not order.device and (inventory is None or not inventory.traits.chooses_device):
        return None  # what was meant has vanished, and no other will do
    free = [one for one in _unclaimed(view, resource, order.fabric) if order.device in {"", one.id}]
    waiting = [one.metadata.name for one in _waiting(view, resource)]
    place = 0 if order.device else waiting.index(resource.metadata.name)
    if place >= len(free):
        return None
    return Adopt(
        phase=Phase.ATTACHING,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        device=free[place].id,
        serial=free[place].serial,
        because=f"{free[place].id} stands unclaimed on {resource.node}",
    )


def _waiting(view: View, resource: ComposableResource) -> tuple[ComposableResource, ...]:
    """Return who waits on the resource's node for any device of its model, by name."""
    return tuple(
        one
        for one in view.resources_on(resource.node)
        if one.spec.model == resource.spec.model
        and one.state is ResourceState.ATTACHING
        and not one.status.cdi_device_id
    )


def _unclaimed(view: View, resource: ComposableResource, fabric: FabricName) -> tuple[FabricDevice, ...]:
    """Return the devices of ours on the resource's node, of its model, that no resource has."""
    return tuple(
        one
        for one in view.attached(resource.node)
        if one.ours and one.model == resource.spec.model and view.resource_with(fabric, one.id) is None
    )


def _quiet(view: View, resource: ComposableResource, fabric: FabricName) -> bool:
    return view.asked(fabric) >= _quiet_at(view, resource, fabric)


def _quiet_at(view: View, resource: ComposableResource, fabric: FabricName) -> Seconds:
    """Return when a call's whole time will have passed since anything was last sent to the node, or came or went."""
    inventory, machine = view.inventory(fabric), view.machine(resource.node)
    if inventory is None:
        return NEVER  # whoever has not seen the inventory has not begun to count
    alike = (one for one in view.resources_on(resource.node) if one.spec.model == resource.spec.model)
    changed = machine.since if machine is not None else Seconds(float("-inf"))
    return Seconds(max(changed, *(_sent_at(view, one) for one in alike)) + inventory.traits.call_timeout)


def _sent_at(view: View, resource: ComposableResource) -> Seconds:
    """Return when a resource's last call was sent at the latest: every new leader counts anew, by its own clock."""
    verb, at = resource.sent
    under_way = verb and resource.state in {ResourceState.ATTACHING, ResourceState.DETACHING}
    return max(at, view.heard_at(resource)) if under_way else at


def _wait(resource: ComposableResource, what: str) -> Waiting:
    return Waiting(f"resource/{resource.metadata.name}", "Quiet", what)
