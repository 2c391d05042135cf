"""What a node's own eyes see of its devices, and what it has prepared.

Knows values only. Must not know how a device is found.
"""

from enum import StrEnum

import msgspec

from jackfield.model.names import Key, PhysicalID, Uid


class Identity(StrEnum):
    """What a device on a node can be known by; a manager names devices by one of these."""

    UUID = "uuid"
    SERIAL = "serial"
    ADDRESS = "address"


class Seen(msgspec.Struct, frozen=True):
    """A device that is present on the node."""

    physical: PhysicalID
    device: str
    """As the node knows it: a GPU's UUID."""
    address: str = ""
    """Its PCI address."""
    uuid: str = ""
    serial: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """What the node's checkpoint says: a device prepared for a claim."""

    uid: Uid
    claim: Key
    physical: PhysicalID
    device: str
    """The DRA name, `driver/pool/device`."""
    seen: PhysicalID = PhysicalID("")
    """The device as the node itself names it (`Seen.physical`)."""
    requests: tuple[str, ...] = ()
    """The claim's requests that it was allocated for."""
    share_id: str = ""
    """Which share of the device it is, where several claims have one."""
    pod_claim_name: str = ""
    """What the pod calls a claim that was made from a template."""


class Facts(msgspec.Struct, frozen=True):
    """All that a node knows at one moment."""

    seen: tuple[Seen, ...] = ()
    prepared: tuple[Prepared, ...] = ()


# --- what there is to know of a device


class HostNode(msgspec.Struct, frozen=True, order=True):
    """A device file on the host."""

    path: str
    """As a container would see it, `/dev/...`."""
    major: int = -1
    minor: int = -1
    """Both negative where the kernel does not say."""
    shared: bool = False
    """Whether other devices have it too, such as `/dev/nvidiactl`: who has it open need not use this one."""


class Interface(msgspec.Struct, frozen=True, order=True):
    """A network interface of a device."""

    name: str
    mac: str = ""
    up: bool = False
    speed_megabits: int = 0
    mtu: int = 0


class HostDevice(msgspec.Struct, frozen=True):
    """A device as the node's kernel, and its driver's files, describe it."""

    address: str
    """Its PCI address, or what else its bus calls it."""
    vendor: str = ""
    """PCI's number for it, such as `10de`."""
    device: str = ""
    """PCI's number for it."""
    pci_class: str = ""
    """Six digits, such as `030200`."""
    pcie_root: str = ""
    """The root complex that it hangs on, such as `pci0000:17`."""
    numa_node: int = -1
    """Negative where the kernel does not say."""
    serial: str = ""
    uuid: str = ""
    model: str = ""
    """What its driver calls it."""
    link_width: int = 0
    """PCI Express lanes in use."""
    memory_bytes: int = 0
    """Its own memory; where its driver does not say, the largest window onto it."""
    driver: str = ""
    """The kernel's driver that has it; empty for none."""
    parent: str = ""
    """Of a virtual function: the address of its physical one."""
    bridge: bool = False
    """Whether it is part of the bus, and so never somebody's device."""
    nodes: tuple[HostNode, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    rdma: tuple[str, ...] = ()
    """Its RDMA devices, such as `mlx5_0`."""
    blocks: tuple[str, ...] = ()
    """Its disks, such as `nvme0n1`."""
