"""What the API server does to an object on its way into the store, kind by kind.

Knows which parts a writer may touch, what the server sets itself, and whom to ask whether the result is valid.
Must not know where objects are kept.
"""

from jackfield import codec
from jackfield.cluster import defaults, errors, pod_defaults, pruning, validate
from jackfield.cluster.history import Stored
from jackfield.codec import BadObject, Raw, RawValue, without_nulls
from jackfield.codec.kinds import Kind
from jackfield.core.cel.quoting import quoted
from jackfield.model import composition
from jackfield.model.definition import CustomResourceDefinition
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Time, seconds
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node

GENERATIONS = frozenset(
    {
        "Pod",
        "ResourceSlice",
        "DeviceClass",
        "DeviceTaintRule",
        "CustomResourceDefinition",
        "ComposabilityRequest",
        "ComposableResource",
    }
)
"""Kinds whose generation counts the changes of what is wanted."""
IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that nobody may delete."""
TOPOLOGY = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
"""Labels of a node that a pod gets when it is bound to it."""
CONDITIONAL = frozenset({"Lease", "CustomResourceDefinition", "ComposabilityRequest", "ComposableResource"})
"""Kinds that are only replaced by those who say which version they have seen."""
GATED = "Scheduling is blocked due to non-empty scheduling gates"
KUBERNETES = "kubernetes"
"""The finalizer in the spec of a namespace that goes when it is empty."""
CREATED_BY_UPDATE = frozenset({"Event", "Lease"})
SYSTEM = frozenset(
    {
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)
"""Metadata that nobody changes but the server."""
BY_STATUS = frozenset({"Namespace", "Node", "Pod"})
"""Kinds of which a writer of the status may change the metadata as well: they are older than that division."""
_SERVERS = tuple(sorted(SYSTEM - {"name", "namespace", "generateName", "generation"}))


_COLLECTIONS = ("labels", "annotations", "finalizers", "ownerReferences")
_OUTLINE = ("apiVersion", "kind", "metadata", "spec", "status")
BYTES = {"Secret": ("data",), "ConfigMap": ("binaryData",)}
"""Members whose values are bytes, in base64."""
EVENT_SECONDS = 3600
"""How long events are kept; all other objects stay until somebody deletes them."""


def read(raw: Raw) -> Raw:
    """Return a copy to work on. Raises a bad request if it is not even the outline of an object."""
    return shaped(without_nulls(raw))


def shaped(raw: Raw) -> Raw:
    """Return the object if it has the outline of one; raises a bad request if not."""
    metadata = raw.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise errors.bad_request("metadata: expected an object")
    for name in ("name", "namespace", "generateName", "uid", "resourceVersion"):
        if not isinstance(metadata.get(name, ""), str):
            raise errors.bad_request(f"metadata.{name}: expected a string")
    return raw


def refuse_another(old: Stored, new: Raw) -> None:
    """Raise what the server says to a patch that would make the object another, or undo what was decided of it."""
    before, after = old.raw["metadata"], new["metadata"]
    for name in ("name", "namespace"):
        if after.get(name) and after[name] != before.get(name):
            raise errors.bad_request(_elsewhere(name, after[name], before.get(name, "")))
    causes = tuple(
        errors.invalid_value(f"metadata.{name}", after[name], "field is immutable")
        for name in ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
        if after.get(name) and after[name] != before.get(name)
    )
    if causes:
        raise errors.invalid(old.kind, old.key, causes)


def _elsewhere(name: str, said: str, asked: str) -> str:
    if name == "namespace":
        return "the namespace of the provided object does not match the namespace sent on the request"
    return f"the name of the object ({said}) does not match the name on the URL ({asked})"


def prepare_create(kind: Kind, new: Raw, now: Time) -> None:
    """Take away what only the server may say. A node may say its status at once, as kubelets do."""
    metadata = new["metadata"]
    for name in _SERVERS:
        metadata.pop(name, None)
    if kind.kind in GENERATIONS:
        metadata["generation"] = 1
    elif not metadata.get("generation", 1):
        del metadata["generation"]
    if kind.has_status and kind.kind != "Node":
        new.pop("status", None)
    match kind.kind:
        case "Pod":
            new["status"] = _status_of_pod(new["spec"], now)
        case "Namespace":
            there = codec.dig(new, "spec", "finalizers") or []
            new["spec"] = {"finalizers": there if KUBERNETES in there else [*there, KUBERNETES]}
            new["status"] = {"phase": "Active"}
        case "ResourceClaim":
            new["status"] = {}
        case _:
            pass
    new["apiVersion"], new["kind"] = kind.api_version, kind.kind


def _status_of_pod(spec: Raw, now: Time) -> Raw:
    status: Raw = {"phase": "Pending", "qosClass": pod_defaults.quality(spec)}
    if spec.get("schedulingGates"):
        gated = {"reason": "SchedulingGated", "message": GATED}
        said = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "lastTransitionTime": now}
        status["conditions"] = [{**said, **gated}]
    return status


def prepare_update(kind: Kind, old: Raw, new: Raw, *, status: bool) -> Raw:
    """Return the new version, of which a writer of the status changes only that, and others all but that."""
    if status:
        if not kind.has_status:
            raise errors.bad_request(f"{kind.resource} has no status subresource")
        result = _with_status(old, new)
        return {**result, "metadata": _metadata(old, new)} if kind.kind in BY_STATUS else result
    result = {**new, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": _metadata(old, new)}
    if kind.kind == "Namespace":
        result["spec"] = old.get("spec", {})
    return _with_status(result, old) if kind.has_status else result


def _metadata(old: Raw, new: Raw) -> Raw:
    """Return the new metadata, in which what is the server's stays as it is."""
    before, after = old["metadata"], new["metadata"]
    system = {name: value for name, value in before.items() if name in SYSTEM}
    return {**system, **{name: value for name, value in after.items() if name not in SYSTEM}}


