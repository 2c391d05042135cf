"""NVIDIA's commands, the MPS daemons, and the container toolkit."""

from pathlib import Path

import pytest

from jackfield.core.share import Daemon
from jackfield.node.nvidia import Command, ControlDaemons, generate, run
from jackfield.node.nvidia.toolkit import qualified
from jackfield.ports import Refused, Retry

CONTROL = "nvidia-cuda-mps-control"


class Machine:
    """What the control program does: a daemon for each pipe directory, processes in a folder like /proc."""

    def __init__(self, folder: Path) -> None:
        self.processes = folder / "proc"
        self.folder = folder / "mps"
        self.said: list[str] = []
        self.sick = ""
        self._last = 100

    @property
    def daemons(self) -> ControlDaemons:
        """The daemons as a plugin that has just started sees them."""
        return ControlDaemons(self.folder, self.run, self.processes)

    def run(self, command: Command) -> str:
        pipe = Path(command.environment["CUDA_MPS_PIPE_DIRECTORY"])
        self.said.append(" ".join((*command.arguments[:1], command.text.strip())).strip())
        if self.sick == "refuses":
            raise Retry("`unshare` failed (1): Operation not permitted")
        if not command.text:
            assert command.arguments[-1] == str(pipe.parent / "shm")
            self._last += 1
            (pipe / f"{CONTROL}.pid").write_text(f"{self._last}\n")
            if self.sick == "dies":
                log = Path(command.environment["CUDA_MPS_LOG_DIRECTORY"]) / "control.log"
                log.write_text("starting\nno CUDA-capable device\n")
            elif self.sick != "dies silently":
                self.live(self._last)
        elif command.text.startswith("quit"):
            if self.sick == "hangs":
                raise Retry("did not end within 30 s")
            self.die(int((pipe / f"{CONTROL}.pid").read_text()))
            if self.sick == "dies badly":
                raise Retry("failed (1)")
        return ""

    def live(self, pid: int, name: str = CONTROL) -> None:
        (self.processes / str(pid)).mkdir(parents=True)
        (self.processes / str(pid) / "cmdline").write_bytes(f"{name}\0-d\0".encode())

    def die(self, pid: int) -> None:
        (self.processes / str(pid) / "cmdline").unlink()
        (self.processes / str(pid)).rmdir()


def test_a_daemon_is_started_with_its_limits_and_found_again_after_a_restart(tmp_path: Path) -> None:
    machine, daemon = Machine(tmp_path), Daemon("GPU-1", 50, 1024)
    machine.daemons.start(daemon)
    assert machine.said == [
        "unshare",
        f"{CONTROL} set_default_active_thread_percentage 50",
        f"{CONTROL} set_default_device_pinned_mem_limit 0 1024M",
    ]
    assert machine.daemons.daemons() == (daemon,)
    machine.daemons.start(daemon)
    assert len(machine.said) == 3


