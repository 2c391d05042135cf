"""Values that read themselves: times, quantities, bytes. What Go says of those that are none.

Knows Go's parsers, byte by byte where their words depend on it. Must not know where a value stands.
"""

import re
from calendar import monthrange
from typing import Final, NoReturn

from jackfield.model import quantity

RFC3339: Final = "2006-01-02T15:04:05Z07:00"
RFC3339_MICRO: Final = "2006-01-02T15:04:05.000000Z07:00"

_ZONE: Final = re.compile(r"Z|[+-]\d\d:\d\d", re.ASCII)
_FRACTION: Final = re.compile(r"[.,]\d+", re.ASCII)
_PIECES: Final = ("2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05")
_RANGES: Final = {
    "01": ("month", 1, 12),
    "15": ("hour", 0, 23),
    "04": ("minute", 0, 59),
    "05": ("second", 0, 59),
}
_ASCII_END: Final = 0x80
_ZONE_HOURS_MAX: Final = 24
_ZONE_MINUTES_MAX: Final = 60
_ALPHABET: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_QUANTUM: Final = 4
_NEWLINES: Final = b"\r\n"
_CLEAN: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def quantity_error(text: str) -> str:
    """Return what is wrong with a quantity; empty if nothing is."""
    try:
        quantity.parse(text.strip())
    except quantity.QuantityError as error:
        return error.reason
    return ""


# --- times


class _Wrong(Exception):  # noqa: N818 - carries words from the depths, and is never seen outside
    pass


def time_error(text: str, layout: str) -> str:
    """Return what is wrong with a time in one of the two layouts; empty if nothing is."""
    try:
        _parse(text, layout)
    except _Wrong as wrong:
        return str(wrong)
    return ""


def _parse(text: str, layout: str) -> None:
    rest = text
    values: dict[str, int] = {}
    for piece in _PIECES:
        rest, value = _taken(rest, piece) or _stop(text, layout, rest, piece)
        if piece in _RANGES:
            what, least, most = _RANGES[piece]
            if not least <= value <= most:
                raise _Wrong(f"{_parsing(text)}: {what} out of range")
        values[piece] = value
    rest = _after_fraction(text, layout, rest)
    rest = _after_zone(text, layout, rest)
    if rest:
        raise _Wrong(f"{_parsing(text)}: extra text: {_quoted(rest)}")
    if not 1 <= values["02"] <= monthrange(values["2006"] or 4, values["01"])[1]:
        raise _Wrong(f"{_parsing(text)}: day out of range")


def _taken(rest: str, piece: str) -> tuple[str, int] | None:
    """Return what follows a piece, and its value; None if it is not there."""
    if not piece.isdigit():
        return (rest[1:], 0) if rest.startswith(piece) else None
    width = 1 if piece == "15" and not re.match(r"\d\d", rest, re.ASCII) else len(piece)
    head = rest[:width]
    return (rest[width:], int(head)) if len(head) == width and re.fullmatch(r"\d+", head, re.ASCII) else None


def _after_fraction(text: str, layout: str, rest: str) -> str:
    if layout == RFC3339:  # any fraction will do, or none
        found = _FRACTION.match(rest)
        return rest[found.end() :] if found else rest
    if not re.match(r"[.,]\d{6}", rest, re.ASCII):
        _stop(text, layout, rest, ".000000")
    return rest[len(".000000") :]


def _after_zone(text: str, layout: str, rest: str) -> str:
    found = _ZONE.match(rest)
    if found is None:
        _stop(text, layout, rest, "Z07:00")
    zone = found.group()
    if zone != "Z" and int(zone[1:3]) > _ZONE_HOURS_MAX:
        raise _Wrong(f"{_parsing(text)}: time zone offset hour out of range")
    if zone != "Z" and int(zone[4:6]) > _ZONE_MINUTES_MAX:
        raise _Wrong(f"{_parsing(text)}: time zone offset minute out of range")
    return rest[found.end() :]


def _stop(text: str, layout: str, rest: str, piece: str) -> NoReturn:
    words = f"cannot parse {_quoted(rest)} as {_quoted(piece)}"
    raise _Wrong(f"{_parsing(text)} as {_quoted(layout)}: {words}")


def _parsing(text: str) -> str:
    return f"parsing time {_quoted(text)}"


def _quoted(text: str) -> str:
    """Return a text as Go's package for times quotes it, which knows no letters but ASCII's."""
    return f'"{"".join(_escaped(byte) for byte in text.encode(errors="surrogatepass"))}"'


def _escaped(byte: int) -> str:
    if byte in b'"\\':
        return f"\\{chr(byte)}"
    return chr(byte) if ord(" ") <= byte < _ASCII_END else f"\\x{byte:02x}"


# --- bytes


def base64_error(text: str) -> str:
    """Return what is wrong with bytes in base64; empty if nothing is."""
    source = text.encode(errors="surrogatepass")
    if _CLEAN.fullmatch(source):
        return ""
    at = _corrupt_at(source)
    return "" if at is None else f"illegal base64 data at input byte {at}"


def _corrupt_at(source: bytes) -> int | None:
    """Return where the reader gives up; four letters are three bytes, and line breaks do not count."""
    letters = 0
    for index, letter in enumerate(source):
        if letter in _ALPHABET:
            letters += 1
        elif letter == ord("="):
            return _badly_padded(source, index, letters % _QUANTUM)
        elif letter not in _NEWLINES:
            return index
    return None if letters % _QUANTUM == 0 else len(source) - letters % _QUANTUM


def _badly_padded(source: bytes, index: int, letters: int) -> int | None:
    if letters < 2:  # noqa: PLR2004 - a byte needs two letters
        return index
    after = _skipped(source, index + 1)
    if letters == 2:  # noqa: PLR2004 - and then two signs to fill up
        if after == len(source):
            return len(source)
        if source[after] != ord("="):
            return after - 1
        after = _skipped(source, after + 1)
    return after if after < len(source) else None


def _skipped(source: bytes, index: int) -> int:
    while index < len(source) and source[index] in _NEWLINES:
        index += 1
    return index
