"""Whether two answers to one case agree.

Knows what may differ: the ids of shares, and the words of an error as long as they are about the same thing.
Must not know how an answer comes about.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from jackfield.codec import Raw, copied, dig, objects

ALLOCATION_ERRORS = (
    r"CEL runtime error: .*no such key: (\w+)",
    r"CEL runtime error",
    r"CEL compile error: .*(undeclared reference|Syntax error|undefined field)",
    r"CEL compile error",
    r"resource pool (\S+) is currently (being updated|invalid)",
    r"because a claim constraint would not be satisfied",
    r"exceeds the claim limit",
    r"could not retrieve device class (\S+):",
    r"missing device class name",
    r"CEL expression empty",
    r"empty constraint",
    r"unsupported count mode",
    r"feature is disabled",
    r"invalid resource pools were encountered",
    r"(?:parse |^)node selector",
    r"unsupported ResourceSlice.NodeSelector with (\d+) terms",
)
COMPILE_ERRORS: Mapping[str, str] = {
    "depth": r"recursion",
    "syntax": r"Syntax error|unsupported syntax|reserved identifier|simple (name|identifier)|has\(\) macro|unicode"
    r"|literal|unescape",
    "answer": r"must evaluate",
    "argument": r"invalid (duration|timestamp|matches) argument|timestamp overflow",
    "program": r"program instantiation",
    "format": r"formatting|string\.format|index \d+ out of range",
    "type": r"undeclared reference|overload|expected type|does not support|undefined field|must be|be (the )?range"
    r"|failed resolution",
}


class Verdict(StrEnum):
    """What comparing two answers comes to."""

    AGREED = "agreed"
    DIFFERENT = "different"
    UNDECIDED = "undecided"
    """Kubernetes' code crashed or ran out of time."""
    KNOWN = "known"
    """They differ in a way that docs/dra.md lists."""


def allocations(theirs: Raw, ours: Raw) -> Verdict:
    """Compare results and error of an allocation."""
    if reason(theirs, ours):
        return Verdict.UNDECIDED
    same = _comparable(theirs["results"]) == _comparable(ours["results"])
    return Verdict.AGREED if same and _about(theirs["error"]) == _about(ours["error"]) else Verdict.DIFFERENT


def _comparable(results: object) -> object:
    found = copied(results)
    for result in objects(found):
        for one in objects(dig(result, "devices", "results")):
            if "shareID" in one:
                one["shareID"] = "some"
    return found


def _about(error: str) -> str:
    for pattern in ALLOCATION_ERRORS:
        if found := re.search(pattern, error, re.DOTALL):
            return f"{pattern}: {found.groups()}"
    return error


def evaluations(theirs: Raw, ours: Raw) -> Verdict:
    """Compare the answers to an expression."""
    if _crashed(theirs):
        return Verdict.UNDECIDED
    same = (
        _kind(theirs.get("compileError", "")) == _kind(ours.get("compileError", ""))
        and _same_failure(theirs.get("matchError", ""), ours.get("matchError", ""))
        and all(theirs[name] == ours[name] for name in ("match", "maxCost"))
    )
    if same:
        return Verdict.AGREED
    return Verdict.KNOWN if reason(theirs, ours) else Verdict.DIFFERENT


def _kind(message: str) -> str:
    return next((name for name, pattern in COMPILE_ERRORS.items() if re.search(pattern, message)), message)


def _same_failure(theirs: str, ours: str) -> bool:
    """Whether both failed, and where both miss a key it is the same one."""
    keys = [one.removeprefix(_KEY) for one in (theirs, ours) if one.startswith(_KEY)]
    return bool(theirs) == bool(ours) and len(set(keys)) <= 1


def reason(theirs: Raw, ours: Raw) -> str:
    """Return why two answers cannot be compared, or differ where nothing can be done about it; else nothing."""
    return next((words for words, applies in _REASONS.items() if applies(theirs, ours)), "")


def _crashed(answer: Raw) -> bool:
    # The second is a crash as well, which the expression's own evaluator caught.
    words = answer.get("error", "") + answer.get("matchError", "")
    return "panic" in words or "internal error: " in words


_KEY = "no such key: "
_REASONS: Mapping[str, Callable[[Raw, Raw], bool]] = {
    "Kubernetes' code crashed": lambda theirs, _: _crashed(theirs),
    "Kubernetes' code timed out": lambda theirs, _: "timed out" in theirs.get("error", ""),
    "Kubernetes takes patterns of any size": lambda _, ours: (
        "pattern too large" in ours.get("compileError", "") + ours.get("matchError", "")
    ),
    "Kubernetes makes lists and texts of any size": lambda _, ours: bool(
        re.match(r"(a list|replace makes|format makes)", ours.get("matchError", ""))
    ),
}
"""Why two answers may differ; docs/dra.md tells more."""
