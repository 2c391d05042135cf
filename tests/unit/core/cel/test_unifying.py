"""Types go together as in Kubernetes, and what that says of type parameters is remembered."""

import pytest

from jackfield.core.cel.declarations import type_of
from jackfield.core.cel.syntax import DYN, Type
from jackfield.core.cel.unify import Bindings, most_general, shown

X = type_of("X")


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("int", "int", True),
        ("int", "uint", False),
        ("int", "dyn", True),
        ("any", "list(int)", True),
        ("list(int)", "list(string)", False),
        ("list(int)", "map(int, int)", False),
        ("type(int)", "type(string)", True),
        ("null_type", "duration", True),
        ("Quantity", "null_type", True),
        ("null_type", "int", False),
        ("list(int)", "null_type", False),
        ("null_type", "wrapper(int)", True),
        ("wrapper(int)", "int", True),
        ("X", "list(X)", False),
        ("list(X)", "X", False),
        ("map(X, Y)", "map(Y, list(X))", False),
        ("map(X, X)", "map(int, string)", False),
        ("map(X, X)", "map(int, dyn)", True),
    ],
)
def test_these_go_together_or_not(one: str, other: str, together: bool) -> None:  # noqa: FBT001 - a table
    assert Bindings().assignable(type_of(one), type_of(other)) is together


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        ((("X", "int"),), "int"),
        ((("X", "int"), ("X", "dyn")), "dyn"),
        ((("X", "dyn"), ("X", "int")), "dyn"),
        ((("X", "list(Y)"), ("Y", "int")), "list(int)"),
        ((("X", "list(dyn)"), ("list(X)", "X")), "dyn"),
    ],
)
def test_a_parameter_stands_for_the_widest_it_met(pairs: tuple[tuple[str, str], ...], found: str) -> None:
    bindings = Bindings()
    for one, other in pairs:
        assert bindings.assignable(type_of(one), type_of(other))
    assert bindings.resolved(X) == type_of(found)


def test_what_does_not_go_together_leaves_nothing_behind() -> None:
    bindings = Bindings()
    assert not bindings.all_assignable((X, Type("int")), (Type("int"), Type("string")))
    assert not bindings.all_assignable((X,), ())
    assert bindings.resolved(X) == X
    assert bindings.resolved(X, closed=True) == DYN


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("int", "dyn", "dyn"),
        ("dyn", "int", "dyn"),
        ("list(X)", "list(int)", "list(X)"),
        ("list(int)", "list(X)", "list(X)"),
        ("map(int, dyn)", "map(int, int)", "map(int, dyn)"),
        ("map(int, int)", "map(dyn, int)", "map(dyn, int)"),
        ("type(int)", "type(string)", "type(int)"),
        ("int", "wrapper(int)", "int"),
        ("int", "string", "string"),
    ],
)
def test_the_more_general_of_two(one: str, other: str, found: str) -> None:
    assert most_general(type_of(one), type_of(other)) == type_of(found)


def test_a_type_is_shown_as_kubernetes_shows_it() -> None:
    assert shown(type_of("map(X, null_type)")) == "map(X, null)"
