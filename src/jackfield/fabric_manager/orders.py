"""The life of an order: a state machine over values, and what is answered in each state.

Knows what an order has come to and what may become of it. Must not know devices' whereabouts, time, files or wires.
"""

from enum import StrEnum

import msgspec

from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import NodeName, PhysicalID


class State(StrEnum):
    """How far an order has come; it never goes back, but for a detach that failed."""

    QUEUED = "queued"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"
    ENDED = "ended"


class Entry(msgspec.Struct, frozen=True):
    """What the books say of an order."""

    order: Order
    owner: str
    """Whose it is: the face that placed it; nobody else detaches it."""
    state: State
    device: PhysicalID = PhysicalID("")
    """The device put aside for it or attached; of an ended order the one it had."""
    serial: str = ""
    reason: str = ""
    """Why its last step failed; empty if it did not."""
    closed: bool = False
    """Whether a detach was asked for; there is no way back from that."""
    place: NodeName = NodeName("")
    """The machine it went to, where that is another than was meant."""

    @property
    def node(self) -> NodeName:
        """The machine that its device goes to, or is on."""
        return self.place or self.order.node

    @property
    def holds(self) -> bool:
        """Whether device and slot are taken."""
        return self.state is not State.ENDED

    @property
    def present(self) -> bool:
        """Whether the device is on its node."""
        return self.state in {State.ATTACHED, State.DETACHING}

    @property
    def unfinished(self) -> bool:
        """Whether there is work to do."""
        return self.state in {State.QUEUED, State.ATTACHING, State.DETACHING}


# --- beginnings


def begun(order: Order, owner: str, device: PhysicalID, serial: str) -> Entry:
    """Return an order for which a device was put aside."""
    return Entry(order, owner, State.QUEUED, device, serial)


def misled(entry: Entry, node: NodeName) -> Entry:
    """Return the order with its device on the way to this machine."""
    return msgspec.structs.replace(entry, place=NodeName("" if node == entry.order.node else node))


def impossible(order: Order, owner: str, reason: str) -> Entry:
    """Return an order that came to nothing at once."""
    return Entry(order, owner, State.ENDED, reason=reason)


def never(order: Order, owner: str) -> Entry:
    """Return an order that was closed before it began: an attach that comes late finds it so."""
    return Entry(order, owner, State.ENDED, closed=True)


# --- questions


def another(entry: Entry, order: Order) -> str:
    """Return how an attach differs from what its id was placed for; empty if it is the same."""
    placed = entry.order
    if (placed.node, placed.model) != (order.node, order.model):
        return f"order {order.id} was placed for {placed.model} on {placed.node}"
    if placed.device and order.device not in {PhysicalID(""), placed.device, entry.device}:
        return f"order {order.id} was placed for device {placed.device}"
    return ""


def attach_answer(entry: Entry) -> Progress:
    """Return what an attach is answered."""
    if entry.closed:
        return Failed(f"order {entry.order.id} is closed")
    match entry.state:
        case State.QUEUED | State.ATTACHING:
            return Working()
        case State.ATTACHED | State.DETACHING:
            return Done(entry.device, entry.serial)
        case State.ENDED:
            return Failed(entry.reason)


def detach_asked(entry: Entry) -> tuple[Entry, Progress]:
    """Return what a detach makes of the order, and what is answered.

    An attach under way cannot be stopped: when it is through, it is turned round. A detach that failed is told once;
    the next one tries again.
    """
    closed = msgspec.structs.replace(entry, closed=True)
    match entry.state:
        case State.QUEUED:
            return msgspec.structs.replace(closed, state=State.ENDED), Done(entry.device, entry.serial)
        case State.ATTACHED if entry.reason:
            return msgspec.structs.replace(closed, reason=""), Failed(entry.reason)
        case State.ATTACHED:
            return msgspec.structs.replace(closed, state=State.DETACHING), Working()
        case State.ATTACHING | State.DETACHING:
            return closed, Working()
        case State.ENDED:
            return closed, Done(entry.device, entry.serial)


# --- work


def started(entry: Entry) -> Entry:
    """Return the order as somebody begins to work on it."""
    return msgspec.structs.replace(entry, state=State.ATTACHING) if entry.state is State.QUEUED else entry


def attach_ended(entry: Entry, reason: str) -> Entry:
    """Return the order after the work of attaching; `reason` says why it failed."""
    if entry.state is not State.ATTACHING:
        return entry  # the device vanished meanwhile
    if reason:
        return msgspec.structs.replace(entry, state=State.ENDED, reason=reason)
    return msgspec.structs.replace(entry, state=State.DETACHING if entry.closed else State.ATTACHED)


def detach_ended(entry: Entry, reason: str) -> Entry:
    """Return the order after the work of detaching."""
    if entry.state is not State.DETACHING:
        return entry
    return msgspec.structs.replace(entry, state=State.ATTACHED if reason else State.ENDED, reason=reason)


def vanished(entry: Entry) -> Entry:
    """Return the order after its device vanished: it failed, or has nothing left to detach."""
    return msgspec.structs.replace(entry, state=State.ENDED, reason=f"device {entry.device} vanished")
