"""Answers of the machine interface: a line with a case in, the same line with the engine's answer out.

Knows how answers are spelt. Must not know files: whoever reads and writes hands over one line at a time.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from jackfield.codec import cases, encoding
from jackfield.codec.wire import Raw, dig, objects
from jackfield.core import allocate, cel
from jackfield.model.claim import AllocationResult

Answer = Callable[[bytes], Raw]
"""From a line with a case to what is filled in on it."""
GIVEN_UP: Final = "the search was given up: it took too many steps"

_encoder = msgspec.json.Encoder()
_STALE: Final = ("results", "error", "why", "because", "match", "maxCost", "compileError", "matchError")
_ALSO_STALE: Final = ("everywhere", "outputType", "actualCost", "refusal", "advice")


def reply(line: bytes, number: int, answer: Answer) -> bytes:
    """Return the line with its answer, or with what is wrong with it; `number` is its place in the input."""
    try:
        kept = cases.members(line)
        filled = answer(line)
    except cases.BadLine as bad:
        return _encoder.encode({"error": str(bad), "line": number})
    except cel.UnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - our mistake with one line must not cost the others theirs
        return _encoder.encode({"error": f"internal error: {type(error).__name__}: {error}", "line": number})
    for name in (*_STALE, *_ALSO_STALE):
        kept.pop(name, None)
    return _encoder.encode({**kept, **filled})


def too_long(number: int, longest: int) -> bytes:
    """Return the answer to a line of which only that much was looked at."""
    return _encoder.encode({"error": f"is longer than {longest} bytes, and was not read", "line": number})


# --- allocation


def allocation(line: bytes, profile: allocate.Profile, *, explain: bool = False) -> Raw:
    """Return `results` and `error`; where nothing is allocated, with `explain` also why, and in words."""
    case = cases.read(cases.AllocateCase, line)
    gates = case.gates(profile)
    allocator = allocate.Allocator(case.slices, case.classes_by_name(), case.allocated(gates), gates)
    filled = _outcome(allocator, case)
    if explain and filled["results"] is None:
        filled |= _reasons(allocator, case)
    return filled


def _reasons(allocator: allocate.Allocator, case: cases.AllocateCase) -> Raw:
    why = allocate.why(allocator, case.claims, case.node)
    filled: Raw = {"why": msgspec.to_builtins(why)}
    sentences = allocate.sentences(why)
    if case.nodes:
        everywhere = allocate.why_nowhere(allocator, case.claims, case.nodes)
        filled["everywhere"] = msgspec.to_builtins(everywhere)
        # An error is one for all nodes, and has been told.
        sentences += () if why.aborts else allocate.sentences_everywhere(everywhere)
    return {**filled, "because": " ".join(sentences)}


def _outcome(allocator: allocate.Allocator, case: cases.AllocateCase) -> Raw:
    try:
        found = allocator.allocate(case.claims, case.node)
    except allocate.AllocationError as error:
        return {"results": None, "error": str(error)}
    if not isinstance(found, allocate.NoFit):
        return {"results": [_result(one) for one in found], "error": ""}
    match found.reason:
        case allocate.Reason.DEVICES:
            return {"results": None, "error": ""}
        case allocate.Reason.INVALID_POOLS:
            return {"results": None, "error": str(found.reason)}
        case allocate.Reason.SEARCH_LIMIT:
            return {"results": None, "error": GIVEN_UP}


def _result(result: AllocationResult) -> Raw:
    """Spell an allocation as Kubernetes does, which writes some fields that say nothing."""
    raw: Raw = {"devices": {}, **encoding.encoded(result)}
    for one in objects(dig(raw, "devices", "results")):
        for toleration in objects(one.get("tolerations")):
            toleration.setdefault("operator", "Equal")
    return raw


# --- expressions


def evaluation(line: bytes, *, explain: bool = False) -> Raw:
    """Return `match`, `maxCost`, and where there are such `compileError`, `matchError`.

    With `explain` also why a device does not match, what the API server would refuse, and advice.
    """
    case = cases.read(cases.CelCase, line)
    try:
        program = cel.compile(case.expression, lists=case.lists)
    except cel.CompileError as error:
        advice = {"advice": [error.advice]} if explain and error.advice else {}
        return {"match": False, "maxCost": 0, "compileError": error.message, **advice}
    filled: Raw = {"match": False, "maxCost": program.cost_max, "outputType": program.output_type}
    subject = cel.subject(case.driver, case.device())
    try:
        filled["match"] = program.matches(subject)
    except cel.EvaluationError as error:
        filled["matchError"] = error.message
    if explain:
        filled |= _explained(program, subject, match=filled["match"])
    return filled


def _explained(program: cel.Program, subject: cel.Subject, *, match: bool) -> Raw:
    filled: Raw = {}
    if program.refusal:
        filled["refusal"] = program.refusal
    if program.advice:
        filled["advice"] = list(program.advice)
    if not match:
        why = cel.why_not(program, subject)
        filled |= {"why": msgspec.to_builtins(why), "because": str(why)}
    return filled
