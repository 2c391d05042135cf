"""Objects → the words that they are counted by.

Every answer is one of a few, whatever the cluster holds: they become labels of metrics. Knows what a resource's end
means. Must not know who counts.
"""

from enum import StrEnum

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.meta import holds
from jackfield.model.names import DeviceID, FabricName, ModelName
from jackfield.model.policy import READY, Policy
from jackfield.model.view import View


class Sort(StrEnum):
    """Where a device is, as far as the books say."""

    ATTACHING = "attaching"
    ONLINE = "online"
    DETACHING = "detaching"


class Failure(StrEnum):
    """Why an order to attach came to nothing."""

    ERROR = "ManagerFailed"
    """The manager refused it, or said that it failed."""
    NODE = "NodeGone"
    """Its node is gone."""
    UNWANTED = "Unwanted"
    """Nobody wanted it any more: the pod was deleted, or went elsewhere."""
    WRONG = "WrongDevice"
    """The manager attached another device than was ordered."""
    UNSEEN = "NotSeen"
    """The manager attached it, and the node did not see it in time."""
    LATE = "NotAttached"
    """The manager did not attach it in time."""


Place = tuple[FabricName, ModelName]

_SORTS = {
    ResourceState.NEW: Sort.ATTACHING,
    ResourceState.ATTACHING: Sort.ATTACHING,
    ResourceState.ONLINE: Sort.ONLINE,
    ResourceState.DETACHING: Sort.DETACHING,
    ResourceState.DELETING: Sort.DETACHING,
}


def sort(resource: ComposableResource) -> Sort:
    """Return where a resource's device is."""
    return _SORTS[resource.state]


def place(device: DeviceID | None, policy: Policy) -> Place | None:
    """Return the fabric and the model of a device; None for one that is not ours."""
    fabric = naming.fabric_of(device, policy) if device is not None else None
    model = naming.model_of(device, policy) if device is not None else None
    return (fabric, model.cdi_model_name) if fabric is not None and model is not None else None


def failure(view: View, resource: ComposableResource) -> Failure:
    """Return why a resource never came online, by how it was before it was given up."""
    if resource.status.error:
        return Failure.ERROR
    if view.node(resource.node) is None:
        return Failure.NODE
    if resource.deleting:
        return Failure.UNWANTED
    got = resource.status.cdi_device_id
    meant = view.physical(resource.device) if resource.device is not None else None
    if got and meant is not None and meant.id != got:
        return Failure.WRONG
    return Failure.UNSEEN if got else Failure.LATE


def devices(claim: ResourceClaim) -> tuple[DeviceID, ...]:
    """Return the devices that a claim was allocated and that its pod waits for."""
    results = (one for one in claim.results if READY in one.binding_conditions and not one.admin_access)
    return tuple(one.id for one in results)


def ready(claim: ResourceClaim) -> bool:
    """Return whether all that a claim's pod waits for is there."""
    return all(holds(claim.conditions(one), READY) for one in devices(claim))
