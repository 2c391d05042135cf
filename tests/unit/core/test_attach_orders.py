"""What the steps of a resource carry, and who is woken."""

import pytest

from jackfield.core import attach
from jackfield.model.composition import ORDER, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Machine, Order, Traits
from jackfield.model.names import (
    Key,
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    Version,
)
from jackfield.model.node import Node
from jackfield.model.plan import Attach, Blame, Detach, MarkState, Phase
from jackfield.model.policy import DeviceModel
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged
from jackfield.testing import builders as b
from jackfield.testing.overrides import point
from unit.core.attaching import (
    CR,
    GONE,
    LET_GO,
    NODE,
    POLICY,
    Row,
    attaching,
    detaching,
    tainted,
    view,
)
from unit.core.plans import reasons, steps

# --- what the actions carry


def test_an_order_is_the_same_however_often_it_is_decided() -> None:
    there = b.world(NODE, b.claim("c"), attaching(uid="order-1", version="7"), inventories=(b.inventory(),))
    (first,) = attach.decide(there, CR, POLICY, b.NOW).actions
    (again,) = attach.decide(there, CR, POLICY, Seconds(b.NOW + 50)).actions
    order = Order(OrderID("order-1"), b.FABRIC, b.NODE, b.MODEL, PhysicalID("1"))
    assert first == again
    assert first == Attach(
        phase=Phase.ATTACHING,
        claim=Key("default", "c"),
        resource=CR,
        version=Version("7"),
        order=order,
        because="n1 should have it",
    )


def test_an_order_for_nobody_names_no_claim() -> None:
    (action,) = attach.decide(
        b.world(NODE, attaching(), inventories=(b.inventory(),)), CR, POLICY, b.NOW
    ).actions
    assert action.claim == Key("", "")


def test_a_manager_that_chooses_is_told_the_model_only() -> None:
    shown = b.inventory(traits=Traits(chooses_device=True))
    (action,) = attach.decide(b.world(NODE, attaching(), inventories=(shown,)), CR, POLICY, b.NOW).actions
    assert isinstance(action, Attach)
    assert action.order.device == ""
    assert not action.mark_sent


def test_a_manager_that_chooses_is_told_which_device_comes_back() -> None:
    shown = b.inventory(traits=Traits(chooses_device=True))
    there = b.world(NODE, detaching(conditions=LET_GO), inventories=(shown,))
    assert steps(attach.decide(there, CR, POLICY, b.NOW)) == ("Detach 1 at n1 resource/a100-1.rack-a",)


def test_a_device_that_is_no_longer_shown_is_still_named() -> None:
    there = b.world(NODE, detaching(conditions=LET_GO), inventories=(b.inventory(models={}),))
    assert steps(attach.decide(there, CR, POLICY, b.NOW)) == ("Detach 1 at n1 resource/a100-1.rack-a",)


def test_a_node_whose_slots_nobody_knows_is_not_full() -> None:
    there = b.world(NODE, attaching(), inventories=(b.inventory(machines=()),))
    assert steps(attach.decide(there, CR, POLICY, b.NOW)) == ("Attach 1 at n1 resource/a100-1.rack-a",)


def test_a_detach_names_the_order_that_attached_the_device_and_its_force() -> None:
    found = detaching(conditions=LET_GO, version="9", force=True, annotations={ORDER: "old-order"})
    (action,) = attach.decide(b.world(NODE, found, inventories=(b.inventory(),)), CR, POLICY, b.NOW).actions
    assert isinstance(action, Detach)
    assert (action.resource, action.version, action.phase) == (CR, "9", Phase.DETACHED)
    assert action.order == Order(
        OrderID("old-order"), b.FABRIC, b.NODE, b.MODEL, PhysicalID("1"), type="gpu", force=True
    )


def test_blame_names_the_device_the_node_and_the_moment() -> None:
    blame, mark = attach.decide(
        b.world(NODE, attaching(error="no link", version="5")), CR, POLICY, b.NOW
    ).actions
    assert blame == Blame(
        phase=Phase.ATTACHING,
        node=b.NODE,
        device=b.device("a100-1"),
        at=b.NOW,
        because="the attach failed: no link",
    )
    assert mark == MarkState(
        phase=Phase.DETACHED,
        resource=CR,
        version=Version("5"),
        state=ResourceState.DETACHING,
        because="the attach failed: no link",
    )


