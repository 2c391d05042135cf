"""The controllers' role is enough for a claim's whole life on a real API server, and for no other driver's claims."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.kube.client import KubeCluster
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, Version
from jackfield.model.policy import DRIVER, FAILED, READY
from jackfield.ports import Apply, Merge, Refused
from jackfield.testing.control_plane import ControlPlane, fake_node
from real import accounts
from real.waiting import comes_true

KEY = Key("default", "waits")
API = {"apiVersion": "resource.k8s.io/v1"}
CLASS: Raw = {**API, "kind": "DeviceClass", "metadata": {"name": "waits"}, "spec": {}}
ENTRY: Raw = {
    "name": "a100-1",
    "allNodes": True,
    "bindsToNode": True,
    "bindingConditions": [READY],
    "bindingFailureConditions": [FAILED],
}
SLICE: Raw = {
    **API,
    "kind": "ResourceSlice",
    "metadata": {"name": "waits"},
    "spec": {
        "driver": DRIVER,
        "pool": {"name": "rack-a", "generation": 1, "resourceSliceCount": 1},
        "perDeviceNodeSelection": True,
        "devices": [ENTRY],
    },
}
CLAIM: Raw = {
    **API,
    "kind": "ResourceClaim",
    "metadata": {"name": KEY.name, "namespace": KEY.namespace},
    "spec": {"devices": {"requests": [{"name": "any", "exactly": {"deviceClassName": "waits"}}]}},
}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waits"},
    "spec": {
        "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "device"}]}}],
        "resourceClaims": [{"name": "device", "resourceClaimName": KEY.name}],
    },
}
CONDITION = {
    "type": READY,
    "status": "True",
    "reason": READY,
    "message": "attached",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
SAID = Apply(
    ResourceClaim,
    KEY,
    Version(""),
    {
        "status": {
            "devices": [{"driver": DRIVER, "pool": "rack-a", "device": "a100-1", "conditions": [CONDITION]}]
        }
    },
    manager="jackfield/rack-a",
    status=True,
)
CLEARED = Merge(
    ResourceClaim,
    KEY,
    Version(""),
    {"status": {"allocation": None, "reservedFor": None, "devices": None}},
    status=True,
)


@pytest.fixture
def waiting(fresh: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster in which a claim was given a device of our driver, and its pod waits for it."""
    plane = fresh
    with plane.api() as api:
        fake_node(api, "waits-on", {})
    for one in (CLASS, SLICE, CLAIM, POD):
        plane.kubectl("create", "--filename=-", text=msgspec.json.encode(one).decode())

    def allocated() -> bool:
        return bool(plane.kubectl("get", "resourceclaim", KEY.name, "--output=jsonpath={.status.allocation}"))

    try:
        assert comes_true(allocated)
        yield plane
    finally:
        plane.kubectl("delete", "pod/waits", "--force", "--grace-period=0", "--ignore-not-found")
        plane.kubectl(
            "delete", "resourceclaim/waits", "resourceslice/waits", "deviceclass/waits", "node/waits-on"
        )


def test_the_controllers_may_say_ready_and_clear_what_is_left(waiting: ControlPlane, tmp_path: Path) -> None:
    async def scene(cluster: KubeCluster) -> tuple[ResourceClaim, ResourceClaim]:
        said, cleared = await cluster.write(SAID), await cluster.write(CLEARED)
        assert isinstance(said, ResourceClaim)
        assert isinstance(cleared, ResourceClaim)
        return said, cleared

    with accounts.controllers(waiting, tmp_path) as kubeconfig:
        said, cleared = accounts.with_cluster(kubeconfig, scene)
    assert [[one.type for one in device.conditions] for device in said.status.devices] == [[READY]]
    assert cleared.status.allocation is None


def test_the_controllers_may_say_nothing_of_another_driver(waiting: ControlPlane, tmp_path: Path) -> None:
    with (
        accounts.controllers(waiting, tmp_path, drivers=("gpu.example",)) as kubeconfig,
        pytest.raises(Refused, match="arbitrary-node:patch"),
    ):
        accounts.with_cluster(kubeconfig, lambda cluster: cluster.write(SAID))
