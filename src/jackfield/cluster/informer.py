"""Watches, as the programs of a cluster hear them: in order, without a gap, and perhaps late.

Knows that a cache is fed by events and may lag, and what has gone unheard. Must not know what is cached.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import msgspec

from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds
from jackfield.ports import Change, Changed, Clock, Cluster, Deleted, Refused, Retry, Synced

T = TypeVar("T", bound=Object)

AGAIN = Seconds(1.0)
"""When a server that shows nothing yet is asked again."""

Lag = Callable[[], Seconds]
"""How late the next event is heard."""


def no_lag() -> Seconds:
    """Hear everything at once."""
    return Seconds(0.0)


def unmoved() -> None:
    """Do nothing."""


class Ear(msgspec.Struct, Generic[T], frozen=True):
    """Who listens to a kind."""

    put: Callable[[T], None]
    """The object is now like this."""
    drop: Callable[[T], None]
    """It is gone; this is how it was last."""
    synced: Callable[[], None] = unmoved
    """All that exist have been told, and none that do not."""


class Informer:
    """One program's ears."""

    def __init__(self, cluster: Cluster, clock: Clock, lag: Lag = no_lag) -> None:
        self._cluster = cluster
        self._clock = clock
        self._lag = lag

    async def follow(self, kind: type[T], ear: Ear[T]) -> None:
        """Hand on every change, in order, each as late as the lag says; never ends."""
        heard = _Heard(kind, ear)
        if self._lag is no_lag:
            async for change in self._changes(kind):
                heard.take(change)
            return
        # Two hands: while one event is on its way, the next may set out; else the lags would add up.
        under_way: asyncio.Queue[tuple[Seconds, Change]] = asyncio.Queue()
        reader = asyncio.get_running_loop().create_task(self._read(kind, under_way))
        try:
            while True:
                due, change = await under_way.get()
                if due > self._clock.now():
                    await self._clock.sleep(Seconds(due - self._clock.now()))
                heard.take(change)
        finally:
            reader.cancel()

    async def _changes(self, kind: type[Object]) -> AsyncIterator[Change]:
        """Watch; a server that does not show the kind yet is asked again."""
        while True:
            try:
                async for change in self._cluster.watch(kind):
                    yield change
            except (Refused, Retry):
                await self._clock.sleep(AGAIN)
            else:
                return

    async def _read(self, kind: type[Object], under_way: asyncio.Queue[tuple[Seconds, Change]]) -> None:
        async for change in self._changes(kind):
            under_way.put_nowait((Seconds(self._clock.now() + self._lag()), change))


class _Heard(Generic[T]):
    """The objects of one kind that were told, so that those can be missed that a new list leaves out."""

    def __init__(self, kind: type[T], ear: Ear[T]) -> None:
        self._kind = kind
        self._ear = ear
        self._known: dict[Key, T] = {}

    def take(self, change: Change) -> None:
        match change:
            case Changed(new):
                assert isinstance(new, self._kind)
                self._known[new.key] = new
                self._ear.put(new)
            case Deleted(gone):
                assert isinstance(gone, self._kind)
                self._known.pop(gone.key, None)
                self._ear.drop(gone)
            case Synced(_, keys):
                for missed in [one for key, one in self._known.items() if key not in keys]:
                    del self._known[missed.key]
                    self._ear.drop(missed)
                self._ear.synced()
