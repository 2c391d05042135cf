"""NVIDIA's library and tool on this node, where they are installed: used when needed, let go before a GPU is pulled.

Knows when each is asked, and that what we ourselves hold open keeps a GPU from leaving as anybody else's handle does.
Must not know how they are asked, which `jackfield.node.nvidia` does, nor who holds a GPU.
"""

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock
from typing import Final, Protocol

from jackfield.core.share import ComputePolicy, Gpu, Instance, Partition
from jackfield.model.host import HostDevice
from jackfield.node import files, nvidia
from jackfield.node.nvidia import toolkit
from jackfield.node.pci import NVIDIA, Known
from jackfield.ports import PortError, Refused, Retry

TOOL: Final = "nvidia-ctk"
MEBIBYTE: Final = 1 << 20


class Library(nvidia.Driver, Protocol):
    """NVML: the driver, until it is closed."""

    def close(self) -> None:
        """Let go of all GPUs."""


class Nvml:
    """NVIDIA's driver, opened by whoever needs it first; `jackfield.node.nvidia.Driver`, of the GPUs that are ours.

    Also an `Insight`: it says what it knows of every GPU.
    """

    def __init__(self, proc: Path, load: Callable[[], Library | None] = nvidia.load) -> None:
        self.own: Callable[[], tuple[str, ...]] = tuple
        """Returns the GPUs, by UUID, that may be shared: a fabric's are not."""
        self._gpus_there = str(proc / "driver/nvidia/gpus")
        self._load = load
        self._library: Library | None = None
        self._lock = RLock()  # a GPU is prepared in a thread, and let go in another
        self._there: tuple[str, ...] = ()
        self._known: Mapping[str, Known] = {}

    def known(self) -> Mapping[str, Known]:
        """Return what the library says, asked anew when the driver has another set of GPUs."""
        there = files.names(self._gpus_there)
        if there != self._there:
            try:
                with self._lock:
                    found = self._opened().gpus() if there else ()
                    self.let_go()
            except PortError:
                return {}  # not installed, or not ready yet
            self._known = {
                one.address: Known(one.uuid, "", one.product, one.memory_mebibytes * MEBIBYTE)
                for one in found
            }
            self._there = there
        return self._known

    def let_go(self) -> None:
        """Close the library, if it is open: nothing is lost by it, and whoever needs it opens it again."""
        with self._lock:
            library, self._library = self._library, None
            if library is not None:
                library.close()

    def _opened(self) -> Library:
        if self._library is None:
            self._library = self._load()
        if self._library is None:
            raise Refused("NVIDIA's library libnvidia-ml.so.1 is not installed where the plugin can see it")
        return self._library

    # --- the promises of Driver

    def gpus(self) -> tuple[Gpu, ...]:
        """Return those that may be shared."""
        own = self.own()
        if not own:
            return ()
        with self._lock:
            return tuple(one for one in self._opened().gpus() if one.uuid in own)

    def set_mig(self, uuid: str, *, enabled: bool) -> None:
        """Make the GPU one that is divided or not."""
        with self._lock:
            self._opened().set_mig(uuid, enabled=enabled)

    def create(self, uuid: str, partition: Partition) -> Instance:
        """Create the partition."""
        with self._lock:
            return self._opened().create(uuid, partition)

    def destroy(self, uuid: str, instance: Instance) -> None:
        """Destroy the partition."""
        with self._lock:
            self._opened().destroy(uuid, instance)

    def set_policy(self, uuid: str, policy: ComputePolicy) -> None:
        """Say how processes get along."""
        with self._lock:
            self._opened().set_policy(uuid, policy)


class Specs:
    """The CDI specification that NVIDIA's toolkit writes, anew whenever GPUs come or go; a `Vendor`."""

    def __init__(self, folder: Path, run: nvidia.Run = nvidia.run, *, installed: bool | None = None) -> None:
        self.trouble = ""
        """Why there is none; nothing if it is as it should be."""
        self.installed: Final = installed if installed is not None else shutil.which(TOOL) is not None
        """Whether there is such a tool here at all."""
        self._folder = folder
        self._run = run
        self._written: tuple[str, ...] = ()

    def cdi(self, device: HostDevice) -> tuple[str, ...]:
        """Return the GPU's name in it; none for other devices, or without the tool. Raises Retry until it is there."""
        if device.vendor != NVIDIA or not device.uuid or not self.installed:
            return ()
        if device.uuid not in self._listed():
            raise Retry(
                f"nvidia-ctk has not described {device.uuid} yet{': ' if self.trouble else ''}{self.trouble}"
            )
        return (toolkit.qualified(device.uuid),)

    def generate(self) -> None:
        """Have it written. Raises Retry, Refused."""
        nvidia.generate(self._run, self._folder)

    async def follow(self, devices: tuple[HostDevice, ...]) -> None:
        """Have it written anew if these are others than last time; it takes a second, and nobody waits for it."""
        there = tuple(sorted(one.uuid for one in devices if one.vendor == NVIDIA and one.uuid))
        if there == self._written or not self.installed:
            return
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.generate)
        except PortError as error:
            self.trouble = str(error)
        else:
            self.trouble, self._written = "", there

    def _listed(self) -> tuple[str, ...]:
        try:
            said = json.loads(files.read(self._folder / toolkit.FILE) or b"{}")
            return tuple(one["name"] for one in said.get("devices", ()))
        except (ValueError, KeyError, TypeError, AttributeError):
            return ()
