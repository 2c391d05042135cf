"""The smallest case that still differs.

Knows trees of JSON and texts of expressions. Must not know what a difference is: it asks.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence

from jackfield.codec import Raw, copied

Path = tuple[str | int, ...]
ATTEMPTS_MAX = 3000
SECONDS_MAX = 60.0
KEPT = (
    *("name", "metadata", "spec", "driver", "pool", "generation", "resourceSliceCount", "devices"),
    *("key", "operator", "values", "effect", "value", "min", "deviceClassName", "cel", "expression"),
)
"""Members without which a case would be no case; Go and Python differ in what they take in their place."""


def shrunk(case: Raw, differs: Callable[[Raw], bool]) -> Raw:
    """Return the case without all that can be left out while it still differs."""
    until = time.monotonic() + SECONDS_MAX
    attempts = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _candidates(case):
            attempts += 1
            if attempts > ATTEMPTS_MAX or time.monotonic() > until:
                return case
            if differs(candidate):
                case, smaller = candidate, True
                break
    return case


def _candidates(case: Raw) -> Iterator[Raw]:
    yield from _shorter(case)
    # What stands high up goes first: a whole claim before one of its tolerations.
    for path in sorted(_paths(case, ()), key=len):
        yield _without(case, path)


def _paths(value: object, path: Path) -> Iterator[Path]:
    inner: Sequence[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for name, item in inner:
        if name not in KEPT:
            yield (*path, name)
        yield from _paths(item, (*path, name))


def _without(case: Raw, path: Path) -> Raw:
    changed: Raw = copied(case)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]  # type: ignore[index]  # a list by its index, an object by its name
    del inner[path[-1]]  # type: ignore[arg-type]  # likewise
    return changed


def _shorter(case: Raw) -> Iterator[Raw]:
    expression = case.get("expression", "")
    for found in re.finditer(r"[(\[]([^()\[\]]|\([^()]*\)|\[[^\[\]]*\])*[)\]]", expression):
        for instead in (found[0][1:-1], "true", "1", "'a'"):
            yield {**case, "expression": expression[: found.start()] + instead + expression[found.end() :]}
        yield {**case, "expression": found[0][1:-1]}
    for operator in (" && ", " || ", " ? ", " : ", " == ", ", "):
        for part in expression.split(operator) if operator in expression else ():
            yield {**case, "expression": part}
