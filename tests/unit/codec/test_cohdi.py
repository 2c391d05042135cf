"""What CoHDI's chart leaves in a cluster is read as it is spelt; of a release of Helm only the marks change."""

import base64

import pytest
import yaml

from jackfield.codec import Raw, cohdi
from jackfield.model.cohdi import Program, Settings, Worker
from jackfield.model.names import ModelName, NodeName
from jackfield.model.policy import DeviceModel

MODELS = """
- index: 1
  cdi-model-name: A100
  k8s-device-name: a100
  driver-name: gpu.nvidia.com
  dra-attributes: {productName: NVIDIA A100, uuid: ""}
  cannot-coexist-with: []
"""
DATA = {"device-info": MODELS, "label-prefix": "cohdi.io", "fabric-id-range": "[0]"}


def test_a_config_map_is_read() -> None:
    model = DeviceModel(
        1,
        ModelName("A100"),
        "a100",
        driver_name="gpu.nvidia.com",
        dra_attributes={"productName": "NVIDIA A100", "uuid": ""},
    )
    assert cohdi.config({"data": DATA}) == Settings(there=True, models=(model,), label_prefix="cohdi.io")


def test_one_that_is_not_there_is_nothing() -> None:
    assert cohdi.config(None) == Settings()


def test_what_was_written_down_is_read_again() -> None:
    text = cohdi.remembering({"TENANT_ID": "t"})
    assert cohdi.config({"data": {**DATA, "jackfield-environment": text}}).remembered == {"TENANT_ID": "t"}


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("device-info", "", "device-info is missing or empty"),
        ("device-info", "- [", "device-info is not YAML"),
        ("device-info", "- {index: x, cdi-model-name: a, k8s-device-name: b}", "device-info[0].index"),
        (
            "device-info",
            "- {index: 1, cdi-model-name: a, k8s-device-name: b, spare: 1}",
            "unknown field `spare`",
        ),
        ("jackfield-environment", "- a", "jackfield-environment is no map of texts"),
        ("jackfield-environment", "{", "jackfield-environment is no map of texts"),
    ],
)
def test_what_cannot_be_understood_is_said(key: str, text: str, words: str) -> None:
    (fault,) = cohdi.config({"data": {**DATA, key: text}}).faults
    assert words in fault


def test_a_deployment_is_read_with_what_its_containers_are_told() -> None:
    told = [{"name": "TENANT_ID", "value": "t"}, {"name": "POD", "valueFrom": {}}]
    pod = {
        "containers": [{"env": told}, {}],
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["a", "b"]}, {"ip": "192.0.2.2"}],
    }
    meta = {"name": "n", "namespace": "s"}
    raw: Raw = {"metadata": meta, "spec": {"replicas": 0, "template": {"spec": pod}}}
    assert cohdi.program(raw) == Program(
        "s", "n", 0, {"TENANT_ID": "t"}, {"a": "192.0.2.1", "b": "192.0.2.1"}
    )
    assert cohdi.program({"metadata": meta, "spec": {}}).replicas == 1, "the API's default"


def test_a_node_and_a_host_are_read() -> None:
    node: Raw = {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"providerID": "x://y"}}
    assert cohdi.worker(node) == Worker(NodeName("n"), {"a": "b"}, "x://y")
    assert cohdi.worker({"metadata": {"name": "n"}}) == Worker(NodeName("n"))
    host: Raw = {"metadata": {"uid": "u", "annotations": {"cluster-manager.cdi.io/machine": "m"}}}
    assert cohdi.host(host) == ("u", "m")
    assert cohdi.host({"metadata": {"uid": "u"}}) == ("u", "")


def test_a_secret_is_read_and_what_is_no_text_is_nothing() -> None:
    held: Raw = {
        "data": {"a": base64.b64encode(b"x").decode(), "b": base64.b64encode(b"\xff").decode(), "c": "?"}
    }
    assert [cohdi.secret(held, name) for name in "abcd"] == ["x", "", "", ""]
    assert cohdi.secret(None, "a") == ""


# --- Helm

MANIFEST = """---
# Source: cohdi/templates/crds.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: composableresources.cro.hpsys.ibm.ie.com
  annotations:
    controller-gen.kubebuilder.io/version: v0.16.1
spec:
  scope: Cluster
---
# Source: cohdi/templates/config.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: composable-dra-dds, namespace: composable-dra}
data: {label-prefix: cohdi.io}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: composable-dra-dds}
---
this is: [not YAML, composable-dra-secret
"""
RECORD: Raw = {
    "name": "cohdi",
    "namespace": "ns",
    "version": 3,
    "manifest": MANIFEST,
    "info": {"status": "deployed"},
}
NAMES = (
    "CustomResourceDefinition/composableresources.cro.hpsys.ibm.ie.com",
    "ConfigMap/composable-dra-dds",
)


def test_what_we_need_of_a_release_is_kept_and_nothing_else_changes() -> None:
    before = cohdi.release(RECORD)
    assert (before.name, before.namespace, before.lost, before.kept) == ("cohdi", "ns", NAMES, ())
    kept = cohdi.keeping(RECORD, keep=True)
    assert (cohdi.release(kept).lost, cohdi.release(kept).kept) == ((), NAMES)
    assert {key: value for key, value in kept.items() if key != "manifest"} == {
        key: value for key, value in RECORD.items() if key != "manifest"
    }
    assert "# Source: cohdi/templates/crds.yaml" in kept["manifest"]
    sound = [part for part in kept["manifest"].split("\n---\n") if "not YAML" not in part]
    crd, config, account = [one for one in map(yaml.safe_load, sound) if one]
    assert crd["metadata"]["annotations"] == {
        "controller-gen.kubebuilder.io/version": "v0.16.1",
        "helm.sh/resource-policy": "keep",
    }
    assert (crd["spec"], config["data"]) == ({"scope": "Cluster"}, {"label-prefix": "cohdi.io"})
    assert account == {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "composable-dra-dds"},
    }


def test_a_mark_can_be_taken_back() -> None:
    back = cohdi.keeping(cohdi.keeping(RECORD, keep=True), keep=False)
    assert cohdi.release(back).lost == NAMES
    assert "resource-policy" not in back["manifest"]
    assert "annotations" not in yaml.safe_load(back["manifest"].split("\n---\n")[2])["metadata"]


def test_a_release_is_opened_and_packed_as_helm_does() -> None:
    secret: Raw = {"metadata": {"name": "s"}, "data": {"release": cohdi.packed(RECORD)}}
    assert cohdi.opened(secret) == RECORD


@pytest.mark.parametrize("text", ["", "!", base64.b64encode(b"eHg=").decode()])
def test_what_is_no_release_is_named(text: str) -> None:
    with pytest.raises(cohdi.BadRelease, match="Secret s is no release"):
        cohdi.opened({"metadata": {"name": "s"}, "data": {"release": text}})
