"""Evaluates an expression node by node: with Kubernetes' words for what goes wrong, to any depth, and at a price.

What the fast rendering does not decide is decided here. Knows nodes and the order in which Kubernetes evaluates them.
Must not know functions or prices.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol, assert_never

from jackfield.core.cel import library, operators, runtime
from jackfield.core.cel.declarations import NULL_VALUE
from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.inplace import Amounts
from jackfield.core.cel.runtime import Failure
from jackfield.core.cel.shapes import Bind, shape
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
)
from jackfield.core.cel.values import Duration, Optional, TypeValue, UInt

_OPERATORS: Final[dict[str, Callable[..., object]]] = {
    "_==_": operators.equal,
    "_!=_": operators.unequal,
    "_<_": operators.less,
    "_<=_": operators.less_equal,
    "_>_": operators.greater,
    "_>=_": operators.greater_equal,
    "_+_": operators.add,
    "_-_": operators.subtract,
    "_*_": operators.multiply,
    "_/_": operators.divide,
    "_%_": operators.modulo,
    "-_": operators.negate,
    "!_": operators.negation,
    "_[_]": operators.index,
    "_[?_]": operators.optional_index,
    "_?._": operators.optional_index,
    "@in": operators.contains,
    "cel.@mapInsert": runtime.map_insert,
}
ZEROS: Final = {"uint": UInt(0), "double": 0.0, "duration": Duration(0)}
"""What the sum of no items is, by the type they would have had; else it is the integer."""


class Purse(Protocol):
    """Pays for what is evaluated."""

    def visit(self, expr: Expr) -> None:
        """Pay for a node; raises PanicError where it cannot be paid."""

    def call(self, expr: Call, args: Sequence[object]) -> None:
        """Pay for a call in advance, so that nothing is made that cannot be paid."""

    def is_free(self, expr: Expr) -> bool:
        """Whether a node was computed when the program was made, and all below it."""


class Free:
    """Pays nothing, as nothing has a price."""

    def visit(self, expr: Expr) -> None:
        """Take a node for nothing."""

    def call(self, expr: Call, args: Sequence[object]) -> None:
        """Take a call for nothing."""

    def is_free(self, expr: Expr) -> bool:
        """Say no, since it makes no difference."""
        del expr
        return False


_FREE: Final = Free()


class _Lazy:
    """A value that is computed when it is first asked for."""

    __slots__ = ("expr", "known", "scope", "value")

    def __init__(self, expr: Expr, scope: "Scope | None") -> None:
        self.expr = expr
        self.scope = scope
        self.known = False
        self.value: object = None


class Scope:
    """A local variable, and those around it."""

    __slots__ = ("name", "outer", "value")

    def __init__(self, name: str, value: object, outer: "Scope | None") -> None:
        self.name = name
        self.value = value
        self.outer = outer


def evaluate(checked: Checked, subject: object, purse: Purse = _FREE) -> object:
    """Return what an expression says of a device; raises CelError or PanicError."""
    return run(_Evaluation(checked, subject, purse).value(checked.expr, None))


class _Evaluation:
    """Evaluates one expression for one device."""

    def __init__(self, checked: Checked, subject: object, purse: Purse) -> None:
        self._checked = checked
        self._subject = subject
        self._purse = purse
        self._amounts = Amounts()

    def value(self, expr: Expr, scope: Scope | None) -> Task[object]:
        """Return the value of a node."""
        if self._purse.is_free(expr):
            return (yield _Evaluation(self._checked, self._subject, _FREE).value(expr, scope))
        if isinstance(expr, Const):
            return expr.value
        found: object = yield self._rule(expr, scope)
        self._purse.visit(expr)
        return found

    def _rule(
        self, expr: Ident | Select | Call | ListExpr | MapExpr | Message | Comprehension, scope: Scope | None
    ) -> Task[object]:
        match expr:
            case Ident():
                return self._ident(expr, scope)
            case Select():
                return self._select(expr, scope)
            case Call(function=function):
                return _SPECIAL.get(function, _Evaluation._call)(self, expr, scope)
            case ListExpr():
                return self._list(expr, scope)
            case MapExpr():
                return self._map(expr, scope)
            case Message():
                return self._message(expr, scope)
            case Comprehension():
                bind = shape(expr)
                return self._bind(bind, scope) if isinstance(bind, Bind) else self._loop(expr, scope)
            case _ as never:
                assert_never(never)

    def _values(self, exprs: Sequence[Expr], scope: Scope | None) -> Task[list[object]]:
        found: list[object] = []
        for one in exprs:
            found.append((yield self.value(one, scope)))  # noqa: PERF401 - it waits
        return found

    # --- names

    def _ident(self, expr: Ident, scope: Scope | None) -> Task[object]:
        while scope is not None and scope.name != expr.name:
            scope = scope.outer
        if scope is None:
            return self._global(expr.name)
        kept = scope.value
        if isinstance(kept, _Lazy):
            kept = yield self._forced(kept)
        return runtime.value(kept)

    def _global(self, name: str) -> object:
        if name == "device":
            return self._subject
        return 0 if name == NULL_VALUE else TypeValue(name)

    def _forced(self, lazy: _Lazy) -> Task[object]:
        if not lazy.known:
            try:
                lazy.value = yield self.value(lazy.expr, lazy.scope)
            except CelError as error:
                lazy.value = Failure(error)
            lazy.known = True
        return lazy.value

    def _select(self, expr: Select, scope: Scope | None) -> Task[object]:
        operand: object = yield self.value(expr.operand, scope)
        return operators.has(operand, expr.field) if expr.test else operators.select(operand, expr.field)

    # --- literals

    def _list(self, expr: ListExpr, scope: Scope | None) -> Task[object]:
        items: list[object] = yield self._values(expr.items, scope)
        return runtime.make_list(*((at in expr.optional, one) for at, one in enumerate(items)))

    def _map(self, expr: MapExpr, scope: Scope | None) -> Task[object]:
        entries: list[tuple[object, object, bool]] = []
        for one in expr.entries:
            key: object = yield self.value(one.key, scope)
            value: object = yield self.value(one.value, scope)
            entries.append((key, value, one.optional))
        return runtime.make_map(*entries)

    def _message(self, expr: Message, scope: Scope | None) -> Task[object]:
        fields: dict[str, object] = {}
        for one in expr.fields:
            value: object = yield self.value(one.value, scope)
            fields |= runtime.make_map((one.name, value, one.optional))  # type: ignore[arg-type]  # names are texts
        return runtime.make_message(expr.name, fields)

    # --- calls

    def _call(self, expr: Call, scope: Scope | None) -> Task[object]:
        args: list[object] = yield self._values(expr.operands, scope)
        args = self._amounts.given(expr.function, args)
        self._purse.call(expr, args)
        operator = _OPERATORS.get(expr.function)
        made = operator(*args) if operator is not None else library.function(expr.function)(*args)
        return Amounts.own(made) if expr.function == "quantity" else made

    def _logic(self, expr: Call, scope: Scope | None) -> Task[object]:
        """Answer `a && b` or `a || b`: one operand may decide, whatever errors stand beside it."""
        decisive = expr.function == "_||_"
        first: CelError | None = None
        for one in expr.args:
            try:
                if runtime.truth((yield self.value(one, scope))) is decisive:
                    return decisive
            except CelError as error:
                first = first or error
        if first is not None:
            raise first
        return not decisive

    def _ternary(self, expr: Call, scope: Scope | None) -> Task[object]:
        condition, then, otherwise = expr.args
        chosen = then if runtime.truth((yield self.value(condition, scope))) else otherwise
        return (yield self.value(chosen, scope))

    def _in(self, expr: Call, scope: Scope | None) -> Task[object]:
        item, container = expr.args
        if not isinstance(container, ListExpr) or container.optional:
            return (yield self._call(expr, scope))
        if not container.items:
            return False
        constants = [one.value for one in container.items if isinstance(one, Const)]
        if len(constants) < len(container.items):
            return (yield self._call(expr, scope))
        return operators.among((yield self.value(item, scope)), list(constants))

    def _or_else(self, expr: Call, scope: Scope | None) -> Task[object]:
        left, right = expr.operands
        found: object = yield self.value(left, scope)
        if isinstance(found, Optional) and not found.present:
            return (yield self.value(right, scope))
        return found.value if isinstance(found, Optional) and expr.function == "orValue" else found

    def _not_strictly_false(self, expr: Call, scope: Scope | None) -> Task[object]:
        try:
            return (yield self.value(expr.args[0], scope)) is not False
        except CelError:
            return True

    def _dyn(self, expr: Call, scope: Scope | None) -> Task[object]:
        return (yield self.value(expr.args[0], scope))

    def _sum(self, expr: Call, scope: Scope | None) -> Task[object]:
        total: object = yield self._call(expr, scope)
        items = self._checked.type_of(expr.operands[0]).params
        return total or ZEROS.get(items[0].name if items else "", total)

    # --- loops

    def _bind(self, bind: Bind, scope: Scope | None) -> Task[object]:
        inner = Scope(bind.name, _Lazy(bind.init, scope), scope)
        return (yield self.value(bind.result, inner))

    def _loop(self, expr: Comprehension, scope: Scope | None) -> Task[object]:
        over: object = yield self.value(expr.range, scope)
        items: Sequence[object] = runtime.pairs(over) if expr.iter_var2 else runtime.items(over)
        gathered = Scope(expr.accu_var, (yield self.value(expr.init, scope)), scope)
        for item in items:
            inner = self._variables(expr, item, gathered)
            if not runtime.truth((yield self.value(expr.condition, inner))):
                break
            try:
                gathered = Scope(expr.accu_var, (yield self.value(expr.step, inner)), scope)
            except CelError as error:
                gathered = Scope(expr.accu_var, Failure(error), scope)
        return (yield self.value(expr.result, gathered))

    @staticmethod
    def _variables(expr: Comprehension, item: object, scope: Scope) -> Scope:
        if not expr.iter_var2:
            return Scope(expr.iter_var, item, scope)
        assert isinstance(item, tuple), "a pair"
        return Scope(expr.iter_var2, item[1], Scope(expr.iter_var, item[0], scope))


_SPECIAL: Final[dict[str, Callable[[_Evaluation, Call, Scope | None], Task[object]]]] = {
    "_&&_": _Evaluation._logic,  # noqa: SLF001 - its own
    "_||_": _Evaluation._logic,  # noqa: SLF001
    "_?_:_": _Evaluation._ternary,  # noqa: SLF001
    "@in": _Evaluation._in,  # noqa: SLF001
    "or": _Evaluation._or_else,  # noqa: SLF001
    "orValue": _Evaluation._or_else,  # noqa: SLF001
    "@not_strictly_false": _Evaluation._not_strictly_false,  # noqa: SLF001
    "dyn": _Evaluation._dyn,  # noqa: SLF001
    "sum": _Evaluation._sum,  # noqa: SLF001
}
