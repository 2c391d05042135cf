"""Which devices a node keeps: those its claims want, idle ones for a while, spares, and what the minimum asks."""

import pytest
from msgspec.structs import replace

from jackfield.core import demand, keep
from jackfield.core.keep import Kept
from jackfield.model.composition import ComposableResource, ResourceState, Wanted
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.meta import Object, OwnerReference
from jackfield.model.names import NEVER, Key, ModelName, NodeName, PhysicalID, Seconds, Uid
from jackfield.model.policy import RESCHEDULE, NamespaceRule, Policy
from jackfield.testing.builders import (
    NODE,
    NOW,
    claim,
    device,
    heartbeat,
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

N2 = Machine(NodeName("n2"), slots=2)
ROOMY = inventory(models={"A100": 4, "H100": 1}, machines=[Machine(NODE), N2])
ELSEWHERE = (node("n2"), heartbeat("n2"))
ONE_SLOT = inventory(models={"A100": 4, "H100": 1}, machines=[Machine(NODE, slots=1)])
TWO_SLOTS = inventory(models={"A100": 4, "H100": 1}, machines=[Machine(NODE, slots=2)])
APART = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)))
FOREIGN = FabricDevice(PhysicalID("9"), ModelName("A100"), node=NODE, ours=False)
LIMIT_ONE = policy(base=Policy(per_node_max=1))
AT_LEAST_ONE = policy(base=Policy(per_node_min=1))


def kept(
    *objects: Object,
    stage: Inventory = ROOMY,
    chosen: Policy = policy(),
    on: Object | None = node(),
    of: int = 0,
) -> Kept:
    """Return what n1 keeps of a model."""
    there = () if on is None else (on,)
    view = world(*there, heartbeat(), *objects, inventories=[stage], policy=chosen)
    demands = demand.on_node(view, NODE, chosen, NOW)
    return keep.devices(keep.Site(view, NODE, chosen, NOW, demands), chosen.models[of])


def idle(
    number: int, *, ago: float = 100, on: str = NODE, state: ResourceState = ResourceState.ONLINE
) -> ComposableResource:
    """Return a device that nobody has used for so long."""
    return resource(f"a100-{number}", on=on, used=NOW - ago, state=state)


def staying(found: Kept) -> str:
    return " ".join(one.device.device for one in found.wanted)


def going(found: Kept) -> dict[str, str]:
    return {one.metadata.name.removesuffix(".rack-a"): why for one, why in found.going}


# --- claims


def test_a_node_should_have_what_its_claims_want_and_for_whom() -> None:
    served = claim("c", devices=["a100-3"], ready=True)
    found = kept(claim("b", devices=["a100-2"]), claim("a"), served, resource("a100-3", record=served))
    assert found == Kept(
        (
            Wanted(device("a100-1"), Key("default", "a")),
            Wanted(device("a100-2"), Key("default", "b")),
            Wanted(device("a100-3"), Key("default", "c")),
        ),
        (),
        NEVER,
    )


@pytest.mark.parametrize(
    ("objects", "devices"),
    [
        ((claim("a", told=RESCHEDULE),), ""),
        ((claim("a", told=RESCHEDULE), resource()), "a100-1"),
        ((claim("a", admin=True),), ""),
        ((claim("a", devices=["b200-1"]),), ""),
        ((claim("a", on="n2"),), ""),
        ((claim("a"), resource(on="n2")), "a100-1"),
        ((claim("a"), claim("b", allocated=NOW - 5)), "a100-1"),
    ],
    ids=[
        "not for a claim that was sent away",
        "but its device stays while it holds it",
        "not for admin access",
        "not of another model",
        "not for a claim on another node",
        "also what must come from another node",
        "once for rivals",
    ],
)
def test_a_node_should_have(objects: tuple[Object, ...], devices: str) -> None:
    assert staying(kept(*objects)) == devices


def test_a_device_that_is_there_is_wanted_for_its_claim() -> None:
    assert kept(claim("a"), resource()).wanted == (Wanted(device("a100-1"), Key("default", "a")),)


def test_a_resource_without_a_device_of_ours_is_left_alone() -> None:
    bare = resource(used=NOW - 900)
    assert kept(replace(bare, metadata=replace(bare.metadata, annotations={}))) == Kept((), ())


