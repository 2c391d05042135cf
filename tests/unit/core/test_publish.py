"""What is offered to whom: open, pinned and closed entries, devices and slots, slices and pools."""

from itertools import chain, count

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import publish
from jackfield.core.publish import WHOLE_POOL, Closed, Offer, Open, Pinned
from jackfield.model.composition import ResourceState
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity
from jackfield.model.fabric import FabricDevice, Inventory, Traits
from jackfield.model.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Object
from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, PhysicalID, Seconds, Version
from jackfield.model.plan import Phase, Plan, PutSlice, SliceKey
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourcePool, ResourceSlice
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
    showing,
    vendor_slice,
    world,
)

VERSIONS = count(100)
POOL = SliceKey(FABRIC, DRIVER, "rack-a", WHOLE_POOL)
FIRST = replace(POOL, index=0)
CHOOSING = Traits(chooses_device=True)
ONE = inventory(models={"A100": 1})
TAKEN = inventory(models={"A100": 1}, attached={"1": "n1"})
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
SHARED_POOL = SliceKey(FABRIC, "gpu.example.com", "a100-fabricrack-a", WHOLE_POOL)
PAUSED = policy(base=Policy(paused=True))
WANTED = request({"a100-1": ""})
"""The scaler's request that an idle a100-1 on n1 belongs to."""


# --- offers


def offers(*objects: Object, stage: Inventory = ONE, chosen: Policy = policy(), now: float = NOW) -> Offer:
    """Return to whom a100-1 is offered."""
    view = world(*objects, inventories=[stage], policy=chosen)
    of = device("a100-1") if chosen.models[0].binds else SHARED
    return publish.Shelf(view, chosen, Seconds(now)).offer(of)


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "offer"),
    [
        ((), ONE, policy(), Open()),
        ((claim("a"),), ONE, policy(), Open()),
        ((), inventory(models={}), policy(), Closed("its manager does not show it any more")),
        ((), inventory(models={}, traits=Traits(chooses_device=True)), policy(), Open()),
        ((), ONE, policy("H100"), Closed("its model is not in the policy")),
        ((), TAKEN, policy(), Closed("attached to n1, not by us")),
        (
            (),
            showing(ONE, FabricDevice(PhysicalID("1"), MODEL, healthy=False)),
            policy(),
            Closed("its manager calls it unhealthy"),
        ),
        ((), ONE, PAUSED, Closed("attaching is paused")),
        ((), ONE, policy(base=Policy(fabrics_paused=(FABRIC,))), Closed("attaching is paused")),
        ((), ONE, policy(base=Policy(fabrics_paused=(FabricName("rack-b"),))), Open()),
        (
            (resource("a100-2", state=ResourceState.ATTACHING),),
            inventory(traits=Traits(jobs=1)),
            policy(base=Policy(binding_timeout_seconds=Seconds(1.0))),
            Closed("its manager has more orders than it can carry out in time"),
        ),
        ((resource(state=ResourceState.NEW),), ONE, policy(), Pinned(NODE)),
        ((resource(state=ResourceState.ATTACHING),), ONE, policy(), Pinned(NODE)),
        ((resource(state=ResourceState.DETACHING),), ONE, policy(), Closed("on its way back to the pool")),
        ((resource(state=ResourceState.DELETING),), ONE, policy(), Closed("on its way back to the pool")),
        ((resource(deleted=NOW),), ONE, policy(), Closed("on its way back to the pool")),
        ((resource(), WANTED), TAKEN, policy(), Open()),
        ((resource(), WANTED), inventory(attached={"1": "n1"}), policy(), Pinned(NODE)),
        ((resource(),), TAKEN, policy(), Pinned(NODE)),
        ((resource(request="by-hand"), request(1)), TAKEN, policy(), Pinned(NODE)),
        ((resource(record=claim("a")), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(holder="uid-a"), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(), claim("a"), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(), claim("a", on="n2"), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(state=ResourceState.ATTACHING), WANTED), TAKEN, policy(), Pinned(NODE)),
        (
            (
                resource(uuid="GPU-1"),
                WANTED,
                vendor_slice("GPU-1"),
                claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=()),
            ),
            TAKEN,
            policy(),
            Pinned(NODE),
        ),
        ((resource(), WANTED), TAKEN, PAUSED, Pinned(NODE)),
        ((resource(), WANTED), inventory(models={}, machines=[]), policy(), Pinned(NODE)),
    ],
    ids=[
        "a device of the pool: open",
        "a device that a claim was just given: still open",
        "a device that its manager shows no more: closed",
        "a slot, which no manager shows: open",
        "a device of no model: closed",
        "a device that somebody else attached: closed",
        "an unhealthy device: closed",
        "paused: closed",
        "its fabric paused: closed",
        "another fabric paused: open",
        "too many orders: closed",
        "ordered: pinned",
        "attaching: pinned",
        "detaching: closed",
        "detached: closed",
        "being deleted: closed",
        "idle and the last of its model: open",
        "idle while others are free: pinned",
        "idle and nobody's: pinned",
        "idle and somebody else's: pinned",
        "recorded: pinned",
        "held: pinned",
        "claimed here: pinned",
        "claimed elsewhere: pinned until it moves",
        "still attaching: pinned",
        "in use under its driver's name: pinned",
        "idle while paused: pinned",
        "idle on a node that left the fabric: pinned",
    ],
)
def test_a_device_is_offered(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, offer: Offer
) -> None:
    assert offers(*objects, stage=stage, chosen=chosen) == offer


