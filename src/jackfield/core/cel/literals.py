"""The values of literals.

Knows escapes and the bounds of numbers. Must not know grammar.
"""

import math
import re
from typing import Final

from jackfield.core.cel.values import INT_MAX, INT_MIN, UINT_MAX, UInt

_HEX: Final = "0x"
_DIGITS_MAX: Final = 40
"""More than any number within bounds has; Python does not read thousands of them."""
_SURROGATES: Final = range(0xD800, 0xE000)
_CODE_POINTS: Final = 0x110000
_ESCAPES: Final = re.compile(
    r"\\(?:([xX])(..)|([uU])((?<=u).{4}|(?<=U).{8})|([0-3][0-7]{2})|(.))|([^\\])", re.DOTALL
)
_SINGLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class LiteralError(Exception):
    """A literal that has no value."""


def integer(text: str) -> int:
    """Return a signed number."""
    number = _number(text)
    if number is None or not INT_MIN <= number <= INT_MAX:
        raise LiteralError("invalid int literal")
    return number


def unsigned(text: str) -> UInt:
    """Return an unsigned number, which ends in u."""
    number = _number(text[:-1])
    if number is None or number > UINT_MAX:
        raise LiteralError("invalid uint literal")
    return UInt(number)


def _number(text: str) -> int | None:
    sign, digits = ("-", text[1:]) if text[0] == "-" else ("", text)
    base = 16 if digits.startswith(_HEX) else 10
    digits = digits.removeprefix(_HEX).lstrip("0") or "0"
    return int(sign + digits, base) if len(digits) < _DIGITS_MAX else None


def double(text: str) -> float:
    """Return a double."""
    number = float(text)
    if math.isinf(number):
        raise LiteralError("invalid double literal")
    return number


def string(text: str) -> str:
    """Return the string between quotes."""
    inner, raw = _between(text)
    if raw or "\\" not in inner:
        return inner
    return "".join(map(_character, _ESCAPES.finditer(inner)))


def byte_string(text: str) -> bytes:
    """Return the bytes between quotes, which follow a b."""
    inner, raw = _between(text[1:])
    if raw or "\\" not in inner:
        return inner.encode()
    return b"".join(map(_octets, _ESCAPES.finditer(inner)))


def _between(text: str) -> tuple[str, bool]:
    raw = text[0] in "rR"
    quoted = (text[1:] if raw else text).replace("\r\n", "\n").replace("\r", "\n")
    width = 3 if len(quoted) >= 6 and quoted.startswith(("'''", '"""')) else 1  # noqa: PLR2004 - two times three quotes
    return quoted[width:-width], raw


def _code(escape: re.Match[str]) -> int | None:
    digits = escape[2] or escape[4]
    if digits:
        return int(digits, 16)
    return int(escape[5], 8) if escape[5] else None


def _plain(escape: re.Match[str]) -> str:
    return _SINGLE.get(escape[6], escape[6]) if escape[6] else escape[7]


def _character(escape: re.Match[str]) -> str:
    code = _code(escape)
    if code is None:
        return _plain(escape)
    if code in _SURROGATES or code >= _CODE_POINTS:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _octets(escape: re.Match[str]) -> bytes:
    if escape[3]:
        raise LiteralError("unable to unescape string")
    code = _code(escape)
    return _plain(escape).encode() if code is None else bytes((code,))
