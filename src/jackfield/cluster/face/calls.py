"""A call and its answer, as HTTP carries them.

Knows what of a request and of a response matters to us. Must not know sockets, nor what is asked for.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.codec import Raw

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class Call(msgspec.Struct, frozen=True):
    """What a client asks."""

    method: str
    path: str
    query: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    agent: str = ""
    """What program the client says it is."""


class Answer(msgspec.Struct, frozen=True):
    """What it is told."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = {}
    warnings: tuple[str, ...] = ()
    """Told beside the answer, and printed by kubectl."""


def json(body: Raw, code: int = HTTPStatus.OK, *, warnings: tuple[str, ...] = ()) -> Answer:
    """Return an answer in JSON."""
    return Answer(code, msgspec.json.encode(body), warnings=warnings)


def text(words: str, code: int = HTTPStatus.OK) -> Answer:
    """Return an answer in plain words."""
    return Answer(code, words.encode(), TEXT)
