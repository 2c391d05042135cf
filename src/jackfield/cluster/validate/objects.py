"""What is wrong with an object: metadata here, the rest by kind.

Knows the rules that all objects share and who knows the others. Must not know how an answer is sent.
"""

from collections.abc import Callable, Iterator, Mapping

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import claims, compositions, core, formats, slices
from jackfield.cluster.validate.checks import Change, labels, named
from jackfield.codec.kinds import Kind
from jackfield.model.meta import ObjectMeta

ANNOTATIONS_BYTES_MAX = 256 * 1024

_RULES: Mapping[str, Callable[[Change], Iterator[Cause]]] = {
    "Namespace": core.namespace,
    "Node": core.node,
    "Pod": core.pod,
    "Event": core.event,
    "Lease": core.lease,
    "ResourceSlice": slices.resource_slice,
    "DeviceClass": claims.device_class,
    "ResourceClaim": claims.claim,
    "ResourceClaimTemplate": claims.template,
    "DeviceTaintRule": slices.taint_rule,
    "ComposabilityRequest": compositions.request,
    "ComposableResource": compositions.resource,
}


def problems(kind: Kind, change: Change) -> tuple[Cause, ...]:
    """Return all that is wrong, metadata first; what has not changed is not looked at again."""
    return (*_metadata(kind, change), *_RULES[kind.kind](change))


def _metadata(kind: Kind, change: Change) -> Iterator[Cause]:
    new = change.new.metadata
    old = change.old.metadata if change.old else None
    if old is None:
        yield from _names(kind, new)
    if old is None or old.labels != new.labels:
        yield from labels("metadata.labels", new.labels)
    if old is None or old.annotations != new.annotations:
        yield from _annotations(new.annotations)
    if old is None or old.finalizers != new.finalizers:
        yield from _finalizers(old, new)
    if old is None or old.owner_references != new.owner_references:
        yield from _owners(new)


def _names(kind: Kind, new: ObjectMeta) -> Iterator[Cause]:
    if not new.name:
        yield errors.required("metadata.name", "name or generateName is required")
    else:
        # A namespace becomes part of host names, where a dot would begin another part.
        yield from named(
            "metadata.name", new.name, formats.label if kind.kind == "Namespace" else formats.subdomain
        )
    if not kind.namespaced and new.namespace:
        yield errors.forbidden("metadata.namespace", "not allowed on this type")
    if kind.namespaced and not new.namespace:
        yield errors.required("metadata.namespace")
    elif new.namespace:
        yield from named("metadata.namespace", new.namespace, formats.label)


def _annotations(found: Mapping[str, str]) -> Iterator[Cause]:
    for name in found:
        yield from named("metadata.annotations", name.lower(), formats.qualified)
    size = sum(len(name.encode()) + len(value.encode()) for name, value in found.items())
    if size > ANNOTATIONS_BYTES_MAX:
        yield errors.too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX)


def _finalizers(old: ObjectMeta | None, new: ObjectMeta) -> Iterator[Cause]:
    for index, one in enumerate(new.finalizers):
        yield from named(f"metadata.finalizers[{index}]", one, formats.qualified)
    if old is None or not old.deletion_timestamp:
        return
    added = [one for one in new.finalizers if one not in old.finalizers]
    if added:
        yield errors.forbidden(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new finalizers {added}",
        )


def _owners(new: ObjectMeta) -> Iterator[Cause]:
    for index, one in enumerate(new.owner_references):
        field = f"metadata.ownerReferences[{index}]"
        parts = {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid}
        for name, value in parts.items():
            if not value:
                yield errors.required(f"{field}.{name}")
    if sum(one.controller for one in new.owner_references) > 1:
        yield errors.forbidden(
            "metadata.ownerReferences", "only one reference can have Controller set to true"
        )