@pytest.mark.parametrize(
    ("objects", "offer"),
    [
        ((), Open()),
        ((resource(SHARED),), Closed("the driver on n1 offers it")),
        (
            (resource(replace(SHARED, device="a100-2"), record=claim("a")),),
            Closed("a device of its model waits for the claim it was attached for"),
        ),
        ((resource(replace(SHARED, device="a100-2")),), Open()),
    ],
    ids=["in the pool", "attached", "while another is handed over", "while another is idle"],
)
def test_a_device_for_a_vendors_driver_is_offered(objects: tuple[Object, ...], offer: Offer) -> None:
    assert offers(*objects, stage=inventory(), chosen=VENDORS) == offer


def test_a_device_that_its_driver_publishes_on_a_node_is_none_of_ours_to_offer() -> None:
    vendors_own = device("gpu.example.com/n1/a100-1")
    view = world(inventories=[ONE], policy=VENDORS)
    assert publish.Shelf(view, VENDORS, NOW).offer(vendors_own) == Closed("its model is not in the policy")


def test_a_hand_over_closes_only_its_own_model_and_only_in_reschedule() -> None:
    chosen = policy(model("A100", driver="gpu.example.com"), model("H100", driver="gpu.example.com"), "B200")
    stage = inventory(models={"A100": 2, "H100": 1, "B200": 2})
    handed_over = resource(SHARED, record=claim("a"))
    recorded = resource("b200-4", model="B200", record=claim("b"))
    view = world(handed_over, recorded, inventories=[stage], policy=chosen)
    others = (device("gpu.example.com/h100-fabricrack-a/h100-3"), device("b200-5"))
    assert [publish.Shelf(view, chosen, NOW).offer(one) for one in others] == [Open(), Open()]
    second = replace(SHARED, device="a100-2")
    assert isinstance(publish.Shelf(view, chosen, NOW).offer(second), Closed)


FAILED_ONCE = node(failures={"a100-1": NOW - 1000})
FAILED_AGAIN = node("n2", failures={"a100-1": NOW - 500})


@pytest.mark.parametrize(
    ("nodes", "now", "offer"),
    [
        ((FAILED_ONCE,), NOW, Open((NODE,))),
        ((FAILED_ONCE, FAILED_AGAIN), NOW, Closed("it failed on several nodes")),
        ((FAILED_ONCE, FAILED_AGAIN), NOW + 800, Open((NodeName("n2"),))),
        ((FAILED_ONCE, FAILED_AGAIN), NOW + 799, Closed("it failed on several nodes")),
        ((FAILED_ONCE, FAILED_AGAIN), NOW + 1300, Open()),
        ((node(failures={"a100-2": NOW}),), NOW, Open()),
    ],
    ids=[
        "to all but the node",
        "to nobody after the second node",
        "forgiven by the first",
        "not yet",
        "forgiven by both",
        "another device's failure",
    ],
)
def test_a_device_that_failed_is_offered(nodes: tuple[Object, ...], now: float, offer: Offer) -> None:
    assert offers(*nodes, now=now) == offer


def test_an_idle_device_that_may_move_does_not_move_to_where_it_failed() -> None:
    assert offers(
        resource(on="n2"),
        request({"a100-1": ""}, on="n2"),
        FAILED_ONCE,
        stage=inventory(models={"A100": 1}, machines=["n1", "n2"], attached={"1": "n2"}),
    ) == Open((NODE,))


# --- entries

ROOM = (
    NodeSelectorRequirement("cohdi.io/fabric", "In", ("rack-a",)),
    NodeSelectorRequirement("cohdi.io/a100", "In", ("true",)),
)
PHYSICAL = FabricDevice(
    PhysicalID("1"),
    MODEL,
    serial="S-1",
    switch="sw0",
    attributes={"memory": "80Gi", "fabric": "as the manager says", "empty": ""},
    capacity={"memory": "80Gi"},
)


