"""How much of a device a request uses up.

Knows request policies: defaults, ranges, lists of valid values. Must not know what is in use.
"""

from collections.abc import Iterator, Mapping

import msgspec

from jackfield.core.allocate.offers import WISHES_MAX, Entry
from jackfield.core.allocate.requests import Ask
from jackfield.model import quantity
from jackfield.model.device import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity
from jackfield.model.quantity import Format, Quantity


def demand(entry: Entry, ask: Ask) -> Mapping[str, Quantity] | None:
    """Return what the request would use of each of the device's capacities.

    None where the device cannot serve it: it lacks a capacity asked for, or its policy forbids the amount.
    """
    key = ask.capacity_key
    if key not in entry.demands:
        if len(entry.demands) >= WISHES_MAX:
            entry.demands.clear()
        entry.demands[key] = _demand(entry, ask.capacity)
    return entry.demands[key]


def fits(entry: Entry, wanted: Mapping[str, Quantity], *used: Mapping[str, Quantity]) -> bool:
    """Return whether the device has that much left."""
    for name, amount in wanted.items():
        total = amount.nano
        for one in used:
            if name in one:
                total += one[name].nano
        if total > entry.capacity[name].nano:
            return False
    return True


class Shortfall(msgspec.Struct, frozen=True):
    """A capacity of which a device does not have what a request would use."""

    name: str
    wanted: str
    had: str


def shortfalls(entry: Entry, ask: Ask, *used: Mapping[str, Quantity]) -> Iterator[Shortfall]:
    """Yield all that keeps the device from a request; nothing where `demand` and `fits` say yes."""
    refused = False
    for name, requested in ask.capacity.items():
        had = entry.device.capacity.get(name)
        policy = None if had is None else had.request_policy
        if had is None:
            refused = True
            yield Shortfall(name, str(requested), "absent")
        elif policy is not None and not _permitted(entry, policy, _amount(entry, had, requested)):
            refused = True
            yield Shortfall(name, str(requested), f"only {_allowed(policy)} may be asked for")
    wanted = None if refused else demand(entry, ask)
    for name, amount in (wanted or {}).items():
        if not fits(entry, {name: amount}, *used):
            total = entry.capacity[name]
            left = total
            for one in used:
                left -= one.get(name, quantity.ZERO)
            yield Shortfall(name, str(amount), str(total) if left == total else f"{left} left of {total}")


def _allowed(policy: CapacityRequestPolicy) -> str:
    if policy.valid_range is None:
        return ", ".join(policy.valid_values)
    return f"{policy.valid_range.min or 0} to {policy.valid_range.max}"


def _demand(entry: Entry, requests: Mapping[str, Quantity]) -> Mapping[str, Quantity] | None:
    if any(name not in entry.capacity for name in requests):
        return None
    wanted: dict[str, Quantity] = {}
    for name, capacity in entry.device.capacity.items():
        requested = requests.get(name)
        policy = capacity.request_policy
        amount = _amount(entry, capacity, requested)
        if policy is not None and requested is not None and not _permitted(entry, policy, amount):
            return None
        wanted[name] = amount
    return wanted


def _amount(entry: Entry, capacity: DeviceCapacity, requested: Quantity | None) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return entry.read(capacity.value if default is None else default)
    if policy is None:
        return requested
    if policy.valid_range is not None:
        return _rounded_up(entry, policy.valid_range, requested)
    if policy.valid_values:
        values = sorted((entry.read(text) for text in policy.valid_values), key=lambda one: one.nano)
        return next((value for value in values if value >= requested), requested)
    return requested


def _rounded_up(entry: Entry, valid: CapacityRequestPolicyRange, requested: Quantity) -> Quantity:
    least = entry.read(valid.min) if valid.min else quantity.ZERO
    if requested < least:
        return least
    if valid.step is None:
        return requested
    start, step = least.value(), entry.read(valid.step).value()
    if not step:
        return requested
    steps = -(-(requested.value() - start) // step)
    return quantity.of(start + steps * step, Format.BINARY_SI)


def _permitted(entry: Entry, policy: CapacityRequestPolicy, amount: Quantity) -> bool:
    if policy.default is not None and amount == entry.read(policy.default):
        return True
    if policy.valid_range is not None:
        valid = policy.valid_range
        return valid.max is None or amount <= entry.read(valid.max)
    if policy.valid_values:
        return any(amount == entry.read(text) for text in policy.valid_values)
    return True
