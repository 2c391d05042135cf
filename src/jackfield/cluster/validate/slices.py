"""What is wrong with a ResourceSlice.

Knows DRA's limits and rules for devices on offer. Must not know whose devices they are.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import capacities, formats
from jackfield.cluster.validate.checks import Change, limited, named, node_selector, one_of, unique
from jackfield.codec import Raw
from jackfield.model.device import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceTaint,
)
from jackfield.model.slice import ResourceSlice, ResourceSliceSpec
from jackfield.model.taint import DeviceTaintRule, DeviceTaintSelector

DEVICES_MAX: Final = 128
DEVICES_MAX_WITH_EXTRAS: Final = 64
"""Where any device has taints, counters or lists among its attributes."""
ATTRIBUTES_MAX: Final = 32
"""Attributes and capacities of one device."""
ATTRIBUTE_VALUES_MAX: Final = 48
ATTRIBUTE_BYTES_MAX: Final = 64
CONDITIONS_MAX: Final = 4
TAINTS_MAX: Final = 16
COUNTER_SETS_MAX: Final = 8
COUNTERS_MAX: Final = 32
CONSUMPTIONS_MAX: Final = 2
TAINT_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")

_KINDS_OF_VALUE: Final = ("int_", "bool_", "string", "version", "ints", "bools", "strings", "versions")


def resource_slice(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with the slice."""
    if not change.wants:
        return
    new, old = change.new, change.old
    assert isinstance(new, ResourceSlice)
    if isinstance(old, ResourceSlice):
        yield from _unchanged(old.spec, new.spec)
    yield from named("spec.driver", new.spec.driver, formats.driver)
    yield from named("spec.pool.name", new.spec.pool.name, formats.pool)
    if new.spec.pool.generation < 0:
        yield errors.invalid_value(
            "spec.pool.generation", new.spec.pool.generation, "must be greater than or equal to 0"
        )
    if new.spec.pool.resource_slice_count <= 0:
        count = new.spec.pool.resource_slice_count
        yield errors.invalid_value("spec.pool.resourceSliceCount", count, "must be greater than zero")
    yield from _unset_or_true(change.raw["spec"])
    yield from _nodes("spec", _choices(new.spec), new.spec)
    if new.spec.node_selector is not None and len(new.spec.node_selector.node_selector_terms) != 1:
        yield errors.invalid_value(
            "spec.nodeSelector.nodeSelectorTerms", "", "must have exactly one node selector term"
        )
    yield from _counter_sets(new.spec)
    known = {one.name: one for one in old.spec.devices} if isinstance(old, ResourceSlice) else {}
    yield from _devices(new.spec, known)


