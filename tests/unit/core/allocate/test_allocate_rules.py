"""Whether one more device may be given: taints, constraints, admin access, counters, capacity."""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import DeviceConstraint, DeviceRequest, DeviceToleration, ResourceClaim
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
)
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    World,
    alternative,
    claim,
    consumes,
    counters,
    device,
    devices,
    different,
    every,
    first_of,
    holding,
    request,
    same,
    selects,
    slice_,
    wants,
)

NOT_ENOUGH = "not enough usable devices"
V1_37 = allocate.Features(profile=allocate.Profile.V1_37)

# --- taints


@pytest.mark.parametrize(
    ("taint", "tolerations", "given"),
    [
        (DeviceTaint("k", "v", "NoSchedule"), (), False),
        (DeviceTaint("k", "v", "NoExecute"), (), False),
        (DeviceTaint("k", "v", "None"), (), True),
        (DeviceTaint("k", "v", "Future"), (), True),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "Equal", "v"),), True),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "", "v"),), True),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "Equal", "w"),), False),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "Exists"),), True),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("", "Exists"),), True),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("j", "Exists"),), False),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "Near", "v"),), False),
        (DeviceTaint("k", "v", "NoSchedule"), (DeviceToleration("k", "Exists", effect="NoExecute"),), False),
        (DeviceTaint("k", "v", "NoExecute"), (DeviceToleration("k", "Exists", effect="NoExecute"),), True),
    ],
    ids=str,
)
def test_a_tainted_device_is_given_to(
    taint: DeviceTaint,
    tolerations: tuple[DeviceToleration, ...],
    given: bool,  # noqa: FBT001 - a column of the table
) -> None:
    world = World([slice_(devices("a", taints=(taint,)))])
    assert world.gives(claim(request(tolerations=tolerations))) == (["r=a"] if given else NOT_ENOUGH)


def test_every_taint_must_be_tolerated() -> None:
    taints = (DeviceTaint("k", effect="NoSchedule"), DeviceTaint("j", effect="NoSchedule"))
    world = World([slice_(devices("a", taints=taints))])
    one = DeviceToleration("k", "Exists")
    assert world.gives(claim(request(tolerations=(one,)))) == NOT_ENOUGH
    assert world.gives(claim(request(tolerations=(one, DeviceToleration("j", "Exists"))))) == ["r=a"]


def test_a_scheduler_without_taints_does_not_see_them() -> None:
    listed = devices("a", taints=(DeviceTaint("k", effect="NoSchedule"),))
    assert World([slice_(listed)], features=allocate.Features(device_taints=False)).gives(
        claim(request())
    ) == ["r=a"]


# --- constraints

NUMA = [device("a", numa=0), device("b", numa=1), device("c", numa=1), device("d", numa=0), device("bare")]


@pytest.mark.parametrize(
    ("requests", "constraint", "given"),
    [
        ([request(count=2)], same("numa"), ["r=a", "r=d"]),
        ([request(count=3)], same("numa"), NOT_ENOUGH),
        ([request("x"), request("y")], same("numa"), ["x=a", "y=d"]),
        ([request("x"), request("y")], same("numa", "x"), ["x=a", "y=b"]),
        ([request("x"), request("y", count=4)], same("numa", "x"), ["x=a", "y=b", "y=c", "y=d", "y=bare"]),
        ([request("x"), first_of(alternative("z"), name="y")], same("numa", "x", "y/z"), ["x=a", "y/z=d"]),
        ([request("x"), first_of(alternative("z"), name="y")], same("numa", "x", "y"), ["x=a", "y/z=d"]),
        ([request("x"), first_of(alternative("z"), name="y")], same("numa", "x", "y/w"), ["x=a", "y/z=b"]),
        ([request("x"), request("y")], different("numa"), ["x=a", "y=b"]),
        ([request(count=2)], different("numa"), ["r=a", "r=b"]),
        ([request("x"), request("y"), request("z")], different("numa"), NOT_ENOUGH),
        ([request()], same("socket"), NOT_ENOUGH),
    ],
)
def test_a_constraint_lets(
    requests: list[DeviceRequest], constraint: DeviceConstraint, given: list[str] | str
) -> None:
    assert World([slice_(NUMA)]).gives(claim(*requests, constraints=[constraint])) == given


