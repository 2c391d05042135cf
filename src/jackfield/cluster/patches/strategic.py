"""Strategic merge patch: a merge patch in which lists have keys and directives say what merging cannot.

Knows `$patch`, `$retainKeys`, `$setElementOrder` and `$deleteFromPrimitiveList`, and in which words the server refuses
nonsense. Must not know any kind: which lists are merged, and by which key, is the schema's to say.
"""

from collections.abc import Callable, Hashable, Iterable
from http import HTTPStatus
from typing import Protocol

import msgspec

from jackfield.cluster import errors
from jackfield.codec import Raw, RawValue, without_nulls

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder"
DELETE = "$deleteFromPrimitiveList"

_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class Node(Protocol):
    """What a patch asks of a schema."""

    @property
    def type(self) -> str:
        """Which JSON type it is."""

    @property
    def go_type(self) -> str:
        """What Kubernetes calls it."""

    @property
    def items(self) -> "Node | None":
        """What a list is of."""

    @property
    def patch_strategies(self) -> frozenset[str]:
        """How it is patched: merge, replace, retainKeys."""

    @property
    def patch_key(self) -> str:
        """By which field the items of a merged list are told apart."""

    def member(self, name: str, /) -> "Node | None":
        """Return the schema of a member."""


class _ListRules(msgspec.Struct, frozen=True):
    """How one list is patched."""

    item: Node | None
    key: str
    merges: bool


def patched(target: Raw, body: Raw | None, schema: Node | None) -> Raw:
    """Return the target with the patch merged in; neither is changed, and what does not change is shared."""
    if schema is None:
        raise errors.bad_request("strategic merge patch format is not supported")
    return _merged(target, body or {}, schema)


