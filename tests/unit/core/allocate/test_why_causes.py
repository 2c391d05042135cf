"""What keeps a device from a request: the rule, what would satisfy it, and what was found instead."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from jackfield.core.allocate import Cause, Features, Profile, Step, holders, why
from jackfield.core.allocate.causes import DISTINCT_MAX
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
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from jackfield.model.names import Key, NodeName
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
    different,
    every,
    first_of,
    generation,
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
SAID = f'device.attributes["{DRIVER}"].model'
OFF = Features(binding_conditions=False, partitionable_devices=False)
SHARED: dict[str, object] = {"allow_multiple_allocations": True}


def terms(
    *requirements: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(requirements, fields),))


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


# --- the node


@pytest.mark.parametrize(
    ("selector", "rule", "seen"),
    [
        (where(zone="b"), "zone In (b)", "zone is a"),
        (terms(NodeSelectorRequirement("rack", "Exists")), "rack Exists", "rack is absent"),
        (terms(NodeSelectorRequirement("zone", "Gt", ("1",))), "zone Gt (1)", "zone is a"),
        (
            terms(fields=(NodeSelectorRequirement("metadata.name", "In", ("n9",)),)),
            "metadata.name In (n9)",
            "metadata.name is n1",
        ),
        (
            terms(
                NodeSelectorRequirement("zone", "In", ("a",)),
                fields=(NodeSelectorRequirement("metadata.name", "NotIn", ("n1",)),),
            ),
            "metadata.name NotIn (n1)",
            "metadata.name is n1",
        ),
        (
            NodeSelector((*where(zone="b").node_selector_terms, *where(zone="c").node_selector_terms)),
            "zone In (b) or zone In (c)",
            "zone is a",
        ),
        (
            NodeSelector((*where(zone="b").node_selector_terms, *where(rack="1").node_selector_terms)),
            "zone In (b) or rack In (1)",
            "zone is a and rack is absent",
        ),
        (
            terms(
                fields=(
                    NodeSelectorRequirement("metadata.name", "In", ("n1",)),
                    NodeSelectorRequirement("metadata.name", "In", ("n9",)),
                )
            ),
            "metadata.name In (n9)",
            "metadata.name is n1",
        ),
        (terms(), "an empty term", ""),
        (NodeSelector(()), "no node", ""),
    ],
)
def test_a_device_for_other_nodes_says_what_this_one_lacks(
    selector: NodeSelector, rule: str, seen: str
) -> None:
    told = [[Cause(Step.NODE, rule, "", seen)]]
    assert first_causes(World([slice_(devices("a"), node_selector=selector)]), claim(request())) == told
    mixed = slice_(
        [*devices("a", node_selector=selector), *devices("b", all_nodes=True)], per_device_node_selection=True
    )
    assert first_causes(World([mixed]), claim(request(count=2))) == told


def test_devices_for_other_nodes_by_name_are_counted_together_but_the_nearest_says_which_node() -> None:
    slices = [slice_(devices("a"), one, one, node_name=NodeName(one)) for one in ("n2", "n3")]
    (found,) = why(World(slices).allocator(), [claim(request())], node()).requests
    (removed,) = found.removed
    (group,) = removed.groups
    assert (group.cause, group.devices) == (Cause(Step.NODE, "nodeName", "", "n1"), 2)
    (miss,) = found.nearest
    assert (miss.device.pool, miss.causes) == ("n2", (Cause(Step.NODE, "nodeName", "n2", "n1"),))


def test_a_device_that_says_nothing_of_nodes_is_for_none() -> None:
    told = [[Cause(Step.NODE, "nodeName, nodeSelector or allNodes", "", "none is set")]]
    assert first_causes(World([slice_(devices("a"), all_nodes=False)]), claim(request())) == told


def test_a_slice_of_another_node_is_not_looked_into() -> None:
    unreadable = terms(NodeSelectorRequirement("zone", "Maybe"))
    odd = slice_(
        devices("a", node_selector=unreadable), node_name=NodeName("n2"), per_device_node_selection=True
    )
    assert first_causes(World([odd]), claim(request())) == [[Cause(Step.NODE, "nodeName", "", "n1")]]


# --- pools and gates


@pytest.mark.parametrize(
    ("slices", "flaw"),
    [
        ([slice_(devices("a"), of=3)], "currently being updated: 1 of 3 slices are there"),
        ([slice_(devices("a", "b", "a"))], "currently invalid: device a is listed twice"),
        (
            [
                slice_(devices("a"), of=2),
                slice_(name="c", of=2, shared_counters=(*counters("8"), *counters("8"))),
            ],
            "currently invalid: counter set whole is listed twice",
        ),
        (
            [slice_(devices("a", consumes_counters=consumes("1", "gone")))],
            "currently invalid: device a uses counter set gone, which is not there",
        ),
        (
            [
                slice_(devices("a", consumes_counters=consumes("1")), of=2),
                slice_(name="c", of=2, shared_counters=(CounterSet("whole", {"cores": Counter("1")}),)),
            ],
            "currently invalid: device a uses counter whole/memory, which is not there",
        ),
    ],
)
def test_a_pool_that_cannot_be_used_says_what_is_wrong_with_it(
    slices: Sequence[ResourceSlice], flaw: str
) -> None:
    world = World(slices)
    told = [[Cause(Step.POOL, f"{DRIVER}/p", "", flaw)]]
    assert first_causes(world, claim(request())) == told
    (found,) = why(world.allocator(), [claim(request())], node()).requests
    assert [one.device.device for one in found.nearest] == ["a"]


@pytest.mark.parametrize(
    ("slices", "gate"),
    [
        ([slice_(devices("a", binding_conditions=("R",)))], "DRADeviceBindingConditions"),
        ([slice_(devices("a", all_nodes=True), per_device_node_selection=True)], "DRAPartitionableDevices"),
        ([slice_(devices("a", consumes_counters=consumes("1")))], "DRAPartitionableDevices"),
    ],
)
def test_a_device_that_needs_a_gate_names_it(slices: Sequence[ResourceSlice], gate: str) -> None:
    world = World(slices, features=OFF)
    assert first_causes(world, claim(request())) == [[Cause(Step.GATE, gate, "on", "off")]]


def test_an_older_generation_that_a_node_still_sees_counts_beside_the_newer_one() -> None:
    old = slice_(devices("a"), "old", node_name=NodeName("n1"))
    new = generation(2, slice_(devices("b", "c"), "new", node_name=NodeName("n2")))
    (found,) = why(World([old, new], [holding("a")]).allocator(), [claim(request())], node()).requests
    assert [(one.step, one.devices) for one in found.removed] == [(Step.NODE, 2), (Step.IN_USE, 1)]


def test_slices_without_devices_add_nothing() -> None:
    slices = [
        slice_((), "e", "e", node_name=NodeName("n2")),
        slice_((), "h", "h", of=2),
        slice_(devices("a")),
    ]
    assert first_causes(World(slices, [holding("a")]), claim(request())) == [
        [Cause(Step.IN_USE, seen="claim ns/held")]
    ]


# --- selectors


@pytest.mark.parametrize(
    ("expression", "rule", "wanted", "seen"),
    [
        (f"{MODEL} == 'H100'", f'{SAID} == "H100"', "true", f'{SAID} is "A100"'),
        (
            f"{MODEL} == 'A100' && {MODEL}.startsWith('B')",
            f'{SAID}.startsWith("B")',
            "true",
            f'{SAID} is "A100"',
        ),
        (f"!({MODEL} == 'A100')", f'{SAID} == "A100"', "false", f'{SAID} is "A100"'),
        (
            "device.allowMultipleAllocations",
            "device.allowMultipleAllocations",
            "true",
            "device.allowMultipleAllocations is false",
        ),
        ("1 == 2", "1 == 2", "true", ""),
    ],
)
def test_a_selector_names_the_part_that_said_no_and_the_value_it_saw(
    expression: str, rule: str, wanted: str, seen: str
) -> None:
    asked = request(selectors=(*selects("true"), *selects(expression)))
    assert one_device({}, asked) == Cause(Step.SELECTOR, rule, wanted, seen, "selectors[1]")


def test_the_class_is_named_where_one_of_its_selectors_said_no() -> None:
    world = World([slice_(devices("a"), driver="nic.example.com")])
    assert first_causes(world, claim(request())) == [
        [
            Cause(
                Step.CLASS,
                f'device.driver == "{DRIVER}"',
                "true",
                'device.driver is "nic.example.com"',
                "class gpu selectors[0]",
            )
        ]
    ]


def test_a_selector_without_an_answer_names_the_part_that_failed() -> None:
    cause = one_device({}, request(selectors=selects("true && device.attributes['x'].y == 1")))
    assert (cause.step, cause.rule, cause.source) == (
        Step.FAULT,
        'device.attributes["x"].y == 1',
        "selectors[0]",
    )
    assert cause.seen == 'CEL runtime error: no such key: y (device.attributes["x"].y is absent)'


def test_a_selector_that_does_not_compile_says_so() -> None:
    cause = one_device({}, request(selectors=selects("device.gone")))
    assert (cause.step, cause.rule, cause.source) == (Step.FAULT, "device.gone", "selectors[0]")
    assert cause.seen.startswith("CEL compile error: ")


def test_a_device_that_no_expression_can_look_at_says_so() -> None:
    many = {"attributes": {"list": DeviceAttribute(ints=(1,))}}
    cause = one_device(many, request(selectors=selects("1 == 2")))
    assert (cause.step, cause.source) == (Step.FAULT, "class gpu selectors[0]")
    assert cause.seen == "CEL runtime error: attribute list: unsupported attribute value"


def test_devices_that_look_alike_to_a_selector_are_grouped_most_first_and_the_rest_counted() -> None:
    models = ["m0", "m1", "m1", "m1", "m2", "m2", "m3", "m4", "m5", "m6"]
    listed = [
        replace(one, attributes={**one.attributes, "uuid": DeviceAttribute(string=one.name)})
        for one in (device(f"d{at}", model=model) for at, model in enumerate(models))
    ]
    asked = claim(request(selectors=selects(f"{MODEL} == 'H100'")))
    (found,) = why(World([slice_(listed)]).allocator(), [asked], node()).requests
    (removed,) = found.removed
    assert [(one.cause.seen, one.devices, one.example.device) for one in removed.groups] == [
        (f'{SAID} is "m1"', 3, "d1"),
        (f'{SAID} is "m2"', 2, "d4"),
        (f'{SAID} is "m0"', 1, "d0"),
        (f'{SAID} is "m3"', 1, "d6"),
        (f'{SAID} is "m4"', 1, "d7"),
    ]
    assert (removed.devices, removed.more) == (10, 2)


@pytest.mark.parametrize(
    "expression",
    [
        f"{MODEL} == 'H100'",
        f"device.capacity['{DRIVER}'].memory.isLessThan(quantity('1'))",
        "device.attributes.exists(d, d == 'x')",
    ],
)
def test_beyond_so_many_kinds_of_device_only_the_whole_selector_is_named(expression: str) -> None:
    listed = [device(f"d{at}", model=f"m{at}", memory=f"{at + 1}Gi") for at in range(DISTINCT_MAX + 44)]
    asked = claim(request(selectors=selects(expression)))
    (found,) = why(World([slice_(listed)]).allocator(), [asked], node()).requests
    (removed,) = found.removed
    whole = Cause(Step.SELECTOR, expression, "true", "", "selectors[0]")
    assert (removed.groups[0].cause, removed.groups[0].devices) == (whole, 44)
    assert (len(removed.groups), removed.more) == (5, DISTINCT_MAX - 4)


def test_long_texts_are_cut() -> None:
    asked = request(selectors=selects(f"{MODEL} == '{'x' * 400}'"))
    cause = one_device({}, asked)
    assert len(cause.rule) == 300
    assert cause.rule.endswith("…")


# --- what others have


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
