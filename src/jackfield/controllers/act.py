"""Every effect we have on the world: one match.

Each arm names the port's method and writes the answer into the store at once, so that no later decision is made on
our own stale past. Knows how an action is spelt on the wire. Must not know why, nor choose: choices are decisions.
"""

from collections.abc import Awaitable, Callable

import msgspec

from jackfield.controllers import act_on_node
from jackfield.controllers.asking import (
    delete,
    need_booked,
    need_current,
    need_guarding,
    need_no_node,
    need_reasons,
    need_taint,
    need_unclaimed,
    shown,
)
from jackfield.controllers.writing import (
    ANY,
    Hands,
    annotate,
    finalizers,
    know,
    merge,
    put,
    put_status,
    say,
    write,
)
from jackfield.core import naming
from jackfield.model.claim import ATTEMPTS, ResourceClaim
from jackfield.model.composition import (
    CLAIM,
    DELETE_DEVICE,
    DEVICE,
    HOLDER,
    LAST_USED,
    MISSING,
    RELEASED,
    SENT,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    ResourceState,
)
from jackfield.model.event import Event
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.meta import Condition
from jackfield.model.names import (
    Seconds,
    Version,
    named,
    rfc3339,
    rfc3339_micro,
)
from jackfield.model.node import FAILURES, Node
from jackfield.model.plan import (
    AddNode,
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    DeleteResource,
    Detach,
    DropTaint,
    ForgetClaim,
    FreeRequest,
    FreeResource,
    Hold,
    KeepRequest,
    LabelNode,
    LetGo,
    MarkMissing,
    MarkReleased,
    MarkState,
    MarkVictim,
    MarkVisible,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    PutTaint,
    RecordClaim,
    Release,
    RemoveCDI,
    Rescan,
    SetCondition,
    TakeOver,
    WriteCDI,
)
from jackfield.model.pod import Pod
from jackfield.model.policy import ADMITTED, READY
from jackfield.ports import Apply, Conflict, Gone, Merge, Refused, Retry, Selection

CLEARED = "Cleared"
"""The reason of the Event that tells of a claim whose allocation was taken off it."""
SENDING_SECONDS_MAX = Seconds(5.0)
"""So long after it was noted down a call may set out to a manager that would do it twice."""
FAILURES_MAX = 32
"""How many failures a node's annotation remembers."""


async def act(action: AnyAction, hands: Hands) -> None:  # noqa: C901, PLR0912, PLR0915 - all effects, on one screen
    """Do it. Raises the ports' five errors."""
    cluster = hands.world.cluster
    match action:
        case PutSlice(slice=new):
            await put(hands, new, {"spec": {"devices": [], **msgspec.to_builtins(new.spec)}})
        case LabelNode():
            await merge(hands, Node, named(action.node), ANY, {"metadata": {"labels": dict(action.labels)}})
        case PutRequest(request=wish):
            meta = {"labels": wish.metadata.labels, "annotations": wish.metadata.annotations}
            await put(hands, wish, {"metadata": meta, "spec": msgspec.to_builtins(wish.spec)})
        case DeleteRequest():
            await delete(hands, hands.store.request(action.name), action.version)
        case MarkVictim():
            await annotate(hands, action.resource, action.version, {DELETE_DEVICE: "true"})
        case RecordClaim():
            notes = {CLAIM: str(action.record), LAST_USED: rfc3339(action.at)}
            await annotate(hands, action.resource, action.version, notes)
        case SetCondition():
            await _set_condition(action, hands)
        case CountAttempt():
            body = {"metadata": {"annotations": {ATTEMPTS: f"{action.attempts}/{action.order}"}}}
            await merge(hands, ResourceClaim, action.claim, action.version, body)
        case ForgetClaim():
            await _forget(action, hands)
        case ClearClaim():
            await _clear(action, hands)
        case PutResource(resource=new):
            if action.ask:  # rules 1 and 21: nobody else may have its device
                await need_current(hands, ComposableResource, new.node)
            # It may have gone with its owner or its node, of whose end we have not heard.
            if hands.store.had(new):
                await need_reasons(hands, new)
            know(hands, await cluster.create(new))
        case PutTaint(rule=new):
            await need_guarding(hands, new, action.resource, there=True)
            know(hands, await cluster.create(new))
        case AddNode(node=new):
            know(hands, await cluster.create(new))
        case DeleteResource():
            await delete(hands, hands.store.resource(action.resource), action.version)
        case KeepRequest() | FreeRequest():
            ours = isinstance(action, KeepRequest)
            await finalizers(hands, ComposabilityRequest, action.request, action.version, ours=ours)
        case PutRequestStatus():
            await _show(action, hands)
        case MarkState():
            await _mark(action, hands)
        case Attach():
            await _attach(action, hands)
        case Adopt():
            await _adopt(action, hands)
        case TakeOver():
            sent = {SENT: action.sent} if action.sent else {}
            await annotate(hands, action.resource, action.version, {DEVICE: str(action.device), **sent})
        case Detach():
            await _detach(action, hands)
        case DropTaint():
            await _lift(action, hands)
        case FreeResource():
            await _free(action, hands)
        case MarkMissing():
            await say(hands, action, MISSING, {}, holds=action.missing)
        case Blame():
            await _blame(action, hands)
        case MarkReleased():
            await say(hands, action, RELEASED, {})
        case Rescan() | MarkVisible() | Release() | Hold() | LetGo() | WriteCDI() | RemoveCDI():
            await act_on_node.act(action, hands)


