"""Actions and what is waited for → words: what happened to which object, and why.

Knows how objects are named for people: kind/namespace/name. Must not know anything that is not in the value.
"""

from jackfield.model.meta import Object
from jackfield.model.names import DeviceID
from jackfield.model.plan import (
    Action,
    AddNode,
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    Detach,
    DropTaint,
    FreeRequest,
    KeepRequest,
    LabelNode,
    MarkMissing,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    PutTaint,
    RemoveCDI,
    SetCondition,
    WriteCDI,
)

_WHERE: dict[type[Action], tuple[str, str]] = {
    PutSlice: ("slice", "slice"),
    LabelNode: ("node", "node"),
    Blame: ("node", "node"),
    AddNode: ("node", "node"),
    PutRequest: ("request", "request"),
    DeleteRequest: ("request", "name"),
    KeepRequest: ("request", "request"),
    FreeRequest: ("request", "request"),
    PutRequestStatus: ("request", "request"),
    PutTaint: ("taint", "rule"),
    DropTaint: ("taint", "name"),
    SetCondition: ("claim", "claim"),
    CountAttempt: ("claim", "claim"),
    ClearClaim: ("claim", "claim"),
    WriteCDI: ("claim", "claim"),
    RemoveCDI: ("claim", "claim"),
}
"""The kind of object that an action is done to, and the field that names it; for all others it is a resource."""


def subject(action: AnyAction) -> str:
    """Return the object that an action is done to."""
    kind, field = _WHERE.get(type(action), ("resource", "resource"))
    value = getattr(action, field)
    return f"{kind}/{value.metadata.name if isinstance(value, Object) else value}"


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
        case MarkMissing():
            return str(action.missing)
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
