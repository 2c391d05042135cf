"""The chart's pods run as they are rendered, out of our image, by a real kubelet and containerd.

What differs from the chart: there is no network for pods here, so they are in their node's, on ports of their own, and
are told where the API server is; and no storage, so the manager's volume lasts as long as its pod. What is not real is
the hardware: the manager only keeps books, and the card that it speaks of is in a machine made of files.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.codec.definitions import definitions
from jackfield.fabric_manager.hardware import Hardware, Lab
from jackfield.model.names import PhysicalID
from jackfield.model.policy import DRIVER
from jackfield.testing.control_plane import ControlPlane, NodeProgram, RealNode
from jackfield.testing.control_plane.loopback import free_ports
from jackfield.testing.sysfs import Machine
from real.accounts import put
from real.chart_values import MODEL
from real.helm import NAMESPACE, rendered
from real.pods import POD_SECONDS, create, delete, pod, status
from real.slots import Slots
from real.waiting import comes_true

pytestmark = [pytest.mark.node, pytest.mark.image]

TOKEN = "only-for-this-test"  # noqa: S105 - guards a manager on loopback
INVENTORY: Raw = {
    "fabric": "lab",
    "machines": [{"name": "node-1", "slots": 4}],
    "devices": [{"name": "gpu", "model": "A100"}],
}
CARD = "gpu-1"
CLAIM: Raw = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu"},
    "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.jackfield.dev"}}]}},
}
SECRET: Raw = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "lab-token", "namespace": NAMESPACE},
    "stringData": {"token": TOKEN},
}
WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet")


def fitted(objects: list[Raw], node: RealNode) -> list[Raw]:
    """Fit what was rendered to a node without a network for pods."""
    manager, first, second, plugin = free_ports(4)
    # The manager's metrics stand on another port than the controllers': both are in the node's network.
    ports = {"8471": manager, "8081": plugin}
    address = f"jackfield-fabric-manager.{NAMESPACE}.svc"
    made = []
    for one in objects:
        text = msgspec.json.encode(one).decode().replace(f"http://{address}", "http://127.0.0.1")
        mine = {**ports, "8080": first if one["metadata"]["name"].endswith("manager") else second}
        for number, instead in mine.items():
            text = text.replace(f":{number}", f":{instead}").replace(f"port={number}", f"port={instead}")
        changed: Raw = msgspec.json.decode(text)
        if one["kind"] in WORKLOADS:
            spec = changed["spec"]["template"]["spec"]
            spec["hostNetwork"] = True
            spec["containers"][0]["env"] = [*spec["containers"][0].get("env", ()), *node.environment]
        if one["kind"] == "StatefulSet":
            del changed["spec"]["volumeClaimTemplates"]
            changed["spec"]["template"]["spec"]["volumes"].append({"name": "state", "emptyDir": {}})
        if one["kind"] == "Deployment":
            # Two of them would want one port.
            changed["spec"]["replicas"] = 1
        made.append(changed)
    return made


def values(machine: Machine) -> Raw:
    """What an administrator says; the plugin is shown a machine that is made of files."""
    folder = str(machine.sysfs.parent)
    roots = {"sysfs": machine.sysfs, "proc": machine.proc, "dev": machine.dev}
    return {
        "image": {"pullPolicy": "Never"},
        "policy": {"models": [MODEL], "holdSeconds": 0, "inventorySeconds": 2},
        "fabricManager": {"enabled": True, "inventory": INVENTORY, "existingSecret": "lab-token"},
        "node": {
            "extraArgs": [f"--{name}-root={path}" for name, path in roots.items()],
            "extraVolumes": [{"name": "machine", "hostPath": {"path": folder}}],
            "extraVolumeMounts": [{"name": "machine", "mountPath": folder}],
        },
    }


@pytest.fixture(scope="module")
def slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slots]:
    """A machine with the card that the manager's books speak of, off the bus."""
    machine = Slots(tmp_path_factory.mktemp("chart"), lambda: False)
    lab = Hardware(msgspec.convert(INVENTORY, Lab))
    (machine.folder / CARD).write_text(lab.devices[PhysicalID(CARD)].serial)
    with machine:
        yield machine


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, node: RealNode, image: Path, slots: Slots) -> Iterator[ControlPlane]:
    node.import_image(image)
    objects = fitted(rendered(values(slots.machine)), node)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    put(plane, space, SECRET, *definitions())
    put(plane, *objects)
    yield plane
    gone = [one for one in objects if one["kind"] != "Namespace"]
    plane.kubectl("delete", "--filename=-", "--wait=true", text="\n".join(map(as_document, gone)))
    plane.kubectl("delete", "pods", "--all", f"--namespace={NAMESPACE}")
    plane.kubectl("delete", "leases", "--all", "--namespace=jackfield-node")
    plane.kubectl("delete", "resourceslices", f"--field-selector=spec.driver={DRIVER}")
    plane.kubectl("label", "node", node.name, "cohdi.io/fabric-", "cohdi.io/a100-")


