"""What is wrong with an object: metadata here, the rest by kind.

Knows the rules that all objects share and who knows the others. Must not know how an answer is sent.
"""

from collections.abc import Callable, Iterator, Mapping

from jackfield.cluster import deletion, errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import claims, compositions, core, formats, kept, pods, slices
from jackfield.cluster.validate.checks import Change, labels, named
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.core.cel.quoting import quoted
from jackfield.model import composition
from jackfield.model.meta import ObjectMeta

ANNOTATIONS_BYTES_MAX = 256 * 1024
_NO_STANDARD = "name is neither a standard finalizer name nor is it fully qualified"

_RULES: Mapping[str, Callable[[Change], Iterator[Cause]]] = {
    "Namespace": core.namespace,
    "Node": core.node,
    "Pod": pods.pod,
    "Event": core.event,
    "ConfigMap": kept.config_map,
    "Secret": kept.secret,
    "ServiceAccount": kept.service_account,
    "CustomResourceDefinition": kept.definition,
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
    """Return all that is wrong, metadata first; what has not changed is not looked at again.

    A real server looks at metadata up to four times when an object changes, and says each time what it finds.
    """
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
    if old is None or old.owner_references != new.owner_references:
        yield from _owners(new, change.raw)
    if old is None or old.finalizers != new.finalizers:
        yield from _finalizers(kind, old, new)


def _names(kind: Kind, new: ObjectMeta) -> Iterator[Cause]:
    # A namespace becomes part of host names, where a dot would begin another part.
    rule = formats.label if kind.kind == "Namespace" else formats.subdomain
    if kind.kind == "Event":
        rule = formats.segment
    if new.generate_name:
        # What is made up is appended, so that the beginning alone may end in a way that a name may not.
        shown = new.generate_name[:-1] + "a" if new.generate_name.endswith("-") else new.generate_name
        for wrong in rule(shown):
            yield errors.invalid_value("metadata.generateName", new.generate_name, wrong)
    if not new.name:
        yield errors.required("metadata.name", "name or generateName is required")
    else:
        yield from named("metadata.name", new.name, rule)
    if kind.namespaced and not new.namespace:
        yield errors.required("metadata.namespace")
    elif new.namespace:
        yield from named("metadata.namespace", new.namespace, formats.label)


def _annotations(found: Mapping[str, str]) -> Iterator[Cause]:
    for name in sorted(found):
        for wrong in formats.qualified(name.lower()):
            yield errors.invalid_value("metadata.annotations", name, wrong)
    size = sum(len(name.encode()) + len(value.encode()) for name, value in found.items())
    if size > ANNOTATIONS_BYTES_MAX:
        yield errors.too_long("metadata.annotations", ANNOTATIONS_BYTES_MAX)


def _finalizers(kind: Kind, old: ObjectMeta | None, new: ObjectMeta) -> Iterator[Cause]:
    if old is not None and old.deletion_timestamp:
        added = sorted(one for one in new.finalizers if one not in old.finalizers)
        if added:
            listed = ", ".join(quoted(one) for one in added)
            words = "no new finalizers can be added if the object is being deleted, found new finalizers"
            yield errors.forbidden("metadata.finalizers", f"{words} []string{{{listed}}}")
    for one in new.finalizers:
        yield from named("metadata.finalizers", one, formats.qualified)
    if {deletion.FOREGROUND, deletion.ORPHAN} <= {*new.finalizers}:
        words = f"finalizer {deletion.ORPHAN} and {deletion.FOREGROUND} cannot be both set"
        yield errors.invalid_value("metadata.finalizers", new.finalizers, words)
    for index, one in enumerate(new.finalizers if kind.group != composition.GROUP else ()):
        if "/" not in one and one not in (deletion.FOREGROUND, deletion.ORPHAN, "kubernetes"):
            yield errors.invalid_value(f"metadata.finalizers[{index}]", one, _NO_STANDARD)


def _owners(new: ObjectMeta, raw: Raw) -> Iterator[Cause]:
    field = "metadata.ownerReferences"
    first = ""
    for index, one in enumerate(new.owner_references):
        if not one.api_version:
            yield errors.invalid_value(f"{field}.apiVersion", one.api_version, "version must not be empty")
        parts = {"kind": one.kind, "name": one.name, "uid": one.uid}
        for name, value in parts.items():
            if not value:
                yield errors.invalid_value(f"{field}.{name}", value, "must not be empty")
        written = raw["metadata"]["ownerReferences"]
        if (one.api_version, one.kind) == ("v1", "Event"):
            words = "/v1, Kind=Event is disallowed from being an owner"
            yield errors.invalid_value(field, written[index], words)
        if one.controller:
            this = f"{one.kind}/{one.name}"
            if first:
                words = 'Only one reference can have Controller set to true. Found "true" in references for'
                yield errors.invalid_value(field, written, f"{words} {first} and {this}")
            first = first or this
