"""A resource's next step: attach, wait, come online, let go, detach, give up.

Knows the states of rule 2 and the orders of rules 5, 13, 15 and 16; orders to managers without ids are in
`quiet`. Must not know which manager it is.
"""

from itertools import islice
from typing import assert_never

from msgspec.structs import replace

from jackfield.core import evict, guard, naming, quiet, room, surplus, takeover
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    ORDER,
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.fabric import Order
from jackfield.model.meta import holds
from jackfield.model.names import FabricName, Key, NodeName, PhysicalID, Seconds, seconds
from jackfield.model.node import Node
from jackfield.model.plan import (
    AnyAction,
    Attach,
    Blame,
    Detach,
    FreeResource,
    MarkState,
    Phase,
    Plan,
    Waiting,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View


def decide(view: View, name: str, policy: Policy, now: Seconds) -> Plan:
    """Return the next step of one resource."""
    resource = view.resource(name)
    plan = _next(view, resource, policy, now) if resource is not None else Plan()
    # A taint that cannot be lifted keeps its device from others, but no resource from its next step.
    return plan if plan.actions else replace(plan, actions=guard.stray(view, name))


def _next(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    if resource.device is None:
        return takeover.decide(view, resource, policy, now)
    if naming.fabric_of(resource.device, policy) is None:
        return Plan()  # of a fabric that is not ours
    match resource.state:
        case ResourceState.NEW:
            return _begin(resource) if not resource.foreign else evict.decide(view, resource, policy, now)
        case ResourceState.ATTACHING | ResourceState.DETACHING if twin := surplus.twin(view, resource):
            # It closes nothing: whose the order is does.
            return Plan((_mark(resource, ResourceState.DELETING, Phase.DETACHED, f"its order is {twin}'s"),))
        case ResourceState.ATTACHING:
            return _attach(view, resource, policy, now)
        case ResourceState.ONLINE:
            return _stay(view, resource)
        case ResourceState.DETACHING:
            return _detach(view, resource, policy, now)
        case ResourceState.DELETING:
            return _end(view, resource, policy, now)
        case _ as never:
            assert_never(never)


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the resources that a change is about."""
    del policy
    match delta:
        case InventoryChanged(nodes=nodes):
            return tuple(
                dict.fromkeys(one.metadata.name for node in nodes for one in view.resources_on(node))
            )
        case ObjectChanged(old=old, new=new):
            return tuple(dict.fromkeys((*_resources(view, old), *_resources(view, new))))
        case _:
            return ()


def _resources(view: View, one: object) -> tuple[str, ...]:
    match one:
        case ComposableResource():
            alike = (each.metadata.name for each in surplus.twins(view, one))
            return (one.metadata.name, *room.awaiting(view, one), *alike)
        case ResourceClaim():
            found = (view.resource_of(result.id) for result in one.results)
            concerned = (*found, *view.resources_recording(one.key), *_leaving(view, one))
            return tuple(each.metadata.name for each in concerned if each is not None)
        case Node():
            return tuple(each.metadata.name for each in view.resources_on(one.name))
        case Pod() if one.spec.node_name and view.node(one.spec.node_name) is None:
            return tuple(each.metadata.name for each in view.resources_on(one.spec.node_name))
        case DeviceTaintRule() if one.metadata.name.endswith(naming.taint("")):
            return (one.metadata.name.removesuffix(naming.taint("")),)
        case ResourceSlice() if one.spec.node_name:
            return tuple(each.metadata.name for each in view.resources_on(one.spec.node_name))
        case _:
            return ()


def _leaving(view: View, claim: ResourceClaim) -> tuple[ComposableResource, ...]:
    """Return what is to leave the claim's node, and may wait for it to give up a device by its driver's name."""
    drivers = tuple(result.driver for result in claim.results)
    return tuple(
        one
        for one in view.resources_on(claim.node)
        if one.device is not None
        and one.device.driver in drivers
        and not _binds(one)
        and (one.deleting or one.state is ResourceState.DETACHING)
    )


def order(resource: ComposableResource, policy: Policy, view: View) -> Order:
    """Return the order of a resource; the same resource always gives the same order."""
    assert resource.device is not None
    physical = view.physical(resource.device)
    chosen = resource.status.cdi_device_id or (physical.id if physical is not None else PhysicalID(""))
    return Order(
        id=resource.order,
        fabric=_fabric(resource, policy),
        node=resource.node,
        model=resource.spec.model,
        device=chosen,
        type=resource.spec.type,
        force=resource.spec.force_detach,
        foreign=bool(resource.foreign),
    )


# --- the states


def _begin(resource: ComposableResource) -> Plan:
    if resource.deleting:
        return Plan((_free(resource, "nothing was ordered for it yet"),))
    why = "the intent is written before the fabric hears"
    return Plan((_mark(resource, ResourceState.ATTACHING, Phase.ATTACHING, why),))


def _attach(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    reason = _give_up(view, resource, policy, now)
    if reason and not _must_be_known(view, resource, policy, now):
        return _withdraw(view, resource, policy, now, reason)
    if resource.status.cdi_device_id:
        return _come_online(view, resource, policy, now)
    obstacle = _obstacle(view, resource, policy)
    if obstacle is not None:
        return Plan(waiting=(obstacle,), again_at=_hope_ends(view, resource, policy, now))
    if not _knows_orders(view, resource, policy):
        plan = quiet.attach(view, resource, order(resource, policy, view), policy, now)
        if any(isinstance(one, Attach) for one in plan.actions) and _queues(view, resource, policy, now):
            turn = _wait(resource, "Turn", "the fabric manager to have done what it was asked before")
            return Plan(waiting=(turn,), again_at=plan.again_at)
        return plan
    attach = Attach(
        phase=Phase.ATTACHING,
        claim=_claim(view, resource),
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order(resource, policy, view),
        because=f"{resource.node} should have it",
    )
    waiting = _wait(resource, "Attaching", "the fabric manager to attach it")
    return Plan((attach,), (waiting,), _soon(policy, now))


def _queues(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> bool:
    """Whether a manager without ids would not begin with a call at once: then it could run out of its time there.

    Of those that could be sent now the first by name go first, so that what is decided at one moment is not too much.
    """
    fabric, mine = _fabric(resource, policy), resource.metadata.name
    inventory = view.inventory(fabric)
    if inventory is None:
        return False
    jobs, timeout = inventory.traits.jobs, inventory.traits.call_timeout
    taken = (
        one
        for one in view.under_way(fabric)
        if quiet.at_work(view, one, timeout, now)
        or (one.metadata.name < mine and _could_be_sent(view, one, policy, fabric))
    )
    return next(islice(taken, jobs - 1, None), None) is not None  # in a burst most need not be looked at


def _could_be_sent(view: View, resource: ComposableResource, policy: Policy, fabric: FabricName) -> bool:
    return (
        resource.metadata.name in room.waiting(view, resource.node)
        and quiet.due(view, resource, fabric)
        and _obstacle(view, resource, policy) is None
    )


def _must_be_known(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> bool:
    """Whether an order must be answered, and its device be offered by its driver, before it is given up.

    A vendor's driver offers a device the moment it sees it. One that it sees after its order was given up could be
    given to a claim and then be pulled, since nobody knew what to taint. But where there is no room nothing comes, and
    what nobody wants must not wait for somebody else's end: all of the driver's is kept while its order is closed.

    What was found on a node may be in use there, if a restored backup had forgotten it. Its node is asked by its id.
    """
    if resource.status.error or view.node(resource.node) is None or _vanished(view, resource, policy, now):
        return False
    if not resource.status.cdi_device_id:
        unwanted = resource.deleting and _no_room(view, resource, policy) is not None
        found = ORDER in resource.metadata.annotations
        return not unwanted and (found or (not _binds(resource) and _knows_orders(view, resource, policy)))
    if _binds(resource):
        return False
    there = (one.since for one in view.attached(resource.node) if one.id == resource.status.cdi_device_id)
    came = max(there, default=seconds(resource.metadata.creation_timestamp))
    unseen = not view.published(resource.status.device_id)
    return unseen and now < came + policy.attach_deadline_seconds


def _obstacle(view: View, resource: ComposableResource, policy: Policy) -> Waiting | None:
    """Return what an order must wait for before it may be sent, or sent again."""
    if _paused(resource, policy):
        return _wait(resource, "Paused", "attaching to be resumed")
    inventory = view.inventory(_fabric(resource, policy))
    if inventory is None:
        return _wait(resource, "Silent", "the fabric manager to answer")
    twins = surplus.twins(view, resource)
    if twins:  # what comes would be in both their books, whoever wrote it last
        return _wait(resource, "Twin", f"{twins[0].metadata.name}, which is there for the same order, to go")
    if not inventory.traits.chooses_device and not order(resource, policy, view).device:
        # An order without a device would be filled with any.
        return _wait(resource, "Missing", _unknown(view, resource, policy))
    return _no_room(view, resource, policy)


def _no_room(view: View, resource: ComposableResource, policy: Policy) -> Waiting | None:
    machine = view.machine(resource.node)
    if machine is None or not room.full(view, resource, machine, _fabric(resource, policy)):
        return None
    return _wait(resource, "Room", f"one of the {machine.slots} slots of {resource.node} to be free")


def _unknown(view: View, resource: ComposableResource, policy: Policy) -> str:
    """Return who must speak before it is known which device is meant."""
    assert resource.device is not None
    if room.vanished(view, resource.device, policy):
        return f"its fabric's manager to show {resource.device.device} again"
    return f"the policy to say which model {resource.device} is of"


def _give_up(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> str:
    """Return why an attach is given up; empty if it goes on."""
    if resource.status.error:
        return f"the attach failed: {resource.status.error}"
    if resource.deleting:
        return "nobody wants it any more"
    if view.node(resource.node) is None:
        return f"node {resource.node} is gone"
    if now >= _deadline(view, resource, policy) and not _seen(view, resource):
        return f"it did not come within {policy.attach_deadline_seconds:.0f} s"
    return _mistaken(view, resource) or _vanished(view, resource, policy, now)


def _mistaken(view: View, resource: ComposableResource) -> str:
    """Return what is wrong with the device that the manager attached; empty if it is the one that was meant."""
    assert resource.device is not None
    meant, got = view.physical(resource.device), resource.status.cdi_device_id
    if got and meant is not None and meant.id != got:
        return f"the manager attached {got} instead of {meant.id}"
    shown = next((one for one in view.attached(resource.node) if one.id == got), None)
    if shown is not None and shown.model != resource.spec.model:
        return f"the manager attached {got}, which is of model {shown.model}"
    return ""


def _vanished(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> str:
    """Return that there is no such device any more; empty if there is, or was a moment ago."""
    assert resource.device is not None
    if now < room.gone_at(view, resource, policy):
        return ""
    return f"{resource.device.device} is not in its fabric's inventory any more"


def _holder(resource: ComposableResource) -> str:
    """Return whose end a device is waiting for, and what an operator can do about it."""
    whose = f"claim {resource.record.claim}" if resource.record is not None else "the claim that holds it"
    remedy = "delete the pod that uses it, or set spec.force_detach to pull it all the same"
    return f"{whose} to let it go: {remedy}"


def _withdraw(view: View, resource: ComposableResource, policy: Policy, now: Seconds, reason: str) -> Plan:
    # Rule 13; neither can be while it is attaching, but that is not ours to assume.
    if resource.record is not None or resource.holder:
        return Plan(waiting=(_wait(resource, "Recorded", _holder(resource)),))
    if not _knows_orders(view, resource, policy):
        unsettled = quiet.unsettled(view, resource, order(resource, policy, view), policy, now)
        if unsettled is not None:
            return unsettled
    actions: list[AnyAction] = []
    if _to_blame(view, resource, policy, now):
        assert resource.device is not None
        # By a clock that is behind the API's it would have failed before it was wanted, and be tried again at once.
        at = max(now, seconds(resource.metadata.creation_timestamp))
        blame = Blame(
            phase=Phase.ATTACHING, node=resource.node, device=resource.device, at=at, because=reason
        )
        actions.append(blame)
    leave = _mark(resource, ResourceState.DETACHING, Phase.DETACHED, reason)
    lost = resource.node if view.node(resource.node) is None else NodeName("")
    return Plan((*actions, replace(leave, gone=lost)))


def _to_blame(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> bool:
    """Whether device and node failed together and nobody has noted it; a pause, a silence or a queue is no fault."""
    if view.node(resource.node) is None:
        return False
    wanted = not resource.deleting and _asked(view, resource, policy)
    late = wanted and now >= _deadline(view, resource, policy)
    if not (resource.status.error or late or _mistaken(view, resource)):
        return False
    since = seconds(resource.metadata.creation_timestamp)
    known = view.failures_on(resource.node)
    return all(one.device != resource.device or one.at < since for one in known)


def _come_online(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    """Online needs Visible on this very object (rule 6)."""
    if _seen(view, resource):
        return Plan((_mark(resource, ResourceState.ONLINE, Phase.ONLINE, f"{resource.node} sees it"),))
    waiting = _wait(resource, "Visible", f"{resource.node} to see {resource.status.cdi_device_id}")
    return Plan(waiting=(waiting,), again_at=_hope_ends(view, resource, policy, now))


def _hope_ends(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Seconds:
    """When an attach that nothing is heard of is given up; one that should be and may not be is looked at meanwhile."""
    ends = min(_deadline(view, resource, policy), room.gone_at(view, resource, policy))
    return ends if ends > now else _soon(policy, now)


def _seen(view: View, resource: ComposableResource) -> bool:
    """Whether the node sees the device; in `reschedule` its vendor's driver is the eye."""
    if not resource.status.cdi_device_id:
        return False
    if _binds(resource):
        return holds(resource.status.conditions, VISIBLE)
    return room.shown(view, resource)


def _stay(view: View, resource: ComposableResource) -> Plan:
    """Stay until somebody asks for its end; then a record, a holder or a claim on the vendor's name is the lock.

    A claim that was allocated the device and is not recorded does not keep it (rule 13): it is not served by a
    resource that is on its way out, so each would wait for the other. It is served by the next one.
    """
    if not resource.deleting:
        return Plan()
    if not resource.spec.force_detach:
        if resource.record is not None or resource.holder:
            return Plan(waiting=(_wait(resource, "Recorded", _holder(resource)),))
        users = () if _binds(resource) else guard.users(view, resource)
        if users:
            return Plan(waiting=(_wait(resource, "Claimed", f"claim {users[0].key} to give it up"),))
    if _binds(resource) and not room.node_gone(view, resource.node):
        # Its plugin sees the same, and says `Detaching` and `Released` in one write.
        return Plan(waiting=(_wait(resource, "Released", f"the plugin on {resource.node} to release it"),))
    reason = "force_detach was asked for" if resource.spec.force_detach else "nobody holds it"
    return Plan((_mark(resource, ResourceState.DETACHING, Phase.DETACHED, reason),))


def _detach(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    # What somebody else attached, another driver may drive, whatever our policy says.
    ours = _binds(resource) and not resource.foreign
    unguarded = None if ours else guard.unguarded(view, resource, policy, now)
    if unguarded is not None:
        return unguarded
    waiting = _not_released(view, resource)
    if waiting:
        return Plan(waiting=(_wait(resource, "Released", waiting),))
    if view.inventory(_fabric(resource, policy)) is None:
        # The answer may not name the node, if that is gone, and so be no news for what stood there.
        silent = _wait(resource, "Silent", "the fabric manager to answer")
        return Plan(waiting=(silent,), again_at=_soon(policy, now))
    if _paused(resource, policy):
        return Plan(waiting=(_wait(resource, "Paused", "detaching to be resumed"),))
    return guard.asked(view, _sent_back(view, resource, policy, now), resource, ours=ours)


def _sent_back(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    if not _knows_orders(view, resource, policy):
        return quiet.detach(view, resource, order(resource, policy, view), policy, now)
    if evict.is_over(view, resource):
        return Plan(
            (_mark(resource, ResourceState.DELETING, Phase.DETACHED, "an order of ours has it by now"),)
        )
    detach = Detach(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        order=order(resource, policy, view),
        last=holds(resource.status.conditions, RELEASED),
        because="released; its order is to be closed",
    )
    waiting = _wait(resource, "Detaching", "the fabric manager to take it back")
    return Plan((detach,), (waiting,), _soon(policy, now))


def _end(view: View, resource: ComposableResource, policy: Policy, now: Seconds) -> Plan:
    unnoticed = guard.unnoticed(view, resource, policy, now)
    if unnoticed is not None:
        return unnoticed
    free = _free(resource, "its order is closed and nothing of it is attached")
    lifted = guard.lifted(view, resource)
    if not lifted and not _binds(resource) and policy.taint_rules:
        free = replace(free, taint=naming.taint(resource.metadata.name))
    return Plan((*lifted, free))


def _not_released(view: View, resource: ComposableResource) -> str:
    """Return who has not let go yet; empty when the fabric may be asked."""
    if holds(resource.status.conditions, RELEASED) or room.node_gone(view, resource.node):
        return ""
    if _binds(resource):
        return f"the plugin on {resource.node} to release it"
    users = guard.users(view, resource)
    return f"claim {users[0].key} to give it up" if users and not resource.spec.force_detach else ""


# --- small things


def _binds(resource: ComposableResource) -> bool:
    """Whether our own driver drives the device; asked of its name, since its model may have left the policy."""
    return resource.device is not None and resource.device.driver == DRIVER


def _paused(resource: ComposableResource, policy: Policy) -> bool:
    return policy.paused or _fabric(resource, policy) in policy.fabrics_paused


def _asked(view: View, resource: ComposableResource, policy: Policy) -> bool:
    """Whether the manager has heard of the order for all we know; without ids it is noted when it was sent."""
    if _paused(resource, policy) or view.inventory(_fabric(resource, policy)) is None:
        return False
    return _knows_orders(view, resource, policy) or bool(resource.sent[0])


def _knows_orders(view: View, resource: ComposableResource, policy: Policy) -> bool:
    """Whether the manager does the same order once; before it has shown itself, the mark of a call says it does not."""
    inventory = view.inventory(_fabric(resource, policy))
    return inventory.traits.knows_orders if inventory is not None else not resource.sent[0]


def _deadline(view: View, resource: ComposableResource, policy: Policy) -> Seconds:
    return Seconds(view.born_at(resource) + policy.attach_deadline_seconds)


def _soon(policy: Policy, now: Seconds) -> Seconds:
    return Seconds(now + policy.poll_seconds)


def _fabric(resource: ComposableResource, policy: Policy) -> FabricName:
    assert resource.device is not None
    fabric = naming.fabric_of(resource.device, policy)
    assert fabric is not None
    return fabric


def _claim(view: View, resource: ComposableResource) -> Key:
    assert resource.device is not None
    return next((one.key for one in view.claims_holding(resource.device)), Key("", ""))


def _mark(resource: ComposableResource, state: ResourceState, phase: Phase, because: str) -> MarkState:
    return MarkState(
        phase=phase,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        state=state,
        because=because,
    )


def _free(resource: ComposableResource, because: str) -> FreeResource:
    return FreeResource(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because=because,
    )


def _wait(resource: ComposableResource, reason: str, what: str) -> Waiting:
    return Waiting(f"resource/{resource.metadata.name}", reason, what)
