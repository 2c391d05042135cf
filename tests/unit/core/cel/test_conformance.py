"""Kubernetes' own answers: whether an expression compiles, what it may cost, whether a device matches."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import msgspec
import pytest

from jackfield.core import cel
from jackfield.core.cel.evaluate import evaluate
from jackfield.core.cel.faults import CelError, PanicError
from jackfield.core.cel.inplace import own
from jackfield.core.cel.meter import Meter
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


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_an_expression_compiles_where_kubernetes_compiles_it(file: str) -> None:
    assert [
        one.case.name for one in outcomes(file) if bool(one.refusal) != bool(one.case.compile_error)
    ] == []


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_a_refusal_is_about_the_same_thing(file: str) -> None:
    wrong = Counter(
        (kind(one.refusal), kind(one.case.compile_error))
        for one in outcomes(file)
        if one.refusal and one.case.compile_error and kind(one.refusal) != kind(one.case.compile_error)
    )
    assert wrong == {}


def test_refusals_of_the_given_file_have_kubernetes_words() -> None:
    refused = [one for one in outcomes(GIVEN) if one.case.compile_error]
    assert [one.refusal for one in refused] == [one.case.compile_error for one in refused]
    assert len(refused) == 20


def test_nearly_all_other_refusals_begin_with_kubernetes_words() -> None:
    firsts = [
        (one.refusal.partition("\n")[0], one.case.compile_error.partition("\n")[0])
        for one in outcomes(EXTENDED)
        if one.case.compile_error
    ]
    assert sum(ours != theirs for ours, theirs in firsts) <= 1
    assert len(firsts) > 900


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_an_expression_may_cost_what_the_api_server_estimates(file: str) -> None:
    assert [case.name for case, program, _ in compiled(file) if program.cost_max != case.max_cost] == []


def test_the_answer_has_the_type_that_kubernetes_finds() -> None:
    assert [
        case.name for case, program, _ in compiled(EXTENDED) if program.output_type != case.output_type
    ] == []


@cache
def answers(file: str) -> tuple[tuple[Case, object, str], ...]:
    return tuple((case, *answer(program.matches, subject)) for case, program, subject in compiled(file))


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_a_device_matches_where_kubernetes_matches_it(file: str) -> None:
    assert [
        case.name
        for case, match, error in answers(file)
        if match != case.match or bool(error) != bool(case.match_error)
    ] == []


@pytest.mark.parametrize("file", [GIVEN, EXTENDED])
def test_errors_at_run_time_have_kubernetes_words(file: str) -> None:
    assert [
        case.name
        for case, _, error in answers(file)
        if error and case.match_error and error != case.match_error
    ] == []


def test_evaluation_node_by_node_gives_the_same_answer() -> None:
    fast = {case.name: (match is True, bool(error)) for case, match, error in answers(EXTENDED)}
    for case, program, subject in compiled(EXTENDED):
        if subject.list_fault or program.cost_max > cel.COST_MAX:
            continue
        slow = partial(evaluate, program.checked)
        assert fast[case.name] == _truth(answer(slow, own(subject))), case.name


def _truth(found: tuple[object, str]) -> tuple[bool, bool]:
    value, error = found
    return value is True, bool(error) or not isinstance(value, bool)


def test_what_an_evaluation_costs_is_counted_as_kubernetes_counts_it_or_nearly() -> None:
    exact = total = 0
    for case, program, subject in compiled(EXTENDED):
        if case.match_error:
            continue
        meter = Meter(program.checked.expr, limit=10_000_000)
        evaluate(program.checked, own(subject), meter)
        total += 1
        exact += meter.spent == case.actual_cost
        assert abs(meter.spent - case.actual_cost) <= max(50, case.actual_cost), case.name
    assert exact / total > 0.89
