"""The store: older news never replaces newer, the dead stay dead, and every change says what it changed."""

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import GRAVES_MAX, Store
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.host import Facts, Seen
from jackfield.model.meta import Condition, Object, ObjectMeta
from jackfield.model.names import FabricName, Key, ModelName, NodeName, PhysicalID, Seconds, Uid, named
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import PodCondition
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged, SupplyChanged
from jackfield.ports import Changed, Deleted, Synced
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
    pod,
    policy,
    request,
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


# --- versions and graves


def test_an_object_is_known_as_it_was_last_heard_of() -> None:
    store = Store(policy())
    assert store.put(OLD) == (ObjectChanged(None, OLD),)
    assert store.put(NEW) == (ObjectChanged(OLD, NEW),)
    assert store.node(NODE) == NEW


@pytest.mark.parametrize("stale", [OLD, NEW, node(version="")], ids=["older", "the same", "never written"])
def test_older_news_is_passed_over(stale: Node) -> None:
    store = world(NEW)
    assert store.put(stale) == ()
    assert store.node(NODE) == NEW


def test_versions_are_numbers_not_texts() -> None:
    store = world(node(version="9"))
    assert store.put(node(version="10")) != ()


@pytest.mark.parametrize(
    ("gone", "there"),
    [(node(version="5"), True), (node(version="6"), False), (node(version="7"), False)],
    ids=["an older one went", "this one went", "a later one went"],
)
def test_an_object_goes_unless_a_later_one_of_its_name_is_known(gone: Node, *, there: bool) -> None:
    store = world(NEW)
    assert store.observe(Deleted(gone)) == (() if there else (ObjectChanged(NEW, None),))
    assert (store.node(NODE) is not None) is there


@pytest.mark.parametrize(
    ("version", "there"),
    [("5", False), ("7", False), ("8", True)],
    ids=["from before", "of its end", "of its successor"],
)
def test_the_dead_do_not_come_back_by_news(version: str, *, there: bool) -> None:
    store = world(NEW)
    store.observe(Deleted(node(version="7")))
    store.observe(Changed(node(version=version)))
    assert (store.node(NODE) is not None) is there


def test_the_end_of_an_object_never_heard_of_is_remembered() -> None:
    store = Store(policy())
    assert store.observe(Deleted(node(version="7"))) == ()
    assert store.put(node(version="6")) == ()
    assert store.node(NODE) is None


def test_a_grave_is_of_one_kind() -> None:
    store = world(NEW)
    store.remove(NEW)
    assert store.put(heartbeat(version="1")) != ()


def test_graves_are_bounded_and_the_oldest_goes_first() -> None:
    store = Store(policy())
    for number in range(GRAVES_MAX + 1):
        store.remove(node(f"n{number}", version="5"))
    back = [bool(store.put(node(name, version="4"))) for name in ("n0", "n1", f"n{GRAVES_MAX}")]
    assert back == [True, False, False]


def test_what_the_api_says_is_gone_is_gone() -> None:
    store = world(NEW)
    assert store.forget(Node, named("n1")) == (ObjectChanged(NEW, None),)
    assert store.forget(Node, named("n1")) == ()
    assert store.put(OLD) == ()


def test_a_list_takes_away_what_it_does_not_name() -> None:
    two = node("n2")
    store = world(OLD, two, heartbeat())
    assert store.observe(Synced(Node, frozenset([OLD.key]))) == (ObjectChanged(two, None),)
    assert store.nodes() == (OLD,)
    assert store.heartbeat(NODE) == NOW


def test_what_was_written_after_a_list_was_made_is_known_again_once_it_is_told() -> None:
    store = world(NEW)  # the answer to a write of ours, later than the list
    store.observe(Synced(Node, frozenset()))
    assert store.node(NODE) is None
    assert store.observe(Changed(NEW)) == (ObjectChanged(None, NEW),)


def test_all_of_a_kind_are_listed_by_name() -> None:
    store = world(node("n2"), node("n1"), claim("a"))
    assert [one.key.name for one in store.all(Node)] == ["n1", "n2"]
    assert store.kinds() == (Node, ResourceClaim)
    assert store.all(ComposableResource) == ()


