"""Whether two answers to one case agree.

Knows what may differ: the ids of shares, and the words of an error as long as they are about the same thing.
Must not know how an answer comes about.
"""

import re
from collections.abc import Mapping
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
    "syntax": r"Syntax error|reserved identifier|simple (name|identifier)|has\(\) macro|unicode|literal|unescape",
    "answer": r"must evaluate",
    "program": r"program instantiation",
    "argument": r"invalid (duration|timestamp|matches) argument",
    "format": r"formatting|string\.format|index \d+ out of range",
    "type": r"undeclared reference|overload|expected type|does not support|undefined field|must be|be (the )?range"
    r"|failed resolution",
}


class Verdict(StrEnum):
    """What comparing two answers comes to."""

    AGREED = "agreed"
    DIFFERENT = "different"
    UNDECIDED = "undecided"
    """One of the two gave up, or Kubernetes' code crashed."""
    KNOWN = "known"
    """They differ in a way that docs/dra.md lists."""


def allocations(theirs: Raw, ours: Raw) -> Verdict:
    """Compare results and error of an allocation."""
    if "timed out" in theirs["error"] or "given up" in ours["error"] or "panic" in theirs["error"]:
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
    if theirs.get("matchError", "").startswith("panic"):
        return Verdict.UNDECIDED
    refusals = [_kind(one.get("compileError", "")) for one in (theirs, ours)]
    same = refusals[0] == refusals[1] and all(
        theirs.get(name) == ours.get(name) for name in ("match", "maxCost", "matchError")
    )
    if same:
        return Verdict.AGREED
    return Verdict.KNOWN if known(theirs, ours) else Verdict.DIFFERENT


def _kind(message: str) -> str:
    return next((name for name, pattern in COMPILE_ERRORS.items() if re.search(pattern, message)), message)


def known(theirs: Raw, ours: Raw) -> str:
    """Return why they differ where nothing can be done about it, else nothing."""
    expression = ours["expression"]
    if "recursion" in ours.get("compileError", ""):
        return "the parser's depth"
    if re.search(r"capacity.*(isInteger|asInteger)", expression, re.DOTALL) and "compileError" not in theirs:
        return "quantities that change in place"
    return ""
