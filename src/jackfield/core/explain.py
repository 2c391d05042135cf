"""Actions and what is waited for → words: what happened to which object, and why.

Knows how objects are named for people: kind/namespace/name. Must not know anything that is not in the value.
"""

from jackfield.model.names import DeviceID
from jackfield.model.plan import (
    AddNode,
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    Detach,
    FreeRequest,
    KeepRequest,
    LabelNode,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    RemoveCDI,
    SetCondition,
    WriteCDI,
)


def subject(action: AnyAction) -> str:
    """Return the object that an action is done to."""
    match action:
        case PutSlice(slice=one):
            kind, name = "slice", one.metadata.name
        case LabelNode(node=name) | Blame(node=name):
            kind = "node"
        case AddNode(node=one):
            kind, name = "node", one.metadata.name
        case PutRequest(request=one):
            kind, name = "request", one.metadata.name
        case DeleteRequest(name=name):
            kind = "request"
        case KeepRequest(request=name) | FreeRequest(request=name) | PutRequestStatus(request=name):
            kind = "request"
        case SetCondition() | CountAttempt() | ClearClaim() | WriteCDI() | RemoveCDI():
            kind, name = "claim", str(action.claim)
        case PutResource(resource=one):
            kind, name = "resource", one.metadata.name
        case _:
            kind, name = "resource", action.resource
    return f"{kind}/{name}"


def detail(action: AnyAction) -> str:
    """Return what exactly is done, where the action's name alone does not say it."""
    match action:
        case SetCondition():
            return action.type
        case Attach() | Detach():
            return f"{action.order.device or action.order.model} at {action.order.node}"
        case Adopt():
            return action.device
        case PutRequest():
            return f"size {action.request.spec.resource.size}"
        case PutResource():
            return f"on {action.resource.node}"
        case _:
            state = getattr(action, "state", "")
            return str(state)


def devices(action: AnyAction) -> tuple[DeviceID, ...]:
    """Return the devices an action names."""
    match action:
        case SetCondition():
            return action.devices
        case PutResource() if action.resource.device is not None:
            return (action.resource.device,)
        case Blame() | WriteCDI():
            return (action.device,)
        case PutRequest():
            return tuple(one.device for one in action.request.wanted)
        case _:
            return ()
