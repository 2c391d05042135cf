"""The hardware of a simulated fabric: which device is where. No time passes here, and nothing goes wrong.

Knows devices, machines and their slots; tells whoever listens what comes and goes, and keeps the history that
checks are made on. Must not know orders' lives, jobs or chance.
"""

import uuid
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice

import msgspec

from jackfield.model.fabric import FabricDevice, Failed, Inventory, Machine, Order
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock
from jackfield.sim.spec import Batch, FabricSpec, Foreign

POOL = NodeName("")
"""Where a device is that is attached to nothing."""
ELSEWHERE = NodeName("another-cluster")
"""Where a device is that somebody else took."""


DEVICES = uuid.UUID("5b1f7d0e-6c1c-5d5e-9c56-0d2f6f0c1a52")
"""The name space in which a device's own UUID is derived from its fabric and number."""


def serial(fabric: FabricName, number: int) -> str:
    """Return the UUID that a device carries for life; managers call it the serial number."""
    return f"GPU-{uuid.uuid5(DEVICES, f'{fabric}/{number}')}"


class Movement(msgspec.Struct, frozen=True):
    """A device came to a node, or left it."""

    at: Seconds
    device: FabricDevice
    node: NodeName
    present: bool
    fabric: FabricName = FabricName("")
    """Whose device it is: two fabrics may call different devices alike."""


Listener = Callable[[Movement], None]


