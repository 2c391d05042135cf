"""In `reschedule`: a vendor's device is tainted before it is detached, so that nobody is given it meanwhile.

The vendor's driver goes on offering the device until it is gone, and nothing of ours is between it and the
scheduler but this taint. Knows how long an old cache may still give the device away. Must not know how it leaves.
"""

from msgspec.structs import replace

from jackfield.core import naming, room
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import RELEASED, ComposableResource
from jackfield.model.device import DeviceTaint
from jackfield.model.meta import ObjectMeta, condition, holds
from jackfield.model.names import Seconds, Time, rfc3339_micro, seconds
from jackfield.model.plan import Detach, DropTaint, MarkReleased, Phase, Plan, PutTaint, Waiting
from jackfield.model.policy import READY, Policy
from jackfield.model.taint import (
    GUARDED,
    KEY,
    TAINTED,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from jackfield.model.view import View


def stray(view: View, name: str) -> tuple[DropTaint, ...]:
    """Return the removal of a taint of ours that was not written for the resource of this name, if there is one.

    It may be written when its resource has gone: late, or by who has not heard of that. It would keep its device
    from everybody for as long as nobody else detaches it. But we may be the one who has not heard.
    """
    rule, resource = view.taint_rule(naming.taint(name)), view.resource(name)
    if rule is None or TAINTED not in rule.metadata.annotations:
        return ()
    if resource is not None and rule.metadata.annotations.get(GUARDED, resource.uid) == resource.uid:
        return ()
    return (replace(_drop(rule, "the resource that it was written for is gone"), ask=name),)


def users(view: View, resource: ComposableResource) -> tuple[ResourceClaim, ...]:
    """Return the claims that have the device under its driver's name, where our record does not protect them.

    What an order brought that was never answered nobody knows. It may be any device there that is in nobody's books,
    and that a claim was given since. On a node that is gone nobody has anything (rule 16).
    """
    if room.node_gone(view, resource.node):
        return ()
    names = room.drivers_names(view, resource)
    known = tuple(claim for name in names for claim in view.claims_holding(name))
    if resource.device is None or resource.status.device_id:
        return known
    since = seconds(resource.metadata.creation_timestamp)
    there = view.claims_at(resource.device.driver, resource.node)
    return (*known, *(one for one in there if one.given_at >= since and _unbooked(view, one)))


def _unbooked(view: View, claim: ResourceClaim) -> bool:
    """Whether a claim has a device of a driver's that belongs to no resource of ours on its node.

    That of another node which it came from, and which has not ended yet, is not whose it is any more.
    """
    theirs = (one.id for one in claim.results if READY not in one.binding_conditions)
    books = (view.resource_behind(one) for one in theirs)
    return any(one is None or one.node != claim.node for one in books)


def unguarded(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan | None:
    """Return what must come before a vendor's device is detached; None when it may be."""
    meant = _meant(view, resource)
    if not policy.taint_rules or meant is None:
        return None
    rule = view.taint_rule(naming.taint(resource.metadata.name))
    if rule is None:
        put = PutTaint(
            phase=Phase.DETACHED,
            resource=resource.metadata.name,
            rule=_rule(resource, meant, now),
            because=f"{_spelt(meant)} must not be given away while it is detached",
        )
        return Plan((put,))
    strays = stray(view, resource.metadata.name)
    if strays:
        return Plan(strays)
    selector, offered = rule.spec.device_selector, room.offered(view, resource)
    if selector is not None and offered and not selector.matches(offered[0]):
        # Of a version that did not note whose it is: an earlier resource's, whose device was offered elsewhere.
        return Plan((_drop(rule, f"it is not what keeps {offered[0]} from being given away"),))
    # By the API's clock, by that of whoever wrote it, and since we know of it, whichever is latest: to a process whose
    # clock is ahead of the others' a fresh taint would look old.
    theirs = Time(rule.metadata.annotations.get(TAINTED, ""))
    written = max(seconds(rule.metadata.creation_timestamp), seconds(theirs), view.heard_at(rule))
    until = Seconds(written + policy.taint_seconds)
    if now >= until:
        return None
    what = "every scheduler to have heard of its taint"
    return Plan(waiting=(_wait(resource, "Tainted", what),), again_at=until)


def asked(view: View, plan: Plan, resource: ComposableResource, *, ours: bool) -> Plan:
    """Have the API asked before a manager is asked to detach: what we have heard may be old.

    For claims, where another driver than ours may have given the device away; by then every scheduler has heard of the
    taint, so that none comes after those that are shown. For the node, where only its end says that nobody has it, or
    that nothing there needs a taint.
    """
    asks = not ours and not resource.spec.force_detach
    unsaid = not holds(resource.status.conditions, RELEASED)
    gone = view.node(resource.node) is None and unsaid and (ours or asks)
    empty = gone and room.node_gone(view, resource.node)
    actions = (
        replace(one, ask=asks, gone=gone, empty=empty) if isinstance(one, Detach) else one
        for one in plan.actions
    )
    return replace(plan, actions=tuple(actions))


def unnoticed(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan | None:
    """Return what must come before the taint of a device that has left its node is lifted; None when it may be.

    Its driver offers it until it notices, and then every scheduler has to hear of that: a scheduler hears of taints
    and of slices by different ways, and would give the device away if the end of the taint came first.
    """
    rule = view.taint_rule(naming.taint(resource.metadata.name))
    if rule is None or view.node(resource.node) is None:
        return None
    # Should the same device have come back for somebody else, it is rightly offered, and by the same name.
    here = (one for one in view.attached(resource.node) if one.id == resource.status.cdi_device_id)
    if any(one.order != resource.order for one in here):
        return None
    if room.shown(view, resource):
        what = f"the driver on {resource.node} to offer {resource.status.cdi_device_id} no more"
        return Plan(waiting=(_wait(resource, "Offered", what),))
    noticed = condition(resource.status.conditions, RELEASED)
    if noticed is None:
        mark = MarkReleased(
            phase=Phase.DETACHED,
            resource=resource.metadata.name,
            version=resource.metadata.resource_version,
            because=f"the driver on {resource.node} offers it no more",
        )
        return Plan((mark,))
    said = max(seconds(noticed.last_transition_time), view.heard_at(resource))
    until = Seconds(said + policy.taint_seconds)
    if now >= until:
        return None
    what = "every scheduler to have heard that its driver offers it no more"
    return Plan(waiting=(_wait(resource, "Tainted", what),), again_at=until)


def lifted(view: View, resource: ComposableResource) -> tuple[DropTaint, ...]:
    """Return the removal of the taint, if there is one."""
    rule = view.taint_rule(naming.taint(resource.metadata.name))
    return (_drop(rule, "the device is back in the pool"),) if rule is not None else ()


def _drop(rule: DeviceTaintRule, because: str) -> DropTaint:
    return DropTaint(
        phase=Phase.DETACHED,
        name=rule.metadata.name,
        version=rule.metadata.resource_version,
        because=because,
    )


def _wait(resource: ComposableResource, reason: str, what: str) -> Waiting:
    return Waiting(f"resource/{resource.metadata.name}", reason, what)


def _meant(view: View, resource: ComposableResource) -> DeviceTaintSelector | None:
    """Return what must not be given away while the device leaves; None if nothing can be.

    A device that its driver does not offer may be offered at any moment: it has just come, or the driver has. Its name
    is not known before, so all that the driver offers there is kept for as long as that takes. But not while the
    device cannot leave anyway, since somebody may have it already.
    """
    names = room.offered(view, resource)
    if names:
        return DeviceTaintSelector(names[0].driver, names[0].pool, names[0].device)
    # What its manager said that it failed to attach does not come.
    never = bool(resource.status.error) and not resource.status.cdi_device_id
    away = never or view.node(resource.node) is None or resource.spec.force_detach or bool(resource.foreign)
    if resource.device is None or away or users(view, resource):
        return None
    # By custom a driver on a node calls its pool as the node.
    return DeviceTaintSelector(resource.device.driver, resource.node)


def _spelt(selector: DeviceTaintSelector) -> str:
    return f"{selector.driver}/{selector.pool}/{selector.device or '*'}"


def _rule(resource: ComposableResource, selector: DeviceTaintSelector, now: Seconds) -> DeviceTaintRule:
    taint = DeviceTaint(KEY, resource.status.device_id, "NoSchedule")
    return DeviceTaintRule(
        metadata=ObjectMeta(
            name=naming.taint(resource.metadata.name),
            annotations={TAINTED: rfc3339_micro(now), GUARDED: resource.uid},
        ),
        spec=DeviceTaintRuleSpec(taint, selector),
    )
