"""What the store tells those who watch it."""

import random

import pytest

from jackfield.cluster.admission import EVENT_SECONDS
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import Event
from jackfield.cluster.selectors import selector
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw
from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event as KubernetesEvent
from jackfield.model.names import Seconds, named
from jackfield.model.pod import Pod

RESOURCE = named("r")


def new_store(events_max: int = 100) -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("watch"), events_max=events_max)  # noqa: S311 - no cryptography


def pod_raw() -> Raw:
    return {
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def resource_raw(name: str = "r") -> Raw:
    return {"metadata": {"name": name}, "spec": {"type": "gpu", "model": "A100", "target_node": "n"}}


def test_events_since_a_version_are_told_in_order() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw("a"))
    store.create(Pod, pod_raw())
    store.create(ComposableResource, resource_raw("b"))
    store.patch(ComposableResource, named("a"), {"spec": {"force_detach": True}})
    store.delete(ComposableResource, named("b"))
    told = [(one.type.value, one.version, one.stored.key.name) for one in store.since(ComposableResource, 1)]
    assert told == [("ADDED", 3, "b"), ("MODIFIED", 4, "a"), ("DELETED", 5, "b")]
    assert store.since(ComposableResource, 5) == ()


def test_a_watch_from_before_what_is_remembered_has_expired() -> None:
    store = new_store(events_max=2)
    for name in "abcd":
        store.create(ComposableResource, resource_raw(name))
    assert [one.version for one in store.since(ComposableResource, 2)] == [3, 4]
    with pytest.raises(ApiError) as caught:
        store.since(ComposableResource, 1)
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_a_listener_hears_of_its_kind_until_it_stops_listening() -> None:
    store = new_store()
    heard: list[Event] = []
    stop = store.subscribe(ComposableResource, heard.append)
    store.create(ComposableResource, resource_raw("a"))
    store.create(Pod, pod_raw())
    stop()
    store.create(ComposableResource, resource_raw("b"))
    assert [one.stored.key.name for one in heard] == ["a"]


def test_an_object_comes_and_goes_as_it_begins_and_ceases_to_match() -> None:
    store = new_store()
    wanted = selector("ComposableResource", labels="a=1")
    store.create(ComposableResource, resource_raw())
    for value in ("1", "1", "2", "1"):
        body = {"metadata": {"labels": {"a": value, "b": str(store.version)}}}
        store.patch(ComposableResource, RESOURCE, body)
    store.delete(ComposableResource, RESOURCE)
    seen = [one.seen_by(wanted) for one in store.since(ComposableResource, 0)]
    assert seen == [None, "ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


def test_a_bookmark_says_from_where_to_go_on() -> None:
    store = new_store()
    store.create(Pod, pod_raw())
    assert store.bookmark(ComposableResource) == {
        "apiVersion": "cro.hpsys.ibm.ie.com/v1alpha1",
        "kind": "ComposableResource",
        "metadata": {"resourceVersion": "1"},
    }


def test_a_restored_backup_is_all_there_is_versions_included() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw("kept"))
    store.create(ComposableResource, resource_raw("deleted"))
    backup = store.backup()
    heard: list[int] = []
    store.rewinds.append(lambda: heard.append(store.age))
    store.patch(ComposableResource, named("kept"), {"spec": {"force_detach": True}})
    store.delete(ComposableResource, named("deleted"))
    store.create(ComposableResource, resource_raw("new"))
    store.restore(backup)
    found = store.list(ComposableResource)
    assert [(one.key.name, one.version) for one in found.items] == [("deleted", 2), ("kept", 1)]
    assert "force_detach" not in found.items[1].raw["spec"]
    assert (found.version, heard, store.since(ComposableResource, 2)) == (2, [1], ())
    assert store.create(ComposableResource, resource_raw("next")).version == found.version + 1
    store.restore(backup)
    assert [one.key.name for one in store.list(ComposableResource).items] == ["deleted", "kept"]


def test_the_name_of_an_event_that_has_had_its_time_is_free() -> None:
    now = [1.7e9]
    store = Store(lambda: Seconds(now[0]), random.Random("events"))  # noqa: S311 - no cryptography
    raw: Raw = {
        "metadata": {"name": "e", "namespace": "d"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "d"},
    }
    first = store.create(KubernetesEvent, raw)
    with pytest.raises(ApiError):
        store.create(KubernetesEvent, raw)
    now[0] += EVENT_SECONDS + 1
    assert store.create(KubernetesEvent, raw).object.metadata.uid != first.object.metadata.uid


def test_a_listener_is_told_who_wrote() -> None:
    store = new_store()
    heard: list[Event] = []
    store.subscribe(ComposableResource, heard.append)
    store.create(ComposableResource, resource_raw("a"), Write("one"))
    store.patch(ComposableResource, named("a"), {"spec": {"force_detach": True}}, Write("another"))
    assert [event.by for event in heard] == ["one", "another"]
