"""What may still be done for what was so a moment ago, and what never."""

from typing import NamedTuple

import pytest

from jackfield.model.meta import Object
from jackfield.model.names import Seconds
from jackfield.model.policy import FAILED, RESCHEDULE
from jackfield.sim.audit.given_up import GivenUp
from jackfield.testing import builders as b

THERE = b.resource("a100-1")
WAITED = b.claim("c", devices=("a100-2",))


class Row(NamedTuple):
    """A claim or node as it was, what became of it, and whether that explains that a100-1 leaves n1."""

    old: Object | None
    new: Object | None = None
    explains: bool = False
    ago: float = 1.0


ROWS = {
    "a claim on another node had it": Row(
        b.claim("c", devices=("a100-1",), on="n2", ready=True), explains=True
    ),
    "a claim on its node had it": Row(b.claim("c", devices=("a100-1",), ready=True)),
    "a claim on another node had another": Row(b.claim("c", devices=("a100-2",), on="n2")),
    "a claim that waited on its node is gone": Row(WAITED, explains=True),
    "a claim that waited on its node is given something else": Row(
        WAITED, b.claim("c", devices=("a100-3",), on="n2"), explains=True
    ),
    "a claim that waits on its node has what it had": Row(WAITED, WAITED),
    "a claim that had been served": Row(b.claim("c", devices=("a100-2",), ready=True)),
    "a claim that had been sent away": Row(b.claim("c", devices=("a100-2",), told=RESCHEDULE)),
    "a claim that had failed": Row(b.claim("c", devices=("a100-2",), told=FAILED)),
    "a claim that had nothing": Row(b.claim("c", devices=())),
    "a claim that is new": Row(None, WAITED),
    "something else": Row(b.pod("p", "c"), None),
    "a claim that waited, too long ago": Row(WAITED, ago=20.0),
    "a claim on another node that had it, too long ago": Row(
        b.claim("c", devices=("a100-1",), on="n2"), ago=20.0
    ),
    "its node was closed": Row(b.node(cordoned=True), b.node(), explains=True),
    "its node is still closed": Row(b.node(cordoned=True), b.node(cordoned=True)),
    "its node has just been closed": Row(b.node(), b.node(cordoned=True)),
    "its node was closed, too long ago": Row(b.node(cordoned=True), b.node(), ago=20.0),
    "another node was closed": Row(b.node("n2", cordoned=True), b.node("n2")),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_device_leaves_for_what_was_so_a_moment_ago(row: Row) -> None:
    given_up = GivenUp()
    given_up.note(row.old, row.new, Seconds(b.NOW - row.ago))
    assert given_up.explains(THERE, Seconds(b.NOW - 20)) == row.explains
