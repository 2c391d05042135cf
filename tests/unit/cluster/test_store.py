"""The store keeps the promises of a Kubernetes API server."""

import random
from collections.abc import Callable

import pytest

from jackfield import codec
from jackfield.cluster.deletion import Deletion
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import EventType
from jackfield.cluster.selectors import selector
from jackfield.cluster.store import Precondition, Store, Write
from jackfield.codec import Raw
from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event as EventObject
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice

NOW = Seconds(1_700_000_000.0)
STATUS = Write(status=True)


def new_store(events_max: int = 100) -> Store:
    return Store(lambda: NOW, random.Random("store"), events_max=events_max)  # noqa: S311 - no cryptography


def pod_raw(name: str = "p", **spec: object) -> Raw:
    return {
        "metadata": {"name": name, "namespace": "d"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def resource_raw(name: str = "r", **metadata: object) -> Raw:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {"type": "gpu", "model": "A100", "target_node": "n"},
    }


POD = Key("d", "p")
RESOURCE = named("r")


def refusal(call: Callable[[], object]) -> tuple[int, str, tuple[str, ...]]:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code, caught.value.reason, tuple(one.field for one in caught.value.causes)


# --- creating and reading


def test_the_server_gives_uid_time_version_and_defaults() -> None:
    store = new_store()
    stored = store.create(Pod, pod_raw())
    metadata = stored.raw["metadata"]
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert metadata["resourceVersion"] == "1"
    assert metadata["generation"] == 1
    assert len(metadata["uid"]) == 36
    assert stored.raw["spec"]["restartPolicy"] == "Always"
    assert stored.raw["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert stored.object.metadata.uid == metadata["uid"]
    assert store.get(Pod, POD) is stored


def test_what_the_server_gives_cannot_be_brought_along() -> None:
    store = new_store()
    brought: Raw = {
        "uid": "mine",
        "generation": 7,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "selfLink": "x",
    }
    metadata = store.create(ComposableResource, resource_raw(**brought)).raw["metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert "selfLink" not in metadata


def test_the_callers_object_stays_the_callers() -> None:
    store = new_store()
    raw = resource_raw()
    stored = store.create(ComposableResource, raw)
    raw["spec"]["model"] = "other"
    assert "uid" not in raw["metadata"]
    assert stored.raw["spec"]["model"] == "A100"


def test_a_generated_name_is_the_same_in_every_run_with_the_same_dice() -> None:
    def names() -> list[str]:
        store = new_store()
        raw = {"metadata": {"generateName": "gpu-"}, "spec": resource_raw()["spec"]}
        return [store.create(ComposableResource, raw).key.name for _ in range(3)]

    assert names() == names()
    assert len(set(names())) == 3
    assert all(name.startswith("gpu-") and len(name) == len("gpu-") + 5 for name in names())


class StuckDice(random.Random):
    """Dice that make every name twice: all of its letters are the same, and so is the next name."""

    thrown = 0

    def random(self) -> float:
        letter = self.thrown // 10
        self.thrown += 1
        return (letter + 0.5) / 27


def test_a_generated_name_is_never_one_that_is_taken_and_never_replaces_one_given() -> None:
    store = Store(lambda: NOW, StuckDice("stuck"))
    raw = {"metadata": {"generateName": "gpu-"}, "spec": resource_raw()["spec"]}
    assert [store.create(ComposableResource, raw).key.name for _ in range(3)] == [
        "gpu-bbbbb",
        "gpu-ccccc",
        "gpu-ddddd",
    ]
    given = store.create(ComposableResource, resource_raw("given", generateName="gpu-"))
    assert given.key.name == "given"


def test_one_version_counts_for_all_kinds_and_only_rises() -> None:
    store = new_store()
    versions = [
        store.create(Pod, pod_raw()).version,
        store.create(ComposableResource, resource_raw()).version,
        store.patch(Pod, POD, {"metadata": {"labels": {"a": "b"}}}).version,
        store.delete(ComposableResource, RESOURCE).version,
        store.delete(Pod, POD).version,
    ]
    assert versions == [1, 2, 3, 4, 6], "a pod is marked before it goes"
    assert store.version == 6


def test_status_is_not_taken_from_a_creation_but_from_a_nodes() -> None:
    store = new_store()
    assert (
        "status"
        not in store.create(ComposableResource, {**resource_raw(), "status": {"state": "Online"}}).raw
    )
    node = store.create(Node, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": 4}}})
    assert node.raw["status"]["capacity"] == node.raw["status"]["allocatable"] == {"cpu": "4"}


@pytest.mark.parametrize(
    ("kind", "raw", "expected"),
    [
        (
            Pod,
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            (422, "Invalid", ("metadata.namespace",)),
        ),
        (Node, {"metadata": {}}, (422, "Invalid", ("metadata.name",))),
        (Node, {"metadata": {"name": "N"}}, (422, "Invalid", ("metadata.name",))),
        (Node, {"metadata": {"name": "n", "labels": {"a b": "c"}}}, (422, "Invalid", ("metadata.labels",))),
        (Node, {"metadata": {"name": "n", "labels": {"a": "-"}}}, (422, "Invalid", ("metadata.labels",))),
        (
            Node,
            {"metadata": {"name": "n", "annotations": {"a": "x" * 300_000}}},
            (422, "Invalid", ("metadata.annotations",)),
        ),
        (
            Node,
            {"metadata": {"name": "n", "finalizers": ["no/good/one"]}},
            (422, "Invalid", ("metadata.finalizers",)),
        ),
        (
            Node,
            {
                "metadata": {
                    "name": "n",
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}],
                }
            },
            (422, "Invalid", ("metadata.ownerReferences.uid",)),
        ),
        (Node, {"metadata": {"name": "n", "resourceVersion": "1"}}, (500, "", ())),
        (Node, {"metadata": {"name": 7}}, (400, "BadRequest", ())),
        (Node, {"metadata": []}, (400, "BadRequest", ())),
        (Node, {"metadata": {"name": "n"}, "spec": "x"}, (400, "BadRequest", ())),
        (Node, {"metadata": {"name": "n"}, "spec": {"taints": [{"key": 1}]}}, (400, "BadRequest", ())),
        (
            ComposableResource,
            {"metadata": {"name": "r"}, "spec": {"type": 1}},
            (422, "Invalid", ("spec.type", "spec.model", "spec.target_node", "<nil>")),
        ),
    ],
)
def test_an_object_that_is_not_sound_is_refused(
    kind: type[Object], raw: Raw, expected: tuple[int, str, tuple[str, ...]]
) -> None:
    store = new_store()
    assert refusal(lambda: store.create(kind, raw)) == expected
    assert store.version == 0


def test_a_name_that_is_taken_is_refused_and_one_that_is_missing_not_found() -> None:
    store = new_store()
    store.create(Pod, pod_raw())
    assert refusal(lambda: store.create(Pod, pod_raw()))[:2] == (409, "AlreadyExists")
    missing = Key("other", "p")
    assert refusal(lambda: store.get(Pod, missing))[:2] == (404, "NotFound")
    assert refusal(lambda: store.patch(Pod, missing, {}))[:2] == (404, "NotFound")
    assert refusal(lambda: store.delete(Pod, missing))[:2] == (404, "NotFound")


def test_lists_are_by_namespace_and_selector_and_say_their_version() -> None:
    store = new_store()
    for name, node in (("a", "x"), ("b", "y"), ("c", "x")):
        store.create(Pod, pod_raw(name, nodeName=node))
    store.create(Pod, {**pod_raw(), "metadata": {"name": "d", "namespace": "other"}})
    assert [one.key.name for one in store.list(Pod, "d").items] == ["a", "b", "c"]
    chosen = store.list(Pod, selector=selector("Pod", fields="spec.nodeName=x"))
    assert [one.key.name for one in chosen.items] == ["a", "c"]
    assert chosen.version == 4


# --- changing


def test_a_write_on_another_version_or_uid_is_a_conflict() -> None:
    store = new_store()
    first = store.create(ComposableResource, resource_raw())
    store.patch(ComposableResource, RESOURCE, {"spec": {"force_detach": True}})
    stale = {"metadata": {"resourceVersion": str(first.version)}, "spec": {"force_detach": False}}
    assert refusal(lambda: store.patch(ComposableResource, RESOURCE, stale))[:2] == (409, "Conflict")
    assert refusal(lambda: store.update(ComposableResource, first.raw))[:2] == (409, "Conflict")
    assert store.get(ComposableResource, RESOURCE).raw["spec"]["force_detach"] is True
    now = store.get(ComposableResource, RESOURCE).raw
    other = {**now, "metadata": {**now["metadata"], "uid": "other"}}
    assert refusal(lambda: store.update(ComposableResource, other))[:2] == (409, "Conflict")
    spec = {**now["spec"], "force_detach": False}
    assert store.update(ComposableResource, {**now, "spec": spec}).version == 3


@pytest.mark.parametrize("name", ["uid", "deletionTimestamp"])
def test_what_the_server_decided_is_not_patched(name: str) -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw())
    body = {"metadata": {name: "2001-01-01T00:00:00Z"}}
    for call in (
        lambda: store.patch(ComposableResource, RESOURCE, body),
        lambda: store.apply(ComposableResource, RESOURCE, body, Write(manager="me")),
    ):
        code, reason, message = refusal(call)
        assert (code, reason) == (422, "Invalid")
        assert f"metadata.{name}" in message


@pytest.mark.parametrize("name", ["name", "namespace"])
def test_a_patch_for_another_object_makes_no_sense(name: str) -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw())
    body = {"metadata": {name: "other"}}
    assert refusal(lambda: store.patch(ComposableResource, RESOURCE, body))[0] == 400
    assert refusal(lambda: store.apply(ComposableResource, RESOURCE, body, Write(manager="me")))[0] == 400


