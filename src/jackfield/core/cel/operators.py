"""CEL's operators on run-time values: equality, order, arithmetic, access.

Knows Kubernetes' answers to odd questions, among them those it gives by accident. Must not know expressions.
"""

import math
from collections.abc import Callable
from typing import Final

from jackfield.core.cel.faults import CelError, LimitError, PanicError, no_such_key
from jackfield.core.cel.times import moment
from jackfield.core.cel.values import (
    CIDR,
    INT_MAX,
    INT_MIN,
    IP,
    NONE,
    UINT_MAX,
    URL,
    Duration,
    NamedFormat,
    Optional,
    Semver,
    Sum,
    Timestamp,
    TypeValue,
    UInt,
    go_name,
    type_name,
)
from jackfield.model.quantity import Quantity

_NUMBERS: Final = (int, UInt, float)
_SIMPLE: Final = (*_NUMBERS, str, bool, bytes)
_ORDERED: Final = (str, bytes, bool, Duration, Timestamp)
_CALLABLE: Final = (str, Duration, Timestamp)
"""What answers to any operator, if only to refuse."""
_COMPARED: Final = (*_NUMBERS, bytes, bool)
_DEFINED: Final[dict[str, tuple[type, ...]]] = {
    "_+_": (*_NUMBERS, bytes, list),
    "_-_": _NUMBERS,
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": (int, UInt),
    "-_": (int, float, bool),
}


_PLAIN_BELOW: Final = 1e21
"""Doubles that Go writes without an exponent in messages."""
ITEMS_MAX: Final = 100_000
KEYS: Final = (str, int, UInt, float, bool)
"""The types that something can be looked up by."""


class Domains(dict[str, dict[str, object]]):
    """A device's attributes or capacities by domain: a domain it does not know is an empty map, not an error."""

    __slots__ = ()

    def __missing__(self, key: str) -> dict[str, object]:
        return _EMPTY


_EMPTY: Final[dict[str, object]] = {}


def no_overload(operator: str, left: object) -> CelError:
    """Return the error of an operator without a meaning for its operands; it is named where the left one knows none."""
    known = (*_CALLABLE, *_DEFINED.get(operator, _COMPARED))
    return CelError("no such overload" if type(left) in known else f"no such overload: {operator}")


# --- equality


def equal(left: object, right: object) -> bool:
    """Return whether two values are equal; raises CelError where Kubernetes has no answer."""
    if left is None or right is None:
        return left is right
    kind = type(left)
    if kind in _NUMBERS:
        return type(right) in _NUMBERS and _comparable(left, right) == _comparable(right, left)
    if kind is str or kind is bool or kind is bytes:
        return type(right) is kind and left == right
    return _equal_other(left, right)


def _comparable(number: object, other: object) -> object:
    """Return a number as it is compared with another: with a double, as a double."""
    return float(number) if type(other) is float else number  # type: ignore[arg-type]  # a number


def _equal_other(left: object, right: object) -> bool:
    """Compare what has parts, part by part and without recursion, since there may be parts of parts of parts."""
    waiting: list[tuple[object, object]] = [(left, right)]
    seen: set[tuple[int, int]] = set()
    inside = False
    while waiting:
        one, other = waiting.pop()
        if isinstance(one, list | dict):
            inside = True
            # What is the same twice need not be compared twice: names can be bound to lists of lists of themselves.
            if (id(one), id(other)) in seen:
                continue
            seen.add((id(one), id(other)))
            pairs = _pairs(one, other)
            if pairs is None:
                return False
            waiting += pairs
        elif isinstance(one, Optional) and isinstance(other, Optional) and one.present and other.present:
            waiting.append((one.value, other.value))
        else:
            try:
                if not _equal_whole(one, other):
                    return False
            except CelError:
                # Within lists and maps Kubernetes stops at a false only: what has no answer passes for equal.
                if not inside:
                    raise
    return True


