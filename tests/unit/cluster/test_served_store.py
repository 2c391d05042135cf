"""A store that is served to others insists on what a real API server insists on, and adds what it adds."""

import random
from collections.abc import Callable

import pytest

from jackfield.cluster import bootstrap
from jackfield.cluster.deletion import Deletion
from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw, dig
from jackfield.codec.definitions import definitions
from jackfield.model.account import ServiceAccount
from jackfield.model.config import ConfigMap
from jackfield.model.definition import CustomResourceDefinition
from jackfield.model.lease import Lease
from jackfield.model.names import Key, Seconds, named
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod

NOW = Seconds(1_700_000_000.0)
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where it lies, not what it is
POD = Key("default", "p")
DRY = Write(dry_run=True)


def served(*, books: bool = False) -> Store:
    store = Store(lambda: NOW, random.Random("served"), served=True, books=books)  # noqa: S311 - no cryptography
    bootstrap.furnish(store, NOW)
    store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": "default"}})
    return store


def pod(name: str = "p", namespace: str = "default", **spec: object) -> Raw:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def config(name: str = "m", namespace: str = "default") -> Raw:
    return {"metadata": {"name": name, "namespace": namespace}}


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code, caught.value.message


# --- from the start


def test_a_cluster_begins_with_namespaces_and_definitions_in_force() -> None:
    store = served()
    spaces = {one.key.name: one.raw for one in store.list(Namespace).items}
    assert sorted(spaces) == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert spaces["default"]["metadata"]["labels"] == {"kubernetes.io/metadata.name": "default"}
    assert spaces["default"]["spec"] == {"finalizers": ["kubernetes"]}
    assert spaces["default"]["status"] == {"phase": "Active"}
    for wanted in definitions():
        stored = store.get(CustomResourceDefinition, named(wanted["metadata"]["name"])).raw
        assert stored["spec"] == {**wanted["spec"], "conversion": {"strategy": "None"}}
        assert {one["type"]: one["status"] for one in stored["status"]["conditions"]} == {
            "NamesAccepted": "True",
            "Established": "True",
        }


def test_our_definitions_can_be_applied_again_and_no_others_made() -> None:
    store = served()
    version = store.version
    for one in definitions():
        key = named(one["metadata"]["name"])
        stored = store.apply(CustomResourceDefinition, key, one, Write(manager="jackfield", force=True))
        assert stored.raw["spec"]["names"] == one["spec"]["names"]
    other = {"metadata": {"name": "widgets.example.com"}, "spec": {}}
    code, words = refusal(lambda: store.create(CustomResourceDefinition, other))
    assert (code, "serves no other kinds" in words) == (403, True)
    code, words = refusal(
        lambda: store.patch(CustomResourceDefinition, key, {"spec": {"scope": "Namespaced"}})
    )
    assert (code, "never change" in words) == (422, True)
    assert refusal(lambda: store.delete(CustomResourceDefinition, key))[0] == 403
    assert store.version <= version + len(definitions())


# --- namespaces


def test_nothing_is_made_where_there_is_no_namespace_or_one_that_goes() -> None:
    store = served()
    missing = (404, 'namespaces "x" not found')
    assert refusal(lambda: store.create(ConfigMap, config(namespace="x"))) == missing
    assert refusal(lambda: store.apply(ConfigMap, Key("x", "m"), config(), Write(manager="me"))) == missing
    store.create(Namespace, {"metadata": {"name": "x"}})
    store.create(ConfigMap, config(namespace="x"))
    going = store.delete(Namespace, named("x"))
    assert going.raw["status"] == {"phase": "Terminating"}
    assert "deletionGracePeriodSeconds" not in going.raw["metadata"]
    assert refusal(lambda: store.create(ConfigMap, config("late", "x"))) == (
        403,
        'configmaps "late" is forbidden: unable to create new content in namespace x because it is being terminated',
    )
    assert store.patch(ConfigMap, Key("x", "m"), {"data": {"a": "b"}}).raw["data"] == {"a": "b"}


def test_a_namespace_goes_when_whoever_empties_it_agrees() -> None:
    store = served()
    store.create(Namespace, {"metadata": {"name": "x"}, "spec": {"finalizers": ["example.com/a"]}})
    marked = store.delete(Namespace, named("x"))
    assert store.delete(Namespace, named("x"), how=Deletion(0)) is marked
    half = {"metadata": {"name": "x"}, "spec": {"finalizers": ["example.com/a"]}}
    assert not store.finalize(half, DRY).gone
    assert not store.finalize(half).gone
    assert store.finalize({"metadata": {"name": "x"}}).gone
    assert named("x") not in [one.key for one in store.list(Namespace).items]


