"""The pizza driver on a real node: its order is met by the real scheduler, and the container finds its box."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane, RealNode
from jackfield.testing.control_plane.credentials import Proof
from jackfield.testing.control_plane.process import Process
from real.pods import BUSYBOX, POD_SECONDS, create, delete, said
from real.waiting import comes_true

pytestmark = pytest.mark.node

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pizza-driver"
ACCOUNT = "system:serviceaccount:dra-pizza:dra-pizza"
BOXES = "/run/dra.pizza/boxes"


def documents(name: str) -> list[Raw]:
    return [msgspec.yaml.decode(one) for one in (EXAMPLE / name).read_text().split("\n---\n")]


def order() -> list[Raw]:
    """Return the example's order, for a node whose only image is ours."""
    claim, pod = documents("order.yaml")
    pod["spec"]["hostNetwork"] = True
    (eater,) = pod["spec"]["containers"]
    eater |= {
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", "cat /pizza; echo $PIZZA $PIZZA_SLICES"],
    }
    return [claim, pod]


@pytest.fixture
def kitchen(plane: ControlPlane, node: RealNode) -> Iterator[Process]:
    """The driver on the node, with the rights of its service account and no others; nothing of it is left."""
    install = [one for one in documents("install.yaml") if one["kind"] != "DaemonSet"]
    create(plane, *install, *documents("class.yaml"))
    kubeconfig = plane.kubeconfig_for(ACCOUNT, by=Proof.CERTIFICATE)
    program = node.program(
        "pizza-driver",
        *(sys.executable, str(EXAMPLE / "driver.py")),
        *(f"--node-name={node.name}", f"--kubeconfig={kubeconfig}"),
    )
    program.start()
    try:
        yield program
    finally:
        program.kill()
        plane.kubectl("delete", "pods", "--all")
        plane.kubectl("delete", "resourceclaims", "--all")
        plane.kubectl("delete", "deviceclass", "pizza", "pizza-vegetarian")
        plane.kubectl("delete", "resourceslices", "--field-selector=spec.driver=dra.pizza")
        for kind in ("clusterrolebinding", "clusterrole", "namespace"):
            plane.kubectl("delete", kind, "dra-pizza")


def eaten(node: RealNode) -> bool:
    """Whether nothing is left of any order."""
    return not [*node.place(BOXES).glob("*"), *node.cdi.glob("dra.pizza_*")]


def test_the_container_finds_the_pizza_that_was_ordered_and_nothing_is_left_of_it(
    plane: ControlPlane, node: RealNode, kitchen: Process
) -> None:
    create(plane, *order())
    try:
        words = said(plane, node, "lunch")
    except AssertionError as error:
        raise AssertionError(f"{error}\nThe driver's log:\n{kitchen.tail()}") from error
    assert words.splitlines() == [
        "funghi-pan-pizza, in 6 slices, for default/my-pizza-order",
        "funghi-pan-pizza 6",
    ]
    delete(plane, "lunch")
    assert comes_true(lambda: eaten(node), seconds=POD_SECONDS)


def test_a_driver_that_is_killed_and_comes_back_undoes_what_it_prepared(
    plane: ControlPlane, node: RealNode, kitchen: Process
) -> None:
    claim, pod = order()
    pod["spec"]["containers"][0]["command"] = ["/bin/sleep", "infinity"]
    pod["spec"]["terminationGracePeriodSeconds"] = 0
    create(plane, claim, pod)
    assert comes_true(lambda: len([*node.cdi.glob("dra.pizza_*")]) == 1, seconds=POD_SECONDS)
    kitchen.kill()
    kitchen.start()
    delete(plane, "lunch")
    assert comes_true(lambda: eaten(node), seconds=POD_SECONDS)
