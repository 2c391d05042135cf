"""ResourceClaim and its template: what somebody asks for, and what they were given.

Knows DRA's v1 fields. Must not know how a claim is met.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from jackfield.model.meta import Condition, NodeSelector, Object, ObjectMeta, Wire
from jackfield.model.names import NEVER, NO_TIME, DeviceID, NodeName, Seconds, Time, Uid, seconds

ATTEMPTS = "jackfield.dev/attempts"
"""Annotation of a claim: how many orders for it came to nothing, and the last of them, `number/order`."""


class CELDeviceSelector(Wire, frozen=True, gc=False):
    """An expression that a device must satisfy."""

    expression: str


class DeviceSelector(Wire, frozen=True, gc=False):
    """A test of a device."""

    cel: CELDeviceSelector | None = None


class DeviceToleration(Wire, frozen=True, gc=False):
    """A taint that a request puts up with."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Wire, frozen=True, gc=False):
    """How much of a device's capacity is asked for."""

    requests: Mapping[str, str] = {}


class ExactDeviceRequest(Wire, frozen=True, gc=False):
    """A request for devices of one class."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Wire, frozen=True, gc=False):
    """One alternative of a prioritized list."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Wire, frozen=True, gc=False):
    """A named request: exactly one shape, or the first available of several."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, gc=False):
    """What the devices of several requests must have in common, or not."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class OpaqueDeviceConfiguration(Wire, frozen=True, gc=False):
    """Parameters for a driver, passed on unread."""

    driver: str
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class DeviceClaimConfiguration(Wire, frozen=True, gc=False):
    """Configuration from a claim."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassConfiguration(Wire, frozen=True, gc=False):
    """Configuration from a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Wire, frozen=True, gc=False):
    """All that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True, gc=False):
    """A claim's wishes; they never change."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Wire, frozen=True, gc=False):
    """One device given to one request."""

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str = msgspec.field(default="", name="shareID")
    consumed_capacity: Mapping[str, str] = {}

    @property
    def id(self) -> DeviceID:
        """The device given."""
        return DeviceID(self.driver, self.pool, self.device)


class DeviceAllocationConfiguration(Wire, frozen=True, gc=False):
    """Configuration that goes with an allocation."""

    source: str
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Wire, frozen=True, gc=False):
    """The devices given."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Wire, frozen=True, gc=False):
    """What the scheduler decided: devices, and the nodes they can be used from."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time = NO_TIME

    @property
    def node(self) -> NodeName:
        """The one node this allocation is pinned to; empty where it is not pinned."""
        terms = self.node_selector.node_selector_terms if self.node_selector else ()
        for term in terms:
            for field in term.match_fields:
                if field.key == "metadata.name" and field.operator == "In" and len(field.values) == 1:
                    return NodeName(field.values[0])
        return NodeName("")


class ResourceClaimConsumerReference(Wire, frozen=True, gc=False):
    """Who may use the devices."""

    resource: str
    name: str
    uid: Uid
    api_group: str = ""


class AllocatedDeviceStatus(Wire, frozen=True, gc=False):
    """What a driver says of one allocated device."""

    driver: str
    pool: str
    device: str
    share_id: str = msgspec.field(default="", name="shareID")
    conditions: tuple[Condition, ...] = ()

    @property
    def id(self) -> DeviceID:
        """The device spoken of."""
        return DeviceID(self.driver, self.pool, self.device)


class ResourceClaimStatus(Wire, frozen=True, gc=False):
    """What became of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object, frozen=True, gc=False, kw_only=True):
    """Somebody's wish for devices."""

    group: ClassVar[str] = "resource.k8s.io"
    plural: ClassVar[str] = "resourceclaims"
    namespaced: ClassVar[bool] = True

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def given_at(self) -> Seconds:
        """When it was allocated, by the scheduler's clock; never if it is not."""
        given = self.status.allocation
        return seconds(given.allocation_timestamp) if given is not None else NEVER

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The devices given; none while the claim is not allocated."""
        return self.status.allocation.devices.results if self.status.allocation else ()

    @property
    def node(self) -> NodeName:
        """The node the allocation is pinned to; empty where there is none."""
        return self.status.allocation.node if self.status.allocation else NodeName("")

    @property
    def attempts(self) -> tuple[int, str]:
        """How many orders for it came to nothing, and the last of them."""
        number, _, order = self.metadata.annotations.get(ATTEMPTS, "").partition("/")
        return (int(number) if number.isdecimal() else 0, order)

    def wants_all(self, request: str) -> bool:
        """Return whether a result's request (`name` or `name/sub`) asks for all devices there are."""
        name, _, sub = request.partition("/")
        for one in self.spec.devices.requests:
            if one.name == name and one.exactly is not None:
                return one.exactly.allocation_mode == "All"
            if one.name == name:
                return any(two.name == sub and two.allocation_mode == "All" for two in one.first_available)
        return False

    def conditions(self, device: DeviceID) -> tuple[Condition, ...]:
        """Return what was said of that device; the first entry counts, as for the scheduler."""
        return next((entry.conditions for entry in self.status.devices if entry.id == device), ())


class ResourceClaimTemplateSpec(Wire, frozen=True, gc=False):
    """What a claim made from the template looks like."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True, gc=False, kw_only=True):
    """A claim for every pod."""

    group: ClassVar[str] = "resource.k8s.io"
    plural: ClassVar[str] = "resourceclaimtemplates"
    namespaced: ClassVar[bool] = True

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
