"""Quantities as Kubernetes reads, compares, adds and writes them, exactly.

Knows suffixes, rounding and the two ways in which Kubernetes stores an amount, since some answers depend on it.
Must not know what is measured.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

import msgspec

_NANO: Final = 9
_NANOS: Final = 10**_NANO
_INT64_MAX: Final = 2**63 - 1
_TEXT_MAX = 4096
_DIGITS_MAX: Final = 18
_KIBI: Final = 1024
_EXPONENT_MAX: Final = 4096
"""Kubernetes would fill its memory beyond this; we refuse."""
_CACHE_SIZE: Final = 16384

_SHAPE: Final = re.compile(
    r"(?P<value>(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?)"
    r"(?P<suffix>[eEinumkKMGTP]*(?:[+-]?[0-9]*))",
    re.ASCII,
)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIXES: Final = ("", *_BINARY)


class QuantityError(ValueError):
    """A text that is no quantity; `reason` is Kubernetes' own, without the text."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} is no quantity: {reason}")
        self.text = text
        self.reason = reason


class Format(StrEnum):
    """How an amount is written."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


class Quantity(msgspec.Struct, frozen=True, gc=False, eq=False):
    """An amount, compared by value. It is `mantissa * 10 ** scale`, and `nano` billionths, always a whole number.

    `decimal` says that Kubernetes would store it as an arbitrary decimal instead of a 64-bit integer with a scale;
    such a quantity is never an integer to `as_int64`, whatever its value.
    """

    nano: int
    mantissa: int
    scale: int = 0
    format: Format = Format.DECIMAL_SI
    decimal: bool = False
    text: str = ""
    """As it was written, where that is canonical already."""

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano

    def __le__(self, other: "Quantity") -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: "Quantity") -> bool:
        return self.nano > other.nano

    def __ge__(self, other: "Quantity") -> bool:
        return self.nano >= other.nano

    def __add__(self, other: "Quantity") -> "Quantity":
        return _sum(self, other.mantissa, other)

    def __sub__(self, other: "Quantity") -> "Quantity":
        return _sum(self, -other.mantissa, other)

    def __str__(self) -> str:
        return self.text or _canonical(self)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nano > 0) - (self.nano < 0)

    def value(self) -> int:
        """The amount as a whole number, rounded away from zero."""
        return _away_from_zero(self.nano, _NANOS)

    def milli(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _away_from_zero(self.nano, 10 ** (_NANO - 3))

    def as_int64(self) -> int | None:
        """The amount where its representation is a whole 64-bit number, else None."""
        if self.decimal or self.scale < 0:
            return None
        return _int64(self.nano // _NANOS)

    def as_float(self) -> float:
        """The amount, approximately, and by the same steps as Kubernetes."""
        try:
            base = float(self.mantissa)
            return base * float(f"1e{self.scale}") if self.scale else base
        except OverflowError:
            return float("inf") if self.nano > 0 else float("-inf")


ZERO: Final = Quantity(0, 0, text="0")


def of(amount: int, form: Format = Format.DECIMAL_SI) -> Quantity:
    """Return the quantity of a whole number."""
    return Quantity(amount * _NANOS, amount, format=form)


@lru_cache(maxsize=_CACHE_SIZE)
def parse(text: str) -> Quantity:
    """Return the quantity a text stands for; raise QuantityError where it is none."""
    if text.isdecimal() and text.isascii() and len(text) <= _DIGITS_MAX and text[0] != "0":
        number = int(text)
        return Quantity(number * _NANOS, number, text=text if number % 1000 else "")
    if text == "0":
        return ZERO
    if len(text) > _TEXT_MAX:
        raise QuantityError(f"{text[:16]}…", "it has too many digits")
    shape = _SHAPE.fullmatch(text) if text else None
    if shape is None:
        raise QuantityError(
            text,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )
    exponent, form = _suffix(text, shape["suffix"])
    if form is Format.BINARY_SI:
        return _binary(text, shape, exponent)
    return _decimal(text, shape, exponent, form)


@lru_cache(maxsize=_CACHE_SIZE)
def as_int(text: str) -> int:
    """Return the amount a text stands for as a whole number, rounded away from zero: bytes, devices."""
    return parse(text).value()


@lru_cache(maxsize=_CACHE_SIZE)
def milli(text: str) -> int:
    """Return the amount a text stands for in thousandths, rounded away from zero: CPUs."""
    return parse(text).milli()


def _suffix(text: str, suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return _BINARY[suffix], Format.BINARY_SI
    if suffix[0] not in "eE" or not suffix[1:].lstrip("+-").isdecimal():
        raise QuantityError(text, "unable to parse quantity's suffix")
    exponent = int(suffix[1:])
    if exponent > _EXPONENT_MAX:
        raise QuantityError(text, "unable to parse quantity's suffix")
    return exponent, Format.DECIMAL_EXPONENT


def _binary(text: str, shape: re.Match[str], exponent: int) -> Quantity:
    whole, part = shape["whole"] or "0", shape["part"] or ""
    sign = -1 if shape["sign"] == "-" else 1
    if not part and 15 - len(whole) - exponent * 3 // 10 - 1 >= 0:
        number = int(whole)
        amount = sign * (number << exponent)
        canonical = text if number & 7 else ""
        return Quantity(amount * _NANOS, amount, format=Format.BINARY_SI, text=canonical)
    _require_digits(text, shape)
    nano = _away_from_zero((int(whole + part) << exponent) * _NANOS, 10 ** len(part))
    if nano > _INT64_MAX * _NANOS:
        nano = _INT64_MAX * _NANOS
        return Quantity(sign * nano, sign * _INT64_MAX, format=Format.BINARY_SI, decimal=True)
    form = Format.DECIMAL_SI if 0 < nano < _NANOS else Format.BINARY_SI
    return Quantity(sign * nano, sign * nano, -_NANO, form, decimal=True)


def _decimal(text: str, shape: re.Match[str], exponent: int, form: Format) -> Quantity:
    whole, part = shape["whole"] or "0", shape["part"] or ""
    digits = whole + part
    sign = -1 if shape["sign"] == "-" else 1
    scale = exponent - len(part)
    if len(digits) <= _DIGITS_MAX and scale >= -_NANO:
        mantissa = sign * int(digits)
        same = scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        return Quantity(mantissa * 10 ** (scale + _NANO), mantissa, scale, form, text=text if same else "")
    _require_digits(text, shape)
    unscaled = int(digits)
    power = scale + _NANO
    if power >= 0:
        nano = unscaled * 10**power
    elif -power > len(digits):
        nano = 1 if unscaled else 0
    else:
        nano = _away_from_zero(unscaled, 10**-power)
    return Quantity(sign * nano, sign * nano, -_NANO, form, decimal=True)


def _require_digits(text: str, shape: re.Match[str]) -> None:
    if not any(character.isdigit() for character in shape["value"]):
        raise QuantityError(text, "unable to parse numeric part of quantity")


def _sum(left: Quantity, mantissa: int, right: Quantity) -> Quantity:
    form = left.format if left.nano else right.format
    decimal = left.decimal or right.decimal
    if not decimal and not mantissa:
        return Quantity(left.nano, left.mantissa, left.scale, form)
    scale = right.scale if not decimal and not left.mantissa else min(left.scale, right.scale)
    ours = left.mantissa * 10 ** max(left.scale - scale, 0)
    theirs = mantissa * 10 ** (right.scale - scale)
    total = ours + theirs
    fits = _int64(ours) is not None and _int64(theirs) is not None and _int64(total) is not None
    return Quantity(total * 10 ** (scale + _NANO), total, scale, form, decimal=decimal or not fits)


def _canonical(quantity: Quantity) -> str:
    if not quantity.nano:
        return "0"
    whole, rest = divmod(quantity.nano, _NANOS)
    if quantity.format is Format.BINARY_SI and not rest and abs(whole) >= _KIBI:
        power = 0
        while power < len(_BINARY_SUFFIXES) - 1 and whole % _KIBI == 0:
            whole, power = whole // _KIBI, power + 1
        return f"{whole}{_BINARY_SUFFIXES[power]}"
    mantissa, exponent = quantity.nano, -_NANO
    while mantissa % 1000 == 0:
        mantissa, exponent = mantissa // 1000, exponent + 3
    if quantity.format is not Format.DECIMAL_EXPONENT and exponent in _DECIMAL_SUFFIXES:
        return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"
    return f"{mantissa}e{exponent}" if exponent else f"{mantissa}"


def _away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor


def _int64(number: int) -> int | None:
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None
