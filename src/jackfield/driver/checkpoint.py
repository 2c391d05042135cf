"""The checkpoint's file: one line per claim, each with its own checksum, so that a damaged one takes no other with it.

    {"checksum":"5b0a4d3c","header":{"kind":"PreparedClaims","version":1,"revision":7}}
    {"checksum":"9c1f0b2e","record":{"entry":{"uid":...},"generation":1}}
    {"checksum":"00d1f9aa","end":{"records":1,"checksum":"7d3a8e01"}}

A line's checksum is that of the bytes of its one part; the one in `end` is that of all bytes above it. Knows the
format, its versions, and what is still to be believed of a damaged file. Must not know where it lies.

The header keeps its place and its shape in every version. A field that old versions may ignore is no new version: what
they do not touch they write again as it was.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from jackfield.driver.cdi import shown
from jackfield.driver.entry import Entry, check
from jackfield.model.names import Uid
from jackfield.ports import Refused

T = TypeVar("T")

KIND: Final = "PreparedClaims"
BYTES_MAX: Final = 64 << 20
"""Of the whole; more is neither written nor read."""

Migration = Callable[[dict[str, object]], dict[str, object]]
MIGRATIONS: Final[tuple[Migration, ...]] = ()
"""The n-th makes a record of version n + 1 out of one of version n; they are never removed."""


class Record(msgspec.Struct, frozen=True):
    """A claim, and how often what its containers can read of it has changed."""

    entry: Entry
    generation: int = 1


class Content(msgspec.Struct, frozen=True):
    """What a file says."""

    lines: Mapping[Uid, bytes] = {}
    """As they are written, to be written again."""
    records: Mapping[Uid, Record] = {}
    revision: int = 0
    """Raised by every write, so that one can tell whether another has written."""
    damaged: bytes = b""
    """Lines that are not to be believed, to be kept beside."""
    findings: tuple[str, ...] = ()
    """What is wrong, in words."""


def line(record: Record) -> bytes:
    """Return the record as a line. Raises Refused if there is something in it that cannot be written."""
    try:
        return _line("record", msgspec.json.encode(record))
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise Refused(f"claim {record.entry.claim} cannot be written down: {error}") from None


def file(lines: Iterable[bytes], revision: int, version: int = len(MIGRATIONS) + 1) -> bytes:
    """Return the whole file of these lines."""
    lines = tuple(lines)
    body = b"".join((_line("header", msgspec.json.encode(_Header(KIND, version, revision))), *lines))
    return body + _line("end", msgspec.json.encode(_End(len(lines), checksum(body))))


def content(data: bytes, migrations: tuple[Migration, ...] = MIGRATIONS) -> Content:
    """Return what is to be believed of a file. Raises Refused, and only if it is of a version that we do not know."""
    return _Reading(migrations).read(data)


class _Reading:
    """One pass over a file."""

    def __init__(self, migrations: tuple[Migration, ...]) -> None:
        self._migrations = migrations
        self._newest = self._version = len(migrations) + 1
        self._revision = 0
        self._lines: dict[Uid, bytes] = {}
        self._records: dict[Uid, Record] = {}
        self._damaged: list[bytes] = []
        self._findings: list[str] = []

    def read(self, data: bytes) -> Content:
        pieces = [piece for one in data.split(b"\n") for piece in _pieces(one)]
        if pieces and self._header(pieces[0]):
            del pieces[0]
        else:
            self._findings.append("its first line is missing or damaged")
            self._revision = zlib.crc32(data)  # another than before, whatever it was
            if pieces and not _is_sound(pieces[0], "record", "end"):
                self._damaged.append(pieces.pop(0) + b"\n")
        whole = _is_whole(data, pieces[-1]) if pieces else None
        for piece in pieces if whole is None else pieces[:-1]:
            self._record(piece)
        if whole is None:
            self._findings.append("its last line is missing or damaged: claims may be missing")
        elif not whole and not self._findings:
            self._findings.append(
                "its lines are sound, but not those that were written: claims may be missing"
            )
        return Content(
            self._lines, self._records, self._revision, b"".join(self._damaged), tuple(self._findings)
        )

    def _header(self, one: bytes) -> bool:
        head = _decoded(_part(one, "header"), _Header)
        if head is None or head.kind != KIND or head.version < 1:
            return False
        if head.version > self._newest:
            raise Refused(
                f"it was written by a newer version of this driver (format {head.version}; this one knows"
                f" {self._newest} and lower); run the newer one, or move the file away and lose what it remembers"
            )
        self._version, self._revision = head.version, head.revision
        return True

    def _record(self, one: bytes) -> None:
        part = _part(one, "record")
        if part is None:
            self._finding(one, f"a line is damaged{_claim(one)}")
            return
        try:
            record = self._migrated(part)
            check(record.entry)
        except (msgspec.MsgspecError, Refused, LookupError, TypeError, ValueError) as error:
            self._finding(one, f"a line makes no sense, though nothing damaged it{_claim(one)}: {error}")
            return
        self._lines[record.entry.uid] = one + b"\n" if self._version == self._newest else line(record)
        self._records[record.entry.uid] = record

    def _migrated(self, part: bytes) -> Record:
        pending = self._migrations[self._version - 1 :]
        if not pending:
            return msgspec.json.decode(part, type=Record)
        plain = msgspec.json.decode(part, type=dict[str, object])
        for migration in pending:
            plain = migration(plain)
        return msgspec.convert(plain, Record)

    def _finding(self, one: bytes, words: str) -> None:
        self._damaged.append(one + b"\n")
        self._findings.append(words)


class _Header(msgspec.Struct, frozen=True):
    kind: str
    version: int
    revision: int


class _End(msgspec.Struct, frozen=True):
    records: int
    checksum: str


class _Line(msgspec.Struct, frozen=True):
    checksum: str
    header: msgspec.Raw = msgspec.Raw()
    record: msgspec.Raw = msgspec.Raw()
    end: msgspec.Raw = msgspec.Raw()


_PARTS = ("record", "header", "end")


def _line(name: str, part: bytes) -> bytes:
    return b'{"checksum":"%s","%s":%s}\n' % (checksum(part).encode(), name.encode(), part)


def _pieces(one: bytes) -> Iterator[bytes]:
    """Return what stands on a line: one piece, or several if a line break between two of them was damaged."""
    if _is_sound(one, *_PARTS):
        yield one
        return
    for piece in re.split(rb'(?=\{"checksum":")', one):
        trimmed = piece[: piece.rfind(b"}") + 1]
        if _is_sound(trimmed, *_PARTS):
            yield trimmed
        elif piece:
            yield piece


def _is_sound(one: bytes, *names: str) -> bool:
    return any(_part(one, name) is not None for name in names)


def _part(one: bytes, name: str) -> bytes | None:
    """Return the part of a line, if it is there and has its checksum."""
    parsed = _decoded(one, _Line)
    part = bytes(getattr(parsed, name)) if parsed is not None else b""
    return part if parsed is not None and part and checksum(part) == parsed.checksum else None


def _is_whole(data: bytes, last: bytes) -> bool | None:
    """Whether the file is as it was written; None where its end is lost."""
    end = _decoded(_part(last, "end"), _End)
    if end is None:
        return None
    body = data[: -len(last) - 1]
    return end.checksum == checksum(body) and data == b"%s%s\n" % (body, last)


def _decoded(data: bytes | None, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=kind) if data is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def checksum(data: bytes) -> str:
    """Return the checksum, as a line has it."""
    return f"{zlib.crc32(data):08x}"


def _claim(one: bytes) -> str:
    """Return which claim a damaged line was probably about, for whoever has to look after it."""
    parsed = _decoded(one, _Line)
    record = _decoded(bytes(parsed.record), Record) if parsed is not None else None
    if record is None:
        return ""
    return f" (probably claim {shown(str(record.entry.claim))}, uid {shown(record.entry.uid)})"
