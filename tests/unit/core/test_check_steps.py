"""Steps that must never be taken are told apart from those that may: nothing goes back without a word."""

from itertools import product
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import check
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    MISSING,
    RELEASED,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.meta import Condition, Object, OwnerReference
from jackfield.model.names import DeviceID, Seconds, Uid
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.testing import builders as b
from unit.core.checked import listing, told

NEW, ATTACHING, ONLINE, DETACHING, DELETING = ResourceState
POLICY = b.policy()
NODE = b.node()
CLAIM = b.claim("c")
READY_CLAIM = b.claim("c", ready=True)
SERVING = b.resource(record=CLAIM)
OTHERS = DeviceID("gpu.example.com", "n1", "gpu-0")
A100_1 = f"{DRIVER}/rack-a/a100-1"
SEEN = (Condition(VISIBLE, "True"),)
LET_GO = (Condition(RELEASED, "True"),)
VENDORS = DeviceID("gpu.example.com", "a100-fabricrack-a", "a100-1")


def stepped(
    old: Object | None, new: Object | None, *beside: Object, policy: Policy = POLICY
) -> tuple[str, ...]:
    """Return what is wrong with a step, in a view that has it behind it."""
    after = (new,) if new is not None else ()
    view = b.world(*beside, *after, policy=policy)
    return tuple(str(one) for one in check.step(old, new, view, policy, b.NOW))


# --- steps


@pytest.mark.parametrize(("old", "new"), list(product(ResourceState, repeat=2)))
def test_a_state_is_never_gone_back_to(old: ResourceState, new: ResourceState) -> None:
    found = stepped(b.resource(state=old, conditions=SEEN), b.resource(state=new, conditions=SEEN))
    back = f"resource/a100-1.rack-a: went back from {old} to {new} (rule 2)"
    assert found == ((back,) if list(ResourceState).index(new) < list(ResourceState).index(old) else ())


def guarded(
    state: ResourceState, uid: str = "u", conditions: tuple[Condition, ...] = ()
) -> ComposableResource:
    return b.resource(state=state, finalizers=(FINALIZER,), uid=uid, conditions=conditions)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (None, b.resource(), ""),
        (b.resource(on="n1"), b.resource(on="n2"), "moved from n1 to n2 (rule 2)"),
        (b.resource(), b.resource(annotations={DEVICE: "a/b/c"}), "changed its device (rule 2)"),
        (b.resource(annotations={DEVICE: ""}), b.resource(), ""),
        (b.resource(state=ATTACHING), b.resource(), "is Online before n1 has seen it (rule 6)"),
        (b.resource(state=ATTACHING, conditions=SEEN), b.resource(conditions=SEEN), ""),
        (b.resource(VENDORS, state=ATTACHING), b.resource(VENDORS), ""),
        (b.resource(conditions=SEEN), b.resource(), "is not Visible any more (rule 2)"),
        (b.resource(conditions=LET_GO), b.resource(conditions=SEEN), "is not Released any more (rule 2)"),
        (b.resource(), b.resource(record=CLAIM), ""),
        (b.resource(record=CLAIM), b.resource(record=READY_CLAIM), ""),
        (b.resource(record=CLAIM), b.resource(), ""),
        (
            b.resource(record=CLAIM),
            b.resource(record=b.claim("d")),
            "was recorded for claim default/c and is for default/d (rule 7)",
        ),
        (b.resource(), b.resource(physical="1"), ""),
        (b.resource(physical="1"), b.resource(physical="1"), ""),
        (b.resource(physical="1"), b.resource(physical="2"), "was 1 and is 2"),
        (b.resource(physical="1"), b.resource(), "was 1 and is nothing"),
        (guarded(NEW), None, ""),
        (guarded(ATTACHING), None, "went while Attaching"),
        (guarded(ONLINE), None, "went while Online"),
        (guarded(DETACHING), None, "went while Detaching"),
        (guarded(DETACHING, conditions=(Condition(RELEASED, "True"),)), None, ""),
        (guarded(DELETING), None, ""),
        (guarded(ONLINE), guarded(NEW, uid="v"), "went while Online"),
        (b.resource(state=ONLINE, uid="u"), guarded(NEW, uid="v"), ""),
        (b.resource(state=ONLINE), None, ""),
    ],
)
def test_what_a_resource_is_for_stays_and_it_goes_when_all_is_done(
    old: ComposableResource | None, new: ComposableResource | None, fault: str
) -> None:
    assert stepped(old, new) == ((f"resource/a100-1.rack-a: {fault}",) if fault else ())


