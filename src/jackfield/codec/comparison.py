"""A definition that a cluster has against the one we would give it: what it lacks, and which of the two is newer.

Knows structural schemas and how they prune. Must not know any field's meaning, nor whose definition it is.
"""

from collections.abc import Iterator

import msgspec

from jackfield.codec.definitions import SCHEMA
from jackfield.codec.wire import Raw, RawValue, dig, objects

KEEPS_ALL = "x-kubernetes-preserve-unknown-fields"


class Lack(msgspec.Struct, frozen=True, order=True):
    """Something that the cluster's definition of a kind does not have."""

    definition: str
    """The name of the definition, `plural.group`."""
    path: str
    """Where in it."""
    what: str
    """What is missing there, as the end of a sentence: "is dropped"."""
    grave: bool = True
    """Whether we cannot do without it; values that are not accepted matter only to who would use them."""

    def __str__(self) -> str:
        return f"{self.path} of {self.definition} {self.what}"


def lacks(stored: Raw, ours: Raw) -> tuple[Lack, ...]:
    """Return what the stored definition does not keep, accept or serve of what ours does."""
    name = str(dig(ours, "metadata", "name"))
    wanted = ours["spec"]["versions"][0]
    found = next(
        (one for one in objects(dig(stored, "spec", "versions")) if one.get("name") == wanted["name"]), {}
    )
    return tuple(_lacks(name, stored, ours, (found, wanted)))


def revision(definition: Raw) -> int:
    """Return which of our revisions a definition is; 0 for somebody else's."""
    number, _, _ = mark(definition).partition(".")
    return int(number) if number.isdecimal() else 0


def mark(definition: Raw) -> str:
    """Return how a definition is marked as ours; empty for somebody else's."""
    return str(dig(definition, "metadata", "annotations", SCHEMA) or "")


def _lacks(name: str, stored: Raw, ours: Raw, versions: tuple[Raw, Raw]) -> Iterator[Lack]:
    found, wanted = versions
    if not found.get("served"):
        yield Lack(name, wanted["name"], "is not served")
        return
    scope = ours["spec"]["scope"]
    if dig(stored, "spec", "scope") != scope:
        yield Lack(name, "scope", f"is not {scope}")
    if dig(found, "subresources", "status") is None:
        yield Lack(name, "status", "is no subresource")
    selectable = {one.get("jsonPath") for one in objects(found.get("selectableFields"))}
    for one in wanted["selectableFields"]:
        if one["jsonPath"] not in selectable:
            yield Lack(name, one["jsonPath"].lstrip("."), "cannot be selected by")
    for lack in _fields(dig(found, "schema", "openAPIV3Schema"), wanted["schema"]["openAPIV3Schema"], ""):
        yield msgspec.structs.replace(lack, definition=name)


def _fields(found: RawValue, wanted: Raw, path: str) -> Iterator[Lack]:
    """Yield what is dropped or refused at this place and below."""
    if not isinstance(found, dict):
        yield Lack("", path, "is dropped")
        return
    if found.get("type") != wanted.get("type"):
        yield Lack("", path, f"is no {wanted.get('type')}")
        return
    accepted = found.get("enum")
    if accepted is not None and any(one not in accepted for one in wanted.get("enum", [None])):
        yield Lack("", path, f"accepts only {', '.join(str(one) for one in accepted)}", grave=False)
    for part in ("items", "additionalProperties"):
        if part in wanted:
            yield from _fields(found.get(part), wanted[part], path)
    if found.get(KEEPS_ALL):
        return
    for name, inner in wanted.get("properties", {}).items():
        if name != "metadata":
            yield from _fields(dig(found, "properties", name), inner, f"{path}.{name}".lstrip("."))
