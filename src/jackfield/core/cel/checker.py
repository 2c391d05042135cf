"""Type-checks an expression: which overload each call means, and what type each node has.

Knows Kubernetes' rules and words. Must not know what functions do or what they cost.
"""

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from jackfield.core.cel import declarations
from jackfield.core.cel.deep import Task, run
from jackfield.core.cel.parser import Mistake
from jackfield.core.cel.syntax import (
    BOOL,
    DYN,
    INT,
    STRING,
    Call,
    Comprehension,
    Const,
    Entry,
    Expr,
    Field,
    Ident,
    ListExpr,
    MapExpr,
    Message,
    Select,
    Type,
)
from jackfield.core.cel.unify import ERROR, NULL, Bindings, is_dyn, is_param, most_general, shown
from jackfield.core.cel.values import UInt

TYPE_PARTS_MAX: Final = 2_000
TYPE_DEPTH_MAX: Final = 260
"""More than any literal has, but names that are bound to lists of what was bound before know no end."""
_CONSTANTS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    UInt: Type("uint"),
    float: Type("double"),
    str: STRING,
    bytes: Type("bytes"),
    type(None): NULL,
}
_LOGIC: Final = ("_&&_", "_||_")
_OPTIONAL: Final = "optional_type"
_STRUCTS: Final = ("kubernetes.", "google.protobuf.")
_OPAQUE: Final = ("kubernetes.authorization.",)


class Check(msgspec.Struct, frozen=True):
    """What the checker found out; where there are mistakes, it is of no use."""

    expr: Expr
    types: dict[int, Type]
    overloads: dict[int, tuple[str, ...]]
    mistakes: tuple[Mistake, ...]


def check(expr: Expr, positions: dict[int, int], *, lists: bool) -> Check:
    """Return an expression with its names resolved and its types, and what is wrong with it."""
    checker = _Checker(positions, lists=lists)
    checked = run(checker.checked(expr))
    return Check(checked, checker.closed_types(), checker.overloads, tuple(checker.mistakes))


