"""A mutant is applied to a copy, and its row of the table says what became of it."""

from pathlib import Path

import pytest

from mutants.run import BEGIN, END, Found, apply, rows, write
from mutants.table import Mutant

ONE = Mutant("one", "a.py", "x = 1\n", "x = 2\n", "it is two")


def source(folder: Path, text: str) -> Path:
    (folder / "jackfield").mkdir()
    (folder / "jackfield" / "a.py").write_text(text)
    return folder


def test_a_mutant_replaces_its_text(tmp_path: Path) -> None:
    apply(ONE, source(tmp_path, "w = 0\nx = 1\n"))
    assert (tmp_path / "jackfield" / "a.py").read_text() == "w = 0\nx = 2\n"


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"])
def test_a_text_that_is_not_there_once_is_told(text: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"times in a\.py"):
        apply(ONE, source(tmp_path, text))


def test_the_table_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n")
    found = [Found(ONE, 7, "on-two-nodes", "device/1: here and there"), Found(ONE, 0, "", "")]
    write(page, found)
    assert page.read_text() == f"before\n{BEGIN}{''.join(rows(found))}{END}after\n"
    assert "| `one` (a.py) | it is two | 7 | `on-two-nodes` |" in page.read_text()
    assert "| `one` (a.py) | it is two | **survived** |  |" in page.read_text()
