"""The documents of what is composed, one function each: machines, blocks, zones, devices, boxes and switches.

Knows the schemas' words for the lab and what is attached. Must not know HTTP, nor change anything.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from jackfield.codec.redfish import (
    ADD_BLOCK,
    BLOCKS,
    COMPOSITION,
    REMOVE_BLOCK,
    ZONES,
    BlockType,
    CompositionState,
    Health,
    ProcessorType,
)
from jackfield.fabric_manager.faces.redfish.documents import (
    CHASSIS,
    FABRICS,
    duration,
    link,
    resource,
    status,
)
from jackfield.fabric_manager.faces.redfish.names import Box, Names, device_uuid
from jackfield.fabric_manager.faces.redfish.protocol import Document
from jackfield.fabric_manager.hardware import Device
from jackfield.fabric_manager.orders import Entry, State
from jackfield.model.fabric import FabricDevice
from jackfield.model.names import NodeName, Seconds

BLOCK_TYPES: Final[Mapping[str, BlockType]] = {"cxlmemory": BlockType.MEMORY, "nic": BlockType.NETWORK}
PROCESSOR_TYPES: Final[Mapping[str, str]] = {"gpu": ProcessorType.GPU, "fpga": ProcessorType.FPGA}
OTHER: Final = "OEM"
"""The type of a processor that is neither of these."""
_STATES: Final[Mapping[State, CompositionState]] = {
    State.QUEUED: CompositionState.COMPOSING,
    State.ATTACHING: CompositionState.COMPOSING,
    State.ATTACHED: CompositionState.COMPOSED,
    State.DETACHING: CompositionState.COMPOSING,
}
_UNITS: Final[Mapping[str, int]] = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "": 1}
_QUANTITY: Final = re.compile(r"(\d{1,15})(Ki|Mi|Gi|Ti|)")


# --- machines


def system(names: Names, node: NodeName, blocks: list[str]) -> Document:
    """Return a machine with the blocks that it is made of, its own first."""
    path = names.system_path(node)
    actions = f"{path}/Actions"
    return resource(path, "ComputerSystem", node) | {
        "SystemType": "Composed",
        "HostName": node,
        "UUID": names.uuid(f"system/{node}"),
        "SerialNumber": names.uuid(f"serial/{node}"),
        "Status": status(),
        "Composition": {"UseCases": ["ExpandableSystem"]},
        "Memory": link(f"{path}/Memory"),
        "NetworkInterfaces": link(f"{path}/NetworkInterfaces"),
        "Processors": link(f"{path}/Processors"),
        "Links": {
            "ResourceBlocks": [link(one) for one in blocks],
            "ResourceBlocks@odata.count": len(blocks),
        },
        "Actions": {
            ADD_BLOCK: {"target": f"{actions}/ComputerSystem.AddResourceBlock"},
            REMOVE_BLOCK: {"target": f"{actions}/ComputerSystem.RemoveResourceBlock"},
        },
    }


# --- blocks


def composition_service(lasts: Seconds) -> Document:
    """Return the composition service."""
    return resource(COMPOSITION, "CompositionService", "Composing") | {
        "ServiceEnabled": True,
        "AllowOverprovisioning": False,
        "ReservationDuration": duration(lasts),
        "ResourceBlocks": link(BLOCKS),
        "ResourceZones": link(ZONES),
        "Status": status(),
    }


def compute_block(names: Names, node: NodeName) -> Document:
    """Return a machine's own block, which never leaves it."""
    return resource(names.compute_path(node), "ResourceBlock", f"{node} itself") | {
        "ResourceBlockType": [BlockType.COMPUTE],
        "CompositionStatus": _composition(CompositionState.COMPOSED, reserved=False, count=1),
        "Status": status(),
        "Links": {
            "ComputerSystems": [link(names.system_path(node))],
            "Zones": [link(one) for one in names.zones_of(node)],
        },
    }


def device_block(names: Names, device: FabricDevice, holder: Entry | None, *, reserved: bool) -> Document:
    """Return a device's block."""
    state = _state(device, holder)
    composing = state is CompositionState.COMPOSING and not device.node
    path = names.block_path(device.id)
    box = names.box_of[device.id]
    members = part_member(device.type)
    made = resource(path, "ResourceBlock", f"{device.model} {device.id}") | {
        "ResourceBlockType": [BLOCK_TYPES.get(device.type, BlockType.PROCESSOR)],
        "CompositionStatus": _composition(
            state, reserved=reserved or composing, count=int(bool(device.node))
        ),
        "Status": _device_status(device),
        members: [link(f"{path}/{members}/{names.blocks[device.id]}")],
        "Links": {
            "ComputerSystems": [link(names.system_path(device.node))] if device.node else [],
            "Chassis": [link(f"{CHASSIS}/{box}")],
            "Zones": [link(f"{ZONES}/{box}")],
        },
    }
    return made | ({"Client": holder.owner} if holder is not None else {})


def _state(device: FabricDevice, holder: Entry | None) -> CompositionState:
    """Return what a block is doing; of one that is shown where it was, what it did there."""
    there = holder.node if holder is not None and holder.present else ""
    if holder is not None and there == device.node:
        return _STATES[holder.state]
    if device.node:
        return CompositionState.COMPOSED
    return CompositionState.UNUSED if device.healthy else CompositionState.UNAVAILABLE


