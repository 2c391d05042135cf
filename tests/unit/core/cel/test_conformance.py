"""Kubernetes' own answers: whether an expression compiles, what it may cost, whether a device matches."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import msgspec
import pytest

from jackfield.core import cel
from jackfield.core.cel.faults import CelError, PanicError
from jackfield.core.cel.generate import Renderer
from jackfield.core.cel.meter import Meter, Metered
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity

DATA = Path(__file__).parents[5] / "shared" / "conformance"
GIVEN, EXTENDED = "cel.jsonl.gz", "cel-extended.jsonl.gz"

pytestmark = pytest.mark.skipif(
    not ((DATA / GIVEN).exists() and (DATA / EXTENDED).exists()),
    reason=f"needs {GIVEN} and {EXTENDED} of shared/conformance",
)


class Case(msgspec.Struct, rename="camel"):
    """An expression, a device, and what Kubernetes makes of them."""

    name: str
    expression: str
    driver: str
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    allow_multiple_allocations: bool = False
    lists: bool = False
    match: bool = False
    max_cost: int = 0
    actual_cost: int = 0
    output_type: str = ""
    compile_error: str = ""
    match_error: str = ""

    def subject(self) -> cel.Subject:
        device = Device(
            "device",
            attributes=self.attributes,
            capacity=self.capacity,
            allow_multiple_allocations=self.allow_multiple_allocations,
        )
        return cel.subject(self.driver, device)


class Outcome(msgspec.Struct):
    """What we make of a case."""

    case: Case
    program: cel.Program | None
    refusal: str = ""


def _kept(causes: Mapping[str, str]) -> dict[str, str]:
    return {name: cause for cause, names in causes.items() for name in names.split()}


# What differs, by cause. Exactly these: one more or one less fails.
COMPILE = _kept(
    {
        "the library parses 32 levels, Kubernetes 250": """
            deep-11 deep-13 deep-18 deep-19 deep-20 deep-21 deep-22 deep-23 deep-25 deep-30 deep-31 deep-34 deep-35
            deep-37 deep-44 deep-54 deep-55 deep-56 deep-57 deep-58 deep-61 deep-69 deep-71 deep-78 deep-79 deep-80
            deep-91 deep-179 deep-182
        """,
        "the library folds a presence test on a dotted variable into the variable": "hand-12",
        "through cel.bind(d, device, …) the library knows capacity only as a map of anything": "hand-45",
    }
)
COST = _kept(
    {"the library types sort and sortBy by keys of any type as dyn": "fz1-353 fz1-513 fz1-1502 fz1-1771"}
)
MATCH = _kept(
    {
        "Kubernetes converts a capacity in place when it compares it, and finds it no integer afterwards": """
            fq-51 fq-54 fq-69 fq-123 fq-199 fq-515 fq-596 fq-1638 fq-2028 fq-2292
        """,
        "a list is no key of a Python dictionary": "hand-349",
    }
)
KINDS = (
    ("depth", r"recursion"),
    (
        "syntax",
        r"Syntax error|reserved identifier|simple (name|identifier)|has\(\) macro|unicode|literal|unescape",
    ),
    ("undeclared", r"undeclared reference"),
    ("answer", r"must evaluate"),
    ("program", r"program instantiation"),
    ("argument", r"invalid (duration|timestamp|matches) argument"),
    ("format", r"formatting|string\.format|index \d+ out of range"),
    (
        "type",
        r"overload|expected type|does not support|undefined field|must be|be (the )?range|failed resolution",
    ),
)


def kind(message: str) -> str:
    return next((name for name, pattern in KINDS if re.search(pattern, message)), message)


@cache
def cases(file: str) -> tuple[Case, ...]:
    decoder = msgspec.json.Decoder(Case)
    with gzip.open(DATA / file) as lines:
        return tuple(decoder.decode(line) for line in lines)


@cache
def outcomes(file: str) -> tuple[Outcome, ...]:
    return tuple(outcome(case) for case in cases(file))


def outcome(case: Case) -> Outcome:
    try:
        return Outcome(case, cel.compile(case.expression, lists=case.lists))
    except cel.CompileError as error:
        return Outcome(case, None, error.message)


@cache
def compiled(file: str) -> tuple[tuple[Case, cel.Program, cel.Subject], ...]:
    """All cases that both sides compile."""
    return tuple(
        (one.case, one.program, one.case.subject())
        for one in outcomes(file)
        if one.program is not None and not one.case.compile_error
    )


def answer(evaluate: Callable[[cel.Subject], object], subject: cel.Subject) -> tuple[object, str]:
    try:
        return evaluate(subject), ""
    except (cel.EvaluationError, CelError, PanicError) as error:
        return False, str(error)


def test_there_are_as_many_cases_as_were_given() -> None:
    assert [len(cases(GIVEN)), len(cases(EXTENDED))] == [335, 4957]


@pytest.mark.parametrize(("file", "known"), [(GIVEN, {}), (EXTENDED, COMPILE)])
def test_an_expression_compiles_where_kubernetes_compiles_it(file: str, known: dict[str, str]) -> None:
    wrong = {one.case.name for one in outcomes(file) if bool(one.refusal) != bool(one.case.compile_error)}
    assert wrong == set(known)


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_a_refusal_is_about_the_same_thing(file: str) -> None:
    wrong = Counter(
        (kind(one.refusal), kind(one.case.compile_error))
        for one in outcomes(file)
        if one.refusal and one.case.compile_error and kind(one.refusal) != kind(one.case.compile_error)
    )
    # A function that its target does not have is unknown to the library; to Kubernetes it has no such overload.
    assert wrong == ({("undeclared", "type"): 2} if file == EXTENDED else {})


def test_refusals_of_the_given_file_have_kubernetes_words() -> None:
    refused = [one for one in outcomes(GIVEN) if one.case.compile_error]
    assert [one.refusal for one in refused] == [one.case.compile_error for one in refused]
    assert len(refused) == 20


@pytest.mark.parametrize(("file", "known"), [(GIVEN, {}), (EXTENDED, COST)])
def test_an_expression_may_cost_what_the_api_server_estimates(file: str, known: dict[str, str]) -> None:
    wrong = {case.name for case, program, _ in compiled(file) if program.cost_max != case.max_cost}
    assert wrong == set(known)


def test_the_answer_has_the_type_that_kubernetes_finds() -> None:
    assert [
        case.name for case, program, _ in compiled(EXTENDED) if program.output_type != case.output_type
    ] == []


@cache
def answers(file: str) -> tuple[tuple[Case, object, str], ...]:
    return tuple((case, *answer(program.matches, subject)) for case, program, subject in compiled(file))


@pytest.mark.parametrize(("file", "known"), [(GIVEN, {}), (EXTENDED, MATCH)])
def test_a_device_matches_where_kubernetes_matches_it(file: str, known: dict[str, str]) -> None:
    wrong = {
        case.name
        for case, match, error in answers(file)
        if match != case.match or bool(error) != bool(case.match_error)
    }
    assert wrong == set(known)


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_errors_at_run_time_have_kubernetes_words(file: str) -> None:
    assert [
        case.name
        for case, _, error in answers(file)
        if error and case.match_error and error != case.match_error
    ] == []


def test_both_renderings_give_the_same_answer() -> None:
    fast = {case.name: (match is True, bool(error)) for case, match, error in answers(EXTENDED)}
    for case, program, subject in compiled(EXTENDED):
        if subject.list_fault or program.cost_max > cel.COST_MAX:
            continue
        precise = Renderer(program.checked, precise=True).function()
        assert fast[case.name] == _truth(answer(precise, subject)), case.name


def _truth(found: tuple[object, str]) -> tuple[bool, bool]:
    value, error = found
    return value is True, bool(error) or not isinstance(value, bool)


def test_what_an_evaluation_costs_is_counted_as_kubernetes_counts_it_or_nearly() -> None:
    exact = total = 0
    for case, program, subject in compiled(EXTENDED):
        if case.match_error or case.name in MATCH:
            continue
        meter = Meter(limit=10_000_000)
        Metered(program.checked, meter).function()(subject)
        total += 1
        exact += meter.spent == case.actual_cost
        assert abs(meter.spent - case.actual_cost) <= max(50, case.actual_cost), case.name
    assert exact / total > 0.89
