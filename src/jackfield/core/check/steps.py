"""What is wrong with a change: nothing ever goes back, and what goes has a reason.

Knows an object before and after, and what was beside it when it changed. Must not know who wrote it.
"""

from collections.abc import Iterator

import msgspec

from jackfield.core import naming
from jackfield.core.check.fault import Checker, Fault
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    MISSING,
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.meta import Object, holds
from jackfield.model.names import NEVER, DeviceID, Seconds, seconds
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import View

Said = Iterator[tuple[Checker, str]]

_ORDER = (
    ResourceState.NEW,
    ResourceState.ATTACHING,
    ResourceState.ONLINE,
    ResourceState.DETACHING,
    ResourceState.DELETING,
)
_HEARD = 32.0
"""So long after a claim was given a device, or a pod came, nothing is on its way any more that was decided before.

A write that got no answer within ten seconds may take effect up to twenty later, and objects tell whole seconds.
"""


class Moment(msgspec.Struct, frozen=True):
    """The world in which something changed, as it is just after."""

    view: View
    policy: Policy
    now: Seconds


def step(
    old: Object | None, new: Object | None, view: View, policy: Policy, now: Seconds
) -> tuple[Fault, ...]:
    """Return what is wrong with a change; nothing if all is well."""
    moment = Moment(view, policy, now)
    said: Said
    if isinstance(old, ComposableResource):
        name, said = f"resource/{old.metadata.name}", _resource(moment, old, new)
    elif isinstance(old, ResourceClaim) and isinstance(new, ResourceClaim) and old.uid == new.uid:
        name, said = f"claim/{old.key}", _claim(moment, old, new)
    elif isinstance(old, ResourceSlice):
        name, said = f"slice/{old.metadata.name}", _slice(moment, old)
    else:
        return ()
    return tuple(Fault(checker, name, what) for checker, what in said)


# --- resources


def _resource(moment: Moment, old: ComposableResource, new: Object | None) -> Said:
    if not isinstance(new, ComposableResource) or new.uid != old.uid:
        over = old.state in {ResourceState.NEW, ResourceState.DELETING} or (
            old.state is ResourceState.DETACHING and holds(old.status.conditions, RELEASED)
        )
        if not over and FINALIZER in old.metadata.finalizers:
            yield Checker.WENT_BACK, f"went while {old.state}"
        return
    if _ORDER.index(new.state) < _ORDER.index(old.state):
        yield Checker.WENT_BACK, f"went back from {old.state} to {new.state} (rule 2)"
    if new.node != old.node:
        yield Checker.WENT_BACK, f"moved from {old.node} to {new.node} (rule 2)"
    named = old.metadata.annotations.get(DEVICE)
    if named and new.metadata.annotations.get(DEVICE) != named:
        yield Checker.WENT_BACK, "changed its device (rule 2)"
    if old.status.cdi_device_id and new.status.cdi_device_id != old.status.cdi_device_id:
        what = f"was {old.status.cdi_device_id} and is {new.status.cdi_device_id or 'nothing'}"
        yield Checker.WENT_BACK, what
    lost = [kind for kind in (VISIBLE, RELEASED) if _held(old, kind) and not _held(new, kind)]
    if lost:
        yield Checker.WENT_BACK, f"is not {lost[0]} any more (rule 2)"
    if old.record is not None and new.record is not None and new.record.uid != old.record.uid:
        what = f"was recorded for claim {old.record.claim} and is for {new.record.claim} (rule 7)"
        yield Checker.RECORD_REPLACED, what
    yield from _online_or_gone(moment, old, new)


def _held(resource: ComposableResource, kind: str) -> bool:
    return holds(resource.status.conditions, kind)


def _online_or_gone(moment: Moment, old: ComposableResource, new: ComposableResource) -> Said:
    comes_online = new.state is ResourceState.ONLINE and old.state is not ResourceState.ONLINE
    binds = new.device is not None and new.device.driver == DRIVER
    if comes_online and binds and not holds(old.status.conditions, VISIBLE):
        yield Checker.ONLINE_UNSEEN, f"is Online before {new.node} has seen it (rule 6)"
    if new.deleting and not old.deleting:
        yield from _returned(moment, old)


