"""What Kubernetes supports is found out on real API servers, and a real scheduler's gate shows in what it writes."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw, decode
from jackfield.core import gates
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import load
from jackfield.kube.gates import supported
from jackfield.model.claim import ResourceClaim
from jackfield.model.gates import Gate, Gates
from jackfield.ports import Refused
from jackfield.testing import builders as b
from jackfield.testing.control_plane import ControlPlane, Settings, fake_node
from real.waiting import comes_true

DEFAULTS = Gates("v1.36.4", taint_rules=False)
ALL_OFF = (*(f"{one}=false" for one in Gate), "DRAResourceClaimGranularStatusAuthorization=false")
"""The last depends on one of the others, and the API server does not start without it being off too."""
RULES_ON = Settings(
    feature_gates=("DRADeviceTaintRules=true",),
    apiserver_flags=("--runtime-config=resource.k8s.io/v1beta2=true",),
    scheduler_flags=("--feature-gates=DRADeviceBindingConditions=false",),
)


def found(kubeconfig: Path) -> Gates:
    async def main() -> Gates:
        async with KubeCluster(load(kubeconfig)) as cluster:
            return await supported(cluster)

    return asyncio.run(main())


# --- the API server


def test_kubernetes_1_36_has_all_but_taint_rules_by_default(plane: ControlPlane, kubeconfig: Path) -> None:
    assert found(kubeconfig) == DEFAULTS
    assert "jackfield-probe" not in plane.kubectl("get", "resourceslices", "--output=name")


def test_who_may_not_create_slices_is_told_so(plane: ControlPlane) -> None:
    with pytest.raises(Refused, match="cannot create resource"):
        found(plane.kubeconfig_for("alice"))


def test_what_is_off_is_seen_to_be_off() -> None:
    with ControlPlane(Settings(feature_gates=ALL_OFF)) as other:
        assert found(other.kubeconfig) == msgspec.structs.replace(
            Gates("v1.36.4", *(False,) * 5), claims=True
        )


# --- the scheduler

CLASS: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "seen"},
    "spec": {},
}
SLICE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "seen"},
    "spec": {
        "driver": "seen.example",
        "pool": {"name": "seen", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "seen-on",
        "devices": [{"name": "local"}],
    },
}
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "seen", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "any", "exactly": {"deviceClassName": "seen"}}]}},
}
POD: Raw = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "seen"},
    "spec": {
        "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "device"}]}}],
        "resourceClaims": [{"name": "device", "resourceClaimName": "seen"}],
    },
}


@contextmanager
def allocated(plane: ControlPlane) -> Iterator[ResourceClaim]:
    """A claim that the scheduler allocated from an entry without binding conditions."""
    with plane.api() as api:
        fake_node(api, "seen-on", {})
    for one in (CLASS, SLICE, CLAIM, POD):
        plane.kubectl("create", "--filename=-", text=msgspec.json.encode(one).decode())

    def claim() -> ResourceClaim:
        return decode(ResourceClaim, plane.kubectl("get", "resourceclaim", "seen", "--output=json").encode())

    try:
        assert comes_true(lambda: bool(claim().results))
        yield claim()
    finally:
        plane.kubectl("delete", "pod/seen", "--force", "--grace-period=0")
        plane.kubectl(
            "delete", "resourceclaim/seen", "resourceslice/seen", "deviceclass/seen", "node/seen-on"
        )


def test_a_scheduler_with_its_gate_on_shows_nothing_amiss(plane: ControlPlane) -> None:
    with allocated(plane) as claim:
        assert gates.scheduler(b.world(), claim, DEFAULTS) is None


def test_a_scheduler_with_its_gate_off_shows_it_while_the_api_server_does_not() -> None:
    with ControlPlane(RULES_ON) as other, allocated(other) as claim:
        assert found(other.kubeconfig) == Gates("v1.36.4")
        finding = gates.scheduler(b.world(), claim, Gates("v1.36.4"))
        assert finding is not None
        assert "bears no time" in finding.meaning
