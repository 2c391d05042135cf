"""What is asked of a manager is held against what the objects say at that moment."""

from typing import NamedTuple

import pytest

from jackfield.controllers.store import Store
from jackfield.model.composition import RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Order, Traits
from jackfield.model.meta import Condition, Object
from jackfield.model.names import NEVER, NodeName, OrderID, PhysicalID, Seconds
from jackfield.sim.audit.checkers import Checker
from jackfield.sim.audit.orders import Call, Line, Orders
from jackfield.sim.pool import Movement
from jackfield.testing import builders as b

NEW, ATTACHING, ONLINE, DETACHING, DELETING = ResourceState
LEASE = Seconds(10.0)
KNOWS, BLIND = Traits(), Traits(knows_orders=False, call_timeout=Seconds(60.0))
NODE = b.node()
LET_GO = (Condition(RELEASED, "True"),)
SENT = "attach 2025-12-31T23:59:00.000000Z"
VENDORS = "gpu.example.com/a100-fabricrack-a/a100-1"


def following(*objects: Object) -> tuple[Orders, Store]:
    store = b.world(*objects)
    orders = Orders(store, LEASE)
    for one in objects:
        assert [*orders.know(None, one, b.NOW)] == []
    return orders, store


def call(verb: str, *, by: str = "one", after: float = 0.0, order: str = "uid-a100-1.rack-a") -> Call:
    return Call(by, verb, Order(OrderID(order), b.FABRIC, b.NODE, b.MODEL), Seconds(b.NOW + after))


def line(traits: Traits, *shown: FabricDevice, lease: Seconds = NEVER) -> Line:
    return Line(traits, shown, lease)


class Row(NamedTuple):
    """A resource, what is asked for it, and what is wrong with that."""

    resource: ComposableResource
    verb: str
    faults: tuple[Checker, ...] = ()
    traits: Traits = KNOWS
    node: bool = True


