"""Liqid Director: a machine is put into edit, a device is put on it or taken from it, and the fabric reprogrammed.

Knows what its calls mean and what may become of them. Must not know why a device is moved. One order is one edit, by a
task of its own; orders for one machine, or for one device, wait for each other. Whatever goes wrong before the fabric
is reprogrammed, the edit is cancelled, and nothing was done. Nobody says whose an open edit is: one that is not ours is
waited for, and one that leads to nothing for long was left behind, by a crash of ours or of somebody else, and is
cancelled. What came of reprogramming is what the Director shows afterwards, whatever it said.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self, TypeVar
from weakref import WeakValueDictionary

import msgspec

from jackfield.codec import liqid
from jackfield.fabric.asking import Asking
from jackfield.fabric.errands import Errands
from jackfield.fabric.liqid import POLL, Accepted, Busy, Declined, Place, Sent, Shown, Site, Unknown, site
from jackfield.fabric.settings import FabricSettings
from jackfield.fabric.sights import Sights
from jackfield.model.fabric import Done, FabricDevice, Failed, Inventory, Machine, Order, Progress
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Clock, Refused, Retry

T = TypeVar("T")

GAP_MAX: Final = Seconds(60.0)
"""An edit that was seen open twice, with more than this in between, may be two."""
REFUSALS: Final = 2
"""So many are believed. One may be about what has changed between looking and editing, by another process; and a DELETE
whose connection breaks is repeated by the library that sends it, and then refused for what the first one did."""

_Judge = Callable[[Order, Shown], Progress | None]
"""What can be said of an order from what is shown; nothing if it must be carried out."""
_Seen = Done | frozenset[PhysicalID] | None
"""What came of reprogramming: what was meant, other devices instead, or nothing."""


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> "LiqidDirector":
    """Return the line to the Director. Raises BadFabric."""
    return LiqidDirector(site(settings, environment, clock), clock)


class _Way(msgspec.Struct, frozen=True):
    """To attach, or to detach."""

    method: str
    """By which a relation is made or ended."""
    judged: _Judge


class _Occupied(msgspec.Struct, frozen=True):
    """An edit of somebody else's that stands in the way."""

    since: Seconds
    last: Seconds
    there: frozenset[PhysicalID]
    """What the machine had: an edit that leads to something is at work."""


