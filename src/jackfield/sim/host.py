"""`ports.Host` of a simulated node: devices come into sight after a while, and a checkpoint outlives the plugin.

Knows what the fabric plugs in and pulls out of this one node. Must not know claims, orders or other nodes.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from jackfield.model.fabric import FabricDevice
from jackfield.model.names import LONG_AGO, NodeName, PhysicalID, Seconds, Uid
from jackfield.ports import Clock, Prepared, Refused, Retry, Seen
from jackfield.sim.chance import Chance, Distribution, Fixed
from jackfield.sim.loop import world
from jackfield.sim.pool import Movement

FIRST_BUS = 0x10


class HostSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a node takes to hot-plug."""

    hotplug: Distribution = Fixed(Seconds(2.0))
    """From the fabric's attach until the node's kernel knows of the device."""
    needs_rescan: bool = False
    """Whether a device only comes into sight when somebody asks the bus."""
    blind_to: tuple[PhysicalID, ...] = ()
    """Devices that never come into sight here: attached, but their driver does not start."""


async def _is_known() -> bool:
    """Know what is plugged in: one is told of every movement as it happens."""
    return True


class SimHost:
    """One node, its bus and its disk. The object is the node: a plugin that restarts finds all of it again."""

    def __init__(self, node: NodeName, clock: Clock, chance: Chance, spec: HostSpec = HostSpec()) -> None:
        self.node = node
        self.pulled_in_use: list[Movement] = []
        """Devices that left prepared and unreleased: what must never happen."""
        self._clock = clock
        self._chance = chance
        self._spec = spec
        self._plugged: dict[PhysicalID, Seen] = {}  # as each will be seen
        self._linked: dict[PhysicalID, None] = {}  # those whose link is up: a rescan finds them
        self._seen: dict[PhysicalID, Seen] = {}
        self._prepared: dict[tuple[Uid, PhysicalID], Prepared] = {}
        self._in_use: dict[tuple[Uid, PhysicalID], None] = {}  # whatever the checkpoint says
        self.scrapped = False
        """Whether the machine was taken away for good."""
        self.blind_until = LONG_AGO
        """Until then nothing more comes into sight."""
        self.duds: dict[PhysicalID, Seconds] = {}
        """Until when the driver of a device does not start."""
        self.booted_at = LONG_AGO
        """When it was last started anew."""
        self.ask_bus: Callable[[], Awaitable[bool]] = _is_known
        """Brings what is plugged in up to date, and says whether it could; whoever believes a manager asks him."""
        self.clinging_until = LONG_AGO
        """Until then somebody has every device open."""
        self._coming: dict[PhysicalID, asyncio.Task[None]] = {}
        self._listeners: list[Callable[[], None]] = []

    # --- what the fabric does

    def moved(self, movement: Movement) -> None:
        """Take note of a device that came or went; a `pool.Listener`."""
        if movement.present:
            self._plug(movement.device)
        else:
            self._pull(movement)

    def _plug(self, device: FabricDevice) -> None:
        taken = {seen.address for seen in self._plugged.values()}
        addresses = (f"0000:{bus:02x}:00.0" for bus in range(FIRST_BUS, 0x100))
        address = next(one for one in addresses if one not in taken)
        self._plugged[device.id] = Seen(device.id, device.serial, address)
        self._expect(device.id, by_itself=not self._spec.needs_rescan)

    def _expect(self, device: PhysicalID, *, by_itself: bool) -> None:
        if device not in self._spec.blind_to:
            coming = self._come(device, by_itself=by_itself)
            self._coming[device] = asyncio.get_running_loop().create_task(coming, context=world())

    async def _come(self, device: PhysicalID, *, by_itself: bool) -> None:
        await self._clock.sleep(self._spec.hotplug.draw(self._chance.generator))
        while self._clock.now() < (until := max(self.blind_until, self.duds.get(device, LONG_AGO))):
            await self._clock.sleep(Seconds(until - self._clock.now()))
        del self._coming[device]
        self._linked[device] = None
        if by_itself:
            self._see(device)
            self._tell()

    def _pull(self, movement: Movement) -> None:
        device = movement.device.id
        if self.users(device) and device in self._seen:
            self.pulled_in_use.append(movement)
        self._plugged.pop(device, None)
        self._unlink(device)
        if self._seen.pop(device, None) is not None:
            self._tell()

    def _unlink(self, device: PhysicalID) -> None:
        self._linked.pop(device, None)
        coming = self._coming.pop(device, None)
        if coming is not None:
            coming.cancel()

    def _see(self, device: PhysicalID) -> None:
        self._seen[device] = self._plugged[device]

    def reboot(self) -> None:
        """Start the node anew: its devices come up again one by one; the disk keeps the checkpoint."""
        self.booted_at = self._clock.now()
        self._seen.clear()
        for device in self._plugged:
            self._unlink(device)
            self._expect(device, by_itself=True)  # at boot the whole bus is scanned
        self._tell()

    def damage(self) -> None:
        """Lose the checkpoint; whatever runs goes on."""
        self._prepared.clear()
        self._tell()

    def users(self, device: PhysicalID) -> tuple[Uid, ...]:
        """Return the claims for which something that runs uses a device, whatever the checkpoint says."""
        return tuple(uid for uid, physical in self._in_use if physical == device)

    def ended(self, uid: Uid) -> None:
        """Take it that nothing runs any more for a claim, whatever the checkpoint says."""
        self._in_use = {key: None for key in self._in_use if key[0] != uid}

    def scrap(self) -> None:
        """Take the machine away for good: nothing on it uses anything any more, and nobody on it answers."""
        self.scrapped = True
        self.stop()
        self._in_use.clear()
        self._prepared.clear()

    def stop(self) -> None:
        """Cut the power: nothing comes into sight any more."""
        for device in tuple(self._coming):
            self._unlink(device)

    # --- what the plugin does

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever what is seen or prepared has changed. Returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    def seen(self) -> tuple[Seen, ...]:
        """Return the devices in sight, in the order in which they came."""
        return tuple(self._seen.values())

    def prepared(self) -> tuple[Prepared, ...]:
        """Return what the checkpoint says is prepared."""
        return tuple(self._prepared.values())

    def strays(self) -> tuple[Uid, ...]:
        """Return claims that something may run for, of which a damaged checkpoint says nothing."""
        known = [uid for uid, _ in self._prepared]
        return tuple(dict.fromkeys(uid for uid, _ in self._in_use if uid not in known))

    async def rescan(self) -> None:
        """Ask the bus: whatever has a link comes into sight."""
        if not await self.ask_bus():
            return
        new = [device for device in self._linked if device not in self._seen]
        for device in new:
            self._see(device)
        if new:
            self._tell()

    async def release(self, device: PhysicalID, *, force: bool) -> None:
        """Take the device off the bus; it is out of sight until a rescan. Refused while it is prepared."""
        if self.scrapped:
            raise Retry(f"machine {self.node} is not there any more")
        holders = [str(one.claim) for one in self._prepared.values() if one.physical == device]
        if holders and not force:
            raise Refused(f"device {device} is prepared for {', '.join(holders)}")
        if self._clock.now() < self.clinging_until and not force:
            raise Refused(f"device {device} is open in nvidia-persistenced")
        if self._seen.pop(device, None) is not None:
            self._tell()

    async def write(self, prepared: Prepared | None, uid: Uid) -> None:
        """Put one device of the claim into the checkpoint, or remove all of the claim."""
        if self.scrapped:
            return  # whoever was about to write is not there any more either
        before = tuple(self._prepared.items())
        if prepared is not None:
            self._prepared[uid, prepared.physical] = prepared
            self._in_use[uid, prepared.physical] = None
        else:
            self.ended(uid)
            self._prepared = {key: value for key, value in before if key[0] != uid}
        if tuple(self._prepared.items()) != before:
            self._tell()
