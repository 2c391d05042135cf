"""Recognises macros in the loops they were expanded to.

Knows the expansions. Must not know what becomes of them.
"""

from typing import Final, Literal

import msgspec

from jackfield.core.cel.syntax import Call, Comprehension, Const, Expr, Ident, ListExpr

_TERNARY: Final = "_?_:_"


class Bind(msgspec.Struct, frozen=True):
    """`cel.bind(name, init, result)`."""

    name: str
    init: Expr
    result: Expr


class Loop(msgspec.Struct, frozen=True):
    """A macro over a range, with one variable or two; a list takes only items that meet the condition."""

    kind: Literal["all", "exists", "exists_one", "list"]
    range: Expr
    first: str
    second: str
    body: Expr
    condition: Expr | None = None


def shape(expr: Comprehension) -> Bind | Loop | None:
    """Return which macro a loop came from, or None for one that is no plain one."""
    if isinstance(expr.range, ListExpr) and not expr.range.items and _is(expr.condition, value=False):
        return Bind(expr.accu_var, expr.init, expr.result)
    kind, body, condition = _body(expr)
    if kind is None or body is None:
        return None
    return Loop(kind, expr.range, expr.iter_var, expr.iter_var2, body, condition)


def _is(expr: Expr, *, value: bool) -> bool:
    return isinstance(expr, Const) and expr.value is value


def _body(
    expr: Comprehension,
) -> tuple[Literal["all", "exists", "exists_one", "list"] | None, Expr | None, Expr | None]:
    step = expr.step
    if not isinstance(step, Call):
        return None, None, None
    if step.function == "_&&_" and _is(expr.init, value=True):
        return "all", step.args[1], None
    if step.function == "_||_" and _is(expr.init, value=False):
        return "exists", step.args[1], None
    condition = None
    if step.function == _TERNARY:
        condition, then, _ = step.args
        if not isinstance(then, Call):
            return None, None, None
        step = then
    if step.function != "_+_" or not isinstance(step.args[0], Ident) or step.args[0].name != expr.accu_var:
        return None, None, None
    added = step.args[1]
    if condition is not None and isinstance(added, Const) and isinstance(expr.init, Const):
        return "exists_one", condition, None
    if isinstance(added, ListExpr) and len(added.items) == 1 and not added.optional:
        return "list", added.items[0], condition
    return None, None, None