async def _mark(action: MarkState, hands: Hands) -> None:
    if action.gone:
        await need_no_node(hands, action.gone, pods=False)
    ids = {"cdi_device_id": action.device, "device_id": action.serial or None} if action.device else {}
    status = {"state": action.state.value, "error": action.error or None, **ids}
    await put_status(hands, action.resource, action.version, status)


async def _set_condition(action: SetCondition, hands: Hands) -> None:
    """Server-side apply, on exactly the version that was recorded; one manager per pool, so no entry wipes another."""
    now = rfc3339(hands.world.clock.now())
    said = Condition(
        action.type, status="True", reason=action.type, message=action.message, last_transition_time=now
    )
    devices = [
        {**msgspec.to_builtins(one), "conditions": [msgspec.to_builtins(said)]} for one in action.devices
    ]
    body = {"status": {"devices": devices}}
    patch = Apply(ResourceClaim, action.claim, action.version, body, action.manager, status=True)
    claim = await write(hands, patch)
    about = ", ".join(one.device for one in action.devices)
    kind = "Normal" if action.type in {READY, ADMITTED} else "Warning"
    hands.tell(claim, Event(type=kind, reason=action.type, message=f"{about}: {action.message}"))


async def _show(action: PutRequestStatus, hands: Hands) -> None:
    """Merge patches keep what they do not name: children that are gone are named with nothing."""
    known = hands.store.request(action.request)
    gone = [name for name in (known.status.resources if known else {}) if name not in action.status.resources]
    new: ComposabilityRequestStatus = action.status
    status = {
        "state": new.state.value,
        "error": new.error or None,
        "resources": {**dict.fromkeys(gone), **{name: _whole(one) for name, one in new.resources.items()}},
        "scalarResource": _whole(new.scalar_resource),
    }
    patch = Merge(
        ComposabilityRequest, named(action.request), action.version, {"status": status}, status=True
    )
    await write(hands, patch)


_REQUIRED = ("type", "model", "size", "state")
"""Fields that CoHDI's schema wants to see whatever they are."""


def _whole(value: object) -> object:
    """Spell a value so that a merge patch leaves nothing of what was there: what is not set is named with nothing."""
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    return {name: one if one or name in _REQUIRED else None for name, one in fields.items()}


