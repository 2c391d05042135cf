"""Checked expressions are read off the wire: all kinds of types and nodes, and nothing is lost to what is new."""

import struct

import pytest

from jackfield.core.cel import wire
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
    MapExpr,
    Message,
    Select,
    Type,
)
from jackfield.core.cel.values import UInt

NEWER = 99
"""The number of a field that nobody knows yet."""


def varint(value: int) -> bytes:
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def part(field: int, value: bytes | str = b"") -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(content)) + content


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<d", value)


def fixed32(field: int) -> bytes:
    return varint(field << 3 | 5) + bytes(4)


def ident(name: str) -> bytes:
    return part(4, part(1, name))


def read(expr: bytes = b"", *, static: bytes = b"", more: bytes = b"") -> Checked:
    types = part(3, number(1, 7) + part(2, static))
    return wire.read("source", part(1, "type.googleapis.com/x") + part(2, more + types + part(4, expr)))


@pytest.mark.parametrize(
    ("static", "found"),
    [
        (part(1), DYN),
        (number(2, 0), Type("null_type")),
        (number(3, 2), Type("int")),
        (number(4, 5), Type("wrapper", (Type("string"),))),
        (number(5, 1), Type("any")),
        (number(5, 3), Type("duration")),
        (part(6, part(1, number(3, 1))), Type("list", (Type("bool"),))),
        (part(7, part(1, number(3, 5)) + part(2, part(1))), Type("map", (Type("string"), DYN))),
        (part(9, "kubernetes.DRADevice"), Type("kubernetes.DRADevice")),
        (part(10, "T"), Type("~T")),
        (part(11, number(3, 2)), Type("type", (Type("int"),))),
        (part(11), Type("type")),
        (
            part(14, part(1, "optional_type") + part(2, number(3, 2))),
            Type("optional_type", (Type("int"),)),
        ),
        (part(NEWER, "x") + number(3, 2), Type("int")),
        (part(NEWER, "x"), DYN),
        (b"", DYN),
    ],
)
def test_a_type_is_read(static: bytes, found: Type) -> None:
    assert read(static=static).types == {7: found}


X, Y = ident("x"), ident("y")
READ_X, READ_Y = Ident(0, "x"), Ident(0, "y")


@pytest.mark.parametrize(
    ("expr", "found"),
    [
        (part(3, number(2, 1)), Const(5, value=True)),
        (part(3, number(3, 2**64 - 2)), Const(5, -2)),
        (part(3, number(4, 2**64 - 1)), Const(5, UInt(2**64 - 1))),
        (part(3, double(5, 1.5)), Const(5, 1.5)),
        (part(3, part(6, "é")), Const(5, "é")),
        (part(3, part(7, b"\xff")), Const(5, b"\xff")),
        (part(3, number(1, 0)), Const(5, None)),
        (part(3, fixed32(NEWER) + number(3, 1)), Const(5, 1)),
        (ident("device"), Ident(5, "device")),
        (part(5, part(1, X) + part(2, "f")), Select(5, READ_X, "f")),
        (part(5, part(1, X) + part(2, "f") + number(3, 1)), Select(5, READ_X, "f", test=True)),
        (part(6, part(2, "f") + part(3, X) + part(3, Y)), Call(5, "f", None, (READ_X, READ_Y))),
        (part(6, part(1, X) + part(2, "f")), Call(5, "f", READ_X, ())),
        (part(7, part(1, X) + part(1, Y)), ListExpr(5, (READ_X, READ_Y))),
        (part(7, part(1, X) + part(1, Y) + part(2, b"\x00\x01")), ListExpr(5, (READ_X, READ_Y), (0, 1))),
        (part(7, part(1, X) + number(2, 0)), ListExpr(5, (READ_X,), (0,))),
        (
            part(8, part(2, number(1, 6) + part(3, X) + part(4, Y) + number(5, 1))),
            MapExpr(5, (Entry(6, READ_X, READ_Y, optional=True),)),
        ),
        (part(8, part(1, "m") + part(2, part(4, X))), Message(5, "m", (READ_X,))),
        (
            part(
                9,
                part(1, "i")
                + part(8, "v")
                + part(2, X)
                + part(3, "r")
                + b"".join(part(at, Y) for at in (4, 5, 6, 7)),
            ),
            Comprehension(5, "i", "v", READ_X, "r", READ_Y, READ_Y, READ_Y, READ_Y),
        ),
        (part(NEWER, "x") + X, Ident(5, "x")),
        (b"", Const(5, None)),
    ],
)
def test_a_node_is_read(expr: bytes, found: Expr) -> None:
    read_back = read(number(2, 5) + expr).expr
    assert read_back == found
    assert not isinstance(found, Const) or type(found.value) is type(getattr(read_back, "value", ()))


def test_what_the_checker_found_out_is_read() -> None:
    overloads = part(2, number(1, 3) + part(2, part(1, "f") + part(3, "f_int") + part(3, "f_string")))
    places = part(5, part(4, number(1, 3) + number(2, 300)) + part(4, number(1, 4)))
    checked = read(X, more=overloads + places + part(NEWER, "x"))
    assert checked.overloads == {3: ("f_int", "f_string")}
    assert checked.positions == {3: 300, 4: 0}
    assert checked.source == "source"