def spelt(value: RawValue) -> str:
    """Return a value as Go prints one: how the server shows a patch it cannot use."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return f"map[{' '.join(f'{name}:{spelt(value[name])}' for name in sorted(value))}]"
        case list():
            return f"[{' '.join(spelt(one) for one in value)}]"
        case float():
            return repr(value).removesuffix(".0")
        case _:
            return str(value)


# --- objects


def _merged(original: Raw, body: Raw, node: Node) -> Raw:
    if DIRECTIVE in body:
        return _directed(body)
    result, rest = _retained(original, body)
    for name in [one for one in rest if one.startswith(ORDER)]:
        _reorder(result, rest, name, node)
    for name, value in rest.items():
        if name.startswith(DELETE):
            _delete(result, _named(name, DELETE, "primitive list"), value, node)
        elif value is None:
            result.pop(name, None)
        else:
            _set(result, name, value, node)
    return result


def _directed(body: Raw) -> Raw:
    match body[DIRECTIVE]:
        case "replace":
            rest = {name: value for name, value in body.items() if name != DIRECTIVE}
            whole: Raw = without_nulls(rest)
            return whole
        case "delete":
            return {}
        case other:
            raise errors.unexplained(f"unknown patch type: {_text(other)} in map: {spelt(body)}")


def _retained(original: Raw, body: Raw) -> tuple[Raw, Raw]:
    """Return both as copies to work on, the original with only what the patch wants to keep of it."""
    if RETAIN not in body:
        return dict(original), dict(body)
    kept = body[RETAIN]
    rest = {name: value for name, value in body.items() if name != RETAIN}
    said = [
        name for name, value in rest.items() if value is not None and not name.startswith((DELETE, ORDER))
    ]
    if not isinstance(kept, list) or any(name not in kept for name in said):
        raise errors.bad_request("invalid patch format of retainKeys")
    return {name: value for name, value in original.items() if name in kept}, rest


def _set(result: Raw, name: str, value: RawValue, node: Node) -> None:
    old: RawValue = result.get(name)
    if type(old) is not type(value):
        kept = _without_directives(without_nulls(value))
        if kept is _GONE:
            result.pop(name, None)
        else:
            result[name] = kept
    elif isinstance(value, dict):
        inner = _member(node, name)
        whole = "replace" in inner.patch_strategies
        result[name] = without_nulls(value) if whole else _merged(old, value, inner)
    elif isinstance(value, list):
        rules = _rules(node, name)
        result[name] = _merged_list(old, value, rules) if rules.merges else without_nulls(value)
    else:
        result[name] = value


def _delete(result: Raw, name: str, values: RawValue, node: Node) -> None:
    if values is None:
        result.pop(name, None)
    old = result.get(name)
    if not isinstance(old, list) or not isinstance(values, list):
        return
    rules = _rules(node, name)
    if not old and not values:
        return
    if _element_type(old, values) is dict:
        result[name] = _merged_list(old, values, rules)
    else:
        gone = {_scalar(one) for one in values}
        result[name] = [one for one in old if _scalar(one) not in gone]


_GONE = object()


def _without_directives(value: RawValue) -> RawValue:
    """Return a new value without the parts that are directives; they say something about what was not there."""
    if isinstance(value, dict):
        if DIRECTIVE in value:
            return _GONE
        cleaned = {name: _without_directives(one) for name, one in value.items()}
        return {name: one for name, one in cleaned.items() if one is not _GONE}
    if isinstance(value, list):
        return [one for one in map(_without_directives, value) if one is not _GONE]
    return value


# --- lists


def _merged_list(original: list[RawValue], body: list[RawValue], rules: _ListRules) -> list[RawValue]:
    if not original and not body:
        return original
    if _element_type(original, body) is not dict:
        known = {_scalar(one): one for one in (*original, *body)}
        return _ordered(list(known.values()), body, original, _scalar)
    if not rules.key:
        raise errors.unexplained("cannot merge lists without merge key for struct")
    live, plain = _directed_items(original, body, rules.key)
    merged = list(live)
    places = {_scalar(one[rules.key]): at for at, one in reversed([*enumerate(live)]) if rules.key in one}
    for item in plain:
        place = places.setdefault(_scalar(_key_of(item, rules.key)), len(merged))
        if place == len(merged):
            merged.append(without_nulls(item))
        else:
            assert rules.item is not None, "a list of objects is a list of something"
            merged[place] = _merged(merged[place], item, rules.item)
    return _ordered(merged, plain, live, lambda one: _scalar(_key_of(one, rules.key)))


def _directed_items(original: list[Raw], body: list[Raw], key: str) -> tuple[list[Raw], list[Raw]]:
    """Return what is left of both lists once the items that are directives are done with."""
    plain: list[Raw] = []
    gone: set[Hashable] = set()
    replaces = False
    for item in body:
        match item:
            case {"$patch": "delete"}:
                gone.add(_scalar(_key_of(item, key)))
            case {"$patch": "replace"}:
                replaces = True
            case {"$patch": "merge"}:
                raise errors.unexplained("merging lists cannot yet be specified in the patch")
            case {"$patch": other}:
                raise errors.unexplained(f"unknown patch type: {_text(other)} in map: {spelt(item)}")
            case _:
                plain.append(item)
    if replaces:
        return without_nulls(plain), []
    return [one for one in original if key not in one or _scalar(one[key]) not in gone], plain


def _reorder(result: Raw, rest: Raw, directive: str, node: Node) -> None:
    """Merge the list a `$setElementOrder` speaks of, and put it into that order; the patch has been used by then."""
    order = _list(rest.pop(directive))
    name = _named(directive, ORDER, "setElementOrder list")
    live = _list(result[name]) if name in result else []
    body = _list(rest[name]) if name in rest else []
    rules = _rules(node, name)
    _refuse_another_order(body, order, rules.key)
    if name in result and name in rest:
        merged = _merged_list(live, body, rules) if rules.merges else without_nulls(body)
    elif name in result:
        merged = live
    elif name in rest:
        merged = _without_directives(without_nulls(body))
    else:
        return
    if rules.key:
        _refuse_keyless(merged, order, rules.key)
    _element_type(live, body)
    place = (lambda one: _scalar(_key_of(one, rules.key))) if rules.key else _scalar
    result[name] = _ordered(merged, order, live, place)
    rest.pop(name, None)


def _refuse_another_order(body: list[RawValue], order: list[RawValue], key: str) -> None:
    """Raise if the patch's own list is in another order than the one it asks for, or has something else in it."""
    if not order or not body:
        return
    said = [one for one in body if not isinstance(one, dict) or DIRECTIVE not in one]
    if key and any(not isinstance(one, dict) for one in (*said, *order)):
        raise _bad_argument(next(one for one in (*said, *order) if not isinstance(one, dict)), dict)
    places = iter(order)
    for item in said:
        wanted = _scalar(_key_of(item, key) if key else item)
        if not any(wanted == _scalar(_key_of(one, key) if key else one) for one in places):
            words = f"The order in patch list:\n{spelt(body)}\n doesn't match {ORDER} list:\n{spelt(order)}\n"
            raise errors.unexplained(words)


