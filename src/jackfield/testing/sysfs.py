"""A machine's sysfs, proc and device files, built in a folder: what a node plugin sees, without the machine.

Knows the kernel's files as far as drivers read them, and how the kernel answers when devices are looked for or removed.
Must not know who reads them. Public: drivers are tested with it.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

CONFIGURATION_BYTES: Final = 4096
WINDOW_FLAGS: Final = 0x14220C
"""A 64-bit memory window that may be read ahead."""
WINDOW_START: Final = 0x20_0000_0000


class PciDevice(msgspec.Struct, frozen=True):
    """A device on the PCI bus."""

    address: str
    vendor: str = "10de"
    device: str = "20b0"
    pci_class: str = "030200"
    root: str = "pci0000:00"
    bridges: tuple[str, ...] = ()
    """Addresses of the bridges between the root and the device."""
    numa_node: int = 0
    serial: int = 0
    """Its Device Serial Number; 0 for none."""
    link_width: int = 16
    windows: tuple[int, ...] = ()
    """Sizes of its memory windows (BARs), in bytes."""
    driver: str = ""
    uuid: str = ""
    """Of a device of NVIDIA's: what its driver's files say."""
    minor: int = -1
    """Likewise: the number in `/dev/nvidia0`."""
    interfaces: Mapping[str, str] = {}
    """Network interfaces with their addresses."""
    up: tuple[str, ...] = ()
    """Those of them that are up."""
    files: Mapping[str, str] = {}
    """Any other files in its folder, by their path below it."""
    links: Mapping[str, str] = {}
    """Any other links, such as `iommu_group`."""
    device_files: Mapping[str, str] = {}
    """Device files, by what makes them: `drm/renderD128` → `dri/renderD128 226:128`."""


class Process(msgspec.Struct, frozen=True):
    """A process that runs on the machine."""

    pid: int
    name: str = "python"
    opens: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    pod: str = ""
    """The uid of its pod; empty for none."""


class Machine:
    """A machine in a folder. Enter it to have the kernel answer; without that its files only lie there."""

    def __init__(self, folder: Path) -> None:
        self.sysfs, self.proc, self.dev = folder / "sys", folder / "proc", folder / "dev"
        self.pod_logs = folder / "pods"
        self._bus = self.sysfs / "bus" / "pci"
        self._waiting: list[PciDevice] = []
        self._open: dict[Path, int] | None = None
        self.rescans = 0
        """How often somebody had the kernel look."""
        for one in (self._bus / "devices", self._bus / "drivers", self.proc, self.dev, self.pod_logs):
            one.mkdir(parents=True)
        (self._bus / "rescan").touch()

    # --- the bus

    def plug(self, device: PciDevice) -> None:
        """Put a device on the bus, where everybody sees it at once."""
        above = self.sysfs / "devices" / device.root
        for bridge in device.bridges:
            above = above / bridge
            if not above.exists():
                self._write_device(above, PciDevice(bridge, "8086", "2030", "060400", device.root))
        folder = above / device.address
        self._write_device(folder, device)
        self._answer(folder / "remove", partial(self.pull, device.address))

    def plug_unseen(self, device: PciDevice) -> None:
        """Put in a device that nobody sees before the kernel looks for it."""
        self._waiting.append(device)

    def pull(self, address: str) -> None:
        """Take a device off the bus."""
        link = self._bus / "devices" / address
        folder = link.resolve()
        link.unlink()
        self._silence(folder / "remove")
        shutil.rmtree(folder)
        shutil.rmtree(self.proc / "driver/nvidia/gpus" / address, ignore_errors=True)

    def bind(self, address: str, driver: str) -> None:
        """Give a device to a driver."""
        target = self._bus / "drivers" / driver
        target.mkdir(parents=True, exist_ok=True)
        (self._bus / "devices" / address / "driver").symlink_to(target)

    def _write_device(self, folder: Path, device: PciDevice) -> None:
        numbers = {"vendor": device.vendor, "device": device.device, "class": device.pci_class}
        texts = {
            **{name: f"0x{number}" for name, number in numbers.items()},
            "numa_node": str(device.numa_node),
            "current_link_width": str(device.link_width),
            "max_link_width": str(device.link_width),
            "resource": _windows(device.windows),
            "remove": "",
            **device.files,
        }
        for name, text in texts.items():
            _write(folder / name, f"{text}\n" if text else "")
        (folder / "config").write_bytes(_configuration(device.serial))
        for name, leads_to in device.links.items():
            (folder / name).symlink_to(leads_to)
        self._write_children(folder, device)
        (self._bus / "devices" / device.address).symlink_to(os.path.relpath(folder, self._bus / "devices"))
        if device.driver:
            self.bind(device.address, device.driver)

    def _write_children(self, folder: Path, device: PciDevice) -> None:
        for name, mac in device.interfaces.items():
            flags = "0x1003" if name in device.up else "0x1002"
            for file, text in {"address": mac, "flags": flags, "mtu": "1500", "speed": "100000"}.items():
                _write(folder / "net" / name / file, f"{text}\n")
        for made_by, said in device.device_files.items():
            name, _, numbers = said.partition(" ")
            major, _, minor = numbers.partition(":")
            _write(folder / made_by / "uevent", f"MAJOR={major}\nMINOR={minor}\nDEVNAME={name}\n")
            self.device_file(name)
        if device.uuid:
            said = f"Model: \t\t NVIDIA\nGPU UUID: \t {device.uuid}\nDevice Minor: \t {device.minor}\n"
            _write(self.proc / "driver/nvidia/gpus" / device.address / "information", said)
        if device.minor >= 0:
            self.device_file(f"nvidia{device.minor}")

    # --- what else there is

    def device_file(self, name: str) -> None:
        """Make a device file; a plain one, as nobody may make others."""
        _write(self.dev / name, "")

    def region(self, number: int, *, uuid: str, size: int, numa_node: int = 1, kernel: bool = False) -> None:
        """Make a memory region behind CXL, with a dax device; `kernel` says whether the kernel uses it as its own."""
        folder = self.sysfs / "devices/platform/cxl" / f"region{number}"
        _write(folder / "uuid", f"{uuid}\n")
        _write(folder / "size", f"{size:#x}\n")
        (folder / "driver").symlink_to("../cxl_region")
        name = f"dax{number}.0"
        dax = folder / f"dax_region{number}" / name
        _write(dax / "dev", "252:0\n")
        _write(dax / "target_node", f"{numa_node}\n")
        if kernel:
            (dax / "driver").symlink_to("../kmem")
        for bus, place in (("cxl", folder), ("dax", dax)):
            link = self.sysfs / "bus" / bus / "devices" / place.name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place)
        self.device_file(name)

    def huge_pages(self, numa_node: int, kibibytes: int, total: int, free: int) -> None:
        """Set aside huge pages."""
        folder = self.sysfs / f"devices/system/node/node{numa_node}/hugepages/hugepages-{kibibytes}kB"
        _write(folder / "nr_hugepages", f"{total}\n")
        _write(folder / "free_hugepages", f"{free}\n")

    def cpus(self, numa_nodes: Mapping[int, str], online: str) -> None:
        """Have CPUs: by NUMA node as the kernel lists them, `0-3,8`, and those that are online."""
        for node, numbers in numa_nodes.items():
            _write(self.sysfs / f"devices/system/node/node{node}/cpulist", f"{numbers}\n")
        _write(self.sysfs / "devices/system/cpu/online", f"{online}\n")

    def cpu(self, number: int, *, core: int, socket: int) -> None:
        """Say where a CPU is."""
        folder = self.sysfs / f"devices/system/cpu/cpu{number}/topology"
        _write(folder / "core_id", f"{core}\n")
        _write(folder / "physical_package_id", f"{socket}\n")

    def disk(self, name: str, number: str, *, mounted_at: str = "", holders: tuple[str, ...] = ()) -> None:
        """Make a disk, or a partition named `DISK/PARTITION`."""
        folder = self.sysfs / "class/block" / name
        _write(folder / "dev", f"{number}\n")
        for one in holders:
            (folder / "holders" / one).mkdir(parents=True)
        if mounted_at:
            mounts = self.proc / "1/mountinfo"
            before = mounts.read_text() if mounts.exists() else ""
            _write(mounts, f"{before}36 35 {number} / {mounted_at} rw - ext4 /dev/x rw\n")

    def run(self, process: Process) -> None:
        """Have a process run."""
        folder = self.proc / str(process.pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(process.opens, start=3):
            (folder / "fd" / str(number)).symlink_to(path)
        lines = (f"7f00-7f01 rw-s 00000000 00:05 1234 {' ' * 20} {path}\n" for path in process.maps)
        _write(folder / "maps", "7f02-7f03 r--p 00000000 00:00 0\n" + "".join(lines))
        _write(folder / "comm", f"{process.name}\n")
        pod = f"/kubepods/burstable/pod{process.pod}/c0ffee" if process.pod else "/system.slice/sshd.service"
        _write(folder / "cgroup", f"0::{pod}\n")

    def end(self, pid: int) -> None:
        """Have a process end."""
        shutil.rmtree(self.proc / str(pid))

    def pod(self, namespace: str, name: str, uid: str) -> None:
        """Have the kubelet keep logs of a pod."""
        (self.pod_logs / f"{namespace}_{name}_{uid}").mkdir()

    # --- the kernel

    async def __aenter__(self) -> Self:
        self._open = {}
        self._answer(self._bus / "rescan", self._rescan)
        for link in (self._bus / "devices").iterdir():
            self._answer(link.resolve() / "remove", partial(self.pull, link.name))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in tuple(self._open or ()):
            self._silence(path)
        self._open = None

    def _rescan(self) -> None:
        self.rescans += 1
        waiting, self._waiting = self._waiting, []
        for device in waiting:
            self.plug(device)

    def _answer(self, path: Path, act: Callable[[], None]) -> None:
        """Do something whenever somebody writes into a file."""
        if self._open is None:
            return
        path.unlink()
        os.mkfifo(path)
        # Opened for both, so that it has no end between two who write.
        self._open[path] = descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        asyncio.get_running_loop().add_reader(descriptor, self._written, descriptor, act)

    def _written(self, descriptor: int, act: Callable[[], None]) -> None:
        with suppress(BlockingIOError):
            if os.read(descriptor, CONFIGURATION_BYTES).strip() == b"1":
                act()

    def _silence(self, path: Path) -> None:
        descriptor = self._open.pop(path, None) if self._open is not None else None
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _windows(sizes: tuple[int, ...]) -> str:
    lines = [f"{WINDOW_START:#018x} {WINDOW_START + size - 1:#018x} {WINDOW_FLAGS:#018x}" for size in sizes]
    return "\n".join([*lines, *("0x0000000000000000 " * 3 for _ in range(6 - len(lines)))])


def _configuration(serial: int) -> bytes:
    """A configuration space; its serial number stands behind another capability, as it mostly does."""
    space = bytearray(CONFIGURATION_BYTES)
    if serial:
        space[0x100:0x104] = (0x0001 | 1 << 16 | 0x150 << 20).to_bytes(4, "little")
        space[0x150:0x154] = (0x0003 | 1 << 16).to_bytes(4, "little")
        space[0x154:0x15C] = serial.to_bytes(8, "little")
    return bytes(space)
