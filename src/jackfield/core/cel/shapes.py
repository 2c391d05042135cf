"""Recognises macros in the loops they were expanded to.

Knows the expansions. Must not know what becomes of them.
"""

from typing import Literal

import msgspec

from jackfield.core.cel.syntax import Call, Comprehension, Const, Expr, ListExpr

Kind = Literal["all", "exists", "exists_one", "list"]


class Bind(msgspec.Struct, frozen=True):
    """`cel.bind(name, init, result)`."""

    name: str
    init: Expr
    result: Expr


class Loop(msgspec.Struct, frozen=True):
    """A macro over a range, with one variable or two; a list takes only items that meet the condition."""

    kind: Kind
    range: Expr
    first: str
    second: str
    body: Expr
    condition: Expr | None = None


def shape(expr: Comprehension) -> Bind | Loop | None:
    """Return which macro a loop came from, or None for one that is no plain one."""
    if isinstance(expr.range, ListExpr) and not expr.range.items and _is(expr.condition, value=False):
        return Bind(expr.accu_var, expr.init, expr.result)
    match expr.step:
        case Call(function="_&&_", args=(_, body)):
            return _loop(expr, "all", body)
        case Call(function="_||_", args=(_, body)):
            return _loop(expr, "exists", body)
        case Call(function="_?_:_", args=(condition, Call(function="_+_", args=(_, Const())), _)):
            return _loop(expr, "exists_one", condition)
        case Call(
            function="_?_:_", args=(condition, Call(function="_+_", args=(_, ListExpr(items=(body,)))), _)
        ):
            return _loop(expr, "list", body, condition)
        case Call(function="_+_", args=(_, ListExpr(items=(body,)))):
            return _loop(expr, "list", body)
        case _:
            return None


def _loop(expr: Comprehension, kind: Kind, body: Expr, condition: Expr | None = None) -> Loop:
    return Loop(kind, expr.range, expr.iter_var, expr.iter_var2, body, condition)


def _is(expr: Expr, *, value: bool) -> bool:
    return isinstance(expr, Const) and expr.value is value
