"""Actions on what a bench has, by the version they were decided on."""

from collections.abc import Callable

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    Record,
    RequestState,
    ResourceState,
)
from jackfield.model.fabric import Order, Traits
from jackfield.model.names import (
    DeviceID,
    Key,
    NodeName,
    OrderID,
    PhysicalID,
    Uid,
    Version,
)
from jackfield.model.plan import (
    Adopt,
    AnyAction,
    Attach,
    ClearClaim,
    CountAttempt,
    DeleteRequest,
    DeleteResource,
    Detach,
    ForgetClaim,
    FreeRequest,
    FreeResource,
    Hold,
    KeepRequest,
    LetGo,
    MarkMissing,
    MarkReleased,
    MarkState,
    MarkVictim,
    MarkVisible,
    Phase,
    PutRequest,
    PutRequestStatus,
    RecordClaim,
    Release,
    SetCondition,
    TakeOver,
)
from jackfield.model.policy import READY
from jackfield.testing import builders as b

CR = "a100-1.rack-a"
DEVICE = b.device("a100-1")
CLAIM = Key("default", "c")
ANY = Version("")
OLD = Version("1")
"""A version that every object has left behind: the first write of a bench."""
P, WHY = Phase.WANTED, "of this"
D0 = PhysicalID("0000")
BLIND = Traits(chooses_device=True, knows_orders=False)


def order(number: str = "o-1", device: str = "0000") -> Order:
    return Order(OrderID(number), b.FABRIC, b.NODE, b.MODEL, PhysicalID(device))


def version(of: ComposableResource | ComposabilityRequest | ResourceClaim) -> Version:
    return of.metadata.resource_version


def put_request(at: Version) -> PutRequest:
    wish = b.request({"a100-1": "c"}, name="by-hand", version=at)
    return PutRequest(phase=P, because=WHY, request=wish)


def set_condition(at: Version, devices: tuple[DeviceID, ...] = (DEVICE,), kind: str = READY) -> SetCondition:
    return SetCondition(
        phase=P,
        because=WHY,
        claim=CLAIM,
        uid=Uid("u"),
        version=at,
        devices=devices,
        type=kind,
        message="attached",
    )


def forget(
    at: Version, uid: str = "u", node: str = "n1", devices: tuple[DeviceID, ...] = (DEVICE,)
) -> ForgetClaim:
    return ForgetClaim(
        phase=P,
        because=WHY,
        resource=CR,
        version=at,
        record=Record(CLAIM, Uid(uid), OLD),
        devices=devices,
        node=NodeName(node),
        at=b.NOW,
    )


def clear(at: Version, *, ask_pods: bool = False) -> ClearClaim:
    return ClearClaim(phase=P, because=WHY, claim=CLAIM, uid=Uid("u"), version=at, ask_pods=ask_pods)


def record(at: Version) -> RecordClaim:
    return RecordClaim(
        phase=P, because=WHY, resource=CR, version=at, record=Record(CLAIM, Uid("u"), Version("9")), at=b.NOW
    )


def release(at: Version, device: str = "", *, force: bool = False) -> Release:
    return Release(
        phase=P,
        because="nobody has it",
        node=b.NODE,
        resource=CR,
        version=at,
        device=PhysicalID(device),
        force=force,
    )


def put_status(at: Version, status: ComposabilityRequestStatus) -> PutRequestStatus:
    return PutRequestStatus(phase=P, because=WHY, request="by-hand", version=at, status=status)


def mark(at: Version, state: ResourceState = ResourceState.ONLINE) -> MarkState:
    return MarkState(phase=P, because=WHY, resource=CR, version=at, state=state)


def visible(at: Version) -> MarkVisible:
    return MarkVisible(phase=P, because=WHY, resource=CR, version=at, device="GPU-1", message="seen as GPU-1")


GUARDED: list[Callable[[Version], AnyAction]] = [
    put_request,
    set_condition,
    lambda at: forget(at, uid="another"),
    clear,
    record,
    release,
    mark,
    visible,
    lambda at: put_status(at, ComposabilityRequestStatus(RequestState.RUNNING)),
    lambda at: DeleteRequest(phase=P, because=WHY, name="by-hand", version=at),
    lambda at: DeleteResource(phase=P, because=WHY, resource=CR, version=at),
    lambda at: KeepRequest(phase=P, because=WHY, request="by-hand", version=at),
    lambda at: FreeRequest(phase=P, because=WHY, request="by-hand", version=at),
    lambda at: FreeResource(phase=P, because=WHY, resource=CR, version=at),
    lambda at: MarkVictim(phase=P, because=WHY, resource=CR, version=at),
    lambda at: MarkReleased(phase=P, because=WHY, resource=CR, version=at),
    lambda at: MarkMissing(phase=P, because=WHY, resource=CR, version=at, missing=True, message=WHY),
    lambda at: CountAttempt(phase=P, because=WHY, claim=CLAIM, version=at, order="o", attempts=2),
    lambda at: Adopt(phase=P, because=WHY, resource=CR, version=at, device=D0),
    lambda at: TakeOver(phase=P, because=WHY, resource=CR, version=at, device=DEVICE, sent="attach now"),
    lambda at: Hold(phase=P, because=WHY, resource=CR, version=at, uid=Uid("u")),
    lambda at: LetGo(phase=P, because=WHY, resource=CR, version=at),
    lambda at: Attach(phase=P, because=WHY, resource=CR, version=at, order=order(), mark_sent=True),
    lambda at: Detach(phase=P, because=WHY, resource=CR, version=at, order=order(), mark_sent=True),
]
