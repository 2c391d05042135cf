"""What every back end is to the manager. Must not know any of them."""

from typing import Protocol

from jackfield.fabric_manager.hardware import Device
from jackfield.model.names import NodeName


class BackendError(Exception):
    """It did not work; the message says why."""


class Backend(Protocol):
    """Moves devices. Raises BackendError; any call may be repeated."""

    async def attach(self, device: Device, node: NodeName) -> None:
        """Bring the device to the machine; nothing if it is there."""

    async def detach(self, device: Device, node: NodeName) -> None:
        """Take the device from the machine; nothing if it is not there."""

    def close(self) -> None:
        """Let go of whatever is held."""
