"""Every step of one story has the same cause: the uid of the claim, or of the object that nobody caused."""

from typing import TypedDict

import pytest

from jackfield.core import cause
from jackfield.model.composition import CAUSE, DEVICE, Record
from jackfield.model.names import DeviceID, Key, PhysicalID, Seconds, Uid, Version
from jackfield.model.plan import (
    AnyAction,
    Blame,
    ClearClaim,
    ForgetClaim,
    Hold,
    LetGo,
    Phase,
    PutResource,
    RecordClaim,
    RemoveCDI,
    SetCondition,
    WriteCDI,
)
from jackfield.testing import builders as b


class Meta(TypedDict):
    """What every action says."""

    phase: Phase
    because: str


C = Key("default", "c")
CLAIM = b.claim("c", uid="uid-of-c")
OTHER = b.claim("d", devices=("a100-2",), uid="uid-of-d")
RECORD = Record(C, Uid("uid-of-c"), Version("1"))
MADE = b.resource("a100-2", uid="uid-of-2", annotations={CAUSE: "uid-of-d"})
FOUND = b.resource("a100-3", uid="uid-of-3")
USED = b.resource("a100-4", uid="uid-of-4", record=RECORD, annotations={CAUSE: "uid-of-d"})
ONE = b.request({"a100-1": "c"}, name="one", uid="uid-of-one")
TWO = b.request({"a100-1": "c", "a100-2": "d"}, name="two", uid="uid-of-two")
GONE = b.request({"a100-5": "gone"}, name="gone", uid="uid-of-gone")
BY_HAND = b.request(2, name="by-hand", uid="uid-of-by-hand")
VIEW = b.world(CLAIM, OTHER, MADE, FOUND, USED, ONE, TWO, GONE, BY_HAND, b.node())

Step = tuple[str, Key, tuple[DeviceID, ...]]
NOBODY = cause.NOBODY
STEPS: dict[str, tuple[Step, str]] = {
    "done to a claim": (("claim/default/c", NOBODY, ()), "uid-of-c"),
    "done to a claim that is gone": (("claim/default/gone", NOBODY, ()), ""),
    "done for a claim": (("resource/a100-3.rack-a", C, ()), "uid-of-c"),
    "done to what was made for a claim": (("resource/a100-2.rack-a", NOBODY, ()), "uid-of-d"),
    "done to what serves another by now": (("resource/a100-4.rack-a", NOBODY, ()), "uid-of-c"),
    "done to what was found": (("resource/a100-3.rack-a", NOBODY, ()), "uid-of-3"),
    "done to a resource that is gone": (("resource/none", NOBODY, ()), ""),
    "done to a request for one claim": (("request/one", NOBODY, ()), "uid-of-c"),
    "done to a request for two": (("request/two", NOBODY, ()), "uid-of-two"),
    "done to a request for one that is gone": (("request/gone", NOBODY, ()), "uid-of-gone"),
    "done to somebody's request": (("request/by-hand", NOBODY, ()), "uid-of-by-hand"),
    "done to no request": (("request/none", NOBODY, ()), ""),
    "done to a node for a device": (("node/n1", NOBODY, (b.device("a100-2"),)), "uid-of-d"),
    "done to a node for a device that is gone": (("node/n1", NOBODY, (b.device("a100-9"),)), ""),
    "done to a slice": (("slice/s", NOBODY, ()), ""),
}


@pytest.mark.parametrize(("step", "expected"), STEPS.values(), ids=STEPS)
def test_a_step_has_the_cause_of_its_story(step: Step, expected: str) -> None:
    assert cause.of(VIEW, *step) == expected


def test_a_node_that_knows_no_claims_goes_by_what_is_recorded() -> None:
    assert cause.of(b.world(USED), "claim/default/c") == "uid-of-c"
    assert cause.of(b.world(USED), "resource/a100-9.rack-a", C) == "uid-of-c"


SAID: Meta = {"phase": Phase.PREPARED, "because": "of a test"}
R, V, AT = "a100-3.rack-a", Version("1"), Seconds(1.0)
ACTIONS: dict[str, tuple[AnyAction, str]] = {
    "told by uid": (SetCondition(**SAID, uid=Uid("u"), version=V, devices=(), type="", message=""), "u"),
    "cleared by uid": (ClearClaim(**SAID, uid=Uid("u"), version=V, ask_pods=False), "u"),
    "held by uid": (Hold(**SAID, uid=Uid("u"), resource=R, version=V), "u"),
    "removed by uid": (RemoveCDI(**SAID, uid=Uid("u"), node=b.NODE), "u"),
    "prepared by uid": (
        WriteCDI(
            **SAID, uid=Uid("u"), node=b.NODE, device=b.device("a100-3"), physical=PhysicalID("3"), cdi="g"
        ),
        "u",
    ),
    "recorded": (RecordClaim(**SAID, resource=R, version=V, record=RECORD, at=AT), "uid-of-c"),
    "forgotten": (
        ForgetClaim(**SAID, resource=R, version=V, record=RECORD, devices=(), node=b.NODE, at=AT),
        "uid-of-c",
    ),
    "any other": (LetGo(**SAID, resource=R, version=V), "uid-of-3"),
    "for a claim": (LetGo(**SAID, claim=C, resource=R, version=V), "uid-of-c"),
    "with a device": (Blame(**SAID, node=b.NODE, device=b.device("a100-2"), at=AT), "uid-of-d"),
}


@pytest.mark.parametrize(("action", "expected"), ACTIONS.values(), ids=ACTIONS)
def test_an_action_has_the_cause_of_whom_it_names(action: AnyAction, expected: str) -> None:
    assert cause.of_action(VIEW, action) == expected


def test_the_cause_is_written_on_what_is_made_for_a_claim() -> None:
    put = PutResource(phase=Phase.COMPOSED, because="of a test", claim=C, resource=FOUND)
    notes = cause.written(VIEW, put).resource.metadata.annotations
    assert notes == {**FOUND.metadata.annotations, CAUSE: "uid-of-c"}
    assert DEVICE in notes


def test_what_is_made_for_no_claim_that_is_known_stays_as_it_is() -> None:
    for claim in (NOBODY, Key("default", "gone")):
        put = PutResource(phase=Phase.COMPOSED, because="of a test", claim=claim, resource=FOUND)
        assert cause.written(VIEW, put) is put
