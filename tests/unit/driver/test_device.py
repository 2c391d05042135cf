"""Plain values become devices, and what the API server would refuse is refused before, in words."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from jackfield import codec, driver
from jackfield.cluster.errors import ApiError
from jackfield.cluster.store import Store
from jackfield.core.offer import Pool, Publisher, steps
from jackfield.driver import faults
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
    DeviceTaint,
)
from jackfield.model.meta import NodeSelector
from jackfield.model.names import NodeName, Seconds
from jackfield.model.slice import ResourceSlice


def is_taken(pool: Pool) -> bool:
    """Whether the embedded API server takes all slices of a pool."""
    store = Store(lambda: Seconds(1.7e9), random.Random("slices"))  # noqa: S311 - no cryptography
    try:
        for step in steps(Publisher("gpu.example.com", NodeName("n1")), [pool], []):
            store.create(ResourceSlice, codec.encode(step.slice))
    except ApiError:
        return False
    return True


def test_plain_values_become_what_the_api_spells() -> None:
    made = driver.device(
        "gpu-0",
        attributes={
            "model": "A100",
            "index": 3,
            "ecc": True,
            "driver": driver.Version("550.1.0"),
            "example.com/roots": ["pci0000:00", "pci0000:80"],
            "numbers": (1, 2),
            "flags": [True, False],
            "versions": [driver.Version("1.0.0")],
        },
        capacity={"memory": "40Gi", "cores": 108},
        taints=[driver.taint("example.com/old", "yes", effect="None")],
        consumes={"board": {"slots": 1}},
    )
    assert made == Device(
        "gpu-0",
        attributes={
            "model": DeviceAttribute(string="A100"),
            "index": DeviceAttribute(int_=3),
            "ecc": DeviceAttribute(bool_=True),
            "driver": DeviceAttribute(version="550.1.0"),
            "example.com/roots": DeviceAttribute(strings=("pci0000:00", "pci0000:80")),
            "numbers": DeviceAttribute(ints=(1, 2)),
            "flags": DeviceAttribute(bools=(True, False)),
            "versions": DeviceAttribute(versions=("1.0.0",)),
        },
        capacity={"memory": DeviceCapacity("40Gi"), "cores": DeviceCapacity("108")},
        taints=(DeviceTaint("example.com/old", "yes", "None"),),
        consumes_counters=(DeviceCounterConsumption("board", {"slots": Counter("1")}),),
    )
    assert is_taken(Pool((made,), (driver.counters("board", {"slots": 2}),)))


def test_a_share_of_a_capacity_is_said_in_one_word_each() -> None:
    made = driver.device(
        "nic-0",
        shared=True,
        capacity={
            "bandwidth": driver.Capacity("10G", default="1G", minimum="1G", maximum="10G", step="1G"),
            "queues": driver.Capacity(8, default=2, choices=(1, 2, 4)),
            "whole": driver.Capacity(8),
            "open": driver.Capacity(8, default=1, minimum=1),
        },
    )
    assert made.allow_multiple_allocations
    assert made.capacity == {
        "bandwidth": DeviceCapacity(
            "10G",
            CapacityRequestPolicy("1G", valid_range=CapacityRequestPolicyRange("1G", "10G", "1G")),
        ),
        "queues": DeviceCapacity("8", CapacityRequestPolicy("2", ("1", "2", "4"))),
        "whole": DeviceCapacity("8"),
        "open": DeviceCapacity("8", CapacityRequestPolicy("1", valid_range=CapacityRequestPolicyRange("1"))),
    }
    assert is_taken(Pool((made,)))


WRONG_VALUES = {
    "attribute 'a' takes text, a whole number, a yes or no, or a Version, no float": {
        "attributes": {"a": 1.5}
    },
    "attribute 'a' takes a list of one sort": {"attributes": {"a": [1, "b"]}},
    "at least one": {"attributes": {"a": []}},
    "capacity 'a' takes a whole number or a text such as '40Gi' or '500m', no float": {
        "capacity": {"a": 0.5}
    },
    "no bool": {"capacity": {"a": driver.Capacity(1, default=True)}},
    "counter 'a' takes a whole number": {"consumes": {"board": {"a": None}}},
    "'lots' is no quantity such as 40Gi": {"capacity": {"a": "lots"}},
}


@pytest.mark.parametrize("words", WRONG_VALUES)
def test_values_that_are_none_are_refused_in_words(words: str) -> None:
    with pytest.raises(driver.BadDevice) as caught:
        driver.device("gpu-0", **WRONG_VALUES[words])  # type: ignore[arg-type]  # that is the mistake
    assert words in str(caught.value)
    assert all(one.startswith("device 'gpu-0': ") for one in caught.value.faults)


NO_LABEL = "takes small letters, digits and hyphens, at most 63, no hyphen first or last"


def test_all_that_is_wrong_is_told_at_once_with_a_name_that_would_do() -> None:
    with pytest.raises(driver.BadDevice) as caught:
        driver.device("GPU_0 (A100)", attributes={"memory size": 1, "ok": 2})
    assert [one.partition(": ")[2] for one in caught.value.faults] == [
        f"its name {NO_LABEL}; 'gpu-0-a100' would do",
        "attribute 'memory size': 'memory size' takes letters, digits and '_', no digit first, at most 32",
    ]


def test_counters_that_are_none_are_refused() -> None:
    with pytest.raises(driver.BadDevice, match="the set of counters 'board': counter 'a' takes"):
        driver.counters("board", {"a": 1.5})  # type: ignore[dict-item]  # that is the mistake


# --- what the API server would refuse

LONG = "x" * 64
PART = DeviceCounterConsumption("board", {"slots": Counter("1")})
BOARD = CounterSet("board", {"slots": Counter("2")})


def shared(policy: CapacityRequestPolicy, value: str = "10") -> Device:
    return Device("d", allow_multiple_allocations=True, capacity={"a": DeviceCapacity(value, policy)})


def between(default: str | None, low: str, high: str | None = None, step: str | None = None) -> Device:
    return shared(CapacityRequestPolicy(default, valid_range=CapacityRequestPolicyRange(low, high, step)))


UNSOUND: dict[str, Pool] = {
    "its name takes small letters": Pool((Device("-d"),)),
    "'device-0' would do": Pool((Device("_"),)),
    "two devices are called 'd'": Pool((Device("d"), Device("d"))),
    "two sets of counters are called 'board'": Pool((), (BOARD, BOARD)),
    "the set of counters 'Board': its name": Pool((), (CounterSet("Board", BOARD.counters),)),
    "has 0 counters": Pool((), (CounterSet("board"),)),
    "has 33 counters": Pool((), (CounterSet("board", {f"c{one}": Counter("1") for one in range(33)}),)),
    "the counter 'a_b' takes": Pool((), (CounterSet("board", {"a_b": Counter("1")}),)),
    "'x' is no quantity": Pool((), (CounterSet("board", {"a": Counter("x")}),)),
    "it says on which nodes": Pool((Device("d", all_nodes=True),)),
    "it has 33 attributes and capacities": Pool(
        (Device("d", attributes={f"a{one}": DeviceAttribute(int_=1) for one in range(33)}),)
    ),
    "have 49 values": Pool((Device("d", attributes={"a": DeviceAttribute(ints=(1,) * 49)}),)),
    "before the slash stands a domain": Pool((Device("d", attributes={"a_b/c": DeviceAttribute(int_=1)}),)),
    "no digit first": Pool((Device("d", capacity={"1a": DeviceCapacity("1")}),)),
    "it has no value": Pool((Device("d", attributes={"a": DeviceAttribute(ints=())}),)),
    "more than 64 bytes": Pool((Device("d", attributes={"a": DeviceAttribute(string="é" * 33)}),)),
    "is no version": Pool((Device("d", attributes={"a": DeviceAttribute(version="1.2")}),)),
    "is no version; it takes": Pool((Device("d", attributes={"a": DeviceAttribute(versions=("01.2.3",))}),)),
    "consumes from 3 sets": Pool(
        (Device("d", consumes_counters=tuple(replace(PART, counter_set=f"s{one}") for one in range(3))),),
        tuple(replace(BOARD, name=f"s{one}") for one in range(3)),
    ),
    "names the set of counters 'board' twice": Pool((Device("d", consumes_counters=(PART, PART)),), (BOARD,)),
    "what it consumes of 'board' has 0 counters": Pool(
        (Device("d", consumes_counters=(DeviceCounterConsumption("board"),)),), (BOARD,)
    ),
    "it has 17 taints": Pool((Device("d", taints=(DeviceTaint("a", effect="None"),) * 17),)),
    "its key takes a name": Pool((Device("d", taints=(DeviceTaint("a/", effect="None"),)),)),
    "its value 'a b' takes": Pool((Device("d", taints=(DeviceTaint("a", "a b", "None"),)),)),
    "its effect is 'Maybe'": Pool((Device("d", taints=(DeviceTaint("a", effect="Maybe"),)),)),
    "it takes both or neither": Pool((Device("d", binding_conditions=("Ready",)),)),
    "5 binding conditions of one sort": Pool(
        (
            Device(
                "d",
                binding_conditions=tuple(f"R{one}" for one in range(5)),
                binding_failure_conditions=("Failed",),
            ),
        )
    ),
    "'Ready' stands there twice": Pool(
        (Device("d", binding_conditions=("Ready",), binding_failure_conditions=("Ready",)),)
    ),
    "'Not ready' takes a name": Pool(
        (Device("d", binding_conditions=("Not ready",), binding_failure_conditions=("Failed",)),)
    ),
    "only if the device is shared": Pool(
        (Device("d", capacity={"a": DeviceCapacity("1", CapacityRequestPolicy("1"))}),)
    ),
    "it takes one of them": Pool(
        (shared(CapacityRequestPolicy("1", ("1",), CapacityRequestPolicyRange("1"))),)
    ),
    "it has 11 valid amounts": Pool(
        (shared(CapacityRequestPolicy("1", tuple(str(one) for one in range(1, 12))), "20"),)
    ),
    "valid amounts stand in no rising order": Pool((shared(CapacityRequestPolicy("1", ("2", "1"))),)),
    "a valid amount is more than there is, 10": Pool((shared(CapacityRequestPolicy("1", ("1", "11"))),)),
    "its default is none of the valid amounts": Pool((shared(CapacityRequestPolicy("2", ("1",))),)),
    "a range takes a minimum and a default": Pool((between(None, "1"),)),
    "default 11": Pool((between("11", "1", "10"),)),
    "stand in no rising order": Pool((between("1", "2"),)),
    "maximum 11": Pool((between("1", "1", "11"),)),
    "the step 0 is not above zero": Pool((between("1", "1", None, "0"),)),
    "leads from 1 beyond all there is": Pool((between("1", "1", None, "10"),)),
    "no whole number of steps of 2 away": Pool((between("2", "1", "9", "2"),)),
    "'y' is no quantity": Pool((between("1", "y"),)),
}


@pytest.mark.parametrize("words", UNSOUND)
def test_what_the_api_server_would_refuse_is_told_before(words: str) -> None:
    pool = UNSOUND[words]
    assert words in "\n".join(faults.of_pool(pool))
    if "called" not in words:  # one slice is made of two devices of one name, which only we can see
        assert not is_taken(pool)


WORSE: dict[str, Pool] = {
    "it consumes 'fans' of 'board', and the pool has no such counter": Pool(
        (Device("d", consumes_counters=(replace(PART, counters={"fans": Counter("1")}),)),), (BOARD,)
    ),
    "it consumes 'slots' of 'board', and": Pool((Device("d", consumes_counters=(PART,)),)),
    "does not fit into 64 bits": Pool((Device("d", attributes={"a": DeviceAttribute(int_=2**63)}),)),
    "the pool's name 'A b' takes": Pool(name="A b"),
    "x…'": Pool((Device("d", attributes={f"{LONG}y/a": DeviceAttribute(int_=1)}),)),
}
"""What no server tells as well, or at all."""


@pytest.mark.parametrize("words", WORSE)
def test_what_the_api_server_would_take_to_no_good_is_told_too(words: str) -> None:
    assert words in "\n".join(faults.of_pool(WORSE[words]))


@pytest.mark.parametrize("name", ["", "Gpu.example.com", "gpu_1", "x" * 64, "-a", "a..b", "a/b", "a b"])
def test_a_driver_needs_a_name_that_is_a_domain(name: str) -> None:
    assert faults.of_driver(name)
    assert not faults.of_driver("gpu.example.com")


_TEXTS = st.text(alphabet="aZ0-_./ é", max_size=6) | st.sampled_from(["1.2.3", "1.0.0-rc.1+x", "a" * 65])
_AMOUNTS = st.sampled_from(["1", "2", "4", "10", "1Gi", "500m", "x", "-1", "1e3"])
_ATTRIBUTES = st.one_of(
    st.builds(DeviceAttribute, string=_TEXTS),
    st.builds(DeviceAttribute, version=_TEXTS),
    st.builds(DeviceAttribute, int_=st.integers(-5, 5)),
    st.builds(DeviceAttribute, strings=st.lists(_TEXTS, max_size=2).map(tuple)),
)
_POLICIES = st.builds(
    CapacityRequestPolicy,
    st.none() | _AMOUNTS,
    st.lists(_AMOUNTS, max_size=3).map(tuple),
    st.none() | st.builds(CapacityRequestPolicyRange, _AMOUNTS, st.none() | _AMOUNTS, st.none() | _AMOUNTS),
)
_DEVICES = st.builds(
    Device,
    name=_TEXTS,
    attributes=st.dictionaries(_TEXTS, _ATTRIBUTES, max_size=2),
    capacity=st.dictionaries(_TEXTS, st.builds(DeviceCapacity, _AMOUNTS, st.none() | _POLICIES), max_size=1),
    taints=st.lists(
        st.builds(DeviceTaint, _TEXTS, _TEXTS, st.sampled_from(["None", "NoSchedule", "x"])), max_size=1
    ).map(tuple),
    allow_multiple_allocations=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(_DEVICES)
def test_the_api_server_takes_exactly_what_has_no_fault(device: Device) -> None:
    assert is_taken(Pool((device,))) == (not faults.of_device(device)), faults.of_device(device)


def test_nodes_are_not_a_devices_to_choose() -> None:
    assert faults.of_device(Device("d", node_name=NodeName("n")))
    assert faults.of_device(Device("d", node_selector=NodeSelector()))
