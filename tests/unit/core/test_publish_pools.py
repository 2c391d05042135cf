"""Pools and slots: which slice lists which device, what comes and goes, and what wakes the publisher."""

from itertools import chain

import pytest
from msgspec.structs import replace

from jackfield.core import naming, publish
from jackfield.core.publish import WHOLE_POOL
from jackfield.model.composition import ResourceState
from jackfield.model.device import Device, DeviceAttribute
from jackfield.model.fabric import Traits
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import ModelName, NodeName, Version
from jackfield.model.plan import PutSlice
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged, SupplyChanged
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
    vendor_slice,
    world,
)
from unit.core.slices import ONE, POOL, SHARED_POOL, entry, settled

CHOOSING = Traits(chooses_device=True)
TAKEN = inventory(models={"A100": 1}, attached={"1": "n1"})
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
PAUSED = policy(base=Policy(paused=True))
WANTED = request({"a100-1": ""})
"""The scaler's request that an idle a100-1 on n1 belongs to."""


FAILED_ONCE = node(failures={"a100-1": NOW - 1000})


# --- a pool


def test_a_new_pool_lists_all_devices_of_the_fabric_in_its_order() -> None:
    chosen = policy("A100", "H100", model("B200", driver="gpu.example.com"))
    view = world(inventories=[inventory(models={"H100": 1, "L40": 1, "A100": 1, "B200": 1})], policy=chosen)
    (put,) = publish.decide(view, POOL, chosen, NOW).actions
    assert isinstance(put, PutSlice)
    assert put.because == "the pool changed: h100-1, a100-3 joined"
    assert put.slice.metadata.name == "0000-fabric.jackfield.dev-rack-a"
    assert put.slice.spec.per_device_node_selection
    assert put.slice.spec.pool == ResourcePool("rack-a", 1, 1)
    assert [one.name for one in put.slice.spec.devices] == ["h100-1", "a100-3"]


def names(slices: tuple[ResourceSlice, ...]) -> list[list[str]]:
    return [[one.name for one in each.spec.devices] for each in slices]


def test_entries_do_not_move_and_new_ones_fill_what_is_free() -> None:
    view = world(inventories=[inventory(models={"A100": 65})])
    first, second = settled(view, policy())
    assert [len(one) for one in names((first, second))] == [64, 1]
    assert first.spec.pool == second.spec.pool == ResourcePool("rack-a", 1, 2)
    fewer = tuple(one for one in inventory(models={"A100": 66}).devices if one.id not in ("2", "3"))
    view.see(replace(inventory(), devices=fewer))
    plan = publish.decide(view, POOL, policy(), NOW)
    assert [action.because for action in plan.actions] == [
        "the pool changed: a100-66 joined, a100-2, a100-3 left"
    ]
    after = settled(view, policy())
    assert names(after) == [["a100-1", *(f"a100-{n}" for n in range(4, 65)), "a100-66"], ["a100-65"]]
    assert {one.spec.pool for one in after} == {ResourcePool("rack-a", 1, 2)}


def test_another_slice_raises_the_generation_of_all() -> None:
    view = world(inventories=[inventory(models={"A100": 64})])
    settled(view, policy())
    view.see(inventory(models={"A100": 193}))
    assert len(publish.decide(view, POOL, policy(), NOW).actions) == 4
    after = settled(view, policy())
    assert [len(one) for one in names(after)] == [64, 64, 64, 1]
    assert [one.spec.pool for one in after] == [ResourcePool("rack-a", 2, 4)] * 4


@pytest.mark.parametrize(
    ("objects", "left"),
    [((), []), ((claim("a"),), ["a100-1"]), ((resource(),), ["a100-1"]), ((claim("a", admin=True),), [])],
    ids=["nobody has it", "a claim holds it", "a resource has it", "admin access holds nothing"],
)
def test_an_entry_leaves_only_when_nobody_has_it(objects: tuple[Object, ...], left: list[str]) -> None:
    view = world(*objects, inventories=[ONE])
    settled(view, policy())
    view.see(inventory(models={}))
    assert names(settled(view, policy())) == [left]


