"""What the builders' objects may be given besides: keywords, typed, and the metadata made of them.

Knows which fields a table's rows are about. Must not know what any of them means.
"""

from collections.abc import Mapping
from typing import TypedDict

from jackfield.model.composition import AllocationPolicy, ComposabilityRequestStatus, OtherSpec
from jackfield.model.meta import Condition, ObjectMeta, OwnerReference
from jackfield.model.names import NO_TIME, Seconds, Time, Uid, Version, rfc3339

NOW = Seconds(1_767_225_600.0)
"""The moment at which rows are decided: 2026-01-01T00:00:00Z."""


class Meta(TypedDict, total=False):
    """What any object may be given besides; points in time are seconds, as `NOW` is."""

    uid: str
    version: str
    created: float
    deleted: float
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    owners: tuple[OwnerReference, ...]


class NodeMeta(Meta, total=False):
    """What a node may be given besides."""

    failures: Mapping[str, float]
    """Devices that failed on it, and when."""
    ready: str
    """What its kubelet says; "True" where nothing is said, and nothing at all if empty."""
    has: Mapping[str, str]
    """What pods may have of it."""


class PodMeta(Meta, total=False):
    """What a pod may be given besides."""

    needs: Mapping[str, str]
    """What its one container asks for."""
    homeless: bool
    """Whether the scheduler has said that no node fits."""


class RequestMeta(Meta, total=False):
    """What a request may be given besides."""

    type: str
    by: AllocationPolicy
    other: OtherSpec
    force: bool
    status: ComposabilityRequestStatus


class ClaimMeta(Meta, total=False):
    """What a claim may be given besides."""

    allocated: float
    told: str
    """A condition that holds for all its devices."""
    admin: bool
    mode: str
    attempts: str
    waits: tuple[str, ...]
    """The binding conditions that its devices came with."""
    reserved: tuple[str, ...]
    """Pods it is reserved for."""


class ResourceMeta(Meta, total=False):
    """What a resource may be given besides."""

    holder: str
    request: str
    """The request it belongs to; the scaler's for its node and model where nothing is said."""
    model: str
    physical: str
    """The device as its manager knows it."""
    uuid: str
    """The device as its node knows it."""
    used: float
    """When a claim last used it."""
    conditions: tuple[Condition, ...]
    error: str
    force: bool
    sent: str
    """What was last asked of a manager without order ids, and when: `attach TIME`."""
    foreign: str
    """The device that somebody else attached and that is to leave."""
    order: str
    """The order that its manager knows it by, where it was found attached."""


def metadata(
    name: str,
    given: Meta,
    namespace: str = "",
    *,
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
) -> ObjectMeta:
    """Return the metadata of an object of that name; empty annotations are left out."""
    notes = {key: text for key, text in annotations.items() if text}
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=Uid(given.get("uid", f"uid-{name}")),
        resource_version=Version(given.get("version", "1")),
        creation_timestamp=point(given.get("created", NOW - 100)),
        deletion_timestamp=point(given["deleted"]) if "deleted" in given else NO_TIME,
        labels={**labels, **given.get("labels", {})},
        annotations={**notes, **given.get("annotations", {})},
        finalizers=given.get("finalizers", ()),
        owner_references=given.get("owners", ()),
    )


def point(at: float) -> Time:
    """Return a point in time as objects carry it."""
    return rfc3339(Seconds(at))
