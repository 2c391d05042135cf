"""Builders for worlds small enough to read."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import (
    AllocationResult,
    CapacityRequirements,
    CELDeviceSelector,
    DeviceAllocationResult,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
)
from jackfield.model.device import (
    Counter,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceCounterConsumption,
)
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from jackfield.model.names import Uid
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, DeviceClassSpec, ResourcePool, ResourceSlice, ResourceSliceSpec

DRIVER = "gpu.example.com"
CLASSES = {
    "gpu": DeviceClass(
        metadata=ObjectMeta(name="gpu"),
        spec=DeviceClassSpec((DeviceSelector(CELDeviceSelector(f"device.driver == '{DRIVER}'")),)),
    ),
    "any": DeviceClass(metadata=ObjectMeta(name="any")),
}


def node(name: str = "n1", **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


def where(**labels: str) -> NodeSelector:
    expressions = tuple(NodeSelectorRequirement(key, "In", (value,)) for key, value in labels.items())
    return NodeSelector((NodeSelectorTerm(expressions),))


def device(
    name: str, *, model: str = "", numa: int | None = None, memory: str = "", **fields: object
) -> Device:
    attributes = {"model": DeviceAttribute(string=model)} if model else {}
    if numa is not None:
        attributes["numa"] = DeviceAttribute(int_=numa)
    capacity = {"memory": DeviceCapacity(memory)} if memory else {}
    return replace(Device(name, attributes=attributes, capacity=capacity), **fields)


def consumes(amount: str, counter_set: str = "whole") -> tuple[DeviceCounterConsumption, ...]:
    return (DeviceCounterConsumption(counter_set, {"memory": Counter(amount)}),)


def counters(amount: str, counter_set: str = "whole") -> tuple[CounterSet, ...]:
    return (CounterSet(counter_set, {"memory": Counter(amount)}),)


def devices(*names: str, **fields: object) -> tuple[Device, ...]:
    return tuple(replace(device(name), **fields) for name in names)


def slice_(
    listed: Sequence[Device] = (), name: str = "s", pool: str = "p", of: int = 1, **fields: object
) -> ResourceSlice:
    """Return a slice for all nodes, unless the fields say another."""
    limited = {"node_name", "node_selector", "per_device_node_selection"} & set(fields)
    spec = ResourceSliceSpec(DRIVER, ResourcePool(pool, 1, of), all_nodes=not limited, devices=tuple(listed))
    return ResourceSlice(metadata=ObjectMeta(name=name), spec=replace(spec, **fields))


def generation(number: int, one: ResourceSlice) -> ResourceSlice:
    """Return the slice in another generation of its pool."""
    return replace(one, spec=replace(one.spec, pool=replace(one.spec.pool, generation=number)))


def selects(expression: str) -> tuple[DeviceSelector, ...]:
    return (DeviceSelector(CELDeviceSelector(expression)),)


def wants(amount: str) -> CapacityRequirements:
    return CapacityRequirements({"memory": amount})


def request(name: str = "r", count: int = 1, **fields: object) -> DeviceRequest:
    return DeviceRequest(name, replace(ExactDeviceRequest("gpu", count=count), **fields))


def every(name: str = "r", **fields: object) -> DeviceRequest:
    return DeviceRequest(name, replace(ExactDeviceRequest("gpu", allocation_mode="All"), **fields))


def alternative(name: str, count: int = 1, **fields: object) -> DeviceSubRequest:
    return replace(DeviceSubRequest(name, "gpu", count=count), **fields)


def first_of(*alternatives: DeviceSubRequest, name: str = "r") -> DeviceRequest:
    return DeviceRequest(name, first_available=alternatives)


def claim(
    *requests: DeviceRequest, name: str = "c", constraints: Sequence[DeviceConstraint] = ()
) -> ResourceClaim:
    spec = ResourceClaimSpec(DeviceClaim(requests, tuple(constraints)))
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace="ns", uid=Uid(name)), spec=spec)


def same(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests, match_attribute=f"{DRIVER}/{attribute}")


def different(attribute: str, *requests: str) -> DeviceConstraint:
    return DeviceConstraint(requests, distinct_attribute=f"{DRIVER}/{attribute}")


def holding(*names: str, pool: str = "p", **fields: object) -> ResourceClaim:
    """Return an allocated claim that holds these devices."""
    results = tuple(
        replace(DeviceRequestAllocationResult("r", DRIVER, pool, name), **fields) for name in names
    )
    status = ResourceClaimStatus(allocation=AllocationResult(DeviceAllocationResult(results)))
    return replace(claim(request(), name="held"), status=status)


class World(msgspec.Struct):
    """Slices and claims that hold devices of them."""

    slices: Sequence[ResourceSlice]
    held: Sequence[ResourceClaim] = ()
    features: allocate.Features = allocate.Features()
    classes: Mapping[str, DeviceClass] = msgspec.field(default_factory=lambda: CLASSES)

    def allocator(self) -> allocate.Allocator:
        return allocate.Allocator(self.slices, self.classes, allocate.allocated(self.held), self.features)

    def allocations(self, *claims: ResourceClaim, at: Node | None = None) -> tuple[AllocationResult, ...]:
        """Return the allocations; fail where the node does not fit."""
        found = self.allocator().allocate(claims, at or node())
        assert not isinstance(found, allocate.NoFit), found
        return found

    def gives(self, *claims: ResourceClaim, at: Node | None = None) -> list[str] | str:
        """Return `request=device` for each result, or the reason why not."""
        found = self.allocator().allocate(claims, at or node())
        if isinstance(found, allocate.NoFit):
            return str(found.reason)
        return [f"{one.request}={one.device}" for each in found for one in each.devices.results]
