"""What an apply makes of an object: who may change a field, and what goes when its last owner lets go."""

import msgspec
import pytest

from jackfield import codec
from jackfield.cluster.errors import ApiError
from jackfield.cluster.ownership import last_applied
from jackfield.codec import Raw
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import NO_TIME
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from unit.cluster.book_desk import LATER, NOON, Desk, names, pod, resource, shown


def test_an_apply_creates_what_is_not_there() -> None:
    desk = Desk(ComposableResource, {}, kept=False)
    desk.apply("me", resource())
    assert desk.raw == resource()
    assert shown(desk.managers) == [
        ("me", "Apply", "", {"f:spec": {"f:model": {}, "f:target_node": {}, "f:type": {}}})
    ]


def test_what_i_no_longer_apply_goes_unless_somebody_else_has_it() -> None:
    desk = Desk(ComposableResource, resource())
    assert desk.labels("me", a="1", b="1") == {"a": "1", "b": "1"}
    assert desk.labels("you", b="1", c="1") == {"a": "1", "b": "1", "c": "1"}
    assert desk.labels("me") == {"b": "1", "c": "1"}
    assert desk.labels("you") == {}
    assert "labels" not in desk.raw["metadata"]


def test_what_i_let_go_stays_if_a_plain_writer_changed_it_meanwhile() -> None:
    desk = Desk(ComposableResource, resource())
    desk.labels("me", a="1", b="1")
    desk.update("editor", {**desk.raw, "metadata": {"name": "r", "labels": {"a": "2", "b": "1"}}})
    assert desk.labels("me") == {"a": "2"}


def test_what_nobody_owns_stays() -> None:
    desk = Desk(Pod, pod())
    desk.apply("me", {"metadata": {"name": "p"}, "spec": {"activeDeadlineSeconds": 5}})
    # As the scheduler binds a pod: nobody is booked for it.
    desk.raw = {**desk.raw, "spec": {**desk.raw["spec"], "nodeName": "n"}}
    desk.apply("me", {"metadata": {"name": "p"}})
    assert "activeDeadlineSeconds" not in desk.raw["spec"]
    assert desk.raw["spec"]["nodeName"] == "n"


def test_an_item_goes_with_who_brought_it_whoever_wrote_into_it() -> None:
    desk = Desk(ResourceClaim, {"metadata": {"name": "c", "labels": {"x": "1"}}, "spec": {}, "status": {}})
    entry = {"driver": "x.dev", "pool": "p", "device": "a"}
    desk.apply("me", {"status": {"devices": [entry]}}, status=True)
    desk.update("driver", {**desk.raw, "status": {"devices": [{**entry, "data": {"b": 1}}]}}, status=True)
    assert names(desk.managers) == ["me", "creator", "driver"]
    desk.apply("me", {"metadata": {"name": "c"}}, status=True)
    assert "devices" not in desk.raw.get("status", {})
    assert names(desk.managers) == ["creator"]


def test_what_others_programs_read_is_owned_as_one() -> None:
    desk = Desk(ResourceClaim, {"metadata": {"name": "c"}, "spec": {}, "status": {}})
    entry = {"driver": "x.dev", "pool": "p", "device": "a", "data": {"b": {"c": 1}}}
    desk.apply("me", {"status": {"devices": [entry]}}, status=True)
    item = codec.dig(
        shown(desk.managers)[0][3], "f:status", "f:devices", 'k:{"device":"a","driver":"x.dev","pool":"p"}'
    )
    assert item["f:data"] == {}


@pytest.mark.parametrize(
    ("live", "body", "merged"),
    [
        ("abc", "b", "abc"),
        ("abc", "ca", "bca"),
        ("abc", "d", "abcd"),
        ("abc", "db", "adbc"),
        ("abc", "bd", "abcd"),
        ("abc", "cba", "cba"),
        ("", "ba", "ba"),
        ("ab", "", "ab"),
        ("axb", "ba", "xba"),
    ],
)
def test_items_of_the_body_come_in_its_order_and_others_keep_their_places(
    live: str, body: str, merged: str
) -> None:
    desk = Desk(ComposableResource, {"metadata": {"name": "r", "finalizers": [f"f/{one}" for one in live]}})
    desk.apply("me", {"metadata": {"name": "r", "finalizers": [f"f/{one}" for one in body]}})
    assert "".join(one[2:] for one in desk.raw["metadata"]["finalizers"]) == merged


def test_items_are_merged_and_whole_parts_replaced() -> None:
    desk = Desk(Pod, pod())
    spec = {
        "containers": [{"name": "a", "image": "i:2"}],
        "tolerations": [{"key": "l"}],
        "nodeSelector": {"y": "1"},
        "restartPolicy": None,
    }
    desk.apply("me", {"metadata": {"name": "p"}, "spec": spec}, force=True)
    assert desk.raw["spec"] == {
        "containers": [{"name": "a", "image": "i:2", "resources": {}}],
        "tolerations": [{"key": "l"}],
        "nodeSelector": {"y": "1"},
    }