def test_a_write_that_changes_nothing_is_no_version_and_no_event() -> None:
    store = new_store()
    stored = store.create(ComposableResource, resource_raw())
    assert store.patch(ComposableResource, RESOURCE, {"spec": {"model": "A100"}}) is stored
    assert store.update(ComposableResource, stored.raw) is stored
    assert store.since(ComposableResource, stored.version) == ()


def test_generation_counts_what_is_wanted_and_nothing_else() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw(finalizers=["a/b"]))

    def generation(body: Raw, write: Write) -> int:
        stored = store.patch(ComposableResource, RESOURCE, body, write)
        number: int = stored.raw["metadata"]["generation"]
        return number

    plain = Write()
    assert generation({"metadata": {"labels": {"a": "b"}}}, plain) == 1
    assert generation({"status": {"state": "Attaching"}}, STATUS) == 1
    assert generation({"spec": {"force_detach": True}}, plain) == 2
    assert generation({"metadata": {"generation": 9}, "spec": {"force_detach": False}}, plain) == 3
    assert store.delete(ComposableResource, RESOURCE).raw["metadata"]["generation"] == 4


def test_kinds_without_a_generation_never_get_one() -> None:
    store = new_store()
    store.create(Node, {"metadata": {"name": "n"}})
    changed = store.patch(Node, named("n"), {"spec": {"unschedulable": True}})
    assert "generation" not in changed.raw["metadata"]


