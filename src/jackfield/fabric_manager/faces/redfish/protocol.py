"""How Redfish speaks over HTTP: messages, errors, ETags, headers.

Knows DSP0266's rules for every resource alike. Must not know any one resource, nor what a manager is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec.redfish import ETAG, EXTENDED_INFO, JSON, TYPE
from jackfield.fabric_manager.faces import Trouble
from jackfield.ports import Refused

Document = dict[str, object]

REGISTRY: Final = "Base.1.13"
"""Whose message keys are used; the words are our own."""
HEADERS: Final = {"OData-Version": "4.0", "Cache-Control": "no-cache"}
REALM: Final = 'Basic realm="jackfield", charset="UTF-8"'

_RESOLUTION: Final[Mapping[str, str]] = {
    "ActionParameterMissing": "Send the action with this parameter.",
    "ActionParameterUnknown": "Send the action without this parameter.",
    "ActionParameterValueTypeError": "Correct the parameter and send the action again.",
    "InsufficientPrivilege": "Have it done by whoever did the opposite.",
    "MalformedJSON": "Send a JSON object.",
    "NoOperation": "Nothing has to be done.",
    "NoValidSession": "Log in by POST to the sessions, or send the right credentials.",
    "OperationFailed": "See to the cause and try again.",
    "OperationNotAllowed": "Use a method that the Allow header names.",
    "PreconditionFailed": "Read the resource again and decide anew.",
    "PreconditionRequired": "Read the resource and send its ETag.",
    "PropertyNotWritable": "Send the request without this property.",
    "PropertyUnknown": "Send the request without this property.",
    "PropertyValueTypeError": "Correct the value and send the request again.",
    "QueryNotSupported": "Send the request without this query parameter.",
    "QueryParameterValueFormatError": "Correct the query parameter and send the request again.",
    "ResourceInUse": "Wait until it is free, or take another.",
    "ResourceMissingAtURI": "Read the collection again for what there is.",
    "ServiceTemporarilyUnavailable": "Ask again after the time in Retry-After.",
    "SessionLimitExceeded": "End sessions that nobody needs, or wait until they time out.",
    "Success": "None.",
    "UnsupportedMediaType": "Send application/json.",
}
_BY_STATUS: Final[Mapping[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "NoValidSession",
    HTTPStatus.FORBIDDEN: "InsufficientPrivilege",
    HTTPStatus.NOT_FOUND: "ResourceMissingAtURI",
    HTTPStatus.METHOD_NOT_ALLOWED: "OperationNotAllowed",
    HTTPStatus.CONFLICT: "ResourceInUse",
    HTTPStatus.PRECONDITION_FAILED: "PreconditionFailed",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "UnsupportedMediaType",
    HTTPStatus.PRECONDITION_REQUIRED: "PreconditionRequired",
    HTTPStatus.TOO_MANY_REQUESTS: "ServiceTemporarilyUnavailable",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceTemporarilyUnavailable",
}


# --- messages


class Message(msgspec.Struct, frozen=True):
    """Something to be told about a request or a task."""

    key: str
    """In the Base registry."""
    words: str
    arguments: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    """What it is about, as JSON pointers into the request."""
    severity: str = "Critical"

    def document(self) -> Document:
        """Return it as it stands in a body."""
        made: Document = {
            TYPE: "#Message.v1_1_2.Message",
            "MessageId": f"{REGISTRY}.{self.key}",
            "Message": self.words,
            "MessageArgs": [*self.arguments],
            "MessageSeverity": self.severity,
            "Severity": self.severity,
            "Resolution": _RESOLUTION.get(self.key, "Correct the request and send it again."),
        }
        if self.properties:
            made["RelatedProperties"] = [*self.properties]
        return made


class Refusal(Trouble):
    """An answer that is no, in Redfish's words."""

    def __init__(self, status: int, *messages: Message, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, " ".join(one.words for one in messages))
        self.messages = messages
        self.headers = headers or {}