def _pairs(one: object, other: object) -> list[tuple[object, object]] | None:
    """Return the parts that must be equal, or None where two containers differ at first sight."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return list(zip(one, other, strict=True))
    if not isinstance(one, dict) or not isinstance(other, dict) or len(one) != len(other):
        return None
    found = [(value, find(other, key)) for key, value in one.items()]
    return [(value, held.value) for value, held in found] if all(held.present for _, held in found) else None


def _equal_whole(left: object, right: object) -> bool:
    if left is None or right is None or type(left) in _SIMPLE:
        return equal(left, right)
    match left:
        case Semver() | IP() | CIDR() | URL() | NamedFormat():
            if type(left) is not type(right):
                raise CelError("no such overload")
            return left == right
        case Quantity():
            if not isinstance(right, Quantity) or isinstance(right, Sum):
                raise CelError("no such overload")
            return left.nano == right.nano
        case Optional():
            return isinstance(right, Optional) and left.present == right.present
        case Duration() | Timestamp() | TypeValue():
            return type(left) is type(right) and left == right
        case _:
            return left is right


def unequal(left: object, right: object) -> bool:
    """Return whether two values differ; a comparison without an answer says they do."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def surely_equal(left: object, right: object) -> bool:
    """Return whether two values are equal; a comparison without an answer says they are not."""
    try:
        return equal(left, right)
    except CelError:
        return False


# --- order


def compare(operator: str, left: object, right: object) -> int:
    """Return -1, 0 or 1; raises CelError for values without an order among them."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS and other in _NUMBERS:
        if left != left or right != right:  # noqa: PLR0124 - NaN is the one value that differs from itself
            raise CelError("NaN values cannot be ordered")
        left, right = _comparable(left, right), _comparable(right, left)
    elif kind not in _ORDERED or kind is not other:
        raise no_overload(operator, left)
    return bool(left > right) - bool(left < right)  # type: ignore[operator]  # checked above


def less(left: object, right: object) -> bool:
    """Answer `left < right`."""
    return compare("_<_", left, right) < 0


def less_equal(left: object, right: object) -> bool:
    """Answer `left <= right`."""
    return compare("_<=_", left, right) <= 0


def greater(left: object, right: object) -> bool:
    """Answer `left > right`."""
    return compare("_>_", left, right) > 0


def greater_equal(left: object, right: object) -> bool:
    """Answer `left >= right`."""
    return compare("_>=_", left, right) >= 0


# --- arithmetic


def _bounded(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelError("integer overflow")
    return value


def _unsigned(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def _shift(nanos: int) -> Duration:
    return Duration(_bounded(nanos))


def bounded(items: list[object]) -> list[object]:
    """Return a list that is not too long; raises LimitError. A list of a list of a list may be long at no cost."""
    if len(items) > ITEMS_MAX:
        raise LimitError(f"a list of more than {ITEMS_MAX} items")
    return items


def add(left: object, right: object) -> object:  # noqa: PLR0911 - one arm per pair of kinds
    """Answer `left + right`."""
    match left, right:
        case str(), str():
            return left + right
        case bytes(), bytes():
            return left + right
        case list(), list():
            return bounded(left + right)
        case float(), float():
            return left + right
        case UInt(), UInt():
            return _unsigned(int(left) + int(right))
        case int(), int() if type(left) is int and type(right) is int:
            return _bounded(left + right)
        case Duration(), Duration():
            return _shift(left.nanos + right.nanos)
        case Timestamp(), Duration():
            return moment(left.nanos + right.nanos, left.east_seconds)
        case Duration(), Timestamp():
            return moment(left.nanos + right.nanos, right.east_seconds)
        case _:
            raise no_overload("_+_", left)


def subtract(left: object, right: object) -> object:
    """Answer `left - right`."""
    match left, right:
        case float(), float():
            return left - right
        case UInt(), UInt():
            return _unsigned(int(left) - int(right))
        case int(), int() if type(left) is int and type(right) is int:
            return _bounded(left - right)
        case Duration(), Duration():
            return _shift(left.nanos - right.nanos)
        case Timestamp(), Timestamp():
            return _shift(left.nanos - right.nanos)
        case Timestamp(), Duration():
            return moment(left.nanos - right.nanos, left.east_seconds)
        case _:
            raise no_overload("_-_", left)


def multiply(left: object, right: object) -> object:
    """Answer `left * right`."""
    match left, right:
        case float(), float():
            return left * right
        case UInt(), UInt():
            return _unsigned(int(left) * int(right))
        case int(), int() if type(left) is int and type(right) is int:
            return _bounded(left * right)
        case _:
            raise no_overload("_*_", left)


def divide(left: object, right: object) -> object:
    """Answer `left / right`; integers are cut off towards zero."""
    match left, right:
        case float(), float():
            return _divide_doubles(left, right)
        case int(), int() if type(left) is type(right) and not isinstance(left, bool):
            if not right:
                raise CelError("division by zero")
            quotient = (
                _bounded(_towards_zero(left, right)) if type(left) is int else _towards_zero(left, right)
            )
            return type(left)(quotient)
        case _:
            raise no_overload("_/_", left)


def _divide_doubles(left: float, right: float) -> float:
    try:
        return left / right
    except ZeroDivisionError:
        if left == 0 or math.isnan(left):
            return math.nan
        return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _towards_zero(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def modulo(left: object, right: object) -> object:
    """Answer `left % right`; the sign is the left side's."""
    match left, right:
        case int(), int() if type(left) is type(right) and not isinstance(left, bool):
            if not right:
                raise CelError("modulus by zero")
            if type(left) is int:
                _bounded(_towards_zero(left, right))
            return type(left)(left - _towards_zero(int(left), int(right)) * right)
        case _:
            raise no_overload("_%_", left)


