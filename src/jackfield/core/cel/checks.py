"""What Kubernetes refuses although it type-checks.

Knows the rules and their words. Must not know devices.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn

from jackfield.core.cel import formatting, library, regex, times
from jackfield.core.cel.conversions import CONVERSIONS
from jackfield.core.cel.faults import CelError, CompileError
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

_DEVICE_TYPE: Final = "kubernetes.DRADevice"
_ANSWERS: Final = ("bool", "any")
_INSTANTIATION: Final = "program instantiation failed: "
_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "duration": times.parse_duration,
    "timestamp": times.parse_timestamp,
    "matches": regex.pattern,
}
_NOT_CONSTANT: Final = object()


def check(checked: Checked, *, lists: bool) -> None:
    """Raise CompileError where Kubernetes would refuse an expression that passed the type checker."""
    for expr in walk(checked.expr):
        _check_node(checked, expr)
    _check_literals(checked, checked.expr)
    answer = checked.type_of(checked.expr)
    if answer.name not in _ANSWERS and not (lists and answer.name == "dyn"):
        raise CompileError(f"must evaluate to bool or the unknown type, not {answer}")
    for expr in walk(checked.expr):
        _instantiate(expr)


def refuse(checked: Checked, expr: Expr, words: str) -> NoReturn:
    """Raise CompileError that points at a node, as Kubernetes does."""
    line, column = checked.place(expr)
    text = checked.source.split("\n")[line - 1]
    raise CompileError(
        f"compilation failed: ERROR: <input>:{line}:{column}: {words}\n | {text}\n | {'.' * (column - 1)}^"
    )


def _check_node(checked: Checked, expr: Expr) -> None:
    match expr:
        case Const(value=float() as value) if math.isinf(value):
            refuse(checked, expr, "invalid double literal")
        case Call(function="flatten"):
            inner = checked.type_of(expr.operands[0])
            if (
                inner.name == "list"
                and inner.params
                and inner.params[0].name not in ("list", "dyn")
                and not _free(inner)
            ):
                words = f"found no matching overload for 'flatten' applied to '{inner}.()'"
                refuse(checked, expr, words)
        case Call(function="duration" | "timestamp" | "matches"):
            _check_argument(checked, expr)
        case Call(function="format", target=Const(value=str() as form), args=(ListExpr() as args,)):
            _check_format(checked, expr, form, args)
        case _:
            pass


def _free(static: Type) -> bool:
    return static.params[0].name.startswith("~")


def _check_argument(checked: Checked, expr: Call) -> None:
    # Kubernetes looks at the first argument, which for the global form of matches is the text, not the pattern.
    argument = expr.args[0] if expr.args else None
    if not isinstance(argument, Const) or not isinstance(argument.value, str):
        return
    try:
        _PARSERS[expr.function](argument.value)
    except CelError:
        refuse(checked, argument, f"invalid {expr.function} argument")


def _check_format(checked: Checked, expr: Call, form: str, args: ListExpr) -> None:
    used = 0
    try:
        for part in formatting.parts(form, len(args.items)):
            if isinstance(part, formatting.Clause):
                _check_clause(checked, part.verb, args.items[part.index])
                used += 1
    except CelError as error:
        refuse(checked, expr, str(error))
    if used < len(args.items):
        words = f"too many arguments supplied to string.format (expected {used}, got {len(args.items)})"
        refuse(checked, expr, words)


def _check_clause(checked: Checked, verb: str, arg: Expr) -> None:
    name = checked.type_of(arg).name
    if name == "dyn" or name.startswith("~"):
        return
    if name not in formatting.ACCEPTED[verb]:
        refuse(checked, arg, formatting.refusal(verb, "google.protobuf.Any" if name == "any" else name))
    if verb == "s" and name in ("list", "map"):
        for one in children(arg) if isinstance(arg, ListExpr | MapExpr) else ():
            _check_clause(checked, verb, one)


def _check_literals(checked: Checked, expr: Expr) -> None:
    """All items of a list, keys of a map and values of a map have one type, except within a format."""
    if isinstance(expr, Call) and expr.function == "format":
        return
    for group in _groups(expr):
        wanted: Type | None = None
        for one, optional in group:
            found = checked.type_of(one)
            if optional and found.params:
                found = found.params[0]
            if wanted is not None and found != wanted:
                refuse(checked, one, f"expected type '{wanted}' but found '{found}'")
            wanted = wanted or found
    for child in children(expr):
        _check_literals(checked, child)


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
    """Compute what Kubernetes computes when it makes a program of the expression."""
    match expr:
        case Ident(name=name) if name == _DEVICE_TYPE:
            raise CompileError(f"{_INSTANTIATION}reference to undefined type: {_DEVICE_TYPE}")
        case Call(function="find" | "findAll", args=(Const(value=str() as text), *_)):
            try:
                regex.pattern(text)
            except regex.PatternError as error:
                raise CompileError(f"{_INSTANTIATION}{error}") from error
        case Call(function=function) if function in CONVERSIONS:
            try:
                _folded(expr)
            except CelError as error:
                raise CompileError(f"{_INSTANTIATION}{error}") from error
        case _:
            pass


def _folded(expr: Expr) -> object:
    if isinstance(expr, Const):
        return expr.value
    if not isinstance(expr, Call) or expr.function not in CONVERSIONS:
        return _NOT_CONSTANT
    args = [_folded(one) for one in expr.operands]
    if any(one is _NOT_CONSTANT for one in args):
        return _NOT_CONSTANT
    return args[0] if expr.function == "dyn" else library.function(expr.function)(*args)
