"""Controllers and a node's plugin over a simulated fabric, on virtual time, with everything counted.

The test is the scheduler: it allocates, binds and lets go.
"""

import asyncio
import io
from collections.abc import Callable, Coroutine

import msgspec
from msgspec.structs import replace

from jackfield.cli.log import Entry, Log
from jackfield.cluster.upkeep.collector import Collector
from jackfield.codec.encoding import encoded
from jackfield.controllers import app
from jackfield.controllers.lead import Alone, Lead
from jackfield.controllers.runner import Runner
from jackfield.metrics.catalogue import FAMILIES
from jackfield.metrics.controllers import Figured
from jackfield.model.claim import ResourceClaim
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, Seconds, Version, rfc3339_micro
from jackfield.model.node import HEARTBEATS
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.ports import Conflict, Merge, World
from jackfield.sim import loop
from jackfield.testing import builders as b
from unit.controllers.bench import Bench

POLICY = b.policy(base=Policy(hold_seconds=Seconds(10.0), inventory_seconds=Seconds(5.0)))
ANY = Version("")
BEAT_SECONDS = 5.0


def value(figured: Figured, name: str, *labels: str) -> float | None:
    """Return a figure by the values of its labels, as its family names them; None if there is no such figure."""
    family = next(one for one in FAMILIES if name.startswith(one.name))
    return figured.registry.get_sample_value(name, dict(zip(family.labels, labels, strict=True)))


class Stage:
    """What there is, while a scene is played."""

    def __init__(self, bench: Bench, lead: Lead | None = None) -> None:
        self.bench = bench
        self.lead = lead or Alone()
        self.figured = Figured((b.FABRIC,), bench.clock)
        fabrics = self.figured.counted(bench.world.fabrics)
        self.counting = self.figured.recorder(bench.store, self.lead, fabrics)
        world = World(bench.client, bench.clock, fabrics, bench.world.hosts)
        self.paper = io.StringIO()
        log = Log("json", self.paper)
        log.view = bench.store
        told = self.counting.beside(log)
        self.runner = Runner(world, bench.store, (*app.ALL, *app.NODE), told, self.lead)
        self.figured.watch(self.runner, self.lead, self.counting)
        bench.host.listen(lambda: self.runner.sense(b.NODE))

    def value(self, name: str, *labels: str) -> float | None:
        """Return a figure by the values of its labels, in their order; None if there is no such figure."""
        return value(self.figured, name, *labels)

    def lines(self) -> list[Entry]:
        """Return what was logged."""
        return [msgspec.json.decode(one, type=Entry) for one in self.paper.getvalue().splitlines()]

    async def wait(self, seconds: float) -> None:
        await self.bench.wait(seconds)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something to come true, a minute of this time at most."""
        for _ in range(240):
            if true():
                return
            await self.wait(0.25)
        assert true(), self.figured.text().decode()

    async def make(self, new: Object) -> None:
        """Create an object with its status, as others would; we hear of it when the API tells."""
        meta = ObjectMeta(
            name=new.metadata.name, namespace=new.metadata.namespace, labels=new.metadata.labels
        )
        await self.bench.cluster.create(replace(new, metadata=meta))
        status = getattr(new, "status", None)
        if status is not None and encoded(status):
            body = {"status": encoded(status)}
            await self.bench.cluster.write(Merge(type(new), new.key, ANY, body, status=True))

    async def allocate(self, claim: ResourceClaim) -> None:
        """Do the scheduler's part, up to where it waits."""
        await self.make(replace(claim, status=type(claim.status)()))
        await self.wait(1.0)
        body = {"status": encoded(claim.status)}
        await self.bench.cluster.write(Merge(ResourceClaim, claim.key, ANY, body, status=True))

    async def bind(self, pod: str) -> None:
        """Do the rest of the scheduler's part."""
        key = Key("default", pod)
        found = await self.bench.cluster.read(Pod, key)
        await self.bench.cluster.bind(key, found.uid, b.NODE)

    async def delete(self, kind: type[Object], name: str) -> None:
        await self.bench.cluster.delete(kind, Key("default", name), ANY, grace_seconds=0)

    async def beat(self) -> None:
        """Give the plugin's sign of life, again and again."""
        while True:
            now = rfc3339_micro(self.bench.clock.now())
            try:
                await self.make(b.heartbeat(at=self.bench.clock.now()))
            except Conflict:
                body = {"spec": {"renewTime": now}}
                await self.bench.cluster.write(Merge(Lease, Key(HEARTBEATS, b.NODE), ANY, body))
            await self.wait(BEAT_SECONDS)


def play(
    scene: Callable[[Stage], Coroutine[None, None, None]],
    lead: Lead | None = None,
    policy: Policy = POLICY,
) -> None:
    """Play a scene on virtual time, from a cluster with one node on."""

    async def main() -> None:
        stage = Stage(Bench(policy=policy), lead)
        await stage.make(b.node())
        async with asyncio.TaskGroup() as group:
            collector = Collector(stage.bench.cluster.client("collector"), stage.bench.clock)
            works = [
                group.create_task(one) for one in (stage.runner.run(app.KINDS), stage.beat(), collector.run())
            ]
            await stage.wait(2.0)
            await scene(stage)
            for one in works:
                one.cancel()

    loop.run(main())
