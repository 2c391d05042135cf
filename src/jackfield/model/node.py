"""Node: a machine that runs pods.

Knows the core/v1 fields we read. Must not know about devices.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from jackfield.model.meta import Object, Wire
from jackfield.model.names import NO_TIME, NodeName, Time

HEARTBEATS = "jackfield-node"
"""The namespace with one Lease per node, renewed by the node's plugin."""
FAILURES = "jackfield.dev/failures"
"""Annotation of a node: devices that failed on it, `driver/pool/device=time`, by line."""
OPT_OUT = "jackfield.dev/opt-out"
"""Label of a node that is left alone when it is "true"."""
NODE_GROUP = "jackfield.dev/node-group"
"""Label of a node that was added for a group."""


class Taint(Wire, frozen=True, gc=False):
    """A reason for pods to stay away from a node."""

    key: str
    value: str = ""
    effect: str = ""
    time_added: Time = NO_TIME


class NodeCondition(Wire, frozen=True, gc=False):
    """What the kubelet says of its node."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_heartbeat_time: Time = NO_TIME
    last_transition_time: Time = NO_TIME


class NodeSpec(Wire, frozen=True, gc=False):
    """What an administrator wants of a node."""

    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeSystemInfo(Wire, frozen=True, gc=False):
    """What a node runs on, for people to read."""

    kubelet_version: str = ""
    os_image: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class NodeAddress(Wire, frozen=True, gc=False):
    """Where a node is."""

    type: str
    address: str


class NodeStatus(Wire, frozen=True, gc=False):
    """What a node has."""

    capacity: Mapping[str, str] = {}
    allocatable: Mapping[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Object, frozen=True, gc=False, kw_only=True):
    """A machine that runs pods."""

    plural: ClassVar[str] = "nodes"

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def name(self) -> NodeName:
        """The node's name."""
        return NodeName(self.metadata.name)

    @property
    def ready(self) -> bool:
        """Whether its kubelet says so."""
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions)
