"""Every effect we have on the world: one match.

Each arm names the port's method and writes the answer into the store at once, so that no later decision is made on
our own stale past. Knows how an action is spelt on the wire. Must not know why, nor choose: choices are decisions.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from jackfield.controllers.asking import delete, need_current, shown
from jackfield.controllers.lead import Lead
from jackfield.controllers.store import Store
from jackfield.controllers.wholeness import whole
from jackfield.model.claim import ATTEMPTS, ResourceClaim
from jackfield.model.composition import (
    CLAIM,
    DELETE_DEVICE,
    DEVICE,
    FINALIZER,
    HOLDER,
    LAST_USED,
    MISSING,
    RELEASED,
    SENT,
    VISIBLE,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    ResourceState,
)
from jackfield.model.event import Event
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.host import Facts, Prepared
from jackfield.model.meta import Condition, Object, with_condition
from jackfield.model.names import (
    FabricName,
    Key,
    NodeName,
    PhysicalID,
    Seconds,
    Uid,
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
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import Delta
from jackfield.ports import Apply, Conflict, Gone, Merge, Refused, Retry, Selection, World

CLEARED = "Cleared"
"""The reason of the Event that tells of a claim whose allocation was taken off it."""
SENDING_SECONDS_MAX = Seconds(5.0)
"""So long after it was noted down a call may set out to a manager that would do it twice."""
FAILURES_MAX = 32
"""How many failures a node's annotation remembers."""


class Hands(msgspec.Struct, frozen=True):
    """What an action is carried out with."""

    world: World
    store: Store
    told: Callable[[tuple[Delta, ...]], None]
    """Hears of every change that an answer brought."""
    moved: Callable[[FabricName], None]
    """Hears that a fabric's inventory is not what it was."""
    tell: Callable[[Object, Event], None]
    """Hears what is worth telling a user about an object."""
    lead: Lead
    """Knows whether the fabric may still be asked for anything."""
    adopting: dict[tuple[FabricName | None, PhysicalID], None] = msgspec.field(default_factory=dict)
    """The devices that are being written into the books."""


async def act(action: AnyAction, hands: Hands) -> None:  # noqa: C901, PLR0912, PLR0915 - all effects, on one screen
    """Do it. Raises the ports' five errors."""
    cluster = hands.world.cluster
    match action:
        case PutSlice(slice=new):
            await _put(hands, new, {"spec": {"devices": [], **msgspec.to_builtins(new.spec)}})
        case LabelNode():
            await _merge(hands, Node, named(action.node), _ANY, {"metadata": {"labels": dict(action.labels)}})
        case PutRequest(request=wish):
            meta = {"labels": wish.metadata.labels, "annotations": wish.metadata.annotations}
            await _put(hands, wish, {"metadata": meta, "spec": msgspec.to_builtins(wish.spec)})
        case DeleteRequest() | DeleteResource():
            await _delete(action, hands)
        case MarkVictim():
            await _annotate(hands, action.resource, action.version, {DELETE_DEVICE: "true"})
        case RecordClaim():
            notes = {CLAIM: str(action.record), LAST_USED: rfc3339(action.at)}
            await _annotate(hands, action.resource, action.version, notes)
        case SetCondition():
            await _set_condition(action, hands)
        case CountAttempt():
            body = {"metadata": {"annotations": {ATTEMPTS: f"{action.attempts}/{action.order}"}}}
            await _merge(hands, ResourceClaim, action.claim, action.version, body)
        case ForgetClaim():
            await _forget(action, hands)
        case ClearClaim():
            await _clear(action, hands)
        case PutResource(resource=new) | PutTaint(rule=new) | AddNode(node=new):
            await _create(action, new, hands)
        case KeepRequest() | FreeRequest():
            ours = isinstance(action, KeepRequest)
            await _finalizers(hands, ComposabilityRequest, action.request, action.version, ours=ours)
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
            await _annotate(hands, action.resource, action.version, {DEVICE: str(action.device), **sent})
        case Detach():
            await _detach(action, hands)
        case DropTaint():
            await cluster.delete(DeviceTaintRule, named(action.name), action.version)
        case FreeResource():
            await _free(action, hands)
        case MarkMissing():
            await _say(hands, action, MISSING, {}, holds=action.missing)
        case Blame():
            await _blame(action, hands)
        case Rescan():
            await hands.world.hosts[action.node].rescan()
            sense(hands, action.node)
        case MarkReleased():
            await _say(hands, action, RELEASED, {})
        case MarkVisible():
            await _say(hands, action, VISIBLE, {"device_id": action.device})
        case Release():
            await _release(action, hands)
        case Hold() | LetGo():
            holder = action.uid if isinstance(action, Hold) else None
            await _annotate(hands, action.resource, action.version, {HOLDER: holder})
        case WriteCDI() | RemoveCDI():
            prepared = _prepared(action) if isinstance(action, WriteCDI) else None
            await _checkpoint(hands, action.node, prepared, action.uid)


