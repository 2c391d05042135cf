"""What evaluation needs beside operators and functions: loops, literals, errors that are kept.

Knows the order in which Kubernetes evaluates. Must not know expressions.
"""

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from jackfield.core.cel.faults import CelError, UncertainError
from jackfield.core.cel.operators import find
from jackfield.core.cel.times import SECOND
from jackfield.core.cel.values import (
    Duration,
    Optional,
    Semver,
    Timestamp,
    UInt,
    Unlike,
    go_name,
    plain,
    type_name,
)

Thunk = Callable[[], object]
_WRAPPED: Final = {
    "BoolValue": False,
    "BytesValue": b"",
    "DoubleValue": 0.0,
    "FloatValue": 0.0,
    "Int32Value": 0,
    "Int64Value": 0,
    "StringValue": "",
    "UInt32Value": UInt(0),
    "UInt64Value": UInt(0),
    "ListValue": [],
    "Struct": {},
    "Value": None,
}
"""What messages of protobuf's stand for, if nothing is in them."""
_NARROW: Final = {"Int32Value": range(-(2**31), 2**31), "UInt32Value": range(2**32)}
_OVERFLOW: Final = {"Int32Value": "integer overflow", "UInt32Value": "unsigned integer overflow"}


class Failure:
    """An error kept in place of a value until somebody looks at it."""

    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


def value(kept: object) -> object:
    """Return what was kept, or raise it."""
    if type(kept) is Failure:
        raise kept.error
    return kept


def uncertain() -> NoReturn:
    """Leave the decision to the precise rendering."""
    raise UncertainError


def truth(condition: object) -> bool:
    """Return a condition; anything but a boolean is an error."""
    if condition is True or condition is False:
        return condition
    raise CelError("no such overload")


def items(container: object) -> list[object]:
    """Return what a loop with one variable goes over: items, or keys."""
    if isinstance(container, list):
        return list(container)
    if isinstance(container, dict):
        return [plain(key) for key in container]
    raise CelError(f"got '{go_name(container)}', expected iterable type")


def pairs(container: object) -> list[tuple[object, object]]:
    """Return what a loop with two variables goes over: index and item, or key and value."""
    if isinstance(container, list):
        return list(enumerate(container))
    if isinstance(container, dict):
        return [(plain(key), item) for key, item in container.items()]
    raise CelError(f"unsupported comprehension range type: {go_name(container)}")


def make_list(*entries: tuple[bool, object]) -> list[object]:
    """Return a list literal; an optional item may be absent."""
    made: list[object] = []
    for optional, item in entries:
        present = _present(optional, item)
        if present.present:
            made.append(present.value)
    return made


def make_map(*entries: tuple[object, object, bool]) -> dict[object, object]:
    """Return a map literal; an optional entry may be absent."""
    made: dict[object, object] = {}
    for key, item, optional in entries:
        if isinstance(key, Optional | Semver):
            raise CelError(f"unsupported key type: {type_name(key)}")
        present = _present(optional, item)
        if present.present:
            made[Unlike(key) if isinstance(key, list | dict) else key] = present.value
    return made


def _present(optional: bool, item: object) -> Optional:  # noqa: FBT001 - a flag of the literal
    if not optional:
        return Optional(present=True, value=item)
    assert isinstance(item, Optional), "the type checker takes nothing else"
    return item


def map_insert(*args: object) -> object:
    """Answer `cel.@mapInsert`: a map with one entry more, or with those of another map."""
    made = args[0]
    assert isinstance(made, dict), "the macro began with a map"
    new = {args[1]: args[2]} if len(args) == 3 else args[1]  # noqa: PLR2004 - map, key, value
    if not isinstance(new, dict):
        raise CelError(f"no such overload: cel.@mapInsert(map, {type_name(new)})")
    for key in new:
        if find(made, key).present:
            raise CelError(f"insert failed: key {key} already exists")
    return {**made, **new}


def or_else(left: object, right: Thunk) -> object:
    """Answer `left.or(right)`; the right side is evaluated where it is needed."""
    return left if not isinstance(left, Optional) or left.present else right()


def or_value(left: object, right: Thunk) -> object:
    """Answer `left.orValue(right)`; what is no optional stands for itself."""
    if not isinstance(left, Optional):
        return left
    return left.value if left.present else right()


def make_message(name: str, fields: Mapping[str, object]) -> object:
    """Return a message literal: most of protobuf's stand for a value of CEL's own, all else is unknown."""
    kind = name.removeprefix("google.protobuf.")
    if kind in ("Duration", "Timestamp"):
        seconds, nanos = fields.get("seconds", 0), fields.get("nanos", 0)
        assert isinstance(seconds, int), "the type checker takes nothing else"
        assert isinstance(nanos, int), "likewise"
        return (Duration if kind == "Duration" else Timestamp)(seconds * SECOND + nanos)
    if kind not in _WRAPPED:
        raise CelError(f"unknown type '{name}'")
    ((field, value),) = fields.items() or (("", _WRAPPED[kind]),)
    if kind in _NARROW and value not in _NARROW[kind]:
        raise CelError(f"field type conversion error for {name}.value value type: {_OVERFLOW[kind]}")
    return None if field == "null_value" else value