def test_a_constraint_holds_within_its_claim_only() -> None:
    one = claim(request("x"), constraints=[different("numa")])
    assert World([slice_(NUMA)]).gives(one, claim(request("y"), constraints=[same("numa")])) == ["x=a", "y=b"]


def test_values_of_different_types_neither_match_nor_collide() -> None:
    listed = [device("a", numa=0), device("b", attributes={"numa": DeviceAttribute(string="0")})]
    world = World([slice_(listed)])
    assert world.gives(claim(request(count=2), constraints=[same("numa")])) == NOT_ENOUGH
    assert world.gives(claim(request(count=2), constraints=[different("numa")])) == ["r=a", "r=b"]


def test_a_value_of_an_unknown_type_stands_alone() -> None:
    listed = [device("a", numa=0), device("b", attributes={"numa": DeviceAttribute()})]
    world = World([slice_(listed)])
    for constraint in (same("numa"), different("numa")):
        asked = claim(request(count=2, device_class_name="any"), constraints=[constraint])
        assert world.gives(asked) == NOT_ENOUGH


def test_a_qualified_attribute_goes_before_the_bare_one() -> None:
    name = f"{same('numa').match_attribute}"
    listed = [
        device("a", attributes={name: DeviceAttribute(int_=1), "numa": DeviceAttribute(int_=7)}),
        device("b", numa=7),
        device("c", numa=1),
    ]
    assert World([slice_(listed)]).gives(claim(request(count=2), constraints=[same("numa")])) == [
        "r=a",
        "r=c",
    ]


@pytest.mark.parametrize("lists", [False, True])
def test_in_1_36_three_devices_of_one_request_are_not_kept_apart(*, lists: bool) -> None:
    # The second value replaces the first; mirrored until nobody runs 1.36.
    listed = [device("a", numa=0), device("b", numa=1), device("c", numa=0)]
    apart = claim(request(count=3), constraints=[different("numa")])
    older, newer = (replace(one, list_attributes=lists) for one in (allocate.Features(), V1_37))
    assert World([slice_(listed)], features=older).gives(apart) == ["r=a", "r=b", "r=c"]
    assert World([slice_(listed)], features=newer).gives(apart) == NOT_ENOUGH


def test_in_1_36_a_device_that_another_constraint_refuses_makes_values_forgotten() -> None:
    # Between a and c comes b, which differs and is then refused for its numa node: with it goes the value of a.
    listed = [device("a", model="X", numa=0), device("b", model="Y", numa=1), device("c", model="X", numa=0)]
    apart = claim(request(count=2), constraints=[different("model"), same("numa")])
    assert World([slice_(listed)]).gives(apart) == ["r=a", "r=c"]
    assert World([slice_(listed)], features=V1_37).gives(apart) == NOT_ENOUGH


@pytest.mark.parametrize("profile", allocate.Profile)
def test_a_value_given_up_is_free_again(profile: allocate.Profile) -> None:
    listed = [device("b", model="B", numa=0), device("c", model="C", numa=0), device("d", model="D", numa=1)]
    asked = claim(
        request("w", selectors=selects("device.attributes['gpu.example.com'].model == 'D'")),
        request("y"),
        request("z", selectors=selects("device.attributes['gpu.example.com'].model == 'B'")),
        constraints=[different("numa", "w", "y")],
    )
    world = World([slice_(listed)], features=allocate.Features(profile=profile))
    assert world.gives(asked) == ["w=d", "y=c", "z=b"]


def test_a_common_value_is_given_up_for_another() -> None:
    listed = [device("a", numa=0), device("b", numa=1), device("c", numa=1)]
    assert World([slice_(listed)]).gives(claim(request(count=2), constraints=[same("numa")])) == [
        "r=b",
        "r=c",
    ]


def test_an_attribute_of_another_domain_is_another_attribute() -> None:
    foreign = DeviceConstraint(match_attribute="other.example.com/numa")
    assert World([slice_(NUMA)]).gives(claim(request(), constraints=[foreign])) == NOT_ENOUGH


