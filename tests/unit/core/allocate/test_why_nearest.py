"""Which devices came nearest, and what alone stood in their way."""

import pytest

from jackfield.core.allocate import Features, Step, Why, why
from jackfield.model.claim import DeviceConstraint, DeviceRequest
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    DRIVER,
    World,
    alternative,
    claim,
    device,
    devices,
    every,
    first_of,
    holding,
    node,
    request,
    same,
    selects,
    slice_,
    wants,
    where,
)

MODEL = f"device.attributes['{DRIVER}'].model"
A100 = selects(f"{MODEL} == 'A100'")
BIG = request(selectors=A100, capacity=wants("80Gi"))


def a100(name: str, memory: str = "40Gi", *, tainted: bool = False) -> Device:
    taints = (DeviceTaint("broken", effect="NoSchedule"),) if tainted else ()
    return device(name, model="A100", memory=memory, taints=taints)


def nearest(world: World, *requests: DeviceRequest) -> list[list[tuple[str, list[Step]]]]:
    found = why(world.allocator(), [claim(*requests)], node())
    return [
        [(miss.device.device, [cause.step for cause in miss.causes]) for miss in one.nearest]
        for one in found.requests
    ]


FAR = slice_([a100("far", "80Gi")], "far", "far", node_name=NodeName("n2"))
NIC = slice_(devices("nic"), "nic", "nic", driver="nic.example.com")
OTHER = slice_([device("other", model="T4", memory="80Gi")], "other", "other")


@pytest.mark.parametrize(
    ("slices", "held", "told"),
    [
        ([slice_([a100("a")]), FAR, NIC, OTHER], (), ("a", [Step.CAPACITY])),
        ([slice_([a100("a"), a100("b", "80Gi")]), FAR, NIC, OTHER], ("b",), ("a", [Step.CAPACITY])),
        (
            [slice_([a100("a", tainted=True), a100("b", "80Gi")]), FAR, NIC, OTHER],
            ("b",),
            ("b", [Step.IN_USE]),
        ),
        ([slice_([a100("b"), a100("a", "80Gi", tainted=True)]), FAR, NIC], ("b",), ("a", [Step.TAINT])),
        (
            [slice_([a100("a", tainted=True)]), FAR, NIC, OTHER],
            ("a",),
            ("a", [Step.IN_USE, Step.TAINT, Step.CAPACITY]),
        ),
        ([FAR, NIC, OTHER], (), ("other", [Step.SELECTOR])),
        ([FAR, NIC], (), ("far", [Step.NODE])),
        ([NIC], (), ("nic", [Step.CLASS, Step.FAULT, Step.CAPACITY])),
    ],
)
def test_the_nearest_device_is_the_one_with_the_least_in_its_way(
    slices: list[ResourceSlice], held: tuple[str, ...], told: tuple[str, list[Step]]
) -> None:
    world = World(slices, [holding(*held)] if held else [])
    assert nearest(world, BIG) == [[told]]


def test_of_equals_the_first_is_nearest_and_as_many_are_told_as_are_missing_but_no_more_than_three() -> None:
    world = World([slice_([a100(name) for name in "abcdef"])], [holding(*"bcdef")])
    told = [(name, [Step.IN_USE]) for name in "bcdef"]
    for count, missing in ((1, 0), (2, 1), (3, 2), (6, 3)):
        assert nearest(world, request(count=count)) == [told[:missing]]


def test_a_device_elsewhere_says_whether_it_is_in_use_or_tainted_too() -> None:
    listed = slice_([a100("far", "80Gi", tainted=True)], "far", "far", node_name=NodeName("n2"))
    world = World([listed], [holding("far", pool="far")])
    assert nearest(world, BIG) == [[("far", [Step.NODE, Step.IN_USE, Step.TAINT])]]
    assert nearest(world, request(admin_access=True)) == [[("far", [Step.NODE, Step.TAINT])]]


def test_nothing_is_nearest_where_nothing_is_missing_or_where_there_is_nothing_else() -> None:
    world = World([slice_([a100("a")])])
    assert nearest(world, request()) == [[]]
    assert nearest(world, request(count=2)) == [[]]
    assert nearest(World([]), request()) == [[]]


def test_a_device_elsewhere_is_nearer_than_one_of_another_class() -> None:
    assert nearest(World([NIC, FAR]), request()) == [[("far", [Step.NODE])]]


def test_alternatives_do_not_take_devices_from_one_another() -> None:
    world = World([slice_([a100("a"), a100("b")])], [holding("b")])
    either = first_of(alternative("x", 2), alternative("y", 2, selectors=A100))
    found = why(world.allocator(), [claim(either)], node()).requests
    assert [(one.had, [each.step for each in one.removed]) for one in found] == [(1, [Step.IN_USE])] * 2


def test_a_claim_may_hold_as_many_devices_as_it_may() -> None:
    world = World([slice_(devices(*(f"d{at}" for at in range(32))))], [holding("d31")])
    assert nearest(world, request(count=32)) == [[("d31", [Step.IN_USE])]]


def test_each_alternative_has_its_own() -> None:
    world = World([slice_([a100("a"), device("t", model="T4")])], [holding("a")])
    either = first_of(alternative("x", selectors=A100), alternative("y", 2))
    assert nearest(world, either) == [[("a", [Step.IN_USE])], [("a", [Step.IN_USE])]]