def test_what_a_namespace_waits_for_is_only_written_by_its_subresource() -> None:
    store = served()
    patched = store.patch(Namespace, named("default"), {"spec": {"finalizers": []}})
    assert patched.raw["spec"] == {"finalizers": ["kubernetes"]}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_cannot_be_deleted(name: str) -> None:
    words = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert refusal(lambda: served().delete(Namespace, named(name))) == (403, words)


# --- what is added to pods and nodes


def test_a_pod_speaks_as_an_account_by_a_token_that_every_container_mounts() -> None:
    raw = pod(initContainers=[{"name": "i", "image": "i"}])
    spec = served().create(Pod, raw).raw["spec"]
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    for one in (*spec["containers"], *spec["initContainers"]):
        assert one["volumeMounts"] == [{"name": volume["name"], "readOnly": True, "mountPath": TOKEN}]


@pytest.mark.parametrize(
    ("account", "spec", "mounts"),
    [
        ({}, {"automountServiceAccountToken": False}, False),
        ({"automountServiceAccountToken": False}, {}, False),
        ({"automountServiceAccountToken": False}, {"automountServiceAccountToken": True}, True),
    ],
)
def test_a_pod_or_its_account_may_do_without_the_token(account: Raw, spec: Raw, *, mounts: bool) -> None:
    store = served()
    store.patch(ServiceAccount, Key("default", "default"), account)
    assert ("volumes" in store.create(Pod, pod(**spec)).raw["spec"]) is mounts


def test_a_pod_without_an_account_is_refused() -> None:
    account = 'error looking up service account kube-system/default: serviceaccount "default" not found'
    assert refusal(lambda: served().create(Pod, pod(namespace="kube-system"))) == (
        403,
        f'pods "p" is forbidden: {account}',
    )


def test_an_accounts_way_to_images_is_its_pods_way() -> None:
    store = served()
    account = {"imagePullSecrets": [{"name": "s"}]}
    store.patch(ServiceAccount, Key("default", "default"), account)
    assert store.create(Pod, pod()).raw["spec"]["imagePullSecrets"] == [{"name": "s"}]
    own = store.create(Pod, pod("q", imagePullSecrets=[{"name": "t"}])).raw["spec"]
    assert own["imagePullSecrets"] == [{"name": "t"}]


NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}


@pytest.mark.parametrize(
    ("own", "all_of_them"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], [{"operator": "Exists"}]),
        ([{**NOT_READY, "tolerationSeconds": 5}], [{**NOT_READY, "tolerationSeconds": 5}, UNREACHABLE]),
        (
            [{"operator": "Exists", "effect": "NoSchedule"}],
            [{"operator": "Exists", "effect": "NoSchedule"}, NOT_READY, UNREACHABLE],
        ),
    ],
)
def test_a_pod_puts_up_with_a_silent_node_for_a_while(own: list[Raw], all_of_them: list[Raw]) -> None:
    assert served().create(Pod, pod(tolerations=own)).raw["spec"]["tolerations"] == all_of_them