def _composition(state: CompositionState, *, reserved: bool, count: int) -> Document:
    return {
        "CompositionState": state,
        "Reserved": reserved,
        "MaxCompositions": 1,
        "NumberOfCompositions": count,
        "SharingCapable": False,
        "SharingEnabled": False,
    }


def part_member(kind: str) -> str:
    """Return the property of a block, and of a machine, in which a device of this type stands."""
    words = {BlockType.MEMORY: "Memory", BlockType.NETWORK: "NetworkInterfaces"}
    return words.get(BLOCK_TYPES.get(kind, BlockType.PROCESSOR), "Processors")


def zone(names: Names, box: Box, nodes: Iterable[NodeName], devices: Iterable[FabricDevice]) -> Document:
    """Return a zone: machines and blocks that can go together."""
    members = [names.compute_path(node) for node in nodes]
    members += [names.block_path(device.id) for device in devices]
    return resource(f"{ZONES}/{box.id}", "Zone", f"Behind {box.name}") | {
        "ZoneType": "ZoneOfResourceBlocks",
        "Status": status(),
        "Links": {
            "ResourceBlocks": [link(one) for one in members],
            "ResourceBlocks@odata.count": len(members),
        },
    }


# --- devices


def part(path: str, device: FabricDevice, known: Device, names: Names) -> Document:
    """Return a device as a processor, as memory or as a network interface, wherever it is shown."""
    match part_member(device.type):
        case "Memory":
            made = resource(path, "Memory", f"{device.model} {device.id}") | {
                "MemoryType": "DRAM",
                "CapacityMiB": mebibytes(known.batch.capacity.get("memory", "")),
            }
            return _given(made | _maker(device, known))
        case "NetworkInterfaces":
            adapter = f"{CHASSIS}/{names.box_of[device.id]}/NetworkAdapters/{names.blocks[device.id]}"
            return resource(path, "NetworkInterface", f"{device.model} {device.id}") | {
                "Status": _device_status(device),
                "Links": {"NetworkAdapter": link(adapter)},
            }
        case _:
            return _given(_processor(path, device, known))


def adapter(path: str, device: FabricDevice, known: Device) -> Document:
    """Return a network device as the adapter that it is."""
    return _given(resource(path, "NetworkAdapter", f"{device.model} {device.id}") | _maker(device, known))


def _processor(path: str, device: FabricDevice, known: Device) -> Document:
    memory = mebibytes(known.batch.capacity.get("memory", ""))
    width = known.batch.link_width
    return (
        resource(path, "Processor", f"{device.model} {device.id}")
        | {
            "ProcessorType": PROCESSOR_TYPES.get(device.type, OTHER),
            "UUID": device_uuid(known),
            "MaxTDPWatts": known.batch.power_watts or None,
            "MemorySummary": {"TotalMemorySizeMiB": memory} if memory is not None else None,
            "SystemInterface": {"InterfaceType": "PCIe", "PCIe": {"MaxLanes": width, "LanesInUse": width}},
        }
        | _maker(device, known)
    )


def _maker(device: FabricDevice, known: Device) -> Document:
    return {
        "Manufacturer": known.batch.attributes.get("vendor"),
        "Model": device.model,
        "SerialNumber": known.serial,
        "Status": _device_status(device),
    }


def _given(made: Document) -> Document:
    """Leave out what is not known."""
    return {name: value for name, value in made.items() if value is not None}


def _device_status(device: FabricDevice) -> Document:
    return status(
        "Enabled" if device.node else "StandbyOffline", Health.OK if device.healthy else Health.CRITICAL
    )


def mebibytes(quantity: str) -> int | None:
    """Return a quantity such as 80Gi in MiB; nothing if it is not understood."""
    found = _QUANTITY.fullmatch(quantity)
    return int(found[1]) * _UNITS[found[2]] >> 20 if found else None


# --- boxes and switches


def chassis(names: Names, box: Box, devices: Iterable[FabricDevice]) -> Document:
    """Return the box that devices stand in."""
    path = f"{CHASSIS}/{box.id}"
    links: Document = {"ResourceBlocks": [link(names.block_path(one.id)) for one in devices]}
    if box.switch:
        links["Switches"] = [link(f"{FABRICS}/{names.fabric}/Switches/{box.id}")]
    return resource(path, "Chassis", f"Box of {box.name}") | {
        "ChassisType": "Expansion",
        "NetworkAdapters": link(f"{path}/NetworkAdapters"),
        "Status": status(),
        "Links": links,
    }


def fabric(names: Names, name: str) -> Document:
    """Return the fabric."""
    path = f"{FABRICS}/{names.fabric}"
    return resource(path, "Fabric", name) | {
        "FabricType": "PCIe",
        "Switches": link(f"{path}/Switches"),
        "Status": status(),
    }


def switch(names: Names, box: Box) -> Document:
    """Return a switch."""
    path = f"{FABRICS}/{names.fabric}/Switches/{box.id}"
    return resource(path, "Switch", box.name) | {
        "SwitchType": "PCIe",
        "SupportedProtocols": ["PCIe"],
        "Ports": link(f"{path}/Ports"),
        "Status": status(),
        "Links": {"Chassis": link(f"{CHASSIS}/{box.id}")},
    }


def port(path: str, name: str, kind: str, width: int) -> Document:
    """Return a port of a switch: where a machine or a device is plugged in."""
    return resource(path, "Port", name) | {
        "PortId": name,
        "PortType": kind,
        "PortProtocol": "PCIe",
        "Width": width,
        "ActiveWidth": width,
        "Status": status(),
    }
