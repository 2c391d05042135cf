"""What is offered to whom: open, pinned and closed entries, devices and slots, slices and pools."""

import pytest
from msgspec.structs import replace

from jackfield.core import publish, shelf
from jackfield.core.shelf import AsItIs, Closed, Offer, Open, Pinned
from jackfield.model.composition import RELEASED, VISIBLE, ResourceState
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity
from jackfield.model.fabric import FabricDevice, Inventory, Traits
from jackfield.model.meta import Condition, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Object
from jackfield.model.names import NEVER, FabricName, NodeName, PhysicalID, Seconds
from jackfield.model.plan import Phase, Plan, PutSlice, SliceKey
from jackfield.model.policy import FAILED, READY, RESCHEDULE, Policy
from jackfield.testing.builders import (
    FABRIC,
    MODEL,
    NODE,
    NOW,
    claim,
    device,
    inventory,
    model,
    node,
    policy,
    request,
    resource,
    showing,
    vendor_slice,
    world,
)
from unit.core.slices import FIRST, ONE, POOL, entry, settled

CHOOSING = Traits(chooses_device=True)
TAKEN = inventory(models={"A100": 1}, attached={"1": "n1"})
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
PAUSED = policy(base=Policy(paused=True))
SEEN = (Condition(VISIBLE, "True"),)
KEPT = Condition(RELEASED, "False", message="pid 7 has it open")
GOING = resource(state=ResourceState.DETACHING, conditions=SEEN)
WANTED = request({"a100-1": ""})
"""The scaler's request that an idle a100-1 on n1 belongs to."""


# --- offers


def offers(*objects: Object, stage: Inventory = ONE, chosen: Policy = policy(), now: float = NOW) -> Offer:
    """Return to whom a100-1 is offered."""
    view = world(*objects, inventories=[stage], policy=chosen)
    of = device("a100-1") if chosen.models[0].binds else SHARED
    return shelf.Shelf(view, chosen, Seconds(now)).offer(of)


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
        ((resource(),), TAKEN, policy(), Open()),
        ((resource(request="by-hand"), request(1)), TAKEN, policy(), Pinned(NODE)),
        ((resource(record=claim("a")), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(holder="uid-a"), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(), claim("a"), WANTED), TAKEN, policy(), AsItIs()),
        ((resource(), claim("a", on="n2"), WANTED), TAKEN, policy(), AsItIs()),
        ((resource(holder="uid-a"), claim("a"), WANTED), TAKEN, policy(), Pinned(NODE)),
        ((resource(state=ResourceState.ATTACHING), claim("a"), WANTED), ONE, policy(), AsItIs()),
        ((node(room=["A100"]), resource(deleted=NOW, conditions=SEEN)), TAKEN, policy(), AsItIs()),
        ((node(room=["A100"]), GOING), TAKEN, policy(), AsItIs()),
        ((node(room=["H100"]), GOING), TAKEN, policy(), Closed("on its way back to the pool")),
        ((GOING,), TAKEN, policy(), Closed("on its way back to the pool")),
        (
            (resource(deleted=NOW, conditions=(*SEEN, KEPT)),),
            TAKEN,
            policy(),
            Closed("on its way back to the pool"),
        ),
        (
            (resource(deleted=NOW, conditions=SEEN, error="broken"),),
            TAKEN,
            policy(),
            Closed("on its way back to the pool"),
        ),
        ((resource(state=ResourceState.ATTACHING), WANTED), TAKEN, policy(), Pinned(NODE)),
        (
            (
                node(),
                resource(uuid="GPU-1"),
                WANTED,
                vendor_slice("GPU-1"),
                claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=()),
            ),
            TAKEN,
            policy(),
            Pinned(NODE),
        ),
        (
            (resource(), WANTED),
            showing(TAKEN, FabricDevice(PhysicalID("1"), MODEL, healthy=False, node=NODE, ours=True)),
            policy(),
            Closed("its manager calls it unhealthy"),
        ),
        ((resource(), WANTED), TAKEN, PAUSED, Pinned(NODE)),
        ((resource(), WANTED), inventory(models={"A100": 1}, machines=[]), policy(), Pinned(NODE)),
        (
            (resource(), WANTED),
            inventory(models={}),
            policy(),
            Closed("its manager does not show it any more"),
        ),
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
        "idle, and its request is gone: open until it goes as well",
        "idle and somebody else's: pinned",
        "recorded: pinned",
        "held: pinned",
        "claimed here: as it is until its pod runs",
        "claimed elsewhere: as it is until it moves",
        "claimed and prepared: pinned",
        "claimed and attaching: as it is",
        "going because nobody wants it: as it is",
        "leaving because nobody wants it: as it is",
        "leaving to make room: closed",
        "leaving a node that is gone: closed",
        "going while somebody keeps it open: closed",
        "going because it failed: closed",
        "still attaching: pinned",
        "in use under its driver's name: pinned",
        "attached and unhealthy: closed",
        "idle while paused: pinned",
        "idle on a node that left the fabric: pinned",
        "vanished from its node: closed",
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
    assert shelf.Shelf(view, VENDORS, NOW).offer(vendors_own) == Closed("its model is not in the policy")


