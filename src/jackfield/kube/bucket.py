"""A limit on calls: so many a second, and a burst more.

Knows the loop's time. Must not know what the calls are for.
"""

import asyncio

RATE = 200.0
"""Calls a second in the long run: ten times what the largest cluster we know of needs when quiet."""
BURST = 400.0
"""Calls that may be made at once, as when much changes at the same time."""


class Bucket:
    """A bucket of permissions that fills steadily; whoever finds it empty waits for his turn."""

    def __init__(self, rate: float = RATE, burst: float = BURST) -> None:
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = float("-inf")

    async def take(self) -> None:
        """Take a permission, or wait for one; first come, first served."""
        now = asyncio.get_running_loop().time()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - 1.0
        self._at = now
        if self._left < 0:
            await pause(-self._left / self._rate)


async def pause(seconds: float) -> None:
    """Wait in the loop's time: a connection lives in the real one, and in no simulator."""
    await asyncio.sleep(seconds)  # noqa: TID251 - see above
