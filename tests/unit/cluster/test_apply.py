"""Server-side apply: every field has its owners, and goes when the last of them lets go."""

import random

import pytest

from jackfield.cluster import fields
from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.names import Key, Seconds, named
from jackfield.model.pod import Pod

CLAIM = Key("d", "c")
RESOURCE = named("r")
STATUS = Write(status=True)


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("apply"))  # noqa: S311 - no cryptography


def store_with_resource(**labels: str) -> Store:
    store = new_store()
    spec = {"type": "gpu", "model": "A", "target_node": "n"}
    store.create(ComposableResource, {"metadata": {"name": "r", "labels": labels}, "spec": spec})
    return store


def labelled(**labels: str) -> Raw:
    return {"metadata": {"labels": labels}}


def labels_after(store: Store, manager: str, body: Raw, *, force: bool = False) -> Raw:
    stored = store.apply(ComposableResource, RESOURCE, body, Write(manager=manager, force=force))
    labels: Raw = stored.raw["metadata"].get("labels", {})
    return labels


def store_with_claim(*devices: str) -> Store:
    store = new_store()
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": len(devices)}}
    store.create(
        ResourceClaim,
        {"metadata": {"name": "c", "namespace": "d"}, "spec": {"devices": {"requests": [request]}}},
    )
    results = [{"request": "gpu", "driver": "x.dev", "pool": "p", "device": device} for device in devices]
    store.patch(ResourceClaim, CLAIM, {"status": {"allocation": {"devices": {"results": results}}}}, STATUS)
    return store


def said(device: str, **conditions: str) -> Raw:
    return {
        "driver": "x.dev",
        "pool": "p",
        "device": device,
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": "R",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            for kind, status in conditions.items()
        ],
    }


def say(store: Store, manager: str, *devices: Raw, force: bool = True) -> list[Raw]:
    write = Write(manager=manager, status=True, force=force)
    stored = store.apply(ResourceClaim, CLAIM, {"status": {"devices": list(devices)}}, write)
    found: list[Raw] = stored.raw["status"].get("devices", [])
    return found


def test_an_apply_creates_what_is_not_there() -> None:
    store = new_store()
    body = {**labelled(a="1"), "spec": {"type": "gpu", "model": "A", "target_node": "n"}}
    created = store.apply(ComposableResource, RESOURCE, body, Write(manager="me"))
    assert created.key == RESOURCE
    assert [one.name for one in store.get(ComposableResource, RESOURCE).managers] == ["me"]
    assert store.apply(ResourceClaim, CLAIM, {"spec": {}}, Write(manager="me")).key == CLAIM
    with pytest.raises(ApiError) as caught:
        store.apply(
            ComposableResource,
            named("other"),
            {"status": {"state": "Online"}},
            Write(manager="me", status=True),
        )
    assert caught.value.code == 404


def test_what_i_no_longer_apply_goes() -> None:
    store = store_with_resource()
    assert labels_after(store, "me", labelled(a="1", b="2")) == {"a": "1", "b": "2"}
    assert labels_after(store, "me", labelled(b="2")) == {"b": "2"}
    assert labels_after(store, "me", {}) == {}


def test_what_others_apply_too_stays_until_the_last_of_them_lets_go() -> None:
    store = store_with_resource()
    labels_after(store, "me", labelled(a="1"))
    labels_after(store, "you", labelled(a="1", b="2"))
    assert labels_after(store, "me", {}) == {"a": "1", "b": "2"}
    assert labels_after(store, "you", {}) == {}


def test_what_was_there_before_the_first_apply_stays() -> None:
    store = store_with_resource(a="1")
    labels_after(store, "me", labelled(a="1"))
    assert labels_after(store, "me", {}) == {"a": "1"}


def test_to_change_what_another_owns_is_a_conflict_unless_forced() -> None:
    store = store_with_resource()
    labels_after(store, "you", labelled(a="1", b="1"))
    before = store.get(ComposableResource, RESOURCE)
    with pytest.raises(ApiError) as caught:
        labels_after(store, "me", labelled(a="2", b="1"))
    assert caught.value.code == 409
    assert [(one.field, one.message) for one in caught.value.causes] == [
        (".metadata.labels.a", 'conflict with "you"')
    ]
    assert store.get(ComposableResource, RESOURCE) is before
    assert labels_after(store, "me", labelled(a="2", b="1"), force=True) == {"a": "2", "b": "1"}
    assert labels_after(store, "you", {}) == {"a": "2", "b": "1"}


