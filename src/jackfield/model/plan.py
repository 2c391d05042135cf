"""Plan: what a decision wants done, and what it waits for.

Every effect we can have on the world is a type here, and leaves nothing to choose: it names the object, the
version it was decided on, and why. Knows values only. Must not know how an action is carried out.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jackfield.model.composition import (
    ComposabilityRequest,
    ComposabilityRequestStatus,
    ComposableResource,
    Record,
    ResourceState,
)
from jackfield.model.fabric import Order
from jackfield.model.names import (
    NEVER,
    DeviceID,
    FabricName,
    Key,
    NodeName,
    PhysicalID,
    Seconds,
    Uid,
    Version,
)
from jackfield.model.node import Node
from jackfield.model.policy import ADMITTED
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule


class SliceKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """Names one slice of a pool: the publisher's unit of work."""

    fabric: FabricName
    driver: str
    pool: str
    index: int


class PrepareKey(msgspec.Struct, frozen=True, gc=False, order=True):
    """Names one claim on one node: what the kubelet asks about."""

    node: NodeName
    claim: Key
    uid: Uid


class Phase(StrEnum):
    """Where in a claim's life an action belongs; `lifecycle.LIFE` says the rest."""

    OFFERED = "offered"
    ALLOCATED = "allocated"
    WANTED = "wanted"
    COMPOSED = "composed"
    ATTACHING = "attaching"
    VISIBLE = "visible"
    ONLINE = "online"
    BINDABLE = "bindable"
    PREPARED = "prepared"
    RELEASED = "released"
    DETACHED = "detached"
    SCALED = "scaled"


class Action(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="action"):
    """Something to be done, and why."""

    phase: Phase
    because: str
    """Completes "… because"; read by people."""
    claim: Key = Key("", "")
    """The claim it is done for; empty where it is done for none."""


# --- the publisher


class PutSlice(Action, frozen=True, kw_only=True):
    """Create the slice, or put it in place of the version it carries."""

    slice: ResourceSlice


class LabelNode(Action, frozen=True, kw_only=True):
    """Set labels of ours on a node; None removes one."""

    node: NodeName
    labels: Mapping[str, str | None]


# --- the scaler


class PutRequest(Action, frozen=True, kw_only=True):
    """Create a request of the scaler's, or resize it by the version it carries."""

    request: ComposabilityRequest


class DeleteRequest(Action, frozen=True, kw_only=True):
    """Delete a request of the scaler's that wants nothing any more."""

    name: str
    version: Version


class MarkVictim(Action, frozen=True, kw_only=True):
    """Mark a resource as the one to go, before its request shrinks: CoHDI's operator reads the mark."""

    resource: str
    version: Version


class RecordClaim(Action, frozen=True, kw_only=True):
    """Write on the resource, by version, which claim at which version it is about to serve (rule 7)."""

    resource: str
    version: Version
    record: Record
    at: Seconds


class SetCondition(Action, frozen=True, kw_only=True):
    """Write a binding condition for devices of a claim, on exactly this version of it (rules 8 and 9)."""

    uid: Uid
    version: Version
    devices: tuple[DeviceID, ...]
    type: str
    message: str

    @property
    def manager(self) -> str:
        """As whom it is written: one for each pool, and one for admissions, so that no condition wipes another."""
        return f"jackfield/{'quota' if self.type == ADMITTED else self.devices[0].pool}"


class CountAttempt(Action, frozen=True, kw_only=True):
    """Remember on the claim, by version, that this order for it came to nothing."""

    version: Version
    order: str
    attempts: int


class ForgetClaim(Action, frozen=True, kw_only=True):
    """Remove the record by version, if the claim, read live, does not hold the device on the node (rule 12)."""

    resource: str
    version: Version
    record: Record
    devices: tuple[DeviceID, ...]
    """What the claim must not hold for the record to go; none where another driver's claim is the lock."""
    node: NodeName
    at: Seconds