_ANY = Version("")


def sense(hands: Hands, node: NodeName) -> None:
    """Take what a node sees and has prepared into the store."""
    host = hands.world.hosts[node]
    hands.told(hands.store.sense(node, Facts(host.seen(), host.prepared())))


# --- writing, and knowing what was written


def _know(hands: Hands, answer: Object) -> None:
    hands.told(hands.store.put(answer))


async def _put(hands: Hands, new: ResourceSlice | ComposabilityRequest, body: Mapping[str, object]) -> None:
    """Create what has no version; put the rest in place of the version it carries. What `body` does not name stays."""
    if new.metadata.resource_version:
        await _merge(hands, type(new), new.key, new.metadata.resource_version, body)
    else:
        _know(hands, await hands.world.cluster.create(new))


async def _create(action: PutResource | PutTaint | AddNode, new: Object, hands: Hands) -> None:
    if isinstance(action, PutResource) and action.ask:
        # Nobody else may have its device (rules 1 and 21).
        await need_current(hands.world.cluster, hands.store, hands.told, action.resource.node)
    _know(hands, await hands.world.cluster.create(new))


async def _delete(action: DeleteRequest | DeleteResource, hands: Hands) -> None:
    known: Object | None
    if isinstance(action, DeleteRequest):
        known = hands.store.request(action.name)
    else:
        known = hands.store.resource(action.resource)
    await delete(hands.world.cluster, hands.store, hands.told, known, action.version)


async def _merge(
    hands: Hands, kind: type[Object], key: Key, version: Version, body: Mapping[str, object]
) -> Object:
    answer = await hands.world.cluster.write(Merge(kind, key, version, body))
    _know(hands, answer)
    return answer


async def _annotate(
    hands: Hands, resource: str, version: Version, notes: Mapping[str, str | None]
) -> Version:
    body = {"metadata": {"annotations": dict(notes)}}
    answer = await _merge(hands, ComposableResource, named(resource), version, body)
    return answer.metadata.resource_version


async def _status(hands: Hands, resource: str, version: Version, status: Mapping[str, object]) -> None:
    known = hands.store.resource(resource)
    if known is not None and dict(status) == {"error": known.status.error}:
        return  # what went wrong before has gone wrong again: no news
    patch = Merge(ComposableResource, named(resource), version, {"status": dict(status)}, status=True)
    _know(hands, await hands.world.cluster.write(patch))


async def _mark(action: MarkState, hands: Hands) -> None:
    ids = {"cdi_device_id": action.device, "device_id": action.serial or None} if action.device else {}
    status = {"state": action.state.value, "error": action.error or None, **ids}
    await _status(hands, action.resource, action.version, status)


