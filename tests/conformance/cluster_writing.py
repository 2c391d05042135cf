"""How every Cluster creates, changes and deletes objects."""

import asyncio
from typing import Final

import pytest
from msgspec import structs

from conformance.cluster_objects import (
    ANY,
    CLAIM,
    Behaviour,
    R,
    claim,
    pod,
    resource,
    slice_of,
    state,
    taken,
    version,
)
from jackfield.cli.clock import WallClock
from jackfield.controllers.events import Teller
from jackfield.model.claim import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.composition import (
    ComposableResource,
    ComposableResourceStatus,
    ResourceState,
)
from jackfield.model.event import Event
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.ports import (
    Apply,
    Changed,
    Cluster,
    Conflict,
    Gone,
    Merge,
    Refused,
    Retry,
    Selection,
)

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
        await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"force_detach": True}}))
    with pytest.raises(Gone):
        await cluster.write(Apply(ComposableResource, R, ANY, state(ResourceState.ONLINE), "me", status=True))
    with pytest.raises(Gone):
        await cluster.delete(ComposableResource, R, ANY)


async def what_is_invalid_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Refused, match=r"spec\.pool\.resourceSliceCount"):
        await cluster.create(slice_of(count=0))
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
    created = await cluster.create(pod())
    assert created.status.phase == "Pending"
    assert created.spec.scheduler_name == "default-scheduler"


# --- changing


async def a_change_on_another_version_is_a_conflict(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    await cluster.write(Merge(ComposableResource, R, version(created), {"spec": {"force_detach": True}}))
    with pytest.raises(Conflict):
        await cluster.write(Merge(ComposableResource, R, version(created), {"spec": {"force_detach": False}}))
    with pytest.raises(Conflict):
        await cluster.write(
            Apply(ComposableResource, R, version(created), state(ResourceState.ONLINE), "me", status=True)
        )
    with pytest.raises(Conflict):
        await cluster.delete(ComposableResource, R, version(created))
    assert (await cluster.read(ComposableResource, R)).spec.force_detach


async def a_change_of_another_uid_is_refused(cluster: Cluster) -> None:
    body = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000", "labels": {"a": "b"}}}
    await cluster.create(resource())
    with pytest.raises(Refused, match=r"metadata\.uid"):
        await cluster.write(Merge(ComposableResource, R, ANY, body))
    await cluster.create(claim())
    with pytest.raises(Refused, match=r"metadata\.uid"):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, body))
    with pytest.raises(Refused, match=r"metadata\.uid"):
        await cluster.write(Apply(ResourceClaim, CLAIM, ANY, body, "me"))


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
    both = {"spec": {"force_detach": True}, **state(ResourceState.ATTACHING)}
    plain = await cluster.write(Merge(ComposableResource, R, ANY, both))
    assert isinstance(plain, ComposableResource)
    assert (plain.spec.force_detach, plain.state, plain.metadata.generation) == (True, ResourceState.NEW, 2)
    both = {"spec": {"force_detach": False}, **state(ResourceState.ATTACHING)}
    status = await cluster.write(Merge(ComposableResource, R, ANY, both, status=True))
    assert isinstance(status, ComposableResource)
    assert (status.spec.force_detach, status.state) == (True, ResourceState.ATTACHING)
    assert status.metadata.generation == 2


async def null_takes_a_field_away(cluster: Cluster) -> None:
    await cluster.create(resource())
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": "1", "b": "2"}}}))
    left = await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": None}}}))
    assert left.metadata.labels == {"b": "2"}


async def null_for_what_is_not_there_changes_nothing(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    body = {"metadata": {"labels": {"a": None}, "annotations": None}, "spec": {"force_detach": None}}
    assert version(await cluster.write(Merge(ComposableResource, R, ANY, body))) == version(created)


async def lists_are_replaced_as_a_whole(cluster: Cluster) -> None:
    await cluster.create(resource("r", "example.com/one", "example.com/two"))
    body = {"metadata": {"finalizers": ["example.com/three"]}}
    assert (await cluster.write(Merge(ComposableResource, R, ANY, body))).metadata.finalizers == (
        "example.com/three",
    )
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"finalizers": None}}))


