"""Network interfaces as sysfs shows them.

Knows the files of an interface. Must not know what device it belongs to, nor who uses it.
"""

from typing import Final

from jackfield.model.host import Interface
from jackfield.node import files

UP: Final = 0x1
"""The flag of an interface that somebody has brought up."""


def interfaces(folder: str) -> tuple[Interface, ...]:
    """Return the interfaces in a folder such as a device's `net`; those in another network namespace are not in it."""
    return tuple(_interface(f"{folder}/{name}", name) for name in files.names(folder))


def _interface(folder: str, name: str) -> Interface:
    return Interface(
        name,
        mac=files.text(f"{folder}/address"),
        up=bool(files.number(f"{folder}/flags", 0) & UP),
        speed_megabits=max(0, files.number(f"{folder}/speed", 0)),
        mtu=files.number(f"{folder}/mtu", 0),
    )
