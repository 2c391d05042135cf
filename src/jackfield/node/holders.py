"""Who uses a device of this node just now: open files, mappings, and what the kernel itself does with it.

Knows proc, and how a process tells which pod it belongs to. Must not know what is done about it. A process that ends
while it is looked at, or may not be looked at, says nothing.
"""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from jackfield.model.host import HostDevice, HostNode
from jackfield.node import files

HOLDERS_MAX: Final = 8
"""More are counted, not named."""
MAPS_BYTES_MAX: Final = 8 << 20
_NUMBER, _PLACE = 2, 4
"""Where a line about a mount has the disk's number, and where it is mounted."""
_POD: Final = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")


class Holder(msgspec.Struct, frozen=True, order=True):
    """Somebody who uses a device."""

    words: str
    """Such as `python (pid 4711) of pod default/train`."""


class Holders:
    """Looks for those who use a device."""

    def __init__(self, proc: Path, sysfs: Path, pod_logs: Path) -> None:
        """`pod_logs` is where the kubelet keeps logs, in folders that are named for pods."""
        self._proc = str(proc)
        self._sysfs = str(sysfs)
        self._pod_logs = str(pod_logs)

    def of(self, devices: tuple[HostDevice, ...]) -> tuple[Holder, ...]:
        """Return who uses any of these, such as the functions of one card, in order."""
        wanted = _Wanted(devices, self._sysfs)
        by_kernel = (words for one in devices for words in self._kernel(one))
        return tuple(Holder(words) for words in (*by_kernel, *self._processes(wanted)))

    # --- processes

    def _processes(self, wanted: "_Wanted") -> Iterator[str]:
        if self._is_blind():
            yield "somebody, perhaps: processes may not be looked into (the plugin needs CAP_SYS_PTRACE)"
            return
        ourselves = files.link(f"{self._proc}/self")  # a vendor's library in us has its devices open
        for pid in sorted((one for one in files.names(self._proc) if one.isdigit()), key=int):
            if pid != ourselves and (self._has_open(pid, wanted) or self._has_mapped(pid, wanted)):
                yield self._described(pid)

    def _is_blind(self) -> bool:
        """Whether we may not look into others' processes; then nobody would seem to use anything."""
        folder = f"{self._proc}/1/fd"
        try:
            for one in os.listdir(folder):  # noqa: PTH208 - the error matters
                os.readlink(f"{folder}/{one}")  # noqa: PTH115 - likewise
        except FileNotFoundError:
            return False  # closed meanwhile, which only one who may look can find out
        except OSError:
            return True
        return False

    def _has_open(self, pid: str, wanted: "_Wanted") -> bool:
        folder = f"{self._proc}/{pid}/fd"
        return any(wanted.is_meant(f"{folder}/{one}") for one in files.names(folder))

    def _has_mapped(self, pid: str, wanted: "_Wanted") -> bool:
        """A mapping outlives the file that it was made through."""
        said = files.read(f"{self._proc}/{pid}/maps", MAPS_BYTES_MAX).decode(errors="replace")
        paths = (line.split(maxsplit=5)[5:] for line in said.splitlines() if "/" in line)
        return any(path and wanted.is_named(path[0]) for path in paths)

    def _described(self, pid: str) -> str:
        name = files.text(f"{self._proc}/{pid}/comm") or "a process"
        found = _POD.search(files.text(f"{self._proc}/{pid}/cgroup"))
        return f"{name} (pid {pid}){self._pod(found.group(1).replace('_', '-')) if found else ''}"

    def _pod(self, uid: str) -> str:
        """The pod that a uid belongs to, by the name of its folder: no right in the cluster is needed for it."""
        for one in files.names(self._pod_logs):
            namespace, _, rest = one.partition("_")
            name, _, ending = rest.rpartition("_")
            if ending == uid:
                return f" of pod {namespace}/{name}"
        return f" of the pod with uid {uid}"

    # --- the kernel's own

    def _kernel(self, device: HostDevice) -> Iterator[str]:
        folder = f"{self._sysfs}/bus/pci/devices/{device.address}"
        for one in device.interfaces:
            if one.up:
                yield f"network interface {one.name}, which is up"
        virtual = files.number(f"{folder}/sriov_numvfs", 0)
        if virtual > 0:
            yield f"{virtual} virtual functions, which have to be taken down first"
        yield from self._disks(device)
        if device.address.startswith("region") and device.driver and self._is_online(device):
            yield f"the kernel, which uses memory of {device.address} as its own"

    def _disks(self, device: HostDevice) -> Iterator[str]:
        mounted = (line.split() for line in files.text(f"{self._proc}/1/mountinfo").splitlines())
        places = {words[_NUMBER]: words[_PLACE] for words in mounted if len(words) > _PLACE}
        for disk in device.blocks:
            folder = f"{self._sysfs}/class/block/{disk}"
            parts = [one for one in files.names(folder) if one.startswith(disk)]
            for name, place in ((disk, folder), *((one, f"{folder}/{one}") for one in parts)):
                number = files.text(f"{place}/dev")
                if number in places:
                    yield f"a file system on {name}, mounted at {places[number]}"
                users = files.names(f"{place}/holders")
                if users:
                    yield f"{', '.join(users)}, which is made of {name}"

    def _is_online(self, device: HostDevice) -> bool:
        """Memory that the kernel took for its own shows as a driver of its dax devices, not as an open file."""
        drivers = [
            files.link(f"{self._sysfs}/bus/dax/devices/{one.path.removeprefix('/dev/')}/driver")
            for one in device.nodes
        ]
        return "kmem" in drivers


class _Wanted:
    """The files that only users of certain devices have open."""

    def __init__(self, devices: tuple[HostDevice, ...], sysfs: str) -> None:
        own: list[HostNode] = [node for one in devices for node in one.nodes if not node.shared]
        self.paths = frozenset(one.path for one in own)
        self.numbers = frozenset(os.makedev(one.major, one.minor) for one in own if one.major >= 0)
        # Whoever speaks to a device without its driver maps the windows that sysfs shows of it.
        links = [f"{sysfs}/bus/pci/devices/{one.address}" for one in devices if "." in one.address]
        self.folders = tuple(f"{os.path.realpath(one)}/resource" for one in links)

    def is_meant(self, descriptor: str) -> bool:
        """Whether an open file is one of them, by its name or, where a container calls it otherwise, by its number."""
        try:
            name = os.readlink(descriptor)  # noqa: PTH115 - every open file of the machine is looked at
            if self.is_named(name):
                return True
            if not name.startswith("/dev/"):
                return False
            there = os.stat(descriptor)  # noqa: PTH116 - likewise
        except OSError:
            return False
        return stat.S_ISCHR(there.st_mode) and there.st_rdev in self.numbers

    def is_named(self, path: str) -> bool:
        """Whether a path is one of them."""
        path = path.removesuffix(" (deleted)")
        return path in self.paths or path.startswith(self.folders)


def sentence(holders: tuple[Holder, ...]) -> str:
    """Return who holds a device, the first of them by name."""
    named = ", ".join(one.words for one in holders[:HOLDERS_MAX])
    more = len(holders) - HOLDERS_MAX
    return f"{named} and {more} more" if more > 0 else named
