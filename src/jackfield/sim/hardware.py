"""Simulated hardware and the software on its nodes, beside any Kubernetes API, embedded or real.

Knows fabrics, hosts, drivers, plugins, kubelets and machines, and how they are wired to one another. Must not know who
schedules, who decides, or whether time is real. All of it lives in memory: hardware that is started anew is a site
after a power cut, with every device back in its pool; nodes that the API still has are taken up again.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from jackfield.cluster.insist import insist
from jackfield.cluster.nodes.kubelet import KubeletCluster, Kubelets, KubeletSettings
from jackfield.cluster.nodes.machines import Machines, MachineSettings
from jackfield.cluster.nodes.prepared import Checkpoint
from jackfield.cluster.nodes.prepared import Plugin as KubeletPlugin
from jackfield.controllers import app
from jackfield.controllers.ending import is_ending
from jackfield.controllers.plugin import TIDY_SECONDS, Plugin
from jackfield.controllers.runner import Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.model.claim import CELDeviceSelector, DeviceSelector
from jackfield.model.fabric import Machine
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, FabricName, Key, NodeName, Seconds, Uid
from jackfield.model.node import Node, NodeAddress, NodeSpec, NodeStatus, NodeSystemInfo
from jackfield.model.policy import DRIVER
from jackfield.model.slice import DeviceClass, DeviceClassSpec
from jackfield.ports import Clock, Conflict, Fabric, World
from jackfield.sim.cables import Cables
from jackfield.sim.chance import Chance, Distribution
from jackfield.sim.host import SimHost
from jackfield.sim.loop import world
from jackfield.sim.manager import Manager
from jackfield.sim.mirror import Mirror
from jackfield.sim.pool import Movement, Pool
from jackfield.sim.setting import LocalDevices, Nodes, Setting
from jackfield.sim.vendor import Found, VendorDriver

OURS = "jackfield://"
"""How the provider ID of a simulated node begins, one that the autoscaler ordered included."""
SIMULATED = NodeSystemInfo(
    kubelet_version="v1.36.4",
    os_image="simulated by Jackfield",
    operating_system="linux",
    architecture="amd64",
    container_runtime_version="jackfield://none",
)
"""What a simulated node says it runs on."""
REPAIR_AGAIN = Seconds(1.0)
"""When a plugin that cannot come up tries again."""
ADDITIONS_MAX = 16
"""Nodes that are added to a real API side by side."""

Clients = Callable[[str], KubeletCluster]
"""Gives a program, named, its handle to the API."""


@runtime_checkable
class Mortal(Protocol):
    """A handle to the API that can be taken away from the program that has it."""

    def kill(self) -> None:
        """Let nothing more be done through it."""


class Hardware:
    """Every node, every fabric and what runs on them, alive while the context is open."""

    def __init__(
        self, setting: Setting, clock: Clock, chance: Chance, recorder: Recorder, client: Clients
    ) -> None:
        self.setting = setting
        self.clock = clock
        self.managers = {
            one.name: Manager(one, clock, chance.branch(f"fabric/{one.name}")) for one in setting.fabrics
        }
        self._pools: dict[FabricName, Pool | Mirror] = {
            name: manager.pool for name, manager in self.managers.items()
        }
        self.hosts: dict[NodeName, SimHost] = {}
        self.fabrics: dict[NodeName, FabricName] = {}
        """The fabric that each of them is a machine of."""
        self.movements: list[Callable[[Movement], None]] = []
        """Who hears of every device that comes to a node or leaves it."""
        self.cables = Cables(self.hosts)
        """Which machine is behind a name."""
        self.senses: list[Callable[[SimHost], None]] = []
        """Who hears whenever a node sees or has prepared something else."""
        self._chance = chance
        self._recorder = recorder
        self._client = client
        self._vendors: dict[NodeName, dict[str, VendorDriver]] = {}
        self._plugins: dict[NodeName, dict[str, KubeletPlugin]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._make_machines()
        self._make_plugins()

    def mirror(self, name: FabricName, fabric: Fabric) -> None:
        """Have the nodes of a fabric whose manager is not simulated; before the context opens."""
        self._pools[name] = Mirror(fabric, self.clock)

    def _make_machines(self) -> None:
        setting = self.setting
        boot = self._drawn(setting.boot, "boot")
        there = {name for nodes in setting.nodes for name in nodes.names()}  # these have booted long ago
        self.machines = Machines(
            self._client("machines"),
            self.clock,
            MachineSettings(
                boot=lambda name: Seconds(0.0) if name in there else boot(),
                heartbeat=setting.heartbeat,
                ours=_ours,
                real_api=setting.real_api,
            ),
        )
        start, stop = self._drawn(setting.pod_start, "pod-start"), self._drawn(setting.pod_stop, "pod-stop")
        kubelet = KubeletSettings(
            start=lambda _: start(), stop=lambda _: stop(), up=self.machines.up, ours=_ours
        )
        self._kubelet = kubelet
        self._kubelets_disk = Checkpoint()
        self._make_kubelets()

    def _make_kubelets(self) -> None:
        self._kubelet_client = self._client("kubelet")
        self.kubelets = Kubelets(
            self._kubelet_client, self.clock, self._plugins_of, self._kubelet, self._kubelets_disk
        )

    def _make_plugins(self) -> None:
        """One runner serves the plugins of all nodes: each hears only of what is for its own."""
        self.node_client = self._client("jackfield-node")
        site = World(self.node_client, self.clock, {}, self.hosts)
        self.nodes = Runner(site, Store(self.setting.policy), app.NODE, self._recorder)
        self._node_world = site

    def _plugin(self, node: NodeName, host: SimHost, *, repaired: bool) -> "NodePlugin":
        plugin = Plugin(node, self._node_world, self.nodes, self._recorder)
        return NodePlugin(plugin, host, self.nodes, repaired=repaired)

    def _drawn(self, distribution: Distribution, name: str) -> "Drawn":
        return Drawn(distribution, self._chance.branch(name))

    def _plugins_of(self, node: NodeName) -> Mapping[str, KubeletPlugin]:
        return self._plugins.get(node, {})

    # --- running

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.callback(self._power_off)
            self._group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.callback(self._stop)
            await self._install()
            for pool in self._pools.values():
                if isinstance(pool, Mirror):
                    self._start(pool.run())
            self._start(self.machines.run())
            self._kubelets_task = self._task(self.kubelets.run())
            self._plugins_task = self._task(self._run_plugins())
            self._running = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.__aexit__(kind, error, trace)

    def _stop(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()

    def _power_off(self) -> None:
        for manager in self.managers.values():
            manager.stop()
        for host in self.hosts.values():
            host.stop()

    def _task(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work, context=world())
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def _start(self, work: Coroutine[None, None, None]) -> None:
        _ = self._task(work)

    async def _run_plugins(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.nodes.run(app.NODE_KINDS))
            group.create_task(self._start_over(self.nodes))
            group.create_task(self._tidy())

    async def _start_over(self, runner: Runner) -> None:
        """End when the API was restored from a backup, and be started again."""
        await runner.rewound.wait()
        self.restart_plugins()

    async def _tidy(self) -> None:
        while True:
            await self.clock.sleep(TIDY_SECONDS)
            for plugin in [plugins.get(DRIVER) for plugins in self._plugins.values()]:
                if isinstance(plugin, NodePlugin):
                    await plugin.tidy()

    async def rewound(self) -> None:
        """Have everybody on the nodes say anew what he would not say again by himself."""
        for node, drivers in self._vendors.items():
            for driver in drivers.values():
                await driver.adopt()
            await self.publish(node)
        await self.machines.tell_again()

    def restart_plugins(self) -> None:
        """Kill the plugins of all nodes; what is on the nodes' disks stays."""
        if isinstance(self.node_client, Mortal):  # the handle goes first, so that nothing tidies up
            self.node_client.kill()
        self._plugins_task.cancel()
        self._make_plugins()
        self._plugins_task = self._task(self._run_plugins())
        for node, host in self.hosts.items():
            plugin = self._plugin(node, host, repaired=False)
            self._plugins[node][DRIVER] = plugin
            self._start(plugin.repair(self.clock))

    def restart_kubelets(self) -> None:
        """Kill the kubelets of all nodes; what they remember on disk stays."""
        if isinstance(self._kubelet_client, Mortal):
            self._kubelet_client.kill()
        self._kubelets_task.cancel()
        self._make_kubelets()
        self._kubelets_task = self._task(self.kubelets.run())

    # --- nodes

    async def _install(self) -> None:
        """Bring up the stage. On a real API it may stand already, and a thousand nodes are added side by side."""
        site = self._client("hardware")
        for one in self.setting.classes:
            selector = DeviceSelector(CELDeviceSelector(one.expression))
            new = DeviceClass(metadata=ObjectMeta(name=one.name), spec=DeviceClassSpec((selector,)))
            with suppress(
                Conflict
            ):  # somebody made it before us, and may have had reasons to make it otherwise
                await insist(self.clock, partial(site.create, new))
        additions = [(_node(nodes, name), nodes) for nodes in self.setting.nodes for name in nodes.names()]
        if not self.setting.real_api:
            for node, nodes in additions:
                await self.add_node(node, nodes)
            return
        room = asyncio.Semaphore(ADDITIONS_MAX)
        async with asyncio.TaskGroup() as group:
            for node, nodes in additions:
                await room.acquire()
                task = group.create_task(self.add_node(node, nodes))
                task.add_done_callback(lambda _: room.release())

    async def add_node(self, node: Node, nodes: Nodes | None = None) -> None:
        """Bring up a node; a machine of a fabric gets a host and our plugin, its own devices a vendor's driver."""
        name = node.name
        self._plugins[name] = {}
        self._vendors[name] = {}
        local = nodes.local if nodes is not None else ()
        for driver in dict.fromkeys(one.driver for one in local):
            self._vendor(name, driver, tuple(one for one in local if one.driver == driver))
        if nodes is not None and nodes.fabric:
            self._join(name, nodes)
        for vendor in self._vendors[name].values():
            if self.setting.real_api:
                await vendor.adopt()
            await vendor.publish()
        await self.machines.add(node)

    async def remove_node(self, node: NodeName) -> None:
        """Give a node back; what was attached to it is the manager's to take."""
        for pool in self._pools.values():
            pool.remove_machine(node)
        await self.machines.remove(node)

    def _join(self, node: NodeName, nodes: Nodes) -> None:
        """Make a node a machine of its fabric."""
        self.fabrics[node] = nodes.fabric
        pool = self._pools[nodes.fabric]
        pool.add_machine(Machine(node, nodes.slots))
        host = SimHost(node, self.clock, self._chance.branch(f"host/{node}"), self.setting.host)
        self.hosts[node] = host
        if isinstance(pool, Mirror):
            host.ask_bus = pool.look
        pool.listen(node, self.cables.moved)
        pool.listen(node, self._moved)
        host.listen(lambda: self._sensed(node, nodes.fabric))
        self._plugins[node][DRIVER] = self._plugin(node, host, repaired=True)
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
            self._start(self._publish(node, fabric))

    async def _publish(self, node: NodeName, fabric: FabricName) -> None:
        """Let the vendors' drivers on a node see what it sees."""
        host, pool = self.hosts[node], self._pools[fabric]
        for driver in self._vendors[node].values():
            found = []
            for seen in host.seen():
                device = pool.device(seen.physical)
                model = self.setting.policy.model(device.model) if device is not None else None
                if model is not None and model.driver_name == driver.name:
                    attributes = {key: text for key, text in model.dra_attributes.items() if text}
                    found.append(Found(seen.physical, attributes))
            await driver.publish(host, tuple(found))

    async def wipe(self, node: NodeName) -> None:
        """Delete the slices that other drivers than ours publish on a node."""
        for driver in self._vendors.get(node, {}).values():
            await driver.wipe()

    async def publish(self, node: NodeName) -> None:
        """Have the other drivers on a node look at it and publish what they see."""
        if node in self.hosts:
            await self._publish(node, self.fabrics[node])

    def own_devices(self, node: NodeName) -> tuple[DeviceID, ...]:
        """Return the devices that a node has of its own."""
        return tuple(
            device for driver in self._vendors.get(node, {}).values() for device in driver.own_devices()
        )

    def _vendor(self, node: NodeName, name: str, local: tuple[LocalDevices, ...]) -> VendorDriver:
        known = self._vendors[node].get(name)
        if known is None:
            client = self._client(f"driver {name} on {node}")
            known = VendorDriver(name, node, client, self.clock, local)
            self._vendors[node][name] = known
            self._plugins[node][name] = known
        return known


