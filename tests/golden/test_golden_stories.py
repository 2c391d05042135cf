"""Every scenario here plays out as it says, and tells the same story as last time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jackfield.sim import play, scenario, story

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("*.yaml"))

Golden = Callable[[Path, str], None]


def told(outcome: play.Outcome) -> str:
    lines = [story.rendered(line) for line in outcome.lines if not line.bookkeeping]
    return "\n".join([story.HEADER, *lines, ""])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_comes_out_as_it_says_and_tells_its_story(path: Path, golden: Golden) -> None:
    outcome = play.perform(scenario.read(path), seed=1)
    assert outcome.failures == ()
    golden(path.with_suffix(".txt"), told(outcome))


def test_there_are_scenarios_to_play() -> None:
    assert len(SCENARIOS) >= 5
