"""Claims left over: allocated, reserved and waited for by nobody (rule 17); or entangled (decisions 0014, 0015).

Nobody else would ever take the allocation off them, and their devices would stay away from the pool for good; and of a
vendor's device that is not shown any more, all that might be meant by it (decision 0016).
Knows when a claim is left over; one that a pod may still use is not. Must not know how a claim is served.
"""

from typing import Final

from jackfield.core import naming, room
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, Record
from jackfield.model.meta import condition, holds
from jackfield.model.names import LONG_AGO, Key, NodeName, Seconds, seconds
from jackfield.model.node import Node
from jackfield.model.plan import ClearClaim, Phase, Plan, Waiting
from jackfield.model.pod import Pod
from jackfield.model.policy import FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View

ENTANGLED_SECONDS: Final = Seconds(60.0)
"""So long after a claim was turned down a scheduler that waited for it has taken its pods off it."""


def decide(view: View, key: Key, policy: Policy, now: Seconds) -> Plan:
    """Return the clearing of a claim, if it is left over."""
    claim = view.claim(key)
    if claim is None:
        return Plan()
    if not _ours(claim, policy):
        return _abandon(view, claim, policy)
    if claim.status.reserved_for:
        return _disentangle(view, claim, policy, now)
    resources = (view.resource_of(result.id) for result in claim.results)
    held = [one for one in resources if one is not None and one.holder == claim.uid]
    if not all(room.node_gone(view, one.node) for one in held):
        return Plan(waiting=(Waiting(f"claim/{key}", "Held", "its device to be unprepared"),))
    pods = view.pods_using(key)
    if pods:
        return Plan(waiting=(Waiting(f"claim/{key}", "Pod", f"pod {pods[0].key} to be scheduled"),))
    return Plan((_clear(claim, "it is allocated, reserved for nobody, and no pod waits for it"),))


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[Key, ...]:
    """Return the claims that a change is about."""
    match delta:
        case ObjectChanged(new=ResourceClaim() as claim):
            left = not claim.status.reserved_for or _is_entangled(claim)
            ours = _ours(claim, policy) or any(one.driver in _vendors(policy) for one in claim.results)
            return (claim.key,) if left and ours else ()
        case ObjectChanged(old=Pod() as pod, new=new):
            heir = new if isinstance(new, Pod) and not new.finished else None
            return _left_by(view, pod, heir)
        case ObjectChanged(old=Node() as node, new=None):
            return _held_on(view, node.name)
        case ObjectChanged(old=ComposableResource(record=Record(claim=claim_key), holder=holder)) if holder:
            return (claim_key,)  # it may have been unprepared
        case ObjectChanged(old=ResourceSlice() as shown) if shown.spec.driver in _vendors(policy):
            return _unreserved(view, policy, shown.spec.node_name)
        case InventoryChanged(nodes=nodes):
            return tuple(dict.fromkeys(key for node in nodes for key in _unreserved(view, policy, node)))
        case _:
            return ()


def _left_by(view: View, pod: Pod, heir: Pod | None) -> tuple[Key, ...]:
    """Return the claims that a pod left to whoever bears its name now: itself, another with other claims, or nobody."""
    kept = heir.claim_names if heir is not None else ()
    own = (Key(pod.metadata.namespace, name) for name in pod.claim_names if name and name not in kept)
    stays = heir is not None and heir.spec.node_name == pod.spec.node_name
    return tuple(dict.fromkeys((*own, *(_held_on(view, pod.spec.node_name) if not stays else ()))))


def _held_on(view: View, node: NodeName) -> tuple[Key, ...]:
    """Return the claims that hold something on a node that is gone: nobody will unprepare it (rule 16)."""
    if not room.node_gone(view, node):
        return ()
    held = (one.record for one in view.resources_on(node) if one.holder)
    return tuple(record.claim for record in held if record is not None)


