"""What a container gets with a device of this node: its device files, and variables that say which device it is.

Knows how a device as the kernel shows it becomes CDI edits. Must not know claims, nor how a spec is written.
"""

from pathlib import Path
from typing import Final

from jackfield.driver.cdi import DeviceNode, Edits, NetDevice
from jackfield.model.host import HostDevice, HostNode
from jackfield.ports import Retry

VARIABLE: Final = "JACKFIELD_DEVICE_"
DEV: Final = Path("/dev")


def edits(name: str, known_as: str, device: HostDevice, dev: Path, *, interfaces: bool) -> Edits:
    """Return what a container gets with a device that is called `name` in its slice. Raises Retry.

    `interfaces` says whether its network interfaces move into the container with it.
    """
    return Edits(
        env=variables(name, known_as, device),
        device_nodes=tuple(_node(one, dev) for one in device.nodes if _is_there(one, dev)),
        net_devices=tuple(NetDevice(one.name, one.name) for one in device.interfaces) if interfaces else (),
    )


def variables(name: str, known_as: str, device: HostDevice) -> dict[str, str]:
    """Return what a process in the container can tell its device by; each device has variables of its own."""
    word = VARIABLE + "".join(letter if letter.isalnum() else "_" for letter in name.upper())
    return {word: known_as, f"{word}_ADDRESS": device.address}


def _is_there(node: HostNode, dev: Path) -> bool:
    """Whether a device file exists. One that only this device has must, or its container would not start."""
    if _path(node, dev).exists():
        return True
    if node.shared:
        return False
    raise Retry(
        f"{_path(node, dev)} does not exist yet: its driver is loaded, but has not made its device file"
    )


def _path(node: HostNode, dev: Path) -> Path:
    return dev / node.path.removeprefix("/dev/")


def _node(node: HostNode, dev: Path) -> DeviceNode:
    """The runtime looks the numbers up: they may be others by the time the container starts."""
    return DeviceNode(node.path, host_path="" if dev == DEV else str(_path(node, dev)))
