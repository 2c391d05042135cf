"""All devices of a node, as its kernel shows them in sysfs.

Knows where sysfs, proc and the device files are: a container sees the host's elsewhere, and tests bring their own.
Must not know which devices matter to anybody. Nothing is remembered: whoever asks again, looks again.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from jackfield.model.host import HostDevice
from jackfield.node import memory
from jackfield.node.pci import Known, Pci


class Roots(msgspec.Struct, frozen=True):
    """Where the host's trees are."""

    sysfs: Path = Path("/sys")
    proc: Path = Path("/proc")
    dev: Path = Path("/dev")


class Insight(Protocol):
    """A vendor's own library, where it is installed: it knows more of its devices than the kernel does."""

    def known(self) -> Mapping[str, Known]:
        """Return what it says, by PCI address as the kernel writes it; nothing if it cannot be asked just now."""


class Sysfs:
    """The devices of one machine."""

    def __init__(self, roots: Roots = Roots(), insights: tuple[Insight, ...] = ()) -> None:
        self.roots = roots
        self.pci = Pci(roots.sysfs, roots.proc)
        self._insights = insights

    def devices(self) -> Iterator[HostDevice]:
        """Look at every device that could be somebody's: on PCI, without bridges, and memory regions behind CXL.

        Each is looked at when it is asked for: all of them together take so long that others would notice.
        """
        known: dict[str, Known] = {}
        for one in self._insights:
            known |= one.known()
        yield from (one for one in self.pci.devices(known) if not one.bridge)
        yield from memory.cxl_regions(self.roots.sysfs)

    def signature(self) -> tuple[object, ...]:
        """Return something cheap that is another whenever a device has come, gone or got another driver."""
        return (self.pci.signature(), memory.region_names(self.roots.sysfs))

    def functions(self, address: str) -> tuple[str, ...]:
        """Return all functions of the device that has this one: they come and go together. Virtual ones do not."""
        slot, _, function = address.rpartition(".")
        if not slot or not function or self.pci.is_virtual(address):
            return (address,)
        return tuple(one for one in self.pci.addresses() if one.rpartition(".")[0] == slot)