OWNER = OwnerReference(
    "cro.hpsys.ibm.ie.com/v1alpha1", "ComposabilityRequest", "jackfield-a100-n1", Uid("uid-1")
)


@pytest.mark.parametrize(
    ("wish", "claims", "devices"),
    [
        (request({"a100-1": ""}, uid="uid-1"), (), "a100-1"),
        (request({"a100-1": ""}, uid="uid-2"), (), ""),
        (None, (), ""),
        (None, (claim("a"),), "a100-1"),
    ],
    ids=[
        "which is there",
        "in whose place is another",
        "which is gone",
        "which is gone, but not for a claim",
    ],
)
def test_an_idle_device_goes_with_the_request_that_it_belongs_to(
    wish: Object | None, claims: tuple[Object, ...], devices: str
) -> None:
    there = () if wish is None else (wish,)
    found = kept(resource(used=NOW - 1, owners=(OWNER,)), *there, *claims)
    assert (staying(found), found.going) == (devices, ())


def test_each_model_has_its_own_request() -> None:
    chosen = policy("A100", "H100")
    wish = claim("a", devices=["a100-1", "h100-5"])
    assert staying(kept(wish, chosen=chosen, of=0)) == "a100-1"
    assert staying(kept(wish, chosen=chosen, of=1)) == "h100-5"


def test_a_rivals_device_is_wanted_for_the_one_that_is_served() -> None:
    older, younger = claim("b", allocated=NOW - 20, ready=True), claim("a", ready=True)
    assert kept(older, younger, resource()).wanted == (Wanted(device("a100-1"), older.key),)


def test_a_claim_that_lost_its_device_is_not_given_it_again() -> None:
    assert kept(claim("a", ready=True)).wanted == ()


# --- idle devices


@pytest.mark.parametrize(
    ("objects", "devices", "again_at"),
    [
        ((idle(1, ago=100),), "a100-1", NOW + 500),
        ((idle(1, ago=599),), "a100-1", NOW + 1),
        ((idle(1, ago=600),), "", NEVER),
        ((idle(1, ago=599), idle(2, ago=100)), "a100-1 a100-2", NOW + 1),
        ((resource(created=NOW - 599),), "a100-1", NOW + 1),
        ((resource(created=NOW - 600),), "", NEVER),
        ((resource(created=NOW - 600, state=ResourceState.ATTACHING),), "", NEVER),
        ((idle(1, ago=900), claim("a")), "a100-1", NEVER),
        ((resource(used=NOW - 900, holder="uid-a"),), "a100-1", NEVER),
        ((resource(used=NOW - 900, record=claim("a")),), "a100-1", NEVER),
        (
            (
                resource(used=NOW - 900, uuid="GPU-1"),
                vendor_slice("GPU-1"),
                claim("a", devices=["gpu.example.com/n1/gpu-0"], waits=()),
            ),
            "a100-1",
            NEVER,
        ),
        ((idle(1, ago=100, on="n2"),), "", NEVER),
        ((resource(request="by-hand"),), "", NEVER),
        ((idle(1, ago=100, state=ResourceState.DETACHING),), "", NEVER),
    ],
    ids=[
        "for the hold time",
        "to its last second",
        "and no longer",
        "the first to go says when to look again",
        "a device that was never used, from its creation",
        "and no longer",
        "nor one that is late and that nobody wants any more",
        "a claimed one as long as that",
        "a prepared one as long as that",
        "a recorded one as long as that",
        "one that is in use under its driver's name as long as that",
        "not one on another node",
        "not one that somebody else asked for",
        "not one on its way back",
    ],
)
def test_an_idle_device_stays(objects: tuple[Object, ...], devices: str, again_at: float) -> None:
    found = kept(*objects)
    assert (staying(found), found.again_at) == (devices, again_at)


