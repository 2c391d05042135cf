"""Demand: which of the claims on a node may have what they were given, oldest first, and why the others may not."""

import pytest
from msgspec.structs import replace

from jackfield.core import demand
from jackfield.core.demand import Refuse, Serve, Settled, Want
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Traits
from jackfield.model.meta import Condition, Object
from jackfield.model.names import ModelName, PhysicalID, Seconds
from jackfield.model.policy import FAILED, READY, RESCHEDULE, Policy
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

ROOMY = inventory()
SMALL = inventory(machines=[Machine(NODE, slots=1)])
APART = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)))
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
"""A device of the fabric that a vendor's driver will publish once it is attached."""
OTHERS = device("gpu.example.com/n1/gpu-0")
"""The same device, as the vendor's driver publishes it."""


def verdicts(
    *objects: Object, stage: Inventory = ROOMY, chosen: Policy = policy(), on: Object = node()
) -> dict[str, str]:
    """Return how each claim on n1 fares, in the order in which they are served."""
    view = world(on, heartbeat(), *objects, inventories=[stage], policy=chosen)
    return {one.claim.metadata.name: told(one.verdict) for one in demand.on_node(view, NODE, chosen, NOW)}


def told(verdict: demand.Verdict) -> str:
    match verdict:
        case Serve():
            return "served"
        case Settled(ready=ready):
            return "ready" if ready else "sent away"
        case Refuse(type=kind, device=of, reason=reason):
            return f"{kind} {of.device}: {reason}"


# --- what a demand consists of


def test_a_demand_names_what_is_wanted_and_the_resource_it_would_come_from() -> None:
    chosen = policy("A100", "H100")
    wish = claim("a", devices=["a100-1", "h100-3"])
    there = resource()
    view = world(node(), heartbeat(), wish, there, inventories=[ROOMY], policy=chosen)
    (one,) = demand.on_node(view, NODE, chosen, NOW)
    assert one.claim == wish
    assert one.devices == (device("a100-1"), device("h100-3"))
    assert one.wants == (
        Want(wish, device("a100-1"), chosen.models[0], there),
        Want(wish, device("h100-3"), chosen.models[1], None),
    )
    assert one.verdict == Serve()


def test_admin_access_wants_nothing_and_is_always_served() -> None:
    view = world(claim("a", admin=True, mode="All"), claim("b"))  # no node, no machine, another holder
    one, other = demand.on_node(view, NODE, policy(), NOW)
    assert (one.wants, one.devices, one.verdict) == ((), (device("a100-1"),), Serve())
    assert isinstance(other.verdict, Refuse)


def test_devices_without_our_binding_condition_or_of_no_fabric_are_not_ours_to_serve() -> None:
    mixed = claim("a", devices=["a100-1", "other.example.com/pool/x"])
    allocation = mixed.status.allocation
    assert allocation is not None
    bare = replace(allocation.devices.results[0], device="a100-2", binding_conditions=())
    mixed = with_results(mixed, (*allocation.devices.results, bare))
    view = world(node(), heartbeat(), mixed, inventories=[ROOMY])
    (one,) = demand.on_node(view, NODE, policy(), NOW)
    assert [want.device for want in one.wants] == [device("a100-1")]


def with_results(one: ResourceClaim, results: tuple[DeviceRequestAllocationResult, ...]) -> ResourceClaim:
    allocation = one.status.allocation
    assert allocation is not None
    allocation = replace(allocation, devices=replace(allocation.devices, results=results))
    return replace(one, status=replace(one.status, allocation=allocation))


def test_a_device_of_no_model_is_not_wanted() -> None:
    view = world(node(), heartbeat(), claim("a", devices=["b200-1", "a100-1"]), inventories=[ROOMY])
    (one,) = demand.on_node(view, NODE, policy(), NOW)
    assert [want.device for want in one.wants] == [device("a100-1")]


# --- one claim


