"""The page about `jackfield check` has every checker, with the words that the command prints."""

import re
from pathlib import Path

import pytest

from jackfield.cli import check
from jackfield.sim.audit.checkers import MEANINGS as SIMULATED
from jackfield.sim.audit.checkers import Checker

PAGE = Path(__file__).parents[3] / "docs" / "check.md"


def rows() -> list[tuple[str, ...]]:
    return re.findall(r"^\| `([a-z-]+)` \| (.+?) \|(?: (.+?) \|)?$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("checker", check.MEANINGS)
def test_what_a_checker_means_stands_on_the_page(checker: str) -> None:
    meaning = check.MEANINGS[checker]
    assert (checker, meaning.why, meaning.remedy) in rows()


@pytest.mark.parametrize("checker", SIMULATED)
def test_what_only_a_simulation_sees_stands_on_the_page(checker: Checker) -> None:
    assert (str(checker), SIMULATED[checker], "") in rows()


def test_the_page_has_no_other_checker() -> None:
    assert [row[0] for row in rows()] == [*check.MEANINGS, *SIMULATED]
