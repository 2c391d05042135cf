"""Durations and points in time.

Knows how Go reads and writes them. Must not know expressions.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
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
_DURATION: Final = re.compile(r"([0-9]{1,999}\.?[0-9]{0,999}|\.[0-9]{1,999})(ns|us|µs|μs|ms|s|m|h)")
"""Python does not read numbers of thousands of digits."""
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(Z|[+-][0-9]{2}:[0-9]{2})"
)
_OFFSET: Final = re.compile(r"([+-]?)([0-9]{1,2}):([0-9]{1,2})")
_NO_TIMESTAMP: Final = "type conversion error from 'string' to 'google.protobuf.Timestamp'"
_NO_DURATION: Final = "type conversion error from 'string' to 'google.protobuf.Duration'"
_HOURS_MAX, _MINUTES_MAX = 24, 60
_HERE: Final = ("", "UTC", "Local")
"""Where a scheduler runs, it is UTC."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
YEAR_ONE: Final = Timestamp(-62135596800 * SECOND)
"""Go's zero time."""


def parse_duration(text: str) -> Duration:
    """Return the span a text stands for; raises CelError."""
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    total = Fraction(0)
    at = 0
    while at < len(rest) and rest != "0":
        part = _DURATION.match(rest, at)
        if part is None:
            raise CelError(_NO_DURATION)
        total += Fraction(part[1] if part[1][-1] != "." else part[1][:-1]) * _UNITS[part[2]]
        at = part.end()
    nanos = sign * int(total)
    if not rest or not INT_MIN <= nanos <= INT_MAX:
        raise CelError(_NO_DURATION)
    return Duration(nanos)


def parse_timestamp(text: str) -> Timestamp:
    """Return the point in time a text stands for; raises CelError."""
    shape = _TIMESTAMP.fullmatch(text)
    if shape is None:
        raise CelError(_NO_TIMESTAMP)
    try:
        year, month, day, hour, minute, second = (int(part) for part in shape.groups()[:6])
        since = datetime(year, month, day, hour, minute, second, tzinfo=UTC) - _EPOCH
    except ValueError as error:
        raise CelError(_NO_TIMESTAMP) from error
    east = _OFFSET.fullmatch(shape[8])
    if east and (int(east[2]) > _HOURS_MAX or int(east[3]) > _MINUTES_MAX):
        raise CelError(_NO_TIMESTAMP)
    offset = _offset(east) if east else timedelta()
    since -= offset
    fraction = int((shape[7] or "0").ljust(9, "0")[:9])
    nanos = (since.days * 86400 + since.seconds) * SECOND + fraction
    return moment(nanos, round(offset.total_seconds()))


def moment(nanos: int, east_seconds: int = 0) -> Timestamp:
    """Return a point in time; raises CelError for what is not in the years 1 to 9999."""
    if not YEAR_ONE.nanos <= nanos < 253402300800 * SECOND:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, east_seconds)


def duration_text(duration: Duration) -> str:
    """Return a span in seconds, as CEL prints it."""
    whole, rest = divmod(abs(duration.nanos), SECOND)
    sign = "-" if duration.nanos < 0 else ""
    return f"{sign}{whole}{f'.{rest:09}'.rstrip('0') if rest else ''}s"


def timestamp_text(timestamp: Timestamp) -> str:
    """Return a point in time in RFC 3339, in the zone in which it was written."""
    seconds, nanos = divmod(timestamp.nanos, SECOND)
    east = timestamp.east_seconds
    # Python has no year 10,000, which zones can reach; the calendar repeats itself after 400 years.
    years = 400 if seconds > 0 else 0
    at = _EPOCH + timedelta(seconds=seconds + east, days=-146_097 if years else 0)
    fraction = f".{nanos:09}".rstrip("0") if nanos else ""
    zone = f"{'-' if east < 0 else '+'}{abs(east) // 3600:02}:{abs(east) // 60 % 60:02}" if east else "Z"
    return f"{at.year + years:04}-{at:%m-%dT%H:%M:%S}{fraction}{zone}"


@overload("duration", str)
def _duration(text: str) -> Duration:
    return parse_duration(text)


@overload("duration", int)
def _no_duration(_number: int) -> Duration:
    raise CelError("type conversion error from 'int' to 'google.protobuf.Duration'")


@overload("duration", Duration)
def _same_duration(duration: Duration) -> Duration:
    return duration


@overload("timestamp", str)
def _timestamp(text: str) -> Timestamp:
    return parse_timestamp(text)


@overload("timestamp", int)
def _timestamp_of(seconds: int) -> Timestamp:
    return moment(seconds * SECOND)


@overload("timestamp", Timestamp)
def _same_timestamp(timestamp: Timestamp) -> Timestamp:
    return timestamp


def _in_zone(timestamp: Timestamp, zone: str) -> datetime:
    at = _EPOCH + timedelta(microseconds=timestamp.nanos // 1000)
    east = _OFFSET.fullmatch(zone)
    if east:
        return at + _offset(east)
    try:
        return at.astimezone(ZoneInfo(zone)) if zone not in _HERE else at
    except (ValueError, LookupError, OSError) as error:
        raise CelError(f"unknown time zone {zone}") from error


def _offset(east: re.Match[str]) -> timedelta:
    offset = timedelta(hours=int(east[2]), minutes=int(east[3]))
    return -offset if east[1] == "-" else offset


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getFullYear": lambda at: at.year,
    "getMonth": lambda at: at.month - 1,
    "getDate": lambda at: at.day,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getHours": lambda at: at.hour,
    "getMinutes": lambda at: at.minute,
    "getSeconds": lambda at: at.second,
    "getMilliseconds": lambda at: at.microsecond // 1000,
}
_SPANS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": 10**6,
}


def _declare_part(name: str) -> None:
    part = _PARTS[name]

    overload(name, Timestamp)(lambda timestamp: part(_in_zone(timestamp, "UTC")))
    overload(name, Timestamp, str)(lambda timestamp, zone: part(_in_zone(timestamp, zone)))


def _declare_span(name: str) -> None:
    unit = _SPANS[name]
    overload(name, Duration)(lambda duration: int(Fraction(duration.nanos, unit)))


for _name in _PARTS:
    _declare_part(_name)
for _name in _SPANS:
    _declare_span(_name)
