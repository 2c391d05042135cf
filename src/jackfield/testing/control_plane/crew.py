"""The programs of one control plane, or of one node, as processes, and whether they are ready.

Knows how each is asked for its health, and how long to wait. Must not know what they are started with.
"""

import re
import ssl
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from jackfield.testing.control_plane.api import Api
from jackfield.testing.control_plane.binaries import Program
from jackfield.testing.control_plane.errors import ControlPlaneError
from jackfield.testing.control_plane.process import Process

POLL_SECONDS = 0.1
SAY_SECONDS = 5.0
HEALTH = {
    Program.ETCD: "/health",
    Program.APISERVER: "/readyz?verbose",
    Program.CONTROLLER_MANAGER: "/healthz?verbose",
    Program.SCHEDULER: "/readyz?verbose",
}

Say = Callable[[str], object]
P = TypeVar("P", bound=StrEnum)


class Crew(Generic[P]):
    """The processes, by program. One caller at a time."""

    def __init__(self, processes: Mapping[P, Process], seconds_max: float, say: Say) -> None:
        self._processes = processes
        self._seconds_max = seconds_max
        self._say = say
        self._wanted: dict[P, bool] = dict.fromkeys(processes, False)

    def __getitem__(self, program: P) -> Process:
        return self._processes[program]

    def start(self, program: P) -> None:
        """Start it; do not wait."""
        self._wanted[program] = True
        self._processes[program].start()

    def kill(self, program: P) -> None:
        """Kill it; from now on it is missed by nobody."""
        self._wanted[program] = False
        self._processes[program].kill()

    def kill_all(self) -> None:
        """Kill all, the last to be started first."""
        for program in reversed(tuple(self._processes)):
            self.kill(program)

    def wait(self, program: P, missing: Callable[[], str], what: str = "ready") -> None:
        """Wait until nothing is missing any more; say so, or say what is."""
        began = said = time.monotonic()
        while reason := missing():
            self.check()
            now = time.monotonic()
            if now - began > self._seconds_max:
                raise ControlPlaneError(
                    f"{program} is not {what} after {now - began:.0f} s: {reason}\n{self._last_words(program)}"
                )
            if now - said > SAY_SECONDS:
                said = now
                self._say(f"{program}: not {what} after {now - began:.0f} s: {reason}")
            self._processes[program].wait(POLL_SECONDS)
        self._say(f"{program}: {what} after {time.monotonic() - began:.1f} s")

    def check(self) -> None:
        """Blame the first program that ended by itself, since the others may only suffer from that."""
        for program, process in self._processes.items():
            if self._wanted[program] and not process.running:
                raise ControlPlaneError(
                    f"{program} ended with status {process.status}\n{self._last_words(program)}"
                )

    def _last_words(self, program: P) -> str:
        process = self._processes[program]
        return f"The end of {process.log.name}:\n{process.tail()}"


def missing_health(program: Program, port: int, context: ssl.SSLContext, token: str) -> str:
    """Return why a program is not ready; nothing if it is."""
    return missing_page(port, context, token, HEALTH[program])


def missing_page(port: int, context: ssl.SSLContext, token: str, path: str) -> str:
    """Return why a page that says OK does not; nothing if it does."""
    with Api(port, context, token) as api:
        status, text = api.status(path)
    if status == 200:  # noqa: PLR2004 - OK
        return ""
    failed = re.findall(r"^\[-\](\S+)", text, re.MULTILINE)
    more = f" and {len(failed) - 1} more" if failed[1:] else ""
    shown = f"waits for {failed[0]}{more}" if failed else text.strip()
    return f"{status} {shown}" if status else text
