"""What the API server refuses in namespaces, pods, nodes, leases and CoHDI's two kinds; and what it fills in."""

import random

import pytest

from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store, Write
from jackfield.codec import Raw
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, named
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.taint import DeviceTaintRule

STATUS = Write(status=True)
POD = Key("d", "p")


def new_store() -> Store:
    return Store(lambda: Seconds(1.7e9), random.Random("core"))  # noqa: S311 - no cryptography


def pod(*containers: Raw, **spec: object) -> Raw:
    metadata = {"name": "p", "namespace": "d"}
    return {
        "metadata": metadata,
        "spec": {"containers": list(containers or ({"name": "c", "image": "i"},)), **spec},
    }


def request(**resource: object) -> Raw:
    wanted = {"type": "gpu", "model": "A100", "size": 1, **resource}
    return {
        "metadata": {"name": "r"},
        "spec": {"resource": {name: value for name, value in wanted.items() if value is not None}},
    }


def resource(**spec: object) -> Raw:
    wanted = {"type": "gpu", "model": "", "target_node": "", **spec}
    return {"metadata": {"name": "r"}, "spec": {name: one for name, one in wanted.items() if one is not None}}


def rule(**selector: object) -> Raw:
    taint = {"key": "a", "effect": "NoSchedule"}
    return {"metadata": {"name": "t"}, "spec": {"taint": taint, "deviceSelector": selector}}


CASES: dict[str, tuple[type[Object], Raw, list[str]]] = {
    "namespace": (Namespace, {"metadata": {"name": "team-a"}}, []),
    "namespace with a dot": (Namespace, {"metadata": {"name": "team.a"}}, ["metadata.name"]),
    "namespace without name": (Namespace, {"metadata": {}}, ["metadata.name"]),
    "pod": (Pod, pod(), []),
    "pod with claims": (
        Pod,
        pod(
            {"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}},
            resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
        ),
        [],
    ),
    "pod without containers": (Pod, {**pod(), "spec": {}}, ["spec.containers"]),
    "container without name": (Pod, pod({"image": "x"}), ["spec.containers[0].name"]),
    "container twice": (
        Pod,
        pod({"name": "c", "image": "i"}, {"name": "c", "image": "i"}),
        ["spec.containers[1].name"],
    ),
    "amount": (
        Pod,
        pod({"name": "c", "image": "i", "resources": {"requests": {"cpu": "many"}}}),
        ["spec.containers[0].resources.requests[cpu]"],
    ),
    "restart": (Pod, pod(restartPolicy="Sometimes"), ["spec.restartPolicy"]),
    "claim of both kinds": (
        Pod,
        pod(resourceClaims=[{"name": "a", "resourceClaimName": "b", "resourceClaimTemplateName": "c"}]),
        ["spec.resourceClaims[0]"],
    ),
    "claim of no kind": (Pod, pod(resourceClaims=[{"name": "a"}]), ["spec.resourceClaims[0]"]),
    "claim twice": (
        Pod,
        pod(resourceClaims=[{"name": "a", "resourceClaimName": "b"}] * 2),
        ["spec.resourceClaims[1].name"],
    ),
    "claim that is not there": (
        Pod,
        pod({"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}),
        ["spec.containers[0].resources.claims[0]"],
    ),
    "node": (Node, {"metadata": {"name": "n"}}, []),
    "node taint": (
        Node,
        {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}},
        ["metadata.taints[0].effect"],
    ),
    "node capacity": (
        Node,
        {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "many"}, "allocatable": {}}},
        ["status.capacity[cpu]"],
    ),
    "lease": (Lease, {"metadata": {"name": "l", "namespace": "d"}, "spec": {"holderIdentity": "a"}}, []),
    "lease of no time": (
        Lease,
        {"metadata": {"name": "l", "namespace": "d"}, "spec": {"leaseDurationSeconds": 0}},
        ["spec.leaseDurationSeconds"],
    ),
    "lease of nobody": (
        Lease,
        {"metadata": {"name": "l", "namespace": "d"}, "spec": {"holderIdentity": ""}},
        [],
    ),
    "request": (ComposabilityRequest, request(size=0, allocation_policy="differentnode"), []),
    "request of memory": (ComposabilityRequest, request(type="cxlmemory"), []),
    "request of anything": (ComposabilityRequest, request(type="dpu", allocation_policy="roundrobin"), []),
    "request without type": (ComposabilityRequest, request(type=None), ["spec.resource.type", "<nil>"]),
    "request of an odd type": (ComposabilityRequest, request(type="GPU"), ["spec.resource.type"]),
    "request without model": (ComposabilityRequest, request(model=""), ["spec.resource.model"]),
    "request without size": (ComposabilityRequest, request(size=None), ["spec.resource.size", "<nil>"]),
    "request below zero": (ComposabilityRequest, request(size=-1), ["spec.resource.size"]),
    "request by an unknown policy": (
        ComposabilityRequest,
        request(allocation_policy="anywhere"),
        ["spec.resource.allocation_policy", "<nil>"],
    ),
    "request with less than nothing": (
        ComposabilityRequest,
        request(other_spec={"memory": -1}),
        ["spec.resource.other_spec.memory"],
    ),
    "taint rule": (DeviceTaintRule, rule(driver="x.dev", pool="a/b", device="gpu-0"), []),
    "taint rule of a driver": (DeviceTaintRule, rule(driver="x_dev"), ["spec.deviceSelector.driver"]),
    "taint rule of a pool": (DeviceTaintRule, rule(pool=""), ["spec.deviceSelector.pool"]),
    "taint rule of a device": (DeviceTaintRule, rule(device="gpu.0"), ["spec.deviceSelector.device"]),
    "taint rule without effect": (
        DeviceTaintRule,
        {"metadata": {"name": "t"}, "spec": {"taint": {"key": "a"}}},
        ["spec.taint.effect"],
    ),
    "resource": (ComposableResource, resource(), []),
    "resource without type": (ComposableResource, resource(type=None), ["spec.type", "<nil>"]),
    "resource without model": (ComposableResource, resource(model=None), ["spec.model", "<nil>"]),
    "resource without node": (ComposableResource, resource(target_node=None), ["spec.target_node", "<nil>"]),
}


