"""What is wrong with a device's capacity, and with what may be asked of it.

Knows DRA's rules for amounts that several claims share. Must not know devices.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import limited, named
from jackfield.model import quantity
from jackfield.model.device import CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity

VALID_VALUES_MAX: Final = 10


def capacity(field: str, found: DeviceCapacity, *, shared: bool) -> Iterator[Cause]:
    """Yield what is wrong with a capacity; only a device that can be shared says how it is shared."""
    wrong = tuple(named(f"{field}.value", found.value, formats.amount))
    if wrong:
        yield from wrong
        return
    policy = found.request_policy
    if policy is None:
        return
    if not shared:
        yield errors.forbidden(f"{field}.requestPolicy", "allowed only if `allowMultipleAllocations` is true")
    bad = [text for text in _policy_amounts(policy) if formats.amount(text)]
    for text in bad:
        yield from named(f"{field}.requestPolicy", text, formats.amount)
    if not bad:
        yield from _policy(f"{field}.requestPolicy", policy, quantity.parse(found.value))


def _policy_amounts(policy: CapacityRequestPolicy) -> Iterator[str]:
    if policy.default is not None:
        yield policy.default
    yield from policy.valid_values
    if policy.valid_range is not None:
        yield from (one for one in msgspec.structs.astuple(policy.valid_range) if one)


def _policy(field: str, policy: CapacityRequestPolicy, value: quantity.Quantity) -> Iterator[Cause]:
    if policy.valid_values and policy.valid_range is not None:
        yield errors.forbidden(field, "at most one of `validValues` or `validRange` is allowed")
    if (policy.valid_values or policy.valid_range is not None) and policy.default is None:
        yield errors.required(f"{field}.default", "required when `validValues` or `validRange` is defined")
        return
    if policy.default is None:
        return
    default = quantity.parse(policy.default)
    if policy.valid_values:
        yield from _valid_values(f"{field}.validValues", policy, (default, value))
    elif policy.valid_range is not None:
        yield from _valid_range(f"{field}.validRange", policy.valid_range, (default, value))


def _valid_values(
    field: str, policy: CapacityRequestPolicy, amounts: tuple[quantity.Quantity, quantity.Quantity]
) -> Iterator[Cause]:
    default, value = amounts
    yield from limited(field, policy.valid_values, VALID_VALUES_MAX)
    values = [quantity.parse(one) for one in policy.valid_values]
    for index, one in enumerate(values):
        at = f"{field}[{index}]"
        if one > value:
            yield errors.invalid_value(at, str(one), f"is larger than the capacity value: {value}")
        if index and one <= values[index - 1]:
            yield errors.invalid_value(
                at, str(one), "values must be sorted in ascending order, each of them once"
            )
    if default not in values:
        yield errors.invalid_value(
            field, str(default), "default value is not valid according to the requestPolicy"
        )


def _valid_range(
    field: str, found: CapacityRequestPolicyRange, amounts: tuple[quantity.Quantity, quantity.Quantity]
) -> Iterator[Cause]:
    default, value = amounts
    if not found.min:
        yield errors.required(f"{field}.min", "required when validRange is defined")
        return
    low = quantity.parse(found.min)
    if low > value:
        yield errors.invalid_value(f"{field}.min", str(low), f"is larger than the capacity value: {value}")
    if default < low:
        yield errors.invalid_value(f"{field}.default", str(default), f"is less than min: {low}")
    high = quantity.parse(found.max) if found.max is not None else None
    if high is not None:
        yield from _highest(field, (low, high), amounts)
    if found.step is not None:
        yield from _steps(f"{field}.step", quantity.parse(found.step), (low, default, high), value)


def _highest(
    field: str,
    bounds: tuple[quantity.Quantity, quantity.Quantity],
    amounts: tuple[quantity.Quantity, quantity.Quantity],
) -> Iterator[Cause]:
    (low, high), (default, value) = bounds, amounts
    if low > high:
        yield errors.invalid_value(f"{field}.max", str(high), f"is less than min: {low}")
    if high > value:
        yield errors.invalid_value(f"{field}.max", str(high), f"is larger than the capacity value: {value}")
    if default > high:
        yield errors.invalid_value(f"{field}.default", str(default), f"is more than max: {high}")


def _steps(
    field: str,
    step: quantity.Quantity,
    bounds: tuple[quantity.Quantity, quantity.Quantity, quantity.Quantity | None],
    value: quantity.Quantity,
) -> Iterator[Cause]:
    low, default, high = bounds
    if step.sign <= 0:
        yield errors.invalid_value(field, str(step), "must be greater than zero")
        return
    if low + step > value:
        yield errors.invalid_value(field, str(step), f"one step is larger than the capacity value: {value}")
    for one in (default, *((high,) if high is not None else ())):
        # Whole numbers, as the API server counts steps: fractions are rounded up.
        if (one.value() - low.value()) % step.value():
            yield errors.invalid_value(field, str(one), f"is not a multiple of the step ({step}) from {low}")
