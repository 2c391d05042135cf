"""The lab under Redfish's names: systems, resource blocks, zones and the boxes that devices stand in.

Knows hardware, as it is in the lab's file. Must not know what is attached, nor HTTP.
"""

import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from jackfield.codec.redfish import BLOCKS, SYSTEMS, ZONES
from jackfield.fabric_manager.hardware import Device, Hardware
from jackfield.model.names import NodeName, PhysicalID

T = TypeVar("T", bound=str)

FACE: Final = "redfish"
"""The owner of the orders that come from here, and the name under which the face notes things."""
SPACE: Final = uuid.UUID("2f0e9d3a-6a55-5d0c-9d8e-77b1f3a5c1e4")
"""The name space in which things get their UUIDs, and ids where their names cannot stand in a path."""
EVERYWHERE: Final = "everywhere"
"""The box and zone of devices behind no switch, which every machine reaches."""
COMPUTE: Final = "compute-"
"""Before a machine's name this is its own block."""
_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,251}")


class Box(msgspec.Struct, frozen=True):
    """A switch, the devices behind it and the machines that reach them: chassis and zone alike."""

    id: str
    name: str
    switch: str
    nodes: tuple[NodeName, ...]
    devices: tuple[PhysicalID, ...]


class Names:
    """Ids by what they stand for, and the other way round."""

    def __init__(self, hardware: Hardware) -> None:
        self.fabric = _id("fabric", hardware.name)
        self._space = uuid.uuid5(SPACE, hardware.name)
        self.systems = _ids("system", hardware.machines)
        self.nodes: Mapping[str, NodeName] = {made: name for name, made in self.systems.items()}
        self.blocks = _ids("block", hardware.devices)
        self.devices: Mapping[str, PhysicalID] = {made: name for name, made in self.blocks.items()}
        self.computes = {node: self._compute(node) for node in hardware.machines}
        self.compute_nodes: Mapping[str, NodeName] = {made: node for node, made in self.computes.items()}
        self.boxes: Mapping[str, Box] = {box.id: box for box in _boxes(hardware)}
        self.box_of: Mapping[PhysicalID, str] = {
            device: box.id for box in self.boxes.values() for device in box.devices
        }

    def _compute(self, node: NodeName) -> str:
        made = f"{COMPUTE}{self.systems[node]}"
        return made if made not in self.devices else self.uuid(f"compute/{node}")

    def uuid(self, what: str) -> str:
        """Return the UUID of something; the same for ever."""
        return str(uuid.uuid5(self._space, what))

    def system_path(self, node: NodeName) -> str:
        """Return where a machine is shown."""
        return f"{SYSTEMS}/{self.systems[node]}"

    def block_path(self, device: PhysicalID) -> str:
        """Return where a device's block is shown."""
        return f"{BLOCKS}/{self.blocks[device]}"

    def compute_path(self, node: NodeName) -> str:
        """Return where a machine's own block is shown."""
        return f"{BLOCKS}/{self.computes[node]}"

    def zones_of(self, node: NodeName) -> list[str]:
        """Return where the zones are shown that a machine is in."""
        return [f"{ZONES}/{box.id}" for box in self.boxes.values() if node in box.nodes]


def device_uuid(device: Device) -> str:
    """Return a device's UUID: what its serial number has after any prefix."""
    return device.serial.removeprefix("GPU-")


def _ids(kind: str, names: Iterable[T]) -> dict[T, str]:
    return {name: _id(kind, name) for name in names}


def _id(kind: str, name: str) -> str:
    """Return the name itself where it can stand in a path."""
    return name if _SAFE.fullmatch(name) else str(uuid.uuid5(SPACE, f"{kind}/{name}"))


def _boxes(hardware: Hardware) -> Iterable[Box]:
    behind: dict[str, list[PhysicalID]] = {switch: [] for switch in hardware.switches}
    for device in hardware.devices.values():
        behind.setdefault(device.batch.switch, []).append(device.id)
    for switch, devices in behind.items():
        reaching = tuple(
            node
            for node, machine in hardware.machines.items()
            if not switch or not machine.ports or any(port.switch == switch for port in machine.ports)
        )
        made = _id("box", switch) if switch else _everywhere(behind)
        yield Box(made, switch or EVERYWHERE, switch, reaching, tuple(devices))


def _everywhere(switches: Iterable[str]) -> str:
    return EVERYWHERE if EVERYWHERE not in switches else str(uuid.uuid5(SPACE, EVERYWHERE))
