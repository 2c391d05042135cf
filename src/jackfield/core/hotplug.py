"""Devices seen and held on a node → rescan, report, release.

Runs on the node. Knows what the node's own eyes see and what its checkpoint says. Must not know the fabric.
"""

from jackfield.core import sight
from jackfield.model.composition import RELEASED, VISIBLE, ComposableResource, ResourceState
from jackfield.model.host import Facts, Seen
from jackfield.model.meta import holds
from jackfield.model.names import PhysicalID, Seconds
from jackfield.model.plan import MarkVisible, Phase, Plan, Release, Rescan, Waiting
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import Delta, FactsChanged, ObjectChanged, View

HELD_POLLS = 5
"""To look through all processes costs more than to ask once."""
NAMED_MAX = 8
"""Devices that are named to people at a time."""


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
            return _release(view, resource, policy, now)
        case ResourceState.DETACHING:
            return _release(view, resource, policy, now)
        case _:
            return Plan()


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the resources that a change is about."""
    del policy
    match delta:
        case ObjectChanged(old=old, new=ComposableResource() as new):
            # Most are changed by ourselves, who write a holder on what is and stays online.
            moves = _moves(new) or (isinstance(old, ComposableResource) and _moves(old))
            return (new.metadata.name,) if moves and view.facts(new.node) is not None else ()
        case FactsChanged(node=node):
            return tuple(one.metadata.name for one in view.resources_on(node) if _moves(one))
        case _:
            return ()


def _moves(resource: ComposableResource) -> bool:
    """Whether there is anything that its node could do about it."""
    return resource.deleting or resource.state in (ResourceState.ATTACHING, ResourceState.DETACHING)


def _look(resource: ComposableResource, facts: Facts, policy: Policy, now: Seconds) -> Plan:
    if holds(resource.status.conditions, VISIBLE):
        return Plan()
    seen = sight.of(resource, facts, policy.identities)
    if not isinstance(seen, Seen):
        rescan = Rescan(
            phase=Phase.VISIBLE,
            node=resource.node,
            resource=resource.metadata.name,
            because=f"{resource.status.cdi_device_id} was attached and is not seen yet",
        )
        again_at = Seconds(now + policy.poll_seconds)
        what = _unseen(resource, facts) if seen is None else seen.what
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


def _release(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    """Say that nobody holds the device, when nobody does (rule 14); force asks nobody."""
    facts = view.facts(resource.node)
    if facts is None or holds(resource.status.conditions, RELEASED):
        return Plan()
    physical, seen = resource.status.cdi_device_id, sight.of(resource, facts, policy.identities)
    if isinstance(seen, sight.Blurred):
        return Plan(waiting=(Waiting(f"resource/{resource.metadata.name}", "Blurred", seen.what),))
    own = seen.physical if seen is not None else physical
    users = [one for one in facts.prepared if physical and (one.physical == physical or one.seen == own)]
    if users and not resource.spec.force_detach:
        what = f"claim {users[0].claim} to be unprepared"
        return Plan(waiting=(Waiting(f"resource/{resource.metadata.name}", "Held", what),))
    heir = _heir(view, resource)
    if heir:
        return Plan((_let_go(resource, PhysicalID(""), f"its device is {heir}'s by now"),))
    because = f"forced, though claim {users[0].claim} has it" if users else "nothing on the node uses it"
    release = _let_go(resource, own, because)
    # Whoever has it open just now does not tell us when he ends.
    return Plan((release,), again_at=Seconds(now + HELD_POLLS * policy.poll_seconds))


def _heir(view: View, resource: ComposableResource) -> str:
    """Return who else has the device on this node, to stay: then it is not ours to take off the bus."""
    staying = (one for one in sight.alike(view, resource) if one.stands)
    return next((one.metadata.name for one in staying), "")


def _let_go(resource: ComposableResource, device: PhysicalID, because: str) -> Release:
    return Release(
        phase=Phase.DETACHED,
        node=resource.node,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        device=device,
        force=resource.spec.force_detach,
        because=because,
    )


def _unseen(resource: ComposableResource, facts: Facts) -> str:
    """Say what the node sees instead: a manager that calls a device by a name of its own alone is never understood."""
    names = dict.fromkeys((resource.status.cdi_device_id, resource.status.device_id))
    called = " or ".join(one for one in names if one)
    known = [one.device for one in facts.seen]
    there = f"{', '.join(known[:NAMED_MAX])}{' and others' if known[NAMED_MAX:] else ''}" or "nothing"
    return f"{called} to come into sight; the node sees {there}"