def test_a_hand_over_closes_only_its_own_model_and_only_in_reschedule() -> None:
    chosen = policy(model("A100", driver="gpu.example.com"), model("H100", driver="gpu.example.com"), "B200")
    stage = inventory(models={"A100": 2, "H100": 1, "B200": 2})
    handed_over = resource(SHARED, record=claim("a"))
    recorded = resource("b200-4", model="B200", record=claim("b"))
    view = world(handed_over, recorded, inventories=[stage], policy=chosen)
    others = (device("gpu.example.com/h100-fabricrack-a/h100-3"), device("b200-5"))
    assert [shelf.Shelf(view, chosen, NOW).offer(one) for one in others] == [Open(), Open()]
    second = replace(SHARED, device="a100-2")
    assert isinstance(shelf.Shelf(view, chosen, NOW).offer(second), Closed)


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
    pinned = entry(resource(state=state, holder="u"))
    assert (pinned.node_name, pinned.node_selector) == ("n1", None)
    assert pinned.attributes["attached"] == DeviceAttribute(bool_=attached)
    assert pinned.binding_conditions == (READY,)


def test_an_idle_device_that_may_move_reads_like_one_of_the_pool() -> None:
    assert entry(resource(), WANTED, stage=TAKEN) == entry(stage=ONE)


def test_an_entry_stays_as_it_is_while_a_claim_waits_for_its_device() -> None:
    view = world(inventories=[ONE], policy=policy())
    (before,) = settled(view, policy())
    view.put(claim("a"))
    view.put(resource(state=ResourceState.ATTACHING))
    assert publish.decide(view, FIRST, policy(), NOW) == Plan()
    view.put(resource(holder="uid-a", version="2"))
    (after,) = settled(view, policy())
    assert (before.spec.devices[0].node_name, after.spec.devices[0].node_name) == ("", NODE)


def test_an_entry_that_was_never_listed_is_pinned_while_a_claim_waits_for_its_device() -> None:
    assert entry(claim("a"), resource(state=ResourceState.ATTACHING)).node_name == NODE


def test_an_entry_of_a_slice_that_lost_it_is_pinned() -> None:
    view = world(inventories=[inventory(models={"A100": 2})], policy=policy())
    (one,) = settled(view, policy())
    view.put(claim("a"))
    view.put(resource(state=ResourceState.ATTACHING))
    assert shelf.Shelf(view, policy(), NOW).offer(device("a100-1")) == AsItIs()
    assert [each.node_name for each in settled(view, policy())[0].spec.devices] == ["", ""]
    assert one.spec.devices == settled(view, policy())[0].spec.devices


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
        view.put(resource(f"a100-{number}", holder="u"))
    for number in (1, 2, 3):
        view.put(resource(f"a100-{number}", holder="u", version="9"))
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


@pytest.mark.parametrize(
    "stage", [ONE, inventory(models={"A100": 1}, machines=[NODE, "n2"], attached={"1": "n2"})]
)
def test_a_device_that_its_manager_does_not_show_on_its_node_is_offered_to_nobody(stage: Inventory) -> None:
    there = resource(physical="1")
    before, after = world(there, inventories=[stage]), world(there, inventories=[stage], looked=NOW)
    assert there.device is not None
    assert not isinstance(shelf.Shelf(before, policy(), NOW).offer(there.device), shelf.Closed)
    closed = shelf.Shelf(after, policy(), NOW).offer(there.device)
    assert closed == shelf.Closed("its manager does not show it any more")
