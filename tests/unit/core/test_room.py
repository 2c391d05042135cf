"""Room on a node: limits, coexistence, blame, a living plugin; and the labels that say so."""

import pytest
from msgspec.structs import replace

from jackfield.core import room
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, ModelName, NodeName, PhysicalID, Seconds
from jackfield.model.node import OPT_OUT, Node
from jackfield.model.plan import LabelNode, Phase, Plan
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged, SupplyChanged
from jackfield.testing.builders import (
    FABRIC,
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

SILENT_AT = Seconds(NOW + 40)
"""When a plugin that lives now has been silent for too long."""
ROOMY = inventory()
SMALL = inventory(machines=[Machine(NODE, slots=1)])
TWO = policy("A100", "H100")
APART = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)))
VENDORS = policy(model("A100", driver="gpu.example.com"))
FOREIGN = FabricDevice(PhysicalID("9"), ModelName("A100"), node=NODE, ours=False)
OURS = replace(FOREIGN, ours=True)


def rooms(*objects: Object, stage: Inventory = ROOMY, chosen: Policy = policy(), on: Node = node()) -> str:
    """Return the models that n1 has room for, as its labels would say."""
    view = world(on, heartbeat(), *objects, inventories=[stage], policy=chosen)
    labels = dict(on.metadata.labels)
    for action in room.decide(view, NODE, chosen, NOW).actions:
        assert isinstance(action, LabelNode)
        labels |= {key: value or "none" for key, value in action.labels.items()}
    return " ".join(
        one.k8s_device_name
        for one in chosen.models
        if labels.get(f"cohdi.io/{one.k8s_device_name}") == "true"
    )


# --- the labels


def test_a_new_node_is_labelled_with_its_fabric_and_its_room() -> None:
    view = world(node(), heartbeat(), inventories=[ROOMY])
    label = LabelNode(
        phase=Phase.OFFERED,
        node=NODE,
        labels={"cohdi.io/fabric": "rack-a", "cohdi.io/a100": "true"},
        because="room changed: cohdi.io/a100=true, cohdi.io/fabric=rack-a",
    )
    assert room.decide(view, NODE, policy(), NOW) == Plan((label,), again_at=SILENT_AT)


def test_labels_that_are_right_are_not_written() -> None:
    view = world(node(fabric=FABRIC, room=["A100"]), heartbeat(), inventories=[ROOMY])
    assert room.decide(view, NODE, policy(), NOW) == Plan(again_at=SILENT_AT)


def test_a_node_keeps_its_labels_until_the_manager_of_its_fabric_has_been_heard() -> None:
    labelled = node(labels={"cohdi.io/fabric": "rack-a", "cohdi.io/a100": "true"})
    plan = room.decide(world(labelled, heartbeat()), NODE, policy(), NOW)
    assert plan == Plan(again_at=Seconds(NOW + policy().inventory_seconds))


def test_a_node_that_left_its_fabric_loses_its_labels() -> None:
    view = world(node(fabric=FABRIC, room=["A100"]), heartbeat(), inventories=[inventory(machines=[])])
    (action,) = room.decide(view, NODE, policy(), NOW).actions
    assert isinstance(action, LabelNode)
    assert action.labels == {"cohdi.io/fabric": None, "cohdi.io/a100": None}
    assert action.because == "room changed: cohdi.io/a100=none, cohdi.io/fabric=none"


