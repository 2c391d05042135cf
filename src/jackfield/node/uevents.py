"""What the kernel says when a device comes, goes, or gets a driver: uevents, heard on a netlink socket.

Knows how a message is laid out, and that only the kernel's own are believed. Must not know what is done about one. A
machine on which nobody may listen is no fault: whoever looks now and then finds out as well.
"""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import msgspec

KOBJECT_UEVENT: Final = 15
"""The netlink family of uevents."""
KERNEL_GROUP: Final = 1
"""The multicast group that the kernel speaks to; udev speaks to another."""
KERNEL: Final = 0
"""The sender's id of the kernel; any process may send to the group, and has another."""
MESSAGE_BYTES_MAX: Final = 8192
BUFFER_BYTES: Final = 1 << 20
BURST_MAX: Final = 256
"""Messages that are read before others have their turn."""
SUBSYSTEMS: Final = (
    "pci",
    "cxl",
    "dax",
    "drm",
    "net",
    "infiniband",
    "infiniband_verbs",
    "nvme",
    "accel",
    "vfio-dev",
)


class Uevent(msgspec.Struct, frozen=True):
    """Something that happened to a device."""

    action: str
    """`add`, `remove`, `bind`, `unbind`, `change`."""
    path: str
    """Below sysfs."""
    subsystem: str


def parse(message: bytes) -> Uevent | None:
    """Return what the kernel says; None for what is not a uevent of a subsystem that devices belong to."""
    head, *lines = message.decode(errors="replace").split("\0")
    said = dict(line.partition("=")[::2] for line in lines)
    action, path, subsystem = said.get("ACTION", ""), said.get("DEVPATH", ""), said.get("SUBSYSTEM", "")
    if head != f"{action}@{path}" or subsystem not in SUBSYSTEMS:
        return None
    return Uevent(action, path, subsystem)


def kernel_socket() -> socket.socket:
    """Return a socket on which the kernel's uevents arrive. Raises OSError where nobody may listen."""
    made = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, KOBJECT_UEVENT)
    try:
        with suppress(OSError):  # a larger buffer is a comfort
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        made.bind((0, KERNEL_GROUP))
    except OSError:
        made.close()
        raise
    return made


class Uevents:
    """Calls back for what the kernel says, while the context is open."""

    def __init__(self, source: socket.socket, heard: Callable[[], None]) -> None:
        """`heard` is called after every message that matters, and after messages that were lost."""
        self._source = source
        self._heard = heard

    async def __aenter__(self) -> Self:
        self._source.setblocking(False)  # noqa: FBT003 - the standard library's own
        asyncio.get_running_loop().add_reader(self._source, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._source)
        self._source.close()

    def _read(self) -> None:
        told = False
        for _ in range(BURST_MAX):
            try:
                message, sender = self._source.recvfrom(MESSAGE_BYTES_MAX)
            except BlockingIOError:
                break
            except OSError:  # the buffer ran over: something was said that nobody heard
                told = True
                break
            told = told or (is_kernel(sender) and parse(message) is not None)
        if told:
            self._heard()


def is_kernel(sender: object) -> bool:
    """Whether the kernel sent it; a socket of another family has no such senders."""
    return not isinstance(sender, tuple) or sender[0] == KERNEL
