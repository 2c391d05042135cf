"""The `golden` fixture: a text must be what a file in the repository says it is."""

import os
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest
from hypothesis import settings

UPDATE = "--update-golden"

# What must pass before a change lands asks the same questions each time; people's own runs ask new ones.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(UPDATE, action="store_true", help="write golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Return what compares a file with a text, or, with --update-golden, writes the text to the file."""
    update = bool(request.config.getoption(UPDATE))

    def compare(path: Path, text: str) -> None:
        expected = path.read_text(encoding="utf-8") if path.exists() else None
        if text == expected:
            return
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        command = f"pytest {UPDATE} '{request.node.nodeid}' (all of them: make golden)"
        difference = "".join(_difference(path.name, expected or "", text))
        state = "is missing" if expected is None else "says otherwise"
        pytest.fail(f"{path.name} {state}:\n{difference}\nIf the new text is right: {command}", pytrace=False)

    return compare


def _difference(name: str, expected: str, text: str) -> list[str]:
    old, new = (whole.splitlines(keepends=True) for whole in (expected, text))
    lines = unified_diff(old, new, f"{name} (file)", f"{name} (now)")
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]
