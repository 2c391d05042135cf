"""Writes a checked expression as Python.

It uses Python's own operators wherever they give CEL's answer and raises where they might not: then `evaluate`
decides. Knows nodes and static types. Must not know devices or functions.
"""

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from jackfield.core.cel import library, operators, runtime
from jackfield.core.cel.declarations import NULL_VALUE
from jackfield.core.cel.evaluate import ZEROS
from jackfield.core.cel.faults import CelError
from jackfield.core.cel.regex import PatternError, found_in
from jackfield.core.cel.shapes import Bind, Loop, shape
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
from jackfield.core.cel.values import TypeValue, UInt
from jackfield.model.quantity import Quantity

Scope = Mapping[str, str]
"""What each local variable is called in Python, ready to be read."""

_GLOBALS: Final = {"device": "s", NULL_VALUE: "0"}
_FIELDS: Final = {
    "attributes": "s.attributes",
    "capacity": "s.capacity",
    "driver": "s.driver",
    "allowMultipleAllocations": "s.multiple",
}
_OPERATORS: Final = {
    "_==_": "equal",
    "_!=_": "unequal",
    "_<_": "less",
    "_<=_": "less_equal",
    "_>_": "greater",
    "_>=_": "greater_equal",
    "_+_": "add",
    "_-_": "subtract",
    "_*_": "multiply",
    "_/_": "divide",
    "_%_": "modulo",
    "-_": "negate",
    "!_": "negation",
    "_[_]": "index",
    "_[?_]": "optional_index",
    "_?._": "optional_index",
    "@in": "contains",
}
_PYTHON: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">="}
_PLAIN: Final = ("bool", "int", "uint", "string", "bytes")
"""Types on which Python's comparisons are CEL's."""
_OPEN: Final = ("any", "dyn")
_SIZED: Final = ("string", "bytes", "list", "map")
_QUANTITY: Final = "kubernetes.Quantity"
_FOLDED: Final = ("quantity", "semver", "ip", "cidr", "url", "duration", "timestamp")
"""Functions whose answer for literals is computed once."""
_RUNTIME: Final = (
    "items",
    "make_list",
    "make_map",
    "or_else",
    "or_value",
    "pairs",
    "uncertain",
)


