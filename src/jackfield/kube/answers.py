"""From an API server's answers to the port's five errors.

Knows codes, Status objects and what each means to a caller. Must not know what was asked, or why.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.kube import permissions
from jackfield.model.names import Seconds
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry

RETRY_AFTER: Final = Seconds(1.0)
RETRY_AFTER_MAX: Final = Seconds(60.0)
"""A server that asks for more patience is asked again all the same."""
WORDS_MAX: Final = 300
OUR_MISTAKES: Final = (
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)


class Cause(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    reason: str = ""
    message: str = ""
    field: str = ""


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a refusal is about."""

    name: str = ""
    kind: str = ""
    group: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """What the server says when it does not do as asked."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None

    @property
    def about(self) -> Details:
        """Whom it speaks of; nobody where it does not say."""
        return self.details or Details()


class Expired(Retry):
    """What was to be continued is too long ago: start over. Stays inside this package."""


class Unserved(Refused):
    """The server does not know this kind of object, or nothing at this path."""


_decoder = msgspec.json.Decoder(Status)


def status(code: int, body: bytes) -> Status:
    """Return what an answer says; whatever is no Status, such as a proxy's page, is told in its own words."""
    return msgspec.structs.replace(_read(body), code=code)


def event(body: bytes) -> Status:
    """Return what the ERROR event of a watch says; one that does not say which error is the server's own."""
    told = _read(body)
    return msgspec.structs.replace(told, code=told.code or HTTPStatus.INTERNAL_SERVER_ERROR)


def _read(body: bytes) -> Status:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Status(message=" ".join(body.decode(errors="replace").split())[:WORDS_MAX])


def error(  # noqa: PLR0911 - one line per answer
    told: Status, what: str, headers: Mapping[str, str]
) -> PortError:
    """Return which of the port's errors an answer amounts to; `what` names the call."""
    words = told.message or f"{what} was answered with {told.code}"
    after = _after(told, headers)
    match told.code:
        case HTTPStatus.CONFLICT:
            return Conflict(words)
        case HTTPStatus.NOT_FOUND if told.about.name:
            return Gone(words)
        case HTTPStatus.NOT_FOUND:
            return Unserved(
                f"{what}: the API server does not know this kind of object ({words}); "
                "install its definition, or switch its API on"
            )
        case HTTPStatus.GONE:
            return Expired(words)
        case HTTPStatus.UNAUTHORIZED:
            return Refused(
                f"{what}: the API server does not believe who we are: {words}; renew the credentials"
            )
        case HTTPStatus.TOO_MANY_REQUESTS | HTTPStatus.REQUEST_TIMEOUT:
            return Retry(words, after)
        case code if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Expired(words) if _is_from_the_future(told) else Retry(words, after)
        case code if code in OUR_MISTAKES:
            return Bug(f"{what}: {code} {words}")
        case code if code >= HTTPStatus.BAD_REQUEST:
            remedy = permissions.remedy(words)
            return Refused(f"{words}; {remedy}" if remedy else words)
        case code:
            return Retry(f"{what} was answered with {code}; is there really an API server?", after)


def _is_from_the_future(told: Status) -> bool:
    """Whether the server knows of no such version yet, as after a backup was restored."""
    return any(cause.reason == "ResourceVersionTooLarge" for cause in told.about.causes)


def _after(told: Status, headers: Mapping[str, str]) -> Seconds:
    text = headers.get("Retry-After", "")
    asked = float(text) if text.isdecimal() else float(told.about.retry_after_seconds)
    return Seconds(min(max(asked, RETRY_AFTER), RETRY_AFTER_MAX))
