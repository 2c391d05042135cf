"""The next step of a resource whose device a vendor's driver drives: a view, the plan."""

import pytest
from msgspec.structs import replace

from jackfield.core import attach, guard
from jackfield.model.composition import RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice
from jackfield.model.meta import Condition, Object
from jackfield.model.names import (
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    Time,
    rfc3339,
    rfc3339_micro,
)
from jackfield.model.plan import Detach, FreeResource, PutTaint
from jackfield.model.policy import Policy
from jackfield.model.taint import DeviceTaintRule, DeviceTaintSelector
from jackfield.testing import builders as b
from unit.core.attaching import (
    AGAIN,
    CR,
    FRESH,
    GONE,
    HANDED,
    LEAVES,
    NODE,
    OLD,
    TAINTED,
    VENDOR,
    Row,
    check,
    tainted,
    vendors,
    view,
)
from unit.core.plans import reasons, steps


def left(ago: float | None = None) -> ComposableResource:
    """A resource whose device has left its node; so long ago its driver was seen to have noticed."""
    at = rfc3339(Seconds(b.NOW - ago)) if ago is not None else Time("")
    noticed = (Condition(RELEASED, "True", last_transition_time=at),) * (ago is not None)
    return b.resource(HANDED, state=ResourceState.DELETING, uuid="GPU-7", physical="1", conditions=noticed)


def meaning(rule: DeviceTaintRule, pool: str) -> DeviceTaintRule:
    """A taint of a device that is published on a node."""
    selector = DeviceTaintSelector("gpu.example.com", pool, "gpu-0")
    return replace(rule, spec=replace(rule.spec, device_selector=selector))


def noting(rule: DeviceTaintRule, uid: str) -> DeviceTaintRule:
    """A taint that says which resource it is for."""
    notes = {**rule.metadata.annotations, "jackfield.dev/resource-uid": uid}
    return replace(rule, metadata=replace(rule.metadata, annotations=notes))


