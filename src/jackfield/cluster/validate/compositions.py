"""What is wrong with a ComposabilityRequest or a ComposableResource.

Knows the schema of CoHDI's definitions, and where ours is wider: any type of device that is a lower-case word, and
one more policy. Must not know what the operator refuses for other reasons.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import Change, named
from jackfield.codec import Raw
from jackfield.codec.words import LABEL_MAX, MODEL_MAX, NODE_MAX
from jackfield.model.composition import (
    AllocationPolicy,
    ComposabilityRequest,
    ComposableResource,
    ComposableResourceSpec,
    ResourceState,
    ScalarResource,
)

_CONSTANT: Final = (("type", "the type"), ("model", "the model"), ("target_node", "the node"))
_ROOT: Final = "<nil>"
"""How the API server spells the field of a rule about the object as a whole."""
_STATES: Final = tuple(ResourceState)
"""In the order in which a resource goes through them."""


def request(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a request."""
    new = change.new
    assert isinstance(new, ComposabilityRequest)
    if (
        change.old is None and len(new.metadata.name) > LABEL_MAX
    ):  # judged at creation alone: nothing gets stuck
        label = f"a request's name has at most {LABEL_MAX} characters: it becomes a label of its resources"
        yield errors.invalid_whole(_ROOT, label)
    if change.wants:
        written = change.raw.get("spec", {}).get("resource") or {}
        yield from _said("spec.resource", written, ("type", "model", "size"))
        yield from _wish(new.spec.resource, says_model="model" in written)
    if change.status:
        yield from _state(change.raw)


def _wish(found: ScalarResource, *, says_model: bool) -> Iterator[Cause]:
    field = "spec.resource"
    yield from _device(field, found)
    if says_model and not found.model:
        yield errors.invalid_value(f"{field}.model", "", "should be at least 1 chars long")
    yield from _not_negative(field, {"size": found.size})
    if found.other_spec is not None:
        yield from _not_negative(f"{field}.other_spec", msgspec.structs.asdict(found.other_spec))
    if found.target_node and found.allocation_policy is AllocationPolicy.DIFFERENTNODE:
        yield errors.invalid_whole(
            field, "allocation_policy differentnode spreads over nodes and cannot have a target_node"
        )


def resource(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a resource."""
    new = change.new
    assert isinstance(new, ComposableResource)
    if change.wants:
        yield from _said("spec", change.raw.get("spec", {}), ("type", "model", "target_node"))
        yield from _device("spec", new.spec)
        if isinstance(change.old, ComposableResource):
            yield from _constant(change.old.spec, new.spec)
    if change.status:
        yield from _state(change.raw)
        if isinstance(change.old, ComposableResource) and _STATES.index(new.state) < _STATES.index(
            change.old.state
        ):
            yield errors.invalid_value(
                "status.state", new.state.value, "a resource never goes back to an earlier state"
            )


def _device(field: str, found: ScalarResource | ComposableResourceSpec) -> Iterator[Cause]:
    """Yield what is wrong with what both kinds say of a device and its node."""
    if found.type:
        yield from named(f"{field}.type", found.type, formats.word)
    lengths = {"type": LABEL_MAX, "model": MODEL_MAX, "target_node": NODE_MAX}
    for name, most in lengths.items():
        if len(getattr(found, name)) > most:
            yield errors.too_long(f"{field}.{name}", most)


def _constant(old: ComposableResourceSpec, new: ComposableResourceSpec) -> Iterator[Cause]:
    for name, what in _CONSTANT:
        if getattr(old, name) != getattr(new, name):
            words = f"{what} of a resource never changes: delete it and create another"
            yield errors.invalid_value(f"spec.{name}", getattr(new, name), words)


def _said(field: str, written: Raw, names: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a cause for everything required that was not said; an empty type says nothing either."""
    for name in names:
        if name not in written or (name == "type" and not written[name]):
            yield errors.required(f"{field}.{name}")


def _not_negative(field: str, numbers: dict[str, int]) -> Iterator[Cause]:
    for name, number in numbers.items():
        if number < 0:
            yield errors.invalid_value(f"{field}.{name}", number, "should be greater than or equal to 0")


def _state(raw: Raw) -> Iterator[Cause]:
    status = raw.get("status")
    if status is not None and "state" not in status:
        yield errors.required("status.state")
