"""What a claim can ask for, and what it is told in return."""

import msgspec
import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import (
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from jackfield.model.slice import DeviceClassSpec
from unit.core.allocate.small_world import (
    CLASSES,
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

NOT_ENOUGH = "not enough usable devices"
H100 = selects(f"device.attributes['{DRIVER}'].model == 'H100'")
A100 = selects(f"device.attributes['{DRIVER}'].model == 'A100'")
MIXED = [device("a", model="A100"), device("h", model="H100"), device("i", model="H100")]


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (request(count=2), ["r=a", "r=h"]),
        (request(selectors=H100), ["r=h"]),
        (request(count=3, selectors=H100), NOT_ENOUGH),
        (every(selectors=H100), ["r=h", "r=i"]),
        (every(selectors=selects("false")), NOT_ENOUGH),
        (request(count=0), []),
        (
            first_of(alternative("x", 3, selectors=H100), alternative("y", 2, selectors=H100)),
            ["r/y=h", "r/y=i"],
        ),
        (first_of(alternative("x", selectors=A100), alternative("y", selectors=H100)), ["r/x=a"]),
        (first_of(alternative("x", 9), alternative("y", 8)), NOT_ENOUGH),
    ],
)
def test_a_request_is_given(asked: DeviceRequest, given: list[str] | str) -> None:
    assert World([slice_(MIXED)]).gives(claim(asked)) == given


def test_a_device_in_use_is_not_given_again() -> None:
    world = World([slice_(devices("a", "b"))], [holding("a")])
    assert world.gives(claim(request())) == ["r=b"]
    assert world.gives(claim(request(count=2))) == NOT_ENOUGH
    assert world.gives(claim(every())) == NOT_ENOUGH


def test_no_device_serves_two_requests_or_two_claims() -> None:
    world = World([slice_(devices("a", "b", "c"))])
    assert world.gives(claim(request("x"), request("y")), claim(request("z"))) == ["x=a", "y=b", "z=c"]


def test_an_earlier_request_steps_aside_for_a_later_one() -> None:
    world = World([slice_(MIXED[:2])])
    assert world.gives(claim(request("x"), request("y", selectors=A100))) == ["x=h", "y=a"]


def test_an_alternative_is_chosen_for_the_whole_pod() -> None:
    world = World([slice_(devices("a", "b"))])
    both = first_of(alternative("two", 2), alternative("one", 1))
    assert world.gives(claim(both), claim(request("z"))) == ["r/one=a", "z=b"]


def test_all_devices_that_cannot_be_had_leave_them_to_the_next_alternative() -> None:
    listed = [device("a"), device("b", taints=(DeviceTaint("k", effect="NoSchedule"),))]
    either = first_of(alternative("all", allocation_mode="All"), alternative("one"))
    assert World([slice_(listed)]).gives(claim(either)) == ["r/one=a"]


def test_a_claim_holds_32_devices_and_no_more() -> None:
    names = [f"d{number}" for number in range(40)]
    world = World([slice_(devices(*names))])
    assert len(world.gives(claim(request(count=32)))) == 32
    for asked in (request(count=33), every()):
        with pytest.raises(allocate.AllocationError, match="exceeds the claim limit of 32"):
            world.gives(claim(asked))


def test_alternatives_that_are_too_many_are_passed_over() -> None:
    names = [f"d{number}" for number in range(40)]
    world = World([slice_(devices(*names))])
    many = first_of(alternative("many", 20), alternative("few", 12), name="y")
    assert len(world.gives(claim(request("x", 20), many))) == 32

    too_many = first_of(alternative("many", 32), alternative("few", 1), name="x")
    also = first_of(alternative("many", 32), alternative("some", 32), name="y")
    with pytest.raises(allocate.AllocationError, match="number of requested devices 33"):
        world.gives(claim(too_many, also))


def test_an_alternative_is_given_up_for_one_that_leaves_room_for_the_rest_of_the_claim() -> None:
    world = World([slice_(devices(*(f"d{number}" for number in range(40))))])
    either = first_of(alternative("many", 20), alternative("few", 1), name="x")
    given = world.gives(claim(either, first_of(alternative("all", 20), name="y")))
    assert sorted({one.partition("=")[0] for one in given}) == ["x/few", "y/all"]
    assert len(given) == 21


