"""A fleet is kept current: claims, nodes, slices and classes come, change and go."""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import ResourceClaimStatus
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NodeName
from jackfield.model.quantity import QuantityError
from jackfield.model.slice import DeviceClass
from unit.core.allocate.small_fleet import (
    GOOD,
    fleet,
    held_at,
    names,
    own,
    row,
)
from unit.core.allocate.small_world import (
    CLASSES,
    World,
    claim,
    consumes,
    counters,
    devices,
    every,
    node,
    request,
    selects,
    slice_,
    where,
)


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


def test_counters_are_taken_and_given_back_with_the_device() -> None:
    listed = tuple(replace(GOOD, name=name, consumes_counters=consumes("2Gi")) for name in "xy")
    slices = [
        slice_(listed, "devices", "a", 2, node_name="a"),
        slice_((), "counters", "a", 2, node_name="a", shared_counters=counters("3Gi")),
    ]
    nodes = fleet(slices, [node("a")])
    assert list(nodes.fitting([claim(request())])) == ["a"]

    nodes.hold(held_at("a", "x"))
    assert list(nodes.fitting([claim(request())])) == []

    nodes.release(held_at("a", "x").key)
    assert list(nodes.fitting([claim(request())])) == ["a"]


def test_a_share_is_a_whole_device_to_a_scheduler_that_knows_no_shares() -> None:
    world = World([own("a", (GOOD,))], features=allocate.Features(consumable_capacity=False))
    nodes = allocate.Fleet(world.allocator(), [node("a")])

    nodes.hold(held_at("a", "d", share_id="s", consumed_capacity={"memory": "1Gi"}))

    assert list(nodes.fitting([claim(request())])) == []


def test_admin_access_takes_nothing_from_others() -> None:
    nodes = row("a")

    nodes.hold(held_at("a", "d0", admin_access=True))

    assert list(nodes.fitting([claim(request())])) == ["a"]


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


def test_a_node_that_is_gone_is_in_no_answer_any_more() -> None:
    nodes = row("a", "b", "c")
    assert list(nodes.fitting([claim(request())])) == ["a", "b", "c"]

    nodes.drop_node(NodeName("b"))

    assert list(nodes.fitting([claim(request())])) == ["a", "c"]


def test_a_node_with_a_new_label_is_told_from_those_it_looked_like() -> None:
    fabric = slice_(devices("f"), "fabric", "fabric", node_selector=where(zone="x"))
    nodes = fleet([fabric], [node(one) for one in "abc"])
    assert list(nodes.fitting([claim(request())])) == []

    nodes.put_node(node("b", zone="x"))

    assert list(nodes.fitting([claim(request())])) == ["b"]


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
    pinned = [replace(GOOD, name=f"of-{name}", node_name=name) for name in "ab"]
    anywhere = replace(GOOD, name="anywhere", all_nodes=True)
    slices = [slice_([*pinned, anywhere], "fabric", "fabric", per_device_node_selection=True)]
    nodes = fleet(slices, [node(one) for one in "dcab"])
    for name in "ab":
        nodes.hold(held_at("fabric", f"of-{name}", name=name))
    assert list(nodes.fitting([claim(request(count=2))])) == []

    nodes.release(held_at("fabric", name="a").key)

    assert list(nodes.fitting([claim(request(count=2))])) == ["a"]


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


def test_counters_of_one_node_concern_all_in_1_36() -> None:
    slices = [own("b", devices("d"))]
    nodes = fleet(slices, [node(one) for one in "ab"])
    assert list(nodes.fitting([claim(every())])) == ["b"]

    lonely = slice_((), "counters", "a", 2, node_name="a", shared_counters=counters("1Gi"))
    nodes.put_slices([*slices, lonely])

    with pytest.raises(
        allocate.AllocationError, match=r"pool gpu\.example\.com/a is currently being updated"
    ):
        nodes.first_in([claim(every())], [NodeName("b")])


def test_all_devices_of_a_node_are_those_of_the_node() -> None:
    nodes = row("a", "b", size=3)

    found = nodes.first_in([claim(every())], names("b"))

    assert isinstance(found, allocate.Fit)
    assert [str(one.id) for one in found.allocations[0].devices.results] == [
        "gpu.example.com/b/d0",
        "gpu.example.com/b/d1",
        "gpu.example.com/b/d2",
    ]