def test_lists_match_where_they_overlap() -> None:
    roots = [("a", (0, 1)), ("b", (1, 2)), ("c", (2, 3)), ("d", (1, 9))]
    listed = [device(name, attributes={"root": DeviceAttribute(ints=values)}) for name, values in roots]
    world = World([slice_(listed)], features=allocate.Features(list_attributes=True))
    assert world.gives(claim(request(count=3), constraints=[same("root")])) == ["r=a", "r=b", "r=d"]
    assert world.gives(claim(request(count=2), constraints=[different("root")])) == ["r=a", "r=c"]
    without = claim(request(count=2, device_class_name="any"), constraints=[same("root")])
    assert World([slice_(listed)]).gives(without) == NOT_ENOUGH


# --- admin access

ADMIN = request("admin", admin_access=True)
PLAIN = request("plain")


@pytest.mark.parametrize(
    ("claims", "given"),
    [
        ([claim(ADMIN)], ["admin=a"]),
        ([claim(PLAIN)], NOT_ENOUGH),
        ([claim(request("admin", 2, admin_access=True))], NOT_ENOUGH),
        ([claim(ADMIN), claim(ADMIN)], ["admin=a", "admin=a"]),
        ([claim(ADMIN, ADMIN)], NOT_ENOUGH),
    ],
    ids=["alone", "no admin", "the same device twice", "two claims", "one claim"],
)
def test_admin_access_to_a_device_in_use(claims: list[ResourceClaim], given: list[str] | str) -> None:
    assert World([slice_(devices("a"))], [holding("a")]).gives(*claims) == given


@pytest.mark.parametrize(
    ("claims", "given"),
    [
        ([claim(PLAIN), claim(ADMIN)], ["plain=a", "admin=a"]),
        ([claim(ADMIN), claim(PLAIN)], NOT_ENOUGH),
        ([claim(PLAIN, ADMIN)], NOT_ENOUGH),
    ],
    ids=["admin after", "admin before", "in one claim"],
)
def test_admin_access_beside_an_ordinary_request(claims: list[ResourceClaim], given: list[str] | str) -> None:
    assert World([slice_(devices("a"))]).gives(*claims) == given


def test_admin_access_holds_nothing() -> None:
    world = World([slice_(devices("a"))], [holding("a", admin_access=True)])
    assert world.gives(claim(PLAIN)) == ["plain=a"]


# --- counters


def partitions(*listed: Device, total: str = "8") -> list[ResourceSlice]:
    return [slice_(listed, "s1", of=2), slice_(name="s2", of=2, shared_counters=counters(total))]


PARTS = [
    device(name, consumes_counters=consumes(amount)) for name, amount in (("a", "5"), ("b", "4"), ("c", "4"))
]


@pytest.mark.parametrize(
    ("held", "count", "given"),
    [
        ([], 1, ["r=a"]),
        ([], 2, ["r=b", "r=c"]),
        ([], 3, NOT_ENOUGH),
        (["b"], 1, ["r=c"]),
        (["a"], 1, NOT_ENOUGH),
        (["b", "c"], 1, NOT_ENOUGH),
    ],
)
def test_partitions_share_what_they_are_parts_of(held: list[str], count: int, given: list[str] | str) -> None:
    assert World(partitions(*PARTS), [holding(*held)]).gives(claim(request(count=count))) == given


def test_a_partition_in_use_on_another_node_counts() -> None:
    slices = [
        slice_(PARTS[1:2], "s1", of=3, node_name=NodeName("n1")),
        slice_(PARTS[2:], "s2", of=3, node_name=NodeName("n2")),
        slice_(name="s3", of=3, shared_counters=counters("7")),
    ]
    assert World(slices).gives(claim(request())) == ["r=b"]
    assert World(slices, [holding("c")]).gives(claim(request())) == NOT_ENOUGH


def test_counters_that_are_overdrawn_stop_every_partition_of_the_pool() -> None:
    other = device("other", consumes_counters=consumes("1", "spare"))
    slices = [
        slice_([*PARTS, other], "s1", of=2),
        slice_(name="s2", of=2, shared_counters=(*counters("8"), *counters("8", "spare"))),
    ]
    assert World(slices, [holding("b")]).gives(claim(request(selectors=selects("true"), count=2))) == [
        "r=c",
        "r=other",
    ]
    assert World(slices, [holding("a", "b")]).gives(claim(request())) == NOT_ENOUGH


