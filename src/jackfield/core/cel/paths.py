"""Which parts of a device an expression looks at.

Knows the ways to reach a part. Must not know values.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.shapes import Bind, shape
from jackfield.core.cel.syntax import Call, Comprehension, Const, Expr, Ident, Select, children

ALL: Final = "*"
_DEVICE: Final = "device"
_MAPS: Final = ("attributes", "capacity")
_ONE_MAP: Final = (("attributes",), ("capacity",))
_SCALARS: Final = ("driver", "allowMultipleAllocations")
_ACCESS: Final = ("_[_]", "_[?_]", "_?._")
_DEPTH: Final = 4
"""Device, map, domain, name."""

Steps = tuple[str, ...]


class Path(msgspec.Struct, frozen=True, order=True):
    """A part of a device; `*` stands for all there are."""

    field: str
    domain: str = ""
    name: str = ""

    def __str__(self) -> str:
        if not self.domain:
            return f"device.{self.field}"
        domain = "[*]" if self.domain == ALL else f'["{self.domain}"]'
        return f"device.{self.field}{domain}{'[*]' if self.name == ALL else f'.{self.name}'}"


def paths(expr: Expr) -> tuple[Path, ...]:
    """Return the parts an expression looks at, sorted."""
    found: dict[Path, None] = {}
    for steps in run(_visit(expr, {})):
        for path in _complete(steps):
            found[path] = None
    return tuple(sorted(found))


def _complete(steps: Steps) -> list[Path]:
    if len(steps) == 1:
        return [*(Path(field) for field in _SCALARS), *(Path(field, ALL, ALL) for field in _MAPS)]
    if steps[1] not in _MAPS:
        return [Path(steps[1])]
    domain, name = (*steps[2:], ALL, ALL)[:2]
    return [Path(steps[1], domain, name)]


def steps_of(expr: Expr, scope: Mapping[str, Steps]) -> Steps | None:
    """Return the way from the device to what a node stands for, or None where it is no part of it."""
    match expr:
        case Ident(name=name) if name in scope:
            return scope[name]
        case Ident(name=name) if name == _DEVICE:
            return (_DEVICE,)
        case Select(operand=operand, field=field):
            return _longer(steps_of(operand, scope), field)
        case Call(function=function, args=(operand, Const(value=str() as key))) if function in _ACCESS:
            return _longer(steps_of(operand, scope), key)
        case Call(function="@in", args=(Const(value=str() as key), operand)):
            steps = steps_of(operand, scope) or ()
            return (*steps, key) if steps[1:2] in _ONE_MAP and len(steps) < _DEPTH else None
        case _:
            return None


def _longer(steps: Steps | None, step: str) -> Steps | None:
    if steps is None:
        return None
    return (*steps, step) if len(steps) < _DEPTH else steps


def _visit(expr: Expr, scope: Mapping[str, Steps]) -> Task[list[Steps]]:
    steps = steps_of(expr, scope)
    if steps is not None:
        return [steps]
    bind = shape(expr) if isinstance(expr, Comprehension) else None
    found: list[Steps] = []
    if isinstance(bind, Bind):
        bound = steps_of(bind.init, scope)
        if bound is not None:
            found += yield _visit(bind.result, {**scope, bind.name: bound})
            return found
        found += yield _visit(bind.init, scope)
        found += yield _visit(bind.result, _without(scope, bind.name))
        return found
    if isinstance(expr, Comprehension):
        scope = _without(scope, expr.iter_var, expr.iter_var2, expr.accu_var)
    for child in children(expr):
        found += yield _visit(child, scope)
    return found


def _without(scope: Mapping[str, Steps], *names: str) -> Mapping[str, Steps]:
    return {name: steps for name, steps in scope.items() if name not in names}