class ClearClaim(Action, frozen=True, kw_only=True):
    """Take the allocation off a claim that nobody waits for, by version (rule 17).

    A claim that is Ready is cleared only if a live read of the pods, made now, finds none that uses it.
    """

    uid: Uid
    version: Version
    ask_pods: bool


# --- the operator


class PutResource(Action, frozen=True, kw_only=True):
    """Create the resource; that it exists already means: look again (rule 1)."""

    resource: ComposableResource
    ask: bool = False
    """Whether the API is asked first what is in the books there: a name does not say that nobody has its device."""


class DeleteResource(Action, frozen=True, kw_only=True):
    """Ask for a resource's end; what it holds is still protected by its finalizer."""

    resource: str
    version: Version


class KeepRequest(Action, frozen=True, kw_only=True):
    """Put our finalizer on a request, so that its devices are returned before it goes."""

    request: str
    version: Version


class FreeRequest(Action, frozen=True, kw_only=True):
    """Take our finalizer off a request whose devices are all returned."""

    request: str
    version: Version


class PutRequestStatus(Action, frozen=True, kw_only=True):
    """Show on a request what became of it."""

    request: str
    version: Version
    status: ComposabilityRequestStatus


class MarkState(Action, frozen=True, kw_only=True):
    """Write the next state of a resource, by version; intent before effect."""

    resource: str
    version: Version
    state: ResourceState
    error: str = ""
    device: PhysicalID = PhysicalID("")
    """The device, where it becomes known with this state; then its serial number too."""
    serial: str = ""
    gone: NodeName = NodeName("")
    """The node whose end is the reason: the API is asked for it first, as a list of nodes may be old."""


class Attach(Action, frozen=True, kw_only=True):
    """Ask the manager for the order, again or for the first time; write its answer on the resource."""

    resource: str
    version: Version
    order: Order
    mark_sent: bool = False
    """Write first when it was sent: the manager knows no order ids."""
    ask: bool = False
    """Ask the API first whether all that stands on the node is another's: else it is what the last call brought."""


class Adopt(Action, frozen=True, kw_only=True):
    """Take a device of ours that stands unclaimed on the node for the one the resource waits for (rule 19)."""

    resource: str
    version: Version
    device: PhysicalID
    serial: str = ""


class TakeOver(Action, frozen=True, kw_only=True):
    """Give a resource that CoHDI's operator began the name of its device: from then on it is one of ours."""

    resource: str
    version: Version
    device: DeviceID
    sent: str = ""
    """What its operator may have asked of the manager last, as `SENT` spells it; empty if that is known."""


class Detach(Action, frozen=True, kw_only=True):
    """Ask the manager to close the order and take back what it attached; write its answer on the resource."""

    resource: str
    version: Version
    order: Order
    mark_sent: bool = False
    last: bool = False
    """Whether nothing else is to be done once the order is closed: the resource goes with the answer."""
    ask: bool = False
    """Whether the API is asked first who has it: another driver than ours would not say."""
    gone: bool = False
    """Whether only its node's end says that nobody has it (rule 16): the API is asked first for that node."""
    empty: bool = False
    """Likewise whether no pod may be bound to that node."""


class PutTaint(Action, frozen=True, kw_only=True):
    """Keep a vendor's device from being given away while it is detached. The API is asked first if it still is."""

    resource: str
    rule: DeviceTaintRule


class DropTaint(Action, frozen=True, kw_only=True):
    """Take such a taint off again."""

    name: str
    version: Version
    ask: str = ""
    """The resource that it may guard after all: the API is asked first, unless this is empty."""


class MarkReleased(Action, frozen=True, kw_only=True):
    """Write on the resource, by version, that another driver than ours offers its device no more, and since when."""

    resource: str
    version: Version


class FreeResource(Action, frozen=True, kw_only=True):
    """Take our finalizer off a resource whose order is closed, and see it go."""

    resource: str
    version: Version
    taint: str = ""
    """The taint that would be left behind if it were there after all: the API is asked first, unless this is empty."""


