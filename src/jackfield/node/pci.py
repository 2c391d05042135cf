"""PCI devices as sysfs shows them: what they are, where they hang, and what they are known by.

Knows the kernel's files of a PCI device, and those of the drivers that say more. Must not know which of them matter to
anybody.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from jackfield.model.host import HostDevice, HostNode
from jackfield.node import files, nics

NVIDIA: Final = "10de"
AMD: Final = "1002"
SERIAL_NUMBER: Final = 0x0003
"""The extended capability that holds a device's serial number."""
CAPABILITIES: Final = 0x100
"""Where extended capabilities begin in a device's configuration space, if it has any."""
CAPABILITIES_MAX: Final = 128
"""There is room for no more; a list that goes on is broken."""
CONFIGURATION_BYTES: Final = 4096
MEMORY_WINDOW: Final = 0x200
"""The flag of a memory window in a device's `resource`."""
WINDOWS: Final = 6
_ONES: Final = 0xFFFFFFFF
_CLASSES_WITH_FILES: Final = (
    "drm",
    "infiniband_verbs",
    "infiniband_mad",
    "accel",
    "nvme",
    "misc",
    "uio",
    "vfio-dev",
)
_BRIDGE: Final = "06"


class Known(msgspec.Struct, frozen=True):
    """What a vendor's own library says of a device, where it is there."""

    uuid: str = ""
    serial: str = ""
    model: str = ""
    memory_bytes: int = 0
    nodes: tuple[HostNode, ...] = ()


NOTHING: Final = Known()


class Pci:
    """The PCI bus of one machine."""

    def __init__(self, sysfs: Path, proc: Path) -> None:
        self._devices = str(sysfs / "bus" / "pci" / "devices")
        self._proc = str(proc / "driver" / "nvidia")

    def addresses(self) -> tuple[str, ...]:
        """Return what is on the bus."""
        return files.names(self._devices)

    def signature(self) -> tuple[tuple[str, str], ...]:
        """Return what changes when a device comes, goes, or gets another driver; far cheaper than to look at it all."""
        return tuple((one, files.link(f"{self._devices}/{one}/driver")) for one in self.addresses())

    def path(self, address: str) -> str:
        """Return the folder of a device."""
        return f"{self._devices}/{address}"

    def is_virtual(self, address: str) -> bool:
        """Whether it is a virtual function of another."""
        return files.link(f"{self._devices}/{address}/physfn") != ""

    def devices(self, known: Mapping[str, Known]) -> Iterator[HostDevice]:
        """Look at everything on the bus, by address; `known` is what vendors' libraries say, by address."""
        found = (self._device(one, known.get(one, NOTHING)) for one in self.addresses())
        return (one for one in found if one is not None)

    def _device(self, address: str, known: Known) -> HostDevice | None:
        folder = f"{self._devices}/{address}"
        vendor, pci_class = _hex(f"{folder}/vendor"), _hex(f"{folder}/class")
        if not vendor or not pci_class:
            return None  # it goes while it is looked at
        found = HostDevice(
            address,
            vendor=vendor,
            device=_hex(f"{folder}/device"),
            pci_class=pci_class,
            pcie_root=root(folder),
            numa_node=files.number(f"{folder}/numa_node", -1),
            link_width=files.number(f"{folder}/current_link_width", 0),
            driver=files.link(f"{folder}/driver"),
            parent=files.link(f"{folder}/physfn"),
            bridge=pci_class.startswith(_BRIDGE),
        )
        return found if found.bridge else self._described(found, folder, known)

    def _described(self, found: HostDevice, folder: str, known: Known) -> HostDevice:
        told = self._told(found, folder)
        memory = known.memory_bytes or told.memory_bytes or largest_window(files.text(f"{folder}/resource"))
        nodes = {one.path: one for one in (*_nodes(folder, found), *told.nodes, *known.nodes)}
        return msgspec.structs.replace(
            found,
            uuid=known.uuid or told.uuid,
            serial=known.serial or told.serial or serial_number(_configuration(folder)),
            model=known.model or told.model or files.text(f"{folder}/label"),
            memory_bytes=memory,
            nodes=tuple(nodes[path] for path in sorted(nodes)),
            interfaces=nics.interfaces(f"{folder}/net"),
            rdma=files.names(f"{folder}/infiniband"),
            blocks=_blocks(folder),
        )

    def _told(self, found: HostDevice, folder: str) -> Known:
        """What the device's driver says of it in files of its own."""
        if found.vendor == NVIDIA and found.driver == "nvidia":
            return self._nvidia(found.address)
        if found.vendor == AMD and found.driver == "amdgpu":
            unique = files.text(f"{folder}/unique_id")
            return Known(
                serial=files.text(f"{folder}/serial_number") or unique,
                uuid=f"GPU-{unique}" if unique else "",
                model=files.text(f"{folder}/product_name"),
                memory_bytes=files.number(f"{folder}/mem_info_vram_total", 0),
                nodes=(HostNode("/dev/kfd", shared=True),),
            )
        return NOTHING

    def _nvidia(self, address: str) -> Known:
        said = files.fields(files.text(f"{self._proc}/gpus/{address}/information"), ":")
        minor = said.get("Device Minor", "")
        nodes = tuple(HostNode(path, shared=True) for path in ("/dev/nvidia-uvm", "/dev/nvidiactl"))
        own = (HostNode(f"/dev/nvidia{minor}", 195, int(minor)),) if minor.isdigit() else ()
        uuid = said.get("GPU UUID", "")
        return Known(
            uuid="" if "?" in uuid else uuid, model=said.get("Model", ""), nodes=(*own, *nodes) if own else ()
        )


