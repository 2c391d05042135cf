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
_DEPTH_MAX: Final = 40


def text(expr: Expr) -> str:
    """Return a node as CEL; what is nested too deeply to be read is left out."""
    return _Writer().text(expr)


class _Writer:
    """Writes one node."""

    def __init__(self) -> None:
        self._room = _DEPTH_MAX

    def text(self, expr: Expr, outer: int = 0) -> str:
        """Return a node as CEL, in parentheses if what is around it binds tighter."""
        if not self._room:
            return "…"
        self._room -= 1
        made = self._written(expr, outer)
        self._room += 1
        return made

    def _written(self, expr: Expr, outer: int) -> str:
        match expr:
            case Const(value=value):
                return _literal(value)
            case Ident(name=name):
                return name
            case Select(operand=operand, field=field, test=test):
                inner = f"{self.text(operand, _TIGHT)}.{field}"
                return f"has({inner})" if test else inner
            case Call():
                return self._call(expr, outer)
            case ListExpr(items=items, optional=optional):
                parts = (("?" if at in optional else "") + self.text(one) for at, one in enumerate(items))
                return f"[{', '.join(parts)}]"
            case MapExpr(entries=entries):
                parts = (
                    f"{'?' if one.optional else ''}{self.text(one.key)}: {self.text(one.value)}"
                    for one in entries
                )
                return f"{{{', '.join(parts)}}}"
            case Message(name=name):
                return f"{name}{{…}}"
            case Comprehension():
                return self._macro(expr)
            case _ as never:
                assert_never(never)

    def _call(self, expr: Call, outer: int) -> str:
        if expr.function in _BINARY:
            sign, binding = _BINARY[expr.function]
            left = self.text(expr.args[0], binding)
            right = self.text(expr.args[1], binding + (sign not in ("&&", "||")))
            made = f"{left} {sign} {right}"
            return f"({made})" if binding < outer else made
        if expr.function in _UNARY:
            return f"{_UNARY[expr.function]}{self.text(expr.args[0], _TIGHT)}"
        match expr:
            case Call(function="_?_:_", args=(condition, then, otherwise)):
                made = f"{self.text(condition, 1)} ? {self.text(then, 1)} : {self.text(otherwise)}"
                return f"({made})" if outer else made
            case Call(function="_[_]", args=(container, key)):
                return f"{self.text(container, _TIGHT)}[{self.text(key)}]"
            case Call(function="_[?_]", args=(container, key)):
                return f"{self.text(container, _TIGHT)}[?{self.text(key)}]"
            case Call(function="_?._", args=(container, Const(value=str() as field))):
                return f"{self.text(container, _TIGHT)}.?{field}"
            case _:
                arguments = ", ".join(self.text(one) for one in expr.args)
                target = f"{self.text(expr.target, _TIGHT)}." if expr.target is not None else ""
                return f"{target}{expr.function}({arguments})"

    def _macro(self, expr: Comprehension) -> str:
        found = shape(expr)
        if isinstance(found, Bind):
            return f"cel.bind({found.name}, {self.text(found.init)}, {self.text(found.result)})"
        if isinstance(found, Loop):
            names = [found.first, found.second] if found.second else [found.first]
            kind = found.kind if found.kind != "list" else "transformList" if found.second else "map"
            condition = [self.text(found.condition)] if found.condition is not None else []
            parts = [*names, *condition, self.text(found.body)]
            return f"{self.text(found.range, _TIGHT)}.{kind}({', '.join(parts)})"
        return f"{self.text(expr.range, _TIGHT)}.transformMap({expr.iter_var}, {expr.iter_var2 or '_'}, …)"


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
