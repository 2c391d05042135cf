"""Keeps a driver's ResourceSlices in the API as they should be, whoever else touches them.

Knows how slices are watched and written, and how long to wait after what answer. Must not know how a pool is cut into
slices, nor what the devices are.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol, assert_never

import msgspec

from jackfield.codec.encoding import encoded
from jackfield.core import offer
from jackfield.core.offer import Echo, Pool, Publisher, Step
from jackfield.model.meta import Object
from jackfield.model.names import Version, named
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from jackfield.ports import (
    Changed,
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

LOG: Final = logging.getLogger(__name__)
REPAIR_SECONDS: Final = 1.0
"""How long after somebody else changed our slices they are put right, doubled each time: two do not fight for ever."""
REPAIR_SECONDS_MAX: Final = 60.0
REFUSED_SECONDS: Final = 30.0
"""How long after a refusal it is tried again: somebody may have changed our rights."""
CONFLICT_SECONDS: Final = 1.0
"""How long the watch may take to tell what was missed."""


Shown = Iterable[ResourceSlice]
"""Slices that are there."""


class Heard(Protocol):
    """Whoever counts what is written."""

    def slice_written(self, verb: str, result: str) -> None:
        """Take note of a write."""


class Slices:
    """One driver's slices on one node: `run` it, and say when the pools have `changed`."""

    def __init__(
        self, cluster: Cluster, publisher: Publisher, pools: Callable[[Shown], tuple[Pool, ...]], heard: Heard
    ) -> None:
        """`pools` returns what is to be published, given what is."""
        self._cluster = cluster
        self._publisher = publisher
        self._pools = pools
        self._heard = heard
        self._there: dict[str, ResourceSlice] = {}
        self._echoes: dict[str, Echo] = {}
        self._synced = False
        self._news = True
        self._repairs = 0
        self._woken = asyncio.Event()
        self._told = ""
        self.published = asyncio.Event()
        """Set while the slices are as they should be."""
        self.trouble = "the slices have not been looked at yet"
        """What stands in the way; nothing once they are published."""

    def changed(self) -> None:
        """Have the pools looked at again."""
        self._news = True
        self._repairs = 0
        self.published.clear()
        self._woken.set()

    async def run(self) -> None:
        """Keep them so until cancelled. They stay then: the kubelet removes those of a driver that does not return."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._keep())

    # --- what is heard

    async def _follow(self) -> None:
        fields = {"spec.driver": self._publisher.driver, "spec.nodeName": self._publisher.node}
        while True:
            try:
                async for change in self._cluster.watch(ResourceSlice, Selection(fields=fields)):
                    self._hear(change)
            except PortError as error:
                self._synced = False
                await _pause(self._wait_after(error, "be watched"))

    def _hear(self, change: Changed | Deleted | Synced) -> None:
        match change:
            case Changed(object=ResourceSlice() as new):
                name, known = new.metadata.name, self._there.get(new.metadata.name)
                if known is None or not _is_older(new, known):
                    self._there[name] = new
            case Deleted(object=old):
                known = self._there.get(old.metadata.name)
                if known is not None and not _is_older(old, known):
                    del self._there[old.metadata.name]
            case Synced(keys=keys):
                self._there = {name: one for name, one in self._there.items() if one.key in keys}
                self._synced = True
            case _:
                return
        self._woken.set()

    # --- what is done

    async def _keep(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            if not self._synced:
                continue
            if not self._news and self._steps():
                await self._let_others_finish()
            news, self._news = self._news, False
            try:
                await self._round()
            except PortError as error:
                # What collided with somebody else's write is no news of ours, and is put right as calmly as the rest.
                self._news = self._news or news or not isinstance(error, Conflict)
                self._again_in(self._wait_after(error, "be published"))

    async def _let_others_finish(self) -> None:
        """Wait before undoing what somebody else did: in an update the driver's next life may have begun."""
        seconds = min(REPAIR_SECONDS * 2**self._repairs, REPAIR_SECONDS_MAX)
        self._repairs += 1
        LOG.warning(
            "somebody else changed the slices of %s; they are put right in %g s",
            self._publisher.driver,
            seconds,
        )
        self._woken.clear()
        until = asyncio.get_running_loop().time() + seconds
        while not self._news and (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.wait_for(self._woken.wait(), left)
            except TimeoutError:
                return
            self._woken.clear()

    def _steps(self) -> tuple[Step, ...]:
        return offer.steps(
            self._publisher, self._pools(self._there.values()), self._there.values(), self._echoes
        )

    async def _round(self) -> None:
        if not self._publisher.node_uid or self._steps():
            # Asked each time: a node that was deleted and came back is another one, and takes its slices with it.
            await self._ask_for_node()
        for step in self._steps():
            await self._take(step)
        self.trouble = self._told = ""
        self.published.set()

    async def _ask_for_node(self) -> None:
        name = self._publisher.node
        try:
            node = await self._cluster.read(Node, named(name))
        except Gone as error:
            raise Retry(f"there is no node {name}: is that its name in the API?") from error
        self._publisher = msgspec.structs.replace(self._publisher, node_uid=node.uid)

    async def _take(self, step: Step) -> None:
        verb, name = type(step).__name__.lower(), step.slice.metadata.name
        try:
            written = await self._written(step)
        except PortError as error:
            self._heard.slice_written(verb, type(error).__name__.lower())
            if not isinstance(error, Gone):
                raise
            # What was to be changed or deleted is gone: then that is what there is.
            self._there.pop(name, None)
            self._woken.set()
            return
        self._heard.slice_written(verb, "ok")
        if written is None:
            self._there.pop(name, None)
            self._echoes.pop(name, None)
            return
        self._there[name] = written
        self._echoes[name] = echo = Echo(step.slice.spec, written.spec)
        for words in offer.dropped(echo):
            LOG.warning("the API server left out %s; the devices are published without", words)

    async def _written(self, step: Step) -> ResourceSlice | None:
        match step:
            case offer.Create(slice=new):
                return await self._cluster.create(new)
            case offer.Change(slice=new):
                body: dict[str, object] = {"spec": _whole(new)}
                if new.metadata.owner_references:
                    owners = [encoded(one) for one in new.metadata.owner_references]
                    body["metadata"] = {"ownerReferences": owners}
                version = new.metadata.resource_version
                written = await self._cluster.write(Merge(ResourceSlice, new.key, version, body))
                return written if isinstance(written, ResourceSlice) else None
            case offer.Delete(slice=old):
                await self._cluster.delete(ResourceSlice, old.key, old.metadata.resource_version)
                return None
            case _ as never:
                assert_never(never)

    # --- what went wrong

    def _wait_after(self, error: PortError, what: str) -> float:
        """Tell people once what stands in the way; return after how many seconds to try again."""
        if isinstance(error, Conflict):
            return CONFLICT_SECONDS  # the watch tells what we had not seen
        self.trouble = f"the slices of {self._publisher.driver} cannot {what}: {error}"
        if self.trouble != self._told:
            self._told = self.trouble
            LOG.error("%s", self.trouble)
        if isinstance(error, Retry):
            return float(error.after)
        return REFUSED_SECONDS if isinstance(error, Refused) else CONFLICT_SECONDS

    def _again_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self._woken.set)


def _whole(new: ResourceSlice) -> dict[str, object]:
    """Return the spec as a patch that leaves nothing of the old one."""
    return {"devices": None, "sharedCounters": None, **encoded(new.spec)}


def _is_older(new: Object, known: Object) -> bool:
    """Whether an event tells less than the answer to our own write did."""
    if new.uid != known.uid:
        return False
    mine, yours = _number(known.metadata.resource_version), _number(new.metadata.resource_version)
    return mine is not None and yours is not None and yours < mine


def _number(version: Version) -> int | None:
    return int(version) if version.isdecimal() else None


async def _pause(seconds: float) -> None:
    """Wait; nothing here runs on another time than the loop's."""
    done = asyncio.get_running_loop().create_future()
    timer = asyncio.get_running_loop().call_later(seconds, done.set_result, None)
    try:
        await done
    finally:
        timer.cancel()
