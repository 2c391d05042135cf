"""A step → the id of the story that it belongs to, which is the same in every line of that story.

A story is caused by a claim, and its id is the claim's uid, as `kubectl` shows it. What is done for no claim belongs
to the object itself: a device that was found attached, a request of somebody else's. Knows where the cause of a step
is written. Must not know what the step is.
"""

from msgspec.structs import replace

from jackfield.core import explain
from jackfield.model.composition import CAUSE, ComposabilityRequest, ComposableResource
from jackfield.model.names import DeviceID, Key, Uid
from jackfield.model.plan import (
    AnyAction,
    ClearClaim,
    ForgetClaim,
    Hold,
    PutResource,
    RecordClaim,
    RemoveCDI,
    SetCondition,
    WriteCDI,
)
from jackfield.model.view import View

NOBODY = Key("", "")
UNKNOWN = Uid("")


def of_action(view: View, action: AnyAction) -> Uid:
    """Return the cause of an action; some name the claim that it is done for by its uid."""
    match action:
        case (
            SetCondition(uid=uid)
            | ClearClaim(uid=uid)
            | Hold(uid=uid)
            | WriteCDI(uid=uid)
            | RemoveCDI(uid=uid)
        ):
            return uid
        case RecordClaim(record=record) | ForgetClaim(record=record):
            return record.uid
        case _:
            return of(view, explain.subject(action), action.claim, explain.devices(action))


def of(view: View, subject: str, claim: Key = NOBODY, devices: tuple[DeviceID, ...] = ()) -> Uid:
    """Return the cause of a step that is done to an object, for a claim, with devices; empty where there is none."""
    kind, _, name = subject.partition("/")
    if claim.name or kind == "claim":
        namespace, _, last = name.rpartition("/")
        return _claim(view, claim if claim.name else Key(namespace, last))
    match kind:
        case "resource":
            return _resource(view.resource(name))
        case "request":
            return _request(view, view.request(name))
        case _:
            return _resource(view.resource_of(devices[0])) if devices else UNKNOWN


def written(view: View, put: PutResource) -> PutResource:
    """Return it with its cause written on the resource: its node, and whoever leads next, know no other way."""
    cause = _claim(view, put.claim)
    if not cause:
        return put
    meta = put.resource.metadata
    noted = replace(meta, annotations={**meta.annotations, CAUSE: cause})
    return replace(put, resource=replace(put.resource, metadata=noted))


def _claim(view: View, key: Key) -> Uid:
    found = view.claim(key)
    if found is not None:
        return found.uid
    # A node is not told of claims, but of what serves them.
    recorded = (one.record.uid for one in view.resources_recording(key) if one.record is not None)
    return next(recorded, UNKNOWN)


def _resource(resource: ComposableResource | None) -> Uid:
    """Whoever it serves; else whom it was attached for, which stands on it; else itself."""
    if resource is None:
        return UNKNOWN
    if resource.record is not None:
        return resource.record.uid
    return Uid(resource.metadata.annotations.get(CAUSE, "")) or resource.uid


def _request(view: View, request: ComposabilityRequest | None) -> Uid:
    """The one claim that it is for; one that is for several is a story of its own."""
    if request is None:
        return UNKNOWN
    claims = tuple(dict.fromkeys(one.claim for one in request.wanted if one.claim.name))
    return (_claim(view, claims[0]) if len(claims) == 1 else UNKNOWN) or request.uid
