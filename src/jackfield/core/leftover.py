"""Claims left over: allocated, reserved for nobody, waited for by nobody (rule 17).

Nobody else would ever take the allocation off them, and their devices would stay away from the pool for good.
Knows when a claim is left over; one that a pod may still use is not. Must not know how a claim is served.
"""

from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, Record
from jackfield.model.meta import holds
from jackfield.model.names import Key, Seconds
from jackfield.model.plan import ClearClaim, Phase, Plan, Waiting
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, Policy
from jackfield.model.view import Delta, ObjectChanged, View


def decide(view: View, key: Key, policy: Policy, now: Seconds) -> Plan:
    """Return the clearing of a claim, if it is left over."""
    del now
    claim = view.claim(key)
    if claim is None or claim.status.reserved_for or not _ours(claim, policy):
        return Plan()
    resources = (view.resource_of(result.id) for result in claim.results)
    if any(one is not None and one.holder == claim.uid for one in resources):
        return Plan(waiting=(Waiting(f"claim/{key}", "Held", "its device to be unprepared"),))
    pods = view.pods_using(key)
    if pods:
        return Plan(waiting=(Waiting(f"claim/{key}", "Pod", f"pod {pods[0].key} to be scheduled"),))
    clear = ClearClaim(
        phase=Phase.ALLOCATED,
        claim=key,
        uid=claim.uid,
        version=claim.metadata.resource_version,
        ask_pods=any(holds(claim.conditions(result.id), READY) for result in claim.results),
        because="it is allocated, reserved for nobody, and no pod waits for it",
    )
    return Plan((clear,))


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[Key, ...]:
    """Return the claims that a change is about."""
    del view
    match delta:
        case ObjectChanged(new=ResourceClaim() as claim):
            return (claim.key,) if _ours(claim, policy) and not claim.status.reserved_for else ()
        case ObjectChanged(old=Pod() as pod, new=new):
            if isinstance(new, Pod) and not new.finished:
                return ()
            return tuple(Key(pod.metadata.namespace, name) for name in pod.claim_names if name)
        case ObjectChanged(old=ComposableResource(record=Record(claim=claim_key), holder=holder)) if holder:
            return (claim_key,)  # it may have been unprepared
        case _:
            return ()


def _ours(claim: ResourceClaim, policy: Policy) -> bool:
    return any(
        READY in result.binding_conditions and naming.fabric_of(result.id, policy) is not None
        for result in claim.results
    )