@pytest.mark.parametrize("name", CASES)
def test_an_object_is_taken_or_refused_at_the_very_field(name: str) -> None:
    kind, raw, fields = CASES[name]
    try:
        new_store().create(kind, raw)
    except ApiError as error:
        found = [one.field for one in error.causes] or [error.message]
    else:
        found = []
    assert found == fields


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"spec": {"schedulerName": "other"}}, "spec"),
        ({"spec": {"nodeSelector": {"a": "b"}}}, "spec"),
        ({"spec": {"containers": [{"name": "other", "image": "i"}]}}, "spec"),
        (
            {"spec": {"containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "i"}]}},
            "spec.containers",
        ),
        ({"spec": {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}}, "spec"),
        ({"spec": {"tolerations": None}}, "spec.tolerations"),
        ({"spec": {"containers": [{"name": "c", "image": "new"}]}}, ""),
        ({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}, {"operator": "Exists"}]}}, ""),
        ({"spec": {"nodeName": "n"}}, "spec"),
        ({"metadata": {"labels": {"a": "b"}}}, ""),
    ],
)
def test_a_pod_once_created_hardly_changes(body: Raw, field: str) -> None:
    store = new_store()
    store.create(Pod, pod(tolerations=[{"key": "a", "operator": "Exists"}]))
    if not field:
        assert store.patch(Pod, POD, body).version == 2
        return
    with pytest.raises(ApiError) as caught:
        store.patch(Pod, POD, body)
    assert [one.field for one in caught.value.causes] == [field]


@pytest.mark.parametrize("kind", [ComposabilityRequest, ComposableResource])
def test_a_status_says_a_state(kind: type[Object]) -> None:
    store = new_store()
    store.create(kind, request() if kind is ComposabilityRequest else resource())
    with pytest.raises(ApiError) as caught:
        store.patch(kind, named("r"), {"status": {"error": "x"}}, STATUS)
    assert [one.field for one in caught.value.causes] == ["status.state", "<nil>"]
    assert store.patch(kind, named("r"), {"status": {"state": "", "error": "x"}}, STATUS).version == 2


def test_limits_stand_in_for_requests_and_numbers_become_amounts() -> None:
    limits = {
        "name": "c",
        "image": "i",
        "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 0.5}},
    }
    stored = new_store().create(Pod, pod(limits))
    resources = stored.raw["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert resources["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_a_request_says_how_it_spreads_and_where() -> None:
    stored = new_store().create(ComposabilityRequest, request(other_spec={"memory": 1}))
    assert stored.raw["spec"]["resource"] == {
        "type": "gpu",
        "model": "A100",
        "size": 1,
        "allocation_policy": "samenode",
        "target_node": "",
        "other_spec": {"memory": 1, "milli_cpu": 0, "ephemeral_storage": 0, "allowed_pod_number": 0},
    }
