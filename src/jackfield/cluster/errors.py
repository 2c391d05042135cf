"""What the API server answers when it does not do as asked.

Knows codes, reasons and messages in Kubernetes' own words. Must not know what was wrong, or speak HTTP.
"""

from http import HTTPStatus

import msgspec

from jackfield.codec.kinds import Kind
from jackfield.model.names import Key


class Cause(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong with an object."""

    field: str
    """Where, spelt `spec.devices[3].name`."""
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        """Spell it as the API server does."""
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A call that was refused."""

    def __init__(self, code: int, reason: str, message: str, causes: tuple[Cause, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes


def invalid_value(field: str, value: object, message: str) -> Cause:
    """Return the cause for a value that is not allowed."""
    shown = f'"{value}"' if isinstance(value, str) else f"{value}"
    return Cause(field, f"Invalid value: {shown}: {message}")


def invalid_whole(field: str, message: str) -> Cause:
    """Return the cause for an object or list that is not allowed as a whole; its value is not repeated."""
    return Cause(field, f"Invalid value: {message}")


def required(field: str, message: str = "") -> Cause:
    """Return the cause for something that is missing."""
    return Cause(field, f"Required value{': ' if message else ''}{message}", "FieldValueRequired")


def forbidden(field: str, message: str) -> Cause:
    """Return the cause for something that must not be there, or not change."""
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


def duplicate(field: str, value: str) -> Cause:
    """Return the cause for a value that is there already."""
    return Cause(field, f'Duplicate value: "{value}"', "FieldValueDuplicate")


def unsupported(field: str, value: str, allowed: tuple[str, ...]) -> Cause:
    """Return the cause for a value that is none of those known."""
    known = ", ".join(f'"{one}"' for one in allowed)
    return Cause(field, f'Unsupported value: "{value}": supported values: {known}', "FieldValueNotSupported")


def too_many(field: str, count: int, most: int) -> Cause:
    """Return the cause for a list that is too long."""
    return Cause(field, f"Too many: {count}: must have at most {most} items", "FieldValueTooMany")


def too_long(field: str, most: int) -> Cause:
    """Return the cause for a text that is too long."""
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


def not_found(kind: Kind, key: Key) -> ApiError:
    """Return the error for an object that is not there."""
    return ApiError(HTTPStatus.NOT_FOUND, "NotFound", f'{kind.resource} "{key.name}" not found')


def already_exists(kind: Kind, key: Key) -> ApiError:
    """Return the error for a name that is taken."""
    return ApiError(HTTPStatus.CONFLICT, "AlreadyExists", f'{kind.resource} "{key.name}" already exists')


def conflict(kind: Kind, key: Key, what: str, causes: tuple[Cause, ...] = ()) -> ApiError:
    """Return the error for an object that is not as the caller believes."""
    message = f'Operation cannot be fulfilled on {kind.resource} "{key.name}": {what}'
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, causes)


def invalid(kind: Kind, key: Key, causes: tuple[Cause, ...]) -> ApiError:
    """Return the error for an object with something wrong in it."""
    listed = ", ".join(str(one) for one in causes)
    message = f'{kind.kind}.{kind.group} "{key.name}" is invalid: {listed}'
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, causes)


def bad_request(message: str) -> ApiError:
    """Return the error for a call that makes no sense."""
    return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def internal(message: str) -> ApiError:
    """Return the error for what the server takes for a mistake of its own."""
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", message)


def expired(version: int, oldest: int) -> ApiError:
    """Return the error for a watch from before what is remembered."""
    message = f"too old resource version: {version} ({oldest})"
    return ApiError(HTTPStatus.GONE, "Expired", message)
