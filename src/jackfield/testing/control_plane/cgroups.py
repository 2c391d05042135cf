"""The control groups of a node: made before its first process, removed after its last, in every hierarchy there is.

They are the one thing that the kernel does not take away by itself. So whoever makes the next node does, as with
folders (`folder.py`): a tree that nobody has locked is nobody's. Knows groups of either version. Must not know what
runs in them.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jackfield.testing.control_plane.errors import ControlPlaneError

PREFIX = "jackfield-node-"
INNER = "machine"
"""The group of the programs themselves: beside those of the pods, since a group of groups must be empty."""
MOUNTS = Path("/proc/self/mounts")


class Groups:
    """The groups of one node."""

    def __init__(self, name: str) -> None:
        self.name = f"{PREFIX}{name}"
        sweep()
        self._locks: list[int] = []
        self._trees = tuple(place / self.name for place in hierarchies())
        self.inner = tuple(tree / INNER for tree in self._trees)
        try:
            for tree in self._trees:
                self._make(tree)
        except OSError as error:
            self.close()
            raise ControlPlaneError(
                f"a node needs control groups, and they cannot be made here: {error}"
            ) from None

    def _make(self, tree: Path) -> None:
        _make_group(tree)
        lock = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
        self._locks.append(lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make_group(tree / INNER)

    def left(self) -> tuple[Path, ...]:
        """Return those that are still there."""
        return tuple(tree for tree in self._trees if tree.exists())

    def close(self) -> None:
        """Remove them. One in which something still runs stays, for the next to remove."""
        for tree in self._trees:
            _remove(tree)
        while self._locks:
            os.close(self._locks.pop())


def hierarchies() -> tuple[Path, ...]:
    """Return where groups are mounted: one place in version 2, several in version 1, or both."""
    mounts = (line.split() for line in MOUNTS.read_text().splitlines())
    return tuple(Path(words[1]) for words in mounts if words[2] in {"cgroup", "cgroup2"})


def sweep() -> None:
    """Remove the trees whose owners are gone."""
    for place in hierarchies():
        for tree in place.glob(f"{PREFIX}*"):
            with suppress(OSError), _locked(tree):  # in use, or just removed by another
                _remove(tree)


@contextmanager
def _locked(tree: Path) -> Iterator[None]:
    lock = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(lock)


def _remove(tree: Path) -> None:
    groups = sorted(Path(place) for place, _, _ in os.walk(tree))
    for group in reversed(groups):  # the deepest first
        with suppress(OSError):
            group.rmdir()


def _make_group(group: Path) -> None:
    group.mkdir()
    # In version 1 a new group has no processors and no memory, and so no room for a process.
    for name in ("cpuset.cpus", "cpuset.mems"):
        theirs, ours = group.parent / name, group / name
        if theirs.exists() and ours.exists():
            ours.write_text(theirs.read_text())
