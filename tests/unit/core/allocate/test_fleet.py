"""Which of many nodes fit, in which order they are asked about, and which errors are met.

That the answers are those of an allocator stands in test_fleet_equality.
"""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.device import DeviceAttribute
from jackfield.model.names import NodeName
from unit.core.allocate.small_fleet import (
    GOOD,
    MODEL_A,
    fleet,
    given,
    held_at,
    names,
    own,
    row,
)
from unit.core.allocate.small_world import (
    claim,
    device,
    devices,
    node,
    request,
)

# --- order


def test_the_first_node_in_the_given_order_wins() -> None:
    found = row("a", "b", "c").first_in([claim(request())], names("c", "a", "b"))

    assert given(found) == "c"


def test_no_more_names_are_taken_than_are_needed() -> None:
    order = iter(names("b", "a"))

    row("a", "b").first_in([claim(request())], order)

    assert list(order) == ["a"]


@pytest.mark.parametrize("patience", [0, 1, 9])
@pytest.mark.parametrize(("start", "first"), [("a", "b"), ("b", "b"), ("c", "e"), ("f", "b")])
def test_going_round_begins_at_the_named_node_and_ends_before_it(
    start: str, first: str, patience: int
) -> None:
    nodes = row("a", "b", "c", "d", "e", "f")
    nodes.patience = patience
    for name in "acdf":
        nodes.hold(held_at(name, "d0", name=f"of-{name}"))

    assert given(nodes.first_from([claim(request())], NodeName(start))) == first


def test_nodes_that_a_claim_takes_for_alike_keep_their_order() -> None:
    other = replace(GOOD, attributes={**GOOD.attributes, "uuid": DeviceAttribute(string="u")})
    slices = [own("a", (GOOD,)), own("b", (other,)), own("c", (GOOD,))]
    nodes = fleet(slices, [node(one) for one in "abc"])
    nodes.patience = 0

    assert [given(nodes.first_from([claim(request())], one)) for one in names("a", "b", "c")] == [
        "a",
        "b",
        "c",
    ]


def test_where_no_node_fits_each_reason_says_for_how_many() -> None:
    twice = (device("same"), device("same"))
    nodes = fleet([own("a", devices("d")), own("b", twice), own("c", ())], [node(one) for one in "abc"])

    found = nodes.first_from([claim(request(count=2))], NodeName("a"))

    assert found == allocate.Nowhere(((allocate.Reason.INVALID_POOLS, 1), (allocate.Reason.DEVICES, 2)))


def test_a_node_that_changes_keeps_its_place_and_a_new_one_comes_last() -> None:
    nodes = row("a", "b")

    nodes.put_node(node("c"))
    nodes.put_node(node("a", zone="new"))

    assert list(nodes.fitting([claim(request(count=0))])) == ["a", "b", "c"]


def test_nodes_keep_their_order_however_many_go() -> None:
    everybody = [f"n{number:03}" for number in range(300)]
    nodes = row(*everybody)
    assert len(nodes.fitting([claim(request())])) == 300

    for name in everybody[:290]:
        nodes.drop_node(NodeName(name))

    assert list(nodes.fitting([claim(request())])) == everybody[290:]
    assert given(nodes.first_from([claim(request())], NodeName("n297"))) == "n297"


# --- errors


def faulty(*sound: str, bad: str) -> allocate.Fleet:
    """Return nodes of which one has a device without a model, which a selector fails on."""
    slices = [own(one, (device("d", model="a"),)) for one in sound] + [own(bad, devices("d"))]
    return fleet(slices, [node(one) for one in sorted((*sound, bad))])


@pytest.mark.parametrize("patience", [0, 9])
def test_an_error_before_the_first_fit_ends_the_cycle(patience: int) -> None:
    nodes = faulty("b", bad="a")
    nodes.patience = patience

    with pytest.raises(allocate.AllocationError, match="no such key"):
        nodes.first_from([claim(request(selectors=MODEL_A))], NodeName("a"))
    with pytest.raises(allocate.AllocationError, match="no such key"):
        nodes.first_in([claim(request(selectors=MODEL_A))], names("a", "b"))


@pytest.mark.parametrize("patience", [0, 9])
def test_an_error_behind_the_first_fit_is_not_met(patience: int) -> None:
    nodes = faulty("b", bad="a")
    nodes.patience = patience

    assert given(nodes.first_from([claim(request(selectors=MODEL_A))], NodeName("b"))) == "b"
    assert given(nodes.first_in([claim(request(selectors=MODEL_A))], names("b", "a"))) == "b"


def test_whoever_asks_about_all_nodes_meets_every_error() -> None:
    with pytest.raises(allocate.AllocationError, match=r"gpu\.example\.com/z/d"):
        faulty("a", "b", bad="z").fitting([claim(request(selectors=MODEL_A))])


def test_an_error_is_that_of_the_first_node_that_has_it() -> None:
    nodes = fleet([own(one, devices("d")) for one in "ab"], [node("b"), node("a")])

    with pytest.raises(allocate.AllocationError, match=r"gpu\.example\.com/b/d"):
        nodes.fitting([claim(request(selectors=MODEL_A))])


def test_a_claim_that_nobody_can_read_is_no_error_where_there_is_no_node() -> None:
    unknown = claim(request(device_class_name="unknown"))

    assert list(fleet([], []).fitting([unknown])) == []
    with pytest.raises(allocate.AllocationError, match="could not retrieve device class unknown"):
        row("a").fitting([unknown])
