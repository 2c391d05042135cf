"""Calls to managers that take minutes and know no order ids: each is sent once, and asked about until it has ended.

Knows orders under way in this process. Must not know what is done about them. What a process that ended had under way
its successor learns from the inventory alone, which is why nobody orders again before all is quiet.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Final

from jackfield.model.fabric import Done, Order, Progress, Working
from jackfield.model.names import OrderID, Seconds
from jackfield.ports import Clock

HOLD: Final = Seconds(0.9)
"""So long a question waits for its answer; longer work is asked about again."""
KEPT_MAX: Final = 4096
"""So many ends that somebody may still ask about."""

Work = Callable[[], Coroutine[object, object, Progress]]
Still = Callable[[Done], Awaitable[bool]]


class Errands:
    """What is under way at one manager."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[tuple[str, OrderID], asyncio.Task[Progress]] = {}

    async def ask(self, verb: str, order: Order, work: Work, still: Still) -> Progress:
        """Begin the work, or return how far it is. A failure is told once; the next question begins anew.

        So does one about a device that came and is not there any more, which `still` says. Raises what the work raises.
        """
        key = (verb, order.id)
        known = self._tasks.get(key)
        if known is not None and await _past(known, still) and self._tasks.get(key) is known:
            del self._tasks[key]
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(work())
            self._tidy()
        if not task.done():
            await self._held(task)
        if not task.done():
            return Working()
        if task.cancelled() or task.exception() is not None or not isinstance(task.result(), Done):
            self._tasks.pop(key, None)
        return Working() if task.cancelled() else task.result()

    async def _held(self, task: asyncio.Task[Progress]) -> None:
        """Wait a little; whoever is cancelled here leaves the work alone."""
        pause = asyncio.get_running_loop().create_task(self._clock.sleep(HOLD))
        try:
            await asyncio.wait((task, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()

    def _tidy(self) -> None:
        ended = [key for key, task in self._tasks.items() if task.done()]
        for key in ended[: max(0, len(self._tasks) - KEPT_MAX)]:
            if not self._tasks[key].cancelled():
                self._tasks[key].exception()  # nobody asked; that is no news to the log
            del self._tasks[key]

    async def close(self) -> None:
        """Drop everything: what the manager was told goes on there."""
        tasks, self._tasks = tuple(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _past(task: asyncio.Task[Progress], still: Still) -> bool:
    """Return whether the work is long over: it brought a device that is not there any more."""
    if not task.done() or task.cancelled() or task.exception() is not None:
        return False
    end = task.result()
    return isinstance(end, Done) and not await still(end)
