"""The two programs that are compared: Kubernetes' own code, and ours.

Knows how each is asked. Must not know what they are asked.
"""

import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from jackfield.codec import Raw, answers
from jackfield.core.allocate import Profile

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "tools" / "oracle" / "build"

Ask = Callable[[Sequence[bytes]], list[Raw]]


class NoOracleError(Exception):
    """The oracle could not be built; the build has said why."""


def oracle() -> Path:
    """Return the oracle's path; it is built where it is not built yet."""
    built = subprocess.run([BUILD], stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        raise NoOracleError(f"{BUILD.relative_to(ROOT)} ended with status {built.returncode}")
    return Path(built.stdout.strip())


def kubernetes(binary: Path, command: str) -> Ask:
    """Return what asks Kubernetes' code, which goes on running until it is asked no more."""
    process = subprocess.Popen([binary, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    source, sink = process.stdin, process.stdout
    assert source is not None
    assert sink is not None

    def one(line: bytes) -> Raw:
        source.write(line)
        source.flush()
        answer: Raw = msgspec.json.decode(sink.readline())
        return answer

    return lambda lines: [one(line) for line in lines]


def ours(command: str) -> Ask:
    """Return what asks our engine, by the same function as `jackfield dra`."""
    known: dict[str, answers.Answer] = {
        "allocate": partial(answers.allocation, profile=Profile.V1_36),
        "cel": answers.evaluation,
    }

    def ask(lines: Sequence[bytes]) -> list[Raw]:
        replies = [answers.reply(line, number, known[command]) for number, line in enumerate(lines, 1)]
        return [msgspec.json.decode(reply) for reply in replies]

    return ask
