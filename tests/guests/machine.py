"""What the guests of these tests are made of: a machine of QEMU's, by software emulation, and a kernel."""

import os
import stat
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
KERNEL = CACHE / "jackfield" / "guest" / "vmlinuz"
"""Where `tools/guest/build` puts it."""
SECONDS_MAX = 300.0


def q35(*more: str) -> list[str]:
    """Return a machine with two ports into which devices can be plugged."""
    ports = [f"pcie-root-port,id=port{number},chassis={number},slot={number}" for number in (1, 2)]
    return [
        "qemu-system-x86_64",
        *("-machine", "q35", "-accel", "tcg", "-display", "none", "-nodefaults"),
        *(word for port in ports for word in ("-device", port)),
        *more,
    ]


def member(
    path: str, mode: int, body: bytes = b"", *, node: tuple[int, int] = (0, 0), changed: int = 0
) -> bytes:
    """Return a member of an initial file system, as cpio's new format has it."""
    name = path.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (1, mode, 0, 0, links, changed, len(body), 0, 0, *node, len(name), 0)
    head = b"070701" + "".join(f"{one:08x}" for one in fields).encode() + name
    return head + bytes(-len(head) % 4) + body + bytes(-len(body) % 4)
