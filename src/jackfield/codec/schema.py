"""OpenAPI schemas of the model's types, as a CustomResourceDefinition wants them.

Knows how a type becomes a structural schema, and asks a table for what types do not say: descriptions, limits, rules.
Must not know any kind.
"""

from collections.abc import Mapping

import msgspec

from jackfield.codec.wire import Raw, RawValue


class Field(msgspec.Struct, frozen=True):
    """What a field's type does not say."""

    description: str
    required: bool = False
    limits: Mapping[str, RawValue] = {}
    """What else its schema says: enum, pattern, minimum, default, rules."""
    loose: bool = False
    """Whether everything below is taken as it comes: a copy of what was judged where it stood first."""


class Words(msgspec.Struct, frozen=True):
    """What a type does not say: what it is, what of its fields, and what rules they keep together."""

    description: str
    fields: Mapping[str, Field]
    limits: Mapping[str, RawValue] = {}


Table = Mapping[type[msgspec.Struct], Words]


def rule(expression: str, message: str, **more: RawValue) -> Raw:
    """Return a validation in CEL."""
    return {"rule": expression, "message": message, **more}


def schema(kind: type[msgspec.Struct], table: Table, *, loose: bool = False) -> Raw:
    """Return the schema of a type; every field must be in the table."""
    words = table[kind]
    properties: Raw = {}
    required: list[str] = []
    for field in msgspec.structs.fields(kind):
        said = words.fields[field.name]
        free = loose or said.loose
        inner = _schema(msgspec.inspect.type_info(field.type), table, loose=free)
        properties[field.encode_name] = {
            **inner,
            "description": said.description,
            **(_defaults(said.limits) if free else said.limits),
        }
        if said.required and not loose:
            required.append(field.encode_name)
    whole: Raw = {"type": "object", "description": words.description, "properties": properties}
    if required:
        whole["required"] = required
    return whole if loose else {**whole, **words.limits}


def _defaults(limits: Mapping[str, RawValue]) -> Raw:
    return {name: value for name, value in limits.items() if name == "default"}


def _schema(info: msgspec.inspect.Type, table: Table, *, loose: bool) -> Raw:
    match info:
        case msgspec.inspect.StrType() | msgspec.inspect.EnumType():
            # An enum is closed only where the table says so: another writer's states are taken as they are.
            return {"type": "string"}
        case msgspec.inspect.BoolType():
            return {"type": "boolean"}
        case msgspec.inspect.IntType():
            return {"type": "integer", "format": "int64"}
        case msgspec.inspect.StructType(cls=struct):
            return schema(struct, table, loose=loose)
        case msgspec.inspect.VarTupleType(item_type=item):
            return {"type": "array", "items": _schema(item, table, loose=loose)}
        case msgspec.inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, table, loose=loose)}
        case msgspec.inspect.UnionType(types=types):
            (one,) = (each for each in types if not isinstance(each, msgspec.inspect.NoneType))
            return _schema(one, table, loose=loose)
        case _:
            raise TypeError(f"no schema for {info}")
