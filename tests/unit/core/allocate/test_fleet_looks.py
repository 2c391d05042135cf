"""What nodes are told apart by."""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import ResourceClaim
from jackfield.model.device import Device
from jackfield.model.meta import NodeSelector
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_fleet import (
    DEFAULT,
    GOOD,
    MODEL_A,
    OFF,
    TAINT,
    fleet,
    given,
    held_at,
    names,
    own,
)
from unit.core.allocate.small_world import (
    World,
    claim,
    consumes,
    device,
    devices,
    every,
    node,
    request,
    same,
    selects,
    slice_,
    wants,
    where,
)


@pytest.mark.parametrize(
    ("other", "wanted", "features"),
    [
        pytest.param(replace(GOOD, taints=(TAINT,)), claim(request()), DEFAULT, id="taints"),
        pytest.param(
            device("d", model="a", numa=1, memory="1Gi"),
            claim(request(capacity=wants("2Gi"))),
            DEFAULT,
            id="capacity",
        ),
        pytest.param(
            device("d", model="b", numa=1, memory="4Gi"),
            claim(request(selectors=MODEL_A)),
            DEFAULT,
            id="selectors",
        ),
        pytest.param(
            device("d", model="a", memory="4Gi"),
            claim(request(), constraints=[same("numa")]),
            DEFAULT,
            id="constraints",
        ),
        pytest.param(
            replace(GOOD, binding_conditions=("Ready",), binding_failure_conditions=("Failed",)),
            claim(request()),
            OFF,
            id="conditions",
        ),
        pytest.param(replace(GOOD, consumes_counters=consumes("1Gi")), claim(request()), OFF, id="counters"),
    ],
)
@pytest.mark.parametrize("good", [{"a", "c"}, {"b", "d"}])
def test_nodes_that_differ_in_what_a_claim_minds_are_told_apart(
    other: Device, wanted: ResourceClaim, features: allocate.Features, good: set[str]
) -> None:
    slices = [own(name, (GOOD if name in good else other,)) for name in "abcd"]
    nodes = allocate.Fleet(World(slices, features=features).allocator(), [node(one) for one in "abcd"])

    assert list(nodes.fitting([wanted])) == sorted(good)


def test_requests_that_mean_different_devices_see_which_means_which() -> None:
    two, mixed = (
        (device("x", model="a"), device("y", model="a")),
        (device("x", model="a"), device("y", model="b")),
    )
    nodes = fleet([own("a", two), own("b", mixed), own("c", two)], [node(one) for one in "abc"])
    model_b = selects("device.attributes['gpu.example.com'].model == 'b'")
    both = claim(request("r", selectors=MODEL_A), request("s", selectors=model_b))

    assert list(nodes.fitting([both])) == ["b"]


def odd(name: str, *zones: str, **fields: object) -> ResourceSlice:
    """Return a slice of a node's own whose device has a node selector besides, with a term for each zone."""
    places = NodeSelector(tuple(term for one in zones for term in where(zone=one).node_selector_terms))
    listed = (replace(GOOD, node_selector=places, **fields),)
    return slice_(listed, name, name, node_name=name, per_device_node_selection=True)


def test_an_allocation_that_cannot_name_its_nodes_is_told_from_one_that_can() -> None:
    slices = [odd("a", "z"), odd("b", "z", "y", binds_to_node=True), odd("c", "z", "y")]
    nodes = fleet(slices, [node(one, zone="z") for one in "abc"])

    assert given(nodes.first_in([claim(request())], names("a", "c"))) == "a"
    assert given(nodes.first_in([claim(request())], names("b", "c"))) == "b"
    with pytest.raises(allocate.AllocationError, match="with 2 terms"):
        nodes.fitting([claim(request())])


def test_a_device_that_a_selector_fails_on_is_told_from_none() -> None:
    nodes = fleet([own("a", ()), own("b", devices("d"))], [node(one) for one in "ab"])

    with pytest.raises(allocate.AllocationError, match="no such key"):
        nodes.fitting([claim(request(selectors=MODEL_A))])


def test_all_devices_of_a_node_are_also_those_in_use() -> None:
    listed = (replace(GOOD, name="pinned", node_name="a"), replace(GOOD, name="open", all_nodes=True))
    slices = [slice_(listed, "fabric", "fabric", per_device_node_selection=True)]
    nodes = fleet(slices, [node(one) for one in "ab"], held_at("fabric", "pinned"))

    assert list(nodes.fitting([claim(every())])) == ["b"]


def test_a_device_in_use_counts_where_all_are_wanted() -> None:
    nodes = fleet(
        [own("a", devices("x", "y")), own("b", devices("x"))], [node("b"), node("a")], held_at("a", "y")
    )

    assert list(nodes.fitting([claim(request())])) == ["b", "a"]
    assert list(nodes.fitting([claim(every())])) == ["b"]


def test_a_device_that_can_be_shared_is_told_from_one_that_cannot() -> None:
    shared = device("d", allow_multiple_allocations=True)
    nodes = fleet([own("a", (shared,)), own("b", devices("d"))], [node(one) for one in "ab"])

    assert list(nodes.fitting([claim(request("r"), request("s"))])) == ["a"]


@pytest.mark.parametrize("one", [GOOD, replace(GOOD, allow_multiple_allocations=True)])
def test_a_device_that_shares_use_up_is_told_from_one_that_is_free(one: Device) -> None:
    nodes = fleet([own("a", (one,)), own("b", (one,))], [node("b"), node("a")])
    assert list(nodes.fitting([claim(request())])) == ["b", "a"]

    nodes.hold(held_at("a", "d", share_id="s", consumed_capacity={"memory": "1Gi"}))

    assert list(nodes.fitting([claim(request())])) == ["b"]


def zoned(name: str) -> ResourceSlice:
    """Return a slice of a node's own with two devices, of which one is only for nodes in zone z."""
    listed = (replace(GOOD, name="x", all_nodes=True), replace(GOOD, name="y", node_selector=where(zone="z")))
    return slice_(listed, name, name, node_name=name, per_device_node_selection=True)


def test_nodes_with_the_same_devices_are_told_apart_by_those_they_can_use() -> None:
    nodes = fleet([zoned("a"), zoned("b")], [node("a", zone="z"), node("b", zone="y")])

    assert list(nodes.fitting([claim(request(count=2))])) == ["a"]


def test_a_node_that_changes_its_labels_sees_its_own_devices_anew() -> None:
    nodes = fleet([zoned("a")], [node("a", zone="z")])
    assert list(nodes.fitting([claim(request(count=2))])) == ["a"]

    nodes.put_node(node("a", zone="y"))

    assert list(nodes.fitting([claim(request(count=2))])) == []


def test_a_pool_of_several_nodes_that_lost_a_slice_is_incomplete_for_all() -> None:
    slices = [slice_(devices(f"d{name}"), f"of-{name}", "joint", 2, node_name=name) for name in "ab"]
    nodes = fleet(slices, [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]

    nodes.put_slices(slices[:1])

    assert list(nodes.fitting([claim(request())])) == []
