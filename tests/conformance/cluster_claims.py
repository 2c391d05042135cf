"""What every Cluster knows of claims and slices, and who may write what on them."""

from typing import Final

import pytest
from msgspec import structs

from conformance.cluster_objects import (
    ANY,
    CLAIM,
    DRIVER,
    Behaviour,
    allocated,
    allocation,
    claim,
    ready,
    slice_of,
    version,
)
from jackfield.model.claim import (
    ResourceClaim,
)
from jackfield.model.slice import ResourceSlice
from jackfield.ports import Apply, Cluster, Conflict, Merge, Refused

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


async def what_a_slice_is_of_never_changes(cluster: Cluster) -> None:
    created = await cluster.create(slice_of())
    for spec in ({"driver": "other.example.com"}, {"pool": {"name": "other"}}, {"nodeName": "other"}):
        with pytest.raises(Refused):
            await cluster.write(Merge(ResourceSlice, created.key, ANY, {"spec": spec}))
    with pytest.raises(Refused):
        await cluster.write(
            Merge(ResourceSlice, created.key, ANY, {"spec": {"nodeName": None, "allNodes": True}})
        )
    devices = {"spec": {"devices": [{"name": "d0"}], "pool": {"generation": 1}}}
    changed = await cluster.write(Merge(ResourceSlice, created.key, ANY, devices))
    assert isinstance(changed, ResourceSlice)
    assert (len(changed.spec.devices), changed.metadata.generation) == (1, 2)


async def a_slice_is_somewhere_and_in_one_place(cluster: Cluster) -> None:
    nowhere = structs.replace(slice_of().spec, node_name=None)
    everywhere = structs.replace(slice_of().spec, all_nodes=True)
    for bad in (nowhere, everywhere):
        with pytest.raises(Refused):
            await cluster.create(structs.replace(slice_of(), spec=bad))


async def conditions_of_a_device_are_whole(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    good = {
        "type": "Ready",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for wrong in ({"reason": ""}, {"status": "Maybe"}, {"lastTransitionTime": None}, {"type": "no type"}):
        entry = {"driver": DRIVER, "pool": "p", "device": "d0", "conditions": [{**good, **wrong}]}
        with pytest.raises(Refused):
            await cluster.write(
                Merge(ResourceClaim, CLAIM, ANY, {"status": {"devices": [entry]}}, status=True)
            )
    many = [{**good, "type": f"Type{number}"} for number in range(9)]
    entry = {"driver": DRIVER, "pool": "p", "device": "d0", "conditions": many}
    with pytest.raises(Refused, match="8"):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"status": {"devices": [entry]}}, status=True))


async def a_device_is_spoken_of_once(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    entry = {"driver": DRIVER, "pool": "p", "device": "d0"}
    body = {"status": {"devices": [entry, entry]}}
    with pytest.raises(Refused, match="Duplicate"):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body, status=True))


async def an_allocation_is_for_what_was_asked(cluster: Cluster) -> None:
    await cluster.create(claim())
    for wrong in ({"request": "other"}, {"driver": "Upper Case"}, {"pool": ""}, {"device": ""}):
        result = {"request": "gpu", "driver": DRIVER, "pool": "p", "device": "d0", **wrong}
        body = {"status": {"allocation": {"devices": {"results": [result]}}}}
        with pytest.raises(Refused):
            await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body, status=True))


async def a_claim_is_reserved_for_each_once(cluster: Cluster) -> None:
    await allocated(cluster, "d0")
    one = {"resource": "pods", "name": "p", "uid": "u"}
    for wrong in ([one, one], [{**one, "resource": ""}], [{**one, "uid": ""}], [{**one, "name": ""}]):
        with pytest.raises(Refused):
            await cluster.write(
                Merge(ResourceClaim, CLAIM, ANY, {"status": {"reservedFor": wrong}}, status=True)
            )
    many = [{"resource": "pods", "name": f"p{number}", "uid": f"u{number}"} for number in range(257)]
    with pytest.raises(Refused, match="256"):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"status": {"reservedFor": many}}, status=True))


async def a_claim_that_goes_is_reserved_no_more(cluster: Cluster) -> None:
    await cluster.create(claim(CLAIM.name, "example.com/keep"))
    await cluster.write(Merge(ResourceClaim, CLAIM, ANY, allocation("d0"), status=True))
    await cluster.delete(ResourceClaim, CLAIM, ANY)
    body = {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}
    with pytest.raises(Refused):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body, status=True))
    await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"metadata": {"finalizers": None}}))


async def what_is_asked_for_is_checked(cluster: Cluster) -> None:
    good = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    for wrong in (
        [{"name": "gpu"}],
        [{"name": "Not A Label", "exactly": {"deviceClassName": "gpu"}}],
        [{"name": "gpu", "exactly": {"deviceClassName": ""}}],
        [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": -1}}],
        [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}}],
        [good, good],
        [{**good, "name": f"r{number}"} for number in range(33)],
    ):
        body = {"spec": {"devices": {"requests": wrong}}}
        with pytest.raises(Refused, match=r"spec\.devices\.requests"):
            await cluster.write(Apply(ResourceClaim, CLAIM, ANY, body, "me"))


async def a_status_is_applied_on_the_version_that_was_seen(cluster: Cluster) -> None:
    seen = await allocated(cluster, "d0")
    await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"metadata": {"labels": {"a": "b"}}}))
    with pytest.raises(Conflict):
        await cluster.write(Apply(ResourceClaim, CLAIM, version(seen), ready("d0"), "d0", status=True))
    now = await cluster.read(ResourceClaim, CLAIM)
    done = await cluster.write(Apply(ResourceClaim, CLAIM, version(now), ready("d0"), "d0", status=True))
    assert isinstance(done, ResourceClaim)
    assert [one.device for one in done.status.devices] == ["d0"]


async def a_status_says_nothing_about_the_rest(cluster: Cluster) -> None:
    await cluster.create(claim())
    body = {"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/x"]}, **allocation("d0")}
    after = await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body, status=True))
    assert isinstance(after, ResourceClaim)
    assert (after.status.allocation is None, after.metadata.finalizers) == (False, ())


BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    what_a_claim_asks_for_never_changes,
    an_allocation_is_written_once,
    nobody_speaks_of_a_device_that_is_not_allocated,
    nobody_reserves_what_is_not_allocated,
    one_manager_per_device_wipes_no_other_entry,
    the_same_apply_twice_keeps_the_version,
    what_was_said_of_a_device_goes_with_its_allocation,
    what_a_slice_is_of_never_changes,
    a_slice_is_somewhere_and_in_one_place,
    conditions_of_a_device_are_whole,
    a_device_is_spoken_of_once,
    an_allocation_is_for_what_was_asked,
    a_claim_is_reserved_for_each_once,
    a_claim_that_goes_is_reserved_no_more,
    what_is_asked_for_is_checked,
    a_status_is_applied_on_the_version_that_was_seen,
    a_status_says_nothing_about_the_rest,
)
