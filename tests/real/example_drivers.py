"""Drivers of the examples on a real node: each with its account's rights and no others, and nothing of it is left.

Knows the folders of examples, and what a node without a registry needs to be told. Must not know any driver.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import yaml

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane, RealNode
from jackfield.testing.control_plane.credentials import Proof
from jackfield.testing.control_plane.process import Process
from real.pods import BUSYBOX, POD_SECONDS, create
from real.waiting import comes_true

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def documents(example: str, name: str) -> list[Raw]:
    """Return the objects in a file of an example."""
    return [msgspec.yaml.decode(one) for one in (EXAMPLES / example / name).read_text().split("\n---\n")]


def saying(objects: list[Raw], words: str) -> list[Raw]:
    """Return an example's objects for a node whose only image is ours; its pods run a line of shell."""
    for one in objects:
        if one["kind"] == "Pod":
            one["spec"] |= {"hostNetwork": True, "terminationGracePeriodSeconds": 0}
            for container in one["spec"]["containers"]:
                container |= {
                    "image": BUSYBOX,
                    "imagePullPolicy": "Never",
                    "command": ["/bin/sh", "-c", words],
                }
    return objects


@contextmanager
def installed(
    plane: ControlPlane, node: RealNode, example: str, classes: str, *options: str
) -> Iterator[Process]:
    """Run an example's driver on the node itself, as its DaemonSet would; once in the life of a control plane."""
    objects = [*documents(example, "install.yaml"), *documents(example, classes)]
    objects = [one for one in objects if one["kind"] != "DaemonSet"]
    (account,) = [one["metadata"] for one in objects if one["kind"] == "ServiceAccount"]
    create(plane, *objects)
    who = f"system:serviceaccount:{account['namespace']}:{account['name']}"
    kubeconfig = plane.kubeconfig_for(who, by=Proof.CERTIFICATE)
    program = node.program(
        example,
        *(sys.executable, str(EXAMPLES / example / "driver.py")),
        *(f"--node-name={node.name}", f"--kubeconfig={kubeconfig}", *options),
    )
    try:
        starts(program)
        yield program
    finally:
        # Pods first: what is prepared for them is undone only while the driver lives.
        program.start()
        plane.kubectl("delete", "pods", "--all")
        program.kill()
        plane.kubectl("delete", "resourceclaims", "--all")
        plane.kubectl("delete", "resourceslices", f"--field-selector=spec.nodeName={node.name}")
        # A namespace takes seconds to go, and nobody comes after it.
        plane.kubectl("delete", "--wait=false", "--filename=-", text=yaml.safe_dump_all(reversed(objects)))


def starts(program: Process) -> None:
    """Start a driver, and wait until the kubelet knows it: one that asks too early asks again after a minute."""
    before = _registrations(program)
    program.start()
    assert comes_true(lambda: _registrations(program) > before, seconds=POD_SECONDS), program.tail()


def _registrations(program: Process) -> int:
    return program.log.read_text().count("the kubelet has registered") if program.log.exists() else 0
