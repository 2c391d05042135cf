"""What an attach brought that is still in the books of the node that gave it back, at managers without ids."""

import pytest

from jackfield.core import attach
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.plan import Attach
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words
from unit.core.test_quiet import ATTACH, NAMED, POLICY, SERIAL, SOON, Row, decided, gpu, sent, slot, view


def booked(number: int, physical: str, state: ResourceState = ResourceState.DETACHING) -> ComposableResource:
    """Return what is still in the books of another node, which has given its device back."""
    return b.resource(f"a100-{number}", on="n2", physical=physical, state=state, sent=sent("detach", 200))


ROWS = {
    "what came and is still in the books of where it was is not asked for again": Row(
        (slot(sent=sent("attach", 900)), booked(4, "p1")),
        (gpu(1),),
        says="p1, which stands on n1, to leave the books of a100-4.rack-a",
        again_at=SOON,
    ),
    "nor while those books are being closed": Row(
        (slot(sent=sent("attach", 900)), booked(4, "p1", ResourceState.DELETING)),
        (gpu(1),),
        says="to leave the books",
        again_at=SOON,
    ),
    "it is for one slot only, and the next one is asked for again": Row(
        (slot(7, sent=sent("attach", 900)), slot(6, sent=sent("attach", 900)), booked(4, "p1")),
        (gpu(1),),
        do=("Attach A100 at n1 resource/a100-7.rack-a",),
        again_at=SOON,
    ),
    "of two that came one is taken and one is waited for": Row(
        (slot(7, sent=sent("attach", 900)), slot(6, sent=sent("attach", 900)), booked(4, "p1")),
        (gpu(1), gpu(2)),
        says="p1, which stands on n1, to leave the books",
        again_at=SOON,
    ),
    "what is in books that nobody closes is not waited for": Row(
        (slot(sent=sent("attach", 900)), booked(4, "p1", ResourceState.ONLINE)),
        (gpu(1),),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "who has asked for nothing yet does not wait for what others brought": Row(
        (slot(), booked(4, "p1")), (gpu(1),), do=(ATTACH,), again_at=SOON
    ),
    "nor does it take their place": Row(
        (slot(6, sent=sent("attach", 900)), slot(), booked(4, "p1")),
        (gpu(1),),
        says="to leave the books",
        again_at=SOON,
    ),
    "what is another's in such books is not waited for": Row(
        (slot(sent=sent("attach", 900)), booked(4, "p1")),
        (gpu(1, ours=False),),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "nor what is of another model": Row(
        (slot(sent=sent("attach", 900)), booked(4, "p1")),
        (gpu(1, model="T4"),),
        do=(ATTACH,),
        again_at=SOON,
    ),
    "where one can choose, another device is not waited for": Row(
        (
            b.resource("a100-p2", state=ResourceState.ATTACHING, sent=sent("attach", 900)),
            booked(4, "p1"),
        ),
        (gpu(1), gpu(2, on="")),
        do=("Attach p2 at n1 resource/a100-p2.rack-a",),
        again_at=SOON,
        traits=NAMED,
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_came_is_not_asked_for_again(row: Row) -> None:
    plan = decided(row, row.there[0].metadata.name)
    assert steps(plan) == row.do
    assert reasons(plan) == (() if row.do else ("Quiet",))
    assert row.says in words(plan)
    assert plan.again_at == row.again_at


def test_who_waits_for_what_has_come_lets_others_go_first() -> None:
    there = view(Row((slot(0, sent=sent("attach", 180)), slot(1), booked(4, "p9")), (gpu(9),), traits=SERIAL))
    plan = attach.decide(there, "a100-1.rack-a", POLICY, b.NOW)
    assert [type(one) for one in plan.actions] == [Attach]