def test_admin_access_pays_for_counters_too() -> None:
    assert World(partitions(*PARTS), [holding("a")]).gives(claim(ADMIN)) == NOT_ENOUGH


def test_a_scheduler_without_partitions_gives_none() -> None:
    off = allocate.Features(partitionable_devices=False)
    assert World([slice_(PARTS[:1])], features=off).gives(claim(request())) == NOT_ENOUGH


def test_a_shared_partition_pays_once() -> None:
    shared = device("a", memory="10", allow_multiple_allocations=True, consumes_counters=consumes("5"))
    world = World(partitions(shared, PARTS[1], total="9"))
    some = wants("2")
    assert world.gives(claim(request("x", capacity=some), request("y", capacity=some), request("z"))) == [
        "x=a",
        "y=a",
        "z=b",
    ]
    held = World(world.slices, [holding("a", share_id="1", consumed_capacity={"memory": "2"})])
    assert held.gives(claim(request("x", capacity=some), request("y", 1))) == ["x=a", "y=b"]


def test_a_share_in_use_leaves_less_of_the_counters() -> None:
    part = device("a", memory="10", allow_multiple_allocations=True, consumes_counters=consumes("5"))
    held = holding("a", share_id="1", consumed_capacity={"memory": "10"})
    assert World(partitions(part, PARTS[1])).gives(claim(request(capacity=None))) == ["r=a"]
    assert World(partitions(part, PARTS[1]), [held]).gives(claim(request())) == NOT_ENOUGH
    assert World(partitions(part, PARTS[1], total="9"), [held]).gives(claim(request())) == ["r=b"]


# --- capacity


def shared(amount: str = "10", policy: CapacityRequestPolicy | None = None, name: str = "a") -> Device:
    return device(name, capacity={"memory": DeviceCapacity(amount, policy)}, allow_multiple_allocations=True)


STEPS = CapacityRequestPolicy("4", valid_range=CapacityRequestPolicyRange("2", "8", "2"))
RANGE = CapacityRequestPolicy("4", valid_range=CapacityRequestPolicyRange("2", "8"))
NO_STEPS = CapacityRequestPolicy("4", valid_range=CapacityRequestPolicyRange("2", "8", "0"))
DEFAULT = CapacityRequestPolicy("4")
VALUES = CapacityRequestPolicy("1", valid_values=("1", "2", "5"))
BINARY = CapacityRequestPolicy("1Gi", valid_range=CapacityRequestPolicyRange("1Gi", None, "1Gi"))


@pytest.mark.parametrize(
    ("policy", "asked", "used"),
    [
        (None, "3", "3"),
        (None, "", "10"),
        (None, "11", ""),
        (STEPS, "", "4"),
        (STEPS, "1", "2"),
        (STEPS, "3", "4"),
        (STEPS, "2500m", "4"),
        (STEPS, "8", "8"),
        (STEPS, "9", ""),
        (RANGE, "3", "3"),
        (RANGE, "1", "2"),
        (RANGE, "9", ""),
        (NO_STEPS, "3", "3"),
        (DEFAULT, "", "4"),
        (DEFAULT, "7", "7"),
        (DEFAULT, "11", ""),
        (VALUES, "", "1"),
        (VALUES, "2", "2"),
        (VALUES, "3", "5"),
        (VALUES, "6", ""),
    ],
)
def test_a_share_uses(policy: CapacityRequestPolicy | None, asked: str, used: str) -> None:
    world = World([slice_([shared(policy=policy)])])
    wanted = claim(request(capacity=wants(asked) if asked else None))
    if not used:
        assert world.gives(wanted) == NOT_ENOUGH
        return
    (given,) = world.allocations(wanted)
    (one,) = given.devices.results
    assert dict(one.consumed_capacity) == {"memory": used}
    assert one.share_id


def test_a_share_is_written_in_the_suffix_it_came_in() -> None:
    world = World([slice_([shared("80Gi", BINARY)])])
    (given,) = world.allocations(claim(request(capacity=wants("1500Mi"))))
    assert given.devices.results[0].consumed_capacity == {"memory": "2Gi"}


