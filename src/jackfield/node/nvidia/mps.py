"""MPS control daemons: what `calls.Mps` promises, kept by NVIDIA's control program.

Each daemon has a folder: its pipes, its log, its shared memory, and a file that says what it is. The folder is on the
node, so that containers can be shown the pipes and a plugin that starts anew finds its daemons. Knows the control
program. Must not know who shares what.
"""

import shutil
from pathlib import Path

import msgspec

from jackfield.core.share import Daemon
from jackfield.node.nvidia.commands import Command, Run, run
from jackfield.ports import PortError, Retry

FOLDER = Path("/run/jackfield/mps")
"""In memory, so that what the daemon and its clients share is too, and is gone after a reboot, as they are."""
_CONTROL = "nvidia-cuda-mps-control"
_FACTS = "daemon.json"
_PROCESSES = Path("/proc")
_IN_A_PLACE_OF_ITS_OWN = 'mount --bind "$1" /dev/shm && exec nvidia-cuda-mps-control -d'
"""The daemon's /dev/shm is the folder that its clients see as theirs, and nobody else does."""


class ControlDaemons:
    """The MPS control daemons of this node, one for each GPU or partition that is shared by MPS."""

    def __init__(self, folder: Path = FOLDER, runner: Run = run, processes: Path = _PROCESSES) -> None:
        self._folder = folder
        self._run = runner
        self._processes = processes

    def daemons(self) -> tuple[Daemon, ...]:
        """Return those that run."""
        facts = sorted(self._folder.glob(f"*/{_FACTS}"))
        return tuple(daemon for one in facts if (daemon := self._running(one)) is not None)

    def start(self, daemon: Daemon) -> None:
        """Start it, and return when clients can reach it; one that runs goes on as it is."""
        if any(one.device == daemon.device for one in self.daemons()):
            return
        place = self._place(daemon.device)
        # What one that died left behind would be in the way of the next.
        shutil.rmtree(place, ignore_errors=True)
        for name in ("pipe", "log", "shm"):
            (place / name).mkdir(parents=True)
        environment = self._environment(daemon.device)
        arguments = ("unshare", "--mount", "sh", "-c", _IN_A_PLACE_OF_ITS_OWN, "sh", str(place / "shm"))
        self._run(Command(arguments, environment))
        for line in _limits(daemon):
            self._run(Command((_CONTROL,), environment, f"{line}\n"))
        # Last, so that one whose limits were not set is none.
        (place / _FACTS).write_bytes(msgspec.json.encode(daemon))
        if self._running(place / _FACTS) is None:
            said = self._log(place)
            raise Retry(f"the MPS daemon for {daemon.device} ended as soon as it began{said}")

    def stop(self, device: str) -> None:
        """Stop it, and its clients with it; one that does not run is stopped."""
        place = self._place(device)
        if self._pid(place):
            try:
                self._run(Command((_CONTROL,), self._environment(device), "quit -t 10\n"))
            except PortError:
                if self._pid(place):
                    raise
        shutil.rmtree(place, ignore_errors=True)

    def _place(self, device: str) -> Path:
        return self._folder / device

    def _environment(self, device: str) -> dict[str, str]:
        place = self._place(device)
        return {
            "CUDA_VISIBLE_DEVICES": device,
            "CUDA_MPS_PIPE_DIRECTORY": str(place / "pipe"),
            "CUDA_MPS_LOG_DIRECTORY": str(place / "log"),
        }

    def _running(self, facts: Path) -> Daemon | None:
        try:
            daemon = msgspec.json.decode(facts.read_bytes(), type=Daemon)
        except (OSError, msgspec.MsgspecError):
            return None
        return daemon if self._pid(facts.parent) else None

    def _pid(self, place: Path) -> int:
        """Return the daemon's process; 0 where none runs. A number that came to be another program's is none."""
        try:
            number = int((place / "pipe" / f"{_CONTROL}.pid").read_text())
            command = (self._processes / str(number) / "cmdline").read_bytes()
        except (OSError, ValueError):
            return 0
        return number if _CONTROL.encode() in command else 0

    def _log(self, place: Path) -> str:
        try:
            lines = (place / "log" / "control.log").read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return f"; its log ends with: {lines[-1]}" if lines else ""


def _limits(daemon: Daemon) -> list[str]:
    """Return what the control program is told about clients that ask for nothing themselves."""
    lines = []
    if daemon.active_thread_percentage:
        lines.append(f"set_default_active_thread_percentage {daemon.active_thread_percentage}")
    if daemon.pinned_memory_mebibytes:
        lines.append(f"set_default_device_pinned_mem_limit 0 {daemon.pinned_memory_mebibytes}M")
    return lines
