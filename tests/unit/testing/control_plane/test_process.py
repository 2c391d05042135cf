"""Processes start, stop and stand still when told to, and die with the thread and the process that started them."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jackfield.testing.control_plane.process import TETHER, Nursery, Process

SLEEP = ("/bin/sleep", "60")
PARENT = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), "/bin/sleep", "60"])
print(child.pid, flush=True)
sys.stdin.read()
"""
SECONDS_MAX = 10.0


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def sleeper(nursery: Nursery, folder: Path) -> Process:
    """Return a process that has become its program."""
    process = Process(nursery, SLEEP, folder / "log")
    process.start()
    assert comes_true(lambda: program_of(process.pid) == b"/bin/sleep")
    return process


def comes_true(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + SECONDS_MAX
    pause = threading.Event()
    while not condition() and time.monotonic() < until:
        pause.wait(0.02)
    return condition()


def program_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0]


def state_of(pid: int) -> str:
    """Return the letter that the kernel has for a process; X if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def test_a_process_runs_from_start_to_kill_and_again(nursery: Nursery, tmp_path: Path) -> None:
    process = sleeper(nursery, tmp_path)
    first = process.pid
    before = (process.running, process.status)
    process.kill()
    after = (process.running, process.status)
    assert (before, after) == ((True, None), (False, -signal.SIGKILL))
    assert state_of(first) == "X"
    process.kill()
    process.start()
    assert process.running
    assert process.pid != first
    process.kill()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("exec sleep 60", -signal.SIGTERM),
        ("trap '' TERM; echo deaf; while :; do sleep 1; done", -signal.SIGKILL),
    ],
)
def test_a_process_is_asked_to_end_and_killed_if_it_does_not(
    nursery: Nursery, tmp_path: Path, words: str, status: int
) -> None:
    process = Process(nursery, ("/bin/sh", "-c", f"echo ready; {words}"), tmp_path / "log")
    process.start()
    assert comes_true(lambda: process.tail().endswith("deaf" if "deaf" in words else "ready"))
    process.stop(0.2 if "deaf" in words else SECONDS_MAX)
    assert process.status == status
    process.stop(SECONDS_MAX)


def test_a_process_that_was_never_started_can_be_asked_everything(nursery: Nursery, tmp_path: Path) -> None:
    process = Process(nursery, SLEEP, tmp_path / "log")
    process.kill()
    process.stop(1)
    process.pause()
    process.resume()
    process.wait(1)
    assert (process.pid, process.running, process.status) == (0, False, None)
    assert process.tail() == "(it has written nothing)"


def test_a_process_that_runs_is_not_started_twice(nursery: Nursery, tmp_path: Path) -> None:
    process = sleeper(nursery, tmp_path)
    first = process.pid
    process.start()
    assert process.pid == first
    process.kill()


def test_a_process_is_a_session_of_its_own(nursery: Nursery, tmp_path: Path) -> None:
    process = sleeper(nursery, tmp_path)
    assert os.getsid(process.pid) == process.pid
    process.kill()


def test_a_paused_process_stands_still_until_it_may_go_on(nursery: Nursery, tmp_path: Path) -> None:
    process = sleeper(nursery, tmp_path)
    process.pause()
    assert state_of(process.pid) == "T"
    process.pause()
    assert process.running
    process.resume()
    assert comes_true(lambda: state_of(process.pid) == "S")
    process.pause()
    process.kill()
    assert not process.running


def test_a_process_inherits_nothing_of_our_environment(nursery: Nursery, tmp_path: Path) -> None:
    process = sleeper(nursery, tmp_path)
    words = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    process.kill()
    names = sorted(word.partition(b"=")[0] for word in words if word)
    assert [name for name in names if name != b"LC_CTYPE"] == [b"HOME", b"PATH"]


def test_the_end_of_a_log_is_its_last_lines(nursery: Nursery, tmp_path: Path) -> None:
    script = "import sys; [print(number) for number in range(100000)]; sys.exit(3)"
    process = Process(nursery, (sys.executable, "-c", script), tmp_path / "log")
    process.start()
    process.wait(SECONDS_MAX)
    assert process.status == 3
    assert process.tail().splitlines() == [str(number) for number in range(99975, 100000)]


def test_processes_die_with_the_nursery(tmp_path: Path) -> None:
    nursery = Nursery()
    process = sleeper(nursery, tmp_path)
    nursery.close()
    process.wait(SECONDS_MAX)
    assert process.status == -signal.SIGKILL


def test_processes_outlive_the_thread_that_asked_for_them(nursery: Nursery, tmp_path: Path) -> None:
    started: list[Process] = []
    thread = threading.Thread(target=lambda: started.append(sleeper(nursery, tmp_path)))
    thread.start()
    thread.join()
    started[0].wait(0.2)
    assert started[0].running
    started[0].kill()


def test_a_tethered_program_dies_with_a_parent_that_is_killed() -> None:
    words = [sys.executable, "-c", PARENT, str(TETHER)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert comes_true(lambda: program_of(child) == b"/bin/sleep")
        parent.kill()
    assert comes_true(lambda: state_of(child) in "XZ")


def test_a_tethered_program_is_not_started_for_a_parent_that_is_gone() -> None:
    run = subprocess.run(
        [sys.executable, "-I", "-S", TETHER, "1", "/bin/echo", "started"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "process 1, which started this one, is gone\n"


def test_a_tethered_program_can_be_ended_by_a_broken_pipe() -> None:
    show = ("/bin/grep", "SigIgn", "/proc/self/status")
    words = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *show]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    assert not int(run.stdout.split()[1], 16) & 1 << signal.SIGPIPE - 1