def test_an_apply_that_changes_nothing_has_no_time_and_leaves_the_object() -> None:
    desk = Desk(ComposableResource, resource())
    desk.labels("me", a="1")
    live = desk.raw
    outcome = desk.apply("you", {"metadata": {"name": "r", "labels": {"a": "1"}}}, time=LATER)
    assert outcome.object is live
    assert [(one.name, one.time) for one in outcome.managers] == [
        ("you", NO_TIME),
        ("me", NOON),
        ("creator", NOON),
    ]
    again = desk.apply("me", {"metadata": {"name": "r", "labels": {"a": "1"}}}, time=LATER)
    assert again.managers == outcome.managers
    other = desk.apply("me", {"metadata": {"name": "r", "labels": {"a": "1", "b": "2"}}}, time=LATER)
    assert [one.time for one in other.managers if one.name == "me"] == [LATER]


# --- conflicts


def conflict(desk: Desk, name: str, body: Raw) -> ApiError:
    with pytest.raises(ApiError) as caught:
        desk.apply(name, body)
    assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    assert {one.reason for one in caught.value.causes} == {"FieldManagerConflict"}
    return caught.value


def test_one_conflict_is_told_in_one_line() -> None:
    desk = Desk(Pod, pod())
    error = conflict(desk, "me", {"spec": {"containers": [{"name": "a", "image": "i:2"}]}})
    path = '.spec.containers[name="a"].image'
    assert error.message == f'Apply failed with 1 conflict: conflict with "creator" using v1: {path}'
    assert [(one.field, one.message) for one in error.causes] == [(path, 'conflict with "creator" using v1')]


def test_several_conflicts_are_told_manager_by_manager() -> None:
    desk = Desk(Pod, pod(labels={"a": "1"}, finalizers=["f/a"]))
    desk.labels("applier", b="1")
    body = {
        "metadata": {"name": "p", "labels": {"a": "2", "b": "2"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "i:2"}]},
    }
    assert conflict(desk, "me", body).message == (
        'Apply failed with 4 conflicts: conflicts with "applier":\n'
        "- .metadata.labels.b\n"
        'conflicts with "creator" using v1:\n'
        "- .metadata.labels.a\n"
        "- .spec.restartPolicy\n"
        '- .spec.containers[name="a"].image'
    )


def test_managers_of_a_subresource_are_named_with_it() -> None:
    desk = Desk(Node, {"metadata": {"name": "n", "labels": {"a": "1"}}, "spec": {}, "status": {}})
    desk.update("kubelet", {**desk.raw, "status": {"phase": "Running"}}, status=True)
    with pytest.raises(ApiError) as caught:
        desk.apply("me", {"status": {"phase": "Pending"}}, status=True)
    words = 'conflict with "kubelet" with subresource "status" using v1'
    assert caught.value.message == f"Apply failed with 1 conflict: {words}: .status.phase"


def test_whoever_insists_takes_the_field() -> None:
    desk = Desk(ComposableResource, resource())
    desk.labels("you", a="1", b="1")
    assert desk.labels("me", a="2", force=True) == {"a": "2", "b": "1"}
    assert desk.labels("you", b="1") == {"a": "2", "b": "1"}
    assert desk.labels("you") == {"a": "2"}


# --- kubectl's own past


def applied_by_kubectl(**labels: str) -> Desk:
    """An object that `kubectl apply` made, before it let the server apply."""
    body = pod(labels=labels)
    for name in ("uid", "resourceVersion"):
        del body["metadata"][name]
    del body["status"]
    text = msgspec.json.encode(body).decode()
    return Desk(Pod, pod(labels=labels, annotations={last_applied.ANNOTATION: text}))


def test_kubectl_may_change_what_kubectl_applied_itself() -> None:
    desk = applied_by_kubectl(a="1")
    assert desk.labels("kubectl", a="2") == {"a": "2"}
    kept = msgspec.json.decode(desk.raw["metadata"]["annotations"][last_applied.ANNOTATION])
    assert kept == {"metadata": {"name": "p", "labels": {"a": "2"}}}


def test_nobody_else_may_and_not_what_somebody_changed_since() -> None:
    desk = applied_by_kubectl(a="1", b="1")
    with pytest.raises(ApiError):
        desk.labels("other", a="2")
    metadata = {**desk.raw["metadata"], "labels": {"a": "1", "b": "2"}}
    desk.update("editor", {**desk.raw, "metadata": metadata})
    with pytest.raises(ApiError) as caught:
        desk.labels("kubectl", a="2", b="3")
    words = 'conflict with "editor" using v1: .metadata.labels.b'
    assert caught.value.message == f"Apply failed with 1 conflict: {words}"


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","bogus":1}', ""]
)
def test_an_annotation_nobody_can_read_allows_nothing(text: str) -> None:
    desk = Desk(Pod, pod(labels={"a": "1"}, annotations={last_applied.ANNOTATION: text}))
    with pytest.raises(ApiError):
        desk.labels("kubectl", a="2")


def test_an_annotation_that_would_be_too_long_goes() -> None:
    desk = applied_by_kubectl(a="1")
    body = {
        "metadata": {"name": "p", "annotations": {"large": "x" * 200_000, last_applied.ANNOTATION: "old"}}
    }
    desk.apply("kubectl", body, force=True)
    assert sorted(desk.raw["metadata"]["annotations"]) == ["large"]
    small = applied_by_kubectl(a="1")
    small.apply(
        "kubectl",
        {"metadata": {"name": "p", "annotations": {last_applied.ANNOTATION: "old", "b": "<&>"}}},
        force=True,
    )
    kept = small.raw["metadata"]["annotations"][last_applied.ANNOTATION]
    assert kept == '{"metadata":{"annotations":{"b":"\\u003c\\u0026\\u003e"},"name":"p"}}\n'
