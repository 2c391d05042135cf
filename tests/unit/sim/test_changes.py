"""What came too late to be anybody's fault."""

import pytest

from jackfield.core import check
from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.sim.audit.changes import Changes
from jackfield.testing import builders as b

FIRST = b.claim("c", uid="u", devices=("a100-1",))
NOW_HAS = b.claim("c", uid="u", devices=("a100-2",), ready=True)
UNRECORDED = b.resource("a100-1", uid="cr-1")
RECORDED = b.resource("a100-1", uid="cr-1", record=FIRST)
SERVES = b.resource("a100-2", uid="cr-2", record=NOW_HAS)

CAME, GIVEN = (UNRECORDED, RECORDED), (FIRST, NOW_HAS)


@pytest.mark.parametrize(
    ("steps", "checkers"),
    [((GIVEN, CAME), []), ((CAME, GIVEN), [check.Checker.RECORDED_ELSEWHERE])],
    ids=[
        "it comes when its claim has something else",
        "it is still there when its claim is given something else",
    ],
)
def test_a_record_that_comes_late_is_nobodys_fault(
    steps: tuple[tuple[Object, Object], ...], checkers: list[check.Checker]
) -> None:
    changes = Changes(Seconds(b.NOW))
    changes.note(None, UNRECORDED, b.NOW)
    changes.note(None, FIRST, b.NOW)
    for old, new in steps:
        changes.note(old, new, b.NOW)
    view = b.world(NOW_HAS, RECORDED, SERVES, inventories=[b.inventory()])
    found = check.state(view, NOW_HAS, b.policy())
    assert check.Checker.RECORDED_ELSEWHERE in [one.checker for one in found]
    assert [one.checker for one in changes.judged(found, NOW_HAS, view)] == checkers
