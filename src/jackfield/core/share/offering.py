"""A GPU, and how its operator wants it shared → devices, counters and capacity in the API's words.

The GPU itself, its partitions that exist or all that could, shares of it: whatever is published here can be had, in
any combination that the scheduler's arithmetic lets through. Knows DRA's counters and request policies. Must not know
who asks, nor how a slice is cut.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from jackfield.core.share.geometry import Partition, partitions, slug, taken, totals
from jackfield.core.share.gpu import Gpu, Instance, Mig
from jackfield.model import quantity
from jackfield.model.device import (
    CapacityRequestPolicy,
    CapacityRequestPolicyRange,
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)

VENDOR = "gpu.nvidia.com"
"""Selectors written for the vendor's driver find their attributes under its domain."""
PCI_BUS_ID = "resource.kubernetes.io/pciBusID"
MEMORY = "memory"
SHARES = "shares"
_MEBIBYTE = 1 << 20
_STRING_MAX = 64
_VERSION_PARTS = 3


class Partitions(StrEnum):
    """Which partitions of a GPU are on offer."""

    NONE = "None"
    STATIC = "Static"
    """Those that somebody made; they are neither made nor destroyed by us."""
    ON_DEMAND = "OnDemand"
    """All that could be; one is made when its claim is prepared, and destroyed after."""


