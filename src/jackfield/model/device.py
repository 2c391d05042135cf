"""Devices as a ResourceSlice lists them.

Knows DRA's v1 fields. Must not know where devices come from.
"""

from collections.abc import Mapping

import msgspec

from jackfield.model.meta import NodeSelector, Wire
from jackfield.model.names import NO_TIME, NodeName, Time


class DeviceAttribute(Wire, frozen=True, gc=False):
    """Exactly one of these is set."""

    int_: int | None = msgspec.field(default=None, name="int")
    bool_: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Wire, frozen=True, gc=False):
    """A range of amounts that may be asked for."""

    min: str = ""
    max: str | None = None
    step: str | None = None


class CapacityRequestPolicy(Wire, frozen=True, gc=False):
    """How much of a capacity one claim may ask for."""

    default: str | None = None
    valid_values: tuple[str, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Wire, frozen=True, gc=False):
    """A quantity the device has."""

    value: str
    request_policy: CapacityRequestPolicy | None = None


class Counter(Wire, frozen=True, gc=False):
    """A quantity in a counter set."""

    value: str


class CounterSet(Wire, frozen=True, gc=False):
    """Counters that the partitions of one device share."""

    name: str
    counters: Mapping[str, Counter] = {}


class DeviceCounterConsumption(Wire, frozen=True, gc=False):
    """What a device takes out of a counter set while it is allocated."""

    counter_set: str
    counters: Mapping[str, Counter] = {}


class DeviceTaint(Wire, frozen=True, gc=False):
    """A reason not to use a device, unless tolerated."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: Time = NO_TIME


class Device(Wire, frozen=True, gc=False):
    """One entry of a ResourceSlice."""

    name: str
    attributes: Mapping[str, DeviceAttribute] = {}
    capacity: Mapping[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: NodeName = NodeName("")
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
