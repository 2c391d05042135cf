"""A process's own time, which passes evenly whoever sets the clock on the wall.

How long something has lasted decides whether a device may be pulled or a manager be asked again, and a clock that is
set forward makes everything look old. So a process keeps the time that it began with. Should the wall's clock really
have been wrong, it ends and begins anew: that loses nothing but time, and counts everything afresh. Knows two clocks.
Must not know what time is used for.
"""

from typing import Final, NoReturn

from jackfield.model.names import NEVER, Seconds
from jackfield.ports import Clock, Refused

APART_SECONDS_MAX: Final = Seconds(30.0)
"""How far the wall's clock may be from the process's own; signs of life are given twice as often as they must be."""
LASTING_SECONDS: Final = Seconds(60.0)
"""How long it must have been so: who sets a clock by mistake sets it back soon."""
LOOK_SECONDS: Final = Seconds(10.0)


class EvenClock:
    """What the wall's clock showed at the beginning, and what has passed since by one that nobody can set."""

    def __init__(self, wall: Clock, steady: Clock) -> None:
        self._steady = steady
        self._offset = wall.now() - steady.now()

    def now(self) -> Seconds:
        """Return the time."""
        return Seconds(self._steady.now() + self._offset)

    async def sleep(self, duration: Seconds) -> None:
        """Wait."""
        await self._steady.sleep(duration)


async def keep_up(wall: Clock, own: Clock) -> NoReturn:
    """Look at the wall's clock now and then, for ever. Raises Refused when it has been set for good."""
    since = NEVER
    while True:
        await own.sleep(LOOK_SECONDS)
        by = wall.now() - own.now()
        if abs(by) <= APART_SECONDS_MAX:
            since = NEVER
            continue
        since = min(since, own.now())
        if own.now() >= since + LASTING_SECONDS:
            raise Refused(
                f"the clock of this machine was set {'forward' if by > 0 else 'back'} by {abs(by):.0f} s while this "
                "process ran; it ends so that it is started anew and counts all times afresh. If this comes again, "
                "see what keeps the machine's time (timedatectl, chronyc tracking)"
            )
