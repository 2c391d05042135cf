"""Regular expressions: RE2's, as Go has them.

Knows the library, which is imported when first needed. Must not know anything else.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from jackfield.core.cel.extra import library
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.values import overload

_PATTERNS_MAX: Final = 1024


class PatternError(CelError):
    """A text that is no regular expression."""


@lru_cache(maxsize=_PATTERNS_MAX)
def pattern(text: str) -> Any:  # noqa: ANN401 - the library has no types
    """Return a compiled pattern; raises PatternError."""
    re2 = library("re2")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options=options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(f"error parsing regexp: {reason}") from error


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
