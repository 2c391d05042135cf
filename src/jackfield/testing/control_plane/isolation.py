"""A machine of its own for the programs of a node, within this one: `machine.py` as a process, and a way inside.

Containers outlive those who started them, on purpose. So the programs of a node get a machine whose end is the end of
everything in it. Knows namespaces by their names in `/proc`. Must not know which programs run there.
"""

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path

from jackfield.testing.control_plane.cgroups import Groups
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.process import Nursery, Process, script

SCRIPT = Path(__file__).with_name("machine.py")
READY = "machine"
CLONE_NEWPID = 0x20000000
POLL_SECONDS = 0.02
START_SECONDS_MAX = 30.0
END_SECONDS_MAX = 30.0


class Machine:
    """A machine that runs from now on. Inside, `/run`, `/var/lib` and `/var/log` are those of the folder."""

    def __init__(self, folder: Path, name: str, log: Path) -> None:
        self.folder = folder
        for place in ("run", "lib", "log"):
            (folder / place).mkdir(parents=True)
        # The folder of a control plane has a name that nobody else has.
        self.groups = Groups(f"{folder.parent.parent.name}-{name}")
        self._outside = Nursery()
        inner = tuple(str(group) for group in self.groups.inner)
        self._process = Process(self._outside, script(SCRIPT, "make", str(folder), name, *inner), log)
        self._inside = Nursery(self._starter, self._enter)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self._process.start()
        until = time.monotonic() + START_SECONDS_MAX
        while not (self.folder / READY).exists():
            if not self._process.running or time.monotonic() > until:
                raise ControlPlaneError(
                    f"there can be no node here: its namespaces cannot be made\n{self._process.tail()}"
                )
            self._process.wait(POLL_SECONDS)

    def _starter(self) -> tuple[str, ...]:
        inner = (str(group) for group in self.groups.inner)
        return script(SCRIPT, "enter", str(self._process.pid), *inner, "--")

    def _enter(self) -> None:
        """Let what this thread starts from now on be processes of the machine. It stays outside itself."""
        with Path(f"/proc/{self._process.pid}/ns/pid_for_children").open("rb") as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWPID):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def process(self, command: Sequence[str], log: Path) -> Process:
        """Return a program of the machine, not yet started. Whoever starts it kills it before the machine ends."""
        return Process(self._inside, command, log)

    @property
    def running(self) -> bool:
        """Whether it runs."""
        return self._process.running

    def close(self) -> None:
        """End everything in it; return when nothing is left."""
        self._inside.close()
        self._process.stop(END_SECONDS_MAX)
        self._outside.close()
        self.groups.close()
