"""The Fabric port over a Redfish service: every question is answered soon, whatever the service is about.

Knows what is under way in this process. Must not know how a block is composed, nor why a device is moved.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Self, TypeVar

from msgspec.structs import replace

from jackfield.codec import redfish
from jackfield.fabric.errands import Errands
from jackfield.fabric.http import Wire, too_late
from jackfield.fabric.redfish.access import UNCLEAR_AGAIN, Client, Door, credentials
from jackfield.fabric.redfish.constrained import Constrained
from jackfield.fabric.redfish.events import Events
from jackfield.fabric.redfish.options import Dialect, Options
from jackfield.fabric.redfish.removal import Removal
from jackfield.fabric.redfish.site import Site
from jackfield.fabric.redfish.specific import Specific
from jackfield.fabric.settings import FabricSettings
from jackfield.model.fabric import Done, Failed, Inventory, Order, Progress
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Clock, Gone, Retry

T = TypeVar("T")


class RedfishFabric:
    """One process's line to a service; opened by the first call, closed by leaving the context."""

    def __init__(self, settings: FabricSettings, site: Site, events: Events) -> None:
        self._settings = settings
        self._site = site
        self._events = events
        self._removal = Removal(site)
        self._way = (Constrained if site.options.chooses else Specific)(site, self._removal)
        self._errands = Errands(site.clock)
        self._reading: asyncio.Task[tuple[Seconds, Inventory]] | None = None
        self._outdated = False
        self._readings: set[asyncio.Task[tuple[Seconds, Inventory]]] = set()

    def __repr__(self) -> str:
        return f"RedfishFabric({self._site.name!r}, {self._site.base!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._events.close()
        await self._errands.close()
        for reading in tuple(self._readings):
            reading.cancel()
        await asyncio.gather(*self._readings, return_exceptions=True)
        await self._site.client.door.close()
        await self._site.client.wire.close()

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the service shows. A tree that takes long to read is read on meanwhile, and asked for again."""
        if self._site.options.events:
            self._events.listen(self._site.tree.stream, self._site.bell.ring)
        asked = self._site.clock.now()
        reading = self._reading if self._reading is not None and not self._outdated else self._begun()
        await asyncio.wait((reading,), timeout=self._settings.call_timeout_seconds)
        if not reading.done():
            # Read on also if it is outdated by then: a large tree that changes all the time would never be shown.
            self._reading, self._outdated = reading, False
            raise Retry(f"{self._site.base}: the inventory is still being read")
        if self._reading is reading:
            self._reading = None
        begun, shown = reading.result()
        return replace(shown, begun=begun) if begun < asked else shown

    async def attach(self, order: Order) -> Progress:
        """Begin to attach, or say how far it is."""
        if await self._soon(self._site.place(order.node)) is None:
            return Failed(f"{self._site.base}: fabric {self._site.name} has no machine {order.node}")
        return await self._errands.ask(
            "attach",
            order,
            lambda: self._changed(self._way.attach(order)),
            lambda done: self._on(order, done.device),
        )

    async def detach(self, order: Order) -> Progress:
        """Begin to take back the very device, or say how far it is."""
        nothing = await self._soon(self._removal.nothing(order))
        if nothing is not None:
            return nothing
        return await self._errands.ask(
            "detach", order, lambda: self._changed(self._removal.detach(order)), self._always_new
        )

    # --- what is under way

    def _begun(self) -> asyncio.Task[tuple[Seconds, Inventory]]:
        """Begin to read; those who ask meanwhile are shown the same, until we change something."""
        self._outdated = False
        reading = self._reading = asyncio.get_running_loop().create_task(self._inventory())
        self._readings.add(reading)
        reading.add_done_callback(self._readings.discard)
        reading.add_done_callback(_told)
        return reading

    async def _inventory(self) -> tuple[Seconds, Inventory]:
        """Read everything; return when that began as well."""
        begun = self._site.clock.now()
        picture = await _present(self._site.refresh())
        return begun, self._site.stock.inventory(picture, self._site.nodes)

    async def _changed(self, work: Coroutine[object, object, Progress]) -> Progress:
        """Do the work: then whoever waits for something looks, and whoever asks is shown what came of it."""
        try:
            return await _present(work)
        finally:
            self._outdated = True
            self._site.bell.ring()

    async def _on(self, order: Order, device: PhysicalID) -> bool:
        place = await self._site.place(order.node)
        uri = await self._site.block(device)
        if place is None or not uri:
            return False
        try:
            return (await self._site.look(place, uri, device)).where == place.system
        except Gone:
            return False

    async def _always_new(self, _: Done) -> bool:
        return False  # what was detached may have come back: a detach is looked into whenever it is asked for

    async def _soon(self, look: Coroutine[object, object, T]) -> T:
        """Return what is seen at once. Raises Retry if it takes longer than an answer may."""
        seconds = self._settings.call_timeout_seconds
        try:
            async with asyncio.timeout(seconds):
                return await _present(look)
        except TimeoutError:
            raise Retry(f"{self._site.base}: {too_late(seconds)}") from None


async def _present(work: Coroutine[object, object, T]) -> T:
    """Return what the work gives; where part of the tree is not there, it may come back."""
    try:
        return await work
    except Gone as error:
        raise Retry(str(error), UNCLEAR_AGAIN) from None


def _told(reading: asyncio.Task[tuple[Seconds, Inventory]]) -> None:
    """Look at how it ended: where nobody asked any more, that is no news to the log."""
    if not reading.cancelled():
        reading.exception()


def line(
    settings: FabricSettings, found: Options, dialect: Dialect, environment: Mapping[str, str], clock: Clock
) -> RedfishFabric:
    """Return the line to a service. Raises BadFabric naming the setting."""
    wire = Wire(settings, redfish.JSON)
    door = Door(wire, found.authentication, credentials(found, environment), clock)
    client = Client(wire, door, plain_errors=dialect.plain_errors)
    site = Site(settings.name, found, dialect, client, clock)
    return RedfishFabric(settings, site, Events(settings, door, clock))