class MarkMissing(Action, frozen=True, kw_only=True):
    """Write on the resource, by version, whether its manager shows its device where it should be."""

    resource: str
    version: Version
    missing: bool
    message: str


class Blame(Action, frozen=True, kw_only=True):
    """Remember on the node that this device failed there."""

    node: NodeName
    device: DeviceID
    at: Seconds


# --- the node


class Rescan(Action, frozen=True, kw_only=True):
    """Make the node look for new devices."""

    node: NodeName
    resource: str


class MarkVisible(Action, frozen=True, kw_only=True):
    """Write on the very resource decided on that its device is seen on the node, and as what (rule 6)."""

    resource: str
    version: Version
    device: str
    message: str


class Release(Action, frozen=True, kw_only=True):
    """Make the node let go of a device that nobody holds, then write so (rule 14)."""

    node: NodeName
    resource: str
    version: Version
    device: PhysicalID
    """What goes off the bus; nothing where no device came, or it is another's by now."""
    force: bool


class Hold(Action, frozen=True, kw_only=True):
    """Write the claim as holder on the resource, by version, before anything is prepared (rule 10)."""

    resource: str
    version: Version
    uid: Uid


class LetGo(Action, frozen=True, kw_only=True):
    """Clear the holder after unprepare (rule 11)."""

    resource: str
    version: Version


class WriteCDI(Action, frozen=True, kw_only=True):
    """Write checkpoint and CDI file for a claim's device on this node."""

    node: NodeName
    uid: Uid
    device: DeviceID
    physical: PhysicalID
    cdi: str
    """The device as the node knows it."""
    seen: PhysicalID = PhysicalID("")
    """What the node's own eyes call it: which device of the node it is."""
    requests: tuple[str, ...] = ()
    share_id: str = ""
    pod_claim_name: str = ""


class RemoveCDI(Action, frozen=True, kw_only=True):
    """Remove CDI file and checkpoint of a claim on this node."""

    node: NodeName
    uid: Uid


# --- the autoscaler


class AddNode(Action, frozen=True, kw_only=True):
    """Bring up one more node of a group; the Node object is the order."""

    node: Node


AnyAction = (
    PutSlice
    | LabelNode
    | PutRequest
    | DeleteRequest
    | MarkVictim
    | RecordClaim
    | SetCondition
    | CountAttempt
    | ForgetClaim
    | ClearClaim
    | PutResource
    | DeleteResource
    | KeepRequest
    | FreeRequest
    | PutRequestStatus
    | MarkState
    | Attach
    | Adopt
    | TakeOver
    | Detach
    | PutTaint
    | DropTaint
    | FreeResource
    | MarkMissing
    | MarkReleased
    | Blame
    | Rescan
    | MarkVisible
    | Release
    | Hold
    | LetGo
    | WriteCDI
    | RemoveCDI
    | AddNode
)


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """What somebody waits for: a noun phrase that completes "waiting for …"."""

    object: str
    """Who waits, as `jackfield story` names it: claim/NAMESPACE/NAME, resource/NAME, …"""
    reason: str
    """A word in CamelCase that can be counted and filtered by."""
    what: str
    """A noun phrase that completes "waiting for …"."""


class Finding(msgspec.Struct, frozen=True, gc=False):
    """Something that is not as the books say, told once when it begins and once when it is over."""

    object: str
    """What it is about, as `jackfield story` names it: node/NAME, resource/NAME."""
    reason: str
    """A word in CamelCase that can be counted and filtered by."""
    what: str
    """Sentences for people: what is so, why, and what to do."""
    fabric: FabricName
    count: int = 1
    """How many devices it is about."""
    grave: bool = True
    """Whether somebody should see to it; else it is good to know."""
    told: bool = True
    """Whether it is worth an Event; else it is only counted and logged."""


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What to do now, what is waited for, and when to look again though nothing happens."""

    actions: tuple[AnyAction, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    again_at: Seconds = NEVER
    findings: tuple[Finding, ...] = ()


NOTHING = Plan()
