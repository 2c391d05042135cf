"""Every action has an object, told as people name it."""

from typing import get_args

import pytest

from jackfield.core import explain
from jackfield.model.composition import (
    ComposabilityRequestStatus,
    ComposableResource,
    Record,
    ResourceState,
)
from jackfield.model.device import DeviceTaint
from jackfield.model.fabric import Order
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, Key, OrderID, PhysicalID, Uid, Version
from jackfield.model.plan import (
    AddNode,
    Adopt,
    AnyAction,
    Attach,
    Blame,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    DeleteResource,
    Detach,
    DropTaint,
    ForgetClaim,
    FreeRequest,
    FreeResource,
    Hold,
    KeepRequest,
    LabelNode,
    LetGo,
    MarkMissing,
    MarkReleased,
    MarkState,
    MarkVictim,
    MarkVisible,
    Phase,
    PutRequest,
    PutRequestStatus,
    PutResource,
    PutSlice,
    PutTaint,
    RecordClaim,
    Release,
    RemoveCDI,
    Rescan,
    SetCondition,
    TakeOver,
    WriteCDI,
)
from jackfield.model.taint import DeviceTaintRule, DeviceTaintRuleSpec
from jackfield.testing import builders as b

P, WHY, V, CLAIM, U = Phase.WANTED, "of this", Version("1"), Key("default", "c"), Uid("u")
DEVICE = b.device("a100-1")
CR = "a100-1.rack-a"
CHOSEN = Order(OrderID("o"), b.FABRIC, b.NODE, b.MODEL, PhysicalID("p1"))
ANY = Order(OrderID("o"), b.FABRIC, b.NODE, b.MODEL)
RECORD = Record(CLAIM, U, V)
NOBODYS = ComposableResource(metadata=ObjectMeta(name="gpu-1f"))

Said = tuple[str, str, tuple[DeviceID, ...]]

RULE = DeviceTaintRule(metadata=ObjectMeta(name="t"), spec=DeviceTaintRuleSpec(DeviceTaint("key")))