def test_status_and_the_rest_are_written_apart() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw())
    both: Raw = {
        "spec": {"force_detach": True},
        "status": {"state": "Attaching"},
        "metadata": {"labels": {"a": "b"}},
    }
    plain = store.patch(ComposableResource, RESOURCE, both)
    assert plain.raw["spec"]["force_detach"] is True
    assert "status" not in plain.raw
    both["spec"]["force_detach"] = False
    both["metadata"]["labels"]["a"] = "c"
    status = store.patch(ComposableResource, RESOURCE, both, STATUS)
    assert status.raw["spec"]["force_detach"] is True
    assert status.raw["metadata"]["labels"] == {"a": "b"}
    assert status.raw["status"] == {"state": "Attaching"}


def test_a_kind_without_status_has_no_status_to_write() -> None:
    store = new_store()
    store.create(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}})
    assert refusal(lambda: store.patch(DeviceClass, named("gpu"), {"status": {}}, STATUS))[0] == 400


def test_a_merge_patch_replaces_lists_and_drops_what_is_null() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw(labels={"a": "1", "b": "2"}, finalizers=["a/b", "a/c"]))
    body = {"metadata": {"labels": {"a": None, "c": "3"}, "finalizers": ["a/d"]}}
    metadata = store.patch(ComposableResource, RESOURCE, body).raw["metadata"]
    assert metadata["labels"] == {"b": "2", "c": "3"}
    assert metadata["finalizers"] == ["a/d"]


