"""The patches that a content type can announce, and what is said of one that leads nowhere.

Knows which patch is which, and how a body becomes a change. Must not know where objects are kept.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.cluster import errors, schema
from jackfield.cluster.face import bodies, status
from jackfield.cluster.patches import json_patch, patch, strategic
from jackfield.codec import Raw, RawValue
from jackfield.codec.kinds import Kind
from jackfield.model import composition

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_NO_MAP: Final = "json: cannot unmarshal {} into Go value of type map[string]interface {{}}"


class Change(msgspec.Struct, frozen=True):
    """What a patch does to an object."""

    to: Callable[[Raw], RawValue]
    spelt: str = ""
    """How the patch is shown if its result is no object; nothing if the result itself is shown."""

    def changed(self, old: Raw) -> Raw:
        """Return the object after the change; a patch of many steps can dig deeper than any body."""
        try:
            new = self.to(old)
        except RecursionError as error:
            raise errors.bad_request("error applying patch: exceeded max depth") from error
        if not bodies.shallow(new, bodies.DEPTH_MAX):
            raise errors.bad_request("error applying patch: exceeded max depth")
        if not isinstance(new, dict):
            raise errors.bad_request("error applying patch: it leaves no object")
        return new

    def unusable(self, new: Raw, why: str) -> errors.ApiError:
        """Return the refusal of a result that is no object of its kind."""
        return patch.unusable(self.spelt or msgspec.json.encode(new).decode(), why)


def change(content_type: str, body: bytes, kind: Kind) -> Change:
    """Return the change that a body announces."""
    if content_type not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise errors.ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", "415: Unsupported Media Type"
        )
    node = schema.of(kind)
    if content_type == STRATEGIC_PATCH and (node is None or kind.group == composition.GROUP):
        raise status.unsupported_body((JSON_PATCH, MERGE_PATCH, APPLY_PATCH))
    value = _read(body)
    if content_type == JSON_PATCH:
        operations = json_patch.operations(value)
        return Change(lambda old: json_patch.patched(old, operations))
    if content_type == MERGE_PATCH:
        merging = _object(value, "error decoding patch: ", "Invalid JSON Patch")
        return Change(lambda old: patch.merged(old, merging))
    assert node is not None
    strategy = _object(value, "", "") if value is not None else {}
    return Change(lambda old: strategic.patched(old, strategy, node), strategic.spelt(strategy))


def _object(value: RawValue, before: str, if_null: str) -> Raw:
    if isinstance(value, dict):
        return value
    words = if_null if value is None else before + _NO_MAP.format(bodies.in_go(value))
    raise errors.bad_request(words)


def _read(body: bytes) -> RawValue:
    if len(body) > bodies.BYTES_MAX:
        raise status.too_large_body(bodies.BYTES_MAX)
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.bad_request(f"error decoding patch: {bodies.in_gos_words(error)}") from error
    except (RecursionError, ValueError) as error:
        raise errors.bad_request(f"error decoding patch: {error}") from error
    if not bodies.shallow(value, bodies.DEPTH_MAX):
        raise errors.bad_request("error decoding patch: exceeded max depth")
    return value
