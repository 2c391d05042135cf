"""Virtual time passes only when everybody waits, and the order of everything is the input's alone."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing, suppress
from datetime import UTC, datetime

import pytest

from jackfield.cli.clock import WallClock
from jackfield.model.names import NEVER, Seconds
from jackfield.sim import clock, loop

DAY = Seconds(86_400.0)


def test_a_day_passes_at_once_and_exactly() -> None:
    async def main() -> tuple[Seconds, Seconds]:
        now = clock.running()
        before = now.now()
        await now.sleep(DAY)
        return before, now.now()

    assert loop.run(main(), start=Seconds(1_000.0)) == (1_000.0, 87_400.0)


def test_time_begins_in_2026() -> None:
    assert datetime.fromtimestamp(loop.START, UTC).isoformat() == "2026-01-01T00:00:00+00:00"


def test_sleepers_wake_by_time_and_then_in_the_order_they_lay_down() -> None:
    woken: list[str] = []

    async def sleeper(name: str, duration: float) -> None:
        await clock.running().sleep(Seconds(duration))
        woken.append(name)

    async def main() -> None:
        naps = {"late": 9.0, "b": 5.0, "a": 5.0, "at once": 0.0, "c": 5.0, "early": 0.5}
        await asyncio.gather(*(sleeper(name, duration) for name, duration in naps.items()))

    loop.run(main())
    assert woken == ["at once", "early", "b", "a", "c", "late"]


def test_time_outs_are_virtual() -> None:
    async def main() -> Seconds:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(300):
                await clock.running().sleep(DAY)
        return clock.running().now()

    assert loop.run(main()) == loop.START + 300


@pytest.mark.parametrize("wait", [lambda: asyncio.Event().wait(), lambda: clock.running().sleep(NEVER)])
def test_a_run_in_which_nothing_will_ever_happen_ends_and_says_where_tasks_stand(
    wait: Callable[[], Awaitable[object]],
) -> None:
    async def forgotten() -> None:
        await wait()

    async def main() -> None:
        await asyncio.get_running_loop().create_task(forgotten(), name="the forgotten one")

    with pytest.raises(
        loop.StalledError, match=r"(?s)nothing will ever happen.*the forgotten one at .*test_loop"
    ):
        loop.run(main())


def test_a_cancelled_timer_keeps_nobody_alive() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_later(5, print, "never").cancel()
        await asyncio.Event().wait()

    with closing(loop.VirtualLoop()) as virtual:
        with pytest.raises(loop.StalledError):
            virtual.run_until_complete(main())
        assert virtual.time() == loop.START


def test_a_run_that_spins_without_time_passing_ends() -> None:
    async def main() -> None:
        while True:
            await clock.running().sleep(Seconds(0.0))

    with pytest.raises(loop.SpinningError, match="100000 turns"):
        loop.run(main())


def test_a_run_in_which_time_passes_may_have_any_number_of_turns() -> None:
    async def main() -> Seconds:
        for _ in range(loop.TURNS_MAX // 2):
            await clock.running().sleep(Seconds(1.0))
        return clock.running().now()

    assert loop.run(main()) == loop.START + loop.TURNS_MAX // 2


def test_a_timer_that_is_due_does_not_wait_for_everybody_else_to_rest() -> None:
    async def main() -> int:
        due = asyncio.Event()
        asyncio.get_running_loop().call_later(0, due.set)
        turns = 0
        while not due.is_set():
            turns += 1
            await clock.running().sleep(Seconds(0.0))
        return turns

    assert loop.run(main()) == 1


def test_another_thread_is_refused() -> None:
    refused: list[RuntimeError] = []

    async def main() -> None:
        virtual = asyncio.get_running_loop()

        def intrude() -> None:
            try:
                virtual.call_soon_threadsafe(print, "never")
            except RuntimeError as error:
                refused.append(error)

        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()

    loop.run(main())
    assert [str(error) for error in refused] == ["no threads under virtual time"]


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().run_in_executor(None, print)

    with pytest.raises(RuntimeError, match="no threads"):
        loop.run(main())


def test_an_error_that_nobody_awaits_ends_the_run() -> None:
    async def faulty() -> None:
        raise ValueError("a finding")

    async def main() -> None:
        asyncio.get_running_loop().create_task(faulty()).set_name("nobody waits for it")
        await clock.running().sleep(DAY)

    with pytest.raises(ValueError, match="a finding"):
        loop.run(main())


def test_an_error_in_a_callback_ends_the_run_at_that_moment() -> None:
    def fault() -> None:
        raise ValueError("a finding")

    async def main() -> None:
        asyncio.get_running_loop().call_later(7, fault)
        await clock.running().sleep(DAY)

    with closing(loop.VirtualLoop()) as virtual:
        with pytest.raises(ValueError, match="a finding"):
            virtual.run_until_complete(main())
        assert virtual.time() == loop.START + 7


def test_a_task_group_cancels_in_the_order_of_birth() -> None:
    ended: list[int] = []

    async def member(number: int) -> None:
        try:
            await clock.running().sleep(DAY)
        finally:
            ended.append(number)

    async def failing() -> None:
        await clock.running().sleep(Seconds(1.0))
        raise ValueError

    async def main() -> None:
        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(40):
                    group.create_task(member(number)).add_done_callback(lambda _: None)
                group.create_task(failing()).add_done_callback(lambda _: None)

    loop.run(main())
    assert ended == list(range(40))


def test_tasks_are_named_by_their_birth_in_this_loop() -> None:
    async def nothing() -> None:
        return None

    async def main() -> list[str]:
        tasks = [asyncio.get_running_loop().create_task(nothing()) for _ in range(2)]
        await asyncio.gather(*tasks)
        return [task.get_name() for task in tasks]

    assert loop.run(main()) == loop.run(main()) == ["Task-2", "Task-3"]


def test_what_is_left_over_is_cancelled_and_may_tidy_up_oldest_first() -> None:
    tidied: list[str] = []

    async def left(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await clock.running().sleep(Seconds(1.0))
            tidied.append(name)

    async def ticks() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            tidied.append("generator")

    async def main() -> AsyncIterator[int]:
        for name in ("first", "second"):
            asyncio.get_running_loop().create_task(left(name)).set_name(name)
        await clock.running().sleep(Seconds(0.0))
        generator = ticks()
        await anext(generator)
        return generator

    generator = loop.run(main())
    assert tidied == ["first", "second", "generator"]
    del generator


def test_the_hooks_see_every_turn_and_every_moment_and_can_end_the_run() -> None:
    turns: list[float] = []
    idle: list[float] = []

    async def main() -> None:
        for _ in range(3):
            await clock.running().sleep(Seconds(10.0))
            await clock.running().sleep(Seconds(0.0))

    with closing(loop.VirtualLoop(Seconds(0.0))) as virtual:
        virtual.on_turn = lambda: turns.append(virtual.time())
        virtual.on_idle = lambda: idle.append(virtual.time())
        virtual.run_until_complete(main())
    assert idle == [0.0, 10.0, 20.0]
    assert [turns.count(at) for at in (0.0, 10.0, 20.0)] == [1, 3, 3]  # the timer, the sleeper, the yield

    def object_to_it() -> None:
        if virtual.time() >= 10:
            raise AssertionError("an invariant")

    with closing(loop.VirtualLoop(Seconds(0.0))) as virtual:
        virtual.on_turn = object_to_it
        with pytest.raises(AssertionError, match="an invariant"):
            virtual.run_until_complete(main())
        assert virtual.time() == 10


def test_time_outs_that_are_not_needed_do_not_pile_up() -> None:
    async def main() -> int:
        for _ in range(5 * loop.CANCELLED_MAX):
            async with asyncio.timeout(DAY):
                await clock.running().sleep(Seconds(0.001))
        virtual = asyncio.get_running_loop()
        assert isinstance(virtual, loop.VirtualLoop)
        return virtual.timers

    assert loop.run(main()) <= loop.CANCELLED_MAX + 1


def test_the_order_of_timers_outlives_a_sweep() -> None:
    async def main() -> list[int]:
        virtual = asyncio.get_running_loop()
        fired: list[int] = []
        delays = [(number * 7_919) % 10_007 + 1 for number in range(5 * loop.CANCELLED_MAX)]
        timers = [virtual.call_later(delay, fired.append, delay) for delay in delays]
        for timer in timers[: 4 * loop.CANCELLED_MAX]:
            timer.cancel()
        await clock.running().sleep(DAY)
        assert sorted(fired) == sorted(delays[4 * loop.CANCELLED_MAX :])
        return fired

    fired = loop.run(main())
    assert fired == sorted(fired)


STORY = """
import asyncio
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance

async def member(chance, story, name):
    try:
        while True:
            await clock.running().sleep(chance.branch(name).generator.random())
            story.append((clock.running().now(), name))
            if len(story) > 500:
                raise ValueError(name)
    finally:
        story.append(("end", name))

async def main():
    story = []
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(member(Chance(7), story, f"m{number}"))
    except ExceptionGroup:
        pass
    return story

print(loop.run(main()))
"""


def test_a_story_is_the_same_under_another_hash_seed() -> None:
    def told(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", STORY]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode()

    assert told("1") == told("2")


def test_the_wall_clock_tells_real_time() -> None:
    async def main() -> float:
        before = WallClock().now()
        await WallClock().sleep(Seconds(0.01))
        return WallClock().now() - before

    assert 0.005 < asyncio.run(main()) < 60
    assert WallClock().now() > loop.START
