"""Invariants of a view, and of a step from one to the next: what must never be seen, whatever happens.

Runs after every simulated event and, as `jackfield check`, on a cluster. Knows the rules of the protocol as facts
about objects. Must not know how they are kept.
"""

from collections.abc import Iterator

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import DEVICE, FINALIZER, RELEASED, ComposableResource, ResourceState
from jackfield.model.meta import Object, holds
from jackfield.model.names import DeviceID
from jackfield.model.policy import FAILED, READY, RESCHEDULE, SLICE_DEVICES_MAX, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import View

_ORDER = (
    ResourceState.NEW,
    ResourceState.ATTACHING,
    ResourceState.ONLINE,
    ResourceState.DETACHING,
    ResourceState.DELETING,
)


def state(view: View, one: Object, policy: Policy) -> tuple[str, ...]:
    """Return what is wrong with an object and its neighbourhood; nothing if all is well."""
    match one:
        case ComposableResource():
            return tuple(f"resource/{one.metadata.name}: {fault}" for fault in _resource(view, one, policy))
        case ResourceClaim():
            return tuple(f"claim/{one.key}: {fault}" for fault in _claim(view, one, policy))
        case ResourceSlice():
            return tuple(f"slice/{one.metadata.name}: {fault}" for fault in _slice(view, one))
        case _:
            return ()


def step(old: Object | None, new: Object | None) -> tuple[str, ...]:
    """Return what is wrong with a change: nothing ever goes back."""
    if isinstance(old, ComposableResource):
        return tuple(f"resource/{old.metadata.name}: {fault}" for fault in _resource_step(old, new))
    if isinstance(old, ResourceClaim) and isinstance(new, ResourceClaim) and old.uid == new.uid:
        return tuple(f"claim/{old.key}: {fault}" for fault in _claim_step(old, new))
    return ()


def _resource(view: View, one: ComposableResource, policy: Policy) -> Iterator[str]:
    device = one.device
    fabric = naming.fabric_of(device, policy) if device is not None else None
    if device is None or fabric is None:
        return
    if one.metadata.name != naming.resource(fabric, device):
        yield f"is not called as its device {device} is: a second one could exist (rule 1)"
    model = policy.model(one.spec.model)
    if model is None or one.spec.force_detach:
        return
    if (
        one.holder
        and (one.record is None or one.record.uid != one.holder)
        and view.node(one.node) is not None
    ):
        yield f"is held by {one.holder}, which is not recorded (rule 10)"
    if one.state in {ResourceState.DETACHING, ResourceState.DELETING} and (
        one.record is not None or one.holder
    ):
        yield f"is {one.state} while recorded or held (rule 13)"
    physical = one.status.cdi_device_id
    if physical:
        other = view.resource_with(fabric, physical)
        if other is not None and other.metadata.name != one.metadata.name:
            yield f"has {physical}, which {other.metadata.name} has as well"


def _claim(view: View, claim: ResourceClaim, policy: Policy) -> Iterator[str]:
    for result in claim.results:
        model = naming.model_of(result.id, policy)
        if model is None or result.admin_access or not holds(claim.conditions(result.id), READY):
            continue
        yield from _served(view, claim, result.id)
        rivals = [
            one
            for one in view.claims_holding(result.id)
            if one.uid != claim.uid and holds(one.conditions(result.id), READY)
        ]
        if rivals:
            yield f"is Ready with {result.id}, and so is {rivals[0].key}"


def _served(view: View, claim: ResourceClaim, device: DeviceID) -> Iterator[str]:
    resource = view.resource_of(device)
    if resource is not None and resource.spec.force_detach:
        return
    if view.node(claim.node) is None:
        return  # whatever was there is gone with its node
    if resource is None:
        yield f"is Ready with {device}, which nothing attached"
    elif resource.node != claim.node:
        yield f"is Ready on {claim.node} with {device}, which is on {resource.node}"
    elif resource.state is not ResourceState.ONLINE:
        yield f"is Ready with {device}, which is {resource.state}"
    elif resource.record is None or resource.record.uid != claim.uid:
        yield f"is Ready with {device}, and no record protects it"


def _slice(view: View, one: ResourceSlice) -> Iterator[str]:
    if all(READY not in entry.binding_conditions for entry in one.spec.devices):
        return  # another driver's
    if len(one.spec.devices) > SLICE_DEVICES_MAX:
        yield f"has {len(one.spec.devices)} entries, more than {SLICE_DEVICES_MAX}"
    for entry in one.spec.devices:
        where = view.slice_with(DeviceID(one.spec.driver, one.spec.pool.name, entry.name))
        if where is not None and where.metadata.name != one.metadata.name:
            yield f"lists {entry.name}, and so does {where.metadata.name}"


def _resource_step(old: ComposableResource, new: Object | None) -> Iterator[str]:
    if not isinstance(new, ComposableResource) or new.uid != old.uid:
        over = old.state in {ResourceState.NEW, ResourceState.DELETING} or (
            old.state is ResourceState.DETACHING and holds(old.status.conditions, RELEASED)
        )
        if not over and FINALIZER in old.metadata.finalizers:
            yield f"went while {old.state}"
        return
    if _ORDER.index(new.state) < _ORDER.index(old.state):
        yield f"went back from {old.state} to {new.state} (rule 2)"
    if new.node != old.node:
        yield f"moved from {old.node} to {new.node} (rule 2)"
    if new.metadata.annotations.get(DEVICE) != old.metadata.annotations.get(DEVICE):
        yield "changed its device (rule 2)"
    if old.status.cdi_device_id and new.status.cdi_device_id != old.status.cdi_device_id:
        yield f"was {old.status.cdi_device_id} and is {new.status.cdi_device_id or 'nothing'}"


def _claim_step(old: ResourceClaim, new: ResourceClaim) -> Iterator[str]:
    if new.status.allocation != old.status.allocation:
        return
    for result in new.results:
        before, after = old.conditions(result.id), new.conditions(result.id)
        if holds(before, READY) and not holds(after, READY):
            yield f"lost its Ready for {result.id}"
        failed_before = holds(before, FAILED) or holds(before, RESCHEDULE)
        failed_after = holds(after, FAILED) or holds(after, RESCHEDULE)
        if holds(before, READY) and failed_after and not failed_before:
            yield f"was failed for {result.id} after it was Ready (rule 8)"
