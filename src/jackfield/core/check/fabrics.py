"""Whether books, inventory and slices agree about a fabric, as far as nothing is under way.

Knows the three and how they are compared: a device's resource, the place its manager shows, the entry that the
scheduler reads. What is under way is passed over, device by device. Must not know how they are brought to agree.
"""

from collections.abc import Iterator

from jackfield.core import naming
from jackfield.core.check.fault import Checker, Fault
from jackfield.model.composition import MISSING, ComposableResource, ResourceState
from jackfield.model.device import Device
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.meta import holds
from jackfield.model.names import DeviceID, FabricName, NodeName
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import View


def of_fabric(view: View, fabric: FabricName, policy: Policy) -> tuple[Fault, ...]:
    """Return where books, inventory and slices of a fabric disagree. Costs the fabric: for whoever asks."""
    inventory = view.inventory(fabric)
    if inventory is None:
        return ()
    return (*_surplus(view, inventory, policy), *_missing(view, inventory), *_slices(view, inventory, policy))


def _surplus(view: View, inventory: Inventory, policy: Policy) -> Iterator[Fault]:
    """Every device of ours on a node of ours is in the books of that node."""
    fabric = inventory.fabric
    machines = [machine.node for machine in inventory.machines]
    for device in inventory.devices:
        listed = policy.model(device.model) is not None
        if not device.node or not device.ours or device.node not in machines or not listed:
            continue
        resource = view.resource_with(fabric, device.id)
        if resource is None and not _under_way(view, device):
            what = f"was attached to {device.node} by us, and no resource has it"
            yield Fault(Checker.SURPLUS, f"device/{fabric}/{device.id}", what)
        elif resource is not None and resource.node != device.node and _settled(resource):
            what = f"stands on {device.node}; by the books it is on {resource.node}"
            yield Fault(Checker.MISSING, f"device/{fabric}/{device.id}", what)


def _missing(view: View, inventory: Inventory) -> Iterator[Fault]:
    """Every resource that is online has its device, or says that it has not."""
    shown = {device.id: device for device in inventory.devices}
    for node in view.nodes_of(inventory.fabric):
        for one in view.resources_on(node):
            device = shown.get(one.status.cdi_device_id)
            there = device is not None and device.node == one.node
            if _settled(one) and one.device is not None and not there:
                what = f"has {one.status.cdi_device_id or 'no device'}, which its manager does not show on {node}"
                yield Fault(Checker.MISSING, f"resource/{one.metadata.name}", what)


def _settled(resource: ComposableResource) -> bool:
    """Whether a resource should agree with its manager now; one that says it is missing has been told already."""
    told = holds(resource.status.conditions, MISSING)
    return resource.state is ResourceState.ONLINE and not resource.deleting and not told


def _under_way(view: View, device: FabricDevice) -> bool:
    """Whether an order on the device's node may be about to have it, or to be rid of it."""
    return any(
        one.spec.model == device.model and one.state is not ResourceState.ONLINE
        for one in view.resources_on(device.node)
    )


# --- slices


def _slices(view: View, inventory: Inventory, policy: Policy) -> Iterator[Fault]:
    for model in policy.models:
        pool = naming.pool(inventory.fabric, model)
        for one in view.slices(model.driver_name, pool):
            yield from _entries(view, inventory, model, one)
        if not inventory.traits.chooses_device:
            yield from _unlisted(view, inventory, model)


def _entries(view: View, inventory: Inventory, model: DeviceModel, one: ResourceSlice) -> Iterator[Fault]:
    """Every entry says of its device where the books have it."""
    for entry in one.spec.devices:
        device = DeviceID(one.spec.driver, one.spec.pool.name, entry.name)
        if not entry.name.startswith(f"{model.k8s_device_name}-"):
            continue
        what = _entry(view, inventory, device, entry)
        if what:
            yield Fault(Checker.SLICE_DISAGREES, f"slice/{one.metadata.name}", f"lists {entry.name} {what}")


def _entry(view: View, inventory: Inventory, device: DeviceID, entry: Device) -> str:
    """Return what is wrong with an entry; empty if nothing is."""
    resource = view.resource_of(device)
    pinned = entry.node_name
    if resource is None:
        gone = not inventory.traits.chooses_device and view.physical(device) is None
        if gone and not view.claims_holding(device):
            return "which its manager does not show"
        return f"on {pinned}, and nothing attached it" if pinned else ""
    at_home = pinned in {NodeName(""), resource.node}
    return "" if at_home or not _settled(resource) else f"on {pinned}; it is on {resource.node}"


def _unlisted(view: View, inventory: Inventory, model: DeviceModel) -> Iterator[Fault]:
    """Every device that could be had is on offer."""
    for one in inventory.devices:
        name = naming.device(inventory.fabric, model, one.id)
        if one.model == model.cdi_model_name and view.slice_with(name) is None:
            what = f"is {name}, and no slice lists it"
            yield Fault(Checker.SLICE_DISAGREES, f"device/{inventory.fabric}/{one.id}", what)
