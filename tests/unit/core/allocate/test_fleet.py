"""Many nodes at once, by example. That the answers are those of an allocator stands in test_fleet_equality."""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import ResourceClaim, ResourceClaimStatus
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.meta import NodeSelector, ObjectMeta
from jackfield.model.names import NodeName
from jackfield.model.node import Node
from jackfield.model.quantity import QuantityError
from jackfield.model.slice import DeviceClass, ResourceSlice
from unit.core.allocate.small_world import (
    CLASSES,
    World,
    claim,
    consumes,
    device,
    devices,
    every,
    holding,
    node,
    request,
    same,
    selects,
    slice_,
    wants,
    where,
)

MODEL_A = selects("device.attributes['gpu.example.com'].model == 'a'")


def names(*found: str) -> list[NodeName]:
    return [NodeName(one) for one in found]


def own(name: str, listed: tuple[Device, ...]) -> ResourceSlice:
    return slice_(listed, f"of-{name}", name, node_name=name)


def fleet(slices: list[ResourceSlice], nodes: list[Node], *held: ResourceClaim) -> allocate.Fleet:
    return allocate.Fleet(World(slices, held).allocator(), nodes)


def row(*names: str, size: int = 1) -> allocate.Fleet:
    """Return a fleet of nodes with so many devices each."""
    listed = devices(*(f"d{number}" for number in range(size)))
    return fleet([own(name, listed) for name in names], [node(name) for name in names])


def held_at(pool: str, *listed: str, name: str = "held", **fields: object) -> ResourceClaim:
    found = holding(*listed, pool=pool, **fields)
    return replace(found, metadata=replace(found.metadata, name=name))


def given(found: allocate.Fit | allocate.Nowhere) -> str:
    return found.node if isinstance(found, allocate.Fit) else "nowhere"


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


# --- what nodes are told apart by


GOOD = device("d", model="a", numa=1, memory="4Gi")
DEFAULT = allocate.Features()
OFF = allocate.Features(binding_conditions=False, partitionable_devices=False)
TAINT = DeviceTaint("broken", effect="NoSchedule")


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


def test_a_node_that_changes_its_labels_sees_its_own_devices_anew() -> None:
    nodes = fleet([odd("a", "z")], [node("a", zone="z")])
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.put_node(node("a", zone="y"))

    assert list(nodes.fitting([claim(request())])) == []