ROWS: list[tuple[AnyAction, Said]] = [
    (PutSlice(phase=P, because=WHY, slice=b.vendor_slice("")), ("slice/n1-gpu.example.com-gpu-0", "", ())),
    (LabelNode(phase=P, because=WHY, node=b.NODE, labels={}), ("node/n1", "", ())),
    (
        PutRequest(phase=P, because=WHY, request=b.request({"a100-1": "c"})),
        ("request/jackfield-a100-n1", "size 1", (DEVICE,)),
    ),
    (DeleteRequest(phase=P, because=WHY, name="r", version=V), ("request/r", "", ())),
    (MarkVictim(phase=P, because=WHY, resource=CR, version=V), (f"resource/{CR}", "", ())),
    (
        RecordClaim(phase=P, because=WHY, resource=CR, version=V, record=RECORD, at=b.NOW),
        (f"resource/{CR}", "", ()),
    ),
    (
        SetCondition(
            phase=P, because=WHY, claim=CLAIM, uid=U, version=V, devices=(DEVICE,), type="Ready", message=""
        ),
        ("claim/default/c", "Ready", (DEVICE,)),
    ),
    (
        CountAttempt(phase=P, because=WHY, claim=CLAIM, version=V, order="o", attempts=1),
        ("claim/default/c", "", ()),
    ),
    (
        ForgetClaim(
            phase=P,
            because=WHY,
            resource=CR,
            version=V,
            record=RECORD,
            devices=(DEVICE,),
            node=b.NODE,
            at=b.NOW,
        ),
        (f"resource/{CR}", "", ()),
    ),
    (
        ClearClaim(phase=P, because=WHY, claim=CLAIM, uid=U, version=V, ask_pods=True),
        ("claim/default/c", "", ()),
    ),
    (PutResource(phase=P, because=WHY, resource=b.resource()), (f"resource/{CR}", "on n1", (DEVICE,))),
    (PutResource(phase=P, because=WHY, resource=NOBODYS), ("resource/gpu-1f", "on ", ())),
    (DeleteResource(phase=P, because=WHY, resource=CR, version=V), (f"resource/{CR}", "", ())),
    (KeepRequest(phase=P, because=WHY, request="r", version=V), ("request/r", "", ())),
    (FreeRequest(phase=P, because=WHY, request="r", version=V), ("request/r", "", ())),
    (
        PutRequestStatus(phase=P, because=WHY, request="r", version=V, status=ComposabilityRequestStatus()),
        ("request/r", "", ()),
    ),
    (
        MarkState(phase=P, because=WHY, resource=CR, version=V, state=ResourceState.ONLINE),
        (f"resource/{CR}", "Online", ()),
    ),
    (Attach(phase=P, because=WHY, resource=CR, version=V, order=CHOSEN), (f"resource/{CR}", "p1 at n1", ())),
    (Attach(phase=P, because=WHY, resource=CR, version=V, order=ANY), (f"resource/{CR}", "A100 at n1", ())),
    (
        Adopt(phase=P, because=WHY, resource=CR, version=V, device=PhysicalID("p1")),
        (f"resource/{CR}", "p1", ()),
    ),
    (TakeOver(phase=P, because=WHY, resource=CR, version=V, device=DEVICE), (f"resource/{CR}", "", ())),
    (Detach(phase=P, because=WHY, resource=CR, version=V, order=CHOSEN), (f"resource/{CR}", "p1 at n1", ())),
    (PutTaint(phase=P, because=WHY, resource="r", rule=RULE), ("taint/t", "", ())),
    (DropTaint(phase=P, because=WHY, name="t", version=V), ("taint/t", "", ())),
    (MarkReleased(phase=P, because=WHY, resource=CR, version=V), (f"resource/{CR}", "", ())),
    (FreeResource(phase=P, because=WHY, resource=CR, version=V), (f"resource/{CR}", "", ())),
    (Blame(phase=P, because=WHY, node=b.NODE, device=DEVICE, at=b.NOW), ("node/n1", "", (DEVICE,))),
    (Rescan(phase=P, because=WHY, node=b.NODE, resource=CR), (f"resource/{CR}", "", ())),
    (
        MarkVisible(phase=P, because=WHY, resource=CR, version=V, device="GPU-1", message=""),
        (f"resource/{CR}", "", ()),
    ),
    (
        Release(
            phase=P, because=WHY, node=b.NODE, resource=CR, version=V, device=PhysicalID("p1"), force=False
        ),
        (f"resource/{CR}", "", ()),
    ),
    (
        MarkMissing(phase=P, because=WHY, resource=CR, version=V, missing=True, message="gone"),
        (f"resource/{CR}", "True", ()),
    ),
    (Hold(phase=P, because=WHY, resource=CR, version=V, uid=U), (f"resource/{CR}", "", ())),
    (LetGo(phase=P, because=WHY, resource=CR, version=V), (f"resource/{CR}", "", ())),
    (
        WriteCDI(
            phase=P,
            because=WHY,
            claim=CLAIM,
            node=b.NODE,
            uid=U,
            device=DEVICE,
            physical=PhysicalID("p"),
            cdi="",
        ),
        ("claim/default/c", "", (DEVICE,)),
    ),
    (RemoveCDI(phase=P, because=WHY, claim=CLAIM, node=b.NODE, uid=U), ("claim/default/c", "", ())),
    (AddNode(phase=P, because=WHY, node=b.node("big-1")), ("node/big-1", "", ())),
]


@pytest.mark.parametrize(("action", "said"), ROWS, ids=[type(action).__name__ for action, _ in ROWS])
def test_an_action_is_told_by_its_object_its_detail_and_its_devices(action: AnyAction, said: Said) -> None:
    assert (explain.subject(action), explain.detail(action), explain.devices(action)) == said


def test_every_action_is_in_the_table() -> None:
    assert {type(action) for action, _ in ROWS} == set(get_args(AnyAction))
