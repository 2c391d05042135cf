"""Expressions may nest as deeply as in Kubernetes; hostile ones end in a clear error, and soon."""

import pytest

from jackfield.core import cel
from jackfield.core.cel import deep
from jackfield.core.cel.deep import Task
from jackfield.model.device import Device

SUBJECT = cel.subject("gpu.example.com", Device("gpu-0"))
DEEP = 249


def nested(before: str, inner: str, after: str, levels: int = DEEP) -> str:
    return before * levels + inner + after * levels


def bound(value: str, result: str, levels: int = 120) -> str:
    """Return names that are bound to something made of the name before, `{}`."""
    binds = "".join(f"cel.bind(a{one}, {value.replace('{}', f'a{one - 1}')}, " for one in range(1, levels))
    return f"cel.bind(a0, [1], {binds}{result}{')' * levels}"


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (nested("(", "true", ")"), True),
        (nested("!(", "true", ")"), False),
        (nested("dyn(", "true", ")", 240) + " == true", True),
        (nested("(true && ", "true", ")"), True),
        (nested("(true && (false || ", "true", "))", 120), True),
        (nested("[", "1", "]", 240) + " == " + nested("[", "1", "]", 240), True),
        (nested("{'a': ", "1", "}", 240) + " == " + nested("{'a': ", "2", "}", 240), False),
        (nested("string(", "'a'", ")") + " == 'a'", True),
        (nested("optional.of(", "1", ")", 240) + " == optional.none()", False),
        ("1" + " + 1" * 240 + " == 241", True),
        ("[1]" + ".map(x, x + 1)" * 240 + " == [241]", True),
        ("".join(f"[1].all(x{one}, " for one in range(DEEP)) + f"true{')' * DEEP}", True),
        ("false ? true : " * DEEP + "true", True),
        (bound("[1]", "a119 == a0"), True),
        (bound("dyn([{}, {}])", "a119 == a119"), True),
        (nested("[", "1", "]", 200) + ".flatten(200) == [1]", True),
        ("true" + " && true" * 1200, True),
        (f"!'a'.matches(r'{nested('(a|', 'b', ')', 990)}{'[(]' * 9}{chr(92)}(')", True),
    ],
)
def test_what_is_deep_is_answered_and_explained(expression: str, answer: bool) -> None:  # noqa: FBT001 - a table
    program = cel.compile(expression)
    assert program.matches(SUBJECT) is answer
    assert (str(cel.why_not(program, SUBJECT)) == "it matches") is answer
    assert program.paths == ()
    assert program.advice == ()


def test_what_is_deep_is_shown_in_part() -> None:
    reason = cel.why_not(cel.compile(nested("(device.driver == '' ? true : ", "false", ")", 100)), SUBJECT)
    assert "…" in str(reason)
    assert len(str(reason)) < 5000


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (nested("(", "true", ")", 250), "expression recursion limit exceeded: 250"),
        (nested("1 < (", "true", ")", 250), "expression recursion limit exceeded: 250"),
        (nested("1 + (", "1", ")", 130), "expression recursion limit exceeded: 250"),
        ("device" + ".a" * 251, "max recursion depth exceeded"),
        ("optional.of(1)" + ".optMap(x, x)" * 30 + " == optional.none()", "macros expand to more than"),
        (bound("{{}: {}}", "true"), "its type is too large"),
        (bound("[[[{}]]]", "true"), "its type is too large"),
        (
            "".join(f"cel.bind(a{one}, [], " for one in range(100))
            + " && ".join(f"a{one} == [{{a{one + 1}: a{one + 1}}}]" for one in range(99))
            + ")" * 100,
            "its types are too complex",
        ),
        ("((" * 5000, "expression recursion limit exceeded"),
        ("\x00" * 10_000, "Syntax error: token recognition error"),
        (" && ".join(f"x{one}" for one in range(150)), "50 more errors were truncated"),
        (f"x == '{'a' * 20_000}'", "undeclared reference to 'x'"),
        (f"device.driver.find('{nested('(', 'a', ')', 1000)}') == ''", "expression nests too deeply"),
        ("&& " * 3000, "Syntax error: mismatched input '&&'"),
    ],
)
def test_what_is_too_deep_or_too_large_is_refused(expression: str, words: str) -> None:
    with pytest.raises(cel.CompileError) as refused:
        cel.compile(expression)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (bound("{} + {}", "a119 == a119"), "a list of more than 100000 items"),
        (bound("dyn([{}, {}])", "a119.flatten(120) == [1]"), "a list of more than 100000 items"),
        (
            bound("dyn([{}, {}])", "'%s'.format([a119]) == ''"),
            "format makes a text of more than 1000000 characters",
        ),
    ],
)
def test_what_would_fill_the_memory_is_given_up_and_the_reason_says_so(expression: str, words: str) -> None:
    program = cel.compile(expression)
    with pytest.raises(cel.EvaluationError, match=words):
        program.matches(SUBJECT)
    assert cel.why_not(program, SUBJECT).error == words


def test_a_call_raises_where_it_was_called() -> None:
    def inner() -> Task[int]:
        yield from ()
        raise KeyError("inner")

    def outer() -> Task[str]:
        try:
            yield inner()
        except KeyError as error:
            return f"caught {error}"
        return "nothing raised"

    assert deep.run(outer()) == "caught 'inner'"
    with pytest.raises(KeyError):
        deep.run(inner())
