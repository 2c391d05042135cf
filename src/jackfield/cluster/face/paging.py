"""Long lists, told in pages that belong together.

Knows which lists were begun, and for how long. Must not know who reads them. All pages are of one moment: a list that
was begun is kept until its end was told, until it is too old, or until too many others were begun after it.
"""

import base64
from collections import OrderedDict
from collections.abc import Callable
from http import HTTPStatus
from itertools import count
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.history import Stored
from jackfield.codec.kinds import Kind
from jackfield.model.names import Seconds

BEGUN_MAX: Final = 64
"""Lists that are kept; what is kept are references, the objects themselves are the store's."""
SECONDS_MAX: Final = Seconds(300.0)
TOKEN_MAX: Final = 512


class Part(msgspec.Struct, frozen=True):
    """A page, the moment it is of, and how to ask for the next."""

    items: tuple[Stored, ...]
    version: int
    token: str = ""
    remaining: int = 0


class _Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the client hands back to us."""

    id: int
    start: int
    version: int


class _Begun(msgspec.Struct, frozen=True):
    kind: Kind
    asked: object
    items: tuple[Stored, ...]
    until: Seconds


class Pages:
    """The lists that were begun."""

    def __init__(self, now: Callable[[], Seconds]) -> None:
        self._now = now
        self._begun: OrderedDict[int, _Begun] = OrderedDict()
        self._ids = count(1)

    def first(self, kind: Kind, asked: object, part: Part, limit: int) -> Part:
        """Return the first page of a list, which is kept if there are more."""
        if not limit or len(part.items) <= limit:
            return part
        number = next(self._ids)
        self._begun[number] = _Begun(kind, asked, part.items, Seconds(self._now() + SECONDS_MAX))
        while len(self._begun) > BEGUN_MAX:
            self._begun.popitem(last=False)
        return self._part(_Token(number, 0, part.version), part.items, limit)

    def next(self, kind: Kind, asked: object, token: str, limit: int) -> Part:
        """Return another page; raises Expired where the list is no longer kept."""
        read = _read(token)
        begun = self._begun.get(read.id)
        if begun is None or begun.until < self._now():
            raise _too_old()
        if begun.kind != kind or begun.asked != asked or not 0 <= read.start <= len(begun.items):
            raise errors.bad_request("invalid continue token: it is of another list")
        return self._part(read, begun.items, limit)

    def _part(self, at: _Token, items: tuple[Stored, ...], limit: int) -> Part:
        stop = at.start + limit if limit else len(items)
        if stop >= len(items):
            self._begun.pop(at.id, None)
            return Part(items[at.start :], at.version)
        token = msgspec.json.encode(_Token(at.id, stop, at.version))
        text = base64.urlsafe_b64encode(token).decode()
        return Part(items[at.start : stop], at.version, text, len(items) - stop)


def _read(token: str) -> _Token:
    if len(token) <= TOKEN_MAX:
        try:
            return msgspec.json.decode(base64.urlsafe_b64decode(token.encode()), type=_Token)
        except (ValueError, msgspec.DecodeError):
            pass
    raise errors.bad_request("invalid continue token: continue key is not valid")


def _too_old() -> errors.ApiError:
    return errors.ApiError(
        HTTPStatus.GONE,
        "Expired",
        "the continue token is too old: the list it belongs to is no longer kept; list again from the start",
    )
