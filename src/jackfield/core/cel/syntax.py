"""A checked expression as a frozen value: the seam between whoever parses and all who read.

Knows nodes, types and positions. Must not know how they were made or what becomes of them.
"""

from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

Literal = None | bool | int | float | str | bytes
"""The value of a literal; an unsigned one is a `values.UInt`."""


class Type(msgspec.Struct, frozen=True):
    """A static type. Type parameters have names that begin with `~`."""

    name: str
    params: tuple["Type", ...] = ()


DYN: Final = Type("dyn")
ANY: Final = Type("any")
BOOL: Final = Type("bool")
INT: Final = Type("int")
STRING: Final = Type("string")


class Const(msgspec.Struct, frozen=True):
    """A literal."""

    id: int
    value: Literal


class Ident(msgspec.Struct, frozen=True):
    """A variable, or a type by its name."""

    id: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`, or `has(operand.field)`."""

    id: int
    operand: "Expr"
    field: str
    test: bool = False


class Call(msgspec.Struct, frozen=True):
    """A function; `target` is None unless it is called as a member."""

    id: int
    function: str
    target: "Expr | None"
    args: tuple["Expr", ...]

    @property
    def operands(self) -> tuple["Expr", ...]:
        """Target and arguments, as one list."""
        return self.args if self.target is None else (self.target, *self.args)


class ListExpr(msgspec.Struct, frozen=True):
    """`[a, ?b]`; `optional` holds the indices of the items with a question mark."""

    id: int
    items: tuple["Expr", ...]
    optional: tuple[int, ...] = ()


class Entry(msgspec.Struct, frozen=True):
    """One `key: value` of a map."""

    id: int
    key: "Expr"
    value: "Expr"
    optional: bool = False


class MapExpr(msgspec.Struct, frozen=True):
    """`{key: value}`."""

    id: int
    entries: tuple[Entry, ...]


class Field(msgspec.Struct, frozen=True):
    """One `field: value` of a message."""

    id: int
    name: str
    value: "Expr"
    optional: bool = False


class Message(msgspec.Struct, frozen=True):
    """`Name{field: value}`."""

    id: int
    name: str
    fields: tuple[Field, ...]


class Comprehension(msgspec.Struct, frozen=True):
    """A loop, as macros expand to it."""

    id: int
    iter_var: str
    iter_var2: str
    range: "Expr"
    accu_var: str
    init: "Expr"
    condition: "Expr"
    step: "Expr"
    result: "Expr"


Expr = Const | Ident | Select | Call | ListExpr | MapExpr | Message | Comprehension


class Checked(msgspec.Struct, frozen=True):
    """An expression that passed the type checker."""

    source: str
    expr: Expr
    types: Mapping[int, Type]
    overloads: Mapping[int, tuple[str, ...]]
    positions: Mapping[int, int]
    """Where each node is, in characters from the start."""

    def type_of(self, expr: Expr) -> Type:
        """Return the static type of a node; what the checker left open is dyn."""
        return self.types.get(expr.id, DYN)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the nodes directly below."""
    match expr:
        case Const() | Ident():
            return ()
        case Select(operand=operand):
            return (operand,)
        case Call():
            return expr.operands
        case ListExpr(items=items):
            return items
        case MapExpr(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case Message(fields=fields):
            return tuple(field.value for field in fields)
        case Comprehension():
            return (expr.range, expr.init, expr.condition, expr.step, expr.result)
        case _ as never:
            assert_never(never)


def depth(expr: Expr) -> int:
    """Return how many nodes stand one below the other at most."""
    deepest, waiting = 0, [(expr, 1)]
    while waiting:
        node, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((child, level + 1) for child in children(node))
    return deepest


def walk(expr: Expr) -> tuple[Expr, ...]:
    """Return the node and all below it, in the order in which they are written."""
    found: list[Expr] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(reversed(children(node)))
    return tuple(found)
