"""The scaler: the lock that makes a claim bindable, hand-overs, forgetting, and the requests it writes."""

import pytest
from msgspec.structs import replace

from jackfield.core import scale
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    ComposableResource,
    Record,
    ResourceState,
)
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Seconds, Version
from jackfield.model.plan import (
    CountAttempt,
    ForgetClaim,
    Phase,
    Plan,
    RecordClaim,
    SetCondition,
    Waiting,
)
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
    pod,
    policy,
    request,
    resource,
    vendor_slice,
    world,
)
from unit.core.scaling import only, plan

VENDORS = policy(model("A100", driver="gpu.example.com"))
SHARED = device("gpu.example.com/a100-fabricrack-a/a100-1")
OTHERS = device("gpu.example.com/n1/gpu-0")
A = claim("a", uid="u-a", version="7")
THERE = request({"a100-1": "a"})
"""The scaler's request for what A was given: nothing is left to be asked for."""


# --- the lock (rules 7 and 8)


def test_a_claim_is_recorded_on_its_device_before_it_is_answered() -> None:
    assert only(plan(A, resource(version="5"), THERE)) == RecordClaim(
        phase=Phase.BINDABLE,
        claim=A.key,
        resource="a100-1.rack-a",
        version=Version("5"),
        record=Record(A.key, A.uid, Version("7")),
        at=NOW,
        because="a100-1 is online on n1",
    )


def test_ready_is_written_on_exactly_the_version_that_was_recorded() -> None:
    assert only(plan(A, resource(record=A), THERE)) == SetCondition(
        phase=Phase.BINDABLE,
        claim=A.key,
        uid=A.uid,
        version=Version("7"),
        devices=(device("a100-1"),),
        type=READY,
        message="attached",
        because="attached",
    )


def test_a_claim_that_moved_on_is_recorded_anew() -> None:
    action = only(plan(claim("a", uid="u-a", version="8"), resource(record=A), THERE))
    assert isinstance(action, RecordClaim)
    assert action.record.version == "8"


def test_a_resource_that_is_to_go_still_serves_the_claim_it_is_recorded_for() -> None:
    waiting = claim("a", uid="u-a", version="2")
    (again,) = plan(waiting, resource(record=A, deleted=NOW), THERE).actions
    assert isinstance(again, RecordClaim)
    assert again.record.version == Version("2")


def test_a_claim_that_is_ready_is_left_alone() -> None:
    assert plan(claim("a", uid="u-a", ready=True), resource(record=A), THERE) == Plan()


