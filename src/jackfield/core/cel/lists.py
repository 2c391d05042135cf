"""Functions on lists, maps and sets.

Knows order and equality of values. Must not know expressions.
"""

import itertools
from functools import cmp_to_key
from typing import Final

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.operators import (
    ITEMS_MAX,
    add,
    bounded,
    compare,
    contains,
    equal,
    literal,
    surely_equal,
)
from jackfield.core.cel.times import YEAR_ONE
from jackfield.core.cel.values import (
    NONE,
    Duration,
    Optional,
    Semver,
    Timestamp,
    UInt,
    overload,
)

Values = list[object]

_COMPARABLE: Final = (int, UInt, float, bool, Duration, Timestamp, str, bytes)
_ZEROS: Final[dict[type, object]] = {int: 0, UInt: UInt(0), float: 0.0, Duration: Duration(0)}


@overload("size", str)
@overload("size", bytes)
@overload("size", list)
@overload("size", dict)
def _size(container: str | bytes | Values | dict[object, object]) -> int:
    return len(container)


@overload("size", object)
def _no_size(_value: object) -> int:
    raise CelError("no such overload: size")


@overload("sum", list)
def _sum(items: Values) -> object:
    if not items:
        return 0
    total: object = _ZEROS.get(type(items[0]))
    if total is None:
        raise CelError("no such overload: sum(list)")
    for item in items:
        total = add(total, item)
    return total


@overload("min", list)
def _min(items: Values) -> object:
    return _extreme(items, "min", -1)


@overload("max", list)
def _max(items: Values) -> object:
    return _extreme(items, "max", 1)


def _extreme(items: Values, name: str, wanted: int) -> object:
    if not items:
        raise CelError(f"{name} called on empty list")
    best, *others = _comparable(items, name)
    for item in others:
        if _order(item, best) == wanted:
            best = item
    return best


def _comparable(items: Values, name: str) -> Values:
    if items and type(items[0]) not in _COMPARABLE:
        raise CelError(f"no such overload: {name}(list)")
    if any(type(one) not in _COMPARABLE for one in items):
        raise CelError("no such overload")
    return items


def _order(left: object, right: object) -> int:
    """Return -1, 0 or 1; values without an order among them pass for equal, as Kubernetes passes over the error."""
    try:
        return compare("_<_", left, right)
    except CelError:
        return 0


@overload("isSorted", list)
def _is_sorted(items: Values) -> bool:
    return all(_order(left, right) <= 0 for left, right in itertools.pairwise(_comparable(items, "isSorted")))


@overload("indexOf", list, object)
def _index_of(items: Values, wanted: object) -> int:
    return next((at for at, item in enumerate(items) if surely_equal(item, wanted)), -1)


@overload("lastIndexOf", list, object)
def _last_index_of(items: Values, wanted: object) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if surely_equal(items[at], wanted)), -1)


@overload("lists.range", int)
def _range(count: int) -> Values:
    # Kubernetes has no limit here. What would fill the memory costs more than the limit, and is stopped before.
    return list(range(count))


@overload("reverse", list)
def _reverse(items: Values) -> Values:
    return items[::-1]


@overload("slice", list, int, int)
def _slice(items: Values, start: int, end: int) -> Values:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@overload("flatten", list)
def _flatten(items: Values) -> Values:
    return _flatten_deep(items, 1)


@overload("flatten", list, int)
def _flatten_deep(items: Values, depth: int) -> Values:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: Values = items
    for _ in range(depth):
        if not any(isinstance(item, list) for item in flat):
            break
        inner = [item if isinstance(item, list) else [item] for item in flat]
        flat = bounded(list(itertools.islice(itertools.chain.from_iterable(inner), ITEMS_MAX + 1)))
    return flat


@overload("distinct", list)
def _distinct(items: Values) -> Values:
    found: Values = []
    for item in items:
        if not any(surely_equal(item, one) for one in found):
            found.append(item)
    return found


@overload("sort", list)
def _sort(items: Values) -> Values:
    return _sorted(items, items)


@overload("@sortByAssociatedKeys", list, list)
def _sort_by(items: Values, keys: Values) -> Values:
    return _sorted(items, keys)


def _sorted(items: Values, keys: Values) -> Values:
    if not items:
        return []
    first = type(keys[0])
    if any(type(key) is not first for key in keys):
        raise CelError("list elements must have the same type")
    if isinstance(keys[0], list | dict | Optional | Semver) or keys[0] is None:
        raise CelError("list elements must be comparable")

    def by_key(one: int, other: int) -> int:
        return compare("_<_", keys[one], keys[other])

    return [items[at] for at in sorted(range(len(items)), key=cmp_to_key(by_key))]


@overload("first", list)
def _first(items: Values) -> Optional:
    return Optional(present=True, value=items[0]) if items else NONE


@overload("last", list)
def _last(items: Values) -> Optional:
    return Optional(present=True, value=items[-1]) if items else NONE


@overload("includes", object, object)
def _includes(container: object, wanted: object) -> bool:
    if not isinstance(container, list):
        return equal(container, wanted)
    return contains(wanted, container)


@overload("sets.contains", list, list)
def _sets_contains(items: Values, wanted: Values) -> bool:
    return all(contains(one, items) for one in wanted)


@overload("sets.intersects", list, list)
def _sets_intersects(left: Values, right: Values) -> bool:
    return any(contains(one, right) for one in left)


@overload("sets.equivalent", list, list)
def _sets_equivalent(left: Values, right: Values) -> bool:
    return _sets_contains(left, right) and _sets_contains(right, left)


@overload("optional.of", object)
def _optional_of(value: object) -> Optional:
    return Optional(present=True, value=value)


@overload("optional.none")
def _optional_none() -> Optional:
    return NONE


@overload("optional.ofNonZeroValue", object)
def _optional_of_non_zero(value: object) -> Optional:
    return NONE if _is_zero(value) else Optional(present=True, value=value)


def _is_zero(value: object) -> bool:
    if isinstance(value, Duration | Timestamp):
        return value in (Duration(0), YEAR_ONE)
    return value is None or (isinstance(value, bool | int | float | str | bytes | list | dict) and not value)


@overload("hasValue", Optional)
def _has_value(value: Optional) -> bool:
    return value.present


@overload("value", Optional)
def _value(value: Optional) -> object:
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


@overload("optional.unwrap", list)
def _unwrap(items: Values) -> Values:
    return _unwrapped(items, "optional.unwrap")


@overload("unwrapOpt", list)
def _unwrap_member(items: Values) -> Values:
    return _unwrapped(items, "unwrapOpt")


def _unwrapped(items: Values, name: str) -> Values:
    made: Values = []
    for at, item in enumerate(items):
        if not isinstance(item, Optional):
            raise CelError(
                f"value {literal(item)} is not optional" if at else f"no such overload: {name}(list)"
            )
        made.extend([item.value] if item.present else [])
    return made
