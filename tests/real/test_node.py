"""The node that tests stand on is a real one: pods start on it, get their devices, and outlive its kubelet."""

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.driver.service import Answer, ClaimRef, Places, PreparedDevice, Service
from jackfield.testing.control_plane import ControlPlane, NodeProgram, RealNode
from real.pods import POD_SECONDS, create, delete, phase_comes, pod, said, status
from real.waiting import comes_true

pytestmark = pytest.mark.node

DRIVER = "toy.jackfield.dev"
GADGET = "toy.jackfield.dev/gadget=one"
ZERO = os.makedev(1, 5)
SLICE: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "toys"},
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
    "metadata": {"name": "toy"},
    "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
}
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "a-toy"},
    "spec": {"devices": {"requests": [{"name": "it", "exactly": {"deviceClassName": "toy"}}]}},
}


@pytest.fixture(autouse=True)
def no_pods(plane: ControlPlane, node: RealNode) -> Iterator[None]:
    """Each test begins without pods, whatever the one before left behind."""
    yield
    plane.kubectl("delete", "pods", "--all")
    # A pod without grace is gone from the API before its containers are.
    assert comes_true(lambda: node.containers() == (), seconds=POD_SECONDS)


# --- pods


def test_a_node_is_ready_and_says_what_it_runs(plane: ControlPlane, node: RealNode) -> None:
    shown: Raw = msgspec.json.decode(plane.kubectl("get", "node", node.name, "--output=json"))
    info = shown["status"]["nodeInfo"]
    assert info["kubeletVersion"] == "v1.36.4"
    assert info["containerRuntimeVersion"].startswith("containerd://2.1.")
    assert "taints" not in shown["spec"]


def test_a_pod_starts_where_the_scheduler_put_it_and_its_logs_can_be_read(
    plane: ControlPlane, node: RealNode
) -> None:
    create(plane, pod("speaks", "/bin/sh", "-c", "echo I run on $(hostname)"))
    assert said(plane, node, "speaks") == "I run on node-1\n"


