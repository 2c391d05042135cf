"""NVIDIA's commands, run to their end.

Knows how a command is run and how its failure is told. Must not know what any command does.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping

import msgspec

from jackfield.ports import Refused, Retry

TIMEOUT_SECONDS = 30.0
_WORDS_MAX = 400


class Command(msgspec.Struct, frozen=True):
    """A command, what it reads, and what its environment has."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """All of it: nothing is inherited but where commands are found."""
    text: str = ""
    timeout_seconds: float = TIMEOUT_SECONDS


Run = Callable[[Command], str]
"""Runs a command and returns what it printed. Raises Refused where there is none, Retry where it failed."""


def run(command: Command, path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") -> str:
    """Run a command; nothing of it goes through a shell."""
    name = command.arguments[0]
    program = shutil.which(name, path=path)
    if program is None:
        raise Refused(f"`{name}` is not installed on this node (looked for in {path})")
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours
            (program, *command.arguments[1:]),
            env={"PATH": path, **command.environment},
            input=command.text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=command.timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Retry(f"`{name}` did not end within {command.timeout_seconds:.0f} s") from None
    except OSError as error:
        raise Refused(f"`{name}` cannot be run: {error.strerror}") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:_WORDS_MAX]
        raise Retry(f"`{' '.join(command.arguments)}` failed ({done.returncode}): {said}")
    return done.stdout