def negate(value: object) -> object:
    """Answer `-value`."""
    if type(value) is int:
        return _bounded(-value)
    if type(value) is float:
        return -value
    if type(value) is Duration:
        return _shift(-value.nanos)
    raise no_overload("-_", value)


def negation(value: object) -> bool:
    """Answer `!value`."""
    if type(value) is bool:
        return not value
    raise CelError("no such overload")


# --- access


def find(container: dict[object, object], key: object) -> Optional:
    """Return what a map holds under a key; whole numbers of any kind find each other."""
    if type(key) is float and key.is_integer():
        key = int(key)
    if type(key) not in KEYS:
        return NONE
    absent = Optional(present=True, value=_EMPTY) if isinstance(container, Domains) else NONE
    if type(key) is bool or True in container or False in container:
        # Python takes True for 1, CEL does not.
        pairs = [
            value
            for one, value in container.items()
            if one == key and (type(one) is bool) == (type(key) is bool)
        ]
        return Optional(present=True, value=pairs[0]) if pairs else absent
    value = container.get(key, absent)
    return absent if value is absent else Optional(present=True, value=value)


def _position(key: object) -> int:
    if type(key) is float and not key.is_integer():
        raise CelError(f"unsupported index value {key} in list")
    if type(key) not in _NUMBERS:
        raise CelError(f"unsupported index type '{type_name(key)}' in list")
    return int(key)  # type: ignore[call-overload, no-any-return]  # a number, checked above


def index(container: object, key: object) -> object:
    """Answer `container[key]`."""
    if type(key) not in KEYS:
        raise CelError(f"invalid qualifier type: {go_name(key)}")
    if isinstance(container, dict):
        found = find(container, key)
        if not found.present:
            raise no_such_key(literal(key))
        return found.value
    if isinstance(container, list):
        position = _position(key)
        if not 0 <= position < len(container):
            raise CelError(f"index out of bounds: {position}")
        return container[position]
    if isinstance(container, Optional):
        return optional_index(container, key)
    if type(key) is str:
        return select(container, key)
    raise no_such_key(literal(key))


def literal(value: object) -> str:
    """Return a key as error messages show it."""
    if type(value) is float and value.is_integer() and abs(value) < _PLAIN_BELOW:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def optional_index(container: object, key: object) -> Optional:
    """Answer `container[?key]`."""
    if isinstance(container, Optional):
        return optional_index(container.value, key) if container.present else NONE
    try:
        if isinstance(container, dict):
            return find(container, key)
        return Optional(present=True, value=index(container, key))
    except CelError as error:
        if str(error).startswith(("no such key", "index out of bounds")):
            return NONE
        raise


def select(container: object, field: str) -> object:
    """Answer `container.field`."""
    if isinstance(container, dict):
        found = find(container, field)
        if found.present:
            return found.value
    if isinstance(container, Optional):
        return optional_index(container, field)
    reader: Callable[[str], object] | None = getattr(container, "field", None)
    if reader is not None:
        return reader(field)
    raise no_such_key(field)


def has(container: object, field: str) -> bool:
    """Answer `has(container.field)`."""
    if isinstance(container, dict):
        return find(container, field).present
    if isinstance(container, Optional):
        return container.present and has(container.value, field)
    if isinstance(container, list):
        _position(field)  # which a name is not
    reader: Callable[[str], object] | None = getattr(container, "field", None)
    return reader is not None and optional_index(container, field).present


def contains(item: object, container: object) -> bool:
    """Answer `item in container`."""
    if isinstance(container, list):
        return any(surely_equal(item, one) for one in container)
    if isinstance(container, dict):
        if type(item) is str:
            return item in container
        return find(container, item).present
    raise CelError("no such overload")


def among(item: object, constants: list[object]) -> bool:
    """Answer `item in [literals]`, which Kubernetes looks up by hash."""
    if isinstance(item, Semver):
        raise PanicError("internal error: runtime error: hash of unhashable type cel.Semver")
    return any(surely_equal(item, one) for one in constants)
