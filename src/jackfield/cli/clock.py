"""The clock of the wall, for processes that live in the real world.

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
