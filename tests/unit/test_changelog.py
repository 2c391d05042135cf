"""News fragments become the changelog by `tools/changelog/gather.py`: none is lost, and none is told twice."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "changelog" / "gather.py"
CHANGELOG = """\
# Changelog

## Unreleased

Soon.

### Fixed

- An old fault.

## 0.1.0 - 2026-11-01

### Added

- The beginning.
"""
GATHERED = """\
# Changelog

## Unreleased

Soon.

### Added

- Spares.

  They are kept attached.

### Fixed

- An old fault.
- A new fault.

## 0.1.0 - 2026-11-01

### Added

- The beginning.
"""
FRAGMENTS = {
    "README.md": "# News fragments\n",
    "new.fixed.md": "A new\nfault.\n",
    "spares.added.md": "Spares.\n\nThey are kept attached.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with a changelog and fragments."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "changelog.d").mkdir()
    put(tmp_path, FRAGMENTS)
    return tmp_path


def put(project: Path, fragments: dict[str, str]) -> None:
    for name, text in fragments.items():
        (project / "changelog.d" / name).write_text(text)


def gather(project: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, str(project)], capture_output=True, text=True, check=False)


def everything(project: Path) -> dict[str, str]:
    return {
        str(path.relative_to(project)): path.read_text() for path in project.rglob("*.*") if path.is_file()
    }


def test_fragments_move_under_unreleased_by_kind(project: Path) -> None:
    assert gather(project).stdout == "2 fragments moved into CHANGELOG.md\n"
    assert everything(project) == {"CHANGELOG.md": GATHERED, "changelog.d/README.md": "# News fragments\n"}


def test_what_was_interrupted_is_finished_and_told_once(project: Path) -> None:
    gather(project)
    put(project, FRAGMENTS)
    gather(project)
    assert everything(project) == {"CHANGELOG.md": GATHERED, "changelog.d/README.md": "# News fragments\n"}


def test_the_beginning_of_another_entry_is_news(project: Path) -> None:
    put(project, {"other.fixed.md": "An old fault. And why.\n", "short.fixed.md": "An old\n"})
    gather(project)
    told = (project / "CHANGELOG.md").read_text()
    assert "- An old fault. And why.\n" in told
    assert "- An old\n" in told


def test_long_lines_are_broken_between_words(project: Path) -> None:
    put(project, {"long.changed.md": "Very " * 60 + "long-" * 30 + "indeed.\n"})
    gather(project)
    lines = (project / "CHANGELOG.md").read_text().splitlines()
    assert "  " + "long-" * 30 + "indeed." in lines
    assert max(len(line) for line in lines if "-indeed" not in line) <= 120


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("changelog.d/spares.new.md", "Spares.\n", "is not named WHAT.KIND.md"),
        ("changelog.d/empty.added.md", "\n", "is empty"),
        ("CHANGELOG.md", "# Changelog\n", 'has no heading "## Unreleased"'),
        ("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n### Broken\n\n- It.\n", 'unknown heading "Broken"'),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_lost(
    project: Path, name: str, text: str, complaint: str
) -> None:
    (project / name).write_text(text)
    before = everything(project)
    run = gather(project)
    assert run.returncode == 1
    assert complaint in run.stderr
    assert "nothing was moved" in run.stderr
    assert everything(project) == before
