"""Kubernetes' own types, out of `kubernetes.json`, which `tools/schemas` has from a real API server.

Knows how to find a type by its name or by the kind it is. Must not know what is done with it. The file is read once,
when somebody first asks.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from jackfield.cluster.schema import notation
from jackfield.codec import Raw

FILE: Final = "kubernetes.json"
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META: Final = f"{META}.ObjectMeta"
LIST_META: Final = f"{META}.ListMeta"
DELETE_OPTIONS: Final = f"{META}.DeleteOptions"
STATUS: Final = f"{META}.Status"
GVK: Final = f"{notation.PREFIX}group-version-kind"


class Type(msgspec.Struct, frozen=True):
    """One type."""

    schema: Raw
    """As OpenAPI spells it, without descriptions."""
    go: Mapping[str, str]
    """What Go calls the types of fields, where it is not what one would think."""
    wrappers: Mapping[str, str]
    """The struct that Go wraps a field in, where there is one."""


class _File(msgspec.Struct, frozen=True):
    version: str
    packages: dict[str, dict[str, Raw]]


@cache
def _file() -> _File:
    return msgspec.json.decode(resources.files(__package__).joinpath(FILE).read_bytes(), type=_File)


def version() -> str:
    """Return the version of Kubernetes that the types are of."""
    return _file().version


@cache
def names() -> Mapping[tuple[str, str], str]:
    """Return the names of types by apiVersion and kind."""
    return {
        (f"{one['group']}/{one['version']}".lstrip("/"), str(one["kind"])): f"{package}.{short}"
        for package, entries in _file().packages.items()
        for short, entry in entries.items()
        for one in entry.get("group-version-kind", ())
    }


@cache
def type_of(name: str) -> Type:
    """Return a type by its full name."""
    package, _, short = name.rpartition(".")
    entry = _file().packages[package][short]
    wrappers = {field: wrapper for wrapper, fields in entry.get("embedded", {}).items() for field in fields}
    return Type(notation.expanded(entry, package), entry.get("go", {}), wrappers)
