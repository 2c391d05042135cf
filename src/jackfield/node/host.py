"""`ports.Host` of a real machine: sysfs, proc, device files and the checkpoint on its disk.

Knows how the node's eyes and hands are put together, and when to look again. Must not know which device is meant for
whom, nor when one is to be let go.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, Protocol

import msgspec

from jackfield.core import local, sight
from jackfield.driver.cdi import Edits
from jackfield.driver.entry import Entry, Held
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Writer
from jackfield.model.composition import device_id
from jackfield.model.host import HostDevice
from jackfield.model.names import PhysicalID, Seconds, Uid
from jackfield.model.policy import DRIVER, Policy
from jackfield.node import edits, uevents
from jackfield.node.bus import Bus
from jackfield.node.holders import Holders, sentence
from jackfield.node.sysfs import Sysfs
from jackfield.ports import Clock, Prepared, Refused, Retry, Seen

LOOK_SECONDS: Final = Seconds(0.4)
"""How often the names on the bus are read, should the kernel's word not reach us."""
AT_ONCE: Final = Seconds(0.0)
LEISURE_SECONDS: Final = Seconds(0.002)
"""Pause between two devices where nothing calls for a look: 128 of them would slow down whoever is being prepared."""
SETTLE_SECONDS: Final = Seconds(0.05)
"""A device that comes brings dozens of messages: they are one."""
SEEN: Final = "seen"
"""The note of a prepared device: what the node's own eyes call it."""


class Vendor(Protocol):
    """Who knows how a vendor wants its devices brought into containers."""

    def cdi(self, device: HostDevice) -> tuple[str, ...]:
        """Return the names of specs that the vendor's own tool wrote for it; none if it wrote none. Raises Retry."""


class Manners(msgspec.Struct, frozen=True):
    """What a node does in its own way."""

    pod_logs: Path = Path("/var/log/pods")
    interfaces: bool = False
    """Whether network interfaces move into containers: not every runtime can."""
    vendors: tuple[Vendor, ...] = ()
    let_go: Callable[[], None] = lambda: None
    """Closes what we ourselves have open of any device, before one is removed."""
    uevents: Callable[[], socket.socket] = uevents.kernel_socket
    look_closely_seconds: Seconds = Seconds(5.0)
    """How often everything is read again: a driver may say more of its device after a while, and nobody tells."""


