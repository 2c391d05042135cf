"""Demand: what the claims allocated to a node may have of it, by priority and oldest first.

Knows room, quota, coexistence, blame, deadlines and who comes first. Must not know how a claim is served or refused.
"""

import msgspec

from jackfield.core import naming, quota, room
from jackfield.model.claim import ATTEMPTS, DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import ComposableResource, Wanted
from jackfield.model.meta import holds
from jackfield.model.names import NEVER, DeviceID, NodeName, Seconds
from jackfield.model.policy import FAILED, READY, RESCHEDULE, DeviceModel, Policy
from jackfield.model.view import View


class Want(msgspec.Struct, frozen=True, gc=False):
    """A device that a claim waits for, or has."""

    claim: ResourceClaim
    device: DeviceID
    model: DeviceModel
    resource: ComposableResource | None


class Serve(msgspec.Struct, frozen=True, gc=False):
    """The claim may have its devices."""


class Settled(msgspec.Struct, frozen=True, gc=False):
    """The claim has been answered; its devices stay its own as long as it is Ready."""

    ready: bool


class Refuse(msgspec.Struct, frozen=True, gc=False):
    """The claim cannot have this device here; `type` says whether somewhere else may work."""

    type: str
    device: DeviceID
    reason: str
    order: str = ""
    """The order that failed, where that is why."""


class Postpone(msgspec.Struct, frozen=True, gc=False):
    """The claim has its place, and waits there for its namespace's quota; after `until` it is sent round."""

    what: str
    until: Seconds = NEVER


Verdict = Serve | Settled | Refuse | Postpone


class Demand(msgspec.Struct, frozen=True, gc=False):
    """One claim's wishes, and the answer to them."""

    claim: ResourceClaim
    devices: tuple[DeviceID, ...]
    """All that wait for an answer of ours, in the claim's order."""
    wants: tuple[Want, ...]
    """Those that must be attached for it; the others need only be looked at."""
    verdict: Verdict


class _Ledger(msgspec.Struct):
    """What the node has given away so far, in the order of the claims."""

    view: View
    node: NodeName
    policy: Policy
    now: Seconds
    others: int
    """Devices that take room and are no business of ours."""
    taken: dict[DeviceID, DeviceModel] = {}
    promised: dict[DeviceID, DeviceModel] = {}
    """Devices that stand there, or are about to, and were only given to claims that do not have them for sure."""


def on_node(view: View, node: NodeName, policy: Policy, now: Seconds) -> tuple[Demand, ...]:
    """Return the demand on a node by priority, oldest claim first; a later one gets what the earlier ones left.

    What was ordered for a claim is not taken from it for one that came later, though that was given what stands there.
    """
    ledger = _Ledger(view, node, policy, now, room.strangers(view, node))
    for resource in room.present(view, node):
        model = policy.model(resource.spec.model)
        if not room.busy(view, resource):
            continue  # idle devices make room for claims; all others stay
        if resource.device is None or model is None:
            ledger.others += 1
        elif _is_promised(ledger, resource):
            ledger.promised[resource.device] = model
        else:
            ledger.taken[resource.device] = model
    first, later = _in_turn(view, node, policy)
    demands = [_demand(ledger, claim) for claim in first]
    ledger.taken |= ledger.promised
    return (*demands, *(_demand(ledger, claim) for claim in later))


def _is_promised(ledger: _Ledger, resource: ComposableResource) -> bool:
    """Whether a device was only given to claims that do not have it for sure."""
    if room.lent(ledger.view, resource):
        return False
    return all(_waits_itself(claim, ledger.policy) for claim in room.holders(ledger.view, resource))


def _in_turn(
    view: View, node: NodeName, policy: Policy
) -> tuple[tuple[ResourceClaim, ...], tuple[ResourceClaim, ...]]:
    """Return who is judged first, as something was ordered for it, and who after that."""
    claims = view.claims_on(node)
    if policy.namespaces:
        claims = tuple(sorted(claims, key=lambda one: quota.rank(one, policy)))
    ordered = {wanted.claim for one in view.requests_on(node) if one.scalers for wanted in one.wanted}
    first = tuple(one for one in claims if one.key in ordered)
    return first, tuple(one for one in claims if one.key not in ordered)


