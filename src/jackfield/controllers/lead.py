"""Who may act: one Lease per replica, fabrics divided among those that live.

Knows how a lease is kept and lost. Must not know what is done with it. A replica leads only while its own lease is
surely good, judged by its own clock from before the call that renewed it; others are taken to live for a whole lease
from the moment they were heard of. Whoever joins, or comes back from a pause, waits for one lease, so that those who
lead have heard of it.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

import msgspec

from jackfield.core import lead
from jackfield.core.lead import Replica
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NEVER, FabricName, Key, Seconds, Version, rfc3339_micro, seconds
from jackfield.ports import (
    Changed,
    Clock,
    Cluster,
    Conflict,
    Deleted,
    Gone,
    Merge,
    PortError,
    Refused,
    Selection,
    Synced,
)

REPLICAS: Final = "jackfield-controllers"
"""The namespace with one Lease per replica."""
INSTANCE: Final = "jackfield.dev/instance"
"""Annotation of a replica's Lease: which process it is, should two have one name."""
RENEWALS: Final = 3
"""How often a lease is renewed before it would run out."""
SKEW_SECONDS: Final = Seconds(60.0)
"""How far clocks may be apart; only leases that ran out longer ago than that are cleared away."""
AGAIN_SECONDS: Final = Seconds(1.0)
"""How soon a renewal that failed is tried again."""


class Lead(Protocol):
    """Whether we may act, and for how long that is certain."""

    def leads(self, fabric: FabricName) -> bool:
        """Return whether a fabric is ours now."""

    def left(self) -> Seconds:
        """Return how long nobody else can take over."""

    def need(self, span: Seconds) -> None:
        """Ask for more: from soon on that much is left at any time."""


class Alone:
    """The only replica there is."""

    def leads(self, fabric: FabricName) -> bool:
        """Lead everything."""
        del fabric
        return True

    def left(self) -> Seconds:
        """Lead for ever."""
        return NEVER

    def need(self, span: Seconds) -> None:
        """Have it already."""


class Identity(msgspec.Struct, frozen=True):
    """A replica's name, which outlives a restart, and the one process that has it now."""

    name: str
    instance: str

    @property
    def key(self) -> Key:
        """Where its Lease is."""
        return Key(REPLICAS, self.name)