def test_a_node_that_does_not_exist_is_not_labelled() -> None:
    assert room.decide(world(heartbeat(), inventories=[ROOMY]), NODE, policy(), NOW) == Plan()


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "models"),
    [
        ((), SMALL, policy(), "a100"),
        ((resource(record=claim("a")),), SMALL, policy(), ""),
        ((resource(holder="uid-a"),), SMALL, policy(), ""),
        ((resource(), claim("a")), SMALL, policy(), ""),
        ((resource(),), SMALL, policy(), "a100"),
        ((resource(record=claim("a"), state=ResourceState.DETACHING),), SMALL, policy(), "a100"),
        ((resource(deleted=NOW),), SMALL, policy(), "a100"),
        ((resource(record=claim("a"), deleted=NOW),), SMALL, policy(), ""),
        ((resource(holder="uid-a", deleted=NOW),), SMALL, policy(), ""),
        ((resource(state=ResourceState.DETACHING), claim("a")), SMALL, policy(), ""),
        ((resource(record=claim("a"), deleted=NOW, force=True),), SMALL, policy(), "a100"),
        ((resource(request="by-hand"), request(1)), SMALL, policy(), ""),
        ((claim("a"),), SMALL, policy(), ""),
        ((claim("a", admin=True),), SMALL, policy(), "a100"),
        ((claim("a", waits=("Other", "FabricDeviceReady")),), SMALL, policy(), ""),
        ((claim("a", on="n2"),), SMALL, policy(), "a100"),
        ((claim("a"), resource(on="n2")), SMALL, policy(), ""),
        ((claim("a", devices=["h100-1"]),), SMALL, policy(), "a100"),
        ((claim("a", devices=["h100-1"]),), SMALL, TWO, ""),
        ((claim("a"), resource()), inventory(machines=[Machine(NODE, slots=2)]), policy(), "a100"),
        ((), showing(SMALL, FOREIGN), policy(), ""),
        ((), showing(SMALL, OURS), policy(), "a100"),
        ((resource(physical="9"),), showing(SMALL, FOREIGN), policy(), "a100"),
        ((), ROOMY, APART, "a100 h100"),
        ((claim("a"),), ROOMY, APART, "a100"),
        ((claim("a", devices=["h100-1"]),), ROOMY, APART, "h100"),
        ((claim("a"),), ROOMY, TWO, "a100 h100"),
        ((resource(),), ROOMY, APART, "a100 h100"),
        ((), ROOMY, policy(base=Policy(per_node_max=0)), ""),
        ((claim("a"),), ROOMY, policy(base=Policy(per_node_max=1)), ""),
        ((claim("a"),), ROOMY, policy("A100", "H100", base=Policy(per_node_max=1)), "h100"),
        ((claim("a"),), ROOMY, policy(base=Policy(per_node_max=2)), "a100"),
    ],
    ids=[
        "one slot and nothing there",
        "a recorded device takes the slot",
        "a held device takes the slot",
        "a claimed device takes the slot",
        "an idle device makes room",
        "a device on its way back has made room",
        "an idle device that is to be deleted has made room",
        "a recorded device that is to be deleted takes the slot",
        "a device that is to be deleted and is prepared takes the slot",
        "whoever was given a device on its way back has its slot",
        "a device that is taken by force has made room",
        "what somebody else asked for stays",
        "a claim that waits for its device takes the slot",
        "admin access takes none",
        "binding conditions may have others beside ours",
        "a claim on another node takes none here",
        "a device that is to come from another node takes the slot",
        "a device of no model of ours takes none",
        "whatever its model, a device takes the slot",
        "a claim and its device take one slot of two",
        "a stranger's device takes the slot",
        "a device of ours that is in nobody's books makes room",
        "a device with a resource is no stranger",
        "models that cannot coexist have room while none is there",
        "the second cannot come beside the first",
        "nor the first beside the second",
        "models that can coexist do",
        "an idle device stands in nobody's way",
        "no node may have any",
        "no node may have another",
        "of one model; the other has its own limit",
        "one more may come",
    ],
)
def test_a_node_has_room_for(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, models: str
) -> None:
    assert rooms(*objects, stage=stage, chosen=chosen) == models


def test_a_reserved_claim_on_two_devices_takes_two_slots() -> None:
    two = inventory(machines=[Machine(NODE, slots=2)])
    assert rooms(claim("a", devices=["a100-1", "a100-2"]), stage=two) == ""
    assert rooms(claim("a"), claim("b"), stage=two) == "a100"  # rivals for one device take one slot


