"""The books: which order holds which device, who may have which, and what is shown of it all.

Knows hardware, orders and their limits: slots, cables, power. Every change goes to the store in the same turn. Must not
know time (it is handed in), work, or wires.
"""

from collections.abc import Iterable, Iterator

import msgspec

from jackfield.fabric_manager import orders, past
from jackfield.fabric_manager.faults import Faults, Kind
from jackfield.fabric_manager.hardware import Device, Hardware, SwitchName
from jackfield.fabric_manager.orders import Entry
from jackfield.fabric_manager.store import BadStore, Event, Store
from jackfield.model.fabric import FabricDevice, Failed, Inventory, Machine, Order, Traits
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds


class Books:
    """All that has not ended, by order, device, machine and switch."""

    def __init__(self, hardware: Hardware, store: Store, faults: Faults) -> None:
        self.hardware = hardware
        self.store = store
        self._faults = faults
        self._live: dict[OrderID, Entry] = {}
        self._by_device: dict[PhysicalID, OrderID] = {}
        self._by_node: dict[NodeName, dict[OrderID, None]] = {}
        self._used: dict[NodeName, int] = dict.fromkeys(hardware.machines, 0)
        self._watts: dict[SwitchName, int] = dict.fromkeys(hardware.switches, 0)
        self._free: dict[ModelName, dict[PhysicalID, None]] = {}
        self._since = store.since()
        self._shown: dict[str, Inventory] = {}
        self._devices: dict[str, dict[PhysicalID, tuple[FabricDevice, ...]]] = {}
        """What each owner was shown of each device, nothing of some: a move makes one anew, not all."""
        self._moves = past.moves(store.latest(past.MOVES_MAX))
        self.traits = Traits(
            call_timeout=hardware.lab.limits.call_timeout_seconds, jobs=hardware.lab.limits.jobs
        )
        for device in hardware.devices.values():
            self._free.setdefault(device.batch.model, {})[device.id] = None
        for entry in store.live():
            self._check(entry)
            self._take(entry)
            self._live[entry.order.id] = entry

    def _check(self, entry: Entry) -> None:
        gone = "device" if entry.device not in self.hardware.devices else ""
        gone = gone or ("machine" if entry.node not in self.hardware.machines else "")
        if gone:
            raise BadStore(
                f"{gone} {entry.device if gone == 'device' else entry.node} is not in the file any more, "
                f"but {entry.device} is {entry.state} on {entry.node}: put it back and detach it first"
            )

    # --- looking

    def find(self, order: OrderID) -> Entry | None:
        """Return what is known of an order, from memory or, once it has ended, from disk."""
        return self._live.get(order) or self.store.entry(order)

    def holder(self, device: PhysicalID) -> Entry | None:
        """Return the order that holds a device."""
        order = self._by_device.get(device)
        return self._live[order] if order is not None else None

    def on(self, node: NodeName) -> tuple[Entry, ...]:
        """Return the orders that hold a slot of a machine."""
        return tuple(self._live[order] for order in self._by_node.get(node, ()))

    def unfinished(self) -> tuple[Entry, ...]:
        """Return the orders with work to do, oldest first."""
        return tuple(entry for entry in self._live.values() if entry.unfinished)

    def inventory(self, owner: str) -> Inventory:
        """Return what there is, as this owner sees it; the same object until something changes."""
        shown = self._shown.get(owner)
        if shown is None:
            cut = self._cut()
            machines = tuple(
                Machine(one.name, one.slots, self._since.get(f"machine/{one.name}", Seconds(0.0)))
                for one in self.hardware.machines.values()
                if one.name not in cut
            )
            shown = Inventory(self.hardware.name, self.traits, machines, self._shown_to(owner))
            self._shown[owner] = shown
        return shown

    def shown(self, owner: str, now: Seconds) -> Inventory:
        """Return what this owner is shown, which may be old."""
        inventory, stale = self.inventory(owner), self._faults.stale(owner)
        return past.aged(inventory, owner, self._moves, stale, now) if stale else inventory

    def _cut(self) -> set[NodeName]:
        return {fault.node for fault in self._faults if fault.kind is Kind.CUT}

    def _shown_to(self, owner: str) -> tuple[FabricDevice, ...]:
        """Return the devices: each where it is, not where it will be."""
        known = self._devices.setdefault(owner, {})
        if len(known) < len(self.hardware.devices):
            self._look(owner, self.hardware.devices.values())
        return tuple(one for device in self.hardware.devices for one in known[device])

    def device(self, name: PhysicalID, owner: str) -> FabricDevice | None:
        """Return one device as this owner sees it, at no greater cost; nothing if it is not to be seen."""
        known = self._devices.setdefault(owner, {})
        if name not in known:
            self._look(owner, (self.hardware.devices[name],))
        return next(iter(known[name]), None)

    def _look(self, owner: str, devices: Iterable[Device]) -> None:
        known = self._devices[owner]
        gone = {fault.device for fault in self._faults if fault.kind is Kind.VANISH}
        ill = {fault.device for fault in self._faults if fault.kind is Kind.ILL}
        cut = self._cut()
        for device in devices:
            if device.id not in known:
                shown = self._device(device, owner)
                seen = device.id not in gone and shown.node not in cut
                healthy = msgspec.structs.replace(shown, healthy=device.id not in ill)
                known[device.id] = (healthy,) if seen else ()

    def _device(self, device: Device, owner: str) -> FabricDevice:
        holder = self.holder(device.id)
        there = holder if holder is not None and holder.present else None
        ours = there is None or there.owner == owner
        return FabricDevice(
            id=device.id,
            model=device.batch.model,
            type=device.batch.type,
            serial=device.serial,
            switch=device.batch.switch,
            attributes=device.batch.attributes,
            capacity=device.batch.capacity,
            node=there.node if there else NodeName(""),
            ours=ours,
            order=there.order.id if there and ours else OrderID(""),
            since=self._since.get(f"device/{device.id}", Seconds(0.0)),
        )

    def watts(self, switch: SwitchName) -> int:
        """Return what the devices behind a switch draw, those put aside included."""
        return self._watts.get(switch, 0)

    # --- who gets what, before anything moves

    def over_quota(self, order: Order, owner: str) -> Failed | None:
        """Return why this owner gets nothing more, if that is so."""
        for fault in self._faults:
            if fault.kind is Kind.QUOTA and fault.face in {"", owner} and fault.node in {"", order.node}:
                held = [one for one in self._live.values() if one.owner == owner]
                count = sum(fault.node in {"", one.node} for one in held)
                if count >= fault.limit:
                    return Failed(fault.reason or f"the quota is used up: {count} of {fault.limit} devices")
        return None

    def elsewhere(self, device: Device, node: NodeName) -> NodeName:
        """Return another machine with room to which a cable leads; the same one if there is none."""
        others = (one for one in self.hardware.machines.values() if one.name != node)
        return next(
            (
                one.name
                for one in others
                if self._used[one.name] < one.slots and self.hardware.reaches(one.name, device.id)
            ),
            node,
        )

    def choice(self, order: Order, fault: Kind | None = None) -> Device | Failed:
        """Return a device for the order, or why there is none; WRONG and SWAP pick one that was not meant."""
        machine = self.hardware.machines.get(order.node)
        if machine is None:
            return Failed(f"fabric {self.hardware.name} has no machine {order.node}")
        if self._used[order.node] >= machine.slots:
            return Failed(f"all {machine.slots} slots of {order.node} are taken")
        chosen = self._wrong(order, fault) if fault in {Kind.WRONG, Kind.SWAP} else None
        return chosen or (self._named(order) if order.device else self._any(order))

    def _named(self, order: Order) -> Device | Failed:
        device = self.hardware.devices.get(order.device)
        if device is None or self._faults.on(device.id, Kind.VANISH):
            return Failed(f"fabric {self.hardware.name} has no device {order.device}")
        if device.batch.model != order.model:
            return Failed(f"device {device.id} is of model {device.batch.model}, not {order.model}")
        holder = self.holder(device.id)
        if holder is not None:
            return Failed(f"device {device.id} is taken by {holder.node}")
        obstacle = self._obstacle(device, order.node)
        return Failed(obstacle) if obstacle else device

    def _any(self, order: Order) -> Device | Failed:
        free = self._free.get(order.model)
        if free is None:
            return Failed(f"fabric {self.hardware.name} has no devices of model {order.model}")
        why = f"no device of model {order.model} is free"
        for device in map(self.hardware.devices.__getitem__, free):
            obstacle = self._obstacle(device, order.node)
            if not obstacle:
                return device
            why = obstacle
        return Failed(why)

    def _wrong(self, order: Order, fault: Kind | None) -> Device | None:
        """Return a free device that was not meant; WRONG has one of another model if there is any."""
        models = self._free.items() if fault is Kind.WRONG else ()
        others = [device for model, free in models if model != order.model for device in free]
        siblings = [device for device in self._free.get(order.model, ()) if device != order.device]
        found = (self.hardware.devices[device] for device in (*others, *siblings))
        return next((device for device in found if not self._obstacle(device, order.node)), None)

    def _obstacle(self, device: Device, node: NodeName) -> str:
        """Return why a device that is free cannot go to a machine."""
        if self._faults.on(device.id, Kind.VANISH):
            return f"no device of model {device.batch.model} is free"
        if self._faults.on(device.id, Kind.ILL):
            return f"device {device.id} is not healthy"
        if not self.hardware.reaches(node, device.id):
            return f"no port of {node} leads to {device.batch.switch}, where device {device.id} is"
        switch = self.hardware.switches.get(device.batch.switch)
        if switch is not None and switch.power_watts:
            left = switch.power_watts - self._watts[switch.name]
            if device.batch.power_watts > left:
                return (
                    f"device {device.id} draws {device.batch.power_watts} W, {switch.name} has {left} W left"
                )
        return ""

    # --- writing

    def put(self, entry: Entry, now: Seconds) -> None:
        """Write what became of an order, and what that means for its device."""
        before = self._live.pop(entry.order.id, None)
        if before is not None:
            self._release(before)
        if entry.holds:
            self._take(entry)
            self._live[entry.order.id] = entry
        self.store.put(entry, now)
        was = before is not None and before.present
        if was != entry.present:
            self._moved(entry, now)

    def changed(self) -> None:
        """What is shown is another now: a fault came or went."""
        self._shown.clear()
        self._devices.clear()

    def tell(self, what: str, entry: Entry, now: Seconds) -> None:
        """Write an event down."""
        order = entry.order
        event = Event(now, what, entry.device, entry.node, entry.owner, order.id, entry.reason)
        self.store.tell(event)
        if what in past.MOVES:
            self._moves.append(event)

    def _moved(self, entry: Entry, now: Seconds) -> None:
        for name in (f"device/{entry.device}", f"machine/{entry.node}"):
            self._since[name] = now
            self.store.stamp(name, now)
        self._shown.clear()
        for known in self._devices.values():
            known.pop(entry.device, None)
        self.tell("attached" if entry.present else "detached", entry, now)

    def _take(self, entry: Entry) -> None:
        batch = self.hardware.devices[entry.device].batch
        self._free[batch.model].pop(entry.device, None)
        self._by_device[entry.device] = entry.order.id
        self._by_node.setdefault(entry.node, {})[entry.order.id] = None
        self._used[entry.node] += 1
        if batch.switch:
            self._watts[batch.switch] += batch.power_watts

    def _release(self, entry: Entry) -> None:
        batch = self.hardware.devices[entry.device].batch
        self._free[batch.model][entry.device] = None
        del self._by_device[entry.device]
        del self._by_node[entry.node][entry.order.id]
        self._used[entry.node] -= 1
        if batch.switch:
            self._watts[batch.switch] -= batch.power_watts


def seeded(hardware: Hardware, owner: str) -> Iterator[Entry]:
    """Return orders for what was attached before any order: it belongs to nobody who asks."""
    for one in hardware.lab.attached:
        device = hardware.devices[one.device]
        order = Order(
            OrderID(f"{owner}/{one.device}"), hardware.name, one.machine, device.batch.model, one.device
        )
        entry = orders.begun(order, owner, device.id, device.serial)
        yield msgspec.structs.replace(entry, state=orders.State.ATTACHED)
