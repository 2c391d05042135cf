"""The driver of devices that a node has of its own, on the kit that every driver has.

Knows how what the machine sees becomes devices of a driver, and that GPUs may be shared. Must not know which devices
are offered, which `core.local` decides, nor how a GPU is shared.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from jackfield.core import local
from jackfield.core.offer import Pool
from jackfield.driver.cdi import Edits
from jackfield.driver.driver import Driver, Prepared, Share
from jackfield.model.composition import ComposableResource
from jackfield.model.device import Device
from jackfield.model.host import HostDevice
from jackfield.model.names import PhysicalID
from jackfield.model.policy import LOCAL_DRIVER, Policy
from jackfield.node import edits
from jackfield.node.gpus import Nvml
from jackfield.node.host import SEEN, SETTLE_SECONDS, NodeHost
from jackfield.node.nvidia.sharing import NOTE, Note, SharedGpus
from jackfield.node.pci import NVIDIA
from jackfield.ports import Refused

A = TypeVar("A")
R = TypeVar("R")

Resources = Callable[[], tuple[ComposableResource, ...]]
"""Returns what fabrics lend this node, or are about to."""


class Shared(msgspec.Struct, frozen=True):
    """GPUs that several claims may have at once."""

    nvml: Nvml
    gpus: SharedGpus


class LocalDriver(Driver):
    """Publishes what no fabric lent, and prepares it."""

    name = LOCAL_DRIVER

    def __init__(
        self, host: NodeHost, policy: Policy, resources: Resources, shared: Shared | None = None
    ) -> None:
        self.problems: tuple[str, ...] = ()
        """What could not be published, in words."""
        self._host = host
        self._policy = policy
        self._resources = resources
        self._shared = shared
        self._offered: Mapping[str, tuple[Device, HostDevice]] = {}
        self._basis: tuple[object, ...] = ()
        """What the last offer was made from."""
        self._due: asyncio.TimerHandle | None = None
        self._changed: Callable[[], None] = lambda: None
        if shared is not None:
            shared.nvml.own = self._gpus

    def pools(self) -> Iterable[Pool]:
        """Return what is offered. While a fabric's device may come unrecognised, nothing new is."""
        self._basis = self._found()
        resources = self._resources()
        there = zip(self._host.seen(), self._host.devices(), strict=True)
        found = local.offered(there, resources, self._policy)
        if local.expecting(resources):
            found = {name: one for name, one in found.items() if name in self._offered}
        self._offered = found
        if self._shared is None:
            return (Pool(tuple(entry for entry, _ in found.values())),)
        shared, self.problems = self._shared.gpus.pool()
        plain = tuple(entry for entry, device in found.values() if device.uuid not in self._gpus())
        return (Pool((*plain, *shared.devices), shared.counters),)

    def _gpus(self) -> tuple[str, ...]:
        """The GPUs that are shared: of those offered, NVIDIA's."""
        return tuple(one.uuid for _, one in self._offered.values() if one.vendor == NVIDIA and one.uuid)

    async def restore(self, shares: tuple[Share, ...]) -> None:
        """Have again what GPUs needed for those who have them."""
        if self._shared is not None:
            self.problems = await self._apart(self._shared.gpus.restore, shares)

    async def prepare(self, share: Share) -> Prepared:
        """Give the device's files away. Raises Refused where it is not the node's own any more; Retry."""
        _, device = self._offered.get(share.device, (None, None))
        if self._shared is not None and (device is None or device.uuid in self._gpus()):
            prepared = await self._apart(self._shared.gpus.prepare, share)
            uuid = msgspec.json.decode(prepared.notes[NOTE], type=Note).gpu
            return self._noted(share, prepared, uuid)
        seen = next((one for one in self._host.seen() if device and one.address == device.address), None)
        if device is None or seen is None:
            raise Refused(f"{share.device} is not here any more, or a fabric has lent it by now")
        made, names = self._host.edits(share.device, seen.device, device)
        notes = {SEEN: seen.physical}
        return Prepared(edits=made, cdi=names, notes=notes, physical=PhysicalID(seen.physical))

    def _noted(self, share: Share, prepared: Prepared, uuid: str) -> Prepared:
        """Remember which device of the node it is, and give its files where no tool of the vendor's does."""
        device = self._host.device(PhysicalID(uuid))
        files = Edits()
        if device is not None:
            said = edits.variables(share.device, prepared.physical, device)
            files = (
                Edits(env=said)
                if prepared.cdi
                else self._host.edits(share.device, prepared.physical, device)[0]
            )
        return replace(prepared, edits=prepared.edits | files, notes={**prepared.notes, SEEN: uuid})

    async def unprepare(self, share: Share) -> None:
        """Undo what was done to a GPU; other devices need nothing."""
        if self._shared is not None and (NOTE in share.notes or share.device not in self._offered):
            await self._apart(self._shared.gpus.unprepare, share)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Hear of what comes and goes, for ever."""
        self._changed = changed
        stop = self._host.listen(self.heard)
        try:
            await asyncio.Event().wait()
        finally:
            stop()
            if self._due is not None:
                self._due.cancel()

    def heard(self) -> None:
        """Take note that what is seen or lent may have changed: every claim has us told several times."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._settled)

    def _settled(self) -> None:
        self._due = None
        if self._shared is not None or self._found() != self._basis:
            self._changed()

    def _found(self) -> tuple[object, ...]:
        """Return all that an offer is made from."""
        lent = (
            (one.metadata.name, one.state, one.status.cdi_device_id, one.status.device_id)
            for one in self._resources()
        )
        return (self._host.devices(), *lent)

    async def _apart(self, work: Callable[[A], R], given: A) -> R:
        """Do it in a thread: the driver may take seconds."""
        return await asyncio.get_running_loop().run_in_executor(None, work, given)
