"""What of a Redfish tree is an inventory: which blocks are devices of ours, free or on a machine, and since when.

Knows one process's sights. Must not know the wire, nor change anything. Redfish says who has reserved a block as
little as since when: both are counted from when we saw it.
"""

from collections.abc import Mapping

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.redfish.options import Options
from jackfield.fabric.redfish.tree import Device, Picture, Tree
from jackfield.fabric.sights import Sights
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.ports import Clock, Refused


class Found(msgspec.Struct, frozen=True):
    """A device, the block that it is in, and the system that the block is part of."""

    block: redfish.ResourceBlock
    device: Device
    system: str


class Stock:
    """What one process has seen of a service, and keeps reserved there."""

    def __init__(self, name: FabricName, found: Options, tree: Tree, clock: Clock) -> None:
        self.name = name
        self._options = found
        self._tree = tree
        self._clock = clock
        self.coming: dict[PhysicalID, int] = {}
        """The devices that orders of this process bring to a machine, and how many orders."""
        self._reserved: dict[str, int] = {}
        """The blocks that we have reserved, and in which session."""
        self._reserved_since: dict[str, Seconds] = {}
        self._sights = Sights(clock)

    # --- who has what

    def ours(self, block: redfish.ResourceBlock, device: Device) -> bool:
        """Return whether a device may be touched: offered, and not named or marked as somebody else's."""
        named = (device.id(block, self._options.identity), block.id or "", device.serial)
        theirs = any(one in self._options.foreign for one in named if one)
        mine = self._options.client
        marked = bool(mine) and bool(block.client) and block.client != mine
        return bool(self.model(device)) and not theirs and not marked

    def model(self, device: Device) -> str:
        """Return what we call a device's model; empty if it is not offered."""
        return self._options.named(device.kind, device.model)

    def reserve(self, block: str, session: int) -> None:
        """Take note that a block is reserved by us."""
        self._reserved[block] = session

    def keeps(self, block: str) -> bool:
        """Return whether this process has reserved a block."""
        return block in self._reserved

    def kept_in(self, block: str) -> int:
        """Return in which session we have reserved a block."""
        return self._reserved[block]

    def reserves(self, block: redfish.ResourceBlock) -> bool:
        """Return whether it is we who reserved a block."""
        marked = bool(self._options.client) and block.client == self._options.client
        return self.keeps(block.uri) or marked

    def release(self, block: str) -> None:
        """Take note that a block is not reserved by us any more."""
        self._reserved.pop(block, None)

    def taken(self, block: redfish.ResourceBlock) -> bool:
        """Return whether somebody else reserved a block, and may still mean it."""
        now = self._clock.now()
        if not block.reserved or not self._tree.idle(block):
            self._reserved_since.pop(block.uri, None)
            return False
        since = self._reserved_since.setdefault(block.uri, now)
        return not self.reserves(block) and now < since + self._options.reservation_seconds

    def usable(self, block: redfish.ResourceBlock, device: Device) -> bool:
        """Return whether nothing is said against a device."""
        broken = block.state in {redfish.CompositionState.FAILED, redfish.CompositionState.UNAVAILABLE}
        well = all(one is None or one.usable for one in (block.status, device.part.status))
        return well and not broken

    def free(self, block: redfish.ResourceBlock, device: Device) -> bool:
        """Return whether a device that is on no machine could be ordered."""
        return self._tree.idle(block) and self.usable(block, device) and not self.taken(block)

    # --- all of it

    def found(self, picture: Picture) -> dict[PhysicalID, Found]:
        """Return the devices of a picture by what they are known by; what says nothing of itself is left out.

        Raises Refused if two are known by the same.
        """
        shown: dict[PhysicalID, Found] = {}
        for uri, device in picture.devices.items():
            block = picture.blocks[uri]
            name = device.id(block, self._options.identity)
            system = self._tree.where(block, picture.listed.get(uri, ""))
            if not name or _absent(block, device):
                continue
            if name in shown:
                other = shown[name].block.uri
                raise Refused(f"{other} and {uri} are both device {name!r}: say another options.identity")
            shown[name] = Found(block, device, system)
        return shown

    def inventory(self, picture: Picture, nodes: Mapping[NodeName, str]) -> Inventory:
        """Return the inventory that a picture is; the same object while nothing changes."""
        places = {system: node for node, system in nodes.items()}
        devices, free = [], {ModelName(one.name): 0 for one in self._options.models}
        for name, one in self.found(picture).items():
            model = ModelName(self.model(one.device) or one.device.model)
            if not one.system and model in free:
                free[model] += self.ours(one.block, one.device) and self.free(one.block, one.device)
            if one.system or not self._options.chooses:
                devices.append(self._device(name, one, model, places, picture))
        machines = tuple(Machine(node, self._options.slots) for node in nodes)
        counts = free if self._options.chooses else {}
        return self._sights.shown(
            Inventory(self.name, self._options.traits, machines, tuple(devices), counts)
        )

    def _device(
        self,
        name: PhysicalID,
        found: Found,
        model: ModelName,
        places: Mapping[str, NodeName],
        picture: Picture,
    ) -> FabricDevice:
        block, device = found.block, found.device
        elsewhere = picture.systems.get(found.system)
        stranger = NodeName((elsewhere.host_name or elsewhere.id or "") if elsewhere else found.system)
        node = places.get(found.system, stranger) if found.system else NodeName("")
        moving = name in self.coming
        zones = sorted(picture.zones.get(block.uri, ()))
        return FabricDevice(
            id=name,
            model=model,
            type=device.kind,
            serial=device.serial,
            switch=zones[0].rpartition("/")[2] if len(zones) == 1 else "",
            attributes={"vendor": device.part.manufacturer} if device.part.manufacturer else {},
            capacity=_capacity(device.part),
            healthy=self.usable(block, device) and (bool(node) or moving or self.free(block, device)),
            node=node,
            ours=self.ours(block, device) and (not found.system or found.system in places),
        )


def _absent(block: redfish.ResourceBlock, device: Device) -> bool:
    shown = (block.status, device.part.status)
    return any(one is not None and one.state == redfish.ABSENT for one in shown)


def _capacity(part: redfish.Part) -> dict[str, str]:
    """Return how much memory, or room, a device has."""
    summary = part.memory_summary.total_memory_size_mib if part.memory_summary else None
    mebibytes = summary or part.capacity_mib
    if mebibytes:
        return {"memory": f"{int(mebibytes)}Mi"}
    return {"storage": str(int(part.capacity_bytes))} if part.capacity_bytes else {}
