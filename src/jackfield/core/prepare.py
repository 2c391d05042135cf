"""An allocated claim → CDI edits and checkpoint, and back.

Asked by the kubelet, through our plugin or the embedded one. The claim in the view has just been read live. Knows
rules 10 and 11. Must not know how files are written.
"""

from collections.abc import Sequence

import msgspec

from jackfield.core import sight
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState, device_id
from jackfield.model.host import Facts, Prepared, Seen
from jackfield.model.names import Key, NodeName, Seconds, Uid
from jackfield.model.plan import (
    AnyAction,
    Hold,
    LetGo,
    Phase,
    Plan,
    PrepareKey,
    RemoveCDI,
    Rescan,
    Waiting,
    WriteCDI,
)
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import View

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Kubernetes' annotation of a claim that was made from a template: what its pod calls it."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a device is not prepared now; the kubelet asks again."""

    what: str
    unseen: str = ""
    """The resource whose device is to be looked for."""


class _Asked(msgspec.Struct, frozen=True):
    """A claim, and where it is to be prepared."""

    view: View
    key: PrepareKey
    claim: ResourceClaim
    facts: Facts
    policy: Policy


class _Fit(msgspec.Struct, frozen=True):
    """A device that may be prepared: in the books, and before the node's eyes."""

    resource: ComposableResource
    seen: Seen


def decide(view: View, key: PrepareKey, policy: Policy, now: Seconds) -> Plan:
    """Return what to write so that the claim's devices are prepared here, or what that waits for."""
    del now
    claim, facts = view.claim(key.claim), view.facts(key.node)
    if facts is None:
        return _refused(key, Refusal(f"the plugin on {key.node}"))
    if claim is None or claim.uid != key.uid:
        return _refused(key, Refusal("the claim the pod was bound with; another of its name exists"))
    if claim.node != key.node:
        return _refused(key, Refusal(f"an allocation to {key.node}; it is to {claim.node or 'no node'}"))
    asked = _Asked(view, key, claim, facts, policy)
    holds: list[AnyAction] = []
    writes: list[AnyAction] = []
    for result in claim.results:
        if result.driver != DRIVER or result.admin_access:
            continue
        found = _fit(asked, result)
        if isinstance(found, Refusal):
            return _refused(key, found)
        prepared = any(one.uid == key.uid and one.device == str(result.id) for one in facts.prepared)
        if not prepared or found.resource.holder != key.uid:
            # Written though it may be there: the view of the resource may be old, and the version asks it live.
            holds.append(_hold(found.resource, claim))
        if not prepared:
            writes.append(_write(key, claim, result, found))
    return Plan((*holds, *writes))


def decide_unprepare(view: View, key: PrepareKey, policy: Policy, now: Seconds) -> Plan:
    """Return what to remove so that nothing is prepared for the claim here; the claim may be long gone."""
    del policy, now
    facts = view.facts(key.node)
    if facts is not None and any(one.uid == key.uid for one in facts.prepared):
        remove = RemoveCDI(
            phase=Phase.RELEASED, claim=key.claim, node=key.node, uid=key.uid, because="its pod has ended"
        )
        return Plan((remove,))
    held = [one for one in view.resources_held_by(key.uid) if one.node == key.node]
    return Plan(tuple(_let_go(one, key) for one in held))


def decide_repair(view: View, node: NodeName, strays: Sequence[Uid]) -> Plan:
    """Return what to write on resources so that their holders are those that the checkpoint says (rule 11).

    For a plugin that starts: nobody prepares or unprepares meanwhile, and the claims of all holders have just been read
    live. `strays` are claims that are not in a damaged checkpoint and may be prepared all the same.
    """
    facts = view.facts(node)
    prepared = facts.prepared if facts is not None else ()
    holds: list[AnyAction] = []
    waiting: list[Waiting] = []
    for one in prepared:
        resource = _held_by(view, node, one)
        if resource is not None and not resource.holder:
            # Only what a restored backup has forgotten is not recorded: it is lent to nobody then (rule 10), and does
            # not leave before it is unprepared (rule 14).
            recorded = resource.record is not None and resource.record.uid == one.uid
            holds += [_hold_again(resource, one)] if recorded else []
        elif resource is not None and resource.holder != one.uid:
            what = f"claim {one.claim} to be unprepared; {resource.holder} is written as the holder of its device"
            waiting.append(Waiting(f"resource/{resource.metadata.name}", "HeldTwice", what))
    missing = unprepared(view, node)
    left = [one for one in view.resources_on(node) if one.holder in missing and one.holder not in strays]
    gone = [one for one in left if _is_over(view, one)]
    return Plan((*holds, *(_let_go_of_left(one) for one in gone)), tuple(waiting))


def out_of_sight(facts: Facts) -> tuple[Prepared, ...]:
    """Return what is prepared and not seen any more: pulled out, switched off, or fallen off the bus.

    By any of its names: a device says more of itself, or less, as its driver comes and goes.
    """
    names = {
        name for one in facts.seen for name in (one.physical, one.device, one.address, one.uuid, one.serial)
    }
    return tuple(one for one in facts.prepared if one.seen and one.seen not in names)


def holders(view: View, node: NodeName) -> tuple[Key, ...]:
    """Return the claims that resources on the node name as their holders and record."""
    there = (one for one in view.resources_on(node) if one.holder)
    return tuple(one.record.claim for one in there if one.record is not None)