async def fields_nobody_knows_are_dropped(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    body: dict[str, object] = {"spec": {"nonsense": 1}, "nonsense": {"a": 1}}
    assert version(await cluster.write(Merge(ComposableResource, R, ANY, body))) == version(created)
    body = {"status": {"state": "Attaching", "nonsense": 1}}
    shown = await cluster.write(Merge(ComposableResource, R, ANY, body, status=True))
    body = {"status": {"nonsense": 2}}
    assert version(await cluster.write(Merge(ComposableResource, R, ANY, body, status=True))) == version(
        shown
    )


async def what_a_resource_is_never_changes(cluster: Cluster) -> None:
    await cluster.create(resource())
    for spec in ({"type": "cxlmemory"}, {"model": "B"}, {"target_node": "other"}):
        with pytest.raises(Refused, match="never changes"):
            await cluster.write(Merge(ComposableResource, R, ANY, {"spec": spec}))


async def a_resource_never_goes_back(cluster: Cluster) -> None:
    await cluster.create(resource())
    for now in (ResourceState.ATTACHING, ResourceState.ONLINE, ResourceState.DETACHING):
        await cluster.write(Merge(ComposableResource, R, ANY, state(now), status=True))
    for earlier in (ResourceState.ATTACHING, ResourceState.ONLINE):
        with pytest.raises(Refused, match="never goes back"):
            await cluster.write(Merge(ComposableResource, R, ANY, state(earlier), status=True))


async def what_the_server_writes_cannot_be_written(cluster: Cluster) -> None:
    created = await cluster.create(resource())
    body: dict[str, object] = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 99}}
    after = await cluster.write(Merge(ComposableResource, R, ANY, body))
    assert after.metadata.generation == 1
    assert after.metadata.creation_timestamp == created.metadata.creation_timestamp
    assert version(after) == version(created)
    for name, value in (("name", "other"), ("deletionTimestamp", "2001-01-01T00:00:00Z")):
        with pytest.raises(Refused):
            await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {name: value}}))
    await cluster.create(claim())
    with pytest.raises(Refused):
        await cluster.write(Merge(ResourceClaim, CLAIM, ANY, {"metadata": {"namespace": "other"}}))


async def only_a_change_of_what_is_asked_counts_as_a_generation(cluster: Cluster) -> None:
    await cluster.create(resource())
    labelled = await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": "b"}}}))
    assert labelled.metadata.generation == 1
    asked = await cluster.write(Merge(ComposableResource, R, ANY, {"spec": {"force_detach": True}}))
    assert asked.metadata.generation == 2


async def a_status_is_not_created(cluster: Cluster) -> None:
    new = structs.replace(resource(), status=ComposableResourceStatus(state=ResourceState.ONLINE))
    assert (await cluster.create(new)).state is ResourceState.NEW
    asked = structs.replace(claim(), status=ResourceClaimStatus(allocation=AllocationResult()))
    assert (await cluster.create(asked)).status == ResourceClaimStatus()


async def a_new_object_has_no_version(cluster: Cluster) -> None:
    new = structs.replace(resource(), metadata=ObjectMeta(name="r", resource_version=Version("7")))
    with pytest.raises(Retry):  # the server takes it for a mistake of its own
        await cluster.create(new)


async def names_and_labels_must_be_valid(cluster: Cluster) -> None:
    for bad in (ObjectMeta(name="Upper"), ObjectMeta(name="x" * 254), ObjectMeta(name="-r"), ObjectMeta()):
        with pytest.raises(Refused):
            await cluster.create(structs.replace(resource(), metadata=bad))
    for labels in ({"a b": "c"}, {"a": "b c"}, {"a": "x" * 64}, {"Upper.Case/a": "b"}, {"/": "c"}):
        with pytest.raises(Refused, match=r"metadata\.labels"):
            await cluster.create(structs.replace(resource(), metadata=ObjectMeta(name="r", labels=labels)))
    notes = {"a": "x" * (256 * 1024)}
    with pytest.raises(Refused, match=r"metadata\.annotations"):
        await cluster.create(structs.replace(resource(), metadata=ObjectMeta(name="r", annotations=notes)))
    with pytest.raises(Refused, match=r"metadata\.finalizers"):
        await cluster.create(resource("r", "no name"))


# --- applying


def labelled(**labels: str | None) -> dict[str, object]:
    return {"metadata": {"labels": labels}}


async def what_is_applied_and_not_there_is_created(cluster: Cluster) -> None:
    body = {"spec": {"type": "gpu", "model": "A100", "target_node": "n"}}
    made = await cluster.write(Apply(ComposableResource, R, ANY, body, "me"))
    assert made == await cluster.read(ComposableResource, R)
    # A version guards against changes, not against there being nothing that could have changed.
    other = await cluster.write(Apply(ComposableResource, named("other"), version(made), body, "me"))
    assert other.uid != made.uid
    uid = {"metadata": {"uid": made.uid}, **body}
    with pytest.raises(Conflict):
        await cluster.write(Apply(ComposableResource, named("another"), ANY, uid, "me"))


async def a_manager_takes_away_what_it_no_longer_applies(cluster: Cluster) -> None:
    await cluster.create(resource())
    await cluster.write(Apply(ComposableResource, R, ANY, labelled(a="1", b="1"), "one"))
    await cluster.write(Apply(ComposableResource, R, ANY, labelled(c="1"), "two"))
    left = await cluster.write(Apply(ComposableResource, R, ANY, labelled(b="1"), "one"))
    assert left.metadata.labels == {"b": "1", "c": "1"}


async def what_another_manager_owns_is_taken_over(cluster: Cluster) -> None:
    await cluster.create(resource())
    await cluster.write(Apply(ComposableResource, R, ANY, labelled(a="1"), "one"))
    taken_over = await cluster.write(Apply(ComposableResource, R, ANY, labelled(a="2"), "two"))
    assert taken_over.metadata.labels == {"a": "2"}
    left = await cluster.write(Apply(ComposableResource, R, ANY, {}, "one"))
    assert left.metadata.labels == {"a": "2"}
    gone = await cluster.write(Apply(ComposableResource, R, ANY, {}, "two"))
    assert gone.metadata.labels == {}