def test_a_claim_whose_small_alternative_has_no_device_does_not_fit() -> None:
    names = [f"d{number}" for number in range(40)]
    either = first_of(alternative("none", 1, selectors=selects("false")), alternative("many", 32), name="y")
    assert World([slice_(devices(*names))]).gives(claim(request("x"), either)) == NOT_ENOUGH


OFF = allocate.Features(
    admin_access=False, prioritized_list=False, consumable_capacity=False, partitionable_devices=False
)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request(device_class_name="none"), "could not retrieve device class none"),
        (request(device_class_name=""), "missing device class name"),
        (DeviceRequest("r"), "missing device class name"),
        (request(selectors=(DeviceSelector(),)), "CEL expression empty"),
        (request(allocation_mode="Most"), "unsupported count mode Most"),
        (request(selectors=selects("nothing")), "selector #0: CEL compile error"),
        (request(selectors=A100), f"selector #0 on device {DRIVER}/p/bare: CEL runtime error"),
        (request(capacity=wants("much")), "'much' is no quantity"),
    ],
)
def test_a_request_nobody_can_read_ends_the_cycle(asked: DeviceRequest, words: str) -> None:
    with pytest.raises(allocate.AllocationError, match=words):
        World([slice_(devices("bare"))]).gives(claim(asked))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request(admin_access=True), "admin access is requested"),
        (first_of(alternative("x")), "DRAPrioritizedList"),
        (request(capacity=wants("1")), "DRAConsumableCapacity"),
    ],
)
def test_a_request_beyond_the_gates_ends_the_cycle(asked: DeviceRequest, words: str) -> None:
    with pytest.raises(allocate.AllocationError, match=words):
        World([slice_(devices("a"))], features=OFF).gives(claim(asked))


def test_a_constraint_on_nothing_ends_the_cycle() -> None:
    with pytest.raises(allocate.AllocationError, match="constraint #0: empty constraint"):
        World([]).gives(claim(request(), constraints=[DeviceConstraint()]))


def test_a_selector_of_the_class_is_blamed_on_the_class() -> None:
    broken = replace(CLASSES["gpu"], spec=DeviceClassSpec(A100))
    with pytest.raises(allocate.AllocationError, match="class gpu: selector #0"):
        World([slice_(devices("bare"))], classes={"gpu": broken}).gives(claim(request()))


@pytest.mark.parametrize(
    ("listed", "held", "count", "ends"),
    [
        ([device("a", model="A100"), device("bare")], (), 1, False),
        ([device("a", model="A100"), device("bare")], (), 2, True),
        ([device("bare"), device("a", model="A100")], (), 1, True),
        ([device("bare"), device("a", model="A100")], ("bare",), 1, False),
        ([device("a", model="A100"), device("bare")], ("bare",), 2, False),
    ],
    ids=["not reached", "reached", "first", "in use", "in use, and too few"],
)
def test_a_failing_selector_matters_once_the_search_asks_it(
    listed: list[Device],
    held: tuple[str, ...],
    count: int,
    ends: bool,  # noqa: FBT001 - a column of the table
) -> None:
    world = World([slice_(listed)], [holding(*held)])
    if ends:
        with pytest.raises(allocate.AllocationError, match="no such key: model"):
            world.gives(claim(request(count=count, selectors=A100)))
    else:
        world.gives(claim(request(count=count, selectors=A100)))


def test_a_failing_selector_does_not_matter_for_a_device_that_another_request_took() -> None:
    world = World([slice_([device("bare"), device("a", model="A100")])])
    assert world.gives(claim(request("x"), request("y", selectors=A100))) == ["x=bare", "y=a"]


def test_a_selector_that_fails_on_another_nodes_device_fails_here_too() -> None:
    listed = [device("there", node_name=NodeName("n2")), device("here", model="A100", all_nodes=True)]
    world = World([slice_(listed, per_device_node_selection=True)])
    with pytest.raises(allocate.AllocationError, match="no such key: model"):
        world.gives(claim(request(selectors=A100)))


