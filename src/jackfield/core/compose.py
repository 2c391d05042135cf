"""A request → the resources it needs, and on which nodes.

Knows the scaler's requests, which name their devices, and everybody else's, which leave the choice to us.
Must not know how a resource gets its device.
"""

import msgspec

from jackfield.core import cause, demand, keep, naming, placement, room
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    MANAGED_BY,
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    ComposableResourceSpec,
    RequestState,
    ResourceState,
)
from jackfield.model.lease import Lease
from jackfield.model.meta import ObjectMeta, OwnerReference, holds
from jackfield.model.names import NEVER, DeviceID, Key, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.plan import (
    AnyAction,
    DeleteResource,
    FreeRequest,
    KeepRequest,
    Phase,
    Plan,
    PutRequestStatus,
    PutResource,
    Waiting,
)
from jackfield.model.policy import READY, Policy
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, SupplyChanged, View


class Composition(msgspec.Struct, frozen=True):
    """What should come and go for a request, and why not all of it can."""

    create: tuple[tuple[DeviceID, NodeName, Key], ...] = ()
    delete: tuple[ComposableResource, ...] = ()
    error: str = ""
    again_at: Seconds = NEVER
    waiting: str = ""
    """What is waited for as well, and over so soon that it is not shown on the request."""


def decide(view: View, name: str, policy: Policy, now: Seconds) -> Plan:
    """Return which resources of a request to create or delete, and what to show on it."""
    request = view.request(name)
    if request is None:
        return Plan(tuple(_delete(one, "its request is gone") for one in _orphans(view, name)))
    if request.deleting:
        return _clean(view, request)
    # The scaler's own needs none: Kubernetes deletes what it owns, and that stays until its device is returned.
    if not request.scalers and FINALIZER not in request.metadata.finalizers:
        keep = KeepRequest(
            phase=Phase.COMPOSED,
            request=name,
            version=request.metadata.resource_version,
            because="its devices must be returned before it goes",
        )
        return Plan((keep,))
    by_name = request.scalers
    composed = _named(view, request, policy, now) if by_name else _chosen(view, request, policy, now)
    actions: list[AnyAction] = [
        cause.written(view, _create(request, policy, *one)) for one in composed.create
    ]
    actions += [_delete(one, f"{name} does not want it any more") for one in composed.delete]
    actions += _shown(request, _status(view, request, composed))
    amended = f"a change, since {composed.error}" if composed.error else ""
    waited_for = "; ".join(one for one in (amended, composed.waiting) if one)
    waiting = (Waiting(f"request/{name}", "Composing", waited_for),) if waited_for else ()
    return Plan(tuple(actions), waiting, composed.again_at)


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the requests that a change is about."""
    match delta:
        case ObjectChanged(old=ResourceClaim()) | ObjectChanged(new=ResourceClaim()):
            before, after = (_promised(one) for one in (delta.old, delta.new))
            wished = (device for device, _, _ in (*before, *after)) if before != after else ()
            return tuple(dict.fromkeys(name for device in wished for name in _wanting(view, device)))
        case ObjectChanged(old=old, new=new):
            names = (*_requests(view, old), *_requests(view, new))
            if _makes_room(view, policy, delta):
                names = (*names, *_short(view, policy))
            return tuple(name for name in dict.fromkeys(names) if name) if names else ()
        case InventoryChanged(nodes=nodes, devices=devices):
            wanted = (name for device in devices for name in _wanting(view, device))
            # A machine may be shown for the first time: whoever could be put nowhere has waited for that.
            return tuple(dict.fromkeys((*wanted, *(_short(view, policy) if nodes else ()))))
        case SupplyChanged(model=model):
            return tuple(one.metadata.name for one in view.requests_by_hand(model) if one.unmet)
        case _:
            return ()


def _requests(view: View, one: object) -> tuple[str, ...]:
    match one:
        case ComposabilityRequest():
            rivals = view.requests_by_hand(one.spec.resource.model) if not one.scalers else ()
            return (one.metadata.name, *(rival.metadata.name for rival in rivals))
        case ComposableResource():
            return (one.request, *(_wanting(view, one.device) if one.device is not None else ()))
        case Node():
            asked = (each.metadata.name for each in view.requests_on(one.name))
            return (*(each.request for each in view.resources_on(one.name)), *asked)
        case _:
            return ()


def _promised(claim: object) -> tuple[tuple[DeviceID, Seconds, bool], ...]:
    """Return what matters of a claim to who orders for it: its devices, since when, and what it was told."""
    if not isinstance(claim, ResourceClaim):
        return ()
    ours = (result.id for result in claim.results)
    return tuple((one, claim.given_at, holds(claim.conditions(one), READY)) for one in ours)


def _wanting(view: View, device: DeviceID) -> tuple[str, ...]:
    """Return who waits for a device that comes back, by what was asked for: its claim may not be heard of yet."""
    return tuple(one.metadata.name for one in view.requests_wanting(device))


def _makes_room(view: View, policy: Policy, delta: ObjectChanged) -> bool:
    """Whether a node may have become fit to take a device: it came or changed, revived, or something left it."""
    match delta:
        case ObjectChanged(new=Node()):
            return True
        case ObjectChanged(new=Lease()):
            return bool(room.wakes(view, policy, delta))
        case ObjectChanged(old=ComposableResource() as old, new=new):
            return old.stands and not (isinstance(new, ComposableResource) and new.stands)
        case _:
            return False


def _short(view: View, policy: Policy) -> tuple[str, ...]:
    """Return the requests that leave the choice to us and have not got all they want."""
    alike = (one for model in policy.models for one in view.requests_by_hand(model.cdi_model_name))
    return tuple(one.metadata.name for one in alike if one.unmet)


# --- requests that name their devices


def _named(view: View, request: ComposabilityRequest, policy: Policy, now: Seconds) -> Composition:
    wanted = {one.device: one.claim for one in request.wanted}
    node = request.spec.resource.target_node
    absent = {device: claim for device, claim in wanted.items() if _to_come(view, device, claim)}
    taken = [device.device for device, claim in absent.items() if _had(view, device, claim)]
    strays = [device.device for device in absent if _astray(view, device)]
    create = tuple(
        (device, node, claim)
        for device, claim in absent.items()
        if device.device not in taken and device.device not in strays and view.node(node) is not None
    )
    children = view.resources_of(request.metadata.name)
    # One that was found and put into the books a moment ago is not in the wish yet.
    begun = (one for one in children if not one.deleting and one.state is not ResourceState.NEW)
    unwanted = tuple(one for one in begun if one.device not in wanted)
    # The wish may be older than what came since, and no deletion is taken back.
    kept = _kept(view, request, policy, now) if unwanted else ()
    staying = tuple(one for one in unwanted if one.stands and (one.device in kept or room.busy(view, one)))
    gone = tuple(one for one in unwanted if one not in staying)
    moving = [device.device for device in wanted if _elsewhere(view, device, node)]
    errors = [f"{', '.join(moving)} to come back from another node"] if moving else []
    errors += [f"node {node}, which is gone, to come back"] if absent and view.node(node) is None else []
    errors += [f"the pods that {', '.join(taken)} was taken from by force to end"] if taken else []
    waiting = [f"{', '.join(strays)}, attached and in nobody's books, to be put there"] if strays else []
    names = ", ".join(one.metadata.name for one in staying)
    waiting += [f"{names}, which the node is to keep, to be wanted again"] if staying else []
    again_at = Seconds(now + policy.poll_seconds) if waiting else NEVER
    return Composition(create, gone, "; ".join(errors), again_at, "; ".join(waiting))


def _kept(view: View, request: ComposabilityRequest, policy: Policy, now: Seconds) -> tuple[DeviceID, ...]:
    """Return what the node should have by now: a wish that was written late is about to be written anew.

    A device that was lent since, or has only just fallen idle, would be lost to a wish of the past.
    """
    node, model = request.spec.resource.target_node, policy.model(request.spec.resource.model)
    if model is None:
        return ()
    site = keep.Site(view, node, policy, now, demand.on_node(view, node, policy, now))
    return tuple(one.device for one in keep.devices(site, model).wanted)


def _astray(view: View, device: DeviceID) -> bool:
    """Whether an order of ours that is in no books has it: a new one would be refused, `surplus` finds the old one.

    Seldom true, and then since a backup was restored; or it has just been detached and the inventory is old.
    """
    physical = view.physical(device)
    return physical is not None and bool(physical.node and physical.ours and physical.order)


def _to_come(view: View, device: DeviceID, claim: Key) -> bool:
    """Whether it is not there, and did not fail for the very allocation that wants it: that wish is about to go."""
    found = view.claim(claim)
    failed = found is not None and bool(room.failures(view, device, found))
    return view.resource_of(device) is None and not failed


def _had(view: View, device: DeviceID, claim: Key) -> bool:
    """Whether the claim is Ready with a device that is gone: only force does that, and no pod gets it back."""
    found = view.claim(claim)
    return found is not None and holds(found.conditions(device), READY)


def _elsewhere(view: View, device: DeviceID, node: NodeName) -> bool:
    resource = view.resource_of(device)
    return resource is not None and resource.node != node


# --- requests that leave the choice to us


def _chosen(view: View, request: ComposabilityRequest, policy: Policy, now: Seconds) -> Composition:
    site = placement.Site(view, request, policy, now)
    error = placement.invalid(site)
    if error:
        return Composition(error=error)
    children = tuple(one for one in view.resources_of(request.metadata.name) if one.stands)
    kept = placement.kept(site, children)
    misfits = tuple(one for one in children if one not in kept)
    size = request.spec.resource.size
    if len(kept) >= size:
        victims = placement.victims(view, kept, len(kept) - size)
        return Composition(delete=(*misfits, *victims))
    places, error = placement.places(site, kept, size - len(kept))
    create = tuple((device, node, Key("", "")) for device, node in places)
    return Composition(create, misfits, error, placement.again_at(site) if error else NEVER)


# --- the end of a request


def _orphans(view: View, name: str) -> tuple[ComposableResource, ...]:
    """Return what was put into the books for a request that is gone; what a request owns, Kubernetes deletes."""
    return tuple(
        one
        for one in view.resources_of(name)
        if one.device is not None
        and one.state is ResourceState.ONLINE
        and not one.deleting
        and not one.metadata.owner_references
    )


def _clean(view: View, request: ComposabilityRequest) -> Plan:
    children = view.resources_of(request.metadata.name)
    if not children:
        if FINALIZER not in request.metadata.finalizers:
            return Plan()
        free = FreeRequest(
            phase=Phase.DETACHED,
            request=request.metadata.name,
            version=request.metadata.resource_version,
            because="all its devices are returned",
        )
        return Plan((free,))
    actions: list[AnyAction] = [
        _delete(one, "its request is being deleted") for one in children if not one.deleting
    ]
    actions += _shown(request, _status(view, request, Composition()))
    names = ", ".join(one.metadata.name for one in children)
    return Plan(
        tuple(actions), (Waiting(f"request/{request.metadata.name}", "Cleaning", f"{names} to be returned"),)
    )


# --- actions


def _create(
    request: ComposabilityRequest, policy: Policy, device: DeviceID, node: NodeName, claim: Key
) -> PutResource:
    fabric = naming.fabric_of(device, policy)
    assert fabric is not None
    spec = request.spec.resource
    meta = ObjectMeta(
        name=naming.resource(fabric, device),
        labels={MANAGED_BY: request.metadata.name},
        annotations={DEVICE: str(device)},
        finalizers=(FINALIZER,),
        owner_references=(_owner(request),),
    )
    resource = ComposableResource(
        metadata=meta,
        spec=ComposableResourceSpec(
            type=spec.type, model=spec.model, target_node=node, force_detach=spec.force_detach
        ),
    )
    because = f"{request.metadata.name} wants {device.device} on {node}"
    return PutResource(phase=Phase.COMPOSED, claim=claim, resource=resource, because=because)


def _owner(request: ComposabilityRequest) -> OwnerReference:
    kind = type(request)
    return OwnerReference(f"{kind.group}/{kind.version}", kind.__name__, request.metadata.name, request.uid)


def _delete(resource: ComposableResource, because: str) -> DeleteResource:
    return DeleteResource(
        phase=Phase.DETACHED,
        resource=resource.metadata.name,
        version=resource.metadata.resource_version,
        because=because,
    )


def _shown(request: ComposabilityRequest, status: ComposabilityRequestStatus) -> list[AnyAction]:
    """Show what became of a request; of the scaler's own only what is wrong, since nobody waits in front of it."""
    if status == request.status:
        return []
    news = status.error or (request.status.state.value and status.state is RequestState.RUNNING)
    if request.scalers and not news:
        return []
    put = PutRequestStatus(
        phase=Phase.COMPOSED,
        request=request.metadata.name,
        version=request.metadata.resource_version,
        status=status,
        because=f"it is {status.state.value or 'new'} with {len(status.resources)} resources",
    )
    return [put]


def _status(view: View, request: ComposabilityRequest, composed: Composition) -> ComposabilityRequestStatus:
    children = view.resources_of(request.metadata.name)
    shown = {
        one.metadata.name: ChildStatus(
            state=one.state,
            device_id=one.status.device_id,
            cdi_device_id=one.status.cdi_device_id,
            node_name=one.node,
            error=one.status.error,
        )
        for one in children
    }
    online = sum(one.state is ResourceState.ONLINE and not one.deleting for one in children)
    settled = not (composed.create or composed.delete or composed.error)
    if request.deleting:
        state = RequestState.CLEANING
    elif online == request.spec.resource.size == len(children) and settled:
        state = RequestState.RUNNING
    else:
        state = RequestState.UPDATING
    return ComposabilityRequestStatus(
        state=state,
        error=composed.error,
        resources=shown,
        scalar_resource=request.spec.resource,
        conditions=request.status.conditions,
    )
