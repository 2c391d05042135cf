"""Over all nodes: how many fail for which main reason, and which came nearest."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from jackfield.core.allocate import Everywhere, Reason, Step, holders, why_nowhere
from jackfield.core.allocate.everywhere import NOT_ASKED, OTHER, REASONS_MAX, Survey
from jackfield.model.claim import DeviceRequest
from jackfield.model.device import Device, DeviceCapacity, DeviceTaint
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    CLASSES,
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
    where,
)

A100 = selects(f"device.attributes['{DRIVER}'].model == 'A100'")
GIVEN_UP = str(Reason.SEARCH_LIMIT)
NODES = tuple(node(f"n{at}") for at in range(4))


def on(name: str, *listed: Device, of: int = 1) -> ResourceSlice:
    return slice_(listed, f"s-{name}", name, of, node_name=NodeName(name))


def a100(name: str, **fields: object) -> Device:
    return replace(device(name, model="A100"), **fields)


def reasons(found: Everywhere) -> list[tuple[str, int, str]]:
    return [(one.reason, one.nodes, one.example) for one in found.reasons]


def asked(world: World, *requests: DeviceRequest, constraints: Sequence[str] = ()) -> Everywhere:
    wish = claim(*requests, constraints=[same(one) for one in constraints])
    return why_nowhere(world.allocator(), [wish], NODES, holders(world.held))


SLICES = [
    on("n0", a100("a"), a100("b")),
    on("n1", a100("a"), a100("b"), a100("c")),
    on("n2", device("t", model="T4")),
]
HELD = [holding("a", pool="n0"), holding("a", "b", pool="n1")]


def test_nodes_are_counted_by_the_step_at_which_their_nearest_device_drops_out() -> None:
    found = asked(World(SLICES, HELD), request(count=2, selectors=A100))
    assert (found.nodes, found.fitting) == (4, 0)
    assert reasons(found) == [(Step.IN_USE, 2, "n0"), (Step.SELECTOR, 1, "n2"), (Step.NODE, 1, "n3")]
    (nearest,) = found.nearest
    (miss,) = nearest.requests[0].nearest
    assert (nearest.node, nearest.requests[0].had, str(miss.device)) == ("n0", 1, f"{DRIVER}/n0/a")
    assert miss.causes[0].seen == "claim ns/held"


def test_nodes_that_fit_are_counted_and_nothing_is_nearest() -> None:
    found = asked(World(SLICES, HELD), request(selectors=A100))
    assert (found.fitting, found.nearest) == (2, ())
    assert reasons(found) == [(Step.SELECTOR, 1, "n2"), (Step.NODE, 1, "n3")]


def test_without_nodes_there_is_nothing_to_tell() -> None:
    assert why_nowhere(World(SLICES).allocator(), [claim(request())], []) == Everywhere(0, 0, (), ())


@pytest.mark.parametrize(
    ("listed", "requests", "constraints", "told"),
    [
        ((device("a"), device("b")), (request("x", 2), request("y")), (), Step.TAKEN),
        ((device("a", numa=0), device("b", numa=1)), (request(count=2),), ("numa",), Step.CONSTRAINT),
        ((device("a", memory="1Gi"),), (request(capacity=wants("2Gi")),), (), Step.CAPACITY),
        ((device("a", taints=(DeviceTaint("k", effect="NoSchedule"),)),), (request(),), (), Step.TAINT),
        ((device("a", model="T4"),), (every(selectors=A100),), (), Step.SELECTOR),
        ((device("a", model="T4"), device("b", model="T4")), (every("x"), every("y")), (), Step.TAKEN),
        (
            (device("a"), device("b"), device("c", memory="1Gi")),
            (request("w"), first_of(alternative("x", 3), alternative("y", 2, capacity=wants("1Gi")))),
            (),
            Step.CAPACITY,
        ),
        (
            (device("a"),),
            (first_of(alternative("x", 3), alternative("y", 2)),),
            (),
            Step.NODE,
        ),
        (
            tuple(device(f"d{at}") for at in range(40)),
            (first_of(alternative("x", 30), alternative("y", selectors=selects("false"))), request("s", 3)),
            (),
            Step.LIMIT,
        ),
    ],
)
def test_the_main_reason_of_a_node_is(
    listed: tuple[Device, ...], requests: tuple[DeviceRequest, ...], constraints: tuple[str, ...], told: Step
) -> None:
    world = World([on("n0", *listed)])
    found = asked(world, *requests, constraints=constraints)
    assert (found.fitting, found.nearest[0].node) == (0, "n0")
    assert next(one.reason for one in found.reasons if one.example == "n0") == told


def test_a_pool_that_cannot_be_used_is_the_reason_where_there_is_no_other_device() -> None:
    found = asked(World([on("n0", device("a"), of=2)]), request())
    assert reasons(found) == [(Step.NODE, 3, "n1"), (Step.POOL, 1, "n0")]
    assert found.nearest[0].node == "n0"


def test_the_node_that_lacks_least_is_nearest_and_then_the_one_whose_devices_have_least_in_their_way() -> (
    None
):
    tainted = {"taints": (DeviceTaint("k", effect="NoSchedule"),)}
    slices = [on("n0", a100("a", **tainted), a100("b", **tainted)), on("n1", a100("a"), a100("b", **tainted))]
    held = [holding("a", pool="n1")]
    assert asked(World(slices, held), request(count=2)).nearest[0].node == "n0"
    assert asked(World(slices), request(count=2)).nearest[0].node == "n1"


def test_pools_of_many_nodes_are_seen_where_their_devices_can_be_used() -> None:
    listed = [
        device("a", node_name=NodeName("n1")),
        device("b", node_name=NodeName("n1")),
        device("c", node_selector=where(zone="z")),
        device("d", node_selector=where(zone="z")),
    ]
    world = World([slice_(listed, per_device_node_selection=True)])
    nodes = [node("n1"), node("n2", zone="z"), node("n3")]
    found = why_nowhere(world.allocator(), [claim(request(count=2))], nodes)
    assert (found.fitting, reasons(found)) == (2, [(Step.NODE, 1, "n3")])


# --- errors


def test_a_claim_that_cannot_be_read_is_the_same_error_for_all_nodes() -> None:
    found = asked(World(SLICES), request(device_class_name="gone"))
    ((reason, count, example),) = reasons(found)
    assert ("could not retrieve device class gone" in reason, count, example) == (True, 4, "n0")
    assert found.nearest[0].aborts


def test_a_node_that_cannot_be_looked_at_says_so_before_the_claim_is_read() -> None:
    unreadable = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Maybe"),)),))
    world = World([slice_(devices("a"), node_selector=unreadable)])
    ((reason, count, _),) = reasons(asked(world, request(device_class_name="gone")))
    assert (reason, count) == ("node selector: 'Maybe' is not a valid operator for zone", 4)


def test_a_node_that_ends_in_an_error_is_never_nearest_while_another_is_not() -> None:
    unreadable = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Maybe"),)),))
    slices = [on("n0", device("x")), on("n1", device("a", model="T4"))]
    found = asked(World(slices), request(selectors=A100))
    assert [one.nodes for one in found.reasons if "selector #0" in one.reason] == [1]
    assert found.nearest[0].node == "n1"
    broken = World([*SLICES, slice_(devices("a"), "u", "u", node_selector=unreadable)])
    ((reason, count, _),) = reasons(asked(broken, request()))
    assert (reason, count) == ("node selector: 'Maybe' is not a valid operator for zone", 4)


def test_a_device_that_cannot_be_read_is_met_only_by_the_search_that_comes_to_it() -> None:
    much = {"capacity": {"memory": DeviceCapacity("much")}}
    world = World(
        [on("n0", replace(device("a"), **much)), on("n1", device("b"))], classes={"gpu": CLASSES["any"]}
    )
    found = asked(world, request())
    assert found.fitting == 1
    assert [one.nodes for one in found.reasons] == [2, 1]
    assert "is no quantity" in found.reasons[1].reason


def test_a_place_that_cannot_be_read_does_not_matter_where_its_device_is_not_meant() -> None:
    unreadable = NodeSelector((NodeSelectorTerm((NodeSelectorRequirement("zone", "Maybe"),)),))
    listed = [a100("a", all_nodes=True), device("b", model="T4", node_selector=unreadable)]
    found = asked(World([slice_(listed, per_device_node_selection=True)]), request(count=2, selectors=A100))
    assert (found.fitting, reasons(found)) == (0, [(Step.NODE, 4, "n0")])


def test_more_devices_than_a_claim_may_hold_are_the_same_error_on_all_nodes() -> None:
    ((reason, count, _),) = reasons(asked(World(SLICES), request(count=33)))
    assert ("exceeds the claim limit" in reason, count) == (True, 4)


def test_errors_of_many_kinds_are_told_in_part() -> None:
    nodes = [node(f"m{at}") for at in range(40)]
    slices = [on(f"m{at}", device(f"d{at}")) for at in range(40)]
    found = why_nowhere(World(slices).allocator(), [claim(request(selectors=A100))], nodes)
    assert len(found.reasons) == REASONS_MAX + 1
    assert (found.reasons[-1].reason, sum(one.nodes for one in found.reasons)) == (OTHER, 40)


# --- limits


def partitions(name: str) -> list[ResourceSlice]:
    listed = [device(f"d{at}", consumes_counters=consumes("3")) for at in range(16)]
    return [
        slice_(listed, f"{name}-d", name, 2, node_name=NodeName(name)),
        slice_((), f"{name}-c", name, 2, node_name=NodeName(name), shared_counters=counters("8")),
    ]


@pytest.mark.parametrize(
    ("checks_max", "told"),
    [(10_000, [Step.COUNTER, Step.COUNTER]), (3_000, [Step.COUNTER, GIVEN_UP]), (20, [GIVEN_UP, NOT_ASKED])],
)
def test_all_searches_together_take_no_more_than_so_many_steps(checks_max: int, told: list[str]) -> None:
    allocator = World([*partitions("n0"), *partitions("n1")]).allocator()
    survey = Survey(allocator, allocator.wishes([claim(request(count=3))]), checks_max)
    assert [survey.standing(one).reason for one in NODES[:2]] == told
    # What is seen at a glance needs no search.
    assert survey.standing(NODES[3]).reason == Step.NODE