def taint_rule(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a rule that taints devices."""
    if not change.wants:
        return
    new = change.new
    assert isinstance(new, DeviceTaintRule)
    selector = new.spec.device_selector or DeviceTaintSelector()
    if selector.driver is not None:
        yield from named("spec.deviceSelector.driver", selector.driver, formats.driver)
    if selector.pool is not None:
        yield from named("spec.deviceSelector.pool", selector.pool, formats.pool)
    if selector.device is not None:
        yield from named("spec.deviceSelector.device", selector.device, formats.label)
    yield from _taint("spec.taint", new.spec.taint)


def _unchanged(old: ResourceSliceSpec, new: ResourceSliceSpec) -> Iterator[Cause]:
    pairs = {
        "spec.driver": (old.driver, new.driver),
        "spec.pool.name": (old.pool.name, new.pool.name),
        "spec.nodeName": (old.node_name, new.node_name),
    }
    for field, (before, after) in pairs.items():
        if before != after:
            yield errors.invalid_value(field, after, "field is immutable")


def _unset_or_true(spec: Raw) -> Iterator[Cause]:
    """Yield a cause for every choice of nodes that says no: none of them may."""
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name) is False:
            yield errors.invalid_value(f"spec.{name}", "false", "must be either unset or set to true")
    if spec.get("nodeName") == "":
        yield errors.invalid_value("spec.nodeName", "", "must be either unset or set to a non-empty string")
    for index, device in enumerate(spec.get("devices", ())):
        if device.get("allNodes") is False:
            at = f"spec.devices[{index}].allNodes"
            yield errors.invalid_value(at, "false", "must be either unset or set to true")


def _choices(spec: ResourceSliceSpec) -> dict[str, bool]:
    return {
        "nodeName": bool(spec.node_name),
        "nodeSelector": spec.node_selector is not None,
        "allNodes": spec.all_nodes,
        "perDeviceNodeSelection": spec.per_device_node_selection,
    }


def _nodes(field: str, choices: Mapping[str, bool], holder: ResourceSliceSpec | Device) -> Iterator[Cause]:
    """Yield a cause unless exactly one way of naming nodes is taken."""
    taken = [name for name, is_taken in choices.items() if is_taken]
    listed = ", ".join(f"`{name}`" for name in choices)
    if not taken:
        yield errors.required(field, f"exactly one of {listed} is required")
    if len(taken) > 1:
        chosen = ", ".join(f"`{name}`" for name in taken)
        yield errors.invalid_value(
            field, "{" + chosen + "}", f"exactly one of {listed} is required, but multiple fields are set"
        )
    if holder.node_name:
        yield from named(f"{field}.nodeName", holder.node_name, formats.subdomain)
    if holder.node_selector is not None:
        yield from node_selector(f"{field}.nodeSelector", holder.node_selector)


def _counter_sets(spec: ResourceSliceSpec) -> Iterator[Cause]:
    if spec.shared_counters and spec.devices:
        yield errors.invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    yield from limited("spec.sharedCounters", spec.shared_counters, COUNTER_SETS_MAX)
    yield from unique("spec.sharedCounters", [one.name for one in spec.shared_counters], ".name")
    for index, one in enumerate(spec.shared_counters):
        yield from _counter_set(f"spec.sharedCounters[{index}]", one)


def _counter_set(field: str, found: CounterSet) -> Iterator[Cause]:
    yield from named(f"{field}.name", found.name, formats.label)
    yield from _counters(f"{field}.counters", found.counters)


def _counters(field: str, counters: Mapping[str, Counter]) -> Iterator[Cause]:
    if not counters:
        yield errors.required(field)
    yield from limited(field, counters, COUNTERS_MAX)
    for name, counter in counters.items():
        yield from named(f"{field}[{name}]", name, formats.label)
        yield from named(f"{field}[{name}].value", counter.value, formats.amount)


def _devices(spec: ResourceSliceSpec, known: Mapping[str, Device]) -> Iterator[Cause]:
    with_extras = any(_has_extras(one) for one in spec.devices)
    yield from limited("spec.devices", spec.devices, DEVICES_MAX_WITH_EXTRAS if with_extras else DEVICES_MAX)
    yield from unique("spec.devices", [one.name for one in spec.devices], ".name")
    for index, device in enumerate(spec.devices):
        field = f"spec.devices[{index}]"
        yield from _device_nodes(field, device, per_device=spec.per_device_node_selection)
        # A device that did not change was found sound before.
        if known.get(device.name) != device:
            yield from _device(field, device)


def _has_extras(device: Device) -> bool:
    return bool(device.taints or device.consumes_counters) or any(
        one.ints is not None or one.bools is not None or one.strings is not None or one.versions is not None
        for one in device.attributes.values()
    )


def _device_nodes(field: str, device: Device, *, per_device: bool) -> Iterator[Cause]:
    choices = {
        "nodeName": bool(device.node_name),
        "nodeSelector": device.node_selector is not None,
        "allNodes": device.all_nodes,
    }
    if per_device:
        yield from _nodes(field, choices, device)
    elif any(choices.values()):
        yield errors.invalid_value(
            field,
            "",
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true "
            "in the ResourceSlice spec",
        )


def _device(field: str, device: Device) -> Iterator[Cause]:
    yield from named(f"{field}.name", device.name, formats.label)
    entries = len(device.attributes) + len(device.capacity)
    if entries > ATTRIBUTES_MAX:
        yield errors.invalid_value(
            field, entries, f"the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}"
        )
    yield from _attributes(f"{field}.attributes", device.attributes)
    for name, capacity in device.capacity.items():
        yield from named(f"{field}.capacity", name, formats.attribute)
        yield from capacities.capacity(
            f"{field}.capacity[{name}]", capacity, shared=device.allow_multiple_allocations
        )
    yield from _consumptions(field, device)
    yield from limited(f"{field}.taints", device.taints, TAINTS_MAX)
    for index, taint in enumerate(device.taints):
        yield from _taint(f"{field}.taints[{index}]", taint)
    yield from binding(field, device.binding_conditions, device.binding_failure_conditions)


def _attributes(field: str, attributes: Mapping[str, DeviceAttribute]) -> Iterator[Cause]:
    values = 0
    for name, attribute in attributes.items():
        yield from named(field, name, formats.attribute)
        yield from _attribute(f"{field}[{name}]", attribute)
        values += len(_listed(attribute)) if _is_list(attribute) else 1
    if values > ATTRIBUTE_VALUES_MAX:
        yield errors.invalid_value(
            field, values, f"the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}"
        )


def _is_list(attribute: DeviceAttribute) -> bool:
    return any(
        isinstance(getattr(attribute, name), tuple) for name in ("ints", "bools", "strings", "versions")
    )


def _listed(attribute: DeviceAttribute) -> tuple[int | bool | str, ...]:
    return (
        *(attribute.ints or ()),
        *(attribute.bools or ()),
        *(attribute.strings or ()),
        *(attribute.versions or ()),
    )


def _attribute(field: str, attribute: DeviceAttribute) -> Iterator[Cause]:
    taken = [name for name in _KINDS_OF_VALUE if getattr(attribute, name) is not None]
    if len(taken) != 1:
        yield errors.invalid_value(
            field, ", ".join(taken).replace("_", ""), "exactly one value must be specified"
        )
    texts = (*((attribute.string,) if attribute.string is not None else ()), *(attribute.strings or ()))
    versions = (*((attribute.version,) if attribute.version is not None else ()), *(attribute.versions or ()))
    for text in (*texts, *versions):
        if len(text.encode()) > ATTRIBUTE_BYTES_MAX:
            yield errors.too_long(field, ATTRIBUTE_BYTES_MAX)
    for text in versions:
        yield from named(f"{field}.version", text, formats.semver)
    if _is_list(attribute) and not _listed(attribute):
        yield errors.required(field, "a list must not be empty")


def _consumptions(field: str, device: Device) -> Iterator[Cause]:
    yield from limited(f"{field}.consumesCounters", device.consumes_counters, CONSUMPTIONS_MAX)
    sets = [one.counter_set for one in device.consumes_counters]
    yield from unique(f"{field}.consumesCounters", sets, ".counterSet")
    for index, one in enumerate(device.consumes_counters):
        at = f"{field}.consumesCounters[{index}]"
        yield from named(f"{at}.counterSet", one.counter_set, formats.label)
        yield from _counters(f"{at}.counters", one.counters)


def _taint(field: str, taint: DeviceTaint) -> Iterator[Cause]:
    yield from named(f"{field}.key", taint.key, formats.qualified)
    yield from named(f"{field}.value", taint.value, formats.label_value)
    if not taint.effect:
        yield errors.required(f"{field}.effect")
    else:
        yield from one_of(f"{field}.effect", taint.effect, TAINT_EFFECTS)


def binding(field: str, ready: tuple[str, ...], failed: tuple[str, ...]) -> Iterator[Cause]:
    """Yield what is wrong with binding conditions: both lists or neither, and none in both."""
    names = ("bindingConditions", "bindingFailureConditions")
    for name, found in zip(names, (ready, failed), strict=True):
        yield from limited(f"{field}.{name}", found, CONDITIONS_MAX)
        yield from unique(f"{field}.{name}", found)
        for index, one in enumerate(found):
            yield from named(f"{field}.{name}[{index}]", one, formats.qualified)
    for said, other, name in ((ready, failed, names[1]), (failed, ready, names[0])):
        if said and not other:
            yield errors.invalid_value(
                f"{field}.{name}", "", f"{names[0]} and {names[1]} are used together or not"
            )
    for index, one_type in enumerate(failed):
        if one_type in ready:
            at = f"{field}.bindingFailureConditions[{index}]"
            yield errors.invalid_value(at, one_type, "must not overlap with bindingConditions")
