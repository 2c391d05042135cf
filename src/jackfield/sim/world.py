"""A whole cluster on one loop: API, scheduler, controller manager, our controllers, and the hardware beside them.

Knows how the parts are put together. Must not know what happens in the play: that is `scenario`'s.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

import msgspec

from jackfield.cluster.api import Client, EmbeddedCluster, PoliteClient
from jackfield.cluster.scheduling.binding import BindingTimes
from jackfield.cluster.scheduling.scheduler import Scheduler, SchedulerSettings
from jackfield.cluster.store import Store as ApiStore
from jackfield.cluster.upkeep.collector import Collector
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.cluster.upkeep.namespaces import Namespaces
from jackfield.controllers.clocks import EvenClock
from jackfield.controllers.runner import Recorder
from jackfield.controllers.store import Store
from jackfield.fabric.sights import Sights
from jackfield.model.names import FabricName, Seconds
from jackfield.model.policy import Policy
from jackfield.model.view import Delta
from jackfield.ports import Clock, Fabric
from jackfield.sim.chance import Chance
from jackfield.sim.fabric import SimFabric
from jackfield.sim.hardware import Drawn, Hardware
from jackfield.sim.program import Program
from jackfield.sim.replica import Berth, Replica
from jackfield.sim.setting import Setting
from jackfield.sim.weather import RoughClient


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
        self.programs: dict[str, Program] = {}
        """Every program by its name, and what may befall it."""
        self._chance = chance
        self._recorder = recorder
        self.knowing: list[Callable[[str, tuple[Delta, ...]], None]] = []
        """Who hears which replica has come to know what."""
        self.hardware = Hardware(self.setting, clock, chance, recorder, self._client)
        for name, fabric in outside.fabrics.items():
            self.hardware.mirror(name, fabric)
        self._tasks: list[asyncio.Task[None]] = []
        self._lives = 0
        self._make_cluster()
        self.replicas = [self._replica(number) for number in range(self.setting.replicas)]

    def _make_cluster(self) -> None:
        self._make_scheduler()
        self._make_upkeep()
        self.namespaces = Namespaces(self._client("namespaces"), self.clock, self._outside.authority)

    def _make_upkeep(self) -> None:
        self._upkeep_clients = (self._client("controller-manager"), self._client("collector"))
        self.manager = ControllerManager(self._upkeep_clients[0], self.clock)
        self.collector = Collector(self._upkeep_clients[1], self.clock)

    def _make_scheduler(self) -> None:
        times = BindingTimes(self.setting.policy.binding_timeout_seconds)
        self._scheduler_client = self._client("scheduler")
        self.scheduler = Scheduler(
            self._scheduler_client,
            self.clock,
            self._chance.branch("scheduler").generator,
            SchedulerSettings(binding=times, features=self.setting.features),
            Drawn(self.setting.scheduler_lag, self._chance.branch("scheduler-lag")),
        )

    def _replica(self, number: int) -> Replica:
        name = f"replica-{number}"
        alone = self.setting.replicas == 1
        client = self._client("jackfield" if alone else name)
        program = self.program(client.name)
        even = EvenClock(program.clock, self.clock)
        fabrics: dict[FabricName, Fabric] = {
            one: SimFabric(manager, program.wire, name, None if manager.knows_orders else Sights(even))
            for one, manager in self.hardware.managers.items()
        }
        fabrics |= self._outside.fabrics
        self._lives += 1
        berth = Berth(
            client=client,
            fabrics=fabrics,
            clock=program.clock,
            steady=self.clock,
            policy=self.setting.policy,
            recorder=self._recorder,
            lease=Seconds(0.0) if alone else self.setting.lease_seconds,
        )
        replica = Replica(name, self._lives, berth)
        replica.ended = partial(self.start_replica, number)
        replica.runner.listeners.append(partial(self._known, f"replica/{name}"))
        return replica

    def _known(self, who: str, deltas: tuple[Delta, ...]) -> None:
        for listener in self.knowing:
            listener(who, deltas)

    def program(self, name: str) -> Program:
        """Return a program by its name."""
        known = self.programs.get(name)
        if known is None:
            chance = self._chance.branch(f"program/{name}")
            known = self.programs[name] = Program(name, self.clock, chance, self.setting.api_latency)
        return known

    def _client(self, name: str) -> Client:
        """Return a handle for another life of a program."""
        if self._outside.api is not None:
            return self.cluster.client(name)
        client = self.cluster.client(name, RoughClient)
        assert isinstance(client, RoughClient)
        program = self.program(name)
        client.weather = program.weather
        program.client = client
        return client

    @property
    def client(self) -> Client:
        """The API as the first replica of our controllers reaches it."""
        return self.replicas[0].client

    @property
    def store(self) -> Store:
        """What the first replica of our controllers knows."""
        return self.replicas[0].store

    # --- running

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.callback(self._stop)
            await stack.enter_async_context(self.hardware)
            self._upkeep_tasks = [self._start(self.manager.run()), self._start(self.collector.run())]
            if self._outside.api is not None:
                _ = self._start(self.namespaces.run())
            if not self.unscheduled:
                self._scheduler_task = self._start(self.scheduler.run())
            for replica in self.replicas:
                replica.start(self._group.create_task)
            self._running = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.__aexit__(kind, error, trace)

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.append(task)
        return task

    def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for replica in self.replicas:
            replica.reap()

    def follow(self, policy: Policy) -> None:
        """Have our controllers decide by another policy from now on, those that are yet to start as well."""
        self.setting = msgspec.structs.replace(self.setting, policy=policy)
        for replica in self.replicas:
            replica.runner.follow(policy)

    def kill_replica(self, number: int) -> None:
        """Kill one replica of our controllers where it stands."""
        replica = self.replicas[number]
        replica.kill()
        replica.reap()

    def start_replica(self, number: int) -> None:
        """Start a replica that was killed, unless somebody did so before; it remembers nothing."""
        if not self.replicas[number].dead:
            return
        self.replicas[number] = self._replica(number)
        self.replicas[number].start(self._group.create_task)

    def restart_scheduler(self) -> None:
        """Kill the scheduler where it stands, and start another."""
        self._scheduler_client.kill()
        self._scheduler_task.cancel()
        self._make_scheduler()
        self._scheduler_task = self._start(self.scheduler.run())

    def restart_upkeep(self) -> None:
        """Kill the controller manager and the garbage collector where they stand, and start others."""
        for client, task in zip(self._upkeep_clients, self._upkeep_tasks, strict=True):
            client.kill()
            task.cancel()
        self._make_upkeep()
        self._upkeep_tasks = [self._start(self.manager.run()), self._start(self.collector.run())]

    def restart_controllers(self) -> None:
        """Kill our controllers where they stand, and start new ones that remember nothing."""
        for number in range(len(self.replicas)):
            self.kill_replica(number)
            self.start_replica(number)