def test_a_slice_that_somebody_deleted_comes_back_under_a_free_name() -> None:
    view = world(inventories=[inventory(models={"A100": 65})])
    first, second = settled(view, policy())
    view.remove(first)
    assert [action.because for action in publish.decide(view, POOL, policy(), NOW).actions] == [
        "the pool changed: a100-1, a100-2, a100-3 and 61 more joined"
    ] * 2
    after = settled(view, policy())
    assert [one.metadata.name[:4] for one in after] == ["0000", "0001"]
    assert sorted(chain(*names(after))) == sorted(chain(*names((first, second))))
    assert [one.spec.pool for one in after] == [ResourcePool("rack-a", 2, 2)] * 2


def test_a_pool_that_lost_an_empty_slice_is_made_whole() -> None:
    view = world(inventories=[inventory(models={"A100": 65})])
    settled(view, policy())
    view.see(inventory(models={"A100": 64}))
    _, empty = settled(view, policy())
    view.remove(empty)
    (put,) = publish.decide(view, POOL, policy(), NOW).actions
    assert put.because == "the pool changed: a slice is missing"
    (after,) = settled(view, policy())
    assert after.spec.pool == ResourcePool("rack-a", 2, 1)


def test_a_pool_that_was_cut_short_is_finished() -> None:
    view = world(inventories=[inventory(models={"A100": 65})])
    first, second = settled(view, policy())
    behind = replace(second, spec=replace(second.spec, pool=ResourcePool("rack-a", 0, 1)))
    view = world(first, behind, inventories=[inventory(models={"A100": 65})])
    after = settled(view, policy())
    assert [one.spec.pool for one in after] == [ResourcePool("rack-a", 2, 2)] * 2


# --- slots

ONE_SLOT = replace(
    vendor_slice("GPU-1"),
    metadata=ObjectMeta(name=naming.slice_name(DRIVER, "rack-a", 0)),
    spec=ResourceSliceSpec(
        driver=DRIVER, pool=ResourcePool("rack-a", 1, 1), devices=(Device(name="a100-2"),)
    ),
)


@pytest.mark.parametrize(
    ("objects", "free", "attached", "slots"),
    [
        ((), 2, {}, ["a100-0", "a100-1"]),
        ((), 0, {}, []),
        ((claim("a", devices=["a100-0"]),), 2, {}, ["a100-0", "a100-1"]),
        ((resource("a100-0", state=ResourceState.ATTACHING),), 2, {}, ["a100-0", "a100-1"]),
        ((resource("a100-0", physical="x"),), 1, {"x": "n1"}, ["a100-0", "a100-1"]),
        ((resource("a100-1", physical="x"),), 1, {"x": "n1"}, ["a100-0", "a100-1"]),
        ((resource("a100-0", physical="x"),), 0, {"x": "n1"}, ["a100-0"]),
        ((), 1, {"x": "n1"}, ["a100-0"]),
    ],
    ids=[
        "as many as are free",
        "none are free",
        "a claim has one of two",
        "an order has one of two",
        "one is attached, one free",
        "a hole is filled",
        "all are attached",
        "a device that is not in our books is no slot",
    ],
)
def test_slots_are_those_that_somebody_has_and_as_many_as_are_free(
    objects: tuple[Object, ...], free: int, attached: dict[str, str], slots: list[str]
) -> None:
    stage = inventory(models={"A100": free}, traits=CHOOSING, attached=attached)
    view = world(*objects, inventories=[stage])
    assert [sorted(one) for one in names(settled(view, policy()))] == ([slots] if slots else [])


def test_slots_that_are_free_no_more_leave_and_those_held_stay() -> None:
    chosen = policy("A100", "H100")
    view = world(inventories=[inventory(models={"A100": 3, "H100": 1}, traits=CHOOSING)], policy=chosen)
    assert names(settled(view, chosen)) == [["a100-0", "a100-1", "a100-2", "h100-0"]]
    view.put(claim("a", devices=["a100-2"]))
    view.see(inventory(models={"A100": 1, "H100": 0}, traits=CHOOSING))
    assert names(settled(view, chosen)) == [["a100-2"]]


def test_a_slot_that_came_free_stays_though_lower_numbers_are_not_listed() -> None:
    view = world(claim("a", devices=["a100-2"]), inventories=[inventory(models={"A100": 1}, traits=CHOOSING)])
    view.put(replace(ONE_SLOT, metadata=replace(ONE_SLOT.metadata, resource_version=Version("9"))))
    assert names(settled(view, policy())) == [["a100-2"]]
    view.remove(claim("a", devices=["a100-2"]))
    assert names(settled(view, policy())) == [["a100-2"]]