def _returned(moment: Moment, old: ComposableResource) -> Said:
    """An idle device stays for the hold time, unless somebody needs it, or its room, or cannot use it there."""
    view, policy = moment.view, moment.policy
    until = old.last_used + policy.hold_seconds
    node, request = view.node(old.node), view.request(old.request)
    if old.state is not ResourceState.ONLINE or moment.now + 1.0 >= until or old.device is None:
        return  # times on objects are whole seconds
    if node is None or node.deleting or node.spec.unschedulable or holds(old.status.conditions, MISSING):
        return
    if request is None or not request.scalers or request.deleting or policy.model(old.spec.model) is None:
        return  # whoever asked for it by hand gives it back when he likes
    if old.outlives(request):
        return  # the one that kept it was deleted, and what stands under its name is another
    wanted = [one.device for one in request.wanted]
    rivals = view.claims_holding(old.device)
    needed = any(
        not _answered(claim, result.id) for claim in view.claims_on(old.node) for result in claim.results
    )
    if rivals or needed or old.device in wanted or old.foreign or view.missing_since(old) != NEVER:
        return
    what = f"is returned {until - moment.now:.0f} s before its time, and nobody needs it or its room"
    yield Checker.RETURNED_EARLY, what


# --- claims


def _claim(moment: Moment, old: ResourceClaim, new: ResourceClaim) -> Said:
    if new.status.allocation != old.status.allocation:
        if not new.results:
            yield from _taken_back(moment, old)
        return
    for result in new.results:
        yield from _told(moment, old, new, result.id)


def _told(moment: Moment, old: ResourceClaim, new: ResourceClaim, device: DeviceID) -> Said:
    before, after = old.conditions(device), new.conditions(device)
    was_ready, is_ready = holds(before, READY), holds(after, READY)
    if was_ready and not is_ready:
        yield Checker.ANSWER_CHANGED, f"lost its Ready for {device}"
    failed = [one for one in after if one.type in {FAILED, RESCHEDULE} and one.true]
    news = failed and not (holds(before, FAILED) or holds(before, RESCHEDULE))
    if was_ready and news:
        yield Checker.ANSWER_CHANGED, f"was failed for {device} after it was Ready (rule 8)"
    if news and not failed[0].message:
        yield Checker.ANSWER_WITHOUT_REASON, f"was told {failed[0].type} for {device} without a reason"
    if is_ready and not was_ready:
        yield from _ready(moment, old, device)


def _ready(moment: Moment, old: ResourceClaim, device: DeviceID) -> Said:
    """Ready is written on exactly the version that the record names (rule 8)."""
    resource = moment.view.resource_of(device)
    needed = naming.model_of(device, moment.policy) is not None
    given = next(one for one in old.results if one.id == device)
    if not needed or given.admin_access or resource is None or resource.record is None:
        return  # whether there is a record at all is a matter of state
    if resource.record.version != old.metadata.resource_version:
        what = (
            f"was told Ready for {device} at version {old.metadata.resource_version}; "
            f"recorded is version {resource.record.version} (rule 8)"
        )
        yield Checker.READY_UNRECORDED, what


def _taken_back(moment: Moment, old: ResourceClaim) -> Said:
    """Who waits for a device keeps it until he is told why not, or the scheduler has waited long enough.

    A pod that came a moment ago may be unknown to whoever takes back what nobody waited for; rule 17 lets him.
    """
    ours = [one for one in old.results if READY in one.binding_conditions]
    waiting = [pod for pod in moment.view.pods_using(old.key) if not pod.deleting]
    pods = [pod for pod in waiting if seconds(pod.metadata.creation_timestamp) + _HEARD < moment.now]
    if not ours or not pods or old.deleting:
        return
    if moment.now + 1.0 >= old.given_at + moment.policy.binding_timeout_seconds:
        return
    node = moment.view.node(old.node)
    if node is None or not node.ready or node.spec.unschedulable or old.status.reserved_for:
        return  # the scheduler's to decide: it fits there no more
    if any(_failed(old, result.id) for result in old.results):
        return
    what = f"was taken {ours[0].id} while pod {pods[0].key} waited for it, and nothing on it says why"
    yield Checker.TAKEN_BACK, what


def _failed(claim: ResourceClaim, device: DeviceID) -> bool:
    return holds(claim.conditions(device), FAILED) or holds(claim.conditions(device), RESCHEDULE)


def _answered(claim: ResourceClaim, device: DeviceID) -> bool:
    return holds(claim.conditions(device), READY) or _failed(claim, device)


# --- slices


def _slice(moment: Moment, old: ResourceSlice) -> Said:
    """What a claim holds stays listed, whatever becomes of the device.

    What it was given a moment ago may have been taken off the list by somebody who could not know it yet: a slice and
    a claim are two objects, and no safety rests on a slice (rule 3). It is listed again as soon as that is heard of.
    """
    for entry in old.spec.devices:
        device = DeviceID(old.spec.driver, old.spec.pool.name, entry.name)
        ours = READY in entry.binding_conditions and naming.model_of(device, moment.policy) is not None
        known = [one for one in moment.view.claims_holding(device) if one.given_at + _HEARD < moment.now]
        if ours and moment.view.slice_with(device) is None and known:
            what = f"does not list {entry.name} any more, which claim {known[0].key} holds"
            yield Checker.ENTRY_REMOVED, what