def _refuse_keyless(merged: list[RawValue], order: list[RawValue], key: str) -> None:
    for index, one in enumerate(order):
        if merged and not isinstance(one, dict):
            raise errors.unexplained(f"value for key {index} is not a map")
    for one in (*merged, *order):
        _key_of(one, key)


def _ordered(
    merged: list[RawValue],
    order: list[RawValue],
    live: list[RawValue],
    key: Callable[[RawValue], Hashable],
) -> list[RawValue]:
    """Return the items: what the patch names in its order, the rest in theirs and before what they stood before."""
    asked, lived = _places(order, key), _places(live, key)
    said = sorted((one for one in merged if key(one) in asked), key=lambda one: asked[key(one)])
    rest = sorted((one for one in merged if key(one) not in asked), key=lambda one: lived.get(key(one), -1))
    result: list[RawValue] = []
    waiting = 0
    for one in said:
        here = lived.get(key(one))
        while here is not None and waiting < len(rest) and lived.get(key(rest[waiting]), here) < here:
            result.append(rest[waiting])
            waiting += 1
        result.append(one)
    return result + rest[waiting:]


def _places(items: list[RawValue], key: Callable[[RawValue], Hashable]) -> dict[Hashable, int]:
    return {key(one): index for index, one in reversed(list(enumerate(items)))}


def _key_of(item: RawValue, key: str) -> RawValue:
    if not isinstance(item, dict):
        raise _bad_argument(item, dict)
    if key not in item:
        raise errors.unexplained(f"map: {spelt(item)} does not contain declared merge key: {key}")
    return item[key]


def _scalar(value: RawValue) -> Hashable:
    """Return what two scalars are compared by: true is not 1."""
    if isinstance(value, dict | list):
        raise errors.unexplained(f"comparing uncomparable type {_GO_TYPES[type(value)]}")
    return type(value), value


def _element_type(*lists: Iterable[RawValue]) -> type:
    """Return what the items of all lists are. Raises if they are not all the same."""
    found = [type(one) for items in lists for one in items]
    if not found:
        raise errors.unexplained("no elements in any of the given slices")
    if found[0] is list:
        words = "the server rejected our request due to an error in our request"
        raise errors.ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", words)
    if any(one is not found[0] for one in found):
        raise errors.unexplained(f"list element types are not identical: {spelt(list(lists))}")
    return found[0]


# --- schemas and words


def _member(node: Node, name: str) -> Node:
    inner = node.member(name)
    if inner is None:
        kind = node.go_type.rpartition(".")[2]
        words = f'unable to find api field in struct {kind} for the json field "{name}"'
        raise errors.unexplained(words)
    return inner


def _rules(node: Node, name: str) -> _ListRules:
    inner = _member(node, name)
    if inner.type not in ("array", "any"):
        raise errors.unexplained("expected slice or array type, but got: struct")
    return _ListRules(inner.items, inner.patch_key, "merge" in inner.patch_strategies)


def _named(directive: str, prefix: str, what: str) -> str:
    """Return the field that a directive beside it speaks of."""
    start, slash, name = directive.partition("/")
    if start != prefix or not slash:
        raise errors.bad_request(f"invalid patch format of {what}")
    return name


def _list(value: RawValue) -> list[RawValue]:
    if not isinstance(value, list):
        raise _bad_argument(value, list)
    return value


def _bad_argument(value: RawValue, wanted: type) -> errors.ApiError:
    found = _GO_TYPES.get(type(value), "%!s(<nil>)")
    return errors.unexplained(f"expected a {_GO_TYPES[wanted]}, but received a {found}")


def _text(value: RawValue) -> str:
    return value if isinstance(value, str) else f"%!s({_GO_TYPES.get(type(value), '')}={spelt(value)})"
