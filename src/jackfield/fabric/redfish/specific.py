"""Specific composition: the very block is reserved, given to a machine, and believed when the machine has it.

Knows what a block's state allows, and what may become of each step. Must not know why a device is moved. Every round
looks first and takes one step then, so that it does not matter which step an answer was lost of, or a process ended at.
"""

from typing import Final

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.redfish.access import Accepted, Busy, Declined, Sent, Stale, Unknown, excuse
from jackfield.fabric.redfish.removal import Removal, Taken
from jackfield.fabric.redfish.site import BACK_OFF_MAX, Look, Pace, Place, Site
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import Seconds
from jackfield.ports import Gone, Retry

KEPT_LOOKS: Final = 9
"""So often it is looked what comes of somebody else's reservation: ever more seldom, for half a minute in all."""
NO_RESERVING: Final = "say options.reserve: false if the service knows no reservations"


class _Job(msgspec.Struct, frozen=True):
    """An order, and what it is about."""

    order: Order
    place: Place
    uri: str


class _Free(msgspec.Struct, frozen=True):
    """Nothing stands in the way."""


class _Kept(msgspec.Struct, frozen=True):
    """Somebody else has reserved it: what comes of that will be seen."""

    reason: str


class _Step(msgspec.Struct, frozen=True):
    """What was sent, and whether it was the reservation."""

    sent: Sent
    reserving: bool


