"""A whole cluster on one loop: API, scheduler, controller manager, our controllers, and the hardware beside them.

Knows how the parts are put together. Must not know what happens in the play: that is `scenario`'s.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import msgspec

from jackfield.cluster.api import Client, EmbeddedCluster, PoliteClient
from jackfield.cluster.scheduling.scheduler import Scheduler, SchedulerSettings
from jackfield.cluster.store import Store as ApiStore
from jackfield.cluster.upkeep.collector import Collector
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.cluster.upkeep.namespaces import Namespaces
from jackfield.controllers import app
from jackfield.controllers.runner import Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.model.names import FabricName
from jackfield.ports import Clock, Fabric, World
from jackfield.sim.chance import Chance
from jackfield.sim.fabric import SimFabric
from jackfield.sim.hardware import Drawn, Hardware
from jackfield.sim.setting import Setting


class Outside(msgspec.Struct, frozen=True):
    """What of a world is not simulated: a store that serves others too, fabrics whose managers are real."""

    api: ApiStore | None = None
    authority: str = ""
    """The certificate that pods are to trust, where the store is served."""
    fabrics: Mapping[FabricName, Fabric] = {}


class SimWorld:
    """Everything there is, running while the context is open."""

    def __init__(
        self,
        setting: Setting,
        clock: Clock,
        chance: Chance,
        recorder: Recorder,
        outside: Outside = Outside(),
    ) -> None:
        served = outside.api is not None  # to whom it is served expects of nodes what a real server does
        self.setting = msgspec.structs.replace(setting, real_api=True) if served else setting
        self.clock = clock
        self._outside = outside
        self.unscheduled = False
        """Whether nobody schedules pods here: set before the context opens."""
        self.api = outside.api or ApiStore(clock.now, chance.branch("names").generator)
        self.cluster = EmbeddedCluster(self.api, PoliteClient if served else Client)
        self.hardware = Hardware(self.setting, clock, chance, recorder, self.cluster.client)
        self._recorder = recorder
        for name, fabric in outside.fabrics.items():
            self.hardware.mirror(name, fabric)
        self._tasks: list[asyncio.Task[None]] = []
        self._controllers_task: asyncio.Task[None] | None = None
        self._make_cluster(chance)
        self._make_controllers()

    def _make_cluster(self, chance: Chance) -> None:
        self.scheduler = Scheduler(
            self.cluster.client("scheduler"),
            self.clock,
            chance.branch("scheduler").generator,
            SchedulerSettings(),
            Drawn(self.setting.scheduler_lag, chance.branch("scheduler-lag")),
        )
        self.manager = ControllerManager(self.cluster.client("controller-manager"), self.clock)
        self.collector = Collector(self.cluster.client("collector"), self.clock)
        self.namespaces = Namespaces(self.cluster.client("namespaces"), self.clock, self._outside.authority)

    def _make_controllers(self) -> None:
        managers = self.hardware.managers
        fabrics: dict[FabricName, Fabric] = {name: SimFabric(one) for name, one in managers.items()}
        fabrics |= self._outside.fabrics
        self.client = self.cluster.client("jackfield")
        self.store = Store(self.setting.policy)
        world = World(self.client, self.clock, fabrics)
        self.controllers = Runner(world, self.store, app.ALL, self._recorder)

    # --- running

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.callback(self._stop)
            await stack.enter_async_context(self.hardware)
            for work in (
                self.manager.run(),
                self.collector.run(),
                *(() if self.unscheduled else (self.scheduler.run(),)),
                *(() if self._outside.api is None else (self.namespaces.run(),)),
            ):
                self._tasks.append(self._group.create_task(work))
            self._controllers_task = self._group.create_task(self.controllers.run(app.KINDS))
            self._running = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.__aexit__(kind, error, trace)

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._controllers_task is not None:
            self._controllers_task.cancel()

    def restart_controllers(self) -> None:
        """Kill our controllers where they stand, and start new ones that remember nothing."""
        self.client.kill()  # the handle to the world goes first, so that nothing tidies up
        if self._controllers_task is not None:
            self._controllers_task.cancel()
        self._make_controllers()
        self._controllers_task = self._group.create_task(self.controllers.run(app.KINDS))
