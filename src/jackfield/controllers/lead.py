"""Who may act: one Lease per replica, fabrics divided among those that live.

Knows how a lease is kept and lost. Must not know what is done with it. No clock is compared with another's, but to
clear away what is long dead. What keeps two from leading the same:

- A lease is good from before the call that renewed it, and only if all leases were looked at after that call. So
  whoever was there then is known for as long as it lasts.
- Whoever joins, or comes back after its lease ran out, waits for the longest lease it sees: by then all others have
  looked again, or their leases have run out. Only then its Lease says that it has been acquired: a process of the same
  name that is started meanwhile has to wait as well.
- Somebody else is taken to be dead only when a look, begun a whole lease after its last renewal was heard of, still
  shows that renewal. A watch that lags behind kills nobody; it only brings good news sooner.

Who cannot look leads nothing, so he must not seem to live either: after a look that failed the next has to succeed
before the lease is renewed again. Else the others would leave him what he does not lead.
"""

import asyncio
import math
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final, Protocol

import msgspec

from jackfield.core import lead
from jackfield.core.lead import Replica
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import (
    NEVER,
    NO_TIME,
    FabricName,
    Key,
    Seconds,
    Time,
    Version,
    rfc3339_micro,
    seconds,
)
from jackfield.ports import (
    Change,
    Changed,
    Clock,
    Cluster,
    Conflict,
    Deleted,
    Gone,
    Merge,
    PortError,
    Refused,
    Retry,
    Selection,
    Synced,
)

REPLICAS: Final = "jackfield-controllers"
"""The namespace with one Lease per replica."""
PARTS: Final = "jackfield.dev/parts"
"""Label of a replica's Lease: which controllers it runs."""
ALL_PARTS: Final = "all"
INSTANCE: Final = "jackfield.dev/instance"
"""Annotation of a replica's Lease: which process it is, should two have one name."""
RENEWALS: Final = 3
"""How often a lease is renewed before it would run out."""
SKEW_SECONDS: Final = Seconds(60.0)
"""How far clocks may be apart; only leases that ran out longer ago than that are cleared away."""
AGAIN_SECONDS: Final = Seconds(1.0)
"""How soon a renewal that failed is tried again."""
LOOK_SECONDS_MIN: Final = Seconds(0.05)
PAST: Final = Seconds(float("-inf"))


class Lead(Protocol):
    """Whether we may act, and for how long that is certain."""

    def leads(self, fabric: FabricName) -> bool:
        """Return whether a fabric is ours now."""

    def left(self) -> Seconds:
        """Return how long nobody else can take over."""

    def need(self, span: Seconds) -> None:
        """Ask for more: from soon on that much is left at any time."""

    def doubt(self) -> None:
        """Hear that the API has gone back in time: what it says of who leads is not what we have heard."""


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

    def doubt(self) -> None:
        """Lead all the same."""


class Identity(msgspec.Struct, frozen=True):
    """A replica's name, which outlives a restart, and the one process that has it now."""

    name: str
    instance: str
    parts: str = ALL_PARTS
    """What it runs: fabrics are divided among those that run the same."""

    @property
    def key(self) -> Key:
        """Where its Lease is."""
        return Key(REPLICAS, self.name)