def as_document(one: Raw) -> str:
    return f"---\n{msgspec.json.encode(one).decode()}"


def ready(plane: ControlPlane, kind: str, name: str, field: str) -> bool:
    words = (f"--namespace={NAMESPACE}", f"--output=jsonpath={{.status.{field}}}")
    return plane.kubectl("get", kind, name, *words) == "1"


def test_every_part_of_the_chart_becomes_ready_on_a_real_node(
    installed: ControlPlane, node: RealNode
) -> None:
    parts = {
        "statefulset/jackfield-fabric-manager": "readyReplicas",
        "deployment/jackfield-controllers": "readyReplicas",
        "daemonset/jackfield-node": "numberReady",
    }
    for name, field in parts.items():
        kind, _, plain = name.partition("/")
        if not comes_true(partial(ready, installed, kind, plain, field), seconds=POD_SECONDS):
            raise AssertionError(f"{name} is not ready\n{report(installed, node)}")
    # What the three do together: the manager's devices are offered, and the plugin's token is good for its Lease.
    assert comes_true(lambda: "A100" in installed.kubectl("get", "resourceslices", "--output=json"))
    assert comes_true(
        lambda: node.name in installed.kubectl("get", "leases", "--namespace=jackfield-node", "--output=name")
    )


def test_a_pod_gets_a_device_from_the_charts_own_pods(
    installed: ControlPlane, node: RealNode, slots: Slots
) -> None:
    variable = f"JACKFIELD_DEVICE_A100_{CARD.replace('-', '_').upper()}"
    claims = [{"name": "gpu", "resourceClaimName": "gpu"}]
    made = pod("asks", "/bin/sh", "-c", f'echo "${variable}"', spec={"resourceClaims": claims})
    made["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    create(installed, CLAIM, made)
    if not comes_true(lambda: status(installed, "asks").get("phase") == "Succeeded", seconds=POD_SECONDS):
        raise AssertionError(f"the pod has no device\n{report(installed, node)}")
    assert installed.kubectl("logs", "asks").strip() == slots.uuid(CARD)
    delete(installed, "asks")
    installed.kubectl("delete", "resourceclaim", "gpu")
    books = ("get", "composableresources", "--output=name")
    if not comes_true(lambda: installed.kubectl(*books) == "", seconds=POD_SECONDS):
        raise AssertionError(f"the device is not let go\n{report(installed, node)}")
    assert slots.on_bus == ()


def report(plane: ControlPlane, node: RealNode) -> str:
    """What was said about pods, and by them."""
    said = [plane.kubectl("describe", "pods", f"--namespace={NAMESPACE}")]
    said.append(
        plane.kubectl("get", "resourceclaims,composableresources,events", "--all-namespaces", "--output=wide")
    )
    selector = "--selector=app.kubernetes.io/name=jackfield"
    said.append(plane.kubectl("logs", selector, "--all-containers", "--prefix", f"--namespace={NAMESPACE}"))
    return "\n".join([*said, *node.log(NodeProgram.KUBELET).splitlines()[-20:]])
