"""Indexes: every way in which a decision finds an object, kept current by taking out and putting in.

Knows which fields are looked up by. Must not know who looks.
"""

from typing import Final

from jackfield.controllers.index import Index
from jackfield.core import naming
from jackfield.core.quota import age
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    ComposabilityRequest,
    ComposableResource,
    ResourceState,
)
from jackfield.model.device import Device
from jackfield.model.meta import Object
from jackfield.model.names import (
    DeviceID,
    FabricName,
    Key,
    ModelName,
    NodeName,
    PhysicalID,
    Uid,
)
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, READY, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import Failure, failures

UUID = "uuid"


COUNTED: Final = (ComposableResource, ResourceClaim, ResourceSlice, DeviceTaintRule)
"""Kinds whose changes are counted, by place."""


def place(one: ComposableResource | ResourceClaim | ResourceSlice | DeviceTaintRule) -> str:
    """Return by which place changes of a kind are counted."""
    match one:
        case ResourceSlice():
            return one.spec.node_name
        case DeviceTaintRule():
            return one.metadata.name
        case _:
            return one.node


class Indexes:
    """All that is looked up, by what it is looked up by."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.claims_on: Index[NodeName, Key, ResourceClaim] = Index(age)
        self.claims_in: Index[str, Key, ResourceClaim] = Index(age)
        self.claims_holding: Index[DeviceID, Key, ResourceClaim] = Index(age)
        self.claims_at: Index[tuple[str, NodeName], Key, ResourceClaim] = Index(age)
        """Claims by driver and node, where it is the driver itself that publishes there what they were given."""
        self.pods_using: Index[Key, Key, Pod] = Index()
        self.pods_on: Index[NodeName, Key, Pod] = Index()
        self.unschedulable: Index[None, Key, Pod] = Index(
            lambda pod: (pod.metadata.creation_timestamp, pod.key)
        )
        self.requests_on: Index[NodeName, Key, ComposabilityRequest] = Index()
        self.requests_by_hand: Index[ModelName, Key, ComposabilityRequest] = Index(
            lambda one: (one.metadata.creation_timestamp, one.key)
        )
        self.requests_wanting: Index[DeviceID, Key, ComposabilityRequest] = Index()
        self.resource_of: Index[DeviceID, Key, ComposableResource] = Index(_standing)
        self.resource_with: Index[tuple[FabricName, PhysicalID], Key, ComposableResource] = Index(_standing)
        self.unnamed: Index[PhysicalID, Key, ComposableResource] = Index(_standing)
        """What CoHDI's operator began and nobody has taken over yet, by the device that it has."""
        self.resources_on: Index[NodeName, Key, ComposableResource] = Index()
        self.resources_of: Index[str, Key, ComposableResource] = Index()
        self.recording: Index[Key, Key, ComposableResource] = Index()
        self.held_by: Index[Uid, Key, ComposableResource] = Index()
        self.recorded_in: Index[str, Key, ComposableResource] = Index()
        self.slices: Index[tuple[str, str], Key, ResourceSlice] = Index()
        self.slice_with: Index[DeviceID, Key, ResourceSlice] = Index()
        self.published: Index[str, tuple[DeviceID, Key], DeviceID] = Index()
        self.failures_on: dict[NodeName, tuple[Failure, ...]] = {}
        self.failures_of: Index[DeviceID, NodeName, Failure] = Index(lambda failure: failure)
        self.groups: Index[str, Key, Node] = Index()
        self.seen_as: Index[str, Key, ComposableResource] = Index(_standing)
        """Resources by the uuid under which a vendor's driver publishes their device."""

    def take_out(self, old: Object, touched: dict[DeviceID, None]) -> None:
        """Take an object out; add the devices to look at again to `touched`."""
        match old:
            case ResourceClaim():
                self._take_out_claim(old, touched)
            case Pod():
                self._take_out_pod(old)
            case ComposableResource():
                self._take_out_resource(old, touched)
            case ComposabilityRequest():
                self.requests_on.remove(old.spec.resource.target_node, old.key)
                self.requests_by_hand.remove(old.spec.resource.model, old.key)
                for wanted in old.wanted:
                    self.requests_wanting.remove(wanted.device, old.key)
            case ResourceSlice():
                self._take_out_slice(old, touched)
            case Node():
                self.groups.remove(old.metadata.labels.get(NODE_GROUP, ""), old.key)
                for failure in self.failures_on.pop(old.name, ()):
                    self.failures_of.remove(failure.device, old.name)
            case _:
                pass

    def put_in(self, new: Object, touched: dict[DeviceID, None]) -> None:
        """Put an object in; add the devices to look at again to `touched`."""
        match new:
            case ResourceClaim():
                self._put_in_claim(new, touched)
            case Pod():
                self._put_in_pod(new)
            case ComposableResource():
                self._put_in_resource(new, touched)
            case ComposabilityRequest():
                self._put_in_request(new)
            case ResourceSlice():
                self._put_in_slice(new, touched)
            case Node():
                if NODE_GROUP in new.metadata.labels:
                    self.groups.add(new.metadata.labels[NODE_GROUP], new.key, new)
                self.failures_on[new.name] = failures(new)
                for failure in self.failures_on[new.name]:
                    self.failures_of.add(failure.device, new.name, failure)
            case _:
                pass

    def resource_behind(self, device: DeviceID) -> ComposableResource | None:
        """Return the resource whose device a driver on a node publishes under this name."""
        listed = self.slice_with.first(device)
        entries = listed.spec.devices if listed is not None else ()
        uuid = next((_uuid(entry) for entry in entries if entry.name == device.device), "")
        return self.seen_as.first(uuid) if uuid else None

    def _touches(self, device: DeviceID, touched: dict[DeviceID, None]) -> None:
        """A claim on a vendor's device is a use of the fabric's device behind it."""
        touched[device] = None
        for listed in self.slice_with.get(device):
            for entry in listed.spec.devices:
                if entry.name == device.device:
                    self._touches_behind(_uuid(entry), touched)

    def _touches_beside(self, driver: str, node: NodeName, touched: dict[DeviceID, None]) -> None:
        """What a claim has by a name that no slice shows may be any of the driver's devices on the node."""
        for resource in self.resources_on.get(node) if node and driver != DRIVER else ():
            if resource.device is not None and resource.device.driver == driver:
                touched[resource.device] = None

    def _touches_behind(self, uuid: str, touched: dict[DeviceID, None]) -> None:
        for resource in self.seen_as.get(uuid) if uuid else ():
            if resource.device is not None:
                touched[resource.device] = None

    def _put_in_request(self, request: ComposabilityRequest) -> None:
        self.requests_on.add(request.spec.resource.target_node, request.key, request)
        if not request.scalers:
            self.requests_by_hand.add(request.spec.resource.model, request.key, request)
        for wanted in request.wanted:
            self.requests_wanting.add(wanted.device, request.key, request)

    def _put_in_claim(self, claim: ResourceClaim, touched: dict[DeviceID, None]) -> None:
        if not claim.results:
            return
        key, node = claim.key, claim.node
        if any(READY in result.binding_conditions for result in claim.results):
            self.claims_on.add(node, key, claim)
        self.claims_in.add(key.namespace, key, claim)
        for result in claim.results:
            if not result.admin_access:
                self.claims_holding.add(result.id, key, claim)
                if READY not in result.binding_conditions:
                    self.claims_at.add((result.driver, node), key, claim)
            self._touches(result.id, touched)
            self._touches_beside(result.driver, node, touched)

    def _take_out_claim(self, claim: ResourceClaim, touched: dict[DeviceID, None]) -> None:
        key, node = claim.key, claim.node
        self.claims_on.remove(node, key)
        self.claims_in.remove(key.namespace, key)
        for result in claim.results:
            self.claims_holding.remove(result.id, key)
            self.claims_at.remove((result.driver, node), key)
            self._touches(result.id, touched)
            self._touches_beside(result.driver, node, touched)

    def _put_in_pod(self, pod: Pod) -> None:
        key = pod.key
        if pod.spec.node_name:
            self.pods_on.add(pod.spec.node_name, key, pod)
        if not pod.finished:
            for name in pod.claim_names:
                self.pods_using.add(Key(key.namespace, name), key, pod)
            if pod.unschedulable and not pod.spec.node_name and not pod.deleting:
                self.unschedulable.add(None, key, pod)

    def _take_out_pod(self, pod: Pod) -> None:
        key = pod.key
        self.pods_on.remove(pod.spec.node_name, key)
        self.unschedulable.remove(None, key)
        for name in pod.claim_names:
            self.pods_using.remove(Key(key.namespace, name), key)

    def _put_in_resource(self, resource: ComposableResource, touched: dict[DeviceID, None]) -> None:
        key, record = resource.key, resource.record
        self.resources_on.add(resource.node, key, resource)
        self.resources_of.add(resource.request, key, resource)
        if record is not None:
            self.recording.add(record.claim, key, resource)
            self.recorded_in.add(record.claim.namespace, key, resource)
        if resource.holder:
            self.held_by.add(resource.holder, key, resource)
        device = resource.device
        if device is None:
            self.unnamed.add(resource.status.cdi_device_id, key, resource)
            return
        self.resource_of.add(device, key, resource)
        touched[device] = None
        fabric = naming.fabric_of(device, self.policy)
        if fabric is not None and resource.status.cdi_device_id:
            self.resource_with.add((fabric, resource.status.cdi_device_id), key, resource)
        if resource.status.device_id:
            self.seen_as.add(resource.status.device_id, key, resource)

    def _take_out_resource(self, resource: ComposableResource, touched: dict[DeviceID, None]) -> None:
        key, record = resource.key, resource.record
        self.resources_on.remove(resource.node, key)
        self.resources_of.remove(resource.request, key)
        if record is not None:
            self.recording.remove(record.claim, key)
            self.recorded_in.remove(record.claim.namespace, key)
        self.held_by.remove(resource.holder, key)
        device = resource.device
        if device is None:
            self.unnamed.remove(resource.status.cdi_device_id, key)
            return
        self.resource_of.remove(device, key)
        touched[device] = None
        fabric = naming.fabric_of(device, self.policy)
        if fabric is not None:
            self.resource_with.remove((fabric, resource.status.cdi_device_id), key)
        self.seen_as.remove(resource.status.device_id, key)

    def _put_in_slice(self, new: ResourceSlice, touched: dict[DeviceID, None]) -> None:
        driver, pool, key = new.spec.driver, new.spec.pool.name, new.key
        self.slices.add((driver, pool), key, new)
        self._touches_beside(driver, new.spec.node_name, touched)
        for device in new.spec.devices:
            name = DeviceID(driver, pool, device.name)
            self.slice_with.add(name, key, new)
            uuid = _uuid(device)
            if uuid:
                self.published.add(uuid, (name, key), name)
                self._touches_behind(uuid, touched)

    def _take_out_slice(self, old: ResourceSlice, touched: dict[DeviceID, None]) -> None:
        driver, pool, key = old.spec.driver, old.spec.pool.name, old.key
        self.slices.remove((driver, pool), key)
        self._touches_beside(driver, old.spec.node_name, touched)
        for device in old.spec.devices:
            name = DeviceID(driver, pool, device.name)
            self.slice_with.remove(name, key)
            uuid = _uuid(device)
            if uuid:
                self.published.remove(uuid, (name, key))
                self._touches_behind(uuid, touched)


def _uuid(device: Device) -> str:
    """The uuid under which another driver publishes a device; ours are known by their names."""
    if READY in device.binding_conditions:
        return ""
    uuid = device.attributes.get(UUID)
    return (uuid.string if uuid is not None else None) or ""


def _standing(resource: ComposableResource) -> tuple[bool, Key]:
    """A device that is on its way back from one resource may already be another's: that one comes first."""
    leaving = resource.state in {ResourceState.DETACHING, ResourceState.DELETING}
    return leaving, resource.key
