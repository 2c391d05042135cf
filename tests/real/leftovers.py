"""What a control plane or a node could leave behind: processes, ports, mounts, control groups.

Must not know who owns them.
"""

import socket
from contextlib import suppress
from pathlib import Path

from jackfield.testing.control_plane.cgroups import PREFIX, hierarchies


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


def groups_of(plane: Path) -> list[Path]:
    """Return the control groups that the nodes of a control plane have, the outermost of each tree."""
    return [tree for place in hierarchies() for tree in place.glob(f"{PREFIX}{plane.name}-*")]


def members_of(plane: Path) -> set[int]:
    """Return all processes of its nodes, containers included."""
    found: set[int] = set()
    for tree in groups_of(plane):
        for file in tree.rglob("cgroup.procs"):
            with suppress(OSError):  # its group has just been removed
                found.update(int(line) for line in file.read_text().split())
    return found


def alive(processes: set[int]) -> set[int]:
    """Return those that have not ended."""
    return {one for one in processes if Path(f"/proc/{one}").exists()}


def mounts_below(place: Path) -> list[str]:
    """Return what is mounted in a folder, for us."""
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(place) in line]
