"""Devices, taints and counters from plain Python values.

Knows how a Python value is spelt in the API, and refuses what the API server would refuse, with words. Must not know
who publishes it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypedDict, Unpack

import msgspec

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


class BadDevice(ValueError):  # noqa: N818 - named for what is wrong
    """A device, a pool or a driver that the API server would refuse; one line for each fault."""

    def __init__(self, found: Iterable[str]) -> None:
        self.faults: Final = tuple(found)
        super().__init__("\n".join(self.faults))


class Version(str):
    """A version as an attribute's value, such as `Version("1.2.3")`; in CEL it compares as one."""

    __slots__ = ()


class Capacity(msgspec.Struct, frozen=True):
    """An amount of which every claim takes a share, and how large shares may be."""

    value: "int | str"
    default: "int | str | None" = None
    """What a claim gets that does not say; without it, all of it."""
    choices: tuple["int | str", ...] = ()
    """Amounts that may be asked for, in rising order; the next larger one is given."""
    minimum: "int | str | None" = None
    maximum: "int | str | None" = None
    step: "int | str | None" = None


Single = bool | int | str | Version
AttributeValue = Single | Sequence[Single]
"""Text, whole number, yes or no, `Version`; or several of one sort, where Kubernetes has lists switched on."""
Amount = int | str
"""A quantity: 8, "40Gi", "500m"."""


class DeviceFields(TypedDict, total=False):
    """What can be said of a device."""

    attributes: Mapping[str, AttributeValue]
    """Names without a domain belong to the driver: `model` is `device.attributes["<driver>"].model` in CEL."""
    capacity: Mapping[str, Amount | Capacity]
    taints: Iterable[DeviceTaint]
    consumes: Mapping[str, Mapping[str, Amount]]
    """By set of counters of the same pool, how much of each counter it takes while it is allocated."""
    shared: bool
    """Whether several claims may have it at once, each with a share of its capacity."""


def device(name: str, **fields: Unpack[DeviceFields]) -> Device:
    """Return a device to publish. Raises BadDevice with all that is wrong."""
    wrong: list[str] = []
    attributes = {
        key: one
        for key, value in fields.get("attributes", {}).items()
        if (one := _attribute(key, value, wrong)) is not None
    }
    capacity = {key: _capacity(key, value, wrong) for key, value in fields.get("capacity", {}).items()}
    consumes = tuple(
        DeviceCounterConsumption(counter_set, _counters(counters, wrong))
        for counter_set, counters in fields.get("consumes", {}).items()
    )
    made = Device(
        name=name,
        attributes=attributes,
        capacity=capacity,
        consumes_counters=consumes,
        taints=tuple(fields.get("taints", ())),
        allow_multiple_allocations=fields.get("shared", False),
    )
    found = (*(f"device {name!r}: {one}" for one in wrong), *faults.of_device(made))
    if found:
        raise BadDevice(found)
    return made


def counters(name: str, amounts: Mapping[str, Amount]) -> CounterSet:
    """Return a set of counters that devices of the same pool consume from, such as the memory of one GPU."""
    wrong: list[str] = []
    made = CounterSet(name, _counters(amounts, wrong))
    if wrong:
        raise BadDevice(f"the set of counters {name!r}: {one}" for one in wrong)
    return made


def taint(key: str, value: str = "", *, effect: str = "NoSchedule") -> DeviceTaint:
    """Return a reason not to use a device; with effect `NoExecute` pods that use it are ended too."""
    return DeviceTaint(key, value, effect)


# --- values


def _attribute(key: str, value: object, wrong: list[str]) -> DeviceAttribute | None:
    match value:
        case bool():
            return DeviceAttribute(bool_=value)
        case int():
            return DeviceAttribute(int_=value)
        case Version():
            return DeviceAttribute(version=str(value))
        case str():
            return DeviceAttribute(string=value)
        case list() | tuple():
            return _list(key, value, wrong)
        case _:
            kind = type(value).__name__
            wrong.append(
                f"attribute {key!r} takes text, a whole number, a yes or no, or a Version, no {kind}"
            )
            return None


def _list(key: str, values: Sequence[object], wrong: list[str]) -> DeviceAttribute | None:
    kinds = {type(one) for one in values}
    if kinds == {bool}:
        return DeviceAttribute(bools=tuple(one for one in values if isinstance(one, bool)))
    if kinds == {int}:
        return DeviceAttribute(ints=tuple(one for one in values if isinstance(one, int)))
    if kinds == {Version}:
        return DeviceAttribute(versions=tuple(str(one) for one in values))
    if kinds == {str}:
        return DeviceAttribute(strings=tuple(str(one) for one in values))
    wrong.append(
        f"attribute {key!r} takes a list of one sort: texts, whole numbers, yes and no, or Versions, at least one"
    )
    return None


def _capacity(key: str, value: object, wrong: list[str]) -> DeviceCapacity:
    if not isinstance(value, Capacity):
        return DeviceCapacity(_amount(f"capacity {key!r}", value, wrong))

    def spelt(one: object) -> str | None:
        return None if one is None else _amount(f"capacity {key!r}", one, wrong)

    between = None
    if value.minimum is not None or value.maximum is not None or value.step is not None:
        between = CapacityRequestPolicyRange(
            spelt(value.minimum) or "", spelt(value.maximum), spelt(value.step)
        )
    choices = tuple(_amount(f"capacity {key!r}", one, wrong) for one in value.choices)
    policy = CapacityRequestPolicy(spelt(value.default), choices, between)
    return DeviceCapacity(
        _amount(f"capacity {key!r}", value.value, wrong),
        policy if policy != CapacityRequestPolicy() else None,
    )


def _counters(amounts: Mapping[str, Amount], wrong: list[str]) -> dict[str, Counter]:
    return {name: Counter(_amount(f"counter {name!r}", one, wrong)) for name, one in amounts.items()}


def _amount(where: str, value: object, wrong: list[str]) -> str:
    """Return an amount as text; 0 for what is none, of which the author is told."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        wrong.append(
            f"{where} takes a whole number or a text such as '40Gi' or '500m', no {type(value).__name__}"
        )
        return "0"
    return str(value)