async def _say(
    hands: Hands,
    action: MarkVisible | MarkMissing | MarkReleased | Release,
    kind: str,
    status: Mapping[str, object],
    *,
    holds: bool = True,
) -> None:
    """Write a condition on the very resource that was decided on; its version guards the others' conditions."""
    known = hands.store.resource(action.resource)
    message = action.message if isinstance(action, MarkVisible | MarkMissing) else action.because
    now = rfc3339(hands.world.clock.now())
    new = Condition(
        kind, status="True" if holds else "False", reason=kind, message=message, last_transition_time=now
    )
    conditions = with_condition(known.status.conditions if known else (), new)
    body = {**status, "conditions": [msgspec.to_builtins(one) for one in conditions]}
    await _status(hands, action.resource, action.version, body)


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
    claim = await hands.world.cluster.write(patch)
    _know(hands, claim)
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
        "resources": {**dict.fromkeys(gone), **{name: whole(one) for name, one in new.resources.items()}},
        "scalarResource": whole(new.scalar_resource),
    }
    patch = Merge(
        ComposabilityRequest, named(action.request), action.version, {"status": status}, status=True
    )
    _know(hands, await hands.world.cluster.write(patch))


async def _finalizers(hands: Hands, kind: type[Object], name: str, version: Version, *, ours: bool) -> None:
    known = await hands.world.cluster.read(kind, named(name))
    others = [one for one in known.metadata.finalizers if one != FINALIZER]
    body = {"metadata": {"finalizers": [*others, *([FINALIZER] if ours else [])]}}
    answer = await _merge(hands, kind, named(name), version, body)
    if answer.deleting and not answer.metadata.finalizers:
        # This one, not the next of its name, which may be known by now.
        hands.told(hands.store.remove(answer))


# --- effects that are more than one write


async def _forget(action: ForgetClaim, hands: Hands) -> None:
    """Read the claim live, after the resource's version was taken, and only then remove the record (rule 12)."""
    known = hands.store.claim(action.record.claim)
    try:
        claim = await hands.world.cluster.read(ResourceClaim, action.record.claim)
    except Gone:
        hands.told(hands.store.remove(known) if known is not None else ())
    else:
        _know(hands, claim)
        holding = claim.uid == action.record.uid and claim.node == action.node
        if holding and any(result.id in action.devices for result in claim.results):
            raise Conflict(f"claim {action.record.claim} still holds {action.resource}")
    # A holder is there only if its node is gone for good, and then nobody else would let go (rule 16).
    notes = {CLAIM: None, HOLDER: None, LAST_USED: rfc3339(action.at)}
    await _annotate(hands, action.resource, action.version, notes)


async def _clear(action: ClearClaim, hands: Hands) -> None:
    cluster = hands.world.cluster
    if action.ask_pods:
        async for one in shown(cluster, Pod, Selection(namespace=action.claim.namespace)):
            _know(hands, one)
        if hands.store.pods_using(action.claim):
            raise Conflict(f"a pod uses claim {action.claim} after all")
    nothing = {"allocation": None, "reservedFor": None, "devices": None}
    patch = Merge(ResourceClaim, action.claim, action.version, {"status": nothing}, status=True)
    claim = await cluster.write(patch)
    _know(hands, claim)
    hands.tell(claim, Event(reason=CLEARED, message=f"its devices are free again: {action.because}"))


async def _sent(verb: str, action: Attach | Detach, hands: Hands) -> Version:
    """Write what is about to be asked of a manager that would do it twice."""
    if not action.mark_sent:
        return action.version
    _lead(action, hands)  # else the note would say that it was sent, and it would not be asked again for long
    # The note is on its way to the API for a while, and only then the call sets out: others count from its last moment.
    latest = Seconds(hands.world.clock.now() + SENDING_SECONDS_MAX)
    note = {SENT: f"{verb} {rfc3339_micro(latest)}"}  # a whole second would be too early
    version = await _annotate(hands, action.resource, action.version, note)
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
        await _status(hands, action.resource, version, {"error": str(refused)})
        raise


async def _attach(action: Attach, hands: Hands) -> None:
    version = await _sent("attach", action, hands)
    match await _asked(action, version, hands.world.fabrics[action.order.fabric].attach, hands):
        case Working():
            return
        case Done(device=device, serial=serial):
            hands.moved(action.order.fabric)
            if not action.mark_sent:  # without ids another may have taken it: the inventory says whose it is
                ids = {"cdi_device_id": device, "device_id": serial or None}
                await _status(hands, action.resource, version, ids)
        case Failed(reason=reason):
            hands.moved(action.order.fabric)
            await _status(hands, action.resource, version, {"error": reason})


