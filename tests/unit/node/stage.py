"""A node with our plugin on it: the embedded cluster, the kubelet's double, and a machine in a folder."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from msgspec.structs import replace

from jackfield.cli.clock import WallClock
from jackfield.cli.log import Log
from jackfield.codec.encoding import encoded
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import HOLDER, ComposableResource, ResourceState
from jackfield.model.meta import ObjectMeta, condition
from jackfield.model.names import NodeName, Version, named
from jackfield.model.namespace import Namespace
from jackfield.model.node import HEARTBEATS
from jackfield.model.policy import DRIVER, Policy
from jackfield.node.host import Manners
from jackfield.node.plugin import NodePlugin, Settings
from jackfield.node.sysfs import Roots
from jackfield.ports import Cluster, Merge
from jackfield.testing import builders as b
from jackfield.testing.kubelet import Claim, Kubelet
from jackfield.testing.sysfs import Machine, PciDevice
from unit.driver.site import Site, on_a_node
from unit.node.silence import Paper, nobody_speaks

T = TypeVar("T", ResourceClaim, ComposableResource)

ADDRESS = "0000:17:00.0"
CARD = PciDevice(ADDRESS, driver="nvidia", uuid="GPU-ab12-cd", minor=0)
CR = named("a100-1.rack-a")


class Stage:
    """Everything around the plugin of one node, and what an operator and a scaler would write."""

    def __init__(self, site: Site, kubelet: Kubelet) -> None:
        self.site = site
        self.kubelet = kubelet
        self.machine = Machine(site.folder / "host")
        self.lines = Paper()
        self.notes: list[str] = []

    def settings(self, policy: Policy = Policy()) -> Settings:
        return Settings(
            NodeName(b.NODE),
            policy,
            self.site.places,
            Roots(self.machine.sysfs, self.machine.proc, self.machine.dev),
            Manners(self.machine.pod_logs, uevents=nobody_speaks),
        )

    @asynccontextmanager
    async def plugin(
        self, policy: Policy = Policy(), wrapped: Callable[[Cluster], Cluster] = lambda one: one
    ) -> AsyncIterator[NodePlugin]:
        """Have the plugin run; at the end it is told to end."""
        client = wrapped(self.site.client("jackfield-node"))
        plugin = NodePlugin(self.settings(policy), client, WallClock(), Log("text", self.lines))
        task = asyncio.create_task(plugin.run(self.notes.append))
        try:
            yield plugin
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def put(self, new: T) -> T:
        """Create an object, its status included."""
        meta = new.metadata
        bare = ObjectMeta(
            name=meta.name, namespace=meta.namespace, labels=meta.labels, annotations=meta.annotations
        )
        await self.site.cluster.create(replace(new, metadata=bare))
        body = {"status": encoded(new.status)}
        made = await self.site.cluster.write(Merge(type(new), new.key, Version(""), body, status=True))
        assert isinstance(made, type(new))
        return made

    async def claim(self, name: str = "c") -> ResourceClaim:
        """Have a claim that the scheduler gave the device."""
        return await self.put(b.claim(name))

    async def lent(self, claim: ResourceClaim, **meta: object) -> ComposableResource:
        """Have a device online on the node and recorded for a claim."""
        given = {"physical": "block-7", "uuid": "GPU-ab12-cd"} | meta
        return await self.put(b.resource(record=claim, **given))  # type: ignore[arg-type] # passed on

    async def resource(self) -> ComposableResource:
        return await self.site.cluster.read(ComposableResource, CR)

    async def change(self, status: dict[str, object]) -> None:
        await self.site.cluster.write(
            Merge(ComposableResource, CR, Version(""), {"status": status}, status=True)
        )

    async def state(self, state: ResourceState) -> None:
        await self.change({"state": state.value})

    def said(self, kind: str) -> tuple[str, str]:
        """Return what a condition of the resource says: its status and message."""
        found = self.site.store.get(ComposableResource, CR).object
        assert isinstance(found, ComposableResource)
        one = condition(found.status.conditions, kind)
        return (one.status, one.message) if one is not None else ("", "")

    def holder(self) -> str:
        found = self.site.store.get(ComposableResource, CR).object
        assert isinstance(found, ComposableResource)
        return found.holder

    async def forget_holder(self) -> None:
        """Lose what the plugin wrote, as a backup that is restored does."""
        body = {"metadata": {"annotations": {HOLDER: None}}}
        await self.site.cluster.write(Merge(ComposableResource, CR, Version(""), body))

    def published(self) -> list[str]:
        """Return the node's own devices, as its slices list them."""
        return sorted(device.name for one in self.site.slices() for device in one.spec.devices)

    async def until(self, holds: Callable[[], bool]) -> None:
        await self.site.until(holds)

    def of(self, claim: ResourceClaim) -> Claim:
        return of(claim)

    async def prepare(self, claim: ResourceClaim) -> str:
        """Have the kubelet ask; return the error, or what the container runtime is to inject."""
        (outcome,) = (await self.kubelet.prepare(DRIVER, of(claim))).values()
        return outcome.error or " ".join(name for one in outcome.devices for name in one.cdi)

    async def unprepare(self, claim: ResourceClaim) -> str:
        (outcome,) = (await self.kubelet.unprepare(DRIVER, of(claim))).values()
        return outcome.error

    def files(self) -> list[str]:
        return (
            sorted(one.name for one in self.site.places.cdi.glob("*"))
            if self.site.places.cdi.exists()
            else []
        )


def of(claim: ResourceClaim) -> Claim:
    return Claim(claim.key.namespace, claim.key.name, claim.uid)


def on_stage(scene: Callable[[Stage], Coroutine[object, object, None]]) -> None:
    """Play a scene with a kubelet, a machine whose kernel answers, and the namespace of heartbeats."""

    async def play(site: Site) -> None:
        await site.cluster.create(Namespace(metadata=ObjectMeta(name=HEARTBEATS)))
        async with site.kubelet() as kubelet:
            stage = Stage(site, kubelet)
            async with stage.machine:
                await scene(stage)

    on_a_node(play)
