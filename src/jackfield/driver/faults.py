"""What the API server would refuse of a pool, told before it is asked, in words that help who wrote the driver.

Knows DRA's names, limits and rules for devices. Must not know where a device's values come from.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final, TypeVar

from jackfield.core.offer import Pool
from jackfield.model import quantity
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceTaint,
)

T = TypeVar("T")

LABEL_MAX: Final = 63
POOL_NAME_MAX: Final = 253
IDENTIFIER_MAX: Final = 32
ENTRIES_MAX: Final = 32
VALUES_MAX: Final = 48
TEXT_BYTES_MAX: Final = 64
TAINTS_MAX: Final = 16
CONSUMPTIONS_MAX: Final = 2
COUNTERS_MAX: Final = 32
CONDITIONS_MAX: Final = 4
VALID_VALUES_MAX: Final = 10
EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
INT_BOUND: Final = 2**63

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_NUMBER: Final = r"(0|[1-9][0-9]*)"
_BEFORE: Final = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE}(\.{_BEFORE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)
_NO_LABEL: Final = f"takes small letters, digits and hyphens, at most {LABEL_MAX}, no hyphen first or last"


def of_driver(name: str) -> tuple[str, ...]:
    """Return what is wrong with the name of a driver."""
    if len(name) <= LABEL_MAX and _SUBDOMAIN.fullmatch(name):
        return ()
    words = f"takes small letters, digits, dots and hyphens, at most {LABEL_MAX}, such as gpu.example.com"
    return (f"the driver's name {_shown(name)} {words}",)


def of_pool(pool: Pool) -> tuple[str, ...]:
    """Return all that is wrong with a pool; a name that is left to the node is not looked at."""
    return tuple(_of_pool(pool))


def of_device(device: Device) -> tuple[str, ...]:
    """Return all that is wrong with a device by itself."""
    return tuple(f"device {_shown(device.name)}: {one}" for one in _of_device(device))


def _of_pool(pool: Pool) -> Iterator[str]:
    if pool.name and not (
        len(pool.name) <= POOL_NAME_MAX and all(_SUBDOMAIN.fullmatch(one) for one in pool.name.split("/"))
    ):
        yield f"the pool's name {_shown(pool.name)} takes small letters, digits, dots, hyphens and slashes"
    for name in _doubled(one.name for one in pool.devices):
        yield f"two devices are called {_shown(name)}: a device has one name, in one pool, for life"
    for name in _doubled(one.name for one in pool.counters):
        yield f"two sets of counters are called {_shown(name)}"
    for counters in pool.counters:
        yield from _of_counter_set(counters)
    for device in pool.devices:
        yield from of_device(device)
        yield from _of_consumption(device, {one.name: one for one in pool.counters})


def _of_counter_set(counters: CounterSet) -> Iterator[str]:
    where = f"the set of counters {_shown(counters.name)}"
    if not _is_label(counters.name):
        yield f"{where}: its name {_NO_LABEL}"
    yield from _of_counters(where, counters.counters)


def _of_counters(where: str, counters: Mapping[str, Counter]) -> Iterator[str]:
    if not 0 < len(counters) <= COUNTERS_MAX:
        yield f"{where} has {len(counters)} counters; it takes from 1 to {COUNTERS_MAX}"
    for name, counter in counters.items():
        if not _is_label(name):
            yield f"{where}: the counter {_shown(name)} {_NO_LABEL}"
        yield from _of_amount(f"{where}: {name}", counter.value)


def _of_consumption(device: Device, sets: Mapping[str, CounterSet]) -> Iterator[str]:
    """What a device consumes must be there, or the scheduler uses nothing of the whole pool."""
    for one in device.consumes_counters:
        there = sets[one.counter_set].counters if one.counter_set in sets else {}
        for name in one.counters:
            if name not in there:
                missing = f"{_shown(name)} of {_shown(one.counter_set)}"
                yield f"device {_shown(device.name)}: it consumes {missing}, and the pool has no such counter"


# --- a device


def _of_device(device: Device) -> Iterator[str]:
    if not _is_label(device.name):
        yield f"its name {_NO_LABEL}; {_shown(_as_label(device.name))} would do"
    if device.node_name or device.node_selector is not None or device.all_nodes:
        yield "it says on which nodes it can be used; the devices of a driver are on the driver's node"
    entries = len(device.attributes) + len(device.capacity)
    if entries > ENTRIES_MAX:
        yield f"it has {entries} attributes and capacities; at most {ENTRIES_MAX} are allowed"
    values = sum(len(_listed(one)) or 1 for one in device.attributes.values())
    if values > VALUES_MAX:
        yield f"its attributes have {values} values; at most {VALUES_MAX} are allowed"
    for name, attribute in device.attributes.items():
        yield from _of_name("attribute", name)
        yield from _of_attribute(f"attribute {_shown(name)}", attribute)
    for name, capacity in device.capacity.items():
        yield from _of_name("capacity", name)
        yield from _of_capacity(f"capacity {_shown(name)}", capacity, device)
    yield from _of_consumers(device)
    if len(device.taints) > TAINTS_MAX:
        yield f"it has {len(device.taints)} taints; at most {TAINTS_MAX} are allowed"
    for taint in device.taints:
        yield from _of_taint(taint)
    yield from _of_binding(device)


def _of_name(sort: str, name: str) -> Iterator[str]:
    domain, slash, identifier = name.rpartition("/")
    if slash and not (len(domain) <= LABEL_MAX and _SUBDOMAIN.fullmatch(domain.lower())):
        yield f"{sort} {_shown(name)}: before the slash stands a domain, such as gpu.example.com, at most {LABEL_MAX}"
    if not (len(identifier) <= IDENTIFIER_MAX and _IDENTIFIER.fullmatch(identifier)):
        words = f"takes letters, digits and '_', no digit first, at most {IDENTIFIER_MAX}"
        yield f"{sort} {_shown(name)}: {_shown(identifier)} {words}"


def _of_attribute(where: str, attribute: DeviceAttribute) -> Iterator[str]:
    texts = (*_one(attribute.string), *(attribute.strings or ()))
    versions = (*_one(attribute.version), *(attribute.versions or ()))
    if len(_listed(attribute)) == 0 and not _is_single(attribute):
        yield f"{where}: it has no value; leave it out"
    for text in (*texts, *versions):
        if len(text.encode()) > TEXT_BYTES_MAX:
            yield f"{where}: {_shown(text)} has more than {TEXT_BYTES_MAX} bytes"
    for text in versions:
        if not _SEMVER.fullmatch(text):
            yield f"{where}: {_shown(text)} is no version; it takes three numbers, such as 1.2.3 or 1.2.3-rc.1"
    for number in (*_one(attribute.int_), *(attribute.ints or ())):
        if not -INT_BOUND <= number < INT_BOUND:
            yield f"{where}: {number} does not fit into 64 bits; use a capacity for large amounts"


def _is_single(one: DeviceAttribute) -> bool:
    return any(value is not None for value in (one.int_, one.bool_, one.string, one.version))


def _listed(one: DeviceAttribute) -> tuple[object, ...]:
    return (*(one.ints or ()), *(one.bools or ()), *(one.strings or ()), *(one.versions or ()))


def _of_consumers(device: Device) -> Iterator[str]:
    if len(device.consumes_counters) > CONSUMPTIONS_MAX:
        count = len(device.consumes_counters)
        yield f"it consumes from {count} sets of counters; at most {CONSUMPTIONS_MAX} are allowed"
    for name in _doubled(one.counter_set for one in device.consumes_counters):
        yield f"it names the set of counters {_shown(name)} twice"
    for one in device.consumes_counters:
        yield from _of_counters(f"what it consumes of {_shown(one.counter_set)}", one.counters)


def _of_taint(taint: DeviceTaint) -> Iterator[str]:
    domain, slash, name = taint.key.rpartition("/")
    sound = (not slash or (len(domain) <= POOL_NAME_MAX and _SUBDOMAIN.fullmatch(domain))) and _is_word(name)
    if not sound:
        yield f"taint {_shown(taint.key)}: its key takes a name like example.com/unhealthy"
    if taint.value and not _is_word(taint.value):
        yield f"taint {_shown(taint.key)}: its value {_shown(taint.value)} takes what a label's value takes"
    if taint.effect not in EFFECTS:
        yield f"taint {_shown(taint.key)}: its effect is {_shown(taint.effect)}; it takes {', '.join(EFFECTS)}"


def _of_binding(device: Device) -> Iterator[str]:
    ready, failed = device.binding_conditions, device.binding_failure_conditions
    if bool(ready) != bool(failed):
        yield "it has binding conditions or binding failure conditions; it takes both or neither"
    for conditions in (ready, failed):
        if len(conditions) > CONDITIONS_MAX:
            yield f"it has {len(conditions)} binding conditions of one sort; at most {CONDITIONS_MAX} are allowed"
    for name in _doubled((*ready, *failed)):
        yield f"the binding condition {_shown(name)} stands there twice"
    for name in dict.fromkeys((*ready, *failed)):
        domain, slash, word = name.rpartition("/")
        if (slash and not _SUBDOMAIN.fullmatch(domain)) or not _is_word(word):
            yield f"the binding condition {_shown(name)} takes a name like FabricDeviceReady"


# --- amounts


def _of_amount(where: str, text: str) -> Iterator[str]:
    try:
        quantity.parse(text)
    except quantity.QuantityError as error:
        yield f"{where}: {_shown(text)} is no quantity such as 40Gi, 500m or 3: {error.reason}"


def _of_capacity(where: str, capacity: DeviceCapacity, device: Device) -> Iterator[str]:
    policy = capacity.request_policy
    amounts = [capacity.value]
    if policy is not None:
        if not device.allow_multiple_allocations:
            yield f"{where}: how much one claim may ask for matters only if the device is shared"
        between = policy.valid_range or CapacityRequestPolicyRange()
        ends = [one for one in (between.min, between.max, between.step) if one]
        amounts += [*_one(policy.default), *policy.valid_values, *ends]
    wrong = [one for amount in amounts for one in _of_amount(where, amount)]
    yield from wrong
    if policy is not None and not wrong:
        yield from (f"{where}: {one}" for one in _of_policy(policy, quantity.parse(capacity.value)))


def _of_policy(policy: CapacityRequestPolicy, value: quantity.Quantity) -> Iterator[str]:
    if policy.valid_values and policy.valid_range is not None:
        yield "it says which amounts are valid and which range is; it takes one of them"
    elif policy.valid_values:
        yield from _of_choices([quantity.parse(one) for one in policy.valid_values], policy, value)
    elif policy.valid_range is not None:
        yield from _of_range(policy.valid_range, policy, value)


def _of_choices(
    choices: list[quantity.Quantity], policy: CapacityRequestPolicy, value: quantity.Quantity
) -> Iterator[str]:
    if len(choices) > VALID_VALUES_MAX:
        yield f"it has {len(choices)} valid amounts; at most {VALID_VALUES_MAX} are allowed"
    if any(later <= one for one, later in pairwise(choices)):
        yield "its valid amounts stand in no rising order"
    if any(one > value for one in choices):
        yield f"a valid amount is more than there is, {value}"
    if policy.default is None or quantity.parse(policy.default) not in choices:
        yield "its default is none of the valid amounts"


def _of_range(
    found: CapacityRequestPolicyRange, policy: CapacityRequestPolicy, value: quantity.Quantity
) -> Iterator[str]:
    if not found.min or policy.default is None:
        yield "a range takes a minimum and a default"
        return
    low, default = quantity.parse(found.min), quantity.parse(policy.default)
    high = quantity.parse(found.max) if found.max is not None else value
    if not low <= default <= high <= value:
        yield f"minimum {low}, default {default}, maximum {high} and all there is, {value}, stand in no rising order"
    if found.step is None:
        return
    step = quantity.parse(found.step)
    if step.sign <= 0 or low + step > value:
        yield f"the step {step} is not above zero, or leads from {low} beyond all there is, {value}"
        return
    # Whole numbers, as the API server counts steps: fractions are rounded up.
    ends = (default, *((high,) if found.max is not None else ()))
    if step.value() and any((one.value() - low.value()) % step.value() for one in ends):
        yield f"default and maximum are no whole number of steps of {step} away from {low}"


# --- names


def _is_label(text: str) -> bool:
    return len(text) <= LABEL_MAX and _LABEL.fullmatch(text) is not None


def _is_word(text: str) -> bool:
    return len(text) <= LABEL_MAX and _WORD.fullmatch(text) is not None


def _as_label(text: str) -> str:
    """Return a name that would do, made from one that does not."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:LABEL_MAX].strip("-") or "device-0"


def _doubled(names: Iterator[str] | tuple[str, ...]) -> list[str]:
    return [name for name, count in Tally(names).items() if count > 1]


def _one(value: T | None) -> tuple[T, ...]:
    return (value,) if value is not None else ()


def _shown(text: str) -> str:
    """Return a text in quotes, of bearable length: it may come from hardware."""
    return repr(text if len(text) <= LABEL_MAX + 1 else f"{text[:LABEL_MAX]}…")
