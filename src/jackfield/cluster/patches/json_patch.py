"""JSON patch (RFC 6902) as the API server applies it, without touching the original.

Knows pointers, operations and the server's limits. Must not know any kind, nor whether the result is an object of it.

Where the server's library is laxer than the RFC, so are we: `replace` of a member that is not there adds it, negative
indices count from the end, `copy` of a missing member copies null.
"""

import re
from collections.abc import Callable
from http import HTTPStatus

import msgspec

from jackfield.cluster import errors
from jackfield.codec import Raw, RawValue

OPERATIONS_MAX = 10_000
COPIED_BYTES_MAX = 3 * 1024 * 1024
"""What the `copy` operations of one patch may add, so that a short patch cannot make an endless object."""

_WORDS = ("op", "path", "from")
_INDEX = re.compile(r"[+-]?[0-9]+")
_INDEX_DIGITS_MAX = 18
_ESCAPED = re.compile("~[01]")
_TYPES = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}

Container = dict[str, RawValue] | list[RawValue]


class _DoesNotApplyError(Exception):
    """An operation that makes no sense for this document."""


def operations(body: RawValue) -> list[Raw]:
    """Return the operations of a body. Raises what the server says to one that has none."""
    if body is None:
        return []
    if not isinstance(body, list):
        raise _undecodable(body, "Go value of type []handlers.jsonPatchOp")
    for one in body:
        if one is not None and not isinstance(one, dict):
            raise _undecodable(one, "Go value of type handlers.jsonPatchOp")
        for word in _WORDS:
            value = one.get(word) if one else None
            if value is not None and not isinstance(value, str):
                raise _undecodable(value, f"Go struct field jsonPatchOp.{word} of type string")
    return [one or {} for one in body]


def unknown_fields(found: list[Raw]) -> tuple[str, ...]:
    """Return what strict decoding has to say about members that no operation has."""
    known = (*_WORDS, "value")
    return tuple(
        f'json patch unknown field "[{index}].{name}"'
        for index, one in enumerate(found)
        for name in one
        if name not in known
    )


def patched(target: Raw, found: list[Raw]) -> RawValue:
    """Return the target after all operations; parts that do not change are shared. All of them apply, or none."""
    if len(found) > OPERATIONS_MAX:
        words = f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(found)}"
        raise errors.ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "RequestEntityTooLarge", f"Request entity too large: {words}"
        )
    document = _Document(target)
    try:
        for one in found:
            document.apply(one)
    except _DoesNotApplyError as error:
        # The server knows why, and keeps it to itself.
        words = "the server rejected our request due to an error in our request"
        raise errors.ApiError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", words) from error
    return document.root