class Shares(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Into how many shares a GPU is cut, and in which steps its memory is asked for."""

    count: int = 10
    memory_step: str = "1Gi"


class Sharing(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How a GPU is shared, as its operator says."""

    partitions: Partitions = Partitions.NONE
    shares: Shares | None = None
    """None: a GPU serves one claim at a time."""


EXCLUSIVE = Sharing()


class Source(msgspec.Struct, frozen=True):
    """A GPU under the name it is published by."""

    name: str
    """A DNS label, the same for the GPU's whole life."""
    gpu: Gpu
    attributes: Mapping[str, DeviceAttribute] = {}
    """What else is known of it, such as its NUMA node."""
    foreign: tuple[Instance, ...] = ()
    """Partitions that are neither ours nor to be given away: what they occupy is never on offer."""


class Offer(msgspec.Struct, frozen=True):
    """What is published of a GPU, and what could not be, in words for its operator."""

    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    problems: tuple[str, ...] = ()


def offer(source: Source, sharing: Sharing = EXCLUSIVE) -> Offer:
    """Return what to publish of a GPU."""
    gpu = source.gpu
    match sharing.partitions:
        case Partitions.ON_DEMAND if gpu.profiles:
            return _on_demand(source, sharing.shares)
        case Partitions.STATIC if gpu.mig is Mig.ENABLED:
            found = (partition_of(gpu, one) for one in gpu.instances)
            return Offer(tuple(_partition(source, one) for one in found if one is not None))
        case Partitions.NONE if gpu.mig is Mig.ENABLED:
            problem = (
                f"{source.name} is divided (MIG is enabled), so it cannot be given away whole: offer its partitions "
                "(`partitions: Static` or `OnDemand`), or disable MIG"
            )
            return Offer(problems=(problem,))
        case Partitions.ON_DEMAND:
            whole, problems = _whole(source, sharing.shares)
            problem = f"{source.name} ({gpu.product}) cannot be divided: it is offered as a whole"
            return Offer((whole,), problems=(problem, *problems))
        case _:
            whole, problems = _whole(source, sharing.shares)
            return Offer((whole,), problems=problems)


def device_name(source: str, partition: Partition) -> str:
    """Return the name a partition of the GPU of that name is published by."""
    return f"{source}-mig-{slug(partition.profile.name)}-at-{partition.placement.start}"


def partition_named(source: Source, device: str) -> Partition | None:
    """Return the partition published by that name; None for the GPU itself, and for what it does not have."""
    return next((one for one in _every(source.gpu) if device_name(source.name, one) == device), None)


def partition_of(gpu: Gpu, instance: Instance) -> Partition | None:
    """Return what an instance is an instance of; None where the driver lists no such profile."""
    return next((one for one in _every(gpu) if instance.is_(one)), None)


def _every(gpu: Gpu) -> Iterator[Partition]:
    """Yield all that can be created, in no order that matters."""
    return (Partition(profile, one) for profile in gpu.profiles for one in profile.placements)


# --- on demand


def _on_demand(source: Source, shares: Shares | None) -> Offer:
    every, whole = partitions(source.gpu.profiles), totals(source.gpu.profiles)
    free = dict(whole)
    for instance in source.foreign:
        partition = partition_of(source.gpu, instance)
        # An instance of a profile that is not listed is left to its slices: they are what would collide.
        lost = taken(partition, whole) if partition else _slices(instance, whole)
        free = {name: amount - lost.get(name, 0) for name, amount in free.items()}
    counters = CounterSet(source.name, _counters(free))
    gpu, problems = _whole(source, shares)
    consumed = {one: _consumption(source, taken(one, whole)) for one in every}
    devices = (
        msgspec.structs.replace(gpu, consumes_counters=_consumption(source, whole)),
        *(msgspec.structs.replace(_partition(source, one), consumes_counters=consumed[one]) for one in every),
    )
    return Offer(devices, (counters,), problems)


def _slices(instance: Instance, whole: Mapping[str, int]) -> dict[str, int]:
    placed = {f"memory-slice-{index}" for index in instance.placement.slices}
    return {name: 1 for name in whole if name in placed}


def _consumption(source: Source, amounts: Mapping[str, int]) -> tuple[DeviceCounterConsumption, ...]:
    return (DeviceCounterConsumption(source.name, _counters(amounts)),)


def _counters(amounts: Mapping[str, int]) -> dict[str, Counter]:
    return {name: Counter(str(max(amount, 0))) for name, amount in amounts.items()}


# --- the GPU itself, and shares of it


def _whole(source: Source, shares: Shares | None) -> tuple[Device, tuple[str, ...]]:
    gpu = source.gpu
    memory = quantity.of(gpu.memory_mebibytes * _MEBIBYTE, quantity.Format.BINARY_SI)
    attributes = _attributes(source, {"type": _text("gpu"), "uuid": _text(gpu.uuid)})
    device = Device(source.name, attributes, {MEMORY: DeviceCapacity(str(memory))})
    if shares is None:
        return device, ()
    problem = _unshareable(source, shares)
    if problem:
        return device, (problem,)
    capacity = {MEMORY: _memory_share(gpu, shares), SHARES: _compute_share(shares)}
    return msgspec.structs.replace(device, capacity=capacity, allow_multiple_allocations=True), ()


def _unshareable(source: Source, shares: Shares) -> str:
    """Return why the GPU cannot be cut like this; empty where it can."""
    if shares.count < 2:  # noqa: PLR2004 - one share would be the GPU
        return f"{source.name} is not shared: `shares.count` is {shares.count}, and at least 2 make sense"
    try:
        step = quantity.as_int(shares.memory_step)
    except quantity.QuantityError as error:
        return f"{source.name} is not shared: `shares.memoryStep` is no quantity: {error}"
    steps = source.gpu.memory_mebibytes * _MEBIBYTE // step if step > 0 else 0
    if steps < shares.count:
        return (
            f"{source.name} is not shared: its {source.gpu.memory_mebibytes}Mi of memory cannot be cut into "
            f"{shares.count} shares in steps of {shares.memory_step}; make `shares.memoryStep` smaller"
        )
    return ""


def _memory_share(gpu: Gpu, shares: Shares) -> DeviceCapacity:
    step = quantity.as_int(shares.memory_step)
    steps = gpu.memory_mebibytes * _MEBIBYTE // step
    policy = CapacityRequestPolicy(
        default=_bytes(steps // shares.count * step),
        valid_range=CapacityRequestPolicyRange(min=_bytes(step), step=_bytes(step)),
    )
    return DeviceCapacity(_bytes(steps * step), policy)


def _compute_share(shares: Shares) -> DeviceCapacity:
    policy = CapacityRequestPolicy(default="1", valid_range=CapacityRequestPolicyRange(min="1", step="1"))
    return DeviceCapacity(str(shares.count), policy)


def _bytes(amount: int) -> str:
    return str(quantity.of(amount, quantity.Format.BINARY_SI))


# --- partitions


def _partition(source: Source, partition: Partition) -> Device:
    profile, engines = partition.profile, partition.profile.engines
    attributes = {
        "type": _text("mig"),
        "profile": _text(profile.name),
        "parentUUID": _text(source.gpu.uuid),
        "placementStart": DeviceAttribute(int_=partition.placement.start),
    }
    capacity = {
        MEMORY: _bytes(profile.memory_mebibytes * _MEBIBYTE),
        "computeSlices": str(profile.compute_slices),
        "multiprocessors": str(engines.multiprocessors),
        "copyEngines": str(engines.copy_engines),
        "decoders": str(engines.decoders),
        "encoders": str(engines.encoders),
        "jpegEngines": str(engines.jpeg_engines),
        "ofaEngines": str(engines.ofa_engines),
    }
    return Device(
        device_name(source.name, partition),
        _attributes(source, attributes),
        {name: DeviceCapacity(value) for name, value in capacity.items()},
    )


# --- attributes


def _attributes(source: Source, own: Mapping[str, DeviceAttribute]) -> dict[str, DeviceAttribute]:
    gpu = source.gpu
    common = {
        "productName": _text(gpu.product),
        "architecture": _text(gpu.architecture),
        "cudaComputeCapability": _version(gpu.compute_capability),
        "driverVersion": _version(gpu.driver_version),
    }
    ours = {**own, **{name: value for name, value in common.items() if value.string or value.version}}
    vendors = {f"{VENDOR}/{name}": value for name, value in ours.items()}
    return {**ours, **vendors, PCI_BUS_ID: _text(gpu.address), **source.attributes}


def _text(text: str) -> DeviceAttribute:
    return DeviceAttribute(string=text.encode()[:_STRING_MAX].decode(errors="ignore"))


def _version(text: str) -> DeviceAttribute:
    """Return a version in three numbers without leading zeros, as the API wants them: 535.104.05 is 535.104.5."""
    parts = text.split(".")
    if not all(part.isdecimal() and part.isascii() for part in parts):
        return DeviceAttribute()
    numbers = [str(int(part)) for part in (*parts, "0", "0")]
    return DeviceAttribute(version=".".join(numbers[:_VERSION_PARTS]))
