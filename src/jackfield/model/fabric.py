"""What a fabric manager shows of itself: machines, devices, free counts; and the orders it is given.

Knows what all managers have in common. Must not know any one of them.
"""

from collections.abc import Mapping

import msgspec

from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds


class Traits(msgspec.Struct, frozen=True):
    """How a manager differs from others."""

    chooses_device: bool = False
    """The manager picks the device itself; we can only say which model. Entries are slots then."""
    knows_orders: bool = True
    """The manager executes an order id once and closes it for good."""
    call_timeout: Seconds = Seconds(180.0)
    """A call takes effect within this time of being sent, or never."""
    jobs: int = 8
    """How many orders it works on at a time."""


class FabricDevice(msgspec.Struct, frozen=True):
    """A device, in the pool or attached."""

    id: PhysicalID
    model: ModelName
    type: str = "gpu"
    serial: str = ""
    switch: str = ""
    attributes: Mapping[str, str] = {}
    capacity: Mapping[str, str] = {}
    healthy: bool = True
    node: NodeName = NodeName("")
    """The node it is attached to; empty while it is in the pool."""
    ours: bool = True
    """Whether this cluster attached it, as far as the manager can tell; what is not ours is never touched."""
    order: OrderID = OrderID("")
    """The order that attached it, where the manager knows orders."""
    since: Seconds = Seconds(0.0)
    """When it came to where it is."""


class Machine(msgspec.Struct, frozen=True):
    """A node as the manager knows it."""

    node: NodeName
    slots: int = 8
    """How many devices can be attached to it at a time."""
    since: Seconds = Seconds(0.0)
    """When anything attached to it last came or went, as far as the one who asks has seen."""


class Inventory(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that a manager shows at one moment, in the manager's order."""

    fabric: FabricName
    traits: Traits = Traits()
    machines: tuple[Machine, ...] = ()
    devices: tuple[FabricDevice, ...] = ()
    free: Mapping[ModelName, int] = {}
    """Devices in the pool by model, where the manager shows only their number."""
    begun: Seconds = NEVER
    """When it began to be read, where that was before it was asked for."""

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Its machines, and whatever else devices stand on: one that is not listed any more may still have some."""
        standing = (device.node for device in self.devices if device.node)
        return tuple(dict.fromkeys((*(machine.node for machine in self.machines), *standing)))


class Order(msgspec.Struct, frozen=True):
    """What is asked of a manager; the same id always means the same order."""

    id: OrderID
    fabric: FabricName
    node: NodeName
    model: ModelName
    device: PhysicalID = PhysicalID("")
    """The device, where the manager lets one choose, and always for a detach that names one."""
    type: str = "gpu"
    force: bool = False
    foreign: bool = False
    """Of a detach: the device was attached by somebody else, and the policy names it; an attach never is."""


class Working(msgspec.Struct, frozen=True, tag=True):
    """The manager is at it; ask again."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """It is done. For an attach: with which device. For a detach: the order is closed, nothing of it attached."""

    device: PhysicalID = PhysicalID("")
    serial: str = ""


class Failed(msgspec.Struct, frozen=True, tag=True):
    """It will not come about; nothing of it is left attached."""

    reason: str


Progress = Working | Done | Failed
