"""Regular expressions: RE2's, as Go has them.

Knows the library, which is imported when first needed. Must not know anything else.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from jackfield.core.cel.extra import library
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.values import overload

_PATTERNS_MAX: Final = 1024
_NESTING_MAX: Final = 1000
"""Go's limit, which RE2 does not have."""
_GROUPS: Final = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]|[()]", re.DOTALL)
"""Groups begin and end; what is escaped or in a class does neither."""


_WORDS: Final = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid named capture group": "invalid named capture",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}


class PatternError(CelError):
    """A text that is no regular expression."""


@lru_cache(maxsize=_PATTERNS_MAX)
def pattern(text: str) -> Any:  # noqa: ANN401 - the library has no types
    """Return a compiled pattern; raises PatternError."""
    if _nesting(text) >= _NESTING_MAX:
        raise PatternError(f"error parsing regexp: expression nests too deeply: `{text}`")
    re2 = library("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(f"error parsing regexp: {_in_go(reason)}") from error


def _nesting(text: str) -> int:
    """Return how many groups stand one within the other at most."""
    depth = deepest = 0
    for sign in _GROUPS.findall(text) if text.count("(") >= _NESTING_MAX else ():
        depth += {"(": 1, ")": -1}.get(sign, 0)
        deepest = max(deepest, depth)
    return deepest


def _in_go(reason: str) -> str:
    """Return what is wrong with a pattern in the words of Go's library, which puts the place in backquotes."""
    words, colon, place = reason.partition(": ")
    return f"{_WORDS.get(words, words)}{f': `{place}`' if colon else ''}"


@lru_cache(maxsize=_PATTERNS_MAX)
def found_in(expression: str) -> Callable[[str], bool]:
    """Return a test for texts that hold a pattern; raises PatternError. It remembers: devices' attributes repeat."""
    search = pattern(expression).search
    return lru_cache(maxsize=_PATTERNS_MAX)(lambda text: search(text) is not None)


@overload("matches", str, str)
def _matches(text: str, expression: str) -> bool:
    return pattern(expression).search(text) is not None


@overload("matches", object, object)
def _no_match(_text: object, _expression: object) -> bool:
    raise CelError("no such overload")


@overload("find", str, str)
def _find(text: str, expression: str) -> str:
    found = pattern(expression).search(text)
    return str(found.group()) if found else ""


@overload("findAll", str, str)
def _find_all(text: str, expression: str) -> list[str]:
    return _found(text, expression, -1)


@overload("findAll", str, str, int)
def _find_some(text: str, expression: str, limit: int) -> list[str]:
    return _found(text, expression, limit)


def _found(text: str, expression: str, limit: int) -> list[str]:
    found: list[str] = []
    end = -1
    for match in pattern(expression).finditer(text):
        if 0 <= limit <= len(found):
            break
        # Go passes over an empty match right behind another match.
        if match.start() == match.end() == end:
            continue
        found.append(str(match.group()))
        end = match.end()
    return found