class _Document:
    """A document under change: a container is copied when it is first written to, and only then."""

    def __init__(self, root: Raw) -> None:
        self.root: RawValue = root
        self._ours: dict[int, Container] = {}
        self._copied_bytes = 0

    def apply(self, operation: Raw) -> None:
        name = operation.get("op")
        do = self._ways.get(name) if isinstance(name, str) else None
        if do is None:
            raise _DoesNotApplyError(f"Unexpected kind: {name}")
        do(self, operation)

    def _add(self, operation: Raw) -> None:
        self._put(_pointer(operation, "path"), operation.get("value"))

    def _remove(self, operation: Raw) -> None:
        self._take(_pointer(operation, "path"))

    def _replace(self, operation: Raw) -> None:
        path, value = _pointer(operation, "path"), operation.get("value")
        if path == "":
            if not isinstance(value, dict | list):
                raise _DoesNotApplyError("replace operation value must be object or array")
            self.root = value
            return
        parent, key = self._place(path)
        if isinstance(parent, dict):
            parent[key] = value
        else:
            parent[_index(key, len(parent))] = value

    def _move(self, operation: Raw) -> None:
        value = self._take(_pointer(operation, "from"))
        self._put(_pointer(operation, "path"), value)

    def _copy(self, operation: Raw) -> None:
        value = self._found(_pointer(operation, "from"))
        self._copied_bytes += len(msgspec.json.encode(value))
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise _DoesNotApplyError("Unable to complete the copy, it grows too large")
        # One value at two places would change at both.
        self._put(_pointer(operation, "path"), _detached(value))

    def _test(self, operation: Raw) -> None:
        path = _pointer(operation, "path")
        value = self.root if path == "" else self._found(path)
        if not _same(value, operation.get("value")):
            raise _DoesNotApplyError(f"testing value {path} failed")

    _ways: dict[str, Callable[["_Document", Raw], None]] = {
        "add": _add,
        "remove": _remove,
        "replace": _replace,
        "move": _move,
        "copy": _copy,
        "test": _test,
    }

    def _put(self, path: str, value: RawValue) -> None:
        parent, key = self._place(path)
        if isinstance(parent, dict):
            parent[key] = value
        else:
            parent.insert(len(parent) if key == "-" else _index(key, len(parent) + 1), value)

    def _take(self, path: str) -> RawValue:
        parent, key = self._place(path)
        if isinstance(parent, list):
            return parent.pop(_index(key, len(parent)))
        if key not in parent:
            raise _DoesNotApplyError(f"Unable to remove nonexistent key: {key}")
        return parent.pop(key)

    def _found(self, path: str) -> RawValue:
        """Return what lies at a path; a member that is missing is null."""
        parents, key = _split(path)
        value = self.root
        for name in parents:
            value = _member(value, name)
        return value.get(key) if isinstance(value, dict) else _member(value, key)

    def _place(self, path: str) -> tuple[Container, str]:
        """Return the container a path ends in, made ours, and the key in it."""
        parents, key = _split(path)
        self.root = parent = self._own(self.root)
        for name in parents:
            child = self._own(_member(parent, name))
            if isinstance(parent, dict):
                parent[name] = child
            else:
                parent[_index(name, len(parent))] = child
            parent = child
        return parent, key

    def _own(self, value: RawValue) -> Container:
        if not isinstance(value, dict | list):
            raise _DoesNotApplyError("the document has no such path")
        if id(value) in self._ours:
            return value
        ours: Container = dict(value) if isinstance(value, dict) else list(value)
        # Kept here, so that no other container can come to have the same identity while we look.
        self._ours[id(ours)] = ours
        return ours


def _pointer(operation: Raw, word: str) -> str:
    value = operation.get(word)
    if not isinstance(value, str):
        raise _DoesNotApplyError(f"operation missing {word} field")
    return value


def _split(path: str) -> tuple[list[str], str]:
    # Whatever stands before the first slash is not looked at.
    parts = [_unescaped(one) for one in path.split("/")[1:]]
    if not parts:
        raise _DoesNotApplyError(f"doc is missing path: {path}")
    return parts[:-1], parts[-1]


def _unescaped(part: str) -> str:
    return _ESCAPED.sub(lambda found: "/" if found[0] == "~1" else "~", part) if "~" in part else part


def _member(value: RawValue, name: str) -> RawValue:
    if isinstance(value, list):
        return value[_index(name, len(value))]
    if not isinstance(value, dict) or value.get(name) is None:
        raise _DoesNotApplyError(f"doc is missing path: {name}")
    return value[name]


def _index(key: str, length: int) -> int:
    """Return the place in a list that a key means; negative ones count from the end."""
    if not _INDEX.fullmatch(key) or len(key) > _INDEX_DIGITS_MAX:
        raise _DoesNotApplyError(f"value was not a proper array index: {key}")
    index = int(key)
    if not -length <= index < length:
        raise _DoesNotApplyError(f"Unable to access invalid index: {index}")
    return index % length


def _detached(value: RawValue) -> RawValue:
    return msgspec.json.decode(msgspec.json.encode(value)) if isinstance(value, dict | list) else value


def _same(one: RawValue, other: RawValue) -> bool:
    """Return whether two JSON values are the same; unlike for Python, true is not 1, nor 1 the same as 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            name in other and _same(value, other[name]) for name, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _undecodable(value: RawValue, what: str) -> errors.ApiError:
    found = _TYPES.get(type(value), "value")
    return errors.bad_request(f"error decoding patch: json: cannot unmarshal {found} into {what}")
