"""What must never be seen is seen when it is there, and nothing else is taken for it."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.core import check
from jackfield.model.composition import (
    DEVICE,
    VISIBLE,
    ComposableResource,
    ResourceState,
)
from jackfield.model.fabric import Inventory, Traits
from jackfield.model.meta import Condition, Object
from jackfield.model.names import DeviceID
from jackfield.model.policy import DRIVER, FAILED, SLICE_DEVICES_MAX, Policy
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
VENDORS = DeviceID("gpu.example.com", "a100-fabricrack-a", "a100-1")


class Row(NamedTuple):
    """An object, what is beside it, and what is wrong with it."""

    about: Object
    beside: tuple[Object, ...] = (NODE,)
    faults: tuple[str, ...] = ()
    policy: Policy = POLICY
    inventories: tuple[Inventory, ...] = ()


def faults(row: Row) -> tuple[str, ...]:
    view = b.world(row.about, *row.beside, policy=row.policy, inventories=row.inventories)
    found = check.state(view, row.about, row.policy)
    return tuple(str(one) for one in found)


def odd(resource: ComposableResource) -> ComposableResource:
    return replace(resource, metadata=replace(resource.metadata, name="odd"))


# --- resources

MISNAMED = f"resource/odd: is not called as its device {A100_1} is: a second one could exist (rule 1)"
UNRECORDED = "resource/a100-1.rack-a: is held by uid-c, which is not recorded (rule 10)"


def torn(state: ResourceState) -> tuple[str]:
    return (f"resource/a100-1.rack-a: is {state} while recorded or held (rule 13)",)


RESOURCES = {
    "idle": Row(b.resource()),
    "recorded": Row(SERVING),
    "recorded and held": Row(b.resource(record=CLAIM, holder="uid-c")),
    "with a name of its own": Row(odd(b.resource()), faults=(MISNAMED,)),
    "with a name of its own, of a model that left the policy": Row(
        odd(b.resource(state=DETACHING, holder="uid-c")), faults=(MISNAMED,), policy=b.policy("H100")
    ),
    "with a name of its own, taken by force": Row(
        odd(b.resource(state=DETACHING, holder="uid-c", force=True)), faults=(MISNAMED,)
    ),
    "made by somebody else": Row(
        odd(b.resource(state=DETACHING, holder="uid-c", annotations={DEVICE: ""})),
    ),
    "of a device that is in no fabric": Row(odd(b.resource(OTHERS, state=DETACHING, holder="uid-c"))),
    "held and not recorded": Row(b.resource(holder="uid-c"), faults=(UNRECORDED,)),
    "held by another claim than the recorded one": Row(
        b.resource(holder="uid-c", record=b.claim("other")), faults=(UNRECORDED,)
    ),
    "held and not recorded, on a node that is gone": Row(b.resource(holder="uid-c"), beside=()),
    "leaving": Row(b.resource(state=DETACHING)),
    "leaving while recorded": Row(b.resource(state=DETACHING, record=CLAIM), faults=torn(DETACHING)),
    "leaving while held": Row(b.resource(state=DETACHING, holder="u"), beside=(), faults=torn(DETACHING)),
    "gone while recorded": Row(b.resource(state=DELETING, record=CLAIM), faults=torn(DELETING)),
    "gone while held": Row(b.resource(state=DELETING, holder="u"), beside=(), faults=torn(DELETING)),
    "with a device of its own": Row(b.resource(physical="1"), beside=(b.resource("a100-2", physical="2"),)),
    "with a device that an earlier one has": Row(
        b.resource("a100-2", physical="1"),
        beside=(b.resource(physical="1"),),
        faults=("resource/a100-2.rack-a: has 1, which a100-1.rack-a has as well",),
    ),
    "with a device that one has whose order is being closed": Row(
        b.resource("a100-2", physical="1"),
        beside=(b.resource(physical="1", state=DETACHING),),
        inventories=(b.inventory(),),
    ),
    "with a device that another has, while its own order is being closed": Row(
        b.resource("a100-2", physical="1", state=DELETING),
        beside=(b.resource(physical="1"),),
        inventories=(b.inventory(),),
    ),
    "with a device that another has, while a manager that knows no orders takes it": Row(
        b.resource("a100-2", physical="1", state=DETACHING),
        beside=(b.resource(physical="1"),),
        faults=("resource/a100-2.rack-a: has 1, which a100-1.rack-a has as well",),
        inventories=(b.inventory(traits=Traits(knows_orders=False)),),
    ),
    "with a device of the same id in another fabric": Row(
        b.resource(DeviceID(DRIVER, "rack-b", "a100-2"), physical="1"), beside=(b.resource(physical="1"),)
    ),
    "without a device, as others are": Row(b.resource("a100-2"), beside=(b.resource(),)),
}

# --- claims


def with_ready(words: str) -> tuple[str]:
    return (f"claim/default/c: is Ready {words}",)


CLAIMS = {
    "not allocated": Row(b.claim("c", devices=())),
    "waiting": Row(CLAIM),
    "failed": Row(told(FAILED)),
    "ready and served": Row(READY_CLAIM, beside=(NODE, SERVING)),
    "ready with another driver's device": Row(b.claim("c", devices=(OTHERS,), ready=True)),
    "ready with admin access": Row(b.claim("c", ready=True, admin=True)),
    "ready, nothing attached": Row(READY_CLAIM, faults=with_ready(f"with {A100_1}, which nothing attached")),
    "ready, nothing attached, its node gone": Row(READY_CLAIM, beside=()),
    "ready with two, one attached": Row(
        b.claim("c", devices=("a100-1", "a100-2"), ready=True),
        beside=(NODE, SERVING),
        faults=with_ready(f"with {DRIVER}/rack-a/a100-2, which nothing attached"),
    ),
    "ready with an admin's and one of its own": Row(
        b.claim("c", devices=(OTHERS, "a100-1"), ready=True),
        faults=with_ready(f"with {A100_1}, which nothing attached"),
    ),
    "ready with what is elsewhere": Row(
        READY_CLAIM,
        beside=(NODE, b.resource(on="n2", record=CLAIM)),
        faults=with_ready(f"on n1 with {A100_1}, which is on n2"),
    ),
    "ready too early": Row(
        READY_CLAIM,
        beside=(NODE, b.resource(state=ATTACHING, record=CLAIM)),
        faults=with_ready(f"with {A100_1}, which is Attaching"),
    ),
    "ready without a record": Row(
        READY_CLAIM,
        beside=(NODE, b.resource()),
        faults=with_ready(f"with {A100_1}, and no record protects it"),
    ),
    "ready with another claim's record": Row(
        READY_CLAIM,
        beside=(NODE, b.resource(record=b.claim("other"))),
        faults=with_ready(f"with {A100_1}, and no record protects it"),
    ),
    "ready with what is taken by force": Row(
        READY_CLAIM, beside=(NODE, b.resource(state=DETACHING, force=True))
    ),
    "ready, as another is": Row(
        READY_CLAIM,
        beside=(NODE, SERVING, b.claim("d", ready=True)),
        faults=with_ready(f"with {A100_1}, and so is default/d"),
    ),
    "ready, as another is not": Row(READY_CLAIM, beside=(NODE, SERVING, b.claim("d"))),
    "ready, and recorded on what it was not given": Row(
        READY_CLAIM,
        beside=(NODE, SERVING, b.resource("a100-2", record=CLAIM)),
        faults=("claim/default/c: is Ready, and recorded on a100-2.rack-a as well (rule 7)",),
    ),
    "ready, and an earlier one of its name recorded elsewhere": Row(
        READY_CLAIM,
        beside=(NODE, SERVING, b.resource("a100-2", record=b.claim("c", uid="earlier"))),
    ),
    "waiting, and recorded on what it had before": Row(
        CLAIM, beside=(NODE, b.resource("a100-2", record=CLAIM))
    ),
}

# --- pods

PODS = {
    "not bound": Row(b.pod("p", "c")),
    "bound with nothing to ask for": Row(b.pod("p", on="n1")),
    "bound, its claim allocated there": Row(b.pod("p", "c", on="n1"), beside=(NODE, READY_CLAIM)),
    "bound, its claim gone": Row(b.pod("p", "c", on="n1")),
    "bound, its claim usable anywhere": Row(b.pod("p", "c", on="n1"), beside=(NODE, b.claim("c", on=""))),
    "bound, its claim not allocated": Row(
        b.pod("p", "c", on="n1"),
        beside=(NODE, b.claim("c", devices=())),
        faults=("pod/default/p: is bound to n1, and claim default/c is not allocated",),
    ),
    "bound, its claim not allocated, its node gone": Row(
        b.pod("p", "c", on="n1"), beside=(b.claim("c", devices=()),)
    ),
    "bound, its claim allocated elsewhere": Row(
        b.pod("p", "c", on="n1"),
        beside=(NODE, b.claim("c", on="n2")),
        faults=("pod/default/p: is bound to n1, and claim default/c has its devices on n2",),
    ),
    "ended, its claim not allocated": Row(
        b.pod("p", "c", on="n1", phase="Succeeded"), beside=(NODE, b.claim("c", devices=()))
    ),
}

# --- slices


FULL = [f"a100-{number}" for number in range(SLICE_DEVICES_MAX)]
SLICES = {
    "full": Row(listing("s1", *FULL)),
    "over-full": Row(listing("s1", *FULL, "a100-x"), faults=("slice/s1: has 65 entries, more than 64",)),
    "over-full, of another driver": Row(listing("s1", *FULL, "a100-x", binds=0)),
    "over-full, one entry ours": Row(
        listing("s1", *FULL, "a100-x", binds=1), faults=("slice/s1: has 65 entries, more than 64",)
    ),
    "beside another": Row(listing("s2", "a100-2"), beside=(listing("s1", "a100-1"),)),
    "with what an earlier one lists": Row(
        listing("s2", "a100-2", "a100-1"),
        beside=(listing("s1", "a100-1"),),
        faults=("slice/s2: lists a100-1, and so does s1",),
    ),
}


@pytest.mark.parametrize("row", RESOURCES.values(), ids=RESOURCES.keys())
def test_a_resource_is_as_it_should_be_or_is_told_apart(row: Row) -> None:
    assert faults(row) == row.faults


@pytest.mark.parametrize("row", CLAIMS.values(), ids=CLAIMS.keys())
def test_a_claim_that_is_ready_can_be_used_or_is_told_apart(row: Row) -> None:
    assert faults(row) == row.faults


@pytest.mark.parametrize("row", PODS.values(), ids=PODS.keys())
def test_a_pod_that_is_bound_has_what_it_asked_for_or_is_told_apart(row: Row) -> None:
    assert faults(row) == row.faults


@pytest.mark.parametrize("row", SLICES.values(), ids=SLICES.keys())
def test_a_slice_is_as_it_should_be_or_is_told_apart(row: Row) -> None:
    assert faults(row) == row.faults


@pytest.mark.parametrize("one", [listing("s1", "a100-1"), b.resource(physical="1")])
def test_what_the_view_has_not_heard_of_collides_with_nothing(one: Object) -> None:
    assert check.state(b.world(), one, POLICY) == ()


def test_nothing_is_asked_of_other_kinds() -> None:
    for one in (NODE, b.request({"a100-1": "c"})):
        assert faults(Row(one)) == ()


def test_every_fault_has_a_meaning() -> None:
    assert list(check.MEANINGS) == list(check.Checker)
    assert all(one.why and one.remedy for one in check.MEANINGS.values())
