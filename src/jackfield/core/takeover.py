"""Resources that CoHDI's operator began: each gets the name of its device, and is one of ours from then on.

Nothing else of them changes: state, finalizer and ids are CoHDI's own words, which we speak. What its operator made
to detach a device that nobody of CoHDI's attached is left alone, and so is what no operator has begun. Knows the
marks of CoHDI's operator. Must not know what becomes of a resource.
"""

from jackfield.core import naming
from jackfield.model.cohdi import READY_TO_DETACH
from jackfield.model.composition import FINALIZER, ComposableResource, ResourceState
from jackfield.model.names import PhysicalID, Seconds, rfc3339_micro
from jackfield.model.plan import Phase, Plan, TakeOver, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import View


def decide(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    """Return the name for a resource without one, or what is waited for until it can have one."""
    labels = resource.metadata.labels
    if FINALIZER not in resource.metadata.finalizers or READY_TO_DETACH in labels:
        return Plan()
    model, fabric = policy.model(resource.spec.model), view.fabric_of(resource.node)
    if model is None:
        what = f"the policy to list {resource.spec.model!r} among its models; until then it is left as it is"
        return Plan(waiting=(_wait(resource, what),))
    if fabric is None:
        what = (
            f"a fabric manager to show {resource.node!r} among its machines; until then it is left as it is"
        )
        return Plan(waiting=(_wait(resource, what),))
    # Two devices never have one name, and no slot is called so: whoever names others meanwhile is not in the way.
    known = resource.status.cdi_device_id or PhysicalID(resource.uid)
    unanswered = resource.state is ResourceState.ATTACHING and not resource.status.cdi_device_id
    take = TakeOver(
        phase=Phase.ATTACHING,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        device=naming.device(fabric, model, known),
        # Its operator may have asked a moment ago, and then a device is about to come.
        sent=f"attach {rfc3339_micro(now)}" if unanswered else "",
        because=f"CoHDI's operator began it on {resource.node}",
    )
    return Plan((take,))


def _wait(resource: ComposableResource, what: str) -> Waiting:
    return Waiting(f"resource/{resource.metadata.name}", "TakeOver", what)
