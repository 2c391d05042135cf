"""Constrained composition: a machine is to have one more device of a model, and the service chooses which.

Knows that what was not there before, and is there now, is what came of it. Must not know why a device is moved. One
order at a time per machine; what was not answered is not sent again, since it might be done twice.
"""

import msgspec

from jackfield.codec import redfish
from jackfield.fabric.redfish.access import Accepted, Busy, Declined, Sent, Stale, Unknown, excuse
from jackfield.fabric.redfish.options import REQUESTS
from jackfield.fabric.redfish.removal import Removal, Taken
from jackfield.fabric.redfish.site import BACK_OFF_MAX, Pace, Place, Site
from jackfield.fabric.redfish.tree import Device, Seen
from jackfield.model.fabric import Done, Failed, Order, Progress
from jackfield.model.names import Seconds
from jackfield.ports import Gone, Retry


class _Came(msgspec.Struct, frozen=True):
    """What came to a machine."""

    block: redfish.ResourceBlock
    device: Device


class Constrained:
    """Attaches a device of the service's choice."""

    def __init__(self, site: Site, removal: Removal) -> None:
        self._site = site
        self._removal = removal

    async def attach(self, order: Order) -> Progress:
        """Attach one more device of the order's model. Raises Retry, Refused."""
        site = self._site
        asked = site.clock.now()
        place = await site.place(order.node)
        if place is None:
            return Failed(f"{site.base}: fabric {site.name} has no machine {order.node}")
        if order.type not in REQUESTS:
            return Failed(f"{site.base}: a service can choose {', '.join(REQUESTS)}, not {order.type}")
        async with site.turn(f"{place.system}#", asked, place.system) as until:
            try:
                return await self._attached(order, place, until)
            except Gone as error:
                return Failed(str(error))

    async def _attached(self, order: Order, place: Place, until: Seconds) -> Progress:
        site, pace = self._site, Pace(BACK_OFF_MAX)
        while True:
            before = await site.insisted(lambda: site.tree.system(place.system), until)
            sent = await self._sent(order, before)
            if not isinstance(sent, Busy | Stale):
                break
            says, after = excuse(sent)
            wait = pace.next(after)
            conflict = isinstance(sent, Busy) and sent.conflict
            if conflict and not await self._any_free(order):
                return Failed(says)
            if site.clock.now() + wait > until:
                if conflict:
                    return Failed(says)
                raise Retry(f"nothing was done: {says}", wait)
            await site.pause(wait)
        return await self._came_of(order, place, before.value, sent, site.effect_by(until))

    async def _sent(self, order: Order, before: Seen[redfish.ComputerSystem]) -> Sent:
        members, more = REQUESTS[order.type]
        asked = {**more, "Model": self._site.options.asked(order.type, order.model)}
        return await self._site.patch(before.value.uri, redfish.request(members, asked, 1), before.etag)

    async def _any_free(self, order: Order) -> bool:
        """Return whether a device of the model could be had at all; whoever cannot be asked may have one."""
        stock = self._site.stock
        try:
            found = stock.found(await self._site.refresh())
        except Retry:
            return True
        return any(
            not one.system
            and stock.model(one.device) == order.model
            and (stock.free(one.block, one.device) or one.block.state == redfish.CompositionState.COMPOSING)
            for one in found.values()
        )

    async def _came_of(
        self, order: Order, place: Place, before: redfish.ComputerSystem, sent: Sent, effect: Seconds
    ) -> Progress:
        site = self._site
        told: Sent | None = await site.follow(sent, effect) if isinstance(sent, Accepted) else sent
        declined = isinstance(told, Declined | Busy | Stale)
        came = await self._newcomer(order, place, before, site.clock.now() if declined else effect)
        if came is not None:
            return await self._judged(order, place, came)
        within = f"nothing came to {order.node} within {site.options.effect_seconds:g} s"
        if told is None:
            raise Retry(f"{site.base}: the task goes on; {within}")
        if isinstance(told, Accepted):
            return Failed(f"{site.base}: the service agreed, but {within}")
        if isinstance(told, Unknown):
            raise Retry(f"{told.reason}; {within}")
        return Failed(told.reason)

    async def _newcomer(
        self, order: Order, place: Place, before: redfish.ComputerSystem, deadline: Seconds
    ) -> _Came | None:
        """Return what was not there before: the model that was asked for, if there is one; None when time is up."""
        site, pace = self._site, Pace()
        while True:
            try:
                system = (await site.tree.system(place.system)).value
                new = tuple(one for one in system.blocks if one not in before.blocks)
                found = [_Came(*one) for one in await site.devices(new)]
            except Retry:
                found = []
            there = [one for one in found if one.block.state != redfish.CompositionState.COMPOSING]
            meant = [one for one in there if site.stock.model(one.device) == order.model]
            if meant or there:
                return (meant or there)[0]
            if site.clock.now() >= deadline:
                return None
            await site.pause(pace.next())

    async def _judged(self, order: Order, place: Place, came: _Came) -> Progress:
        """Keep the device, or give back what cannot serve: left there, each new order would bring one more."""
        site, stock = self._site, self._site.stock
        name = came.device.id(came.block, site.options.identity)
        model, wrong, shown = stock.model(came.device), "", redfish.short(name)
        if model != order.model or came.device.kind != order.type:
            wrong = f"the service attached {shown} of model {came.device.model!r} instead of {order.model}"
        elif not stock.usable(came.block, came.device):
            wrong = f"device {shown} came in a critical state"
        if not wrong:
            return Done(name, came.device.serial)
        until = Seconds(site.clock.now() + site.options.queue_seconds)
        back = await self._removal.take(Taken(place, came.block.uri, mistaken=True), until)
        left = (
            f"it could not be taken back: {back.reason}" if isinstance(back, Failed) else "it was taken back"
        )
        return Failed(f"{site.base}: {wrong}; {left}")
