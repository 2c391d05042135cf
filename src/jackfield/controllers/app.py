"""Which controllers make up which process.

Knows the names of the decisions and the kinds they read. Must not know the world they run in.
"""

from collections.abc import Mapping
from functools import partial

from jackfield.controllers.runner import Controller
from jackfield.core import (
    attach,
    autoscale,
    compose,
    drift,
    gates,
    hotplug,
    lead,
    leftover,
    publish,
    quota,
    room,
    scale,
)
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.gates import Gates
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.node import HEARTBEATS, Node
from jackfield.model.pod import Pod
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import EVERYTHING, Selection

PUBLISHER = (
    Controller("publish", publish.decide, publish.wakes, lead.of_slice),
    Controller("room", room.decide, room.wakes, lead.of_node),
)
SCALER = (
    Controller("scale", scale.decide, scale.wakes, lead.of_node),
    Controller("quota", quota.decide, quota.wakes, lead.of_none),
    Controller("leftover", leftover.decide, leftover.wakes, lead.of_claim),
)
OPERATOR = (
    Controller("compose", compose.decide, compose.wakes, lead.of_request),
    Controller("attach", attach.decide, attach.wakes, lead.of_resource),
    Controller("drift", drift.decide, drift.wakes, lead.of_node),
)
NODE = (Controller("hotplug", hotplug.decide, hotplug.wakes, lead.of_none),)
AUTOSCALER = (Controller("autoscale", autoscale.decide, autoscale.wakes, lead.of_none),)

ALL = (*PUBLISHER, *SCALER, *OPERATOR, *AUTOSCALER)
"""What runs in one process by default; the node's part runs on every node."""

KINDS: Mapping[type[Object], Selection] = {
    Node: EVERYTHING,
    Lease: Selection(namespace=HEARTBEATS),
    Pod: EVERYTHING,
    ResourceSlice: EVERYTHING,
    ResourceClaim: EVERYTHING,
    ComposabilityRequest: EVERYTHING,
    ComposableResource: EVERYTHING,
    DeviceTaintRule: EVERYTHING,
}
"""What the controllers watch, and how much of it."""
NODE_KINDS: Mapping[type[Object], Selection] = {ComposableResource: EVERYTHING}


def gatekeeper(found: Gates) -> Controller:
    """Return what tells of a scheduler that does not wait for binding conditions, by what it writes."""
    return Controller("gates", partial(gates.decide, found), gates.wakes, lead.of_claim)
