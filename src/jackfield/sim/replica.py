"""One replica of our controllers: a process with a store, a lease, a handle to the API and lines to the managers.

Knows what such a process is made of and how it dies. Must not know why.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from jackfield.cluster.api import Client
from jackfield.controllers import app
from jackfield.controllers.clocks import EvenClock, keep_up
from jackfield.controllers.ending import is_ending
from jackfield.controllers.lead import Identity, Leases
from jackfield.controllers.runner import ALONE, Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.model.names import FabricName, Seconds
from jackfield.model.policy import Policy
from jackfield.ports import Clock, Fabric, Refused, World
from jackfield.sim.fabric import SimFabric
from jackfield.sim.loop import Process

RESTART_SECONDS = Seconds(10.0)
"""When a process that has ended by itself is started again."""


def _unnoticed() -> None:
    """Let nobody hear of it."""


class Berth(msgspec.Struct, frozen=True):
    """What one life of a replica is given; the next one is given another."""

    client: Client
    fabrics: Mapping[FabricName, Fabric]
    clock: Clock
    """The wall's clock, which may be set."""
    steady: Clock
    """One that never jumps."""
    policy: Policy
    recorder: Recorder
    lease: Seconds = Seconds(0.0)
    """How long its lease lasts; without one it is the only replica there is."""


class Replica:
    """One life of a replica."""

    def __init__(self, name: str, life: int, berth: Berth) -> None:
        self.name = name
        self.client = berth.client
        self.store = Store(berth.policy)
        self.process = Process(name)
        self.dead = False
        self._fabrics = berth.fabrics
        me = Identity(name, f"{name}/{life}")
        self.leases = Leases(berth.client, berth.steady, me, berth.lease) if berth.lease else None
        self._wall = berth.clock
        self._clock = EvenClock(berth.clock, berth.steady)
        world = World(berth.client, self._clock, berth.fabrics)
        self.runner = Runner(world, self.store, app.ALL, berth.recorder, self.leases or ALONE)
        self._steady = berth.steady
        self._task: asyncio.Task[None] | None = None
        self.ended: Callable[[], None] = _unnoticed
        """Hears that it has ended by itself, and that it is time to start it again."""

    def start(self, start: Callable[..., asyncio.Task[None]]) -> None:
        """Begin to live, as a task that `start` makes."""
        self._task = start(self._run(), context=self.process.context())

    async def _run(self) -> None:
        if self.leases is None:
            await self.runner.run(app.KINDS)
            return
        try:
            await asyncio.get_running_loop().create_task(self._live(self.leases))
        except* Refused:
            # A late write of its own former life looks like another process of its name; or its clock was set.
            self.kill()
        if is_ending():
            raise asyncio.CancelledError
        if self.dead:
            await self._steady.sleep(RESTART_SECONDS)
            self.ended()

    async def _live(self, leases: Leases) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(leases.run(self.runner.look_again))
            group.create_task(self.runner.run(app.KINDS))
            group.create_task(keep_up(self._wall, self._clock))

    def kill(self) -> None:
        """Die where it stands: its hands are taken away first, so that nothing tidies up."""
        self.dead = True
        self.client.kill()
        for line in self._fabrics.values():
            if isinstance(line, SimFabric):
                line.kill()

    def reap(self) -> None:
        """Clear away what is left of it."""
        self.process.go_on()
        if self._task is not None:
            self._task.cancel()