@pytest.mark.parametrize(
    ("one", "others", "reason", "what"),
    [
        (None, (), "Composing", "a100-1 to be ordered for n1"),
        (None, (request(1),), "Composing", "a100-1 to be ordered for n1"),
        (resource(state=ResourceState.NEW), (), "Attaching", "a100-1 to be attached to n1"),
        (resource(state=ResourceState.ATTACHING), (), "Attaching", "a100-1 to be attached to n1"),
        (resource(on="n2"), (), "Moving", "a100-1 to come back from n2"),
        (resource(state=ResourceState.DETACHING), (), "Moving", "a100-1 to come back from n1"),
        (resource(state=ResourceState.DELETING), (), "Moving", "a100-1 to come back from n1"),
        (resource(deleted=NOW), (), "Moving", "a100-1 to come back from n1"),
        (resource(deleted=NOW, record=claim("b")), (), "Moving", "a100-1 to come back from n1"),
        (resource(record=claim("b")), (), "Recorded", "a100-1 to be given up by claim default/b"),
        (
            resource(record=claim("a", uid="an-earlier-one")),
            (),
            "Recorded",
            "a100-1 to be given up by claim default/a",
        ),
        (resource(holder="u-b"), (), "Held", "a100-1 to be unprepared on n1"),
        (resource(record=A, holder="u-b"), (), "Held", "a100-1 to be unprepared on n1"),
        (
            resource(uuid="GPU-1"),
            (vendor_slice("GPU-1"),),
            "PublishedTwice",
            f"{OTHERS} to be withdrawn: it is a100-1 under another name",
        ),
        (
            resource(),
            (resource("a100-2", record=A),),
            "Recorded",
            "a100-2.rack-a to forget an earlier allocation of this claim",
        ),
        (
            resource(),
            (resource("a100-2", on="n2", record=A, state=ResourceState.DETACHING),),
            "Recorded",
            "a100-2.rack-a to forget an earlier allocation of this claim",
        ),
    ],
    ids=[
        "no resource",
        "no resource, and a request of somebody else's",
        "a new resource",
        "a resource that is attaching",
        "a resource on another node",
        "a resource that is detaching",
        "a resource that is detached",
        "a resource that is being deleted",
        "a resource that is being deleted and serves another claim",
        "a record of another claim",
        "a record of an earlier claim of that name",
        "a holder of another uid",
        "a holder of another uid, though the record is right",
        "another driver that publishes the same device",
        "a record of an earlier allocation",
        "a record of an earlier allocation elsewhere",
    ],
)
def test_nobody_is_recorded_or_ready_because_of(
    one: ComposableResource | None, others: tuple[Object, ...], reason: str, what: str
) -> None:
    objects = (A, THERE, *others, *(() if one is None else (one,)))
    found = plan(*objects)
    assert found.waiting == (Waiting("claim/default/a", reason, what),)
    assert not [one for one in found.actions if isinstance(one, RecordClaim | SetCondition)]


def test_who_waits_for_somebody_elses_request_under_our_name_is_told_which() -> None:
    theirs = request(1, name="jackfield-a100-n1")
    what = (
        "a100-1 to be ordered for n1 when ComposabilityRequest jackfield-a100-n1, which somebody else wrote under this "
        "name, is deleted"
    )
    found = plan(A, theirs)
    assert found.waiting == (Waiting("claim/default/a", "Composing", what),)
    assert found.actions == ()


def test_a_holder_of_the_claims_own_uid_does_not_stand_in_the_way() -> None:
    assert isinstance(only(plan(A, resource(record=A, holder="u-a"), THERE)), SetCondition)


def test_a_record_of_a_claim_of_that_name_with_another_uid_is_not_this_claims() -> None:
    earlier = resource("a100-2", holder="u-x", record=claim("a", uid="u-x"))
    assert isinstance(
        only(plan(A, resource(), THERE, earlier, request({"a100-1": "a", "a100-2": "a"}, version="2"))),
        RecordClaim,
    )


def test_a_claim_on_several_devices_waits_for_the_last_then_records_all_then_answers_once() -> None:
    both = claim("a", devices=["a100-1", "a100-2"])
    wanted = request({"a100-1": "a", "a100-2": "a"})
    first, second = resource(), resource("a100-2")
    late = resource("a100-2", state=ResourceState.ATTACHING)
    assert plan(both, first, late, wanted) == Plan(
        waiting=(Waiting("claim/default/a", "Attaching", "a100-2 to be attached to n1"),)
    )
    recorded = [
        action for action in plan(both, first, second, wanted).actions if isinstance(action, RecordClaim)
    ]
    assert [one.resource for one in recorded] == ["a100-1.rack-a", "a100-2.rack-a"]
    half = only(plan(both, resource(record=both), second, wanted))
    assert isinstance(half, RecordClaim)
    assert half.resource == "a100-2.rack-a"
    answer = only(plan(both, resource(record=both), resource("a100-2", record=both), wanted))
    assert isinstance(answer, SetCondition)
    assert (answer.type, answer.devices) == (READY, (device("a100-1"), device("a100-2")))


def test_admin_access_is_ready_at_once_and_nothing_is_attached() -> None:
    action = only(plan(claim("a", admin=True)))
    assert isinstance(action, SetCondition)
    assert (action.type, action.devices) == (READY, (device("a100-1"),))
    assert action.message == "admin access needs no attaching"


