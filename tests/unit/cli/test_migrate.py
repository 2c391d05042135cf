"""What `jackfield migrate cohdi` prints is what the document shows."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from jackfield.cli import migrate as command
from jackfield.cli.main import main
from jackfield.core import migrate
from jackfield.model.cohdi import Installation
from unit.core.test_migrate import BEGINNING, PROTECTED, RETURNED, STARTED, STOPPED, UNINSTALLED

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "migration.md"
SHOWN: dict[str, Installation] = {
    "LOOK": BEGINNING,
    "PROTECTED": PROTECTED,
    "STOPPED": STOPPED,
    "STARTED": STARTED,
    "UNINSTALLED": UNINSTALLED,
    "RETURNED": RETURNED,
}


@pytest.mark.parametrize("mark", SHOWN)
def test_what_each_step_prints_is_in_the_document(mark: str, golden: Callable[[Path, str], None]) -> None:
    begin = re.escape(f"<!-- begin {mark}: written by `make golden` -->\n```text\n")
    part = re.compile(rf"(?<={begin}).*?(?=```\n<!-- end {mark} -->)", re.DOTALL)
    printed = "".join(f"{line}\n" for line in command.lines(migrate.report(SHOWN[mark])))
    written, count = part.subn(lambda _: printed, DOCUMENT.read_text())
    assert count == 1, "the marks between which it stands are gone"
    golden(DOCUMENT, written)


def test_what_was_done_comes_first() -> None:
    first, second, *_ = command.lines(migrate.report(PROTECTED), ("this",))
    assert (first, second) == ("done: this", "")


def test_what_is_in_the_way_comes_before_what_is_next() -> None:
    *_, obstacle, then = command.lines(migrate.report(migrate_less()))
    assert obstacle.startswith("in the way: CoHDI's definitions are not there")
    assert then == "then: jackfield migrate cohdi --apply"


def migrate_less() -> Installation:
    return Installation(BEGINNING.settings, release=BEGINNING.release)


def test_forward_and_back_at_once_is_refused() -> None:
    done = CliRunner().invoke(main, ["migrate", "cohdi", "--apply", "--undo"])
    assert done.exit_code == 2
    assert "contradict each other" in done.output


def test_a_kubeconfig_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["migrate", "cohdi", "--kubeconfig", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert str(tmp_path / "none") in done.output
