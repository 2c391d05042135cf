"""Dirty keys: each once however often it was marked, one round at a time, and not before its time."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.controllers.dirty import Dirty
from jackfield.model.names import NEVER, Seconds
from jackfield.sim import loop
from jackfield.sim.clock import running

START = Seconds(1000.0)


def played(scene: Callable[[Dirty], Coroutine[None, None, None]]) -> None:
    """Play a scene on virtual time, which begins at 1000."""

    async def main() -> None:
        await scene(Dirty(running()))

    loop.run(main(), start=START)


async def taken(dirty: Dirty, count: int) -> list[tuple[object, float]]:
    """Take so many keys, finish each at once; return them with the time at which they came."""
    found: list[tuple[object, float]] = []
    for _ in range(count):
        key = await dirty.get()
        found.append((key, running().now() - START))
        dirty.done(key)
    return found


async def rests(dirty: Dirty, seconds: float = 10_000) -> bool:
    """Return whether nothing comes for so long."""
    try:
        async with asyncio.timeout(seconds):
            await dirty.get()
    except TimeoutError:
        return True
    return False


def test_keys_come_in_the_order_in_which_they_were_marked_each_once() -> None:
    async def scene(dirty: Dirty) -> None:
        for key in ("b", "a", "b", "c", "a"):
            dirty.mark(key)
        assert len(dirty) == 3
        assert await taken(dirty, 3) == [("b", 0), ("a", 0), ("c", 0)]
        assert len(dirty) == 0
        assert await rests(dirty)

    played(scene)


def test_no_more_keys_are_under_work_than_there_is_room_for() -> None:
    async def main() -> None:
        dirty = Dirty(running(), 2)
        for key in ("a", "b", "c", "d"):
            dirty.mark(key)
        assert [await dirty.get(), await dirty.get()] == ["a", "b"]
        assert await rests(dirty)
        waiting = asyncio.get_running_loop().create_task(taken(dirty, 2))
        await running().sleep(Seconds(5.0))
        dirty.done("a")
        assert await waiting == [("c", 10_005), ("d", 10_005)]

    loop.run(main(), start=START)


def test_a_key_under_work_is_not_given_out_again_until_that_is_done() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.mark("a")
        assert await dirty.get() == "a"
        dirty.mark("a")
        dirty.mark("a")
        dirty.mark("b")
        assert len(dirty) == 2
        assert await dirty.get() == "b"
        assert await rests(dirty)
        dirty.done("a")
        assert await taken(dirty, 1) == [("a", 10_000)]
        assert await rests(dirty)

    played(scene)


def test_a_key_that_was_not_marked_meanwhile_does_not_come_back() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.mark("a")
        await taken(dirty, 1)
        assert await rests(dirty)

    played(scene)


def test_who_waits_is_woken_by_a_mark() -> None:
    async def scene(dirty: Dirty) -> None:
        waiting = asyncio.ensure_future(taken(dirty, 1))
        await running().sleep(Seconds(5.0))
        dirty.mark("a")
        assert await waiting == [("a", 5)]

    played(scene)


def test_keys_come_at_their_time_and_then_in_the_order_in_which_they_were_set() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.later("c", Seconds(START + 20))
        dirty.later("b", Seconds(START + 10))
        dirty.later("a", Seconds(START + 10))
        dirty.later("d", START)
        assert len(dirty) == 0
        assert await taken(dirty, 4) == [("d", 0), ("b", 10), ("a", 10), ("c", 20)]

    played(scene)


@pytest.mark.parametrize(("first", "second"), [(10, 30), (30, 10)])
def test_the_earlier_of_two_times_counts_and_the_later_is_dropped(first: float, second: float) -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.later("a", Seconds(START + first))
        dirty.later("a", Seconds(START + second))
        assert await taken(dirty, 1) == [("a", 10)]
        assert await rests(dirty)

    played(scene)


def test_a_time_that_was_dropped_may_be_set_again() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.later("a", Seconds(START + 30))
        dirty.later("a", Seconds(START + 10))
        assert await taken(dirty, 1) == [("a", 10)]
        dirty.later("a", Seconds(START + 30))
        assert await taken(dirty, 1) == [("a", 30)]
        assert await rests(dirty)

    played(scene)


def test_never_does_not_come() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.later("a", NEVER)
        assert await rests(dirty)
        dirty.later("a", Seconds(START + 20_000))
        dirty.later("a", NEVER)
        assert await taken(dirty, 1) == [("a", 20_000)]

    played(scene)


def test_a_time_that_comes_while_its_key_is_under_work_is_not_lost() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.mark("a")
        dirty.later("a", Seconds(START + 10))
        assert await dirty.get() == "a"
        assert await rests(dirty, 50)
        dirty.done("a")
        assert await taken(dirty, 1) == [("a", 50)]

    played(scene)


def test_an_earlier_time_wakes_who_waits_for_a_later_one() -> None:
    async def scene(dirty: Dirty) -> None:
        dirty.later("a", Seconds(START + 100))
        waiting = asyncio.ensure_future(taken(dirty, 2))
        await running().sleep(Seconds(5.0))
        dirty.later("b", Seconds(START + 7))
        assert await waiting == [("b", 7), ("a", 100)]

    played(scene)


STEPS = st.lists(
    st.tuples(st.sampled_from(["mark", "later", "get", "done"]), st.integers(0, 2), st.integers(0, 5)),
    max_size=40,
)


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_no_mark_is_lost_and_no_key_is_under_work_twice(steps: list[tuple[str, int, int]]) -> None:
    async def scene(dirty: Dirty) -> None:
        owed: dict[int, None] = {}
        busy: dict[int, None] = {}
        for verb, key, seconds in steps:
            match verb:
                case "mark":
                    dirty.mark(key)
                    owed[key] = None
                case "later":
                    dirty.later(key, Seconds(running().now() + seconds))
                    owed[key] = None
                case "get" if any(one not in busy for one in owed):
                    found = await dirty.get()
                    assert isinstance(found, int)
                    assert found not in busy
                    busy[found] = None
                    owed.pop(found, None)
                case "done" if key in busy:
                    dirty.done(key)
                    del busy[key]
                case _:
                    pass
        for key in busy:
            dirty.done(key)
        while owed:
            found = await dirty.get()
            assert isinstance(found, int)
            owed.pop(found, None)
            dirty.done(found)

    played(scene)
