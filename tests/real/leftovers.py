"""What a control plane could leave behind. Knows processes, ports and folders. Must not know who owns them."""

import socket
from pathlib import Path


def processes_of(place: Path) -> list[int]:
    """Return the processes that were told of a folder."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:  # it has just ended
            continue
        if str(place).encode() in words:
            found.append(int(entry.name))
    return found


def listening(server: str) -> bool:
    """Whether somebody answers at a URL with a port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(server.rpartition(":")[2]))) == 0
