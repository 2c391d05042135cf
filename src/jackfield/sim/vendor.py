"""A vendor's driver on a node: publishes what is on the node, under its own name, and prepares it.

It stands for NVIDIA's driver and its like: for devices that a node has of its own, and in `reschedule` for those
that the fabric attaches. Knows one node's devices. Must not know conditions, orders or other nodes.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import msgspec

from jackfield.cluster.insist import insist
from jackfield.controllers.indexes import UUID
from jackfield.model.claim import ResourceClaim
from jackfield.model.device import Device, DeviceAttribute, DeviceCapacity
from jackfield.model.host import Prepared
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, Key, NodeName, PhysicalID, Uid, Version, named
from jackfield.model.slice import ResourcePool, ResourceSlice, ResourceSliceSpec
from jackfield.ports import Clock, Cluster, Gone, Merge, PortError, Retry
from jackfield.sim.host import SimHost
from jackfield.sim.setting import LocalDevices


class Found(msgspec.Struct, frozen=True):
    """A device of the fabric's that this driver drives, and what it says of it."""

    physical: PhysicalID
    attributes: dict[str, str]


class VendorDriver:
    """One driver on one node. What is on the node is told by calling `publish`."""

    def __init__(
        self,
        name: str,
        node: NodeName,
        cluster: Cluster,
        clock: Clock,
        local: tuple[LocalDevices, ...] = (),
    ) -> None:
        self.name = name
        self._node = node
        self._cluster = cluster
        self._clock = clock
        self._writing = asyncio.Lock()
        self._local = tuple(_local_devices(local))
        self._key = named(f"{node}-{name}")
        self._slice: ResourceSlice | None = None
        self._host: SimHost | None = None
        self._drives: dict[str, PhysicalID] = {}

    def own_devices(self) -> tuple[DeviceID, ...]:
        """Return the devices that the node has of its own."""
        return tuple(DeviceID(self.name, self._node, device.name) for device in self._local)

    async def publish(self, host: SimHost | None = None, found: tuple[Found, ...] = ()) -> None:
        """Write the node's slice, if it is not what it was."""
        self._host = host
        seen = {one.physical: one for one in host.seen()} if host is not None else {}
        attached = tuple(_attached(one, seen[one.physical].device) for one in found if one.physical in seen)
        self._drives = {_name(one.physical): one.physical for one in found}
        devices = (*self._local, *attached)
        async with self._writing:  # of several at a time the last to be told has the last word
            before = self._slice.spec.devices if self._slice is not None else ()
            if devices != before:
                self._slice = await insist(self._clock, partial(self._written, devices))

    async def adopt(self) -> None:
        """Take up the slice that an earlier life of this driver left behind, if there is one."""
        self._slice = None
        with suppress(Gone):
            self._slice = await insist(self._clock, partial(self._cluster.read, ResourceSlice, self._key))

    async def wipe(self) -> None:
        """Lose the slice, and not know of it until something is published anew."""
        with suppress(Gone):
            await insist(self._clock, partial(self._cluster.delete, ResourceSlice, self._key, Version("")))
        self._slice = None

    async def _written(self, devices: tuple[Device, ...]) -> ResourceSlice:
        if self._slice is None:
            pool = ResourcePool(self._node, 1, 1)
            spec = ResourceSliceSpec(driver=self.name, pool=pool, node_name=self._node, devices=devices)
            return await self._cluster.create(
                ResourceSlice(metadata=ObjectMeta(name=self._key.name), spec=spec)
            )
        body = {"spec": {"devices": msgspec.to_builtins(devices)}}
        try:
            answer = await self._cluster.write(Merge(ResourceSlice, self._key, Version(""), body))
        except Gone as gone:
            self._slice = None
            raise Retry(f"slice {self._key} was deleted") from gone
        assert isinstance(answer, ResourceSlice)
        return answer

    async def prepare(self, claim: Key, uid: Uid) -> str:
        """Prepare the claim's devices: all that a simulated driver does is to remember it."""
        try:
            found = await self._cluster.read(ResourceClaim, claim)
        except Gone:
            return f"claim {claim} does not exist"
        except PortError as error:
            return str(error)
        if found.uid != uid:
            return f"claim {claim} is another one by now"
        for result in found.results:
            physical = self._drives.get(result.device)
            if result.driver == self.name and physical is not None and self._host is not None:
                await self._host.write(Prepared(uid, claim, physical, str(result.id)), uid)
        return ""

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        """Undo it."""
        del claim
        if self._host is not None:
            await self._host.write(None, uid)
        return ""


def _local_devices(local: tuple[LocalDevices, ...]) -> Iterator[Device]:
    number = 0
    for batch in local:
        for _ in range(batch.count):
            yield _device(f"local-{number}", dict(batch.attributes), dict(batch.capacity))
            number += 1


def _attached(found: Found, uuid: str) -> Device:
    return _device(_name(found.physical), {**found.attributes, UUID: uuid}, {})


def _device(name: str, attributes: dict[str, str], capacity: dict[str, str]) -> Device:
    return Device(
        name=name,
        attributes={key: DeviceAttribute(string=text) for key, text in attributes.items()},
        capacity={key: DeviceCapacity(text) for key, text in capacity.items()},
    )


def _name(physical: PhysicalID) -> str:
    return f"attached-{physical}".lower()
