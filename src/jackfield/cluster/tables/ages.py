"""How long ago something was, in the few characters that a column has.

Knows what Kubernetes prints for a duration and for a time that nobody wrote. Must not know any kind.
"""

import re
from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from typing import Final

from jackfield.model.names import Seconds

UNKNOWN: Final = "<unknown>"
INVALID: Final = "<invalid>"

_SECOND, _MINUTE, _HOUR, _DAY, _YEAR = 1, 60, 3600, 86400, 365 * 86400
_STEPS: Final = (
    (0, _SECOND, "s", 0, ""),
    (2 * _MINUTE, _MINUTE, "m", _SECOND, "s"),
    (10 * _MINUTE, _MINUTE, "m", 0, ""),
    (3 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (8 * _HOUR, _HOUR, "h", 0, ""),
    (2 * _DAY, _DAY, "d", _HOUR, "h"),
    (8 * _DAY, _DAY, "d", 0, ""),
    (2 * _YEAR, _YEAR, "y", _DAY, "d"),
    (8 * _YEAR, _YEAR, "y", 0, ""),
)
"""From which duration on what is printed: so many of a unit, and so many of a smaller one unless there are none."""
_STARTS: Final = tuple(step[0] for step in _STEPS)
_LONGEST_SECONDS: Final = (2**63 - 1) / 1e9
"""Go counts durations in 64 bits of nanoseconds; none is longer than 292 years."""
_SKEW_SECONDS: Final = -1
"""Clocks differ a little: what lies no further ahead counts as now."""
_ZERO: Final = datetime.fromisoformat("0001-01-01T00:00:00Z").timestamp()
"""Go's zero time, which means that there is none."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339 as Go reads it; Python would take many other spellings."""


_REMEMBERED: Final = 4096
"""How many times and durations are kept: objects that came together share theirs."""


def age(time: str | None, now: Seconds) -> str:
    """Return how long ago a time was, as it stands in an object."""
    if not time:
        return UNKNOWN
    then = instant(time)
    if then is None:
        return INVALID
    return UNKNOWN if then == _ZERO else duration(Seconds(now - then))


@lru_cache(_REMEMBERED)
def instant(time: str) -> float | None:
    """Return a time as a number, or None for what is no time."""
    if not _TIME.fullmatch(time):
        return _ZERO if time == "null" else None
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None


@lru_cache(_REMEMBERED)
def duration(elapsed: Seconds) -> str:
    """Return a duration with two or three significant figures."""
    seconds = int(min(elapsed, _LONGEST_SECONDS))
    if seconds < _SKEW_SECONDS:
        return INVALID
    seconds = max(seconds, 0)
    _, unit, letter, part, small = _STEPS[bisect_right(_STARTS, seconds) - 1]
    rest = seconds % unit // part if part else 0
    return f"{seconds // unit}{letter}{rest}{small}" if rest else f"{seconds // unit}{letter}"