# --- managers without ids are asked by `quiet`


BLIND = Traits(chooses_device=True, knows_orders=False)


@pytest.mark.parametrize(
    ("found", "do"),
    [
        (attaching(), ("Attach A100 at n1 resource/a100-1.rack-a",)),
        (detaching(conditions=LET_GO), ("MarkState Deleting resource/a100-1.rack-a",)),
        (attaching(deleted=b.NOW), ("MarkState Detaching resource/a100-1.rack-a",)),
        (attaching(deleted=b.NOW, sent=f"attach {point(b.NOW - 9)}"), ()),
    ],
)
def test_managers_without_ids_are_asked_with_care(found: ComposableResource, do: tuple[str, ...]) -> None:
    there = b.world(NODE, found, inventories=(b.inventory(traits=BLIND),))
    assert steps(attach.decide(there, CR, POLICY, b.NOW)) == do


def test_what_stands_on_the_node_does_not_take_the_place_of_a_device_that_has_vanished() -> None:
    other = FabricDevice(PhysicalID("2"), ModelName("A100"), node=b.NODE)
    named = b.inventory(models={}, traits=Traits(chooses_device=False, knows_orders=False))
    there = b.world(NODE, attaching(), inventories=(b.showing(named, other),), looked=GONE)
    assert steps(attach.decide(there, CR, POLICY, b.NOW)) == ("MarkState Detaching resource/a100-1.rack-a",)


def test_an_order_that_was_sent_is_not_given_up_before_the_manager_has_shown_itself() -> None:
    """That something was marked as sent says that the manager knows no ids, even before it says so itself."""
    found = attaching(deleted=b.NOW, sent=f"attach {point(b.NOW - 9999)}")
    plan = attach.decide(b.world(NODE, found), CR, POLICY, b.NOW)
    assert (plan.actions, reasons(plan), plan.again_at) == ((), ("Quiet",), b.NOW + POLICY.poll_seconds)


@pytest.mark.parametrize(
    ("found", "do"),
    [
        (attaching(deleted=b.NOW, order="an-order"), Attach),
        (attaching(deleted=b.NOW, order="an-order", physical="1"), MarkState),
        (attaching(deleted=b.NOW, order="an-order", error="it is closed"), MarkState),
        (attaching(deleted=b.NOW), MarkState),
    ],
    ids=["not answered", "answered", "refused", "ordered by this resource"],
)
def test_what_was_found_is_known_by_its_id_before_it_is_given_up(
    found: ComposableResource, do: type[Attach | MarkState]
) -> None:
    """A backup that was restored may know nothing of who uses it, and its node is asked by that id."""
    plan = attach.decide(b.world(NODE, found, inventories=(b.inventory(),)), CR, POLICY, b.NOW)
    assert isinstance(plan.actions[-1], do)


def twin(
    name: str, state: ResourceState, order: str = "an-order", *, on: str = b.NODE, physical: str = ""
) -> ComposableResource:
    return b.resource(name, state=state, order=order, conditions=LET_GO, on=on, physical=physical)


NEW, ATTACHING, ONLINE, DETACHING = (
    ResourceState.NEW,
    ResourceState.ATTACHING,
    ResourceState.ONLINE,
    ResourceState.DETACHING,
)
IS_FREED = "MarkState Deleting resource/a100-1.rack-a"
ASKS = "Attach 1 at n1 resource/a100-1.rack-a"


