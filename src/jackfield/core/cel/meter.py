"""Counts what an evaluation costs while it runs, and stops it at the limit.

Only for expressions whose estimate is above the limit: the API server refuses those, but a scheduler may meet one
that is stored already, and no expression may hold it up. Knows prices. Must not know devices.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from jackfield.core.cel.conversions import CONVERSIONS
from jackfield.core.cel.evaluate import evaluate
from jackfield.core.cel.faults import PanicError
from jackfield.core.cel.operand import Node
from jackfield.core.cel.prices import PRICED, price
from jackfield.core.cel.sizes import TRAVERSAL, exactly
from jackfield.core.cel.syntax import (
    Call,
    Checked,
    Const,
    Expr,
    Ident,
    ListExpr,
    MapExpr,
    Message,
    Select,
    Type,
    children,
    walk,
)
from jackfield.core.cel.values import type_name

_ACCESS: Final = ("_[_]", "_[?_]", "_?._")
_UNPRICED: Final = (*_ACCESS, "cel.@mapInsert")
"""Calls that cost nothing beside what `_fixed` says."""
_COUNTED: Final = ("lists.range", "flatten")
"""What pays for a number that it is given."""
_SORTS: Final = ("sort", "@sortByAssociatedKeys")
_SCANS: Final = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
_LIST, _MAP, _MESSAGE = 10, 30, 40


class Meter:
    """Pays for the evaluation of one expression."""

    def __init__(self, expr: Expr, limit: int) -> None:
        self.spent = 0
        self._limit = limit
        self._folded = _folded(expr)

    def visit(self, expr: Expr) -> None:
        """Pay for a node; raises PanicError once the limit is passed."""
        self._pay(_fixed(expr))

    def call(self, expr: Call, args: Sequence[object]) -> None:
        """Pay for a call by the sizes of what it is given."""
        if expr.function not in _UNPRICED:
            self._pay(_price(expr.function, args))

    def is_free(self, expr: Expr) -> bool:
        """Whether a node was computed when the program was made."""
        return expr.id in self._folded

    def _pay(self, cost: int) -> None:
        self.spent += cost
        if self.spent > self._limit:
            raise PanicError("operation cancelled: actual cost limit exceeded")


def metered(checked: Checked, limit: int) -> Callable[[object], object]:
    """Return an expression as a function of a device that raises PanicError where it costs more than the limit."""
    return lambda subject: evaluate(checked, subject, Meter(checked.expr, limit))


def _folded(expr: Expr) -> frozenset[int]:
    """Return the nodes that Kubernetes computes when it makes a program of an expression."""
    found: set[int] = set()
    for node in reversed(walk(expr)):
        if _constant(node) and all(child.id in found for child in children(node)):
            found.add(node.id)
    return frozenset(found)


def _constant(expr: Expr) -> bool:
    match expr:
        case Const() | ListExpr(optional=()) | MapExpr():
            return True
        case Call(function=function):
            return function in CONVERSIONS
        case _:
            return False


def _fixed(expr: Expr) -> int:
    match expr:
        case Ident():
            return 1
        case Select(test=test):
            return 0 if test else _access(expr)
        case Call(function=function):
            return _access(expr) if function in _ACCESS else int(function == "@not_strictly_false")
        case ListExpr():
            return _LIST
        case MapExpr():
            return _MAP
        case Message():
            return _MESSAGE
        case _:
            return 0


def _access(expr: Select | Call) -> int:
    """Return the price of a step; the first one away from what is no variable costs double."""
    operand = expr.operand if isinstance(expr, Select) else expr.args[0]
    further = isinstance(operand, Ident | Select) or (
        isinstance(operand, Call) and operand.function in _ACCESS
    )
    return 1 if further else 2


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def _number(value: object) -> int:
    return value if type(value) is int else 0


def _traversal(value: object) -> int:
    match value:
        case str() | bytes():
            return int(len(value) * TRAVERSAL)
        case list():
            return sum(map(_traversal, value))
        case _:
            return 1


def _price(name: str, args: Sequence[object]) -> int:
    if name == "_+_":
        texts = all(isinstance(one, str | bytes) for one in args)
        return exactly(sum(map(_size, args))).times(TRAVERSAL).high if texts else 1
    if name in _SCANS:
        return _traversal(args[0])
    if name not in PRICED:
        return 1
    overload = "_".join((name, *map(type_name, args)))
    if name == "@in":
        overload = "in_list" if isinstance(args[1], list) else "in_map"
    if name in _SORTS and isinstance(args[-1], list) and args[-1]:
        overload = f"{name}_list({type_name(args[-1][0])})"
    counted = name in _COUNTED
    return _listed(
        name, overload, tuple((type_name(one), _size(one), _number(one) if counted else None) for one in args)
    )


@lru_cache(maxsize=4096)
def _listed(name: str, overload: str, args: tuple[tuple[str, int, int | None], ...]) -> int:
    nodes = [Node(Const(0, number), Type(static), None, exactly(size)) for static, size, number in args]
    return price(name, overload, nodes[0], nodes[1:]).cost.high
