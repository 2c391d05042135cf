"""Whose turn it is: one piece of work at a time for a key, so many in all; and what is asked twice is done once.

Knows work under way, which outlives whoever asked for it. Must not know what the work is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

R = TypeVar("R")


class Turn(Generic[R]):
    """A piece of work: waiting, under way, or done."""

    def __init__(self, question: Hashable) -> None:
        self.question = question
        self.begun = False
        self.task: asyncio.Task[R]


class Turns(Generic[R]):
    """All work that is not done. For each key there is at most one piece under way and one waiting."""

    def __init__(self, side_by_side_max: int) -> None:
        self._room = asyncio.Semaphore(side_by_side_max)
        self._lines: dict[str, list[Turn[R]]] = {}

    def __len__(self) -> int:
        """Return for how many keys there is work."""
        return len(self._lines)

    def take(self, key: str, question: Hashable, work: Callable[[], Awaitable[R]]) -> Turn[R] | None:
        """Return the turn in which the question is answered, or None where one more would be too many."""
        line = self._lines.setdefault(key, [])
        if line and line[-1].question == question:
            return line[-1]
        if len(line) > 1:
            return None
        turn = Turn[R](question)
        turn.task = asyncio.create_task(self._run(turn, work, line[-1].task if line else None))
        line.append(turn)
        turn.task.add_done_callback(lambda _: self._leave(key, turn))
        return turn

    async def close(self, grace_seconds: float) -> None:
        """Wait this long for all work, then cancel what is left."""
        tasks = [turn.task for line in self._lines.values() for turn in line]
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=grace_seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _run(
        self, turn: Turn[R], work: Callable[[], Awaitable[R]], before: asyncio.Task[R] | None
    ) -> R:
        if before is not None:
            await asyncio.wait([before])
        async with self._room:
            turn.begun = True
            return await work()

    def _leave(self, key: str, turn: Turn[R]) -> None:
        line = self._lines[key]
        line.remove(turn)
        if not line:
            del self._lines[key]