def settled(view: Store, chosen: Policy, *keys: SliceKey, now: float = NOW) -> tuple[ResourceSlice, ...]:
    """Carry the plans out, as the API would, until nothing is left to do; return the slices of the pool."""
    keys = keys or (POOL, FIRST)
    for key in keys:
        for action in publish.decide(view, key, chosen, Seconds(now)).actions:
            assert isinstance(action, PutSlice)
            meta = replace(action.slice.metadata, resource_version=Version(str(next(VERSIONS))))
            view.put(replace(action.slice, metadata=meta))
    return view.slices(keys[0].driver, keys[0].pool)


def entry(*objects: Object, stage: Inventory = ONE, chosen: Policy = policy()) -> Device:
    """Return how a100-1 is published."""
    view = world(*objects, inventories=[stage], policy=chosen)
    key = POOL if chosen.models[0].binds else SHARED_POOL
    (one,) = settled(view, chosen, key)
    return next(entry for entry in one.spec.devices if entry.name == "a100-1")


def test_an_open_entry_carries_what_is_known_and_waits_for_us() -> None:
    described = replace(model("A100"), dra_attributes={"productName": "NVIDIA A100", "blank": ""})
    assert entry(stage=showing(ONE, PHYSICAL), chosen=policy(described)) == Device(
        name="a100-1",
        attributes={
            "fabric": DeviceAttribute(string="as the manager says"),
            "model": DeviceAttribute(string="A100"),
            "productName": DeviceAttribute(string="NVIDIA A100"),
            "blank": DeviceAttribute(string=""),
            "switch": DeviceAttribute(string="sw0"),
            "serial": DeviceAttribute(string="S-1"),
            "memory": DeviceAttribute(string="80Gi"),
            "attached": DeviceAttribute(bool_=False),
        },
        capacity={"memory": DeviceCapacity("80Gi")},
        node_selector=NodeSelector((NodeSelectorTerm(ROOM),)),
        binds_to_node=True,
        binding_conditions=(READY,),
        binding_failure_conditions=(RESCHEDULE, FAILED),
    )


def test_an_entry_that_failed_on_a_node_is_open_to_the_others() -> None:
    but = NodeSelectorRequirement("metadata.name", "NotIn", ("n1",))
    selector = entry(FAILED_ONCE).node_selector
    assert selector == NodeSelector((NodeSelectorTerm(ROOM, (but,)),))


@pytest.mark.parametrize(
    ("state", "attached"),
    [(ResourceState.ATTACHING, False), (ResourceState.ONLINE, True)],
)
def test_a_pinned_entry_names_its_node_and_says_whether_it_is_attached(
    state: ResourceState, *, attached: bool
) -> None:
    pinned = entry(resource(state=state))
    assert (pinned.node_name, pinned.node_selector) == ("n1", None)
    assert pinned.attributes["attached"] == DeviceAttribute(bool_=attached)
    assert pinned.binding_conditions == (READY,)


def test_a_closed_entry_matches_no_node_but_keeps_its_conditions() -> None:
    closed = entry(resource(state=ResourceState.DETACHING))
    assert (closed.node_name, closed.node_selector) == ("", publish.CLOSED)
    assert closed.binding_conditions == (READY,)
    assert closed.attributes["attached"] == DeviceAttribute(bool_=False)


def test_a_vendors_placeholder_does_not_say_whether_it_is_attached() -> None:
    assert "attached" not in entry(chosen=VENDORS).attributes


def test_an_entry_whose_model_left_the_policy_is_closed_while_a_claim_holds_it() -> None:
    view = world(claim("a"), inventories=[ONE])
    (before,) = settled(view, policy())
    later = world(claim("a"), before, inventories=[ONE], policy=policy("H100"))
    (after,) = settled(later, policy("H100"))
    assert after.spec.devices == (
        Device(
            name="a100-1",
            node_selector=publish.CLOSED,
            binds_to_node=True,
            binding_conditions=(READY,),
            binding_failure_conditions=(RESCHEDULE, FAILED),
        ),
    )


# --- one slice


def test_a_slice_that_is_right_is_not_written() -> None:
    view = world(inventories=[ONE])
    settled(view, policy())
    assert publish.decide(view, FIRST, policy(), NOW) == Plan()
    assert publish.decide(view, POOL, policy(), NOW) == Plan()


def test_a_change_within_a_slice_keeps_the_pools_generation_and_says_what_changed() -> None:
    view = world(inventories=[inventory()])
    (before,) = settled(view, policy())
    view.put(resource("a100-2"))
    (put,) = publish.decide(view, FIRST, policy(), NOW).actions
    assert isinstance(put, PutSlice)
    assert (put.phase, put.because) == (Phase.OFFERED, "a100-2 changed")
    assert put.slice.metadata == before.metadata
    assert put.slice.spec.pool == before.spec.pool
    assert [one.node_name for one in put.slice.spec.devices] == ["", "n1"]


