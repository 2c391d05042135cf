"""The table of mutants does not rot: what each replaces is still there, and there is only one of it."""

import ast
from pathlib import Path

import pytest

from mutants.table import MUTANTS, Mutant

SOURCE = Path(__file__).parents[2] / "src" / "jackfield"
LEAST = 25
TRACES = 19


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_what_a_mutant_replaces_is_in_its_file_once(mutant: Mutant) -> None:
    text = (SOURCE / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.new != mutant.old
    ast.parse(text.replace(mutant.old, mutant.new))


def test_there_are_enough_mutants_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTANTS) >= LEAST
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)
    traces = " ".join(one.breaks for one in MUTANTS)
    assert [number for number in range(1, TRACES + 1) if f"V{number}," not in traces] == []