ELSEWHERE = b.claim("c", on="n2")
LOST = f"claim/default/c: lost its Ready for {A100_1}"
FAILED_LATE = f"claim/default/c: was failed for {A100_1} after it was Ready (rule 8)"


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        (None, READY_CLAIM, ()),
        (CLAIM, READY_CLAIM, ()),
        (READY_CLAIM, READY_CLAIM, ()),
        (READY_CLAIM, CLAIM, (LOST,)),
        (CLAIM, told(FAILED), ()),
        (READY_CLAIM, told(READY, FAILED), (FAILED_LATE,)),
        (READY_CLAIM, told(READY, RESCHEDULE), (FAILED_LATE,)),
        (READY_CLAIM, told(RESCHEDULE), (LOST, FAILED_LATE)),
        (told(READY, FAILED), told(READY, RESCHEDULE), ()),
        (told(READY, RESCHEDULE), told(READY, FAILED), ()),
        (told(FAILED), told(FAILED, READY), ()),
        (READY_CLAIM, b.claim("c", devices=()), ()),
        (READY_CLAIM, ELSEWHERE, ()),
        (READY_CLAIM, None, ()),
        (READY_CLAIM, b.claim("c", uid="of another"), ()),
        (b.claim("c", devices=()), b.claim("c", devices=()), ()),
        (READY_CLAIM, NODE, ()),
        (NODE, None, ()),
    ],
)
def test_what_a_claim_was_told_holds_while_it_is_allocated(
    old: Object | None, new: Object | None, faults: tuple[str, ...]
) -> None:
    assert stepped(old, new) == faults


# --- steps that depend on what is beside them

HELD_FOR = b.policy(base=Policy(hold_seconds=Seconds(600.0), binding_timeout_seconds=Seconds(600.0)))
IDLE = b.resource(used=b.NOW - 100, physical="1")
GOING = b.resource(used=b.NOW - 100, physical="1", deleted=b.NOW)
WISH = b.request({"a100-2": ""})
OWNER = OwnerReference(
    "cro.hpsys.ibm.ie.com/v1alpha1", "ComposabilityRequest", WISH.metadata.name, Uid("uid-1")
)
EARLY = ("resource/a100-1.rack-a: is returned 500 s before its time, and nobody needs it or its room",)
SHOWN = b.inventory(attached={"1": "n1"})


class Return(NamedTuple):
    """A device that somebody wants back, what is beside it, and whether that is too early."""

    old: ComposableResource = IDLE
    beside: tuple[Object, ...] = (NODE, WISH)
    early: bool = False
    policy: Policy = HELD_FOR


RETURNS = {
    "idle for a while, and nobody needs it": Return(early=True),
    "idle for long": Return(b.resource(used=b.NOW - 600)),
    "not there yet": Return(b.resource(state=ATTACHING, used=b.NOW - 100)),
    "somebody else's": Return(b.resource(annotations={DEVICE: ""}, used=b.NOW - 100)),
    "somebody else's device, in our books": Return(b.resource(foreign="1", used=b.NOW - 100)),
    "of a node that is gone": Return(beside=(WISH,)),
    "of a node that is about to go": Return(beside=(b.node(deleted=b.NOW), WISH)),
    "of a node that takes no more pods": Return(beside=(b.node(cordoned=True), WISH)),
    "missing": Return(b.resource(used=b.NOW - 100, conditions=(Condition(MISSING, "True"),))),
    "of a request that is gone": Return(beside=(NODE,)),
    "of a request in whose place is another": Return(
        b.resource(used=b.NOW - 100, owners=(OWNER,)), beside=(NODE, b.request({"a100-2": ""}, uid="uid-2"))
    ),
    "of a request that is still there": Return(
        b.resource(used=b.NOW - 100, owners=(OWNER,)),
        beside=(NODE, b.request({"a100-2": ""}, uid="uid-1")),
        early=True,
    ),
    "of a request that is going": Return(beside=(NODE, b.request({}, deleted=b.NOW))),
    "of a request by hand": Return(
        b.resource(used=b.NOW - 100, request="by-hand"), beside=(NODE, b.request(1))
    ),
    "of a model that left the policy": Return(
        policy=replace(HELD_FOR, models=(b.model("H100"),)), beside=(NODE, WISH)
    ),
    "still wanted by its request: somebody deleted it": Return(beside=(NODE, b.request({"a100-1": ""}))),
    "given to a claim elsewhere": Return(beside=(NODE, WISH, b.claim("c", on="n2"))),
    "in the way of another claim": Return(beside=(NODE, WISH, b.claim("c", devices=("a100-2",)))),
    "beside a claim that has what it needs": Return(
        beside=(NODE, WISH, b.claim("c", devices=("a100-2",), ready=True)), early=True
    ),
    "beside a claim that was sent away": Return(
        beside=(NODE, WISH, b.claim("c", devices=("a100-2",), told=RESCHEDULE)), early=True
    ),
}


@pytest.mark.parametrize("row", RETURNS.values(), ids=RETURNS.keys())
def test_an_idle_device_stays_for_the_hold_time_unless_somebody_needs_it(row: Return) -> None:
    meta = replace(row.old.metadata, deletion_timestamp=GOING.metadata.deletion_timestamp)
    found = stepped(row.old, replace(row.old, metadata=meta), *row.beside, policy=row.policy)
    assert found == (EARLY if row.early else ())


