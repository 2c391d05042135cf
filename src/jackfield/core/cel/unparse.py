"""Writes a checked expression as CEL again, macros included.

Knows the syntax. Must not know what anything means.
"""

import json
from typing import Final, assert_never

from jackfield.core.cel.shapes import Bind, Loop, shape
from jackfield.core.cel.syntax import (
    Call,
    Comprehension,
    Const,
    Expr,
    Ident,
    ListExpr,
    MapExpr,
    Message,
    Select,
)
from jackfield.core.cel.values import UInt

_BINARY: Final = {
    "_||_": ("||", 1),
    "_&&_": ("&&", 2),
    "_==_": ("==", 3),
    "_!=_": ("!=", 3),
    "_<_": ("<", 3),
    "_<=_": ("<=", 3),
    "_>_": (">", 3),
    "_>=_": (">=", 3),
    "@in": ("in", 3),
    "_+_": ("+", 4),
    "_-_": ("-", 4),
    "_*_": ("*", 5),
    "_/_": ("/", 5),
    "_%_": ("%", 5),
}
_UNARY: Final = {"!_": "!", "-_": "-"}
_TIGHT: Final = 6


def text(expr: Expr) -> str:
    """Return a node as CEL."""
    return _text(expr, 0)


def _text(expr: Expr, outer: int) -> str:
    match expr:
        case Const(value=value):
            return _literal(value)
        case Ident(name=name):
            return name
        case Select(operand=operand, field=field, test=test):
            inner = f"{_text(operand, _TIGHT)}.{field}"
            return f"has({inner})" if test else inner
        case Call():
            return _call(expr, outer)
        case ListExpr(items=items, optional=optional):
            return (
                f"[{', '.join(('?' if at in optional else '') + text(one) for at, one in enumerate(items))}]"
            )
        case MapExpr(entries=entries):
            parts = (f"{'?' if one.optional else ''}{text(one.key)}: {text(one.value)}" for one in entries)
            return "{" + ", ".join(parts) + "}"
        case Message(name=name):
            return f"{name}{{…}}"
        case Comprehension():
            return _macro(expr)
        case _ as never:
            assert_never(never)


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UInt():
            return f"{int(value)}u"
        case bytes():
            return f"b{json.dumps(value.decode('latin-1'))}"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _call(expr: Call, outer: int) -> str:
    if expr.function in _BINARY:
        sign, binding = _BINARY[expr.function]
        left, right = (
            _text(expr.args[0], binding),
            _text(expr.args[1], binding + (sign not in ("&&", "||"))),
        )
        made = f"{left} {sign} {right}"
        return f"({made})" if binding < outer else made
    if expr.function in _UNARY:
        return f"{_UNARY[expr.function]}{_text(expr.args[0], _TIGHT)}"
    match expr:
        case Call(function="_?_:_", args=(condition, then, otherwise)):
            made = f"{_text(condition, 1)} ? {_text(then, 1)} : {text(otherwise)}"
            return f"({made})" if outer else made
        case Call(function="_[_]", args=(container, key)):
            return f"{_text(container, _TIGHT)}[{text(key)}]"
        case Call(function="_[?_]", args=(container, key)):
            return f"{_text(container, _TIGHT)}[?{text(key)}]"
        case Call(function="_?._", args=(container, Const(value=str() as field))):
            return f"{_text(container, _TIGHT)}.?{field}"
        case _:
            arguments = ", ".join(text(one) for one in expr.args)
            target = f"{_text(expr.target, _TIGHT)}." if expr.target is not None else ""
            return f"{target}{expr.function}({arguments})"


def _macro(expr: Comprehension) -> str:
    found = shape(expr)
    if isinstance(found, Bind):
        return f"cel.bind({found.name}, {text(found.init)}, {text(found.result)})"
    if isinstance(found, Loop):
        names = [found.first, found.second] if found.second else [found.first]
        kind = found.kind if found.kind != "list" else "transformList" if found.second else "map"
        parts = [*names, *([text(found.condition)] if found.condition is not None else []), text(found.body)]
        return f"{_text(found.range, _TIGHT)}.{kind}({', '.join(parts)})"
    return f"{_text(expr.range, _TIGHT)}.transformMap({expr.iter_var}, {expr.iter_var2 or '_'}, …)"
