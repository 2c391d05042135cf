"""Asking a manager again: until there is an answer, until it can be read, until it has time.

Knows time, and which errors pass. Must not know any manager, or what is asked.
"""

from collections.abc import Callable, Coroutine
from typing import Final, TypeVar

import msgspec

from jackfield.model.names import Seconds
from jackfield.ports import Clock, Retry

T = TypeVar("T")

POLL_FIRST: Final = Seconds(0.05)
BACK_OFF_MAX: Final = Seconds(15.0)


class Asking(msgspec.Struct, frozen=True):
    """How often one manager is asked."""

    clock: Clock
    poll: Seconds
    """How often something is looked at that is to happen, and how soon who has trouble is asked again."""

    async def until(
        self, ask: Callable[[], Coroutine[object, object, T | None]], deadline: Seconds
    ) -> T | None:
        """Ask until there is an answer; None when time is up. A manager that cannot be read is asked again."""
        pause = POLL_FIRST
        while True:
            try:
                answer = await ask()
            except Retry:
                answer = None
            if answer is not None or self.clock.now() >= deadline:
                return answer
            await self.clock.sleep(pause)
            pause = min(self.poll, Seconds(pause * 2))

    async def insisted(self, ask: Callable[[], Coroutine[object, object, T]], until: Seconds) -> T:
        """Read what must be known before anything is sent, again and again while there is time. Raises Retry."""
        while True:
            try:
                return await ask()
            except Retry as error:
                if self.clock.now() + self.poll > until:
                    raise
                await self.clock.sleep(max(self.poll, min(error.after, BACK_OFF_MAX)))

    async def paused(self, reason: str, pause: Seconds, until: Seconds) -> Seconds:
        """Wait while nothing can be done; return how long to wait next. Raises Retry when there is no time for it."""
        if self.clock.now() + pause > until:
            raise Retry(f"nothing was done: {reason}", pause)
        await self.clock.sleep(pause)
        return min(BACK_OFF_MAX, Seconds(pause * 2))