ROWS = {
    "an order that is written down": Row(b.resource(state=ATTACHING), "attach"),
    "an order that is not": Row(b.resource(state=NEW), "attach", (Checker.EFFECT_BEFORE_INTENT,)),
    "a blind manager, noted": Row(b.resource(state=ATTACHING, sent=SENT), "attach", traits=BLIND),
    "a blind manager, not noted": Row(
        b.resource(state=ATTACHING), "attach", (Checker.EFFECT_BEFORE_INTENT,), BLIND
    ),
    "a device that was released": Row(b.resource(state=DETACHING, conditions=LET_GO), "detach"),
    "a device that was not": Row(b.resource(state=DETACHING), "detach", (Checker.DETACH_UNRELEASED,)),
    "a device that is online": Row(b.resource(conditions=LET_GO), "detach", (Checker.DETACH_UNRELEASED,)),
    "a device whose node is gone": Row(b.resource(state=DETACHING, holder="u"), "detach", node=False),
    "a device that is held": Row(
        b.resource(state=DETACHING, holder="u", conditions=LET_GO), "detach", (Checker.DETACH_UNRELEASED,)
    ),
    "a device that is recorded": Row(
        b.resource(state=DELETING, record=b.claim("c"), conditions=LET_GO),
        "detach",
        (Checker.DETACH_UNRELEASED,),
    ),
    "a vendor's device": Row(
        b.resource(b.device(VENDORS), state=DETACHING, uid="uid-a100-1.rack-a"), "detach"
    ),
    "a device that goes by force": Row(b.resource(force=True, holder="u"), "detach"),
    "somebody else's device": Row(b.resource(state=NEW, foreign="1"), "detach"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_what_is_asked_is_what_the_objects_say(row: Row) -> None:
    orders, _ = following(row.resource, *((NODE,) if row.node else ()))
    found = orders.asked(call(row.verb), line(row.traits))
    assert tuple(checker for checker, _, _ in found) == row.faults


def test_what_is_closed_may_be_closed_again_whoever_has_taken_it_up() -> None:
    orders, _ = following(NODE, b.resource(state=ATTACHING))
    assert [checker for checker, _, _ in orders.asked(call("detach"), line(KNOWS))] == [
        Checker.DETACH_UNRELEASED
    ]
    assert [*orders.asked(call("detach"), Line(KNOWS, (), NEVER, over=True))] == []


def test_an_order_that_nobody_knows_may_come_late() -> None:
    orders, _ = following(NODE)
    assert [*orders.asked(call("detach"), line(KNOWS))] == []


def test_a_blind_manager_is_asked_again_only_when_it_is_quiet() -> None:
    orders, _ = following(NODE, b.resource(state=ATTACHING, sent=SENT))
    found = [
        [checker for checker, _, _ in orders.asked(call("attach", after=after), line(BLIND))]
        for after in (0.0, 59.0, 119.0, 180.0)
    ]
    assert found == [[], [Checker.ASKED_TOO_SOON], [], []]


def standing(number: str, *, on: str = b.NODE, ours: bool = True, ago: float = 100.0) -> FabricDevice:
    since = Seconds(b.NOW + AGAIN - ago)
    return FabricDevice(PhysicalID(number), b.MODEL, node=NodeName(on), ours=ours, since=since)


AGAIN = 200.0
WAITING = b.resource(state=ATTACHING, sent=SENT)


@pytest.mark.parametrize(
    ("shown", "beside", "blind"),
    [
        ((), (), False),
        ((standing("1"),), (), True),
        ((standing("1", on=""),), (), False),
        ((standing("1", ours=False),), (), False),
        ((standing("1", ago=59.0),), (), False),
        ((standing("1"),), (b.resource("a100-2", physical="1"),), False),
        ((standing("1"),), (b.resource("a100-2", state=ATTACHING),), False),
        ((standing("1"), standing("2")), (b.resource("a100-2", state=ATTACHING),), True),
        ((standing("1"),), (b.resource("a100-2", state=ATTACHING, model="H100"),), True),
    ],
)
def test_an_attach_is_not_repeated_while_what_it_brought_stands_there(
    shown: tuple[FabricDevice, ...], beside: tuple[ComposableResource, ...], *, blind: bool
) -> None:
    orders, _ = following(NODE, WAITING, *beside)
    assert [*orders.asked(call("attach"), line(BLIND, *shown))] == []
    found = [checker for checker, _, _ in orders.asked(call("attach", after=AGAIN), line(BLIND, *shown))]
    assert found == ([Checker.REPEATED_BLINDLY] if blind else [])


@pytest.mark.parametrize(("ago", "blind"), [(-1.0, False), (1.0, False), (19.0, False), (21.0, True)])
def test_a_manager_that_showed_what_was_long_ago_has_an_attach_repeated(ago: float, *, blind: bool) -> None:
    orders, _ = following(NODE, WAITING)
    assert [*orders.asked(call("attach"), line(BLIND, standing("1")))] == []
    again = call("attach", after=AGAIN)
    outdated = Line(BLIND, (standing("1"),), NEVER, Seconds(again.at - ago))
    found = [checker for checker, _, _ in orders.asked(again, outdated)]
    assert found == ([Checker.REPEATED_BLINDLY] if blind else [])


def test_a_repeated_order_goes_by_its_first_id() -> None:
    orders, _ = following(NODE, b.resource(state=NEW))
    again = call("attach", order="uid-a100-1.rack-a/17.5")
    assert [checker for checker, _, _ in orders.asked(again, line(KNOWS))] == [Checker.EFFECT_BEFORE_INTENT]


def test_a_blind_manager_is_asked_with_enough_of_the_lease_left() -> None:
    orders, _ = following(NODE, b.resource(state=ATTACHING, sent=SENT))
    found = orders.asked(call("attach"), line(BLIND, lease=Seconds(b.NOW + 59)))
    assert [checker for checker, _, _ in found] == [Checker.LEASE_TOO_SHORT]


@pytest.mark.parametrize(
    ("acts", "wrong"),
    [
        ([("one", 0), ("one", 1), ("two", 2), ("two", 3)], 0),
        ([("one", 0), ("two", 5), ("one", 11)], 0),
        ([("one", 0), ("two", 5), ("one", 9)], 1),
        ([("one", 0), ("two", 1), ("three", 2)], 0),
    ],
)
def test_two_replicas_do_not_take_turns_within_a_lease(acts: list[tuple[str, float]], wrong: int) -> None:
    orders, _ = following(NODE)
    found = [
        one for by, after in acts for one in orders.asked(call("attach", by=by, after=after), line(KNOWS))
    ]
    assert [checker for checker, _, _ in found] == [Checker.TWO_WRITERS] * wrong


def test_a_resource_stays_while_a_call_may_take_effect() -> None:
    there = b.resource(state=DETACHING, conditions=LET_GO, sent="detach 2025-12-31T23:59:00.000000Z")
    orders, _ = following(NODE, there)
    assert [*orders.asked(call("detach"), line(BLIND))] == []
    (fault,) = orders.know(there, None, Seconds(b.NOW + 50))
    assert fault[0] is Checker.GONE_TOO_SOON


def arrival(order: str) -> Movement:
    device = FabricDevice(PhysicalID("1"), b.MODEL, node=b.NODE, order=OrderID(order))
    return Movement(b.NOW, device, b.NODE, present=True)


def test_an_order_takes_effect_once_and_for_somebody() -> None:
    orders, _ = following(NODE, b.resource(state=ATTACHING))
    assert [*orders.arrived(arrival(""))] == []
    assert [*orders.arrived(arrival("uid-a100-1.rack-a"))] == []
    (again,) = orders.arrived(arrival("uid-a100-1.rack-a"))
    assert again[0] is Checker.ORDER_TWICE
    (nobodys,) = orders.arrived(arrival("closed"))
    assert nobodys[0] is Checker.ORDER_OF_NOBODY


def test_what_a_backup_forgot_is_not_held_against_anybody() -> None:
    orders, _ = following(NODE, b.resource(state=ATTACHING, sent=SENT))
    assert [*orders.arrived(arrival("uid-a100-1.rack-a"))] == []
    assert [*orders.asked(call("attach"), line(BLIND))] == []
    orders.forget()
    assert [*orders.arrived(arrival("uid-a100-1.rack-a"))] == []
    assert [*orders.asked(call("attach", after=1), line(BLIND))] == []
    (nobodys,) = orders.arrived(arrival("somebody-elses"))
    assert nobodys[0] is Checker.ORDER_OF_NOBODY
