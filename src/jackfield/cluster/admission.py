"""What the API server does to an object on its way into the store, kind by kind.

Knows which parts a writer may touch, what the server sets itself, and whom to ask whether the result is valid.
Must not know where objects are kept.
"""

from jackfield import codec
from jackfield.cluster import defaults, errors, fields, pruning, validate
from jackfield.cluster.history import Stored
from jackfield.codec import BadObject, Raw, RawValue, without_nulls
from jackfield.codec.kinds import Kind
from jackfield.model import composition
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import Seconds, Time, seconds
from jackfield.model.pod import Pod

GENERATIONS = frozenset(
    {"Pod", "ResourceSlice", "DeviceClass", "DeviceTaintRule", "ComposabilityRequest", "ComposableResource"}
)
"""Kinds whose generation counts the changes of what is wanted."""
_SERVERS = frozenset(fields.SYSTEM - {"name", "namespace", "generateName", "resourceVersion"})


_COLLECTIONS = ("labels", "annotations", "finalizers", "ownerReferences")
_OUTLINE = ("apiVersion", "kind", "metadata", "spec", "status")
EVENT_SECONDS = 3600
"""How long events are kept; all other objects stay until somebody deletes them."""


def read(raw: Raw) -> Raw:
    """Return a copy to work on. Raises a bad request if it is not even the outline of an object."""
    return shaped(without_nulls(raw))


def shaped(raw: Raw) -> Raw:
    """Return the object if it has the outline of one; raises a bad request if not."""
    raw.setdefault("metadata", {})
    for name in ("metadata", "spec", "status"):
        if not isinstance(raw.get(name, {}), dict):
            raise errors.bad_request(f"{name}: expected an object")
    metadata = raw["metadata"]
    for name in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(metadata.get(name, ""), str):
            raise errors.bad_request(f"metadata.{name}: expected a string")
    return raw


def refuse_another(old: Stored, new: Raw) -> None:
    """Raise what the server says to a patch that would make the object another, or undo what was decided of it."""
    before, after = old.raw["metadata"], new["metadata"]
    for name in ("name", "namespace"):
        if after.get(name) and after[name] != before.get(name):
            words = f"({after[name]}) does not match the {name} on the URL ({before.get(name, '')})"
            raise errors.bad_request(f"the {name} of the object {words}")
    causes = tuple(
        errors.invalid_value(f"metadata.{name}", after[name], "field is immutable")
        for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if after.get(name) and after[name] != before.get(name)
    )
    if causes:
        raise errors.invalid(old.kind, old.key, causes)


def part(kind: Kind, ownable: Raw, *, status: bool) -> Raw:
    """Return the part of an applied object that this subresource listens to."""
    if status:
        return {"status": ownable["status"]} if "status" in ownable else {}
    if kind.has_status:
        return {name: value for name, value in ownable.items() if name != "status"}
    return ownable


def prepare_create(kind: Kind, new: Raw) -> None:
    """Take away what only the server may say. A node may say its status at once, as kubelets do."""
    metadata = new["metadata"]
    for name in _SERVERS:
        metadata.pop(name, None)
    if kind.kind in GENERATIONS:
        metadata["generation"] = 1
    if kind.has_status and kind.kind != "Node":
        new.pop("status", None)
    new["apiVersion"], new["kind"] = kind.api_version, kind.kind


def prepare_update(kind: Kind, old: Raw, new: Raw, *, status: bool) -> Raw:
    """Return the new version, of which a writer of the status changes only that, and others all but that."""
    if status:
        if not kind.has_status:
            raise errors.bad_request(f"{kind.resource} has no status subresource")
        return _with_status(old, new)
    system = {name: value for name, value in old["metadata"].items() if name in fields.SYSTEM}
    own = {name: value for name, value in new["metadata"].items() if name not in fields.SYSTEM}
    result = {**new, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {**system, **own}}
    return _with_status(result, old) if kind.has_status else result


def complete(kind: Kind, new: Raw, now: Time) -> None:
    """Fill in defaults, and leave out what says nothing or is unknown to the kind's definition."""
    metadata = new["metadata"]
    if any(name in metadata and not metadata[name] for name in _COLLECTIONS):
        new["metadata"] = {
            name: value for name, value in metadata.items() if value or name not in _COLLECTIONS
        }
    if kind.group == composition.GROUP:
        for name, value in pruning.pruned(kind.type, new).items():
            new[name] = value
        for name in [one for one in new if one not in _OUTLINE]:
            del new[name]
    defaults.complete(kind.kind, new, now)


