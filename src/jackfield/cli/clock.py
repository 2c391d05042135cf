"""The clocks of processes that live in the real world: one of the wall, and one that never jumps.

The only place that reads the time of day. Must not know what the time is used for.
"""

import asyncio
import time

from jackfield.model.names import Seconds


class WallClock:
    """`ports.Clock` over the time of day."""

    def now(self) -> Seconds:
        """Return the seconds since 1970."""
        return Seconds(time.time())  # noqa: TID251 - this is the clock that all others ask

    async def sleep(self, duration: Seconds) -> None:
        """Wait."""
        await asyncio.sleep(duration)  # noqa: TID251 - likewise


class SteadyClock(WallClock):
    """The time of day as it was at the start, and from then on what has passed, whoever sets the wall's clock."""

    def __init__(self) -> None:
        self._offset = super().now() - _passed()

    def now(self) -> Seconds:
        """Return the seconds since 1970, as far as was known at the start."""
        return Seconds(self._offset + _passed())


def _passed() -> float:
    """The machine's sleep counts: others were awake."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
