"""Devices of ours that stand on a node and are in nobody's books (rule 21).

Left by an order that took effect after it was given up, or by a store restored from a backup. They get a resource,
and are then used or returned like any idle device. What is not ours gets one only if the policy wants it off. Knows
the inventory. Must not know what becomes of them.
"""

from jackfield.core import evict, lead, naming
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    FOREIGN,
    MANAGED_BY,
    ORDER,
    ComposableResource,
    ComposableResourceSpec,
    ResourceState,
)
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, NodeName, Seconds
from jackfield.model.plan import Phase, Plan, PutResource
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import View

SLOTS_SEARCHED_MAX = 4096


def adopt(view: View, node: NodeName, policy: Policy, now: Seconds) -> Plan:
    """Return a resource for each device on the node that no resource has or waits for, and that is ours or to go."""
    fabric, machine = lead.home(view, node), view.machine(node)
    inventory = view.inventory(fabric) if fabric is not None else None
    if fabric is None or inventory is None:
        return Plan()
    puts, again_at = [], Seconds(float("inf"))
    taken: list[DeviceID] = []
    for device in view.attached(node):
        model = policy.model(device.model)
        # What others have on a machine that no manager lists cannot be taken from it.
        wanted = device.ours or (machine is not None and evict.named(view, fabric, device, policy))
        if not wanted or model is None or view.resource_with(fabric, device.id) is not None:
            continue
        request = view.request(naming.request(node, model))
        if _waited_for(view, node, device) or (request is not None and request.deleting):
            continue  # what is made for a request that goes would go with it, and be made again
        if not view.current(fabric):  # what was detached a moment ago may still be shown
            again_at = min(again_at, Seconds(now + policy.poll_seconds))
            continue
        settled_at = settles(inventory, machine, device)
        if now < settled_at:
            again_at = min(again_at, settled_at)
            continue
        name = _name(view, inventory, model, device, taken)
        if name is None:
            continue
        failed_until = _forgiven_at(view, node, name, device.since, policy)
        forgiven_at = max(failed_until, _doubted_until(view, node, device, policy))
        if now < forgiven_at:
            again_at = min(again_at, forgiven_at)
            continue
        taken.append(name)
        puts.append(_resource(name, node, model, device, policy))
    return Plan(tuple(puts), again_at=again_at)


def _forgiven_at(view: View, node: NodeName, name: DeviceID, since: Seconds, policy: Policy) -> Seconds:
    """Until when a device is left alone that was taken into the books before, and turned out not to be there.

    A manager that shows an old listing shows what it has long taken back: its order is closed, and the resource goes.
    What is shown there only since it failed is no old listing: another order, of which a restored backup knows
    nothing, was in the way.
    """
    failures = (one.at for one in view.failures_on(node) if one.device == name and one.at >= since)
    return Seconds(max(failures, default=float("-inf")) + policy.blame_seconds)


def _doubted_until(view: View, node: NodeName, device: FabricDevice, policy: Policy) -> Seconds:
    """Until when a device is left alone that a resource has just given up, though its manager goes on showing it.

    Such a listing is old. Of a node that is there it is noted that the device failed on it; on one that is gone nobody
    can note anything, and the device would be put into the books and out of them without end.
    """
    fabric = lead.home(view, node)
    if fabric is None or view.node(node) is not None:
        return Seconds(float("-inf"))
    return Seconds(view.left_at(fabric, device.id) + policy.blame_seconds)


def settles(inventory: Inventory, machine: Machine | None, device: FabricDevice) -> Seconds:
    """Return when a device has stood there for so long that no call under way can have to do with it.

    Where it says by whose order it came, what else comes and goes there does not matter: a busy node is never quiet.
    """
    since = device.since if device.order or machine is None else max(machine.since, device.since)
    return Seconds(since + inventory.traits.call_timeout)


def _waited_for(view: View, node: NodeName, device: FabricDevice) -> bool:
    """A resource whose order is under way may be about to have it; if a device says by whose order it came, only that.

    Else one that waits for room on the node, and what takes that room, would each wait for the other.
    """
    return any(
        one.order == device.order if device.order else _waits_for_any(one, device)
        for one in view.resources_on(node)
    )


def _waits_for_any(one: ComposableResource, device: FabricDevice) -> bool:
    return one.spec.model == device.model and one.state in _UNSETTLED and not one.status.cdi_device_id


_UNSETTLED = (ResourceState.NEW, ResourceState.ATTACHING)


def _name(
    view: View, inventory: Inventory, model: DeviceModel, device: FabricDevice, taken: list[DeviceID]
) -> DeviceID | None:
    if not inventory.traits.chooses_device:
        name = naming.device(inventory.fabric, model, device.id)
        return name if view.resource_of(name) is None else None
    slots = (naming.slot(inventory.fabric, model, number) for number in range(SLOTS_SEARCHED_MAX))
    return next(
        (
            one
            for one in slots
            if one not in taken and view.resource_of(one) is None and not view.claims_holding(one)
        ),
        None,
    )


def _resource(
    name: DeviceID, node: NodeName, model: DeviceModel, device: FabricDevice, policy: Policy
) -> PutResource:
    fabric = naming.fabric_of(name, policy)
    assert fabric is not None
    order = {ORDER: str(device.order)} if device.order else {}
    mark = order if device.ours else {FOREIGN: str(device.id)}
    meta = ObjectMeta(
        name=naming.resource(fabric, name),
        labels={MANAGED_BY: naming.request(node, model)},
        annotations={DEVICE: str(name), **mark},
        finalizers=(FINALIZER,),
    )
    spec = ComposableResourceSpec(type=model.type, model=model.cdi_model_name, target_node=node)
    because = (
        f"{device.id} is ours, stands on {node}, and is in nobody's books"
        if device.ours
        else f"somebody else attached {device.id} to {node}, and detachForeign names it"
    )
    return PutResource(
        phase=Phase.COMPOSED, resource=ComposableResource(metadata=meta, spec=spec), ask=True, because=because
    )


# --- twice in the books


def twins(view: View, resource: ComposableResource) -> tuple[ComposableResource, ...]:
    """Return who else stands for the same order: what was found is twice in the books, by a write that came late."""
    return tuple(
        one
        for one in view.resources_on(resource.node)
        if one.order == resource.order and one.uid != resource.uid and one.stands
    )


def twin(view: View, resource: ComposableResource) -> str:
    """Return who of them keeps what the order brought, if that is another: what is closed for one is for both.

    Who has come further stays, else the first by name.
    """
    mine = _place(resource)
    keeps = (one for one in twins(view, resource) if not resource.stands or _place(one) < mine)
    return next((one.metadata.name for one in keeps), "")


def _place(resource: ComposableResource) -> tuple[bool, bool, str]:
    young = resource.state in {ResourceState.NEW, ResourceState.ATTACHING}
    return young, not resource.status.cdi_device_id, resource.metadata.name
