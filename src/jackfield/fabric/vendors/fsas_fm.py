"""Fsas Fabric Manager: attaches one device of a model per call, which takes as long as the attach does.

Knows what its calls mean and what may become of them. Must not know why a device is moved. A call is sent once, by a
task of its own; whoever asks meanwhile is told that it is under way. Where no answer comes, the machine itself is
looked at: what was not there before and is there now is what came of it.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from jackfield.codec import fsas
from jackfield.fabric.errands import Errands
from jackfield.fabric.fsas import (
    Accepted,
    Declined,
    Found,
    Options,
    Place,
    Site,
    Unknown,
    read_options,
    site,
)
from jackfield.fabric.http import Request
from jackfield.fabric.settings import FabricSettings
from jackfield.model.fabric import Done, FabricDevice, Failed, Inventory, Order, Progress
from jackfield.model.names import ModelName, PhysicalID, Seconds
from jackfield.ports import Clock, Refused, Retry

HEADERS = {"Content-Type": fsas.JSON}


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> "FsasFabricManager":
    """Return the line to the manager. Raises BadFabric."""
    found = read_options(settings, Options)
    return FsasFabricManager(site(settings, found, environment, clock))


class FsasFabricManager:
    """One process's line to a Fabric Manager."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tenant = site.options.tenant
        self._errands = Errands(site.clock)

    def __repr__(self) -> str:
        return f"FsasFabricManager({self._site.name!r}, {self._site.wire.base!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._errands.close()
        await self._site.wire.close()

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the manager shows."""
        return await self._site.inventory(self._found)

    async def attach(self, order: Order) -> Progress:
        """Begin to attach, or say how far it is."""
        return await self._errands.ask(
            "attach", order, lambda: self._attach(order), lambda done: self._on(order, done.device)
        )

    async def detach(self, order: Order) -> Progress:
        """Begin to take back the very device, or say how far it is."""
        return await self._errands.ask("detach", order, lambda: self._detach(order), self._always_new)

    # --- looking

    async def _found(self, place: Place) -> Found:
        resources = await self._resources(place)
        devices = tuple(self._device(place, one) for one in resources)
        return Found(place, self._site.options.slots, devices)

    def _device(self, place: Place, shown: fsas.Resource) -> FabricDevice:
        serial = shown.res_serial_num or ""
        return FabricDevice(
            id=PhysicalID(shown.res_uuid),
            model=ModelName(shown.model),
            type=shown.res_type,
            serial=serial,
            healthy=fsas.healthy(shown.res_op_status),
            node=place.node,
            ours=self._site.ours(shown.model, shown.res_uuid, serial),
        )

    async def _resources(self, place: Place) -> tuple[fsas.Resource, ...]:
        """Return what counts as a device on a machine: what it is built of does not."""
        path = fsas.machine_path(self._tenant, place.machine)
        shown = await self._site.client.read(path, fsas.machines)
        machine = next((one for one in shown if one.mach_uuid.lower() == place.machine.lower()), None)
        if machine is None:
            wrong = Retry(f"the answer is not about machine {place.machine}")
            raise self._site.wire.named(wrong)
        return tuple(one for one in machine.resources or () if one.res_type in self._site.options.kinds)

    async def _on(self, order: Order, device: PhysicalID) -> bool:
        place = await self._site.place(order.node)
        return place is not None and any(one.res_uuid == device for one in await self._resources(place))

    async def _always_new(self, _: Done) -> bool:
        return False  # what was detached may have come back: a detach is looked into whenever it is asked for

    # --- attaching

    async def _attach(self, order: Order) -> Progress:
        site = self._site
        asked = site.clock.now()
        place = await site.place(order.node)
        if place is None:
            return site.failed(f"fabric {site.name} has no machine {order.node}")
        async with site.turn(place, asked) as until:
            before = {
                one.res_uuid for one in await site.asking.insisted(lambda: self._resources(place), until)
            }
            body = fsas.attachment(self._tenant, place.machine, order.type, order.model)
            path = fsas.update_path(self._tenant, place.machine)
            sent = await site.insist(Request("PATCH", path, body, HEADERS), until)
            if isinstance(sent, Declined):
                return Failed(sent.reason)
            came = await site.asking.until(
                lambda: self._newcomer(place, order, before), site.effect_by(until)
            )
            if came is None:
                return self._nothing(order, sent)
            return await self._judged(place, order, came)

    async def _newcomer(self, place: Place, order: Order, before: set[str]) -> fsas.Resource | None:
        """Return what was not there before: the model that was asked for, if there is one."""
        new = [one for one in await self._resources(place) if one.res_uuid not in before]
        meant = [one for one in new if (one.res_type, one.model) == (order.type, order.model)]
        return next(iter(meant or new), None)

    def _nothing(self, order: Order, sent: Accepted | Unknown) -> Progress:
        within = f"nothing came to {order.node} within {self._site.options.effect_seconds:g} s"
        if isinstance(sent, Accepted):
            return Failed(f"{self._site.wire.base}: the manager agreed, but {within}")
        raise Retry(f"{sent.reason}; {within}")

    async def _judged(self, place: Place, order: Order, came: fsas.Resource) -> Progress:
        """Keep the device, or give back what cannot serve: left there, each new order would bring one more."""
        wrong = ""
        if (came.res_type, came.model) != (order.type, order.model):
            wrong = (
                f"the manager attached {came.res_uuid} of model {came.model!r:.100} instead of {order.model}"
            )
        elif fsas.critical(came.res_op_status):
            wrong = f"device {came.res_uuid} is in a critical state (res_op_status {came.res_op_status!r})"
        if not wrong:
            return Done(PhysicalID(came.res_uuid), came.res_serial_num or "")
        until = Seconds(self._site.clock.now() + self._site.options.queue_seconds)
        back = await self._take(place, came, until)
        left = (
            f"; it could not be taken back: {back.reason}"
            if isinstance(back, Failed)
            else "; it was taken back"
        )
        return self._site.failed(f"{wrong}{left}")

    # --- detaching

    async def _detach(self, order: Order) -> Progress:
        asked = self._site.clock.now()
        place = await self._site.place(order.node)
        if place is None or not order.device:
            return Done(order.device)  # nothing of it can be attached
        if self._site.busy(place) and await self._there(place, order.device) is None:
            return Done(order.device)  # for that, nobody need wait
        async with self._site.turn(place, asked) as until:
            there = await self._site.asking.insisted(lambda: self._there(place, order.device), until)
            return Done(order.device) if there is None else await self._take(place, there, until)

    async def _there(self, place: Place, device: PhysicalID) -> fsas.Resource | None:
        shown = next((one for one in await self._resources(place) if one.res_uuid == device), None)
        if shown is not None and not self._site.ours(shown.model, shown.res_uuid, shown.res_serial_num or ""):
            raise Refused(f"device {device} was attached by somebody else")
        return shown

    async def _take(self, place: Place, device: fsas.Resource, until: Seconds) -> Done | Failed:
        """Have the manager take back this very device; believed when the machine does not show it any more."""
        site = self._site
        body = fsas.detachment(self._tenant, place.machine, device.res_type, device.res_uuid)
        path = fsas.update_path(self._tenant, place.machine)
        sent = await site.insist(Request("DELETE", path, body, HEADERS), until)
        deadline = site.effect_by(until)
        if isinstance(sent, Declined):
            deadline = site.clock.now()  # it may have gone by itself
        gone = await site.asking.until(lambda: self._gone(place, device), deadline)
        if gone is not None:
            return gone
        if isinstance(sent, Accepted):
            return site.failed(f"{device.res_uuid} was given back, but {place.node} still shows it")
        return Failed(sent.reason)

    async def _gone(self, place: Place, device: fsas.Resource) -> Done | None:
        there = any(one.res_uuid == device.res_uuid for one in await self._resources(place))
        return None if there else Done(PhysicalID(device.res_uuid), device.res_serial_num or "")
