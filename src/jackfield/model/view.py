"""View: all that a decision may look at.

A read-only protocol over one indexed store. Every answer is in a defined order, and costs what it returns, not
what the cluster holds. Must not know who keeps the store, or how.
"""

from typing import Protocol

import msgspec

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, device_id
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.host import Facts
from jackfield.model.meta import Object
from jackfield.model.names import (
    DeviceID,
    FabricName,
    Key,
    ModelName,
    NodeName,
    PhysicalID,
    Seconds,
    Time,
    Uid,
    seconds,
)
from jackfield.model.node import FAILURES, Node
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule


class Failure(msgspec.Struct, frozen=True, gc=False, order=True):
    """A device that failed on a node, and when."""

    at: Seconds
    node: NodeName
    device: DeviceID


def failures(node: Node) -> tuple[Failure, ...]:
    """Return what is noted on a node to have failed there."""
    lines = (line.partition("=") for line in node.metadata.annotations.get(FAILURES, "").splitlines())
    noted = ((device_id(text), seconds(Time(at))) for text, _, at in lines)
    return tuple(Failure(at, node.name, device) for device, at in noted if device is not None)


class ObjectChanged(msgspec.Struct, frozen=True, gc=False):
    """An object came, changed or went."""

    old: Object | None
    new: Object | None


class InventoryChanged(msgspec.Struct, frozen=True, gc=False):
    """A manager shows something else than before."""

    fabric: FabricName
    nodes: tuple[NodeName, ...]
    devices: tuple[DeviceID, ...]


class SupplyChanged(msgspec.Struct, frozen=True, gc=False):
    """What is offered of a model changed for all nodes: it ran out or came back, closed or opened."""

    fabric: FabricName
    model: ModelName


class FactsChanged(msgspec.Struct, frozen=True, gc=False):
    """A node sees or holds something else than before."""

    node: NodeName


Delta = ObjectChanged | InventoryChanged | SupplyChanged | FactsChanged


