"""What to write instead: hints for mistakes that people make.

Knows the mistakes. Must not know devices.
"""

import re
from collections.abc import Iterator
from typing import Final

from jackfield.core.cel import paths, unparse
from jackfield.core.cel.syntax import Call, Checked, Const, Expr, Select, walk

_BARE: Final = re.compile(r"undeclared reference to '(attributes|capacity|driver|allowMultipleAllocations)")
_MISSING_DOMAIN: Final = re.compile(
    r"no matching overload for '[^']*' applied to '.*map\(string, (?:any|dyn|kubernetes)"
)
_WRAPPERS: Final = ("string", "int", "bool", "version")
_ATTRIBUTE, _DOMAIN = 4, 3
_FUNCTION: Final = re.compile(r"undeclared reference to '(\w+)'")
_FUNCTIONS: Final = {
    "len": "size(…)",
    "lower": "lowerAscii()",
    "toLowerCase": "lowerAscii()",
    "upper": "upperAscii()",
    "startswith": "startsWith(…)",
    "endswith": "endsWith(…)",
    "Quantity": 'quantity("…")',
    "version": 'semver("…")',
    "Semver": 'semver("…")',
}


def for_refused(source: str, message: str) -> str:
    """Return what to write instead of an expression that was refused, or nothing."""
    bare = _BARE.search(message)
    if bare:
        return f"write device.{bare[1]}"
    if _MISSING_DOMAIN.search(message):
        return 'name the domain first: device.attributes["domain"].name, device.capacity["domain"].name'
    unknown = _FUNCTION.search(message)
    if unknown and unknown[1] in _FUNCTIONS:
        return f"write {_FUNCTIONS[unknown[1]]}"
    if "recursion" in message:
        return "nest less deeply; parts can be named with cel.bind(name, value, expression)"
    if re.search(r"(?<![=!<>])=(?!=)", re.sub(r"'[^']*'|\"[^\"]*\"", "", source)):
        return "compare with =="
    return ""


def for_accepted(checked: Checked, *, too_costly: bool) -> tuple[str, ...]:
    """Return hints for an expression that compiles, but hardly does what was meant."""
    found: dict[str, None] = {}
    for expr in walk(checked.expr):
        for hint in _hints(expr):
            found[hint] = None
        if too_costly:
            for hint in _costly(checked, expr):
                found[hint] = None
    return tuple(found)


def _hints(expr: Expr) -> Iterator[str]:
    steps = paths.steps_of(expr, {})
    if steps is None or len(steps) < _DOMAIN or steps[1] not in ("attributes", "capacity"):
        return
    field, domain = steps[1], steps[2]
    if "/" in domain and len(steps) == _DOMAIN:
        first, _, name = domain.partition("/")
        yield f'write device.{field}["{first}"].{name}: domain and name are looked up one after the other'
    if not isinstance(expr, Select) or expr.field not in _WRAPPERS:
        return
    below = paths.steps_of(expr.operand, {})
    if below is not None and (len(below) == _ATTRIBUTE or (len(below) == _DOMAIN and "/" in below[2])):
        plain = unparse.text(expr.operand)
        if "/" in domain:
            first, _, name = domain.partition("/")
            plain = f'device.{field}["{first}"].{name}'
        yield f"write {plain} without .{expr.field}: an attribute is its value"


def _costly(checked: Checked, expr: Expr) -> Iterator[str]:
    """Name what has no known size, which makes the API server fear the worst."""
    match expr:
        case Call(function="_!=_", args=(left, _)) if checked.type_of(left).name == "kubernetes.Quantity":
            yield f"write !({unparse.text(expr).replace(' != ', ' == ')}): the cost of != on quantities has no bound"
        case Call(function="matches" | "contains", target=Call(function="orValue")):
            yield "the result of orValue has no known length: use has(…) && …, or compare with =="
        case Call(function="join"):
            yield "join has no known length: compare the parts instead"
        case Call(function="indexOf", target=target) if (
            target is not None and checked.type_of(target).name == "list"
        ):
            yield "indexOf on a list has no known cost: use in"
        case Call(function="lists.range", args=(count,)) if not isinstance(count, Const):
            yield "lists.range needs a literal"
        case _:
            pass