def test_a_slot_that_a_device_came_for_is_offered_again_when_the_books_say_which_one() -> None:
    """A manager shows what it chose before we have noted it: it counts twice then, as taken and as wanted."""
    waiting = resource("a100-0", state=ResourceState.ATTACHING, version="8")
    view = world(waiting, inventories=[inventory(models={"A100": 2}, traits=CHOOSING)])
    assert names(settled(view, policy())) == [["a100-0", "a100-1"]]
    view.see(inventory(models={"A100": 1}, traits=CHOOSING, attached={"x": "n1"}))
    assert names(settled(view, policy())) == [["a100-0"]]
    noted = view.put(resource("a100-0", state=ResourceState.ATTACHING, physical="x", version="9"))
    keys = [key for delta in noted for key in publish.wakes(view, policy(), delta)]
    assert names(settled(view, policy(), *keys)) == [["a100-0", "a100-1"]]


def test_a_slot_says_nothing_of_a_physical_device() -> None:
    stage = inventory(models={"A100": 2}, traits=CHOOSING)
    assert entry(stage=stage).attributes == {
        "fabric": DeviceAttribute(string="rack-a"),
        "model": DeviceAttribute(string="A100"),
        "attached": DeviceAttribute(bool_=False),
    }


# --- waking


GONE = replace(FAILED_ONCE.metadata, name="n9")
"""Of a node that is not in the world."""


def woken(
    delta: Delta, chosen: Policy = policy("A100", model("H100", driver="gpu.example.com"))
) -> list[str]:
    """Return the slices that a change wakes in a world with 65 A100 and two H100, as POOL/INDEX."""
    stage = inventory(models={"A100": 65, "H100": 2})
    view = world(FAILED_ONCE, inventories=[stage], policy=chosen)
    settled(view, chosen)
    settled(view, chosen, replace(SHARED_POOL, pool="h100-fabricrack-a"))
    return [f"{key.pool}/{key.index}" for key in publish.wakes(view, chosen, delta)]


OTHERS = vendor_slice("GPU-1")
MINE = replace(
    OTHERS,
    metadata=replace(OTHERS.metadata, name="0002-x"),
    spec=replace(OTHERS.spec, driver=DRIVER, pool=ResourcePool("rack-a", 1, 3), devices=()),
)


def listing(one: ResourceSlice, name: str, on: str = "") -> ResourceSlice:
    return replace(one, spec=replace(one.spec, devices=(Device(name=name, node_name=NodeName(on)),)))


HANDED_OVER = replace(
    OTHERS, spec=replace(OTHERS.spec, pool=ResourcePool("h100-fabricrack-a", 1, 1), devices=())
)


