"""Expands macros: calls that stand for loops and bindings.

Knows the expansions, which are Kubernetes' own to the node, since nodes have costs. Must not know types.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.syntax import (
    Call,
    Comprehension,
    Const,
    Entry,
    Expr,
    Field,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Message,
    Select,
)

ACCUMULATOR: Final = "@result"
_TAKEN: Final = (ACCUMULATOR, "__result__")
_UNUSED: Final = "#unused"
_SORTED: Final = "@__sortBy_input__"
_NODES_LEAST: Final = 20_000

Arguments = Sequence[Expr]
Node = Expr | Entry | Field


class MacroError(Exception):
    """Macros make too much of an expression."""


class ArgumentError(Exception):
    """A macro cannot do with one of its arguments."""

    def __init__(self, expr: Expr, words: str) -> None:
        super().__init__(words)
        self.expr = expr


class Builder:
    """Gives each node its number and remembers its place."""

    def __init__(self, length: int) -> None:
        self.positions: dict[int, int] = {}
        # Some macros repeat what they are called on: a chain of them doubles with every link.
        self._most = _NODES_LEAST + 2 * length

    def place(self, at: int) -> int:
        """Return the number of a new node at a place."""
        number = len(self.positions) + 1
        if number > self._most:
            raise MacroError(f"macros expand to more than {self._most} nodes")
        self.positions[number] = at
        return number

    def at(self, place: int) -> "Site":
        """Return what makes nodes at one place."""
        return Site(self, place)


class Site:
    """Makes nodes at the place of a macro."""

    def __init__(self, builder: Builder, at: int) -> None:
        self._builder = builder
        self._at = at

    def _id(self) -> int:
        return self._builder.place(self._at)

    def const(self, value: Literal) -> Expr:
        """Return a literal."""
        return Const(self._id(), value)

    def ident(self, name: str = ACCUMULATOR) -> Expr:
        """Return a variable."""
        return Ident(self._id(), name)

    def list(self, *items: Expr) -> Expr:
        """Return a list."""
        return ListExpr(self._id(), items)

    def map(self) -> Expr:
        """Return an empty map."""
        return MapExpr(self._id(), ())

    def call(self, function: str, *args: Expr, target: Expr | None = None) -> Expr:
        """Return a call."""
        return Call(self._id(), function, target, args)

    def has(self, select: Select) -> Expr:
        """Return the question whether there is something to select."""
        return Select(self._id(), select.operand, select.field, test=True)

    def loop(self, over: Expr, names: Sequence[str], *parts: Expr) -> Expr:
        """Return a loop with one variable or two; its parts are how it begins, goes on, steps and ends."""
        first, second = (*names, "")[:2]
        init, condition, step, result = parts
        return Comprehension(self._id(), first, second, over, ACCUMULATOR, init, condition, step, result)

    def bind(self, name: str, value: Expr, result: Expr) -> Expr:
        """Return a loop that goes round no time, which is how a name is given to a value."""
        empty, never, itself = self.list(), self.const(value=False), self.ident(name)
        return Comprehension(self._id(), _UNUSED, "", empty, name, value, never, itself, result)

    def copy(self, expr: Expr) -> Expr:
        """Return a node and all below it once more."""
        copied: Expr = run(self._copied(expr))
        return copied

    def _copied(self, node: Node) -> Task[Any]:
        changes: dict[str, object] = {"id": self._builder.place(self._builder.positions[node.id])}
        for name in _PARTS.get(type(node), ()):
            part = getattr(node, name)
            if isinstance(part, tuple):
                made: list[object] = []
                for one in part:
                    made.append((yield self._copied(one)))  # noqa: PERF401 - it waits
                changes[name] = tuple(made)
            elif part is not None:
                changes[name] = yield self._copied(part)
        return msgspec.structs.replace(node, **changes)


_PARTS: Final[Mapping[type, tuple[str, ...]]] = {
    Select: ("operand",),
    Call: ("target", "args"),
    ListExpr: ("items",),
    Entry: ("key", "value"),
    MapExpr: ("entries",),
    Field: ("value",),
    Message: ("fields",),
    Comprehension: ("range", "init", "condition", "step", "result"),
}

Expansion = Callable[[Site, Expr, Arguments], Expr | None]


def expanded(site: Site, function: str, target: Expr | None, arguments: Arguments) -> Expr | None:
    """Return what a call stands for, or None where it stands for itself; raises ArgumentError."""
    if target is None:
        return _has(site, arguments[0]) if (function, len(arguments)) == ("has", 1) else None
    macro = _MACROS.get((function, len(arguments)))
    return macro(site, target, arguments) if macro is not None else None


def _has(site: Site, argument: Expr) -> Expr:
    if not isinstance(argument, Select):
        raise ArgumentError(argument, "invalid argument to has() macro")
    return site.has(argument)


def _name(argument: Expr, words: str = "argument must be a simple name") -> str:
    if not isinstance(argument, Ident):
        raise ArgumentError(argument, words)
    return argument.name


def _names(arguments: Arguments) -> list[str]:
    """Return the names of a loop's variables."""
    names = [_name(one) for one in arguments]
    if len(set(names)) < len(names):
        raise ArgumentError(arguments[-1], f"duplicate variable name: {names[0]}")
    return _free(names, arguments)


