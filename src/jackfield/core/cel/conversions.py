"""Conversions between types.

Knows what Go makes of each. Must not know expressions.
"""

import contextlib
import math
import re
from decimal import Decimal
from typing import Final

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.times import SECOND, duration_text, timestamp_text
from jackfield.core.cel.values import (
    CIDR,
    INT_MAX,
    INT_MIN,
    IP,
    UINT_MAX,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    overload,
    type_name,
)

CONVERSIONS: Final = (
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
)
"""Kubernetes applies these to literals when it compiles."""

_FIXED_FROM, _FIXED_BELOW = -4, 6
"""Powers of ten that Go writes without an exponent."""
_TRUE: Final = ("1", "t", "T", "TRUE", "true", "True")
_FALSE: Final = ("0", "f", "F", "FALSE", "false", "False")
_INT: Final = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
_UINT: Final = re.compile(r"0*([0-9]{1,20})", re.ASCII)
"""Python does not read numbers of thousands of digits."""
_DIGITS: Final = r"[0-9](?:_?[0-9])*"
_HEX_DIGITS: Final = r"[0-9a-f](?:_?[0-9a-f])*"
_DOUBLE: Final = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:e[+-]?{_DIGITS})?|[+-]?inf(?:inity)?|nan",
    re.ASCII | re.IGNORECASE,
)
_HEX_DOUBLE: Final = re.compile(
    rf"[+-]?0x_?(?:{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})p[+-]?{_DIGITS}",
    re.ASCII | re.IGNORECASE,
)
"""Go's literals."""


def _conversion_error(target: str) -> CelError:
    return CelError(f"type conversion error from 'string' to '{target}'")


@overload("type", object)
def _type(value: object) -> TypeValue:
    return TypeValue(type_name(value))


@overload("int", int)
def _int(value: int) -> int:
    return value


@overload("int", UInt)
def _int_of_uint(value: UInt) -> int:
    if value > INT_MAX:
        raise CelError("integer overflow")
    return int(value)


@overload("int", float)
def _int_of_double(value: float) -> int:
    if math.isnan(value) or not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return int(value)


@overload("int", str)
def _int_of_string(value: str) -> int:
    shape = _INT.fullmatch(value)
    number = int(shape[1] + shape[2]) if shape else INT_MAX + 1
    if not INT_MIN <= number <= INT_MAX:
        raise _conversion_error("int")
    return number


@overload("int", Timestamp)
def _int_of_timestamp(value: Timestamp) -> int:
    return value.nanos // SECOND


@overload("int", Duration)
def _int_of_duration(value: Duration) -> int:
    return value.nanos


@overload("uint", UInt)
def _uint(value: UInt) -> UInt:
    return value


@overload("uint", int)
def _uint_of_int(value: int) -> UInt:
    if value < 0:
        raise CelError("unsigned integer overflow")
    return UInt(value)


@overload("uint", float)
def _uint_of_double(value: float) -> UInt:
    if math.isnan(value) or not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(int(value))


@overload("uint", str)
def _uint_of_string(value: str) -> UInt:
    shape = _UINT.fullmatch(value)
    number = int(shape[1]) if shape else UINT_MAX + 1
    if number > UINT_MAX:
        raise _conversion_error("uint")
    return UInt(number)


@overload("double", float)
def _double(value: float) -> float:
    return value


@overload("double", int)
@overload("double", UInt)
def _double_of_int(value: int) -> float:
    return float(value)


@overload("double", str)
def _double_of_string(value: str) -> float:
    number = math.inf
    with contextlib.suppress(OverflowError):
        if _DOUBLE.fullmatch(value):
            number = float(value)
        elif _HEX_DOUBLE.fullmatch(value):
            number = float.fromhex(value.replace("_", ""))
    if math.isinf(number) and value.lower().lstrip("+-") not in ("inf", "infinity"):
        raise _conversion_error("double")
    return number


@overload("bool", bool)
def _bool(value: bool) -> bool:  # noqa: FBT001 - CEL's own argument
    return value


@overload("bool", str)
def _bool_of_string(value: str) -> bool:
    if value not in (*_TRUE, *_FALSE):
        raise _conversion_error("bool")
    return value in _TRUE


@overload("bytes", bytes)
def _bytes(value: bytes) -> bytes:
    return value


@overload("bytes", str)
def _bytes_of_string(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


@overload("string", str)
@overload("string", bool)
@overload("string", int)
@overload("string", UInt)
@overload("string", float)
@overload("string", bytes)
@overload("string", Duration)
@overload("string", Timestamp)
@overload("string", IP)
@overload("string", CIDR)
def text_of(value: object) -> str:
    """Return a value as `string()` prints it."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case bytes():
            return _decoded(value)
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case IP():
            return str(value.address)
        case CIDR():
            return str(value.interface)
        case _:
            return str(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error


def double_text(value: float) -> str:
    """Return a double in as few digits as tell it from all others, as Go's %g has it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "neither infinite nor NaN"
    text = "".join(map(str, digits))
    power = len(text) + exponent - 1
    minus = "-" if sign else ""
    if not value or _FIXED_FROM <= power < _FIXED_BELOW:
        return repr(value).removesuffix(".0") if value else f"{minus}0"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02}"
