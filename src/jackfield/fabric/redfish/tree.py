"""What a Redfish service shows: its systems, resource blocks, zones, and the device in each block.

Knows how the tree is walked in few calls: expanded where the service announces that, else side by side, and only what
has changed. Must not know orders, nor change anything.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.redfish.access import UNCLEAR_AGAIN, Client
from jackfield.fabric.redfish.options import Dialect, Identity, Options
from jackfield.fabric.together import all_of
from jackfield.model.names import NodeName, PhysicalID, Seconds
from jackfield.ports import Clock, Gone, Refused, Retry

T = TypeVar("T")
R = TypeVar("R", bound=redfish.Resource)

PAGES_MAX: Final = 1_000
MEMBERS_MAX: Final = 20_000
ROOT_AGAIN: Final = Seconds(300.0)
"""When the way in is read again: services are upgraded."""
PART_AGAIN: Final = Seconds(60.0)
"""When a device is read again that does not come with its block: it stays what it is, but may fall ill."""

_root = redfish.decoder(redfish.ServiceRoot)
_composition = redfish.decoder(redfish.CompositionService)
_events = redfish.decoder(redfish.EventService)
_collection = redfish.decoder(redfish.Collection)
_system = redfish.decoder(redfish.ComputerSystem)
_block = redfish.decoder(redfish.ResourceBlock)
_zone = redfish.decoder(redfish.Zone)
_part = redfish.decoder(redfish.Part)


class Root(msgspec.Struct, frozen=True):
    """Where everything is, and what the service can do for us."""

    systems: str
    blocks: str
    zones: str
    levels: int
    """How deep an answer can be expanded; 0 is not at all."""
    event_service: str
    read_at: Seconds


class Seen(msgspec.Struct, Generic[T], frozen=True):
    """A resource as it is now, and the tag by which to say that it is meant as it is."""

    value: T
    etag: str


class Device(msgspec.Struct, frozen=True):
    """The device in a block."""

    kind: str
    part: redfish.Part

    @property
    def model(self) -> str:
        """What the service calls its model."""
        return self.part.model or self.part.part_number or self.part.name or ""

    @property
    def serial(self) -> str:
        """What it is known by on a node."""
        return self.part.serial_number or self.part.uuid or ""

    def id(self, block: redfish.ResourceBlock, identity: Identity) -> PhysicalID:
        """Return what it is known by, wherever it is; empty if it does not say."""
        names = {
            Identity.BLOCK: block.id or "",
            Identity.SERIAL: self.part.serial_number or "",
            Identity.UUID: self.part.uuid or "",
        }
        return PhysicalID(names[identity])


class Picture(msgspec.Struct, frozen=True):
    """The tree at one moment, as far as one moment can be read."""

    systems: Mapping[str, redfish.ComputerSystem]
    blocks: Mapping[str, redfish.ResourceBlock]
    devices: Mapping[str, Device]
    """By their blocks; blocks that are no device, or several, are not among them."""
    zones: Mapping[str, frozenset[str]]
    """The zones that a block is in, by the block."""
    listed: Mapping[str, str]
    """Which system lists a block."""

    def fixed(self, system: redfish.ComputerSystem) -> tuple[str, ...]:
        """Return the blocks that a machine is built of: never given back, and its zones are the machine's."""
        return tuple(one for one in system.blocks if one in self.blocks and one not in self.devices)

    def apart(self, system: redfish.ComputerSystem, block: str) -> bool:
        """Whether the zones say that machine and block cannot go together; silence does not."""
        built = [self.zones[one] for one in self.fixed(system) if self.zones.get(one)]
        own = self.zones.get(block, frozenset())
        return bool(built) and bool(own) and not own.intersection(*built)


