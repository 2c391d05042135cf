"""The clock of a simulation.

Knows the virtual loop. Must not know real time.
"""

import asyncio

from jackfield.model.names import Seconds
from jackfield.sim.loop import VirtualLoop


class VirtualClock:
    """`ports.Clock` over a virtual loop: time passes only when everybody waits for it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> Seconds:
        """Return the virtual time, in seconds since 1970."""
        return Seconds(self._loop.time())

    async def sleep(self, duration: Seconds) -> None:
        """Wait; of those who wake at the same moment, who lay down first."""
        await asyncio.sleep(duration)  # noqa: TID251 - this is the clock that all others ask


def running() -> VirtualClock:
    """Return the clock of the virtual loop that runs us."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), "a virtual clock needs a virtual loop"
    return VirtualClock(loop)
