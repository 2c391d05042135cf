"""A request becomes resources: what comes, what goes, what is shown, who is woken."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from jackfield.controllers.store import Store
from jackfield.core import compose
from jackfield.model.composition import (
    DEVICE,
    FINALIZER,
    MANAGED_BY,
    AllocationPolicy,
    ChildStatus,
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    ComposableResourceSpec,
    RequestState,
    ResourceState,
)
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.meta import Object, ObjectMeta, OwnerReference
from jackfield.model.names import (
    NEVER,
    Key,
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    Uid,
    Version,
)
from jackfield.model.plan import (
    AnyAction,
    DeleteResource,
    FreeRequest,
    KeepRequest,
    Phase,
    Plan,
    PutRequestStatus,
    PutResource,
)
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import Delta, FactsChanged, InventoryChanged, ObjectChanged, SupplyChanged
from jackfield.testing import builders as b
from unit.core.plans import reasons, steps, words

POLICY = b.policy()
OURS = "jackfield-a100-n1"
KEPT = (FINALIZER,)
STAGE: tuple[Object, ...] = (b.node(), b.heartbeat())
LONG_IDLE = b.NOW - POLICY.hold_seconds
FOUR = b.inventory(models={"A100": 4})


def put(number: int) -> str:
    return f"PutResource on n1 resource/a100-{number}.rack-a"


def delete(number: int) -> str:
    return f"DeleteResource resource/a100-{number}.rack-a"


def child(number: int, **meta: object) -> ComposableResource:
    name, physical = f"a100-{number}", str(number)
    return b.resource(name, physical=physical, request="by-hand", **meta)  # type: ignore[arg-type] # passed on


def by_hand(size: int, **meta: object) -> ComposabilityRequest:
    return b.request(size, finalizers=KEPT, **meta)  # type: ignore[arg-type] # passed on


def named(*wanted: str, was: RequestState = RequestState.NEW) -> ComposabilityRequest:
    return b.request(dict.fromkeys(wanted, "c"), status=ComposabilityRequestStatus(state=was))


def shown(plan: Plan) -> ComposabilityRequestStatus:
    (status,) = (one.status for one in plan.actions if isinstance(one, PutRequestStatus))
    return status


def effects(plan: Plan) -> tuple[str, ...]:
    """All but what is shown on the request."""
    return tuple(step for step in steps(plan) if not step.startswith("PutRequestStatus"))


class Row(NamedTuple):
    """What there is besides node and heartbeat, and what is to come of it."""

    there: tuple[Object, ...]
    do: tuple[str, ...] = ()
    state: RequestState = RequestState.UPDATING
    error: str = ""
    inventories: tuple[Inventory, ...] = (FOUR,)


NAMED = {
    "what is wanted is created": Row((named("a100-1", "a100-2"),), (put(1), put(2))),
    "what is there is not created again": Row((named("a100-1", "a100-2"), b.resource("a100-1")), (put(2),)),
    "all there and online: nothing is wrong, so nothing is said": Row(
        (named("a100-1"), b.resource("a100-1"))
    ),
    "all there and online, after something was wrong": Row(
        (named("a100-1", was=RequestState.UPDATING), b.resource("a100-1")), state=RequestState.RUNNING
    ),
    "what was put into the books a moment ago is not in the wish yet": Row(
        (named("a100-1"), b.resource("a100-1"), b.resource("a100-2", state=ResourceState.NEW))
    ),
    "all there and not online": Row((named("a100-1"), b.resource("a100-1", state=ResourceState.ATTACHING))),
    "online and on its way out": Row((named("a100-1"), b.resource("a100-1", deleted=b.NOW))),
    "what is not wanted any more goes": Row(
        (named("a100-1"), b.resource("a100-1"), b.resource("a100-2", used=LONG_IDLE)), (delete(2),)
    ),
    "nothing is created for a node that is gone": Row(
        (b.request({"a100-1": "c"}, on="gone", name="jackfield-a100-n1"),),
        error="node gone, which is gone, to come back",
    ),
    "what goes already is not deleted twice": Row(
        (named("a100-1"), b.resource("a100-2", deleted=b.NOW)), (put(1),)
    ),
    "what stands on another node is waited for": Row(
        (named("a100-1", "a100-2"), b.resource("a100-1", on="n2"), b.resource("a100-2")),
        error="a100-1 to come back from another node",
    ),
    "what was taken by force does not come back to the same pod": Row(
        (named("a100-1", "a100-2"), b.claim("c", devices=("a100-1",), ready=True)),
        (put(2),),
        error="the pods that a100-1 was taken from by force to end",
    ),
    "both at once": Row(
        (named("a100-1", "a100-2"), b.claim("c", ready=True), b.resource("a100-2", on="n2")),
        error="a100-2 to come back from another node; the pods that a100-1 was taken",
    ),
    "what a claim waits for is created": Row((named("a100-1"), b.claim("c")), (put(1),)),
    "what has just failed for a claim is not tried again for it": Row(
        (named("a100-1"), b.claim("c"), b.node(failures={"a100-1": b.NOW}, version="2"))
    ),
    "what failed before the claim was given it is tried": Row(
        (
            named("a100-1"),
            b.claim("c", allocated=b.NOW),
            b.node(failures={"a100-1": b.NOW - 60}, version="2"),
        ),
        (put(1),),
    ),
    "what failed and is given to nobody is tried": Row(
        (named("a100-1"), b.claim("c", devices=()), b.node(failures={"a100-1": b.NOW}, version="2")),
        (put(1),),
    ),
}

CHOSEN = {
    "so many": Row((by_hand(2),), (put(1), put(2))),
    "two become three: one more, never five": Row((by_hand(3), child(1), child(2)), (put(3),)),
    "those under way count": Row(
        (by_hand(3), child(1, state=ResourceState.NEW), child(2, state=ResourceState.ATTACHING)), (put(3),)
    ),
    "those on their way out do not": Row(
        (by_hand(2), child(1), child(2, deleted=b.NOW), child(3, state=ResourceState.DETACHING)), (put(4),)
    ),
    "as many as there should be": Row((by_hand(2), child(1), child(2)), state=RequestState.RUNNING),
    "more than there should be": Row(
        (by_hand(1), child(1, used=b.NOW - 5), child(2, used=b.NOW - 9)), (delete(2),)
    ),
    "none at all": Row((by_hand(0), child(1), child(2)), (delete(1), delete(2))),
    "none, and none there": Row((by_hand(0),), state=RequestState.RUNNING),
    "none on different nodes": Row(
        (by_hand(0, on="", by=AllocationPolicy.DIFFERENTNODE), child(1)), (delete(1),)
    ),
    "some of them: the rest is waited for": Row(
        (by_hand(8),), (put(1), put(2), put(3), put(4)), error="4 more of A100 to be free"
    ),
    "a child of another model goes, and another comes": Row(
        (by_hand(1), b.resource("t4-1", model="T4", request="by-hand")),
        (put(1), "DeleteResource resource/t4-1.rack-a"),
    ),
    "a child on the wrong node goes, and another comes": Row(
        (by_hand(1), b.node("n2"), child(2, on="n2")), (put(1), delete(2))
    ),
    "a model that nobody knows": Row((by_hand(1, of="H200"),), error="the policy has no model 'H200'"),
    "an older request for the same: the younger is told, and keeps what it has": Row(
        (by_hand(1), child(1), by_hand(1, name="older", created=b.NOW - 500)),
        error="older is older and asks for the same",
    ),
}


FOUND = FabricDevice(PhysicalID("1"), b.MODEL, node=NodeName("n2"), order=OrderID("lost"))
STRAYS = {
    "an order of ours that is in no books": (FOUND, (put(2),)),
    "attached by somebody else: the manager will say no": (replace(FOUND, ours=False), (put(1), put(2))),
    "attached without an order: it fills the slot": (replace(FOUND, order=""), (put(1), put(2))),
    "in the pool": (replace(FOUND, node="", order=""), (put(1), put(2))),
}


@pytest.mark.parametrize("row", STRAYS)
def test_what_an_unknown_order_has_gets_no_second_one(row: str) -> None:
    device, done = STRAYS[row]
    seen = b.showing(FOUR, device)
    plan = compose.decide(
        b.world(*STAGE, named("a100-1", "a100-2"), inventories=(seen,)), OURS, POLICY, b.NOW
    )
    assert steps(plan) == done, "nothing is shown on the request: it is over soon"
    if done == (put(2),):
        assert plan.waiting[0].what == "a100-1, attached and in nobody's books, to be put there"
        assert plan.again_at == b.NOW + POLICY.poll_seconds
    else:
        assert plan.again_at == NEVER


HELD = b.claim("since", devices=("a100-2",))
USED = {
    "nobody has had it for long": ((b.resource("a100-2", used=LONG_IDLE),), (delete(2),)),
    "it fell idle a moment ago": ((b.resource("a100-2", used=b.NOW - 1),), ()),
    "it fell idle a moment ago, and leaves already": (
        (b.resource("a100-2", state=ResourceState.DETACHING, used=b.NOW - 1),),
        (delete(2),),
    ),
    "a claim was given it": ((b.resource("a100-2"), HELD), ()),
    "a claim was given it by its driver's name": (
        (
            b.resource("a100-2", uuid="GPU-2"),
            b.vendor_slice("GPU-2"),
            b.claim("since", devices=(b.device("gpu-0", fabric="n1", driver="gpu.example.com"),)),
        ),
        (),
    ),
    "a claim is recorded on it": ((b.resource("a100-2", record=HELD),), ()),
    "a pod has it": ((b.resource("a100-2", holder="uid"),), ()),
    "a claim on another node was given it": (
        (b.resource("a100-2"), b.claim("since", devices=("a100-2",), on="n2", ready=True)),
        (delete(2),),
    ),
    "a claim on another node was given it and is turned down there": (
        (b.resource("a100-2"), b.claim("since", devices=("a100-2",), on="n2")),
        (),
    ),
    "it leaves already, whoever was given it": (
        (b.resource("a100-2", state=ResourceState.DETACHING), HELD),
        (delete(2),),
    ),
}


@pytest.mark.parametrize("row", USED)
def test_what_a_node_is_to_keep_stays_though_the_wish_does_not_name_it_yet(row: str) -> None:
    there, done = USED[row]
    plan = compose.decide(b.world(*STAGE, named("a100-1"), b.resource("a100-1"), *there), OURS, POLICY, b.NOW)
    assert steps(plan) == done
    assert ("a100-2.rack-a, which the node is to keep, to be wanted again" in words(plan)) == (not done)
    assert plan.again_at == (NEVER if done else b.NOW + POLICY.poll_seconds)


@pytest.mark.parametrize(("holder", "done"), [("", (delete(2),)), ("uid", ())])
def test_of_a_model_that_has_left_the_policy_only_what_is_in_use_stays(
    holder: str, done: tuple[str, ...]
) -> None:
    there = (b.resource("a100-1"), b.resource("a100-2", used=b.NOW - 1, holder=holder))
    plan = compose.decide(b.world(*STAGE, named("a100-1"), *there), OURS, replace(POLICY, models=()), b.NOW)
    assert steps(plan) == done


def view(row: Row) -> Store:
    return b.world(*STAGE, *row.there, inventories=row.inventories)


@pytest.mark.parametrize(
    "row", [*NAMED.values(), *CHOSEN.values()], ids=[*NAMED, *(f"chosen: {one}" for one in CHOSEN)]
)
def test_what_comes_and_goes_for_a_request(row: Row) -> None:
    request = next(one for one in row.there if isinstance(one, ComposabilityRequest))
    plan = compose.decide(view(row), request.metadata.name, POLICY, b.NOW)
    assert effects(plan) == row.do
    if request.scalers and row.state is RequestState.UPDATING and not row.error:
        assert not any(isinstance(one, PutRequestStatus) for one in plan.actions)
    else:
        assert shown(plan).state is row.state
        assert row.error in shown(plan).error
        assert bool(shown(plan).error) == bool(row.error)
    assert reasons(plan) == (("Composing",) if row.error else ())
    assert row.error in words(plan)


OWNED = (OwnerReference("v1", "ComposabilityRequest", OURS, Uid("u")),)
LOST = {
    "nothing": ((), ()),
    "what is in the books for it goes": ((b.resource("a100-1"),), (delete(1),)),
    "what it owned, Kubernetes deletes": ((b.resource("a100-1", owners=OWNED),), ()),
    "what goes already": ((b.resource("a100-1", deleted=b.NOW),), ()),
    "what has just been found": ((b.resource("a100-1", state=ResourceState.NEW),), ()),
    "what is being attached": ((b.resource("a100-1", state=ResourceState.ATTACHING),), ()),
    "what is not ours": ((b.resource("a100-1", annotations={DEVICE: ""}),), ()),
}


@pytest.mark.parametrize(("there", "do"), LOST.values(), ids=LOST)
def test_what_a_request_leaves_behind_is_returned(there: tuple[Object, ...], do: tuple[str, ...]) -> None:
    assert steps(compose.decide(b.world(*there), OURS, POLICY, b.NOW)) == do


def test_a_request_is_kept_before_anything_is_made_for_it() -> None:
    there = b.world(*STAGE, b.request(1, version="7"), inventories=(FOUR,))
    assert compose.decide(there, "by-hand", POLICY, b.NOW).actions == (
        KeepRequest(
            phase=Phase.COMPOSED,
            request="by-hand",
            version=Version("7"),
            because="its devices must be returned before it goes",
        ),
    )


def test_a_resource_is_named_for_its_device_and_says_whose_it_is() -> None:
    policy = b.policy(DeviceModel(0, ModelName("CXL"), "cxl", type="cxlmemory"))
    request = by_hand(1, of="CXL", type="cxlmemory", force=True)
    there = b.world(*STAGE, request, inventories=(b.inventory(models={"CXL": 1}),), policy=policy)
    put_resource = compose.decide(there, "by-hand", policy, b.NOW).actions[0]
    assert put_resource == PutResource(
        phase=Phase.COMPOSED,
        resource=ComposableResource(
            metadata=ObjectMeta(
                name="cxl-1.rack-a",
                labels={MANAGED_BY: "by-hand"},
                annotations={DEVICE: "fabric.jackfield.dev/rack-a/cxl-1"},
                finalizers=(FINALIZER,),
                owner_references=(
                    OwnerReference(
                        "cro.hpsys.ibm.ie.com/v1alpha1", "ComposabilityRequest", "by-hand", request.uid
                    ),
                ),
            ),
            spec=ComposableResourceSpec("cxlmemory", ModelName("CXL"), b.NODE, force_detach=True),
        ),
        because="by-hand wants cxl-1 on n1",
    )


def test_a_resource_for_a_claim_says_so() -> None:
    plan = compose.decide(b.world(*STAGE, named("a100-1")), OURS, POLICY, b.NOW)
    assert plan.actions[0].claim == Key("default", "c")


def test_a_deletion_names_the_version_and_who_does_not_want_it() -> None:
    plan = compose.decide(b.world(*STAGE, by_hand(0), child(1, version="9")), "by-hand", POLICY, b.NOW)
    assert plan.actions[0] == DeleteResource(
        phase=Phase.DETACHED,
        resource="a100-1.rack-a",
        version=Version("9"),
        because="by-hand does not want it any more",
    )


def test_children_are_shown_as_they_are() -> None:
    there = b.world(
        *STAGE, by_hand(1, version="4"), child(1, uuid="GPU-1", error="slow", state=ResourceState.ATTACHING)
    )
    (put_status,) = compose.decide(there, "by-hand", POLICY, b.NOW).actions
    assert put_status == PutRequestStatus(
        phase=Phase.COMPOSED,
        request="by-hand",
        version=Version("4"),
        status=ComposabilityRequestStatus(
            state=RequestState.UPDATING,
            resources={"a100-1.rack-a": ChildStatus("Attaching", "GPU-1", "1", NodeName("n1"), "slow")},
            scalar_resource=by_hand(1).spec.resource,
        ),
        because="it is Updating with 1 resources",
    )


def test_what_is_shown_already_is_not_shown_again() -> None:
    first = compose.decide(b.world(*STAGE, by_hand(1), child(1)), "by-hand", POLICY, b.NOW)
    told = by_hand(1, status=shown(first))
    assert compose.decide(b.world(*STAGE, told, child(1)), "by-hand", POLICY, b.NOW) == Plan()


def test_a_request_waiting_for_blame_to_run_out_is_looked_at_then() -> None:
    blamed = b.node(failures={"a100-8": b.NOW - 100, "a100-9": b.NOW - 300})
    there = b.world(blamed, b.heartbeat(), by_hand(1), inventories=(FOUR,))
    plan = compose.decide(there, "by-hand", POLICY, b.NOW)
    assert effects(plan) == ()
    assert plan.again_at == Seconds(b.NOW + 1500)


def test_a_request_that_has_all_is_not_looked_at_again() -> None:
    failed = b.node(failures={"a100-1": b.NOW - 100})
    plan = compose.decide(
        b.world(failed, b.heartbeat(), by_hand(1), inventories=(FOUR,)), "by-hand", POLICY, b.NOW
    )
    assert (effects(plan), plan.again_at) == ((put(2),), NEVER)


# --- the end


@pytest.mark.parametrize(
    ("there", "do", "wait"),
    [
        ((), ("FreeRequest request/by-hand",), ""),
        ((child(1), child(2, deleted=b.NOW)), (delete(1),), "a100-1.rack-a, a100-2.rack-a to be returned"),
        ((child(1, deleted=b.NOW, state=ResourceState.ATTACHING),), (), "a100-1.rack-a to be returned"),
    ],
)
def test_a_request_goes_when_all_its_devices_are_returned(
    there: tuple[Object, ...], do: tuple[str, ...], wait: str
) -> None:
    plan = compose.decide(b.world(*STAGE, by_hand(2, deleted=b.NOW), *there), "by-hand", POLICY, b.NOW)
    assert effects(plan) == do
    assert reasons(plan) == (("Cleaning",) if wait else ())
    assert wait in words(plan)
    if there:
        assert shown(plan).state is RequestState.CLEANING


def test_the_last_of_a_request_is_its_finalizer() -> None:
    (free,) = compose.decide(
        b.world(by_hand(2, deleted=b.NOW, version="8")), "by-hand", POLICY, b.NOW
    ).actions
    assert free == FreeRequest(
        phase=Phase.DETACHED, request="by-hand", version=Version("8"), because="all its devices are returned"
    )
    others = b.request(2, deleted=b.NOW, finalizers=("somebody/else",))
    assert compose.decide(b.world(others), "by-hand", POLICY, b.NOW) == Plan()


def test_what_goes_says_why() -> None:
    action: AnyAction = compose.decide(
        b.world(by_hand(1, deleted=b.NOW), child(1)), "by-hand", POLICY, b.NOW
    ).actions[0]
    assert action.because == "its request is being deleted"


# --- who is woken


SHORT = ComposabilityRequestStatus(state=RequestState.UPDATING, error="2 more of A100 to be free")
RUNNING = ComposabilityRequestStatus(state=RequestState.RUNNING)
LOOKED_AT = (
    by_hand(1, name="short", status=SHORT),
    by_hand(1, name="unseen"),
    by_hand(1, name="running", status=RUNNING),
    by_hand(1, name="other", of="T4", status=SHORT),
    b.request({"a100-1": "c"}, name="scalers", status=SHORT),
    b.resource("a100-5", on="n5", request="running"),
)


def lease(at: float) -> Object:
    return b.heartbeat(at=at)


@pytest.mark.parametrize(
    ("delta", "woken"),
    [
        (ObjectChanged(None, by_hand(1)), {"by-hand", "short", "unseen", "running"}),
        (ObjectChanged(by_hand(1, of="T4"), by_hand(1)), {"by-hand", "short", "unseen", "running", "other"}),
        (ObjectChanged(None, b.request({}, name="another-of-the-scalers")), {"another-of-the-scalers"}),
        (ObjectChanged(None, child(9)), {"by-hand"}),
        (ObjectChanged(child(9), None), {"by-hand", "short", "unseen"}),
        (ObjectChanged(child(9), child(9, deleted=b.NOW)), {"by-hand", "short", "unseen"}),
        (ObjectChanged(child(9), child(9, uuid="GPU-9")), {"by-hand"}),
        (ObjectChanged(child(9, deleted=b.NOW), None), {"by-hand"}),
        # Whoever wants a device hears that it comes back, though the claim it is for was not heard of yet.
        (ObjectChanged(b.resource("a100-1", on="n2", request=""), None), {"scalers", "short", "unseen"}),
        (ObjectChanged(None, b.node("n5")), {"running", "short", "unseen"}),
        (ObjectChanged(None, b.node("n1")), {"scalers", "short", "unseen", "running", "other"}),
        (ObjectChanged(b.node("n5"), None), {"running"}),
        (ObjectChanged(lease(b.NOW - 5), lease(b.NOW)), set()),
        (ObjectChanged(lease(b.NOW - 500), lease(b.NOW)), {"short", "unseen"}),
        (ObjectChanged(None, b.claim("c")), {"scalers"}),
        (ObjectChanged(b.claim("c", allocated=b.NOW - 9), b.claim("c", allocated=b.NOW)), {"scalers"}),
        (ObjectChanged(b.claim("c"), b.claim("c", ready=True)), {"scalers"}),
        (ObjectChanged(b.claim("c"), b.claim("c", reserved=("p",))), set()),
        (ObjectChanged(b.claim("c"), None), {"scalers"}),
        (ObjectChanged(None, b.claim("c", devices=("a100-9",))), set()),
        (SupplyChanged(b.FABRIC, b.MODEL), {"short", "unseen"}),
        (InventoryChanged(b.FABRIC, (b.NODE,), ()), {"short", "unseen"}),
        (InventoryChanged(b.FABRIC, (), (b.device("a100-1"), b.device("a100-2"))), {"scalers"}),
        (InventoryChanged(b.FABRIC, (), (b.device("t4-1"),)), set()),
        (FactsChanged(b.NODE), set()),
    ],
)
def test_a_change_wakes_the_requests_it_is_about(delta: Delta, woken: set[str]) -> None:
    assert set(compose.wakes(b.world(*LOOKED_AT), POLICY, delta)) == woken


def test_a_resource_of_a_model_that_has_left_the_policy_wakes_its_request_alone() -> None:
    there = b.world(b.claim("c", devices=("t4-1",)))
    delta = ObjectChanged(None, b.resource("t4-1", model="T4", request="by-hand"))
    assert compose.wakes(there, POLICY, delta) == ("by-hand",)


def test_a_resource_that_somebody_else_made_wakes_its_request() -> None:
    others = ComposableResource(metadata=ObjectMeta(name="gpu-1f", labels={MANAGED_BY: "by-hand"}))
    assert compose.wakes(b.world(), Policy(), ObjectChanged(None, others)) == ("by-hand",)
