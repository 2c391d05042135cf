"""Durations and points in time.

Knows how Go reads and writes them. Must not know expressions.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import Final
from zoneinfo import ZoneInfo

from jackfield.core.cel.faults import CelError
from jackfield.core.cel.values import INT_MAX, INT_MIN, Duration, Timestamp, overload

SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_DURATION: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{1,2})")
_NO_TIMESTAMP: Final = "type conversion error from 'string' to 'google.protobuf.Timestamp'"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_duration(text: str) -> Duration:
    """Return the span a text stands for; raises CelError."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    total = Fraction(0)
    at = 0
    while at < len(rest) and rest != "0":
        part = _DURATION.match(rest, at)
        if part is None:
            raise CelError(f'time: invalid duration "{text}"')
        total += Fraction(part[1] if part[1][-1] != "." else part[1][:-1]) * _UNITS[part[2]]
        at = part.end()
    if not rest:
        raise CelError(f'time: invalid duration "{text}"')
    nanos = sign * int(total)
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelError(f'time: invalid duration "{text}"')
    return Duration(nanos)


def parse_timestamp(text: str) -> Timestamp:
    """Return the point in time a text stands for; raises CelError."""
    shape = _TIMESTAMP.fullmatch(text)
    if shape is None:
        raise CelError(_NO_TIMESTAMP)
    try:
        year, month, day, hour, minute, second = (int(part) for part in shape.groups()[:6])
        zone = UTC if shape[8] == "Z" else _zone(shape[8])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=zone)
        since = moment - _EPOCH
    except (ValueError, OverflowError) as error:
        raise CelError(_NO_TIMESTAMP) from error
    fraction = int((shape[7] or "0").ljust(9, "0")[:9])
    return Timestamp((since.days * 86400 + since.seconds) * SECOND + fraction)


def duration_text(duration: Duration) -> str:
    """Return a span in seconds, as CEL prints it."""
    whole, rest = divmod(abs(duration.nanos), SECOND)
    sign = "-" if duration.nanos < 0 else ""
    return f"{sign}{whole}{f'.{rest:09}'.rstrip('0') if rest else ''}s"


def timestamp_text(timestamp: Timestamp) -> str:
    """Return a point in time in RFC 3339."""
    seconds, nanos = divmod(timestamp.nanos, SECOND)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


@overload("duration", str)
def _duration(text: str) -> Duration:
    return parse_duration(text)


@overload("duration", Duration)
def _same_duration(duration: Duration) -> Duration:
    return duration


@overload("timestamp", str)
def _timestamp(text: str) -> Timestamp:
    return parse_timestamp(text)


@overload("timestamp", int)
def _timestamp_of(seconds: int) -> Timestamp:
    if not -62135596800 <= seconds < 253402300800:  # noqa: PLR2004 - the years 1 to 9999
        raise CelError("timestamp overflow")
    return Timestamp(seconds * SECOND)


@overload("timestamp", Timestamp)
def _same_timestamp(timestamp: Timestamp) -> Timestamp:
    return timestamp


def _zone(name: str) -> tzinfo:
    shape = _OFFSET.fullmatch(name)
    if shape is None:
        try:
            return ZoneInfo(name) if name not in ("", "UTC") else UTC
        except (ValueError, LookupError, OSError) as error:
            raise CelError(f"unknown time zone {name}") from error
    offset = timedelta(hours=int(shape[2]), minutes=int(shape[3]))
    return timezone(-offset if shape[1] == "-" else offset)


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda moment: moment.year,
    "getMonth": lambda moment: moment.month - 1,
    "getDate": lambda moment: moment.day,
    "getDayOfMonth": lambda moment: moment.day - 1,
    "getDayOfYear": lambda moment: moment.timetuple().tm_yday - 1,
    "getDayOfWeek": lambda moment: moment.isoweekday() % 7,
    "getHours": lambda moment: moment.hour,
    "getMinutes": lambda moment: moment.minute,
    "getSeconds": lambda moment: moment.second,
    "getMilliseconds": lambda moment: moment.microsecond // 1000,
}
_SPANS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 10**6,
}


def _declare_part(name: str) -> None:
    part = _PARTS[name]

    def in_zone(timestamp: Timestamp, zone: str) -> int:
        moment = _EPOCH + timedelta(microseconds=timestamp.nanos // 1000)
        return part(moment.astimezone(_zone(zone)))

    overload(name, Timestamp)(lambda timestamp: in_zone(timestamp, "UTC"))
    overload(name, Timestamp, str)(in_zone)


def _declare_span(name: str) -> None:
    unit = _SPANS[name]
    overload(name, Duration)(lambda duration: int(Fraction(duration.nanos, unit)))


for _name in _PARTS:
    _declare_part(_name)
for _name in _SPANS:
    _declare_span(_name)
