"""The grammar of label selectors: `a=b,c!=d,e in (f,g),!h`.

Knows the tokens and what is said of a text that cannot be read, in the API server's words. Must not know objects.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.core.cel.quoting import quoted

_TOKEN: Final = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
_SYMBOLS: Final = ("==", "!=", "=", "!", "(", ")", ",", "<", ">")
_OPERATORS: Final = ("in", "notin", "=", "==", "!=", ">", "<")
_SPELT: Final = "in, notin, =, ==, !=, gt, lt"

_DIGITS_MAX = 19
"""Digits of the largest number that is compared."""


class Requirement(msgspec.Struct, frozen=True):
    """What is asked of one label."""

    key: str
    operator: str
    """One of = != in notin > <, or `exists` or `!`."""
    values: tuple[str, ...] = ()


def parsed(text: str) -> tuple[Requirement, ...]:
    """Return what a selector asks; raises a bad request if it cannot be read."""
    return tuple(_Parser(text).requirements())


class _Parser:
    """Reads a selector from left to right."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [one for one in _TOKEN.findall(text) if one]
        self._tokens.append("")
        self._place = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._place]

    def _take(self) -> str:
        token = self._next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def requirements(self) -> Iterator[Requirement]:
        """Yield them."""
        while word := self._next:
            if word != "!" and not _is_word(word):
                raise _unexpected(word, ", expected: !, identifier, or 'end of string'")
            yield self._requirement()
            after = self._take()
            if after == "," and self._next != "!" and not _is_word(self._next):
                raise _unexpected(self._next, ", expected: identifier after ','")
            if after not in ("", ","):
                raise _unexpected(after, ", expected: ',' or 'end of string'")

    def _requirement(self) -> Requirement:
        first = self._take()
        absent = first == "!"
        key = self._take() if absent else first
        if not _is_word(key):
            raise _unparsable(key, ", expected: identifier")
        if absent:
            return Requirement(key, "!")
        if self._next in ("", ","):
            return Requirement(key, "exists")
        operator = self._take()
        if operator not in _OPERATORS:
            raise _unparsable(operator, f", expected: {_SPELT}")
        if operator in ("in", "notin"):
            return Requirement(key, operator, tuple(self._values()))
        value = "" if self._next in ("", ",") else self._take()
        if value in _SYMBOLS:
            raise _unparsable(value, ", expected: identifier")
        if operator in "<>" and not _is_number(value):
            raise errors.bad_request(
                f"unable to parse requirement: values[0]: Invalid value: {quoted(value)}: "
                "for 'Gt', 'Lt' operators, the value must be an integer"
            )
        return Requirement(key, "=" if operator == "==" else operator, (value,))

    def _values(self) -> Iterator[str]:
        """Yield the values in brackets; where one is left out it is the empty one."""
        opened = self._take()
        if opened != "(":
            raise _unparsable(opened, " expected: '('")
        while True:
            value = "" if self._next in (",", ")") else self._take()
            if value in _SYMBOLS or (not value and not self._next):
                raise _unparsable(value, ", expected: ',', ')' or identifier")
            yield value
            after = self._take()
            if after == ")":
                return
            if after != ",":
                raise _unparsable(after, ", expected: ',' or ')'")


def _is_word(token: str) -> bool:
    return bool(token) and token not in _SYMBOLS


def _unexpected(found: str, expected: str) -> errors.ApiError:
    return errors.bad_request(f"found '{found}'{expected}")


def _unparsable(found: str, expected: str) -> errors.ApiError:
    return errors.bad_request(f"unable to parse requirement: found '{found}'{expected}")


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= _DIGITS_MAX