class Renderer:
    """Writes one expression, and gathers the constants it mentions."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._count = 0
        self.names: dict[str, object] = {name: getattr(runtime, name) for name in _RUNTIME}
        self.names |= {
            name: getattr(operators, name) for name in (*_OPERATORS.values(), "select", "has", "among")
        }

    def function(self) -> Callable[[object], object]:
        """Return the expression as a function of a device."""
        code = f"lambda s: {self.render(self._checked.expr, {})}"
        made: Callable[[object], object] = eval(compile(code, "<cel>", "eval"), self.names)  # noqa: S307 - our own text
        return made

    # --- names

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _keep(self, constant: object) -> str:
        name = self._fresh("k")
        self.names[name] = constant
        return name

    def _call_name(self, function: str) -> str:
        name = "f_" + "".join(one if one.isalnum() else "_" for one in function)
        self.names[name] = library.function(function)
        return name

    def _static(self, expr: Expr) -> str:
        return self._checked.type_of(expr).name

    # --- nodes

    def render(self, expr: Expr, scope: Scope) -> str:
        """Return a Python expression for a node."""
        match expr:
            case Const(value=value):
                # In parentheses, since something may be called on it: 1.startswith is no Python.
                return self._keep(value) if isinstance(value, UInt | float) else f"({value!r})"
            case Ident(name=name):
                return self._ident(name, scope)
            case Select():
                return self._select(expr, scope)
            case Call():
                return self._call(expr, scope)
            case ListExpr():
                return self._list(expr, scope)
            case MapExpr(entries=entries):
                parts = (
                    f"({self.render(one.key, scope)}, {self.render(one.value, scope)}, {one.optional})"
                    for one in entries
                )
                return f"make_map({', '.join(parts)})"
            case Message():
                return "uncertain()"  # nobody writes messages into selectors
            case Comprehension():
                return self._comprehension(expr, scope)
            case _ as never:
                assert_never(never)

    def _ident(self, name: str, scope: Scope) -> str:
        return scope.get(name) or _GLOBALS.get(name) or self._keep(TypeValue(name))

    def _select(self, expr: Select, scope: Scope) -> str:
        operand = self.render(expr.operand, scope)
        if expr.test:
            return f"has({operand}, {expr.field!r})"
        if operand == "s" and expr.field in _FIELDS:
            return _FIELDS[expr.field]
        if self._static(expr.operand) == "map":
            return f"{operand}[{expr.field!r}]"
        return f"select({operand}, {expr.field!r})"

    def _list(self, expr: ListExpr, scope: Scope) -> str:
        parts = [self.render(one, scope) for one in expr.items]
        if not expr.optional:
            return f"[{', '.join(parts)}]"
        return f"make_list({', '.join(f'({at in expr.optional}, {part})' for at, part in enumerate(parts))})"

    # --- calls

    def _call(self, expr: Call, scope: Scope) -> str:
        special = getattr(self, _SPECIAL.get(expr.function, ""), None)
        if special is not None:
            text: str = special(expr, scope)
            return text
        if expr.function in _FOLDED and all(isinstance(one, Const) for one in expr.operands):
            folded = self._folded(expr)
            if folded:
                return folded
        fast = self._fast(expr, scope)
        if fast:
            return fast
        name = _OPERATORS.get(expr.function) or self._call_name(expr.function)
        return self._applied(name, expr, scope)

    def _applied(self, name: str, expr: Call, scope: Scope) -> str:
        return f"{name}({', '.join(self.render(one, scope) for one in expr.operands)})"

    def _folded(self, expr: Call) -> str:
        function = library.function(expr.function)
        try:
            return self._keep(function(*(one.value for one in expr.operands if isinstance(one, Const))))
        except (CelError, ValueError):
            return ""  # it is said when somebody asks

    def _logic(self, expr: Call, scope: Scope) -> str:
        operands = _chain(expr, expr.function)
        joint = " and " if expr.function == "_&&_" else " or "
        return f"({joint.join(self._condition(one, scope) for one in operands)})"

    def _condition(self, expr: Expr, scope: Scope) -> str:
        """Return an operand that must be a boolean."""
        text = self.render(expr, scope)
        if self._static(expr) == "bool":
            return text
        name = self._fresh("t")
        return f"(({name} := {text}) is True or {name} is not False and uncertain())"

    def _ternary(self, expr: Call, scope: Scope) -> str:
        then, otherwise = (self.render(one, scope) for one in expr.args[1:])
        return f"({then} if {self._condition(expr.args[0], scope)} else {otherwise})"

    def _not(self, expr: Call, scope: Scope) -> str:
        text = self.render(expr.args[0], scope)
        return f"(not {text})" if self._static(expr.args[0]) == "bool" else f"negation({text})"

    def _in(self, expr: Call, scope: Scope) -> str:
        item, container = expr.args
        if isinstance(container, ListExpr) and not container.items:
            return "False"
        text = self.render(item, scope)
        constants = _constants(container)
        if constants is not None:
            strings = all(isinstance(one, str) for one in constants)
            if strings and self._static(item) in ("string", *_OPEN):
                return f"({text} in {self._keep(tuple(constants))})"
            return f"among({text}, {self._keep(constants)})"
        inside = self.render(container, scope)
        if self._static(container) == "map" and self._static(item) == "string":
            return f"({text} in {inside})"
        return f"contains({text}, {inside})"

    def _or_else(self, expr: Call, scope: Scope) -> str:
        left, right = (self.render(one, scope) for one in expr.operands)
        name = "or_value" if expr.function == "orValue" else "or_else"
        return f"{name}({left}, lambda: {right})"

    def _sum(self, expr: Call, scope: Scope) -> str:
        total = self._applied(self._call_name("sum"), expr, scope)
        # The sum of no items is a zero of the type they would have had.
        items = self._checked.type_of(expr.operands[0]).params
        zero = ZEROS.get(items[0].name) if items else None
        return total if zero is None else f"({total} or {self._keep(zero)})"

    def _dyn(self, expr: Call, scope: Scope) -> str:
        return self.render(expr.args[0], scope)

    # --- calls in Python's own words

    def _fast(self, expr: Call, scope: Scope) -> str:
        """Return a call in Python's own words, or nothing where it has none."""
        function, operands = expr.function, expr.operands
        if function in _PYTHON:
            return self._comparison(expr, scope)
        if function == "_[_]":
            return self._index(expr, scope)
        if function == "size" and self._static(operands[0]) in _SIZED:
            return f"len({self.render(operands[0], scope)})"
        if len(operands) != 2:  # noqa: PLR2004 - all that follow have two sides
            return ""
        return self._fast_member(expr, scope)

    def _fast_member(self, expr: Call, scope: Scope) -> str:
        left, right = expr.operands
        match expr.function:
            case "matches" if (known := _pattern(right)) is not None:
                return f"{self._keep(known)}({self.render(left, scope)})"
            case "startsWith" | "endsWith" if self._static(right) == "string":
                name = expr.function.lower()
                return f"{self.render(left, scope)}.{name}({self.render(right, scope)})"
            case "contains" if self._static(left) == self._static(right) == "string":
                return f"({self.render(right, scope)} in {self.render(left, scope)})"
            case "isGreaterThan" if self._static(left) == self._static(right) == _QUANTITY:
                return f"({self._nano(left, scope)} > {self._nano(right, scope)})"
            case "isLessThan" if self._static(left) == self._static(right) == _QUANTITY:
                return f"({self._nano(left, scope)} < {self._nano(right, scope)})"
        return ""

    def _nano(self, expr: Expr, scope: Scope) -> str:
        text = self.render(expr, scope)
        constant = self.names.get(text)
        return repr(constant.nano) if isinstance(constant, Quantity) else f"{text}.nano"

    def _comparison(self, expr: Call, scope: Scope) -> str:
        left, right = expr.args
        sign = _PYTHON[expr.function]
        types = self._static(left), self._static(right)
        if (
            isinstance(left, Call)
            and left.function == "compareTo"
            and isinstance(right, Const)
            and right.value == 0
        ):
            sides = left.operands
            if [self._static(one) for one in sides] == [_QUANTITY, _QUANTITY]:
                return f"({self._nano(sides[0], scope)} {sign} {self._nano(sides[1], scope)})"
        if types[0] == types[1] and types[0] in _PLAIN:
            return f"({self.render(left, scope)} {sign} {self.render(right, scope)})"
        if not isinstance(right, Const) or types[0] not in _OPEN:
            return ""
        if isinstance(right.value, str) and sign in ("==", "!="):
            return f"({self.render(left, scope)} {sign} {right.value!r})"
        if type(right.value) is int:
            name = self._fresh("t")
            text = self.render(left, scope)
            return f"({name} {sign} {right.value} if ({name} := {text}).__class__ is int else uncertain())"
        return ""

    def _index(self, expr: Call, scope: Scope) -> str:
        container, key = expr.args
        static = self._checked.type_of(container)
        if static.name != "map" or self._static(key) != "string":
            return ""
        if static.params[0].name != "string":
            return ""
        return f"{self.render(container, scope)}[{self.render(key, scope)}]"

    # --- loops

    def _comprehension(self, expr: Comprehension, scope: Scope) -> str:
        found = shape(expr)
        if isinstance(found, Bind):
            return self._bind(found, scope)
        return self._loop(found, scope) if isinstance(found, Loop) else "uncertain()"

    def _bind(self, bind: Bind, scope: Scope) -> str:
        name = self._fresh("v")
        init = self.render(bind.init, scope)
        return f"(lambda {name}: {self.render(bind.result, {**scope, bind.name: name})})({init})"

    def _range(self, expr: Expr, scope: Scope, *, two: bool) -> str:
        text = self.render(expr, scope)
        if two:
            text = f"pairs({text})"
        elif self._static(expr) != "list":
            text = f"items({text})"
        return text

    def _loop(self, loop: Loop, scope: Scope) -> str:
        first, second = self._fresh("v"), self._fresh("v")
        inner = {**scope, loop.first: first} | ({loop.second: second} if loop.second else {})
        names = f"{first}, {second}" if loop.second else first
        text = self._range(loop.range, scope, two=bool(loop.second))
        if ":=" in text:
            # Python forbids := in the range of a comprehension, but not in an argument.
            name = self._fresh("r")
            return f"(lambda {name}: {self._over(loop, inner, f'for {names} in {name}')})({text})"
        return self._over(loop, inner, f"for {names} in {text}")

    def _over(self, loop: Loop, inner: Scope, over: str) -> str:
        if loop.condition is not None:
            over += f" if {self._condition(loop.condition, inner)}"
        match loop.kind:
            case "all" | "exists":
                test = self._condition(loop.body, inner)
                return f"{'all' if loop.kind == 'all' else 'any'}({test} {over})"
            case "exists_one":
                return f"(sum(1 {over} if {self._condition(loop.body, inner)}) == 1)"
            case "list":
                return f"[{self.render(loop.body, inner)} {over}]"
            case _ as never:
                assert_never(never)


_SPECIAL: Final = {
    "_&&_": "_logic",
    "_||_": "_logic",
    "_?_:_": "_ternary",
    "!_": "_not",
    "@in": "_in",
    "or": "_or_else",
    "orValue": "_or_else",
    "dyn": "_dyn",
    "sum": "_sum",
}


def _chain(expr: Expr, function: str) -> list[Expr]:
    """Return the operands of a chain of one operator, which the parser balances into a tree."""
    if isinstance(expr, Call) and expr.function == function:
        return [*_chain(expr.args[0], function), *_chain(expr.args[1], function)]
    return [expr]


def _pattern(expr: Expr) -> object:
    try:
        return found_in(expr.value) if isinstance(expr, Const) and isinstance(expr.value, str) else None
    except PatternError:
        return None


def _constants(expr: Expr) -> list[object] | None:
    if not isinstance(expr, ListExpr) or expr.optional:
        return None
    found = [one.value for one in expr.items if isinstance(one, Const)]
    return list(found) if len(found) == len(expr.items) else None
