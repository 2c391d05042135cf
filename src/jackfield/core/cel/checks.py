"""What Kubernetes refuses although it type-checks.

Knows the rules and their words. Must not know devices.
"""

from collections.abc import Iterator
from typing import Final

from jackfield.core.cel import formatting, library, regex
from jackfield.core.cel.conversions import CONVERSIONS
from jackfield.core.cel.declarations import TYPES, UNDEFINED
from jackfield.core.cel.faults import CelError, CompileError
from jackfield.core.cel.frontend import refused
from jackfield.core.cel.operators import KEYS
from jackfield.core.cel.parser import Mistake
from jackfield.core.cel.syntax import (
    Call,
    Checked,
    Const,
    Expr,
    Ident,
    ListExpr,
    MapExpr,
    Type,
    children,
    walk,
)
from jackfield.core.cel.unify import shown, unwrapped
from jackfield.core.cel.values import TypeValue, go_name

_ANSWERS: Final = ("bool", "any")
_NOT_CONSTANT: Final = object()
_LITERALS: Final = (Const, ListExpr, MapExpr)
_NAMES: Final = {
    "any": "google.protobuf.Any",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}
"""What Kubernetes calls a type where it does not speak of the checker's."""

Wrong = Iterator[tuple[Expr, str]]


def check(checked: Checked, *, lists: bool) -> None:
    """Raise CompileError where Kubernetes would refuse an expression that passed the type checker."""
    nodes = walk(checked.expr)
    wrong = [*(one for node in nodes for one in _arguments(checked, node)), *_literals(checked)]
    if wrong:
        raise refused(checked.source, [Mistake(checked.positions[node.id], words) for node, words in wrong])
    answer = checked.type_of(checked.expr)
    if answer.name not in _ANSWERS and not (lists and answer.name == "dyn"):
        raise CompileError(f"must evaluate to bool or the unknown type, not {full_name(answer)}")
    try:
        for node in nodes:
            _instantiate(node)
    except CelError as error:
        raise CompileError(f"program instantiation failed: {error}") from error


def full_name(static: Type) -> str:
    """Return a type as Kubernetes calls it outside of its checker."""
    name = _NAMES.get(static.name, static.name)
    return f"{name}({', '.join(map(full_name, static.params))})" if static.params else name


def _arguments(checked: Checked, expr: Expr) -> Wrong:
    match expr:
        case Call(function="duration" | "timestamp" | "matches", args=(Const(value=value) as argument, *_)):
            # For the global form of matches that is the text, not the pattern.
            reader = regex.pattern if expr.function == "matches" else library.function(expr.function)
            try:
                reader(value)
            except CelError:
                yield argument, f"invalid {expr.function} argument"
        case Call(function="format", target=Const(value=str() as form), args=(ListExpr() as args,)):
            yield from _format(checked, expr, form, args)
        case _:
            pass


def _format(checked: Checked, expr: Call, form: str, args: ListExpr) -> Wrong:
    used = 0
    try:
        for part in formatting.parts(form, len(args.items)):
            if isinstance(part, formatting.Clause):
                found = list(_clause(checked, part.verb, args.items[part.index]))
                if found:
                    yield found[0]
                    return
                used += 1
    except CelError as error:
        yield expr, str(error)
        return
    if used < len(args.items):
        yield expr, f"too many arguments supplied to string.format (expected {used}, got {len(args.items)})"


def _clause(checked: Checked, verb: str, arg: Expr) -> Wrong:
    waiting = [arg]
    while waiting:
        one = waiting.pop()
        name = checked.type_of(one).name
        if name != "dyn" and name not in formatting.ACCEPTED[verb]:
            yield one, formatting.refusal(verb, _NAMES.get(name, name))
        if verb == "s" and isinstance(one, ListExpr | MapExpr):
            waiting.extend(reversed(children(one)))


def _literals(checked: Checked) -> Wrong:
    """All items of a list, keys of a map and values of a map have one type, except within a format."""
    waiting = [checked.expr]
    while waiting:
        expr = waiting.pop()
        if isinstance(expr, Call) and expr.function == "format":
            continue
        waiting.extend(children(expr))
        for group in _groups(expr):
            types = [(one, _part(checked.type_of(one), optional=optional)) for one, optional in group]
            for one, found in types[1:]:
                if found != types[0][1]:
                    yield one, f"expected type '{shown(types[0][1])}' but found '{shown(found)}'"
                    break


def _part(static: Type, *, optional: bool) -> Type:
    return unwrapped(static.params[0] if optional and static.params else static)


def _groups(expr: Expr) -> Iterator[list[tuple[Expr, bool]]]:
    match expr:
        case ListExpr(items=items, optional=optional):
            yield [(one, at in optional) for at, one in enumerate(items)]
        case MapExpr(entries=entries):
            yield [(entry.key, False) for entry in entries]
            yield [(entry.value, entry.optional) for entry in entries]
        case _:
            pass


def _instantiate(expr: Expr) -> None:
    """Compute what Kubernetes computes when it makes a program of the expression; raises CelError."""
    match expr:
        case Ident(name=name) if name in UNDEFINED:
            raise CelError(f"reference to undefined type: {name}")
        case Call(function="find" | "findAll", args=(Const(value=str() as text), *_)):
            regex.pattern(text)
        case Call(function="_[_]" | "_[?_]", args=(_, key)):
            value = _key(key)
            if value is not _NOT_CONSTANT and type(value) not in KEYS:
                raise CelError(f"invalid qualifier type: {go_name(value)}")
        case Call(function=function) if function in CONVERSIONS:
            _folded(expr)
        case _:
            pass


def _key(expr: Expr) -> object:
    """Return what is looked up, where that is known beforehand."""
    while isinstance(expr, Call) and expr.function == "dyn":
        expr = expr.args[0]
    match expr:
        case Ident(name=name) if name in TYPES:
            return TypeValue(name)
        case ListExpr() | MapExpr() if all(isinstance(one, _LITERALS) for one in walk(expr)):
            return [] if isinstance(expr, ListExpr) else {}
        case _:
            return _folded(expr)


def _folded(expr: Expr) -> object:
    """Return the value of conversions of a literal, one within the other, or that there is none."""
    calls: list[str] = []
    while isinstance(expr, Call) and expr.function in CONVERSIONS and len(expr.operands) == 1:
        calls.append(expr.function)
        expr = expr.operands[0]
    value = expr.value if isinstance(expr, Const) else _NOT_CONSTANT
    for name in reversed(calls if value is not _NOT_CONSTANT else ()):
        value = value if name == "dyn" else library.function(name)(value)
    return value