def test_a_selector_that_fails_on_any_device_fails_on_all_of_them() -> None:
    world = World([slice_(devices("sound"), pool="o"), slice_([device("a", model="A100"), device("bare")])])
    with pytest.raises(allocate.AllocationError, match="no such key: model"):
        world.gives(claim(every(selectors=A100)))


def test_all_devices_break_on_a_constraint_with_an_error() -> None:
    world = World([slice_([device("a", numa=0), device("b", numa=1)])])
    with pytest.raises(allocate.AllocationError, match=r"cannot add device .*/p/b because"):
        world.gives(claim(every(), constraints=[same("numa")]))


@pytest.mark.parametrize("answers_max", [0, 1, 2, 100])
def test_selectors_that_forget_answer_the_same(answers_max: int) -> None:
    world = World([slice_(MIXED)])
    selectors = allocate.Selectors(answers_max)
    for _ in range(2):
        allocator = allocate.Allocator(world.slices, CLASSES, allocate.Allocated(), selectors=selectors)
        found = allocator.allocate(
            [claim(request("x", selectors=H100), request("y", selectors=A100))], node()
        )
        assert not isinstance(found, allocate.NoFit)
        assert [one.device for one in found[0].devices.results] == ["h", "a"]


def test_who_is_asked_ever_new_questions_answers_them_all() -> None:
    """More of each kind than is remembered at once."""
    one = device("a", numa=7, memory="1000", allow_multiple_allocations=True)
    allocator, here = World([slice_([one])]).allocator(), node()
    for number in (*range(300), 0):
        asked = {
            "selectors": claim(request(selectors=selects(f"{number} < 300"))),
            "constraints": claim(request(), constraints=[same(f"of{number}")]),
            "capacity": claim(request(capacity=wants(str(number)))),
        }
        found = {
            name: not isinstance(allocator.allocate([one], here), allocate.NoFit)
            for name, one in asked.items()
        }
        assert found == {"selectors": True, "constraints": False, "capacity": True}


def test_what_an_expression_cannot_see_does_not_make_it_ask_again() -> None:
    # The device moves from one node to another, and gets another taint: the answers about it stay good.
    selectors = allocate.Selectors(answers_max=1)
    for place in ("n1", "n2"):
        one = device("a", model="A100", node_name=NodeName(place))
        slices = [slice_([one], per_device_node_selection=True)]
        allocator = allocate.Allocator(slices, CLASSES, allocate.Allocated(), selectors=selectors)
        assert not isinstance(allocator.allocate([claim(request())], node(place)), allocate.NoFit)
    assert selectors.answers == 1


# --- results


def test_a_result_repeats_what_drivers_and_evictors_need() -> None:
    toleration = DeviceToleration("k", "Exists")
    listed = devices("a", binding_conditions=("Ready",), binding_failure_conditions=("Failed",))
    (given,) = World([slice_(listed)]).allocations(claim(request(tolerations=(toleration,))))
    (one,) = given.devices.results
    assert str(one.id) == f"{DRIVER}/p/a"
    assert one.tolerations == (toleration,)
    assert one.binding_conditions == ("Ready",)
    assert one.binding_failure_conditions == ("Failed",)
    assert (one.share_id, one.admin_access, dict(one.consumed_capacity)) == ("", False, {})


PINNED = NodeSelector(
    (NodeSelectorTerm(match_fields=(NodeSelectorRequirement("metadata.name", "In", ("n1",)),)),)
)
FABRIC = {"node_selector": where(fabric="f")}


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([{"all_nodes": True}], None),
        ([{"node_name": NodeName("n1")}], PINNED),
        ([FABRIC], where(fabric="f")),
        ([FABRIC, FABRIC], where(fabric="f")),
        ([FABRIC, {"node_selector": where(zone="z", fabric="f")}], where(fabric="f", zone="z")),
        ([FABRIC, {"node_name": NodeName("n1")}], PINNED),
        ([FABRIC | {"binds_to_node": True}], PINNED),
        ([{"all_nodes": True, "binds_to_node": True}], PINNED),
    ],
    ids=str,
)
def test_an_allocation_can_be_used_from(
    places: list[dict[str, object]], expected: NodeSelector | None
) -> None:
    listed = [replace(device(f"d{number}"), **place) for number, place in enumerate(places)]
    world = World([slice_(listed, per_device_node_selection=True)])
    (given,) = world.allocations(claim(every()), at=node("n1", fabric="f", zone="z"))
    assert given.node_selector == expected


