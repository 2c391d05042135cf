"""A small cluster on virtual time, and the words to set a scene in it."""

import asyncio
import random
from collections.abc import Callable, Coroutine

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.scheduling.scheduler import Scheduler, SchedulerSettings
from jackfield.cluster.store import Store
from jackfield.codec.encoding import encoded
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.device import Device
from jackfield.model.event import Event
from jackfield.model.meta import (
    Condition,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from jackfield.model.names import DeviceID, Key, NodeName, Seconds, Version, named, rfc3339
from jackfield.model.node import Node, NodeCondition, NodeSpec, NodeStatus
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec, ResourceRequirements
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE
from jackfield.model.slice import DeviceClass, DeviceClassSpec, ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import Apply, Merge
from jackfield.sim.clock import running
from jackfield.sim.loop import run

POOL = "rack"
CLASS = "gpu"
LOCAL_DRIVER = "gpu.example.com"
ROOM = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("room", "In", ("yes",)),)),))


def node(name: str, *, cpu: str = "8", memory: str = "32Gi", pods: str = "110", ready: bool = True) -> Node:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    conditions = (NodeCondition("Ready", "True"),) if ready else ()
    return Node(
        metadata=ObjectMeta(name=name, labels={"room": "yes"}),
        status=NodeStatus(capacity=amounts, allocatable=amounts, conditions=conditions),
    )


def cordoned(name: str) -> Node:
    plain = node(name)
    return Node(metadata=plain.metadata, spec=NodeSpec(unschedulable=True), status=plain.status)


def pod(name: str, *claims: str, cpu: str = "1", priority: int = 0, **annotations: str) -> Pod:
    """Return a pod that uses claims by name."""
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            annotations={f"jackfield.dev/{key.replace('_', '-')}": text for key, text in annotations.items()},
        ),
        spec=PodSpec(
            priority=priority,
            containers=(Container("main", "app", resources=ResourceRequirements({"cpu": cpu})),),
            resource_claims=tuple(PodResourceClaim(one, resource_claim_name=one) for one in claims),
        ),
    )


def claim(name: str, *, count: int = 1, device_class: str = CLASS) -> ResourceClaim:
    request = DeviceRequest("r", exactly=ExactDeviceRequest(device_class, count=count))
    return _claim(name, request)


def choosy_claim(name: str, *classes: str) -> ResourceClaim:
    """Return a claim for the first available of several classes."""
    alternatives = tuple(DeviceSubRequest(f"s{index}", one) for index, one in enumerate(classes))
    return _claim(name, DeviceRequest("r", first_available=alternatives))


def _claim(name: str, request: DeviceRequest) -> ResourceClaim:
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=ResourceClaimSpec(DeviceClaim((request,))),
    )


def device_class(name: str, driver: str) -> DeviceClass:
    selector = DeviceSelector(CELDeviceSelector(f'device.driver == "{driver}"'))
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec((selector,)))


def fabric_slice(count: int, name: str = POOL) -> ResourceSlice:
    """Return devices of a pool that any node with room may be given, each with binding conditions."""
    devices = tuple(
        Device(
            f"d{index}",
            node_selector=ROOM,
            binds_to_node=True,
            binding_conditions=(READY,),
            binding_failure_conditions=(RESCHEDULE, FAILED),
        )
        for index in range(count)
    )
    return ResourceSlice(
        metadata=ObjectMeta(name=name),
        spec=ResourceSliceSpec(
            DRIVER, ResourcePool(name, 1), per_device_node_selection=True, devices=devices
        ),
    )


def local_slice(on: str, count: int) -> ResourceSlice:
    """Return devices that a node has built in."""
    devices = tuple(Device(f"gpu-{index}") for index in range(count))
    spec = ResourceSliceSpec(LOCAL_DRIVER, ResourcePool(on, 1), node_name=NodeName(on), devices=devices)
    return ResourceSlice(metadata=ObjectMeta(name=f"{on}-local"), spec=spec)


class Stage:
    """A cluster, its clock, and what a test does to it."""

    def __init__(self) -> None:
        self.clock = running()
        self.cluster = EmbeddedCluster(Store(self.clock.now, random.Random("store")))  # noqa: S311 - a test's chance
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, work: Coroutine[None, None, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(work))

    def scheduler(
        self, settings: SchedulerSettings = SchedulerSettings(), lag: Callable[[], Seconds] | None = None
    ) -> Scheduler:
        """Start a scheduler."""
        client = self.cluster.client("kube-scheduler")
        generator = random.Random("scheduler")  # noqa: S311 - a test's chance
        extra = (lag,) if lag is not None else ()
        scheduler = Scheduler(client, self.clock, generator, settings, *extra)
        self.start(scheduler.run())
        return scheduler

    async def put(self, *objects: Node | Pod | ResourceClaim | ResourceSlice | DeviceClass) -> None:
        for one in objects:
            await self.cluster.create(one)

    async def wait(self, duration: float) -> None:
        await self.clock.sleep(Seconds(duration))

    async def pod(self, name: str) -> Pod:
        return await self.cluster.read(Pod, Key("default", name))

    async def claim(self, name: str) -> ResourceClaim:
        return await self.cluster.read(ResourceClaim, Key("default", name))

    async def node_of(self, name: str) -> NodeName:
        return (await self.pod(name)).spec.node_name

    async def message(self, name: str) -> str:
        """Return what the pod's condition PodScheduled says."""
        conditions = (await self.pod(name)).status.conditions
        return next((one.message for one in conditions if one.type == "PodScheduled"), "")

    def events(self, reason: str) -> list[Event]:
        found = [one.object for one in self.cluster.store.list(Event).items]
        return [one for one in found if isinstance(one, Event) and one.reason == reason]

    async def say(self, claim_name: str, kind: str, status: str = "True") -> None:
        """Set a condition on every device of the claim, as a fabric's controller does."""
        found = await self.claim(claim_name)
        for result in found.results:
            await self._apply(
                found, result.id, Condition(kind, status, "Test", "", rfc3339(self.clock.now()))
            )

    async def _apply(self, found: ResourceClaim, device: DeviceID, condition: Condition) -> None:
        entry = {"driver": device.driver, "pool": device.pool, "device": device.device}
        body = {"status": {"devices": [{**entry, "conditions": [encoded(condition)]}]}}
        manager = f"jackfield/{device.pool}/{device.device}"
        await self.cluster.write(
            Apply(ResourceClaim, found.key, found.metadata.resource_version, body, manager, status=True)
        )

    async def patch_node(self, name: str, body: dict[str, object]) -> None:
        await self.cluster.write(Merge(Node, named(name), Version(""), body))


def play(story: Callable[[Stage], Coroutine[None, None, None]]) -> None:
    """Run a story on virtual time; it fails if any of the programs it started fails."""

    async def main() -> None:
        stage = Stage()
        await story(stage)
        for task in stage.tasks:
            if task.done():
                await task
            task.cancel()
        await asyncio.gather(*stage.tasks, return_exceptions=True)

    run(main())