def test_a_daemon_is_stopped_and_nothing_is_left_of_it(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.daemons.start(Daemon("GPU-1"))
    for _ in range(2):
        machine.daemons.stop("GPU-1")
    assert (machine.daemons.daemons(), list(machine.folder.iterdir())) == ((), [])
    assert machine.said == ["unshare", f"{CONTROL} quit -t 10"]


def test_each_device_has_a_daemon_of_its_own(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for device in ("MIG-2", "GPU-1"):
        machine.daemons.start(Daemon(device))
    machine.daemons.stop("GPU-1")
    assert machine.daemons.daemons() == (Daemon("MIG-2"),)


def test_a_daemon_that_died_does_not_run_and_is_started_anew(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.daemons.start(Daemon("GPU-1"))
    machine.die(101)
    assert machine.daemons.daemons() == ()
    machine.live(101, "somebody-else")
    assert machine.daemons.daemons() == ()
    machine.daemons.start(Daemon("GPU-1", 10))
    assert machine.daemons.daemons() == (Daemon("GPU-1", 10),)


def test_what_cannot_be_read_is_no_daemon(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.daemons.start(Daemon("GPU-1"))
    facts = machine.folder / "GPU-1" / "daemon.json"
    facts.write_text("{")
    assert machine.daemons.daemons() == ()
    (machine.folder / "GPU-1" / "pipe" / f"{CONTROL}.pid").write_text("none")
    assert machine.daemons.daemons() == ()


@pytest.mark.parametrize(
    ("sick", "words"),
    [
        ("refuses", "Operation not permitted"),
        ("dies", "ended as soon as it began; its log ends with: no CUDA-capable device"),
        ("dies silently", "ended as soon as it began$"),
    ],
)
def test_a_daemon_that_does_not_start_is_told_in_words(tmp_path: Path, sick: str, words: str) -> None:
    machine = Machine(tmp_path)
    machine.sick = sick
    with pytest.raises(Retry, match=words):
        machine.daemons.start(Daemon("GPU-1"))
    assert machine.daemons.daemons() == ()


def test_an_empty_log_says_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.sick = "dies silently"

    def with_an_empty_log(command: Command) -> str:
        (Path(command.environment["CUDA_MPS_LOG_DIRECTORY"]) / "control.log").write_text("")
        return machine.run(command)

    with pytest.raises(Retry, match=r"as soon as it began$"):
        ControlDaemons(machine.folder, with_an_empty_log, machine.processes).start(Daemon("GPU-1"))


def test_a_daemon_that_does_not_stop_is_not_forgotten(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.daemons.start(Daemon("GPU-1"))
    machine.sick = "hangs"
    with pytest.raises(Retry, match="did not end"):
        machine.daemons.stop("GPU-1")
    assert machine.daemons.daemons() == (Daemon("GPU-1"),)
    machine.sick = "dies badly"
    machine.daemons.stop("GPU-1")
    assert machine.daemons.daemons() == ()


# --- commands


def script(folder: Path, text: str) -> str:
    program = folder / "nvidia-smi"
    program.write_text(text)
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_a_command_gets_its_arguments_its_environment_and_its_text(tmp_path: Path) -> None:
    path = script(tmp_path, '#!/bin/sh\nread line\necho "$1 $ONE $line"\n')
    command = Command(("nvidia-smi", "a; b"), {"ONE": "1"}, "told\n")
    assert run(command, path) == "a; b 1 told\n"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("#!/bin/sh\necho broken >&2\nexit 3\n", Retry, r"`nvidia-smi -L` failed \(3\): broken"),
        ("#!/bin/sh\necho Unable to talk\nexit 1\n", Retry, "Unable to talk"),
        ("#!/nowhere/at/all\n", Refused, "cannot be run"),
    ],
)
def test_a_command_that_fails_is_told_with_its_words(
    tmp_path: Path, text: str, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        run(Command(("nvidia-smi", "-L")), script(tmp_path, text))


def test_a_command_that_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="`nvidia-smi` is not installed on this node"):
        run(Command(("nvidia-smi",)), str(tmp_path))


def test_a_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    path = script(tmp_path, "#!/bin/sh\nexec sleep 600\n")
    with pytest.raises(Retry, match="did not end within 0 s"):
        run(Command(("nvidia-smi",), timeout_seconds=0.1), path)


def test_the_toolkits_specification_is_written_under_a_kind_of_ours(tmp_path: Path) -> None:
    commands: list[Command] = []

    def note(command: Command) -> str:
        commands.append(command)
        return ""

    generate(note, tmp_path)
    (command,) = commands
    assert command.arguments[:3] == ("nvidia-ctk", "cdi", "generate")
    assert "--device-name-strategy=uuid" in command.arguments
    assert f"--output={tmp_path}/jackfield-nvidia.json" in command.arguments
    assert qualified("MIG-1") == "node.jackfield.dev/nvidia-gpu=MIG-1"