# --- looking things up


def test_claims_are_served_by_the_age_of_their_allocation_then_their_own_then_by_name() -> None:
    wishes = [
        claim("d", allocated=NOW - 10, created=NOW - 50),
        claim("c", allocated=NOW - 10, created=NOW - 50),
        claim("b", allocated=NOW - 10, created=NOW - 60),
        claim("a", allocated=NOW - 5, created=NOW - 90),
        claim("e", allocated=NOW - 20, created=NOW - 40),
    ]
    store = world(*wishes)
    expected = ["e", "b", "c", "d", "a"]
    assert [one.metadata.name for one in store.claims_on(NODE)] == expected
    assert [one.metadata.name for one in store.claims_holding(device("a100-1"))] == expected


@pytest.mark.parametrize(
    ("one", "on", "holding"),
    [
        (claim("a"), True, True),
        (claim("a", admin=True), True, False),
        (claim("a", waits=()), False, True),
        (claim("a", on="n2"), False, True),
        (claim("a", devices=[]), False, False),
    ],
    ids=["ours", "admin access", "another driver's", "another node's", "not allocated"],
)
def test_a_claim_is_found_by_node_if_it_waits_for_us_and_by_device_if_it_holds_it(
    one: ResourceClaim, *, on: bool, holding: bool
) -> None:
    store = world(one)
    assert store.claim(one.key) == one
    assert bool(store.claims_on(NODE)) is on
    assert bool(store.claims_holding(device("a100-1"))) is holding


def test_a_claim_that_moves_is_found_only_where_it_is() -> None:
    store = world(claim("a"))
    store.put(claim("a", devices=["a100-2"], on="n2", version="2"))
    assert store.claims_on(NODE) == store.claims_holding(device("a100-1")) == ()
    assert len(store.claims_on(N2)) == len(store.claims_holding(device("a100-2"))) == 1


@pytest.mark.parametrize(
    ("phase", "on", "using", "bound"),
    [("Pending", "", 1, 0), ("Running", "n1", 1, 1), ("Succeeded", "n1", 0, 1), ("Failed", "n1", 0, 1)],
)
def test_pods_use_their_claims_until_they_have_finished(phase: str, on: str, using: int, bound: int) -> None:
    store = world(pod("p", "a", on=on, phase=phase))
    assert len(store.pods_using(Key("default", "a"))) == using
    assert len(store.pods_on(NODE)) == bound
    store.forget(type(pod("p")), Key("default", "p"))
    assert store.pods_using(Key("default", "a")) == store.pods_on(NODE) == ()


def test_unschedulable_pods_are_listed_oldest_first() -> None:
    def stuck(name: str, *, created: float, on: str = "", deleted: float | None = None) -> Object:
        made = (
            pod(name, on=on, created=created)
            if deleted is None
            else pod(name, created=created, deleted=deleted)
        )
        said = PodCondition("PodScheduled", "False", "Unschedulable")
        return replace(made, status=replace(made.status, conditions=(said,)))

    store = world(
        stuck("b", created=NOW - 5),
        stuck("a", created=NOW - 1),
        stuck("bound", created=NOW, on="n1"),
        stuck("going", created=NOW, deleted=NOW),
        pod("fine"),
    )
    assert [one.metadata.name for one in store.pods_unschedulable()] == ["b", "a"]


def test_nodes_are_found_by_group() -> None:
    store = world(node("n1", labels={NODE_GROUP: "big"}), node("n2"))
    assert [one.name for one in store.nodes_in_group("big")] == ["n1"]
    store.put(node("n1", version="2"))
    assert store.nodes_in_group("big") == ()


