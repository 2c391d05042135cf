"""ComposabilityRequest and ComposableResource: CoHDI's two kinds, and what we add to them.

Knows the wire of `cro.hpsys.ibm.ie.com/v1alpha1` and where our additions live: annotations, labels and
conditions. Must not know when a state is entered or left.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import ClassVar

import msgspec

from jackfield.model.meta import Condition, Object
from jackfield.model.names import (
    NO_TIME,
    DeviceID,
    Key,
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
    Time,
    Uid,
    Version,
    seconds,
)

GROUP = "cro.hpsys.ibm.ie.com"
FINALIZER = "com.ie.ibm.hpsys/finalizer"

MANAGED_BY = "app.kubernetes.io/managed-by"
"""Label of a resource: the request it belongs to. CoHDI's only link from child to parent."""
SCALER = "jackfield.dev/scaler"
"""Label of a request that the scaler wrote and may resize; all others are somebody else's."""
LAST_USED = "cohdi.io/last-used-time"
DELETE_DEVICE = "cohdi.io/delete-device"

DEVICE = "jackfield.dev/device"
"""Annotation of a resource: the DRA name of its device, `driver/pool/device`."""
CLAIM = "jackfield.dev/claim"
"""Annotation of a resource: the record, `namespace/name/uid/resourceVersion` of the claim it serves."""
HOLDER = "jackfield.dev/holder"
"""Annotation of a resource: the uid of the claim it is prepared for, written by the node."""
SENT = "jackfield.dev/sent"
"""Annotation of a resource: what was last asked of a manager without order ids, and by when: `attach TIME`."""
ORDER = "jackfield.dev/order"
"""Annotation of a resource that was found attached: the order that its manager knows it by."""
FOREIGN = "jackfield.dev/foreign"
"""Annotation of a resource: the device, by its manager's name, that somebody else attached and the policy wants off."""
CAUSE = "jackfield.dev/cause"
"""Annotation of a resource: the uid of the claim that it was made for, which is the id of its story in every log."""
DEVICES = "jackfield.dev/devices"
"""Annotation of a scaler's request: the devices it wants, `driver/pool/device=namespace/name`, by line."""

VISIBLE = "Visible"
RELEASED = "Released"
MISSING = "Missing"
"""Condition of a resource: its manager does not show its device where it should be."""


class ResourceState(StrEnum):
    """A ComposableResource's way through life; it never goes back."""

    NEW = ""
    ATTACHING = "Attaching"
    ONLINE = "Online"
    DETACHING = "Detaching"
    DELETING = "Deleting"


class RequestState(StrEnum):
    """A ComposabilityRequest's state."""

    NEW = ""
    NODE_ALLOCATING = "NodeAllocating"
    UPDATING = "Updating"
    RUNNING = "Running"
    CLEANING = "Cleaning"
    DELETING = "Deleting"


class AllocationPolicy(StrEnum):
    """How a request without a target node spreads its devices over nodes."""

    SAMENODE = "samenode"
    DIFFERENTNODE = "differentnode"
    ROUNDROBIN = "roundrobin"


