"""The PCI back end on the bus of a real kernel, which a guest of QEMU runs: it scans, unbinds and removes for good."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from guests.machine import KERNEL, SECONDS_MAX, member, q35

HERE = Path(__file__).parent
LISTED = """
import sys
sys.path[:] = {path!r}
import guests.pci_inside
every = [*sys.modules.values()]
print(*{{getattr(one, name, None) for one in every for name in ("__file__", "__cached__")}}, sep="\\n")
"""
EXPECTED = """
attach what is there: done; there, driver serial
detach another: at 0000:01:00.0 there is 1b36:0002, not card, which is 10de:20b5; there, driver serial
detach: done; gone
detach again: done; gone
attach by its bridge: done; there, driver serial
detach once more: done; gone
attach by the whole bus: done; there, driver serial
"""


def needed() -> Iterator[Path]:
    """Return every file that Python opens to run the program inside: modules, programs, libraries."""
    python = Path(sys.executable).resolve()
    path = [one for one in sys.path if one]
    listed = subprocess.check_output([python, "-S", "-c", LISTED.format(path=path)], text=True)
    files = [Path(one) for one in listed.split("\n") if one.startswith("/") and Path(one).exists()]
    yield from (python, *files)
    for binary in (python, *(one for one in files if ".so" in one.suffixes)):
        for line in subprocess.check_output(["ldd", binary], text=True).splitlines():  # noqa: S607 - Linux has it
            yield from (Path(word) for word in line.split() if word.startswith("/"))


def initramfs(files: Iterable[Path]) -> bytes:
    """Return these files where they are here, and the console that a kernel opens first."""
    every = {str(one): one for one in files} | {"/inside": HERE / "pci_inside.py"}
    folders = {str(parent) for one in every for parent in Path(one).parents} - {"/"} | {"/dev"}
    made = [member(one[1:], stat.S_IFDIR | 0o755) for one in sorted(folders)]
    made += [member(f"dev/{name}", stat.S_IFCHR | 0o666, node=node) for name, node in NODES.items()]
    for one, path in every.items():  # with its time, or Python would compile anew what it finds compiled
        changed = int(path.stat().st_mtime)
        made.append(member(one[1:], stat.S_IFREG | 0o755, path.read_bytes(), changed=changed))
    return b"".join((*made, member("TRAILER!!!", 0)))


NODES = {"console": (5, 1), "null": (1, 3), "urandom": (1, 9)}


def test_a_device_comes_and_goes_on_the_bus_of_a_real_kernel(tmp_path: Path) -> None:
    (tmp_path / "initramfs").write_bytes(initramfs(needed()))
    path = ":".join(one for one in sys.path if one)
    python = Path(sys.executable).resolve()
    command = q35(
        *("-m", "768", "-no-reboot", "-serial", f"file:{tmp_path}/console"),
        *("-chardev", "null,id=nowhere", "-device", "pci-serial,bus=port1,chardev=nowhere"),
        *("-kernel", str(KERNEL), "-initrd", f"{tmp_path}/initramfs"),
        *("-append", f"console=ttyS0 loglevel=3 rdinit={python} PYTHONPATH={path} -- -S /inside"),
    )
    subprocess.run(command, check=True, timeout=SECONDS_MAX)
    console = (tmp_path / "console").read_text(errors="replace")
    said = [line.partition("SAID ")[2].strip() for line in console.splitlines() if "SAID " in line]
    assert said == EXPECTED.strip().split("\n"), console + os.linesep
