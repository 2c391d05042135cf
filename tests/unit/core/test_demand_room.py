"""Demand where room, coexistence and time are short: older claims come first, the others are told at once."""

import pytest
from msgspec.structs import replace

from jackfield.model.composition import RELEASED, ResourceState
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
)
from unit.core.verdicts import ROOMY, verdicts

TOO_MANY = "n1 can take 1 devices, and 0 are taken by others; this claim wants 2"
SMALL = inventory(machines=[Machine(NODE, slots=1)])
APART = policy("A100", replace(model("H100"), cannot_coexist_with=(0,)))
VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
"""A device of the fabric that a vendor's driver will publish once it is attached."""
OTHERS = device("gpu.example.com/n1/gpu-0")
"""The same device, as the vendor's driver publishes it."""


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
            (claim("a", devices=["a100-2"], allocated=NOW - 20), claim("b"), request({"a100-1": "b"})),
            SMALL,
            policy(),
            {"b": "served", "a": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others"},
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
            {"a": f"{RESCHEDULE} a100-1: {TOO_MANY}"},
        ),
        (
            (claim("a", devices=["a100-1", "a100-2"]), resource()),
            SMALL,
            policy(),
            {"a": f"{RESCHEDULE} a100-1: {TOO_MANY}"},
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
        (
            (claim("a"), resource(state=ResourceState.ATTACHING), request({"a100-1": "a"})),
            inventory(machines=[]),
            policy(),
            {"a": "served"},
        ),
        (
            (
                claim("a", devices=["a100-2"]),
                claim("b", allocated=NOW - 20),
                resource(),
                request({"a100-2": "a"}),
            ),
            SMALL,
            policy(),
            {
                "a": "served",
                "b": f"{RESCHEDULE} a100-1: n1 can take 1 devices, and 1 are taken by others",
            },
        ),
        (
            (
                claim("a", devices=["a100-2"]),
                claim("b", ready=True),
                resource(record=claim("b")),
                request({"a100-2": "a"}),
            ),
            SMALL,
            policy(),
            {
                "a": f"{RESCHEDULE} a100-2: n1 can take 1 devices, and 1 are taken by others",
                "b": "ready",
            },
        ),
    ],
    ids=[
        "one slot for one claim",
        "the younger gets what the older left",
        "what was ordered for a younger claim stays its own",
        "one that was sent away leaves its room",
        "one that is ready keeps its room",
        "a device that is there keeps its room, whoever came first",
        "an idle device makes room",
        "a stranger's does not",
        "two devices do not go into one slot",
        "nor if one of them is there: that is the claim's own",
        "two devices go into two slots",
        "the limit is zero",
        "a device that is there is not counted out by a limit",
        "the limit is one",
        "each model has its own limit",
        "what somebody else asked for keeps its room",
        "a device on its way back has left its room",
        "the node is refused",
        "a device that is there is served all the same",
        "so is one that is on its way",
        "what was ordered for a claim is not taken from it for one that was given what stands there",
        "unless that one has it",
    ],
)
def test_room_is_given_out_in_order(
    objects: tuple[Object, ...], stage: Inventory, chosen: Policy, found: dict[str, str]
) -> None:
    assert verdicts(*objects, stage=stage, chosen=chosen) == found


def test_what_stands_on_a_node_that_is_gone_serves_nobody_there() -> None:
    """The pods of a claim that was told Ready there would wait for that node for ever."""
    expected = {"a": f"{RESCHEDULE} a100-1: node n1 does not exist"}
    assert verdicts(claim("a"), resource(), on=heartbeat()) == expected


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
    leaving = resource(state=ResourceState.DETACHING, conditions=(Condition(RELEASED, "True"),))
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


# --- time

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


@pytest.mark.parametrize(("claimant", "served"), [("a", True), ("b", False)])
def test_what_was_asked_for_is_not_sent_round_because_time_went_by(claimant: str, *, served: bool) -> None:
    asked = request({"a100-1": claimant})
    found = verdicts(claim("a", allocated=NOW - 599), asked, stage=inventory(traits=Traits(jobs=1)))["a"]
    assert (found == "served") == served


@pytest.mark.parametrize(("ahead", "served"), [(0, True), (1, False)])
def test_an_order_for_a_fabric_that_is_always_too_slow_is_sent_all_the_same(
    ahead: int, *, served: bool
) -> None:
    """Its device comes too late for this attempt and is there for the next."""
    stage = inventory(traits=Traits(jobs=1))
    impatient = policy(base=Policy(binding_timeout_seconds=Seconds(60.0)))
    one = claim("a", allocated=NOW, devices=["a100-1", "a100-2"])
    found = verdicts(one, *BUSY[:ahead], stage=stage, chosen=impatient)["a"]
    assert (found == "served") == served


@pytest.mark.parametrize(
    ("late", "ahead", "served"),
    [(0.0, 0, True), (5.0, 0, True), (5.0, 1, False), (-5.0, 0, True), (16.0, 0, True)],
)
def test_an_order_that_just_fits_is_sent_also_by_who_has_a_clock_that_is_wrong(
    late: float, ahead: int, *, served: bool
) -> None:
    """Every allocation is as old to him: sent round, the claim would come back to the same answer for ever."""
    stage = inventory(models={"A100": 3}, traits=Traits(jobs=1))
    tight = policy(base=Policy(binding_timeout_seconds=Seconds(195.0), binding_margin_seconds=Seconds(15.0)))
    one = claim("a", allocated=NOW - late, devices=["a100-1", "a100-2", "a100-3"])
    found = verdicts(one, *BUSY[:ahead], stage=stage, chosen=tight)["a"]
    assert (found == "served") == served


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
    assert verdicts(
        late, claim("b", devices=["a100-1"], told=READY), on=node(failures={"a100-1": NOW - 5})
    ) == {
        "a": "ready",
        "b": "ready",
    }