async def _forget(action: ForgetClaim, hands: Hands) -> None:
    """Read the claim live, after the resource's version was taken, and only then remove the record (rule 12)."""
    known = hands.store.claim(action.record.claim)
    try:
        claim = await hands.world.cluster.read(ResourceClaim, action.record.claim)
    except Gone:
        hands.told(hands.store.remove(known) if known is not None else ())
    else:
        know(hands, claim)
        holding = claim.uid == action.record.uid and claim.node == action.node
        if holding and any(result.id in action.devices for result in claim.results):
            raise Conflict(f"claim {action.record.claim} still holds {action.resource}")
    # A holder is there only if its node is gone for good, and then nobody else would let go (rule 16).
    notes = {CLAIM: None, HOLDER: None, LAST_USED: rfc3339(action.at)}
    await annotate(hands, action.resource, action.version, notes)


async def _clear(action: ClearClaim, hands: Hands) -> None:
    cluster = hands.world.cluster
    if action.ask_pods:
        async for one in shown(cluster, Pod, Selection(namespace=action.claim.namespace)):
            know(hands, one)
        if hands.store.pods_using(action.claim):
            raise Conflict(f"a pod uses claim {action.claim} after all")
    nothing = {"allocation": None, "reservedFor": None, "devices": None}
    patch = Merge(ResourceClaim, action.claim, action.version, {"status": nothing}, status=True)
    claim = await write(hands, patch)
    hands.tell(claim, Event(reason=CLEARED, message=f"its devices are free again: {action.because}"))


async def _sent(verb: str, action: Attach | Detach, hands: Hands) -> Version:
    """Write what is about to be asked of a manager that would do it twice."""
    if not action.mark_sent:
        return action.version
    _lead(action, hands)  # else the note would say that it was sent, and it would not be asked again for long
    # The note is on its way to the API for a while, and only then the call sets out: others count from its last moment.
    latest = Seconds(hands.world.clock.now() + SENDING_SECONDS_MAX)
    note = {SENT: f"{verb} {rfc3339_micro(latest)}"}  # a whole second would be too early
    version = await annotate(hands, action.resource, action.version, note)
    if hands.world.clock.now() > latest:
        raise Retry(
            "the API took so long to note the order that it may not be sent any more until all is quiet"
        )
    return version


def _lead(action: Attach | Detach, hands: Hands) -> None:
    """Ask nothing of a manager that could still take effect when another replica has taken over (rule 18)."""
    if not hands.lead.leads(action.order.fabric):
        raise Retry(f"another replica leads fabric {action.order.fabric} by now")
    inventory = hands.store.inventory(action.order.fabric)
    needed = inventory.traits.call_timeout if action.mark_sent and inventory is not None else Seconds(0.0)
    if hands.lead.left() <= needed:
        hands.lead.need(needed)
        raise Retry(f"less of our lease is left than the {needed:.0f} s that a call to the manager may take")


async def _asked(
    action: Attach | Detach, version: Version, ask: Callable[[Order], Awaitable[Progress]], hands: Hands
) -> Progress:
    """Ask the manager; a refusal is shown on the resource, since asking again would not help."""
    _lead(action, hands)
    try:
        return await ask(action.order)
    except Refused as refused:
        await put_status(hands, action.resource, version, {"error": str(refused)})
        raise


async def _attach(action: Attach, hands: Hands) -> None:
    if action.ask:
        await need_booked(hands, action.order)
    version = await _sent("attach", action, hands)
    match await _asked(action, version, hands.world.fabrics[action.order.fabric].attach, hands):
        case Working():
            if action.mark_sent:  # only the inventory will say that it has come: it is looked at often now
                hands.moved(action.order.fabric)
        case Done(device=device, serial=serial):
            hands.moved(action.order.fabric)
            if not action.mark_sent:  # without ids another may have taken it: the inventory says whose it is
                ids = {"cdi_device_id": device, "device_id": serial or None}
                await put_status(hands, action.resource, version, ids)
        case Failed(reason=reason):
            hands.moved(action.order.fabric)
            await put_status(hands, action.resource, version, {"error": reason})