def test_a_selector_of_two_terms_cannot_be_carried_over() -> None:
    terms = where(fabric="f").node_selector_terms
    listed = devices("a", node_selector=NodeSelector((*terms, *terms)))
    with pytest.raises(allocate.AllocationError, match="with 2 terms"):
        World([slice_(listed, per_device_node_selection=True)]).gives(claim(request()), at=node(fabric="f"))


def settings(value: str) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(DRIVER, msgspec.Raw(value.encode()))


def configured(*config: DeviceClaimConfiguration) -> ResourceClaim:
    requests = (request("x"), first_of(alternative("one"), alternative("two"), name="y"))
    return replace(claim(), spec=ResourceClaimSpec(DeviceClaim(requests, config=config)))


def config_of(
    profile: allocate.Profile, *config: DeviceClaimConfiguration
) -> list[tuple[str, tuple[str, ...]]]:
    shared = replace(CLASSES["gpu"], spec=DeviceClassSpec(config=(DeviceClassConfiguration(settings("1")),)))
    world = World([slice_(devices("a", "b"))], (), allocate.Features(profile=profile), {"gpu": shared})
    (given,) = world.allocations(configured(*config))
    found: tuple[DeviceAllocationConfiguration, ...] = given.devices.config
    assert all(one.opaque is not None for one in found)
    return [(one.source, one.requests) for one in found]


V1_36, V1_37 = allocate.Profile.V1_36, allocate.Profile.V1_37


@pytest.mark.parametrize(
    ("profile", "named", "expected"),
    [
        (V1_36, (), [()]),
        (V1_36, ("x",), [("x",)]),
        (V1_36, ("y/one",), [("y/one",)]),
        (V1_36, ("y/two",), []),
        (V1_36, ("x", "y"), [("x", "y"), ("x", "y")]),
        (V1_37, ("x",), [("x",)]),
        (V1_37, ("x", "y"), [()]),
    ],
)
def test_configuration_of_the_claim_goes_along(
    profile: allocate.Profile, named: tuple[str, ...], expected: list[tuple[str, ...]]
) -> None:
    found = config_of(profile, DeviceClaimConfiguration(named, settings("2")))
    assert found[1:] == [("FromClaim", names) for names in expected]


def test_configuration_of_a_class_goes_along_once_with_the_names_of_its_requests() -> None:
    assert config_of(V1_36) == [("FromClass", ("x", "y/one"))]
    assert config_of(V1_37) == [("FromClass", ())]


ABSENT = request("absent", device_class_name="absent")
EMPTY = DeviceConstraint()


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([claim(every()), claim(ABSENT)], "is currently being updated"),
        ([claim(ABSENT), claim(every())], "could not retrieve device class"),
        ([claim(every(), ABSENT)], "is currently being updated"),
        ([claim(ABSENT, every())], "could not retrieve device class"),
        ([claim(request(count=33)), claim(ABSENT)], "exceeds the claim limit"),
        ([claim(request(count=33), ABSENT)], "could not retrieve device class"),
        ([claim(request(count=33), constraints=[EMPTY])], "exceeds the claim limit"),
        ([claim(request(), constraints=[EMPTY]), claim(every())], "empty constraint"),
        (
            [
                claim(
                    first_of(
                        alternative("a", allocation_mode="All"), alternative("b", device_class_name="absent")
                    )
                )
            ],
            "is currently being updated",
        ),
    ],
)
def test_of_several_errors_the_first_is_told_and_counting_comes_before_the_next_reading(
    claims: list[ResourceClaim], words: str
) -> None:
    incomplete = World([slice_(devices("a"), of=2)])
    with pytest.raises(allocate.AllocationError, match=words):
        incomplete.gives(*claims)
