"""Claims that are prepared at the same time, written down at the same time.

Knows that a disk takes as long for a hundred claims as for one. Must not know what is written.

A pod's start waits for the disk twice per write. While one write is under way the loop takes nothing in; whoever has
asked by the time it is done is in the next one.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from jackfield.driver.entry import Entry
from jackfield.driver.store import PreparedStore
from jackfield.model.names import Uid

A = TypeVar("A")
B = TypeVar("B")


class Writer:
    """A store for many at once. The calls are those of the store, and raise what it raises."""

    def __init__(self, store: PreparedStore) -> None:
        def remove_all(uids: Sequence[Uid]) -> Sequence[None]:
            store.remove_all(uids)
            return [None] * len(uids)

        self._puts = _Queue(store.put_all)
        self._removals = _Queue(remove_all)

    async def put(self, entry: Entry) -> tuple[tuple[str, ...], ...]:
        """Write it down, and give each device away; returns the names by which a runtime knows each one held."""
        return await self._puts.ask(entry)

    async def remove(self, uid: Uid) -> None:
        """Take the devices back, and forget the claim."""
        await self._removals.ask(uid)


class _Queue(Generic[A, B]):
    """Askings that wait for the loop's next turn, and are then done in one go."""

    def __init__(self, do: Callable[[Sequence[A]], Sequence[B]]) -> None:
        self._do = do
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []

    async def ask(self, one: A) -> B:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._turn)
        future: asyncio.Future[B] = loop.create_future()
        self._waiting.append((one, future))
        return await future

    def _turn(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            answers = self._do([one for one, _ in waiting])
        except Exception:  # noqa: BLE001 - raised again where it was asked for
            # One that is refused must not spoil the others: each for itself, and each with its own answer.
            for one, future in waiting:
                self._alone(one, future)
            return
        for (_, future), answer in zip(waiting, answers, strict=True):
            if not future.done():  # who asked may have gone
                future.set_result(answer)

    def _alone(self, one: A, future: asyncio.Future[B]) -> None:
        try:
            (answer,) = self._do([one])
        except Exception as error:  # noqa: BLE001
            if not future.done():
                future.set_exception(error)
        else:
            if not future.done():
                future.set_result(answer)
