"""Server-side apply: every field has its owners, and goes when the last of them lets go."""

import random

import pytest

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


def test_an_item_goes_with_who_brought_it_whoever_wrote_into_it() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    entry = {**said("a", Ready="True"), "data": {"b": 1}}
    store.patch(ResourceClaim, CLAIM, {"status": {"devices": [entry]}}, Write(manager="driver", status=True))
    assert say(store, "one") == []


def test_what_went_with_an_allocation_is_still_booked_and_can_be_said_again() -> None:
    store = store_with_claim("a")
    say(store, "one", said("a", Ready="True"))
    store.patch(ResourceClaim, CLAIM, {"status": {"allocation": None}}, STATUS)
    assert "devices" not in store.get(ResourceClaim, CLAIM).raw["status"]
    assert "one" in [one.name for one in store.get(ResourceClaim, CLAIM).managers]
    with pytest.raises(ApiError) as caught:
        say(store, "two", said("a", Ready="True"), force=False)
    assert caught.value.code == 409
    results = [{"request": "gpu", "driver": "x.dev", "pool": "p", "device": "a"}]
    store.patch(ResourceClaim, CLAIM, {"status": {"allocation": {"devices": {"results": results}}}}, STATUS)
    assert [one["device"] for one in say(store, "one", said("a", Ready="True"), force=False)] == ["a"]


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


# --- books of everybody


def store_with_books() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("books"), books=True)  # noqa: S311 - no cryptography


def managers_of(store: Store) -> list[tuple[str, str, str]]:
    entries = store.get(ComposableResource, RESOURCE).wire()["metadata"].get("managedFields", [])
    return [(one["manager"], one["operation"], one.get("subresource", "")) for one in entries]


def test_a_store_with_books_names_every_writer() -> None:
    store = store_with_books()
    spec = {"type": "gpu", "model": "A", "target_node": "n"}
    body = {"metadata": {"name": "r", "labels": {"a": "1"}}, "spec": spec}
    store.create(ComposableResource, body, Write(manager="kubectl-create"))
    store.patch(ComposableResource, RESOURCE, labelled(b="1"), Write(manager="kubectl-label"))
    store.patch(ComposableResource, RESOURCE, {"status": {"state": "Online"}}, Write("operator", status=True))
    labels_after(store, "me", labelled(c="1"))
    assert managers_of(store) == [
        ("me", "Apply", ""),
        ("kubectl-create", "Update", ""),
        ("kubectl-label", "Update", ""),
        ("operator", "Update", "status"),
    ]
    with pytest.raises(ApiError) as caught:
        labels_after(store, "kubectl", labelled(a="2"))
    version = "cro.hpsys.ibm.ie.com/v1alpha1"
    words = f'conflict with "kubectl-create" using {version}: .metadata.labels.a'
    assert caught.value.message == f"Apply failed with 1 conflict: {words}"


def test_a_client_may_patch_the_books_themselves() -> None:
    store = store_with_books()
    spec = {"type": "gpu", "model": "A", "target_node": "n"}
    store.create(ComposableResource, {"metadata": {"name": "r"}, "spec": spec}, Write(manager="creator"))
    before = store.version

    def handed_over(raw: Raw) -> Raw:
        (entry,) = raw["metadata"]["managedFields"]
        entries = [{**entry, "manager": "heir", "operation": "Apply"}]
        return {**raw, "metadata": {**raw["metadata"], "managedFields": entries}}

    store.rewrite(ComposableResource, RESOURCE, handed_over, Write(manager="kubectl"))
    assert managers_of(store) == [("heir", "Apply", "")]
    assert store.version == before + 1
    forget: Raw = {"metadata": {"managedFields": [{}]}}
    store.patch(ComposableResource, RESOURCE, forget, Write(manager="kubectl"))
    assert managers_of(store) == []
    assert "managedFields" not in store.get(ComposableResource, RESOURCE).raw["metadata"]


def test_a_store_without_books_keeps_none_until_somebody_applies() -> None:
    store = store_with_resource(a="1")
    store.patch(ComposableResource, RESOURCE, labelled(b="1"), Write(manager="editor"))
    assert managers_of(store) == []
    labels_after(store, "me", labelled(c="1"))
    assert [one for one, _, _ in managers_of(store)] == ["me", "before-first-apply"]
