"""Server-side apply: who owns which field, who may change it, and what goes when its last owner lets go.

Knows managers and the rules between them. Must not know any kind, nor what a field means.
"""

from collections.abc import Iterable

import msgspec

from jackfield.cluster import fields
from jackfield.cluster.fields import Names, Path
from jackfield.codec import Raw, RawValue

BEFORE = "before-first-apply"
"""Whoever made the object before anybody applied to it: Kubernetes' own name."""


class Manager(msgspec.Struct, frozen=True):
    """Somebody who owns fields of an object."""

    name: str
    applies: bool
    status: bool
    fields: frozenset[Path]

    def is_same(self, other: "Manager") -> bool:
        """Return whether this is the same writer by the same way."""
        return (self.name, self.applies, self.status) == (other.name, other.applies, other.status)

    def without(self, taken: frozenset[Path]) -> "Manager":
        """Return this manager without fields that somebody else took."""
        if self.fields.isdisjoint(taken):
            return self
        return msgspec.structs.replace(self, fields=self.fields - taken)


Managers = tuple[Manager, ...]


class Dispute(msgspec.Struct, frozen=True, order=True):
    """A field that somebody else owns and that would change."""

    manager: str
    path: str


class Outcome(msgspec.Struct, frozen=True):
    """What an apply comes to."""

    part: Raw
    """What can be owned of the object, as it is to be."""
    managers: Managers
    disputes: tuple[Dispute, ...]


def applied(live: Raw, part: Raw, me: Manager, managers: Managers) -> Outcome:
    """Return the live object with my part merged in; disputed fields are taken over if the caller insists."""
    wanted = fields.fields_of(part)
    if not managers:
        # Kubernetes lets one unnamed writer own all that was there before the first apply.
        managers = (Manager(BEFORE, applies=False, status=False, fields=fields.fields_of(live)),)
    result = _merged(live, part, ())
    changed = fields.difference(live, result).changed
    others = tuple(one for one in managers if not one.is_same(me))
    disputes = tuple(
        sorted(
            Dispute(one.name, spelt(path))
            for one in others
            for path in one.fields & changed & wanted
            if path[-1].startswith("f:")
        )
    )
    taken = changed & wanted
    held: frozenset[Path] = frozenset().union(*(one.fields - taken for one in others))
    result = _without(result, _fields_of(me, managers) - wanted, held)
    return Outcome(result, _booked(managers, me, taken, wanted), disputes)


def updated(old: Raw, new: Raw, me: Manager, managers: Managers) -> Managers:
    """Return who owns what after a plain write; before the first apply nobody keeps books."""
    if not managers:
        return ()
    found = fields.difference(old, new)
    if not found.changed and not found.removed:
        return managers
    mine = (_fields_of(me, managers) - found.removed) | found.changed
    return _booked(managers, me, found.changed | found.removed, mine)


def spelt(path: Path) -> str:
    """Return the path as conflict messages spell it."""
    text = "".join(f".{one[2:]}" if one.startswith("f:") else f"[{one[2:]}]" for one in path)
    return text or "."


def fields_v1(paths: Iterable[Path]) -> Raw:
    """Return the paths as `managedFields[].fieldsV1` nests them."""
    tree: Raw = {}
    for path in sorted(paths):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        if not path[-1].startswith("f:"):
            node["."] = {}
    return tree


def _fields_of(me: Manager, managers: Managers) -> frozenset[Path]:
    return next((one.fields for one in managers if one.is_same(me)), frozenset())


def _booked(managers: Managers, me: Manager, taken: frozenset[Path], mine: frozenset[Path]) -> Managers:
    """Return the managers in their old order, the others without what was taken, me with what is mine."""
    known = any(one.is_same(me) for one in managers)
    booked = (
        msgspec.structs.replace(one, fields=mine) if one.is_same(me) else one.without(taken)
        for one in (managers if known else (*managers, me))
    )
    return tuple(one for one in booked if one.fields)


def _merged(live: RawValue, part: RawValue, names: Names) -> RawValue:
    if fields.is_map(live, names) and fields.is_map(part, names):
        result = dict(live)
        for name, value in part.items():
            result[name] = _merged(live[name], value, (*names, name)) if name in live else value
        return result
    if isinstance(live, list) and isinstance(part, list):
        old, new = fields.items_of(live, names), fields.items_of(part, names)
        if old is not None and new is not None:
            keyed = fields.is_keyed(names)
            for element, item in new.items():
                old[element] = _merged(old[element], item, names) if element in old and keyed else item
            return list(old.values())
    return part


def _without(raw: Raw, gone: frozenset[Path], held: frozenset[Path]) -> Raw:
    """Return the object without the paths that nobody holds; whatever becomes empty by that goes too."""
    result = raw
    # Items go before their leaves: once a key is cut off, its item cannot be found any more.
    for path in sorted(gone - held, key=lambda one: (len(one), one)):
        is_item = not path[-1].startswith("f:")
        if fields.is_key(path) or (is_item and any(one[: len(path)] == path for one in held)):
            continue
        kept = _cut(result, path, ())
        result = kept if isinstance(kept, dict) else {}
    return result


def _cut(value: RawValue, path: Path, names: Names) -> RawValue:
    """Return the value without what lies at the path, or None if nothing is left of it."""
    if not path:
        return None
    head, rest = path[0], path[1:]
    if isinstance(value, dict):
        name = head[2:]
        if name not in value:
            return value
        inner = _cut(value[name], rest, (*names, name))
        kept: RawValue = {key: inner if key == name else one for key, one in value.items()}
        if inner is None:
            del kept[name]
        return kept or None
    items = fields.items_of(value, names) if isinstance(value, list) else None
    if items is None or head not in items:
        return value
    inner = _cut(items[head], rest, names)
    kept = [inner if element == head else item for element, item in items.items()]
    return [item for item in kept if item is not None] or None