def test_a_plain_write_takes_over_what_it_changes() -> None:
    store = store_with_resource()
    labels_after(store, "me", labelled(a="1", b="1"))
    store.patch(ComposableResource, RESOURCE, labelled(a="2"), Write(manager="editor"))
    with pytest.raises(ApiError):
        labels_after(store, "me", labelled(a="1", b="1"))
    assert labels_after(store, "me", {}) == {"a": "2"}


def test_the_same_apply_twice_is_no_new_version() -> None:
    store = store_with_claim("a", "b")
    for manager in ("one", "two", "one", "two"):
        say(store, manager, said("a" if manager == "one" else "b", Ready="True"))
    version = store.version
    say(store, "one", said("a", Ready="True"))
    say(store, "two", said("b", Ready="True"))
    assert store.version == version


def test_one_manager_per_device_wipes_no_other_entry() -> None:
    store = store_with_claim("a", "b")
    say(store, "one", said("a", Ready="False"))
    say(store, "two", said("b", Ready="False"))
    found = say(store, "one", said("a", Ready="True"))
    assert [(one["device"], one["conditions"][0]["status"]) for one in found] == [
        ("a", "True"),
        ("b", "False"),
    ]
    assert [one["device"] for one in say(store, "one")] == ["b"]


def test_conditions_of_one_device_have_owners_of_their_own() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    say(store, "two", said("a", Healthy="True"))
    found = say(store, "one", said("a", Failed="True"))
    assert [one["type"] for one in found[0]["conditions"]] == ["Healthy", "Failed"]
    left = say(store, "one")
    assert [one["type"] for one in left[0]["conditions"]] == ["Healthy"]


def test_an_item_somebody_else_wrote_into_keeps_its_key() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    entry = {**said("a", Ready="True"), "data": {"b": 1}}
    store.patch(ResourceClaim, CLAIM, {"status": {"devices": [entry]}}, Write(manager="driver", status=True))
    assert say(store, "one") == [{"driver": "x.dev", "pool": "p", "device": "a", "data": {"b": 1}}]


def test_after_a_new_allocation_nobody_owns_what_went_with_the_old_one() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    store.patch(ResourceClaim, CLAIM, {"status": {"allocation": None}}, STATUS)
    paths = [path for one in store.get(ResourceClaim, CLAIM).managers for path in one.fields]
    assert not [path for path in paths if "f:devices" in path and path[0] == "f:status"]


def test_an_apply_to_the_status_says_nothing_of_the_rest() -> None:
    store = store_with_resource()
    body = {**labelled(a="1"), "status": {"state": "Online"}}
    stored = store.apply(ComposableResource, RESOURCE, body, Write(manager="me", status=True))
    assert stored.raw["status"] == {"state": "Online"}
    assert "a" not in stored.raw["metadata"].get("labels", {})
    plain = store.apply(
        ComposableResource, RESOURCE, {**body, "status": {"state": "Detaching"}}, Write(manager="me")
    )
    assert plain.raw["status"] == {"state": "Online"}
    assert plain.raw["metadata"]["labels"] == {"a": "1"}


def test_an_apply_on_another_version_is_a_conflict_and_on_another_uid_invalid() -> None:
    store = store_with_claim("a")
    how = Write(manager="me", status=True, force=True)
    for metadata, code in (({"uid": "other"}, 422), ({"resourceVersion": "1"}, 409)):
        body = {"metadata": metadata, "status": {"devices": [said("a", Ready="True")]}}
        with pytest.raises(ApiError) as caught:
            store.apply(ResourceClaim, CLAIM, body, how)
        assert caught.value.code == code


def test_an_apply_on_a_uid_does_not_create_another() -> None:
    store = store_with_claim("a")
    body = {"metadata": {"uid": "other"}, "spec": {}}
    with pytest.raises(ApiError) as caught:
        store.apply(ResourceClaim, Key("d", "gone"), body, Write(manager="me"))
    assert caught.value.code == 409