class Leases:
    """One replica among others."""

    def __init__(self, cluster: Cluster, clock: Clock, me: Identity, duration: Seconds) -> None:
        self.me = me
        self._cluster = cluster
        self._clock = clock
        self._duration = duration
        self._needed = Seconds(0.0)
        self._renew_now = asyncio.Event()
        self._version = Version("")
        self._until = Seconds(float("-inf"))
        """Until when our own lease is surely good."""
        self._from = NEVER
        """From when on we may lead: others have heard of us by then."""
        self._others: dict[str, Replica] = {}
        self._leases: dict[str, Lease] = {}
        self._synced = False
        self._changed = asyncio.Event()
        self._told: tuple[str, ...] = ()

    # --- for those who act

    def leads(self, fabric: FabricName) -> bool:
        """Return whether a fabric is ours now."""
        return lead.leader(fabric, self._electors()) == self.me.name

    def left(self) -> Seconds:
        """Return how long nobody else can take over."""
        return Seconds(max(0.0, self._until - self._clock.now()))

    def need(self, span: Seconds) -> None:
        """Ask for a longer lease; whoever takes over from us then waits that much longer (rule 18)."""
        if span > self._needed:
            self._needed = span
            self._renew_now.set()

    @property
    def _span(self) -> Seconds:
        """How long a renewal is good for."""
        return Seconds(self._needed + self._duration)

    def _electors(self) -> tuple[str, ...]:
        """Those among whom the fabrics are divided; none while we may not lead."""
        now = self._clock.now()
        if not self._synced or not self._from <= now < self._until:
            return ()
        mine = Replica(self.me.name, self._until)
        return lead.living((mine, *self._others.values()), now)

    # --- keeping the lease

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the lease until cancelled, and tell whenever somebody came or went."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(), name="watch replicas")
                group.create_task(self._keep(), name="lease")
                group.create_task(self._tell(changed), name="lead")
        finally:
            self._until = Seconds(float("-inf"))

    async def release(self) -> None:
        """Let the others take over at once; what goes wrong with it costs them one lease."""
        self._until = Seconds(float("-inf"))
        with suppress(PortError):
            await self._cluster.delete(Lease, self.me.key, self._version)

    async def _keep(self) -> None:
        while True:
            self._renew_now.clear()
            sent = self._clock.now()
            try:
                async with asyncio.timeout(self._duration / RENEWALS):
                    await self._renew(sent)
                    await self._sweep()
                pause = Seconds(self._duration / RENEWALS)
            except Refused:
                raise
            except (PortError, TimeoutError):
                pause = AGAIN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._renew_now.wait()

    async def _renew(self, sent: Seconds) -> None:
        lasting, span = sent < self._until, self._span
        if not self._version:
            lasting = await self._take(sent)
        else:
            await self._write(sent, span)
        self._until = Seconds(sent + span)
        if not lasting:
            alone = await self._is_alone()
            self._from = sent if alone else Seconds(sent + self._duration)
        elif self._from == NEVER:
            self._from = sent
        self._changed.set()

    async def _take(self, sent: Seconds) -> bool:
        """Take our Lease, which a process of our name may have left; return whether it was still good."""
        try:
            left = await self._cluster.read(Lease, self.me.key)
        except Gone:
            new = Lease(
                metadata=ObjectMeta(
                    name=self.me.name, namespace=REPLICAS, annotations={INSTANCE: self.me.instance}
                ),
                spec=LeaseSpec(self.me.name, _whole(self._span), rfc3339_micro(sent), rfc3339_micro(sent)),
            )
            made = await self._cluster.create(new)
            self._version = made.metadata.resource_version
            return False
        self._version = left.metadata.resource_version
        await self._write(sent, self._span)
        return sent < seconds(left.spec.renew_time) + (left.spec.lease_duration_seconds or self._duration)

    async def _write(self, sent: Seconds, span: Seconds) -> None:
        body = {
            "metadata": {"annotations": {INSTANCE: self.me.instance}},
            "spec": {
                "holderIdentity": self.me.name,
                "leaseDurationSeconds": _whole(span),
                "renewTime": rfc3339_micro(sent),
            },
        }
        try:
            written = await self._cluster.write(Merge(Lease, self.me.key, self._version, body))
        except Gone:
            self._version = Version("")
            raise
        except Conflict:
            await self._look_again()
            raise
        self._version = written.metadata.resource_version

    async def _look_again(self) -> None:
        """Our Lease is not what we wrote: an answer was lost, or another process has our name."""
        found = await self._cluster.read(Lease, self.me.key)
        if found.metadata.annotations.get(INSTANCE) != self.me.instance:
            raise Refused(
                f"another process runs as replica {self.me.name!r}; give each a name of its own (--identity)"
            )
        self._version = found.metadata.resource_version

    async def _is_alone(self) -> bool:
        """Whether nobody else has a Lease worth the name; asked anew, since what we heard may be old."""
        async for change in self._cluster.watch(Lease, Selection(namespace=REPLICAS)):
            match change:
                case Changed(object=Lease() as found) if found.metadata.name != self.me.name:
                    if not self._long_dead(found):
                        return False
                case Synced():
                    break
                case _:
                    continue
        return True

    def _long_dead(self, lease: Lease) -> bool:
        """Whether it ran out so long ago that no clock is so wrong."""
        spec = lease.spec
        return seconds(spec.renew_time) + spec.lease_duration_seconds + SKEW_SECONDS < self._clock.now()

    async def _sweep(self) -> None:
        """Delete what replicas that never come back have left; they are named after pods, which are named anew."""
        if not self.leads(lead.NO_FABRIC):
            return
        for lease in [one for one in self._leases.values() if self._long_dead(one)]:
            with suppress(Conflict, Gone):
                await self._cluster.delete(Lease, lease.key, lease.metadata.resource_version)
            self._leases.pop(lease.metadata.name, None)

    # --- hearing of the others

    async def _watch(self) -> None:
        while True:
            with suppress(PortError):
                async for change in self._cluster.watch(Lease, Selection(namespace=REPLICAS)):
                    self._hear(change)
            await self._clock.sleep(AGAIN_SECONDS)

    def _hear(self, change: Changed | Deleted | Synced) -> None:
        match change:
            case Changed(object=Lease() as found):
                duration = Seconds(float(found.spec.lease_duration_seconds or self._duration))
                until = Seconds(self._clock.now() + duration)
                self._others[found.metadata.name] = Replica(found.metadata.name, until)
                self._leases[found.metadata.name] = found
            case Deleted(object=gone):
                self._others.pop(gone.metadata.name, None)
                self._leases.pop(gone.metadata.name, None)
            case Synced(keys=keys):
                self._synced = True
                names = {one.name for one in keys}
                self._others = {name: one for name, one in self._others.items() if name in names}
                self._leases = {name: one for name, one in self._leases.items() if name in names}
            case _:
                return
        self._others.pop(self.me.name, None)
        self._leases.pop(self.me.name, None)
        self._changed.set()

    async def _tell(self, changed: Callable[[], None]) -> None:
        """Tell of every change among those who divide the fabrics, those that only time brings included."""
        while True:
            electors = self._electors()
            if electors != self._told:
                self._told = electors
                changed()
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._next_in()):
                    await self._changed.wait()

    def _next_in(self) -> float:
        now = self._clock.now()
        moments = (self._from, self._until, *(one.until for one in self._others.values()))
        return max(0.01, min((one - now for one in moments if one > now), default=self._duration))


def _whole(span: Seconds) -> int:
    """Whole seconds, as a Lease counts; never fewer than meant, since others go by them."""
    return math.ceil(span)
