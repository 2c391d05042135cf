"""Pods for a real node, and what becomes of them. Knows their few fields. Must not know what they are for."""

from collections.abc import Mapping

import msgspec

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane, NodeProgram, RealNode
from real.waiting import comes_true

BUSYBOX = "jackfield.test/busybox:1"
POD_SECONDS = 120.0
NOTHING: Mapping[str, object] = {}


def pod(name: str, *command: str, image: str = BUSYBOX, spec: Mapping[str, object] = NOTHING) -> Raw:
    """Return a pod with one container, in the network of its node, which ends at once when it is to end."""
    container: Raw = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": list(command)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "hostNetwork": True,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def create(plane: ControlPlane, *objects: Raw) -> None:
    """Create objects."""
    for one in objects:
        plane.kubectl("create", "--filename=-", text=msgspec.json.encode(one).decode())


def status(plane: ControlPlane, name: str) -> Raw:
    """Return what the kubelet says of a pod."""
    found: Raw = msgspec.json.decode(plane.kubectl("get", "pod", name, "--output=json"))
    said: Raw = found["status"]
    return said


def phase_comes(plane: ControlPlane, node: RealNode, name: str, phase: str) -> None:
    """Wait for a pod's phase. A failure says what the node had to say."""
    if not comes_true(lambda: status(plane, name).get("phase") == phase, seconds=POD_SECONDS):
        words = plane.kubectl("describe", "pod", name)
        tail = "\n".join(node.log(NodeProgram.KUBELET).splitlines()[-40:])
        raise AssertionError(f"pod {name} is not {phase}:\n{words}\nThe end of the kubelet's log:\n{tail}")


def said(plane: ControlPlane, node: RealNode, name: str) -> str:
    """Return what a pod had to say, when it has ended well."""
    phase_comes(plane, node, name, "Succeeded")
    return plane.kubectl("logs", name)


def delete(plane: ControlPlane, *names: str) -> None:
    """Delete pods; return when they are gone."""
    plane.kubectl("delete", "pod", *names, "--ignore-not-found")
