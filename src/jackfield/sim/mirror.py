"""What a manager that is not simulated attaches, as simulated nodes see it.

Knows the inventory, which it reads again and again, and tells of every device that came to a node or left it. Must not
order anything. Where a real node would see the device on its bus, a simulated one believes the manager.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.names import NodeName, PhysicalID, Seconds
from jackfield.ports import Clock, Fabric, PortError
from jackfield.sim.pool import Listener, Movement

LOOK_SECONDS: Final = Seconds(1.0)


class Mirror:
    """The nodes' side of a fabric."""

    def __init__(self, fabric: Fabric, clock: Clock) -> None:
        self._fabric = fabric
        self._clock = clock
        self._attached: dict[PhysicalID, FabricDevice] = {}
        self._listeners: dict[NodeName, list[Listener]] = {}
        self._looking = asyncio.Lock()

    async def run(self) -> None:
        """Look again and again; a manager that does not answer has moved nothing that anybody could see."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> bool:
        """Look once, and return whether the manager answered. Nodes do so when their bus is asked.

        Between two looks of ours a device may have left and its next order have led elsewhere: a node that believed the
        last one would see it, and it would be Online where it is not.
        """
        async with self._looking:
            try:
                inventory = await self._fabric.inventory()
            except PortError:
                return False
            self._compare(inventory)
        return True

    def _compare(self, inventory: Inventory) -> None:
        now = {one.id: one for one in inventory.devices if one.node}
        before, self._attached = self._attached, now
        for device in before.values():
            found = now.get(device.id)
            if found is None or found.node != device.node:
                self._tell(device, present=False)
        for device in now.values():
            known = before.get(device.id)
            if known is None or known.node != device.node:
                self._tell(device, present=True)

    def _tell(self, device: FabricDevice, *, present: bool) -> None:
        movement = Movement(self._clock.now(), device, device.node, present)
        for listener in self._listeners.get(device.node, ()):
            listener(movement)

    # --- as a simulated pool

    def add_machine(self, machine: Machine) -> None:
        """Do nothing: which machines there are is the manager's to say."""

    def remove_machine(self, node: NodeName) -> None:
        """Tell nobody of that node any more."""
        self._listeners.pop(node, None)

    def listen(self, node: NodeName, listener: Listener) -> Callable[[], None]:
        """Have every device that comes to the node or leaves it told. Returns what ends it."""
        listeners = self._listeners.setdefault(node, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def device(self, device: PhysicalID) -> FabricDevice | None:
        """Return a device that is attached."""
        return self._attached.get(device)