async def _adopt(action: Adopt, hands: Hands) -> None:
    """Take a device that nobody has, whatever a call said before. Of two who want the same, the second looks again."""
    known = hands.store.resource(action.resource)
    fabric = hands.store.fabric_of(known.node) if known is not None else None
    taken = hands.store.resource_with(fabric, action.device) if fabric is not None else None
    lost = taken is not None and taken.metadata.name != action.resource
    wanted = (fabric, action.device)
    if lost or _may_arrive(hands, hands.adopting.get(wanted), action.resource):
        raise Conflict(f"{action.device} is another's by now")
    hands.adopting[wanted] = (action.resource, action.version)
    try:
        if known is not None:  # rule 1: in books that we have not been told of it may be another's
            await need_current(hands, ComposableResource, known.node)
    except BaseException:
        del hands.adopting[wanted]  # nothing was written
        raise
    ids = {"cdi_device_id": action.device, "device_id": action.serial or None, "error": None}
    await put_status(hands, action.resource, action.version, ids)


def _may_arrive(hands: Hands, write: tuple[str, Version] | None, resource: str) -> bool:
    """Tell whether another's write may yet take effect, whatever was answered: the version it is for is still there."""
    if write is None or write[0] == resource:
        return False
    known = hands.store.resource(write[0])
    return known is not None and known.metadata.resource_version == write[1]


async def _detach(action: Detach, hands: Hands) -> None:
    # First: that all claims are known is noted for good, as a taint keeps others from coming, and here is none yet.
    if action.gone:
        await need_no_node(hands, action.order.node, pods=action.empty)
    if action.ask:
        tainted = hands.store.policy.taint_rules
        await need_unclaimed(hands, action.order, naming.taint(action.resource) if tainted else "")
    version = await _sent("detach", action, hands)
    match await _asked(action, version, hands.world.fabrics[action.order.fabric].detach, hands):
        case Working():
            if action.mark_sent:  # likewise that it has gone
                hands.moved(action.order.fabric)
        case Done():
            hands.moved(action.order.fabric)
            hands.unclaimed.pop(action.order.id, None)
            await _closed(action, version, hands)
        case Failed(reason=reason):
            await put_status(hands, action.resource, version, {"error": reason})


async def _closed(action: Detach, version: Version, hands: Hands) -> None:
    """Let the resource go with the manager's answer; what is asked again after a crash is answered the same."""
    known = hands.store.resource(action.resource)
    if action.mark_sent:  # without ids only quiet says that it is over
        return
    if action.last and known is not None and known.deleting:
        await finalizers(hands, ComposableResource, action.resource, version, ours=False)
    else:
        await put_status(hands, action.resource, version, {"state": ResourceState.DELETING.value})


async def _free(action: FreeResource, hands: Hands) -> None:
    if action.taint:
        await need_taint(hands, action.taint)
    known = hands.store.resource(action.resource)
    if known is not None:
        hands.unclaimed.pop(known.order, None)
    if known is not None and not known.deleting:
        await hands.world.cluster.delete(ComposableResource, known.key, action.version)
        return
    await finalizers(hands, ComposableResource, action.resource, action.version, ours=False)


async def _lift(action: DropTaint, hands: Hands) -> None:
    known = hands.store.taint_rule(action.name)
    if action.ask and known is not None:
        await need_guarding(hands, known, action.ask, there=False)
    await delete(hands, known, action.version)


async def _blame(action: Blame, hands: Hands) -> None:
    known = hands.store.failures_on(action.node)
    lines = [f"{one.device}={rfc3339(one.at)}" for one in known if one.device != action.device]
    lines = [*lines, f"{action.device}={rfc3339(action.at)}"][-FAILURES_MAX:]
    body = {"metadata": {"annotations": {FAILURES: "\n".join(lines)}}}
    await merge(hands, Node, named(action.node), ANY, body)
