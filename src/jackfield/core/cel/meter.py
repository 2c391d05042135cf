"""Counts what an evaluation costs while it runs, and stops it at the limit.

Only for expressions whose estimate is above the limit: the API server refuses those, but a scheduler may meet one
that is stored already, and no expression may hold it up. Knows prices. Must not know devices.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from jackfield.core.cel.conversions import CONVERSIONS
from jackfield.core.cel.faults import PanicError
from jackfield.core.cel.generate import Renderer, Scope
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
)
from jackfield.core.cel.values import type_name

_ACCESS: Final = ("_[_]", "_[?_]", "_?._")
_ACCESS_NAMES: Final = ("index", "optional_index")
_COUNTED: Final = ("lists.range", "flatten")
"""What pays for a number that it is given."""
_SCANS: Final = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
_LIST, _MAP, _MESSAGE = 10, 30, 40


class Meter:
    """What one evaluation has cost so far."""

    def __init__(self, limit: int) -> None:
        self.spent = 0
        self._limit = limit

    def pay(self, value: object, cost: int) -> object:
        """Return the value, paid for; raises PanicError once the limit is passed."""
        self.spent += cost
        if self.spent > self._limit:
            raise PanicError("operation cancelled: actual cost limit exceeded")
        return value

    def call(self, name: str, function: Callable[..., object], *args: object) -> object:
        """Return a function's answer, paid for by the sizes of what it was given."""
        # Paid in advance, so that nothing is made that cannot be paid.
        self.pay(None, _price(name, args))
        return function(*args)


def metered(checked: Checked, limit: int) -> Callable[[object], object]:
    """Return an expression as a function of a device that raises PanicError where it costs more than the limit."""
    meter = Meter(limit)
    evaluate = Metered(checked, meter).function()

    def run(subject: object) -> object:
        meter.spent = 0
        return evaluate(subject)

    return run


class Metered(Renderer):
    """Writes an expression so that it pays as it goes."""

    def __init__(self, checked: Checked, meter: Meter) -> None:
        super().__init__(checked, precise=True)
        self._folded_away = False
        self.names |= {"pay": meter.pay, "call": meter.call}

    def render(self, expr: Expr, scope: Scope) -> str:
        """Return a Python expression for a node, with its price."""
        if self._folded_away:
            return super().render(expr, scope)
        if _constant(expr):
            # Computed when the program was made, so it costs nothing now.
            self._folded_away = True
            text = super().render(expr, scope)
            self._folded_away = False
            return text
        text = super().render(expr, scope)
        cost = _fixed(expr)
        return f"pay({text}, {cost})" if cost else text

    def _folded(self, expr: Call) -> str:  # noqa: ARG002 - nothing is folded that has a price
        return ""

    def _apply(self, expr: Call, name: str, parts: Sequence[str]) -> str:
        if self._folded_away or name in ("among", *_ACCESS_NAMES):
            return super()._apply(expr, name, parts)
        return f"call({', '.join((repr(expr.function), name, *parts))})"


def _fixed(expr: Expr) -> int:
    match expr:
        case Ident(name=name):
            return 1 + name.startswith("device.")
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


def _constant(expr: Expr) -> bool:
    match expr:
        case Const():
            return True
        case ListExpr(optional=()) | MapExpr():
            return all(map(_constant, children(expr)))
        case Call(function=function):
            return function in CONVERSIONS and all(map(_constant, expr.operands))
        case _:
            return False


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | list | dict) else 1


def _number(value: object) -> int | None:
    return value if type(value) is int else None


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
    counted = name in _COUNTED
    return _listed(
        name, overload, tuple((type_name(one), _size(one), _number(one) if counted else None) for one in args)
    )


@lru_cache(maxsize=4096)
def _listed(name: str, overload: str, args: tuple[tuple[str, int, int | None], ...]) -> int:
    nodes = [Node(Const(0, number), Type(static), None, exactly(size)) for static, size, number in args]
    return price(name, overload, nodes[0], nodes[1:]).cost.high
