"""The golden fixture itself, seen to fail, to explain and to update."""

from pathlib import Path

import pytest

pytest_plugins = ("pytester",)

CONFTEST = Path(__file__).with_name("conftest.py")
CASE = """
from pathlib import Path

def test_the_story_is_the_file(golden):
    golden(Path("sub/story.txt"), "one\\nthree\\n")
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text())
    pytester.makepyfile(CASE)
    pytester.mkdir("sub")
    return pytester


def test_a_missing_golden_file_is_a_failure(project: pytest.Pytester) -> None:
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["story.txt is missing:", "+three", "*pytest --update-golden *"])


def test_a_changed_text_is_shown_as_a_difference(project: pytest.Pytester) -> None:
    (project.path / "sub" / "story.txt").write_text("one\ntwo\n")
    result = project.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["story.txt says otherwise:", "-two", "+three", "*(all of them: make golden)"]
    )


def test_an_update_makes_the_file_right_for_the_next_run(project: pytest.Pytester) -> None:
    project.runpytest_inprocess("--update-golden").assert_outcomes(passed=1)
    assert (project.path / "sub" / "story.txt").read_text() == "one\nthree\n"
    project.runpytest_inprocess().assert_outcomes(passed=1)
