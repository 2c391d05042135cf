"""The back end of a real machine: its kernel looks for a device on the PCI bus, and lets go of it.

For a switch that is set by hand or by something else: attaching is to scan the bus until the device stands at its
address, detaching is to remove it from there. Knows sysfs, of the machine that this runs on. Must not know the switch.
"""

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends.backend import BackendError
from jackfield.fabric_manager.backends.commands import Commands
from jackfield.fabric_manager.hardware import Device
from jackfield.model.names import NodeName, PhysicalID, Seconds
from jackfield.ports import Clock

LOOK_AGAIN: Final = Seconds(0.05)
SCAN_AGAIN: Final = Seconds(2.0)
"""A link that has just come up may be missed by one scan."""
FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
WRITE: Final = """
import os, sys
try:
    os.write(os.open(sys.argv[2], os.O_WRONLY), sys.argv[1].encode())
except OSError as error:
    sys.exit(f"{error.errno} {error.strerror}")
"""
"""The kernel may take its time over a write, so that a process of its own makes it."""


class Pci:
    """Scans the bus, and removes devices from it."""

    def __init__(self, settings: wiring.Pci, commands: Commands, clock: Clock) -> None:
        self._bound = settings.bound
        self._bus = Path(settings.sysfs) / "bus" / "pci"
        self._places: dict[tuple[PhysicalID, NodeName], wiring.Place] = {
            (place.device, place.machine): place for place in settings.places
        }
        self._commands = commands
        self._clock = clock

    def close(self) -> None:
        """Let others move devices."""
        self._commands.close()

    async def attach(self, device: Device, node: NodeName) -> None:
        """Scan until the device is at its address."""
        place = self._places.get((device.id, node))
        if place is None:
            raise BackendError(
                f"{device.id} has no PCI address on {node}: add one to backend.places in the inventory"
            )
        until = self._clock.now() + self._commands.timeout
        while not self._path(place.address).exists():
            if self._clock.now() > until:
                raise BackendError(
                    f"{device.id} did not appear at {place.address} within {self._commands.timeout:g} s, though "
                    f"the bus was scanned: see that the switch leads to {node}, and compare lspci -D there"
                )
            await self._write(self._scanner(place), "1")
            await self._seen(self._path(place.address).exists, SCAN_AGAIN)
        self._check(device, place)

    async def detach(self, device: Device, node: NodeName) -> None:
        """Remove the device, with all its functions, unless it is not there."""
        place = self._places.get((device.id, node))
        if place is None or not self._path(place.address).exists():
            return
        self._check(device, place)
        functions = sorted(self._path("").glob(f"{place.address[:-1]}[0-7]"), reverse=True)
        for function in functions:
            await self._unbind(device, function)
        for function in functions:
            await self._write(function / "remove", "1")
        if not await self._seen(lambda: not any(one.exists() for one in functions), self._commands.timeout):
            raise BackendError(
                f"{device.id} is still at {place.address}, though the kernel was told to remove it"
            )

    async def _unbind(self, device: Device, function: Path) -> None:
        """Take a function from its driver, if it has one, so that one in use is found out while nothing is removed."""
        if not (function / "driver").exists():
            return
        driver = (function / "driver").resolve().name
        if self._bound == "refuse":
            raise BackendError(
                f"driver {driver} still has {device.id} at {function.name}: stop what uses it and unbind it, "
                "or set backend.bound to unbind"
            )
        try:
            await self._write(function / "driver" / "unbind", function.name)
        except BackendError as error:
            raise BackendError(f"driver {driver} does not let go of {device.id}: {error}") from error

    # --- sysfs

    def _path(self, address: str) -> Path:
        return self._bus / "devices" / address

    def _scanner(self, place: wiring.Place) -> Path:
        if not place.bridge:
            if not (self._bus / "rescan").exists():
                raise BackendError(
                    f"{self._bus} has no rescan: see that backend.sysfs is where sysfs is mounted"
                )
            return self._bus / "rescan"
        bridge = self._path(place.bridge)
        if not bridge.exists():
            raise BackendError(
                f"bridge {place.bridge} is not there: see that its box is on and its cable plugged"
            )
        return bridge / "rescan"

    def _check(self, device: Device, place: wiring.Place) -> None:
        """Refuse to take one device for another."""
        if not place.id:
            return
        try:
            numbers = [(self._path(place.address) / one).read_text().strip() for one in ("vendor", "device")]
        except OSError as error:
            raise BackendError(f"{place.address} cannot be looked at: {error.strerror}") from error
        found = ":".join(one.removeprefix("0x") for one in numbers)
        if found != place.id:
            raise BackendError(f"at {place.address} there is {found}, not {device.id}, which is {place.id}")

    async def _write(self, path: Path, text: str) -> None:
        end = await self._commands.run((sys.executable, "-I", "-S", "-c", WRITE, text, str(path)), {})
        if end.status == 0:
            return
        if end.status is None:
            span = self._commands.timeout
            raise BackendError(
                f"the kernel did not answer within {span:g} s: something still uses the device"
            )
        number, _, words = end.said.partition(" ")
        if number.isdigit() and int(number) == errno.ENOENT:
            return  # gone already; whether that is well is seen by looking
        if number.isdigit() and int(number) in FORBIDDEN:
            words += ": the manager must run as root, and in a container with /sys writable"
        raise BackendError(f"{path} cannot be written: {words or end.said}")

    async def _seen(self, condition: Callable[[], bool], span: Seconds) -> bool:
        """Wait until it is so, so long at most; return whether it is."""
        until = self._clock.now() + span
        while not condition() and self._clock.now() <= until:
            await self._clock.sleep(LOOK_AGAIN)
        return condition()
