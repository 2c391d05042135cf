"""What a driver has, and the slices there are: what is written then, and what is not."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield.core import offer
from jackfield.core.offer import Change, Create, Delete, Echo, Pool, Publisher, Step
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from jackfield.model.meta import ObjectMeta, OwnerReference
from jackfield.model.names import NodeName, Time, Uid, Version
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec

DRIVER = "dra.example"
NODE = NodeName("n1")
US = Publisher(DRIVER, NODE, Uid("node-uid"))
SICK = DeviceTaint("dra.example/unhealthy", effect="NoSchedule")
OFTEN = 16
"""Rounds until a plan must have come to rest."""


def devices(*numbers: int) -> tuple[Device, ...]:
    return tuple(Device(f"d{number}") for number in numbers)


def many(count: int, first: int = 0) -> tuple[Device, ...]:
    return devices(*range(first, first + count))


def counter_sets(count: int, amount: str = "7") -> tuple[CounterSet, ...]:
    return tuple(CounterSet(f"s{number}", {"slices": Counter(amount)}) for number in range(count))


def carried_out(slices: Iterable[ResourceSlice], planned: Iterable[Step]) -> list[ResourceSlice]:
    """Return the slices after these steps."""
    there = {one.metadata.name: one for one in slices}
    for step in planned:
        match step:
            case Create(slice=new):
                assert new.metadata.name not in there
                there[new.metadata.name] = new
            case Change(slice=new):
                assert new.metadata.name in there
                there[new.metadata.name] = new
            case Delete(slice=old):
                del there[old.metadata.name]
    return list(there.values())


def published(*pools: Pool) -> list[ResourceSlice]:
    return carried_out([], offer.steps(US, pools, []))


def shown(slices: Iterable[ResourceSlice]) -> list[tuple[int, int, list[str]]]:
    """Return generation, count and names of each slice."""
    return [
        (
            one.spec.pool.generation,
            one.spec.pool.resource_slice_count,
            [each.name for each in one.spec.devices] + [each.name for each in one.spec.shared_counters],
        )
        for one in slices
    ]


def verbs(planned: Iterable[Step]) -> list[str]:
    return [type(one).__name__ for one in planned]


# --- first publication


def test_a_small_pool_is_one_slice_of_the_node_and_goes_with_it() -> None:
    (step,) = offer.steps(US, [Pool(devices(1, 2))], [])
    assert isinstance(step, Create)
    assert step.slice.metadata.name.startswith("n1-dra.example-")
    assert step.slice.metadata.owner_references == (
        OwnerReference("v1", "Node", "n1", Uid("node-uid"), controller=True),
    )
    assert step.slice.spec == ResourceSliceSpec(
        DRIVER, ResourcePool("n1", 1, 1), node_name=NODE, devices=devices(1, 2)
    )


def test_a_pool_that_is_named_keeps_its_name() -> None:
    (one,) = published(Pool(devices(1), name="shelf"))
    assert one.spec.pool.name == "shelf"


def test_a_node_nobody_knows_owns_nothing() -> None:
    (step,) = offer.steps(replace(US, node_uid=Uid("")), [Pool(devices(1))], [])
    assert step.slice.metadata.owner_references == ()
    assert offer.steps(replace(US, node_uid=Uid("")), [Pool(devices(1))], [step.slice]) == ()


def test_an_empty_pool_has_one_slice_so_that_it_is_seen() -> None:
    assert shown(published(Pool())) == [(1, 1, [])]


@pytest.mark.parametrize(("count", "sizes"), [(64, [64]), (65, [64, 1]), (128, [64, 64]), (130, [64, 64, 2])])
def test_no_slice_has_more_devices_than_one_with_taints_may_have(count: int, sizes: list[int]) -> None:
    slices = published(Pool(many(count)))
    assert [len(one.spec.devices) for one in slices] == sizes
    assert {one.spec.pool for one in slices} == {ResourcePool("n1", 1, len(sizes))}


def test_counters_have_slices_of_their_own() -> None:
    slices = published(Pool(devices(1), counter_sets(9)))
    assert [(len(one.spec.devices), len(one.spec.shared_counters)) for one in slices] == [
        (1, 0),
        (0, 8),
        (0, 1),
    ]


def test_names_differ_between_nodes_drivers_and_pools_and_fit() -> None:
    publishers = [
        Publisher(driver, NodeName(node))
        for driver in (DRIVER, "DRA.other")
        for node in ("n1", "n" * 253, "n" * 252 + "m", f"{'n' * 238}.x")
    ]
    names = [
        step.slice.metadata.name
        for one in publishers
        for step in offer.steps(one, [Pool(many(65)), Pool(name="b")], [])
    ]
    assert len(set(names)) == len(names) == 3 * len(publishers)
    assert all(len(name) <= 253 and name == name.lower() and ".-" not in name for name in names)


# --- what changes nothing is not written


def test_what_is_published_is_not_written_again() -> None:
    pools = [Pool(many(130), counter_sets(3)), Pool(devices(1), name="b")]
    assert offer.steps(US, pools, published(*pools)) == ()


def test_another_spelling_of_an_amount_is_no_change() -> None:
    shared = CapacityRequestPolicy("1024Mi", ("1024Mi", "2048Mi"))
    ranged = CapacityRequestPolicy(
        "1024Mi", valid_range=CapacityRequestPolicyRange("1024Mi", "4096Mi", "1024Mi")
    )
    open_ended = CapacityRequestPolicy(valid_range=CapacityRequestPolicyRange("1024Mi"))
    device = Device(
        "d1",
        capacity={
            "a": DeviceCapacity("4096Mi"),
            "b": DeviceCapacity("4096Mi", shared),
            "c": DeviceCapacity("4096Mi", ranged),
            "d": DeviceCapacity("4096Mi", open_ended),
        },
        consumes_counters=(DeviceCounterConsumption("s0", {"slices": Counter("1000m")}),),
    )
    pool = Pool((device,), counter_sets(1, "7000m"))
    slices = published(pool)
    (stored,) = slices[0].spec.devices
    assert {one.value for one in stored.capacity.values()} == {"4Gi"}
    assert stored.capacity["b"].request_policy == CapacityRequestPolicy("1Gi", ("1Gi", "2Gi"))
    assert stored.capacity["c"].request_policy == CapacityRequestPolicy(
        "1Gi", valid_range=CapacityRequestPolicyRange("1Gi", "4Gi", "1Gi")
    )
    assert offer.steps(US, [pool], slices) == ()
    as_written = replace(slices[0], spec=replace(slices[0].spec, devices=(device,)))
    assert offer.steps(US, [pool], [as_written, *slices[1:]]) == ()


def test_an_amount_that_is_none_is_left_to_the_server_to_refuse() -> None:
    (one,) = published(Pool((Device("d1", capacity={"a": DeviceCapacity("lots")}),)))
    assert one.spec.devices[0].capacity["a"].value == "lots"


def test_the_time_that_the_server_gave_a_taint_is_kept() -> None:
    at = Time("2026-01-01T00:00:00Z")
    pool = Pool((Device("d1", taints=(SICK,)), Device("d2")))
    (written,) = published(pool)
    stored = replace(
        written,
        spec=replace(
            written.spec, devices=(Device("d1", taints=(replace(SICK, time_added=at),)), Device("d2"))
        ),
    )
    assert offer.steps(US, [pool], [stored]) == ()
    other = replace(SICK, value="worse")
    known = replace(SICK, key="dra.example/known", time_added=Time("2025-01-01T00:00:00Z"))
    more = Pool((Device("d1", taints=(SICK, known)), Device("d2", taints=(other,))))
    (step,) = offer.steps(US, [more], [stored])
    assert isinstance(step, Change)
    assert step.slice.spec.devices == (
        Device("d1", taints=(replace(SICK, time_added=at), known)),
        Device("d2", taints=(other,)),
    )


def test_what_the_server_is_known_to_drop_is_not_written_for_ever() -> None:
    at = Time("2026-01-01T00:00:00Z")
    shared = Device("d1", taints=(SICK,), allow_multiple_allocations=True)
    pool = Pool((shared, Device("d2")))
    (written,) = published(pool)
    kept = (Device("d1", taints=(replace(SICK, time_added=at),)), Device("d2"))
    stored = replace(written, spec=replace(written.spec, devices=kept))
    echoes = {written.metadata.name: Echo(written.spec, stored.spec)}
    assert verbs(offer.steps(US, [pool], [stored])) == ["Change"]
    assert offer.steps(US, [pool], [stored], echoes) == ()
    more = Pool((*pool.devices, Device("d3")))
    (step,) = offer.steps(US, [more], [stored], echoes)
    assert step.slice.spec.devices[0].taints[0].time_added == at
    meddled = replace(stored, spec=replace(stored.spec, devices=(Device("d1"),)))
    assert verbs(offer.steps(US, [pool], [meddled], echoes)) == ["Change"]


def test_what_was_dropped_is_told_with_the_gate_it_needs() -> None:
    policy = DeviceCapacity("1", CapacityRequestPolicy("1"))
    full = [
        Device(
            f"d{number}",
            taints=(SICK,),
            consumes_counters=(DeviceCounterConsumption("s0"),),
            allow_multiple_allocations=True,
            binding_conditions=("Ready",),
            capacity={"a": policy, "b": DeviceCapacity("1")},
        )
        for number in range(5)
    ]
    spec = ResourceSliceSpec(DRIVER, ResourcePool("n1"), devices=tuple(full), shared_counters=counter_sets(1))
    bare = replace(
        spec,
        devices=tuple(Device(one.name, capacity={"a": DeviceCapacity("1")}) for one in full),
        shared_counters=(),
    )
    several = "of d0, d1, d2 and 2 more: feature gate"
    assert offer.dropped(Echo(spec, bare)) == (
        f"taints {several} DRADeviceTaints is off",
        f"consumesCounters {several} DRAPartitionableDevices is off",
        f"allowMultipleAllocations {several} DRAConsumableCapacity is off",
        f"bindingConditions {several} DRADeviceBindingConditions is off",
        f"requestPolicy {several} DRAConsumableCapacity is off",
        "sharedCounters: feature gate DRAPartitionableDevices is off",
    )
    assert offer.dropped(Echo(spec, spec)) == ()


# --- what changes costs as little as it can


def test_a_change_of_a_device_is_one_write_and_no_new_generation() -> None:
    slices = published(Pool(many(130)))
    changed = (*many(100), Device("d100", taints=(SICK,)), *many(29, 101))
    (step,) = offer.steps(US, [Pool(changed)], slices)
    assert isinstance(step, Change)
    assert step.slice.metadata.name == slices[1].metadata.name
    assert step.slice.spec.pool == ResourcePool("n1", 1, 3)


def test_a_device_that_comes_takes_the_place_of_one_that_went() -> None:
    slices = published(Pool(many(128)))
    (step,) = offer.steps(US, [Pool((*many(10), *many(117, 11), Device("new")))], slices)
    assert isinstance(step, Change)
    assert [one.name for one in step.slice.spec.devices][-1] == "new"
    assert step.slice.spec.pool.generation == 1


def test_entries_stay_where_they_are_whatever_the_order_they_are_told_in() -> None:
    slices = published(Pool(many(130)))
    assert offer.steps(US, [Pool(tuple(reversed(many(130))))], slices) == ()


def test_one_more_slice_is_a_new_generation_for_all() -> None:
    slices = published(Pool(many(64)))
    planned = offer.steps(US, [Pool(many(65))], slices)
    assert verbs(planned) == ["Change", "Create"]
    assert shown(step.slice for step in planned) == [
        (2, 2, [f"d{number}" for number in range(64)]),
        (2, 2, ["d64"]),
    ]


def test_a_slice_that_is_empty_goes_last_and_the_rest_is_a_new_generation() -> None:
    slices = published(Pool(many(65)))
    planned = offer.steps(US, [Pool(many(64))], slices)
    assert verbs(planned) == ["Change", "Delete"]
    assert shown(carried_out(slices, planned)) == [(2, 1, [f"d{number}" for number in range(64)])]


def test_a_pool_that_loses_its_devices_keeps_a_slice_and_its_generation() -> None:
    slices = published(Pool(devices(1)))
    planned = offer.steps(US, [Pool()], slices)
    assert verbs(planned) == ["Change"]
    assert shown(carried_out(slices, planned)) == [(1, 1, [])]


def test_devices_and_their_counters_change_together() -> None:
    slices = published(Pool(devices(1), counter_sets(1)))
    assert shown(carried_out(slices, offer.steps(US, [Pool(devices(1, 2), counter_sets(2))], slices))) == [
        (2, 2, ["d1", "d2"]),
        (2, 2, ["s0", "s1"]),
    ]
    for alone in (Pool(devices(1, 2), counter_sets(1)), Pool(devices(1), counter_sets(1, "8"))):
        (step,) = offer.steps(US, [alone], slices)
        assert step.slice.spec.pool.generation == 1


def test_pools_that_are_no_more_are_deleted_after_all_else() -> None:
    slices = published(Pool(devices(1), name="a"), Pool(devices(2), name="z"))
    planned = offer.steps(US, [Pool(many(65), name="z")], slices)
    assert verbs(planned) == ["Change", "Create", "Delete"]
    assert planned[2].slice.spec.pool.name == "a"


# --- what others, or an end in between, left behind


def test_a_slice_that_somebody_deleted_comes_back_in_a_new_generation() -> None:
    slices = published(Pool(many(65)))
    planned = offer.steps(US, [Pool(many(65))], slices[1:])
    assert verbs(planned) == ["Change", "Create"]
    assert {one.spec.pool for one in carried_out(slices[1:], planned)} == {ResourcePool("n1", 2, 2)}


def test_a_new_generation_that_was_cut_short_is_gone_on_with() -> None:
    slices = published(Pool(many(64)))
    half = carried_out(slices, offer.steps(US, [Pool(many(129))], slices)[:2])
    assert [one.spec.pool for one in half] == [ResourcePool("n1", 2, 3)] * 2
    planned = offer.steps(US, [Pool(many(129))], half)
    assert verbs(planned) == ["Change", "Change", "Create"]  # a third slice is one more again
    older = [replace(half[0], spec=slices[0].spec), half[1]]
    pool = Pool(many(128))
    (step,) = offer.steps(US, [pool], [replace(one, spec=_counting(one, 2)) for one in older])
    assert isinstance(step, Change)
    assert step.slice.spec.pool == ResourcePool("n1", 2, 2)


def _counting(one: ResourceSlice, count: int) -> ResourceSliceSpec:
    return replace(one.spec, pool=replace(one.spec.pool, resource_slice_count=count))


def test_a_slice_of_another_owner_gets_the_right_one() -> None:
    slices = published(Pool(devices(1)))
    reborn = replace(US, node_uid=Uid("another"))
    (step,) = offer.steps(reborn, [Pool(devices(1))], slices)
    assert isinstance(step, Change)
    assert step.slice.metadata.owner_references[0].uid == "another"


def _foreign(name: str, generation: int, *names: str, version: str = "5") -> ResourceSlice:
    return ResourceSlice(
        metadata=ObjectMeta(name=name, resource_version=Version(version)),
        spec=ResourceSliceSpec(
            DRIVER,
            ResourcePool("n1", generation, 1),
            node_name=NODE,
            devices=tuple(Device(one) for one in names),
        ),
    )


def test_slices_of_another_program_are_taken_over_with_their_names() -> None:
    (step,) = offer.steps(US, [Pool(devices(1, 2))], [_foreign("n1-dra.example-x7kq2", 4, "d1")])
    assert isinstance(step, Change)
    assert step.slice.metadata.name == "n1-dra.example-x7kq2"
    assert step.slice.metadata.resource_version == "5"
    assert shown([step.slice]) == [(4, 1, ["d1", "d2"])]


def test_a_slice_that_is_too_full_is_divided_in_a_new_generation() -> None:
    full = _foreign("a", 4, *(one.name for one in many(128)))
    planned = offer.steps(US, [Pool(many(128))], [full])
    assert verbs(planned) == ["Change", "Create"]
    assert [(one, two, len(names)) for one, two, names in shown(step.slice for step in planned)] == [
        (5, 2, 64),
        (5, 2, 64),
    ]


def test_a_device_that_would_change_places_is_a_new_generation() -> None:
    first, second = _foreign("a", 4, *(one.name for one in many(65))), _foreign("b", 4, "x")
    pool = replace(first.spec.pool, resource_slice_count=2)
    slices = [replace(one, spec=replace(one.spec, pool=pool)) for one in (first, second)]
    planned = offer.steps(US, [Pool((*many(65), Device("x")))], slices)
    assert [one.slice.spec.pool.generation for one in planned] == [5, 5]


def test_a_device_that_is_listed_twice_is_listed_once() -> None:
    pool = ResourcePool("n1", 4, 2)
    slices = [
        replace(one, spec=replace(one.spec, pool=pool))
        for one in (_foreign("a", 4, "d1", "d1"), _foreign("b", 4, "d1", "d2"))
    ]
    after = carried_out(slices, offer.steps(US, [Pool(devices(1, 2))], slices))
    assert shown(after) == [(4, 2, ["d1"]), (4, 2, ["d2"])]


def test_a_slice_from_before_1_35_gives_its_counters_a_slice_of_their_own() -> None:
    (both,) = published(Pool(devices(1)))
    both = replace(both, spec=replace(both.spec, shared_counters=counter_sets(1)))
    after = carried_out([both], offer.steps(US, [Pool(devices(1), counter_sets(1))], [both]))
    assert shown(after) == [(2, 2, ["d1"]), (2, 2, ["s0"])]


# --- whatever happens


@st.composite
def _pools(draw: st.DrawFn) -> Pool:
    """Some devices, a few of them tainted; enough for several slices."""
    numbers = draw(st.sets(st.integers(0, 199), max_size=150))
    tainted = draw(st.sets(st.integers(0, 199), max_size=3))
    sets = draw(st.integers(0, 10))
    listed = tuple(Device(f"d{one}", taints=(SICK,) if one in tainted else ()) for one in sorted(numbers))
    return Pool(listed, counter_sets(sets))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(_pools(), st.integers(0, 6)), min_size=1, max_size=4))
def test_whoever_is_cut_short_anywhere_arrives_and_then_writes_nothing(
    history: list[tuple[Pool, int]],
) -> None:
    slices: list[ResourceSlice] = []
    for pool, done in history:
        slices = carried_out(slices, offer.steps(US, [pool], slices)[:done])
    pool = history[-1][0]
    for _ in range(OFTEN):
        planned = offer.steps(US, [pool], slices)
        slices = carried_out(slices, planned)
        if not planned:
            break
    assert offer.steps(US, [pool], slices) == ()
    names = [one.name for each in slices for one in each.spec.devices]
    assert sorted(names) == sorted(one.name for one in pool.devices)
    assert {one.spec.pool for one in slices} == {
        replace(slices[0].spec.pool, resource_slice_count=len(slices))
    }
    assert all(len(one.spec.devices) <= 64 and len(one.spec.shared_counters) <= 8 for one in slices)