@pytest.mark.parametrize(
    ("objects", "on", "why"),
    [
        ((idle(1, ago=600),), node(), "idle for 600 s"),
        ((idle(1), claim("a", on="n2"), *ELSEWHERE), node(), "a claim on another node was given it"),
        ((idle(1), claim("a", on="n2", ready=True)), node(), "a claim on another node was given it"),
        ((idle(1),), node(cordoned=True), "node n1 takes no more pods"),
        ((idle(1),), node(deleted=NOW), "node n1 takes no more pods"),
        ((idle(1),), None, "node n1 takes no more pods"),
    ],
    ids=[
        "long idle",
        "wanted elsewhere",
        "promised elsewhere",
        "cordoned",
        "node being deleted",
        "node gone",
    ],
)
def test_an_idle_device_goes_because(objects: tuple[Object, ...], on: Object | None, why: str) -> None:
    found = kept(*objects, on=on)
    assert (staying(found), going(found)) == ("", {"a100-1": why})


@pytest.mark.parametrize(
    ("rival", "elsewhere"),
    [
        (claim("a", on="n2"), ()),
        (claim("a", on="n2", told=RESCHEDULE), ELSEWHERE),
        (claim("a", on="n2", devices=["a100-1", "a100-2", "a100-3"]), ELSEWHERE),
    ],
    ids=["to a node that is gone", "already", "for want of room"],
)
def test_an_idle_device_stays_where_the_claim_that_was_given_it_is_turned_down(
    rival: Object, elsewhere: tuple[Object, ...]
) -> None:
    for chosen in (policy(), policy(model("A100", spares=1))):
        found = kept(idle(1), rival, *elsewhere, chosen=chosen)
        assert (staying(found), found.again_at) == ("a100-1", NOW + chosen.poll_seconds)


def test_an_idle_device_does_not_leave_for_a_claim_that_waits_for_its_namespaces_quota() -> None:
    full = replace(policy(), namespaces=(NamespaceRule("default", {"*": 1}),))
    holding = claim("b", on="n2", devices=["a100-2"], ready=True)
    found = kept(idle(1), claim("a", on="n2"), holding, *ELSEWHERE, chosen=full)
    assert (staying(found), going(found)) == ("a100-1", {})


def test_a_device_in_use_stays_on_a_cordoned_node() -> None:
    assert staying(kept(resource(holder="uid-a"), on=node(cordoned=True))) == "a100-1"


def test_where_the_hold_time_is_zero_an_idle_device_goes_at_once() -> None:
    chosen = policy(base=Policy(hold_seconds=Seconds(0.0)))
    assert going(kept(idle(1, ago=0), chosen=chosen)) == {"a100-1": "idle for 0 s"}


# --- spares

OLD = (idle(1, ago=900), idle(2, ago=800))


@pytest.mark.parametrize(
    ("spares", "objects", "devices"),
    [
        (0, OLD, ""),
        (1, OLD, "a100-2"),
        (2, OLD, "a100-1 a100-2"),
        (3, OLD, "a100-1 a100-2"),
        (1, (*OLD, idle(3, ago=700, on="n2")), ""),
        (2, (*OLD, idle(3, ago=700, on="n2")), "a100-2"),
        (1, (*OLD, resource("a100-3", on="n2", used=NOW, holder="uid-x")), "a100-2"),
        (1, (idle(1, ago=10), idle(2, ago=800)), "a100-1"),
    ],
    ids=[
        "none",
        "the most recently used",
        "both",
        "no more than there are",
        "none here, where another node has a fresher one",
        "one here and one there",
        "a device in use is no spare",
        "a young one is the spare",
    ],
)
def test_spares_stay_warm_over_all_nodes_of_the_fabric(
    spares: int, objects: tuple[Object, ...], devices: str
) -> None:
    assert staying(kept(*objects, chosen=policy(model("A100", spares=spares)))) == devices


def test_a_spare_does_not_keep_a_claim_waiting() -> None:
    chosen = policy(model("A100", spares=1))
    assert going(kept(idle(1), claim("a", on="n2"), *ELSEWHERE, chosen=chosen)) == {
        "a100-1": "a claim on another node was given it"
    }


def test_a_node_of_no_fabric_has_no_spares() -> None:
    chosen = policy(model("A100", spares=1))
    assert staying(kept(*OLD, stage=inventory(machines=["n2"]), chosen=chosen)) == ""


# --- at least


