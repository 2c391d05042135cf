"""The same scenario and seed give the same story, whatever the hash seed; another seed gives another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def told(scenario: str, seed: int, hash_seed: int) -> str:
    path = str(GOLDEN / f"{scenario}.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "jackfield", "sim", path, "--seed", str(seed), "--json"],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("scenario", ["count_of_eight", "reschedule", "slots", "restarts", "blame"])
def test_a_story_is_the_same_under_every_hash_seed(scenario: str) -> None:
    assert told(scenario, 3, 1) == told(scenario, 3, 2)


def test_another_seed_tells_another_story() -> None:
    assert told("restarts", 3, 1) != told("restarts", 4, 1)