class Tree:
    """One service, read by one process."""

    def __init__(self, client: Client, found: Options, dialect: Dialect, clock: Clock) -> None:
        self._client = client
        self._options = found
        self._dialect = dialect
        self._clock = clock
        self._root: Root | None = None
        self._entering = asyncio.Lock()
        self._expands = True
        self._parts: dict[str, tuple[redfish.Part, Seconds]] = {}

    # --- the way in

    async def root(self) -> Root:
        """Return where everything is. Raises Retry or Refused."""
        async with self._entering:
            now = self._clock.now()
            if self._root is None or now > self._root.read_at + ROOT_AGAIN:
                self._root = await self._read_root(now)
            return self._root

    async def _read_root(self, now: Seconds) -> Root:
        root = self._client.understood(_root, (await self._client.read(redfish.SERVICE_ROOT)).body)
        if root.systems is None or root.composition_service is None:
            raise self._missing("CompositionService" if root.systems else "Systems")
        service = self._client.understood(
            _composition, (await self._client.read(root.composition_service.uri)).body
        )
        if service.resource_blocks is None:
            raise self._missing("ResourceBlocks")
        self._expands = True  # whatever came of that before
        query = root.protocol_features_supported and root.protocol_features_supported.expand_query
        levels = 0
        if query and query.no_links:
            levels = min(2, query.max_levels or 2) if query.levels else 1
        return Root(
            systems=root.systems.uri,
            blocks=service.resource_blocks.uri,
            zones=service.resource_zones.uri if service.resource_zones else "",
            levels=max(0, levels),
            event_service=root.event_service.uri if root.event_service else "",
            read_at=now,
        )

    def _missing(self, what: str) -> Retry:
        says = f"the service shows no {what}: it cannot compose, or has not started yet"
        failure = Retry(says, UNCLEAR_AGAIN)
        self._client.wire.named(failure)
        return failure

    async def stream(self) -> str:
        """Return where the service's events can be listened to; empty if nowhere. Raises Retry or Gone."""
        root = await self.root()
        if not root.event_service:
            return ""
        service = self._client.understood(_events, (await self._client.read(root.event_service)).body)
        return service.server_sent_event_uri or ""

    # --- one thing, as it is now

    async def system(self, uri: str) -> Seen[redfish.ComputerSystem]:
        """Return a system as it is now. Raises Retry or Gone."""
        shown = await self._client.read(uri)
        found = self._client.understood(_system, shown.body)
        self._is_about(uri, found.uri)
        return Seen(found, redfish.tag(shown.etag, found.etag))

    async def block(self, uri: str) -> Seen[redfish.ResourceBlock]:
        """Return a block as it is now. Raises Retry or Gone."""
        shown = await self._client.read(uri)
        found = self._client.understood(_block, shown.body)
        self._is_about(uri, found.uri)
        return Seen(found, redfish.tag(shown.etag, found.etag))

    def _is_about(self, asked: str, shown: str) -> None:
        """Raise Retry unless an answer is to what was asked: of another thing nothing follows for this one."""
        if shown.rstrip("/") != asked.rstrip("/"):
            says = f"{asked} was asked for, and the answer is about {shown}"
            raise self._client.wire.named(Retry(says, UNCLEAR_AGAIN))

    async def device(self, block: redfish.ResourceBlock, *, now: bool = False) -> Device | None:
        """Return the device in a block, with `now` read anew; None if it is none, or several. Raises Retry."""
        kind, parts = _candidates(block)
        found = [await self._part(one, now=now) for one in parts]
        own = [one for one in found if one is not None and one.processor_type != redfish.ProcessorType.CPU]
        if len(own) != 1:
            return None
        part = own[0]
        if kind == "processor":
            kind = (part.processor_type or "processor").lower()
        return Device(kind, part)

    async def _part(self, part: redfish.Part, *, now: bool) -> redfish.Part | None:
        if part.id and (part.model or not (part.links and part.links.network_adapter)):
            return part  # it came with its block
        known = self._parts.get(part.uri)
        if known is not None and not now and self._clock.now() < known[1] + PART_AGAIN:
            return known[0]
        try:
            read = part if part.id else await self._read_part(part.uri)
            if not read.model and read.links and read.links.network_adapter:
                read = await self._read_part(read.links.network_adapter.uri)
        except Gone:
            return None
        self._parts[part.uri] = (read, self._clock.now())
        return read

    async def _read_part(self, uri: str) -> redfish.Part:
        return self._client.understood(_part, (await self._client.read(uri, kept=True)).body)

    # --- all of it

    async def systems(self) -> tuple[redfish.ComputerSystem, ...]:
        """Return all systems. Raises Retry or Refused."""
        return await self._members((await self.root()).systems, _system, 1)

    async def picture(self) -> Picture:
        """Return all that there is. Raises Retry or Refused."""
        root = await self.root()
        systems = await self._members(root.systems, _system, 1)
        blocks = await self._members(root.blocks, _block, 2)
        zones = await self._members(root.zones, _zone, 1) if root.zones else ()
        found = await all_of([self.device(one) for one in blocks])
        devices = {
            block.uri: device for block, device in zip(blocks, found, strict=True) if device is not None
        }
        held = {part.uri for block in blocks for part in _candidates(block)[1]}
        self._parts = {uri: known for uri, known in self._parts.items() if uri in held}
        return Picture(
            systems={one.uri: one for one in systems},
            blocks={one.uri: one for one in blocks},
            devices=devices,
            zones=_zones_of(blocks, zones),
            listed={block: one.uri for one in systems for block in one.blocks},
        )

    async def _members(self, uri: str, reader: msgspec.json.Decoder[R], levels: int) -> tuple[R, ...]:
        """Return the members of a collection, each read in full. Raises Retry or Refused."""
        depth = min(levels, (await self.root()).levels) if self._expands else 0
        query = {0: "", 1: "?$expand=."}.get(depth, f"?$expand=.($levels={depth})")
        try:
            raw = await self._pages(uri + query)
        except (Gone, Retry):
            if not query or not await self._plainly(uri):
                raise
            raw = await self._pages(uri)
        members = [self._client.understood(reader, one) for one in raw]
        listed = [one for one in members if not one.id]
        read = await all_of([self._in_full(one, reader) for one in listed])
        full = dict(zip((one.uri for one in listed), read, strict=True))
        found = (one if one.id else full[one.uri] for one in members)
        return tuple(one for one in found if one is not None)

    async def _plainly(self, uri: str) -> bool:
        """Return whether a collection can be read without being expanded, as it could not with; then so be it."""
        await self._client.read(uri)
        self._expands = False
        return True

    async def _in_full(self, member: R, reader: msgspec.json.Decoder[R]) -> R | None:
        try:
            shown = await self._client.read(member.uri, kept=True)
        except Gone:
            return None  # since it was listed
        return self._client.understood(reader, shown.body)

    async def _pages(self, uri: str) -> list[msgspec.Raw]:
        found: list[msgspec.Raw] = []
        seen: set[str] = set()
        page = uri
        while page:
            seen.add(page)
            # An expanded answer is not kept: its tag may be the list's alone, and say nothing of the members.
            answer = await self._client.read(page, kept="?" not in page)
            shown = self._client.understood(_collection, answer.body)
            found += shown.members
            page = shown.next_link or ""
            if page in seen or len(seen) > PAGES_MAX or len(found) > MEMBERS_MAX:
                says = f"{uri} has no end: {len(found)} members on {len(seen)} pages"
                raise self._client.wire.named(Retry(says, UNCLEAR_AGAIN))
        return found

    # --- machines

    def nodes(self, systems: tuple[redfish.ComputerSystem, ...]) -> dict[NodeName, str]:
        """Return which system each node is. Raises Refused if that is not clear."""
        table = {one.lower(): node for node, one in self._options.machines.items()}
        found: dict[NodeName, str] = {}
        for one in systems:
            names = (one.id or "", one.uuid or "", one.uri)
            node = (
                next((table[name.lower()] for name in names if name.lower() in table), "")
                if table
                else one.host_name or ""
            )
            if node in found:
                raise Refused(
                    f"{self._client.wire.base}: {found[NodeName(node)]} and {one.uri} are both {node!r}; "
                    "say in options.machines, by UUID, which is meant"
                )
            if node:
                found[NodeName(node)] = one.uri
        return found

    def where(self, block: redfish.ResourceBlock, listed: str) -> str:
        """Return the system that a block is part of, given which one lists it; empty if it is free."""
        if self._dialect.placed_by_system or block.state == redfish.CompositionState.COMPOSING:
            return listed
        return next(iter(block.systems), "") or listed

    def idle(self, block: redfish.ResourceBlock) -> bool:
        """Return whether a block that no machine has is used by nobody, for all that it says."""
        words = (redfish.CompositionState.UNUSED, "")
        return block.state in words or (self._dialect.placed_by_system and block.composed)

    async def lister(self, block: str, system: redfish.ComputerSystem) -> str:
        """Return the system that lists a block: this one, or any where only lists count. Raises Retry."""
        if block in system.blocks:
            return system.uri
        others = await self.systems() if self._dialect.placed_by_system else ()
        return next((one.uri for one in others if block in one.blocks and one.uri != system.uri), "")


def _candidates(block: redfish.ResourceBlock) -> tuple[str, tuple[redfish.Part, ...]]:
    """Return of what kind a block's devices are, and which; none of a block that a machine is built of."""
    built = {redfish.BlockType.COMPUTE, redfish.BlockType.COMPUTER_SYSTEM}
    if built.intersection(block.resource_block_type or ()):
        return "", ()
    kinds = (
        ("processor", block.processors),
        ("nic", block.network_interfaces),
        ("nic", block.ethernet_interfaces),
        ("drive", block.drives),
        ("cxlmemory", block.memory),
    )
    return next(((kind, parts) for kind, parts in kinds if parts), ("", ()))


def _zones_of(
    blocks: tuple[redfish.ResourceBlock, ...], zones: tuple[redfish.Zone, ...]
) -> dict[str, frozenset[str]]:
    """Return the zones of each block, whichever side says so."""
    found: dict[str, set[str]] = {one.uri: set(one.zones) for one in blocks}
    for zone in zones:
        for block in zone.blocks:
            found.setdefault(block, set()).add(zone.uri)
    return {uri: frozenset(those) for uri, those in found.items()}
