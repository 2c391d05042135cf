"""The query parameters that are announced: `$select`, `$expand`, `only`, `$top`, `$skip`.

Knows documents as they are shown. Must not know what any of them means.
"""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec.redfish import ID, NEXT_LINK
from jackfield.fabric_manager.faces.redfish.protocol import Document, Refusal, refusal

LEVELS_MAX: Final = 3
"""How deep one request may expand."""
PAGE: Final = 500
"""Members of a collection that are expanded at a time; a link leads to the rest."""
FEATURES: Final[Document] = {
    "ExcerptQuery": False,
    "ExpandQuery": {
        "ExpandAll": True,
        "Levels": True,
        "Links": True,
        "MaxLevels": LEVELS_MAX,
        "NoLinks": True,
    },
    "FilterQuery": False,
    "OnlyMemberQuery": True,
    "SelectQuery": True,
    "TopSkipQuery": True,
}
"""What the service root says of them."""


class Query(msgspec.Struct, frozen=True):
    """What of a resource is to be shown, and how deep."""

    select: tuple[str, ...] = ()
    expand: str = ""
    """`.` what is below, `~` what is linked, `*` both."""
    levels: int = 1
    only: bool = False
    top: int = -1
    skip: int = 0


_EXPAND: Final = re.compile(r"([.~*])(?:\(\$levels=(\d{1,3})\))?")


def query(request: web.Request) -> Query:
    """Return what the query asks for. Raises Refusal for what is not announced, or makes no sense."""
    found = request.query
    unknown = [name for name in found if name.startswith("$") and name not in _PARAMETERS]
    if unknown or "excerpt" in found:
        name = unknown[0] if unknown else "excerpt"
        raise refusal(
            HTTPStatus.NOT_IMPLEMENTED, "QueryNotSupported", f"There is no query parameter {name[:80]} here."
        )
    asked = Query()
    for name, made in _PARAMETERS.items():
        if name in found:
            asked = made(asked, found[name])
    if asked.only and len(found) > 1:
        raise _bad_query("only", found["only"], "it stands alone")
    return asked


def _select(asked: Query, value: str) -> Query:
    names = tuple(name.strip() for name in value.split(","))
    if not all(names):
        raise _bad_query("$select", value, "it lists names of properties")
    return msgspec.structs.replace(asked, select=names)


def _expand(asked: Query, value: str) -> Query:
    found = _EXPAND.fullmatch(value)
    levels = int(found[2] or 1) if found else 0
    if found is None or not 1 <= levels <= LEVELS_MAX:
        raise _bad_query("$expand", value, f"it is ., ~ or *, with ($levels=1) to ($levels={LEVELS_MAX})")
    return msgspec.structs.replace(asked, expand=found[1], levels=levels)


def _only(asked: Query, value: str) -> Query:
    if value:
        raise _bad_query("only", value, "it has no value")
    return msgspec.structs.replace(asked, only=True)


def _top(asked: Query, value: str) -> Query:
    return msgspec.structs.replace(asked, top=_number("$top", value))


def _skip(asked: Query, value: str) -> Query:
    return msgspec.structs.replace(asked, skip=_number("$skip", value))


def _number(name: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,15}", value):
        raise _bad_query(name, value, "it is a whole number, 0 or more")
    return int(value)


def _bad_query(name: str, value: str, rule: str) -> Refusal:
    words = f"The query parameter {name} cannot be {value[:80]!r}: {rule}."
    return refusal(HTTPStatus.BAD_REQUEST, "QueryParameterValueFormatError", words, value[:80], name)


_PARAMETERS: Final[Mapping[str, Callable[[Query, str], Query]]] = {
    "$select": _select,
    "$expand": _expand,
    "only": _only,
    "$top": _top,
    "$skip": _skip,
}

Find = Callable[[str], Document | None]
"""Finds the document at a path."""


def shown(document: Document, asked: Query, find: Find) -> Document:
    """Return of a document what was asked for. Raises Refusal."""
    members = document.get("Members")
    if not isinstance(members, list):
        if asked.only or asked.top >= 0 or asked.skip:
            raise refusal(
                HTTPStatus.BAD_REQUEST, "QueryNotSupportedOnResource", "This query is for collections alone."
            )
        return _selected(_expanded(document, asked, find), asked)
    if asked.only and len(members) == 1:
        return find(_link(members[0])) or document
    return _selected(_expanded(_paged(document, members, asked), asked, find), asked)


def _paged(document: Document, members: list[object], asked: Query) -> Document:
    """Return the part of a collection that was asked for; of one that is expanded no more than a page."""
    size = len(members) if asked.top < 0 else asked.top
    size = min(size, PAGE) if asked.expand else size
    end = asked.skip + size
    made = {**document, "Members": members[asked.skip : end]}
    if size and end < len(members):
        rest = {
            "$expand": f"{asked.expand}($levels={asked.levels})" if asked.expand else "",
            "$select": ",".join(asked.select),
            "$skip": str(end),
            "$top": str(asked.top) if asked.top >= 0 else "",
        }
        made[NEXT_LINK] = f"{document[ID]}?" + "&".join(
            f"{name}={text}" for name, text in rest.items() if text
        )
    return made


def _link(value: object) -> str:
    """Return where a link leads; nothing if it is none."""
    if isinstance(value, dict) and len(value) == 1:
        return str(value.get(ID, ""))
    return ""


def _expanded(document: Document, asked: Query, find: Find) -> Document:
    return _grown(document, asked.expand, asked.levels, find) if asked.expand else document


def _grown(document: Document, kind: str, levels: int, find: Find) -> Document:
    def grown(value: object, *, linked: bool) -> object:
        target = _link(value)
        if target:
            wanted = kind == "*" or linked == (kind == "~")
            found = find(target) if wanted and "#" not in target else None
            if found is None:
                return value
            return _grown(found, kind, levels - 1, find) if levels > 1 else found
        if isinstance(value, dict):
            return {
                name: grown(one, linked=linked or name == "Links") if name != "Actions" else one
                for name, one in value.items()
            }
        return [grown(one, linked=linked) for one in value] if isinstance(value, list) else value

    made = grown(document, linked=False)
    return made if isinstance(made, dict) else document


def _selected(document: Document, asked: Query) -> Document:
    members = document.get("Members")
    if not asked.select:
        return document
    if not isinstance(members, list):
        return _chosen(document, asked.select)
    # Of a collection the properties of its expanded members are meant.
    kept = {name: value for name, value in document.items() if "@odata." in name}
    return kept | {
        "Members": [
            one if _link(one) or not isinstance(one, dict) else _chosen(one, asked.select) for one in members
        ]
    }


def _chosen(document: Document, names: tuple[str, ...]) -> Document:
    kept = {name: value for name, value in document.items() if name.startswith("@odata.")}
    for name in names:
        first, _, rest = name.partition("/")
        value = document.get(first)
        if rest and isinstance(value, dict):
            inner = {part: one for part, one in value.items() if part == rest.partition("/")[0]}
            before = kept.get(first)
            kept[first] = {**(before if isinstance(before, dict) else {}), **inner}
        elif first in document:
            kept[first] = value
    return kept