def test_older_versions_stay_as_they_were() -> None:
    store = new_store()
    before = store.create(ComposableResource, resource_raw(labels={"a": "1"}))
    copy = codec.copied(before.raw)
    store.patch(
        ComposableResource, RESOURCE, {"metadata": {"labels": {"a": "2"}}, "spec": {"force_detach": True}}
    )
    store.patch(ComposableResource, RESOURCE, {"status": {"state": "Online"}}, STATUS)
    store.delete(ComposableResource, RESOURCE)
    assert before.raw == copy


def test_a_dry_run_says_what_would_be_and_does_nothing() -> None:
    store = new_store()
    dry = Write(dry_run=True)
    assert store.create(ComposableResource, resource_raw(), dry).raw["metadata"]["generation"] == 1
    assert store.list(ComposableResource).items == ()
    store.create(ComposableResource, resource_raw())
    assert store.patch(ComposableResource, RESOURCE, {"spec": {"force_detach": True}}, dry).raw["spec"][
        "force_detach"
    ]
    assert (
        refusal(lambda: store.patch(ComposableResource, RESOURCE, {"spec": {"type": "A B"}}, dry))[0] == 422
    )
    assert "force_detach" not in store.get(ComposableResource, RESOURCE).raw["spec"]
    assert store.version == 1


# --- deleting


def test_deletion_completes_when_the_last_finalizer_goes() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw(finalizers=["a/b", "a/c"]))
    marked = store.delete(ComposableResource, RESOURCE)
    assert marked.raw["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:20Z"
    assert marked.object.deleting
    assert store.delete(ComposableResource, RESOURCE) is marked
    store.patch(ComposableResource, RESOURCE, {"metadata": {"finalizers": ["a/c"]}})
    assert store.get(ComposableResource, RESOURCE).object.deleting
    last = store.patch(ComposableResource, RESOURCE, {"metadata": {"finalizers": []}})
    assert store.list(ComposableResource).items == ()
    event = store.since(ComposableResource, 0)[-1]
    assert (event.type, event.version) == (EventType.DELETED, last.version)


def test_no_finalizer_is_added_while_deleting_and_nobody_takes_the_deletion_back() -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw(finalizers=["a/b"]))
    store.delete(ComposableResource, RESOURCE)
    adding = {"metadata": {"finalizers": ["a/b", "a/c"]}}
    assert refusal(lambda: store.patch(ComposableResource, RESOURCE, adding)) == (
        422,
        "Invalid",
        ("metadata.finalizers",),
    )
    undone = store.patch(
        ComposableResource, RESOURCE, {"metadata": {"deletionTimestamp": None, "labels": {"a": "b"}}}
    )
    assert undone.object.deleting


@pytest.mark.parametrize("when", [Precondition(uid=Uid("other")), Precondition(version=Version("99"))])
def test_a_deletion_on_another_uid_or_version_is_a_conflict(when: Precondition) -> None:
    store = new_store()
    store.create(ComposableResource, resource_raw())
    assert refusal(lambda: store.delete(ComposableResource, RESOURCE, when))[:2] == (409, "Conflict")
    assert len(store.list(ComposableResource).items) == 1


