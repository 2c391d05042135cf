"""What examples/quickstart tells a newcomer to type prints what it says.

Every `$` line of its README is typed, in order, in its folder; what is printed must be what stands below it, but for
ages, suffixes that are drawn, and the node and the folder that one finds oneself in.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from jackfield.testing.control_plane.binaries import built

QUICKSTART: Final = Path(__file__).parents[2] / "examples" / "quickstart"
BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
DRAWN: Final = (
    (re.compile(r"\b\d+[smh](\d+[smh])?(?=\s|$)", re.MULTILINE), "AGE"),
    (re.compile(r"train-gpu-\w{5}"), "train-gpu-SUFFIX"),
    (re.compile(r"worker-\d   Online"), "NODE   Online"),
    (re.compile(r"KUBECONFIG=\S*cluster\.yaml"), "KUBECONFIG=cluster.yaml"),
    (re.compile(r"[ \t]+"), " "),
)
UP_SECONDS_MAX: Final = 30


def steps() -> list[tuple[str, str]]:
    """Return what is typed, and what it should print."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall((QUICKSTART / "README.md").read_text()):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def masked(text: str) -> str:
    for pattern, word in DRAWN:
        text = pattern.sub(word, text)
    return text.strip()


@pytest.fixture
def environment() -> dict[str, str]:
    path = f"{built()}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "KUBECONFIG": "cluster.yaml"}


@pytest.fixture
def greeting(environment: dict[str, str]) -> Iterator[str]:
    """What is printed when it comes up, in the folder of the example."""
    command = ["jackfield", "up", "--kubeconfig", "cluster.yaml"]
    with subprocess.Popen(
        command, cwd=QUICKSTART, env=environment, text=True, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            printed: list[str] = []
            while not "".join(printed).endswith("left then.\n"):
                line = process.stdout.readline()
                assert line, f"it ended: {process.wait()}"
                printed.append(line)
            yield "".join(printed)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(UP_SECONDS_MAX) == 0
    assert not (QUICKSTART / "cluster.yaml").exists()


def test_every_command_of_the_quickstart_prints_what_it_says(
    greeting: str, environment: dict[str, str]
) -> None:
    (setup, nothing), (folder, _), (_, expected), (export, _), *rest = steps()
    assert (setup, nothing, folder) == ("make setup", "", "cd examples/quickstart")
    assert masked(greeting) == masked(expected)
    assert export == "export KUBECONFIG=cluster.yaml"
    assert len(rest) > 15
    for command, printed in rest:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=QUICKSTART,
            env=environment,
            text=True,
            capture_output=True,
            timeout=150,
            check=False,
        )
        assert (masked(done.stdout), done.stderr, done.returncode) == (masked(printed), "", 0), command
