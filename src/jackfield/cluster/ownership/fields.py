"""Which fields an object has, and which differ between two: what server-side apply counts in.

Knows that lists are keyed, sets or whole, as their schema says. Must not know who owns a field.

A path is a tuple of elements as managedFields spell them: `f:name` is a field, `k:{...}` an item of a keyed list,
`v:...` a member of a set. The path of an object, a list or an item stands for its being there.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache

import msgspec

from jackfield.cluster.schema import Node
from jackfield.codec import Raw, RawValue

Path = tuple[str, ...]

KEYS_MAX = 10_000
"""How many keys of items are remembered as managedFields spell them; the rest are spelt anew."""
OPAQUE = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""What somebody else's program reads: the server does not look into it."""


class Difference(msgspec.Struct, frozen=True):
    """What differs between two versions of an object."""

    changed: frozenset[Path]
    """There now, and not like that before."""
    removed: frozenset[Path]


class Shape:
    """How what lies at a place of an object is owned: as one, or part by part.

    Made from a schema and kept, so that a walk looks up one name per member. Where there is no schema, objects are
    owned member by member and lists as one.
    """

    __slots__ = ("_each", "_hides", "_item", "_members", "_node", "is_set", "keys", "whole")

    def __init__(self, node: Node | None, *, hides: bool = False) -> None:
        """Look at a schema; `hides` says that empty lists and maps in it are as good as absent."""
        self._node = node
        self._hides = hides
        self._members: dict[str, Shape] = {}
        self._item: Shape | None = None
        self._each = Shape(node.member(""), hides=hides) if node is not None and node.is_map else None
        self.whole = node is not None and (node.map_type == "atomic" or node.name == OPAQUE)
        """Whether an object is owned as one."""
        self.keys = _keys(node)
        """By which fields items are told apart, each with its default; none if it is no list of such items."""
        self.is_set = node is not None and node.list_type == "set"

    def declares(self, name: str) -> bool:
        """Return whether a member is a field of the schema; those of maps are not."""
        return self._node is not None and name in self._node.members

    def member(self, name: str) -> "Shape":
        """Return the shape of a member."""
        if self._each is not None:
            return self._each
        found = self._members.get(name)
        if found is None:
            node = self._node.members.get(name) if self._node is not None else None
            if node is None:
                return ANYTHING
            self._members[name] = found = Shape(node, hides=self._hides)
        return found

    @property
    def item(self) -> "Shape":
        """The shape of a list's items."""
        if self._item is None:
            self._item = Shape(self._node.items, hides=self._hides) if self._node is not None else ANYTHING
        return self._item

    def hides(self, value: RawValue) -> bool:
        """Return whether a value is as good as absent: what Go reads into its own types, it writes without."""
        return self._hides and (value == [] or (value == {} and self._each is not None))

    def items_of(self, value: list[RawValue]) -> dict[str, RawValue] | None:
        """Return the items of a list by their elements; None if it is owned as one.

        Items that cannot be told apart stand together as a tuple, which is owned as one.
        """
        if not (self.keys or self.is_set):
            return None
        elements = self.elements(value)
        if elements is None:
            return None
        groups: dict[str, list[RawValue]] = {}
        for element, one in zip(elements, value, strict=True):
            groups.setdefault(element, []).append(one)
        return {element: same[0] if len(same) == 1 else tuple(same) for element, same in groups.items()}

    def elements(self, value: list[RawValue]) -> list[str] | None:
        """Return by what the items of a list are told apart; None where they have nothing of the kind."""
        if self.is_set:
            return [f"v:{_text(one)}" for one in value]
        return [self._key(one) for one in value] if all(isinstance(one, dict) for one in value) else None

    def _key(self, item: Raw) -> str:
        values = [item.get(key, default) for key, default in self.keys]
        try:
            return _key_text(self.keys, *values)
        except TypeError:
            # What is no scalar is a poor key, and nothing to remember.
            return _key_text.__wrapped__(self.keys, *values)


@lru_cache(maxsize=KEYS_MAX, typed=True)
def _key_text(keys: tuple[tuple[str, RawValue], ...], *values: RawValue) -> str:
    found = {key: value for (key, _), value in zip(keys, values, strict=True) if value is not None}
    return f"k:{_text(found)}"


