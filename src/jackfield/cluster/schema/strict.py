"""Bodies held against schemas, as Kubernetes' strict decoder does: unknown fields, fields twice, wrong types.

Knows the words of the API server, in its order and to its limits, and that kinds from definitions are judged otherwise
than its own. Must not know what becomes of a call. What takes a kind also takes the schema of a body that is no kind.
Whoever calls has seen to it that bodies are not nested too deep.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from jackfield.cluster.schema import doubles, kinds, library, mismatch
from jackfield.cluster.schema import node as nodes
from jackfield.cluster.schema.node import ANY, Node
from jackfield.codec import Raw, RawValue
from jackfield.codec.kinds import Kind
from jackfield.core.cel.quoting import quoted

ERRORS_MAX: Final = 100
"""How many unknown and doubled fields are named."""
_NESTED: Final = (dict, list)
_OUTLINE: Final = ("apiVersion", "kind", "metadata")
_YAML: Final = "yaml: unmarshal errors:"

Told = Iterator[tuple[str, str]]
"""What is wrong with a field, and the path to it."""
NOTHING: Final = Node({"type": "object"})
"""What is in a list where there should be none: an object in it has no field that anybody knows."""
UNKNOWN: Final = "unknown field"
DUPLICATE: Final = "duplicate field"


def errors(kind: Kind | Node, body: bytes) -> tuple[str, ...]:
    """Return all that strict decoding finds in a JSON body: `unknown field "spec.a"`, in the server's order."""
    raw = doubles.parsed(body)
    root = _root(kind)
    if root is None or not isinstance(raw, dict) or _clean(root, raw):
        return ()
    if _is_custom(kind):
        custom = (f'{UNKNOWN} "{one}"' for one in _unknown_to_definition(root, _sorted(raw)))
        return (*_spelt(_doubled(raw)), *custom)
    return _spelt(_found(root, raw, ""))


def yaml_errors(kind: Kind | Node, body: bytes, raw: Raw) -> tuple[str, ...]:
    """Return the same of a YAML body that says `raw`: fields twice first, by their lines."""
    twice = doubles.in_yaml(body)
    unknown = (f"{UNKNOWN} {quoted(one)}" for one in unknown_fields(kind, _sorted(raw)))
    return ("\n  ".join((_YAML, *twice)), *unknown) if twice else tuple(unknown)


def warnings(found: Iterable[str]) -> tuple[str, ...]:
    """Return errors as warnings, which are one a line."""
    return tuple(line.strip() for one in found for line in one.removeprefix(_YAML).strip().split("\n"))


def type_error(kind: Kind, raw: Raw) -> str:
    """Return what the server says to an object with a value of the wrong type; empty if there is none.

    An object out of `doubles.parsed` is judged with all that it says, also what it takes back.
    """
    wrong = mismatch_in(kind, raw)
    return (
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {wrong}'
        if wrong
        else ""
    )


def mismatch_in(kind: Kind | Node, raw: Raw) -> str:
    """Return what the decoder says to it, without who was decoding; of our own kinds it reads only the metadata."""
    root = _root(kind)
    if root is None:
        return ""
    if not _is_custom(kind):
        return mismatch.first(root, raw)
    metadata = raw.get("metadata")
    return mismatch.first(nodes.named(library.OBJECT_META), _sorted(metadata))


# --- unknown fields


def unknown_fields(kind: Kind | Node, raw: Raw) -> tuple[str, ...]:
    """Return the paths to fields that a kind does not have, at most a hundred."""
    root = _root(kind)
    if root is None or _clean(root, raw):
        return ()
    if _is_custom(kind):
        return tuple(_unknown_to_definition(root, raw))
    return tuple(path for _, path in _limited(_found(root, raw, "")))


def pruned(kind: Kind | Node, raw: Raw) -> Raw:
    """Return an object without fields that its kind does not have; the same one if there are none."""
    root = _root(kind)
    kept: Raw = raw if root is None or _clean(root, raw) else _pruned(root, raw)
    return kept


def _pruned(node: Node, value: RawValue) -> RawValue:
    if node.type == ANY:
        return value
    after: RawValue = value
    if isinstance(value, dict):
        after = {
            name: _pruned(member, one)
            for name, one in value.items()
            if (member := node.member(name)) is not None
        }
    elif isinstance(value, list):
        after = [_pruned(node.items or NOTHING, one) for one in value]
    return value if after == value else after


def _clean(node: Node, value: RawValue) -> bool:
    """Return whether nothing in it is unknown or stands twice: nearly always so, and seen without naming anything."""
    if node.type == ANY:
        return True
    if isinstance(value, doubles.Doubled):
        return False
    if isinstance(value, dict):
        for name, one in value.items():
            member = node.member(name)
            if member is None or (isinstance(one, _NESTED) and not _clean(member, one)):
                return False
        return True
    items = node.items or NOTHING
    return all(_clean(items, one) for one in value if isinstance(one, _NESTED))


def _unknown_to_definition(root: Node, raw: Raw) -> Iterator[str]:
    """Tell the paths to what a definition does not have: the metadata's first, then the others', sorted."""
    metadata = _sorted(raw.get("metadata"))
    if isinstance(metadata, dict):
        meta = nodes.named(library.OBJECT_META)
        yield from (path for _, path in _limited(_found(meta, metadata, "metadata")))
    rest = {name: value for name, value in raw.items() if name not in _OUTLINE}
    yield from sorted(path for what, path in _found(root, rest, "") if what == UNKNOWN)


def _found(node: Node, value: RawValue, path: str) -> Told:
    """Tell what is wrong in a value, in its own order. What is unknown is not looked into."""
    if node.type == ANY:
        return
    if isinstance(value, dict):
        seen: set[str] = set()
        for name, one in doubles.members(value):
            place = f"{path}.{name}" if path else name
            member = node.member(name)
            if member is None:
                yield UNKNOWN, place
                continue
            if name in seen:
                yield DUPLICATE, place
            seen.add(name)
            yield from _found(member, one, place)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _found(node.items or NOTHING, one, f"{path}[{index}]")


def _spelt(found: Told) -> tuple[str, ...]:
    return tuple(f"{what} {quoted(path)}" for what, path in _limited(found))


def _limited(found: Told) -> Iterator[tuple[str, str]]:
    """Tell each only once, and not too many of them."""
    told: dict[tuple[str, str], None] = {}
    for one in found:
        if len(told) == ERRORS_MAX:
            return
        if one not in told:
            told[one] = None
            yield one


# --- fields twice


def duplicate_fields(body: bytes) -> tuple[str, ...]:
    """Return the paths to fields that stand twice in a JSON body, whatever kind it is of."""
    return tuple(path for _, path in _limited(_doubled(doubles.parsed(body))))


def _doubled(value: RawValue) -> Told:
    return ((DUPLICATE, path) for path in doubles.paths(value))


# --- words


def _sorted(value: RawValue) -> RawValue:
    """Return a value with its members in order, as they are after a detour through Go's maps."""
    match value:
        case dict():
            return {name: _sorted(value[name]) for name in sorted(value)}
        case list():
            return [_sorted(one) for one in value]
        case _:
            return value


def _root(kind: Kind | Node) -> Node | None:
    return kind if isinstance(kind, Node) else kinds.of(kind)


def _is_custom(kind: Kind | Node) -> bool:
    return isinstance(kind, Kind) and kinds.is_custom(kind)
