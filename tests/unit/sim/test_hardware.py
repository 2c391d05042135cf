"""Hardware beside an API that behaves as a real one: nodes are tainted, may be there already, or be somebody else's."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import TypeVar

import msgspec
import pytest

from jackfield import fabric
from jackfield.cluster.api import Client, EmbeddedCluster
from jackfield.cluster.scheduling.scheduler import Scheduler, SchedulerSettings
from jackfield.cluster.store import Store as ApiStore
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.controllers import app
from jackfield.controllers.runner import Runner
from jackfield.controllers.store import Store
from jackfield.fabric import FabricSettings
from jackfield.fabric.settings import Secret
from jackfield.model.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.fabric import Order
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import (
    FabricName,
    Key,
    ModelName,
    NodeName,
    OrderID,
    Seconds,
    Version,
    named,
    seconds,
)
from jackfield.model.namespace import Namespace
from jackfield.model.node import HEARTBEATS, Node, NodeSpec, NodeStatus, Taint
from jackfield.model.plan import AnyAction, Finding, Waiting
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec
from jackfield.model.policy import DRIVER, DeviceModel, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Apply, Clock, Gone, Merge, Refused, Retry, World
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import running
from jackfield.sim.face import Face, lines, serve
from jackfield.sim.hardware import Hardware
from jackfield.sim.setting import Class, LocalDevices, Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from unit.sim.hasty import Hasty

T = TypeVar("T", bound=Object)

RACK, MODEL, VENDOR = FabricName("rack-a"), ModelName("A100"), "gpu.example.com"
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
OTHERS = Taint(key="example.com/mine", effect="NoSchedule")
SETTING = Setting(
    nodes=(Nodes("n", 3, fabric=RACK, slots=2, local=(LocalDevices(VENDOR),)),),
    fabrics=(FabricSpec(RACK, batches=(Batch(MODEL, 2),), attach=Fixed(Seconds(5.0))),),
    classes=(Class("gpu", f'device.driver == "{DRIVER}"'),),
    policy=Policy(models=(DeviceModel(0, MODEL, "a100"),)),
    real_api=True,
)
N1 = NodeName("n-1")
VARIABLE = "A_VARIABLE"


class Silent:
    """A recorder that forgets."""

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None: ...

    def hop(self, action: AnyAction, after: Seconds) -> None: ...

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None: ...

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None: ...


class Strict(Client):
    """A handle as to a real server: new nodes are tainted, nothing lives in no namespace, calls fail now and then."""

    fails = 0
    """Every so many-th call is not answered; 0 for none."""
    asked = 0

    async def create(self, new: T) -> T:
        self._moods()
        if isinstance(new, Lease):
            try:
                await self.read(Namespace, named(new.metadata.namespace))
            except Gone:
                raise Gone(f'namespaces "{new.metadata.namespace}" not found') from None
        if isinstance(new, Node):
            spec = msgspec.structs.replace(new.spec, taints=(*new.spec.taints, NOT_READY))
            new = msgspec.structs.replace(new, spec=spec)
        return await super().create(new)

    async def write(self, patch: Merge | Apply) -> Object:
        self._moods()
        return await super().write(patch)

    def _moods(self) -> None:
        Strict.asked += 1
        if self.fails and self.asked % self.fails == 0:
            raise Retry("etcdserver: request timed out", Seconds(0.5))


class Site:
    """An API and its clock, and hardware that can be put beside it."""

    def __init__(self, clock: Clock, handle: type[Strict] = Strict) -> None:
        self.clock = clock
        self.cluster = EmbeddedCluster(ApiStore(clock.now, random.Random("site")))  # noqa: S311 - a test's chance
        self._handle = handle

    def hardware(self, setting: Setting = SETTING) -> Hardware:
        return Hardware(setting, self.clock, Chance(1), Silent(), self.client)

    def client(self, name: str) -> Client:
        return self.cluster.client(name, self._handle)

    async def node(self, name: str) -> Node:
        return await self.cluster.read(Node, named(name))

    async def silent_for(self, name: str) -> float:
        lease = await self.cluster.read(Lease, Key(HEARTBEATS, name))
        return self.clock.now() - seconds(lease.spec.renew_time)

    async def wait(self, duration: float) -> None:
        await self.clock.sleep(Seconds(duration))


def play(scene: Callable[[Site], Coroutine[None, None, None]], handle: type[Strict] = Strict) -> None:
    async def main() -> None:
        await scene(Site(running(), handle))

    loop.run(main())


def test_nodes_come_up_ready_and_untainted_with_a_sign_of_life_in_a_namespace_made_for_it() -> None:
    async def scene(site: Site) -> None:
        async with site.hardware():
            await site.wait(15)
            for name in ("n-1", "n-2", "n-3"):
                node = await site.node(name)
                assert node.ready
                assert node.spec.taints == ()
                assert node.spec.provider_id == f"jackfield://rack-a/{name}"
                assert await site.silent_for(name) <= 10

    play(scene)


def test_nodes_of_an_earlier_life_are_taken_up_again() -> None:
    async def scene(site: Site) -> None:
        async with site.hardware() as first:
            await site.wait(15)
            await first.machines.lose(N1)
        before = await site.node(N1)
        body = {
            "spec": {"taints": [*map(msgspec.to_builtins, before.spec.taints), msgspec.to_builtins(OTHERS)]}
        }
        await site.cluster.write(Merge(Node, named(N1), Version(""), body))
        more = Nodes("n", 3, fabric=RACK, slots=2, cpu="32", labels={"zone": "b"})
        async with site.hardware(msgspec.structs.replace(SETTING, nodes=(more,))):
            await site.wait(15)
            after = await site.node(N1)
            assert after.uid == before.uid
            assert after.ready
            assert after.spec.taints == (OTHERS,)
            assert (after.status.capacity["cpu"], after.metadata.labels["zone"]) == ("32", "b")
            assert await site.silent_for(N1) <= 10

    play(scene)


def test_a_node_that_is_somebody_elses_is_not_taken_up() -> None:
    async def scene(site: Site) -> None:
        await site.cluster.create(Node(metadata=ObjectMeta(name=N1), spec=NodeSpec(provider_id="aws://i-1")))
        with pytest.raises(BaseExceptionGroup) as caught:
            async with site.hardware():
                pass
        assert caught.value.subgroup(Refused) is not None
        assert not (await site.node(N1)).ready

    play(scene)


def test_other_peoples_nodes_and_their_pods_are_left_alone() -> None:
    async def scene(site: Site) -> None:
        amounts = {"cpu": "1", "memory": "1Gi", "pods": "10"}
        await site.cluster.create(
            Node(metadata=ObjectMeta(name="real"), status=NodeStatus(amounts, amounts))  # a real kubelet's
        )
        spec = PodSpec(node_name=NodeName("real"), containers=(Container("main", "none"),))
        pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec)
        await site.cluster.create(pod)
        async with site.hardware():
            await site.wait(100)
            assert not (await site.node("real")).ready
            assert (await site.cluster.read(Pod, pod.key)).status.phase == "Pending"
            with pytest.raises(Gone):
                await site.silent_for("real")

    play(scene)


def test_a_lost_node_is_tainted_until_it_is_back() -> None:
    async def scene(site: Site) -> None:
        async with site.hardware() as hardware:
            await site.wait(15)
            await hardware.machines.lose(N1)
            taints = {(one.key, one.effect) for one in (await site.node(N1)).spec.taints}
            unreachable = "node.kubernetes.io/unreachable"
            assert taints == {(unreachable, "NoSchedule"), (unreachable, "NoExecute")}
            await hardware.machines.recover(N1)
            assert (await site.node(N1)).spec.taints == ()

    play(scene)


def test_signs_of_life_are_spread_over_the_interval() -> None:
    async def scene(site: Site) -> None:
        many = msgspec.structs.replace(SETTING, nodes=(Nodes("n", 100, fabric=RACK),))
        async with site.hardware(many):
            await site.wait(60)
            ages = [await site.silent_for(name) for name in many.nodes[0].names()]
            assert max(ages) <= 10.1
            for second in range(10):
                assert 5 <= sum(second <= age < second + 1 for age in ages) <= 15

    play(scene)


def test_an_api_that_does_not_answer_every_call_delays_and_stops_nothing() -> None:
    class Flaky(Strict):
        fails = 3

    async def scene(site: Site) -> None:
        async with site.hardware():
            await site.wait(60)
            for name in ("n-1", "n-2", "n-3"):
                assert (await site.node(name)).ready
                assert (await site.node(name)).spec.taints == ()

    play(scene, Flaky)


def test_a_drivers_slice_of_an_earlier_life_says_what_is_there_now() -> None:
    async def scene(site: Site) -> None:
        key = named(f"n-1-{VENDOR}")
        async with site.hardware():
            assert len((await site.cluster.read(ResourceSlice, key)).spec.devices) == 1
        nodes = Nodes("n", 3, local=(LocalDevices(VENDOR, 2), LocalDevices(VENDOR, 1)))
        async with site.hardware(msgspec.structs.replace(SETTING, nodes=(nodes,))):
            names = [one.name for one in (await site.cluster.read(ResourceSlice, key)).spec.devices]
            assert names == ["local-0", "local-1", "local-2"]

    play(scene)


@pytest.mark.parametrize("after", [1.0, 6.0], ids=["while it is attached", "before it is seen"])
def test_hardware_that_is_switched_off_leaves_nothing_on_its_way(after: float) -> None:
    async def main() -> None:
        site = Site(Hasty(20.0))
        async with site.hardware() as hardware:
            order = Order(OrderID("a"), RACK, N1, MODEL)
            hardware.managers[RACK].attach(order, site.clock.now())
            await site.wait(after)
            assert not hardware.hosts[N1].seen()
        await site.wait(0.1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


# --- the whole of it, in real time, with the manager on the other side of a socket


def _claim() -> ResourceClaim:
    request = DeviceRequest("gpu", ExactDeviceRequest("gpu"))
    return ResourceClaim(
        metadata=ObjectMeta(name="c", namespace="default"), spec=ResourceClaimSpec(DeviceClaim((request,)))
    )


def _pod() -> Pod:
    claims = (PodResourceClaim("gpu", resource_claim_name="c"),)
    spec = PodSpec(containers=(Container("main", "none"),), resource_claims=claims)
    return Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec)


async def _runs(site: Site, url: str, secret: str) -> None:
    """Schedule and control until the pod runs."""
    settings = FabricSettings(RACK, "native", url, token_variable=VARIABLE, call_timeout_seconds=Seconds(5.0))
    async with fabric.load(settings, {VARIABLE: secret}, site.clock) as line:
        world = World(site.client("jackfield"), site.clock, {RACK: line})
        generator = Chance("scheduler").generator
        scheduler = Scheduler(site.cluster.client("scheduler"), site.clock, generator, SchedulerSettings())
        work = (
            Runner(world, Store(SETTING.policy), app.ALL, Silent()).run(app.KINDS),
            scheduler.run(),
            ControllerManager(site.cluster.client("manager"), site.clock).run(),
        )
        tasks = [asyncio.create_task(one) for one in work]
        await site.cluster.create(_claim())
        await site.cluster.create(_pod())
        while (await site.cluster.read(Pod, _pod().key)).status.phase != "Running":
            await site.wait(1)
            assert not any(task.done() for task in tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_a_pod_gets_its_device_from_a_manager_spoken_to_over_http_and_nothing_is_left_running() -> None:
    async def main() -> None:
        site = Site(Hasty(20.0))
        hardware = site.hardware()
        face = Face(lines(hardware.managers), Secret("a-token-of-this-test"))
        up = asyncio.Event()
        serving = asyncio.create_task(serve(hardware, face, lambda _: up.set()))
        await up.wait()
        async with asyncio.timeout(30):
            await _runs(site, face.url, "a-token-of-this-test")
        assert hardware.managers[RACK].counts.attaches == 1
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await site.wait(1)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