def test_each_slice_is_decided_by_itself_and_none_by_the_pool() -> None:
    view = world(inventories=[inventory(models={"A100": 65})])
    _, second = settled(view, policy())
    view.put(resource("a100-65"))
    assert publish.decide(view, POOL, policy(), NOW) == Plan()
    assert publish.decide(view, FIRST, policy(), NOW) == Plan()
    (put,) = publish.decide(view, replace(POOL, index=1), policy(), NOW).actions
    assert isinstance(put, PutSlice)
    assert put.slice.key == second.key
    assert put.because == "a100-65 changed"


def test_many_changes_are_told_in_a_few_words() -> None:
    view = world(inventories=[inventory(models={"A100": 5})])
    settled(view, policy())
    for number in (1, 2, 3):
        view.put(resource(f"a100-{number}"))
    (put,) = publish.decide(view, FIRST, policy(), NOW).actions
    assert put.because == "a100-1, a100-2, a100-3 changed"
    for number in (4, 5):
        view.put(resource(f"a100-{number}"))
    (put,) = publish.decide(view, FIRST, policy(), NOW).actions
    assert put.because == "a100-1, a100-2, a100-3 and 2 more changed"


@pytest.mark.parametrize(
    "key",
    [
        FIRST,
        replace(POOL, fabric=FabricName("rack-z"), pool="rack-z"),
        replace(FIRST, fabric=FabricName("rack-z")),
    ],
    ids=["no such slice", "no such fabric", "a slice of no such fabric"],
)
def test_what_is_not_there_is_not_written(key: SliceKey) -> None:
    assert publish.decide(world(inventories=[ONE]), key, policy(), NOW) == Plan()


def test_a_slice_with_a_blamed_device_is_looked_at_again_when_it_is_forgiven() -> None:
    view = world(FAILED_ONCE, FAILED_AGAIN, inventories=[inventory()])
    settled(view, policy())
    assert publish.decide(view, FIRST, policy(), NOW) == Plan(again_at=Seconds(NOW + 800))
    later = publish.decide(view, FIRST, policy(), Seconds(NOW + 800))
    assert len(later.actions) == 1
    assert later.again_at == NOW + 1300
    assert publish.decide(view, FIRST, policy(), Seconds(NOW + 1300)).again_at == NEVER


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
    _, second = settled(view, policy())
    view.see(inventory(models={"A100": 64}))
    settled(view, policy())
    view.forget(ResourceSlice, second.key)
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


def test_a_slot_says_nothing_of_a_physical_device() -> None:
    stage = inventory(models={"A100": 2}, traits=CHOOSING)
    assert entry(stage=stage).attributes == {
        "fabric": DeviceAttribute(string="rack-a"),
        "model": DeviceAttribute(string="A100"),
        "attached": DeviceAttribute(bool_=False),
    }


# --- waking


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
        (ObjectChanged(None, claim("a", devices=["other.example.com/p/x"])), []),
        (ObjectChanged(resource("a100-65"), None), ["rack-a/1"]),
        (ObjectChanged(None, resource("a100-99")), ["rack-a/-1"]),
        (ObjectChanged(None, replace(resource(), metadata=replace(resource().metadata, annotations={}))), []),
        (ObjectChanged(None, FAILED_ONCE), ["rack-a/0"]),
        (ObjectChanged(None, node("n2")), []),
        (ObjectChanged(MINE, None), ["rack-a/-1"]),
        (ObjectChanged(None, MINE), ["rack-a/-1", "rack-a/2"]),
        (ObjectChanged(HANDED_OVER, None), ["h100-fabricrack-a/-1"]),
        (ObjectChanged(MINE, MINE), []),
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
        "a claim on another driver's device",
        "a resource",
        "a resource of a device that no slice lists",
        "a resource that somebody else made",
        "a node on which a device failed",
        "a node",
        "a slice of ours that is gone",
        "a slice of ours that is heard of",
        "a slice of a vendor's model that is gone",
        "a slice of ours that we wrote",
        "another driver's slice that is gone",
        "another driver's slice",
        "a pod",
        "a heartbeat",
        "facts",
    ],
)
def test_a_change_wakes_the_slices_it_is_about(delta: Delta, keys: list[str]) -> None:
    assert woken(delta) == keys


@pytest.mark.parametrize(
    "delta",
    [
        ObjectChanged(None, claim("a")),
        ObjectChanged(claim("a"), None),
        ObjectChanged(resource(), resource(record=claim("a"))),
    ],
    ids=["a new claim", "a claim that is gone", "a resource that was recorded"],
)
def test_who_holds_a_device_matters_when_no_other_is_free(delta: Delta) -> None:
    view = world(resource(), inventories=[TAKEN], policy=policy())
    settled(view, policy())
    assert [key.index for key in publish.wakes(view, policy(), delta)] == [0]
