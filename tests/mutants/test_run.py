"""A mutant is applied to a copy that lives until something is seen, and its row of the table says what became of it."""

from pathlib import Path

import pytest

from mutants.run import BEGIN, END, Found, Lived, apply, bitten, live, read, seeds, write
from mutants.table import MUTANTS, Mutant

HEAD = "\n| mutant | what it breaks | found at seed | by |\n|---|---|---|---|\n"
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


def page(folder: Path, *lines: str) -> Path:
    there = folder / "page.md"
    there.write_text(f"before\n{BEGIN}{''.join(lines)}{END}after\n")
    return there


FOUND = Found(ONE, 7, "on-two-nodes", "device/1: here and there", 7)
ALIVE = Found(ONE, 0, "", "", 500)
ROW = "| `one` (a.py) | it is two | 7 | `on-two-nodes` |\n"
OLD = "| `one` (a.py) | it is two | 3 | `stuck` |\n"


@pytest.mark.parametrize(
    ("found", "line"), [(FOUND, ROW), (ALIVE, "| `one` (a.py) | it is two | **survived 500** |  |\n")]
)
def test_what_became_of_a_mutant_takes_the_place_of_what_was_known(
    found: Found, line: str, tmp_path: Path
) -> None:
    there = page(tmp_path, OLD)
    write(there, [found])
    assert there.read_text() == f"before\n{BEGIN}{HEAD}{line}\n{END}after\n"


def test_what_is_known_of_other_mutants_stays_in_their_order_and_of_none_that_is_gone(tmp_path: Path) -> None:
    first, second = (f"| `{one.name}` ({one.file}) | … | 1 | `x` |\n" for one in MUTANTS[:2])
    there = page(tmp_path, "| `long-gone` (b.py) | … | 1 | `x` |\n", second, first)
    write(there, [FOUND, Found(MUTANTS[2], 0, "", "", 9)])
    rows = there.read_text().removeprefix(f"before\n{BEGIN}{HEAD}").removesuffix(f"\n{END}after\n")
    assert rows.splitlines(keepends=True)[:2] == [first, second]
    assert rows.splitlines(keepends=True)[2].startswith(f"| `{MUTANTS[2].name}`")
    assert rows.splitlines(keepends=True)[3:] == [ROW]


def test_a_mutant_is_tried_first_where_it_was_last_found(tmp_path: Path) -> None:
    survivor = "| `two` (b.py) | … | **survived 500** |  |\n"
    assert seeds(page(tmp_path, OLD, survivor)) == {"one": 3}


@pytest.mark.parametrize(
    ("words", "checker", "what"),
    [
        ("12.5 pulled-in-use device/1: pulled", "pulled-in-use", "device/1: pulled"),
        ("idle-too-long resource/a: is idle", "idle-too-long", "resource/a: is idle"),
    ],
)
def test_a_checker_is_told_from_the_time(words: str, checker: str, what: str) -> None:
    assert read(words) == (checker, what)


def test_a_mutant_that_is_misspelt_is_not_found() -> None:
    assert bitten(ONE, "crash KeyError: 'a'") == ("crash", "KeyError: 'a'")
    with pytest.raises(RuntimeError, match=r"one could not be tried: .*not defined"):
        bitten(ONE, "crash NameError: name '_ANY' is not defined")


# --- a copy of the code that lives


def code(folder: Path, broken: str) -> Path:
    """Code whose ordeals break something at these seeds."""
    torture = folder / "jackfield" / "sim" / "torture"
    torture.mkdir(parents=True)
    for package in (torture, torture.parent, torture.parent.parent):
        (package / "__init__.py").write_text("")
    (torture / "draw.py").write_text("def draw(seed):\n    return seed\n")
    (torture / "run.py").write_text(
        "from types import SimpleNamespace\n"
        "def suffer(seed):\n"
        f"    return SimpleNamespace(violations=['1.0 stuck x: y'] if seed in {broken} else [])\n"
    )
    return folder


@pytest.mark.parametrize(
    ("broken", "lived"),
    [("(4, 5)", Lived(4, "1.0 stuck x: y")), ("()", Lived(9, "")), ("(10,)", Lived(9, ""))],
)
def test_a_copy_lives_until_something_is_seen(broken: str, lived: Lived, tmp_path: Path) -> None:
    assert live(code(tmp_path, broken), "one", 1, 10) == lived


def test_code_that_cannot_be_tried_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)one could not be tried: .*not defined"):
        live(code(tmp_path, "(nonsense,)"), "one", 1, 10)