# --- refusals


def test_a_loser_is_sent_round_by_version() -> None:
    winner = claim("b", allocated=NOW - 20, ready=True)
    assert only(plan(A, winner, resource(record=winner), request({"a100-1": "b"}))) == SetCondition(
        phase=Phase.BINDABLE,
        claim=A.key,
        uid=A.uid,
        version=Version("7"),
        devices=(device("a100-1"),),
        type=RESCHEDULE,
        message="a100-1 was given to claim default/b as well",
        because="a100-1 was given to claim default/b as well",
    )


def test_a_failed_attach_is_counted_before_the_claim_is_sent_round() -> None:
    failed = node(failures={"a100-1": NOW - 5})
    order = f"a100-1@n1:{NOW - 5:.0f}"
    wish = claim("a", attempts="2/other", version="7")
    assert only(plan(wish, on=failed)) == CountAttempt(
        phase=Phase.WANTED,
        claim=wish.key,
        version=Version("7"),
        order=order,
        attempts=3,
        because="a100-1 could not be attached to n1 (attempt 3)",
    )
    answer = only(plan(claim("a", attempts=f"3/{order}"), on=failed))
    assert isinstance(answer, SetCondition)
    assert (answer.type, answer.message) == (RESCHEDULE, "a100-1 could not be attached to n1 (attempt 3)")


def test_a_refusal_for_another_reason_is_no_attempt() -> None:
    answer = only(plan(claim("a", attempts="2/other"), chosen=policy(base=Policy(per_node_max=0))))
    assert isinstance(answer, SetCondition)
    assert (answer.type, answer.message) == (RESCHEDULE, "n1 may have 0 of A100")


def test_an_answer_is_for_every_device_that_waits_for_one() -> None:
    mixed = claim("a", devices=["other.example.com/p/x", "a100-1", "b200-1", "a100-2"])
    answer = only(plan(mixed))
    assert isinstance(answer, SetCondition)
    assert answer.type == FAILED
    assert [one.device for one in answer.devices] == ["a100-1", "b200-1", "a100-2"]


def test_a_claim_that_fails_again_and_again_is_told_to_stop() -> None:
    failed = node(failures={"a100-1": NOW - 5})
    answer = only(plan(claim("a", attempts=f"5/a100-1@n1:{NOW - 5:.0f}"), on=failed))
    assert isinstance(answer, SetCondition)
    assert answer.type == FAILED
    assert "5 attaches for this claim failed" in answer.message


# --- hand-over

B = claim("a", uid="u-a", version="7", devices=[SHARED])
ATTACHED = resource(SHARED, uuid="GPU-1")
OFFERED = vendor_slice("GPU-1")
ORDERED = request({str(SHARED): "a"})


def handing(*objects: Object, now: float = NOW) -> Plan:
    return plan(*objects, ORDERED, chosen=VENDORS, now=now)


def test_a_claim_is_sent_round_once_the_driver_offers_its_device() -> None:
    assert handing(B, ATTACHED) == Plan(
        waiting=(Waiting("claim/default/a", "Publishing", "the driver on n1 to offer a100-1"),)
    )
    assert isinstance(only(handing(B, ATTACHED, OFFERED)), RecordClaim)
    answer = only(
        replace(handing(B, resource(SHARED, uuid="GPU-1", record=B, used=NOW), OFFERED), again_at=NEVER)
    )
    assert isinstance(answer, SetCondition)
    assert (answer.type, answer.devices) == (RESCHEDULE, (SHARED,))
    assert answer.message == "the device is attached; its driver on the node offers it now"