def test_priorities_come_from_classes_alone() -> None:
    store = served()
    spec = store.create(Pod, pod(priorityClassName="system-node-critical")).raw["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (2_000_001_000, "PreemptLowerPriority")
    assert refusal(lambda: store.create(Pod, pod("q", priorityClassName="x"))) == (
        403,
        'pods "q" is forbidden: no PriorityClass with name x was found',
    )
    assert refusal(lambda: store.create(Pod, pod("q", priority=5)))[0] == 403


def test_a_new_node_is_kept_free_of_pods_until_it_is_ready() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    store = served()
    assert store.create(Node, {"metadata": {"name": "n"}}).raw["spec"]["taints"] == [taint]
    other = {"key": "a", "effect": "NoExecute"}
    spec = {"taints": [other, taint]}
    assert store.create(Node, {"metadata": {"name": "m"}, "spec": spec}).raw["spec"] == spec


def test_a_pod_gets_its_nodes_zone_when_it_is_bound_and_that_is_no_change_of_what_is_wanted() -> None:
    store = served()
    labels = {"topology.kubernetes.io/zone": "z", "other": "x"}
    store.create(Node, {"metadata": {"name": "n", "labels": labels}})
    store.create(Pod, pod())
    bound = store.bind(POD, "n")
    assert bound.raw["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z"}
    assert bound.raw["metadata"]["generation"] == 1


def test_a_store_that_nobody_is_served_by_adds_nothing_of_this() -> None:
    store = Store(lambda: NOW, random.Random("plain"))  # noqa: S311 - no cryptography
    spec = store.create(Pod, pod()).raw["spec"]
    assert not {"volumes", "tolerations", "serviceAccountName"} & spec.keys()
    assert "taints" not in store.create(Node, {"metadata": {"name": "n"}}).raw["spec"]


# --- dry runs


def test_a_dry_run_leaves_no_trace_not_even_in_what_chance_brings_next() -> None:
    def names(*, tries: bool) -> list[str]:
        store = served()
        raw = {"metadata": {"generateName": "p-", "namespace": "default"}, "spec": pod()["spec"]}
        found = []
        for _ in range(3):
            if tries:
                store.create(Pod, raw, DRY)
            stored = store.create(Pod, raw)
            found += [stored.key.name, stored.object.uid, stored.raw["spec"]["volumes"][0]["name"]]
        return [*found, str(store.version)]

    assert names(tries=True) == names(tries=False)


def test_what_was_only_tried_has_no_version() -> None:
    store = served()
    assert "resourceVersion" not in store.create(ConfigMap, config(), DRY).raw["metadata"]
    made = store.create(ConfigMap, config())
    version = made.raw["metadata"]["resourceVersion"]
    key = Key("default", "m")
    for tried in (
        store.patch(ConfigMap, key, {"data": {"a": "b"}}, DRY),
        store.update(ConfigMap, {**config(), "data": {"a": "b"}}, DRY),
        store.rewrite(ConfigMap, key, lambda raw: {**raw, "data": {"a": "b"}}, DRY),
        store.apply(ConfigMap, key, {**applied(), "data": {"a": "b"}}, Write(manager="me", dry_run=True)),
    ):
        assert tried.raw["data"] == {"a": "b"}
        assert tried.raw["metadata"]["resourceVersion"] == version
        assert store.get(ConfigMap, key) is made


def applied() -> Raw:
    return {"apiVersion": "v1", "kind": "ConfigMap", **config()}


# --- books


def test_with_books_every_field_says_who_wrote_it() -> None:
    store = served(books=True)
    key = Key("default", "m")
    store.create(ConfigMap, {**config(), "data": {"a": "1"}}, Write(manager="one"))
    store.patch(ConfigMap, key, {"data": {"b": "2"}}, Write(manager="two"))
    store.apply(ConfigMap, key, {**applied(), "data": {"c": "3"}}, Write(manager="three"))
    entries = store.get(ConfigMap, key).wire()["metadata"]["managedFields"]
    assert {one["manager"]: (one["operation"], dig(one, "fieldsV1", "f:data")) for one in entries} == {
        "one": ("Update", {".": {}, "f:a": {}}),
        "two": ("Update", {"f:b": {}}),
        "three": ("Apply", {"f:c": {}}),
    }


def test_what_admission_adds_nobody_owns() -> None:
    store = served(books=True)
    (entry,) = store.create(Pod, pod(), Write(manager="me")).wire()["metadata"]["managedFields"]
    assert not {"f:tolerations", "f:volumes", "f:serviceAccountName"} & entry["fieldsV1"]["f:spec"].keys()
    assert "f:restartPolicy" in entry["fieldsV1"]["f:spec"]


def test_without_books_nobody_is_named_before_the_first_apply() -> None:
    store = served()
    store.create(ConfigMap, config(), Write(manager="one"))
    assert "managedFields" not in store.get(ConfigMap, Key("default", "m")).wire()["metadata"]


# --- creating by an update, and updating on no version


def test_some_kinds_are_made_by_replacing_them_and_some_replaced_only_on_their_version() -> None:
    store = served()
    lease = {"metadata": {"name": "l", "namespace": "default"}, "spec": {"holderIdentity": "a"}}
    assert store.update(Lease, lease).raw["spec"] == {"holderIdentity": "a"}
    words = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    assert refusal(lambda: store.update(Lease, lease)) == (
        422,
        f'leases.coordination.k8s.io "l" is invalid: {words}',
    )
    assert refusal(lambda: store.update(ConfigMap, config())) == (404, 'configmaps "m" not found')