@pytest.mark.parametrize(
    ("objects", "verdict"),
    [
        ((claim("a"),), "served"),
        ((claim("a", ready=True),), "ready"),
        ((claim("a", told=RESCHEDULE),), "sent away"),
        ((claim("a", told=FAILED),), "sent away"),
        ((claim("a", told="Other"),), "served"),
        ((claim("a", devices=["b200-1"]),), f"{FAILED} b200-1: no model of the policy"),
        ((claim("a", devices=["b200-1"], ready=True),), "ready"),
        ((claim("a", mode="All"),), f"{FAILED} a100-1: allocationMode All"),
        ((claim("a", mode="All"), resource()), "served"),
        ((claim("a", mode="All"), resource(on="n2")), f"{FAILED} a100-1: allocationMode All"),
        ((claim("a"), resource()), "served"),
        ((claim("a"), resource(on="n2")), "served"),
        ((claim("a"), resource(on="n2"), request({"a100-1": "b"}, on="n2")), "served"),
        (
            (claim("a"), resource(on="n2", request="by-hand"), request(1, on="n2")),
            f"{RESCHEDULE} a100-1: a100-1 is on n2 for ComposabilityRequest by-hand",
        ),
        ((claim("a"), resource(request="by-hand"), request(1)), "served"),
    ],
    ids=[
        "new",
        "answered with Ready",
        "answered with Reschedule",
        "answered with Failed",
        "told something else",
        "a device of no model",
        "a device of a model that was taken out of the policy while in use",
        "All, of a pool",
        "All, of what is there",
        "All, of what is elsewhere",
        "its device is there",
        "its device is elsewhere and nobody asked for it",
        "its device is elsewhere for the scaler",
        "its device is elsewhere for somebody else",
        "its device is here for somebody else",
    ],
)
def test_a_claim_is(objects: tuple[Object, ...], verdict: str) -> None:
    found = verdicts(*objects)["a"]
    assert found.startswith(verdict)
    assert (found == verdict) or ":" in verdict


def test_a_claim_is_ready_only_when_all_its_devices_are() -> None:
    half = claim("a", devices=["a100-1", "a100-2"], ready=True)
    half = replace(half, status=replace(half.status, devices=half.status.devices[:1]))
    assert verdicts(half) == {"a": "served"}


def test_one_device_that_was_refused_sends_the_whole_claim_away() -> None:
    one = claim("a", devices=["a100-1", "a100-2"], ready=True)
    first, second = one.status.devices
    second = replace(second, conditions=(Condition(FAILED, "True"),))
    assert verdicts(replace(one, status=replace(one.status, devices=(first, second)))) == {"a": "sent away"}


def test_a_condition_that_is_false_says_nothing() -> None:
    one = claim("a", told=FAILED)
    entry = replace(one.status.devices[0], conditions=(Condition(FAILED, "False"),))
    assert verdicts(replace(one, status=replace(one.status, devices=(entry,)))) == {"a": "served"}


def test_a_refusal_names_the_device_in_the_way_even_where_all_are_wanted() -> None:
    strange = claim("a", devices=["other.example.com/pool/x", "a100-1"], mode="All")
    assert verdicts(strange)["a"].startswith(f"{FAILED} a100-1: allocationMode All")


def test_all_of_another_drivers_devices_is_none_of_our_business() -> None:
    theirs = claim("a", devices=["other.example.com/pool/x"], mode="All")
    assert verdicts(theirs) == {"a": "served"}


# --- rivals (rule 9)

OLDER = claim("a", allocated=NOW - 20)
YOUNGER = claim("b", allocated=NOW - 10)


@pytest.mark.parametrize(
    ("objects", "loser"),
    [
        ((OLDER, YOUNGER), "b"),
        ((OLDER, YOUNGER, resource()), "b"),
        ((OLDER, YOUNGER, resource(record=YOUNGER)), "a"),
        ((OLDER, YOUNGER, resource(record=OLDER)), "b"),
        ((OLDER, YOUNGER, resource(record=claim("c"))), "b"),
        ((OLDER, YOUNGER, resource(record=claim("b", uid="another"))), "b"),
    ],
    ids=[
        "the younger",
        "the younger, though the device is there",
        "the older, where the younger is recorded",
        "the younger, where the older is recorded",
        "the younger, where neither is recorded",
        "the younger, where one of its name is recorded",
    ],
)
def test_of_two_claims_with_one_device_only_one_is_served(objects: tuple[Object, ...], loser: str) -> None:
    winner = {"a": "b", "b": "a"}[loser]
    assert verdicts(*objects) == {
        **dict.fromkeys(["a", "b"], "served"),
        loser: f"{RESCHEDULE} a100-1: a100-1 was given to claim default/{winner} as well",
    }


def test_a_claim_of_another_node_may_be_the_winner() -> None:
    assert verdicts(claim("b"), claim("a", on="n2", allocated=NOW - 20)) == {
        "b": f"{RESCHEDULE} a100-1: a100-1 was given to claim default/a as well"
    }


# --- failures

FAILED_NOW = {"a100-1": NOW - 5}
ORDER = f"a100-1@n1:{NOW - 5:.0f}"