def unprepared(view: View, node: NodeName) -> tuple[Uid, ...]:
    """Return the holders on the node for whom the checkpoint has nothing."""
    facts = view.facts(node)
    uids = [one.uid for one in facts.prepared] if facts is not None else []
    return tuple(one.holder for one in view.resources_on(node) if one.holder and one.holder not in uids)


def _held_by(view: View, node: NodeName, prepared: Prepared) -> ComposableResource | None:
    name = device_id(prepared.device)
    resource = view.resource_of(name) if name is not None else None
    same = resource is not None and resource.status.cdi_device_id == prepared.physical
    return resource if resource is not None and same and resource.node == node else None


def _is_over(view: View, resource: ComposableResource) -> bool:
    """Whether a holder's claim is gone, or has this device on this node no more; one that nobody knows is not."""
    record = resource.record
    if record is None or record.uid != resource.holder:
        return False
    claim = view.claim(record.claim)
    if claim is None or claim.uid != record.uid or claim.node != resource.node:
        return True
    return all(result.id != resource.device for result in claim.results)


def _fit(asked: _Asked, result: DeviceRequestAllocationResult) -> _Fit | Refusal:
    """Return a device that may be prepared, or what stands in the way (rule 10)."""
    resource = _resource(asked, result)
    if isinstance(resource, Refusal):
        return resource
    physical = resource.status.cdi_device_id
    seen = sight.of(resource, asked.facts, asked.policy.identities)
    if seen is None:
        # It was seen before, or it would not be online: a release that a restored backup has forgotten took it away.
        return Refusal(f"{physical or result.device} to be seen on {asked.key.node}", resource.metadata.name)
    if isinstance(seen, sight.Blurred):
        return Refusal(seen.what)
    uid, own = asked.claim.uid, seen.physical
    for one in asked.facts.prepared:
        if one.uid == uid:
            if not _still(asked.view, asked.claim, one):
                return Refusal(f"{one.device}, which this claim had before, to be unprepared")
        elif one.physical == physical or one.seen == own:
            return Refusal(f"{result.device} to be unprepared for claim {one.claim}")
    if all(one.uid != uid for one in asked.facts.prepared):
        leaving = [one.metadata.name for one in sight.alike(asked.view, resource) if _leaves(one)]
        if leaving:
            return Refusal(f"{leaving[0]}, which has the same device, to be returned")
    return _Fit(resource, seen)


def _leaves(resource: ComposableResource) -> bool:
    """Whether its node may have said already that nobody uses the device: it may be pulled at any moment."""
    return resource.withdrawn or resource.state in {ResourceState.DETACHING, ResourceState.DELETING}


def _resource(asked: _Asked, result: DeviceRequestAllocationResult) -> ComposableResource | Refusal:
    """Return the resource of a device, if its books say that this claim may have it."""
    resource, name = asked.view.resource_of(result.id), result.device
    node, uid = asked.key.node, asked.claim.uid
    if resource is None or resource.node != node or resource.state is not ResourceState.ONLINE:
        return Refusal(f"{name} to be online on {node}")
    if resource.record is None or resource.record.uid != uid:
        return Refusal(f"{name} to be recorded for this claim")
    if resource.holder and resource.holder != uid:
        return Refusal(f"{name} to be unprepared for another claim")
    return resource


def _still(view: View, claim: ResourceClaim, prepared: Prepared) -> bool:
    """Whether the claim has what was prepared for it: the device by its name, and the same one behind the name."""
    result = next((one for one in claim.results if str(one.id) == prepared.device), None)
    resource = view.resource_of(result.id) if result is not None else None
    return resource is not None and resource.status.cdi_device_id == prepared.physical


def _hold(resource: ComposableResource, claim: ResourceClaim) -> Hold:
    return Hold(
        phase=Phase.PREPARED,
        claim=claim.key,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        uid=claim.uid,
        because="the holder is written before anything is prepared",
    )


def _hold_again(resource: ComposableResource, prepared: Prepared) -> Hold:
    return Hold(
        phase=Phase.PREPARED,
        claim=prepared.claim,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        uid=prepared.uid,
        because="the checkpoint says that it is prepared, and no holder is written",
    )


def _let_go_of_left(resource: ComposableResource) -> LetGo:
    assert resource.record is not None
    return LetGo(
        phase=Phase.RELEASED,
        claim=resource.record.claim,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because="the claim that held it has ended, and nothing is prepared for it here",
    )


def _write(
    key: PrepareKey, claim: ResourceClaim, result: DeviceRequestAllocationResult, found: _Fit
) -> WriteCDI:
    return WriteCDI(
        phase=Phase.PREPARED,
        claim=key.claim,
        node=key.node,
        uid=key.uid,
        device=result.id,
        physical=found.resource.status.cdi_device_id,
        cdi=found.seen.device,
        seen=found.seen.physical,
        requests=(result.request,),
        share_id=result.share_id,
        pod_claim_name=claim.metadata.annotations.get(POD_CLAIM_NAME, ""),
        because=f"a pod of claim {key.claim} starts on {key.node}",
    )


def _let_go(resource: ComposableResource, key: PrepareKey) -> LetGo:
    return LetGo(
        phase=Phase.RELEASED,
        claim=key.claim,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because="nothing is prepared for it any more",
    )


def _refused(key: PrepareKey, refusal: Refusal) -> Plan:
    waiting = Waiting(f"claim/{key.claim}", "Preparing", refusal.what)
    if not refusal.unseen:
        return Plan(waiting=(waiting,))
    because = "a claim is to have it, and it is not seen any more"
    rescan = Rescan(phase=Phase.VISIBLE, node=key.node, resource=refusal.unseen, because=because)
    return Plan((rescan,), (waiting,))