@pytest.mark.parametrize(
    ("others", "used", "because"),
    [
        (
            (OFFERED, claim("a", uid="u-a", devices=[OTHERS], waits=())),
            NOW,
            "a claim holds the device by its driver's name",
        ),
        (
            (OFFERED, claim("b", devices=[OTHERS], waits=()), B),
            NOW,
            "a claim holds the device by its driver's name",
        ),
        ((OFFERED,), NOW, "its claim went elsewhere"),
        ((OFFERED, claim("a", uid="u-new", devices=[])), NOW, "its claim went elsewhere"),
        ((OFFERED, claim("a", uid="u-a", devices=["x.example.com/p/d"])), NOW, "its claim went elsewhere"),
        ((OFFERED, claim("a", uid="u-a", devices=[])), NOW - 60, "its claim did not come back in time"),
        (
            (OFFERED, claim("a", uid="u-a", devices=[SHARED], told=RESCHEDULE)),
            NOW - 60,
            "its claim did not come back in time",
        ),
    ],
    ids=[
        "it came back",
        "another came",
        "it is gone",
        "it was made anew",
        "it was given another device",
        "it did not come back",
        "it was not even sent round",
    ],
)
def test_a_hand_over_ends_when(others: tuple[Object, ...], used: float, because: str) -> None:
    handed = resource(SHARED, uuid="GPU-1", record=B, used=used, version="5")
    found = [one for one in handing(handed, *others).actions if isinstance(one, ForgetClaim)]
    assert found == [
        ForgetClaim(
            phase=Phase.RELEASED,
            claim=B.key,
            resource="a100-1.rack-a",
            version=Version("5"),
            record=Record(B.key, B.uid, Version("7")),
            devices=(),
            node=NODE,
            at=NOW,
            because=because,
        )
    ]


@pytest.mark.parametrize(
    "one",
    [claim("a", uid="u-a", devices=[]), claim("a", uid="u-a", devices=[SHARED], told=RESCHEDULE)],
    ids=["on its way round", "not yet sent round"],
)
def test_a_hand_over_lasts_so_long_at_most(one: ResourceClaim) -> None:
    handed = resource(SHARED, uuid="GPU-1", record=B, used=NOW - 59)
    assert handing(handed, OFFERED, one) == Plan(again_at=Seconds(NOW + 1))


def test_a_device_that_waits_for_one_claim_is_not_handed_to_another() -> None:
    found = handing(
        claim("b", devices=[SHARED]),
        resource(SHARED, uuid="GPU-1", record=B, used=NOW),
        claim("a", uid="u-a", devices=[]),
        OFFERED,
    )
    assert found.waiting == (
        Waiting("claim/default/b", "Recorded", "a100-1 to be given up by claim default/a"),
    )


def test_a_claim_on_both_kinds_of_device_goes_round_for_the_vendors() -> None:
    chosen = policy("A100", model("H100", driver="gpu.example.com"))
    vendors = device("gpu.example.com/h100-fabricrack-a/h100-2")
    mixed = claim("a", devices=["a100-1", vendors])
    there = (
        resource(record=mixed),
        resource(vendors, model="H100", uuid="GPU-1", record=mixed, used=NOW),
        request({"a100-1": "a"}),
        request({str(vendors): "a"}, of="H100"),
    )
    found = plan(mixed, *there, OFFERED, chosen=chosen)
    (answer,) = found.actions
    assert isinstance(answer, SetCondition)
    assert (answer.type, answer.devices) == (RESCHEDULE, (device("a100-1"), vendors))


# --- forgetting (rules 12 and 16)