@pytest.mark.parametrize(
    ("one", "failures", "verdict"),
    [
        (claim("a"), FAILED_NOW, f"{RESCHEDULE} a100-1: a100-1 could not be attached to n1 (attempt 1)"),
        (claim("a", allocated=NOW - 5), FAILED_NOW, f"{RESCHEDULE} a100-1: a100-1 could not be attached"),
        (claim("a", allocated=NOW - 4), FAILED_NOW, "served"),
        (claim("a"), {"a100-2": NOW - 5}, "served"),
        (
            claim("a", attempts="3/other"),
            FAILED_NOW,
            f"{RESCHEDULE} a100-1: a100-1 could not be attached to n1 (attempt 4)",
        ),
        (
            claim("a", attempts=f"4/{ORDER}"),
            FAILED_NOW,
            f"{RESCHEDULE} a100-1: a100-1 could not be attached to n1 (attempt 4)",
        ),
        (
            claim("a", attempts="4/other"),
            FAILED_NOW,
            f"{FAILED} a100-1: 5 attaches for this claim failed, the last of a100-1 to n1",
        ),
        (claim("a", attempts=f"5/{ORDER}"), FAILED_NOW, f"{FAILED} a100-1: 5 attaches for this claim failed"),
    ],
    ids=[
        "the first time",
        "in the second of its allocation",
        "before its allocation",
        "another device",
        "once more",
        "an attempt that was counted is not counted again",
        "once too often",
        "once too often, and counted",
    ],
)
def test_a_claim_whose_device_failed_here(
    one: ResourceClaim, failures: dict[str, float], verdict: str
) -> None:
    assert verdicts(one, on=node(failures=failures))["a"].startswith(verdict)


def test_a_failure_names_the_order_that_failed() -> None:
    view = world(node(failures=FAILED_NOW), heartbeat(), claim("a"), inventories=[ROOMY])
    (one,) = demand.on_node(view, NODE, policy(), NOW)
    assert isinstance(one.verdict, Refuse)
    assert one.verdict.order == ORDER


# --- a device that serves under its driver's name


@pytest.mark.parametrize(
    ("objects", "verdict"),
    [
        ((resource(SHARED, uuid="GPU-1"), vendor_slice("GPU-1")), "served"),
        (
            (resource(SHARED, uuid="GPU-1"), vendor_slice("GPU-1"), claim("b", devices=[OTHERS], waits=())),
            f"{RESCHEDULE} a100-1: a100-1 serves claim default/b as {OTHERS}",
        ),
        ((vendor_slice("GPU-1"), claim("b", devices=[OTHERS], waits=())), "served"),
    ],
    ids=["free", "in use", "another device"],
)
def test_a_claim_on_a_device_that_its_driver_publishes(objects: tuple[Object, ...], verdict: str) -> None:
    assert verdicts(claim("a", devices=[SHARED]), *objects, chosen=VENDORS)["a"] == verdict


def test_a_device_of_ours_that_another_driver_publishes_is_waited_for_not_refused() -> None:
    taken = (resource(uuid="GPU-1"), vendor_slice("GPU-1"), claim("b", devices=[OTHERS], waits=()))
    assert verdicts(claim("a"), *taken) == {"a": "served"}


# --- room


