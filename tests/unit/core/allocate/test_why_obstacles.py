"""What keeps a device that is meant from a request: whoever has it, and what it is short of."""

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from jackfield.core.allocate import Cause, Features, Profile, Step, holders, why
from jackfield.model.claim import (
    CapacityRequirements,
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ResourceClaim,
)
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key
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
    different,
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

MODEL = f"device.attributes['{DRIVER}'].model"
SHARED: dict[str, object] = {"allow_multiple_allocations": True}


def policy(**fields: object) -> dict[str, DeviceCapacity]:
    return {"memory": DeviceCapacity("40Gi", replace(CapacityRequestPolicy(), **fields))}


def first_causes(world: World, *claims: ResourceClaim) -> list[list[Cause]]:
    """Return for each request the cause of most devices of every step."""
    found = why(world.allocator(), claims, node("n1", zone="a"), holders(world.held))
    return [[one.groups[0].cause for one in each.removed] for each in found.requests]


def one_device(fields: Mapping[str, object], asked: DeviceRequest, features: Features = Features()) -> Cause:
    world = World([slice_([replace(device("a", model="A100", numa=1), **fields)])], features=features)
    ((cause,),) = first_causes(world, claim(asked))
    return cause


def test_a_device_in_use_names_the_claims_that_hold_it_as_far_as_they_are_known() -> None:
    world = World([slice_(devices("a"))], [holding("a")])
    assert first_causes(world, claim(request())) == [[Cause(Step.IN_USE, seen="claim ns/held")]]
    (found,) = why(world.allocator(), [claim(request())], node()).requests
    assert found.removed[0].groups[0].cause == Cause(Step.IN_USE)


def test_shares_hold_a_device_too_and_admin_access_does_not() -> None:
    other = replace(holding("a", share_id="1"), metadata=ObjectMeta(name="other", namespace="ns"))
    watching = replace(holding("a", admin_access=True), metadata=ObjectMeta(name="watching", namespace="ns"))
    found = holders([holding("a", "b"), other, watching])
    assert {one.device: keys for one, keys in found.items()} == {
        "a": (Key("ns", "held"), Key("ns", "other")),
        "b": (Key("ns", "held"),),
    }


def test_a_device_taken_in_the_same_pod_names_the_request() -> None:
    world = World([slice_(devices("a"))])
    first, second = claim(request("x")), claim(request("y"), name="d")
    assert first_causes(world, first, second)[1] == [Cause(Step.TAKEN, seen="claim ns/c, request x")]


def test_admin_access_is_refused_only_by_its_own_claim() -> None:
    world = World([slice_(devices("a"))], [holding("a")])
    watching = [request(name, admin_access=True) for name in "xy"]
    other = claim(request("z", admin_access=True), name="d")
    found = first_causes(world, other, claim(*watching))
    assert found == [[], [], [Cause(Step.TAKEN, seen="claim ns/c, request x")]]


@pytest.mark.parametrize(
    ("taint", "rule"),
    [
        (DeviceTaint("broken", effect="NoSchedule"), "broken:NoSchedule"),
        (DeviceTaint("broken", "fan", "NoExecute"), "broken=fan:NoExecute"),
    ],
)
def test_a_tainted_device_names_the_taints_that_are_not_tolerated(taint: DeviceTaint, rule: str) -> None:
    taints = {
        "taints": (DeviceTaint("noted", effect="None"), DeviceTaint("known", effect="NoSchedule"), taint)
    }
    asked = request(tolerations=(DeviceToleration("known", "Exists"),))
    assert one_device(taints, asked) == Cause(Step.TAINT, rule)


@pytest.mark.parametrize(
    ("held", "before", "seen"),
    [
        ("", "", "8Gi left of 8Gi"),
        ("b", "", "5Gi left of 8Gi"),
        ("d", "", "-1Gi left of 8Gi"),
        ("", "b", "5Gi left of 8Gi"),
    ],
)
def test_a_device_short_of_counters_says_how_much_is_left(held: str, before: str, seen: str) -> None:
    amounts = {"a": "12Gi", "b": "3Gi", "d": "9Gi"}
    listed = [
        device(name, model=name, consumes_counters=consumes(amount)) for name, amount in amounts.items()
    ]
    slices = [slice_(listed, of=2), slice_(name="c", of=2, shared_counters=counters("8Gi"))]
    world = World(slices, [holding(held)] if held else [])
    asked = [request(f"r{name}", selectors=selects(f"{MODEL} == '{name}'")) for name in (*before, "a")]
    assert first_causes(world, claim(*asked))[-1][-1] == Cause(Step.COUNTER, "whole/memory", "12Gi", seen)


def test_where_more_is_in_use_than_there_is_the_counter_is_named_though_the_device_needs_another() -> None:
    both = (CounterSet("x", {"m": Counter("1")}), CounterSet("y", {"m": Counter("4")}))
    listed = [
        device("a", consumes_counters=(DeviceCounterConsumption("x", {"m": Counter("3")}),)),
        device("b", consumes_counters=(DeviceCounterConsumption("y", {"m": Counter("1")}),)),
    ]
    world = World([slice_(listed, of=2), slice_(name="c", of=2, shared_counters=both)], [holding("a")])
    ((_, cause),) = first_causes(world, claim(request()))
    assert cause == Cause(Step.COUNTER, "x/m", "0", "-2 left of 1")


