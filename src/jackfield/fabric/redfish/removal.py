"""How a block is taken from a machine: by action or by list, and believed when neither side shows it any more.

Knows what may become of a removal. Must not know why a block is taken back. A machine's own blocks stay.
"""

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.redfish.access import Accepted, Busy, Declined, Sent, Stale, Unknown, excuse
from jackfield.fabric.redfish.site import BACK_OFF_MAX, Look, Pace, Place, Site
from jackfield.model.fabric import Done, Failed, Order
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Gone, PortError, Refused, Retry


class Taken(msgspec.Struct, frozen=True):
    """What is to leave a machine, and what leaving is worth: nothing is asked twice."""

    place: Place
    uri: str
    device: PhysicalID = PhysicalID("")
    mistaken: bool = False
    """Whether it came by mistake: then it goes, offered or not."""


class Removal:
    """Takes blocks back."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def nothing(self, order: Order) -> Done | None:
        """Return Done if it is plain that nothing is attached, nor coming. Raises Retry, Refused."""
        site = self._site
        place = await site.place(order.node)
        if place is None or not order.device:
            return Done(order.device)
        uri = await site.block(order.device)
        if not uri:
            return Done(order.device)
        try:
            look = await site.look(place, uri, order.device)
        except Gone:
            return Done(order.device)
        # Asked last: an attach may have begun while we looked.
        coming = order.device in site.stock.coming or site.stock.reserves(look.block.value)
        if look.where == place.system or look.moving or coming:
            return None
        return Done(order.device, look.device.serial)

    async def detach(self, order: Order) -> Done | Failed:
        """Take back what stands on the order's node. Raises Retry, Refused."""
        site = self._site
        asked = site.clock.now()
        place = await site.place(order.node)
        uri = await site.block(order.device) if place is not None else ""
        if place is None or not uri:
            return Done(order.device)
        async with site.turn(uri, asked, site.alone(place)) as until:
            return await self.take(Taken(place, uri, order.device), until)

    def target(self, system: redfish.ComputerSystem) -> str:
        """Return where a removal is posted to; empty if the machine's list is patched instead."""
        usable = self._site.options.actions and self._site.dialect.actions
        remove = system.actions.remove if usable and system.actions else None
        return (remove.target or "") if remove else ""

    async def take(self, what: Taken, until: Seconds) -> Done | Failed:
        """Have a block leave a machine. Raises Retry, Refused."""
        site, pace, last, effect = self._site, Pace(BACK_OFF_MAX), "", Seconds(0.0)
        while True:
            try:
                look = await site.insisted(
                    lambda: site.look(what.place, what.uri, what.device), max(until, effect)
                )
            except Gone:
                site.stock.release(what.uri)
                return Done(what.device)
            if look.where != what.place.system and not look.moving:
                return await self._gone(what, look, asked=bool(effect))
            wait = pace.next()
            if look.where == what.place.system and not look.moving and site.clock.now() <= until:
                self._may_go(what, look)
                sent = await self._sent(what, look)
                effect = site.effect_by(until)
                end = await self._came_of(what, sent, effect)
                if end is not None:
                    return end
                last, after = excuse(sent)
                wait = max(wait, after)
            elif site.clock.now() > max(until, effect):
                raise Retry(
                    last or f"{site.base}: {what.uri} is being moved by somebody else; nothing was sent"
                )
            await site.pause(wait)

    def _may_go(self, what: Taken, look: Look) -> None:
        site, block = self._site, look.block.value
        if what.mistaken or site.stock.ours(block, look.device):
            return
        raise Refused(f"device {what.device or what.uri} was attached by somebody else")

    async def _sent(self, what: Taken, look: Look) -> Sent:
        site, system = self._site, look.system.value
        target = self.target(system)
        if target:
            return await site.post(target, redfish.block_action(what.uri))
        if site.lacks(system):
            return Declined(
                f"{site.base}: {system.uri} does not list all of its blocks: to send it is to drop some"
            )
        left = tuple(one for one in system.blocks if one != what.uri)
        return await site.patch(system.uri, redfish.block_list(left), look.system.etag)

    async def _came_of(self, what: Taken, sent: Sent, effect: Seconds) -> Done | Failed | None:
        """Return how it ended; None if it must be looked at, or sent, again."""
        if isinstance(sent, Stale | Busy | Unknown):
            return None
        told = await self._site.follow(sent, effect) if isinstance(sent, Accepted) else sent
        gone = await self._left(what, effect, agreed=isinstance(told, Accepted))
        if gone is not None:
            return gone
        if isinstance(told, Accepted):
            return Failed(
                f"{self._site.base}: {what.uri} was given back, but {what.place.node} still shows it"
            )
        if told is None:
            raise Retry(
                f"{self._site.base}: taking back {what.uri} still goes on; say a longer effectSeconds"
            )
        return Failed(told.reason)

    async def _left(self, what: Taken, deadline: Seconds, *, agreed: bool) -> Done | None:
        """Return Done when neither side shows the block on the machine any more; None when time is up.

        Where the service did not agree, nothing is waited for but that what is moving comes to rest.
        """
        site, pace = self._site, Pace()
        while True:
            try:
                look = await site.look(what.place, what.uri, what.device)
                if look.where != what.place.system and not look.moving:
                    return await self._gone(what, look, asked=True)
                if not agreed and not look.moving:
                    return None
            except Gone:
                return Done(what.device)
            except Retry:
                pass
            if site.clock.now() >= deadline:
                return None
            await site.pause(pace.next())

    async def _gone(self, what: Taken, look: Look, *, asked: bool) -> Done:
        """Let go of the block: what we took back, or had reserved, nobody is to find reserved."""
        if asked and look.block.value.reserved:
            self._site.keep(what.uri)
        await self.let_go(what.uri)
        return Done(what.device, look.device.serial)

    async def let_go(self, uri: str) -> None:
        """Take back a reservation of ours; one that cannot be taken back ends when it is too old to be meant."""
        site = self._site
        if not site.stock.keeps(uri) and not site.options.client:
            return
        try:
            seen = await site.tree.block(uri)
            block = seen.value
            if block.reserved and site.tree.idle(block) and site.stock.reserves(block):
                body = redfish.reservation(reserved=False, client=site.options.client)
                await site.patch(uri, body, seen.etag, soon=True)
        except PortError:
            pass
        site.stock.release(uri)