def test_a_device_without_our_binding_condition_is_not_waited_for() -> None:
    mixed = claim("a", devices=["a100-1", "a100-2"])
    allocation = mixed.status.allocation
    assert allocation is not None
    first, second = allocation.devices.results
    results = replace(allocation.devices, results=(first, replace(second, binding_conditions=())))
    mixed = replace(mixed, status=replace(mixed.status, allocation=replace(allocation, devices=results)))
    assert rooms(mixed, stage=inventory(machines=[Machine(NODE, slots=2)])) == "a100"


def test_a_nodes_own_labels_set_its_limits() -> None:
    limited = node(labels={"cohdi.io/a100-size-max": "1"})
    assert rooms(on=limited) == "a100"
    assert rooms(claim("a"), on=limited) == ""


# --- limits


@pytest.mark.parametrize(
    ("labels", "least", "most"),
    [
        ({}, 1, 7),
        ({"cohdi.io/a100-size-min": "2"}, 2, 7),
        ({"cohdi.io/a100-size-max": "3"}, 1, 3),
        ({"cohdi.io/a100-size-min": "two", "cohdi.io/a100-size-max": "-1"}, 1, 7),
        ({"cohdi.io/h100-size-min": "2", "cohdi.io/h100-size-max": "3"}, 1, 7),
    ],
)
def test_limits_come_from_the_nodes_labels_or_the_policy(
    labels: dict[str, str], least: int, most: int
) -> None:
    chosen = policy(base=Policy(per_node_min=1, per_node_max=7))
    view = world(node(labels=labels), policy=chosen)
    assert room.limits(view, NODE, chosen.models[0], chosen) == room.Limits(least, most)


def test_the_limits_of_a_node_that_does_not_exist_are_the_policys() -> None:
    assert room.limits(world(), NODE, model("A100"), policy()) == room.Limits(0, 50)


# --- refusals

FAILED_TWICE = {"a100-1": NOW - 1, "a100-2": NOW - 1799}


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "why"),
    [
        ((node(), heartbeat()), ROOMY, policy(), ""),
        ((heartbeat(),), ROOMY, policy(), "node n1 does not exist"),
        ((node(deleted=NOW), heartbeat()), ROOMY, policy(), "node n1 is being deleted"),
        ((node(labels={OPT_OUT: "true"}), heartbeat()), ROOMY, policy(), f"opted out by the label {OPT_OUT}"),
        ((node(labels={OPT_OUT: "false"}), heartbeat()), ROOMY, policy(), ""),
        ((node(), heartbeat()), inventory(machines=["n2"]), policy(), "not a machine of any fabric"),
        ((node(),), ROOMY, policy(), "the plugin on n1 has given no sign of life for 40 s"),
        ((node(), heartbeat(at=NOW - 39)), ROOMY, policy(), ""),
        ((node(), heartbeat(at=NOW - 40)), ROOMY, policy(), "no sign of life"),
        ((node(),), ROOMY, VENDORS, ""),
        ((node(failures=FAILED_TWICE), heartbeat()), ROOMY, policy(), "several devices failed on n1 lately"),
        ((node(failures={"a100-1": NOW}), heartbeat()), ROOMY, policy(), ""),
        ((node(failures={"a100-1": NOW, "a100-2": NOW - 1800}), heartbeat()), ROOMY, policy(), ""),
        ((node(cordoned=True), heartbeat()), ROOMY, policy(), ""),
    ],
    ids=[
        "nothing is wrong",
        "no node",
        "the node is going",
        "opted out",
        "not opted out",
        "no machine",
        "no heartbeat at all",
        "a heartbeat just in time",
        "a heartbeat just too old",
        "a vendor's driver gives no heartbeat",
        "two devices failed",
        "one device failed",
        "the second failure is forgiven",
        "cordoned is the scheduler's business",
    ],
)
def test_a_node_is_refused_because(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, why: str
) -> None:
    view = world(*objects, inventories=[stage], policy=chosen)
    refusal = room.refusal(view, NODE, chosen.models[0], chosen, NOW)
    assert why in refusal
    assert bool(why) is bool(refusal)


