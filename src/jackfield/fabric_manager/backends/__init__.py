"""Back ends: who really moves a device. One file each, and what they have in common here.

Every call may be repeated, after a restart above all: what is attached already is attached, what is gone already is
detached. Must not know orders, books or who asked.
"""

from pathlib import Path

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends.backend import Backend, BackendError
from jackfield.fabric_manager.backends.commands import Commands
from jackfield.fabric_manager.backends.pci import Pci
from jackfield.fabric_manager.backends.qemu import Qemu
from jackfield.fabric_manager.backends.script import Script
from jackfield.fabric_manager.hardware import Device
from jackfield.model.names import NodeName
from jackfield.ports import Clock

__all__ = ["Backend", "BackendError", "Nobody", "of"]


class Nobody:
    """Only the books change."""

    async def attach(self, device: Device, node: NodeName) -> None:
        """Do nothing."""

    async def detach(self, device: Device, node: NodeName) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def of(settings: wiring.Backend, lock: Path, clock: Clock) -> Backend:
    """Return the back end that a file asks for; `lock` is a file that all managers of this lab share."""
    match settings:
        case wiring.Nobody():
            return Nobody()
        case wiring.Script():
            return Script(settings, Commands(lock, clock, settings.timeout_seconds))
        case wiring.Pci():
            return Pci(settings, Commands(lock, clock, settings.timeout_seconds), clock)
        case wiring.Qemu():
            return Qemu(settings)
