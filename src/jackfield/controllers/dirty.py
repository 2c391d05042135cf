"""Dirty keys: what must be looked at, now or later, each once however often it was marked.

Knows order and time. Must not know what a key stands for.
"""

import asyncio
import heapq
from collections.abc import Hashable
from math import inf

from jackfield.model.names import LONG_AGO, NEVER, Seconds
from jackfield.ports import Clock


class Dirty:
    """A queue of keys in the order in which they were marked; a key under work waits until that is done."""

    def __init__(self, clock: Clock, busy_max: float = inf) -> None:
        """Begin with nothing; so many keys may be under work at a time."""
        self._clock = clock
        self._busy_max = busy_max
        self._ready: dict[Hashable, Seconds] = {}  # key -> when it was first marked
        self._busy: dict[Hashable, bool] = {}  # key under work -> marked meanwhile
        self._marked: dict[Hashable, Seconds] = {}  # key under work -> when it had been marked
        self._later: dict[Hashable, Seconds] = {}
        self._timers: list[tuple[Seconds, int, Hashable]] = []
        self._count = 0
        self._sleeper: asyncio.Future[None] | None = None  # whoever waits in `get`

    def __len__(self) -> int:
        return len(self._ready) + len(self._busy)

    def __contains__(self, key: Hashable) -> bool:
        """Whether the key is going to be looked at, or is being."""
        return key in self._ready or key in self._busy or key in self._later

    def mark(self, key: Hashable) -> None:
        """Have the key looked at as soon as may be."""
        if key in self._busy:
            self._busy[key] = True
        elif key not in self._ready:
            self._ready[key] = self._clock.now()
            self._wake()

    def later(self, key: Hashable, at: Seconds) -> None:
        """Have the key looked at then; an earlier time for the same key wins."""
        if at == NEVER or self._later.get(key, NEVER) <= at:
            return
        self._later[key] = at
        self._count += 1
        heapq.heappush(self._timers, (at, self._count, key))
        if self._timers[0][1] == self._count:  # whoever waits would else sleep too long
            self._wake()

    async def get(self) -> Hashable:
        """Return the next key, which is then under work until `done`. One at a time may wait for it."""
        while True:
            self._ripen()
            if self._ready and len(self._busy) < self._busy_max:
                key = next(iter(self._ready))
                self._marked[key] = self._ready.pop(key)
                self._busy[key] = False
                return key
            await self._sleep()

    def marked(self, key: Hashable) -> Seconds:
        """Return since when a key under work was waiting for it."""
        return self._marked[key]

    def done(self, key: Hashable) -> None:
        """End the work on a key; if it was marked meanwhile, it is looked at again."""
        del self._marked[key]
        if self._busy.pop(key):
            self.mark(key)
        elif self._ready:
            self._wake()  # there may have been no room for it

    def _ripen(self) -> None:
        now = self._clock.now() if self._timers else LONG_AGO
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heapq.heappop(self._timers)
            if self._later.get(key) == at:  # else an earlier time took its place
                del self._later[key]
                self.mark(key)

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    async def _sleep(self) -> None:
        """Wait until something is marked or the next key's time has come: what `asyncio.timeout` does, for less."""
        loop = asyncio.get_running_loop()
        self._sleeper = loop.create_future()
        timer = loop.call_later(self._next_in(), self._wake) if self._timers else None
        try:
            await self._sleeper
        finally:
            self._sleeper = None
            if timer is not None:
                timer.cancel()

    def _next_in(self) -> float:
        return max(0.0, self._timers[0][0] - self._clock.now())
