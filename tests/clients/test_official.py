"""The official Python client does with the embedded API what it does with a real one."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]},
}
RESOURCE: dict[str, Any] = {
    "apiVersion": "cro.hpsys.ibm.ie.com/v1alpha1",
    "kind": "ComposableResource",
    "metadata": {"name": "r"},
    "spec": {"type": "gpu", "model": "A100", "target_node": "n"},
}
CUSTOM = ("cro.hpsys.ibm.ie.com", "v1alpha1", "composableresources")


@pytest.fixture
def api(kubeconfig: str) -> Iterator[client.ApiClient]:
    with config.new_client_from_config(kubeconfig) as one:
        yield one


def test_it_creates_lists_and_deletes_typed_objects(api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    created = core.create_namespaced_pod("default", POD)
    assert created.spec.restart_policy == "Always"
    assert [one.metadata.name for one in core.list_pod_for_all_namespaces().items] == ["p"]
    assert core.list_namespaced_pod("default", label_selector="app=y").items == []
    gone = core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
    assert gone.metadata.uid == created.metadata.uid
    with pytest.raises(ApiException) as refused:
        core.read_namespaced_pod("p", "default")
    assert (refused.value.status, refused.value.reason) == (404, "Not Found")


def test_it_reads_a_list_page_by_page(api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    for number in range(7):
        core.create_namespaced_config_map("default", {"metadata": {"name": f"m{number}"}})
    names: list[str] = []
    more = None
    while more != "":
        page = core.list_namespaced_config_map("default", limit=3, _continue=more)
        names += [one.metadata.name for one in page.items]
        more = page.metadata._continue or ""  # noqa: SLF001 - so the client calls it
    assert names == [f"m{number}" for number in range(7)]


def test_it_watches_what_is_there_and_what_comes(api: client.ApiClient) -> None:
    core, told = client.CoreV1Api(api), []
    core.create_namespaced_config_map("default", {"metadata": {"name": "a"}})
    watching = watch.Watch()
    for event in watching.stream(core.list_namespaced_config_map, "default", timeout_seconds=20):
        told.append((event["type"], event["object"].metadata.name))
        if len(told) == 1:
            core.create_namespaced_config_map("default", {"metadata": {"name": "b"}})
            core.patch_namespaced_config_map("b", "default", {"data": {"k": "v"}})
            core.delete_namespaced_config_map("b", "default")
        if event["type"] == "DELETED":
            watching.stop()
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]


def test_it_waits_until_an_object_is_gone(api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map("default", {"metadata": {"name": "a", "finalizers": ["example.com/f"]}})
    core.delete_namespaced_config_map("a", "default")
    assert core.read_namespaced_config_map("a", "default").metadata.deletion_timestamp is not None
    version = core.list_namespaced_config_map("default").metadata.resource_version
    core.patch_namespaced_config_map("a", "default", [{"op": "remove", "path": "/metadata/finalizers"}])
    watching = watch.Watch()
    events = watching.stream(
        core.list_namespaced_config_map,
        "default",
        resource_version=version,
        field_selector="metadata.name=a",
        timeout_seconds=20,
    )
    assert [one["type"] for one in events if watching.stop() is None] == ["DELETED"]


def test_it_patches_in_four_ways(api: client.ApiClient) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_pod("default", POD)
    strategic = core.patch_namespaced_pod(
        "p",
        "default",
        {"spec": {"containers": [{"name": "d", "image": "j"}]}},
        _content_type="application/strategic-merge-patch+json",
    )
    assert [one.image for one in strategic.spec.containers] == ["i", "j"]
    merged = core.patch_namespaced_pod(
        "p",
        "default",
        {"metadata": {"labels": {"app": None, "b": "1"}}},
        _content_type="application/merge-patch+json",
    )
    assert merged.metadata.labels == {"b": "1"}
    operations = [{"op": "replace", "path": "/spec/containers/0/image", "value": "k"}]
    changed = core.patch_namespaced_pod("p", "default", operations)
    assert changed.spec.containers[0].image == "k"
    applied = {**POD, "spec": {"containers": [{"name": "c", "image": "l"}]}}
    with pytest.raises(ApiException) as disputed:
        core.patch_namespaced_pod(
            "p", "default", applied, field_manager="me", _content_type="application/apply-patch+yaml"
        )
    assert disputed.value.status == 409
    mine = core.patch_namespaced_pod(
        "p",
        "default",
        applied,
        field_manager="me",
        force=True,
        _content_type="application/apply-patch+yaml",
    )
    assert [one.image for one in mine.spec.containers] == ["l", "j"]
    assert "me" in {one.manager for one in mine.metadata.managed_fields}


def test_it_finds_our_own_kinds_by_discovery(api: client.ApiClient) -> None:
    resources = dynamic.DynamicClient(api).resources
    kind = resources.get(api_version="cro.hpsys.ibm.ie.com/v1alpha1", kind="ComposableResource")
    assert kind.create(body=RESOURCE).spec.model == "A100"
    applied = {**RESOURCE, "spec": {**RESOURCE["spec"], "force_detach": True}}
    forced = kind.server_side_apply(body=applied, field_manager="me", force_conflicts=True)
    assert forced.spec.force_detach is True
    assert [one.metadata.name for one in kind.get().items] == ["r"]
    kind.delete(name="r")
    assert kind.get().items == []


def test_it_treats_our_own_kinds_as_custom_objects(api: client.ApiClient) -> None:
    custom = client.CustomObjectsApi(api)
    custom.create_cluster_custom_object(*CUSTOM, RESOURCE)
    patched = custom.patch_cluster_custom_object(*CUSTOM, "r", {"metadata": {"labels": {"a": "b"}}})
    assert patched["metadata"]["labels"] == {"a": "b"}
    status = {"status": {"state": "Online"}}
    told = custom.patch_cluster_custom_object_status(*CUSTOM, "r", status)
    assert told["status"]["state"] == "Online"
    assert custom.list_cluster_custom_object(*CUSTOM)["items"][0]["metadata"]["name"] == "r"


def test_it_creates_what_a_manifest_says(api: client.ApiClient) -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: of-a-manifest\n"
    utils.create_from_dict(api, yaml.safe_load(text))
    assert client.CoreV1Api(api).read_namespace("of-a-manifest").status.phase == "Active"
    assert client.VersionApi(api).get_code().git_version.startswith("v1.")
    groups = {one.name for one in client.ApisApi(api).get_api_versions().groups}
    assert "resource.k8s.io" in groups