def _keys(node: Node | None) -> tuple[tuple[str, RawValue], ...]:
    if node is None or node.list_type != "map" or node.items is None:
        return ()
    found = [(key, node.items.member(key)) for key in node.list_keys]
    return tuple((key, None if field is None else field.default) for key, field in found)


ANYTHING = Shape(None)


# --- walking


def paths_of(raw: Raw, shape: Shape) -> frozenset[Path]:
    """Return what whoever says this much owns: every leaf and every item, and of objects only the empty ones."""
    into: set[Path] = set()
    _say(raw, shape, (), into)
    return frozenset(into)


def compared(old: Raw, new: Raw, shape: Shape) -> Difference:
    """Return what differs; parts that are the very same object are not looked into."""
    changed: set[Path] = set()
    removed: set[Path] = set()
    _differ((old, new), shape, (), (changed, removed))
    return Difference(frozenset(changed), frozenset(removed))


def _say(value: RawValue, shape: Shape, path: Path, into: set[Path]) -> None:
    if isinstance(value, dict) and not shape.whole:
        for name, inner in value.items():
            at = (*path, f"f:{name}")
            if (not inner and (inner is None or inner == {})) or not shape.declares(name):
                into.add(at)
            _say(inner, shape.member(name), at, into)
        return
    items = shape.items_of(value) if isinstance(value, list) else None
    if items is None:
        into.add(path)
        return
    for element, item in items.items():
        at = (*path, element)
        into.add(at)
        _say(item, shape.item, at, into)


def _present(value: RawValue, shape: Shape, path: Path) -> Iterator[Path]:
    """Yield the paths of all that comes or goes with a value, beginning with its own."""
    if value or not shape.hides(value):
        yield path
        yield from _within(value, shape, path)


def _within(value: RawValue, shape: Shape, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        if not shape.whole:
            for name, inner in value.items():
                yield from _present(inner, shape.member(name), (*path, f"f:{name}"))
    elif isinstance(value, list):
        for element, item in (shape.items_of(value) or {}).items():
            yield from _present(item, shape.item, (*path, element))


def _differ(
    pair: tuple[RawValue, RawValue], shape: Shape, path: Path, found: tuple[set[Path], set[Path]]
) -> None:
    old, new = pair
    if old is new or old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) and not shape.whole:
        _differ_in_parts((old, new), found, lambda name: (shape.member(name), (*path, f"f:{name}")))
        return
    if isinstance(old, list) and isinstance(new, list):
        before, after = shape.items_of(old), shape.items_of(new)
        if before is not None and after is not None:
            _differ_in_parts((before, after), found, lambda element: (shape.item, (*path, element)))
            return
    if not (_is_divided(old, shape) and _is_divided(new, shape)):
        found[0].add(path)
    found[0].update(_within(new, shape, path))
    found[1].update(_within(old, shape, path))


def _differ_in_parts(
    pair: tuple[dict[str, RawValue], dict[str, RawValue]],
    found: tuple[set[Path], set[Path]],
    place: Callable[[str], tuple[Shape, Path]],
) -> None:
    old, new = pair
    for name, value in new.items():
        if name not in old:
            found[0].update(_present(value, *place(name)))
        elif old[name] is not value:
            _differ((old[name], value), *place(name), found)
    for name, value in old.items():
        if name not in new or (not new[name] and place(name)[0].hides(new[name])):
            found[1].update(_present(value, *place(name)))


def _is_divided(value: RawValue, shape: Shape) -> bool:
    """Return whether a value has parts that are owned one by one; null has whatever the other side has."""
    if isinstance(value, dict):
        return bool(value) and not shape.whole
    return value is None or (isinstance(value, list) and bool(shape.items_of(value)))


# --- spelling


def spelt(path: Path) -> str:
    """Return the path as messages spell it."""
    return "".join(map(spelt_element, path)) or "."


def spelt_element(element: str) -> str:
    """Return one step of a path as messages spell it."""
    kind, value = element[:2], element[2:]
    if kind == "f:":
        return f".{value}"
    if kind == "v:":
        return f"[={value}]"
    found = msgspec.json.decode(value)
    return f"[{','.join(f'{key}={_text(one)}' for key, one in found.items())}]"


def _text(value: RawValue) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
