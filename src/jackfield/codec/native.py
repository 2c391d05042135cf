"""The native face of a fabric manager, version 1: the Fabric port as paths and bytes, for client and server alike.

Knows how orders, answers and errors are spelt. Must not know how they travel. `docs/fabric-native.md` is for people
who write the other side in another language.
"""

import math
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry

T = TypeVar("T")

PREFIX: Final = "/v1/fabrics"
JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"
TYPES: Final = "urn:jackfield:problem:"
WAIT_SECONDS_MAX: Final = Seconds(0.9)
"""How long an answer is held back at most, for whoever would rather wait than ask again."""
RETRY_AFTER_MAX: Final = Seconds(60.0)
"""A manager that wants to be left alone for longer is asked all the same: it may have been restarted."""
BUG_AFTER: Final = Seconds(30.0)
"""When a manager is asked again that does not understand us, or itself."""

_STATUS: Final[dict[type[PortError], int]] = {Retry: 503, Conflict: 409, Gone: 404, Refused: 422, Bug: 500}


class BadMessage(ValueError):  # noqa: N818 - a finding about what was received
    """Bytes that say nothing in this language; the message says where."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error as RFC 9457 spells it."""

    type: str
    title: str
    status: int
    detail: str = ""
    retry_after: float = 0.0
    """Seconds, to the fraction; the header Retry-After has only whole ones."""


_encoder = msgspec.json.Encoder()
_inventory = msgspec.json.Decoder(Inventory)
_order = msgspec.json.Decoder(Order)
_progress: msgspec.json.Decoder[Progress] = msgspec.json.Decoder(Progress)
_problem = msgspec.json.Decoder(Problem)


def path(fabric: FabricName, verb: str) -> str:
    """Return where a fabric's verb is called."""
    return f"{PREFIX}/{quote(fabric, safe='')}/{verb}"


def encode(message: Inventory | Order | Progress | Problem) -> bytes:
    """Return the message as JSON."""
    return _encoder.encode(message)


def inventory(body: bytes) -> Inventory:
    """Return what a manager shows. Raises BadMessage."""
    return _decoded(_inventory, body)


def order(body: bytes) -> Order:
    """Return what is asked of a manager. Raises BadMessage."""
    return _decoded(_order, body)


def progress(body: bytes) -> Progress:
    """Return how far an order is. Raises BadMessage."""
    return _decoded(_progress, body)


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(str(error) or type(error).__name__) from error


# --- errors


def problem(error: PortError) -> Problem:
    """Return the error as it is sent."""
    word = type(error).__name__
    after = error.after if isinstance(error, Retry) else 0.0
    return Problem(f"{TYPES}{word.lower()}", word, _STATUS[type(error)], str(error), after)


def retry_after(of: Problem) -> str:
    """Return the header Retry-After; empty if there is nothing to wait for."""
    return str(math.ceil(of.retry_after)) if of.retry_after else ""


NOT_LET_IN: Final = (
    "the token is not accepted (401); correct the file that tokenFile names, which is read again for every call, "
    "or the variable that tokenVariable names, and start again"
)


def error(status: int, body: bytes, after: str) -> PortError:
    """Return what a status other than 200 asks the caller to do; `after` is the header Retry-After, if any.

    Only a problem of a type of ours says that an order is refused or its object gone: a proxy on the way, a wrong
    address or a token that is not accepted says nothing about the order, which may be asked about again.
    """
    try:
        told = _decoded(_problem, body)
    except BadMessage:
        told = Problem("", "", status)
    words = told.detail or told.title or f"the manager answered with status {status}"
    match told.type.removeprefix(TYPES):
        case "conflict":
            return Conflict(words)
        case "gone":
            return Gone(words)
        case "refused":
            return Refused(words)
        case "retry":
            return Retry(words, _pause(told, after, Seconds(1.0)))
        case _ if status == HTTPStatus.UNAUTHORIZED:
            return Retry(NOT_LET_IN, _pause(told, after, BUG_AFTER))
        case _:
            # A bug of the manager's, or what it takes for one of ours, must not end us: we serve other fabrics too.
            return Retry(f"{words} ({status})" if told.detail else words, _pause(told, after, BUG_AFTER))


def _pause(told: Problem, after: str, otherwise: Seconds) -> Seconds:
    named = told.retry_after or (float(after) if after.isascii() and after.isdigit() else 0.0)
    if not 0 < named < math.inf:
        return otherwise
    return min(Seconds(named), RETRY_AFTER_MAX)


def preference(span: Seconds) -> str:
    """Return the header `Prefer` of a request whose answer may be held back while there is no news (RFC 7240)."""
    return f"wait={span:g}"


def wait(prefer: str) -> Seconds:
    """Return how long an answer may be held back; what is not understood is not waited for."""
    name, _, text = prefer.strip().partition("=")
    try:
        span = float(text) if name.strip().lower() == "wait" else 0.0
    except ValueError:
        return Seconds(0.0)
    return Seconds(min(max(0.0, span), WAIT_SECONDS_MAX)) if math.isfinite(span) else Seconds(0.0)
