"""What the page says of the Redfish face is so; `make judges` types what it says can be typed."""

from pathlib import Path

from jackfield.fabric_manager.faces.redfish import accounts, queries, reservations, sessions, tasks

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "fabric-manager.md").read_text()
SECTION = PAGE.partition("\n## Redfish\n")[2].partition("\n## ")[0]


def test_the_limits_that_the_page_names_are_the_ones_there_are() -> None:
    assert f"{sessions.SESSIONS_MAX} at most" in SECTION
    assert f"{accounts.ACCOUNTS_MAX} at most: see below" in SECTION
    assert f"of {accounts.PASSWORD_MIN} to {accounts.PASSWORD_MAX} characters" in SECTION
    assert all(f"`{role}`" in SECTION for role in accounts.Role)
    assert f"not used for {sessions.LASTS / 60:g} minutes" in SECTION
    assert f"The {tasks.TASKS_MAX} newest" in SECTION
    assert f"`$expand` ({queries.LEVELS_MAX} levels; {queries.PAGE} members at a time" in SECTION
    assert reservations.LASTS == 60.0
    assert "`ReservationDuration`, a minute" in SECTION
