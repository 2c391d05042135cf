"""Indexes: every way in which a decision finds an object, kept current by taking out and putting in.

Knows which fields are looked up by. Must not know who looks.
"""

from jackfield.controllers.index import Index
from jackfield.core import naming
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, device_id
from jackfield.model.meta import Object
from jackfield.model.names import (
    DeviceID,
    FabricName,
    Key,
    ModelName,
    NodeName,
    PhysicalID,
    Time,
    seconds,
)
from jackfield.model.node import FAILURES, NODE_GROUP, Node
from jackfield.model.pod import Pod
from jackfield.model.policy import READY, Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.view import Failure

UUID = "uuid"


class Indexes:
    """All that is looked up, by what it is looked up by."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.claims_on: Index[NodeName, Key, ResourceClaim] = Index(_age)
        self.claims_holding: Index[DeviceID, Key, ResourceClaim] = Index(_age)
        self.pods_using: Index[Key, Key, Pod] = Index(lambda pod: pod.key)
        self.pods_on: Index[NodeName, Key, Pod] = Index(lambda pod: pod.key)
        self.unschedulable: Index[None, Key, Pod] = Index(
            lambda pod: (pod.metadata.creation_timestamp, pod.key)
        )
        self.requests_on: Index[NodeName, Key, ComposabilityRequest] = Index(lambda one: one.key)
        self.requests_for: Index[ModelName, Key, ComposabilityRequest] = Index(
            lambda one: (one.metadata.creation_timestamp, one.key)
        )
        self.resource_of: dict[DeviceID, ComposableResource] = {}
        self.resource_with: dict[tuple[FabricName, PhysicalID], ComposableResource] = {}
        self.resources_on: Index[NodeName, Key, ComposableResource] = Index(lambda one: one.key)
        self.resources_of: Index[str, Key, ComposableResource] = Index(lambda one: one.key)
        self.recording: Index[Key, Key, ComposableResource] = Index(lambda one: one.key)
        self.slices: Index[tuple[str, str], Key, ResourceSlice] = Index(lambda one: one.key)
        self.slice_with: dict[DeviceID, Key] = {}
        self.published: Index[str, DeviceID, DeviceID] = Index(lambda device: device)
        self.failures_on: dict[NodeName, tuple[Failure, ...]] = {}
        self.failures_of: Index[DeviceID, NodeName, Failure] = Index(lambda failure: failure.at)

        self.groups: Index[str, Key, Node] = Index(lambda node: node.key)
        self.behind: dict[DeviceID, DeviceID] = {}
        """The fabric's device behind one that a vendor's driver publishes, by uuid."""
        self.by_uuid: dict[str, DeviceID] = {}

    def take_out(self, old: Object, touched: dict[DeviceID, None]) -> None:
        """Take an object out; add the devices to look at again to `touched`."""
        match old:
            case ResourceClaim():
                self.claims_on.remove(old.node, old.key)
                for result in old.results:
                    self.claims_holding.remove(result.id, old.key)
                    self._touches(result.id, touched)
            case Pod():
                self._take_out_pod(old)
            case ComposableResource():
                self._take_out_resource(old, touched)
            case ComposabilityRequest():
                self.requests_on.remove(old.spec.resource.target_node, old.key)
                self.requests_for.remove(old.spec.resource.model, old.key)
            case ResourceSlice():
                self._take_out_slice(old)
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
                self.requests_on.add(new.spec.resource.target_node, new.key, new)
                self.requests_for.add(new.spec.resource.model, new.key, new)
            case ResourceSlice():
                self._put_in_slice(new, touched)
            case Node():
                if NODE_GROUP in new.metadata.labels:
                    self.groups.add(new.metadata.labels[NODE_GROUP], new.key, new)
                self.failures_on[new.name] = _failures(new)
                for failure in _failures(new):
                    self.failures_of.add(failure.device, new.name, failure)
            case _:
                pass

    def _touches(self, device: DeviceID, touched: dict[DeviceID, None]) -> None:
        """A claim on a vendor's device is a use of the fabric's device behind it."""
        touched[device] = None
        behind = self.behind.get(device)
        if behind is not None:
            touched[behind] = None

    def _put_in_claim(self, claim: ResourceClaim, touched: dict[DeviceID, None]) -> None:
        if any(READY in result.binding_conditions for result in claim.results):
            self.claims_on.add(claim.node, claim.key, claim)
        for result in claim.results:
            if not result.admin_access:
                self.claims_holding.add(result.id, claim.key, claim)
            self._touches(result.id, touched)

    def _put_in_pod(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self.pods_on.add(pod.spec.node_name, pod.key, pod)
        if not pod.finished:
            for name in pod.claim_names:
                self.pods_using.add(Key(pod.metadata.namespace, name), pod.key, pod)
            if pod.unschedulable and not pod.spec.node_name and not pod.deleting:
                self.unschedulable.add(None, pod.key, pod)

    def _take_out_pod(self, pod: Pod) -> None:
        self.pods_on.remove(pod.spec.node_name, pod.key)
        self.unschedulable.remove(None, pod.key)
        for name in pod.claim_names:
            self.pods_using.remove(Key(pod.metadata.namespace, name), pod.key)

    def _put_in_resource(self, resource: ComposableResource, touched: dict[DeviceID, None]) -> None:
        self.resources_on.add(resource.node, resource.key, resource)
        self.resources_of.add(resource.request, resource.key, resource)
        if resource.record is not None:
            self.recording.add(resource.record.claim, resource.key, resource)
        device = resource.device
        if device is None:
            return
        self.resource_of[device] = resource
        touched[device] = None
        fabric = naming.fabric_of(device, self._policy)
        if fabric is not None and resource.status.cdi_device_id:
            self.resource_with[fabric, resource.status.cdi_device_id] = resource
        if resource.status.device_id:
            self.by_uuid[resource.status.device_id] = device
        for vendors in self.published.get(resource.status.device_id):
            self.behind[vendors] = device

    def _take_out_resource(self, resource: ComposableResource, touched: dict[DeviceID, None]) -> None:
        self.resources_on.remove(resource.node, resource.key)
        self.resources_of.remove(resource.request, resource.key)
        if resource.record is not None:
            self.recording.remove(resource.record.claim, resource.key)
        device = resource.device
        if device is None:
            return
        self.resource_of.pop(device, None)
        touched[device] = None
        fabric = naming.fabric_of(device, self._policy)
        if fabric is not None:
            self.resource_with.pop((fabric, resource.status.cdi_device_id), None)
        self.by_uuid.pop(resource.status.device_id, None)
        for vendors in self.published.get(resource.status.device_id):
            self.behind.pop(vendors, None)

    def _put_in_slice(self, new: ResourceSlice, touched: dict[DeviceID, None]) -> None:
        driver, pool = new.spec.driver, new.spec.pool.name
        self.slices.add((driver, pool), new.key, new)
        for device in new.spec.devices:
            name = DeviceID(driver, pool, device.name)
            self.slice_with[name] = new.key
            if READY in device.binding_conditions:
                continue
            uuid = device.attributes.get(UUID)
            if uuid is not None and uuid.string:
                self.published.add(uuid.string, name, name)
                behind = self.by_uuid.get(uuid.string)
                if behind is not None:
                    self.behind[name] = behind
                    touched[behind] = None

    def _take_out_slice(self, old: ResourceSlice) -> None:
        driver, pool = old.spec.driver, old.spec.pool.name
        self.slices.remove((driver, pool), old.key)
        for device in old.spec.devices:
            name = DeviceID(driver, pool, device.name)
            if self.slice_with.get(name) == old.key:
                del self.slice_with[name]
            uuid = device.attributes.get(UUID)
            if uuid is not None and uuid.string:
                self.published.remove(uuid.string, name)
                self.behind.pop(name, None)


def _age(claim: ResourceClaim) -> tuple[str, str, Key]:
    """The order in which claims are served: oldest allocation first."""
    allocation = claim.status.allocation
    return (
        allocation.allocation_timestamp if allocation else "",
        claim.metadata.creation_timestamp,
        claim.key,
    )


def _failures(node: Node) -> tuple[Failure, ...]:
    failures = []
    for line in node.metadata.annotations.get(FAILURES, "").splitlines():
        text, _, at = line.partition("=")
        device = device_id(text)
        if device is not None:
            failures.append(Failure(seconds(Time(at)), node.name, device))
    return tuple(failures)
