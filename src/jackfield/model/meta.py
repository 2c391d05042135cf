"""What all Kubernetes objects share: metadata, conditions, selectors over nodes.

Knows the wire's shapes. Must not know any one kind.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from jackfield.model.names import NO_TIME, Key, Time, Uid, Version


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A value spelt in camelCase on the wire; unknown fields are passed over when read."""


class OwnerReference(Wire, frozen=True, gc=False):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: Uid = Uid("")
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Wire, frozen=True, gc=False):
    """The metadata of an object, as far as we read it."""

    name: str = ""
    namespace: str = ""
    generate_name: str = ""
    uid: Uid = Uid("")
    resource_version: Version = Version("")
    generation: int = 0
    creation_timestamp: Time = NO_TIME
    deletion_timestamp: Time = NO_TIME
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Wire, frozen=True, gc=False):
    """One observation about an object (metav1.Condition)."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Time = NO_TIME
    observed_generation: int = 0

    @property
    def true(self) -> bool:
        """Whether the observation holds."""
        return self.status == "True"


class Object(Wire, frozen=True, gc=False, kw_only=True):
    """A Kubernetes object; the subclasses say which group, version and kind they are."""

    group: ClassVar[str] = ""
    version: ClassVar[str] = "v1"
    plural: ClassVar[str] = ""
    namespaced: ClassVar[bool] = False

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        """The namespace and name of this object."""
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def uid(self) -> Uid:
        """The identity of this very object, not of its name."""
        return self.metadata.uid

    @property
    def deleting(self) -> bool:
        """Whether somebody asked for its deletion."""
        return bool(self.metadata.deletion_timestamp)


class NodeSelectorRequirement(Wire, frozen=True, gc=False):
    """One requirement on a node's labels or fields."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Wire, frozen=True, gc=False):
    """Requirements that must all hold; an empty term matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Wire, frozen=True, gc=False):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


def condition(conditions: tuple[Condition, ...], kind: str) -> Condition | None:
    """Return the condition of that type, or None where nobody has written it."""
    return next((one for one in conditions if one.type == kind), None)


def holds(conditions: tuple[Condition, ...], kind: str) -> bool:
    """Return whether the condition of that type is there and true."""
    return any(one.type == kind and one.true for one in conditions)


def with_condition(conditions: tuple[Condition, ...], new: Condition) -> tuple[Condition, ...]:
    """Return the conditions with one put in its place, its time kept where the status did not change."""
    old = condition(conditions, new.type)
    if old is None:
        return (*conditions, new)
    if old.status == new.status and old.last_transition_time:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return tuple(new if one.type == new.type else one for one in conditions)
