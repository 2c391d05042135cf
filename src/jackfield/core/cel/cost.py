"""What an expression may cost at most, as the API server estimates it.

Knows how costs and sizes travel through an expression. Must not know devices' values.
"""

from collections.abc import Iterable
from typing import Final, assert_never

import msgspec

from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.operand import Estimate, Node
from jackfield.core.cel.prices import price
from jackfield.core.cel.shapes import Bind, shape
from jackfield.core.cel.sizes import EMPTY, ONE, TRAVERSAL, UNKNOWN, Path, Range, exactly, size_at
from jackfield.core.cel.syntax import (
    Call,
    Checked,
    Comprehension,
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

_LIST, _MAP, _MESSAGE = exactly(10), exactly(30), exactly(40)
_FREE: Final = exactly(0)
_SCALARS: Final = ("bool", "int", "uint", "double", "duration", "timestamp")
_COUNTED: Final = ("map", "kubernetes.DRADevice")
_CONTAINERS: Final = ("list", "map")


class Entries(msgspec.Struct, frozen=True):
    """How large keys and values of a list or map are."""

    kind: str
    key: Range
    value: Range


class Local(msgspec.Struct, frozen=True):
    """What is known of a local variable."""

    path: Path | None
    size: Range | None
    entries: Entries | None = None


class Estimator:
    """Walks one expression once."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._paths: dict[int, Path] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, Entries] = {}
        self._locals: dict[str, list[Local]] = {}

    # --- what is known

    def _local(self, expr: Expr) -> Local | None:
        stack = self._locals.get(expr.name) if isinstance(expr, Ident) else None
        return stack[-1] if stack else None

    def _path(self, expr: Expr) -> Path | None:
        local = self._local(expr)
        return local.path if local is not None else self._paths.get(expr.id)

    def _size(self, expr: Expr) -> Range | None:
        if expr.id in self._sizes:
            return self._sizes[expr.id]
        literal = _literal_size(expr)
        if literal is not None:
            return literal
        size = size_at(self._path(expr))
        if size is not None:
            self._sizes[expr.id] = size
            return size
        if _is_scalar(self._checked.type_of(expr)):
            return ONE
        local = self._local(expr)
        return local.size if local is not None else None

    def _entries_of(self, expr: Expr) -> Entries | None:
        local = self._local(expr)
        return self._entries.get(expr.id) or (local.entries if local is not None else None)

    def _copy(self, to: Expr, source: Expr) -> None:
        size, entries = self._size(source), self._entries_of(source)
        if size is not None:
            self._sizes[to.id] = size
        if entries is not None:
            self._entries[to.id] = entries

    def _node(self, expr: Expr) -> Node:
        return Node(expr, self._checked.type_of(expr), self._path(expr), self._size(expr))

    # --- what it costs

    def cost(self, expr: Expr) -> Task[Range]:
        """Return what a node and all below it cost."""
        if isinstance(expr, Const):
            return _FREE
        if isinstance(expr, Ident):
            return self._ident(expr)
        found: Range = yield self._rule(expr)
        return found

    def _rule(self, expr: Select | Call | ListExpr | MapExpr | Message | Comprehension) -> Task[Range]:
        match expr:
            case Select():
                return self._select(expr)
            case Call():
                return self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case Message():
                return self._message(expr)
            case Comprehension():
                bind = shape(expr)
                return self._bind(expr, bind) if isinstance(bind, Bind) else self._comprehension(expr)
            case _ as never:
                assert_never(never)

    def _ident(self, expr: Ident) -> Range:
        local = self._local(expr)
        if local is None:
            self._paths[expr.id] = Path([expr.name], 1)
        elif local.path is not None:
            self._paths[expr.id] = local.path
        return ONE

    def _select(self, expr: Select) -> Task[Range]:
        cost: Range = yield self.cost(expr.operand)
        if expr.test:
            return cost
        if self._checked.type_of(expr.operand).name in _COUNTED:
            cost += ONE
        self._paths[expr.id] = (self._path(expr.operand) or Path([], 0)).append(expr.field)
        return cost

    def _message(self, expr: Message) -> Task[Range]:
        cost = _MESSAGE
        for one in children(expr):
            cost += yield self.cost(one)
        return cost

    def _list(self, expr: ListExpr) -> Task[Range]:
        cost, item = _LIST, EMPTY
        for one in expr.items:
            cost += yield self.cost(one)
            item = item.union(self._size(one) or UNKNOWN)
        self._entries[expr.id] = Entries("list", ONE, item if expr.items else _FREE)
        return cost

    def _map(self, expr: MapExpr) -> Task[Range]:
        cost, key, value = _MAP, EMPTY, EMPTY
        for entry in expr.entries:
            cost += yield self.cost(entry.key)
            cost += yield self.cost(entry.value)
            key = key.union(self._size(entry.key) or UNKNOWN)
            value = value.union(self._size(entry.value) or UNKNOWN)
        self._entries[expr.id] = Entries("map", key, value) if expr.entries else Entries("map", _FREE, _FREE)
        return cost

    # --- loops

    def _bind(self, expr: Comprehension, bind: Bind) -> Task[Range]:
        cost: Range = yield self.cost(expr.range)
        cost += yield self.cost(bind.init)
        self._push(
            bind.name, Local(self._path(bind.init), self._size(bind.init), self._entries_of(bind.init))
        )
        cost += yield self.cost(bind.result)
        self._copy(expr, bind.result)
        self._locals[bind.name].pop()
        return cost

    def _push(self, name: str, local: Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_loop(self, expr: Comprehension) -> None:
        entries = self._entries_of(expr.range)
        kind = entries.kind if entries is not None else self._checked.type_of(expr.range).name
        keys = ("@indices" if kind == "list" else "@keys", entries.key if entries is not None else None)
        values = ("@items" if kind == "list" else "@values", entries.value if entries is not None else None)
        variables = [(expr.iter_var, values if kind == "list" else keys)]
        if expr.iter_var2:
            variables = [(expr.iter_var, keys), (expr.iter_var2, values)]
        for name, (step, size) in variables:
            path = self._path(expr.range) or Path([], 0)
            self._push(name, Local(path.append(step), size))

    def _comprehension(self, expr: Comprehension) -> Task[Range]:
        cost: Range = yield self.cost(expr.range)
        cost += yield self.cost(expr.init)
        self._push(
            expr.accu_var, Local(self._path(expr.init), self._size(expr.init), self._entries_of(expr.init))
        )
        self._push_loop(expr)
        each: Range = yield self.cost(expr.condition)
        each += yield self.cost(expr.step)
        self._locals[expr.iter_var].pop()
        if expr.iter_var2:
            self._locals[expr.iter_var2].pop()
        cost += yield self.cost(expr.result)
        self._locals[expr.accu_var].pop()
        count = self._size(expr.range) or UNKNOWN
        # A macro begins with an empty list or map, or with a truth or a number.
        self._sizes[expr.id] = ONE if isinstance(expr.init, Const) else count
        entries = self._entries_of(expr.step)
        if entries is not None:
            self._entries[expr.id] = entries
        return cost + count * each

    # --- calls

    def _call(self, expr: Call) -> Task[Range]:
        if expr.function == "dyn":
            found: Range = yield self.cost(expr.args[0])
            self._copy(expr, expr.args[0])
            return found + ONE
        costs: list[Range] = []
        args: list[Node] = []
        for one in expr.args:
            # In turn: what is known of one may change with the cost of the next, as paths share their room.
            costs.append((yield self.cost(one)))
            args.append(self._node(one))
        cost, target = _FREE, None
        if expr.target is not None:
            cost = yield self.cost(expr.target)
            target = self._node(expr.target)
        worst, size = EMPTY, None
        for overload in self._checked.overloads[expr.id]:
            estimate = self._estimate(expr, overload, target, args, costs)
            worst = worst.union(estimate.cost)
            if estimate.size is not None:
                size = estimate.size if size is None else size.union(estimate.size)
            size = self._indexed(expr, overload, size)
            if size is None:
                size = self._size(expr)
        if size is not None:
            self._sizes[expr.id] = size
        return cost + worst

    def _indexed(self, expr: Call, overload: str, size: Range | None) -> Range | None:
        step = {"index_list": "@items", "index_map": "@values"}.get(overload)
        if step is None:
            return size
        entries = self._entries_of(expr.args[0])
        self._paths[expr.id] = (self._path(expr.args[0]) or Path([], 0)).append(step)
        return entries.value if entries is not None else None

    def _estimate(
        self, expr: Call, overload: str, target: Node | None, args: list[Node], costs: list[Range]
    ) -> Estimate:
        operands = _total(costs)
        if expr.function in ("_&&_", "_||_"):
            return Estimate(Range(costs[0].low, operands.high))
        if expr.function == "_?_:_":
            return self._conditional(expr, args, costs)
        if overload in ("add_string", "add_bytes", "add_list"):
            return self._concatenation(expr, overload, args, operands)
        found = price(expr.function, overload, target, args)
        return Estimate(found.cost + operands, found.size)

    def _conditional(self, expr: Call, args: list[Node], costs: list[Range]) -> Estimate:
        then, otherwise = self._entries_of(expr.args[1]), self._entries_of(expr.args[2])
        self._unite(expr, then, otherwise)
        return Estimate(costs[0] + costs[1].union(costs[2]), args[1].size.union(args[2].size))

    def _concatenation(self, expr: Call, overload: str, args: list[Node], operands: Range) -> Estimate:
        size = args[0].size + args[1].size
        self._unite(expr, self._entries_of(expr.args[0]), self._entries_of(expr.args[1]))
        return Estimate((ONE if overload == "add_list" else size.times(TRAVERSAL)) + operands, size)

    def _unite(self, expr: Call, one: Entries | None, other: Entries | None) -> None:
        if one is not None and other is not None:
            self._entries[expr.id] = Entries(one.kind, one.key.union(other.key), one.value.union(other.value))


def cost_max(checked: Checked) -> int:
    """Return what an expression costs at most."""
    return run(Estimator(checked).cost(checked.expr)).high


def _total(costs: Iterable[Range]) -> Range:
    total = _FREE
    for one in costs:
        total += one
    return total


def _literal_size(expr: Expr) -> Range | None:
    match expr:
        case Const(value=str() | bytes() as value):
            return exactly(len(value))
        case Const():
            return ONE
        case ListExpr(items=items):
            return exactly(len(items))
        case MapExpr(entries=entries):
            return exactly(len(entries))
        case _:
            return None


def _is_scalar(static: Type) -> bool:
    if static.name == "optional_type" and static.params:
        return _is_scalar(static.params[0])
    return static.name in _SCALARS
