"""Tasks that live and die together, in order of birth.

Knows how tasks end. Must not know what they do. `asyncio.TaskGroup` waits for all of its tasks and cancels them in
the order of a set; a simulated process wants neither.
"""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Self


class Crew:
    """The tasks of one process: when one fails, `failure` raises what it raised; on leaving, all are cancelled."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._failed: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        self._failed = asyncio.get_running_loop().create_future()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._failed = None

    def start(self, work: Coroutine[object, object, None]) -> None:
        """Let a task begin that nobody need know."""
        _ = self.task(work)

    def task(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Let a task begin, and return it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    async def failure(self) -> None:
        """Wait until a task fails, and raise what it raised."""
        assert self._failed is not None
        await self._failed

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None and self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)
