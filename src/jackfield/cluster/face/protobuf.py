"""Kubernetes' protobuf, as Go clients send objects of its own kinds, turned into what JSON would have said.

Knows the wire and, from `protobuf.json` (see `tools/protobuf`), how fields are numbered. Must not know what an object
means. We answer in JSON, which every client takes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Final

import msgspec

from jackfield.codec import Raw, RawValue
from jackfield.model.names import Seconds, rfc3339, rfc3339_micro

MAGIC: Final = b"k8s\x00"
FILE: Final = "protobuf.json"
DEPTH_MAX: Final = 64
_META: Final = "pkg/apis/meta/v1"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VARINT_BITS_MAX: Final = 70
_SIGN: Final = 1 << 63
_SECONDS_MAX: Final = 253_402_300_800
"""The year 10000, which no text has room for."""

Value = int | bytes


class UnreadableError(ValueError):
    """What is no protobuf of a kind that we know."""


class Field(msgspec.Struct, frozen=True):
    """A field of a type."""

    name: str
    """What JSON calls it; nothing if its fields are among those of the type it is in."""
    word: str
    """Its type; see `tools/protobuf`."""
    kept: bool
    """Whether JSON says it even if it is zero."""


def object_of(body: bytes) -> Raw:
    """Return the object in a body, as JSON says it."""
    if not body.startswith(MAGIC):
        raise UnreadableError("it does not begin as Kubernetes' protobuf does")
    envelope = dict(_fields(body[len(MAGIC) :]))
    said = dict(_fields(_bytes(envelope.get(1, b""))))
    version, kind = (_text(said.get(number, b"")) for number in (1, 2))
    package = _META if kind == "DeleteOptions" else _package(version)
    if kind not in _types().get(package, {}):
        raise UnreadableError(f"{kind} of {version} is not known here in protobuf")
    value = _message(package, kind, _bytes(envelope.get(2, b"")), DEPTH_MAX)
    return {"apiVersion": version, "kind": kind, **value}


def _package(version: str) -> str:
    """Return the package of Go that a group and version are kept in."""
    group, _, name = version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}/{name}"


@cache
def _types() -> Mapping[str, Mapping[str, Mapping[int, Field]]]:
    text = resources.files(__package__).joinpath(FILE).read_bytes()
    packages = msgspec.json.decode(text, type=dict[str, dict[str, dict[int, str]]])
    return {
        package: {
            kind: {number: _field(words) for number, words in fields.items()}
            for kind, fields in kinds.items()
        }
        for package, kinds in packages.items()
    }


def _field(words: str) -> Field:
    name, _, marked = words.partition(" ")
    word = marked.lstrip("?!")
    return Field(name, word, kept=word != marked)


# --- values


def _message(package: str, kind: str, data: bytes, depth: int) -> Raw:
    if not depth:
        raise UnreadableError("exceeded max depth")
    known = _types()[package][kind]
    found: Raw = {}
    for number, value in _fields(data):
        field = known.get(number)
        if field is not None:
            _add(found, field, value, lambda word, one: _value(package, word, one, depth - 1))
    return {name: value for name, value in found.items() if value is not None}


def _add(found: Raw, field: Field, value: Value, read: Callable[[str, Value], RawValue]) -> None:
    many, word = field.word[:2], field.word[2:]
    if many == "[]":
        found.setdefault(field.name, []).extend(_items(word, value, read))
    elif many == "{}":
        entry = dict(_fields(_bytes(value)))
        found.setdefault(field.name, {})[_text(entry.get(1, b""))] = read(word, entry.get(2, _zero(word)))
    elif not field.name:
        found.update(read(field.word, value))
    else:
        one = read(field.word, value)
        if one or field.kept:
            found[field.name] = one


def _items(word: str, value: Value, read: Callable[[str, Value], RawValue]) -> Iterator[RawValue]:
    if word in _NUMBERS and isinstance(value, bytes):  # many of them, packed
        place = 0
        while place < len(value):
            one, place = _varint(value, place)
            yield read(word, one)
    else:
        yield read(word, value)


def _value(package: str, word: str, value: Value, depth: int) -> RawValue:
    if word in _NUMBERS:
        if not isinstance(value, int):
            raise UnreadableError(f"a {word} is no number")
        return _NUMBERS[word](value)
    data = _bytes(value)
    if word in _SPELT:
        return _SPELT[word](data)
    if word.startswith("items "):
        return [_text(_bytes(one)) for number, one in _fields(data) if number == 1]
    home, _, kind = word.rpartition(".")
    return _message(home or package, kind, data, depth)


def _zero(word: str) -> Value:
    return 0 if word in _NUMBERS else b""


def _signed(value: int) -> int:
    return value - 2 * _SIGN if value >= _SIGN else value


def _text(data: Value) -> str:
    try:
        return _bytes(data).decode()
    except UnicodeDecodeError as error:
        raise UnreadableError("a string is not UTF-8") from error


def _base64(data: bytes) -> RawValue:
    return msgspec.to_builtins(data)


def _moment(data: bytes, spell: Callable[[Seconds], str]) -> str | None:
    said = dict(_fields(data))
    seconds, nanos = (_signed(one) if isinstance(one := said.get(number, 0), int) else 0 for number in (1, 2))
    if not -_SECONDS_MAX < seconds < _SECONDS_MAX:
        raise UnreadableError("a time is out of all reach")
    return spell(Seconds(seconds + nanos / 1e9)) if seconds or nanos else None


def _quantity(data: bytes) -> str:
    return _text(dict(_fields(data)).get(1, b""))


def _int_or_string(data: bytes) -> int | str:
    said = dict(_fields(data))
    number = said.get(2, 0)
    return _text(said.get(3, b"")) if said.get(1) else _signed(number if isinstance(number, int) else 0)


def _raw(data: bytes) -> RawValue:
    inner = _bytes(dict(_fields(data)).get(1, b""))
    try:
        return msgspec.json.decode(inner) if inner else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreadableError(f"JSON within: {error}") from error


_NUMBERS: Final[Mapping[str, Callable[[int], RawValue]]] = {"bool": bool, "int32": _signed, "int64": _signed}
_SPELT: Final[Mapping[str, Callable[[bytes], RawValue]]] = {
    "string": _text,
    "bytes": _base64,
    "time": lambda data: _moment(data, rfc3339),
    "microtime": lambda data: _moment(data, rfc3339_micro),
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "raw": _raw,
}


# --- the wire


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message, with their numbers."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        wire, size = tag & 7, 0
        if wire == _VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, place = _varint(data, place)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise UnreadableError(f"wire type {wire}")
        if place + size > len(data):
            raise UnreadableError("it ends too early")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < _VARINT_BITS_MAX:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value & (2 * _SIGN - 1), place
        shift += 7
    raise UnreadableError("a number does not end")


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise UnreadableError("a number stands where something else should")
    return value