class Specific:
    """Attaches the device that it is told."""

    def __init__(self, site: Site, removal: Removal) -> None:
        self._site = site
        self._removal = removal

    async def attach(self, order: Order) -> Progress:
        """Attach the order's device, whatever it takes. Raises Retry, Refused."""
        with self._site.bringing(order.device):
            return await self._brought(order)

    async def _brought(self, order: Order) -> Progress:
        site = self._site
        asked = site.clock.now()
        place = await site.place(order.node)
        if place is None:
            return Failed(f"{site.base}: fabric {site.name} has no machine {order.node}")
        uri = await site.block(order.device)
        if not uri:
            return Failed(f"{site.base}: there is no device {order.device!r}")
        async with site.turn(uri, asked, site.alone(place)) as until:
            return await self._attached(_Job(order, place, uri), until)

    def _target(self, look: Look) -> str:
        """Return where an addition is posted to; empty if the machine's list is patched instead."""
        usable = self._site.options.actions and self._site.dialect.actions
        actions = look.system.value.actions
        add = actions.add if usable and actions else None
        return (add.target or "") if add else ""

    async def _attached(self, job: _Job, until: Seconds) -> Progress:
        site, pace, last, effect = self._site, Pace(BACK_OFF_MAX), "", Seconds(0.0)
        doubtful, conflict, kept = False, False, 0
        while True:
            try:
                look = await site.insisted(lambda: self._look(job), max(until, effect))
            except Gone as error:
                return Failed(str(error))
            if doubtful and look.block.value.reserved:
                site.keep(job.uri)  # it was not before we asked for that, and nobody answered
            verdict = await self._verdict(job, look)
            if isinstance(verdict, Done | Failed):
                return await self._ended(job, verdict)
            kept = kept + 1 if isinstance(verdict, _Kept) else 0
            if isinstance(verdict, _Kept) and kept >= KEPT_LOOKS:
                return await self._ended(job, Failed(verdict.reason))
            wait = pace.next()
            if isinstance(verdict, _Free) and site.clock.now() <= until:
                step = await self._step(job, look)
                effect = site.effect_by(until)
                end = await self._came_of(job, look, step, effect)
                if end is not None:
                    return await self._ended(job, end)
                last, after = excuse(step.sent)
                doubtful = step.reserving and isinstance(step.sent, Unknown)
                conflict = isinstance(step.sent, Busy) and step.sent.conflict
                wait = Seconds(0.0) if isinstance(step.sent, Accepted) else max(wait, after)
            elif site.clock.now() > max(until, effect):
                return await self._ended(job, self._over(job, last, conflict=conflict))
            await site.pause(wait)

    async def _look(self, job: _Job) -> Look:
        return await self._site.look(job.place, job.uri, job.order.device)

    def _over(self, job: _Job, last: str, *, conflict: bool) -> Failed | Retry:
        """Return what to say when time is up: no, if that is what the service said to the last."""
        if conflict:
            return Failed(last)
        seconds = self._site.options.effect_seconds
        within = f"{job.order.device} did not come to {job.place.node} within {seconds:g} s"
        return Retry(f"{last}; {within}" if last else f"{self._site.base}: {within}")

    async def _ended(self, job: _Job, end: Progress | Retry) -> Progress:
        """Say how it ended; what we reserved and did not get nobody is to find reserved."""
        if isinstance(end, Done):
            self._site.stock.release(job.uri)
            return end
        await self._removal.let_go(job.uri)
        if isinstance(end, Retry):
            raise end
        return end

    # --- what stands in the way

    async def _verdict(self, job: _Job, look: Look) -> Done | Failed | Working | _Kept | _Free:
        site, block = self._site, look.block.value
        if look.where == job.place.system and not look.moving:
            return self._standing(job, look)
        if look.moving or not (look.where or site.tree.idle(block) or self._broken(block)):
            return Working()  # it is on its way, here or elsewhere: which of them it was will be seen
        wrong = await self._wrong(job, look)
        if wrong:
            return Failed(f"{site.base}: {wrong}")
        if site.stock.taken(block):
            return _Kept(f"{site.base}: {job.order.device} is reserved by somebody else")
        return _Free()

    def _broken(self, block: redfish.ResourceBlock) -> bool:
        return block.state in {redfish.CompositionState.FAILED, redfish.CompositionState.UNAVAILABLE}

    def _standing(self, job: _Job, look: Look) -> Done | Failed:
        stock = self._site.stock
        if not stock.ours(look.block.value, look.device):
            return Failed(
                f"{self._site.base}: {job.order.device} is on {job.place.node}, but is somebody else's"
            )
        return Done(job.order.device, look.device.serial)

    async def _wrong(self, job: _Job, look: Look) -> str:
        """Return why a block cannot be composed; empty if it can."""
        stock, block, device = self._site.stock, look.block.value, job.order.device
        if look.where:
            return f"{device} is part of {look.where}"
        if not stock.ours(block, look.device):
            return f"{device} is not ours to give: its model is not offered, or it is somebody else's"
        model = stock.model(look.device)
        if job.order.model and model != job.order.model:
            return f"{device} is of model {model!r}, not {job.order.model!r}"
        if not stock.usable(block, look.device):
            health = (block.status.health or "") if block.status else ""
            return f"{device} cannot be used: it is {' '.join(filter(None, (block.state, health)))}"
        return await self._apart(job, look)

    async def _apart(self, job: _Job, look: Look) -> str:
        picture = await self._site.picture_now()
        if picture.apart(look.system.value, job.uri):
            return f"{job.order.device} and {job.place.node} are in no ResourceZone together"
        agents = [one.oem.sunfish.managing_agent for one in (look.block.value, look.system.value)
                  if one.oem and one.oem.sunfish]  # fmt: skip
        named = {one.uri for one in agents if one is not None}
        if self._site.dialect.agents and len(named) > 1:
            return f"{job.order.device} and {job.place.node} are of two agents, and only the machine's would be told"
        return ""

    # --- one step

    async def _step(self, job: _Job, look: Look) -> _Step:
        site, block, system = self._site, look.block, look.system
        if site.options.reserve and not site.stock.keeps(job.uri):
            body = redfish.reservation(reserved=True, client=site.options.client)
            sent = await site.patch(job.uri, body, block.etag, soon=True)
            if isinstance(sent, Accepted):
                site.keep(job.uri)
            return _Step(sent, reserving=True)
        if site.options.reserve and site.stock.kept_in(job.uri) != site.client.door.sessions:
            await self._removal.let_go(job.uri)
            return _Step(
                Stale(f"{site.base}: the session ended in which {job.uri} was reserved"), reserving=True
            )
        target = self._target(look)
        if target:
            return _Step(await site.post(target, redfish.block_action(job.uri, block.etag)), reserving=False)
        if site.lacks(system.value):
            says = (
                f"{site.base}: {system.value.uri} does not list all of its blocks: to send it is to drop some"
            )
            return _Step(Declined(says), reserving=False)
        blocks = (*(one for one in system.value.blocks if one != job.uri), job.uri)
        return _Step(
            await site.patch(system.value.uri, redfish.block_list(blocks), system.etag), reserving=False
        )

    async def _came_of(
        self, job: _Job, before: Look, step: _Step, effect: Seconds
    ) -> Progress | Retry | None:
        """Return how it ended; None if it must be looked at, or sent, again."""
        sent = step.sent
        if isinstance(sent, Stale | Busy | Unknown):
            return None
        if step.reserving:
            if isinstance(sent, Declined):
                return Failed(f"{sent.reason}; {NO_RESERVING}")
            await self._site.follow(sent, effect)
            return None
        told = await self._site.follow(sent, effect) if isinstance(sent, Accepted) else sent
        end = await self._arrived(job, before, effect, agreed=isinstance(told, Accepted))
        if end is not None:
            return end
        if told is None:
            return self._over(job, f"{self._site.base}: its task goes on", conflict=False)
        if isinstance(told, Accepted):
            seconds = self._site.options.effect_seconds
            return Failed(
                f"{self._site.base}: the service agreed, but {job.order.device} did not come to "
                f"{job.place.node} within {seconds:g} s"
            )
        return Failed(told.reason)

    async def _arrived(self, job: _Job, before: Look, deadline: Seconds, *, agreed: bool) -> Progress | None:
        """Return what stands on the machine once the service is through; None when time is up.

        Where the service did not agree, nothing is waited for but that what is moving comes to rest.
        """
        site, pace = self._site, Pace()
        while True:
            try:
                look = await self._look(job)
                verdict = await self._verdict(job, look)
                if isinstance(verdict, Done):
                    return verdict
                wrong = (
                    None if isinstance(verdict, Working | _Kept) else await self._instead(job, before, look)
                )
                if wrong is not None:
                    return wrong
                if isinstance(verdict, Failed):
                    return verdict
                if isinstance(verdict, _Free) and not agreed:
                    return None
            except Gone as error:
                return Failed(str(error))
            except Retry:
                pass
            if site.clock.now() >= deadline:
                return None
            await site.pause(pace.next())

    async def _instead(self, job: _Job, before: Look, look: Look) -> Failed | None:
        """Give back what came in place of the device: left there, each new order would bring one more."""
        site = self._site
        new = tuple(one for one in look.system.value.blocks if one not in before.system.value.blocks)
        for block, device in await site.devices(new):
            theirs = block.client and site.options.client and block.client != site.options.client
            if theirs or device.id(block, site.options.identity) in site.stock.coming:
                continue
            until = Seconds(site.clock.now() + site.options.queue_seconds)
            back = await self._removal.take(Taken(job.place, block.uri, mistaken=True), until)
            left = (
                f"it could not be taken back: {back.reason}"
                if isinstance(back, Failed)
                else "it was taken back"
            )
            name = redfish.short(device.id(block, site.options.identity) or block.uri)
            return Failed(
                f"{site.base}: the service attached {name} of model {device.model!r} instead of "
                f"{job.order.device}; {left}"
            )
        return None