def complete(kind: Kind, new: Raw, now: Time, old: Raw | None = None) -> None:
    """Fill in defaults, and leave out what says nothing or is unknown to the kind's definition."""
    _refuse_shapeless(kind, new)
    wrong = validate.bytes_problem(new, BYTES[kind.kind]) if kind.kind in BYTES else ""
    if wrong:
        named = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        raise errors.bad_request(f"{named}: {wrong}")
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
    defaults.complete(kind.kind, new, now, old)


def _refuse_shapeless(kind: Kind, new: Raw) -> None:
    """Raise what the server says of an object whose parts are no objects."""
    for name in ("spec", "status"):
        if not isinstance(new.get(name, {}), dict):
            if kind.group == composition.GROUP:
                key = Key(new["metadata"].get("namespace", ""), new["metadata"].get("name", ""))
                raise errors.invalid(kind, key, validate.undecodable(kind.kind, new))
            raise errors.bad_request(f"{name}: expected an object")


def settled(kind: Kind, old: Raw, new: Raw) -> Raw:
    """Return the new version with what follows from its changes; unchanged parts are the old ones themselves."""
    result = {name: old[name] if name in old and old[name] == value else value for name, value in new.items()}
    if kind.kind == "ResourceClaim" and result.get("status") is not old.get("status"):
        result["status"] = _without_deallocated(old.get("status", {}), result.get("status", {}))
    if kind.kind in GENERATIONS and _wants_changed(old, result):
        generation = old["metadata"].get("generation", 0) + 1
        result["metadata"] = {**result["metadata"], "generation": generation}
    return result


