"""What the kernel says of devices is heard, and nobody else's word for it."""

import asyncio
import socket

import pytest

from jackfield.node import uevents
from jackfield.node.uevents import Uevent, Uevents

PATH = "/devices/pci0000:00/0000:00:01.0"


def message(action: str = "add", path: str = PATH, subsystem: str = "pci", head: str = "") -> bytes:
    lines = (
        head or f"{action}@{path}",
        f"ACTION={action}",
        f"DEVPATH={path}",
        f"SUBSYSTEM={subsystem}",
        "SEQNUM=7",
    )
    return "\0".join(lines).encode()


MESSAGES = {
    "a device comes": (message(), Uevent("add", PATH, "pci")),
    "a driver takes it": (message("bind"), Uevent("bind", PATH, "pci")),
    "something that is no device": (message(subsystem="block"), None),
    "udev's own words": (b"libudev\0\xfe\xed\xca\xfe" + message(), None),
    "a head that does not agree": (message(head="remove@/x"), None),
    "nothing": (b"", None),
    "no text": (b"\xff\xfe\0\xff", None),
}


@pytest.mark.parametrize(("said", "meant"), MESSAGES.values(), ids=MESSAGES)
def test_what_is_said_is_understood(said: bytes, meant: Uevent | None) -> None:
    assert uevents.parse(said) == meant


def test_every_burst_of_messages_is_told_once() -> None:
    heard: list[int] = []

    async def scene() -> None:
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        told = asyncio.Event()

        def hear() -> None:
            heard.append(1)
            told.set()

        with kernels:
            for one in (message(), message("bind"), message(subsystem="block")):
                kernels.send(one)
            async with Uevents(ours, hear):
                await told.wait()
                told.clear()
                kernels.send(message("remove"))
                await told.wait()

    asyncio.run(scene())
    assert len(heard) == 2


def test_what_is_of_no_interest_is_not_told() -> None:
    heard: list[str] = []

    async def scene() -> None:
        ours, kernels = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        told = asyncio.Event()

        def hear() -> None:
            heard.append("x")
            told.set()

        with kernels:
            async with Uevents(ours, hear):
                kernels.send(message(subsystem="block"))
                await asyncio.get_running_loop().run_in_executor(None, lambda: None)
                assert not told.is_set()
                kernels.send(message())
                await told.wait()

    asyncio.run(scene())
    assert heard == ["x"]


def test_the_kernel_itself_can_be_listened_to() -> None:
    try:
        source = uevents.kernel_socket()
    except OSError:
        return  # nobody may listen here, and then looking now and then has to do
    with source:
        assert source.getsockname()[1] == uevents.KERNEL_GROUP


@pytest.mark.parametrize(
    ("sender", "believed"), [((0, 1), True), ((4711, 1), False), (None, True), ("", True)]
)
def test_only_the_kernel_is_believed(sender: object, *, believed: bool) -> None:
    assert uevents.is_kernel(sender) == believed
