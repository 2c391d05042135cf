"""A vendor's driver on a node, as NVIDIA's is one: it publishes the GPUs that it drives, and prepares them.

A stand-in for it, written on the driver kit. The first word of its command line is the folder of a machine that exists
nowhere; the others are every driver's. Knows GPUs as the kernel shows them. Must not know that there are fabrics.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from jackfield import driver
from jackfield.cli.clock import WallClock
from jackfield.model.host import HostDevice
from jackfield.model.names import Seconds
from jackfield.node import edits
from jackfield.node.sysfs import Roots, Sysfs

VENDOR: Final = "gpu.example.com"
PCI_DEVICE: Final = "2330"
"""PCI's number of the one model that it drives."""
LOOK_SECONDS: Final = Seconds(0.1)


class Gpus(driver.Driver):
    """The GPUs of one machine."""

    name = VENDOR

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._sysfs = Sysfs(roots)

    def devices(self) -> Iterable[driver.Device]:
        """Return those that are plugged in. Whoever looks for one of them knows its UUID."""
        for name, one in self._found().items():
            yield driver.device(name, attributes={"uuid": one.uuid, "type": "gpu"})

    async def prepare(self, share: driver.Share) -> driver.Edits:
        """Return the GPU's device file, and variables that say which it is."""
        found = self._found().get(share.device)
        if found is None:
            raise driver.Retry(f"{share.device} was pulled out")
        return driver.Edits(
            env={"GPU_ADDRESS": found.address, "GPU_UUID": found.uuid},
            device_nodes=edits.edits(share.device, "", found, self._roots.dev, interfaces=False).device_nodes,
        )

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look whether something came or went: a machine that exists nowhere has no kernel that says so."""
        clock, before = WallClock(), self._sysfs.signature()
        while True:
            await clock.sleep(LOOK_SECONDS)
            after = self._sysfs.signature()
            if after != before:
                before = after
                changed()

    def _found(self) -> Mapping[str, HostDevice]:
        there = (one for one in self._sysfs.devices() if one.device == PCI_DEVICE and one.uuid)
        return {f"gpu-{one.uuid.lower()}": one for one in there}


def serve(folder: Path) -> None:
    """Run as the driver of a machine, with the options of every driver."""
    driver.main(Gpus(Roots(folder / "sys", folder / "proc", folder / "dev")))


if __name__ == "__main__":
    serve(Path(sys.argv.pop(1)))
