"""In `reschedule`: a vendor's device is tainted before it is detached, so that nobody is given it meanwhile.

The vendor's driver goes on offering the device until it is gone, and nothing of ours is between it and the
scheduler but this taint. Knows how long an old cache may still give the device away. Must not know how it leaves.
"""

from jackfield.core import naming
from jackfield.model.composition import ComposableResource
from jackfield.model.device import DeviceTaint
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, Seconds, Time, rfc3339_micro, seconds
from jackfield.model.plan import DropTaint, Phase, Plan, PutTaint, Waiting
from jackfield.model.policy import Policy
from jackfield.model.taint import KEY, TAINTED, DeviceTaintRule, DeviceTaintRuleSpec, DeviceTaintSelector
from jackfield.model.view import View


def unguarded(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan | None:
    """Return what must come before a vendor's device is detached; None when it may be."""
    offered = view.published(resource.status.device_id)
    if not policy.taint_rules or not offered:
        return None
    rule = view.taint_rule(naming.taint(resource.metadata.name))
    if rule is None:
        put = PutTaint(
            phase=Phase.DETACHED,
            rule=_rule(resource, offered[0], now),
            because=f"{offered[0]} must not be given away while it is detached",
        )
        return Plan((put,))
    # By the API's clock and by ours, whichever is later: if ours is ahead of it, a fresh taint would look old.
    ours = Time(rule.metadata.annotations.get(TAINTED, ""))
    until = Seconds(max(seconds(rule.metadata.creation_timestamp), seconds(ours)) + policy.taint_seconds)
    if now >= until:
        return None
    what = "every scheduler to have heard of its taint"
    return Plan(waiting=(Waiting(f"resource/{resource.metadata.name}", "Tainted", what),), again_at=until)


def lifted(view: View, resource: ComposableResource) -> tuple[DropTaint, ...]:
    """Return the removal of the taint, if there is one."""
    rule = view.taint_rule(naming.taint(resource.metadata.name))
    if rule is None:
        return ()
    drop = DropTaint(
        phase=Phase.DETACHED,
        name=rule.metadata.name,
        version=rule.metadata.resource_version,
        because="the device is back in the pool",
    )
    return (drop,)


def _rule(resource: ComposableResource, device: DeviceID, now: Seconds) -> DeviceTaintRule:
    selector = DeviceTaintSelector(device.driver, device.pool, device.device)
    taint = DeviceTaint(KEY, resource.status.device_id, "NoSchedule")
    return DeviceTaintRule(
        metadata=ObjectMeta(
            name=naming.taint(resource.metadata.name), annotations={TAINTED: rfc3339_micro(now)}
        ),
        spec=DeviceTaintRuleSpec(taint, selector),
    )
