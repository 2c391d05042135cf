"""Who owns which fields of an object, and how `metadata.managedFields` says so.

Knows what a manager is and how one is written down and read. Must not know the rules between managers.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec

from jackfield.cluster.ownership.fields import Path
from jackfield.cluster.ownership.merging import tree
from jackfield.codec import Raw, RawValue
from jackfield.model.names import NO_TIME, Time, rfc3339, seconds

UNKNOWN: Final = "unknown"
"""Whoever does not say who he is."""
NAME_BYTES_MAX: Final = 128
SETS_MAX: Final = 4096
"""How many different sets of fields are remembered, so that thousands of objects share one."""
_OPERATIONS: Final = {"Apply": True, "Update": False}


class Manager(msgspec.Struct, frozen=True):
    """Somebody who owns fields of an object."""

    name: str
    applies: bool
    """Whether by server-side apply, or by any other write."""
    version: str
    """The apiVersion by which it was written."""
    subresource: str = ""
    time: Time = NO_TIME
    """When it last changed anything."""
    fields: frozenset[Path] = frozenset()

    @property
    def identity(self) -> tuple[str, str, str, bool, str]:
        """What makes it the same manager the next time, in the server's order; who applies does so in all versions."""
        version = "" if self.applies else self.version
        return self.name, self.operation, version, not self.subresource, self.subresource

    @property
    def operation(self) -> str:
        """How it writes, in a word."""
        return "Apply" if self.applies else "Update"

    def owning(self, fields: frozenset[Path]) -> "Manager":
        """Return this manager with other fields."""
        return msgspec.structs.replace(self, fields=_shared(fields))

    def without(self, taken: frozenset[Path]) -> "Manager":
        """Return this manager without fields that are no longer its own."""
        return self if self.fields.isdisjoint(taken) else self.owning(self.fields - taken)

    def __str__(self) -> str:
        """Spell it as conflicts name it."""
        name = msgspec.json.encode(self.name).decode()
        where = f' with subresource "{self.subresource}"' if self.subresource else ""
        return f"{name}{where}" if self.applies else f"{name}{where} using {self.version}"


Managers = tuple[Manager, ...]


@lru_cache(maxsize=SETS_MAX)
def _shared(fields: frozenset[Path]) -> frozenset[Path]:
    """Return the one of all equal sets that is kept: objects of a kind are mostly written alike."""
    return fields


class BadManagedFieldsError(ValueError):
    """Entries that no server has written."""


def ordered(managers: Iterable[Manager]) -> Managers:
    """Return the managers as objects list them: those who apply first, the oldest of each first."""
    return tuple(
        sorted(managers, key=lambda one: (not one.applies, one.time, one.name, one.version, one.subresource))
    )


def settled(old: Managers, new: Managers) -> Managers:
    """Return the old managers if the new ones differ in nothing but times: for writes that change nothing else."""
    if len(old) == len(new) and all(map(_same_but_for_time, old, new)):
        return old
    return new


def _same_but_for_time(one: Manager, other: Manager) -> bool:
    return one.identity == other.identity and one.version == other.version and one.fields == other.fields


def manager_name(field_manager: str, user_agent: str) -> str:
    """Return who writes: who the caller says he is, or else what his program calls itself before the slash."""
    if field_manager:
        return field_manager
    name = ""
    for letter in filter(str.isprintable, user_agent.partition("/")[0]):
        if len((name + letter).encode(errors="replace")) > NAME_BYTES_MAX:
            break
        name += letter
    return name


# --- written down


def managed_fields(managers: Managers) -> list[Raw]:
    """Return the managers as `metadata.managedFields`."""
    return [_entry(one) for one in managers]


def _entry(manager: Manager) -> Raw:
    entry: Raw = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.version,
    }
    if manager.time:
        entry["time"] = manager.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = _nested_once(manager.fields)
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


@lru_cache(maxsize=SETS_MAX)
def _nested_once(paths: frozenset[Path]) -> Raw:
    """Return the paths nested; everybody who reads it shares it."""
    return fields_v1(paths)


def fields_v1(paths: Iterable[Path]) -> Raw:
    """Return the paths as `managedFields[].fieldsV1` nests them."""
    return {element: _nested(inner) for element, inner in tree(sorted(paths)).items()}


def _nested(node: Raw) -> Raw:
    inner = {element: _nested(one) for element, one in node.items() if element}
    # A leaf stands for itself; what has parts and is owned as well says so by a dot.
    return {".": {}, **inner} if inner and "" in node else inner


# --- read


def managers_of(entries: RawValue) -> Managers:
    """Return the managers that `metadata.managedFields` names. Raises BadManagedFieldsError if it is not in order."""
    if not isinstance(entries, list):
        raise BadManagedFieldsError("managedFields must be a list")
    found = {one.identity: one for one in (_manager(index, entry) for index, entry in enumerate(entries))}
    return ordered(found.values())


def is_reset(entries: RawValue) -> bool:
    """Return whether a writer asks that nobody own anything any more: by no entry, or by one that says nothing."""
    return entries in ([], [{}])


def _manager(index: int, entry: RawValue) -> Manager:
    if not isinstance(entry, dict):
        raise BadManagedFieldsError("an entry must be an object")
    words = {
        name: entry.get(name) or "" for name in ("manager", "apiVersion", "subresource", "time", "fieldsType")
    }
    if any(not isinstance(one, str) for one in words.values()):
        raise BadManagedFieldsError("an entry is made of words")
    operation = entry.get("operation")
    if operation not in _OPERATIONS:
        raise BadManagedFieldsError("operation must be `Apply` or `Update`")
    if not words["apiVersion"]:
        raise BadManagedFieldsError("apiVersion must not be empty")
    if words["fieldsType"] != "FieldsV1":
        what = f'invalid fieldsType "{words["fieldsType"]}"' if words["fieldsType"] else "missing fieldsType"
        raise BadManagedFieldsError(f"{what} in managed fields entry {index}")
    return Manager(
        name=words["manager"],
        applies=_OPERATIONS[operation],
        version=words["apiVersion"],
        subresource=words["subresource"],
        time=_time(words["time"]),
        fields=_shared(frozenset(_paths(entry.get("fieldsV1") or {}, ()))),
    )


def _time(text: str) -> Time:
    try:
        return rfc3339(seconds(Time(text))) if text else NO_TIME
    except ValueError as error:
        raise BadManagedFieldsError("a time is spelt as RFC 3339 says") from error


def _paths(node: RawValue, path: Path) -> Iterator[Path]:
    if not isinstance(node, dict):
        raise BadManagedFieldsError("fieldsV1 is made of objects")
    inner = [(found, one) for found, one in ((_element(text), one) for text, one in node.items()) if found]
    for element, one in inner:
        yield from _paths(one, (*path, element))
    if path and ("." in node or not inner):
        yield path


def _element(text: str) -> str:
    """Return an element as we would have written it; nothing for what a later server may mean something by."""
    kind, value = text[:2], text[2:]
    if text == ".":
        return ""
    if kind == "f:":
        return text
    if kind[1:] != ":":
        raise BadManagedFieldsError(f"missing colon: {text}")
    if kind not in ("k:", "v:"):
        return ""
    try:
        found = msgspec.json.decode(value, type=dict[str, RawValue] if kind == "k:" else RawValue)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadManagedFieldsError(f"parsing key as path element: {text}") from error
    return f"{kind}{msgspec.json.encode(found, order='sorted').decode()}"