def test_finalizers_are_owned_one_by_one() -> None:
    store = store_with_resource()

    def finalizers(manager: str, *names: str) -> list[str]:
        body = {"metadata": {"finalizers": list(names)}}
        stored = store.apply(ComposableResource, RESOURCE, body, Write(manager=manager))
        found: list[str] = stored.raw["metadata"].get("finalizers", [])
        return found

    assert finalizers("me", "a/a", "a/b") == ["a/a", "a/b"]
    assert finalizers("you", "a/b", "a/c") == ["a/a", "a/b", "a/c"]
    assert finalizers("me") == ["a/b", "a/c"]


def test_containers_are_merged_by_name_and_other_lists_replaced_whole() -> None:
    store = new_store()
    pod = {
        "metadata": {"name": "p", "namespace": "d"},
        "spec": {"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]},
    }
    store.create(Pod, pod)
    body = {
        "spec": {
            "containers": [{"name": "b", "image": "y:2"}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
        }
    }
    stored = store.apply(Pod, Key("d", "p"), body, Write(manager="me", force=True))
    images = [(one["name"], one["image"]) for one in stored.raw["spec"]["containers"]]
    assert images == [("a", "x:1"), ("b", "y:2")]
    assert len(stored.raw["spec"]["tolerations"]) == 1


def test_managed_fields_are_shown_as_kubectl_shows_them() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    stored = store.get(ResourceClaim, CLAIM)
    assert "managedFields" not in stored.raw["metadata"]
    mine = next(one for one in stored.wire()["metadata"]["managedFields"] if one["manager"] == "one")
    assert mine["time"] == "2023-11-14T22:13:20Z"
    assert (mine["operation"], mine["subresource"], mine["fieldsType"]) == ("Apply", "status", "FieldsV1")
    device = mine["fieldsV1"]["f:status"]["f:devices"]['k:{"device":"a","driver":"x.dev","pool":"p"}']
    assert sorted(device) == [".", "f:conditions", "f:device", "f:driver", "f:pool"]


@pytest.mark.parametrize(
    ("old", "new", "changed", "removed"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 1}}, [], []),
        ({"spec": {"a": 1}}, {"spec": {"a": 2, "b": 3}}, [("f:spec", "f:a"), ("f:spec", "f:b")], []),
        (
            {"spec": {"a": {"b": 1, "c": 2}}},
            {"spec": {}},
            [],
            [("f:spec", "f:a", "f:b"), ("f:spec", "f:a", "f:c")],
        ),
        ({"spec": {"a": [1]}}, {"spec": {"a": [1, 2]}}, [("f:spec", "f:a")], []),
        ({"spec": {}}, {"spec": {"a": {}}}, [("f:spec", "f:a")], []),
        ({"spec": {"a": 1}}, {"spec": {"a": {"b": 1}}}, [("f:spec", "f:a")], []),
        ({"spec": {"a": {"b": 1}}}, {"spec": {"a": [1]}}, [("f:spec", "f:a")], []),
        ({"spec": {"a": [1]}}, {"spec": {"a": "x"}}, [("f:spec", "f:a")], []),
        ({}, {"metadata": {"finalizers": []}}, [("f:metadata", "f:finalizers")], []),
        (
            {"status": {"conditions": []}},
            {"status": {"conditions": [{"type": "A"}]}},
            [
                ("f:status", "f:conditions", 'k:{"type":"A"}'),
                ("f:status", "f:conditions", 'k:{"type":"A"}', "f:type"),
            ],
            [],
        ),
        (
            {"metadata": {"finalizers": ["x", "y"]}},
            {"metadata": {"finalizers": ["y", "z"]}},
            [("f:metadata", "f:finalizers", 'v:"z"')],
            [("f:metadata", "f:finalizers", 'v:"x"')],
        ),
        (
            {"status": {"conditions": [{"type": "A", "status": "True"}]}},
            {"status": {"conditions": [{"type": "A", "status": "False"}]}},
            [("f:status", "f:conditions", 'k:{"type":"A"}', "f:status")],
            [],
        ),
        (
            {"spec": {"nodeSelector": {"a": "1"}}},
            {"spec": {"nodeSelector": {"a": "2"}}},
            [("f:spec", "f:nodeSelector")],
            [],
        ),
    ],
)
def test_a_difference_names_the_fields_that_differ(
    old: Raw, new: Raw, changed: list[fields.Path], removed: list[fields.Path]
) -> None:
    found = fields.difference(old, new)
    assert sorted(found.changed) == changed
    assert sorted(found.removed) == removed
