"""Devices seen and held on a node → rescan, report, release.

Runs on the node. Knows what the node's own eyes see and what its checkpoint says. Must not know the fabric.
"""

from jackfield.model.composition import RELEASED, VISIBLE, ComposableResource, ResourceState
from jackfield.model.host import Facts, Seen
from jackfield.model.meta import holds
from jackfield.model.names import Seconds
from jackfield.model.plan import MarkVisible, Phase, Plan, Release, Rescan, Waiting
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import Delta, FactsChanged, ObjectChanged, View


def decide(view: View, name: str, policy: Policy, now: Seconds) -> Plan:
    """Return what the node does about one resource that is for it."""
    resource = view.resource(name)
    facts = view.facts(resource.node) if resource is not None else None
    if resource is None or facts is None:
        return Plan()
    if resource.device is None or resource.device.driver != DRIVER:
        return Plan()  # another driver's device
    match resource.state:
        case ResourceState.ATTACHING if resource.status.cdi_device_id:
            return _look(resource, facts, policy, now)
        case ResourceState.ONLINE if resource.withdrawn:
            return _release(resource, facts)
        case ResourceState.DETACHING:
            return _release(resource, facts)
        case _:
            return Plan()


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the resources that a change is about."""
    del policy
    match delta:
        case ObjectChanged(new=ComposableResource() as new):
            return (new.metadata.name,) if view.facts(new.node) is not None else ()
        case FactsChanged(node=node):
            return tuple(one.metadata.name for one in view.resources_on(node))
        case _:
            return ()


def _look(resource: ComposableResource, facts: Facts, policy: Policy, now: Seconds) -> Plan:
    if holds(resource.status.conditions, VISIBLE):
        return Plan()
    seen = _seen(resource, facts)
    if seen is None:
        rescan = Rescan(
            phase=Phase.VISIBLE,
            node=resource.node,
            resource=resource.metadata.name,
            because=f"{resource.status.cdi_device_id} was attached and is not seen yet",
        )
        again_at = Seconds(now + policy.poll_seconds)
        what = f"{resource.status.cdi_device_id} to come into sight"
        return Plan((rescan,), (Waiting(f"resource/{resource.metadata.name}", "Visible", what),), again_at)
    visible = MarkVisible(
        phase=Phase.VISIBLE,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        device=seen.device,
        message=f"seen as {seen.device} at {seen.address or 'an unknown address'}",
        because=f"{resource.node} sees it",
    )
    return Plan((visible,))


def _release(resource: ComposableResource, facts: Facts) -> Plan:
    """Say that nobody holds the device, when nobody does (rule 14); force asks nobody."""
    if holds(resource.status.conditions, RELEASED):
        return Plan()
    physical = resource.status.cdi_device_id
    users = [one for one in facts.prepared if physical and one.physical == physical]
    if users and not resource.spec.force_detach:
        what = f"claim {users[0].claim} to be unprepared"
        return Plan(waiting=(Waiting(f"resource/{resource.metadata.name}", "Held", what),))
    release = Release(
        phase=Phase.DETACHED,
        node=resource.node,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        device=physical,
        force=resource.spec.force_detach,
        because=f"forced, though claim {users[0].claim} has it" if users else "nothing on the node uses it",
    )
    return Plan((release,))


def _seen(resource: ComposableResource, facts: Facts) -> Seen | None:
    return next((one for one in facts.seen if one.physical == resource.status.cdi_device_id), None)
