"""A whole cluster on one loop: API, scheduler, kubelets, machines, fabrics, and our controllers.

Knows how the parts are put together. Must not know what happens in the play: that is `scenario`'s.
"""

import asyncio
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.collector import Collector
from jackfield.cluster.controller_manager import ControllerManager
from jackfield.cluster.kubelet import Kubelets, KubeletSettings
from jackfield.cluster.machines import Machines, MachineSettings
from jackfield.cluster.prepared import Plugin as KubeletPlugin
from jackfield.cluster.scheduler import Scheduler, SchedulerSettings
from jackfield.cluster.store import Store as ApiStore
from jackfield.controllers import app
from jackfield.controllers.plugin import Plugin
from jackfield.controllers.runner import Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.model.claim import CELDeviceSelector, DeviceSelector
from jackfield.model.fabric import Machine
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, FabricName, NodeName, Seconds
from jackfield.model.node import Node, NodeSpec, NodeStatus
from jackfield.model.policy import DRIVER
from jackfield.model.slice import DeviceClass, DeviceClassSpec
from jackfield.ports import Clock, Fabric, World
from jackfield.sim.chance import Chance, Distribution
from jackfield.sim.fabric import SimFabric
from jackfield.sim.host import SimHost
from jackfield.sim.manager import Manager
from jackfield.sim.pool import Movement
from jackfield.sim.setting import LocalDevices, Nodes, Setting
from jackfield.sim.vendor import Found, VendorDriver


