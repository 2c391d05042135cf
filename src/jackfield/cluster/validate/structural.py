"""What is wrong with a custom resource by its schema.

Knows structural schemas, as far as our definitions use them, and the API server's words for each keyword. Must not know
any kind, nor evaluate rules.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.codec import Raw, RawValue
from jackfield.core.cel.quoting import quoted

ROOT: Final = "<nil>"
"""How the API server spells the field of what is wrong with an object as a whole."""
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
"""Reasons for which the rules of a definition are not even looked at."""
_UNCHECKED: Final = Cause(
    ROOT,
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation",
)


def problems(schema: Raw, value: RawValue, field: str = "") -> Iterator[Cause]:
    """Yield what is wrong with a value, in the order of the schema."""
    kind = schema.get("type", "")
    found = _type(value)
    if kind and found != kind and (kind, found) != ("number", "integer"):
        yield errors.invalid_type(field, found, f"{field} in body must be of type {kind}: {quoted(found)}")
        return
    match value:
        case dict():
            yield from _object(schema, value, field)
        case list():
            for index, one in enumerate(value):
                yield from problems(schema.get("items", {}), one, f"{field}[{index}]")
        case str():
            yield from _text(schema, value, field)
        case _:
            yield from _number(schema, value, field)


def with_rules(wrong: Iterable[Cause], rules: Iterable[Cause]) -> Iterator[Cause]:
    """Yield what is wrong by the schema, then by the rules; these are left out where the schema finds it hopeless."""
    found = tuple(wrong)
    yield from found
    if any(one.reason in _BLOCKING for one in found):
        yield _UNCHECKED
    else:
        yield from rules


def _object(schema: Raw, value: Raw, field: str) -> Iterator[Cause]:
    prefix = f"{field}." if field else ""
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for name in sorted(value.keys() - properties.keys()):
            yield from problems(others, value[name], f"{prefix}{name}")
    for name, inner in properties.items():
        if name in value:
            yield from problems(inner, value[name], f"{prefix}{name}")
    for name in schema.get("required", ()):
        if name not in value:
            yield errors.required(f"{prefix}{name}")


def _text(schema: Raw, value: str, field: str) -> Iterator[Cause]:
    if "enum" in schema and value not in schema["enum"]:
        yield errors.unsupported(field, value, schema["enum"])
    if len(value) > schema.get("maxLength", len(value)):
        yield errors.too_long(field, schema["maxLength"])
    least = schema.get("minLength", 0)
    if len(value) < least:
        yield errors.invalid_value(field, value, f"{field} in body should be at least {least} chars long")
    if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        yield errors.invalid_value(field, value, f"{field} in body should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not _is_time(value):
        words = f"{field} in body must be of type date-time: {quoted(value)}"
        yield errors.invalid_type(field, value, words)


def _number(schema: Raw, value: RawValue, field: str) -> Iterator[Cause]:
    if "minimum" in schema and value < schema["minimum"]:
        words = f"{field} in body should be greater than or equal to {schema['minimum']}"
        yield errors.invalid_value(field, value, words)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # For Python a line's end before the text's is an end as well; for Go it is not.
    return re.compile(text.replace("$", r"\Z"), re.ASCII)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _type(value: RawValue) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"