async def _adopt(action: Adopt, hands: Hands) -> None:
    """Take a device that nobody has, whatever a call said before. Of two who want the same, the second looks again."""
    known = hands.store.resource(action.resource)
    fabric = hands.store.fabric_of(known.node) if known is not None else None
    taken = hands.store.resource_with(fabric, action.device) if fabric is not None else None
    lost = taken is not None and taken.metadata.name != action.resource
    if lost or (fabric, action.device) in hands.adopting:
        raise Conflict(f"{action.device} is another's by now")
    hands.adopting[fabric, action.device] = None
    try:
        ids = {"cdi_device_id": action.device, "device_id": action.serial or None, "error": None}
        await _status(hands, action.resource, action.version, ids)
    finally:
        del hands.adopting[fabric, action.device]


async def _detach(action: Detach, hands: Hands) -> None:
    version = await _sent("detach", action, hands)
    match await _asked(action, version, hands.world.fabrics[action.order.fabric].detach, hands):
        case Working():
            return
        case Done():
            hands.moved(action.order.fabric)
            await _closed(action, version, hands)
        case Failed(reason=reason):
            await _status(hands, action.resource, version, {"error": reason})


async def _closed(action: Detach, version: Version, hands: Hands) -> None:
    """Let the resource go with the manager's answer; what is asked again after a crash is answered the same."""
    known = hands.store.resource(action.resource)
    if action.mark_sent:  # without ids only quiet says that it is over
        return
    if action.last and known is not None and known.deleting:
        await _finalizers(hands, ComposableResource, action.resource, version, ours=False)
    else:
        await _status(hands, action.resource, version, {"state": ResourceState.DELETING.value})


async def _release(action: Release, hands: Hands) -> None:
    """Let the node let go first; then it is true, and may be said. Who holds it is said as well."""
    if action.device:
        try:
            await hands.world.hosts[action.node].release(action.device, force=action.force)
        except Refused as refused:
            await _say_held(action, str(refused), hands)
            raise
        sense(hands, action.node)
    await _say(hands, action, RELEASED, {"state": ResourceState.DETACHING.value})


async def _say_held(action: Release, holders: str, hands: Hands) -> None:
    """Write who holds a device, once: the same words again would wake everybody for nothing."""
    known = hands.store.resource(action.resource)
    before = known.status.conditions if known is not None else ()
    if any(one.type == RELEASED and one.message == holders for one in before):
        return
    said = msgspec.structs.replace(action, because=holders)
    await _say(hands, said, RELEASED, {}, holds=False)


def _prepared(action: WriteCDI) -> Prepared:
    more = (action.seen, action.requests, action.share_id, action.pod_claim_name)
    return Prepared(action.uid, action.claim, action.physical, str(action.device), *more)


async def _checkpoint(hands: Hands, node: NodeName, prepared: Prepared | None, uid: Uid) -> None:
    await hands.world.hosts[node].write(prepared, uid)
    sense(hands, node)


async def _free(action: FreeResource, hands: Hands) -> None:
    known = hands.store.resource(action.resource)
    if known is not None and not known.deleting:
        await hands.world.cluster.delete(ComposableResource, known.key, action.version)
        return
    await _finalizers(hands, ComposableResource, action.resource, action.version, ours=False)


async def _blame(action: Blame, hands: Hands) -> None:
    known = hands.store.failures_on(action.node)
    lines = [f"{one.device}={rfc3339(one.at)}" for one in known if one.device != action.device]
    lines = [*lines, f"{action.device}={rfc3339(action.at)}"][-FAILURES_MAX:]
    body = {"metadata": {"annotations": {FAILURES: "\n".join(lines)}}}
    await _merge(hands, Node, named(action.node), _ANY, body)
