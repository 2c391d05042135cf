"""Builders for fleets small enough to read."""

from msgspec.structs import replace

from jackfield.core import allocate
from jackfield.model.claim import ResourceClaim
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.names import NodeName
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from unit.core.allocate.small_world import (
    World,
    device,
    devices,
    holding,
    node,
    selects,
    slice_,
)

MODEL_A = selects("device.attributes['gpu.example.com'].model == 'a'")


GOOD = device("d", model="a", numa=1, memory="4Gi")
DEFAULT = allocate.Features()
OFF = allocate.Features(binding_conditions=False, partitionable_devices=False)
TAINT = DeviceTaint("broken", effect="NoSchedule")


def names(*found: str) -> list[NodeName]:
    return [NodeName(one) for one in found]


def own(name: str, listed: tuple[Device, ...]) -> ResourceSlice:
    return slice_(listed, f"of-{name}", name, node_name=name)


def fleet(slices: list[ResourceSlice], nodes: list[Node], *held: ResourceClaim) -> allocate.Fleet:
    return allocate.Fleet(World(slices, held).allocator(), nodes)


def row(*names: str, size: int = 1) -> allocate.Fleet:
    """Return a fleet of nodes with so many devices each."""
    listed = devices(*(f"d{number}" for number in range(size)))
    return fleet([own(name, listed) for name in names], [node(name) for name in names])


def held_at(pool: str, *listed: str, name: str = "held", **fields: object) -> ResourceClaim:
    found = holding(*listed, pool=pool, **fields)
    return replace(found, metadata=replace(found.metadata, name=name))


def given(found: allocate.Fit | allocate.Nowhere) -> str:
    return found.node if isinstance(found, allocate.Fit) else "nowhere"
