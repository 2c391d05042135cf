"""What is wrong with an object and its neighbourhood at any moment, whatever is under way.

Knows the rules of the protocol as facts about one object and those beside it. Must not know how it came about.
"""

from collections.abc import Iterator

from jackfield.core import naming
from jackfield.core.check.fault import Checker, Fault
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.meta import Object, holds
from jackfield.model.names import DeviceID, FabricName, Key
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, SLICE_DEVICES_MAX, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import View

Said = Iterator[tuple[Checker, str]]


def state(view: View, one: Object, policy: Policy) -> tuple[Fault, ...]:
    """Return what is wrong with an object and its neighbourhood; nothing if all is well."""
    match one:
        case ComposableResource():
            return _faults(f"resource/{one.metadata.name}", _resource(view, one, policy))
        case ResourceClaim():
            return _faults(f"claim/{one.key}", _claim(view, one, policy))
        case ResourceSlice():
            return _faults(f"slice/{one.metadata.name}", _slice(view, one))
        case Pod():
            return _faults(f"pod/{one.key}", _pod(view, one))
        case _:
            return ()


def _faults(name: str, said: Said) -> tuple[Fault, ...]:
    return tuple(Fault(checker, name, what) for checker, what in said)


# --- resources


def _resource(view: View, one: ComposableResource, policy: Policy) -> Said:
    device = one.device
    fabric = naming.fabric_of(device, policy) if device is not None else None
    if device is None or fabric is None:
        return
    if one.metadata.name != naming.resource(fabric, device):
        what = f"is not called as its device {device} is: a second one could exist (rule 1)"
        yield Checker.RESOURCE_NAME, what
    if policy.model(one.spec.model) is None or one.spec.force_detach:
        return
    unrecorded = one.record is None or one.record.uid != one.holder
    if one.holder and unrecorded and view.node(one.node) is not None:
        yield Checker.HOLDER_UNRECORDED, f"is held by {one.holder}, which is not recorded (rule 10)"
    leaving = one.state in {ResourceState.DETACHING, ResourceState.DELETING}
    if leaving and (one.record is not None or one.holder):
        yield Checker.LEAVING_IN_USE, f"is {one.state} while recorded or held (rule 13)"
    physical = one.status.cdi_device_id
    other = view.resource_with(fabric, physical) if physical else None
    if (
        other is not None
        and other.metadata.name != one.metadata.name
        and not (_knows_orders(view, fabric) and (_leaves(one) or _leaves(other)))
    ):
        yield Checker.DEVICE_IN_TWO_BOOKS, f"has {physical}, which {other.metadata.name} has as well"


def _leaves(one: ComposableResource) -> bool:
    """Whether a resource leaves: lent to nobody (rule 13), it names its device until its manager answers (rule 15).

    A manager that knows order ids may have given the device to another's order by then, which this one's cannot mean
    (rule 5).
    """
    return one.state in {ResourceState.DETACHING, ResourceState.DELETING}


def _knows_orders(view: View, fabric: FabricName) -> bool:
    inventory = view.inventory(fabric)
    return inventory is not None and inventory.traits.knows_orders


# --- claims


def _claim(view: View, claim: ResourceClaim, policy: Policy) -> Said:
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
            yield Checker.DEVICE_IN_TWO_CLAIMS, f"is Ready with {result.id}, and so is {rivals[0].key}"
    if any(holds(claim.conditions(result.id), READY) for result in claim.results):
        yield from _recorded_elsewhere(view, claim)


def _served(view: View, claim: ResourceClaim, device: DeviceID) -> Said:
    resource = view.resource_of(device)
    if resource is not None and resource.spec.force_detach:
        return
    if view.node(claim.node) is None:
        return  # whatever was there is gone with its node
    checker = Checker.READY_UNSERVED
    if resource is None:
        yield checker, f"is Ready with {device}, which nothing attached"
    elif resource.node != claim.node:
        yield checker, f"is Ready on {claim.node} with {device}, which is on {resource.node}"
    elif resource.state is not ResourceState.ONLINE:
        yield checker, f"is Ready with {device}, which is {resource.state}"
    elif resource.record is None or resource.record.uid != claim.uid:
        yield checker, f"is Ready with {device}, and no record protects it"


def _recorded_elsewhere(view: View, claim: ResourceClaim) -> Said:
    """A claim is recorded on the devices of one allocation only (rule 7)."""
    given = [result.id for result in claim.results]
    for one in view.resources_recording(claim.key):
        if one.record is not None and one.record.uid == claim.uid and one.device not in given:
            yield (
                Checker.RECORDED_ELSEWHERE,
                f"is Ready, and recorded on {one.metadata.name} as well (rule 7)",
            )


# --- pods


def _pod(view: View, pod: Pod) -> Said:
    """A pod that was bound has what it was bound for, as long as it is there."""
    node = pod.spec.node_name
    if not node or pod.finished or view.node(node) is None:
        return
    for name in pod.claim_names:
        claim = view.claim(Key(pod.metadata.namespace, name))
        if claim is not None and not claim.results:
            yield Checker.POD_WITHOUT_DEVICE, f"is bound to {node}, and claim {claim.key} is not allocated"
        elif claim is not None and claim.node not in {node, ""}:
            what = f"is bound to {node}, and claim {claim.key} has its devices on {claim.node}"
            yield Checker.POD_WITHOUT_DEVICE, what


# --- slices


def _slice(view: View, one: ResourceSlice) -> Said:
    if all(READY not in entry.binding_conditions for entry in one.spec.devices):
        return  # another driver's
    if len(one.spec.devices) > SLICE_DEVICES_MAX:
        yield Checker.SLICE_ENTRIES, f"has {len(one.spec.devices)} entries, more than {SLICE_DEVICES_MAX}"
    for entry in one.spec.devices:
        where = view.slice_with(DeviceID(one.spec.driver, one.spec.pool.name, entry.name))
        if where is not None and where.metadata.name != one.metadata.name:
            yield Checker.SLICE_ENTRIES, f"lists {entry.name}, and so does {where.metadata.name}"
