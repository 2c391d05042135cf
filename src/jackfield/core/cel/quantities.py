"""Quantities and versions.

Knows their functions and how versions are read. Must not know expressions.
"""

from functools import lru_cache
from typing import Final

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.quoting import quoted
from jackfield.core.cel.values import UINT_MAX, Semver, Sum, overload
from jackfield.model import quantity
from jackfield.model.quantity import Quantity, QuantityError

_VERSIONS_MAX: Final = 4096
_DIGITS: Final = frozenset("0123456789")
_WORD: Final = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")
_PARTS: Final = 3

# --- quantities


@overload("quantity", str)
def _quantity(text: str) -> Quantity:
    try:
        return quantity.parse(text)
    except QuantityError as error:
        raise CelError(error.reason) from error


@overload("isQuantity", str)
def _is_quantity(text: str) -> bool:
    try:
        quantity.parse(text)
    except QuantityError:
        return False
    return True


@overload("sign", Quantity)
def _sign(amount: Quantity) -> int:
    return amount.sign


@overload("isGreaterThan", Quantity, Quantity)
def _greater(left: Quantity, right: Quantity) -> bool:
    return left.nano > right.nano


@overload("isLessThan", Quantity, Quantity)
def _less(left: Quantity, right: Quantity) -> bool:
    return left.nano < right.nano


@overload("compareTo", Quantity, Quantity)
def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


@overload("add", Quantity, Quantity)
def _add(left: Quantity, right: Quantity) -> Sum:
    return _sum(left + right)


@overload("add", Quantity, int)
def _add_int(left: Quantity, right: int) -> Sum:
    return _sum(left + quantity.of(right, quantity.Format.DECIMAL_EXPONENT))


@overload("sub", Quantity, Quantity)
def _sub(left: Quantity, right: Quantity) -> Sum:
    return _sum(left - right)


@overload("sub", Quantity, int)
def _sub_int(left: Quantity, right: int) -> Sum:
    return _sum(left - quantity.of(right, quantity.Format.DECIMAL_EXPONENT))


def _sum(amount: Quantity) -> Sum:
    return Sum(amount.nano, amount.mantissa, amount.scale, amount.format, amount.decimal)


@overload("isInteger", Quantity)
def _is_integer(amount: Quantity) -> bool:
    return amount.as_int64() is not None


@overload("asInteger", Quantity)
def _as_integer(amount: Quantity) -> int:
    number = amount.as_int64()
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


@overload("asApproximateFloat", Quantity)
def _as_float(amount: Quantity) -> float:
    return amount.as_float()


# --- versions


@lru_cache(maxsize=_VERSIONS_MAX)
def version(text: str) -> Semver:
    """Return the version a text stands for; raises CelError."""
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", _PARTS - 1)
    if len(parts) != _PARTS:
        raise CelError("No Major.Minor.Patch elements found")
    major = _number("Major", parts[0])
    minor = _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    number = _number("Patch", patch)
    before = tuple(_pre_release(one) for one in pre.split(".")) if dash else ()
    for one in build.split(".") if plus else ():
        _check_build(one)
    order = tuple((0, one, "") if isinstance(one, int) else (1, 0, one) for one in before)
    return Semver(major, minor, number, (major, minor, number, not order, order), text)


def _number(name: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise CelError(f"Invalid character(s) found in {name.lower()} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{name} number must not contain leading zeroes {quoted(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > len(str(UINT_MAX)) or int(text) > UINT_MAX:
        raise CelError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _pre_release(text: str) -> int | str:
    if not text:
        raise CelError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return _unsigned(text)
    if not _WORD.issuperset(text):
        raise CelError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _check_build(text: str) -> None:
    if not text:
        raise CelError("Build meta data is empty")
    if not _WORD.issuperset(text):
        raise CelError(f"Invalid character(s) found in build meta data {quoted(text)}")


def _normalised(text: str) -> str:
    parts = text.removeprefix("v").split(".", _PARTS - 1)
    for at, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[at] = stripped if stripped[:1] in _DIGITS else f"0{stripped}"
    if len(parts) < _PARTS:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (_PARTS - len(parts))
    return ".".join(parts)


@overload("semver", str)
def _semver(text: str) -> Semver:
    return version(text)


@overload("semver", str, bool)
def _semver_normalised(text: str, normalise: bool) -> Semver:  # noqa: FBT001 - CEL's own argument
    return version(_normalised(text) if normalise else text)


@overload("isSemver", str)
def _is_semver(text: str) -> bool:
    return _is_semver_normalised(text, normalise=False)


@overload("isSemver", str, bool)
def _is_semver_normalised(text: str, normalise: bool) -> bool:  # noqa: FBT001 - CEL's own argument
    try:
        _semver_normalised(text, normalise)
    except CelError:
        return False
    return True


@overload("isGreaterThan", Semver, Semver)
def _later(left: Semver, right: Semver) -> bool:
    return left.order > right.order


@overload("isLessThan", Semver, Semver)
def _earlier(left: Semver, right: Semver) -> bool:
    return left.order < right.order


@overload("compareTo", Semver, Semver)
def _compare_versions(left: Semver, right: Semver) -> int:
    return (left.order > right.order) - (left.order < right.order)


@overload("major", Semver)
def _major(one: Semver) -> int:
    return one.major


@overload("minor", Semver)
def _minor(one: Semver) -> int:
    return one.minor


@overload("patch", Semver)
def _patch(one: Semver) -> int:
    return one.patch
