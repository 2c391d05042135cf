"""Several questions to a manager, side by side.

Knows tasks. Must not know what is asked.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")


async def all_of(work: Sequence[Coroutine[object, object, T]]) -> tuple[T, ...]:
    """Return what each gives; the first failure ends the others.

    In a task of its own: before Python 3.13 a TaskGroup that fails leaves its task counted as cancelled, and then a
    time-out of Debian 12's Python (3.11.2) ends that task. Nobody would look at the manager any more, without a word.
    """
    return await asyncio.create_task(_grouped(work))


async def _grouped(work: Sequence[Coroutine[object, object, T]]) -> tuple[T, ...]:
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return tuple(one.result() for one in tasks)