def test_a_silent_plugin_is_noticed_at_the_very_time_that_was_set() -> None:
    view = world(node(fabric=FABRIC, room=["A100"]), heartbeat(), inventories=[ROOMY])
    again_at = room.decide(view, NODE, policy(), NOW).again_at
    (action,) = room.decide(view, NODE, policy(), again_at).actions
    assert isinstance(action, LabelNode)
    assert action.labels == {"cohdi.io/a100": None}


def test_a_plugin_that_only_seemed_silent_is_looked_at_again() -> None:
    """Its signs of life came late, all in time by their own clock: none of them is news (rule of `wakes`)."""
    view = world(node(fabric=FABRIC), heartbeat(), inventories=[ROOMY])
    late = Seconds(room.decide(view, NODE, policy(), NOW).again_at + 5)
    assert room.decide(view, NODE, policy(), late).again_at == late + policy().heartbeat_seconds


def test_a_node_without_a_plugin_is_not_looked_at_again_and_again() -> None:
    view = world(node(fabric=FABRIC), inventories=[ROOMY])
    assert room.decide(view, NODE, policy(), NOW).again_at == NEVER


def test_a_blamed_node_is_looked_at_again_when_the_first_blame_runs_out() -> None:
    blamed = node(failures=FAILED_TWICE)
    view = world(blamed, heartbeat(at=NOW + 5000), inventories=[ROOMY])
    assert room.decide(view, NODE, policy(), NOW).again_at == NOW + 1
    assert room.refusal(view, NODE, model("A100"), policy(), Seconds(NOW + 0.5))
    assert not room.refusal(view, NODE, model("A100"), policy(), Seconds(NOW + 1))


# --- coexistence


@pytest.mark.parametrize(
    ("of", "others", "clash"),
    [
        (0, ("A100",), ""),
        (0, ("H100",), "H100"),
        (1, ("A100",), "A100"),
        (0, ("B200", "L40"), ""),
        (0, ("L40", "H100"), "H100"),
        (2, ("A100", "H100"), ""),
        (2, ("L40",), ""),
        (0, (), ""),
    ],
)
def test_models_that_cannot_coexist_are_found_whichever_of_them_says_so(
    of: int, others: tuple[str, ...], clash: str
) -> None:
    alone = replace(model("L40"), cannot_coexist_with=(2,))  # nonsense, and says nothing
    chosen = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)), alone)
    names = tuple(ModelName(one) for one in others)
    assert room.coexistence(chosen.models[of], names, chosen) == clash


# --- who stays


LEFT_WITH = (vendor_slice("GPU-1"), claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=()))


@pytest.mark.parametrize(
    ("one", "others", "stays"),
    [
        (resource(), (), False),
        (resource(record=claim("a")), (), True),
        (resource(holder="uid-a"), (), True),
        (resource(), (claim("a"),), True),
        (resource(), (claim("a", on=""),), True),
        (resource(), (claim("a", on="n2"),), False),
        (resource(), (request({"a100-1": ""}),), False),
        (resource(request="by-hand"), (), False),
        (resource(request="by-hand"), (request(1),), True),
        (resource(uuid="GPU-1"), (vendor_slice("GPU-1"),), False),
        (resource(uuid="GPU-1"), (node(), *LEFT_WITH), True),
        (resource(uuid="GPU-1"), (pod("p", on="n1"), *LEFT_WITH), True),
        (resource(uuid="GPU-1"), LEFT_WITH, False),
        (
            resource(),
            (node(), vendor_slice(""), claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=())),
            False,
        ),
    ],
    ids=[
        "nobody has it",
        "it is recorded",
        "it is prepared",
        "a claim holds it",
        "a claim that is pinned to no node holds it",
        "a claim holds it for another node",
        "the scaler asked for it",
        "nobody knows who asked for it",
        "somebody asked for it",
        "its driver publishes it",
        "a claim holds it under its driver's name",
        "likewise, on a node that is gone while a pod is bound to it",
        "a claim was left with it on a node that is gone",
        "devices without a uuid are not taken for each other",
    ],
)
def test_a_resource_stays_if(one: Object, others: tuple[Object, ...], *, stays: bool) -> None:
    view = world(one, *others)
    (known,) = view.resources_on(NODE)
    assert room.busy(view, known) is stays


