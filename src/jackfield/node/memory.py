"""Memory as sysfs shows it: regions behind CXL, and huge pages by NUMA node.

Knows the kernel's files of both. Must not know who wants memory.
"""

from pathlib import Path
from typing import Final

import msgspec

from jackfield.model.host import HostDevice, HostNode
from jackfield.node import files

KIBI: Final = 1024
CXL_MEMORY: Final = "050210"
"""The class by which PCI calls a CXL memory device; a region has none of its own."""
_PAGES: Final = "hugepages-"
_CXL: Final = "bus/cxl/devices"


class HugePages(msgspec.Struct, frozen=True, order=True):
    """Huge pages of one size on one NUMA node."""

    numa_node: int
    page_bytes: int
    total: int
    free: int


def hugepages(sysfs: Path) -> tuple[HugePages, ...]:
    """Return the huge pages of each NUMA node and size; a machine without NUMA is one node, 0."""
    found = []
    nodes = {
        numa_node(one): sysfs / "devices/system/node" / one
        for one in files.names(sysfs / "devices/system/node")
    }
    places = {number: folder / "hugepages" for number, folder in nodes.items() if number >= 0}
    for number, folder in (places or {0: sysfs / "kernel/mm/hugepages"}).items():
        for one in files.names(folder):
            kibibytes = one.removeprefix(_PAGES).removesuffix("kB")
            if one.startswith(_PAGES) and kibibytes.isdigit():
                total, free = (
                    files.number(folder / one / name, 0) for name in ("nr_hugepages", "free_hugepages")
                )
                found.append(HugePages(number, int(kibibytes) * KIBI, total, free))
    return tuple(sorted(found))


def numa_node(name: str) -> int:
    """Return the number of a NUMA node's folder; negative if it is none."""
    number = name.removeprefix("node")
    return int(number) if name.startswith("node") and number.isdigit() else -1


def cxl_regions(sysfs: Path) -> tuple[HostDevice, ...]:
    """Return the memory regions that CXL devices make up, each known by its UUID where it has one."""
    return tuple(_region(sysfs, sysfs / _CXL / one) for one in region_names(sysfs))


def region_names(sysfs: Path) -> tuple[str, ...]:
    """Return what the kernel calls the regions."""
    there = files.names(sysfs / _CXL)
    return tuple(one for one in there if one.startswith("region") and one.removeprefix("region").isdigit())


def _region(sysfs: Path, folder: Path) -> HostDevice:
    inside = [one for one in files.names(folder) if one.startswith("dax_region")]
    ways = [one for name in inside for one in files.names(folder / name) if one.startswith("dax")]
    nodes = [_dax(sysfs / "bus/dax/devices" / one) for one in ways]
    places = [files.number(sysfs / "bus/dax/devices" / one / "target_node", -1) for one in ways]
    return HostDevice(
        folder.name,
        uuid=files.text(folder / "uuid"),
        numa_node=max(places, default=-1),
        memory_bytes=files.number(folder / "size", 0),
        driver=files.link(folder / "driver"),
        pci_class=CXL_MEMORY,
        nodes=tuple(one for one in nodes if one.major >= 0),
    )


def _dax(folder: Path) -> HostNode:
    major, _, minor = files.text(folder / "dev").partition(":")
    return HostNode(f"/dev/{folder.name}", files.whole(major, -1), files.whole(minor, -1))