def _demand(ledger: _Ledger, claim: ResourceClaim) -> Demand:
    ours = _ours(claim, ledger.policy)
    wants, verdict = [], _answered(claim, ours)
    for result in ours:
        model = naming.model_of(result.id, ledger.policy)
        if result.admin_access:
            continue
        if model is None:
            text = f"no model of the policy is called as {result.id} is; its device-info entry is missing"
            verdict = verdict or Refuse(FAILED, result.id, text)
            continue
        wants.append(Want(claim, result.id, model, ledger.view.resource_of(result.id)))
    if verdict is None:
        verdict = _judge(ledger, claim, tuple(wants))
    if isinstance(verdict, Serve) or (isinstance(verdict, Settled) and verdict.ready):
        ledger.taken |= {want.device: want.model for want in wants}
    return Demand(claim, tuple(result.id for result in ours), tuple(wants), verdict)


def _ours(claim: ResourceClaim, policy: Policy) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return what of a claim waits for an answer of ours, or has been given one."""
    asking = (one for one in claim.results if READY in one.binding_conditions)
    return tuple(one for one in asking if naming.fabric_of(one.id, policy) is not None)


def _answered(claim: ResourceClaim, ours: tuple[DeviceRequestAllocationResult, ...]) -> Verdict | None:
    told = [claim.conditions(result.id) for result in ours]
    if any(holds(one, RESCHEDULE) or holds(one, FAILED) for one in told):
        return Settled(ready=False)
    if told and all(holds(one, READY) for one in told):
        return Settled(ready=True)
    return None


def _judge(ledger: _Ledger, claim: ResourceClaim, wants: tuple[Want, ...]) -> Verdict:
    """Go through all that can stand in the way, what cannot be helped first."""
    if any(claim.wants_all(result.request) for result in claim.results) and not _all_there(ledger, wants):
        text = "allocationMode All would attach the fabric's whole pool; ask for a count instead"
        return Refuse(FAILED, wants[0].device, text)
    for want in wants:
        refused = (
            _lost(ledger.view, want)
            or _failed(ledger, want)
            or _exhausted(ledger, want)
            or _vanished(ledger, want)
            or _occupied(ledger, want)
            or _kept(want)
            or _used_by_driver(ledger, want)
        )
        if refused is not None:
            return refused
    return _admission(ledger, claim, wants) or _fit(ledger, wants) or Serve()


def _all_there(ledger: _Ledger, wants: tuple[Want, ...]) -> bool:
    return all(want.resource is not None and want.resource.node == ledger.node for want in wants)


def _lost(view: View, want: Want) -> Refuse | None:
    """Of two claims with one device the recorded one is served, else the older (rule 9)."""
    rivals = view.claims_holding(want.device)
    record = want.resource.record if want.resource is not None else None
    winner = next((one for one in rivals if record is not None and one.uid == record.uid), rivals[0])
    if winner.uid == want.claim.uid:
        return None
    return Refuse(RESCHEDULE, want.device, f"{want.device.device} was given to claim {winner.key} as well")


def _failed(ledger: _Ledger, want: Want) -> Refuse | None:
    """An attach that failed since the claim was allocated sends it round, again and again only so often."""
    failures = room.failures(ledger.view, want.device, want.claim)
    if not failures:
        return None
    order = f"{want.device.device}@{ledger.node}:{failures[-1].at:.0f}"
    attempts, last = want.claim.attempts
    tried = attempts if last == order else attempts + 1
    if tried >= ledger.policy.claim_attempts_max:
        text = f"{tried} attaches for this claim failed, the last of {want.device.device} to {ledger.node}"
        return Refuse(FAILED, want.device, text, order)
    text = f"{want.device.device} could not be attached to {ledger.node} (attempt {tried})"
    return Refuse(RESCHEDULE, want.device, text, order)


def _exhausted(ledger: _Ledger, want: Want) -> Refuse | None:
    """A claim that was told to stop is not tried again as long as its last failure is held against it."""
    attempts, last = want.claim.attempts
    failed_at = last.rpartition(":")[2]
    if attempts < ledger.policy.claim_attempts_max or not failed_at.isdecimal():
        return None
    if int(failed_at) + ledger.policy.blame_seconds <= ledger.now:
        return None
    text = (
        f"{attempts} attaches for this claim failed, the last of {last.rpartition(':')[0]}; it is tried again "
        f"{ledger.policy.blame_seconds:.0f} s after that, or when its annotation {ATTEMPTS} is removed"
    )
    return Refuse(FAILED, want.device, text)


def _vanished(ledger: _Ledger, want: Want) -> Refuse | None:
    """What is there, or under way, is waited for a while: a manager may forget it for a moment."""
    if want.resource is not None:
        if ledger.now < room.gone_at(ledger.view, want.resource, ledger.policy):
            return None
        text = f"the manager does not show {want.device.device} on {want.resource.node} any more"
        return Refuse(RESCHEDULE, want.device, text)
    if not room.vanished(ledger.view, want.device, ledger.policy):
        return None
    return Refuse(RESCHEDULE, want.device, f"{want.device.device} is not in its fabric's inventory any more")


def _occupied(ledger: _Ledger, want: Want) -> Refuse | None:
    """A device that stands on another node moves if it is idle and ours; else somewhere else may work."""
    resource = want.resource
    if resource is None or resource.node == ledger.node:
        return None
    request = ledger.view.request(resource.request)
    if request is not None and not request.scalers:
        text = f"{want.device.device} is on {resource.node} for ComposabilityRequest {request.metadata.name}"
        return Refuse(RESCHEDULE, want.device, text)
    return None


def _kept(want: Want) -> Refuse | None:
    """Nobody knows how long a device is kept open on the node that it is to leave: somewhere else may work."""
    keeper = room.kept(want.resource) if want.resource is not None else ""
    if want.resource is None or not keeper:
        return None
    return Refuse(RESCHEDULE, want.device, f"{want.resource.node} does not let go of it: {keeper}")


def _used_by_driver(ledger: _Ledger, want: Want) -> Refuse | None:
    """In `reschedule` a device serves under its driver's name; who was given ours as well came too late.

    Not so if whoever has it under that name still waits for others of ours, and so goes round itself: each would
    be sent away for the other, again and again. Who was given one device by both its names waits for himself.
    """
    if want.model.binds or want.resource is None:
        return None
    for name in ledger.view.published(want.resource.status.device_id):
        for user in ledger.view.claims_holding(name):
            if user.uid == want.claim.uid:
                text = f"{want.device.device} was given to this claim a second time, as {name}"
                return Refuse(RESCHEDULE, want.device, text)
            if user.node == ledger.node and _waits_itself(user, ledger.policy):
                continue
            text = f"{want.device.device} serves claim {user.key} as {name}"
            return Refuse(RESCHEDULE, want.device, text)
    return None


def _waits_itself(claim: ResourceClaim, policy: Policy) -> bool:
    """Whether a claim waits for something of ours, or was sent away and has not left yet: it has nothing for sure."""
    ours = _ours(claim, policy)
    return bool(ours) and _answered(claim, ours) != Settled(ready=True)


def _admission(ledger: _Ledger, claim: ResourceClaim, wants: tuple[Want, ...]) -> Refuse | Postpone | None:
    """Nothing is ordered beyond a quota; who waits for it keeps a device from others, so it does not wait long."""
    if quota.admitted(claim, ledger.policy):
        return None
    beyond = quota.beyond(ledger.view, claim, ledger.policy)
    if beyond is None:
        return Postpone(f"its place in the quota of namespace {claim.metadata.namespace}")
    if beyond.ever:
        return Refuse(FAILED, wants[0].device, beyond.words)
    policy = ledger.policy
    patience = min(policy.quota_wait_seconds, policy.binding_timeout_seconds - policy.binding_margin_seconds)
    until = Seconds(claim.given_at + patience)
    if ledger.now >= until:
        return Refuse(RESCHEDULE, wants[0].device, beyond.words)
    return Postpone(f"the quota of its namespace: {beyond.words}", until)


def _fit(ledger: _Ledger, wants: tuple[Want, ...]) -> Refuse | None:
    # What stands on a node that is gone can serve nobody there, and is as good as new.
    standing = ledger.taken | ledger.promised if ledger.view.node(ledger.node) is not None else {}
    new = tuple(want for want in wants if want.device not in standing)
    for want in new:
        refusal = room.refusal(ledger.view, ledger.node, want.model, ledger.policy, ledger.now)
        if refusal:
            return Refuse(RESCHEDULE, want.device, refusal)
    return _coexist(ledger, wants) or _enough_room(ledger, wants, new) or _in_time(ledger, new)


def _coexist(ledger: _Ledger, wants: tuple[Want, ...]) -> Refuse | None:
    own = tuple(dict.fromkeys(want.model.cdi_model_name for want in wants))
    others = tuple(dict.fromkeys(model.cdi_model_name for model in ledger.taken.values()))
    for want in wants:
        clash = room.coexistence(want.model, own, ledger.policy)
        if clash:
            text = f"{want.model.cdi_model_name} and {clash} of this claim cannot be on one node"
            return Refuse(FAILED, want.device, text)
        clash = room.coexistence(want.model, others, ledger.policy)
        if clash:
            text = f"{want.model.cdi_model_name} cannot stand beside {clash}, which {ledger.node} has"
            return Refuse(RESCHEDULE, want.device, text)
    return None


def _enough_room(ledger: _Ledger, wants: tuple[Want, ...], new: tuple[Want, ...]) -> Refuse | None:
    machine = ledger.view.machine(ledger.node)
    after = {**ledger.taken, **{want.device: want.model for want in wants}}
    if machine is not None and len(after) + ledger.others > machine.slots and wants:
        taken = len(after) - len(wants) + ledger.others
        wanted = f"; this claim wants {len(wants)}" if len(wants) > 1 else ""
        text = f"{ledger.node} can take {machine.slots} devices, and {taken} are taken by others{wanted}"
        return Refuse(RESCHEDULE, wants[0].device, text)
    for want in new:
        most = room.limits(ledger.view, ledger.node, want.model, ledger.policy).most
        if sum(model.index == want.model.index for model in after.values()) > most:
            text = f"{ledger.node} may have {most} of {want.model.cdi_model_name}"
            return Refuse(RESCHEDULE, want.device, text)
    return None


def _in_time(ledger: _Ledger, new: tuple[Want, ...]) -> Refuse | None:
    """An order that cannot be carried out before the scheduler gives up is sent round early, or not at all."""
    for place, want in enumerate(want for want in new if not _ordered(ledger, want)):
        fabric = naming.fabric_of(want.device, ledger.policy)
        assert fabric is not None
        inventory = ledger.view.inventory(fabric)
        if inventory is None:
            continue
        ahead, jobs = ledger.view.ahead(fabric, want.claim), inventory.traits.jobs
        each = ledger.view.attach_seconds(fabric)
        margin = ledger.policy.binding_margin_seconds
        patience = ledger.policy.binding_timeout_seconds - margin
        # All that going round can win, when nobody is in the way; up to the margin it may be but a clock that is wrong.
        lost = min(ledger.now - want.claim.given_at, margin)
        if ahead < jobs and lost + (place // jobs + 1) * each > patience:
            continue  # going round would not help; a device that comes late serves the next attempt
        done_at = ledger.now + ((ahead + place) // jobs + 1) * each
        if done_at > want.claim.given_at + patience:
            text = f"fabric {fabric} has {ahead + place} orders ahead of it and cannot attach it in time"
            return Refuse(RESCHEDULE, want.device, text)
    return None


def _ordered(ledger: _Ledger, want: Want) -> bool:
    """Whether the node's request names the device for this claim: what is under way is not given up for time."""
    request = ledger.view.request(naming.request(ledger.node, want.model))
    return request is not None and Wanted(want.device, want.claim.key) in request.wanted
