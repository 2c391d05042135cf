"""Since when what stands where, as far as one process has seen: most managers do not say.

Knows inventories. Must not know any manager. A new process begins to count anew, so that nobody takes for long what may
have come a moment ago.
"""

from msgspec.structs import replace

from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.names import NodeName, PhysicalID, Seconds
from jackfield.ports import Clock


class Sights:
    """What one process has seen of a fabric."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown: Inventory | None = None

    def shown(self, inventory: Inventory) -> Inventory:
        """Return the inventory with since when each is as it is; the same object while nothing changes."""
        now, before = self._clock.now(), self._shown
        known = {one.id: one for one in before.devices} if before else {}
        standing = _standing(before.devices) if before else {}
        machines = {one.node: one for one in before.machines} if before else {}
        there = _standing(inventory.devices)

        def device_since(one: FabricDevice) -> Seconds:
            was = known.get(one.id)
            return was.since if was is not None and was.node == one.node else now

        def machine_since(one: Machine) -> Seconds:
            was = machines.get(one.node)
            same = standing.get(one.node, frozenset()) == there.get(one.node, frozenset())
            return was.since if was is not None and same else now

        dated = replace(
            inventory,
            machines=tuple(replace(one, since=machine_since(one)) for one in inventory.machines),
            devices=tuple(replace(one, since=device_since(one)) for one in inventory.devices),
        )
        if before is None or dated != before:
            self._shown = dated
            return dated
        return before


def _standing(devices: tuple[FabricDevice, ...]) -> dict[NodeName, frozenset[PhysicalID]]:
    found: dict[NodeName, list[PhysicalID]] = {}
    for one in devices:
        found.setdefault(one.node, []).append(one.id)
    return {node: frozenset(ids) for node, ids in found.items()}