@pytest.mark.parametrize(
    ("mine", "other", "goes"),
    [
        (ATTACHING, twin("a100-0", ATTACHING), False),
        (ATTACHING, twin("a100-0", ATTACHING, physical="1"), True),
        (ATTACHING, twin("a100-2", ATTACHING), False),
        (ATTACHING, twin("a100-2", ATTACHING, physical="1"), False),
        (ATTACHING, twin("a100-2", ONLINE), True),
        (ATTACHING, twin("a100-0", DETACHING), False),
        (ATTACHING, twin("a100-0", ATTACHING, "another"), False),
        (ATTACHING, twin("a100-0", ATTACHING, on="n2"), False),
        (DETACHING, twin("a100-2", NEW), True),
        (DETACHING, twin("a100-2", ONLINE), True),
        (DETACHING, twin("a100-2", DETACHING), False),
        (DETACHING, twin("a100-2", ATTACHING, "another"), False),
    ],
)
def test_of_two_that_were_put_into_the_books_for_one_order_one_goes_and_closes_nothing(
    mine: ResourceState, other: ComposableResource, *, goes: bool
) -> None:
    """By a write that came late. What is closed for the one would be for the other."""
    there = b.world(NODE, twin("a100-1", mine, physical="1"), other, inventories=(b.inventory(),))
    plan = attach.decide(there, CR, POLICY, b.NOW)
    assert (steps(plan) == (IS_FREED,)) is goes
    assert any(isinstance(one, Detach) for one in plan.actions) is (mine is DETACHING and not goes)


@pytest.mark.parametrize(
    ("other", "do"),
    [
        (twin("a100-0", ATTACHING), (IS_FREED,)),
        (twin("a100-2", NEW, physical="1"), (IS_FREED,)),
        (twin("a100-2", NEW), ("Twin",)),
        (twin("a100-2", DETACHING), (ASKS,)),
        (twin("a100-2", ATTACHING, "another"), (ASKS,)),
    ],
)
def test_of_two_for_one_order_neither_asks_for_it_before_one_is_left(
    other: ComposableResource, do: tuple[str, ...]
) -> None:
    """Both would be told the same device, and both would have it in their books."""
    there = b.world(NODE, twin("a100-1", ATTACHING), other, inventories=(b.inventory(),))
    plan = attach.decide(there, CR, POLICY, b.NOW)
    assert (steps(plan) or reasons(plan)) == do


@pytest.mark.parametrize("other", [ATTACHING, ONLINE, DETACHING])
def test_whoever_has_the_same_order_is_woken(other: ResourceState) -> None:
    there = b.world(NODE, twin("a100-1", ATTACHING))
    changed = ObjectChanged(twin("a100-2", NEW), twin("a100-2", other))
    assert CR in attach.wakes(there, POLICY, changed)


def test_what_an_old_listing_showed_does_not_wait_for_room_that_nobody_makes() -> None:
    found, other = attaching(deleted=b.NOW, order="an-order"), b.resource("a100-2", physical="2")
    full = b.showing(
        b.inventory(machines=[Machine(b.NODE, slots=1)]),
        FabricDevice(PhysicalID("2"), b.MODEL, node=b.NODE, order=OrderID("uid-a100-2.rack-a")),
    )
    plan = attach.decide(b.world(NODE, found, other, inventories=(full,)), CR, POLICY, b.NOW)
    assert steps(plan) == ("MarkState Detaching resource/a100-1.rack-a",)


@pytest.mark.parametrize(("there", "asked"), [((), b.NODE), ((NODE,), "")], ids=["gone", "there"])
def test_the_api_is_asked_for_a_node_whose_end_ends_an_attach(there: tuple[Node, ...], asked: str) -> None:
    found = attaching(deleted=b.NOW)
    (*_, mark) = attach.decide(
        b.world(*there, found, inventories=(b.inventory(),)), CR, POLICY, b.NOW
    ).actions
    assert isinstance(mark, MarkState)
    assert mark.gone == asked


# --- who is woken


