"""A runner over one decision, and a node whose rescans are all that is ever done."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable

from jackfield.controllers.runner import (
    Controller,
    Runner,
)
from jackfield.core import lead
from jackfield.model.names import NEVER, PhysicalID, Seconds, Uid
from jackfield.model.node import Node
from jackfield.model.plan import Phase, Plan, Rescan, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, ObjectChanged, View
from jackfield.ports import EVERYTHING, Clock, PortError, World
from jackfield.sim import loop
from jackfield.sim.clock import running
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard

WAITS = (Waiting("node/n1", "Test", "nothing"),)


class Host:
    """A node whose rescans take time, or go wrong as they are told to."""

    def __init__(self, takes: float = 0.0, wrong: tuple[PortError | None, ...] = ()) -> None:
        self.at_once = 0
        self.at_once_max = 0
        self.begun: list[float] = []
        self._takes = takes
        self._wrong = list(wrong)

    def seen(self) -> tuple[()]:
        return ()

    def prepared(self) -> tuple[()]:
        return ()

    def strays(self) -> tuple[()]:
        return ()

    async def rescan(self) -> None:
        self.begun.append(running().now() - loop.START)
        self.at_once += 1
        self.at_once_max = max(self.at_once, self.at_once_max)
        await running().sleep(Seconds(self._takes))
        self.at_once -= 1
        wrong = self._wrong.pop(0) if self._wrong else None
        if wrong is not None:
            raise wrong

    async def release(self, device: PhysicalID, *, force: bool) -> None:
        del device, force

    async def write(self, prepared: object, uid: Uid) -> None:
        del prepared, uid


class Decision:
    """Decides to rescan so many times for every key, and remembers when it was asked."""

    def __init__(self, rounds: int = 1, again_at: Callable[[Seconds], Seconds] = lambda _: NEVER) -> None:
        self.asked: list[tuple[Hashable, float]] = []
        self._left: dict[Hashable, int] = {}
        self._rounds = rounds
        self._again_at = again_at

    def decide(self, view: View, key: str, policy: Policy, now: Seconds) -> Plan:
        del view, policy
        self.asked.append((key, now - loop.START))
        left = self._left.get(key, self._rounds)
        self._left[key] = left - 1
        action = Rescan(phase=Phase.VISIBLE, because="of a test", node=b.NODE, resource=key)
        return Plan((action,) if left > 0 else (), WAITS, self._again_at(now))

    def wakes(self, view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
        del view, policy
        match delta:
            case ObjectChanged(new=Node() as node):
                return tuple(node.metadata.annotations.get("keys", "").split())
            case _:
                return ()


class Scene:
    """A runner over one decision, on a cluster with nothing else in it."""

    def __init__(
        self, decision: Decision, host: Host, policy: Policy = b.policy(), clock: Clock | None = None
    ) -> None:
        self.bench = Bench(policy=policy)
        self.heard = Heard()
        world = World(self.bench.client, clock or self.bench.clock, {}, {b.NODE: host})
        controller = Controller("test", decision.decide, decision.wakes, lead.of_none)
        self.runner = Runner(world, self.bench.store, (controller,), self.heard)

    async def mark(self, *keys: str) -> None:
        """Make a node that the decision finds these keys in."""
        self.runner.hear((ObjectChanged(None, b.node(annotations={"keys": " ".join(keys)})),))

    async def errors(self) -> list[str]:
        return [error for _, _, error in self.heard.done]


def play(scene: Callable[[], Coroutine[None, None, None]]) -> None:
    loop.run(scene())


async def running_for(scene: Scene, duration: float, *keys: str) -> None:
    """Run for a while, beginning with these keys marked."""
    task = asyncio.get_running_loop().create_task(scene.runner.run({Node: EVERYTHING}))
    await scene.bench.wait(0.001)
    await scene.mark(*keys)
    await scene.bench.wait(duration)
    if task.done():
        await task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
