"""Replicas on virtual time, each with a line of its own to the API server: what leases are tried on."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import TypeVar

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store as ApiStore
from jackfield.controllers.lead import (
    ALL_PARTS,
    INSTANCE,
    PARTS,
    REPLICAS,
    Identity,
    Leases,
)
from jackfield.core import lead
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import FabricName, Key, Seconds, Version, rfc3339_micro
from jackfield.ports import EVERYTHING, Apply, Change, Merge, Refused, Retry, Selection, Synced
from jackfield.sim import loop
from jackfield.sim.clock import running

T = TypeVar("T", bound=Object)

LEASE = Seconds(10.0)
THIRD = LEASE / 3
FABRICS = tuple(FabricName(f"rack-{number}") for number in range(6))
EVERY = frozenset(FABRICS)
TICK = 0.05
"""How often it is looked whether two lead the same."""


class Wire:
    """A replica's line to the API server, on which calls may fail, stand still, or go wrong after all was done."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._moving = asyncio.Event()
        self._moving.set()
        self.away = False
        self.refusing = False
        self.answers_lost = 0
        self.deaf = False
        """Whether the watch tells nothing new, while calls are answered."""
        self.hangs = False
        """Whether watches tell nothing at all, not even what there is, while calls are answered."""
        self.lag = 0.0
        """How long the watch takes to tell of each change."""
        self.answers_late = 0.0
        """How long after a write its answer comes."""
        self.writes = 0

    def stop(self) -> None:
        """Let nothing through in either direction, as if the process were stopped."""
        self._moving.clear()

    def go_on(self) -> None:
        self._moving.set()

    async def _pass(self) -> None:
        await self._moving.wait()
        if self.away:
            raise Retry("nobody answers")
        if self.refusing:
            raise Refused("you may not")

    async def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        await self._pass()
        synced = False
        async for change in self._cluster.watch(kind, selection):
            await self._moving.wait()
            while self.hangs:
                await running().sleep(Seconds(TICK))
            await running().sleep(Seconds(self.lag if synced else 0.0))
            if not (self.deaf and synced):
                yield change
            synced = synced or isinstance(change, Synced)

    async def read(self, kind: type[T], key: Key) -> T:
        await self._pass()
        return await self._answered(await self._cluster.read(kind, key))

    async def create(self, new: T) -> T:
        await self._pass()
        return await self._answered(await self._cluster.create(new))

    async def write(self, patch: Merge | Apply) -> Object:
        await self._pass()
        self.writes += 1
        written = await self._cluster.write(patch)
        if self.answers_lost:
            self.answers_lost -= 1
            raise Retry("the answer was lost")
        await running().sleep(Seconds(self.answers_late))
        return await self._answered(written)

    async def delete(self, kind: type[Object], key: Key, version: Version) -> None:
        await self._pass()
        await self._cluster.delete(kind, key, version)

    async def _answered(self, answer: T) -> T:
        await self._moving.wait()
        return answer


class Process:
    """One process that keeps a lease, and what it heard."""

    def __init__(self, stage: "Stage", name: str, parts: str = ALL_PARTS) -> None:
        stage.born += 1
        self.name = name
        self.wire = Wire(stage.cluster)
        self.leases = Leases(self.wire, running(), Identity(name, f"process {stage.born}", parts), LEASE)
        self.told = 0
        self._task = asyncio.get_running_loop().create_task(self.leases.run(self._tell))

    def _tell(self) -> None:
        self.told += 1

    @property
    def led(self) -> frozenset[FabricName]:
        return frozenset(one for one in FABRICS if self.leases.leads(one))

    async def kill(self) -> None:
        """End it as SIGKILL would: nothing is given back."""
        self.wire.stop()
        await self._end()

    async def end(self) -> None:
        """End it as SIGTERM does."""
        await self._end()
        await self.leases.release()

    async def _end(self) -> None:
        self._task.cancel()
        await asyncio.wait((self._task,))

    async def error(self) -> str:
        """What it ended with, which it must have done by itself."""
        assert self._task.done(), f"{self.name} still runs"
        group = self._task.exception()
        assert isinstance(group, ExceptionGroup)
        assert [type(one) for one in group.exceptions] == [Refused]
        return str(group.exceptions[0])


class Stage:
    """A cluster with replicas. Whatever happens, no two lead the same."""

    def __init__(self) -> None:
        self.clock = running()
        self.cluster = EmbeddedCluster(ApiStore(self.clock.now, random.Random("names")))  # noqa: S311 - a test's chance
        self.born = 0
        self.processes: list[Process] = []
        self._watch = asyncio.get_running_loop().create_task(self._look_out())

    def start(self, name: str, parts: str = ALL_PARTS) -> Process:
        started = Process(self, name, parts)
        self.processes.append(started)
        return started

    async def wait(self, duration: float) -> None:
        await self.clock.sleep(Seconds(duration))
        if self._watch.done():
            self._watch.result()

    async def _look_out(self) -> None:
        while True:
            for fabric in FABRICS:
                leaders = [one for one in self.processes if one.leases.leads(fabric)]
                parts = {one.leases.me.parts for one in leaders}
                assert len(leaders) == len(parts), f"{fabric} is led by {[one.name for one in leaders]}"
            await self.clock.sleep(Seconds(TICK))

    async def until(self, condition: Callable[[], bool], seconds_max: float = 60.0) -> float:
        """Wait until something holds; return how long that took."""
        began = self.clock.now()
        while not condition():
            assert self.clock.now() - began < seconds_max, "not in time"
            await self.wait(TICK)
        return self.clock.now() - began

    async def lease(self, name: str) -> Lease:
        return await self.cluster.read(Lease, Key(REPLICAS, name))

    async def names(self) -> list[str]:
        found = []
        async for change in self.cluster.watch(Lease):
            if isinstance(change, Synced):
                found = sorted(key.name for key in change.keys)
                break
        return found

    async def left_behind(self, name: str, ago: float, duration: int = 10) -> None:
        """Put a lease there that somebody renewed last so long ago."""
        at = rfc3339_micro(Seconds(self.clock.now() - ago))
        meta = ObjectMeta(
            name=name, namespace=REPLICAS, labels={PARTS: ALL_PARTS}, annotations={INSTANCE: "long ago"}
        )
        await self.cluster.create(Lease(metadata=meta, spec=LeaseSpec(name, duration, at, at)))

    async def two(self) -> tuple[Process, Process]:
        """Start two, and wait until each has its share."""
        one, two = self.start("one"), self.start("two")
        await self.until(lambda: one.led == share("one", "two") and two.led == share("two", "one"))
        return one, two

    async def one_renews_too_late(self) -> Process:
        """Start two, and return one: its renewal hangs when its lease runs out; two takes over and hears nothing."""
        one, two = await self.two()
        await self.until(lambda: one.leases.left() > LEASE - 0.1)
        one.wire.away = two.wire.deaf = True
        await self.until(lambda: one.leases.left() < 1.2)
        one.wire.stop()
        one.wire.away = False
        await self.until(lambda: two.led == EVERY)
        return one


def share(name: str, *others: str) -> frozenset[FabricName]:
    names = tuple(sorted((name, *others)))
    return frozenset(one for one in FABRICS if lead.leader(one, names) == name)


def play(scene: Callable[[Stage], Coroutine[None, None, None]]) -> None:
    async def main() -> None:
        await scene(Stage())

    loop.run(main())