class Pool:
    """All devices and machines of one fabric."""

    def __init__(self, spec: FabricSpec, clock: Clock) -> None:
        self.spec = spec
        self.history: dict[PhysicalID, list[Movement]] = {}
        self._clock = clock
        self._machines = {machine.node: machine for machine in spec.machines}
        self._used = dict.fromkeys(self._machines, 0)
        self._devices: dict[PhysicalID, FabricDevice] = {}
        self._attached: dict[PhysicalID, None] = {}
        self._free: dict[ModelName, OrderedDict[PhysicalID, None]] = {}
        self._reserved: dict[PhysicalID, NodeName] = {}
        self._listeners: dict[NodeName, list[Listener]] = {}
        self._shown: Inventory | None = None
        self._hidden: dict[PhysicalID, None] = {}
        for batch in spec.batches:
            self.add(batch)
        for foreign in spec.foreign:
            for _ in range(foreign.count):
                self._settle_foreign(foreign)

    # --- what it looks like

    def device(self, device: PhysicalID) -> FabricDevice | None:
        """Return the device as it is now; None if there is none of that name."""
        return self._devices.get(device)

    def behind(self, switch: str) -> tuple[PhysicalID, ...]:
        """Return the devices behind a switch."""
        return tuple(one.id for one in self._devices.values() if one.switch == switch)

    def inventory(self) -> Inventory:
        """Return what a manager of these traits shows; the same object until something changes.

        A device on its way to a node still counts as free: it is shown where it is, not where it will be.
        """
        if self._shown is None:
            self._shown = self._inventory()
        return self._shown

    def _inventory(self) -> Inventory:
        machines = tuple(self._machines.values())
        if not self.spec.traits.chooses_device:
            devices = tuple(one for one in self._devices.values() if one.id not in self._hidden)
            return Inventory(self.spec.name, self.spec.traits, machines, devices)
        free = {model: len(ids) for model, ids in self._free.items()}
        for device in map(self._devices.__getitem__, self._reserved):
            free[device.model] += device.healthy
        attached = (self._devices[device] for device in self._attached)
        here = tuple(one for one in attached if one.node != ELSEWHERE and one.id not in self._hidden)
        return Inventory(self.spec.name, self.spec.traits, machines, here, free)

    # --- reserving: who gets what, before anything moves

    def reserve(self, order: Order, *, wrong: bool = False) -> PhysicalID | Failed:
        """Put a device and a slot aside for the order, or say why there is none. `wrong` picks another one."""
        machine = self._machines.get(order.node)
        if machine is None:
            return Failed(f"fabric {self.spec.name} has no machine {order.node}")
        if self._used[order.node] >= machine.slots:
            return Failed(f"all {machine.slots} slots of {order.node} are taken")
        chosen = self._wrong(order) if wrong else self._choice(order)
        if not isinstance(chosen, Failed):
            self._unfree(chosen)
            self._reserved[chosen] = order.node
            self._used[order.node] += 1
        return chosen

    def _choice(self, order: Order) -> PhysicalID | Failed:
        free = self._free.get(order.model)
        if free is None:
            return Failed(f"fabric {self.spec.name} has no devices of model {order.model}")
        if self.spec.traits.chooses_device or not order.device:
            return next(iter(free), None) or Failed(f"no device of model {order.model} is free")
        return self._named(order)

    def _named(self, order: Order) -> PhysicalID | Failed:
        device = self._devices.get(order.device)
        if device is None:
            return Failed(f"fabric {self.spec.name} has no device {order.device}")
        if device.model != order.model:
            return Failed(f"device {device.id} is of model {device.model}, not {order.model}")
        if not device.healthy:
            return Failed(f"device {device.id} is not healthy")
        if device.id not in self._free[device.model]:
            return Failed(f"device {device.id} is taken by {self._reserved.get(device.id) or device.node}")
        return device.id

    def _wrong(self, order: Order) -> PhysicalID | Failed:
        """Return a free device that was not meant: of another model if possible."""
        others = (ids for model, ids in self._free.items() if model != order.model)
        strangers = (device for ids in others for device in ids)
        siblings = (device for device in self._free.get(order.model, ()) if device != order.device)
        return next(strangers, None) or next(siblings, None) or self._choice(order)

    def unreserve(self, device: PhysicalID) -> None:
        """Give up what was put aside; nothing if the device was lost meanwhile."""
        node = self._reserved.pop(device, None)
        if node is not None:
            self._vacate(node)
            self._refree(self._devices[device])

    # --- moving

    def arrive(self, device: PhysicalID, order: OrderID) -> bool:
        """Let a reserved device appear on its node; False if it was lost meanwhile."""
        node = self._reserved.pop(device, None)
        if node is None:
            return False
        shown = order if self.spec.traits.knows_orders else OrderID("")
        self._attach(self._devices[device], node, order=shown, ours=True)
        return True

    def leave(self, device: PhysicalID) -> None:
        """Let an attached device return to the pool; nothing if it was lost meanwhile."""
        before = self._devices.get(device)
        if before is None or not before.node:
            return
        del self._attached[device]
        self._vacate(before.node)
        after = self._put(
            msgspec.structs.replace(before, node=POOL, ours=True, order=OrderID(""), since=self._clock.now())
        )
        self._refree(after)
        self._touched(before.node)
        self._tell(Movement(after.since, after, before.node, present=False, fabric=self.spec.name))

    def _attach(self, before: FabricDevice, node: NodeName, *, order: OrderID, ours: bool) -> None:
        now = self._clock.now()
        after = self._put(msgspec.structs.replace(before, node=node, ours=ours, order=order, since=now))
        self._attached[after.id] = None
        self._touched(node)
        self._tell(Movement(now, after, node, present=True, fabric=self.spec.name))

    # --- what others do to it

    def add(self, batch: Batch) -> None:
        """Put new devices in."""
        free = self._free.setdefault(batch.model, OrderedDict())
        for _ in range(batch.count):
            number = len(self.history)
            device = FabricDevice(
                id=PhysicalID(f"{number:04d}"),
                model=batch.model,
                type=batch.type,
                serial=serial(self.spec.name, number),
                switch=batch.switch,
                attributes=batch.attributes,
                capacity=batch.capacity,
                since=self._clock.now(),
            )
            self.history[self._put(device).id] = []
            free[device.id] = None
        self._shown = None

    def _touched(self, node: NodeName) -> None:
        """Remember on the machine when anything last came or went."""
        machine = self._machines.get(node)
        if machine is not None:
            self._machines[node] = msgspec.structs.replace(machine, since=self._clock.now())

    def add_machine(self, machine: Machine) -> None:
        """Connect a machine, or change its slots."""
        self._machines[machine.node] = machine
        self._used.setdefault(machine.node, 0)
        self._shown = None

    def remove_machine(self, node: NodeName) -> None:
        """Take a machine out; devices on it stay attached until somebody detaches them."""
        self._machines.pop(node, None)
        self._shown = None

    def take(self, model: ModelName, count: int = 1) -> tuple[PhysicalID, ...]:
        """Let another cluster have devices of the pool; fewer if there are fewer."""
        taken = tuple(islice(self._free.get(model, ()), count))
        for device in taken:
            self._unfree(device)
            self._attach(self._devices[device], ELSEWHERE, order=OrderID(""), ours=False)
        return taken

    def move(self, device: PhysicalID, node: NodeName) -> None:
        """Let somebody bring a device to a node by hand, or back to the pool."""
        self.unreserve(device)
        self.leave(device)
        if node:
            self._unfree(device)
            self._used[node] += 1
            self._attach(self._devices[device], node, order=OrderID(""), ours=False)

    def hide(self, *devices: PhysicalID) -> None:
        """Let the manager forget to show these, and no others, though nothing has happened to them."""
        self._hidden = dict.fromkeys(devices)
        self._shown = None

    def give_back(self, device: PhysicalID) -> None:
        """Let the other cluster, or whoever attached it, return a device that is not ours."""
        before = self._devices.get(device)
        if before is not None and not before.ours:
            self.leave(device)

    def set_health(self, device: PhysicalID, *, healthy: bool) -> None:
        """Let a device fall ill, or recover; while ill it is not given out."""
        before = self._devices[device]
        after = self._put(msgspec.structs.replace(before, healthy=healthy))
        if not before.node and device not in self._reserved:
            self._unfree(device)
            self._refree(after)

    def lose(self, device: PhysicalID) -> None:
        """Let a device vanish, wherever it is."""
        self.unreserve(device)
        self.leave(device)
        gone = self._devices.pop(device, None)
        if gone is not None:
            self._free[gone.model].pop(device, None)
        self._shown = None

    def listen(self, node: NodeName, listener: Listener) -> Callable[[], None]:
        """Tell what is on the node, then what comes and goes. Returns what ends it."""
        listeners = self._listeners.setdefault(node, [])
        listeners.append(listener)
        for device in [one for one in map(self._devices.__getitem__, self._attached) if one.node == node]:
            listener(Movement(device.since, device, node, present=True, fabric=self.spec.name))
        return lambda: listeners.remove(listener)

    # --- the books

    def _settle_foreign(self, foreign: Foreign) -> None:
        free = self._free.get(foreign.model)
        device = next(iter(free), None) if free else None
        assert device is not None, f"no device of model {foreign.model} left for {foreign.node}"
        assert foreign.node in self._machines, f"{foreign.node} is no machine of {self.spec.name}"
        self._unfree(device)
        self._used[foreign.node] += 1
        self._attach(self._devices[device], foreign.node, order=OrderID(""), ours=False)

    def _put(self, device: FabricDevice) -> FabricDevice:
        self._devices[device.id] = device
        self._shown = None
        return device

    def _unfree(self, device: PhysicalID) -> None:
        self._free[self._devices[device].model].pop(device, None)

    def _refree(self, device: FabricDevice) -> None:
        if device.healthy:
            self._free[device.model][device.id] = None

    def _vacate(self, node: NodeName) -> None:
        if node in self._used:  # what another cluster held took no slot of ours
            self._used[node] -= 1

    def _tell(self, movement: Movement) -> None:
        self.history[movement.device.id].append(movement)
        for listener in tuple(self._listeners.get(movement.node, ())):
            listener(movement)