def test_a_claim_that_holds_a_device_under_both_names_is_one_holder() -> None:
    both = claim("a", devices=["a100-1", "gpu.example.com/n1/gpu-0"])
    view = world(node(), resource(uuid="GPU-1"), vendor_slice("GPU-1"), both)
    (known,) = view.resources_on(NODE)
    assert room.names_of(view, known) == (device("a100-1"), device("gpu.example.com/n1/gpu-0"))
    assert room.holders(view, known) == (both,)


def test_a_resource_without_a_device_of_ours_has_no_names() -> None:
    theirs = replace(resource(), metadata=replace(resource().metadata, annotations={}))
    view = world(theirs)
    assert room.names_of(view, theirs) == ()
    assert not room.busy(view, theirs)


# --- waking


@pytest.mark.parametrize(
    ("delta", "nodes"),
    [
        (InventoryChanged(FABRIC, (NODE, NodeName("n2")), ()), "n1 n2"),
        (SupplyChanged(FABRIC, ModelName("A100")), ""),
        (FactsChanged(NODE), ""),
        (ObjectChanged(None, heartbeat()), "n1"),
        (ObjectChanged(heartbeat(), heartbeat(at=NOW + 40)), ""),
        (ObjectChanged(heartbeat(), heartbeat(at=NOW + 41)), "n1"),
        (ObjectChanged(heartbeat(), None), "n1"),
        (
            ObjectChanged(None, replace(heartbeat(), metadata=replace(heartbeat().metadata, namespace="x"))),
            "",
        ),
        (ObjectChanged(node(), node(cordoned=True)), "n1"),
        (ObjectChanged(resource(), None), "n1"),
        (ObjectChanged(request(1, on="n1"), request(1, on="n2")), "n1 n2"),
        (ObjectChanged(None, request(1, on="")), ""),
        (ObjectChanged(claim("a"), claim("a", on="n3")), "n1 n4 n3"),
        (ObjectChanged(None, claim("a", devices=["a100-2"])), "n1"),
        (ObjectChanged(None, claim("a", devices=[])), ""),
        (ObjectChanged(vendor_slice("GPU-1", on="n2"), None), "n2"),
        (ObjectChanged(None, vendor_slice("GPU-1", on="")), ""),
        (ObjectChanged(None, pod("p")), ""),
    ],
    ids=[
        "the inventory of two nodes",
        "supply is the publisher's business",
        "facts are the node's business",
        "a plugin's first sign of life",
        "a plugin that keeps living",
        "a plugin that comes back to life",
        "a plugin that is gone",
        "somebody else's lease",
        "a node",
        "a resource",
        "a request that moved",
        "a request for no node",
        "a claim that moved, and where its device stands",
        "a claim whose device stands nowhere",
        "a claim without devices",
        "a slice of a vendor's driver",
        "a slice of no node",
        "a pod",
    ],
)
def test_a_change_wakes_the_nodes_it_is_about(delta: Delta, nodes: str) -> None:
    view = world(resource(on="n4"))
    assert room.wakes(view, policy(), delta) == tuple(nodes.split())


@pytest.mark.parametrize(
    ("objects", "stage", "count"),
    [
        ((), inventory(), 0),
        ((), showing(inventory(), FOREIGN), 1),
        ((), showing(inventory(), OURS), 0),
        ((resource("a100-9", physical="9"),), showing(inventory(), FOREIGN), 0),
        ((resource("a100-9", physical="9", on="n2"),), showing(inventory(), FOREIGN), 1),
        ((resource("a100-9", physical="9"),), showing(inventory(machines=[]), FOREIGN), 1),
        ((resource("a100-9", physical="9"),), showing(inventory(), OURS), 0),
        ((resource("a100-9", physical="9", on="n2"),), showing(inventory(), OURS), 1),
    ],
)
def test_what_is_not_ours_takes_room_unless_the_books_have_it_on_this_very_node(
    objects: tuple[Object, ...], stage: Inventory, count: int
) -> None:
    assert room.strangers(world(*objects, inventories=[stage]), NODE) == count