def bound(old: Stored, node: str, found: Node | None, now: Time) -> Raw:
    """Return the pod bound to the node, and said to be scheduled. Raises Conflict if it is bound already."""
    pod = old.raw
    taken = pod.get("spec", {}).get("nodeName")
    if taken or "deletionTimestamp" in pod["metadata"]:
        why = (
            "is being deleted, cannot be assigned to a host"
            if "deletionTimestamp" in pod["metadata"]
            else f"is already assigned to node {quoted(taken)}"
        )
        raise errors.unbindable(old.kind, old.key, f"pod {old.key.name} {why}")
    status = pod.get("status", {})
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    labels = (
        {name: found.metadata.labels[name] for name in TOPOLOGY if name in found.metadata.labels}
        if found
        else {}
    )
    metadata = pod["metadata"]
    if labels:
        metadata = {**metadata, "labels": {**metadata.get("labels", {}), **labels}}
    status = {name: value for name, value in status.items() if name != "nominatedNodeName"}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod.get("spec", {}), "nodeName": node},
        "status": {**status, "conditions": _with_condition(status, scheduled)},
    }


def evicted(pod: Raw, now: Time) -> Raw:
    """Return the pod, said to be evicted."""
    said: Raw = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = pod.get("status", {})
    return {**pod, "status": {**status, "conditions": _with_condition(status, said)}}


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
        and not (new["kind"] == "Namespace" and codec.dig(new, "spec", "finalizers"))
    )


def problems(old: Stored | None, new: Stored) -> tuple[errors.Cause, ...]:
    """Return what is wrong with a new version."""
    before = old.raw if old else {}
    change = validate.Change(
        old=old.object if old else None,
        new=new.object,
        raw=new.raw,
        before=old.raw if old else None,
        wants=_wants_changed(before, new.raw),
        status=before.get("status") is not new.raw.get("status"),
    )
    return validate.problems(new.kind, change)


def refuse_deletion(old: Stored) -> None:
    """Raise what the server says of objects that nobody may delete."""
    if isinstance(old.object, Namespace) and old.key.name in IMMORTAL:
        raise errors.refused(old.kind, old.key, "this namespace may not be deleted")
    if isinstance(old.object, CustomResourceDefinition):
        raise errors.refused(old.kind, old.key, "the embedded cluster cannot do without this kind")


def refuse_unconditional(kind: Kind, new: Raw) -> None:
    """Raise what the server says to whoever replaces an object of some kinds and does not say which version."""
    if kind.kind in CONDITIONAL and not new["metadata"].get("resourceVersion"):
        key = Key("", new["metadata"].get("name", ""))
        cause = errors.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
        raise errors.unversioned(kind, key, cause)


def is_created_by_update(kind: Kind, metadata: Raw) -> bool:
    """Return whether an update creates what is not there; not if it means one that was."""
    return kind.kind in CREATED_BY_UPDATE and not metadata.get("uid")


def undecodable(kind: Kind, raw: Raw, error: BadObject) -> errors.ApiError:
    """Return the answer to an object that is not of its kind: schemas find it invalid, Go cannot read it."""
    if kind.group == composition.GROUP:
        found = validate.undecodable(kind.kind, raw)
        causes = found or (errors.Cause(error.path, error.what, "FieldValueTypeInvalid"),)
        return errors.invalid(kind, error.key, causes)
    return errors.bad_request(str(error))


def _with_condition(status: Raw, new: Raw) -> list[Raw]:
    """Return the conditions with one put in its place, its time kept where its status did not change."""
    there = codec.objects(status.get("conditions"))
    old = next((one for one in there if one.get("type") == new["type"]), None)
    if old is None:
        return [*there, new]
    if old.get("status") == new["status"] and old.get("lastTransitionTime"):
        new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
    return [new if one is old else one for one in there]


def _with_status(raw: Raw, source: Raw) -> Raw:
    result = {name: value for name, value in raw.items() if name != "status"}
    if "status" in source:
        result["status"] = source["status"]
    return result


def _wants_changed(old: Raw, new: Raw) -> bool:
    """Return whether anything beside metadata and status is another; equal parts are the same by now."""
    for name, value in new.items():
        if old.get(name) is not value and name not in ("metadata", "status"):
            return True
    return any(name not in new for name in old if name not in ("metadata", "status"))


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
