"""What `make oracle` rests on: cases that repeat, a comparison that sees differences, and one that makes them small."""

from collections.abc import Sequence

import msgspec
import pytest

from jackfield.codec import Raw, copied
from oracle import agreement, programs, shrinking
from oracle.agreement import Verdict
from oracle.expressions import LEAVES, WAYS, Expressions
from oracle.run import Comparison
from oracle.worlds import Worlds

RESULT: Raw = {"devices": {"results": [{"device": "a", "shareID": "1"}, {"device": "b"}]}}
KEY = "claim c: selector #0: CEL runtime error: no such key: {}"


def swapped(result: Raw) -> Raw:
    return {"devices": {"results": list(reversed(result["devices"]["results"]))}}


def otherwise(result: Raw) -> Raw:
    other: Raw = copied(result)
    other["devices"]["results"][0]["shareID"] = "2"
    return other


@pytest.mark.parametrize("draw", [Worlds(5).case, Expressions(5).case])
def test_a_case_depends_on_its_seed_and_number_alone(draw: object) -> None:
    assert callable(draw)
    again = type(draw.__self__)(5).case  # type: ignore[attr-defined]  # a bound method
    assert [draw(number) for number in (3, 1, 3)] == [again(number) for number in (3, 1, 3)]
    assert draw(1) != draw(2)


def test_worlds_meet_every_feature() -> None:
    text = msgspec.json.encode([Worlds(1).case(number) for number in range(300)]).decode()
    words = (
        "adminAccess firstAvailable All matchAttribute distinctAttribute tolerations taints sharedCounters"
        " consumesCounters requestPolicy validRange validValues allowMultipleAllocations bindingConditions"
        " bindsToNode nodeSelector perDeviceNodeSelection allNodes opaque"
        " allocatedSharedDeviceIDs aggregatedCapacity strings version rack/"
        " NotIn DoesNotExist Gt Lt matchFields NoExecute DRAListTypeAttributes no-such-class"
    )
    assert [word for word in words.split() if word not in text] == []


def test_most_worlds_are_answered_in_one_of_three_ways_and_each_is_common() -> None:
    ask = programs.ours("allocate")
    replies = ask([msgspec.json.encode(Worlds(1).case(number)) for number in range(120)])
    kinds = ["error" if one["error"] else "allocated" if one["results"] else "not" for one in replies]
    assert min(kinds.count(kind) for kind in ("error", "allocated", "not")) > 10


def test_expressions_are_mostly_sound_and_use_every_way() -> None:
    replies = programs.ours("cel")(
        [msgspec.json.encode(Expressions(1).case(number)) for number in range(150)]
    )
    compiled = [one for one in replies if "compileError" not in one]
    assert 100 < len(compiled) < 150
    assert {one["match"] for one in compiled} == {True, False}
    assert set(WAYS) == set(LEAVES)


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        (([RESULT], ""), ([otherwise(RESULT)], ""), Verdict.AGREED),
        (([RESULT], ""), ([swapped(RESULT)], ""), Verdict.DIFFERENT),
        (([RESULT], ""), (None, ""), Verdict.DIFFERENT),
        ((None, KEY.format("a")), (None, f"on device x: {KEY.format('a')}"), Verdict.AGREED),
        ((None, KEY.format("a")), (None, KEY.format("b")), Verdict.DIFFERENT),
        ((None, KEY.format("a")), (None, ""), Verdict.DIFFERENT),
        ((None, "timed out: deadline"), (None, ""), Verdict.UNDECIDED),
        ((None, ""), (None, "the search was given up"), Verdict.DIFFERENT),
    ],
)
def test_allocations_agree_in_devices_order_and_the_matter_of_errors(
    theirs: Sequence[object], ours: Sequence[object], verdict: Verdict
) -> None:
    one, other = ({"results": answer[0], "error": answer[1]} for answer in (theirs, ours))
    assert agreement.allocations(one, other) is verdict


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [
        ({}, {}, Verdict.AGREED),
        ({}, {"match": False}, Verdict.DIFFERENT),
        ({}, {"maxCost": 6}, Verdict.DIFFERENT),
        ({"matchError": "no such key: a"}, {"matchError": "no such key: a"}, Verdict.AGREED),
        ({"matchError": "no such key: a"}, {"matchError": "no such key: b"}, Verdict.DIFFERENT),
        ({"matchError": "x"}, {}, Verdict.DIFFERENT),
        ({"matchError": "panic: x"}, {}, Verdict.UNDECIDED),
        ({"compileError": "Syntax error: a"}, {"compileError": "Syntax error: b"}, Verdict.AGREED),
        ({"compileError": "Syntax error: a"}, {"compileError": "undeclared reference"}, Verdict.DIFFERENT),
        ({}, {"compileError": "expression recursion limit exceeded: 32"}, Verdict.DIFFERENT),
        ({}, {"compileError": "error parsing regexp: pattern too large"}, Verdict.KNOWN),
        ({}, {"matchError": "a list of more than 100000 items"}, Verdict.KNOWN),
    ],
)
def test_expressions_agree_in_answer_cost_and_the_matter_of_errors(
    theirs: Raw, ours: Raw, verdict: Verdict
) -> None:
    common: Raw = {"expression": "e", "match": True, "maxCost": 5}
    assert agreement.evaluations({**common, **theirs}, {**common, **ours}) is verdict


def test_a_difference_is_made_as_small_as_it_can_be() -> None:
    case = next(case for case in map(Worlds(2).case, range(99)) if "tolerations" in str(case["claims"]))
    small = shrinking.shrunk(case, lambda one: "tolerations" in str(one.get("claims")))
    assert "slices" not in small
    assert len(msgspec.json.encode(small)) < 300


def test_an_expression_is_made_shorter() -> None:
    case = {"expression": "(1 < 2) && size([1, 2].map(x, x + quantity('1').asInteger())) > 1", "driver": "d"}
    small = shrinking.shrunk(case, lambda one: "asInteger" in one.get("expression", ""))
    assert len(small["expression"]) < 40


def test_a_comparison_finds_what_differs_and_shows_it_small(capsys: pytest.CaptureFixture[str]) -> None:
    ours = programs.ours("cel")

    def wrong(lines: Sequence[bytes]) -> list[Raw]:
        replies = ours(lines)
        return [{**one, "match": True} if "size" in one["expression"] else one for one in replies]

    comparison = Comparison(wrong, ours, agreement.evaluations)
    cases = [{"name": name, "expression": name} for name in ("true", "1 < 2 && (size('abc') == 9)", "1 == 1")]
    comparison.run(iter(cases), lambda _: None)
    comparison.show(1)
    assert (comparison.verdicts[Verdict.DIFFERENT], comparison.failed()) == (1, True)
    shown = capsys.readouterr().out.splitlines()
    assert len(shown[1]) < len(msgspec.json.encode(cases[1]))
    assert [line.partition(":")[0] for line in shown[2:]] == ["kubernetes", "jackfield"]