HERE = (
    NODE,
    b.resource("a100-1"),
    b.resource("a100-2", on="n2", state=ResourceState.ATTACHING),
    b.resource("a100-3", on="n2", state=ResourceState.ATTACHING, physical="3"),
    b.resource("a100-4", on="n3", record=b.claim("rec")),
)


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (InventoryChanged(b.FABRIC, (b.NODE, NodeName("n9")), ()), ("a100-1",)),
        (FactsChanged(b.NODE), ()),
        (ObjectChanged(None, b.resource("a100-7")), ("a100-7",)),
        (ObjectChanged(b.resource("a100-7"), None), ("a100-7",)),
        (
            ObjectChanged(None, b.resource("a100-7", on="n2", state=ResourceState.DETACHING)),
            ("a100-7", "a100-2"),
        ),
        (
            ObjectChanged(b.resource("a100-7", on="n2", state=ResourceState.DELETING), None),
            ("a100-7", "a100-2"),
        ),
        (ObjectChanged(None, b.claim("c", devices=("a100-1", "a100-9"))), ("a100-1",)),
        (ObjectChanged(b.claim("rec", devices=()), None), ("a100-4",)),
        (ObjectChanged(b.node("n2"), None), ("a100-2", "a100-3")),
        (ObjectChanged(b.pod("p", on="n2"), None), ("a100-2", "a100-3")),
        (ObjectChanged(b.pod("p", on="n1"), None), ()),
        (ObjectChanged(b.pod("p"), None), ()),
        (ObjectChanged(None, b.vendor_slice("GPU-7", on="n2")), ("a100-2", "a100-3")),
        (ObjectChanged(None, tainted(0)), ("a100-1",)),
        (ObjectChanged(tainted(0, "a100-3.rack-a-taint"), None), ("a100-3",)),
        (ObjectChanged(None, tainted(0, "a100-9.rack-a-taint")), ("a100-9",)),
        (ObjectChanged(None, tainted(0, "somebody-elses")), ()),
        (ObjectChanged(None, b.heartbeat()), ()),
    ],
)
def test_a_change_wakes_the_resources_it_is_about(delta: Delta, woken: tuple[str, ...]) -> None:
    assert attach.wakes(b.world(*HERE), POLICY, delta) == tuple(f"{one}.rack-a" for one in woken)


def test_whose_a_vendors_device_is_concerns_who_gave_up_an_order_that_was_not_answered() -> None:
    """It may be what that order brought, until it is in somebody's books."""
    vendors = "gpu.example.com/a100-fabricrack-a/a100-{}"
    given_up = b.resource(b.device(vendors.format(8)), on="n2", state=ResourceState.DETACHING, physical="")
    there = b.world(*HERE, given_up)
    noted = ObjectChanged(None, b.resource(b.device(vendors.format(9)), on="n2", uuid="GPU-9"))
    assert attach.wakes(there, POLICY, noted) == ("a100-9.rack-a", "a100-8.rack-a")
    assert attach.wakes(there, POLICY, ObjectChanged(None, b.resource("a100-9", on="n2"))) == (
        "a100-9.rack-a",
    )


def test_what_is_on_no_node_wakes_nobody() -> None:
    there = b.world(*HERE, b.resource("a100-9", on=""))
    for nowhere in (b.vendor_slice("", on=""), b.pod("p")):
        assert attach.wakes(there, POLICY, ObjectChanged(None, nowhere)) == ()


def test_two_models_do_not_share_an_order() -> None:
    """The order's model and type are the resource's own."""
    policy = b.policy("A100", DeviceModel(1, ModelName("CXL"), "cxl", type="cxlmemory"))
    found = b.resource("cxl-3", state=ResourceState.ATTACHING, model="CXL")
    there = b.world(NODE, found, inventories=(b.inventory(models={"A100": 2, "CXL": 1}),), policy=policy)
    (action,) = attach.decide(there, "cxl-3.rack-a", policy, b.NOW).actions
    assert isinstance(action, Attach)
    assert (action.order.model, action.order.device) == ("CXL", "3")


def test_by_a_clock_that_is_behind_nothing_fails_before_it_was_wanted() -> None:
    """Else the claim that was given it would not count the failure, and would be served again at once, for ever."""
    made = b.NOW + 60
    failed = b.resource(state=ResourceState.ATTACHING, error="all slots are taken", created=made)
    plan = attach.decide(view(Row((NODE, failed))), CR, POLICY, b.NOW)
    (blame,) = (one for one in plan.actions if isinstance(one, Blame))
    assert blame.at == made