def test_a_pool_of_several_nodes_that_lost_a_slice_is_incomplete_for_all() -> None:
    slices = [slice_(devices(f"d{name}"), f"of-{name}", "joint", 2, node_name=name) for name in "ab"]
    nodes = fleet(slices, [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]

    nodes.put_slices(slices[:1])

    assert list(nodes.fitting([claim(request())])) == []


# --- changes


def test_what_a_claim_holds_is_no_longer_given() -> None:
    nodes = row("a", "b")

    nodes.hold(held_at("a", "d0"))

    assert list(nodes.fitting([claim(request())])) == ["b"]


def test_a_released_claim_gives_its_devices_back() -> None:
    nodes = row("a", "b")
    holder = held_at("a", "d0")

    nodes.hold(holder)
    nodes.release(holder.key)

    assert list(nodes.fitting([claim(request())])) == ["a", "b"]


def test_a_claim_that_is_told_again_holds_what_it_says_now() -> None:
    nodes = row("a", "b")

    nodes.hold(held_at("a", "d0"))
    nodes.hold(held_at("b", "d0"))

    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_a_claim_without_an_allocation_holds_nothing_any_more() -> None:
    nodes = row("a")

    nodes.hold(held_at("a", "d0"))
    nodes.hold(replace(held_at("a"), status=ResourceClaimStatus()))

    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_releasing_a_claim_that_holds_nothing_changes_nothing() -> None:
    nodes = row("a")

    nodes.release(claim(request()).key)

    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_a_device_that_two_claims_hold_is_free_when_both_have_let_go() -> None:
    nodes = row("a")
    one, other = held_at("a", "d0", name="one"), held_at("a", "d0", name="other")

    nodes.hold(one)
    nodes.hold(other)
    nodes.release(one.key)
    assert list(nodes.fitting([claim(request())])) == []

    nodes.release(other.key)
    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_what_was_in_use_at_the_beginning_stays_in_use() -> None:
    nodes = fleet([own("a", devices("d0"))], [node("a")], held_at("a", "d0", name="early"))

    nodes.hold(held_at("a", "d0", name="late"))
    nodes.release(held_at("a", "d0", name="late").key)

    assert list(nodes.fitting([claim(request())])) == []


def test_a_claim_that_cannot_be_read_changes_nothing() -> None:
    nodes = row("a", "b")
    nodes.hold(held_at("a", "d0"))
    with pytest.raises(QuantityError):
        nodes.hold(held_at("b", "d0", share_id="s", consumed_capacity={"memory": "much"}))

    assert list(nodes.fitting([claim(request())])) == ["b"]


def test_an_answer_stays_what_it_was() -> None:
    nodes = row("a", "b", "c")
    before = nodes.fitting([claim(request())])

    nodes.hold(held_at("a", "d0"))
    nodes.drop_node(NodeName("b"))
    nodes.put_node(node("d"))

    assert list(before) == ["a", "b", "c"]
    assert (len(before), before.first) == (3, "a")


def test_nothing_is_overlooked_however_much_has_changed_since_the_last_question() -> None:
    nodes = row("a", "b", "c")
    assert len(nodes.fitting([claim(request())])) == 3

    for _ in range(1000):
        nodes.hold(held_at("a", "d0"))
        nodes.release(held_at("a", "d0").key)
    nodes.hold(held_at("b", "d0"))

    assert list(nodes.fitting([claim(request())])) == ["a", "c"]


def test_nothing_is_overlooked_however_many_kinds_of_claim_there_are() -> None:
    nodes = row("a", "b", "c")
    kinds = [claim(request(selectors=selects(f"'{number}' != ''"))) for number in range(20)]
    assert [len(nodes.fitting([one])) for one in kinds] == [3] * 20

    nodes.hold(held_at("b", "d0"))

    assert [list(nodes.fitting([one])) for one in kinds] == [["a", "c"]] * 20


def test_a_device_pinned_to_a_node_is_its_own_again_once_it_is_released() -> None:
    pinned = tuple(replace(GOOD, name=f"of-{name}", node_name=name) for name in "ab")
    slices = [slice_(pinned, "fabric", "fabric", per_device_node_selection=True)]
    nodes = fleet(slices, [node(one) for one in "abc"])
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]

    nodes.hold(held_at("fabric", "of-a"))
    assert list(nodes.fitting([claim(request())])) == ["b"]

    nodes.release(held_at("fabric", "of-a").key)
    assert list(nodes.fitting([claim(request())])) == ["a", "b"]


def test_new_classes_count_from_the_next_question_on() -> None:
    nodes = row("a")

    nodes.put_classes({"gpu": DeviceClass(metadata=ObjectMeta(name="gpu"))})
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.put_classes({"other": CLASSES["gpu"]})
    with pytest.raises(allocate.AllocationError, match="could not retrieve device class gpu"):
        nodes.fitting([claim(request())])


def test_slices_that_come_and_go_are_seen_by_the_nodes_they_are_for() -> None:
    slices = [own(name, devices("d0")) for name in "abc"]
    nodes = fleet(slices, [node(one) for one in "abc"], held_at("c", "d0"))
    fabric = slice_(devices("f"), "fabric", "fabric", node_selector=where(zone="x"))
    nodes.put_node(node("c", zone="x"))

    nodes.put_slices(slices[1:])
    assert list(nodes.fitting([claim(request())])) == ["b"]

    nodes.put_slices([*slices[1:], fabric])
    assert list(nodes.fitting([claim(request())])) == ["b", "c"]

    nodes.put_slices([*slices, fabric])
    assert list(nodes.fitting([claim(request())])) == ["a", "b", "c"]


def test_all_devices_of_a_node_are_those_of_the_node() -> None:
    nodes = row("a", "b", size=3)

    found = nodes.first_in([claim(every())], names("b"))

    assert isinstance(found, allocate.Fit)
    assert [str(one.id) for one in found.allocations[0].devices.results] == [
        "gpu.example.com/b/d0",
        "gpu.example.com/b/d1",
        "gpu.example.com/b/d2",
    ]
