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
        return self._loop.now

    async def sleep(self, duration: Seconds) -> None:
        """Wait; of those who wake at the same moment, who lay down first."""
        if duration <= 0.0:
            await asyncio.sleep(0.0)  # noqa: TID251 - this is the clock that all others ask
            return
        loop = self._loop
        future = loop.create_future()
        timer = loop.call_at(loop.now + duration, _wake, future)
        try:
            await future
        except asyncio.CancelledError:
            timer.cancel()  # what has rung need not be
            raise


def _wake(sleeper: "asyncio.Future[None]") -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def running() -> VirtualClock:
    """Return the clock of the virtual loop that runs us."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop), "a virtual clock needs a virtual loop"
    return VirtualClock(loop)