class NodePlugin:
    """Our plugin as the kubelet reaches it: one that dies under a call has not answered it.

    In a later life, before anything else, it has the resources' holders agree with its checkpoint.
    """

    def __init__(self, plugin: Plugin, host: SimHost, runner: Runner, *, repaired: bool) -> None:
        self._plugin = plugin
        self._host = host
        self._runner = runner
        self._repaired = repaired

    async def prepare(self, claim: Key, uid: Uid) -> str:
        """Prepare the claim's devices; return what stands in the way."""
        return await self._answered(self._plugin.prepare, claim, uid)

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        """Undo it; return what stands in the way. A kubelet asks when all that used it has ended."""
        self._host.ended(uid)
        return await self._answered(self._plugin.unprepare, claim, uid)

    async def _answered(
        self, call: Callable[[Key, Uid], Coroutine[None, None, str]], claim: Key, uid: Uid
    ) -> str:
        if not self._repaired:
            return "the plugin is starting"
        try:
            return await call(claim, uid)
        except asyncio.CancelledError:
            if is_ending():
                raise
            return "the plugin went away"

    async def repair(self, clock: Clock) -> None:
        """Come up."""
        await self._runner.synced.wait()
        while await self._plugin.repair():
            await clock.sleep(REPAIR_AGAIN)
        self._repaired = True

    async def tidy(self) -> None:
        """Clear what nobody else would."""
        if self._repaired:
            await self._plugin.tidy()


class Drawn:
    """Durations from a distribution, one after another."""

    def __init__(self, distribution: Distribution, chance: Chance) -> None:
        self._distribution = distribution
        self._chance = chance

    def __call__(self) -> Seconds:
        """Draw the next."""
        return self._distribution.draw(self._chance.generator)


def _ours(node: Node) -> bool:
    return node.spec.provider_id.startswith(OURS)


def _node(nodes: Nodes, name: str) -> Node:
    capacity = {"cpu": nodes.cpu, "memory": nodes.memory, "pods": nodes.pods}
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **nodes.labels}),
        spec=NodeSpec(provider_id=f"{OURS}{nodes.fabric or 'none'}/{name}"),
        status=NodeStatus(
            capacity=capacity,
            allocatable=capacity,
            addresses=(NodeAddress("Hostname", name),),
            node_info=SIMULATED,
        ),
    )
