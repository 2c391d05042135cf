"""Lightkube does with the embedded API what it does with a real one."""

import pytest
from lightkube import ApiError, Client, KubeConfig
from lightkube.generic_resource import create_global_resource
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import CascadeType, PatchType

Resource = create_global_resource(
    "cro.hpsys.ibm.ie.com", "v1alpha1", "ComposableResource", "composableresources"
)


@pytest.fixture
def api(kubeconfig: str) -> Client:
    return Client(KubeConfig.from_file(kubeconfig), field_manager="lightkube", namespace="default")


def pod(name: str = "p") -> Pod:
    containers = [Container(name="c", image="i"), Container(name="d", image="i")]
    return Pod(metadata=ObjectMeta(name=name, labels={"app": "x"}), spec=PodSpec(containers=containers))


def test_it_creates_lists_and_deletes(api: Client) -> None:
    assert api.create(pod()).spec.restartPolicy == "Always"
    for number in range(5):
        api.create(ConfigMap(metadata=ObjectMeta(name=f"m{number}"), data={"a": "b"}))
    assert [one.metadata.name for one in api.list(ConfigMap, chunk_size=2)] == [f"m{n}" for n in range(5)]
    assert [one.metadata.name for one in api.list(Pod, labels={"app": ["x", "y"]})] == ["p"]
    api.delete(Pod, "p", grace_period=0, cascade=CascadeType.BACKGROUND)
    with pytest.raises(ApiError) as refused:
        api.get(Pod, "p")
    assert refused.value.status.reason == "NotFound"


def test_it_patches_in_four_ways(api: Client) -> None:
    api.create(pod())
    strategic = api.patch(Pod, "p", {"spec": {"containers": [{"name": "d", "image": "j"}]}})
    assert [one.image for one in strategic.spec.containers] == ["i", "j"]
    merged = api.patch(Pod, "p", {"metadata": {"labels": {"app": None}}}, patch_type=PatchType.MERGE)
    assert not merged.metadata.labels
    operations = [{"op": "replace", "path": "/spec/containers/0/image", "value": "k"}]
    assert api.patch(Pod, "p", operations, patch_type=PatchType.JSON).spec.containers[0].image == "k"
    applied = pod()
    applied.apiVersion, applied.kind = "v1", "Pod"
    with pytest.raises(ApiError, match="conflict"):
        api.apply(applied, field_manager="another")
    assert api.apply(applied, field_manager="another", force=True).spec.containers[0].image == "i"


def test_it_watches_and_waits(api: Client) -> None:
    api.create(Node(metadata=ObjectMeta(name="n")))
    told = []
    for kind, node in api.watch(Node, server_timeout=10):
        told.append((kind, node.metadata.name))
        if kind == "ADDED":
            api.patch(Node, "n", {"metadata": {"labels": {"a": "b"}}})
        if kind == "MODIFIED":
            api.delete(Node, "n")
        if kind == "DELETED":
            break
    assert told == [("ADDED", "n"), ("MODIFIED", "n"), ("DELETED", "n")]


def test_it_waits_for_a_condition(api: Client) -> None:
    api.create(Node(metadata=ObjectMeta(name="n")))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    api.patch(Node.Status, "n", ready)
    assert api.wait(Node, "n", for_conditions=["Ready"]).metadata.name == "n"


def test_it_knows_our_own_kinds(api: Client) -> None:
    spec = {"type": "gpu", "model": "A100", "target_node": "n"}
    api.create(Resource(metadata=ObjectMeta(name="r"), spec=spec))
    assert [one["spec"]["model"] for one in api.list(Resource)] == ["A100"]
    replaced = api.get(Resource, "r")
    replaced["spec"]["force_detach"] = True
    assert api.replace(replaced)["spec"]["force_detach"] is True
    told = api.patch(Resource.Status, "r", {"status": {"state": "Online"}}, patch_type=PatchType.MERGE)
    assert told["status"]["state"] == "Online"
    api.delete(Resource, "r")
    assert not list(api.list(Resource))
