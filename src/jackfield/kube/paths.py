"""Where objects are found on an API server.

Knows how paths and selectors are spelt. Must not know what is asked there.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from jackfield.codec.kinds import Kind
from jackfield.model.names import Key
from jackfield.ports import Refused, Selection

_NO_NAMES: Final = ("", ".", "..")
_SPECIAL: Final = re.compile(r"([\\,=])")


def collection(kind: Kind, namespace: str = "") -> str:
    """Return where all objects of a kind are, or those of a namespace."""
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    place = f"/namespaces/{_segment(kind, namespace)}" if kind.namespaced and namespace else ""
    return f"{base}{place}/{kind.plural}"


def home(kind: Kind, key: Key) -> str:
    """Return where new objects of a kind go."""
    if kind.namespaced and not key.namespace:
        raise Refused(f'{kind.kind} "{key.name}" has no namespace')
    return collection(kind, key.namespace)


def one(kind: Kind, key: Key, *, status: bool = False) -> str:
    """Return where one object is, or its status."""
    return f"{home(kind, key)}/{_segment(kind, key.name)}{'/status' if status else ''}"


def parameters(selection: Selection) -> dict[str, str]:
    """Return what asks for the selected objects only, but for their namespace, which is part of the path."""
    labels = ",".join(f"{name}={value}" for name, value in selection.labels.items())
    fields = ",".join(f"{name}={_escaped(value)}" for name, value in selection.fields.items())
    asked: Mapping[str, str] = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in asked.items() if text}


def _segment(kind: Kind, name: str) -> str:
    """Return a name as part of a path; what would lead elsewhere is no name."""
    if name in _NO_NAMES or "/" in name or "%" in name:
        raise Refused(f'"{name}" is no name of a {kind.kind}, nor of a namespace')
    return quote(name, safe="")


def _escaped(value: str) -> str:
    return _SPECIAL.sub(r"\\\1", value)