def test_all_devices_are_missed_by_those_that_cannot_be_had() -> None:
    world = World([slice_([a100("a"), a100("b"), device("t", model="T4")])], [holding("b")])
    assert nearest(world, every(selectors=A100)) == [[("b", [Step.IN_USE])]]
    assert nearest(world, every(selectors=selects(f"{MODEL} == 'H100'"))) == [[("a", [Step.SELECTOR])]]


def test_devices_that_cannot_be_had_together_say_so() -> None:
    listed = [device("a", numa=0), device("b", numa=0), device("c", numa=1)]
    found = why(
        World([slice_(listed)]).allocator(), [claim(request(count=3), constraints=[same("numa")])], node()
    )
    (one,) = found.stuck
    assert (one.had, one.left) == (2, 0)
    assert [(miss.device.device, miss.causes[0].seen) for miss in one.nearest] == [("c", "1")]


# --- errors


def aborted(world: World, *requests: DeviceRequest, constraints: tuple[DeviceConstraint, ...] = ()) -> Why:
    found = why(world.allocator(), [claim(*requests, constraints=constraints)], node())
    assert found.aborts
    return found


def told(found: Why) -> list[tuple[str, str, list[Step]]]:
    return [
        (one.request, miss.device.device, [cause.step for cause in miss.causes])
        for one in found.stuck
        for miss in one.nearest
    ]


def test_a_selector_that_fails_is_nearest_though_others_are_left() -> None:
    world = World([slice_([a100("a"), device("b"), a100("c")])], [])
    found = aborted(world, request("x"), request("y", 2, selectors=A100))
    assert told(found) == [("y", "b", [Step.FAULT])]
    assert [(one.request, one.had, one.left) for one in found.requests] == [("x", 1, 2), ("y", 0, 1)]


def test_a_selector_that_fails_is_nearer_than_a_pool_that_is_not_to_blame() -> None:
    half = slice_(devices("half"), "half", "half", of=2)
    found = aborted(World([half, slice_([device("b")])]), request(selectors=A100))
    assert told(found) == [("r", "b", [Step.FAULT])]


def test_the_request_is_stuck_that_met_the_error_though_another_attempt_had_as_many_devices() -> None:
    listed = [device("a", model="A"), device("b", model="B"), device("c", model="C"), device("d")]
    known = f"'model' in device.attributes['{DRIVER}'] && {MODEL}"
    either = first_of(
        alternative("x", 2, selectors=selects(f"{known} in ['A', 'B']")),
        alternative("y", selectors=selects(f"{known} == 'C'")),
    )
    second = request("s", selectors=selects(f"{known} == 'A'"))
    found = aborted(World([slice_(listed)]), either, second, request("t", selectors=A100))
    assert told(found) == [("t", "d", [Step.FAULT])]


def test_the_pool_that_keeps_all_from_being_counted_is_nearest() -> None:
    half = slice_(devices("half"), "half", "half", of=2)
    found = aborted(World([slice_([a100("a"), a100("b")]), half], [holding("a")]), request("x"), every("y"))
    assert told(found) == [("y", "half", [Step.POOL])]
    assert (found.stuck[0].wanted, found.stuck[0].had) == (2, 0)


def test_all_devices_against_a_constraint_end_at_the_device_that_breaks_it() -> None:
    world = World([slice_([device("a", numa=0), device("b", numa=1)])])
    assert told(aborted(world, every(), constraints=(same("numa"),))) == [("r", "b", [Step.CONSTRAINT])]


def test_too_many_devices_for_a_claim_are_no_fault_of_a_device() -> None:
    found = aborted(World([slice_([a100("a")])]), request(count=33), every("s"))
    assert "exceeds the claim limit" in found.verdict
    assert [one.request for one in found.stuck] == ["r"]


def test_the_request_that_cannot_be_counted_is_stuck_only_if_the_error_is_its_own() -> None:
    half = slice_(devices("half"), "half", "half", of=2)
    world = World([slice_([a100("a")]), half])
    both = [claim(request("x", 33)), claim(every("y"), name="d")]
    found = why(world.allocator(), both, node())
    assert "exceeds the claim limit" in found.verdict
    assert [one.request for one in found.stuck] == ["x"]


def test_all_devices_are_those_that_can_be_judged_where_one_cannot() -> None:
    unreadable = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Maybe"),)),))
    listed = [device("a", all_nodes=True), device("b", node_selector=unreadable)]
    world = World([slice_(listed, per_device_node_selection=True)])
    found = aborted(world, every())
    assert [(one.wanted, one.left) for one in found.requests] == [(1, 1)]
    assert told(found) == [("r", "b", [Step.FAULT])]


def test_a_claim_that_cannot_be_read_has_no_requests_to_account_for() -> None:
    found = aborted(World([], features=Features(admin_access=False)), request(admin_access=True))
    assert found.requests == ()
    assert "admin access" in found.verdict


def test_an_allocation_that_cannot_be_written_down_is_stuck_at_no_request() -> None:
    either = NodeSelector((*where(zone="a").node_selector_terms, *where(zone="b").node_selector_terms))
    world = World([slice_([a100("a")], node_selector=either)])
    found = why(world.allocator(), [claim(request())], node("n1", zone="a"))
    assert (found.aborts, found.stuck, found.requests[0].had) == (True, (), 1)