@pytest.mark.parametrize(
    ("one", "others", "on", "forgotten"),
    [
        (resource(record=A), (), node(), True),
        (resource(record=A), (A,), node(), False),
        (resource(record=A), (claim("a", uid="u-a", on="n2"),), node(), True),
        (resource(record=A), (claim("a", uid="u-a", devices=["a100-2"]),), node(), True),
        (resource(record=A), (claim("a", uid="u-new"),), node(), True),
        (resource(record=A), (claim("a", uid="u-a", on=""),), node(), False),
        (resource(record=A, holder="u-a"), (), node(), False),
        (resource(record=A, holder="u-a"), (), None, True),
        (resource(record=A, holder="u-a"), (pod("p", on="n1"),), None, False),
        (resource(record=A, holder="u-a"), (pod("p", on="n2"),), None, True),
        (resource(), (), node(), False),
        (resource("b200-1", model="B200", record=A), (), node(), False),
        (
            replace(
                resource(),
                metadata=replace(
                    resource(record=A).metadata, annotations={"jackfield.dev/claim": "default/a/u-a/7"}
                ),
            ),
            (),
            node(),
            False,
        ),
    ],
    ids=[
        "its claim is gone",
        "its claim holds it",
        "its claim holds it for another node",
        "its claim holds another device",
        "a claim of that name holds it",
        "its claim holds it for any node",
        "it is still prepared",
        "it was prepared on a node that is gone",
        "it was prepared on a node that is gone, but a pod is bound there",
        "it was prepared on a node that is gone, and a pod is bound elsewhere",
        "it has no record",
        "its model is not in the policy",
        "it has no device of ours",
    ],
)
def test_a_record_is_forgotten_if(
    one: ComposableResource, others: tuple[Object, ...], on: Object | None, *, forgotten: bool
) -> None:
    found = [action for action in plan(one, *others, on=on).actions if isinstance(action, ForgetClaim)]
    assert bool(found) is forgotten


def test_forgetting_asks_for_a_live_read_of_the_claim_by_the_version_seen() -> None:
    found = plan(resource(record=A, version="5"), request({"a100-1": ""}))
    assert only(found) == ForgetClaim(
        phase=Phase.RELEASED,
        claim=A.key,
        resource="a100-1.rack-a",
        version=Version("5"),
        record=Record(A.key, A.uid, Version("7")),
        devices=(device("a100-1"),),
        node=NODE,
        at=NOW,
        because="its claim no longer holds the device",
    )


# --- devices that vanish


def test_a_claim_whose_device_vanished_from_under_its_pod_is_told_and_keeps_its_answer() -> None:
    view = world(
        node(),
        claim("a", told=READY),
        resource(record=claim("a")),
        THERE,
        inventories=[inventory()],
        looked=NOW,
    )
    before = scale.decide(view, NODE, policy(), Seconds(NOW + 89))
    assert (before.actions, before.waiting, before.again_at) == ((), (), NOW + 90)
    found = scale.decide(view, NODE, policy(), Seconds(NOW + 90))
    (waiting,) = found.waiting
    assert (waiting.object, waiting.reason) == ("claim/default/a", "Lost")
    assert waiting.what.startswith("a100-1 to be attached to n1 again")
    assert "delete the pod" in waiting.what
    assert found.actions == ()


def test_a_claim_whose_device_nothing_attached_any_more_is_told_once_its_manager_does_not_show_it() -> None:
    (waiting,) = plan(claim("a", told=READY), stage=inventory(models={})).waiting
    assert (waiting.object, waiting.reason) == ("claim/default/a", "Lost")
    assert plan(claim("a", told=READY)).waiting == ()


def test_a_claim_is_not_told_ready_with_a_device_that_its_manager_does_not_show_there() -> None:
    there = (node(), heartbeat(), claim("a"), resource(physical="1"))
    view = world(*there, inventories=[inventory()], looked=NOW)
    found = scale.decide(view, NODE, policy(), NOW)
    assert [(one.object, one.reason) for one in found.waiting] == [("claim/default/a", "Missing")]
    assert not any(isinstance(one, RecordClaim) for one in found.actions)
    assert found.again_at == NOW + 90
    shown = world(*there, inventories=[inventory(attached={"1": "n1"})], looked=NOW)
    assert any(isinstance(one, RecordClaim) for one in scale.decide(shown, NODE, policy(), NOW).actions)


def test_a_claim_that_has_its_device_is_told_nothing() -> None:
    assert plan(claim("a", told=READY), resource(record=claim("a"))).waiting == ()
