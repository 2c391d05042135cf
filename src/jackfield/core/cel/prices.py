"""What each function costs, given the sizes of its operands.

Knows Kubernetes' price list. Must not know expressions.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from jackfield.core.cel.operand import Estimate, Node
from jackfield.core.cel.sizes import LIMIT, ONE, PATTERN, TRAVERSAL, UNKNOWN, Path, Range, exactly, size_at
from jackfield.core.cel.syntax import Const

Nodes = Sequence[Node]
Price = Callable[[str, Node, Nodes], Estimate]
"""Of an overload, for the target (or the first argument, where there is none) and what follows it."""

_NOMINAL: Final = Estimate(ONE)
_TEXTS: Final = ("string", "bytes")
_ADDRESS: Final = Range(4, 16)
_LIST_CALL: Final = exactly(11)
"""The call and the list it makes."""
_EXACT_TYPES: Final = ("kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR")
_AUTHORIZATION: Final = "kubernetes.authorization."
_NAMED_FORMAT: Final = exactly(7)


def price(function: str, overload: str, target: Node | None, args: Nodes) -> Estimate:
    """Return what a call costs, its operands aside."""
    operands = (target, *args) if target is not None else tuple(args)
    found = PRICED.get(function)
    if found is None or not operands:
        return _NOMINAL
    if target is None and function in _MEMBERS_ONLY:
        return _NOMINAL
    return found(overload, operands[0], operands[1:])


def _traversal(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return Estimate(subject.size.times(TRAVERSAL))


def _sized_traversal(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return Estimate(subject.size.times(TRAVERSAL), subject.size)


def _twice(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return Estimate(subject.size.times(2 * TRAVERSAL))


def _affix(_overload: str, _subject: Node, rest: Nodes) -> Estimate:
    return Estimate(rest[0].size.times(TRAVERSAL))


def _contains(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    return Estimate(subject.size.times(TRAVERSAL) * rest[0].size.times(TRAVERSAL))


def _matches(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    return Estimate((subject.size + ONE).times(TRAVERSAL) * rest[0].size.times(PATTERN))


def _find(overload: str, subject: Node, rest: Nodes) -> Estimate:
    return Estimate(_matches(overload, subject, rest).cost, Range(0, subject.size.high))


def _membership(overload: str, _subject: Node, rest: Nodes) -> Estimate:
    return Estimate(rest[0].size) if overload == "in_list" else _NOMINAL


def _equality(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    left, right = subject.type.name, rest[0].type.name
    if left == right:
        if left in _EXACT_TYPES or left.startswith(_AUTHORIZATION):
            return _NOMINAL
        if left == "kubernetes.NamedFormat":
            return Estimate(_NAMED_FORMAT)
        if left == "kubernetes.URL":
            size = rest[0].known
            return Estimate(size.times(TRAVERSAL) if size is not None else ONE)
    return _comparison(_overload, subject, rest)


def _comparison(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    most = min(subject.size.high, rest[0].size.high)
    return Estimate(Range(min(most, 1), most).times(TRAVERSAL))


def _order(overload: str, subject: Node, rest: Nodes) -> Estimate:
    if overload.endswith(("_string_string", "_bytes_bytes")):
        return _comparison(overload, subject, rest)
    return _NOMINAL


def _replace(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    size, old, new = subject.size, rest[0].size, rest[1].size
    longest, shortest = (
        _replaced(size.high, old.low, new.high, longer=True),
        _replaced(size.low, old.high, new.low, longer=False),
    )
    return Estimate(size.times(2 * TRAVERSAL), Range(shortest, longest))


def _replaced(size: int, old: int, new: int, *, longer: bool) -> int:
    """Return how long a text becomes at most, or at least."""
    if not old:
        return min(min(size + 1, LIMIT) * new + size, LIMIT)
    if (new <= old) if longer else (old <= new):
        return size
    return min(math.ceil(float(size) / float(old)) * new, LIMIT)


def _split(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    most = subject.size.high
    if len(rest) > 1 and isinstance(rest[1].expr, Const) and isinstance(rest[1].expr.value, int):
        most = rest[1].expr.value % (LIMIT + 1)
    return Estimate(subject.size.times(2 * TRAVERSAL), Range(0, most))


def _items(subject: Node) -> Range | None:
    """Return how large the items of a list are, or None for what is no list."""
    if not subject.type.params:
        return None
    path = subject.path
    return (
        size_at(Path([*path.steps, "@items"], len(path.steps) + 1) if path is not None else None) or UNKNOWN
    )


def _join(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    item = _items(subject)
    size = subject.size * item if item is not None else exactly(0)
    if rest:
        separators = Range(max(subject.size.low - 1, 0), max(subject.size.high - 1, 0))
        size += rest[0].size * separators
    return Estimate(size.times(TRAVERSAL), size)


def _scan(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    item = _items(subject)
    if item is None:
        return Estimate(subject.size.times(TRAVERSAL))
    each = ONE + item.times(TRAVERSAL) if subject.type.params[0].name in _TEXTS else ONE
    return Estimate(subject.size * each)


def _quote(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    size = subject.size
    return Estimate(size.times(TRAVERSAL), Range(size.low + 2, (size.high * 2 + 2) % (LIMIT + 1)))


def _to_bytes(overload: str, subject: Node, _rest: Nodes) -> Estimate:
    if overload != "bytes_string":
        return _NOMINAL
    size = subject.size
    return Estimate(size.times(TRAVERSAL), Range(size.low, size.high * 4 % (LIMIT + 1)))


def _to_string(overload: str, subject: Node, _rest: Nodes) -> Estimate:
    if not overload.endswith("_bytes"):
        return _NOMINAL
    return Estimate(subject.size.times(TRAVERSAL), Range(subject.size.low // 4, subject.size.high))


def _contains_ip(overload: str, _subject: Node, rest: Nodes) -> Estimate:
    cost = (_ADDRESS + _ADDRESS).times(TRAVERSAL)
    return Estimate(cost + rest[0].size.times(TRAVERSAL) if overload.endswith("_string") else cost)


def _contains_cidr(overload: str, subject: Node, rest: Nodes) -> Estimate:
    cost = _contains_ip(overload, subject, rest).cost + _ADDRESS.times(TRAVERSAL) + ONE
    return Estimate(cost)


def _ip(overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return _NOMINAL if overload.endswith("CIDR") else Estimate(subject.size.times(TRAVERSAL))


def _validate(_overload: str, _subject: Node, rest: Nodes) -> Estimate:
    return Estimate(rest[0].size.times(TRAVERSAL) * exactly(32))


def _sets(factor: float) -> Price:
    return lambda _overload, subject, rest: Estimate((subject.size * rest[0].size).times(factor) + ONE)


def _making(size: Range) -> Estimate:
    return Estimate(_LIST_CALL + size.times(1), size)


def _literal(node: Node, otherwise: int) -> int:
    expr = node.expr
    return max(expr.value, 0) if isinstance(expr, Const) and type(expr.value) is int else otherwise


def _range(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return _making(exactly(_literal(subject, LIMIT)))


def _slice(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    # An end before the start wraps round, so that such a slice is refused as too costly.
    return _making(exactly((_literal(rest[1], subject.size.high) - _literal(rest[0], 0)) % (LIMIT + 1)))


def _reverse(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    return _making(subject.size)


def _flatten(_overload: str, subject: Node, rest: Nodes) -> Estimate:
    depth = _literal(rest[0], LIMIT) if rest else 1
    return Estimate(_LIST_CALL + subject.size.times(depth), subject.size)


def _distinct(_overload: str, subject: Node, _rest: Nodes) -> Estimate:
    size = subject.size * subject.size
    return Estimate(_LIST_CALL + size.times(2), size)


def _ordering(overload: str, subject: Node, rest: Nodes) -> Estimate:
    keys = rest[0] if rest else subject
    texts = overload.endswith(("list(string)", "list(bytes)"))
    size = keys.size * keys.size
    return Estimate(_LIST_CALL + size.times(2 + TRAVERSAL if texts else 2), size)


def _includes(_overload: str, _subject: Node, _rest: Nodes) -> Estimate:
    return Estimate(exactly(48))


def _check(_overload: str, _subject: Node, _rest: Nodes) -> Estimate:
    return Estimate(exactly(350_000))


_MEMBERS_ONLY: Final = ("matches", "contains", "startsWith", "endsWith")
"""Called as functions, these are not recognised."""

PRICED: Final[dict[str, Price]] = {
    "_==_": _equality,
    "_!=_": _comparison,
    "_<_": _order,
    "_<=_": _order,
    "_>_": _order,
    "_>=_": _order,
    "@in": _membership,
    "startsWith": _affix,
    "endsWith": _affix,
    "contains": _contains,
    "matches": _matches,
    "find": _find,
    "findAll": _find,
    "lowerAscii": _sized_traversal,
    "upperAscii": _sized_traversal,
    "substring": _sized_traversal,
    "trim": _sized_traversal,
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": _traversal,
    "strings.quote": _quote,
    "bytes": _to_bytes,
    "string": _to_string,
    "sum": _scan,
    "min": _scan,
    "max": _scan,
    "isSorted": _scan,
    "indexOf": _scan,
    "lastIndexOf": _scan,
    "quantity": _traversal,
    "isQuantity": _traversal,
    "semver": _traversal,
    "isSemver": _traversal,
    "cidr": _traversal,
    "isIP": _traversal,
    "isCIDR": _traversal,
    "ip": _ip,
    "ip.isCanonical": _twice,
    "url": _sized_traversal,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    "lists.range": _range,
    "slice": _slice,
    "reverse": _reverse,
    "flatten": _flatten,
    "distinct": _distinct,
    "sort": _ordering,
    "@sortByAssociatedKeys": _ordering,
    "includes": _includes,
    "check": _check,
}
"""All that does not cost the same whatever it is given."""
