"""Fsas Cluster Manager: is told how many devices of a spec a machine is to have, and brings that about in its own time.

Knows what its calls mean and what may become of them. Must not know why a device is moved. A count is absolute, so two
who write at a time overwrite each other: one writes to a machine at a time, reads the count right before, and does not
let go before the machine shows what came of it. Others who write to the same machine must be kept away by the operator.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import msgspec

from jackfield.codec import fsas
from jackfield.fabric.errands import Errands
from jackfield.fabric.fsas import (
    Declined,
    Found,
    Options,
    Place,
    Sent,
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


class ClusterOptions(Options, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What an operator says of a fabric of a Cluster Manager."""

    cluster: fsas.Id
    """The cluster's UUID."""


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> "FsasClusterManager":
    """Return the line to the manager. Raises BadFabric."""
    found = read_options(settings, ClusterOptions)
    return FsasClusterManager(site(settings, found, environment, clock), found.cluster)


class _There(msgspec.Struct, frozen=True):
    """A device, and the spec that counts it."""

    spec: fsas.CmSpec
    device: fsas.CmDevice

    @property
    def id(self) -> PhysicalID:
        """What the Fabric Manager calls it; while it does not, what this one does."""
        detail = self.device.detail
        return PhysicalID((detail.res_uuid if detail else "") or self.device.device_id or "")

    @property
    def done(self) -> Done:
        return Done(self.id, self.device.device_id or "")

    @property
    def status(self) -> str:
        return self.device.status or ""

    @property
    def attached(self) -> bool:
        """Whether it stands on the machine: an unknown word says nothing against it."""
        coming = self.status.startswith(fsas.ADDING) and self.status != fsas.ADD_COMPLETE
        return bool(self.id) and not coming

    @property
    def model(self) -> str:
        products = (self.device.detail.resspecs or ()) if self.device.detail else ()
        return next((one.model for one in products if one.model), self.spec.model)

    @property
    def reason(self) -> str:
        return self.device.status_reason or self.status


class _Before(msgspec.Struct, frozen=True):
    """A machine in which nothing is under way: the spec that is to count one more, and all that stands there."""

    spec: fsas.CmSpec
    there: frozenset[PhysicalID]