@pytest.mark.parametrize(
    ("least", "objects", "devices"),
    [
        (0, (), ""),
        (1, (), "a100-1"),
        (2, (), "a100-1 a100-2"),
        (9, (), "a100-1 a100-2 a100-3 a100-4"),
        (1, (claim("a", devices=["a100-3"]),), "a100-3"),
        (2, (claim("a", devices=["a100-3"]),), "a100-1 a100-3"),
        (1, (idle(3, ago=900),), "a100-3"),
        (1, (idle(3, ago=900), idle(4, ago=800)), "a100-4"),
        (2, (idle(2, ago=700), idle(3, ago=900), idle(4, ago=800)), "a100-2 a100-4"),
        (2, (idle(3, ago=900), resource("a100-4", holder="uid-x")), "a100-3 a100-4"),
        (1, (idle(3, ago=900), resource("a100-4", holder="uid-x")), "a100-4"),
        (1, (idle(3, ago=700), resource("a100-4", used=NOW - 900, holder="uid-x")), "a100-4"),
        (1, (idle(3, ago=900), claim("a", devices=["a100-4"])), "a100-4"),
        (2, (idle(3, ago=900), claim("a", devices=["a100-4"])), "a100-3 a100-4"),
        (1, (idle(3), claim("a", devices=["a100-3"], on="n2"), *ELSEWHERE), "a100-1"),
    ],
    ids=[
        "nothing",
        "one of the pool",
        "two of the pool",
        "no more than the pool has",
        "a claim's counts",
        "a claim's and one of the pool",
        "an old one stays for it",
        "the most recently used stays for it",
        "the two most recently used stay for it",
        "one in use counts, an old one stays for the other",
        "one in use is enough",
        "one in use is enough, however old",
        "one wanted is enough",
        "one wanted and an old one",
        "one that must go is replaced",
    ],
)
def test_a_node_has_at_least(least: int, objects: tuple[Object, ...], devices: str) -> None:
    assert staying(kept(*objects, chosen=policy(base=Policy(per_node_min=least)))) == devices


def test_a_node_that_may_have_none_is_given_none() -> None:
    assert staying(kept(chosen=AT_LEAST_ONE, on=node(labels={"jackfield.dev/opt-out": "true"}))) == ""
    assert staying(kept(chosen=AT_LEAST_ONE, stage=inventory(machines=["n2"]))) == ""
    assert staying(kept(idle(1, ago=900), chosen=AT_LEAST_ONE, stage=inventory(machines=["n2"]))) == ""


def test_the_minimum_is_met_with_slots_too() -> None:
    slots = inventory(models={"A100": 2}, traits=Traits(chooses_device=True))
    taken = claim("x", devices=["a100-0"], on="n2")
    assert staying(kept(taken, stage=slots, chosen=AT_LEAST_ONE)) == "a100-1"
    assert staying(kept(taken, stage=slots, chosen=policy(base=Policy(per_node_min=3)))) == "a100-1"


