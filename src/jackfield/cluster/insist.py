"""Calls that are worth repeating when the API is busy, away, or somebody was faster.

Knows for how long to insist. Must not know what is asked.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from jackfield.model.names import Seconds
from jackfield.ports import Clock, Retry

T = TypeVar("T")

ATTEMPTS_MAX = 10
PAUSE_MAX = Seconds(10.0)


async def insist(clock: Clock, call: Callable[[], Awaitable[T]]) -> T:
    """Call until there is an answer other than Retry; after about a minute that is the answer."""
    for attempt in range(ATTEMPTS_MAX - 1):
        try:
            return await call()
        except Retry as retry:
            await clock.sleep(min(Seconds(max(retry.after, 0.1 * 2.0**attempt)), PAUSE_MAX))
    return await call()