def test_a_name_can_be_used_again_by_an_object_with_another_uid() -> None:
    store = new_store()
    first = store.create(ComposableResource, resource_raw())
    store.delete(ComposableResource, RESOURCE)
    second = store.create(ComposableResource, resource_raw())
    assert first.object.uid != second.object.uid


def test_a_bound_pod_ends_when_its_kubelet_says_so() -> None:
    store = new_store()
    store.create(Pod, pod_raw())
    store.bind(POD, "n")
    marked = store.delete(Pod, POD)
    assert marked.raw["metadata"]["deletionGracePeriodSeconds"] == 30
    assert marked.raw["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    assert store.delete(Pod, POD) is marked
    assert store.delete(Pod, POD, how=Deletion(60)) is marked
    hurried = store.delete(Pod, POD, how=Deletion(5))
    assert hurried.raw["metadata"]["deletionTimestamp"] == "2023-11-14T22:13:25Z"
    store.delete(Pod, POD, how=Deletion(0))
    assert store.list(Pod).items == ()


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
def test_a_pod_that_runs_nowhere_goes_at_once(phase: str) -> None:
    store = new_store()
    store.create(Pod, pod_raw())
    if phase:
        store.bind(POD, "n")
        store.patch(Pod, POD, {"status": {"phase": phase}}, STATUS)
    store.delete(Pod, POD)
    assert store.list(Pod).items == ()


def test_a_pod_is_bound_once_and_not_while_it_goes() -> None:
    store = new_store()
    uid = store.create(Pod, pod_raw()).object.uid
    assert refusal(lambda: store.bind(POD, "n", Precondition(uid=Uid("other"))))[0] == 409
    bound = store.bind(POD, "n", Precondition(uid=uid))
    assert bound.raw["spec"]["nodeName"] == "n"
    conditions = bound.raw["status"]["conditions"]
    assert [(one["type"], one["status"]) for one in conditions] == [("PodScheduled", "True")]
    assert refusal(lambda: store.bind(POD, "m"))[0] == 409
    assert refusal(lambda: store.patch(Pod, POD, {"spec": {"nodeName": "m"}})) == (
        422,
        "Invalid",
        ("spec",),
    )
    going = store.create(
        Pod, pod_raw("q") | {"metadata": {"name": "q", "namespace": "d", "finalizers": ["a/b"]}}
    )
    store.delete(Pod, going.key)
    assert refusal(lambda: store.bind(going.key, "n"))[0] == 409


def test_a_typed_version_is_decoded_once_and_shared() -> None:
    store = new_store()
    stored = store.create(ResourceSlice, {"metadata": {"name": "s"}, "spec": SLICE})
    assert store.get(ResourceSlice, named("s")).object is stored.object
    assert store.list(ResourceSlice).items[0].object is stored.object
    assert store.since(ResourceSlice, 0)[0].stored.object is stored.object


SLICE = {
    "driver": "gpu.example.com",
    "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1},
    "allNodes": True,
}


def test_an_event_lives_in_the_namespace_of_what_it_is_about() -> None:
    store = new_store()
    about = {"kind": "Pod", "namespace": "d", "name": "p"}
    store.create(EventObject, {"metadata": {"name": "e", "namespace": "d"}, "involvedObject": about})
    elsewhere = {"metadata": {"name": "e", "namespace": "other"}, "involvedObject": about}
    assert refusal(lambda: store.create(EventObject, elsewhere))[2] == ("involvedObject.namespace",)


def test_events_are_kept_for_an_hour() -> None:
    now = NOW
    store = Store(lambda: now, random.Random("events"))  # noqa: S311 - no cryptography
    for name, later in (("a", 0.0), ("b", 1800.0), ("c", 1801.0), ("d", 0.5)):
        now = Seconds(now + later)
        about = {"kind": "Pod", "namespace": "d", "name": "p"}
        store.create(EventObject, {"metadata": {"name": name, "namespace": "d"}, "involvedObject": about})
    assert [one.key.name for one in store.list(EventObject).items] == ["b", "c", "d"]
    assert [one.type.value for one in store.since(EventObject, 2)] == ["DELETED", "ADDED", "ADDED"]
