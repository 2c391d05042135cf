"""An allocated claim → CDI edits and checkpoint, and back.

Asked by the kubelet, through our plugin or the embedded one. The claim in the view has just been read live. Knows
rules 10 and 11. Must not know how files are written.
"""

import msgspec

from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.host import Facts, Prepared
from jackfield.model.names import DeviceID, Seconds
from jackfield.model.plan import (
    AnyAction,
    Hold,
    LetGo,
    Phase,
    Plan,
    PrepareKey,
    RemoveCDI,
    Waiting,
    WriteCDI,
)
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import View


class Refusal(msgspec.Struct, frozen=True):
    """Why a device is not prepared now; the kubelet asks again."""

    what: str


def decide(view: View, key: PrepareKey, policy: Policy, now: Seconds) -> Plan:
    """Return what to write so that the claim's devices are prepared here, or what that waits for."""
    del policy, now
    claim, facts = view.claim(key.claim), view.facts(key.node)
    if facts is None:
        return _refused(key, Refusal(f"the plugin on {key.node}"))
    if claim is None or claim.uid != key.uid:
        return _refused(key, Refusal("the claim the pod was bound with; another of its name exists"))
    if claim.node != key.node:
        return _refused(key, Refusal(f"an allocation to {key.node}; it is to {claim.node or 'no node'}"))
    holds: list[AnyAction] = []
    writes: list[AnyAction] = []
    for result in claim.results:
        if result.driver != DRIVER or result.admin_access:
            continue
        found = _device(view, key, claim, result, facts)
        if isinstance(found, Refusal):
            return _refused(key, found)
        prepared = any(one.uid == key.uid and one.device == str(result.id) for one in facts.prepared)
        if not prepared or found.holder != key.uid:
            # Written though it may be there: the view of the resource may be old, and the version asks it live.
            holds.append(_hold(found, claim))
        if not prepared:
            writes.append(_write(key, result.id, found))
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
    held = [one for one in view.resources_on(key.node) if one.holder == key.uid]
    return Plan(tuple(_let_go(one, key) for one in held))


def _device(
    view: View, key: PrepareKey, claim: ResourceClaim, result: DeviceRequestAllocationResult, facts: Facts
) -> ComposableResource | Refusal:
    """Return the resource of a device that may be prepared, or what stands in the way (rule 10)."""
    resource, name = view.resource_of(result.id), result.device
    if resource is None or resource.node != key.node or resource.state is not ResourceState.ONLINE:
        return Refusal(f"{name} to be online on {key.node}")
    if resource.record is None or resource.record.uid != claim.uid:
        return Refusal(f"{name} to be recorded for this claim")
    if resource.holder and resource.holder != claim.uid:
        return Refusal(f"{name} to be unprepared for another claim")
    physical = resource.status.cdi_device_id
    if not any(one.physical == physical for one in facts.seen):
        return Refusal(f"{physical or name} to be seen on {key.node}")
    for one in facts.prepared:
        if one.physical == physical and one.uid != claim.uid:
            return Refusal(f"{name} to be unprepared for claim {one.claim}")
        if one.uid == claim.uid and not _still(view, claim, one):
            return Refusal(f"{one.device}, which this claim had before, to be unprepared")
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


def _write(key: PrepareKey, device: DeviceID, resource: ComposableResource) -> WriteCDI:
    return WriteCDI(
        phase=Phase.PREPARED,
        claim=key.claim,
        node=key.node,
        uid=key.uid,
        device=device,
        physical=resource.status.cdi_device_id,
        cdi=resource.status.device_id,
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
    return Plan(waiting=(Waiting(f"claim/{key.claim}", "Preparing", refusal.what),))