class SimWorld:
    """Everything there is, running while the context is open."""

    def __init__(self, setting: Setting, clock: Clock, chance: Chance, recorder: Recorder) -> None:
        self.setting = setting
        self.clock = clock
        self.unscheduled = False
        """Whether nobody schedules pods here: set before the context opens."""
        self.api = ApiStore(clock.now, chance.branch("names").generator)
        self.cluster = EmbeddedCluster(self.api)
        self.managers = {
            one.name: Manager(one, clock, chance.branch(f"fabric/{one.name}")) for one in setting.fabrics
        }
        self.hosts: dict[NodeName, SimHost] = {}
        self.movements: list[Callable[[Movement], None]] = []
        """Who hears of every device that comes to a node or leaves it."""
        self.senses: list[Callable[[SimHost], None]] = []
        """Who hears whenever a node sees or has prepared something else."""
        self._chance = chance
        self._recorder = recorder
        self._vendors: dict[NodeName, dict[str, VendorDriver]] = {}
        self._plugins: dict[NodeName, dict[str, KubeletPlugin]] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []
        self._make_cluster()
        self._make_controllers()
        self._make_plugins()

    def _make_cluster(self) -> None:
        clock, setting = self.clock, self.setting
        lag = self._drawn(setting.scheduler_lag, "scheduler-lag")
        self.scheduler = Scheduler(
            self.cluster.client("scheduler"),
            clock,
            self._chance.branch("scheduler").generator,
            SchedulerSettings(),
            lag,
        )
        boot = self._drawn(setting.boot, "boot")
        there = {name for nodes in setting.nodes for name in nodes.names()}  # these have booted long ago
        settings = MachineSettings(
            boot=lambda name: Seconds(0.0) if name in there else boot(), heartbeat=setting.heartbeat
        )
        self.machines = Machines(self.cluster.client("machines"), clock, settings)
        start, stop = self._drawn(setting.pod_start, "pod-start"), self._drawn(setting.pod_stop, "pod-stop")
        kubelet = KubeletSettings(start=lambda _: start(), stop=lambda _: stop(), up=self.machines.up)
        self.kubelets = Kubelets(self.cluster.client("kubelet"), clock, self._plugins_of, kubelet)
        self.manager = ControllerManager(self.cluster.client("controller-manager"), clock)
        self.collector = Collector(self.cluster.client("collector"), clock)

    def _make_controllers(self) -> None:
        fabrics: dict[FabricName, Fabric] = {name: SimFabric(one) for name, one in self.managers.items()}
        self.client = self.cluster.client("jackfield")
        self.store = Store(self.setting.policy)
        world = World(self.client, self.clock, fabrics)
        self.controllers = Runner(world, self.store, app.ALL, self._recorder)

    def _make_plugins(self) -> None:
        """One runner serves the plugins of all nodes: each hears only of what is for its own."""
        self._node_client = self.cluster.client("jackfield-node")
        world = World(self._node_client, self.clock, {}, self.hosts)
        self.nodes = Runner(world, Store(self.setting.policy), app.NODE, self._recorder)
        for node in self.hosts:
            self._plugins[node][DRIVER] = Plugin(node, world, self.nodes, self._recorder)
        self._node_world = world

    def _drawn(self, distribution: Distribution, name: str) -> "Drawn":
        return Drawn(distribution, self._chance.branch(name))

    def _plugins_of(self, node: NodeName) -> Mapping[str, KubeletPlugin]:
        return self._plugins.get(node, {})

    # --- running

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        for one in self.setting.classes:
            selector = DeviceSelector(CELDeviceSelector(one.expression))
            new = DeviceClass(metadata=ObjectMeta(name=one.name), spec=DeviceClassSpec((selector,)))
            await self.cluster.create(new)
        for nodes in self.setting.nodes:
            for name in nodes.names():
                await self.add_node(_node(nodes, name), nodes)
        for work in (
            self.machines.run(),
            self.manager.run(),
            self.collector.run(),
            *(() if self.unscheduled else (self.scheduler.run(),)),
            self.kubelets.run(),
        ):
            self._tasks.append(self._group.create_task(work))
        self._controllers_task = self._group.create_task(self.controllers.run(app.KINDS))
        self._plugins_task = self._group.create_task(self.nodes.run(app.NODE_KINDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in (*self._tasks, self._controllers_task, self._plugins_task):
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    # --- deaths

    def restart_controllers(self) -> None:
        """Kill our controllers where they stand, and start new ones that remember nothing."""
        self.client.kill()  # the handle to the world goes first, so that nothing tidies up
        self._controllers_task.cancel()
        self._make_controllers()
        self._controllers_task = self._group.create_task(self.controllers.run(app.KINDS))

    def restart_plugins(self) -> None:
        """Kill the plugins of all nodes; what is on the nodes' disks stays."""
        self._node_client.kill()
        self._plugins_task.cancel()
        self._make_plugins()
        self._plugins_task = self._group.create_task(self.nodes.run(app.NODE_KINDS))

    # --- nodes

    async def add_node(self, node: Node, nodes: Nodes | None = None) -> None:
        """Bring up a node; a machine of a fabric gets a host and our plugin, its own devices a vendor's driver."""
        name = node.name
        self._plugins[name] = {}
        self._vendors[name] = {}
        if nodes is not None and nodes.fabric:
            self._join(name, nodes)
        for local in nodes.local if nodes is not None else ():
            await self._vendor(name, local.driver, (local,)).publish()
        await self.machines.add(node)

    async def remove_node(self, node: NodeName) -> None:
        """Give a node back; what was attached to it is the manager's to take."""
        for manager in self.managers.values():
            manager.pool.remove_machine(node)
        await self.machines.remove(node)

    def _join(self, node: NodeName, nodes: Nodes) -> None:
        """Make a node a machine of its fabric."""
        pool = self.managers[nodes.fabric].pool
        pool.add_machine(Machine(node, nodes.slots))
        host = SimHost(node, self.clock, self._chance.branch(f"host/{node}"), self.setting.host)
        self.hosts[node] = host
        pool.listen(node, host.moved)
        pool.listen(node, self._moved)
        host.listen(lambda: self._sensed(node, nodes.fabric))
        self._plugins[node][DRIVER] = Plugin(node, self._node_world, self.nodes, self._recorder)
        for model in self.setting.policy.models:
            if not model.binds:
                self._vendor(node, model.driver_name, ())
        self.nodes.sense(node)

    def _moved(self, movement: Movement) -> None:
        for listener in self.movements:
            listener(movement)

    def _sensed(self, node: NodeName, fabric: FabricName) -> None:
        self.nodes.sense(node)
        for listener in self.senses:
            listener(self.hosts[node])
        if any(not model.binds for model in self.setting.policy.models):
            self._tasks.append(self._group.create_task(self._publish(node, fabric)))

    async def _publish(self, node: NodeName, fabric: FabricName) -> None:
        """Let the vendors' drivers on a node see what it sees."""
        host, pool = self.hosts[node], self.managers[fabric].pool
        for driver in self._vendors[node].values():
            found = []
            for seen in host.seen():
                device = pool.device(seen.physical)
                model = self.setting.policy.model(device.model) if device is not None else None
                if model is not None and model.driver_name == driver.name:
                    attributes = {key: text for key, text in model.dra_attributes.items() if text}
                    found.append(Found(seen.physical, attributes))
            await driver.publish(host, tuple(found))

    def own_devices(self, node: NodeName) -> tuple[DeviceID, ...]:
        """Return the devices that a node has of its own."""
        return tuple(
            device for driver in self._vendors.get(node, {}).values() for device in driver.own_devices()
        )

    def _vendor(self, node: NodeName, name: str, local: tuple[LocalDevices, ...]) -> VendorDriver:
        known = self._vendors[node].get(name)
        if known is None:
            known = VendorDriver(name, node, self.cluster.client(f"driver {name} on {node}"), local)
            self._vendors[node][name] = known
            self._plugins[node][name] = known
        return known


class Drawn:
    """Durations from a distribution, one after another."""

    def __init__(self, distribution: Distribution, chance: Chance) -> None:
        self._distribution = distribution
        self._chance = chance

    def __call__(self) -> Seconds:
        """Draw the next."""
        return self._distribution.draw(self._chance.generator)


def _node(nodes: Nodes, name: str) -> Node:
    capacity = {"cpu": nodes.cpu, "memory": nodes.memory, "pods": nodes.pods}
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **nodes.labels}),
        spec=NodeSpec(provider_id=f"jackfield://{nodes.fabric or 'none'}/{name}"),
        status=NodeStatus(capacity=capacity, allocatable=capacity),
    )
