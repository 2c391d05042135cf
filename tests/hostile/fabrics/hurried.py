"""A loop with real sockets on which nobody waits: when nothing comes in, the clock jumps to the next timer.

Knows asyncio's selector loop. Must not know what runs on it. Both ends of every connection live on the loop, so what
was sent has come before anybody can be tired of waiting; where a loaded machine delivers it later, a time-out strikes
that would not have, which everything here must bear anyway.
"""

import asyncio
import os
import selectors
import time
from collections.abc import Coroutine
from typing import Final, TypeVar

from jackfield.model.names import Seconds

T = TypeVar("T")

LOOKS: Final = 2
"""So often it is looked whether something has come in before time jumps; others may run in between."""
Events = list[tuple[selectors.SelectorKey, int]]


class _Jumping(selectors.DefaultSelector):
    """Notes how much time it did not wait."""

    skipped = 0.0

    def select(self, timeout: float | None = None) -> Events:
        if timeout is None:
            return super().select(timeout)
        for _ in range(LOOKS):
            events = super().select(0)
            if events or timeout <= 0:
                return events
            os.sched_yield()
        self.skipped += timeout
        return []


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop whose time runs ahead whenever there is nothing to do."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return time.monotonic() + self._jumping.skipped


class HurriedClock:
    """`ports.Clock` by that loop's time."""

    def now(self) -> Seconds:
        return Seconds(1_700_000_000.0 + asyncio.get_running_loop().time())

    async def sleep(self, duration: Seconds) -> None:
        await asyncio.sleep(duration)  # noqa: TID251 - a clock


def run(main: Coroutine[object, object, T]) -> T:
    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        return runner.run(main)
