"""Demand: which of the claims on a node may have what they were given, oldest first, and why the others may not."""

import pytest
from msgspec.structs import replace

from jackfield.core import demand
from jackfield.core.demand import Refuse, Serve, Want
from jackfield.model.claim import DeviceRequestAllocationResult, ResourceClaim
from jackfield.model.composition import RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import Inventory, Machine
from jackfield.model.meta import Condition, Object
from jackfield.model.names import NEVER
from jackfield.model.policy import FAILED, RESCHEDULE
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
    vendor_slice,
    world,
)
from unit.core.verdicts import ROOMY, verdicts

SMALL = inventory(machines=[Machine(NODE, slots=1)])
APART = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)))
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
"""A device of the fabric that a vendor's driver will publish once it is attached."""
OTHERS = device("gpu.example.com/n1/gpu-0")
"""The same device, as the vendor's driver publishes it."""
MORE = device("gpu.example.com/a100-fabricrack-a/a100-2")
MIXED = claim("b", devices=[OTHERS, MORE])
"""Given what is there under its driver's name, and one that must be attached first."""
SENT = claim("b", devices=[OTHERS, MORE], told=RESCHEDULE).status
BOUND = claim("b", devices=[OTHERS, MORE], ready=True).status


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

KEPT = Condition(RELEASED, "False", message="pid 7 has it open")
KEPT_ON_N2 = "n2 does not let go of it: pid 7 has it open"


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
        (
            (claim("a"), resource(on="n2", deleted=NOW, conditions=(KEPT,))),
            f"{RESCHEDULE} a100-1: {KEPT_ON_N2}",
        ),
        (
            (claim("a"), resource(on="n2", state=ResourceState.DETACHING, conditions=(KEPT,))),
            f"{RESCHEDULE} a100-1: {KEPT_ON_N2}",
        ),
        ((claim("a"), resource(on="n2", deleted=NOW, conditions=(Condition(RELEASED, "True"),))), "served"),
        ((claim("a"), resource(on="n2", conditions=(KEPT,))), "served"),
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
        "its device is to go and somebody keeps it open",
        "its device leaves and somebody keeps it open",
        "its device is to go and was let go",
        "its device stays, whoever has it open",
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
        (
            claim("a", attempts=f"5/a100-2@n2:{NOW - 1799:.0f}"),
            {},
            f"{FAILED} a100-1: 5 attaches for this claim failed, the last of a100-2@n2; it is tried again",
        ),
        (claim("a", attempts=f"4/a100-2@n2:{NOW - 1799:.0f}"), {}, "served"),
        (claim("a", attempts=f"5/a100-2@n2:{NOW - 1800:.0f}"), {}, "served"),
        (claim("a", attempts="5/nonsense"), {}, "served"),
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
        "told to stop, it is not tried elsewhere either",
        "not told to stop yet",
        "told to stop so long ago that it is forgiven",
        "an annotation that is not ours",
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
        ((resource(SHARED, uuid="GPU-1"), vendor_slice("GPU-1"), MIXED), "served"),
        ((resource(SHARED, uuid="GPU-1"), vendor_slice("GPU-1"), replace(MIXED, status=SENT)), "served"),
        (
            (
                resource(SHARED, on="n2", uuid="GPU-1"),
                vendor_slice("GPU-1", on="n2"),
                claim("b", devices=["gpu.example.com/n2/gpu-0", MORE], on="n2"),
            ),
            f"{RESCHEDULE} a100-1: a100-1 serves claim default/b as gpu.example.com/n2/gpu-0",
        ),
        (
            (resource(SHARED, uuid="GPU-1"), vendor_slice("GPU-1"), replace(MIXED, status=BOUND)),
            f"{RESCHEDULE} a100-1: a100-1 serves claim default/b as {OTHERS}",
        ),
    ],
    ids=[
        "free",
        "in use",
        "another device",
        "taken by who waits for another of ours",
        "taken by who was sent round, and has not left yet",
        "taken on another node, by whoever it is",
        "in use beside another of ours",
    ],
)
def test_a_claim_on_a_device_that_its_driver_publishes(objects: tuple[Object, ...], verdict: str) -> None:
    assert verdicts(claim("a", devices=[SHARED]), *objects, chosen=VENDORS)["a"] == verdict


@pytest.mark.parametrize(
    "stands",
    [resource(SHARED, uuid="GPU-1"), resource(SHARED, uuid="GPU-1", deleted=NOW)],
    ids=["that stays", "that is to go"],
)
def test_a_claim_is_sent_round_that_was_given_by_both_its_names_a_device(stands: ComposableResource) -> None:
    """It would wait for itself: a device that is to go cannot while the claim has it."""
    expected = f"{RESCHEDULE} a100-1: a100-1 was given to this claim a second time, as {OTHERS}"
    twice = claim("a", devices=[OTHERS, SHARED])
    assert verdicts(twice, stands, vendor_slice("GPU-1"), chosen=VENDORS)["a"] == expected


def test_a_device_of_ours_that_another_driver_publishes_is_waited_for_not_refused() -> None:
    taken = (resource(uuid="GPU-1"), vendor_slice("GPU-1"), claim("b", devices=[OTHERS], waits=()))
    assert verdicts(claim("a"), *taken) == {"a": "served"}


def test_a_claim_whose_device_has_vanished_is_sent_round() -> None:
    expected = f"{RESCHEDULE} a100-1: a100-1 is not in its fabric's inventory any more"
    assert verdicts(claim("a"), stage=inventory(models={}))["a"] == expected


@pytest.mark.parametrize(
    ("ago", "verdict"),
    [
        (NEVER, "served"),
        (89, "served"),
        (90, f"{RESCHEDULE} a100-1: the manager does not show a100-1 on n1 any more"),
    ],
)
@pytest.mark.parametrize("stage", [inventory(models={}), inventory(), inventory(attached={"1": "n2"})])
def test_a_device_that_was_attached_is_waited_for_while_its_manager_may_only_have_forgotten_it(
    ago: float, verdict: str, stage: Inventory
) -> None:
    looked = NEVER if ago == NEVER else NOW - ago
    assert verdicts(claim("a"), resource(physical="1"), stage=stage, looked=looked)["a"] == verdict
