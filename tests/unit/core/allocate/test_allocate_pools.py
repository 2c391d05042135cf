"""Which devices a node sees, and in which order."""

import pytest
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.device import Device
from jackfield.model.meta import NodeSelector
from jackfield.model.names import NodeName
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    World,
    claim,
    consumes,
    counters,
    device,
    devices,
    every,
    generation,
    node,
    request,
    slice_,
    where,
)

NOT_ENOUGH = "not enough usable devices"
WAITING = {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Failed",)}
HERE = NodeName("n1")
ELSEWHERE = NodeName("n2")


def test_devices_win_by_driver_pool_slice_name_and_position() -> None:
    world = World(
        [
            slice_(devices("g", "h"), "s", "p2"),
            slice_(devices("f", "e"), "s2", "p1", of=2),
            slice_(devices("d", "c"), "s1", "p1", of=2),
            slice_(devices("a"), "s", "p3", driver="a.example.com"),
        ]
    )
    assert world.gives(claim(request(count=7, device_class_name="any"))) == [
        f"r={name}" for name in ("a", "d", "c", "f", "e", "g", "h")
    ]


def test_one_device_to_be_waited_for_puts_its_whole_pool_behind_all_others() -> None:
    world = World(
        [
            slice_([*devices("a"), *devices("b", **WAITING)], "s", "p1"),
            slice_(devices("z"), "s", "p2"),
        ]
    )
    assert world.gives(claim(request(count=3))) == ["r=z", "r=a", "r=b"]


def test_a_scheduler_that_cannot_wait_gets_no_device_to_be_waited_for() -> None:
    world = World(
        [slice_([*devices("a", **WAITING), *devices("b")])],
        features=allocate.Features(binding_conditions=False),
    )
    assert world.gives(claim(request())) == ["r=b"]


def test_only_the_newest_generation_counts() -> None:
    world = World([generation(1, slice_(devices("old"), "a")), generation(2, slice_(devices("new"), "b"))])
    assert world.gives(claim(every())) == ["r=new"]


def test_a_newer_generation_on_another_node_hides_an_unfinished_pool() -> None:
    old = slice_(devices("old"), "a", of=2, node_name=HERE)
    new = generation(2, slice_(devices("new"), "b", of=2, node_name=ELSEWHERE))
    assert World([old, new]).gives(claim(every())) == NOT_ENOUGH


def test_a_newer_generation_on_another_node_is_not_noticed_while_the_old_one_is_complete() -> None:
    old = slice_(devices("old"), "a", node_name=HERE)
    new = generation(2, slice_(devices("new"), "b", node_name=ELSEWHERE))
    assert World([old, new]).gives(claim(every())) == ["r=old"]


def test_slices_for_other_nodes_complete_a_pool() -> None:
    here = slice_(devices("a"), "a", of=2, node_name=HERE)
    there = slice_(devices("b"), "b", of=2, node_name=ELSEWHERE)
    assert World([here, there]).gives(claim(every())) == ["r=a"]


def test_an_incomplete_pool_gives_nothing() -> None:
    world = World([slice_(devices("a"), of=2), slice_(devices("b"), pool="q")])
    assert world.gives(claim(request())) == ["r=b"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ([slice_(devices("a"), of=2)], "is currently being updated"),
        ([slice_(devices("a", "a"))], "is currently invalid"),
    ],
)
def test_all_devices_of_an_unusable_pool_cannot_be_asked_for(broken: list[ResourceSlice], words: str) -> None:
    with pytest.raises(allocate.AllocationError, match=words):
        World([*broken, slice_(devices("b"), pool="q")]).gives(claim(every()))


@pytest.mark.parametrize(
    "broken",
    [
        [slice_(devices("a", "a"))],
        [slice_(devices("a"), "s1", of=2), slice_(devices("a"), "s2", of=2)],
        [slice_(devices("a", consumes_counters=consumes("1")))],
        [
            slice_(devices("a", consumes_counters=consumes("1", "other")), "s1", of=2),
            slice_(name="s2", of=2, shared_counters=counters("8")),
        ],
        [
            slice_(devices("a"), "s1", of=2),
            slice_(name="s2", of=2, shared_counters=(*counters("8"), *counters("9"))),
        ],
        [
            slice_(devices("a"), "s1", of=3, node_name=HERE),
            slice_(devices("b", consumes_counters=consumes("1", "other")), "s2", of=3, node_name=ELSEWHERE),
            slice_(name="s3", of=3, shared_counters=counters("8"), node_name=HERE),
        ],
    ],
    ids=[
        "a name twice in a slice",
        "a name twice in a pool",
        "no counters",
        "an unknown counter set",
        "a counter set twice",
        "an unknown counter set on another node",
    ],
)
def test_an_invalid_pool_gives_nothing(broken: list[ResourceSlice]) -> None:
    assert World(broken).gives(claim(request())) == "invalid resource pools were encountered"
    assert World([*broken, slice_(devices("good"), pool="q")]).gives(claim(request())) == ["r=good"]


def test_the_same_device_name_on_two_nodes_is_no_fault() -> None:
    slices = [
        slice_(devices("a"), "s1", of=2, node_name=HERE),
        slice_(devices("a"), "s2", of=2, node_name=ELSEWHERE),
    ]
    assert World(slices).gives(claim(request())) == ["r=a"]


