"""A label selector that cannot be read is refused in the API server's words, and one that can means what it says.

The words are those of a real server: `tests/real/test_kubectl.py` asks it some of them.
"""

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.label_selectors import Requirement, parsed

MEANT: dict[str, tuple[tuple[str, ...], ...]] = {
    "": (),
    "a": (("a", "exists"),),
    " ! a ,b": (("a", "!"), ("b", "exists")),
    "a=": (("a", "=", ""),),
    "a==b,c!=d": (("a", "=", "b"), ("c", "!=", "d")),
    "in in (in,notin)": (("in", "in", "in", "notin"),),
    "a notin(b)": (("a", "notin", "b"),),
    "a in ()": (("a", "in", ""),),
    "a in (,b,)": (("a", "in", "", "b", ""),),
    "a>-3,b<7": (("a", ">", "-3"), ("b", "<", "7")),
    "example.com/a=b-1_2.x": (("example.com/a", "=", "b-1_2.x"),),
}


@pytest.mark.parametrize(("text", "meant"), MEANT.items(), ids=MEANT)
def test_a_selector_means_what_it_says(text: str, meant: tuple[tuple[str, ...], ...]) -> None:
    assert parsed(text) == tuple(Requirement(key, how, tuple(values)) for key, how, *values in meant)


OPERATORS = "in, notin, =, ==, !=, gt, lt"
WRONG = {
    "a in": "unable to parse requirement: found '' expected: '('",
    "a in b": "unable to parse requirement: found 'b' expected: '('",
    "a in (b": "unable to parse requirement: found '', expected: ',' or ')'",
    "=x": "found '=', expected: !, identifier, or 'end of string'",
    "a b": f"unable to parse requirement: found 'b', expected: {OPERATORS}",
    "a!b": f"unable to parse requirement: found '!', expected: {OPERATORS}",
    "a,,b": "found ',', expected: identifier after ','",
    "a,": "found '', expected: identifier after ','",
    "a,(": "found '(', expected: identifier after ','",
    "!": "unable to parse requirement: found '', expected: identifier",
    "a=b=c": "found '=', expected: ',' or 'end of string'",
    "a=!b": "unable to parse requirement: found '!', expected: identifier",
    "a>x": 'unable to parse requirement: values[0]: Invalid value: "x": '
    "for 'Gt', 'Lt' operators, the value must be an integer",
}


@pytest.mark.parametrize(("text", "words"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_read_is_refused_with_what_was_found(text: str, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        parsed(text)
    assert (caught.value.code, caught.value.message) == (400, words)
