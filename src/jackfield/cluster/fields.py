"""Which fields an object has, and which differ between two: what server-side apply counts in.

Knows which lists are keyed, sets or whole. Must not know who owns a field.

A path is a tuple of elements as managedFields spell them: `f:name` is a field, `k:{...}` an item of a keyed list,
`v:...` a member of a set. An item's own path stands for its being there.
"""

from collections.abc import Callable, Iterator

import msgspec

from jackfield.codec import Raw, RawValue

Path = tuple[str, ...]
Names = tuple[str, ...]
"""The fields of a path, without its items: where the schema looks."""

KEYED: dict[Names, tuple[str, ...]] = {
    ("metadata", "ownerReferences"): ("uid",),
    ("status", "conditions"): ("type",),
    ("status", "devices"): ("driver", "device", "pool", "shareID"),
    ("status", "devices", "conditions"): ("type",),
    ("status", "reservedFor"): ("uid",),
    ("status", "resourceClaimStatuses"): ("name",),
    ("spec", "resourceClaims"): ("name",),
    ("spec", "containers"): ("name",),
    ("spec", "containers", "env"): ("name",),
    ("spec", "containers", "ports"): ("containerPort", "protocol"),
    ("spec", "containers", "volumeMounts"): ("mountPath",),
    ("spec", "containers", "resources", "claims"): ("name", "request"),
    ("spec", "initContainers"): ("name",),
    ("spec", "initContainers", "env"): ("name",),
    ("spec", "initContainers", "volumeMounts"): ("mountPath",),
    ("spec", "initContainers", "resources", "claims"): ("name", "request"),
    ("spec", "volumes"): ("name",),
}
"""Lists whose items are told apart by these fields."""

SETS: frozenset[Names] = frozenset({("metadata", "finalizers")})
"""Lists in which every value has an owner of its own."""

WHOLE: frozenset[Names] = frozenset(
    {
        ("spec", "nodeSelector"),
        ("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        ("status", "allocation", "nodeSelector"),
        ("involvedObject",),
    }
)
"""Maps that are owned as one, like all lists that are neither keyed nor sets."""

SYSTEM: frozenset[str] = frozenset(
    {
        "name",
        "namespace",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    }
)
"""Metadata that belongs to the server; nobody owns it."""


class Difference(msgspec.Struct, frozen=True):
    """What differs between two versions of an object."""

    changed: frozenset[Path]
    """There now, and not like that before."""
    removed: frozenset[Path]


def ownable(raw: Raw) -> Raw:
    """Return the part of an object that writers can own: all but its names and the server's metadata."""
    part = {name: value for name, value in raw.items() if name not in ("apiVersion", "kind", "metadata")}
    metadata = {name: value for name, value in raw.get("metadata", {}).items() if name not in SYSTEM}
    return {"metadata": metadata, **part} if metadata else part


def fields_of(raw: Raw) -> frozenset[Path]:
    """Return the paths of everything in the object."""
    return frozenset(_walk(raw, (), ()))


def difference(old: Raw, new: Raw) -> Difference:
    """Return what differs; parts that are the very same object are not looked into."""
    changed: set[Path] = set()
    removed: set[Path] = set()
    _compare((old, new), (), (), (changed, removed))
    return Difference(frozenset(changed), frozenset(removed))


def items_of(value: list[RawValue], names: Names) -> dict[str, RawValue] | None:
    """Return the items of a list by their elements; None if the list is owned as a whole."""
    element = _element(names)
    if element is None or (names in KEYED and any(not isinstance(item, dict) for item in value)):
        return None
    return {element(item): item for item in value}


def is_map(value: RawValue, names: Names) -> bool:
    """Return whether the value's members are owned one by one."""
    return isinstance(value, dict) and names not in WHOLE


def is_keyed(names: Names) -> bool:
    """Return whether the list's items are told apart by a key."""
    return names in KEYED


def is_key(path: Path) -> bool:
    """Return whether a field is part of what its item is told apart by; it lives as long as the item."""
    if len(path) < 2 or not path[-2].startswith("k:"):  # noqa: PLR2004 - an item and its field
        return False
    return path[-1].removeprefix("f:") in msgspec.json.decode(path[-2].removeprefix("k:"))


def _element(names: Names) -> Callable[[RawValue], str] | None:
    if names in SETS:
        return lambda value: f"v:{_text(value)}"
    keys = KEYED.get(names)
    if keys is None:
        return None
    return lambda item: f"k:{_text({key: item[key] for key in keys if key in item})}"


def _text(value: RawValue) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _walk(value: RawValue, names: Names, path: Path) -> Iterator[Path]:
    """Yield the paths of all leaves, and of all items of keyed lists."""
    if is_map(value, names) and (value or not path):
        for name, inner in value.items():
            yield from _walk(inner, (*names, name), (*path, f"f:{name}"))
        return
    items = items_of(value, names) if isinstance(value, list) and value else None
    if items is None:
        yield path
        return
    for element, item in items.items():
        yield (*path, element)
        if is_keyed(names):
            yield from _walk(item, names, (*path, element))


def _compare(
    pair: tuple[RawValue, RawValue], names: Names, path: Path, found: tuple[set[Path], set[Path]]
) -> None:
    old, new = pair
    if old is new or old == new:
        return
    if is_map(old, names) and is_map(new, names):
        _compare_members((old, new), found, lambda name: ((*names, name), (*path, f"f:{name}")))
        return
    if isinstance(old, list) and isinstance(new, list):
        before, after = items_of(old, names), items_of(new, names)
        if before is not None and after is not None:
            _compare_members((before, after), found, lambda element: (names, (*path, element)))
            return
    found[0].add(path)


def _compare_members(
    pair: tuple[dict[str, RawValue], dict[str, RawValue]],
    found: tuple[set[Path], set[Path]],
    place: Callable[[str], tuple[Names, Path]],
) -> None:
    old, new = pair
    changed, removed = found
    for name, value in new.items():
        names, path = place(name)
        if name in old:
            _compare((old[name], value), names, path, found)
        else:
            changed.update(_subtree(value, names, path))
    for name, value in old.items():
        if name not in new:
            names, path = place(name)
            removed.update(_subtree(value, names, path))


def _subtree(value: RawValue, names: Names, path: Path) -> Iterator[Path]:
    if not path[-1].startswith("f:"):
        yield path
    if not path[-1].startswith("v:"):
        yield from _walk(value, names, path)
