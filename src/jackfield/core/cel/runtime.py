"""What generated code calls beside operators and functions: short-circuits that keep errors, loops, literals.

Knows the order in which Kubernetes evaluates. Must not know expressions.
"""

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

from jackfield.core.cel.faults import CelError, UncertainError
from jackfield.core.cel.operators import find
from jackfield.core.cel.values import Optional, Semver, Sum, UInt, type_name

Thunk = Callable[[], object]
_GO_NAMES: Final = {
    "string": "types.String",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "bool": "types.Bool",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
    "kubernetes.URL": "cel.URL",
    "kubernetes.NamedFormat": "cel.Format",
    "net.IP": "cel.IP",
    "net.CIDR": "cel.CIDR",
}


_WRAPPED: Final = {
    "google.protobuf.BoolValue": False,
    "google.protobuf.BytesValue": b"",
    "google.protobuf.DoubleValue": 0.0,
    "google.protobuf.FloatValue": 0.0,
    "google.protobuf.Int32Value": 0,
    "google.protobuf.Int64Value": 0,
    "google.protobuf.StringValue": "",
    "google.protobuf.UInt32Value": UInt(0),
    "google.protobuf.UInt64Value": UInt(0),
    "google.protobuf.ListValue": [],
    "google.protobuf.Struct": {},
    "google.protobuf.Value": None,
}


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


def conjunction(*operands: Thunk) -> bool:
    """Answer `a && b && …`: one false decides, whatever errors stand before it."""
    return _decide(operands, decisive=False)


def disjunction(*operands: Thunk) -> bool:
    """Answer `a || b || …`: one true decides, whatever errors stand before it."""
    return _decide(operands, decisive=True)


def _decide(operands: tuple[Thunk, ...], *, decisive: bool) -> bool:
    first: CelError | None = None
    for operand in operands:
        try:
            if truth(operand()) is decisive:
                return decisive
        except CelError as error:
            first = first or error
    if first is not None:
        raise first
    return not decisive


def not_strictly_false(condition: Thunk) -> bool:
    """Return whether a loop goes on: for anything but false, errors included."""
    try:
        return condition() is not False
    except CelError:
        return True


def lazily(thunk: Thunk) -> Thunk:
    """Return a thunk that is run once, when first asked."""
    kept: list[object] = []

    def get() -> object:
        if not kept:
            try:
                kept.append(thunk())
            except CelError as error:
                kept.append(Failure(error))
        return value(kept[0])

    return get


def items(container: object) -> list[object]:
    """Return what a loop with one variable goes over: items, or keys."""
    if isinstance(container, list | dict):
        return list(container)
    raise CelError(f"got '{_go_name(container)}', expected iterable type")


def pairs(container: object) -> list[tuple[object, object]]:
    """Return what a loop with two variables goes over: index and item, or key and value."""
    if isinstance(container, list):
        return list(enumerate(container))
    if isinstance(container, dict):
        return list(container.items())
    raise CelError(f"unsupported comprehension range type: {_go_name(container)}")


def _go_name(container: object) -> str:
    name = type_name(container)
    return f"{'*' if isinstance(container, Sum) else ''}{_GO_NAMES.get(name, name)}"


def fold(
    container: Iterable[object],
    init: Thunk,
    condition: Callable[[object, object], object],
    step: Callable[[object, object], object],
    result: Callable[[object], object],
) -> object:
    """Run a loop as macros expand to it; an error in a step is kept until somebody looks at it."""
    kept = init()
    for item in container:
        if not truth(condition(kept, item)):
            break
        try:
            kept = step(kept, item)
        except CelError as error:
            kept = Failure(error)
    return result(kept)


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
        if isinstance(key, list | dict | Optional | Semver):
            raise CelError(f"unsupported key type: {type_name(key)}")
        present = _present(optional, item)
        if present.present:
            made[key] = present.value
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


def make_message(name: str, *values: object) -> object:
    """Return a message literal: protobuf's wrappers stand for what they wrap, all else is unknown."""
    if name not in _WRAPPED:
        raise CelError(f"unknown type '{name}'")
    return values[0] if values else _WRAPPED[name]
