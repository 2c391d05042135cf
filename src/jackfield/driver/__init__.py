"""The kit for driver writers: publish devices and prepare claims in a few lines.

    from jackfield import driver

    class Lamps(driver.Driver):
        name = "lamps.example.com"

        def devices(self):
            yield driver.device("desk", attributes={"colour": "warm", "watts": 9})

        async def prepare(self, share):
            return driver.Edits(env={"LAMP": share.device})

    driver.main(Lamps())

Knows the words that are public; `docs/drivers.md` explains them. What needs gRPC is imported when it is asked for, so
that values can be made, and drivers tested, without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from jackfield.core.offer import Pool
from jackfield.driver.cdi import DeviceNode, Edits, Hook, Mount, NetDevice
from jackfield.driver.device import AttributeValue, BadDevice, Capacity, Version, counters, device, taint
from jackfield.driver.driver import Driver, Prepared, Share
from jackfield.driver.entry import Network
from jackfield.driver.sockets import Places
from jackfield.model.device import CounterSet, Device
from jackfield.ports import Refused, Retry

if TYPE_CHECKING:
    from jackfield.driver.command_line import command, main
    from jackfield.driver.health import DeviceHealth, Health
    from jackfield.driver.kit import Kit

__all__ = [
    "AttributeValue",
    "BadDevice",
    "Capacity",
    "CounterSet",
    "Device",
    "DeviceHealth",
    "DeviceNode",
    "Driver",
    "Edits",
    "Health",
    "Hook",
    "Kit",
    "Mount",
    "NetDevice",
    "Network",
    "Places",
    "Pool",
    "Prepared",
    "Refused",
    "Retry",
    "Share",
    "Version",
    "command",
    "counters",
    "device",
    "main",
    "taint",
]

_LATER = {
    "DeviceHealth": "health",
    "Health": "health",
    "Kit": "kit",
    "command": "command_line",
    "main": "command_line",
}
"""What needs more than this package, and the module that has it."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    except ModuleNotFoundError as error:
        raise ImportError(f"driver.{name} needs {error.name}: pip install 'jackfield[driver]'") from error
