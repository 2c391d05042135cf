"""What a guest runs as its only program: the PCI back end, on the bus of a real kernel.

It says on the console how it went. Not a test: `test_pci.py` starts it, and reads the console.
"""

import asyncio
import ctypes
import os
from collections.abc import Awaitable
from pathlib import Path

from jackfield.cli.clock import WallClock
from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends import Backend, BackendError, of
from jackfield.fabric_manager.hardware import Batch, Device
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds

CARD = "0000:01:00.0"
BRIDGE = "0000:00:01.0"
SERIAL = "1b36:0002"
"""What QEMU's pci-serial is; a driver that every kernel has takes it."""
POWER_OFF = 0x4321FEDC
HERE = NodeName("here")


def device(name: str) -> Device:
    return Device(PhysicalID(name), name, Batch(name=name, model=ModelName("serial")))


def backend(**more: str) -> Backend:
    place = wiring.Place(device=PhysicalID("card"), machine=HERE, address=CARD, **{"id": SERIAL, **more})
    return of(wiring.Pci(places=(place,), timeout_seconds=Seconds(60.0)), Path("/lock"), WallClock())


async def tried(what: str, work: Awaitable[None]) -> None:
    """Say how a step went, and what stands at the address then."""
    try:
        await work
        words = "done"
    except BackendError as error:
        words = str(error)
    driver = Path("/sys/bus/pci/devices") / CARD / "driver"
    there = f"there, driver {driver.resolve().name if driver.exists() else 'none'}"
    print(f"SAID {what}: {words}; {there if driver.parent.exists() else 'gone'}", flush=True)  # noqa: T201 - a console


async def main() -> None:
    card = device("card")
    whole, bridge, another = backend(), backend(bridge=BRIDGE), backend(id="10de:20b5")
    await tried("attach what is there", whole.attach(card, HERE))
    await tried("detach another", another.detach(card, HERE))
    whole.close()
    another.close()
    await tried("detach", bridge.detach(card, HERE))
    await tried("detach again", bridge.detach(card, HERE))
    await tried("attach by its bridge", bridge.attach(card, HERE))
    bridge.close()
    await tried("detach once more", whole.detach(card, HERE))
    await tried("attach by the whole bus", whole.attach(card, HERE))
    whole.close()


if __name__ == "__main__":
    kernel = ctypes.CDLL(None, use_errno=True)
    Path("/sys").mkdir(exist_ok=True)
    kernel.mount(b"none", b"/sys", b"sysfs", 0, None)
    try:
        asyncio.run(main())
    finally:
        os.sync()
        kernel.reboot(POWER_OFF)
