"""Claims written down together."""

import asyncio
from collections.abc import Awaitable, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest

from jackfield.driver.entry import Entry, Held
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Writer
from jackfield.model.names import Key, Uid
from jackfield.ports import Refused
from unit.driver.disk import Quick

T = TypeVar("T")
CLAIMS = [
    Entry(Uid(f"uid-{number}"), Key("team", f"claim-{number}"), (Held(("gpu",), "node-1", f"gpu-{number}"),))
    for number in range(100)
]


@pytest.fixture
def calls() -> Quick:
    return Quick()


@pytest.fixture
def store(tmp_path: Path, calls: Quick) -> PreparedStore:
    store = PreparedStore("gpu.example.com", tmp_path, tmp_path / "cdi", calls=calls)
    store.open()
    calls.steps.clear()
    return store


async def all_of(*askings: Awaitable[T]) -> list[T | BaseException]:
    return await asyncio.gather(*askings, return_exceptions=True)


def run(play: Coroutine[object, object, None]) -> None:
    """Run it, and give up only where it can never end."""
    asyncio.run(asyncio.wait_for(play, 300))


def test_claims_that_are_put_at_once_are_one_write(store: PreparedStore, calls: Quick) -> None:
    writer = Writer(store)

    async def play() -> None:
        ids = await all_of(*(writer.put(one) for one in CLAIMS))
        assert ids == [store.ids(one) for one in CLAIMS]
        assert calls.steps.count("sync") == 2
        assert store.entries() == tuple(CLAIMS)
        await all_of(*(writer.remove(one.uid) for one in CLAIMS))
        assert calls.steps.count("sync") == 5
        assert store.entries() == ()
        assert await writer.put(CLAIMS[0]) == store.ids(CLAIMS[0])

    run(play())


def test_one_that_is_refused_spoils_no_other(store: PreparedStore) -> None:
    writer = Writer(store)
    bad = Entry(Uid("../x"), Key("team", "a"))

    async def play() -> None:
        first, second, third = await all_of(writer.put(CLAIMS[0]), writer.put(bad), writer.put(CLAIMS[1]))
        assert (first, third) == (store.ids(CLAIMS[0]), store.ids(CLAIMS[1]))
        assert isinstance(second, Refused)
        gone, refused = await all_of(writer.remove(CLAIMS[0].uid), writer.remove(bad.uid))
        assert gone is None
        assert isinstance(refused, Refused)

    run(play())
    assert store.entries() == (CLAIMS[1],)


@pytest.mark.parametrize("second", [CLAIMS[1], Entry(Uid("../x"), Key("team", "a"))])
def test_who_asks_and_goes_keeps_no_other_waiting(second: Entry, store: PreparedStore) -> None:
    writer = Writer(store)

    async def play() -> None:
        gone = [asyncio.create_task(writer.put(one)) for one in (CLAIMS[0], second)]
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, no time
        for one in gone:
            one.cancel()
        assert await writer.put(CLAIMS[2]) == store.ids(CLAIMS[2])
        assert all(isinstance(one, asyncio.CancelledError) for one in await all_of(*gone))

    run(play())
