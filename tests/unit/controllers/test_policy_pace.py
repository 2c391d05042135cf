"""What an operator chooses of the runner's own ways makes a difference: how often it looks, and whether it acts."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from jackfield.controllers.runner import Runner
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy
from jackfield.ports import World
from jackfield.sim import loop
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard
from unit.controllers.scene import Decision, Host, Scene, running_for

WATCHED = 100.0
"""For so many seconds it is looked at."""
Watched = Callable[[Policy], Coroutine[None, None, object]]


class Asked:
    """A manager that has nothing, and counts how often it is asked what it has."""

    def __init__(self) -> None:
        self.times = 0

    async def inventory(self) -> Inventory:
        self.times += 1
        return b.inventory()

    async def attach(self, order: Order) -> Progress:
        raise AssertionError(order)

    async def detach(self, order: Order) -> Progress:
        raise AssertionError(order)


async def asks(chosen: Policy) -> int:
    """How often a manager is asked what it has."""
    bench, manager = Bench(policy=chosen), Asked()
    runner = Runner(World(bench.client, bench.clock, {b.FABRIC: manager}), bench.store, (), Heard())
    task = asyncio.get_running_loop().create_task(runner.run({}))
    await bench.wait(WATCHED)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return manager.times


async def looks(chosen: Policy) -> list[float]:
    """When everything is looked at again, though nothing was heard of it."""
    decision = Decision(rounds=0)
    stage = Scene(decision, Host(), chosen)
    await stage.bench.put(b.node(annotations={"keys": "a"}))
    await running_for(stage, WATCHED)
    return [at for _, at in decision.asked]


async def acts(chosen: Policy) -> int:
    """How often something is done that was decided."""
    host = Host()
    await running_for(Scene(Decision(), host, chosen), 1, "a")
    return len(host.begun)


PACE: dict[str, tuple[Policy, Watched, object, object]] = {
    "inventorySeconds: pace": (Policy(inventory_seconds=Seconds(9.0)), asks, 4, 12),
    "resyncSeconds": (Policy(resync_seconds=Seconds(40.0)), looks, [], [40.0, 80.0]),
    "observeOnly": (Policy(observe_only=True), acts, 1, 0),
}


@pytest.mark.parametrize(("chosen", "watched", "before", "after"), PACE.values(), ids=PACE)
def test_a_setting_makes_a_difference_in_time(
    chosen: Policy, watched: Watched, before: object, after: object
) -> None:
    assert loop.run(watched(b.policy())) == before
    assert loop.run(watched(b.policy(base=chosen))) == after