@pytest.mark.parametrize(
    ("fields", "asked", "wanted", "seen"),
    [
        ({}, wants("80Gi"), "80Gi", "absent"),
        ({"capacity": {"memory": DeviceCapacity("40Gi")}}, wants("80Gi"), "80Gi", "40Gi"),
        (
            {"capacity": {"cores": DeviceCapacity("8"), "memory": DeviceCapacity("40Gi")}},
            wants("80Gi"),
            "80Gi",
            "40Gi",
        ),
        (
            {"capacity": policy(valid_values=("10Gi", "20Gi"))},
            wants("30Gi"),
            "30Gi",
            "only 10Gi, 20Gi may be asked for",
        ),
        (
            {"capacity": policy(valid_range=CapacityRequestPolicyRange("1Gi", "20Gi"))},
            wants("30Gi"),
            "30Gi",
            "only 1Gi to 20Gi may be asked for",
        ),
        (
            {"capacity": policy(valid_range=CapacityRequestPolicyRange(max="20Gi"))},
            wants("30Gi"),
            "30Gi",
            "only 0 to 20Gi may be asked for",
        ),
        ({"capacity": policy(default="50Gi")}, None, "50Gi", "40Gi"),
        (
            {"capacity": {**policy(valid_values=("10Gi",)), "cores": DeviceCapacity("8")}},
            CapacityRequirements({"cores": "1", "memory": "11Gi"}),
            "11Gi",
            "only 10Gi may be asked for",
        ),
        ({"capacity": policy(valid_values=("10Gi", "50Gi"))}, wants("30Gi"), "50Gi", "40Gi"),
    ],
)
def test_a_device_short_of_capacity_says_of_what_and_how_much_it_has(
    fields: dict[str, object], asked: CapacityRequirements | None, wanted: str, seen: str
) -> None:
    assert one_device(fields, request(capacity=asked)) == Cause(Step.CAPACITY, "memory", wanted, seen)


def test_a_device_of_which_others_have_shares_says_what_is_left() -> None:
    shared = replace(device("a", memory="40Gi"), **SHARED)
    other = holding("a", share_id="1", consumed_capacity={"memory": "15Gi"})
    wish = claim(request("x", capacity=wants("20Gi")), request("y", capacity=wants("20Gi")))
    found = first_causes(World([slice_([shared])], [other]), wish)
    assert found == [[], [Cause(Step.CAPACITY, "memory", "20Gi", "5Gi left of 40Gi")]]


@pytest.mark.parametrize(
    ("profile", "rule", "numas", "wanted", "seen"),
    [
        (Profile.V1_36, same("numa"), (0, 1), "0", "1"),
        (Profile.V1_36, same("numa"), (0, None), "0", "absent"),
        (Profile.V1_36, same("numa"), (None,), "any value", "absent"),
        (Profile.V1_36, different("numa"), (1, 1), "other than 1", "1"),
        (Profile.V1_37, different("numa"), (1, 1), "other than 1", "1"),
        (Profile.V1_37, different("numa"), (None,), "any value", "absent"),
    ],
)
def test_a_constraint_says_what_the_others_have_and_what_the_device_has(
    profile: Profile, rule: DeviceConstraint, numas: tuple[int | None, ...], wanted: str, seen: str
) -> None:
    listed = [device(f"d{at}", numa=numa) for at, numa in enumerate(numas)]
    wish = claim(request(count=len(numas)), constraints=[same("gone", "nobody"), rule])
    ((cause,),) = first_causes(World([slice_(listed)], features=Features(profile=profile)), wish)
    kind = "matchAttribute" if rule == same("numa") else "distinctAttribute"
    assert cause == Cause(Step.CONSTRAINT, f"{kind} {DRIVER}/numa", wanted, seen, "constraints[1]")


def test_constraints_over_lists_and_texts_show_all_values() -> None:
    listed = [
        replace(device("a"), attributes={"numa": DeviceAttribute(strings=("x", "y"))}),
        replace(device("b"), attributes={"numa": DeviceAttribute(strings=("z",))}),
    ]
    world = World([slice_(listed)], features=Features(list_attributes=True))
    ((cause,),) = first_causes(world, claim(request(count=2), constraints=[same("numa")]))
    assert (cause.wanted, cause.seen) == ('["x", "y"]', '"z"')


def test_more_devices_than_a_claim_may_hold_are_told_as_such() -> None:
    world = World([slice_(devices(*(f"d{at}" for at in range(40))))])
    either = first_of(alternative("many", 30), alternative("few", 1, selectors=selects("false")), name="x")
    found = first_causes(world, claim(either, request("y", 3)))
    assert found[2][-1] == Cause(Step.LIMIT, "devices of one claim", "at most 32", "33")


def test_a_device_that_cannot_be_read_says_what_of_it() -> None:
    listed = [device("a"), replace(device("b"), capacity={"memory": DeviceCapacity("much")})]
    world = World([slice_(listed)], [holding("a")], classes={"gpu": CLASSES["any"]})
    found = why(world.allocator(), [claim(request())], node())
    (one,) = found.stuck
    assert [each.step for each in one.removed] == [Step.FAULT, Step.IN_USE]
    assert one.nearest[0].causes == (Cause(Step.FAULT, seen=found.verdict),)
    assert found.verdict.startswith(f"device {DRIVER}/p/b: 'much' is no quantity")
    assert found.aborts


def test_for_all_a_device_left_out_for_its_capacity_is_not_wanted() -> None:
    listed = [replace(device("a", memory="1Gi"), **SHARED), replace(device("b", memory="9Gi"), **SHARED)]
    asked = claim(every(capacity=wants("2Gi")), request("s"))
    world = World([slice_(listed)])
    first, _ = why(world.allocator(), [asked], node()).requests
    assert (first.wanted, first.had) == (1, 1)
