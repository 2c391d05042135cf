"""The objects that the table of behaviours of a Cluster is about, and how a watch is read."""

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Final

from jackfield.codec.encoding import encoded
from jackfield.model.claim import (
    AllocatedDeviceStatus,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.composition import ComposableResource, ComposableResourceSpec, ResourceState
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import Key, ModelName, NodeName, Time, Version, named
from jackfield.model.pod import Container, Pod, PodSpec
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import Change, Changed, Cluster, Deleted, Merge, Synced

ANY: Final = Version("")
Behaviour = Callable[[Cluster], Coroutine[object, object, None]]
DRIVER: Final = "gpu.example.com"
CLAIM: Final = Key("default", "c")
R: Final = named("r")


def resource(name: str = "r", *finalizers: str, node: str = "n") -> ComposableResource:
    return ComposableResource(
        metadata=ObjectMeta(name=name, finalizers=finalizers),
        spec=ComposableResourceSpec(type="gpu", model=ModelName("A100"), target_node=NodeName(node)),
    )


def claim(name: str = CLAIM.name, *finalizers: str) -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu", count=2))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace=CLAIM.namespace, finalizers=finalizers),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
    )


def slice_of(node: str = "n", count: int = 1) -> ResourceSlice:
    pool = ResourcePool(name="p", resource_slice_count=count)
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name=NodeName(node))
    return ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec)


def pod(name: str = "p", node: str = "", **labels: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", labels=labels),
        spec=PodSpec(containers=(Container("c", "i"),), node_name=NodeName(node)),
    )


def allocation(*devices: str) -> dict[str, object]:
    results = [{"request": "gpu", "driver": DRIVER, "pool": "p", "device": device} for device in devices]
    return {"status": {"allocation": {"devices": {"results": results}}}}


def ready(device: str, status: str = "True") -> dict[str, object]:
    condition = Condition(
        type="Ready", status=status, reason="Attached", last_transition_time=Time("2026-01-01T00:00:00Z")
    )
    entry = AllocatedDeviceStatus(driver=DRIVER, pool="p", device=device, conditions=(condition,))
    return {"status": {"devices": [encoded(entry)]}}


def state(value: ResourceState) -> dict[str, object]:
    return {"status": {"state": value.value}}


async def allocated(cluster: Cluster, *devices: str) -> ResourceClaim:
    await cluster.create(claim())
    written = await cluster.write(Merge(ResourceClaim, CLAIM, ANY, allocation(*devices), status=True))
    assert isinstance(written, ResourceClaim)
    return written


def version(one: Object) -> Version:
    return one.metadata.resource_version


async def taken(changes: AsyncIterator[Change], count: int) -> list[str]:
    """Return the next changes, in short."""
    return [_short(await anext(changes)) for _ in range(count)]


async def told(changes: AsyncIterator[Change]) -> list[str]:
    """Return all that is told before Synced, in the order of names, then Synced."""
    objects: list[str] = []
    while True:
        short = _short(await anext(changes))
        if short.startswith("="):
            return [*sorted(objects), short]
        objects.append(short)


def _short(change: Change) -> str:
    match change:
        case Changed(object=one):
            return f"+{one.metadata.name}"
        case Deleted(object=one):
            return f"-{one.metadata.name}"
        case Synced(keys=keys):
            return f"={','.join(sorted(key.name for key in keys))}"
