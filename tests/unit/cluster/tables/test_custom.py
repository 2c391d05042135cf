"""Custom resources are shown by the columns of their definition."""

import pytest

from jackfield.cluster.tables import custom
from jackfield.codec import Raw, RawValue
from jackfield.model.names import Seconds, rfc3339

NOW = Seconds(1.8e9)
THEN = rfc3339(Seconds(NOW - 60))


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (".a", ("a",)),
        (".spec.a_b", ("spec", "a_b")),
        (r".metadata.annotations.example\.com/a", ("metadata", "annotations", "example.com/a")),
        (".a['b.c'].d", ("a", "b.c", "d")),
        (".a[0][-1]", ("a", 0, -1)),
    ],
)
def test_a_path_is_a_row_of_steps(text: str, steps: tuple[str | int, ...]) -> None:
    assert custom.path(text) == steps


@pytest.mark.parametrize("text", ["", "a", ".", "..a", ".a[*]", ".a[?(@.b)]", ".a[0", ".a."])
def test_a_path_that_is_not_simple_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no simple path"):
        custom.path(text)


def cell(kind: str, path: str, spec: RawValue) -> RawValue:
    printer = custom.printer([{"name": "C", "type": kind, "jsonPath": path}])
    one: Raw = {"metadata": {"name": "o", "creationTimestamp": THEN}, "spec": spec}
    name, found = printer.row(one, NOW)["cells"]
    assert name == "o"
    return found


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "", ""),
        ("string", "a", "a"),
        ("string", True, "true"),
        ("string", 5, "5"),
        ("string", {"b": [1, "x"], "a": None}, '{"a":null,"b":[1,"x"]}'),
        ("integer", 5, 5),
        ("integer", 5.9, 5),
        ("integer", -5.9, -5),
        ("integer", "5", None),
        ("integer", True, None),
        ("number", 5, 5),
        ("number", 2.5, 2.5),
        ("number", True, None),
        ("number", "5", None),
        ("boolean", True, True),
        ("boolean", 1, None),
        ("boolean", "true", None),
        ("date", THEN, "60s"),
        ("date", "", "<unknown>"),
        ("date", "tomorrow", "<invalid>"),
        ("date", 5, None),
        ("integer", None, None),
        ("date", None, None),
        ("string", None, "<no value>"),
    ],
)
def test_a_value_is_shown_if_it_is_of_its_columns_type(
    kind: str, value: RawValue, expected: RawValue
) -> None:
    found = cell(kind, ".spec.a", {"a": value})
    assert type(found) is type(expected)
    assert found == expected


@pytest.mark.parametrize(
    ("path", "spec", "expected"),
    [
        (".spec.a", {}, None),
        (".spec.a.b", {}, None),
        (".spec.a.b", {"a": "text"}, None),
        (".spec.a.b", {"a": None}, None),
        (".spec.a.b", {"a": {"b": "x"}}, "x"),
        (".spec.a[0]", {"a": ["x", "y"]}, "x"),
        (".spec.a[-1]", {"a": ["x", "y"]}, "y"),
        (".spec.a[-2]", {"a": ["x", "y"]}, "x"),
        (".spec.a[2]", {"a": ["x", "y"]}, None),
        (".spec.a[-3]", {"a": ["x", "y"]}, None),
        (".spec.a[0]", {"a": "text"}, None),
        (".spec.a[0]", {"a": {"0": "x"}}, None),
        (r".spec.a\.b", {"a": {"b": "x"}, "a.b": "y"}, "y"),
        (".spec['a.b']", {"a.b": "y"}, "y"),
    ],
)
def test_what_is_missing_on_the_way_leaves_the_cell_empty(path: str, spec: Raw, expected: RawValue) -> None:
    assert cell("string", path, spec) == expected


def test_a_column_keeps_its_priority_and_format() -> None:
    described = {"name": "C", "type": "integer", "format": "int32", "jsonPath": ".a", "priority": 2}
    assert custom.printer([described]).head == [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "C", "type": "integer", "format": "int32", "description": "", "priority": 2},
    ]


def test_a_definition_without_columns_shows_the_age() -> None:
    printer = custom.printer([])
    assert [(one["name"], one["type"]) for one in printer.head] == [("Name", "string"), ("Age", "date")]
    assert printer.row({"metadata": {"name": "o", "creationTimestamp": THEN}}, NOW) == {"cells": ["o", "60s"]}