def test_a_container_that_fails_is_told_with_its_status(plane: ControlPlane, node: RealNode) -> None:
    create(plane, pod("fails", "/bin/sh", "-c", "exit 3"))
    phase_comes(plane, node, "fails", "Failed")
    assert status(plane, "fails")["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_command_can_be_run_in_a_container(plane: ControlPlane, node: RealNode) -> None:
    create(plane, pod("waits", "/bin/sleep", "infinity"))
    phase_comes(plane, node, "waits", "Running")
    assert plane.kubectl("exec", "waits", "--", "/bin/echo", "inside") == "inside\n"


def test_the_containers_of_a_deleted_pod_are_gone(plane: ControlPlane, node: RealNode) -> None:
    create(plane, pod("short", "/bin/sleep", "infinity"))
    phase_comes(plane, node, "short", "Running")
    assert len(node.containers()) == 2  # its own, and the one that holds its namespaces
    delete(plane, "short")
    assert comes_true(lambda: node.containers() == (), seconds=POD_SECONDS)


def test_a_pod_that_wants_a_network_is_told_why_there_is_none(plane: ControlPlane) -> None:
    create(plane, pod("wants-a-network", "/bin/true", spec={"hostNetwork": False}))

    def told() -> bool:
        words = plane.kubectl("get", "events", "--field-selector=involvedObject.name=wants-a-network")
        return "write hostNetwork: true into the pod's spec" in words

    assert comes_true(told, seconds=POD_SECONDS)
    delete(plane, "wants-a-network")


# --- a bad day


@pytest.mark.parametrize("program", NodeProgram)
def test_containers_go_on_while_a_program_of_the_node_is_dead(
    plane: ControlPlane, node: RealNode, program: NodeProgram
) -> None:
    name = f"outlives-{program}"
    create(plane, pod(name, "/bin/sleep", "infinity"))
    phase_comes(plane, node, name, "Running")
    before, ids = node.pid(program), node.containers()
    node.kill(program)
    node.start(program)
    assert node.pid(program) != before
    assert node.containers() == ids
    create(plane, pod("afterwards", "/bin/true"))
    phase_comes(plane, node, "afterwards", "Succeeded")
    assert status(plane, name)["containerStatuses"][0]["restartCount"] == 0


def test_a_paused_kubelet_starts_nothing_until_it_may_go_on(plane: ControlPlane, node: RealNode) -> None:
    node.pause(NodeProgram.KUBELET)
    create(plane, pod("is-late", "/bin/true", spec={"nodeName": node.name}))
    seen = status(plane, "is-late")["phase"]
    node.resume(NodeProgram.KUBELET)
    assert seen == "Pending"
    phase_comes(plane, node, "is-late", "Succeeded")


def test_a_program_on_the_node_sees_its_paths_and_ends_when_killed(node: RealNode, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    words = f"ls -d /var/lib/kubelet/plugins /var/run/cdi >{seen}; hostname >>{seen}; exec sleep infinity"
    program = node.program("watcher", "/bin/sh", "-c", words)
    program.start()
    try:
        assert comes_true(lambda: seen.exists() and "node-1" in seen.read_text())
        assert seen.read_text().splitlines()[:2] == ["/var/lib/kubelet/plugins", "/var/run/cdi"]
    finally:
        program.kill()
    assert not Path(f"/proc/{program.pid}").exists()


# --- devices


class Toys:
    """Prepares the one gadget: a file for the container runtime is all it takes."""

    def __init__(self, node: RealNode) -> None:
        self._spec = node.cdi / "toy.json"
        self.undone = asyncio.Event()

    async def prepare(self, claim: ClaimRef) -> Answer:
        edits = {
            "env": [f"GADGET_OF={claim.name}"],
            "deviceNodes": [{"path": "/dev/gadget", "hostPath": "/run/gadget", "permissions": "r"}],
        }
        spec = {
            "cdiVersion": "0.6.0",
            "kind": GADGET.partition("=")[0],
            "devices": [{"name": "one", "containerEdits": edits}],
        }
        self._spec.write_bytes(msgspec.json.encode(spec))
        return Answer((PreparedDevice(("it",), "node-1", "one", (GADGET,)),))

    async def unprepare(self, claim: ClaimRef) -> str:
        assert claim.name == "a-toy"
        self._spec.unlink(missing_ok=True)
        self.undone.set()
        return ""


WORDS = "echo $GADGET_OF; stat -c %t:%T /dev/gadget; head -c 4 /dev/gadget | od -An -tx1"


async def plays(plane: ControlPlane, node: RealNode, toys: Toys) -> str:
    """Return what a pod with a claim had to say; the claim was prepared before, and is unprepared after."""
    claims = {"resourceClaims": [{"name": "toy", "resourceClaimName": "a-toy"}]}
    player = pod("plays", "/bin/sh", "-c", WORDS, spec=claims)
    player["spec"]["containers"][0]["resources"] = {"claims": [{"name": "toy"}]}
    async with Service(DRIVER, toys, Places(node.plugins, node.registry, node.cdi)) as service:
        await service.registered.wait()
        await plane.aside(lambda: create(plane, SLICE, CLASS, CLAIM, player))
        words = await plane.aside(lambda: said(plane, node, "plays"))
        await plane.aside(lambda: delete(plane, "plays"))
        await toys.undone.wait()
    return words


def test_a_container_gets_what_a_driver_names_by_cdi(plane: ControlPlane, node: RealNode) -> None:
    gadget = node.place("/run/gadget")
    os.mknod(gadget, stat.S_IFCHR | 0o666, ZERO)

    async def run() -> str:
        async with asyncio.timeout(POD_SECONDS):
            return await plays(plane, node, Toys(node))

    try:
        assert asyncio.run(run()).split("\n") == ["a-toy", "1:5", " 00 00 00 00", ""]
    finally:
        gadget.unlink()
        plane.kubectl("delete", "resourceclaim/a-toy", "deviceclass/toy", "--ignore-not-found")
        plane.kubectl("delete", "resourceslice/toys", "--ignore-not-found")
