"""GPUs and RDMA network cards, with the PCIe root that each hangs on: so that a claim can ask for two on the same.

Run it with `python driver.py --node-name NODE`; `--help` tells the rest. Knows which devices of a machine are of these
two sorts, and what a container needs of them. Must not know who pairs them: that is the claim's wish and the
scheduler's work.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from socket import socket

import click
from msgspec.structs import replace

from jackfield import driver
from jackfield.model.host import HostDevice
from jackfield.node import edits, uevents
from jackfield.node.sysfs import Roots, Sysfs

STANDARD = "resource.kubernetes.io"
"""The domain of the names that all drivers share: devices of two drivers can be asked to agree in them, too."""
GPU_CLASSES = ("03", "12")
"""PCI's classes of display controllers and of processing accelerators."""
FILES = re.compile(r"/dev/(nvidia\d+|nvidiactl|nvidia-uvm|kfd|dri/renderD\d+|infiniband/(uverbs\d+|rdma_cm))")
"""The device files that who computes needs; not those that switch screens, or speak for the whole network."""
LOG = logging.getLogger(__name__)


class Accelerators(driver.Driver):
    """Publishes GPUs and RDMA network cards, and hands over their device files."""

    name = "pair.example.com"

    def __init__(self, roots: Roots = Roots(), listen: Callable[[], socket] = uevents.kernel_socket) -> None:
        self.roots = roots
        self._listen = listen

    def devices(self) -> Iterable[driver.Device]:
        """Return what is plugged in, and has its kernel driver."""
        for name, one in self._found().items():
            attributes: dict[str, driver.AttributeValue] = {
                "type": _type(one),
                "vendor": one.vendor,
                "driver": one.driver,
                f"{STANDARD}/pciBusID": one.address,
            }
            # A device without a root agrees with nobody, which is better than with all others that have none.
            if one.pcie_root:
                attributes[f"{STANDARD}/pcieRoot"] = one.pcie_root
            if one.numa_node >= 0:
                attributes[f"{STANDARD}/numaNode"] = one.numa_node
            if one.interfaces:
                attributes["linkUp"] = any(port.up for port in one.interfaces)
                attributes["speedMegabits"] = max(port.speed_megabits for port in one.interfaces)
            yield driver.device(name, attributes=attributes)

    async def prepare(self, share: driver.Share) -> driver.Edits:
        """Return the device's files, and what a program calls it."""
        found = self._found().get(share.device)
        if found is None:
            raise driver.Retry(f"{share.device} has no kernel driver any more, or was pulled out")
        return driver.Edits(
            env=_variables(share.requests[0].partition("/")[0], found),
            device_nodes=edits.edits(share.device, "", found, self.roots.dev, interfaces=False).device_nodes,
        )

    async def watch(self, changed: Callable[[], None]) -> None:
        """Hear from the kernel what is plugged in and pulled out."""
        try:
            source = self._listen()
        except OSError as error:
            LOG.warning("what is plugged in from now on is found after a restart: %s", error)
            return
        async with uevents.Uevents(source, changed):
            await asyncio.Event().wait()

    def _found(self) -> Mapping[str, HostDevice]:
        """Return the devices by their names: their places, which they keep as long as nobody moves them."""
        there = (
            replace(one, nodes=tuple(node for node in one.nodes if FILES.fullmatch(node.path)))
            for one in Sysfs(self.roots).devices()
        )
        return {f"{_type(one)}-{re.sub('[:.]', '-', one.address)}": one for one in there if _type(one)}


def _type(one: HostDevice) -> str:
    """Return what sort it is, `gpu` or `nic`; nothing for any other.

    A GPU is one to compute with: the controller of a server's own screen has no file for that.
    """
    own = any(not node.shared for node in one.nodes)
    if own and one.rdma:
        return "nic"
    return "gpu" if own and one.pci_class.startswith(GPU_CLASSES) else ""


def _variables(request: str, one: HostDevice) -> Mapping[str, str]:
    """Return the variables of a request: `NIC_ADDRESS`, if it is called `nic`."""
    word = request.upper().replace("-", "_")
    said = {
        "ADDRESS": one.address,
        "UUID": one.uuid,
        "INTERFACES": ",".join(port.name for port in one.interfaces),
        "RDMA_DEVICES": ",".join(one.rdma),
    }
    return {f"{word}_{name}": text for name, text in said.items() if text}


def command(one: Accelerators) -> click.Command:
    """Return the driver's command, with an option of its own."""

    def look_in(_context: click.Context, _option: click.Parameter, value: Path) -> None:
        one.roots = Roots(value / "sys", value / "proc", value / "dev")

    made = driver.command(one)
    made.params.append(
        click.Option(
            ["--host-root"],
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            default=Path("/"),
            show_default=True,
            expose_value=False,
            callback=look_in,
            help="The folder with the node's sys, proc and dev; device files are given to containers from there.",
        )
    )
    return made


if __name__ == "__main__":
    command(Accelerators()).main()