def test_failures_are_known_by_node_and_by_device_in_the_order_of_time() -> None:
    first = node("n1", failures={"a100-1": NOW - 10, "a100-2": NOW - 20})
    store = world(first, node("n2", failures={"a100-1": NOW - 30}), node("n3", failures={"a100-1": NOW - 10}))
    assert [one.device.device for one in store.failures_on(NODE)] == ["a100-1", "a100-2"]
    assert [one.node for one in store.failures_of(device("a100-1"))] == ["n2", "n1", "n3"]
    store.put(node("n1", version="2", annotations={"jackfield.dev/failures": "nonsense"}))
    assert store.failures_on(NODE) == ()
    assert [one.node for one in store.failures_of(device("a100-1"))] == ["n2", "n3"]


def test_a_plugin_that_never_gave_a_sign_of_life_is_silent_for_ever() -> None:
    assert Store(policy()).heartbeat(NODE) == Seconds(float("-inf"))
    assert world(heartbeat(at=NOW - 3)).heartbeat(NODE) == NOW - 3


def test_requests_are_found_by_name_node_and_model() -> None:
    mine, theirs = request({"a100-1": ""}, created=NOW - 5), request(2, created=NOW - 9, on="n2")
    store = world(mine, theirs)
    assert store.request("by-hand") == theirs
    assert store.requests_on(NODE) == (mine,)
    assert store.requests_for(MODEL) == (theirs, mine)
    store.forget(type(mine), theirs.key)
    assert store.requests_for(MODEL) == (mine,)


def test_resources_are_found_by_all_they_are_known_by() -> None:
    user = claim("a", uid="u-a")
    one = resource(physical="1", record=user)
    store = world(one)
    assert store.resource("rack-a-a100-1") == store.resource_of(device("a100-1")) == one
    assert store.resource_with(FABRIC, PhysicalID("1")) == one
    assert store.resource_with(FabricName("rack-b"), PhysicalID("1")) is None
    assert store.resources_on(NODE) == store.resources_of("jackfield-a100-n1") == (one,)
    assert store.resources_recording(user.key) == (one,)
    store.put(resource(version="2"))
    assert store.resource_with(FABRIC, PhysicalID("1")) is None
    assert store.resources_recording(user.key) == ()


@pytest.mark.parametrize("order", [1, -1], ids=["the new one heard of last", "the new one heard of first"])
def test_a_device_that_one_resource_gives_back_and_another_has_is_the_others(order: int) -> None:
    leaving = resource("a100-0", physical="x", uuid="GPU-1", state=ResourceState.DELETING)
    having = resource("a100-9", physical="x", uuid="GPU-1")
    store = world(*(leaving, having)[::order])
    assert store.resource_with(FABRIC, PhysicalID("x")) == having
    store.remove(leaving)
    assert store.resource_with(FABRIC, PhysicalID("x")) == having


def test_slices_are_found_by_pool_by_device_and_by_uuid() -> None:
    one = vendor_slice("GPU-1")
    store = world(one)
    assert store.slices("gpu.example.com", "n1") == (one,)
    assert store.slice_with(OTHERS) == one
    assert store.published("GPU-1") == (OTHERS,)
    assert store.published("") == ()
    store.remove(one)
    assert store.slice_with(OTHERS) is None
    assert store.published("GPU-1") == ()


def test_a_device_that_moves_between_slices_stays_published() -> None:
    before = vendor_slice("GPU-1")
    after = replace(before, metadata=replace(before.metadata, name="another"))
    store = world(before, after)
    assert store.published("GPU-1") == (OTHERS,)
    store.remove(before)
    assert store.published("GPU-1") == (OTHERS,)
    assert store.slice_with(OTHERS) == after


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
        store.forget(type(one), one.key)
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
        f"rack-a-{name}" for name in ("a100-2", "a100-4", "a100-3", "a100-1")
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
    store.forget(ComposableResource, named("rack-a-a100-1"))
    assert store.attach_seconds(FABRIC) == 90.0
    store.forget(ComposableResource, named("rack-a-a100-2"))
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
    assert flips(store.forget(ResourceClaim, Key("default", "a"))) == [MODEL]


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
    assert flips(store.forget(ResourceClaim, Key("default", "a"))) == [MODEL, "H100"]


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
