"""Supply: what is free, idle, under way or handed over, how long an attach takes, and when any of it turns."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import demand
from jackfield.core.demand import Refuse
from jackfield.model.composition import RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.host import Facts, Seen
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds, Uid
from jackfield.model.node import Node
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, SupplyChanged
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    device,
    heartbeat,
    inventory,
    model,
    node,
    policy,
    resource,
    showing,
    vendor_slice,
    world,
)

OLD, NEW = node(version="5"), node(version="6", cordoned=True)
N2 = NodeName("n2")
SLOTS = Traits(chooses_device=True)
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
OTHERS = device("gpu.example.com/n1/gpu-0")
VENDORS = policy(model("A100", driver="gpu.example.com"))
USER = claim("a", devices=[OTHERS], waits=())


# --- supply


@pytest.mark.parametrize(
    ("objects", "free"),
    [
        ((), ["a100-1", "a100-2"]),
        ((claim("a"),), ["a100-2"]),
        ((claim("a", admin=True),), ["a100-1", "a100-2"]),
        ((resource(),), ["a100-2"]),
    ],
    ids=["nobody's", "a claim's", "admin access", "a resource's"],
)
def test_a_device_is_free_while_nobody_has_it(objects: tuple[Object, ...], free: list[str]) -> None:
    store = world(*objects, inventories=[inventory()])
    assert [one.device for one in store.free_devices(FABRIC, MODEL, 9)] == free
    assert store.free(FABRIC, MODEL) == len(free)
    for one in objects:
        store.remove(one)
    assert store.free(FABRIC, MODEL) == 2


@pytest.mark.parametrize(
    "one",
    [FabricDevice(PhysicalID("1"), MODEL, node=NODE), FabricDevice(PhysicalID("1"), MODEL, healthy=False)],
    ids=["attached", "sick"],
)
def test_a_device_that_is_not_in_the_pool_or_not_well_is_not_free(one: FabricDevice) -> None:
    store = world(inventories=[inventory()])
    store.see(showing(inventory(), one))
    assert [each.device for each in store.free_devices(FABRIC, MODEL, 9)] == ["a100-2"]
    assert store.physical(device("a100-1")) == one
    store.see(inventory())
    assert store.free(FABRIC, MODEL) == 2


def test_a_device_that_its_manager_shows_no_more_is_not_free() -> None:
    store = world(inventories=[inventory()])
    changed = store.see(inventory(models={"A100": 1}))
    assert changed == (InventoryChanged(FABRIC, (), (device("a100-2"),)),)
    assert store.free_devices(FABRIC, MODEL, 9) == (device("a100-1"),)
    assert store.physical(device("a100-2")) is None


def test_a_device_that_turns_out_to_be_of_another_model_is_called_so() -> None:
    chosen = policy("A100", "H100")
    store = world(inventories=[inventory(models={"A100": 1})], policy=chosen)
    store.see(inventory(models={"H100": 1}))
    assert store.physical(device("a100-1")) is None
    assert store.free(FABRIC, MODEL) == 0
    assert store.free_devices(FABRIC, ModelName("H100"), 9) == (device("h100-1"),)


@pytest.mark.parametrize(
    ("objects", "free", "slots"),
    [
        ((), 3, ["a100-0", "a100-1", "a100-2"]),
        ((claim("a", devices=["a100-1"]),), 2, ["a100-0", "a100-2"]),
        ((resource("a100-0", state=ResourceState.ATTACHING),), 2, ["a100-1", "a100-2"]),
        ((resource("a100-0", physical="y"),), 2, ["a100-1", "a100-2"]),
        ((resource("a100-0", physical="x"),), 3, ["a100-1", "a100-2", "a100-3"]),
        (
            (resource("a100-0", physical="x"), claim("a", devices=["a100-0"])),
            3,
            ["a100-1", "a100-2", "a100-3"],
        ),
        (tuple(claim(f"c{n}", devices=[f"a100-{n}"]) for n in range(5)), 0, []),
    ],
    ids=[
        "what the manager counts",
        "less what claims were given",
        "less what is ordered",
        "less what the inventory does not show yet",
        "but not less what it shows",
        "once, though a claim holds it",
        "never less than none",
    ],
)
def test_free_slots_are(objects: tuple[Object, ...], free: int, slots: list[str]) -> None:
    stage = inventory(models={"A100": 3}, traits=SLOTS, attached={"x": "n1"})
    for store in (world(*objects, inventories=[stage]), world(inventories=[stage])):
        for one in objects:
            store.put(one)
        assert store.free(FABRIC, MODEL) == free
        assert [one.device for one in store.free_devices(FABRIC, MODEL, 9)] == slots
        assert len(store.free_devices(FABRIC, MODEL, 1)) == min(1, free)


def test_a_device_that_has_come_for_an_order_is_not_counted_twice_before_it_is_noted() -> None:
    order = resource("a100-0", state=ResourceState.ATTACHING, uid="order-1")
    store = world(order, inventories=[inventory(models={"A100": 3}, traits=SLOTS)])
    assert store.free(FABRIC, MODEL) == 2
    came = FabricDevice(PhysicalID("x"), MODEL, node=NODE, order=OrderID("order-1"))
    store.see(showing(inventory(models={"A100": 2}, traits=SLOTS), came))
    assert store.free(FABRIC, MODEL) == 2
    store.see(showing(inventory(models={"A100": 2}, traits=SLOTS), replace(came, order=OrderID("order-2"))))
    assert store.free(FABRIC, MODEL) == 1


def test_nothing_is_free_on_a_fabric_that_has_shown_nothing() -> None:
    store = world(claim("a"))
    assert (store.free(FABRIC, MODEL), store.free_devices(FABRIC, MODEL, 9)) == (0, ())
    assert not store.congested(FABRIC)
    assert store.fabrics() == ()


@pytest.mark.parametrize(
    ("one", "others", "place"),
    [
        (resource(), (), "idle"),
        (resource(state=ResourceState.NEW), (), "under way"),
        (resource(state=ResourceState.ATTACHING), (), "under way"),
        (resource(state=ResourceState.DETACHING), (), "under way"),
        (resource(state=ResourceState.DELETING), (), "under way"),
        (resource(record=claim("a")), (), ""),
        (resource(holder="u"), (), ""),
        (resource(), (claim("a"),), ""),
        (resource(), (claim("a", on="n2"),), ""),
        (resource(uuid="GPU-1"), (vendor_slice("GPU-1"),), "idle"),
        (resource(uuid="GPU-1"), (vendor_slice("GPU-1"), USER), ""),
        (resource(uuid="GPU-2"), (vendor_slice("GPU-1"), USER), "idle"),
        (resource("b200-1", model="B200"), (), ""),
    ],
    ids=[
        "online and nobody's",
        "new",
        "attaching",
        "detaching",
        "detached",
        "recorded",
        "prepared",
        "claimed",
        "claimed elsewhere",
        "published by its driver",
        "in use under its driver's name",
        "another device is in use",
        "of no model",
    ],
)
def test_a_resource_is_listed_by_what_it_is_doing(
    one: ComposableResource, others: tuple[Object, ...], place: str
) -> None:
    for objects in ((one, *others), (*others, one)):
        store = world(*objects, inventories=[inventory()])
        assert store.idle(FABRIC, MODEL) == ((one,) if place == "idle" else ())
        assert store.under_way(FABRIC) == ((one,) if place == "under way" else ())
        assert store.handing_over(FABRIC, MODEL) == ()


def test_a_device_is_idle_again_once_its_driver_or_its_user_is_gone() -> None:
    offered = vendor_slice("GPU-1")
    for gone in (offered, USER):
        store = world(resource(uuid="GPU-1"), offered, USER)
        assert store.idle(FABRIC, MODEL) == ()
        store.remove(gone)
        assert len(store.idle(FABRIC, MODEL)) == 1


def test_idle_devices_are_listed_least_recently_used_first() -> None:
    ages = {"a100-1": 10, "a100-2": 30, "a100-3": 20, "a100-4": 30}
    store = world(*(resource(name, used=NOW - ago) for name, ago in ages.items()))
    assert [one.metadata.name for one in store.idle(FABRIC, MODEL)] == [
        f"{name}.rack-a" for name in ("a100-2", "a100-4", "a100-3", "a100-1")
    ]


def test_a_vendors_device_is_handed_over_while_its_claim_is_recorded() -> None:
    handed = resource(SHARED, record=claim("a"))
    store = world(handed, policy=VENDORS)
    assert store.handing_over(FABRIC, MODEL) == (handed,)
    assert store.idle(FABRIC, MODEL) == ()
    store.put(resource(SHARED, version="2"))
    assert store.handing_over(FABRIC, MODEL) == ()
    assert len(store.idle(FABRIC, MODEL)) == 1


# --- how long an attach takes


def attached(number: int, took: float, seen_at: float = NOW - 10) -> ComposableResource:
    """Return a device that is online, and was first seen so long after it was ordered."""
    seen = Condition("Visible", "True", last_transition_time=heartbeat(at=seen_at).spec.renew_time)
    return resource(f"a100-{number}", created=seen_at - took, conditions=(seen,))


@pytest.mark.parametrize(
    ("objects", "takes"),
    [
        ((), 60),
        ((resource(),), 60),
        ((attached(1, 10),), 10),
        ((attached(1, 10), attached(2, 90), attached(3, 20)), 20),
        ((attached(1, 0),), 1),
        (
            (
                replace(
                    attached(1, 10), status=replace(attached(1, 10).status, state=ResourceState.DETACHING)
                ),
            ),
            60,
        ),
        (tuple(attached(n, 300, seen_at=NOW - 900) for n in range(32)), 300),
        (
            tuple(attached(n, 300, seen_at=NOW - 900) for n in range(40))
            + tuple(attached(n, 30) for n in range(100, 132)),
            30,
        ),
    ],
    ids=[
        "as the policy guesses",
        "as the policy guesses, before any was seen",
        "as the one took",
        "as most took",
        "a second at least",
        "only those that stand count",
        "as all took",
        "as the last 32 took",
    ],
)
def test_an_attach_takes(objects: tuple[Object, ...], takes: float) -> None:
    assert world(*objects).attach_seconds(FABRIC) == takes


def test_what_is_gone_is_forgotten_as_a_restart_would_forget_it() -> None:
    store = world(attached(1, 10), attached(2, 90))
    assert store.attach_seconds(FABRIC) == 50.0
    store.remove(attached(1, 10))
    assert store.attach_seconds(FABRIC) == 90.0
    store.remove(attached(2, 90))
    assert store.attach_seconds(FABRIC) == 60.0


@pytest.mark.parametrize(
    ("waiting", "jobs", "timeout", "congested"),
    [
        (3, 2, 134, True),
        (1, 2, 134, False),
        (2, 2, 134, True),
        (3, 2, 135, False),
        (4, 2, 135, True),
        (1, 1, 1, True),
    ],
)
def test_a_fabric_is_congested_when_more_is_waited_for_than_can_be_attached_in_time(
    waiting: int, jobs: int, timeout: float, *, congested: bool
) -> None:
    chosen = policy(base=Policy(binding_timeout_seconds=Seconds(timeout)))
    stage = inventory(models={"A100": 9}, traits=Traits(jobs=jobs))
    wishes = [claim(f"c{n}", devices=[f"a100-{n}"]) for n in range(1, waiting)]
    order = resource("a100-9", state=ResourceState.ATTACHING)
    served = [claim("x", devices=["a100-8"]), resource("a100-8")]
    store = world(*wishes, order, *served, inventories=[stage], policy=chosen)
    assert store.congested(FABRIC) is congested


@pytest.mark.parametrize(
    ("objects", "congested"),
    [
        ((claim("a"),), True),
        ((resource(state=ResourceState.NEW),), True),
        ((resource(state=ResourceState.ATTACHING),), True),
        ((claim("a"), resource()), False),
        ((resource(state=ResourceState.DETACHING),), False),
        ((resource(state=ResourceState.DETACHING, conditions=(Condition(RELEASED, "True"),)),), True),
        ((resource(state=ResourceState.DELETING),), False),
        ((claim("a", admin=True),), False),
    ],
    ids=[
        "not ordered yet",
        "new",
        "attaching",
        "attached",
        "not let go yet",
        "detaching",
        "back in the pool",
        "admin access",
    ],
)
def test_what_is_waited_for_on_a_fabric_of_one_job(objects: tuple[Object, ...], *, congested: bool) -> None:
    chosen = policy(base=Policy(binding_timeout_seconds=Seconds(1.0)))
    store = world(*objects, inventories=[inventory(traits=Traits(jobs=1))], policy=chosen)
    assert store.congested(FABRIC) is congested


def test_what_a_vendors_driver_has_to_let_go_is_an_order_from_the_beginning() -> None:
    going = resource(SHARED, state=ResourceState.DETACHING)
    chosen = replace(VENDORS, binding_timeout_seconds=Seconds(1.0))
    store = world(going, inventories=[inventory(traits=Traits(jobs=1))], policy=chosen)
    assert store.congested(FABRIC)


def test_ahead_of_a_claim_are_orders_under_way_and_older_claims_without_one() -> None:
    mine = claim("m", devices=["a100-1"], allocated=NOW - 20)
    older, younger = (claim(f"c{ago}", devices=[f"a100-{ago}"], allocated=NOW - ago) for ago in (30, 10))
    served = (claim("s", devices=["a100-5"], allocated=NOW - 40), resource("a100-5"))
    assert world(mine, older, younger, *served).ahead(FABRIC, mine) == 1
    order = resource("a100-9", state=ResourceState.ATTACHING)
    assert world(mine, older, younger, *served, order).ahead(FABRIC, mine) == 2
    assert world(mine).ahead(FABRIC, mine) == 0


# --- what an inventory changes


def test_the_first_inventory_is_all_news() -> None:
    store = Store(policy())
    stage = inventory(machines=["n1", "n2"], attached={"1": "n1"})
    assert store.see(stage) == (InventoryChanged(FABRIC, (NODE, N2), (device("a100-1"), device("a100-2"))),)
    assert (store.fabrics(), store.inventory(FABRIC)) == ((FABRIC,), stage)
    assert (store.fabric_of(N2), store.machine(N2)) == (FABRIC, Machine(N2))
    assert store.nodes_of(FABRIC) == (NODE, N2)
    assert [one.id for one in store.attached(NODE)] == ["1"]


def test_the_same_inventory_again_is_no_news() -> None:
    store = world(inventories=[inventory()])
    assert store.see(inventory()) == ()


@pytest.mark.parametrize(
    ("after", "nodes", "devices"),
    [
        (inventory(attached={"1": "n1"}), (NODE,), (device("a100-1"),)),
        (inventory(machines=[Machine(NODE, slots=3)]), (NODE,), ()),
        (inventory(machines=["n2"]), (NODE, N2), ()),
        (inventory(models={"A100": 3}), (), (device("a100-3"),)),
        (inventory(models={"A100": 2, "X": 1}), (), ()),
    ],
    ids=[
        "a device was attached",
        "a machine grew",
        "a machine came, one went",
        "a device came",
        "no model of ours",
    ],
)
def test_an_inventory_tells_what_changed(
    after: Inventory, nodes: tuple[NodeName, ...], devices: tuple[object, ...]
) -> None:
    store = world(inventories=[inventory()])
    assert store.see(after)[0] == InventoryChanged(FABRIC, nodes, devices)  # type: ignore[arg-type] # a row's own


def test_a_device_that_moves_is_news_for_both_nodes() -> None:
    store = world(inventories=[inventory(machines=["n1", "n2"], attached={"1": "n1"})])
    (changed,) = store.see(inventory(machines=["n1", "n2"], attached={"1": "n2"}))
    assert changed == InventoryChanged(FABRIC, (N2, NODE), (device("a100-1"),))
    assert store.attached(NODE) == ()


def test_a_node_that_changes_fabric_is_where_it_is_in_whatever_order_that_is_told() -> None:
    here, there = inventory(), inventory("rack-b")
    left, right = inventory(machines=[]), inventory("rack-b", machines=[])
    for steps in ((here, there, left), (here, left, there), (there, left)):
        store = world(inventories=steps)
        assert store.fabric_of(NODE) == "rack-b"
        assert (store.nodes_of(FABRIC), store.nodes_of(FabricName("rack-b"))) == ((), (NODE,))
    assert world(inventories=[here, there, right]).fabric_of(NODE) == FABRIC
    assert world(inventories=[here, left]).machine(NODE) is None


def test_ids_of_two_managers_are_not_taken_for_each_other() -> None:
    mine, theirs = inventory(attached={"1": "n1"}), inventory("rack-z", machines=[], attached={"1": "n1"})
    store = world(inventories=[mine, theirs])
    assert store.attached(NODE) == (mine.devices[0],)
    store.see(inventory("rack-z", machines=[]))
    assert store.attached(NODE) == (mine.devices[0],)


def test_an_order_that_shows_up_in_the_inventory_is_no_longer_spoken_for() -> None:
    ordered = resource("a100-0", physical="x")
    store = world(ordered, inventories=[inventory(models={"A100": 1}, traits=SLOTS)])
    assert store.free(FABRIC, MODEL) == 0
    store.see(inventory(models={"A100": 1}, traits=SLOTS, attached={"x": "n1"}))
    assert store.free(FABRIC, MODEL) == 1


# --- flips


def flips(deltas: tuple[Delta, ...]) -> list[ModelName]:
    return [one.model for one in deltas if isinstance(one, SupplyChanged)]


def test_the_last_device_taken_and_the_first_one_back_are_told_once() -> None:
    store = world(inventories=[inventory()])
    assert flips(store.put(claim("a"))) == []
    assert flips(store.put(claim("b", devices=["a100-2"]))) == [MODEL]
    assert flips(store.put(claim("c", devices=["a100-2"]))) == []
    assert flips(store.remove(claim("a"))) == [MODEL]


def test_an_inventory_that_runs_out_tells_so() -> None:
    store = world(inventories=[inventory()])
    assert flips(store.see(inventory(models={}))) == [MODEL]


def test_a_hand_over_tells_when_it_begins_and_ends() -> None:
    store = world(inventories=[inventory()], policy=VENDORS)
    assert flips(store.put(resource(SHARED, record=claim("a")))) == [MODEL]
    assert flips(store.put(resource(SHARED, version="2"))) == [MODEL]


def test_congestion_tells_all_models_of_the_fabric() -> None:
    chosen = policy("A100", "H100", base=Policy(binding_timeout_seconds=Seconds(1.0)))
    stage = inventory(models={"A100": 2, "H100": 1}, traits=Traits(jobs=1))
    store = world(inventories=[stage], policy=chosen)
    assert flips(store.put(claim("a"))) == [MODEL, "H100"]
    assert flips(store.remove(claim("a"))) == [MODEL, "H100"]


# --- facts


def test_what_a_node_sees_is_news_once() -> None:
    store = Store(policy())
    facts = Facts((Seen(PhysicalID("1"), "GPU-1"),))
    assert store.facts(NODE) is None
    assert store.sense(NODE, facts) == (FactsChanged(NODE),)
    assert store.sense(NODE, facts) == ()
    assert store.facts(NODE) == facts


def test_objects_of_a_table_are_given_what_they_lack() -> None:
    bare = ObjectMeta(name="a")
    store = world(Node(metadata=bare), Node(metadata=replace(bare, name="b", uid=Uid("u"))))
    assert [(one.uid, one.metadata.resource_version) for one in store.nodes()] == [("uid-1", "1"), ("u", "2")]


@pytest.mark.parametrize(("orders", "refused"), [(2, False), (3, True), (4, True)])
@pytest.mark.parametrize("state", [ResourceState.ATTACHING, ResourceState.DETACHING])
def test_nothing_is_offered_that_would_be_refused_for_want_of_time(
    state: ResourceState, orders: int, *, refused: bool
) -> None:
    """Else scheduler and scaler go round for as long as the manager is busy."""
    chosen = policy(base=Policy(binding_timeout_seconds=Seconds(210.0)))
    going = (Condition(RELEASED, "True"),) * (state is ResourceState.DETACHING)
    busy = [resource(f"a100-{n}", state=state, on="n2", conditions=going) for n in range(orders)]
    stage = inventory(models={"A100": 9}, traits=Traits(jobs=1))
    store = world(node(), heartbeat(), *busy, inventories=[stage], policy=chosen)
    assert store.congested(FABRIC) is refused
    store.put(claim("late", devices=["a100-8"], allocated=NOW))
    (wish,) = demand.on_node(store, NODE, chosen, NOW)
    assert (isinstance(wish.verdict, Refuse) and "in time" in wish.verdict.reason) is refused
