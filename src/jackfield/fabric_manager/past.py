"""What was true before: an inventory as a manager would show it that has not looked for a while.

Knows inventories and what moved when. Must not know who asks for the past, nor why.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jackfield.fabric_manager.faults import Fault
from jackfield.fabric_manager.orders import Entry, State
from jackfield.fabric_manager.store import Event
from jackfield.model.fabric import FabricDevice, Inventory, Machine, Order
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds

ATTACHED: Final = "attached"
MOVES: Final = (ATTACHED, "detached")
"""The events by which a device comes to where it is."""
MOVES_MAX: Final = 10_000
"""So many of them are remembered; what was before the oldest is taken to have been as it is now."""

Moves = deque[Event]


def moves(events: Iterable[Event]) -> Moves:
    """Return those that moved a device, as they can be added to."""
    return deque((event for event in events if event.what in MOVES), MOVES_MAX)


def aged(inventory: Inventory, owner: str, known: Moves, stale: Sequence[Fault], now: Seconds) -> Inventory:
    """Return the inventory with all that these faults are about as it was at their time."""
    by_device: dict[PhysicalID, list[Event]] = {}
    for move in known:
        by_device.setdefault(move.device, []).append(move)
    devices = tuple(
        _aged_device(device, owner, by_device.get(device.id, ()), stale, now) for device in inventory.devices
    )
    machines = tuple(_aged_machine(machine, known, stale, now) for machine in inventory.machines)
    return msgspec.structs.replace(inventory, devices=devices, machines=machines)


def listed(entries: Iterable[Entry], shown: Inventory, node: NodeName, model: ModelName) -> tuple[Entry, ...]:
    """Return the orders of a model on a machine as whoever has seen only this inventory would list them."""
    there = {one.id: one for one in shown.devices if (one.node, one.model) == (node, model)}
    kept = [one for one in entries if not one.present or one.device in there]
    known = {one.device for one in kept}
    return (*kept, *(_entry(one, shown) for one in there.values() if one.id not in known))


def _entry(device: FabricDevice, shown: Inventory) -> Entry:
    order = Order(device.order, shown.fabric, device.node, device.model, device.id, device.type)
    return Entry(order, "", State.ATTACHED, device.id, device.serial)


def _moment(fault: Fault, now: Seconds) -> Seconds:
    return Seconds(now - fault.seconds) if fault.seconds else fault.since


def _aged_device(
    device: FabricDevice, owner: str, known: Sequence[Event], stale: Sequence[Fault], now: Seconds
) -> FabricDevice:
    for fault in stale:
        then = _at(device, owner, known, _moment(fault, now))
        meant = not fault.device or fault.device == device.id
        if meant and (not fault.node or fault.node in {device.node, then.node}):
            return then
    return device


def _at(device: FabricDevice, owner: str, known: Sequence[Event], moment: Seconds) -> FabricDevice:
    """Return where the device was: where the last move before brought it, or the first one after took it from."""
    later = next((move for move in known if move.at > moment), None)
    if later is None:
        return device
    before = next((move for move in reversed(known) if move.at <= moment), None)
    there = before if before is not None else later
    here = (there.what == ATTACHED) == (before is not None)
    ours = not here or there.owner == owner
    return msgspec.structs.replace(
        device,
        node=there.node if here else NodeName(""),
        ours=ours,
        order=there.order if here and ours else OrderID(""),
        since=before.at if before is not None else Seconds(0.0),
    )


def _aged_machine(machine: Machine, known: Moves, stale: Sequence[Fault], now: Seconds) -> Machine:
    """Return the machine as of before its devices came and went; a fault of one device says nothing about machines."""
    for fault in stale:
        if not fault.device and fault.node in {"", machine.node}:
            moment = _moment(fault, now)
            moved = [move.at for move in known if move.node == machine.node]
            if any(at > moment for at in moved):
                last = max((at for at in moved if at <= moment), default=Seconds(0.0))
                return msgspec.structs.replace(machine, since=last)
    return machine