def refusal(status: int, key: str, words: str, *arguments: str) -> Refusal:
    """Return a refusal with one message."""
    return Refusal(status, Message(key, words, arguments))


def missing(path: str) -> Refusal:
    """Return that there is nothing at a path."""
    return refusal(HTTPStatus.NOT_FOUND, "ResourceMissingAtURI", f"There is nothing at {path}.", path)


def error(trouble: Trouble) -> web.Response:
    """Return an error as DSP0266 spells it."""
    status = HTTPStatus.CONFLICT if isinstance(trouble.cause, Refused) else trouble.status
    if isinstance(trouble, Refusal):
        messages, headers = trouble.messages, {**HEADERS, **trouble.headers}
    else:
        key = _BY_STATUS.get(
            status, "InternalError" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "GeneralError"
        )
        messages, headers = (Message(key, trouble.words),), {**HEADERS}
    if trouble.after:
        headers["Retry-After"] = str(max(1, round(trouble.after)))
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = REALM
    return web.Response(
        status=status, body=msgspec.json.encode(body_of(messages)), content_type=JSON, headers=headers
    )


def body_of(messages: Sequence[Message]) -> Document:
    """Return an error body; the first message stands for all."""
    first = messages[0]
    return {
        "error": {
            "code": f"{REGISTRY}.{first.key if len(messages) == 1 else 'GeneralError'}",
            "message": " ".join(one.words for one in messages),
            EXTENDED_INFO: [one.document() for one in messages],
        }
    }


# --- ETags


def tagged(document: Document) -> Document:
    """Return the document with its ETag: the same content has the same, across restarts too."""
    content = hashlib.sha256(msgspec.json.encode(document)).hexdigest()
    return {**document, ETAG: f'"{content[:24]}"'}


def tag(document: Document) -> str:
    """Return the ETag that a document carries."""
    return str(document[ETAG])


def tags(header: str) -> tuple[str, ...]:
    """Return the ETags that a header lists; weak ones count as strong, as ours say all there is."""
    return tuple(one.strip().removeprefix("W/") for one in header.split(",") if one.strip())


def check_match(request: web.Request, document: Document) -> None:
    """Refuse a change of something that is not what the client saw."""
    header = request.headers.get("If-Match", "")
    if header and header.strip() != "*" and tag(document) not in tags(header):
        raise refusal(
            HTTPStatus.PRECONDITION_FAILED,
            "PreconditionFailed",
            "The resource is not any more what it was when this ETag was read.",
        )


# --- requests


def read(request: web.Request, body: bytes) -> Document:
    """Return what a request says. Raises Refusal."""
    if request.content_type not in {JSON, "application/octet-stream"} and body:
        raise refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            f"A body is {JSON}, not {request.content_type[:80]}.",
        )
    try:
        return msgspec.json.decode(body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refusal(
            HTTPStatus.BAD_REQUEST, "MalformedJSON", f"The body is not a JSON object: {str(error)[:200]}."
        ) from error


def check_version(request: web.Request) -> None:
    """Refuse another version of OData than there is."""
    wanted = request.headers.get("OData-Version", "4.0")
    if wanted != "4.0":
        raise refusal(
            HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed", "Only OData-Version 4.0 is spoken here."
        )


# --- answers


def answer(
    document: Document, status: int = HTTPStatus.OK, headers: Mapping[str, str] = MappingProxyType({})
) -> web.Response:
    """Return a document."""
    tags = {"ETag": tag(document)} if ETAG in document else {}
    return web.Response(
        status=status,
        body=msgspec.json.encode(document),
        content_type=JSON,
        headers={**HEADERS, **tags, **headers},
    )


def nothing() -> web.Response:
    """Return that it is done, and nothing more is to be said."""
    return web.Response(status=HTTPStatus.NO_CONTENT, headers=HEADERS)
