"""The back end of virtual machines: QEMU plugs a device into a running guest, and takes it out again.

Knows what QEMU calls things, and that a guest must agree before a device goes. Must not know the line: `qmp` does.
"""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import msgspec

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends.backend import BackendError
from jackfield.fabric_manager.backends.qmp import Broken, Declined, Ended, Monitor
from jackfield.fabric_manager.hardware import Device
from jackfield.model.names import NodeName, PhysicalID, Seconds

ANSWER_SECONDS: Final = Seconds(10.0)
"""Within this time QEMU answers a command; only guests take longer."""
LINES_MAX: Final = 5
"""So often a line may break during one movement."""
ID: Final = re.compile(r"[A-Za-z0-9._-]{1,60}")
PENDING: Final = "process of unplug"
"""By these words QEMU says that it has asked the guest already; there is no class of error for it."""


class _Seen(msgspec.Struct, frozen=True):
    qdev_id: str = ""
    pci_bridge: "_Bus | None" = None


class _Bus(msgspec.Struct, frozen=True):
    devices: tuple[_Seen, ...] = ()


def name(device: PhysicalID) -> str:
    """Return what QEMU calls a device of ours."""
    if ID.fullmatch(device):
        return f"jackfield-{device}"
    return f"jackfield-{hashlib.sha256(device.encode()).hexdigest()[:32]}"


class Qemu:
    """Hot-plugs by QMP."""

    def __init__(self, settings: wiring.Qemu) -> None:
        self._settings = settings
        self._monitors = {
            node: Monitor(guest.socket, ANSWER_SECONDS) for node, guest in settings.machines.items()
        }
        self._plugging = {node: asyncio.Lock() for node in settings.machines}

    def close(self) -> None:
        """Hang up."""
        for monitor in self._monitors.values():
            monitor.close()

    async def attach(self, device: Device, node: NodeName) -> None:
        """Plug it in, unless it is there."""
        try:
            async with self._plugging[node]:  # no two choose the same port
                await self._again(lambda: self._plug(device, node), node)
        except Declined as error:
            raise BackendError(f"QEMU does not plug {device.id} into {node}: {error}") from error

    async def _again(self, step: Callable[[], Awaitable[None]], node: NodeName) -> None:
        """Take a step anew when the line broke: whatever became of it, the next one sees."""
        for _ in range(LINES_MAX):
            try:
                await step()
            except Broken:
                continue
            return
        raise BackendError(f"the line to the QEMU of {node} broke {LINES_MAX} times")

    async def _plug(self, device: Device, node: NodeName) -> None:
        there = await self._there(node)
        if name(device.id) in {one.qdev_id for one in there}:
            return
        virtual = self._settings.models[device.batch.model]
        properties = {key: _filled(value, device) for key, value in virtual.properties.items()}
        bus = self._free_bus(node, there)
        wanted = {**properties, "driver": virtual.driver, "id": name(device.id), **bus}
        await self._monitors[node].execute("device_add", wanted)
        if name(device.id) not in {one.qdev_id for one in await self._there(node)}:
            raise BackendError(f"QEMU shows no PCI device {name(device.id)}: is {virtual.driver} one?")

    async def detach(self, device: Device, node: NodeName) -> None:
        """Ask the guest to let go of it, and wait until it is gone; nothing if it is not there."""
        span = self._settings.timeout_seconds
        try:
            async with asyncio.timeout(span):
                await self._again(lambda: self._unplug(device, node), node)
        except Ended:
            return  # what was plugged into a guest went with it
        except TimeoutError as error:
            raise BackendError(
                f"the guest on {node} did not let go of {device.id} within {span:g} s: see that it runs, that its "
                "kernel can unplug PCI devices, and that nothing in it uses the device; it is asked again next time"
            ) from error

    async def _unplug(self, device: Device, node: NodeName) -> None:
        monitor = self._monitors[node]
        gone = monitor.watch(name(device.id))
        try:
            await monitor.execute("device_del", {"id": name(device.id)})
        except Declined as error:
            if error.kind == "DeviceNotFound":
                return
            if PENDING not in str(error):
                raise BackendError(f"QEMU does not unplug {device.id} from {node}: {error}") from error
        why = await asyncio.shield(gone)
        if why:
            raise BackendError(f"{device.id} stays on {node}: {why}")

    # --- what is where

    async def _there(self, node: NodeName) -> tuple[_Seen, ...]:
        answer = await self._monitors[node].execute("query-pci", {})
        try:
            buses = msgspec.json.decode(answer, type=tuple[_Bus, ...])
        except msgspec.DecodeError as error:
            raise BackendError(f"the QEMU of {node} cannot be understood: {error}") from error
        return tuple(one for bus in buses for one in _all(bus))

    def _free_bus(self, node: NodeName, there: tuple[_Seen, ...]) -> dict[str, str]:
        """Return the first port with nothing in it; nothing where QEMU is to choose."""
        wanted = self._settings.machines[node].buses
        ports = {one.qdev_id: one.pci_bridge.devices for one in there if one.pci_bridge is not None}
        missing = [bus for bus in wanted if bus not in ports]
        if missing:
            raise BackendError(
                f"the guest on {node} has no port {missing[0]}: see backend.machines.{node}.buses"
            )
        free = [bus for bus in wanted if not ports[bus]]
        if wanted and not free:
            raise BackendError(f"every port of {node} has a device in it: {', '.join(wanted)}")
        return {"bus": free[0]} if free else {}


def _all(bus: _Bus) -> Iterator[_Seen]:
    for one in bus.devices:
        yield one
        if one.pci_bridge is not None:
            yield from _all(one.pci_bridge)


def _filled(value: object, device: Device) -> object:
    """Return a property with the device's own words in it."""
    if not isinstance(value, str):
        return value
    return value.replace("{device}", device.id).replace("{serial}", device.serial)