@pytest.mark.parametrize(
    ("place", "seen"),
    [
        ({"node_name": HERE}, True),
        ({"node_name": ELSEWHERE}, False),
        ({"node_selector": where(fabric="f")}, True),
        ({"node_selector": where(fabric="g")}, False),
        ({"node_selector": NodeSelector()}, False),
        ({"all_nodes": True}, True),
        ({}, False),
    ],
    ids=str,
)
def test_a_place_means_the_same_for_a_slice_and_for_a_device(
    place: dict[str, object],
    seen: bool,  # noqa: FBT001 - a column of the table
) -> None:
    whole = slice_(devices("a"))
    by_slice = replace(whole, spec=replace(replace(whole.spec, all_nodes=False), **place))
    by_device = slice_(devices("a", **place), per_device_node_selection=True)
    expected = ["r=a"] if seen else NOT_ENOUGH

    for one in (by_slice, by_device):
        assert World([one]).gives(claim(request()), at=node("n1", fabric="f")) == expected


def test_devices_of_one_slice_can_be_for_different_nodes() -> None:
    listed: list[Device] = [
        device("open", node_selector=where(fabric="f")),
        device("pinned", node_name=ELSEWHERE),
        device("closed", node_selector=where(nowhere="yes")),
        device("free", all_nodes=True),
    ]
    world = World([slice_(listed, per_device_node_selection=True)])
    assert world.gives(claim(every()), at=node("n1", fabric="f")) == ["r=open", "r=free"]
    assert world.gives(claim(every()), at=node("n2")) == ["r=pinned", "r=free"]


def test_a_scheduler_without_partitions_passes_over_slices_that_need_them() -> None:
    off = allocate.Features(partitionable_devices=False)
    world = World([slice_(devices("a", all_nodes=True), per_device_node_selection=True)], features=off)
    assert world.gives(claim(request())) == NOT_ENOUGH


@pytest.mark.parametrize(
    "owners", [(ELSEWHERE,), (ELSEWHERE, NodeName("n3"))], ids=["of one node", "of two nodes"]
)
def test_in_1_36_unfinished_counters_of_one_node_block_all_devices_on_another(
    owners: tuple[NodeName, ...],
) -> None:
    elsewhere = [
        slice_(name=f"s{owner}", pool="q", of=9, shared_counters=counters("8"), node_name=owner)
        for owner in owners
    ]
    world = World([slice_(devices("a")), *elsewhere])
    with pytest.raises(allocate.AllocationError, match="q is currently being updated"):
        world.gives(claim(every()))
    assert world.gives(claim(request())) == ["r=a"]

    newer = World(world.slices, features=allocate.Features(profile=allocate.Profile.V1_37))
    assert newer.gives(claim(every())) == ["r=a"]


def test_an_unreadable_node_selector_ends_the_cycle() -> None:
    selector = where(fabric="f")
    term = selector.node_selector_terms[0]
    bad = replace(term, match_expressions=(replace(term.match_expressions[0], operator="Near"),))
    world = World([slice_(devices("a"), node_selector=NodeSelector((bad,)))])
    with pytest.raises(allocate.AllocationError, match="Near"):
        world.gives(claim(request()))


def test_a_derived_allocator_sees_what_changed_and_nothing_else() -> None:
    first, second = slice_(devices("a"), "s1", "p1"), slice_(devices("b"), "s2", "p2")
    before = World([first, second]).allocator()
    claims = (claim(every()),)

    def given(allocator: allocate.Allocator) -> list[str]:
        found = allocator.allocate(claims, node())
        assert not isinstance(found, allocate.NoFit)
        return [one.device for one in found[0].devices.results]

    assert given(before) == ["a", "b"]
    after = before.derive(slices=[first, slice_(devices("c", "d"), "s2", "p2")])
    assert given(after) == ["a", "c", "d"]
    assert given(after.derive(slices=[second])) == ["b"]
    assert given(before) == ["a", "b"]


def test_a_line_of_allocators_keeps_nothing_of_slices_that_are_gone() -> None:
    allocator = World([]).allocator()
    for _ in range(5):
        allocator = allocator.derive(slices=[slice_(devices("a"))])
        allocator.allocate([claim(request())], node())
    assert len(allocator.pools.pools) == 1


def test_a_derived_allocator_notices_a_generation_that_came_elsewhere() -> None:
    here = slice_(devices("a"), "s1", of=2, node_name=HERE)
    there = slice_(devices("b"), "s2", of=2, node_name=ELSEWHERE)
    before = World([here, there]).allocator()
    assert not isinstance(before.allocate([claim(request())], node()), allocate.NoFit)

    after = before.derive(slices=[here, generation(2, there)])
    assert isinstance(after.allocate([claim(request())], node()), allocate.NoFit)


def test_a_node_is_looked_at_again_when_its_labels_change() -> None:
    allocator = World([slice_(devices("a"), node_selector=where(room="yes"))]).allocator()
    assert isinstance(allocator.allocate([claim(request())], node(room="no")), allocate.NoFit)
    assert not isinstance(allocator.allocate([claim(request())], node(room="yes")), allocate.NoFit)
