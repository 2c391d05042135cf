"""A real QEMU, by software emulation: devices are plugged into running guests and unplugged again. `make guests` asks.

One guest sits in its firmware, which any QEMU has, with PCIe hot-plug: there QEMU alone shows what is plugged. The
other one is Linux, whose kernel must notice the device, and agree before it goes; its console is the witness.
"""

import asyncio
import stat
import struct
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from guests.machine import KERNEL, SECONDS_MAX, member, q35
from jackfield.cli.clock import WallClock
from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends.qmp import Monitor
from jackfield.fabric_manager.hardware import Hardware
from jackfield.model.fabric import Done
from jackfield.model.names import ModelName, NodeName, Seconds
from unit.fabric_manager.lab import SMALL, managing, order, places
from unit.fabric_manager.test_qemu import settled

EDU = "[1234:11e8]"
"""What a kernel prints of the device that QEMU calls edu."""


def machine(folder: Path, *more: str) -> list[str]:
    return q35(
        *("-m", "256", "-qmp", f"unix:{folder}/manager.sock,server=on,wait=off"),
        *("-qmp", f"unix:{folder}/witness.sock,server=on,wait=off"),
        *more,
    )


def in_firmware(folder: Path) -> list[str]:
    """A guest that finds nothing to boot; it leaves slots to whoever plugs."""
    return machine(
        folder,
        *("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"),
        *("-chardev", f"file,id=console,path={folder}/console"),
        *("-device", "isa-debugcon,iobase=0x402,chardev=console"),
    )


def in_linux(folder: Path) -> list[str]:
    """A guest whose kernel has nothing to do but to mind its devices."""
    program = member("init", stat.S_IFREG | 0o755, _idle_program())
    (folder / "initramfs").write_bytes(program + member("TRAILER!!!", 0))
    return machine(
        folder,
        *("-kernel", str(KERNEL), "-initrd", f"{folder}/initramfs"),
        *("-append", "console=ttyS0 loglevel=7", "-serial", f"file:{folder}/console"),
    )


def _idle_program() -> bytes:
    """Return a program for x86-64 Linux that calls pause for ever."""
    code = b"\xb8\x22\x00\x00\x00\x0f\x05\xeb\xf7"  # mov eax, 34; syscall; jmp to the first
    base, size = 0x400000, 64 + 56 + len(code)
    header = struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + 64 + 56, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return b"\x7fELF\x02\x01\x01" + bytes(9) + header + segment + code


class Guest:
    """A guest that runs, and what can be seen of it without the manager."""

    def __init__(self, folder: Path) -> None:
        self._console = folder / "console"
        self._monitor = Monitor(str(folder / "witness.sock"), Seconds(SECONDS_MAX))

    def close(self) -> None:
        self._monitor.close()

    def said(self, words: str) -> int:
        """Return how often its console said so."""
        return self._console.read_text(errors="replace").count(words) if self._console.exists() else 0

    async def plugged(self) -> list[str]:
        """Return the devices of ours that QEMU shows in the ports."""
        buses = msgspec.json.decode(await self._monitor.execute("query-pci", {}))
        ports = [one for bus in buses for one in bus["devices"] if one["qdev_id"].startswith("port")]
        return [one["qdev_id"] for port in ports for one in port["pci_bridge"].get("devices", ())]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition():
            await WallClock().sleep(Seconds(0.05))


@asynccontextmanager
async def booted(folder: Path, command: list[str], words: str) -> AsyncIterator[Guest]:
    with subprocess.Popen(command) as process:  # noqa: ASYNC220 - nobody waits for it here
        guest = Guest(folder)
        try:
            await until(lambda: guest.said(words) > 0 or process.poll() is not None)
            assert process.poll() is None
            yield guest
        finally:
            guest.close()
            process.kill()


def lab(folder: Path) -> Hardware:
    virtual = wiring.Virtual(driver="edu")
    one = wiring.Guest(socket=str(folder / "manager.sock"), buses=("port1", "port2"))
    backend = wiring.Qemu(
        machines={NodeName("n-1"): one, NodeName("n-2"): one},
        models={ModelName("A100"): virtual, ModelName("H100"): virtual},
        timeout_seconds=Seconds(SECONDS_MAX),
    )
    return Hardware(msgspec.structs.replace(SMALL, backend=backend))


def test_devices_are_plugged_into_a_guest_of_a_real_qemu_and_unplugged(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            booted(tmp_path, in_firmware(tmp_path), "No bootable device") as guest,
            managing(tmp_path, lab(tmp_path), clock=WallClock()) as manager,
        ):
            first, second = order("o"), order("p", "a-2")
            assert isinstance(await settled(manager, "attach", first), Done)
            assert isinstance(await settled(manager, "attach", second), Done)
            assert await guest.plugged() == ["jackfield-a-1", "jackfield-a-2"]
            assert isinstance(await settled(manager, "detach", first), Done)
            assert await guest.plugged() == ["jackfield-a-2"]
            assert await places(manager) == {"a-2": "n-1"}
            assert isinstance(await settled(manager, "detach", second), Done)
            assert await guest.plugged() == []

    asyncio.run(main())


def test_linux_in_a_guest_sees_a_device_come_and_lets_go_of_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with (
            booted(tmp_path, in_linux(tmp_path), "Run /init") as guest,
            managing(tmp_path, lab(tmp_path), clock=WallClock()) as manager,
        ):
            for number, name in enumerate(("o", "p"), 1):  # it can only come again if it was really gone
                assert isinstance(await settled(manager, "attach", order(name)), Done)
                await until(lambda seen=number: guest.said(EDU) == seen)  # type: ignore[misc]  # a default is bound now
                assert isinstance(await settled(manager, "detach", order(name)), Done)
                assert await guest.plugged() == []

    asyncio.run(main())
