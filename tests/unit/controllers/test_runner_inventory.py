"""What a manager shows is believed only as far as it cannot be older than what we know."""

import asyncio

from jackfield.controllers.runner import Runner
from jackfield.controllers.store import Store
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.ports import World
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard, play


class Slow:
    """A manager that takes five seconds to show itself."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.asked = 0

    async def inventory(self) -> Inventory:
        self.asked += 1
        shown = self._bench.manager.inventory()
        await self._bench.wait(5.0)
        return shown

    async def attach(self, order: Order) -> Progress:
        raise AssertionError(order)

    async def detach(self, order: Order) -> Progress:
        raise AssertionError(order)


def test_a_manager_never_heard_of_shows_nothing_current() -> None:
    assert not Store(b.policy()).current(b.FABRIC)


def test_what_was_asked_for_before_the_doubt_does_not_end_it() -> None:
    async def scene(bench: Bench) -> None:
        manager = Slow(bench)
        runner = Runner(World(bench.client, bench.clock, {b.FABRIC: manager}), bench.store, (), Heard())
        task = asyncio.get_running_loop().create_task(runner.run({}))
        await bench.wait(6.0)
        assert bench.store.current(b.FABRIC)
        runner.hands.moved(b.FABRIC)
        assert not bench.store.current(b.FABRIC)
        await bench.wait(1.0)
        assert manager.asked == 2, "a doubt is a reason to ask"
        runner.hands.moved(b.FABRIC)
        await bench.wait(4.5)
        assert not bench.store.current(b.FABRIC), "the second answer was made before the second doubt"
        await bench.wait(5.0)
        assert manager.asked == 3
        assert bench.store.current(b.FABRIC)
        await bench.wait(5.0)
        assert manager.asked == 3, "without a doubt it is asked as seldom as the policy says"
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    play(scene)


def test_whoever_comes_to_lead_asks_the_managers_anew() -> None:
    async def scene(bench: Bench) -> None:
        manager = Slow(bench)
        runner = Runner(World(bench.client, bench.clock, {b.FABRIC: manager}), bench.store, (), Heard())
        task = asyncio.get_running_loop().create_task(runner.run({}))
        await bench.wait(6.0)
        runner.look_again()
        assert not bench.store.current(b.FABRIC)
        await bench.wait(6.0)
        assert bench.store.current(b.FABRIC)
        assert manager.asked == 2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    play(scene)