class LiqidDirector:
    """One process's line to a Director."""

    def __init__(self, site: Site, clock: Clock) -> None:
        self._site = site
        self._clock = clock
        self._errands = Errands(clock)
        self._sights = Sights(clock)
        self._asking = Asking(clock, POLL)
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._jobs = asyncio.Semaphore(site.options.jobs)
        self._occupied: dict[int, _Occupied] = {}
        self._adding = _Way("POST", self._attachable)
        self._removing = _Way("DELETE", self._detachable)

    def __repr__(self) -> str:
        return f"LiqidDirector({self._site.name!r}, {self._base!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._errands.close()
        await self._site.client.close()

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the Director shows; the same object while nothing changes."""
        options = self._site.options
        look = await self._site.look()
        machines = tuple(Machine(node, options.slots) for node in look.places)
        devices = tuple(look.devices.values())
        return self._sights.shown(Inventory(self._site.name, options.traits, machines, devices))

    async def attach(self, order: Order) -> Progress:
        """Begin to attach, or say how far it is."""
        return await self._errands.ask(
            "attach", order, lambda: self._ordered(order, self._adding), lambda _: self._on(order)
        )

    async def detach(self, order: Order) -> Progress:
        """Begin to take back the very device, or say how far it is."""
        if not order.device:
            return Done()  # nothing of it can be attached
        return await self._errands.ask(
            "detach", order, lambda: self._ordered(order, self._removing), self._always_new
        )

    async def _on(self, order: Order) -> bool:
        return order.device in (await self._site.look()).on(order.node)

    async def _always_new(self, _: Done) -> bool:
        return False  # what was detached may have come back: a detach is looked into whenever it is asked for

    # --- what can be said without an edit

    def _attachable(self, order: Order, shown: Shown) -> Progress | None:
        device = shown.devices.get(order.device)
        if device is not None and device.node == order.node and device.ours:
            return Done(device.id, device.serial)
        wrong = self._unfit(order, shown, device)
        return Failed(f"{self._base}: {wrong}") if wrong else None

    def _unfit(self, order: Order, shown: Shown, device: FabricDevice | None) -> str:
        """Return why a device cannot be attached; empty if it can."""
        if order.node not in shown.places:
            return f"fabric {self._site.name} has no machine {order.node}"
        if order.device in shown.elsewhere:
            return f"device {order.device} is on a machine that is none of this fabric's"
        if device is None:
            absent = f"there is no device {order.device} in the machines' group"
            return absent if order.device else "an order must name its device"
        if not device.ours:
            return f"device {device.id} is not ours, by options.models or foreign"
        if device.node:
            return f"device {device.id} is taken by {device.node}"
        if device.model != order.model:
            return f"device {device.id} is of model {device.model}, not {order.model}"
        return "" if device.healthy else f"device {device.id} is not healthy, by its device_state"

    def _detachable(self, order: Order, shown: Shown) -> Progress | None:
        if order.device not in shown.on(order.node):
            return Done(order.device)
        if not shown.devices[order.device].ours and not order.foreign:
            raise Refused(f"device {order.device} was attached by somebody else")
        return None

    # --- carrying out

    async def _ordered(self, order: Order, way: _Way) -> Progress:
        async with self._turn(order) as until:
            return await self._carried_out(order, way, until)

    async def _carried_out(self, order: Order, way: _Way, until: Seconds) -> Progress:
        """Return how it ended. Raises Retry if nothing was done, or nobody knows."""
        pause, refused, why = POLL, 0, ""
        while True:
            shown = await self._asking.insisted(self._site.look, until)
            answer = way.judged(order, shown)
            if answer is not None:
                return answer
            async with self._jobs:  # not while one waits for somebody else: other machines go on meanwhile
                self._in_time(order, until, why)
                sent = await self._edited(order, way, shown, until)
                seen = await self._seen(order, way, shown, until) if _begun(sent) else None
            match sent:
                case Accepted() | Unknown():
                    return await self._ended(order, way, sent, seen)
                case Declined(reason):
                    refused += 1
                    if refused >= REFUSALS:
                        return Failed(reason)
                case Busy(why, after):
                    pause = await self._asking.paused(why, max(pause, after), until)

    async def _edited(self, order: Order, way: _Way, shown: Shown, until: Seconds) -> Sent:
        """Have the fabric reprogrammed with one change; Busy and Declined mean that nothing was done."""
        place, device = shown.places[order.node], shown.devices[order.device]
        # Read before the edit is open: while it is, nobody else can work on the machine.
        body = await self._asking.insisted(lambda: self._site.relation(shown, place, device), until)
        opened = await self._opened(place, shown)
        if not isinstance(opened, Accepted):
            return opened
        sent: Sent | None = None
        try:
            sent = await self._related(way, shown, device, body)
            if isinstance(sent, Accepted):
                sent = await self._site.client.change("POST", liqid.REPROGRAM, place.raw)
        finally:
            # Also when this process ends in the middle: what is left open keeps everybody else away.
            if not isinstance(sent, Accepted | Unknown):
                await self._site.client.change("POST", liqid.EDIT_CANCEL, place.raw)
        return sent

    async def _related(self, way: _Way, shown: Shown, device: FabricDevice, body: bytes) -> Sent:
        """Have the device put on the machine's list, or taken from it; the very device, or nothing."""
        sent = await self._site.client.change(way.method, liqid.KINDS[device.type].relation, body)
        if isinstance(sent, Unknown):
            return Busy(f"{sent.reason}; the edit was cancelled")
        if not isinstance(sent, Accepted):
            return sent
        name = shown.names[device.id]
        try:
            meant = liqid.placed(sent.body)
        except liqid.BadMessage as error:
            return Busy(f"{self._base}: the answer is not understood: {error}; the edit was cancelled")
        if meant != name:
            return Declined(
                f"{self._base}: the Director took {meant} instead of {name}; the edit was cancelled"
            )
        return sent

    # --- other people's edits

    async def _opened(self, place: Place, shown: Shown) -> Sent:
        """Put the machine into edit. Where no answer came, whether it is in edit is seen at the next try."""
        sent = await self._site.client.change("POST", liqid.EDIT, place.raw)
        match sent:
            case Accepted():
                self._occupied.pop(place.machine, None)
                return sent
            case Unknown(reason):
                return Busy(f"{reason}; nothing was changed")
            case Busy(reason, conflict=True):
                return await self._kept_out(place, shown, reason)
            case Declined(reason, status) if status < 300:  # noqa: PLR2004 - said with success, of the machine's state
                return await self._kept_out(place, shown, reason)
            case _:
                return sent

    async def _kept_out(self, place: Place, shown: Shown, reason: str) -> Busy:
        """Wait for an edit that is open; cancel it if it was left behind."""
        now, there = self._clock.now(), shown.on(place.node)
        known = self._occupied.get(place.machine)
        if known is None or known.there != there or now - known.last > GAP_MAX:
            known = _Occupied(now, now, there)
        self._occupied[place.machine] = msgspec.structs.replace(known, last=now)
        span = self._site.options.edit_seconds
        if now - known.since < span:
            words = f"{place.node} is being edited or reprogrammed, not by this order"
            return Busy(f"{reason}; {words}: what leads to nothing for {span:g} s is cancelled")
        del self._occupied[place.machine]
        await self._site.client.change("POST", liqid.EDIT_CANCEL, place.raw)
        return Busy(f"{reason}; an edit of {place.node} was open for {span:g} s and was cancelled")

    # --- what came of it

    async def _seen(self, order: Order, way: _Way, before: Shown, until: Seconds) -> _Seen:
        """Return what the Director shows of it; what is not done in time is cancelled."""
        there, place = before.on(order.node), before.places[order.node]

        async def look() -> _Seen:
            shown = await self._site.look()
            if (order.device in shown.on(order.node)) == (way is self._adding):
                serial = shown.devices[order.device].serial if way is self._adding else ""
                return Done(order.device, serial)
            return shown.on(order.node) - there or None

        seen: _Seen = await self._asking.until(look, self._effect_by(until))
        if seen is None:
            for path in (liqid.REPROGRAM_CANCEL, liqid.EDIT_CANCEL):
                await self._site.client.change("POST", path, place.raw)
            seen = await self._asking.until(look, self._clock.now())
        return seen

    async def _ended(self, order: Order, way: _Way, sent: Accepted | Unknown, seen: _Seen) -> Progress:
        """Believe what is shown, whatever was said."""
        if isinstance(seen, frozenset):
            return await self._given_back(order, seen)
        return seen or self._nothing(order, way, sent)

    def _nothing(self, order: Order, way: _Way, sent: Accepted | Unknown) -> Failed:
        span = f"within {self._site.options.effect_seconds:g} s, and reprogramming was cancelled"
        state = "did not come to" if way is self._adding else "is still on"
        within = f"{order.device} {state} {order.node} {span}"
        if isinstance(sent, Accepted):
            return Failed(f"{self._base}: the Director agreed, but {within}")
        raise Retry(f"{sent.reason}; {within}")

    async def _given_back(self, order: Order, came: frozenset[PhysicalID]) -> Failed:
        """Take back what came instead: left there, each new order would bring one more."""
        others = ", ".join(sorted(came))
        wrong = f"{self._base}: not {order.device} came to {order.node} but {others}"
        until = Seconds(self._clock.now() + self._site.options.queue_seconds)
        for one in sorted(came):
            back = msgspec.structs.replace(order, device=one)
            try:
                ended = await self._carried_out(back, self._removing, until)
            except (Retry, Refused) as error:
                return Failed(f"{wrong}; it was not taken back: {error}")
            if isinstance(ended, Failed):
                return Failed(f"{wrong}; it was not taken back: {ended.reason}")
        return Failed(f"{wrong}; it was taken back")

    # --- turns and time

    @asynccontextmanager
    async def _turn(self, order: Order) -> AsyncIterator[Seconds]:
        """Be the one who moves this device, and who edits this machine; gives until when an edit may be begun."""
        until = Seconds(self._clock.now() + self._site.options.queue_seconds)
        # Devices before machines, always: nobody waits for one who waits for him.
        async with self._lock("device", order.device), self._lock("machine", order.node):
            self._in_time(order, until)
            yield until

    def _in_time(self, order: Order, until: Seconds, why: str = "") -> None:
        """Raise Retry if it is too late to begin."""
        if self._clock.now() > until:
            span = self._site.options.queue_seconds
            busy = f"{self._base}: {order.node} was busy for {span:g} s"
            raise Retry(f"nothing was done: {why or busy}")

    def _lock(self, kind: str, name: str) -> asyncio.Lock:
        """Return the lock of a name, which lets in who came first and is forgotten with the last of them."""
        lock = self._turns.get((kind, name))
        if lock is None:
            lock = self._turns[kind, name] = asyncio.Lock()
        return lock

    def _effect_by(self, until: Seconds) -> Seconds:
        """Return until when reprogramming that was asked for just now may take; it was asked for by `until`."""
        return Seconds(min(self._clock.now(), until) + self._site.options.effect_seconds)

    @property
    def _base(self) -> str:
        return self._site.client.wire.base


def _begun(sent: Sent) -> bool:
    """Return whether reprogramming has begun, or may have."""
    return isinstance(sent, Accepted | Unknown)
