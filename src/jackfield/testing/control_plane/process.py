"""One program of a control plane as a process: started, killed, paused, and never left behind.

Each process is a session of its own, so that a Ctrl-C in the terminal does not reach it, and dies with us whatever
happens to us (`tether.py`). Knows processes and their logs. Must not know which programs there are.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

TETHER = Path(__file__).with_name("tether.py")
TAIL_LINES = 25
TAIL_BYTES = 64 * 1024


def script(path: Path, *words: str) -> tuple[str, ...]:
    """Return how a script of ours is run that needs nothing but Python."""
    return (sys.executable, "-I", "-S", str(path), *words)


def tethered() -> tuple[str, ...]:
    """Return what a program is started by, so that it dies with us."""
    return script(TETHER, str(os.getpid()))


class Nursery:
    """The thread that starts processes. They die when it ends, so it lasts as long as they may.

    `starter` says what a program is started by; the thread calls `first` before it starts any.
    """

    def __init__(
        self, starter: Callable[[], tuple[str, ...]] = tethered, first: Callable[[], object] = tuple
    ) -> None:
        self._starter = starter
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="control-plane", initializer=first)

    def spawn(self, command: Sequence[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
        """Start a program that writes to a log and knows nothing of our environment."""
        return self._thread.submit(_spawn, (*self._starter(), *command), log, folder).result()

    def close(self) -> None:
        """End the thread, and with it what is still running."""
        self._thread.shutdown()


def _spawn(command: Sequence[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as sink:
        return subprocess.Popen(  # noqa: S603 - the programs are ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={"HOME": str(folder), "PATH": os.defpath},
            start_new_session=True,
        )


class Process:
    """A program that can be started again and again with the same words."""

    def __init__(self, nursery: Nursery, command: Sequence[str], log: Path) -> None:
        self._nursery = nursery
        self._command = command
        self._current: subprocess.Popen[bytes] | None = None
        self.log = log

    @property
    def pid(self) -> int:
        """The id of the process that was started last; 0 if there was none."""
        return self._current.pid if self._current else 0

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs, and before it was started."""
        return self._current.poll() if self._current else None

    @property
    def running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self._current is not None and self._current.poll() is None

    def start(self) -> None:
        """Start it, unless it runs."""
        if not self.running:
            self._current = self._nursery.spawn(self._command, self.log, self.log.parent)

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most so long."""
        if self._current:
            with suppress(subprocess.TimeoutExpired):
                self._current.wait(seconds)

    def kill(self) -> None:
        """Kill it, as a machine that dies would; return when it is gone. Does nothing if it is."""
        if self._current and self._current.poll() is None:
            self._current.kill()
            self._current.wait()

    def stop(self, seconds_max: float) -> None:
        """Ask it to end, and kill it if it does not in time."""
        if self._current and self._current.poll() is None:
            self._current.terminate()
            self.wait(seconds_max)
            self.kill()

    def pause(self) -> None:
        """Stop it in the middle of whatever it does; return when it stands still."""
        if self._current:
            self._current.send_signal(signal.SIGSTOP)
            # The signal is only the request. Its end is left for `Popen` to see, if it comes to that.
            os.waitid(os.P_PID, self._current.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let it go on."""
        if self._current:
            self._current.send_signal(signal.SIGCONT)

    def tail(self) -> str:
        """Return the last lines of its log."""
        if not self.log.exists():
            return "(it has written nothing)"
        with self.log.open("rb") as source:
            source.seek(max(0, source.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = source.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])
