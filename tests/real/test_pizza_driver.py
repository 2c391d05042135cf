"""The pizza driver on a real node: its order is met by the real scheduler, and the container finds its box."""

from collections.abc import Iterator

import pytest

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane, RealNode
from jackfield.testing.control_plane.process import Process
from real.example_drivers import documents, installed, saying, starts
from real.pods import POD_SECONDS, create, delete, said, status
from real.waiting import comes_true
from unit.driver.introduced import MISSPELT

pytestmark = pytest.mark.node

EXAMPLE = "pizza-driver"
BOXES = "/run/dra.pizza/boxes"


def order(words: str = "cat /pizza; echo $PIZZA $PIZZA_SLICES") -> list[Raw]:
    """Return the example's order, whose eater runs a line of shell."""
    return saying(documents(EXAMPLE, "order.yaml"), words)


@pytest.fixture(scope="module")
def driver(plane: ControlPlane, node: RealNode) -> Iterator[Process]:
    """The driver on the node, for all tests of this file."""
    with installed(plane, node, EXAMPLE, "class.yaml") as program:
        yield program


@pytest.fixture
def kitchen(plane: ControlPlane, driver: Process) -> Iterator[Process]:
    """The driver without any order; also after the test."""
    yield driver
    driver.start()
    plane.kubectl("delete", "pods", "--all")
    plane.kubectl("delete", "resourceclaims", "--all")


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
    create(plane, *order("sleep infinity"))
    assert comes_true(lambda: len([*node.cdi.glob("dra.pizza_*")]) == 1, seconds=POD_SECONDS)
    kitchen.kill()
    starts(kitchen)
    delete(plane, "lunch")
    assert comes_true(lambda: eaten(node), seconds=POD_SECONDS)


def test_who_takes_a_domain_for_a_part_of_the_name_waits_and_is_told_of_the_claim(
    plane: ControlPlane, kitchen: Process
) -> None:
    claim, pod = order()
    (cel,) = claim["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    cel["cel"]["expression"] = MISSPELT
    create(plane, claim, pod)

    def told() -> str:
        return " ".join(one.get("message", "") for one in status(plane, "lunch").get("conditions", ()))

    assert comes_true(lambda: "my-pizza-order" in told(), seconds=POD_SECONDS), (told(), kitchen.tail())
    assert "no such key" in told()