class Snake(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A value that CoHDI spells in snake_case."""


class OtherSpec(Snake, frozen=True, gc=False):
    """What else a node must have to be chosen."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    allowed_pod_number: int = 0


class ScalarResource(Snake, frozen=True, gc=False):
    """So many devices of one model."""

    type: str = ""
    model: ModelName = ModelName("")
    size: int = msgspec.field(default=0)
    force_detach: bool = False
    allocation_policy: AllocationPolicy = AllocationPolicy.SAMENODE
    target_node: NodeName = NodeName("")
    other_spec: OtherSpec | None = None


class ComposabilityRequestSpec(msgspec.Struct, frozen=True, gc=False):
    """What is wanted."""

    resource: ScalarResource = ScalarResource()


class ChildStatus(Snake, frozen=True, gc=False):
    """A resource as its request shows it."""

    state: str = ""
    device_id: str = ""
    cdi_device_id: str = ""
    node_name: NodeName = NodeName("")
    error: str = ""


class ComposabilityRequestStatus(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of it."""

    state: RequestState = RequestState.NEW
    error: str = ""
    resources: Mapping[str, ChildStatus] = {}
    scalar_resource: ScalarResource | None = msgspec.field(default=None, name="scalarResource")
    conditions: tuple[Condition, ...] = ()


class Wanted(msgspec.Struct, frozen=True, gc=False, order=True):
    """One device that a scaler's request asks for, and the claim it is for (none for an idle one)."""

    device: DeviceID
    claim: Key


class ComposabilityRequest(Object, frozen=True, gc=False, kw_only=True):
    """So many devices of one model, on one node or by a policy."""

    group: ClassVar[str] = GROUP
    version: ClassVar[str] = "v1alpha1"
    plural: ClassVar[str] = "composabilityrequests"

    spec: ComposabilityRequestSpec = ComposabilityRequestSpec()
    status: ComposabilityRequestStatus = ComposabilityRequestStatus()

    @property
    def scalers(self) -> bool:
        """Whether the scaler wrote it."""
        return SCALER in self.metadata.labels

    @property
    def unmet(self) -> bool:
        """Whether it leaves the choice to us and has not got all it wants; what it lacks may not stand on it yet."""
        return not (self.scalers or self.deleting or self.status.state is RequestState.RUNNING)

    @property
    def wanted(self) -> tuple[Wanted, ...]:
        """The devices a scaler's request names."""
        lines = self.metadata.annotations.get(DEVICES, "").splitlines()
        return tuple(_wanted(line) for line in lines if line)


class ComposableResourceSpec(Snake, frozen=True, gc=False):
    """One device of a model for one node."""

    type: str = ""
    model: ModelName = ModelName("")
    target_node: NodeName = NodeName("")
    force_detach: bool = False


class ComposableResourceStatus(Snake, frozen=True, gc=False):
    """How far it has come."""

    state: ResourceState = ResourceState.NEW
    error: str = ""
    device_id: str = ""
    """The device as the node knows it (a GPU's UUID)."""
    cdi_device_id: PhysicalID = PhysicalID("")
    """The device as the manager knows it."""
    conditions: tuple[Condition, ...] = ()


class Record(msgspec.Struct, frozen=True, gc=False):
    """The claim a resource serves, at the version it was seen: the lock of rule 7."""

    claim: Key
    uid: Uid
    version: Version

    def __str__(self) -> str:
        """Spell it as the annotation does."""
        return f"{self.claim.namespace}/{self.claim.name}/{self.uid}/{self.version}"


class ComposableResource(Object, frozen=True, gc=False, kw_only=True):
    """One device on its way to a node, there, or on its way back."""

    group: ClassVar[str] = GROUP
    version: ClassVar[str] = "v1alpha1"
    plural: ClassVar[str] = "composableresources"

    spec: ComposableResourceSpec = ComposableResourceSpec()
    status: ComposableResourceStatus = ComposableResourceStatus()

    @property
    def device(self) -> DeviceID | None:
        """The DRA name of its device; None where somebody else made the resource."""
        return device_id(self.metadata.annotations.get(DEVICE, ""))

    @property
    def node(self) -> NodeName:
        """The node it is for."""
        return self.spec.target_node

    @property
    def state(self) -> ResourceState:
        """How far it has come."""
        return self.status.state

    @property
    def order(self) -> OrderID:
        """What the manager knows the order by."""
        return OrderID(self.metadata.annotations.get(ORDER, self.metadata.uid))

    @property
    def record(self) -> Record | None:
        """The claim it serves, or None."""
        text = self.metadata.annotations.get(CLAIM, "")
        return _record(text) if text else None

    @property
    def holder(self) -> Uid:
        """The claim the node has prepared it for; empty for none."""
        return Uid(self.metadata.annotations.get(HOLDER, ""))

    @property
    def foreign(self) -> PhysicalID:
        """The device that somebody else attached and that is to be detached; empty for one of ours."""
        return PhysicalID(self.metadata.annotations.get(FOREIGN, ""))

    @property
    def stands(self) -> bool:
        """Whether it is to stay, as far as anybody has said."""
        return not self.deleting and self.state not in {ResourceState.DETACHING, ResourceState.DELETING}

    @property
    def withdrawn(self) -> bool:
        """Whether its end was asked for and nobody has it: no record may be written on it from here on (rule 13)."""
        free = self.record is None and not self.holder
        return self.deleting and (free or self.spec.force_detach)

    @property
    def request(self) -> str:
        """The request it belongs to."""
        return self.metadata.labels.get(MANAGED_BY, "")

    def outlives(self, request: ComposabilityRequest | None) -> bool:
        """Whether the request that owns it is gone, whatever stands under its name by now: it goes with that one."""
        owners = [one.uid for one in self.metadata.owner_references]
        return bool(owners) and (request is None or request.uid not in owners)

    @property
    def last_used(self) -> Seconds:
        """When a claim last used it; its creation where none did."""
        used = Time(self.metadata.annotations.get(LAST_USED, NO_TIME))
        return seconds(used or self.metadata.creation_timestamp)

    @property
    def sent(self) -> tuple[str, Seconds]:
        """What was last asked of a manager without order ids, and by when; before all time if nothing was."""
        verb, _, at = self.metadata.annotations.get(SENT, "").partition(" ")
        return verb, seconds(Time(at))


@lru_cache(maxsize=65_536)  # a resource's device is asked for in every decision about it
def device_id(text: str) -> DeviceID | None:
    """Return the device that `driver/pool/device` spells (pool names may have slashes), or None."""
    driver, _, rest = text.partition("/")
    pool, _, device = rest.rpartition("/")
    return DeviceID(driver, pool, device) if driver and pool and device else None


@lru_cache(maxsize=65_536)  # likewise its claim
def _record(text: str) -> Record | None:
    """Return the record that `namespace/name/uid/version` spells, or None."""
    parts = text.split("/")
    if len(parts) != len(("namespace", "name", "uid", "version")):
        return None
    namespace, name, uid, version = parts
    return Record(Key(namespace, name), Uid(uid), Version(version))


def spelt(wanted: tuple[Wanted, ...]) -> str:
    """Return the devices as a request's annotation spells them."""
    return "\n".join(f"{one.device}={one.claim}" if one.claim.name else f"{one.device}=" for one in wanted)


def _wanted(line: str) -> Wanted:
    device, _, claim = line.partition("=")
    namespace, _, name = claim.rpartition("/")
    return Wanted(device_id(device) or DeviceID("", "", device), Key(namespace, name))
