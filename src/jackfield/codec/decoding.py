"""From the wire to the model: bytes or dictionaries become frozen objects, or a BadObject that says where.

Knows JSON and Kubernetes' lists. Must not know what a field means.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Generic, TypeVar

import msgspec

from jackfield.codec.wire import Raw, RawValue, collector_paused, without_nulls
from jackfield.model.meta import Object
from jackfield.model.names import Key, Version

T = TypeVar("T", bound=Object)

_WHERE = re.compile(r"^(?P<what>.*?)(?: - at (?:the )?(?P<key>key in )?`\$(?P<path>.*)`)?$", re.DOTALL)


class BadObject(Exception):  # noqa: N818 - named for what was found
    """An object that is not what its kind says; it is passed over, and its neighbours are not."""

    def __init__(self, kind: type[Object], key: Key, path: str, what: str) -> None:
        place = f"{kind.__name__} {key if key.name else 'without a name'}"
        super().__init__(f"{place}: {path}: {what}" if path else f"{place}: {what}")
        self.kind = kind
        self.key = key
        self.path = path
        self.what = what


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """The answer to a list call."""

    objects: tuple[T, ...]
    errors: tuple[BadObject, ...]
    version: Version
    """The version of the whole list, from which a watch goes on."""
    more: str = ""
    """What asks for the next page; empty on the last."""


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    more: str = msgspec.field(default="", name="continue")


class _RawList(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


_raw_lists = msgspec.json.Decoder(_RawList)
_encoder = msgspec.json.Encoder()


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


def decode(kind: type[T], data: bytes | Mapping[str, object]) -> T:
    """Return the object, or raise BadObject naming kind, object and field."""
    # Through JSON even for dictionaries: `msgspec.convert` cannot fill a Raw, and two passes in C are fast.
    encoded = data if isinstance(data, bytes) else _encoder.encode(data)
    decoder: msgspec.json.Decoder[T] = _decoder(kind)
    try:
        return decoder.decode(encoded)
    except msgspec.DecodeError as error:
        # Go writes null for "not set" (`creationTimestamp: null` above all). That is rare enough to pay twice.
        return _decode_without_nulls(decoder, kind, encoded, error)


def decode_many(
    kind: type[T], items: Iterable[bytes | Mapping[str, object]]
) -> tuple[tuple[T, ...], tuple[BadObject, ...]]:
    """Return the objects that are sound, in order, and what is wrong with the others."""
    good: list[T] = []
    bad: list[BadObject] = []
    with collector_paused():
        for item in items:
            try:
                good.append(decode(kind, item))
            except BadObject as error:
                bad.append(error)
    return tuple(good), tuple(bad)


def decode_list(kind: type[T], data: bytes) -> Listing[T]:
    """Return a list call's answer; one bad object never stops the others. Raises BadObject if it is no list."""
    try:
        listed = _raw_lists.decode(data)
    except msgspec.DecodeError as error:
        raise _bad(kind, {}, error) from error
    objects, errors = decode_many(kind, (bytes(item) for item in listed.items or ()))
    return Listing(objects, errors, Version(listed.metadata.resource_version), listed.metadata.more)


def _decode_without_nulls(
    decoder: msgspec.json.Decoder[T], kind: type[T], encoded: bytes, error: msgspec.DecodeError
) -> T:
    try:
        raw: RawValue = msgspec.json.decode(encoded)
    except msgspec.DecodeError:
        raise _bad(kind, {}, error) from error
    if not isinstance(raw, dict):
        raise _bad(kind, {}, error) from error
    try:
        return decoder.decode(_encoder.encode(without_nulls(raw)))
    except msgspec.ValidationError as final:
        raise _bad(kind, raw, final) from final


def _bad(kind: type[Object], raw: Raw, error: msgspec.DecodeError) -> BadObject:
    path, what = place(error)
    return BadObject(kind, _key(raw), path, what)


def place(error: msgspec.DecodeError) -> tuple[str, str]:
    """Return where, as Kubernetes spells it, and what is wrong: `spec.devices[3].name`; `[*]` is a member of a map."""
    found = _WHERE.match(str(error))
    assert found is not None  # noqa: S101 - the pattern matches any text
    path = (found["path"] or "").removeprefix(".").replace("[...]", "[*]")
    return path, f"a key: {found['what']}" if found["key"] else found["what"]


def _key(raw: Raw) -> Key:
    metadata = raw.get("metadata")
    if not isinstance(metadata, dict):
        return Key("", "")
    namespace, name = metadata.get("namespace"), metadata.get("name")
    return Key(namespace if isinstance(namespace, str) else "", name if isinstance(name, str) else "")
