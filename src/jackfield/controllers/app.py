"""Which controllers make up which process.

Knows the names of the decisions and the kinds they read. Must not know the world they run in.
"""

from jackfield.controllers.runner import Controller
from jackfield.core import attach, autoscale, compose, hotplug, leftover, publish, room, scale
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule

PUBLISHER = (
    Controller("publish", publish.decide, publish.wakes),
    Controller("room", room.decide, room.wakes),
)
SCALER = (
    Controller("scale", scale.decide, scale.wakes),
    Controller("leftover", leftover.decide, leftover.wakes),
)
OPERATOR = (
    Controller("compose", compose.decide, compose.wakes),
    Controller("attach", attach.decide, attach.wakes),
)
NODE = (Controller("hotplug", hotplug.decide, hotplug.wakes),)
AUTOSCALER = (Controller("autoscale", autoscale.decide, autoscale.wakes),)

ALL = (*PUBLISHER, *SCALER, *OPERATOR, *AUTOSCALER)
"""What runs in one process by default; the node's part runs on every node."""

KINDS: tuple[type[Object], ...] = (
    Node,
    Lease,
    Pod,
    ResourceSlice,
    ResourceClaim,
    ComposabilityRequest,
    ComposableResource,
    DeviceTaintRule,
)
NODE_KINDS: tuple[type[Object], ...] = (ComposableResource,)
