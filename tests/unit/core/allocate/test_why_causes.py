"""What keeps a device from a request: the rule, what would satisfy it, and what was found instead."""

from collections.abc import Mapping, Sequence

import pytest
from msgspec.structs import replace

from jackfield.core.allocate import Cause, Features, Step, holders, why
from jackfield.core.allocate.causes import DISTINCT_MAX
from jackfield.model.claim import (
    DeviceRequest,
    ResourceClaim,
)
from jackfield.model.device import (
    Counter,
    CounterSet,
    DeviceAttribute,
)
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    DRIVER,
    World,
    claim,
    consumes,
    counters,
    device,
    devices,
    generation,
    holding,
    node,
    request,
    selects,
    slice_,
    where,
)

MODEL = f"device.attributes['{DRIVER}'].model"
SAID = f'device.attributes["{DRIVER}"].model'
OFF = Features(binding_conditions=False, partitionable_devices=False)


def terms(
    *requirements: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm(requirements, fields),))


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
        ([slice_(devices("b", "a", "a"))], "currently invalid: device a is listed twice"),
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
    assert found.nearest[0].device.pool == "p"


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


def test_an_older_generation_that_nobody_sees_does_not_count() -> None:
    old = slice_(devices("a"), "old", node_name=NodeName("n2"))
    new = generation(2, slice_(devices("b"), "new", node_name=NodeName("n1")))
    (found,) = why(World([old, new], [holding("b")]).allocator(), [claim(request())], node()).requests
    assert found.devices == 1


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