def _free(names: list[str], arguments: Arguments) -> list[str]:
    for name, argument in zip(names, arguments, strict=True):
        if name in _TAKEN:
            raise ArgumentError(argument, "iteration variable overwrites accumulator variable")
    return names


def _all(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *variables, body = arguments
    names = _names(variables)
    init, going = site.const(value=True), site.call("@not_strictly_false", site.ident())
    return site.loop(target, names, init, going, site.call("_&&_", site.ident(), body), site.ident())


def _exists(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *variables, body = arguments
    names = _names(variables)
    init, going = site.const(value=False), site.call("@not_strictly_false", site.call("!_", site.ident()))
    return site.loop(target, names, init, going, site.call("_||_", site.ident(), body), site.ident())


def _exists_one(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *variables, body = arguments
    names = _names(variables)
    one_more = site.call("_+_", site.ident(), site.const(1))
    step = site.call("_?_:_", body, one_more, site.ident())
    result = site.call("_==_", site.ident(), site.const(1))
    return site.loop(target, names, site.const(0), site.const(value=True), step, result)


def _gathered(site: Site, target: Expr, names: Sequence[str], init: Expr, steps: Sequence[Expr]) -> Expr:
    """Return a loop that gathers something; of two steps, the first is a condition for the second."""
    *conditions, step = steps
    for condition in conditions:
        step = site.call("_?_:_", condition, step, site.ident())
    return site.loop(target, names, init, site.const(value=True), step, site.ident())


def _map(site: Site, target: Expr, arguments: Arguments) -> Expr:
    variable, *conditions, body = arguments
    names = _free([_name(variable, "argument is not an identifier")], [variable])
    step = site.call("_+_", site.ident(), site.list(body))
    return _gathered(site, target, names, site.list(), (*conditions, step))


def _filter(site: Site, target: Expr, arguments: Arguments) -> Expr:
    variable, condition = arguments
    return _map(site, target, (variable, condition, variable))


def _transform_list(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *conditions, body = arguments[2:]
    names = _names(arguments[:2])
    step = site.call("_+_", site.ident(), site.list(body))
    return _gathered(site, target, names, site.list(), (*conditions, step))


def _transform_map(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *conditions, body = arguments[2:]
    names = _names(arguments[:2])
    step = site.call("cel.@mapInsert", site.ident(), site.ident(names[0]), body)
    return _gathered(site, target, names, site.map(), (*conditions, step))


def _transform_map_entry(site: Site, target: Expr, arguments: Arguments) -> Expr:
    *conditions, body = arguments[2:]
    names = _names(arguments[:2])
    step = site.call("cel.@mapInsert", site.ident(), body)
    return _gathered(site, target, names, site.map(), (*conditions, step))


def _bind(site: Site, target: Expr, arguments: Arguments) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    variable, value, result = arguments
    name = _name(variable, "cel.bind() variable names must be simple identifiers")
    return site.bind(name, value, result)


def _optional(name: str, *, flat: bool) -> Expansion:
    def expand(site: Site, target: Expr, arguments: Arguments) -> Expr:
        variable, body = arguments
        bound = _name(variable, f"{name}() variable name must be a simple identifier")
        value = site.call("value", target=site.copy(target))
        made = site.bind(bound, value, body)
        then = made if flat else site.call("optional.of", made)
        return site.call("_?_:_", site.call("hasValue", target=target), then, site.call("optional.none"))

    return expand


def _sort_by(site: Site, target: Expr, arguments: Arguments) -> Expr:
    if not isinstance(target, ListExpr | Select | Ident | Comprehension | Call):
        words = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise ArgumentError(target, words)
    keys = _map(site, site.ident(_SORTED), arguments)
    ordered = site.call("@sortByAssociatedKeys", keys, target=site.ident(_SORTED))
    return site.bind(_SORTED, target, ordered)


_MACROS: Final[Mapping[tuple[str, int], Expansion]] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_map_entry,
    ("transformMapEntry", 4): _transform_map_entry,
    ("bind", 3): _bind,
    ("optMap", 2): _optional("optMap", flat=False),
    ("optFlatMap", 2): _optional("optFlatMap", flat=True),
    ("sortBy", 2): _sort_by,
}
"""By name and number of arguments."""
