"""A process's own time: nothing looks older because somebody set a clock, and nobody keeps a wrong one for long."""

import asyncio
from contextlib import closing

import pytest

from jackfield.controllers.clocks import EvenClock, keep_up
from jackfield.model.names import NEVER, Seconds
from jackfield.ports import Refused
from jackfield.sim.clock import running
from jackfield.sim.loop import VirtualLoop
from jackfield.sim.program import ShiftedClock


async def ended(by: float, lasting: float) -> tuple[float, str]:
    """When and why a process ends whose machine's clock is wrong for so long from the second 100 on; 1000 if never."""
    wall = ShiftedClock(running())
    own, began = EvenClock(wall, running()), running().now()

    async def set_it() -> None:
        await running().sleep(Seconds(100.0))
        wall.ahead = Seconds(by)
        await running().sleep(Seconds(min(lasting, 10_000.0)))
        wall.ahead = Seconds(0.0)

    setting = asyncio.get_running_loop().create_task(set_it())
    try:
        async with asyncio.timeout(1000.0):
            await keep_up(wall, own)
    except Refused as refused:
        assert own.now() == running().now()
        return running().now() - began, str(refused)
    except TimeoutError:
        return 1000.0, ""
    finally:
        setting.cancel()


@pytest.mark.parametrize(
    ("by", "lasting", "at", "words"),
    [
        (0.0, NEVER, 1000.0, ""),
        (30.0, NEVER, 1000.0, ""),
        (-30.0, NEVER, 1000.0, ""),
        (600.0, 50.0, 1000.0, ""),
        (31.0, NEVER, 160.0, "forward by 31 s"),
        (600.0, NEVER, 160.0, "forward by 600 s"),
        (-600.0, NEVER, 160.0, "back by 600 s"),
    ],
)
def test_a_process_ends_when_its_clock_was_set_for_good(
    by: float, lasting: float, at: float, words: str
) -> None:
    with closing(VirtualLoop()) as loop:
        when, why = loop.run_until_complete(ended(by, lasting))
    assert when == pytest.approx(at, abs=11.0)
    assert words in why


def test_time_passes_evenly_whoever_sets_the_clock() -> None:
    async def scenario() -> None:
        wall = ShiftedClock(running())
        wall.ahead = Seconds(7.0)
        own = EvenClock(wall, running())
        began = own.now()
        assert began == wall.now()
        wall.ahead = Seconds(600.0)
        assert own.now() == began
        await own.sleep(Seconds(5.0))
        assert own.now() == pytest.approx(began + 5.0)

    with closing(VirtualLoop()) as loop:
        loop.run_until_complete(scenario())
