"""The cables between a fabric and its machines: mostly each machine has its own.

Knows which machine has which cables. Must not know what comes through them.
"""

from collections.abc import Mapping

import msgspec

from jackfield.model.names import FabricName, NodeName, PhysicalID
from jackfield.sim.host import SimHost
from jackfield.sim.pool import Movement


class Cables:
    """What is attached to a machine of a name comes to the machine that has its cables."""

    def __init__(self, hosts: Mapping[NodeName, SimHost]) -> None:
        self._hosts = hosts
        self._exchanged: dict[NodeName, NodeName] = {}
        self._plugged: dict[tuple[FabricName, PhysicalID], Movement] = {}
        """How each device came to where it is."""
        self._where: dict[tuple[FabricName, PhysicalID], NodeName] = {}

    def moved(self, movement: Movement) -> None:
        """Let a device come to a machine, or leave the one that it came to; a `pool.Listener`."""
        place = (movement.fabric, movement.device.id)
        if movement.present:
            where = self._exchanged.get(movement.node, movement.node)
            self._plugged[place], self._where[place] = movement, where
        else:
            self._plugged.pop(place, None)
            where = self._where.pop(place, movement.node)
        self._hosts[where].moved(movement)

    def exchange(self, node: NodeName, other: NodeName) -> None:
        """From now on let what is attached to the one come to the other."""
        self._exchanged |= {node: other, other: node}

    def set_right(self, node: NodeName, other: NodeName) -> None:
        """Have each machine's own cables again; what came to the wrong one comes to the right one."""
        for one in (node, other):
            self._exchanged.pop(one, None)
        for place, movement in self._plugged.items():
            wrong = self._where[place]
            if movement.node in {node, other} and wrong != movement.node:
                self._where[place] = movement.node
                self._hosts[wrong].moved(msgspec.structs.replace(movement, present=False))
                self._hosts[movement.node].moved(movement)