class _Checker:
    """Goes through one expression once."""

    def __init__(self, positions: dict[int, int], *, lists: bool) -> None:
        self.types: dict[int, Type] = {}
        self.overloads: dict[int, tuple[str, ...]] = {}
        self.mistakes: list[Mistake] = []
        self._positions = positions
        self._bindings = Bindings()
        self._locals: dict[str, list[Type]] = {}
        self._variables = declarations.variables()
        self._functions = declarations.functions()
        self._fields = declarations.fields(lists=lists)

    def closed_types(self) -> dict[int, Type]:
        """Return the types of all nodes; what nothing is known of is dyn."""
        return {number: self._bindings.resolved(one, closed=True) for number, one in self.types.items()}

    # --- notes

    def _wrong(self, number: int, words: str) -> None:
        self.mistakes.append(Mistake(self._positions[number], words))

    def _mismatch(self, expr: Expr, expected: Type, found: Type) -> None:
        self._wrong(expr.id, f"expected type '{shown(expected)}' but found '{shown(found)}'")

    def _undeclared(self, expr: Expr, name: str) -> None:
        self._wrong(expr.id, f"undeclared reference to '{name}' (in container '')")
        self._set(expr, ERROR)

    def _set(self, expr: Expr, found: Type) -> None:
        if found.params and _is_too_large(found):
            self._wrong(expr.id, "its type is too large")
            found = ERROR
        self.types[expr.id] = found

    def _type(self, expr: Expr) -> Type:
        return self.types[expr.id]

    def _known(self, expr: Expr) -> Type:
        return self._bindings.resolved(self.types[expr.id])

    def _lookup(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        stack = self._locals.get(name)
        return stack[-1] if stack else self._variables.get(name)

    # --- nodes

    def checked(self, expr: Expr) -> Task[Expr]:
        """Check a node, and return it with its names resolved."""
        if isinstance(expr, Const):
            self.types[expr.id] = _CONSTANTS[type(expr.value)]
            return expr
        if isinstance(expr, Ident):
            return self._ident(expr, expr.name)
        found: Expr = yield self._rule(expr)
        return found

    def _rule(self, expr: Select | Call | ListExpr | MapExpr | Message | Comprehension) -> Task[Expr]:
        match expr:
            case Select():
                return self._select(expr)
            case Call():
                return self._optional_select(expr) if expr.function == "_?._" else self._call(expr)
            case ListExpr():
                return self._list(expr)
            case MapExpr():
                return self._map(expr)
            case Message():
                return self._message(expr)
            case Comprehension():
                return self._comprehension(expr)
            case _ as never:
                assert_never(never)

    def _ident(self, expr: Expr, name: str) -> Expr:
        found = self._lookup(name)
        if found is None:
            self._undeclared(expr, name)
            return expr
        self._set(expr, found)
        return Ident(expr.id, name.removeprefix("."))

    def _select(self, expr: Select) -> Task[Expr]:
        name = _qualified(expr)
        if name and self._lookup(name) is not None:
            return self._ident(expr, name)
        operand: Expr = yield self.checked(expr.operand)
        found = self._field(expr, operand, expr.field)
        self._set(expr, BOOL if expr.test else self._bindings.resolved(found))
        return msgspec.structs.replace(expr, operand=operand)

    def _optional_select(self, expr: Call) -> Task[Expr]:
        operand, field = expr.args
        operand = yield self.checked(operand)
        assert isinstance(field, Const), "the parser made it of a name"
        found = self._bindings.resolved(self._field(expr, operand, str(field.value)))
        self._set(field, STRING)
        self._set(expr, found if found.name == _OPTIONAL else Type(_OPTIONAL, (found,)))
        self.overloads[expr.id] = ("select_optional_field",)
        return Call(expr.id, expr.function, None, (operand, field))

    def _field(self, expr: Expr, operand: Expr, field: str) -> Type:
        """Return the type of a field; one of an optional is optional."""
        outer = self._known(operand)
        inner, optional = _unwrapped(outer)
        found = DYN
        if inner.name == "map":
            found = inner.params[1]
        elif is_param(inner):
            self._bindings.assignable(DYN, inner)
        elif _is_struct(inner):
            found = self._struct_field(expr.id, inner.name, field)
        elif not is_dyn(inner) and inner != ERROR:
            self._wrong(expr.id, f"type '{shown(inner)}' does not support field selection")
        return Type(_OPTIONAL, (found,)) if optional else found

    def _struct_field(self, number: int, name: str, field: str) -> Type:
        known = self._fields.get(name)
        if known is None:
            self._wrong(number, f"unexpected failed resolution of '{name}'")
            return ERROR
        if field not in known:
            self._wrong(number, f"undefined field '{field}'")
            return ERROR
        return known[field]

    # --- calls

    def _call(self, expr: Call) -> Task[Expr]:
        args: list[Expr] = []
        for one in expr.args:
            args.append((yield self.checked(one)))  # noqa: PERF401 - it waits
        function, target = expr.function, expr.target
        if target is not None:
            qualified = _qualified(target)
            name = f"{qualified}.{function}".removeprefix(".")
            if qualified and name in self._functions:
                function, target = name, None
            else:
                target = yield self.checked(target)
        known = function.removeprefix(".") if target is None else function
        made = Call(expr.id, known, target, tuple(args))
        if known not in self._functions:
            self._undeclared(expr, function)
        elif known in _LOGIC:
            self._logic(made)
        else:
            self._resolve(made)
        return made

    def _logic(self, call: Call) -> None:
        wrong = False
        for one in call.args:
            if not self._bindings.assignable(self._type(one), BOOL):
                self._mismatch(one, BOOL, self._type(one))
                wrong = True
        self._set(call, ERROR if wrong else BOOL)
        self.overloads[call.id] = (call.function,)

    def _resolve(self, call: Call) -> None:
        types = [self._type(one) for one in call.operands]
        found: Type | None = None
        ids: list[str] = []
        for overload in self._functions[call.function]:
            if overload.member is (call.target is None):
                continue
            args, result = list(overload.args), overload.result
            if overload.params:
                result, *args = self._bindings.instance(overload.params, (result, *args))
            if not self._bindings.all_assignable(types, args):
                continue
            ids.append(overload.id)
            result = self._bindings.resolved(result)
            if found is None:
                found = result
            elif not is_dyn(found) and result != found:
                found = DYN
        if found is None:
            self._no_overload(call, types)
            found = ERROR
        self._set(call, found)
        self.overloads[call.id] = tuple(ids)

    def _no_overload(self, call: Call, types: Sequence[Type]) -> None:
        names = [shown(self._bindings.resolved(one, closed=True)) for one in types]
        target = f"{names.pop(0)}." if call.target is not None else ""
        words = f"found no matching overload for '{call.function}' applied to '{target}({', '.join(names)})'"
        self._wrong(call.id, words)

    # --- literals

    def _joined(self, before: Type | None, found: Type) -> Type:
        """Return the type of parts so far, with one part more."""
        if before is None:
            return found
        return most_general(before, found) if self._bindings.assignable(before, found) else DYN

    def _part(self, expr: Expr, *, optional: bool) -> Type:
        found = self._type(expr)
        if not optional:
            return found
        inner, is_optional = _unwrapped(found)
        if not is_optional and not is_dyn(inner):
            self._mismatch(expr, Type(_OPTIONAL, (inner,)), inner)
        return inner

    def _list(self, expr: ListExpr) -> Task[Expr]:
        found: Type | None = None
        items: list[Expr] = []
        for at, one in enumerate(expr.items):
            item: Expr = yield self.checked(one)
            items.append(item)
            found = self._joined(found, self._part(item, optional=at in expr.optional))
        self._set(expr, Type("list", (found or self._bindings.fresh(),)))
        return ListExpr(expr.id, tuple(items), expr.optional)

    def _map(self, expr: MapExpr) -> Task[Expr]:
        keys: Type | None = None
        values: Type | None = None
        entries: list[Entry] = []
        for one in expr.entries:
            key: Expr = yield self.checked(one.key)
            keys = self._joined(keys, self._type(key))
            value: Expr = yield self.checked(one.value)
            values = self._joined(values, self._part(value, optional=one.optional))
            entries.append(Entry(one.id, key, value, one.optional))
        if keys is None or values is None:
            keys, values = self._bindings.fresh(), self._bindings.fresh()
        self._set(expr, Type("map", (keys, values)))
        return MapExpr(expr.id, tuple(entries))

    def _message(self, expr: Message) -> Task[Expr]:
        known = self._lookup(expr.name)
        if known is None:
            self._undeclared(expr, expr.name)
            return expr
        name = expr.name.removeprefix(".")
        found = ERROR
        if known.name != "type":
            self._wrong(expr.id, f"'{shown(known)}' is not a type")
        elif name not in self._fields:
            self._wrong(expr.id, f"'{shown(known.params[0])}' is not a message type")
        else:
            found = known.params[0]
        self._set(expr, found)
        fields: list[Field] = []
        for one in expr.fields:
            value: Expr = yield self.checked(one.value)
            wanted = self._struct_field(one.id, name, one.name)
            part = self._part(value, optional=one.optional)
            if not self._bindings.assignable(wanted, part):
                words = f"expected type of field '{one.name}' is '{shown(wanted)}' but provided type is '{shown(part)}'"
                self._wrong(one.id, words)
            fields.append(Field(one.id, one.name, value, one.optional))
        return Message(expr.id, name, tuple(fields))

    # --- loops

    def _comprehension(self, expr: Comprehension) -> Task[Expr]:
        over: Expr = yield self.checked(expr.range)
        init: Expr = yield self.checked(expr.init)
        gathered = self._type(init)
        self._push(expr.accu_var, gathered)
        names = [name for name in (expr.iter_var, expr.iter_var2) if name]
        for name, one in zip(names, self._variable_types(over, len(names)), strict=True):
            self._push(name, one)
        condition: Expr = yield self.checked(expr.condition)
        step: Expr = yield self.checked(expr.step)
        # No macro makes a step that would not fit; but what is gathered may show here.
        self._bindings.assignable(gathered, self._type(step))
        for name in names:
            self._locals[name].pop()
        result: Expr = yield self.checked(expr.result)
        self._locals[expr.accu_var].pop()
        self._set(expr, self._known(result))
        changes = {"range": over, "init": init, "condition": condition, "step": step, "result": result}
        return msgspec.structs.replace(expr, **changes)

    def _push(self, name: str, one: Type) -> None:
        self._locals.setdefault(name, []).append(one)

    def _variable_types(self, over: Expr, count: int) -> tuple[Type, ...]:
        """Return the types of a loop's variables, of which there are one or two."""
        found = self._known(over)
        if found.name == "list":
            return (found.params[0],) if count == 1 else (INT, found.params[0])
        if found.name == "map":
            return found.params[:count]
        if found in (DYN, ERROR) or is_param(found):
            self._bindings.assignable(DYN, found)
            return (DYN, DYN)[:count]
        words = f"expression of type '{shown(found)}' cannot be range of a comprehension"
        self._wrong(over.id, f"{words} (must be list, map, or dynamic)")
        return (ERROR, ERROR)[:count]


def _qualified(expr: Expr) -> str:
    """Return a chain of names as one name, or nothing for what is no such chain."""
    parts: list[str] = []
    while isinstance(expr, Select) and not expr.test:
        parts.append(expr.field)
        expr = expr.operand
    return ".".join((expr.name, *reversed(parts))) if isinstance(expr, Ident) else ""


def _unwrapped(one: Type) -> tuple[Type, bool]:
    return (one.params[0], True) if one.name == _OPTIONAL and one.params else (one, False)


def _is_struct(one: Type) -> bool:
    return one.name.startswith(_STRUCTS) and not one.name.startswith(_OPAQUE)


def _is_too_large(one: Type) -> bool:
    parts, waiting = 0, [(one, 1)]
    while waiting:
        part, depth = waiting.pop()
        parts += 1
        if parts > TYPE_PARTS_MAX or depth > TYPE_DEPTH_MAX:
            return True
        waiting.extend((inner, depth + 1) for inner in part.params)
    return False
