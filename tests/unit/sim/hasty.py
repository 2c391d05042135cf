"""A clock for what needs sockets, which cannot wait on a virtual loop."""

import asyncio
from typing import Final

from jackfield.model.names import Seconds

STEP: Final = 0.002
"""Whoever sleeps looks at the time so often, in the loop's own seconds."""
STEP_MAX: Final = 2 * STEP
"""What took longer was the machine's business: a process that is not let run has not waited."""


class Hasty:
    """`ports.Clock` with which time passes so many times faster, and stands still while the loop does."""

    def __init__(self, factor: float = 100.0) -> None:
        self._factor = factor
        self._now = 1_700_000_000.0
        self._looked = 0.0

    def now(self) -> Seconds:
        looked = asyncio.get_running_loop().time()
        self._now += min(looked - self._looked, STEP_MAX) * self._factor
        self._looked = looked
        return Seconds(self._now)

    async def sleep(self, duration: Seconds) -> None:
        until = self.now() + duration
        while (left := until - self.now()) > 0:  # noqa: ASYNC110 - it is time that is waited for
            await asyncio.sleep(min(left / self._factor, STEP))  # noqa: TID251 - a clock
