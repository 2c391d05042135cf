"""Reads a `cel.expr.CheckedExpr` off protobuf's wire.

Knows field numbers. Must not know what a node means. Written out instead of generated, as no package carries these
messages and they are all that would be needed of protoc.
"""

import struct
from collections.abc import Iterator
from typing import Final

from jackfield.core.cel.syntax import (
    DYN,
    Call,
    Checked,
    Comprehension,
    Const,
    Entry,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
    Type,
)
from jackfield.core.cel.values import UInt

Field = tuple[int, "bytes | int"]

_PRIMITIVES: Final = ("", "bool", "int", "uint", "double", "string", "bytes")
_WELL_KNOWN: Final = ("", "any", "timestamp", "duration")
_SIGN: Final = 1 << 63
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read(source: str, serialized: bytes) -> Checked:
    """Return the expression that a serialized `Any` around a `CheckedExpr` holds."""
    body = _last(serialized, 2)
    types: dict[int, Type] = {}
    overloads: dict[int, tuple[str, ...]] = {}
    positions: dict[int, int] = {}
    expr: Expr | None = None
    for number, value in _fields(body):
        match number, value:
            case 2, bytes():
                overloads[_int(value, 1)] = tuple(_text(one) for one in _all(_last(value, 2), 3))
            case 3, bytes():
                types[_int(value, 1)] = _type(_last(value, 2))
            case 4, bytes():
                expr = _expr(value)
            case 5, bytes():
                positions = {_int(entry, 1): _int(entry, 2) for entry in _all(value, 4)}
            case _:
                pass
    assert expr is not None, "a checked expression has a root"
    return Checked(source, expr, types, overloads, positions)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[Field]:
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        else:
            size = {_FIXED64: 8, _FIXED32: 4}[kind]
        yield tag >> 3, data[at : at + size]
        at += size


def _all(data: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in _fields(data) if number == wanted and isinstance(value, bytes)]


def _last(data: bytes, wanted: int) -> bytes:
    found = _all(data, wanted)
    return found[-1] if found else b""


def _int(data: bytes, wanted: int) -> int:
    return next((value for number, value in _fields(data) if number == wanted and isinstance(value, int)), 0)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _signed(value: int) -> int:
    return value - (_SIGN << 1) if value >= _SIGN else value


def _type(data: bytes) -> Type:  # noqa: PLR0911, PLR0912, C901 - one arm per kind of type
    for number, value in _fields(data):
        match number, value:
            case 1, _:
                return DYN
            case 2, _:
                return Type("null_type")
            case 3, int():
                return Type(_PRIMITIVES[value])
            case 4, int():
                return Type("wrapper", (Type(_PRIMITIVES[value]),))
            case 5, int():
                return Type(_WELL_KNOWN[value])
            case 6, bytes():
                return Type("list", (_type(_last(value, 1)),))
            case 7, bytes():
                return Type("map", (_type(_last(value, 1)), _type(_last(value, 2))))
            case 9, bytes():
                return Type(_text(value))
            case 10, bytes():
                return Type(f"~{_text(value)}")
            case 11, bytes():
                return Type("type", (_type(value),) if value else ())
            case 14, bytes():
                return Type(_text(_last(value, 1)), tuple(_type(one) for one in _all(value, 2)))
            case _:
                pass
    return DYN


def _expr(data: bytes) -> Expr:
    node = 0
    for number, value in _fields(data):
        match number, value:
            case 2, int():
                node = value
            case 3, bytes():
                return Const(node, _constant(value))
            case 4, bytes():
                return Ident(node, _text(_last(value, 1)))
            case 5, bytes():
                return Select(node, _expr(_last(value, 1)), _text(_last(value, 2)), bool(_int(value, 3)))
            case 6, bytes():
                return _call(node, value)
            case 7, bytes():
                return ListExpr(node, tuple(_expr(one) for one in _all(value, 1)), _packed(value, 2))
            case 8, bytes():
                return _struct(node, value)
            case 9, bytes():
                return _comprehension(node, value)
            case _:
                pass
    return Const(node, None)


def _constant(data: bytes) -> Literal:
    for number, value in _fields(data):
        match number, value:
            case 2, int():
                return bool(value)
            case 3, int():
                return _signed(value)
            case 4, int():
                return UInt(value)
            case 5, bytes():
                return float(struct.unpack("<d", value)[0])
            case 6, bytes():
                return _text(value)
            case 7, bytes():
                return value
            case _:
                pass
    return None


def _call(node: int, data: bytes) -> Call:
    targets = _all(data, 1)
    target = _expr(targets[-1]) if targets else None
    return Call(node, _text(_last(data, 2)), target, tuple(_expr(one) for one in _all(data, 3)))


def _struct(node: int, data: bytes) -> MapExpr | Message:
    entries = _all(data, 2)
    name = _text(_last(data, 1))
    if name:
        return Message(node, name, tuple(_expr(_last(entry, 4)) for entry in entries))
    return MapExpr(
        node,
        tuple(
            Entry(_int(entry, 1), _expr(_last(entry, 3)), _expr(_last(entry, 4)), bool(_int(entry, 5)))
            for entry in entries
        ),
    )


def _comprehension(node: int, data: bytes) -> Comprehension:
    parts = {number: value for number, value in _fields(data) if isinstance(value, bytes)}
    return Comprehension(
        node,
        iter_var=_text(parts.get(1, b"")),
        iter_var2=_text(parts.get(8, b"")),
        range=_expr(parts.get(2, b"")),
        accu_var=_text(parts.get(3, b"")),
        init=_expr(parts.get(4, b"")),
        condition=_expr(parts.get(5, b"")),
        step=_expr(parts.get(6, b"")),
        result=_expr(parts.get(7, b"")),
    )


def _packed(data: bytes, wanted: int) -> tuple[int, ...]:
    found: list[int] = []
    for number, value in _fields(data):
        if number != wanted:
            continue
        if isinstance(value, int):
            found.append(value)
            continue
        at = 0
        while at < len(value):
            one, at = _varint(value, at)
            found.append(one)
    return tuple(found)
