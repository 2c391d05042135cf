"""What a path names: a kind, one object of it, a part of that.

Knows how Kubernetes spells paths. Must not know what is done there.
"""

from typing import Final
from urllib.parse import unquote

import msgspec

from jackfield.codec import kinds
from jackfield.codec.kinds import Kind
from jackfield.model.names import Key

PARTS_MAX: Final = 9
"""Parts of the longest path that names something."""


class Target(msgspec.Struct, frozen=True):
    """What a path names; without a name, all objects of the kind."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """The object's key in the store."""
        return Key(self.namespace, self.name)


def parse(path: str) -> Target | None:
    """Return what a path names, or None if it names nothing that is kept here."""
    parts = [unquote(part) for part in path.split("/")[1:]]
    if len(parts) > PARTS_MAX or any(not part or "/" in part for part in parts):
        return None
    match parts:
        case ["api", version, *rest]:
            return _parse("", version, rest)
        case ["apis", group, version, *rest]:
            return _parse(group, version, rest)
        case _:
            return None


def _parse(group: str, version: str, parts: list[str]) -> Target | None:
    match parts:
        case ["namespaces", namespace, plural, *rest] if plural not in ("status", "finalize"):
            kind = kinds.by_plural(group, version, plural)
            return _named(kind, namespace, rest) if kind is not None and kind.namespaced else None
        case [plural, *rest]:
            kind = kinds.by_plural(group, version, plural)
            if kind is None or (kind.namespaced and rest):
                return None
            return _named(kind, "", rest)
        case _:
            return None


def _named(kind: Kind, namespace: str, parts: list[str]) -> Target | None:
    match parts:
        case []:
            return Target(kind, namespace)
        case [name]:
            return Target(kind, namespace, name)
        case [name, subresource]:
            return Target(kind, namespace, name, subresource)
        case _:
            return None
