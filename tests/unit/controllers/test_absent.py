"""What a manager does not show counts from the first answer that cannot be older than what we know."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import Inventory, Traits
from jackfield.model.names import NEVER, NodeName, OrderID, Seconds, Version
from jackfield.model.view import InventoryChanged, SupplyChanged
from jackfield.testing import builders as b

HERE = b.inventory(attached={"1": "n1"})
POOL = b.inventory()
NOTHING = b.inventory(models={})
ELSEWHERE = b.inventory(machines=["n1", "n2"], attached={"1": "n2"})
NO_MACHINE = b.inventory(machines=[])
CHOOSING = b.inventory(traits=Traits(chooses_device=True))
ONLINE = b.resource(physical="1")
ATTACHING = b.resource(state=ResourceState.ATTACHING)


def looked(store: Store, shown: Inventory, at: float) -> float:
    """Ask and be answered; return since when the one resource lacks its device."""
    store.ask(b.FABRIC, b.NOW)
    store.see(shown, at=Seconds(at))
    return since(store)


def since(store: Store) -> float:
    (one,) = store.all(ComposableResource)
    assert isinstance(one, ComposableResource)
    return store.missing_since(one)


@pytest.mark.parametrize("gone", [POOL, NOTHING, ELSEWHERE, NO_MACHINE, CHOOSING])
def test_a_device_that_was_shown_is_missing_since_the_first_answer_without_it(gone: Inventory) -> None:
    store = b.world(ONLINE, inventories=[HERE])
    assert looked(store, HERE, 1) == NEVER
    assert looked(store, gone, 2) == 2
    assert looked(store, gone, 3) == 2
    assert looked(store, HERE, 4) == NEVER
    assert looked(store, gone, 5) == 5


@pytest.mark.parametrize("gone", [POOL, NOTHING, ELSEWHERE, NO_MACHINE, CHOOSING])
def test_a_device_that_was_never_shown_is_missing_since_it_was_asked_for(gone: Inventory) -> None:
    store = b.world(inventories=[gone])
    store.ask(b.FABRIC, b.NOW)
    store.put(b.resource(physical="1", state=ResourceState.ATTACHING, version="2"))
    store.put(b.resource(physical="1", version="3"))
    store.see(gone, at=Seconds(1))
    assert since(store) == NEVER, "what is shown may be older than that it came"
    assert looked(store, gone, 2) == 2


def test_a_device_that_left_while_its_answer_was_doubted_is_missing_since_the_next() -> None:
    store = b.world(ONLINE, inventories=[HERE])
    store.ask(b.FABRIC, b.NOW)
    store.see(POOL, current=False, at=Seconds(1))
    assert since(store) == NEVER
    assert looked(store, POOL, 2) == 2


def test_an_answer_to_a_question_from_before_says_nothing() -> None:
    store = b.world(inventories=[POOL])
    store.ask(b.FABRIC, b.NOW)
    store.put(ONLINE)
    store.see(POOL, at=Seconds(1))
    assert since(store) == NEVER
    assert looked(store, POOL, 2) == 2


def test_an_answer_that_came_to_be_doubted_says_nothing() -> None:
    store = b.world(ONLINE, inventories=[POOL])
    store.ask(b.FABRIC, b.NOW)
    store.see(POOL, current=False, at=Seconds(1))
    assert since(store) == NEVER
    store.see(POOL, at=Seconds(2))
    assert since(store) == NEVER, "nobody asked"
    assert looked(store, POOL, 3) == 3


@pytest.mark.parametrize(
    ("one", "shown", "at"),
    [
        (ATTACHING, POOL, NEVER),
        (ATTACHING, HERE, NEVER),
        (ATTACHING, NOTHING, 2),
        (ATTACHING, CHOOSING, NEVER),
        (b.resource(state=ResourceState.NEW), NOTHING, 2),
        (b.resource(physical="1", state=ResourceState.DETACHING), NOTHING, NEVER),
        (b.resource(physical="1", state=ResourceState.DELETING), NOTHING, NEVER),
        (b.resource("h100-1", state=ResourceState.ATTACHING, model="H100"), NOTHING, NEVER),
        (replace(ONLINE, metadata=replace(ONLINE.metadata, annotations={})), NOTHING, NEVER),
    ],
)
def test_what_is_on_its_way_must_only_exist_and_what_goes_need_not(
    one: ComposableResource, shown: Inventory, at: float
) -> None:
    store = b.world(one, inventories=[shown])
    looked(store, shown, 1)
    store.put(replace(one, metadata=replace(one.metadata, resource_version=Version("9"))))
    expected = NEVER if at == NEVER else 1
    assert looked(store, shown, 2) == expected


def test_whoever_has_just_started_looks_for_every_device_there_is() -> None:
    store = b.world(b.resource(physical="1", on="n9"))
    assert looked(store, POOL, 1) == 1, "a backup may have brought back what left long ago"
    assert looked(store, HERE, 2) == 1
    told = b.world()
    told.ask(b.FABRIC, b.NOW)
    told.put(ONLINE)
    told.see(POOL, at=Seconds(1))
    assert since(told) == NEVER, "it may have come since"
    assert looked(told, POOL, 2) == 2


def test_what_is_shown_in_the_first_answer_or_leaves_before_is_not_missing() -> None:
    assert looked(b.world(ONLINE), HERE, 1) == NEVER
    leaving = b.world(ONLINE)
    leaving.put(b.resource(physical="1", state=ResourceState.DETACHING, version="9"))
    assert looked(leaving, POOL, 1) == NEVER


def test_a_resource_that_is_made_anew_begins_anew() -> None:
    store = b.world(ONLINE, inventories=[POOL])
    assert looked(store, POOL, 1) == 1
    store.remove(ONLINE)
    assert store.missing_since(ONLINE) == NEVER
    store.put(b.resource(physical="1", uid="u-2", version="8"))
    assert since(store) == NEVER


def test_a_write_on_the_resource_changes_nothing_about_its_device() -> None:
    store = b.world(ONLINE, inventories=[POOL])
    assert looked(store, POOL, 1) == 1
    store.put(b.resource(physical="1", holder="u", version="8"))
    assert since(store) == 1
    store.put(b.resource(physical="1", state=ResourceState.DETACHING, version="9"))
    assert since(store) == NEVER


def test_news_of_a_missing_device_wake_whom_they_concern_once() -> None:
    store = b.world(ONLINE, inventories=[POOL])
    told = InventoryChanged(b.FABRIC, (b.NODE,), (b.device("a100-1"),))
    store.ask(b.FABRIC, b.NOW)
    assert store.see(POOL, at=Seconds(1)) == (told,)
    store.ask(b.FABRIC, b.NOW)
    assert store.see(POOL, at=Seconds(2)) == ()
    choosing = b.world(ONLINE, inventories=[CHOOSING])
    looked(choosing, CHOOSING, 1)
    back = b.inventory(traits=Traits(chooses_device=True), attached={"1": "n1"})
    news, slots = choosing.see(back)
    assert news == told
    assert slots == SupplyChanged(b.FABRIC, b.MODEL), "what was spoken for is there: a slot more for others"


def test_a_device_that_came_back_by_another_order_is_missing_all_the_same() -> None:
    store = b.world(ONLINE, inventories=[HERE])
    for order, expected in (("another", 1), (ONLINE.order, NEVER), ("", NEVER)):
        there = replace(HERE.devices[0], order=OrderID(order))
        assert looked(store, b.showing(HERE, there), 1) == expected


def test_what_a_manager_that_knows_no_orders_says_of_orders_means_nothing() -> None:
    blind = replace(HERE, traits=Traits(knows_orders=False))
    store = b.world(ONLINE, inventories=[blind])
    assert looked(store, b.showing(blind, replace(HERE.devices[0], order=OrderID("another"))), 1) == NEVER


def test_a_device_is_where_the_manager_shows_it() -> None:
    store = b.world(inventories=[ELSEWHERE])
    assert store.place_of(b.FABRIC, ELSEWHERE.devices[0].id) == "n2"
    assert store.place_of(b.FABRIC, ELSEWHERE.devices[1].id) == NodeName("")
    store.see(POOL)
    assert store.place_of(b.FABRIC, ELSEWHERE.devices[0].id) == NodeName("")