def settled(kind: Kind, old: Raw, new: Raw) -> Raw:
    """Return the new version with what follows from its changes; unchanged parts are the old ones themselves."""
    result = {name: old[name] if name in old and old[name] == value else value for name, value in new.items()}
    if kind.kind == "ResourceClaim" and result.get("status") is not old.get("status"):
        result["status"] = _without_deallocated(old.get("status", {}), result.get("status", {}))
    if kind.kind in GENERATIONS and _wants_changed(old, result):
        generation = old["metadata"].get("generation", 0) + 1
        result["metadata"] = {**result["metadata"], "generation": generation}
    return result


def bound(pod: Raw, node: str, now: Time) -> Raw:
    """Return the pod bound to the node, and said to be scheduled. Raises Conflict if it is bound already."""
    taken = pod.get("spec", {}).get("nodeName")
    if taken or "deletionTimestamp" in pod["metadata"]:
        why = (
            f"pod is already assigned to node {taken!r}"
            if taken
            else "pod is being deleted, cannot be assigned"
        )
        raise errors.ApiError(409, "Conflict", f"{pod['metadata']['name']}: {why}")
    status = pod.get("status", {})
    said = [one for one in codec.objects(status.get("conditions")) if one.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    return {
        **pod,
        "spec": {**pod.get("spec", {}), "nodeName": node},
        "status": {**status, "conditions": [*said, scheduled]},
    }


def grace_seconds(old: Object) -> int:
    """Return how long the object may take to end: only pods that run somewhere take any time."""
    if isinstance(old, Pod) and old.spec.node_name and not old.finished:
        return old.spec.termination_grace_period_seconds
    return 0


def is_stale(old: Object, now: Seconds) -> bool:
    """Return whether the server itself clears the object away."""
    return isinstance(old, Event) and seconds(old.metadata.creation_timestamp) + EVENT_SECONDS < now


def is_over(new: Raw) -> bool:
    """Return whether nothing keeps a deleted object any longer."""
    metadata = new["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
    )


def problems(old: Stored | None, new: Stored) -> tuple[errors.Cause, ...]:
    """Return what is wrong with a new version."""
    before = old.raw if old else {}
    change = validate.Change(
        old=old.object if old else None,
        new=new.object,
        raw=new.raw,
        wants=_wants_changed(before, new.raw),
        status=before.get("status") is not new.raw.get("status"),
    )
    return validate.problems(new.kind, change)


def undecodable(kind: Kind, error: BadObject) -> errors.ApiError:
    """Return the answer to an object that is not of its kind: schemas find it invalid, Go cannot read it."""
    if kind.group == composition.GROUP:
        return errors.invalid(
            kind, error.key, (errors.Cause(error.path, error.what, "FieldValueTypeInvalid"),)
        )
    return errors.bad_request(str(error))


def _with_status(raw: Raw, source: Raw) -> Raw:
    result = {name: value for name, value in raw.items() if name != "status"}
    if "status" in source:
        result["status"] = source["status"]
    return result


def _wants_changed(old: Raw, new: Raw) -> bool:
    """Return whether anything beside metadata and status is another; equal parts are the same by now."""
    return any(
        old.get(name) is not value for name, value in new.items() if name not in ("metadata", "status")
    ) or any(name not in new for name in old if name not in ("metadata", "status"))


def _without_deallocated(old: Raw, new: Raw) -> Raw:
    """Return the claim's status without what drivers said of devices that just left the allocation.

    The server does this whoever writes, so that no word of one allocation is read as one about the next.
    """
    before, after = _allocated(old), _allocated(new)
    gone = before - after
    if not gone or "devices" not in new:
        return new
    kept = [one for one in codec.objects(new["devices"]) if _device(one) not in gone]
    result = {name: value for name, value in new.items() if name != "devices"}
    return {**result, "devices": kept} if kept else result


def _allocated(status: Raw) -> frozenset[tuple[RawValue, ...]]:
    results = codec.dig(status, "allocation", "devices", "results")
    return frozenset(_device(one) for one in codec.objects(results))


def _device(entry: Raw) -> tuple[RawValue, ...]:
    return tuple(str(entry.get(name, "")) for name in ("driver", "pool", "device", "shareID"))