class NodeHost:
    """The machine that we run on. What it saw last is remembered; `run` keeps that current."""

    def __init__(
        self, sysfs: Sysfs, store: PreparedStore, clock: Clock, policy: Policy, manners: Manners = Manners()
    ) -> None:
        self.deaf = ""
        """Why the kernel's messages do not reach us, where they do not: then looking now and then has to do."""
        self._sysfs = sysfs
        self._store = store
        self.writer: Final = Writer(store)
        """Who writes the checkpoint down."""
        self._clock = clock
        self._policy = policy
        self._manners = manners
        self._bus = Bus(sysfs.roots.sysfs, clock)
        self._holders = Holders(sysfs.roots.proc, sysfs.roots.sysfs, manners.pod_logs)
        self._others: list[PreparedStore] = []
        self._listeners: list[Callable[[], None]] = []
        self._looks = 0
        self._signature: tuple[object, ...] = ()
        self._devices: Mapping[PhysicalID, HostDevice] = {}
        self._seen: tuple[Seen, ...] = ()
        self._written: tuple[Entry, ...] = ()
        self._prepared: tuple[Prepared, ...] = ()
        self._told = store.revision
        self.look()

    # --- eyes

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever what is seen or prepared has changed. Returns what ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def follow(self, policy: Policy) -> None:
        """See by another policy from now on: it says which devices matter."""
        self._policy = policy
        self.look()

    def beside(self, store: PreparedStore) -> None:
        """Respect what another driver of this process has prepared: it is not let go either."""
        self._others.append(store)

    def devices(self) -> tuple[HostDevice, ...]:
        """Return what was seen last, with all that is known of it."""
        return tuple(self._devices.values())

    def seen(self) -> tuple[Seen, ...]:
        """Return the devices in sight."""
        return self._seen

    def device(self, physical: PhysicalID) -> HostDevice | None:
        """Return what is known of a device in sight."""
        return self._devices.get(physical)

    def look(self) -> None:
        """Look at everything at once; whoever listens hears of what has changed."""
        self._take(self._sysfs.signature(), tuple(self._sysfs.devices()))

    async def _look_in_passing(self, pause: Seconds) -> None:
        """Look at everything, one device at a time: the kubelet is answered in between."""
        signature, looks, devices = self._sysfs.signature(), self._looks, []
        for one in self._sysfs.devices():
            devices.append(one)
            await self._clock.sleep(pause)
        if looks == self._looks:  # else somebody has looked meanwhile, and has seen what is newer
            self._take(signature, tuple(devices))

    def _take(self, signature: tuple[object, ...], devices: tuple[HostDevice, ...]) -> None:
        self._looks += 1
        self._signature = signature
        found = tuple(one for one in devices if local.matters(one, self._policy))
        seen = sight.sights(found)
        known = {one.physical: device for one, device in zip(seen, found, strict=True)}
        if (seen, known) != (self._seen, self._devices):
            self._seen, self._devices = seen, known
            self._tell()

    async def run(self) -> None:
        """Look whenever the kernel says that something has changed, and now and then, for ever."""
        heard = asyncio.Event()
        async with AsyncExitStack() as stack:
            try:
                source = self._manners.uevents()
            except OSError as error:
                self.deaf = f"the kernel's messages cannot be heard: {error.strerror}"
            else:
                await stack.enter_async_context(uevents.Uevents(source, heard.set))
            closely_at = self._clock.now() + self._manners.look_closely_seconds
            while True:
                told = await _within(heard, LOOK_SECONDS)
                if told:
                    await self._clock.sleep(SETTLE_SECONDS)
                    heard.clear()
                changed = told or self._sysfs.signature() != self._signature
                if changed or self._clock.now() >= closely_at:
                    await self._look_in_passing(AT_ONCE if changed else LEISURE_SECONDS)
                    closely_at = self._clock.now() + self._manners.look_closely_seconds

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener()

    # --- hands

    async def rescan(self) -> None:
        """Have the kernel look for devices, and look. Raises Retry, Refused."""
        await self._bus.rescan()
        self.look()

    async def release(self, device: PhysicalID, *, force: bool) -> None:
        """Take the device off the bus, with all its functions. Raises Refused naming who holds it; Retry."""
        self.look()
        claims = [str(one.claim) for one in self._entries() for held in one.held if _is(held, device)]
        if claims and not force:
            raise Refused(f"device {device} is prepared for claim {', '.join(dict.fromkeys(claims))}")
        there = self._devices.get(device)
        if there is None:
            return
        functions = self._sysfs.functions(there.address)
        whole = tuple(one for one in self._sysfs.devices() if one.address in functions) or (there,)
        holders = self._holders.of(whole) if not force else ()
        if holders:
            raise Refused(f"device {device} at {there.address} is used by {sentence(holders)}")
        self._manners.let_go()
        for address in reversed(functions):
            await self._bus.remove(address)
        self.look()

    # --- the checkpoint

    def prepared(self) -> tuple[Prepared, ...]:
        """Return what the checkpoint says is prepared."""
        entries = self._store.entries()
        if entries is not self._written:  # asked several times for every claim, and as long as all claims are
            self._written = entries
            self._prepared = tuple(_prepared(one, held) for one in entries for held in one.held)
        return self._prepared

    def strays(self) -> tuple[Uid, ...]:
        """Return claims that have a CDI file and are not in the checkpoint: somebody or something damaged it."""
        return self._store.strays()

    async def write(self, prepared: Prepared | None, uid: Uid) -> None:
        """Put one device of the claim into checkpoint and CDI folder, or remove all of the claim. Raises Retry."""
        if prepared is None:
            await self.writer.remove(uid)
        else:
            before, held = self._store.get(uid), self._held(prepared)
            others = (one for one in (before.held if before else ()) if _key(one) != _key(held))
            await self.writer.put(Entry(uid, prepared.claim, (*others, held), prepared.pod_claim_name))
        if self._store.revision != self._told:  # else whoever shared the write has told of it
            self._told = self._store.revision
            self._tell()

    def _held(self, prepared: Prepared) -> Held:
        there = self._devices.get(prepared.seen)
        name = device_id(prepared.device)
        if there is None or name is None:
            raise Retry(f"{prepared.seen or prepared.physical} has just gone out of sight")
        made = self.edits(name.device, prepared.seen, there)
        return Held(
            prepared.requests,
            name.pool,
            name.device,
            share_id=prepared.share_id,
            physical=prepared.physical,
            edits=made[0],
            cdi=made[1],
            notes={SEEN: prepared.seen},
            attributes=local.attributes(there),
        )

    def edits(self, name: str, known_as: str, device: HostDevice) -> tuple[Edits, tuple[str, ...]]:
        """What the vendor's own tool says of its device is what the container gets, if it says anything."""
        vendors = tuple(one for vendor in self._manners.vendors for one in vendor.cdi(device))
        if vendors:
            return Edits(env=edits.variables(name, known_as, device)), vendors
        dev = self._sysfs.roots.dev
        return edits.edits(name, known_as, device, dev, interfaces=self._manners.interfaces), ()

    def _entries(self) -> Iterable[Entry]:
        return (one for store in (self._store, *self._others) for one in store.entries())


async def _within(event: asyncio.Event, duration: Seconds) -> bool:
    """Wait for an event, so long at most; return whether it came."""
    try:
        async with asyncio.timeout(duration):
            return await event.wait()
    except TimeoutError:
        return False


def _prepared(entry: Entry, held: Held) -> Prepared:
    return Prepared(
        entry.uid,
        entry.claim,
        held.physical,
        f"{DRIVER}/{held.pool}/{held.device}",
        PhysicalID(held.notes.get(SEEN, "")),
        held.requests,
        held.share_id,
    )


def _key(held: Held) -> tuple[str, str, str]:
    return held.pool, held.device, held.share_id


def _is(held: Held, device: PhysicalID) -> bool:
    return device in (held.physical, held.notes.get(SEEN))
