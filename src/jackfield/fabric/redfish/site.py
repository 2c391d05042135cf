"""One Redfish service as orders meet it: whose turn it is, what a machine and a block are like now, what was sent.

Knows how long to wait, and for whom. Must not know what an order comes to.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.http import Request
from jackfield.fabric.redfish.access import Accepted, Client, Declined, Sent
from jackfield.fabric.redfish.options import Dialect, Identity, Options
from jackfield.fabric.redfish.stock import Stock
from jackfield.fabric.redfish.tree import Device, Picture, Seen, Tree
from jackfield.fabric.together import all_of
from jackfield.model.names import FabricName, NodeName, PhysicalID, Seconds
from jackfield.ports import Clock, Gone, Retry

T = TypeVar("T")

POLL_FIRST: Final = Seconds(0.1)
POLL_MAX: Final = Seconds(2.0)
"""How often what is under way is asked about, where the service does not say how often it wants to be."""
BACK_OFF_MAX: Final = Seconds(15.0)
HEADERS: Final = {"Content-Type": redfish.JSON}


class Place(msgspec.Struct, frozen=True):
    """A node and its system."""

    node: NodeName
    system: str


class Look(msgspec.Struct, frozen=True):
    """A block and a machine as they are now."""

    block: Seen[redfish.ResourceBlock]
    system: Seen[redfish.ComputerSystem]
    device: Device
    where: str
    """The system that the block is part of; empty if none."""

    @property
    def moving(self) -> bool:
        """Whether the service is at it."""
        return self.block.value.state == redfish.CompositionState.COMPOSING


class Bell:
    """Rung when there is news; whoever waits for something looks at once."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Tell everybody who waits now."""
        rung, self._rung = self._rung, asyncio.Event()
        rung.set()

    async def wait(self, clock: Clock, span: Seconds) -> None:
        """Wait so long, or until it rings; but never not at all, however often it does."""
        await clock.sleep(min(span, POLL_FIRST))
        if span <= POLL_FIRST:
            return
        loop = asyncio.get_running_loop()
        waits = (
            loop.create_task(clock.sleep(Seconds(span - POLL_FIRST))),
            loop.create_task(_until(self._rung)),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


async def _until(event: asyncio.Event) -> None:
    await event.wait()


class Pace:
    """How long to wait between two looks: ever longer."""

    def __init__(self, most: Seconds = POLL_MAX) -> None:
        self._most = most
        self._next = POLL_FIRST

    def next(self, at_least: Seconds = Seconds(0.0)) -> Seconds:
        """Return how long to wait now."""
        span, self._next = self._next, Seconds(min(self._most, self._next * 2))
        return max(span, at_least)


class Site:
    """One service, spoken to by one process."""

    def __init__(
        self, name: FabricName, found: Options, dialect: Dialect, client: Client, clock: Clock
    ) -> None:
        self.name = name
        self.options = found
        self.dialect = dialect
        self.client = client
        self.clock = clock
        self.base = client.wire.base
        self.tree = Tree(client, found, dialect, clock)
        self.stock = Stock(name, found, self.tree, clock)
        self.bell = Bell()
        self.picture: Picture | None = None
        self.nodes: dict[NodeName, str] = {}
        self._blocks: dict[PhysicalID, str] = {}
        self._machines: dict[str, asyncio.Lock] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._jobs = asyncio.Semaphore(found.jobs)

    # --- all of it

    async def refresh(self) -> Picture:
        """Read everything. Raises Retry or Refused."""
        picture = await self.tree.picture()
        nodes = self.tree.nodes(tuple(picture.systems.values()))
        self._blocks = {name: one.block.uri for name, one in self.stock.found(picture).items()}
        self.picture, self.nodes = picture, nodes
        return picture

    async def place(self, node: NodeName) -> Place | None:
        """Return a node's system; None if it is none of this fabric. Raises Retry or Refused."""
        if node not in self.nodes:
            self.nodes = self.tree.nodes(await self.tree.systems())
        system = self.nodes.get(node)
        return Place(node, system) if system else None

    async def block(self, device: PhysicalID) -> str:
        """Return the block that a device is in; empty if there is no such device. Raises Retry or Refused."""
        if device not in self._blocks or self.picture is None:
            await self.refresh()
        return self._blocks.get(device, "")

    def forget(self) -> None:
        """Look everything up anew: the tree is another than it was."""
        self._blocks, self.nodes = {}, {}

    # --- one machine and one block

    async def look(self, place: Place, uri: str, device: PhysicalID) -> Look:
        """Return machine and block as they are now. Raises Retry, Gone if one of them is no more."""
        try:
            return await self._looked(place, uri, device)
        except Gone:
            self.forget()
            await self.refresh()
            if self._blocks.get(device) and place.node in self.nodes:
                raise Retry(f"{self.base}: {device} or {place.node} has another name now") from None
            raise

    async def _looked(self, place: Place, uri: str, device: PhysicalID) -> Look:
        block = await self.tree.block(uri)
        system = await self.tree.system(place.system)
        anew = self.options.identity is not Identity.BLOCK
        found = await self.tree.device(block.value, now=anew)
        if found is None or (device and found.id(block.value, self.options.identity) != device):
            raise Gone(f"{self.base}: {uri} is not device {device} any more")
        return Look(
            block, system, found, self.tree.where(block.value, await self.tree.lister(uri, system.value))
        )

    async def insisted(self, ask: Callable[[], Coroutine[object, object, T]], until: Seconds) -> T:
        """Read what must be known, again and again while there is time. Raises Retry, Gone or Refused."""
        pace = Pace()
        while True:
            try:
                return await ask()
            except Retry as error:
                wait = pace.next(min(error.after, BACK_OFF_MAX))
                if self.clock.now() + wait > until:
                    raise
            await self.pause(wait)

    async def pause(self, span: Seconds) -> None:
        """Wait, but not past news."""
        await self.bell.wait(self.clock, span)

    # --- turns

    @asynccontextmanager
    async def turn(self, uri: str, asked: Seconds, alone: str = "") -> AsyncIterator[Seconds]:
        """Be the one who changes a block, and `alone` a machine; gives until when a call may be sent.

        Raises Retry if it is too late.
        """
        until = Seconds(asked + self.options.queue_seconds)
        machine = self._machines.setdefault(alone, asyncio.Lock()) if alone else asyncio.Lock()
        async with self._turns.setdefault(uri, asyncio.Lock()), machine, self._jobs:
            if self.clock.now() > until:
                raise Retry(
                    f"{self.base}: there was too much to do for {self.options.queue_seconds:g} s; "
                    "nothing was sent"
                )
            yield until

    def alone(self, place: Place) -> str:
        """Return the machine that only one may change at a time: one whose whole list of blocks is sent."""
        known = self.picture.systems.get(place.system) if self.picture is not None else None
        actions = (
            known.actions if known is not None and self.options.actions and self.dialect.actions else None
        )
        return "" if actions is not None and actions.add and actions.remove else place.system

    @contextmanager
    def bringing(self, device: PhysicalID) -> Iterator[None]:
        """Take note that an order brings a device to a machine while it does."""
        counts = self.stock.coming
        counts[device] = counts.get(device, 0) + 1
        try:
            yield
        finally:
            counts[device] -= 1
            if not counts[device]:
                del counts[device]

    def keep(self, uri: str) -> None:
        """Take note that a block is reserved by us."""
        self.stock.reserve(uri, self.client.door.sessions)

    def effect_by(self, until: Seconds) -> Seconds:
        """Return until when a call that was sent just now may still take effect; it was sent by `until`."""
        return Seconds(min(self.clock.now(), until) + self.options.effect_seconds)

    # --- sending

    async def patch(self, uri: str, body: redfish.Body, etag: str, *, soon: bool = False) -> Sent:
        """Change a resource that is as it was; without a tag, whatever it is like. `soon` is no long work."""
        if self.dialect.names_itself:
            body = {redfish.ID: uri, "Id": uri.rstrip("/").rpartition("/")[2], **body}
        headers = {**HEADERS, "If-Match": etag} if etag else HEADERS
        return await self._changed(Request("PATCH", uri, redfish.encode(body), headers), soon=soon)

    async def post(self, uri: str, body: redfish.Body) -> Sent:
        """Have an action done."""
        return await self._changed(Request("POST", uri, redfish.encode(body), HEADERS))

    async def _changed(self, request: Request, *, soon: bool = False) -> Sent:
        span = Seconds(0.0) if soon else self.options.effect_seconds
        return await self.client.change(msgspec.structs.replace(request, timeout=span))

    async def follow(self, sent: Accepted, deadline: Seconds) -> Accepted | Declined | None:
        """Return what work came to that takes its time; None if it goes on when time is up."""
        pace, after, doubted = Pace(), sent.after, False
        while sent.monitor:
            if self.clock.now() >= deadline:
                # Whoever gave up waiting does not want it any more; a service need not be able to stop.
                await self.client.change(Request("DELETE", sent.monitor))
                return None
            await self.pause(pace.next(after))
            told = await self.client.watch(sent.monitor)
            if isinstance(told, Accepted) and not told.monitor:
                return told
            if isinstance(told, Declined):
                if not told.doubtful or doubted:
                    return told
                doubted = True
                continue
            doubted = False
            after = told.after if told is not None else Seconds(0.0)
        return sent

    def lacks(self, system: redfish.ComputerSystem) -> bool:
        """Return whether a machine's list lacks a block that the machine is built of: sent back, it would lose it."""
        known = self.picture.systems.get(system.uri) if self.picture is not None else None
        if known is None or self.picture is None:
            return not system.lists_blocks
        return not system.lists_blocks or not {*self.picture.fixed(known)} <= {*system.blocks}

    async def picture_now(self) -> Picture:
        """Return the last picture, or the first. Raises Retry or Refused."""
        return self.picture if self.picture is not None else await self.refresh()

    async def devices(self, uris: tuple[str, ...]) -> tuple[tuple[redfish.ResourceBlock, Device], ...]:
        """Return those of some blocks that are devices, as they are now. Raises Retry."""
        found = await all_of([self._one(uri) for uri in uris])
        return tuple(one for one in found if one is not None)

    async def _one(self, uri: str) -> tuple[redfish.ResourceBlock, Device] | None:
        try:
            block = (await self.tree.block(uri)).value
            device = await self.tree.device(block)
        except Gone:
            return None
        return (block, device) if device is not None else None
