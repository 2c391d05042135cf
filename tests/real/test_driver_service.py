"""A real kubelet and a driver: health is shown, one pod of the driver follows another, and deaths are survived."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from jackfield.codec import Raw
from jackfield.driver.service import (
    Answer,
    ClaimRef,
    DeviceHealth,
    Health,
    HealthSource,
    Places,
    PreparedDevice,
    Service,
)
from jackfield.testing.control_plane import ControlPlane, NodeProgram, RealNode
from real.pods import POD_SECONDS, create, delete, phase_comes, pod, status
from real.waiting import comes_true

pytestmark = pytest.mark.node

DRIVER = "pulse.jackfield.dev"
OLD = "0f7f2d3e-8d0a-4c52-9a53-1f8f6e3f8a11"
NEW = "5a3d94a2-0a57-4f0e-b9c5-6b7a0d1e2c33"
CLAIM = "beats"
SLICE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "pulses"},
    "spec": {
        "driver": DRIVER,
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-1",
        "devices": [{"name": "one"}],
    },
}
CLASS: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "pulse"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}
CLAIMED: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": CLAIM},
    "spec": {"devices": {"requests": [{"name": "it", "exactly": {"deviceClassName": "pulse"}}]}},
}


class Willing:
    """Prepares without doing anything, and remembers what it was asked."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.undone = asyncio.Event()

    async def prepare(self, claim: ClaimRef) -> Answer:
        self.calls.append(f"prepare {claim.name}")
        return Answer((PreparedDevice(("it",), "node-1", "one"),))

    async def unprepare(self, claim: ClaimRef) -> str:
        self.calls.append(f"unprepare {claim.name}")
        self.undone.set()
        return ""


@pytest.fixture
def patient(plane: ControlPlane, node: RealNode) -> Iterator[Places]:
    """A cluster with one device, and where its driver is to live; afterwards nothing of it is left."""
    try:
        yield Places(node.plugins, node.registry, node.cdi)
    finally:
        plane.kubectl("delete", "pods", "--all")
        for kind, name in (("resourceclaim", CLAIM), ("deviceclass", "pulse"), ("resourceslice", "pulses")):
            plane.kubectl("delete", kind, name, "--ignore-not-found")


def lives(name: str) -> Raw:
    made = pod(
        name,
        *("/bin/sleep", "infinity"),
        spec={"resourceClaims": [{"name": "pulse", "resourceClaimName": CLAIM}]},
    )
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "pulse"}]}
    return made


def health_of(plane: ControlPlane, name: str) -> list[str]:
    containers = status(plane, name).get("containerStatuses", [{}])
    shown = containers[0].get("allocatedResourcesStatus", [])
    return [resource["health"] for one in shown for resource in one["resources"]]


def test_a_devices_health_is_shown_with_the_pod_that_has_it(
    plane: ControlPlane, node: RealNode, patient: Places
) -> None:
    async def main() -> None:
        source = HealthSource([DeviceHealth("node-1", "one", Health.HEALTHY)])

        async def shown(health: Health) -> bool:
            return await plane.aside(
                lambda: comes_true(lambda: health_of(plane, "lives") == [health], seconds=POD_SECONDS)
            )

        willing = Willing()
        async with Service(DRIVER, willing, patient, source) as service:
            await service.registered.wait()
            await plane.aside(lambda: create(plane, SLICE, CLASS, CLAIMED, lives("lives")))
            await plane.aside(lambda: phase_comes(plane, node, "lives", "Running"))
            assert await shown(Health.HEALTHY)
            source.tell([DeviceHealth("node-1", "one", Health.UNHEALTHY, "too hot")])
            assert await shown(Health.UNHEALTHY)
            await plane.aside(lambda: delete(plane, "lives"))
            await willing.undone.wait()

    asyncio.run(asyncio.wait_for(main(), 2 * POD_SECONDS))


def test_a_claim_that_one_pod_of_a_driver_prepared_is_unprepared_by_the_next(
    plane: ControlPlane, node: RealNode, patient: Places
) -> None:
    async def main() -> None:
        first, second = Willing(), Willing()
        async with contextlib.AsyncExitStack() as old:
            before = await old.enter_async_context(Service(DRIVER, first, replace(patient, pod_uid=OLD)))
            await before.registered.wait()
            await plane.aside(lambda: create(plane, SLICE, CLASS, CLAIMED, lives("moves")))
            await plane.aside(lambda: phase_comes(plane, node, "moves", "Running"))
            async with Service(DRIVER, second, replace(patient, pod_uid=NEW)) as after:
                await after.registered.wait()
                await old.aclose()
                await plane.aside(lambda: delete(plane, "moves"))
                await second.undone.wait()
        assert (first.calls, second.calls) == ([f"prepare {CLAIM}"], [f"unprepare {CLAIM}"])

    asyncio.run(asyncio.wait_for(main(), 2 * POD_SECONDS))


def test_after_deaths_on_either_side_both_find_each_other_again(
    plane: ControlPlane, node: RealNode, patient: Places
) -> None:
    async def main() -> None:
        for path in (patient.registration(DRIVER), patient.service(DRIVER)):
            dead(path)
        async with Service(DRIVER, Willing(), patient) as service:
            await service.registered.wait()
            service.registered.tell(registered=False, error="the kubelet is dead")
            await plane.aside(lambda: node.kill(NodeProgram.KUBELET))
            await plane.aside(lambda: node.start(NodeProgram.KUBELET))
            await service.registered.wait()
            assert service.trouble() == ""

    asyncio.run(asyncio.wait_for(main(), 2 * POD_SECONDS))


def dead(path: Path) -> None:
    """Leave what a killed process leaves: a socket on which nobody listens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))
