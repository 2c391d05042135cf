"""What the API server answers when it does not do as asked.

Knows codes, reasons, messages and details in Kubernetes' own words. Must not know what was wrong, or speak HTTP.
"""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.core.cel.quoting import quoted
from jackfield.model.meta import Wire
from jackfield.model.names import Key, Uid

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class Cause(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong with an object."""

    field: str
    """Where, spelt `spec.devices[3].name`."""
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        """Spell it as the API server does."""
        return f"{self.field}: {self.message}"


class Details(Wire, frozen=True, gc=False):
    """What a Status says beside its message, for programs to read."""

    name: str = ""
    group: str = ""
    kind: str = ""
    """The plural of the kind, except where the object itself was at fault: there it is the kind."""
    uid: Uid = Uid("")
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


NO_DETAILS: Final = Details()


class ApiError(Exception):
    """A call that was refused."""

    def __init__(self, code: int, reason: str, message: str, details: Details = NO_DETAILS) -> None:
        super().__init__(message)
        self.code = int(code)
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def causes(self) -> tuple[Cause, ...]:
        """All that is wrong with the object, one by one."""
        return self.details.causes

    def status(self) -> Raw:
        """Return the body of the answer: a Status, as the API server writes one."""
        told: Raw = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        told["message"] = self.message
        if self.reason:
            told["reason"] = self.reason
        if self.details != NO_DETAILS:
            told["details"] = _told(self.details)
        told["code"] = self.code
        return told


# --- causes


def invalid_value(field: str, value: object, message: str) -> Cause:
    """Return the cause for a value that is not allowed."""
    return Cause(field, f"Invalid value: {shown(value)}: {message}")


def invalid_whole(field: str, message: str) -> Cause:
    """Return the cause for an object or list that is not allowed as a whole; its value is not repeated."""
    return Cause(field, f"Invalid value: {message}")


def invalid_type(field: str, value: object, message: str) -> Cause:
    """Return the cause for a value of another type than it should have."""
    return Cause(field, f"Invalid value: {shown(value)}: {message}", "FieldValueTypeInvalid")


def required(field: str, message: str = "") -> Cause:
    """Return the cause for something that is missing."""
    return Cause(field, f"Required value{': ' if message else ''}{message}", "FieldValueRequired")


def forbidden(field: str, message: str) -> Cause:
    """Return the cause for something that must not be there, or not change."""
    return Cause(field, f"Forbidden: {message}", "FieldValueForbidden")


def duplicate(field: str, value: object) -> Cause:
    """Return the cause for a value that is there already."""
    return Cause(field, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def missing(field: str, value: object) -> Cause:
    """Return the cause for a value that names something which is not there."""
    return Cause(field, f"Not found: {shown(value)}", "FieldValueNotFound")


def unsupported(field: str, value: str, allowed: Iterable[str]) -> Cause:
    """Return the cause for a value that is none of those known."""
    known = ", ".join(quoted(one) for one in allowed)
    return Cause(
        field, f"Unsupported value: {quoted(value)}: supported values: {known}", "FieldValueNotSupported"
    )


def too_many(field: str, count: int, most: int) -> Cause:
    """Return the cause for a list that is too long."""
    return Cause(field, f"Too many: {count}: must have at most {most} items", "FieldValueTooMany")


def too_long(field: str, most: int) -> Cause:
    """Return the cause for a text that is too long."""
    return Cause(field, f"Too long: may not be more than {most} bytes", "FieldValueTooLong")


# --- answers


def not_found(kind: Kind, key: Key) -> ApiError:
    """Return the error for an object that is not there."""
    message = f"{kind.resource} {quoted(key.name)} not found"
    return ApiError(HTTPStatus.NOT_FOUND, "NotFound", message, _about(kind, key))


def already_exists(kind: Kind, key: Key, *, deleting: bool = False) -> ApiError:
    """Return the error for a name that is taken, perhaps by an object that is about to go."""
    message = (
        f"{'object is being deleted: ' if deleting else ''}{kind.resource} {quoted(key.name)} already exists"
    )
    return ApiError(HTTPStatus.CONFLICT, "AlreadyExists", message, _about(kind, key))


def no_name_left(kind: Kind, key: Key) -> ApiError:
    """Return the error for a name that was made up, and is taken."""
    why = "the server was not able to generate a unique name for the object"
    message = f"{kind.resource} {quoted(key.name)} already exists, {why}"
    details = msgspec.structs.replace(_about(kind, key), retry_after_seconds=1)
    return ApiError(HTTPStatus.CONFLICT, "AlreadyExists", message, details)


def conflict(kind: Kind, key: Key, what: str) -> ApiError:
    """Return the error for an object that is not as the caller believes."""
    message = f"Operation cannot be fulfilled on {kind.resource} {quoted(key.name)}: {what}"
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, _about(kind, key))


def another(kind: Kind, key: Key, wanted: str, found: str) -> ApiError:
    """Return the error for a write to an object that has gone, and whose name another one has."""
    where = "/".join(
        one for one in ("/registry", _STORED_AS.get(kind.kind, _path(kind)), key.namespace, key.name) if one
    )
    storage = f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0"
    failed = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    return conflict(kind, key, f"{storage}, AdditionalErrorMsg: {failed}")


def modified(kind: Kind, key: Key, wanted: str) -> ApiError:
    """Return the error for a write to a version that is not the latest, or that no object ever had."""
    if not (wanted.isascii() and wanted.isdecimal()):
        return unexplained(f"strconv.ParseUint: parsing {quoted(wanted)}: invalid syntax")
    return conflict(kind, key, MODIFIED)


def undeletable(kind: Kind, key: Key, what: str) -> ApiError:
    """Return the error for an object that is not as the caller who deletes it believes; it names the kind."""
    message = f"Operation cannot be fulfilled on {_qualified(kind)} {quoted(key.name)}: {what}"
    details = Details(name=key.name, group=kind.group, kind=kind.kind)
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, details)


def unbindable(kind: Kind, key: Key, what: str) -> ApiError:
    """Return the error for a pod that cannot be bound; it names the subresource."""
    plural = f"{kind.plural}/binding"
    message = f"Operation cannot be fulfilled on {plural} {quoted(key.name)}: {what}"
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, Details(name=key.name, kind=plural))


def unversioned(kind: Kind, key: Key, cause: Cause) -> ApiError:
    """Return the error for a replacement that does not say of which version; it names the plural."""
    message = f"{kind.resource} {quoted(key.name)} is invalid: {cause}"
    details = msgspec.structs.replace(_about(kind, key), causes=(cause,))
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def disputed(message: str, causes: tuple[Cause, ...]) -> ApiError:
    """Return the error for an apply of fields that others own."""
    return ApiError(HTTPStatus.CONFLICT, "Conflict", message, Details(causes=causes))


def refused(kind: Kind, key: Key, why: str, causes: tuple[Cause, ...] = ()) -> ApiError:
    """Return the error for what nobody may do, whoever asks."""
    name = f" {quoted(key.name)}" if key.name else ""
    details = msgspec.structs.replace(_about(kind, key), causes=causes)
    return ApiError(HTTPStatus.FORBIDDEN, "Forbidden", f"{kind.resource}{name} is forbidden: {why}", details)


def invalid(kind: Kind, key: Key, causes: tuple[Cause, ...]) -> ApiError:
    """Return the error for an object with something wrong in it; the message says each thing once."""
    said = list(dict.fromkeys(str(one) for one in causes))
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    message = f"{_qualified(kind)} {quoted(key.name)} is invalid: {listed}"
    details = Details(name=key.name, group=kind.group, kind=kind.kind, causes=causes)
    return ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


def bad_request(message: str) -> ApiError:
    """Return the error for a call that makes no sense."""
    return ApiError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def not_allowed(kind: Kind, action: str) -> ApiError:
    """Return the error for what objects of a kind do not offer."""
    message = f"{action} is not supported on resources of kind {quoted(kind.resource)}"
    details = Details(group=kind.group, kind=kind.plural)
    return ApiError(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message, details)


def unexplained(message: str) -> ApiError:
    """Return the error for what the server's own storage refused: it has a message and no reason."""
    return ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def internal(message: str) -> ApiError:
    """Return the error for what the server takes for a mistake of its own."""
    details = Details(causes=(Cause("", message, ""),))
    return ApiError(
        HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", f"Internal error occurred: {message}", details
    )


def expired(version: int, oldest: int) -> ApiError:
    """Return the error for a watch from before what is remembered."""
    message = f"too old resource version: {version} ({oldest})"
    return ApiError(HTTPStatus.GONE, "Expired", message)


# --- spelling

_STORED_AS: Final = {"Node": "minions"}
"""Kinds whose place in the storage of a real server is named otherwise than they are."""


def shown(value: object) -> str:
    """Return a value as causes show it: a text quoted, anything else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    text = msgspec.json.encode(value).decode()
    # Go's JSON is safe to put into HTML, whoever reads it.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _qualified(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def _path(kind: Kind) -> str:
    """Return where a kind's objects lie; those of definitions lie below their group."""
    is_built_in = not kind.group or kind.group in ("coordination.k8s.io", "resource.k8s.io")
    return kind.plural if is_built_in else f"{kind.group}/{kind.plural}"


def _about(kind: Kind, key: Key) -> Details:
    return Details(name=key.name, group=kind.group, kind=kind.plural)


def _told(details: Details) -> Raw:
    told: Raw = msgspec.to_builtins(details)
    if details.causes:
        told["causes"] = [_cause(one) for one in details.causes]
    return told


def _cause(cause: Cause) -> Raw:
    """Return a cause as a Status writes it, which leaves out what says nothing."""
    parts = {"reason": cause.reason, "message": cause.message, "field": cause.field}
    return {name: value for name, value in parts.items() if value}