def _unreserved(view: View, policy: Policy, node: NodeName) -> tuple[Key, ...]:
    """Return the claims on a node that have a vendor's device and are reserved for nobody."""
    claims = (claim for driver in _vendors(policy) for claim in view.claims_at(driver, node))
    return tuple(claim.key for claim in claims if not claim.status.reserved_for)


def _abandon(view: View, claim: ResourceClaim, policy: Policy) -> Plan:
    """Clear a claim that nobody uses and that has a vendor's device which is not shown any more.

    Any device of that driver on the node may be meant by it, and all of them would have to stay.
    """
    if claim.status.reserved_for or view.pods_using(claim.key) or view.fabric_of(claim.node) is None:
        return Plan()
    vendors = [one for one in claim.results if one.driver in _vendors(policy)]
    if not any(one.id in view.unshown(one.driver, claim.node) for one in vendors):
        return Plan()
    return Plan((_clear(claim, "it has a device that nobody shows any more, and no pod uses it"),))


def _vendors(policy: Policy) -> tuple[str, ...]:
    """Return the drivers that publish by themselves what was attached for them."""
    return tuple(dict.fromkeys(model.driver_name for model in policy.models if not model.binds))


def _clear(claim: ResourceClaim, because: str) -> ClearClaim:
    return ClearClaim(
        phase=Phase.ALLOCATED,
        claim=claim.key,
        uid=claim.uid,
        version=claim.metadata.resource_version,
        ask_pods=not claim.status.reserved_for and (_is_ready(claim) or not _waits(claim)),
        because=because,
    )


def _disentangle(view: View, claim: ResourceClaim, policy: Policy, now: Seconds) -> Plan:
    """Clear a claim that was turned down and that several pods keep each other from being given anew.

    The scheduler takes back a claim only from a pod that is alone on it. Pods that waited for it when the scheduler was
    restarted stay on it, and none of them is ever alone. None can be bound either: the claim was never ready.
    """
    if not _is_entangled(claim):
        return Plan()
    at = Seconds(_turned_down_at(claim) + ENTANGLED_SECONDS)
    if now < at:
        return Plan(again_at=at)
    waiting = {pod.uid: pod for pod in view.pods_using(claim.key) if not pod.spec.node_name}
    users = [waiting.get(user.uid) for user in claim.status.reserved_for]
    # Kubernetes takes off who is gone, and we may not have heard. A scheduler that has heard nothing at all may still
    # wait with a pod that is nominated, and would bind it by whatever the claim is given next; until it gives up.
    patience_ends = claim.given_at + policy.binding_timeout_seconds + ENTANGLED_SECONDS
    waited_for = now < patience_ends and any(
        one is not None and one.status.nominated_node_name for one in users
    )
    if waited_for or None in users:
        return Plan(again_at=Seconds(now + ENTANGLED_SECONDS))
    return Plan((_clear(claim, "it was turned down, and the pods that share it keep each other on it"),))


def _is_entangled(claim: ResourceClaim) -> bool:
    waited_for = [one.id for one in claim.results if READY in one.binding_conditions]
    never = any(not holds(claim.conditions(one), READY) for one in waited_for)
    return len(claim.status.reserved_for) > 1 and never and _turned_down_at(claim) > LONG_AGO


def _waits(claim: ResourceClaim) -> bool:
    """Whether nobody is bound who was given it until we have said so."""
    return any(READY in result.binding_conditions for result in claim.results)


def _is_ready(claim: ResourceClaim) -> bool:
    return any(holds(claim.conditions(result.id), READY) for result in claim.results)


def _turned_down_at(claim: ResourceClaim) -> Seconds:
    """When one of its devices was last said not to come; long ago if never."""
    told = (
        condition(claim.conditions(one.id), kind) for one in claim.results for kind in (RESCHEDULE, FAILED)
    )
    return max(
        (seconds(one.last_transition_time) for one in told if one is not None and one.true), default=LONG_AGO
    )


def _ours(claim: ResourceClaim, policy: Policy) -> bool:
    return any(
        READY in result.binding_conditions and naming.fabric_of(result.id, policy) is not None
        for result in claim.results
    )