@pytest.mark.parametrize(
    ("delta", "keys"),
    [
        (
            InventoryChanged(FABRIC, (), (device("a100-65"), device("a100-64"), device("a100-99"))),
            ["rack-a/-1", "h100-fabricrack-a/-1", "rack-a/1", "rack-a/0"],
        ),
        (InventoryChanged(FABRIC, (NODE,), ()), ["rack-a/-1", "h100-fabricrack-a/-1"]),
        (SupplyChanged(FABRIC, MODEL), ["rack-a/0", "rack-a/1"]),
        (SupplyChanged(FABRIC, ModelName("H100")), ["h100-fabricrack-a/0"]),
        (SupplyChanged(FABRIC, ModelName("B200")), []),
        (ObjectChanged(None, claim("a")), []),
        (ObjectChanged(claim("a"), None), []),
        (ObjectChanged(resource(), resource(record=claim("a"))), []),
        (ObjectChanged(resource(), resource(state=ResourceState.DETACHING)), ["rack-a/0"]),
        (ObjectChanged(resource(), resource(holder="uid-a")), ["rack-a/0"]),
        (ObjectChanged(resource(), resource(error="it does not come off")), ["rack-a/0"]),
        (ObjectChanged(None, claim("a", devices=["other.example.com/p/x"])), []),
        (ObjectChanged(resource("a100-65"), None), ["rack-a/1"]),
        (ObjectChanged(None, resource("a100-99")), ["rack-a/-1"]),
        (ObjectChanged(None, replace(resource(), metadata=replace(resource().metadata, annotations={}))), []),
        (ObjectChanged(None, FAILED_ONCE), ["rack-a/0"]),
        (ObjectChanged(replace(FAILED_ONCE, metadata=GONE), None), ["rack-a/0"]),
        (ObjectChanged(None, node("n2")), []),
        (ObjectChanged(MINE, None), ["rack-a/-1"]),
        (ObjectChanged(None, MINE), ["rack-a/-1", "rack-a/2"]),
        (ObjectChanged(HANDED_OVER, None), ["h100-fabricrack-a/-1"]),
        (ObjectChanged(MINE, MINE), []),
        (ObjectChanged(MINE, listing(MINE, "a100-1")), ["rack-a/-1", "rack-a/2"]),
        (ObjectChanged(listing(MINE, "a100-1"), listing(MINE, "a100-1", on="n2")), ["rack-a/2"]),
        (ObjectChanged(OTHERS, listing(OTHERS, "gpu-7")), []),
        (ObjectChanged(OTHERS, None), []),
        (ObjectChanged(None, OTHERS), []),
        (ObjectChanged(None, pod("p")), []),
        (ObjectChanged(None, heartbeat()), []),
        (FactsChanged(NODE), []),
    ],
    ids=[
        "devices in the inventory",
        "nodes in the inventory",
        "supply",
        "supply of a vendor's model",
        "supply of no model of ours",
        "a new claim, while devices are free",
        "a claim that is gone, while devices are free",
        "a resource that was recorded, while devices are free",
        "a resource that is in another state",
        "a resource that is prepared",
        "a resource that went wrong",
        "a claim on another driver's device",
        "a resource",
        "a resource of a device that no slice lists",
        "a resource that somebody else made",
        "a node on which a device failed",
        "a node on which a device had failed, and which is gone",
        "a node",
        "a slice of ours that is gone",
        "a slice of ours that is heard of",
        "a slice of a vendor's model that is gone",
        "a slice of ours on which nothing changed",
        "a slice of ours that lists others, by a write that came late",
        "a slice of ours that offers them otherwise",
        "another driver's slice that changed",
        "another driver's slice that is gone",
        "another driver's slice",
        "a pod",
        "a heartbeat",
        "facts",
    ],
)
def test_a_change_wakes_the_slices_it_is_about(delta: Delta, keys: list[str]) -> None:
    assert woken(delta) == keys


def test_a_device_that_nobody_holds_any_more_is_looked_at_while_others_are_free() -> None:
    view = world(resource(), inventories=[inventory()], policy=policy())
    settled(view, policy())
    assert [key.index for key in publish.wakes(view, policy(), ObjectChanged(claim("a"), None))] == [0]
    view.put(claim("a"))
    assert publish.wakes(view, policy(), ObjectChanged(None, claim("a"))) == ()


@pytest.mark.parametrize(("state", "keys"), [(ResourceState.DETACHING, [0]), (ResourceState.ONLINE, [])])
def test_what_leaves_a_node_is_looked_at_when_the_node_has_no_room_any_more(
    state: ResourceState, keys: list[int]
) -> None:
    view = world(resource(state=state), inventories=[inventory()], policy=policy())
    settled(view, policy())
    delta = ObjectChanged(node(room=["A100"]), node())
    assert [key.index for key in publish.wakes(view, policy(), delta)] == keys


@pytest.mark.parametrize("delta", [ObjectChanged(resource(), None), ObjectChanged(claim("a"), None)])
def test_a_device_that_has_vanished_leaves_its_pool_when_nobody_has_it_any_more(delta: Delta) -> None:
    view = world(resource(), inventories=[inventory()], policy=policy())
    settled(view, policy())
    view.see(inventory(models={}))
    assert WHOLE_POOL in [key.index for key in publish.wakes(view, policy(), delta)]
    view.remove(resource())
    (left,) = settled(view, policy())
    assert left.spec.devices == ()


@pytest.mark.parametrize(
    "delta",
    [
        ObjectChanged(None, claim("a")),
        ObjectChanged(claim("a"), None),
        ObjectChanged(resource(), resource(record=claim("a"))),
        ObjectChanged(request({"a100-1": "a"}), request(1, name="jackfield-a100-n1")),
    ],
    ids=[
        "a new claim",
        "a claim that is gone",
        "a resource that was recorded",
        "its request is somebody else's now",
    ],
)
def test_who_holds_a_device_matters_when_no_other_is_free(delta: Delta) -> None:
    view = world(resource(), inventories=[TAKEN], policy=policy())
    settled(view, policy())
    assert [key.index for key in publish.wakes(view, policy(), delta)] == [0]