LEFT = left()
DETACHING = b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")
CLAIMED = (b.vendor_slice("GPU-7"), TAINTED, b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",)), DETACHING)
LIFTED = ("DropTaint taint/a100-1.rack-a-taint", "FreeResource resource/a100-1.rack-a")
ROWS = {
    "a vendor's device that a claim has": Row(
        (NODE, *CLAIMED),
        wait=("Released",),
        says="claim default/c to give it up",
        policy=vendors(),
    ),
    "a vendor's device that a claim was left with on a node that is gone": LEAVES._replace(there=CLAIMED),
    "a vendor's device on a node that is gone, nobody knows which": LEAVES._replace(
        there=(
            b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",), waits=()),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid=""),
        )
    ),
    "a vendor's device that somebody wants back from a node that is gone, and a claim was left with": Row(
        (
            b.vendor_slice("GPU-7"),
            b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",)),
            b.resource(HANDED, uuid="GPU-7", deleted=b.NOW),
        ),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        policy=vendors(),
    ),
    "a vendor's device that a claim has on a node that is gone, while a pod is bound to it": Row(
        (b.pod("p", on="n1"), *CLAIMED),
        wait=("Released",),
        says="claim default/c to give it up",
        policy=vendors(),
    ),
    "a vendor's device that a claim has, by force": LEAVES._replace(
        there=(
            NODE,
            b.vendor_slice("GPU-7"),
            TAINTED,
            b.claim("c", devices=(f"{VENDOR}/n1/gpu-0",)),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7", force=True),
        )
    ),
    "a vendor's device that nobody has": LEAVES._replace(
        there=(
            NODE,
            b.vendor_slice("GPU-7"),
            TAINTED,
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        )
    ),
    "a vendor's order for a device that has vanished needs no answer": Row(
        (NODE, b.resource(HANDED, state=ResourceState.ATTACHING, physical="")),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        says="a100-1 is not in its fabric's inventory any more",
        shown=("2",),
        looked=GONE,
        policy=vendors(),
    ),
    "a vendor's order that nobody wants is answered first": Row(
        (NODE, b.resource(HANDED, state=ResourceState.ATTACHING, deleted=b.NOW, physical="")),
        do=("Attach 1 at n1 resource/a100-1.rack-a",),
        wait=("Attaching",),
        again_at=AGAIN,
        policy=vendors(),
    ),
    "a vendor's order that nobody wants, where there is no room, is not": Row(
        (NODE, b.resource(HANDED, state=ResourceState.ATTACHING, deleted=b.NOW, physical="")),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        attached=(FabricDevice(PhysicalID("9"), ModelName("A100"), node=NodeName("n1"), ours=False),),
        slots=1,
        policy=vendors(),
    ),
    "a vendor's order that is wanted waits for room": Row(
        (NODE, b.resource(HANDED, state=ResourceState.ATTACHING, physical="")),
        wait=("Room",),
        again_at=Seconds(b.NOW + 200),
        attached=(FabricDevice(PhysicalID("9"), ModelName("A100"), node=NodeName("n1"), ours=False),),
        slots=1,
        policy=vendors(),
    ),
    "a vendor's device that nobody wants is seen first": Row(
        (
            NODE,
            b.resource(
                HANDED,
                state=ResourceState.ATTACHING,
                deleted=b.NOW,
                uuid="GPU-7",
                physical="1",
                created=b.NOW,
            ),
        ),
        wait=("Visible",),
        again_at=Seconds(b.NOW + 300),
        policy=vendors(),
    ),
    "a vendor's device that its driver never shows": Row(
        (
            NODE,
            b.resource(
                HANDED, state=ResourceState.ATTACHING, deleted=b.NOW, uuid="GPU-7", physical="1", created=OLD
            ),
        ),
        do=("MarkState Detaching resource/a100-1.rack-a",),
        policy=vendors(),
    ),
    "a vendor's device that is not tainted yet": Row(
        (NODE, b.vendor_slice("GPU-7"), b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")),
        do=("PutTaint taint/a100-1.rack-a-taint",),
        policy=vendors(),
    ),
    "a vendor's device whose taint is fresh": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            FRESH,
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        ),
        wait=("Tainted",),
        again_at=Seconds(b.NOW + 1),
        policy=vendors(),
    ),
    "a vendor's device whose taint is old by an API's clock that is behind ours": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            tainted(60, ours=9),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        ),
        wait=("Tainted",),
        again_at=Seconds(b.NOW + 1),
        policy=vendors(),
    ),
    "a vendor's device whose taint is old by our clock that is behind the API's": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            tainted(9, ours=60),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        ),
        wait=("Tainted",),
        again_at=Seconds(b.NOW + 1),
        policy=vendors(),
    ),
    "a taint that was written when its resource had gone": Row(
        (NODE, noting(TAINTED, "before")),
        do=("DropTaint taint/a100-1.rack-a-taint",),
        says="the resource that it was written for is gone",
        policy=vendors(),
    ),
    "a taint that somebody else wrote is not ours to lift": Row(
        (NODE, replace(TAINTED, metadata=replace(TAINTED.metadata, annotations={}))),
        policy=vendors(),
    ),
    "a taint that an earlier resource left keeps nobody from the device of the next": Row(
        (NODE, noting(TAINTED, "before"), b.resource(HANDED, uuid="GPU-7")),
        do=("DropTaint taint/a100-1.rack-a-taint",),
        policy=vendors(),
    ),
    "a taint that an earlier resource left does not keep the next from coming": Row(
        (NODE, noting(TAINTED, "before"), b.resource(HANDED, state=ResourceState.NEW)),
        do=("MarkState Attaching resource/a100-1.rack-a",),
        policy=vendors(),
    ),
    "a taint that an earlier resource left does not guard the next as it leaves": Row(
        (NODE, b.vendor_slice("GPU-7"), noting(TAINTED, "before"), DETACHING),
        do=("DropTaint taint/a100-1.rack-a-taint",),
        policy=vendors(),
    ),
    "a taint of this very resource": Row(
        (NODE, b.vendor_slice("GPU-7"), noting(FRESH, DETACHING.uid), DETACHING),
        wait=("Tainted",),
        again_at=Seconds(b.NOW + 1),
        policy=vendors(),
    ),
    "a vendor's device whose taint means the device of another node": Row(
        (
            NODE,
            b.vendor_slice("GPU-7"),
            meaning(TAINTED, "n2"),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        ),
        do=("DropTaint taint/a100-1.rack-a-taint",),
        says="it is not what keeps gpu.example.com/n1/gpu-0 from being given away",
        policy=vendors(),
    ),
    "a vendor's device whose taint means this very device": LEAVES._replace(
        there=(
            NODE,
            b.vendor_slice("GPU-7"),
            meaning(TAINTED, "n1"),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        )
    ),
    "a vendor's device that only the node it came from still offers": Row(
        (
            NODE,
            b.vendor_slice("GPU-7", on="n2"),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        ),
        do=("PutTaint taint/a100-1.rack-a-taint",),
        policy=vendors(),
    ),
    "a vendor's device that its driver shows no more, and may show again": Row(
        (NODE, b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")),
        do=("PutTaint taint/a100-1.rack-a-taint",),
        policy=vendors(),
    ),
    "a vendor's device that its driver shows no more, kept for long enough": LEAVES._replace(
        there=(NODE, TAINTED, b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"))
    ),
    "a vendor's device that its driver shows no more, kept by its name": LEAVES._replace(
        there=(
            NODE,
            meaning(TAINTED, "n1"),
            b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),
        )
    ),
    "a vendor's device that could not be attached": LEAVES._replace(
        there=(NODE, b.resource(HANDED, state=ResourceState.DETACHING, error="it does not answer"))
    ),
    "a vendor's device on a node that is gone": LEAVES._replace(
        there=(b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7"),)
    ),
    "a vendor's device where the API has no taint rules": Row(
        (NODE, b.vendor_slice("GPU-7"), b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")),
        do=("Detach 1 at n1 resource/a100-1.rack-a",),
        wait=("Detaching",),
        again_at=AGAIN,
        policy=replace(vendors(), taint_rules=False),
    ),
    "a vendor's device that has left while its driver goes on offering it": Row(
        (NODE, TAINTED, b.vendor_slice("GPU-7"), LEFT),
        wait=("Offered",),
        says="the driver on n1 to offer 1 no more",
        policy=vendors(),
    ),
    "a vendor's device that has left, as its driver has noticed": Row(
        (NODE, TAINTED, LEFT),
        do=("MarkReleased resource/a100-1.rack-a",),
        says="the driver on n1 offers it no more",
        policy=vendors(),
    ),
    "a vendor's device of which a scheduler may not know that it has left": Row(
        (NODE, TAINTED, left(ago=9)),
        wait=("Tainted",),
        says="every scheduler to have heard that its driver offers it no more",
        again_at=Seconds(b.NOW + 1),
        policy=vendors(),
    ),
    "a vendor's device that is back in the pool": Row(
        (NODE, TAINTED, left(ago=10)), do=LIFTED, policy=vendors()
    ),
    "a vendor's device of a node that is gone": Row(
        (TAINTED, b.vendor_slice("GPU-7"), LEFT), do=LIFTED, policy=vendors()
    ),
    "a vendor's device that has come back for somebody else": Row(
        (NODE, TAINTED, b.vendor_slice("GPU-7"), LEFT),
        do=LIFTED,
        attached=(FabricDevice(PhysicalID("1"), b.MODEL, node=b.NODE, order=OrderID("another")),),
        policy=vendors(),
    ),
    "a vendor's device that its manager was last seen to have there for us": Row(
        (NODE, TAINTED, b.vendor_slice("GPU-7"), LEFT),
        wait=("Offered",),
        attached=(FabricDevice(PhysicalID("1"), b.MODEL, node=b.NODE, order=LEFT.order),),
        policy=vendors(),
    ),
    "a vendor's device that was never offered": Row(
        (NODE, LEFT), do=("FreeResource resource/a100-1.rack-a",), policy=vendors()
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_next_step_of_a_vendors_resource(row: Row) -> None:
    check(row)


LEAVING = b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7", physical="1")
OURS = b.resource(state=ResourceState.DETACHING, physical="1", conditions=(Condition(RELEASED, "True"),))


@pytest.mark.parametrize(
    ("there", "policy", "asked"),
    [
        pytest.param(
            (LEAVING, TAINTED), vendors(), True, id="a vendor's: claims that we have not heard of may have it"
        ),
        pytest.param((OURS,), b.policy(), False, id="ours: its plugin has said that nobody has it"),
        pytest.param(
            (replace(LEAVING, spec=replace(LEAVING.spec, force_detach=True)),),
            vendors(),
            False,
            id="by force, whoever has it",
        ),
    ],
)
def test_the_api_is_asked_who_has_a_vendors_device_before_it_is_detached(
    there: tuple[Object, ...], policy: Policy, *, asked: bool
) -> None:
    plan = attach.decide(view(Row((NODE, *there), policy=policy)), CR, policy, b.NOW)
    assert [(type(one), getattr(one, "ask", None)) for one in plan.actions] == [(Detach, asked)]


@pytest.mark.parametrize(
    ("there", "policy", "asked"),
    [
        ((NODE, OURS), b.policy(), (False, False)),
        ((replace(OURS, status=replace(OURS.status, conditions=())),), b.policy(), (True, True)),
        ((NODE, LEAVING, TAINTED), vendors(), (False, False)),
        ((LEAVING,), vendors(), (True, True)),
        ((LEAVING, b.pod("p", on="n1")), vendors(), (True, False)),
        ((replace(LEAVING, spec=replace(LEAVING.spec, force_detach=True)),), vendors(), (False, False)),
    ],
    ids=[
        "its plugin has released it",
        "its node is gone",
        "its taint keeps it from others",
        "its node is gone, and nothing there needs a taint",
        "its node is gone, and pods are bound to it that do not have it",
        "by force, whoever has it",
    ],
)
def test_the_api_is_asked_for_a_node_whose_end_alone_says_that_nobody_has_a_device(
    there: tuple[Object, ...], policy: Policy, asked: tuple[bool, bool]
) -> None:
    (detach,) = attach.decide(view(Row(there, policy=policy)), CR, policy, b.NOW).actions
    assert isinstance(detach, Detach)
    assert (detach.gone, detach.empty) == asked


def test_a_taint_says_when_it_was_written_by_our_own_clock_and_for_which_resource() -> None:
    leaving = b.resource(HANDED, state=ResourceState.DETACHING, uuid="GPU-7")
    plan = guard.unguarded(b.world(NODE, b.vendor_slice("GPU-7"), leaving), leaving, vendors(), b.NOW)
    assert plan is not None
    [put] = plan.actions
    assert isinstance(put, PutTaint)
    assert put.rule.metadata.annotations == {
        "jackfield.dev/tainted": rfc3339_micro(b.NOW),
        "jackfield.dev/resource-uid": leaving.uid,
    }


@pytest.mark.parametrize("there", [(TAINTED, DETACHING), (TAINTED, left(ago=10))], ids=["tainted", "noticed"])
def test_what_has_just_been_heard_of_is_not_old_whatever_the_clocks_say(there: tuple[Object, ...]) -> None:
    """A process whose clock is ahead, and that has just started, takes all that others wrote for old."""
    slices = (b.vendor_slice("GPU-7"),) if DETACHING in there else ()
    store = view(Row((NODE, *slices), policy=vendors()))
    store.clock = lambda: Seconds(b.NOW - 4)
    for one in there:
        store.put(one)
    plan = attach.decide(store, CR, vendors(), b.NOW)
    assert (steps(plan), reasons(plan), plan.again_at) == ((), ("Tainted",), Seconds(b.NOW + 6))


def test_who_lets_a_vendors_device_go_looks_for_a_taint_that_he_has_not_heard_of() -> None:
    for policy, taint in ((vendors(), f"{CR}-taint"), (replace(vendors(), taint_rules=False), "")):
        plan = attach.decide(view(Row((NODE, LEFT), policy=policy)), CR, policy, b.NOW)
        (free,) = plan.actions
        assert isinstance(free, FreeResource)
        assert free.taint == taint
    (ours,) = attach.decide(
        view(Row((NODE, b.resource(state=ResourceState.DELETING)))), CR, b.policy(), b.NOW
    ).actions
    assert isinstance(ours, FreeResource)
    assert ours.taint == ""
