"""What is written in the file is what OpenAPI said, and Go's names are guessed as Go makes them."""

import pytest

from jackfield.cluster.schema import notation
from jackfield.codec import Raw, RawValue

PACKAGE = "io.k8s.api.core.v1"
REF = "#/components/schemas/"

FIELDS = [
    ({"type": "string"}, "string"),
    ({"type": "string", "default": ""}, "string="),
    ({"type": "string", "default": "TCP"}, {"is": "string", "default": "TCP"}),
    ({"type": "integer", "format": "int32"}, "integer:int32"),
    ({"type": "integer", "format": "int32", "default": 0}, "integer:int32="),
    ({"type": "boolean", "default": False}, "boolean="),
    ({"type": "boolean", "default": True}, {"is": "boolean", "default": True}),
    ({"type": "string", "enum": ["A", "B"]}, {"is": "string", "enum": ["A", "B"]}),
    ({"allOf": [{"$ref": f"{REF}{PACKAGE}.PodSpec"}], "default": {}}, "#PodSpec="),
    ({"allOf": [{"$ref": f"{REF}io.k8s.other.v1.Spec"}]}, "#io.k8s.other.v1.Spec"),
    ({"type": "array", "items": {"type": "string", "default": ""}}, "[]string="),
    (
        {"type": "array", "items": {"type": "string", "enum": ["A"]}, "x-kubernetes-list-type": "atomic"},
        {"is": "[]", "of": {"is": "string", "enum": ["A"]}, "list-type": "atomic"},
    ),
    ({"type": "object", "additionalProperties": {"type": "string"}}, "{}string"),
    (
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        "{}[]string",
    ),
    (
        {
            "type": "array",
            "items": {"type": "integer", "format": "int64"},
            "x-kubernetes-patch-strategy": "merge",
        },
        {"is": "[]integer:int64", "patch-strategy": "merge"},
    ),
    ({"type": "number", "format": "double"}, "number:double"),
]


@pytest.mark.parametrize(("schema", "short"), FIELDS)
def test_a_field_is_shortened_and_comes_back_as_it_was(schema: Raw, short: RawValue) -> None:
    whole = {"type": "object", "properties": {"a": schema}}
    entry = notation.shortened(whole, PACKAGE)
    assert entry == {"fields": {"a": short}}
    assert notation.expanded(entry, PACKAGE) == whole


def test_a_type_keeps_what_is_said_of_it_as_a_whole() -> None:
    whole: Raw = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "A", "version": "v1"}],
    }
    entry = notation.shortened(whole, PACKAGE)
    assert sorted(entry) == ["fields", "group-version-kind", "map-type", "required"]
    assert notation.expanded(entry, PACKAGE) == whole


def test_what_go_calls_fields_is_no_part_of_openapi() -> None:
    entry = {"fields": {"a": "string"}, "go": {"a": "v1.A"}, "embedded": {"B": ["a"]}}
    assert notation.expanded(entry, PACKAGE) == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_type_without_fields_is_kept_whole() -> None:
    leaf: Raw = {"type": "string", "format": "date-time"}
    assert notation.expanded(notation.shortened(leaf, PACKAGE), PACKAGE) == leaf


@pytest.mark.parametrize("schema", [{}, {"oneOf": [{"type": "string"}]}])
def test_a_field_for_which_there_is_no_word_is_not_written(schema: Raw) -> None:
    with pytest.raises(ValueError, match="no word"):
        notation.shortened({"properties": {"a": schema}}, PACKAGE)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("string", "string"),
        ("string:byte", "[]uint8"),
        ("boolean", "bool"),
        ("integer:int32", "int32"),
        ("integer:int64", "int64"),
        ("number:double", "float64"),
        ("[]string", "[]string"),
        ("{}string", "map[string]string"),
        ("{}[]string", "map[string][]string"),
        ("#Container", "v1.Container"),
        ("[]#Container=", "[]v1.Container"),
        ("#io.k8s.apimachinery.pkg.api.resource.Quantity", "resource.Quantity"),
        ("object", "interface {}"),
    ],
)
def test_go_types_are_guessed_from_schemas(word: str, expected: str) -> None:
    schema = notation.expanded({"fields": {"a": word}}, PACKAGE)["properties"]["a"]
    assert notation.go_type(schema) == expected
