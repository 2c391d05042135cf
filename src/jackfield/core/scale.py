"""Allocated claims and idle devices → requests for a node, and the scheduler's answers.

One node at a time, oldest claim first. Knows the lock of rules 7 to 9 and 12, hold time and spares. Must not know
how a request becomes devices.
"""

from collections.abc import Iterable
from typing import assert_never

import msgspec

from jackfield.core import demand, keep, naming, room, surplus
from jackfield.core.demand import Demand, Postpone, Refuse, Serve, Settled, Want
from jackfield.core.keep import NOBODY, Kept, Site
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DELETE_DEVICE,
    DEVICES,
    SCALER,
    ComposabilityRequest,
    ComposabilityRequestSpec,
    ComposableResource,
    Record,
    ResourceState,
    ScalarResource,
    Wanted,
    spelt,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NEVER, DeviceID, FabricName, Key, NodeName, Seconds
from jackfield.model.plan import (
    AnyAction,
    CountAttempt,
    DeleteRequest,
    ForgetClaim,
    MarkVictim,
    Phase,
    Plan,
    PutRequest,
    RecordClaim,
    SetCondition,
    Waiting,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, RESCHEDULE, DeviceModel, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View


def decide(view: View, node: NodeName, policy: Policy, now: Seconds) -> Plan:
    """Return what the claims on a node are told, and what its requests should be."""
    demands = demand.on_node(view, node, policy, now)
    plans = [_answer(view, one, policy, now) for one in demands]
    plans += [_forget(view, one, now, policy) for one in view.resources_on(node)]
    if not policy.paused and view.fabric_of(node) not in policy.fabrics_paused:
        site = Site(view, node, policy, now, demands)
        plans += [_resize(site, model) for model in policy.models]
        plans.append(surplus.adopt(view, node, policy, now))
    return _joined(plans)


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[NodeName, ...]:
    """Return the nodes whose claims or devices a change is about."""
    nodes = room.wakes(view, policy, delta)
    match delta:
        case ObjectChanged(old=old, new=new):
            nodes = (*nodes, *_also(view, policy, old), *_also(view, policy, new))
        case InventoryChanged(devices=devices):
            # A claim may wait on another node for what was shown here: when that counts as gone, nothing else says so.
            nodes = (*nodes, *(claim.node for one in devices for claim in view.claims_holding(one)))
        case _:
            pass
    return tuple(node for node in dict.fromkeys(nodes) if node) if nodes else ()


def _also(view: View, policy: Policy, one: object) -> Iterable[NodeName]:
    """Nodes further off: rivals for a device, a claim recorded elsewhere."""
    match one:
        case ResourceClaim():
            rivals = (rival for result in one.results for rival in view.claims_holding(result.id))
            behind = (view.resource_behind(result.id) for result in one.results)
            waiting = (
                node for resource in behind if resource is not None for node in _wanted_on(view, resource)
            )
            recording = (resource.node for resource in view.resources_recording(one.key))
            # What it gives up falls idle by no change of its own, under a vendor's name or before it was recorded.
            idle = _past_spares(view, view.fabric_of(one.node), policy.models)
            return (*(rival.node for rival in rivals), *waiting, *recording, *idle)
        case ComposableResource():
            served = view.claim(one.record.claim) if one.record is not None else None
            nodes = (*_wanted_on(view, one), *((served.node,) if served else ()))
            model = policy.model(one.spec.model)
            idle = _past_spares(view, view.fabric_of(one.node), (model,) if model is not None else ())
            return (*nodes, *_astray(view, policy, one), *idle)
        case ResourceSlice() if one.spec.node_name:
            # By the names that a vendor's driver publishes it is known who has what, and so what is idle.
            idle = _past_spares(view, view.fabric_of(one.spec.node_name), policy.models)
            here = view.resources_on(one.spec.node_name)
            return (*idle, *(node for resource in here for node in _wanted_on(view, resource)))
        case Pod() if view.node(one.spec.node_name) is None:
            # The last on a node that was deleted: what was held there is not any more (rule 16).
            return (one.spec.node_name,)
        case _:
            return ()


def _wanted_on(view: View, resource: ComposableResource) -> Iterable[NodeName]:
    """Where claims were given the device by our name for it, wherever it is and whoever has it by another."""
    holding = view.claims_holding(resource.device) if resource.device is not None else ()
    return (claim.node for claim in holding)


def _astray(view: View, policy: Policy, resource: ComposableResource) -> Iterable[NodeName]:
    """Where the device stands, should that be elsewhere: given up by this resource, it is put into the books there.

    Also the device that it was to have: while there is this resource, nobody else can have one of its name.
    """
    fabric = naming.fabric_of(resource.device, policy) if resource.device is not None else None
    if resource.device is None or fabric is None:
        return ()
    meant = view.physical(resource.device)
    there = view.place_of(fabric, resource.status.cdi_device_id)
    return (there, meant.node) if meant is not None else (there,)


def _past_spares(
    view: View, fabric: FabricName | None, models: tuple[DeviceModel, ...]
) -> Iterable[NodeName]:
    """A device that falls idle takes the place of an older spare, which may stand anywhere on the fabric."""
    if fabric is None:
        return
    for model in models:
        if model.spares > 0:
            yield from (one.node for one in view.idle(fabric, model.cdi_model_name)[: -model.spares])


# --- the answers to one claim


def _answer(view: View, wish: Demand, policy: Policy, now: Seconds) -> Plan:
    match wish.verdict:
        case Settled(ready=ready):
            return _bereft(view, wish, policy, now) if ready else Plan()
        case Refuse() as refused:
            return _refuse(wish, refused)
        case Postpone(what=what, until=until):
            return Plan(waiting=(_wait(wish.claim, "Quota", what),), again_at=until)
        case Serve():
            return _serve(view, wish, policy, now)
        case _ as never:
            assert_never(never)


def _refuse(wish: Demand, refused: Refuse) -> Plan:
    claim = wish.claim
    attempts, last = claim.attempts
    if refused.order and last != refused.order:
        counted = CountAttempt(
            phase=Phase.WANTED,
            claim=claim.key,
            version=claim.metadata.resource_version,
            order=refused.order,
            attempts=attempts + 1,
            because=refused.reason,
        )
        return Plan((counted,))
    return Plan((_condition(wish, refused.type, refused.reason),))


def _bereft(view: View, wish: Demand, policy: Policy, now: Seconds) -> Plan:
    """Tell of a device that vanished from under a pod: what was answered stays, but its user should know (rule 8)."""
    gone = {want.device.device: _gone_at(view, want, policy) for want in wish.wants}
    lost = [device for device, at in gone.items() if now >= at]
    again_at = min((at for at in gone.values() if now < at), default=NEVER)
    if not lost:
        return Plan(again_at=again_at)
    what = (
        f"{', '.join(lost)} to be attached to {wish.claim.node} again, as its fabric's manager shows it; "
        "until then its pod runs without it: delete the pod to have it scheduled anew"
    )
    return Plan(waiting=(_wait(wish.claim, "Lost", what),), again_at=again_at)


def _gone_at(view: View, want: Want, policy: Policy) -> Seconds:
    """When a device counts as gone; what nothing attached any more is gone if its manager says so."""
    if want.resource is not None:
        return room.gone_at(view, want.resource, policy)
    return Seconds(float("-inf")) if room.vanished(view, want.device, policy) else NEVER


def _serve(view: View, wish: Demand, policy: Policy, now: Seconds) -> Plan:
    """Wait until every device is online, then record the claim on each, then answer on that very version."""
    for want in wish.wants:
        waiting = _not_online(view, want)
        if waiting is not None:
            return Plan(waiting=(waiting,), again_at=min(_gone_at(view, one, policy) for one in wish.wants))
    elsewhere = _recorded_elsewhere(view, wish)
    if elsewhere is not None:
        return Plan(
            waiting=(
                _wait(wish.claim, "Recorded", f"{elsewhere} to forget an earlier allocation of this claim"),
            )
        )
    missing = tuple(want for want in wish.wants if not _recorded(want))
    if missing:
        return Plan(tuple(_record(want, now) for want in missing))
    if not all(want.model.binds for want in wish.wants):
        reason = "the device is attached; its driver on the node offers it now"
        return Plan((_condition(wish, RESCHEDULE, reason),))
    reason = "attached" if wish.wants else "admin access needs no attaching"
    return Plan((_condition(wish, READY, reason),))


def _not_online(view: View, want: Want) -> Waiting | None:
    resource, name = want.resource, want.device.device
    if resource is None:
        what = f"{name} to be ordered for {want.claim.node}{_in_the_way(view, want)}"
        return _wait(want.claim, "Composing", what)
    leaving = resource.state in {ResourceState.DETACHING, ResourceState.DELETING}
    # A resource that is to go still serves the claim that it is recorded for: that keeps it.
    leaving |= resource.deleting and (resource.record is None or resource.record.uid != want.claim.uid)
    if resource.node != want.claim.node or leaving:
        return _wait(want.claim, "Moving", f"{name} to come back from {resource.node}")
    if resource.state is not ResourceState.ONLINE:
        return _wait(want.claim, "Attaching", f"{name} to be attached to {resource.node}")
    return _not_usable(view, want, resource)


def _in_the_way(view: View, want: Want) -> str:
    """Why nothing is ordered, where only somebody else can help: a request of his is not touched."""
    request = view.request(naming.request(want.claim.node, want.model))
    if request is None or request.scalers:
        return ""
    name = request.metadata.name
    return f" when ComposabilityRequest {name}, which somebody else wrote under this name, is deleted"


def _not_usable(view: View, want: Want, resource: ComposableResource) -> Waiting | None:
    """What a device that is online on the claim's node may still lack."""
    name = want.device.device
    if view.missing_since(resource) != NEVER:
        return _wait(want.claim, "Missing", f"the manager to show {name} on {resource.node} again")
    if resource.record is not None and resource.record.uid != want.claim.uid:
        return _wait(want.claim, "Recorded", f"{name} to be given up by claim {resource.record.claim}")
    if resource.holder and resource.holder != want.claim.uid:
        return _wait(want.claim, "Held", f"{name} to be unprepared on {resource.node}")
    names = view.published(resource.status.device_id)
    if want.model.binds and names:
        what = f"{names[0]} to be withdrawn: it is {name} under another name"
        return _wait(want.claim, "PublishedTwice", what)
    if not want.model.binds and not names:
        return _wait(want.claim, "Publishing", f"the driver on {resource.node} to offer {name}")
    return None


def _recorded_elsewhere(view: View, wish: Demand) -> str | None:
    """A uid is recorded on the resources of one allocation only: the kubelet caches by uid (V10)."""
    mine = {want.device for want in wish.wants}
    for resource in view.resources_recording(wish.claim.key):
        if (
            resource.device not in mine
            and resource.record is not None
            and resource.record.uid == wish.claim.uid
        ):
            return resource.metadata.name
    return None


def _recorded(want: Want) -> bool:
    assert want.resource is not None
    record = want.resource.record
    return record is not None and (record.uid, record.version) == (
        want.claim.uid,
        want.claim.metadata.resource_version,
    )


def _record(want: Want, now: Seconds) -> RecordClaim:
    assert want.resource is not None
    return RecordClaim(
        phase=Phase.BINDABLE,
        claim=want.claim.key,
        resource=want.resource.metadata.name,
        version=want.resource.metadata.resource_version,
        record=Record(want.claim.key, want.claim.uid, want.claim.metadata.resource_version),
        at=now,
        because=f"{want.device.device} is online on {want.resource.node}",
    )


def _condition(wish: Demand, kind: str, message: str) -> SetCondition:
    """Answer for every device of the claim: the scheduler stops reading at the first that says nothing."""
    return SetCondition(
        phase=Phase.BINDABLE,
        claim=wish.claim.key,
        uid=wish.claim.uid,
        version=wish.claim.metadata.resource_version,
        devices=wish.devices,
        type=kind,
        message=message,
        because=message,
    )


def _wait(claim: ResourceClaim, reason: str, what: str) -> Waiting:
    return Waiting(f"claim/{claim.key}", reason, what)


# --- forgetting


def _forget(view: View, resource: ComposableResource, now: Seconds, policy: Policy) -> Plan:
    """Remove a record whose claim has left; the live read that rule 12 wants is the action's own."""
    record, model = resource.record, policy.model(resource.spec.model)
    if record is None or model is None or resource.device is None:
        return Plan()
    if not model.binds:
        return _forget_handover(view, resource, now, policy)
    if resource.holder and not room.node_gone(view, resource.node):
        return Plan()
    if any(one.uid == record.uid for one in room.holders(view, resource)):
        return Plan()
    return Plan((_forgetting(resource, record, now, "its claim no longer holds the device"),))


def _forget_handover(view: View, resource: ComposableResource, now: Seconds, policy: Policy) -> Plan:
    """In `reschedule` the record only keeps the model closed until the claim has come back, or for so long."""
    record = resource.record
    assert record is not None
    claim = view.claim(record.claim)
    until = Seconds(resource.last_used + policy.handover_seconds)
    if any(view.claims_holding(one) for one in view.published(resource.status.device_id)):
        because = "a claim holds the device by its driver's name"
    elif claim is None or claim.uid != record.uid or _elsewhere(claim, resource):
        because = "its claim went elsewhere"
    elif now >= until:
        because = "its claim did not come back in time"
    else:
        return Plan(again_at=until)
    # Nothing is locked by this record: the driver's own claim is the lock.
    forget = _forgetting(resource, record, now, because)
    return Plan((msgspec.structs.replace(forget, devices=()),))


def _elsewhere(claim: ResourceClaim, resource: ComposableResource) -> bool:
    return bool(claim.results) and all(result.id != resource.device for result in claim.results)


def _forgetting(resource: ComposableResource, record: Record, now: Seconds, because: str) -> ForgetClaim:
    assert resource.device is not None
    return ForgetClaim(
        phase=Phase.RELEASED,
        claim=record.claim,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        record=record,
        devices=(resource.device,),
        node=resource.node,
        at=now,
        because=because,
    )


# --- the size of a request


def _resize(site: Site, model: DeviceModel) -> Plan:
    """Write the request of this node and model as it should be, if it is not."""
    kept = keep.devices(site, model)
    name = naming.request(site.node, model)
    current = site.view.request(name)
    before = {one.device: one.claim for one in current.wanted} if current is not None else {}
    # An idle device keeps the name of the claim it came for: that it is idle is no change of the wish.
    wanted = tuple(
        Wanted(one.device, one.claim if one.claim.name else before.get(one.device, NOBODY))
        for one in kept.wanted
    )
    unmarked = (
        [] if model.binds else [one for one, _ in kept.going if DELETE_DEVICE not in one.metadata.annotations]
    )
    if unmarked:
        return Plan(tuple(_victim(one) for one in unmarked), again_at=kept.again_at)
    settled = not wanted if current is None else current.wanted == wanted
    if settled:
        return Plan(again_at=kept.again_at)
    # A request that somebody else wrote under our name is theirs all the same.
    if current is not None and (current.deleting or not current.scalers):
        # Who is not ordered for is told so when it is too late for an order: no event says when that is.
        soon = Seconds(site.now + site.policy.poll_seconds)
        return Plan(again_at=min(kept.again_at, soon))
    return Plan(
        (_request(site, model, current, wanted, _news(before, wanted, kept)),), again_at=kept.again_at
    )


def _request(
    site: Site,
    model: DeviceModel,
    current: ComposabilityRequest | None,
    wanted: tuple[Wanted, ...],
    because: str,
) -> PutRequest | DeleteRequest:
    added = [one for one in wanted if current is None or one not in current.wanted]
    phase = Phase.WANTED if added else Phase.DETACHED
    if current is not None and not wanted:
        meta = current.metadata
        return DeleteRequest(phase=phase, name=meta.name, version=meta.resource_version, because=because)
    resource = ScalarResource(
        type=model.type, model=model.cdi_model_name, size=len(wanted), target_node=site.node
    )
    new = ObjectMeta(name=naming.request(site.node, model))
    meta = current.metadata if current is not None else new
    meta = msgspec.structs.replace(
        meta,
        labels={**meta.labels, SCALER: "true"},
        annotations={**meta.annotations, DEVICES: spelt(wanted)},
    )
    request = ComposabilityRequest(metadata=meta, spec=ComposabilityRequestSpec(resource))
    return PutRequest(
        phase=phase, claim=added[0].claim if added else NOBODY, request=request, because=because
    )


def _news(before: dict[DeviceID, Key], wanted: tuple[Wanted, ...], kept: Kept) -> str:
    added = [f"claim {one.claim} was given {one.device.device}" for one in wanted if one.device not in before]
    gone = [f"{resource.metadata.name} goes: {why}" for resource, why in kept.going]
    return "; ".join([*added, *gone]) or "what it is wanted for changed"


def _victim(resource: ComposableResource) -> MarkVictim:
    return MarkVictim(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because="its request is about to shrink by this very device",
    )


def _joined(plans: list[Plan]) -> Plan:
    actions: tuple[AnyAction, ...] = tuple(action for plan in plans for action in plan.actions)
    waiting = tuple(one for plan in plans for one in plan.waiting)
    return Plan(actions, waiting, min((plan.again_at for plan in plans), default=NEVER))