@pytest.mark.parametrize(
    ("used", "asked", "given"),
    [("4", "6", ["r=a"]), ("4", "7", ["r=b"]), ("10", "1", ["r=b"])],
)
def test_shares_together_use_no_more_than_there_is(used: str, asked: str, given: list[str]) -> None:
    held = holding("a", share_id="s", consumed_capacity={"memory": used})
    world = World([slice_([shared(), shared(name="b")])], [held])
    assert world.gives(claim(request(capacity=wants(asked)))) == given


def test_shares_of_one_attempt_add_up() -> None:
    world = World([slice_([shared()])])
    half = wants("5")
    assert world.gives(claim(request("x", capacity=half)), claim(request("y", capacity=half))) == [
        "x=a",
        "y=a",
    ]
    assert (
        world.gives(
            claim(request("x", capacity=half), request("y", capacity=half), request("z", capacity=half))
        )
        == NOT_ENOUGH
    )


def test_one_request_gets_a_shared_device_once() -> None:
    world = World([slice_([shared(), shared(name="b")])])
    assert world.gives(claim(request(count=2, capacity=wants("1")))) == ["r=a", "r=b"]
    assert world.gives(claim(request(count=3, capacity=wants("1")))) == NOT_ENOUGH


def test_shares_have_names_that_differ_and_last() -> None:
    world = World([slice_([shared()])])
    some = wants("1")
    claims = (
        claim(request("x", capacity=some), request("y", capacity=some)),
        claim(request("x", capacity=some), name="d"),
    )
    names = [one.share_id for each in world.allocations(*claims) for one in each.devices.results]
    again = [one.share_id for each in world.allocations(*claims) for one in each.devices.results]
    assert len(set(names)) == 3
    assert names == again


def test_a_whole_device_is_chosen_by_capacity_and_uses_none() -> None:
    world = World([slice_([device("none"), device("small", memory="1"), device("large", memory="9")])])
    (given,) = world.allocations(claim(request(capacity=wants("5"))))
    (one,) = given.devices.results
    assert (one.device, one.share_id, dict(one.consumed_capacity)) == ("large", "", {})


def test_a_shared_device_that_somebody_holds_whole_is_in_use() -> None:
    assert (
        World([slice_([shared()])], [holding("a")]).gives(claim(request(capacity=wants("1")))) == NOT_ENOUGH
    )


def test_a_scheduler_without_shares_takes_them_for_whole_devices() -> None:
    off = allocate.Features(consumable_capacity=False)
    held = holding("a", share_id="s", consumed_capacity={"memory": "1"})
    assert World([slice_([shared()])], features=off).gives(claim(request())) == ["r=a"]
    assert World([slice_([shared()])], [held], off).gives(claim(request())) == NOT_ENOUGH


def test_all_devices_are_in_1_36_those_that_are_not_full() -> None:
    held = holding("a", share_id="s", consumed_capacity={"memory": "10"})
    slices = [slice_([shared(), shared(name="b")])]
    some = claim(every(capacity=wants("1")))
    assert World(slices, [held]).gives(some) == ["r=b"]
    assert World(slices, [held], V1_37).gives(some) == NOT_ENOUGH


def test_counters_nobody_can_read_end_the_cycle() -> None:
    slices = [
        slice_(devices("a", consumes_counters=consumes("1")), "s1", of=2),
        slice_(name="s2", of=2, shared_counters=counters("much")),
    ]
    with pytest.raises(allocate.AllocationError, match=r"resource pool .*/p: 'much' is no quantity"):
        World(slices).gives(claim(request()))


def test_a_scheduler_without_shares_takes_all_devices_for_whole_ones() -> None:
    features = allocate.Features(consumable_capacity=False)
    assert World([slice_(devices("a", "b"))], features=features).gives(claim(every())) == ["r=a", "r=b"]


def test_a_device_nobody_can_read_ends_the_cycle() -> None:
    with pytest.raises(allocate.AllocationError, match=r"device .*/p/a: 'much' is no quantity"):
        World([slice_([shared("much")])]).gives(claim(request(device_class_name="any")))