# --- making room


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "evicted"),
    [
        ((idle(1),), ONE_SLOT, policy(), ""),
        ((idle(1), claim("a", devices=["a100-2"])), ONE_SLOT, policy(), "a100-1"),
        ((idle(1), claim("a", devices=["a100-2"])), TWO_SLOTS, policy(), ""),
        ((idle(1, ago=10), idle(2, ago=20), claim("a", devices=["a100-3"])), TWO_SLOTS, policy(), "a100-2"),
        (
            (idle(1, ago=10), idle(2, ago=10), claim("a", devices=["a100-3"])),
            TWO_SLOTS,
            policy(),
            "a100-1",
        ),
        (
            (idle(1), idle(2), claim("a", devices=["a100-3", "a100-4"])),
            TWO_SLOTS,
            policy(),
            "a100-1 a100-2",
        ),
        ((idle(1), claim("a", devices=["a100-2"])), showing(TWO_SLOTS, FOREIGN), policy(), "a100-1"),
        ((idle(1), idle(2), claim("a")), ONE_SLOT, policy(), ""),
        ((idle(1), claim("a", devices=["a100-2"]), idle(2, on="n2")), ONE_SLOT, policy(), "a100-1"),
        ((idle(1), claim("a", devices=["a100-2"], told=RESCHEDULE)), ONE_SLOT, policy(), ""),
        ((idle(1), claim("a", devices=["a100-2"])), ROOMY, LIMIT_ONE, "a100-1"),
        ((idle(1), claim("a", devices=["a100-2"])), ROOMY, policy(base=Policy(per_node_max=2)), ""),
        (
            (idle(1), claim("a", devices=["h100-5"])),
            ROOMY,
            policy("A100", "H100", base=Policy(per_node_max=1)),
            "",
        ),
        (
            (idle(1), idle(2), claim("a", devices=["h100-5"])),
            ROOMY,
            policy("A100", "H100", base=Policy(per_node_max=1)),
            "",
        ),
        ((idle(1), claim("a", devices=["h100-5"])), ROOMY, APART, "a100-1"),
        ((idle(1), claim("a", devices=["h100-5"])), ROOMY, policy("A100", "H100"), ""),
        ((idle(1), claim("a", devices=["h100-5"])), ONE_SLOT, policy("A100", "H100"), "a100-1"),
    ],
    ids=[
        "nobody comes",
        "one comes into its slot",
        "there are slots enough",
        "the least recently used goes",
        "of two alike the first by name",
        "both must go",
        "a stranger's device takes a slot too",
        "what is there already does not come",
        "what stands elsewhere comes",
        "nobody comes for a claim that was sent away",
        "the limit of its model is reached",
        "the limit of its model is not reached",
        "another model's limit is its own",
        "even where it is passed",
        "what comes cannot coexist with it",
        "what comes can coexist with it",
        "whatever its model, it takes the slot",
    ],
)
def test_idle_devices_make_room_for_claims(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, evicted: str
) -> None:
    assert going(kept(*objects, stage=stage, chosen=chosen)) == dict.fromkeys(
        evicted.split(), "a claim needs its room"
    )


def test_a_spare_makes_room_as_well() -> None:
    found = kept(
        idle(1), claim("a", devices=["a100-2"]), stage=ONE_SLOT, chosen=policy(model("A100", spares=1))
    )
    assert going(found) == {"a100-1": "a claim needs its room"}


def test_an_idle_device_of_a_model_that_left_the_policy_makes_room_by_number_only() -> None:
    unknown = resource("b200-9", model="B200", request="jackfield-a100-n1")
    assert going(kept(unknown, claim("a"), stage=ONE_SLOT)) == {"b200-9": "a claim needs its room"}
    assert going(kept(unknown, claim("a"), stage=TWO_SLOTS)) == {}


def test_a_device_that_has_vanished_is_not_kept() -> None:
    view = world(node(), heartbeat(), idle(1, ago=0), inventories=[inventory(models={})], looked=NOW)
    site = keep.Site(view, NODE, policy(), Seconds(NOW + 90), ())
    assert going(keep.devices(site, policy().models[0])) == {
        "a100-1": "its fabric does not show it on n1 any more"
    }


@pytest.mark.parametrize("least", [0, 1])
def test_a_device_that_its_manager_forgot_for_a_moment_is_kept_until_that_lasts(least: int) -> None:
    chosen = replace(policy(), per_node_min=least)
    view = world(
        node(), heartbeat(), idle(1, ago=0), inventories=[inventory(models={})], looked=NOW, policy=chosen
    )
    found = keep.devices(keep.Site(view, NODE, chosen, Seconds(NOW + 89), ()), chosen.models[0])
    assert (going(found), found.again_at) == ({}, NOW + 90)


def test_a_device_that_is_to_leave_since_it_is_not_ours_is_not_kept_among_ours() -> None:
    assert kept(resource("a100-1", state=ResourceState.NEW, foreign="1")) == kept()


def test_what_others_asked_for_makes_no_room() -> None:
    theirs = resource(request="by-hand")
    chosen = policy("A100")
    found = kept(theirs, request(1), idle(2), claim("a", devices=["a100-3"]), stage=TWO_SLOTS, chosen=chosen)
    assert going(found) == {"a100-2": "a claim needs its room"}


def test_a_node_that_is_no_machine_evicts_nobody() -> None:
    nowhere = inventory(machines=["n2"])
    served = (resource("a100-2", on="n2"), claim("a", devices=["a100-2"]), idle(1))
    assert going(kept(*served, stage=nowhere)) == {}
