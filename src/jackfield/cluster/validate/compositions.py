"""What is wrong with a ComposabilityRequest or a ComposableResource.

Knows the rules of CoHDI's definitions, and where ours are wider: any type of device that is a lower-case word, and
one more policy. Must not know what the operator refuses for other reasons.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import structural
from jackfield.cluster.validate.checks import Change
from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.codec.words import LABEL_MAX
from jackfield.model.composition import (
    AllocationPolicy,
    ComposabilityRequest,
    ComposableResource,
    ComposableResourceSpec,
    ResourceState,
)

_CONSTANT: Final = (("type", "the type"), ("model", "the model"), ("target_node", "the node"))
_STATES: Final = tuple(ResourceState)
"""In the order in which a resource goes through them."""


def request(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a request."""
    return structural.with_rules(_schema(change), _request_rules(change))


def resource(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a resource."""
    return structural.with_rules(_schema(change), _resource_rules(change))


def undecodable(kind: str, raw: Raw) -> tuple[Cause, ...]:
    """Return what is wrong with an object that cannot even be read."""
    return tuple(structural.with_rules(structural.problems(_schemas()[kind], raw), ()))


def _schema(change: Change) -> Iterator[Cause]:
    """Yield what the schema finds wrong with what has changed."""
    schema = _schemas()[type(change.new).__name__]
    parts = (("spec", change.wants), ("status", change.status))
    for name, is_new in parts:
        if not is_new:
            continue
        if name in change.raw:
            yield from structural.problems(schema["properties"][name], change.raw[name], name)
        elif name in schema["required"]:
            yield errors.required(name)


def _request_rules(change: Change) -> Iterator[Cause]:
    new = change.new
    assert isinstance(new, ComposabilityRequest)
    # Judged at creation alone: nothing gets stuck.
    if change.old is None and len(new.metadata.name) > LABEL_MAX:
        label = f"a request's name has at most {LABEL_MAX} characters: it becomes a label of its resources"
        yield errors.invalid_whole(structural.ROOT, label)
    wish = new.spec.resource
    if change.wants and wish.target_node and wish.allocation_policy is AllocationPolicy.DIFFERENTNODE:
        yield errors.invalid_whole(
            "spec.resource",
            "allocation_policy differentnode spreads over nodes and cannot have a target_node",
        )


def _resource_rules(change: Change) -> Iterator[Cause]:
    new, old = change.new, change.old
    assert isinstance(new, ComposableResource)
    if not isinstance(old, ComposableResource):
        return
    if change.wants:
        yield from _constant(old.spec, new.spec)
    if change.status and _STATES.index(new.state) < _STATES.index(old.state):
        yield errors.invalid_value(
            "status.state", new.state.value, "a resource never goes back to an earlier state"
        )


def _constant(old: ComposableResourceSpec, new: ComposableResourceSpec) -> Iterator[Cause]:
    for name, what in _CONSTANT:
        if getattr(old, name) != getattr(new, name):
            words = f"{what} of a resource never changes: delete it and create another"
            yield errors.invalid_value(f"spec.{name}", getattr(new, name), words)


@cache
def _schemas() -> Mapping[str, Raw]:
    return {
        one["spec"]["names"]["kind"]: one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for one in definitions()
    }
