"""What is wrong with what a claim was given; and with the parts that wishes and results share.

Knows DRA's rules for a claim's status. Must not know what is on offer.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats, slices
from jackfield.cluster.validate.checks import limited, named, node_selector, one_of, unique
from jackfield.codec import Raw, dig, objects
from jackfield.model.claim import (
    AllocatedDeviceStatus,
    AllocationResult,
    DeviceClaim,
    DeviceRequestAllocationResult,
    DeviceToleration,
    OpaqueDeviceConfiguration,
    ResourceClaim,
    ResourceClaimStatus,
)
from jackfield.model.meta import Condition

REQUESTS_MAX: Final = 32
RESULTS_MAX: Final = 32
CONFIGS_MAX: Final = 64
"""Those of class and claim together."""
RESERVED_MAX: Final = 256
CONDITIONS_MAX: Final = 8
PARAMETERS_BYTES_MAX: Final = 10 * 1024
INTERFACE_BYTES_MAX: Final = 256
HARDWARE_BYTES_MAX: Final = 128
ADDRESSES_MAX: Final = 16
TOLERATION_EFFECTS: Final = ("", *slices.TAINT_EFFECTS)
_NO_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def status(old: ResourceClaim, new: ResourceClaim, raw: Raw) -> Iterator[Cause]:
    """Yield what is wrong with a new status: an allocation is written once and only goes as a whole."""
    before, after = old.status.allocation, new.status.allocation
    if before is not None and after is not None and before != after:
        yield errors.invalid_value("status.allocation", "", "field is immutable")
    if before is None and after is not None:
        yield from _allocation(after, frozenset(request_names(new.spec.devices)))
    if old.status.reserved_for != new.status.reserved_for or after is None:
        yield from _reserved(old, new)
    if old.status.devices != new.status.devices:
        yield from _devices(new.status)
    for index, entry in enumerate(objects(dig(raw, "status", "devices"))):
        yield from _data(f"status.devices[{index}]", entry)


def _allocation(found: AllocationResult, names: frozenset[str]) -> Iterator[Cause]:
    field = "status.allocation.devices"
    yield from limited(f"{field}.results", found.devices.results, RESULTS_MAX)
    for index, one in enumerate(found.devices.results):
        yield from _result(f"{field}.results[{index}]", one, names)
    yield from limited(f"{field}.config", found.devices.config, CONFIGS_MAX)
    for index, config in enumerate(found.devices.config):
        at = f"{field}.config[{index}]"
        yield from one_of(f"{at}.source", config.source, ("FromClaim", "FromClass"))
        yield from references(at, config.requests, names)
        yield from opaque(at, config.opaque)
    if found.node_selector is not None:
        yield from node_selector("status.allocation.nodeSelector", found.node_selector)


def _result(field: str, found: DeviceRequestAllocationResult, names: frozenset[str]) -> Iterator[Cause]:
    if found.request not in names:
        yield errors.invalid_value(f"{field}.request", found.request, _NO_REQUEST)
    yield from named(f"{field}.driver", found.driver, formats.driver)
    yield from named(f"{field}.pool", found.pool, formats.pool)
    yield from named(f"{field}.device", found.device, formats.label)
    if found.share_id:
        yield from named(f"{field}.shareID", found.share_id, formats.uuid)
    yield from slices.binding(field, found.binding_conditions, found.binding_failure_conditions)
    for index, one in enumerate(found.tolerations):
        yield from toleration(f"{field}.tolerations[{index}]", one)
    yield from amounts(f"{field}.consumedCapacity", found.consumed_capacity)


def _reserved(old: ResourceClaim, new: ResourceClaim) -> Iterator[Cause]:
    field = "status.reservedFor"
    reserved = new.status.reserved_for
    if reserved and new.status.allocation is None:
        yield errors.forbidden(field, "may not be specified when `allocated` is not set")
    yield from limited(field, reserved, RESERVED_MAX)
    yield from unique(field, [one.uid for one in reserved], ".uid")
    for index, one in enumerate(reserved):
        for name, value in (("resource", one.resource), ("name", one.name), ("uid", one.uid)):
            if not value:
                yield errors.required(f"{field}[{index}].{name}")
    known = {one.uid for one in old.status.reserved_for}
    if new.deleting and any(one.uid not in known for one in reserved):
        yield errors.forbidden(field, "new entries may not be added while `deletionTimestamp` is set")


def _devices(status: ResourceClaimStatus) -> Iterator[Cause]:
    results = status.allocation.devices.results if status.allocation else ()
    allocated = {(one.id, one.share_id) for one in results}
    identities = [f"{one.id}/{one.share_id}" if one.share_id else f"{one.id}" for one in status.devices]
    yield from unique("status.devices", identities)
    for index, one in enumerate(status.devices):
        field = f"status.devices[{index}]"
        if (one.id, one.share_id) not in allocated:
            yield errors.invalid_value(field, identities[index], "must be an allocated device in the claim")
        yield from _conditions(field, one)


def _conditions(field: str, found: AllocatedDeviceStatus) -> Iterator[Cause]:
    yield from limited(f"{field}.conditions", found.conditions, CONDITIONS_MAX)
    yield from unique(f"{field}.conditions", [one.type for one in found.conditions], ".type")
    for index, one in enumerate(found.conditions):
        yield from _condition(f"{field}.conditions[{index}]", one)


def _condition(field: str, found: Condition) -> Iterator[Cause]:
    yield from named(f"{field}.type", found.type, formats.qualified)
    yield from one_of(f"{field}.status", found.status, ("False", "True", "Unknown"))
    if not found.last_transition_time:
        yield errors.required(f"{field}.lastTransitionTime", "must be set")
    if not found.reason:
        yield errors.required(f"{field}.reason", "must be set")


def _data(field: str, entry: Raw) -> Iterator[Cause]:
    """Yield what is wrong with what a driver adds of its own; nobody here reads it, so it has no type."""
    data = entry.get("data", {})
    if not isinstance(data, dict):
        yield errors.invalid_value(f"{field}.data", "", "must be a valid JSON object")
    elif data and len(msgspec.json.encode(data)) > PARAMETERS_BYTES_MAX:
        yield errors.too_long(f"{field}.data", PARAMETERS_BYTES_MAX)
    network = entry.get("networkData")
    if isinstance(network, dict):
        yield from _network_data(f"{field}.networkData", network)


def _network_data(field: str, network: Raw) -> Iterator[Cause]:
    for name, most in (("interfaceName", INTERFACE_BYTES_MAX), ("hardwareAddress", HARDWARE_BYTES_MAX)):
        if len(str(network.get(name, "")).encode()) > most:
            yield errors.too_long(f"{field}.{name}", most)
    listed = network.get("ips")
    addresses = [str(one) for one in listed] if isinstance(listed, list) else []
    yield from limited(f"{field}.ips", addresses, ADDRESSES_MAX)
    yield from unique(f"{field}.ips", addresses)
    for index, one in enumerate(addresses):
        yield from named(f"{field}.ips[{index}]", one, formats.interface_address)


# --- what wishes and results share


def request_names(found: DeviceClaim) -> Iterator[str]:
    """Yield what results and constraints may call a request: by its name, or with an alternative's."""
    for one in found.requests:
        yield one.name
        yield from (f"{one.name}/{sub.name}" for sub in one.first_available)


