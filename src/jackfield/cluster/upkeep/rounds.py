"""The loop of a small controller: hear of changes, look at the keys they touch, one at a time.

Knows watches, retries and order. Must not know what is looked at. Nothing that matters is remembered here: whoever
starts again hears of everything again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from jackfield.cluster.crew import Crew
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.ports import Change, Clock, Cluster, Conflict, Gone, Refused, Retry, Synced

K = TypeVar("K", bound=Hashable)
AGAIN_SECONDS = Seconds(1.0)
"""How soon after a conflict the same is looked at again, should no event come."""


class Rounds(Generic[K]):
    """The keys that have to be looked at; the same key twice is one round."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._dirty: dict[K, None] = {}
        self._unsynced: dict[type[Object], None] = {}
        self._waiting: asyncio.Future[None] | None = None

    @property
    def quiet(self) -> bool:
        """Whether everything has been heard of and there is nothing left to look at."""
        return not self._dirty and not self._unsynced

    def mark(self, *keys: K) -> None:
        """Have these keys looked at."""
        for key in keys:
            self._dirty[key] = None
        self._wake()

    async def run(
        self,
        kinds: tuple[type[Object], ...],
        take: Callable[[Change], None],
        look: Callable[[K], Awaitable[None]],
    ) -> None:
        """Hear of these kinds and look at what gets marked, from the time all of them are known; never ends."""
        self._dirty.clear()
        self._unsynced = dict.fromkeys(kinds)
        async with Crew() as crew:
            for kind in kinds:
                crew.start(self._follow(kind, take))
            crew.start(self._look(look, crew))
            await crew.failure()

    async def _follow(self, kind: type[Object], take: Callable[[Change], None]) -> None:
        async for change in self._cluster.watch(kind):
            take(change)
            if isinstance(change, Synced):
                self._unsynced.pop(kind, None)
                self._wake()

    async def _look(self, look: Callable[[K], Awaitable[None]], crew: Crew) -> None:
        while True:
            while not self._dirty or self._unsynced:
                self._waiting = asyncio.get_running_loop().create_future()
                await self._waiting
            key = next(iter(self._dirty))
            del self._dirty[key]
            try:
                await look(key)
            except (Conflict, Gone):
                # Somebody was faster, and the event that says so is on its way; or nobody was, and there is no event.
                crew.start(self._mark_later(key, AGAIN_SECONDS))
            except Refused:
                # The same answer would come again; the next change of the object is the next chance.
                continue
            except Retry as retry:
                crew.start(self._mark_later(key, retry.after))

    async def _mark_later(self, key: K, after: Seconds) -> None:
        await self._clock.sleep(after)
        self.mark(key)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