# --- single facts


def root(folder: str) -> str:
    """Return the root complex that a device's link leads through, such as `pci0000:17`."""
    try:
        where = os.readlink(folder)  # noqa: PTH115 - its last part leads there; all parts would take ten times as long
    except OSError:
        where = folder
    parts = where.split("/")
    return next((one for one in parts if one.startswith("pci") and ":" in one), "")


def serial_number(configuration: bytes) -> str:
    """Return the Device Serial Number of a configuration space, as lspci writes it; nothing if it has none."""
    place = CAPABILITIES
    for _ in range(CAPABILITIES_MAX):
        header = int.from_bytes(configuration[place : place + 4], "little")
        if place < CAPABILITIES or header in (0, _ONES):
            return ""
        if header & 0xFFFF == SERIAL_NUMBER:
            number = configuration[place + 4 : place + 12]
            blank = len(number) < len("12345678") or len(set(number)) == 1
            return "" if blank else "-".join(f"{one:02x}" for one in reversed(number))
        place = header >> 20
    return ""


def largest_window(resource: str) -> int:
    """Return the size of the largest memory window (BAR) of a device."""
    sizes = [0]
    for line in resource.splitlines()[:WINDOWS]:
        start, end, flags = (*(files.whole(one, 0) for one in line.split()), 0, 0, 0)[:3]
        if end > start and flags & MEMORY_WINDOW:
            sizes.append(end - start + 1)
    return max(sizes)


def _configuration(folder: str) -> bytes:
    return files.read(f"{folder}/config", CONFIGURATION_BYTES)


def _hex(path: str) -> str:
    return files.text(path).removeprefix("0x")


def _nodes(folder: str, found: HostDevice) -> list[HostNode]:
    """The device files that the kernel made for it."""
    made = []
    for kind in _CLASSES_WITH_FILES:
        for one in files.names(f"{folder}/{kind}"):
            said = files.fields(files.text(f"{folder}/{kind}/{one}/uevent"), "=")
            if said.get("DEVNAME"):
                major, minor = (files.whole(said.get(name, ""), -1) for name in ("MAJOR", "MINOR"))
                made.append(HostNode(f"/dev/{said['DEVNAME']}", major, minor))
    group = files.link(f"{folder}/iommu_group")
    if found.driver == "vfio-pci" and group:
        made += [HostNode(f"/dev/vfio/{group}"), HostNode("/dev/vfio/vfio", shared=True)]
    if any(one.path.startswith("/dev/infiniband/") for one in made):
        made.append(HostNode("/dev/infiniband/rdma_cm", shared=True))
    return made


def _blocks(folder: str) -> tuple[str, ...]:
    controllers = files.names(f"{folder}/nvme")
    inside = [
        one for name in controllers for one in files.names(f"{folder}/nvme/{name}") if one.startswith(name)
    ]
    return (*inside, *files.names(f"{folder}/block"))