class View(Protocol):
    """The world as last heard of."""

    # --- fabrics

    def fabrics(self) -> tuple[FabricName, ...]:
        """All fabrics."""

    def inventory(self, fabric: FabricName) -> Inventory | None:
        """What the fabric's manager last showed; None before it has shown anything."""

    def current(self, fabric: FabricName) -> bool:
        """Whether what the manager last showed is no older than all that we know it to have done."""

    def left_at(self, fabric: FabricName, physical: PhysicalID) -> Seconds:
        """When this process heard that a resource went which had a device; long ago if none did."""

    def born_at(self, resource: ComposableResource) -> Seconds:
        """When a resource came to be: as this process saw it, by its own clock; else as the API says, by the API's."""

    def heard_at(self, one: Object) -> Seconds:
        """When this process last heard that a resource or a taint had changed, by its own clock; long ago of others."""

    def asked(self, fabric: FabricName) -> Seconds:
        """When the manager was asked for what it last showed: what came about later need not be in it."""

    def fabric_of(self, node: NodeName) -> FabricName | None:
        """The fabric the node is a machine of."""

    def machine(self, node: NodeName) -> Machine | None:
        """The node as its fabric's manager knows it."""

    def physical(self, device: DeviceID) -> FabricDevice | None:
        """The device behind a DRA name, where the manager lets one choose and shows it."""

    def place_of(self, fabric: FabricName, physical: PhysicalID) -> NodeName:
        """The node that the manager shows a device on; empty if it shows it on none."""

    def attached(self, node: NodeName) -> tuple[FabricDevice, ...]:
        """What the manager shows as attached to the node."""

    def free(self, fabric: FabricName, model: ModelName) -> int:
        """How many devices nobody has: in the pool, no claim, no resource."""

    def free_devices(self, fabric: FabricName, model: ModelName, limit: int) -> tuple[DeviceID, ...]:
        """Some of the devices that nobody has, by name."""

    def handing_over(self, fabric: FabricName, model: ModelName) -> tuple[ComposableResource, ...]:
        """Resources of a model that goes by `reschedule` whose claim has been sent round and not come back."""

    def congested(self, fabric: FabricName) -> bool:
        """Whether more is waited for than the manager can attach before the scheduler gives up."""

    def ahead(self, fabric: FabricName, claim: ResourceClaim) -> int:
        """How many orders come before one for this claim: under way, or for devices of older claims."""

    def attach_seconds(self, fabric: FabricName) -> Seconds:
        """How long an attach takes there, as measured; the policy's guess before that."""

    # --- nodes

    def node(self, name: NodeName) -> Node | None:
        """The node, or None."""

    def heartbeat(self, node: NodeName) -> Seconds:
        """When the node's plugin last gave a sign of life."""

    def failures_on(self, node: NodeName) -> tuple[Failure, ...]:
        """What failed on the node."""

    def failures_of(self, device: DeviceID) -> tuple[Failure, ...]:
        """Where the device failed."""

    def facts(self, node: NodeName) -> Facts | None:
        """What the node itself sees and has prepared; None anywhere but on that node."""

    # --- slices

    def slices(self, driver: str, pool: str) -> tuple[ResourceSlice, ...]:
        """The slices of a pool, by name."""

    def slice_with(self, device: DeviceID) -> ResourceSlice | None:
        """The slice that lists the device."""

    def taint_rule(self, name: str) -> DeviceTaintRule | None:
        """The rule of that name, or None."""

    def published(self, uuid: str) -> tuple[DeviceID, ...]:
        """Devices that drivers on nodes publish with this uuid; ours are not among them."""

    def claims_at(self, driver: str, node: NodeName) -> tuple[ResourceClaim, ...]:
        """Claims that have devices of another driver on the node, by its own names for them."""

    def unshown(self, driver: str, node: NodeName) -> tuple[DeviceID, ...]:
        """Devices that claims have on the node by the driver's own names, and that no slice shows."""

    # --- claims and pods

    def claim(self, key: Key) -> ResourceClaim | None:
        """The claim, or None."""

    def claims_on(self, node: NodeName) -> tuple[ResourceClaim, ...]:
        """Claims allocated to the node that hold a device of a fabric, oldest allocation first."""

    def claims_in(self, namespace: str) -> tuple[ResourceClaim, ...]:
        """Claims of the namespace that are allocated a device of any driver, oldest allocation first."""

    def claims_holding(self, device: DeviceID) -> tuple[ResourceClaim, ...]:
        """Claims the device is allocated to (more than one if an answer got lost), oldest first."""

    def pods_using(self, claim: Key) -> tuple[Pod, ...]:
        """Pods that name the claim and have not finished."""

    def pods_on(self, node: NodeName) -> tuple[Pod, ...]:
        """Pods bound to the node."""

    def nodes_in_group(self, group: str) -> tuple[Node, ...]:
        """Nodes that were added for a group, by name."""

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by name. Costs the cluster: only for deciding whether to add one."""

    def pods_unschedulable(self) -> tuple[Pod, ...]:
        """Pods that the scheduler found no node for, oldest first."""

    # --- requests and resources

    def request(self, name: str) -> ComposabilityRequest | None:
        """The request, or None."""

    def requests_on(self, node: NodeName) -> tuple[ComposabilityRequest, ...]:
        """Requests whose target is the node."""

    def requests_by_hand(self, model: ModelName) -> tuple[ComposabilityRequest, ...]:
        """Requests for a model that somebody else than the scaler wrote, oldest first."""

    def requests_wanting(self, device: DeviceID) -> tuple[ComposabilityRequest, ...]:
        """The scaler's requests that name the device."""

    def resource(self, name: str) -> ComposableResource | None:
        """The resource, or None."""

    def missing_since(self, resource: ComposableResource) -> Seconds:
        """Since when a manager, asked after it was known, has not shown its device where it should be; else NEVER."""

    def resource_of(self, device: DeviceID) -> ComposableResource | None:
        """The one resource of a device."""

    def resource_with(self, fabric: FabricName, physical: PhysicalID) -> ComposableResource | None:
        """The resource that a physical device belongs to."""

    def resources_on(self, node: NodeName) -> tuple[ComposableResource, ...]:
        """Resources for the node, by name."""

    def resources_of(self, request: str) -> tuple[ComposableResource, ...]:
        """Resources that belong to the request, by name."""

    def resources_recording(self, claim: Key) -> tuple[ComposableResource, ...]:
        """Resources whose record names the claim, by name."""

    def resources_held_by(self, uid: Uid) -> tuple[ComposableResource, ...]:
        """Resources whose holder the claim of that uid is, by name."""

    def resources_recorded_in(self, namespace: str) -> tuple[ComposableResource, ...]:
        """Resources whose record names a claim of the namespace, by name."""

    def resource_behind(self, device: DeviceID) -> ComposableResource | None:
        """The resource whose device a driver on its node publishes under this name."""

    def idle(self, fabric: FabricName, model: ModelName) -> tuple[ComposableResource, ...]:
        """Online resources that nobody holds, records or prepared, least recently used first."""

    def under_way(self, fabric: FabricName) -> tuple[ComposableResource, ...]:
        """Resources whose order the manager is at: attaching or detaching, by name."""

    def nodes_of(self, fabric: FabricName) -> tuple[NodeName, ...]:
        """The machines of a fabric, by name. Costs the fabric: only for requests that name no node."""
