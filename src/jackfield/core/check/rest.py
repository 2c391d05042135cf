"""What is wrong with an object when nothing has to do with it any more: what should have been tidied up and was not.

Knows what a rest looks like: nobody waits, nothing is recorded for nobody, nothing is given away twice. Must not know
how long it takes to get there: whoever asks has waited.
"""

from collections.abc import Iterator, Mapping

import msgspec

from jackfield.core import naming, room
from jackfield.core.check.fault import Checker, Fault
from jackfield.model import quantity
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.device import Device
from jackfield.model.meta import Object, holds
from jackfield.model.names import DeviceID, Seconds, seconds
from jackfield.model.policy import FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import KEY, DeviceTaintRule
from jackfield.model.view import View

Said = Iterator[tuple[Checker, str]]


class Scene(msgspec.Struct, frozen=True):
    """A view at a time when it should be at rest."""

    view: View
    policy: Policy
    now: Seconds


def at_rest(view: View, one: Object, policy: Policy, now: Seconds) -> tuple[Fault, ...]:
    """Return what is wrong with an object that nothing is being done about; nothing if all is well."""
    scene = Scene(view, policy, now)
    match one:
        case ComposableResource():
            return _faults(f"resource/{one.metadata.name}", _resource(scene, one))
        case ResourceClaim():
            return _faults(f"claim/{one.key}", _claim(scene, one))
        case ResourceSlice():
            return _faults(f"slice/{one.metadata.name}", _counters(view, one))
        case DeviceTaintRule():
            return _faults(f"taint/{one.metadata.name}", _taint(view, one))
        case _:
            return ()


def _faults(name: str, said: Said) -> tuple[Fault, ...]:
    return tuple(Fault(checker, name, what) for checker, what in said)


# --- resources


def _resource(scene: Scene, one: ComposableResource) -> Said:
    if one.device is None or naming.fabric_of(one.device, scene.policy) is None:
        return  # somebody else's
    if one.state is not ResourceState.ONLINE:
        yield Checker.STUCK, f"is {one.state.value or 'new'} on {one.node} while nothing is under way"
        return
    record = one.record
    if record is not None:
        claim = scene.view.claim(record.claim)
        holding = claim is not None and claim.uid == record.uid and one in _having(scene.view, claim)
        if not holding:
            yield Checker.RECORD_LEFT, f"is recorded for claim {record.claim}, which does not have it"
        return
    if one.holder:
        yield Checker.RECORD_LEFT, f"is held by {one.holder}, and nothing says which claim that is"
        return
    request = scene.view.request(one.request)
    if request is None and not one.deleting:
        yield Checker.ORPHAN, f"belongs to request {one.request}, which does not exist"
    # Not by `room.node_gone`: a check that asks whom it checks sees nothing if that is wrong.
    elif scene.view.node(one.node) is None and not scene.view.pods_on(one.node):
        yield Checker.STUCK, f"stays on {one.node}, which is no node any more (rule 16)"
    elif not room.busy(scene.view, one):
        yield from _idle(scene, one)


def _having(view: View, claim: ResourceClaim) -> tuple[ComposableResource, ...]:
    """The resources behind what a claim was given, under our name or a vendor's."""
    found = []
    for resource in view.resources_recording(claim.key):
        names = room.names_of(view, resource)
        if any(result.id in names for result in claim.results):
            found.append(resource)
    return tuple(found)


def _idle(scene: Scene, one: ComposableResource) -> Said:
    """Idle devices beyond the hold time stay only as spares, or as a node's minimum."""
    model = scene.policy.model(one.spec.model)
    fabric = scene.view.fabric_of(one.node)
    if scene.policy.paused or fabric in scene.policy.fabrics_paused or model is None or fabric is None:
        return
    over = scene.now - one.last_used - scene.policy.hold_seconds
    spares = scene.view.idle(fabric, model.cdi_model_name)[-model.spares :] if model.spares else ()
    least = room.limits(scene.view, one.node, model, scene.policy).least
    alike = [other for other in room.present(scene.view, one.node) if other.spec.model == one.spec.model]
    if over <= 0 or one.metadata.name in [other.metadata.name for other in spares] or len(alike) <= least:
        return
    yield Checker.IDLE_TOO_LONG, f"is idle on {one.node} for {over:.0f} s longer than holdSeconds"


