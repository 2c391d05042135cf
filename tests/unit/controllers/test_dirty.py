"""Keys are looked at in order, once for each time they were marked, never two rounds of one at a time."""

from collections.abc import Callable, Coroutine, Hashable

import pytest

from jackfield.controllers.dirty import Dirty
from jackfield.model.names import NEVER, Seconds
from jackfield.sim import loop
from jackfield.sim.clock import VirtualClock, running


def play(scene: Callable[[Dirty, VirtualClock], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await scene(Dirty(running()), running())

    loop.run(main())


async def taken(dirty: Dirty, count: int) -> list[Hashable]:
    return [await dirty.get() for _ in range(count)]


def test_keys_come_in_the_order_in_which_they_were_marked_and_once() -> None:
    async def scene(dirty: Dirty, _: VirtualClock) -> None:
        for key in ("b", "a", "b", "c"):
            dirty.mark(key)
        assert len(dirty) == 3
        assert await taken(dirty, 3) == ["b", "a", "c"]
        assert len(dirty) == 3
        for key in "bac":
            dirty.done(key)
        assert len(dirty) == 0

    play(scene)


def test_a_key_under_work_is_looked_at_again_after_it_and_not_before() -> None:
    async def scene(dirty: Dirty, _: VirtualClock) -> None:
        dirty.mark("a")
        assert await dirty.get() == "a"
        dirty.mark("a")
        dirty.mark("b")
        assert await dirty.get() == "b"
        dirty.done("a")
        assert await dirty.get() == "a"
        dirty.done("a")
        dirty.done("b")
        assert len(dirty) == 0

    play(scene)


def test_a_later_look_comes_at_its_time() -> None:
    async def scene(dirty: Dirty, clock: VirtualClock) -> None:
        dirty.later("late", Seconds(loop.START + 20))
        dirty.later("soon", Seconds(loop.START + 10))
        assert await dirty.get() == "soon"
        assert clock.now() == loop.START + 10
        assert await dirty.get() == "late"
        assert clock.now() == loop.START + 20

    play(scene)


@pytest.mark.parametrize("times", [(10, 20), (20, 10)])
def test_of_two_times_for_a_key_the_earlier_wins_and_it_comes_once(times: tuple[int, int]) -> None:
    async def scene(dirty: Dirty, clock: VirtualClock) -> None:
        for at in times:
            dirty.later("a", Seconds(loop.START + at))
        dirty.later("end", Seconds(loop.START + 50))
        assert await dirty.get() == "a"
        assert clock.now() == loop.START + 10
        dirty.done("a")
        assert await dirty.get() == "end"

    play(scene)


def test_never_is_never() -> None:
    async def scene(dirty: Dirty, _: VirtualClock) -> None:
        dirty.later("a", NEVER)
        dirty.later("b", Seconds(loop.START + 1))
        assert await dirty.get() == "b"
        assert len(dirty) == 1

    play(scene)


def test_a_time_that_has_passed_is_now() -> None:
    async def scene(dirty: Dirty, clock: VirtualClock) -> None:
        dirty.later("a", Seconds(loop.START - 5))
        assert await dirty.get() == "a"
        assert clock.now() == loop.START

    play(scene)


def test_a_key_whose_time_comes_while_it_is_under_work_is_looked_at_again() -> None:
    async def scene(dirty: Dirty, clock: VirtualClock) -> None:
        dirty.mark("a")
        await dirty.get()
        dirty.later("a", Seconds(loop.START + 1))
        dirty.later("b", Seconds(loop.START + 2))
        assert await dirty.get() == "b"
        dirty.done("a")
        assert await dirty.get() == "a"
        assert clock.now() == loop.START + 2

    play(scene)
