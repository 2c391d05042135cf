"""Refusals of the face itself, and how all refusals are told.

Knows Status bodies. Must not know what was wrong with an object.
"""

from http import HTTPStatus
from typing import Final

from jackfield.cluster.errors import ApiError, Cause, Details
from jackfield.cluster.face.calls import Answer, json
from jackfield.codec import Raw

UNAUTHORIZED: Final = ApiError(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")
NOWHERE: Final = ApiError(
    HTTPStatus.NOT_FOUND, "NotFound", "the server could not find the requested resource"
)
NOT_SO: Final = ApiError(
    HTTPStatus.METHOD_NOT_ALLOWED,
    "MethodNotAllowed",
    "the server does not allow this method on the requested resource",
)


def answer(error: ApiError) -> Answer:
    """Return the answer to a call that was refused."""
    after = error.details.retry_after_seconds
    told = json(error.status(), error.code)
    return Answer(told.code, told.body, headers={"Retry-After": str(after)}) if after else told


def success(details: Raw) -> Raw:
    """Return the Status of what was done and left nothing to show."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def bad_option(options: str, cause: Cause) -> ApiError:
    """Return the refusal of a query parameter."""
    details = Details(group="meta.k8s.io", kind=options, causes=(cause,))
    message = f'{options}.meta.k8s.io "" is invalid: {cause}'
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def too_large_version(asked: int, now: int) -> ApiError:
    """Return the refusal of a version that has not been yet."""
    causes = (Cause("", "Too large resource version", "ResourceVersionTooLarge"),)
    message = f"Timeout: Too large resource version: {asked}, current: {now}"
    details = Details(causes=causes, retry_after_seconds=1)
    return ApiError(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details)


def too_large_body(limit: int) -> ApiError:
    """Return the refusal of a body that nobody will read."""
    message = f"Request entity too large: limit is {limit}"
    return ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", message)


def unsupported_body(accepted: tuple[str, ...]) -> ApiError:
    """Return the refusal of a body in a language that is not spoken here."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def not_acceptable(offered: tuple[str, ...]) -> ApiError:
    """Return the refusal to answer in a language that is not spoken here."""
    message = f"only the following media types are accepted: {', '.join(offered)}"
    return ApiError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message)


def too_many(words: str) -> ApiError:
    """Return the refusal of a call that comes on top of too many others."""
    details = Details(retry_after_seconds=1)
    return ApiError(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", words, details)