# --- claims


def _claim(scene: Scene, claim: ResourceClaim) -> Said:
    for result in claim.results:
        if not result.admin_access:
            yield from _shared(scene.view, claim, result)
    ours = [one for one in claim.results if READY in one.binding_conditions and not one.admin_access]
    if not ours:
        return
    if not claim.status.reserved_for and not scene.view.pods_using(claim.key) and not claim.deleting:
        yield (
            Checker.CLAIM_LEFT,
            f"has {ours[0].id}, is reserved for nobody, and no pod waits for it (rule 17)",
        )
    told = [claim.conditions(one.id) for one in ours]
    answered = all(any(holds(one, kind) for kind in (READY, RESCHEDULE, FAILED)) for one in told)
    if scene.view.pods_using(claim.key) and not answered:
        yield Checker.STUCK, f"was given {ours[0].id}, and was not answered while nothing is under way"


def _shared(view: View, claim: ResourceClaim, result: DeviceRequestAllocationResult) -> Said:
    """A device is in two claims only if it may be, and then never over its capacity."""
    others = [one for one in view.claims_holding(result.id) if one.uid != claim.uid]
    entry = _entry(view, result.id)
    if not others or entry is None:
        return
    if not entry.allow_multiple_allocations:
        yield Checker.DEVICE_IN_TWO_CLAIMS, f"has {result.id}, and so has {others[0].key} (rule 9)"
        return
    used = _used((claim, *others), result.id)
    for name, amount in used.items():
        had = quantity.parse(entry.capacity[name].value).nano if name in entry.capacity else 0
        if amount > had:
            yield Checker.OVERDRAWN, f"shares {result.id}, of whose {name} more is in use than there is"


def _entry(view: View, device: DeviceID) -> Device | None:
    listed = view.slice_with(device)
    entries = listed.spec.devices if listed is not None else ()
    return next((one for one in entries if one.name == device.device), None)


def _used(claims: tuple[ResourceClaim, ...], device: DeviceID) -> Mapping[str, int]:
    used: dict[str, int] = {}
    for claim in claims:
        for result in claim.results:
            for name, amount in result.consumed_capacity.items() if result.id == device else ():
                used[name] = used.get(name, 0) + quantity.parse(amount).nano
    return used


# --- slices and taints


def _counters(view: View, one: ResourceSlice) -> Said:
    """Partitions of one device never take more out of its counters than there is."""
    driver, pool = one.spec.driver, one.spec.pool.name
    left = {
        (counters.name, name): quantity.parse(counter.value).nano
        for counters in one.spec.shared_counters
        for name, counter in counters.counters.items()
    }
    listed = [entry for each in view.slices(driver, pool) for entry in each.spec.devices] if left else []
    for entry in listed:
        if view.claims_holding(DeviceID(driver, pool, entry.name)):
            for taken in entry.consumes_counters:
                for name, counter in taken.counters.items():
                    left[taken.counter_set, name] = (
                        left.get((taken.counter_set, name), 0) - quantity.parse(counter.value).nano
                    )
    for (counter_set, name), nano in left.items():
        if nano < 0:
            yield (
                Checker.OVERDRAWN,
                f"has partitions in use that need more of {counter_set}/{name} than there is",
            )


def _taint(view: View, rule: DeviceTaintRule) -> Said:
    name = rule.metadata.name.removesuffix(naming.taint(""))
    if rule.spec.taint.key == KEY and view.resource(name) is None:
        yield Checker.TAINT_LEFT, f"taints a device of {name}, which is gone"


def overdue(one: Object, policy: Policy, now: Seconds) -> bool:
    """Return whether nothing can be under way about an object any more: whatever was asked for has had its time."""
    meta = one.metadata
    began = [seconds(time) for time in (meta.creation_timestamp, meta.deletion_timestamp) if time]
    if isinstance(one, ResourceClaim) and one.status.allocation is not None:
        began.append(seconds(one.status.allocation.allocation_timestamp))
    return now > max(began, default=Seconds(0.0)) + policy.attach_deadline_seconds