async def what_two_managers_apply_stays_until_neither_does(cluster: Cluster) -> None:
    await cluster.create(resource())
    for manager in ("one", "two"):
        await cluster.write(Apply(ComposableResource, R, ANY, labelled(a="1"), manager))
    left = await cluster.write(Apply(ComposableResource, R, ANY, {}, "one"))
    assert left.metadata.labels == {"a": "1"}
    gone = await cluster.write(Apply(ComposableResource, R, ANY, {}, "two"))
    assert gone.metadata.labels == {}


async def what_a_patch_changed_is_no_longer_the_appliers(cluster: Cluster) -> None:
    await cluster.create(resource())
    await cluster.write(Apply(ComposableResource, R, ANY, labelled(a="1"), "one"))
    await cluster.write(Merge(ComposableResource, R, ANY, labelled(a="2")))
    left = await cluster.write(Apply(ComposableResource, R, ANY, {}, "one"))
    assert left.metadata.labels == {"a": "2"}


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


async def what_is_being_deleted_stays_so(cluster: Cluster) -> None:
    await cluster.create(resource("r", "example.com/one"))
    await cluster.delete(ComposableResource, R, ANY)
    first = await cluster.read(ComposableResource, R)
    body = {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}}
    after = await cluster.write(Merge(ComposableResource, R, ANY, body))
    assert after.metadata.deletion_timestamp == first.metadata.deletion_timestamp
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"finalizers": []}}))
    with pytest.raises(Gone):
        await cluster.read(ComposableResource, R)


async def the_version_of_a_namesake_is_a_conflict(cluster: Cluster) -> None:
    first = await cluster.create(resource())
    await cluster.delete(ComposableResource, R, version(first))
    await cluster.create(resource())
    with pytest.raises(Conflict):
        await cluster.delete(ComposableResource, R, version(first))
    with pytest.raises(Conflict):
        await cluster.write(Merge(ComposableResource, R, version(first), {"spec": {"force_detach": True}}))


async def a_pod_that_runs_nowhere_goes_at_once(cluster: Cluster) -> None:
    created = await cluster.create(pod())
    await cluster.delete(Pod, created.key, ANY)
    with pytest.raises(Gone):
        await cluster.read(Pod, created.key)


# --- telling


async def a_user_is_told_whatever_the_object_is_called(cluster: Cluster) -> None:
    about = (
        structs.replace(claim(), metadata=ObjectMeta(name=f"{'x' * 240}-{'y' * 12}", namespace="default")),
        Node(metadata=ObjectMeta(name="n", uid=Uid("u"))),
        resource(),
    )
    teller = Teller(cluster, WallClock())
    async with asyncio.TaskGroup() as group:
        task = group.create_task(teller.run())
        changes = cluster.watch(Event, Selection(fields={"reason": "TableOfBehaviours"}))
        assert await taken(changes, 1) == ["="]
        for one in about:
            teller.tell(one, Event(reason="TableOfBehaviours", message=f"about {type(one).__name__}"))
        heard = [await anext(changes) for _ in about]
        task.cancel()
    events = [one.object for one in heard if isinstance(one, Changed)]
    assert [one.message for one in events if isinstance(one, Event)] == [
        f"about {type(one).__name__}" for one in about
    ]
    for event in events:
        await cluster.delete(Event, event.key, version(event))


BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    what_a_resource_is_never_changes,
    a_resource_never_goes_back,
    what_was_created_is_read_with_uid_and_version,
    a_name_that_is_taken_is_a_conflict,
    what_is_not_there_is_gone,
    what_is_invalid_is_refused,
    a_beginning_of_a_name_becomes_a_name,
    defaults_are_filled_in,
    a_change_on_another_version_is_a_conflict,
    a_change_of_another_uid_is_refused,
    a_change_that_changes_nothing_keeps_the_version,
    the_answer_is_the_object_as_it_is_now,
    status_and_the_rest_are_written_apart,
    null_takes_a_field_away,
    null_for_what_is_not_there_changes_nothing,
    lists_are_replaced_as_a_whole,
    fields_nobody_knows_are_dropped,
    what_the_server_writes_cannot_be_written,
    only_a_change_of_what_is_asked_counts_as_a_generation,
    a_status_is_not_created,
    a_new_object_has_no_version,
    names_and_labels_must_be_valid,
    what_is_applied_and_not_there_is_created,
    a_manager_takes_away_what_it_no_longer_applies,
    what_another_manager_owns_is_taken_over,
    what_two_managers_apply_stays_until_neither_does,
    what_a_patch_changed_is_no_longer_the_appliers,
    deletion_waits_for_the_last_finalizer,
    a_name_is_free_again_for_another_object,
    what_is_being_deleted_stays_so,
    the_version_of_a_namesake_is_a_conflict,
    a_pod_that_runs_nowhere_goes_at_once,
    a_user_is_told_whatever_the_object_is_called,
)
