"""Claims that are prepared at the same time, written down at the same time, while the kubelet is listened to.

Knows that a disk takes as long for a hundred claims as for one, and that nobody may wait for it on the loop. Must not
know what is written.

One thread writes, and nothing else is done in it. While one write is under way whoever asks waits for the next one, so
that all of them share it (a group commit): a write is two waits for the disk, however many claims are in it. Nobody is
answered before the write that has their claim is done.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeAlias

import msgspec

from jackfield.driver.entry import Entry
from jackfield.driver.store import PreparedStore
from jackfield.model.names import Uid

Names = tuple[tuple[str, ...], ...]
"""By which a runtime knows each device that a claim holds."""
Outcome: TypeAlias = Names | Exception

THREAD: Final = "checkpoint"


class Change(msgspec.Struct, frozen=True):
    """A claim to be put, or to be removed."""

    uid: Uid
    entry: Entry | None = None
    """What to put; None to remove it."""


class Done(msgspec.Struct, frozen=True):
    """What became of changes that were written together."""

    outcomes: tuple[Outcome, ...]
    """Of each, in order."""
    writes: int
    """How often the checkpoint was written: once, unless nothing had changed or something was refused."""
    seconds: float


class Writer:
    """A store for many at once. The calls are those of the store, and raise what it raises."""

    def __init__(self, store: PreparedStore) -> None:
        self.store: Final = store
        self.heard: Callable[[Done], None] = lambda _: None
        """Is told of every write, on the loop."""
        # A thread of its own, not one of the loop's: two would only wait for each other's lock.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=THREAD)
        self._waiting: list[tuple[Change, asyncio.Future[Outcome]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def put(self, entry: Entry) -> Names:
        """Write it down, and give each device away; returns the names by which a runtime knows each one held."""
        return await self._ask(Change(entry.uid, entry))

    async def remove(self, uid: Uid) -> None:
        """Take the devices back, and forget the claim."""
        await self._ask(Change(uid))

    async def close(self) -> None:
        """Wait for what is being written, and end the thread."""
        if self._writing is not None:
            await asyncio.wait((self._writing,))
        self._thread.shutdown(wait=False)

    async def _ask(self, change: Change) -> Names:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((change, future))
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write())
        outcome = await future
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _write(self) -> None:
        """Write what waits, all of it at a time, until nothing does."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            together = self._next()
            changes = [change for change, _ in together]
            done = await loop.run_in_executor(self._thread, _done, self.store, changes)
            for (_, future), outcome in zip(together, done.outcomes, strict=True):
                if not future.done():  # who asked may have gone
                    future.set_result(outcome)
            self.heard(done)

    def _next(self) -> list[tuple[Change, "asyncio.Future[Outcome]"]]:
        """Take what waits, up to what would change a claim for the second time."""
        uids: set[Uid] = set()
        for change, _ in self._waiting:
            if change.uid in uids:
                break
            uids.add(change.uid)
        together, self._waiting = self._waiting[: len(uids)], self._waiting[len(uids) :]
        return together


def _done(store: PreparedStore, changes: Sequence[Change]) -> Done:
    """Make the changes, in the thread. One that is refused must not spoil the others: then each for itself."""
    began, before = time.monotonic(), store.revision
    try:
        outcomes: tuple[Outcome, ...] = _together(store, changes)
    except Exception:  # noqa: BLE001 - raised again where it was asked for
        outcomes = tuple(_alone(store, one) for one in changes)
    return Done(outcomes, store.revision - before, time.monotonic() - began)


def _together(store: PreparedStore, changes: Sequence[Change]) -> tuple[Names, ...]:
    entries = [one.entry for one in changes if one.entry is not None]
    names = iter(store.change(entries, [one.uid for one in changes if one.entry is None]))
    return tuple(next(names) if one.entry is not None else () for one in changes)


def _alone(store: PreparedStore, change: Change) -> Outcome:
    try:
        (outcome,) = _together(store, (change,))
    except Exception as error:  # noqa: BLE001 - likewise
        return error
    return outcome