class FsasClusterManager:
    """One process's line to a Cluster Manager."""

    def __init__(self, site: Site, cluster: str) -> None:
        self._site = site
        self._cluster = cluster
        self._errands = Errands(site.clock)

    def __repr__(self) -> str:
        return f"FsasClusterManager({self._site.name!r}, {self._site.wire.base!r})"

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
        specs = await self._specs(place)
        slots = sum(one.max_resspec_count or 0 for one in specs) or self._site.options.slots
        attached = (one for one in _devices(specs) if one.attached)
        return Found(place, slots, tuple(self._device(place, one) for one in attached))

    def _device(self, place: Place, there: _There) -> FabricDevice:
        detail = there.device.detail
        return FabricDevice(
            id=there.id,
            model=ModelName(there.model),
            type=there.spec.type or "",
            serial=there.device.device_id or "",
            healthy=fsas.healthy(detail.res_op_status if detail else ""),
            node=place.node,
            ours=self._ours(there),
        )

    def _ours(self, there: _There) -> bool:
        detail = there.device.detail
        fixed = detail is not None and any(one.removable is False for one in detail.resspecs or ())
        tenant = (detail.tenant_uuid if detail else "") or self._site.options.tenant
        mine = self._site.ours(there.model, there.id, there.device.device_id or "")
        return mine and not fixed and tenant == self._site.options.tenant

    async def _specs(self, place: Place) -> tuple[fsas.CmSpec, ...]:
        """Return the specs of a machine that are about devices."""
        path = fsas.cm_machine_path(self._site.options.tenant, self._cluster, place.machine)
        machine = await self._site.client.read(path, fsas.cm_machine)
        if machine.uuid.lower() != place.machine.lower():
            wrong = Retry(f"the answer is not about machine {place.machine}")
            raise self._site.wire.named(wrong)
        return tuple(one for one in machine.resspecs or () if one.type in self._site.options.kinds)

    async def _on(self, order: Order, device: PhysicalID) -> bool:
        """Whether it stands there yet. Raises Retry while it is shown as coming: no other may be ordered for it."""
        place = await self._site.place(order.node)
        there = () if place is None else _devices(await self._specs(place))
        found = next((one for one in there if one.id == device), None)
        if found is None or found.status == fsas.ADD_FAILED:
            return False
        if not found.attached:
            raise self._site.wire.named(Retry(f"{device} is not on {order.node} yet: {found.status}"))
        return True

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
            before = await self._unmoved(place, order, until)
            if isinstance(before, Failed):
                return before
            spec = before.spec
            wanted = spec.device_count + 1
            if spec.max_resspec_count and wanted > spec.max_resspec_count:
                most = spec.max_resspec_count
                return Failed(
                    f"{site.wire.base}: {order.node} may have {most} of {order.model}, and has them"
                )
            return await self._increase(place, order, before, until)

    async def _unmoved(self, place: Place, order: Order, until: Seconds) -> _Before | Failed:
        """Return the spec when nothing is under way in it; what failed to come is taken off its count first."""

        async def look() -> _Before | Failed | None:
            specs = await self._specs(place)
            spec = _spec(specs, order)
            if spec is None:
                return self._site.failed(f"machine {place.machine} has no spec for {order.model}")
            failed = [
                one for one in _devices((spec,)) if one.status == fsas.ADD_FAILED and one.device.device_id
            ]
            for one in failed:
                if self._ours(one) and _settled(spec):
                    await self._post(place, _removal(one), until)
                    return None
            return _Before(spec, frozenset(one.id for one in _devices(specs))) if _settled(spec) else None

        found: _Before | Failed | None = await self._site.asking.until(look, until)
        if found is None:
            raise Retry(f"{place.node} is being changed by somebody else; nothing was sent")
        return found

    async def _increase(self, place: Place, order: Order, before: _Before, until: Seconds) -> Progress:
        site, spec = self._site, before.spec
        count = spec.device_count + 1
        sent = await self._post(place, fsas.Resize(fsas.Increase(spec.spec_uuid, count)), until)
        if isinstance(sent, Declined):
            return Failed(sent.reason)
        deadline = site.effect_by(until)

        async def look() -> _There | None:
            new = [one for one in _devices(await self._specs(place)) if one.id not in before.there]
            ended = [one for one in new if one.attached or one.status == fsas.ADD_FAILED]
            meant = [one for one in ended if one.spec.spec_uuid == spec.spec_uuid]
            return next(iter(meant or ended), None)

        came = await site.asking.until(look, deadline)
        if came is None:
            within = f"nothing came to {order.node} within {site.options.effect_seconds:g} s"
            if isinstance(sent, Unknown):
                raise Retry(f"{sent.reason}; {within}")
            return Failed(f"{site.wire.base}: the manager agreed, but {within}")
        return await self._judged(place, order, came)

    async def _judged(self, place: Place, order: Order, came: _There) -> Progress:
        """Keep the device, or give back what cannot serve: left there, each new order would bring one more."""
        detail, wrong = came.device.detail, ""
        if came.status == fsas.ADD_FAILED:
            wrong = f"device {came.id} did not come: {came.reason}"
        elif came.model != order.model:
            wrong = f"the manager attached {came.id} of model {came.model!r:.100} instead of {order.model}"
        elif detail is not None and fsas.critical(detail.res_op_status):
            wrong = f"device {came.id} is in a critical state (res_op_status {detail.res_op_status!r})"
        if not wrong:
            return came.done
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
            there = await self._ready(place, order.device, until)
            return there if isinstance(there, Done) else await self._take(place, there, until)

    async def _ready(self, place: Place, device: PhysicalID, until: Seconds) -> _There | Done:
        """Return the device when its spec's count can be trusted; Done if it goes by itself."""

        async def look() -> _There | Done | None:
            there = await self._there(place, device)
            if there is None:
                return Done(device)
            return there if _settled(there.spec) else None

        found: _There | Done | None = await self._site.asking.until(look, until)
        if found is None:
            raise Retry(f"{place.node} is being changed by somebody else; nothing was sent")
        return found

    async def _there(self, place: Place, device: PhysicalID) -> _There | None:
        there = next((one for one in _devices(await self._specs(place)) if one.id == device), None)
        if there is not None and not self._ours(there):
            raise Refused(f"device {device} was attached by somebody else")
        return there

    async def _take(self, place: Place, there: _There, until: Seconds) -> Done | Failed:
        """Have the manager take back this very device; believed when the machine does not show it any more."""
        site = self._site
        if not there.device.device_id:
            return site.failed(f"the manager gives device {there.id} no device_id to remove it by")
        sent = await self._post(place, _removal(there), until)
        deadline = site.effect_by(until)
        if isinstance(sent, Declined):
            deadline = site.clock.now()  # it may have gone by itself
        end: Done | Failed | None = await site.asking.until(lambda: self._taken(place, there), deadline)
        if end is not None:
            return end
        if isinstance(sent, Declined | Unknown):
            return Failed(sent.reason)
        return site.failed(f"{there.id} was given back, but {place.node} still shows it")

    async def _taken(self, place: Place, before: _There) -> Done | Failed | None:
        there = next((one for one in _devices(await self._specs(place)) if one.id == before.id), None)
        if there is None:
            return before.done
        if there.status == fsas.REMOVE_FAILED and before.status != fsas.REMOVE_FAILED:
            return self._site.failed(f"device {there.id} did not come off: {there.reason}")
        return None

    async def _post(self, place: Place, resize: fsas.Resize, until: Seconds) -> Sent:
        path = fsas.resize_path(self._site.options.tenant, self._cluster, place.machine)
        return await self._site.insist(Request("POST", path, fsas.encode(resize), HEADERS), until)


def _devices(specs: tuple[fsas.CmSpec, ...]) -> tuple[_There, ...]:
    return tuple(_There(spec, device) for spec in specs for device in spec.devices or ())


def _spec(specs: tuple[fsas.CmSpec, ...], order: Order) -> fsas.CmSpec | None:
    return next((one for one in specs if (one.type, one.model) == (order.type, order.model)), None)


def _settled(spec: fsas.CmSpec) -> bool:
    """Return whether the count is what is there, and nothing comes or goes; an unknown word says nothing."""
    devices = _devices((spec,))
    going = (fsas.REMOVING, fsas.ADDING)
    moving = [one for one in devices if one.status.startswith(going) and one.status not in fsas.SETTLED]
    return len(devices) == spec.device_count and not moving


def _removal(there: _There) -> fsas.Resize:
    left = max(0, there.spec.device_count - 1)
    return fsas.Resize(
        remove_resources=fsas.Remove(there.spec.spec_uuid, left, (there.device.device_id or "",))
    )
