"""What becomes of an order: every state, every question, every end of its work."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackfield.fabric_manager import orders
from jackfield.fabric_manager.orders import Entry, State
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import PhysicalID
from unit.fabric_manager.lab import order

DEVICE = PhysicalID("a-1")
HERE = Done(DEVICE, "S1")
CLOSED = Failed("order o is closed")


def entry(state: State, *, reason: str = "", closed: bool = False) -> Entry:
    return Entry(order("o"), "native", state, DEVICE, "S1", reason, closed)


ATTACH: tuple[tuple[Entry, Progress], ...] = (
    (entry(State.QUEUED), Working()),
    (entry(State.ATTACHING), Working()),
    (entry(State.ATTACHED), HERE),
    (entry(State.ENDED, reason="no"), Failed("no")),
    (entry(State.ATTACHING, closed=True), CLOSED),
    (entry(State.ATTACHED, closed=True, reason="stuck"), CLOSED),
    (entry(State.DETACHING, closed=True), CLOSED),
    (entry(State.ENDED, closed=True), CLOSED),
)


@pytest.mark.parametrize(("known", "answer"), ATTACH)
def test_an_attach_is_answered_by_how_far_it_is(known: Entry, answer: Progress) -> None:
    assert orders.attach_answer(known) == answer


DETACH: tuple[tuple[Entry, Entry, Progress], ...] = (
    (entry(State.QUEUED), entry(State.ENDED, closed=True), HERE),
    (entry(State.ATTACHING), entry(State.ATTACHING, closed=True), Working()),
    (entry(State.ATTACHED), entry(State.DETACHING, closed=True), Working()),
    (
        entry(State.ATTACHED, reason="stuck", closed=True),
        entry(State.ATTACHED, closed=True),
        Failed("stuck"),
    ),
    (entry(State.DETACHING, closed=True), entry(State.DETACHING, closed=True), Working()),
    (entry(State.ENDED, reason="no"), entry(State.ENDED, reason="no", closed=True), HERE),
)


@pytest.mark.parametrize(("known", "after", "answer"), DETACH)
def test_a_detach_closes_the_order_wherever_it_is(known: Entry, after: Entry, answer: Progress) -> None:
    assert orders.detach_asked(known) == (after, answer)


ENDS = (
    (orders.attach_ended, entry(State.ATTACHING), "", entry(State.ATTACHED)),
    (orders.attach_ended, entry(State.ATTACHING), "no", entry(State.ENDED, reason="no")),
    (orders.attach_ended, entry(State.ATTACHING, closed=True), "", entry(State.DETACHING, closed=True)),
    (orders.attach_ended, entry(State.ENDED, reason="vanished"), "", entry(State.ENDED, reason="vanished")),
    (orders.detach_ended, entry(State.DETACHING, closed=True), "", entry(State.ENDED, closed=True)),
    (
        orders.detach_ended,
        entry(State.DETACHING, closed=True),
        "stuck",
        entry(State.ATTACHED, reason="stuck", closed=True),
    ),
    (orders.detach_ended, entry(State.ENDED, closed=True), "", entry(State.ENDED, closed=True)),
)


@pytest.mark.parametrize(("ended", "before", "reason", "after"), ENDS)
def test_work_ends_where_it_should(ended: object, before: Entry, reason: str, after: Entry) -> None:
    assert callable(ended)
    assert ended(before, reason) == after


ANOTHER = (
    (order("o"), ""),
    (order("o", device=""), ""),
    (order("o", node="n-2"), "order o was placed for A100 on n-1"),
    (order("o", model="H100"), "order o was placed for A100 on n-1"),
    (order("o", device="a-2"), "order o was placed for device a-1"),
)


@pytest.mark.parametrize(("asked", "difference"), ANOTHER)
def test_an_id_means_one_order_for_ever(asked: Order, difference: str) -> None:
    assert orders.another(entry(State.ATTACHED), asked) == difference


STEPS = st.sampled_from(("detach", "start", "attached", "detached", "fail", "vanish"))


def step(known: Entry, what: str) -> Entry:
    match what:
        case "detach":
            return orders.detach_asked(known)[0]
        case "start":
            return orders.started(known)
        case "attached":
            return orders.attach_ended(known, "")
        case "detached":
            return orders.detach_ended(known, "")
        case "fail":
            return orders.detach_ended(orders.attach_ended(known, "no"), "no")
        case _:
            return orders.vanished(known)


@given(st.lists(STEPS, max_size=12))
def test_no_closed_order_is_ever_attached_anew(steps: list[str]) -> None:
    known = orders.begun(order("o"), "native", DEVICE, "S1")
    for what in steps:
        after = step(known, what)
        assert after.closed >= known.closed
        assert not known.closed or isinstance(orders.attach_answer(after), Failed)
        assert known.state is not State.ENDED or after.state is State.ENDED
        assert after.present <= known.present or known.state is State.ATTACHING
        assert msgspec.structs.replace(after, order=known.order) == after
        known = after
