"""What an object breaks in a structural schema, as far as ours use it: types, required, limits, and what is pruned."""

import re
from collections.abc import Iterator

from jackfield.codec import Raw
from jackfield.codec.wire import RawValue

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
KNOWN = {
    "type",
    "format",
    "description",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "default",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
}


def faults(value: RawValue, schema: Raw, path: str = "") -> Iterator[str]:
    """Yield what is wrong with a value, and what of it would be lost."""
    if not isinstance(value, TYPES[schema["type"]]) or (
        schema["type"] == "integer" and isinstance(value, bool)
    ):
        yield f"{path}: no {schema['type']}"
        return
    match value:
        case dict():
            yield from _object(value, schema, path)
        case list():
            for item in value:
                yield from faults(item, schema["items"], f"{path}[]")
        case _:
            yield from _scalar(value, schema, path)


def _object(value: Raw, schema: Raw, path: str) -> Iterator[str]:
    if path == "metadata":
        return
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name}: required".lstrip(".")
    for name, item in value.items():
        inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        place = f"{path}.{name}".lstrip(".")
        if inner is None:
            yield f"{place}: pruned"
        else:
            yield from faults(item, inner, place)


def _scalar(value: RawValue, schema: Raw, path: str) -> Iterator[str]:
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} not in enum"
    if isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{path}: {value!r} does not match"
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            yield f"{path}: length {len(value)}"
    elif not isinstance(value, bool) and value < schema.get("minimum", value):
        yield f"{path}: {value} is too small"


def inside(schema: Raw, path: str = "") -> Iterator[tuple[str, Raw]]:
    """Yield every schema in a schema with its path, itself first."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from inside(inner, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from inside(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from inside(schema["additionalProperties"], f"{path}{{}}")