def references(field: str, requests: tuple[str, ...], names: frozenset[str]) -> Iterator[Cause]:
    """Yield a cause for every request that the claim does not have."""
    yield from limited(f"{field}.requests", requests, REQUESTS_MAX)
    yield from unique(f"{field}.requests", requests)
    for index, one in enumerate(requests):
        if one not in names:
            yield errors.invalid_value(f"{field}.requests[{index}]", one, _NO_REQUEST)


def toleration(field: str, found: DeviceToleration) -> Iterator[Cause]:
    """Yield what is wrong with a toleration."""
    yield from one_of(f"{field}.operator", found.operator, ("Equal", "Exists"))
    yield from one_of(f"{field}.effect", found.effect, TOLERATION_EFFECTS)
    if found.key:
        yield from named(f"{field}.key", found.key, formats.qualified)
    if found.operator == "Equal":
        yield from named(f"{field}.value", found.value, formats.label_value)
    if found.operator == "Exists" and found.value:
        yield errors.invalid_value(f"{field}.value", found.value, "must be empty for operator `Exists`")


def opaque(field: str, found: OpaqueDeviceConfiguration | None) -> Iterator[Cause]:
    """Yield what is wrong with a driver's parameters."""
    if found is None:
        yield errors.required(f"{field}.opaque")
        return
    yield from named(f"{field}.opaque.driver", found.driver, formats.driver)
    at = f"{field}.opaque.parameters"
    text = bytes(found.parameters)
    if len(text) > PARAMETERS_BYTES_MAX:
        yield errors.too_long(at, PARAMETERS_BYTES_MAX)
    elif not text.lstrip().startswith(b"{"):
        yield errors.invalid_value(at, "", "must be a valid JSON object")


def amounts(field: str, found: Mapping[str, str]) -> Iterator[Cause]:
    """Yield what is wrong with amounts of a device's capacity."""
    for name, amount in found.items():
        yield from named(field, name, formats.attribute)
        yield from named(f"{field}[{name}]", amount, formats.amount)
