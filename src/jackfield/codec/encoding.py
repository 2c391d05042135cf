"""From the model to the wire.

Knows which fields an API server insists on even where they say nothing. Must not know what a field means.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

from jackfield.codec import kinds
from jackfield.codec.wire import Raw, RawValue
from jackfield.model.composition import (
    ChildStatus,
    ComposabilityRequestStatus,
    ComposableResourceSpec,
    ComposableResourceStatus,
    ScalarResource,
)
from jackfield.model.event import Event
from jackfield.model.meta import Condition, Object, OwnerReference
from jackfield.model.node import NodeCondition
from jackfield.model.pod import Container, PodCondition
from jackfield.model.slice import ResourcePool

ALWAYS: Mapping[type[msgspec.Struct], tuple[str, ...]] = {
    # Required by CoHDI's definitions, where 0 and "" are values: a request of size 0 asks for a detach.
    ScalarResource: ("type", "model", "size", "target_node"),
    ComposableResourceSpec: ("type", "model", "target_node"),
    ComposableResourceStatus: ("state",),
    ComposabilityRequestStatus: ("state",),
    ChildStatus: ("state",),
    # Required by Kubernetes, and not defaulted there.
    ResourcePool: ("generation", "resource_slice_count"),
    Condition: ("status", "reason", "message"),
    NodeCondition: ("status",),
    PodCondition: ("status",),
    OwnerReference: ("api_version", "kind", "name", "uid"),
    Container: ("name",),
    # Not required, but kubectl shows an event without them as broken.
    Event: ("involved_object", "type", "count"),
}
"""Fields that are written even when they hold their default, which the model leaves out otherwise."""

_encoder = msgspec.json.Encoder()


class _Plan(msgspec.Struct, frozen=True):
    """What has to be filled in below a type: its own fields, and the fields that lead to others."""

    own: tuple[tuple[str, str], ...]
    inner: tuple[tuple[str, str], ...]


def encode(new: Object) -> Raw:
    """Return the object as the wire spells it, with apiVersion and kind."""
    kind = kinds.of(type(new))
    raw: Raw = {"apiVersion": kind.api_version, "kind": kind.kind}
    raw.update(encoded(new))
    return raw


def encoded(value: msgspec.Struct) -> Raw:
    """Return a part of an object as the wire spells it."""
    raw: Raw = msgspec.json.decode(_encoder.encode(value))
    _fill(value, raw)
    return raw


@cache
def _plan(kind: type[msgspec.Struct]) -> _Plan:
    fields = msgspec.structs.fields(kind)
    required = ALWAYS.get(kind, ())
    return _Plan(
        own=tuple((one.name, one.encode_name) for one in fields if one.name in required),
        inner=tuple((one.name, one.encode_name) for one in fields if _leads_to_required(one.type)),
    )


def _leads_to_required(annotation: RawValue) -> bool:
    for struct in _structs(msgspec.inspect.type_info(annotation)):
        plan = _plan(struct)
        if plan.own or plan.inner:
            return True
    return False


def _structs(info: msgspec.inspect.Type) -> Iterator[type[msgspec.Struct]]:
    match info:
        case msgspec.inspect.StructType(cls=struct):
            yield struct
        case msgspec.inspect.UnionType(types=types):
            for one in types:
                yield from _structs(one)
        case msgspec.inspect.VarTupleType(item_type=inner):
            yield from _structs(inner)
        case msgspec.inspect.DictType(value_type=inner):
            yield from _structs(inner)
        case _:
            return


def _fill(value: msgspec.Struct, raw: Raw) -> None:
    plan = _plan(type(value))
    for attribute, name in plan.own:
        if name not in raw:
            raw[name] = msgspec.to_builtins(getattr(value, attribute))
    for attribute, name in plan.inner:
        if name in raw:
            _fill_inner(getattr(value, attribute), raw[name])


def _fill_inner(value: object, raw: RawValue) -> None:
    match value:
        case msgspec.Struct():
            _fill(value, raw)
        case tuple():
            for item, item_raw in zip(value, raw, strict=True):
                _fill_inner(item, item_raw)
        case Mapping():
            for name, item in value.items():
                _fill_inner(item, raw[name])
        case _:
            return