class Leases:
    """One replica among others. Its clock must neither jump nor stand still, whatever time it shows."""

    def __init__(self, cluster: Cluster, clock: Clock, me: Identity, duration: Seconds) -> None:
        self.me = me
        self.heard: Callable[[str], None] = lambda _: None
        """Hears in words why our Lease is not renewed, once for each reason, and that it is again."""
        self._failing = ""
        self._alike = Selection(namespace=REPLICAS, labels={PARTS: me.parts})
        self._cluster = cluster
        self._clock = clock
        self._duration = duration
        self._needed = Seconds(0.0)
        self._renew_now = asyncio.Event()
        self._version = Version("")
        """Of our Lease, as we last wrote it; empty while it has to be taken first."""
        self._until = PAST
        """Until when our own lease is surely good."""
        self._from = NEVER
        """From when on we may lead: others have heard of us by then."""
        self._acquired = NO_TIME
        """Since when our Lease says that we may lead."""
        self._looked = PAST
        """When the last look at all leases began."""
        self._sees = True
        """Whether the last look came to an end."""
        self._others: dict[str, Replica] = {}
        self._living: tuple[str, ...] = (me.name,)
        """Those of the others and us whose lease had not run out when we last looked."""
        self._leases: dict[str, Lease] = {}
        self._changed = asyncio.Event()
        self._told: tuple[str, ...] = ()
        self._missed = False
        """Whether somebody was told that we lead nothing: what he let go of is to be looked at again when we do."""

    # --- for those who act

    def leads(self, fabric: FabricName) -> bool:
        """Return whether a fabric is ours now."""
        electors = self._electors()
        self._missed = self._missed or not electors
        return lead.leader(fabric, electors) == self.me.name

    def seems_to_lead(self, fabric: FabricName) -> bool:
        """Return the same for somebody who only looks, and lets go of nothing because of the answer."""
        return lead.leader(fabric, self._electors()) == self.me.name

    def left(self) -> Seconds:
        """Return how long nobody else can take over."""
        return Seconds(max(0.0, self._until - self._clock.now()))

    def need(self, span: Seconds) -> None:
        """Ask for a longer lease; whoever takes over from us then waits that much longer (rule 18)."""
        if span > self._needed:
            self._needed = span
            self._renew_now.set()

    def doubt(self) -> None:
        """Lead nothing until our Lease is written anew, and others have heard of it.

        It may not be there any more, and whoever starts now would take us for dead.
        """
        self._until = PAST
        self._renew_now.set()
        self._changed.set()

    def _electors(self) -> tuple[str, ...]:
        """Those among whom the fabrics are divided; none while we may not lead."""
        if not self._from <= self._clock.now() < self._until:
            return ()
        return self._living

    def _reckon(self) -> None:
        """Find out anew who is alive; to be asked for every key it is worth keeping."""
        mine = Replica(self.me.name, NEVER)
        living = lead.living((mine, *self._others.values()), self._looked)
        if living != self._living:  # most of what is heard are renewals, which change nothing
            self._living = living
            self._changed.set()

    # --- keeping the lease

    async def run(self, changed: Callable[[], None]) -> None:
        """Keep the lease until cancelled, and tell whenever somebody came or went. Raises Refused."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch(), name="watch replicas")
                group.create_task(self._keep(), name="lease")
                group.create_task(self._tell(changed), name="lead")
        finally:
            self._until = PAST

    async def release(self) -> None:
        """Let the others take over at once; what goes wrong with it costs them one lease."""
        self._until = PAST
        if not self._version:  # it is another process's by now
            return
        with suppress(PortError):
            await self._cluster.delete(Lease, self.me.key, self._version)

    async def _keep(self) -> None:
        while True:
            self._renew_now.clear()
            try:
                async with asyncio.timeout(self._duration / RENEWALS):
                    await self._renew()
                    self._tell_of("")
                    await self._sweep()
                pause = self._pause()
            except _Taken as taken:
                await self._outlive(taken.lease)
                pause = Seconds(0.0)
            except (PortError, TimeoutError) as error:
                if isinstance(error, Refused) and not self._version:
                    raise  # not even once; a server that has just come up may refuse for a while
                if not isinstance(error, Conflict | Gone):
                    self._tell_of(str(error) or "no answer in time")
                pause = AGAIN_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._renew_now.wait()

    def _tell_of(self, failure: str) -> None:
        """Say what keeps our Lease from being renewed, unless that was said; nothing means that it was renewed."""
        if failure == self._failing:
            return
        self._failing = failure
        if failure:
            what = f"our Lease {self.me.key} is not renewed: {failure}"
            self.heard(
                f"{what}; once it has run out we attach and detach nothing, and other replicas take over"
            )
        else:
            self.heard(f"our Lease {self.me.key} is renewed again")

    def _pause(self) -> Seconds:
        """Until the next renewal: in time for ours, when we may lead, or when somebody else may turn out to be dead."""
        doubtful = (one.until for one in self._others.values() if one.until > self._looked)
        now = self._clock.now()
        begins = NEVER if self._acquired or self._from <= now else self._from
        soonest = min(*doubtful, begins, NEVER)
        return Seconds(min(self._duration / RENEWALS, max(LOOK_SECONDS_MIN, soonest - now)))

    async def _renew(self) -> None:
        if not self._sees:
            await self._look()
        sent, span = self._clock.now(), Seconds(self._needed + self._duration)
        lasting = await self._extend(sent, span) if self._version else await self._take(sent, span)
        written = self._clock.now()
        await self._look()
        if not lasting:
            longest = max((self._span(one) for one in self._leases.values()), default=0.0)
            self._from = Seconds(written + longest)
        self._until = Seconds(sent + span)
        self._changed.set()

    async def _take(self, sent: Seconds, span: Seconds) -> bool:
        """Take our Lease, which a process of our name may have left; return whether it was still good."""
        try:
            left = await self._cluster.read(Lease, self.me.key)
        except Gone:
            new = Lease(
                metadata=ObjectMeta(
                    name=self.me.name,
                    namespace=REPLICAS,
                    labels={PARTS: self.me.parts},
                    annotations={INSTANCE: self.me.instance},
                ),
                spec=LeaseSpec(self.me.name, _whole(span), renew_time=rfc3339_micro(sent)),
            )
            made = await self._cluster.create(new)
            self._version, self._acquired = made.metadata.resource_version, NO_TIME
            return False
        self._version = left.metadata.resource_version
        # A name comes back where it was, so this is one clock; should it be two, they may differ by the margin.
        margin = self._duration / RENEWALS
        until = Seconds(seconds(left.spec.renew_time) + self._span(left) - margin)
        good = await self._renewed(sent, span, left.spec.acquire_time, until) and bool(self._acquired)
        self._from = PAST if good else NEVER
        return good

    async def _extend(self, sent: Seconds, span: Seconds) -> bool:
        """Renew our Lease; return whether that was done before it ran out."""
        acquired = self._acquired or (rfc3339_micro(sent) if self._from <= sent else NO_TIME)
        return await self._renewed(sent, span, acquired, self._until)

    async def _renewed(self, sent: Seconds, span: Seconds, acquired: Time, until: Seconds) -> bool:
        """Renew our Lease; return whether that was done before somebody could see it run out.

        If not, it must not say that it has been acquired: a process of our name would take it and lead at once.
        """
        await self._write(sent, span, acquired if sent < until else NO_TIME)
        lasting = self._clock.now() < until
        if not lasting and self._acquired:
            await self._write(sent, span, NO_TIME)
        return lasting

    async def _write(self, sent: Seconds, span: Seconds, acquired: Time) -> None:
        body = {
            "metadata": {"labels": {PARTS: self.me.parts}, "annotations": {INSTANCE: self.me.instance}},
            "spec": {
                "holderIdentity": self.me.name,
                "leaseDurationSeconds": _whole(span),
                "acquireTime": acquired or None,
                "renewTime": rfc3339_micro(sent),
            },
        }
        try:
            written = await self._cluster.write(Merge(Lease, self.me.key, self._version, body))
        except Gone:
            self._lose()
            raise
        except Conflict:
            await self._look_again()
            raise
        self._version, self._acquired = written.metadata.resource_version, acquired

    def _lose(self) -> None:
        """Lead no more until our Lease has been taken anew."""
        self._version = Version("")
        self._until = PAST
        self._changed.set()

    async def _look_again(self) -> None:
        """Our Lease is not what we wrote: an answer was lost, or another process has our name."""
        found = await self._cluster.read(Lease, self.me.key)
        if found.metadata.annotations.get(INSTANCE) != self.me.instance:
            self._lose()
            raise _Taken(found)
        self._version = found.metadata.resource_version

    async def _outlive(self, taken: Lease) -> None:
        """See whether another process has our name, or whether a backup was restored from before we had it."""
        await self._clock.sleep(self._span(taken))
        with suppress(Gone, Retry):
            found = await self._cluster.read(Lease, self.me.key)
            if found.metadata.resource_version != taken.metadata.resource_version:
                raise Refused(
                    f"another process runs as replica {self.me.name!r}; give each a name of its own (--identity)"
                )

    # --- the others

    async def _look(self) -> None:
        """Look at all leases as they are now; what the watch told may be old."""
        self._sees, began = False, self._clock.now()
        async with aclosing(self._cluster.watch(Lease, self._alike)) as changes:
            async for change in changes:
                self._hear(change)
                if isinstance(change, Synced):
                    break
        self._sees, self._looked = True, began
        self._others = {
            name: one for name, one in self._others.items() if name in self._leases or one.until > began
        }
        self._reckon()

    async def _watch(self) -> None:
        while True:
            with suppress(PortError):
                async for change in self._cluster.watch(Lease, self._alike):
                    self._hear(change)
            await self._clock.sleep(AGAIN_SECONDS)

    def _hear(self, change: Change) -> None:
        match change:
            case Changed(object=Lease() as found) if found.metadata.name == self.me.name:
                if self._version and found.metadata.annotations.get(INSTANCE) != self.me.instance:
                    self._renew_now.set()  # old news, or another process of our name: writing will tell
            case Changed(object=Lease() as found):
                self._meet(found)
            case Deleted(object=gone) if gone.metadata.name == self.me.name:
                self._renew_now.set()
            case Deleted(object=gone):
                self._part(gone)
            case Synced(keys=keys):
                # Those that are missing run out by themselves: only a Deleted says that they have let go.
                names = {one.name for one in keys}
                self._leases = {name: one for name, one in self._leases.items() if name in names}
            case _:
                pass

    def _meet(self, found: Lease) -> None:
        """Take somebody to live for a whole lease, unless this renewal is known."""
        name = found.metadata.name
        known = self._leases.get(name)
        if known is None or known.metadata.resource_version != found.metadata.resource_version:
            self._leases[name] = found
            self._others[name] = Replica(name, Seconds(self._clock.now() + self._span(found)))
            self._reckon()

    def _part(self, gone: Object) -> None:
        """Take somebody to lead no more, unless the name has come back meanwhile."""
        known = self._leases.get(gone.metadata.name)
        if known is None or known.metadata.uid == gone.metadata.uid:
            self._leases.pop(gone.metadata.name, None)
            self._others.pop(gone.metadata.name, None)
            self._reckon()

    def _span(self, lease: Lease) -> Seconds:
        return Seconds(float(lease.spec.lease_duration_seconds or self._duration))

    def _long_dead(self, lease: Lease) -> bool:
        """Whether it ran out so long ago that no clock is so wrong.

        The time alone does not tell: after a backup was restored a Lease shows an old renewal of somebody who lives.
        """
        ran_out = seconds(lease.spec.renew_time) + self._span(lease)
        return lease.metadata.name not in self._living and ran_out + SKEW_SECONDS < self._clock.now()

    async def _sweep(self) -> None:
        """Delete what replicas that never come back have left; they are named after pods, which are named anew."""
        if not self.leads(lead.NO_FABRIC):
            return
        for lease in [one for one in self._leases.values() if self._long_dead(one)]:
            with suppress(
                PortError
            ):  # our own is renewed all the same, and it is tried again with the next renewal
                await self._cluster.delete(Lease, lease.key, lease.metadata.resource_version)

    # --- telling

    async def _tell(self, changed: Callable[[], None]) -> None:
        """Tell of every change among those who divide the fabrics, those that only time brings included."""
        while True:
            self._changed.clear()
            electors = self._electors()
            if electors != self._told or (electors and self._missed):
                self._told, self._missed = electors, self._missed and not electors
                changed()
            now = self._clock.now()
            soonest = min((one - now for one in (self._from, self._until) if one > now), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout(soonest):
                    await self._changed.wait()


class _Taken(Exception):  # noqa: N818 - what happened, between two methods of one class
    """Our Lease bears the mark of another process."""

    def __init__(self, lease: Lease) -> None:
        super().__init__(lease.metadata.name)
        self.lease = lease


def _whole(span: Seconds) -> int:
    """Whole seconds, as a Lease counts; never fewer than meant, since others go by them."""
    return math.ceil(span)
