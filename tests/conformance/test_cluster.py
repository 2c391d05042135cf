"""One table of behaviours that every Cluster shows, whoever stands behind it.

Today the embedded cluster; a real API server is held to the same table.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Final

import pytest

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
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
from jackfield.model.names import Key, ModelName, NodeName, Seconds, Time, Version, named
from jackfield.model.pod import Container, Pod, PodSpec
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import Apply, Change, Changed, Cluster, Conflict, Deleted, Gone, Merge, Refused, Synced

ANY: Final = Version("")
PATIENCE_SECONDS: Final = 10.0
DRIVER: Final = "gpu.example.com"
CLAIM: Final = Key("default", "c")
R: Final = named("r")


def resource(name: str = "r", *finalizers: str) -> ComposableResource:
    return ComposableResource(
        metadata=ObjectMeta(name=name, finalizers=finalizers),
        spec=ComposableResourceSpec(type="gpu", model=ModelName("A100"), target_node=NodeName("n")),
    )


def claim() -> ResourceClaim:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu", count=2))
    return ResourceClaim(
        metadata=ObjectMeta(name=CLAIM.name, namespace=CLAIM.namespace),
        spec=ResourceClaimSpec(devices=DeviceClaim(requests=(request,))),
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


def _short(change: Change) -> str:
    match change:
        case Changed(object=one):
            return f"+{one.metadata.name}"
        case Deleted(object=one):
            return f"-{one.metadata.name}"
        case Synced(keys=keys):
            return f"={','.join(sorted(key.name for key in keys))}"


# --- reading and creating


async def what_was_created_is_read_with_uid_and_version(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    assert created.uid
    assert version(created)
    assert created.metadata.creation_timestamp
    assert created.metadata.generation == 1
    assert await cluster.read(ComposableResource, R) == created


async def a_name_that_is_taken_is_a_conflict(cluster: Cluster) -> None:
    await cluster.create(resource())
    with pytest.raises(Conflict):
        await cluster.create(resource())


async def what_is_not_there_is_gone(cluster: Cluster) -> None:
    with pytest.raises(Gone):
        await cluster.read(ComposableResource, R)
    with pytest.raises(Gone):
        await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"model": "B"}}))
    with pytest.raises(Gone):
        await cluster.write(Apply(ComposableResource, R, ANY, state(ResourceState.ONLINE), "me", status=True))
    with pytest.raises(Gone):
        await cluster.delete(ComposableResource, R, ANY)


async def what_is_invalid_is_refused(cluster: Cluster) -> None:
    pool = ResourcePool(name="p", resource_slice_count=0)
    bad = ResourceSlice(
        metadata=ObjectMeta(name="s"), spec=ResourceSliceSpec(driver=DRIVER, pool=pool, all_nodes=True)
    )
    with pytest.raises(Refused, match=r"spec\.pool\.resourceSliceCount"):
        await cluster.create(bad)
    await cluster.create(resource())
    with pytest.raises(Refused, match=r"spec\.type"):
        await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"type": None}}))


async def a_beginning_of_a_name_becomes_a_name(cluster: Cluster) -> None:
    made = claim()
    metadata = ObjectMeta(generate_name="pod-gpu-", namespace="default")
    one = await cluster.create(ResourceClaim(metadata=metadata, spec=made.spec))
    two = await cluster.create(ResourceClaim(metadata=metadata, spec=made.spec))
    assert one.metadata.name.startswith("pod-gpu-")
    assert one.key != two.key


async def defaults_are_filled_in(cluster: Cluster) -> None:
    pod = Pod(
        metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(containers=(Container("c", "i"),))
    )
    created = await cluster.create(pod)
    assert created.status.phase == "Pending"
    assert created.spec.scheduler_name == "default-scheduler"


# --- changing


async def a_change_on_another_version_is_a_conflict(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    await cluster.write(Merge(ComposableResource, R, version(created), {"spec": {"model": "B"}}))
    with pytest.raises(Conflict):
        await cluster.write(Merge(ComposableResource, R, version(created), {"spec": {"model": "C"}}))
    with pytest.raises(Conflict):
        await cluster.write(
            Apply(ComposableResource, R, version(created), state(ResourceState.ONLINE), "me", status=True)
        )
    with pytest.raises(Conflict):
        await cluster.delete(ComposableResource, R, version(created))
    assert (await cluster.read(ComposableResource, R)).spec.model == "B"


async def a_change_of_another_uid_is_a_conflict(cluster: Cluster) -> None:
    await cluster.create(resource())
    body = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "spec": {"model": "B"}}
    with pytest.raises(Conflict):
        await cluster.write(Merge(ComposableResource, R, ANY, body))


async def a_change_that_changes_nothing_keeps_the_version(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    same = await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"model": "A100"}}))
    assert version(same) == version(created)


async def the_answer_is_the_object_as_it_is_now(cluster: Cluster) -> None:
    await cluster.create(resource())
    answer = await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"annotations": {"a": "b"}}}))
    assert answer == await cluster.read(ComposableResource, R)
    assert answer.metadata.annotations == {"a": "b"}


async def status_and_the_rest_are_written_apart(cluster: Cluster) -> None:
    await cluster.create(resource())
    both = {"spec": {"model": "B"}, **state(ResourceState.ATTACHING)}
    plain = await cluster.write(Merge(ComposableResource, R, ANY, both))
    assert isinstance(plain, ComposableResource)
    assert (plain.spec.model, plain.state, plain.metadata.generation) == ("B", ResourceState.NEW, 2)
    both = {"spec": {"model": "C"}, **state(ResourceState.ATTACHING)}
    status = await cluster.write(Merge(ComposableResource, R, ANY, both, status=True))
    assert isinstance(status, ComposableResource)
    assert (status.spec.model, status.state, status.metadata.generation) == ("B", ResourceState.ATTACHING, 2)


async def null_takes_a_field_away(cluster: Cluster) -> None:
    await cluster.create(resource())
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": "1", "b": "2"}}}))
    left = await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": None}}}))
    assert left.metadata.labels == {"b": "2"}


# --- claims


async def what_a_claim_asks_for_never_changes(cluster: Cluster) -> None:
    await cluster.create(claim())
    with pytest.raises(Refused):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"spec": {"devices": {"requests": []}}}))


async def an_allocation_is_written_once(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    with pytest.raises(Refused):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, allocation("d1"), status=True))


async def nobody_speaks_of_a_device_that_is_not_allocated(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    with pytest.raises(Refused, match="must be an allocated device"):
        await cluster.write(Apply(ResourceClaim, CLAIM, ANY, ready("d1"), "d1", status=True))


async def nobody_reserves_what_is_not_allocated(cluster: Cluster) -> None:
    await cluster.create(claim())
    body = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    with pytest.raises(Refused):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body, status=True))


async def one_manager_per_device_wipes_no_other_entry(cluster: Cluster) -> None:
    await allocated(cluster, "d0", "d1")
    for device in ("d0", "d1"):
        await cluster.write(Apply(ResourceClaim, CLAIM, ANY, ready(device, "False"), device, status=True))
    both = await cluster.write(Apply(ResourceClaim, CLAIM, ANY, ready("d0"), "d0", status=True))
    assert isinstance(both, ResourceClaim)
    assert [(one.device, one.conditions[0].status) for one in both.status.devices] == [
        ("d0", "True"),
        ("d1", "False"),
    ]
    one = await cluster.write(Apply(ResourceClaim, CLAIM, ANY, {"status": {}}, "d0", status=True))
    assert isinstance(one, ResourceClaim)
    assert [entry.device for entry in one.status.devices] == ["d1"]


async def the_same_apply_twice_keeps_the_version(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    apply = Apply(ResourceClaim, CLAIM, ANY, ready("d0"), "d0", status=True)
    assert version(await cluster.write(apply)) == version(await cluster.write(apply))


async def what_was_said_of_a_device_goes_with_its_allocation(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    await cluster.write(Apply(ResourceClaim, CLAIM, ANY, ready("d0"), "d0", status=True))
    cleared = {"status": {"allocation": None}}
    freed = await cluster.write(Merge(ResourceClaim, CLAIM, ANY, cleared, status=True))
    assert isinstance(freed, ResourceClaim)
    assert freed.status.devices == ()
    again = await cluster.write(Merge(ResourceClaim, CLAIM, ANY, allocation("d0"), status=True))
    assert isinstance(again, ResourceClaim)
    assert again.status.devices == ()


# --- deleting


async def deletion_waits_for_the_last_finalizer(cluster: Cluster) -> None:
    await cluster.create(resource("r", "example.com/one", "example.com/two"))
    await cluster.delete(ComposableResource, R, ANY)
    assert (await cluster.read(ComposableResource, R)).deleting
    await cluster.delete(ComposableResource, R, ANY)
    body = {"metadata": {"finalizers": ["example.com/one", "example.com/three"]}}
    with pytest.raises(Refused):
        await cluster.write(Merge(ComposableResource, R, ANY, body))
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"finalizers": ["example.com/two"]}}))
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"finalizers": None}}))
    with pytest.raises(Gone):
        await cluster.read(ComposableResource, R)


async def a_name_is_free_again_for_another_object(cluster: Cluster) -> None:
    first = await cluster.create(resource())
    await cluster.delete(ComposableResource, R, version(first))
    second = await cluster.create(resource())
    assert first.uid != second.uid


# --- watching


async def a_watch_tells_what_is_there_then_that_it_did_then_the_news(cluster: Cluster) -> None:
    await cluster.create(resource("a"))
    await cluster.create(resource("b"))
    changes = cluster.watch(ComposableResource)
    assert sorted(await taken(changes, 2)) == ["+a", "+b"]
    assert await taken(changes, 1) == ["=a,b"]
    await cluster.create(resource("c"))
    await cluster.write(Merge(ComposableResource, named("a"), ANY, state(ResourceState.ONLINE), status=True))
    await cluster.delete(ComposableResource, named("b"), ANY)
    assert await taken(changes, 3) == ["+c", "+a", "-b"]


async def a_watch_of_nothing_says_so(cluster: Cluster) -> None:
    assert await taken(cluster.watch(ComposableResource), 1) == ["="]


async def a_watch_tells_only_of_its_kind(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    await cluster.create(claim())
    await cluster.create(resource())
    assert await taken(changes, 1) == ["+r"]


async def every_version_is_told_in_order(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    await cluster.create(resource())
    for model in ("B", "C", "D"):
        await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"model": model}}))
    told = [await anext(changes) for _ in range(4)]
    objects = [one.object for one in told if isinstance(one, Changed)]
    models = [one.spec.model for one in objects if isinstance(one, ComposableResource)]
    assert models == ["A100", "B", "C", "D"]
    versions = [int(version(one)) for one in objects]
    assert versions == sorted(set(versions))


async def a_deletion_has_a_version_of_its_own(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    created = await cluster.create(resource())
    await cluster.delete(ComposableResource, R, ANY)
    await anext(changes)
    gone = await anext(changes)
    assert isinstance(gone, Deleted)
    assert gone.object.uid == created.uid
    assert int(version(gone.object)) > int(version(created))


async def news_comes_to_who_waits_for_it(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    waiting = asyncio.ensure_future(taken(changes, 1))
    await asyncio.wait([waiting], timeout=0.01)
    assert not waiting.done()
    await cluster.create(resource())
    assert await waiting == ["+r"]


BEHAVIOURS: Final[tuple[Callable[[Cluster], Coroutine[object, object, None]], ...]] = (
    what_was_created_is_read_with_uid_and_version,
    a_name_that_is_taken_is_a_conflict,
    what_is_not_there_is_gone,
    what_is_invalid_is_refused,
    a_beginning_of_a_name_becomes_a_name,
    defaults_are_filled_in,
    a_change_on_another_version_is_a_conflict,
    a_change_of_another_uid_is_a_conflict,
    a_change_that_changes_nothing_keeps_the_version,
    the_answer_is_the_object_as_it_is_now,
    status_and_the_rest_are_written_apart,
    null_takes_a_field_away,
    what_a_claim_asks_for_never_changes,
    an_allocation_is_written_once,
    nobody_speaks_of_a_device_that_is_not_allocated,
    nobody_reserves_what_is_not_allocated,
    one_manager_per_device_wipes_no_other_entry,
    the_same_apply_twice_keeps_the_version,
    what_was_said_of_a_device_goes_with_its_allocation,
    deletion_waits_for_the_last_finalizer,
    a_name_is_free_again_for_another_object,
    a_watch_tells_what_is_there_then_that_it_did_then_the_news,
    a_watch_of_nothing_says_so,
    a_watch_tells_only_of_its_kind,
    every_version_is_told_in_order,
    a_deletion_has_a_version_of_its_own,
    news_comes_to_who_waits_for_it,
)


def embedded() -> Cluster:
    return EmbeddedCluster(Store(lambda: Seconds(1.7e9), random.Random("cluster")))  # noqa: S311 - no cryptography


CLUSTERS: Final[Mapping[str, Callable[[], Cluster]]] = {"embedded": embedded}


@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_cluster_behaves_so(
    cluster: str, behaviour: Callable[[Cluster], Coroutine[object, object, None]]
) -> None:
    asyncio.run(asyncio.wait_for(behaviour(CLUSTERS[cluster]()), PATIENCE_SECONDS))
