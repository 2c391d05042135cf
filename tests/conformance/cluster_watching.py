"""What every Cluster tells those who watch."""

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
    state,
    taken,
    told,
    version,
)
from jackfield.model.claim import (
    ResourceClaim,
)
from jackfield.model.composition import (
    ComposableResource,
    ResourceState,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key, named
from jackfield.model.pod import Pod
from jackfield.ports import (
    Changed,
    Cluster,
    Deleted,
    Merge,
    Refused,
    Selection,
    Synced,
)

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
    for value in ("1", "2", "3"):
        await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"labels": {"a": value}}}))
    told = [await anext(changes) for _ in range(4)]
    objects = [one.object for one in told if isinstance(one, Changed)]
    assert [one.metadata.labels.get("a") for one in objects] == [None, "1", "2", "3"]
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


async def the_version_of_a_deletion_is_one_that_a_finalizer_left(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    await cluster.create(resource("r", "example.com/one"))
    await cluster.delete(ComposableResource, R, ANY)
    await cluster.write(Merge(ComposableResource, R, ANY, {"metadata": {"finalizers": None}}))
    heard = [await anext(changes) for _ in range(3)]
    assert [type(one) for one in heard] == [Changed, Changed, Deleted]
    versions = [int(version(one.object)) for one in heard if not isinstance(one, Synced)]
    assert versions == sorted(set(versions))


async def an_object_may_be_large(cluster: Cluster) -> None:
    changes = cluster.watch(ComposableResource)
    await taken(changes, 1)
    notes = {"example.com/large": "x" * 200_000}
    made = await cluster.create(structs.replace(resource(), metadata=ObjectMeta(name="r", annotations=notes)))
    heard = await anext(changes)
    assert isinstance(heard, Changed)
    assert heard.object == made


# --- selecting


async def a_selection_by_label_shows_comers_and_goers(cluster: Cluster) -> None:
    await cluster.create(
        structs.replace(resource("a"), metadata=ObjectMeta(name="a", labels={"x": "1", "y": "1"}))
    )
    await cluster.create(structs.replace(resource("b"), metadata=ObjectMeta(name="b", labels={"x": "1"})))
    changes = cluster.watch(ComposableResource, Selection(labels={"x": "1", "y": "1"}))
    assert await told(changes) == ["+a", "=a"]
    await cluster.write(Merge(ComposableResource, named("b"), ANY, {"metadata": {"labels": {"y": "1"}}}))
    await cluster.write(Merge(ComposableResource, named("b"), ANY, {"spec": {"force_detach": True}}))
    gone = await cluster.write(
        Merge(ComposableResource, named("a"), ANY, {"metadata": {"labels": {"y": "2"}}})
    )
    await cluster.write(Merge(ComposableResource, named("a"), ANY, {"spec": {"force_detach": True}}))
    await cluster.delete(ComposableResource, named("a"), ANY)
    assert await taken(changes, 2) == ["+b", "+b"]
    last = await anext(changes)
    assert isinstance(last, Deleted)
    assert last.object.metadata.labels == {"x": "1", "y": "1"}
    assert version(last.object) == version(gone)
    await cluster.delete(ComposableResource, named("b"), ANY)
    assert await taken(changes, 1) == ["-b"]


async def a_selection_by_namespace_shows_no_other(cluster: Cluster) -> None:
    await cluster.create(claim())
    await cluster.create(structs.replace(claim(), metadata=ObjectMeta(name="d", namespace="kube-system")))
    assert await told(cluster.watch(ResourceClaim)) == ["+c", "+d", "=c,d"]
    changes = cluster.watch(ResourceClaim, Selection(namespace="kube-system"))
    assert await told(changes) == ["+d", "=d"]
    await cluster.delete(ResourceClaim, CLAIM, ANY)
    await cluster.delete(ResourceClaim, Key("kube-system", "d"), ANY)
    assert await taken(changes, 1) == ["-d"]
    await cluster.create(resource())
    assert await told(cluster.watch(ComposableResource, Selection(namespace="default"))) == ["+r", "=r"]


async def a_selection_by_name_shows_one(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await cluster.create(resource(name))
    changes = cluster.watch(ComposableResource, Selection(fields={"metadata.name": "b"}))
    assert await told(changes) == ["+b", "=b"]
    for name in ("a", "b"):
        await cluster.write(Merge(ComposableResource, named(name), ANY, {"spec": {"force_detach": True}}))
    assert await taken(changes, 1) == ["+b"]


async def a_selection_by_node_shows_that_nodes(cluster: Cluster) -> None:
    for name, node in (("a", "n1"), ("b", "n2")):
        await cluster.create(resource(name, node=node))
        await cluster.create(pod(name, node))
    await cluster.create(pod("c"))
    here = cluster.watch(ComposableResource, Selection(fields={"spec.target_node": "n1"}))
    assert await told(here) == ["+a", "=a"]
    pods = cluster.watch(Pod, Selection("default", fields={"spec.nodeName": "n2"}))
    assert await told(pods) == ["+b", "=b"]
    await cluster.create(pod("d", "n1"))
    await cluster.create(pod("e", "n2"))
    assert await taken(pods, 1) == ["+e"]


async def not_every_field_can_be_selected_by(cluster: Cluster) -> None:
    for kind, field in (
        (ComposableResource, "spec.model"),
        (ResourceClaim, "spec.nodeName"),
        (Pod, "nonsense"),
    ):
        with pytest.raises(Refused):
            await anext(cluster.watch(kind, Selection(fields={field: "x"})))


BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    a_watch_tells_what_is_there_then_that_it_did_then_the_news,
    a_watch_of_nothing_says_so,
    a_watch_tells_only_of_its_kind,
    every_version_is_told_in_order,
    a_deletion_has_a_version_of_its_own,
    news_comes_to_who_waits_for_it,
    the_version_of_a_deletion_is_one_that_a_finalizer_left,
    an_object_may_be_large,
    a_selection_by_label_shows_comers_and_goers,
    a_selection_by_namespace_shows_no_other,
    a_selection_by_name_shows_one,
    a_selection_by_node_shows_that_nodes,
    not_every_field_can_be_selected_by,
)