@pytest.mark.parametrize(
    ("objects", "stage", "chosen", "found"),
    [
        ((claim("a"),), SMALL, policy(), {"a": "served"}),
        (
            (claim("a", allocated=NOW - 20), claim("b", devices=["a100-2"])),
            SMALL,
            policy(),
            {"a": "served", "b": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others"},
        ),
        (
            (claim("a", allocated=NOW - 20, told=RESCHEDULE), claim("b", devices=["a100-2"])),
            SMALL,
            policy(),
            {"a": "sent away", "b": "served"},
        ),
        (
            (claim("a", allocated=NOW - 20, ready=True), claim("b", devices=["a100-2"])),
            SMALL,
            policy(),
            {"a": "ready", "b": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others"},
        ),
        (
            (claim("a", devices=["a100-2"], allocated=NOW - 20), claim("b"), resource()),
            SMALL,
            policy(),
            {"a": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others", "b": "served"},
        ),
        ((claim("a", devices=["a100-2"]), resource()), SMALL, policy(), {"a": "served"}),
        (
            (claim("a"),),
            showing(SMALL, FabricDevice(PhysicalID("9"), ModelName("A100"), node=NODE, ours=False)),
            policy(),
            {"a": f"{RESCHEDULE} a100-1: n1 can take 1 devices, and 1 are taken by others"},
        ),
        (
            (claim("a", devices=["a100-1", "a100-2"]),),
            SMALL,
            policy(),
            {"a": f"{RESCHEDULE} a100-1: n1 can take 1 devices, and 0 are taken by others"},
        ),
        (
            (claim("a", devices=["a100-1", "a100-2"]),),
            inventory(machines=[Machine(NODE, slots=2)]),
            policy(),
            {"a": "served"},
        ),
        (
            (claim("a"),),
            ROOMY,
            policy(base=Policy(per_node_max=0)),
            {"a": f"{RESCHEDULE} a100-1: n1 may have 0 of A100"},
        ),
        ((claim("a"), resource()), ROOMY, policy(base=Policy(per_node_max=0)), {"a": "served"}),
        (
            (claim("a", allocated=NOW - 20), claim("b", devices=["a100-2"])),
            ROOMY,
            policy(base=Policy(per_node_max=1)),
            {"a": "served", "b": f"{RESCHEDULE} a100-2: n1 may have 1 of A100"},
        ),
        (
            (claim("a", allocated=NOW - 20), claim("b", devices=["h100-3"])),
            ROOMY,
            policy("A100", "H100", base=Policy(per_node_max=1)),
            {"a": "served", "b": "served"},
        ),
        (
            (claim("a", devices=["a100-2"]), resource(request="by-hand"), request(1)),
            SMALL,
            policy(),
            {"a": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others"},
        ),
        (
            (claim("a", devices=["a100-2"]), resource(record=claim("c"), state=ResourceState.DETACHING)),
            SMALL,
            policy(),
            {"a": "served"},
        ),
        (
            (claim("a"),),
            inventory(machines=[]),
            policy(),
            {"a": f"{RESCHEDULE} a100-1: node n1 is not a machine of any fabric"},
        ),
        ((claim("a"), resource()), inventory(machines=[]), policy(), {"a": "served"}),
    ],
    ids=[
        "one slot for one claim",
        "the younger gets what the older left",
        "one that was sent away leaves its room",
        "one that is ready keeps its room",
        "a device that is there keeps its room, whoever came first",
        "an idle device makes room",
        "a stranger's does not",
        "two devices do not go into one slot",
        "two devices go into two slots",
        "the limit is zero",
        "a device that is there is not counted out by a limit",
        "the limit is one",
        "each model has its own limit",
        "what somebody else asked for keeps its room",
        "a device on its way back has left its room",
        "the node is refused",
        "a device that is there is served all the same",
    ],
)
def test_room_is_given_out_in_order(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, found: dict[str, str]
) -> None:
    assert verdicts(*objects, stage=stage, chosen=chosen) == found


def test_resources_that_others_made_take_room_too() -> None:
    theirs = replace(
        resource(request="by-hand"), metadata=replace(resource(request="by-hand").metadata, annotations={})
    )
    unknown = resource("b200-1", model="B200", holder="uid-x")
    full = {"a": f"{RESCHEDULE} a100-1: n1 can take 1 devices, and 1 are taken by others"}
    assert verdicts(claim("a"), theirs, request(1), stage=SMALL) == full
    assert verdicts(claim("a"), unknown, stage=SMALL) == full
    assert verdicts(claim("a"), theirs, stage=SMALL) == {"a": "served"}
    second = replace(theirs, metadata=replace(theirs.metadata, name="second"))
    two = inventory(machines=[Machine(NODE, slots=2)])
    assert verdicts(claim("a"), theirs, request(1), stage=two) == {"a": "served"}
    assert verdicts(claim("a"), theirs, second, request(1), stage=two)["a"].startswith(RESCHEDULE)


def test_admin_access_asks_for_no_room() -> None:
    crowd = (resource("a100-8", holder="uid-x"), resource("a100-9", holder="uid-y"))
    assert verdicts(claim("a", admin=True), *crowd, stage=SMALL) == {"a": "served"}


def test_a_device_on_its_way_back_must_find_room_and_time_again() -> None:
    leaving = resource(state=ResourceState.DETACHING)
    late = claim("a", allocated=NOW - 599)
    assert verdicts(late, leaving)["a"].startswith(f"{RESCHEDULE} a100-1: fabric rack-a has 1 orders ahead")
    assert verdicts(claim("a"), leaving) == {"a": "served"}


@pytest.mark.parametrize(
    ("objects", "chosen", "found"),
    [
        (
            (claim("a", devices=["a100-1", "h100-3"]),),
            APART,
            {"a": f"{FAILED} a100-1: A100 and H100 of this claim cannot be on one node"},
        ),
        (
            (claim("a", allocated=NOW - 20), claim("b", devices=["h100-3"])),
            APART,
            {"a": "served", "b": f"{RESCHEDULE} h100-3: H100 cannot stand beside A100, which n1 has"},
        ),
        (
            (claim("a", allocated=NOW - 20, told=FAILED), claim("b", devices=["h100-3"])),
            APART,
            {"a": "sent away", "b": "served"},
        ),
        ((claim("b", devices=["h100-3"]), resource()), APART, {"b": "served"}),
        (
            (claim("b", devices=["h100-3"]), resource(holder="uid-x")),
            APART,
            {"b": f"{RESCHEDULE} h100-3: H100 cannot stand beside A100, which n1 has"},
        ),
        (
            (claim("a", allocated=NOW - 20), claim("b", devices=["h100-3"])),
            policy("A100", "H100"),
            {"a": "served", "b": "served"},
        ),
    ],
    ids=[
        "a claim that asks for both can be served nowhere",
        "the younger goes elsewhere",
        "one that was sent away stands in nobody's way",
        "nor does an idle device",
        "a device in use does",
        "models that can coexist do",
    ],
)
def test_models_that_cannot_coexist_are_kept_apart(
    objects: tuple[Object, ...], chosen: Policy, found: dict[str, str]
) -> None:
    assert verdicts(*objects, chosen=chosen) == found


# --- deadlines

BUSY = tuple(resource(f"a100-{number}", on="n2", state=ResourceState.ATTACHING) for number in range(11, 14))
"""Three orders that the manager is at."""


@pytest.mark.parametrize(
    ("allocated", "jobs", "ahead", "served"),
    [
        (NOW, 1, 3, True),
        (NOW - 285, 1, 3, True),
        (NOW - 385, 1, 3, False),
        (NOW - 345, 1, 3, True),
        (NOW - 346, 1, 3, False),
        (NOW - 465, 2, 3, True),
        (NOW - 466, 2, 3, False),
        (NOW - 525, 4, 3, True),
        (NOW - 526, 4, 3, False),
        (NOW - 525, 1, 0, True),
        (NOW - 526, 1, 0, False),
    ],
)
def test_an_order_that_cannot_be_done_in_time_is_sent_round_early(
    allocated: float, jobs: int, ahead: int, *, served: bool
) -> None:
    stage = inventory(traits=Traits(jobs=jobs))
    found = verdicts(claim("a", allocated=allocated), *BUSY[:ahead], stage=stage)["a"]
    late = f"{RESCHEDULE} a100-1: fabric rack-a has {ahead} orders ahead of it and cannot attach it in time"
    assert found == ("served" if served else late)


def test_orders_of_older_claims_on_the_node_are_ahead_too() -> None:
    stage = inventory(models={"A100": 3}, traits=Traits(jobs=1))
    at = NOW - 465  # time for two attaches of a minute each, and the margin
    wishes = [
        claim(f"c{number}", devices=[f"a100-{number}"], allocated=at, created=NOW - 100 + number)
        for number in (1, 2, 3)
    ]
    assert verdicts(*wishes, stage=stage) == {
        "c1": "served",
        "c2": "served",
        "c3": f"{RESCHEDULE} a100-3: fabric rack-a has 2 orders ahead of it and cannot attach it in time",
    }


def test_a_device_that_is_there_needs_no_time() -> None:
    assert verdicts(claim("a", allocated=NOW - 599), resource()) == {"a": "served"}


def test_the_time_an_attach_takes_is_as_measured() -> None:
    seen = Condition("Visible", "True", last_transition_time=heartbeat(at=NOW - 50).spec.renew_time)
    slow = resource("a100-9", on="n2", created=NOW - 450, conditions=(seen,))
    assert verdicts(claim("a", allocated=NOW - 185), slow) == {"a": "served"}
    assert verdicts(claim("a", allocated=NOW - 186), slow)["a"].startswith(RESCHEDULE)


def test_a_fabric_that_has_shown_nothing_yet_is_not_timed() -> None:
    elsewhere = inventory("rack-b")
    late = claim("a", allocated=NOW - 599)
    assert verdicts(late, stage=elsewhere) == {"a": "served"}


def test_a_vendors_device_is_timed_as_well() -> None:
    late = claim("a", devices=[SHARED], allocated=Seconds(NOW - 599))
    assert verdicts(late, chosen=VENDORS)["a"].startswith(RESCHEDULE)


def test_what_is_told_already_is_not_judged_again() -> None:
    late = claim("a", allocated=NOW - 599, ready=True)
    assert verdicts(late, claim("b", devices=["a100-1"], told=READY), on=node(failures=FAILED_NOW)) == {
        "a": "ready",
        "b": "ready",
    }
