"""Why a node does not fit."""

import pytest

from jackfield.core import allocate
from jackfield.core.allocate import Step, why
from jackfield.model.claim import DeviceRequest
from jackfield.model.device import DeviceTaint
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from unit.core.allocate.small_world import (
    DRIVER,
    World,
    alternative,
    claim,
    consumes,
    counters,
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
)

TAINT = DeviceTaint("k", effect="NoSchedule")
SLICES = [
    slice_(
        [
            *devices("a", "b"),
            device("tainted", taints=(TAINT,)),
            device("part", consumes_counters=consumes("9")),
            device("model", model="H100"),
        ],
        of=2,
    ),
    slice_(name="counters", of=2, shared_counters=counters("8")),
    slice_(devices("nic"), "nic", driver="nic.example.com"),
    slice_(devices("far", "away"), "far", "far", node_name=NodeName("n2")),
    slice_(devices("half"), "half", "half", of=2),
]
WORLD = World(SLICES, [holding("a")])


def counts(world: World, *requests: DeviceRequest) -> list[dict[Step, int]]:
    found = why(world.allocator(), [claim(*requests)], node())
    return [{one.step: one.devices for one in each.removed} for each in found.requests]


def test_every_device_drops_out_at_one_step() -> None:
    asked = request(count=9, selectors=selects(f"!has(device.attributes['{DRIVER}'].model)"))
    found = why(WORLD.allocator(), [claim(asked)], node())
    (one,) = found.requests
    assert {each.step: each.devices for each in one.removed} == {
        Step.NODE: 2,
        Step.POOL: 1,
        Step.CLASS: 1,
        Step.SELECTOR: 1,
        Step.IN_USE: 1,
        Step.COUNTER: 1,
        Step.TAINT: 1,
    }
    assert (one.wanted, one.had, one.left, one.stuck) == (9, 1, 0, True)
    assert one.devices == 9
    assert found.verdict == "not enough usable devices"


@pytest.mark.parametrize(
    ("world", "asked", "step"),
    [
        (World([slice_([device("a", memory="2")])]), request(capacity=wants("3")), Step.CAPACITY),
        (
            World([slice_(devices("a"))], features=allocate.Features(binding_conditions=False)),
            request(),
            None,
        ),
        (
            World([slice_(devices("a"))]),
            request(selectors=selects("device.attributes['x'].y == 1")),
            Step.FAULT,
        ),
        (
            World(
                [slice_(devices("a", binding_conditions=("R",)))],
                features=allocate.Features(binding_conditions=False),
            ),
            request(),
            Step.GATE,
        ),
        (
            World(
                [
                    slice_(
                        [device("a", node_name=NodeName("n1")), device("b", node_name=NodeName("n2"))],
                        per_device_node_selection=True,
                    )
                ]
            ),
            request(),
            Step.NODE,
        ),
    ],
)
def test_a_device_drops_out_at(world: World, asked: DeviceRequest, step: Step | None) -> None:
    assert counts(world, asked) == [{step: 1} if step else {}]


def test_what_other_requests_take_is_told_from_what_others_hold() -> None:
    world = World([slice_(devices("a", "b", "c"))], [holding("c")])
    first, second = why(world.allocator(), [claim(request("x", 2), request("y"))], node()).requests
    assert (first.stuck, first.had, first.left) == (False, 2, 0)
    assert (second.stuck, second.had, second.left) == (True, 0, 0)
    assert {one.step: one.devices for one in second.removed} == {Step.IN_USE: 1, Step.TAKEN: 2}


def test_a_constraint_counts_against_the_devices_chosen_before() -> None:
    world = World([slice_([device("a", numa=0), device("b", numa=1), device("c", numa=1)])])
    asked = claim(request("x", selectors=selects(f"device.attributes['{DRIVER}'].numa == 0")), request("y"))
    limited = allocate.why(
        world.allocator(), [claim(*asked.spec.devices.requests, constraints=[same("numa")])], node()
    )
    assert {one.step: one.devices for one in limited.requests[1].removed} == {
        Step.TAKEN: 1,
        Step.CONSTRAINT: 2,
    }


def test_each_alternative_is_explained() -> None:
    world = World([slice_(devices("a"))])
    asked = first_of(alternative("x", 2), alternative("y", selectors=selects("false")))
    assert counts(world, asked) == [{}, {Step.SELECTOR: 1}]


def test_all_devices_want_what_selectors_mean() -> None:
    (one,) = why(
        World([slice_(devices("a", "b"))], [holding("a")]).allocator(), [claim(every())], node()
    ).requests
    assert (one.every, one.wanted, one.had, one.left) == (True, 2, 1, 0)


def test_all_devices_are_stuck_at_the_first_that_cannot_be_had() -> None:
    slices = [slice_(devices("a", "b"))]
    asked = claim(every("x", selectors=selects("false")), every("y"), request("z"))
    nothing, _, _ = why(World(slices).allocator(), [asked], node()).requests
    assert (nothing.wanted, nothing.stuck) == (0, True)
    found = why(World(slices, [holding("b")]).allocator(), [claim(every("y"), request("z"))], node())
    assert [one.stuck for one in found.requests] == [True, False]


def test_a_request_is_stuck_in_whichever_claim_it_is() -> None:
    world = World([slice_(devices("a"))])
    found = why(world.allocator(), [claim(request("x")), claim(request("y"), name="d")], node())
    assert [one.stuck for one in found.requests] == [False, True]


def test_a_node_that_fits_says_so() -> None:
    found = why(WORLD.allocator(), [claim(request())], node())
    assert (found.verdict, found.fits, found.aborts) == ("fits", True, False)
    assert not found.stuck
    assert not any(one.nearest for one in found.requests)


def test_an_error_is_a_reason_too() -> None:
    unknown = claim(request(device_class_name="none"))
    assert "could not retrieve device class none" in why(WORLD.allocator(), [unknown], node()).verdict
    half = why(WORLD.allocator(), [claim(every())], node())
    assert "half is currently being updated" in half.verdict


def test_a_device_whose_node_selector_cannot_be_read_is_counted_though_no_search_came_to_it() -> None:
    term = NodeSelectorTerm((NodeSelectorRequirement("zone", "Maybe"),))
    listed = [
        device("sound", model="H100", all_nodes=True),
        device("broken", model="A100", node_selector=NodeSelector((term,))),
    ]
    world = World([slice_(listed, per_device_node_selection=True)])
    asked = request(count=2, selectors=selects(f"device.attributes['{DRIVER}'].model == 'H100'"))
    assert counts(world, asked) == [{Step.FAULT: 1}]