def test_what_its_manager_does_not_show_may_go_at_once() -> None:
    view = b.world(NODE, WISH, GOING, inventories=(b.inventory(),), policy=HELD_FOR)
    for at in (b.NOW, b.NOW + 1):
        view.ask(b.FABRIC, Seconds(at))
        view.see(b.inventory(), at=Seconds(at))
    assert view.missing_since(GOING) < b.NOW + 10
    assert check.step(IDLE, GOING, view, HELD_FOR, b.NOW) == ()


def test_a_resource_that_goes_on_going_is_not_returned_again() -> None:
    assert stepped(GOING, GOING, NODE, WISH, policy=HELD_FOR) == ()


WAITER = b.pod("p", "c")
TAKEN = f"claim/default/c: was taken {A100_1} while pod default/p waited for it, and nothing on it says why"
NOTHING = b.claim("c", devices=())


@pytest.mark.parametrize(
    ("old", "beside", "fault"),
    [
        (CLAIM, (NODE, WAITER), TAKEN),
        (CLAIM, (NODE,), ""),
        (CLAIM, (NODE, b.pod("p", "c", deleted=b.NOW)), ""),
        (CLAIM, (NODE, b.pod("p", "c", created=b.NOW - 33)), TAKEN),
        (CLAIM, (NODE, b.pod("p", "c", created=b.NOW - 31)), ""),
        (b.claim("c", allocated=b.NOW - 600), (NODE, WAITER), ""),
        (b.claim("c", deleted=b.NOW), (NODE, WAITER), ""),
        (b.claim("c", waits=()), (NODE, WAITER), ""),
        (b.claim("c", reserved=("p",)), (NODE, WAITER), ""),
        (CLAIM, (WAITER,), ""),
        (CLAIM, (b.node(ready="False"), WAITER), ""),
        (CLAIM, (b.node(cordoned=True), WAITER), ""),
        (b.claim("c", told=FAILED), (NODE, WAITER), ""),
        (b.claim("c", told=RESCHEDULE), (NODE, WAITER), ""),
    ],
)
def test_who_waits_keeps_his_device_until_he_is_told_why_not(
    old: ResourceClaim, beside: tuple[Object, ...], fault: str
) -> None:
    assert stepped(old, NOTHING, *beside, policy=HELD_FOR) == ((fault,) if fault else ())


def test_whoever_is_sent_away_is_told_why() -> None:
    fault = f"claim/default/c: was told {RESCHEDULE} for {A100_1} without a reason"
    assert stepped(CLAIM, told(RESCHEDULE)) == ()
    assert stepped(CLAIM, told(RESCHEDULE, why="")) == (fault,)
    assert stepped(told(RESCHEDULE, why=""), told(RESCHEDULE, why="")) == ()


AT_SEVEN = b.claim("c", version="7")
OTHER_VERSION = f"claim/default/c: was told Ready for {A100_1} at version 7; recorded is version 6 (rule 8)"


@pytest.mark.parametrize(
    ("old", "resource", "fault"),
    [
        (AT_SEVEN, b.resource(record=AT_SEVEN), ""),
        (AT_SEVEN, b.resource(record=b.claim("c", version="6")), OTHER_VERSION),
        (AT_SEVEN, b.resource(), ""),
        (AT_SEVEN, None, ""),
        (b.claim("c", version="7", admin=True), b.resource(record=b.claim("c", version="6")), ""),
        (b.claim("c", version="7", devices=(OTHERS,)), None, ""),
    ],
)
def test_ready_is_said_of_the_version_that_is_recorded(
    old: ResourceClaim, resource: ComposableResource | None, fault: str
) -> None:
    new = told(READY, claim=old)
    beside = (NODE, resource) if resource is not None else (NODE,)
    assert stepped(old, new, *beside) == ((fault,) if fault else ())


HELD = b.claim("c", allocated=b.NOW - 33)
UNLISTED = "does not list a100-1 any more, which claim default/c holds"


@pytest.mark.parametrize(
    ("old", "new", "beside", "fault"),
    [
        (listing("s1", "a100-1"), listing("s1", "a100-1"), (HELD,), ""),
        (
            listing("s1", "a100-1"),
            None,
            (HELD,),
            UNLISTED,
        ),
        (
            listing("s1", "a100-1"),
            listing("s1"),
            (HELD,),
            UNLISTED,
        ),
        (listing("s1", "a100-1"), listing("s1"), (HELD, listing("s2", "a100-1")), ""),
        (listing("s1", "a100-1"), listing("s1"), (b.claim("c", allocated=b.NOW - 32),), ""),
        (listing("s1", "a100-1"), listing("s1"), (b.claim("c", allocated=b.NOW - 33),), UNLISTED),
        (listing("s1", "a100-1"), None, (), ""),
        (listing("s1", "a100-1", binds=0), None, (HELD,), ""),
        (listing("s1", "h100-1"), None, (b.claim("c", devices=("h100-1",)),), ""),
    ],
)
def test_what_a_claim_holds_stays_listed(
    old: ResourceSlice, new: ResourceSlice | None, beside: tuple[Object, ...], fault: str
) -> None:
    assert stepped(old, new, *beside) == ((f"slice/s1: {fault}",) if fault else ())
