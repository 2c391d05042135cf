"""Kubelets on one node, a driver that writes down what it is asked, and a claim that pods use there."""

from collections.abc import Mapping

from jackfield.cluster.nodes.kubelet import Kubelets, KubeletSettings
from jackfield.cluster.nodes.prepared import Checkpoint, Plugin
from jackfield.codec.encoding import encoded
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from jackfield.model.names import Key, NodeName, Seconds, Uid, Version
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.ports import Merge
from unit.cluster.small_cluster import POOL, Stage, claim, node

N = NodeName("n")


class Driver:
    """A plugin that writes down what it is asked, and answers as it is told."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.answers: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.takes = Seconds(0.0)

    async def prepare(self, claim: Key, uid: Uid) -> str:
        assert uid
        return await self._answer("prepare", claim)

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        assert uid
        return await self._answer("unprepare", claim)

    async def _answer(self, what: str, claim: Key) -> str:
        self.calls.append((what, claim.name))
        await self._stage.clock.sleep(self.takes)
        return self.answers.pop(0) if self.answers else ""


def kubelets(
    stage: Stage,
    drivers: Mapping[str, Plugin],
    settings: KubeletSettings = KubeletSettings(),
    checkpoint: Checkpoint | None = None,
) -> None:
    client = stage.cluster.client("kubelet")
    stage.start(Kubelets(client, stage.clock, lambda _: drivers, settings, checkpoint).run())


async def bind(stage: Stage, name: str, to: NodeName = N) -> None:
    await stage.cluster.bind(Key("default", name), Uid(""), to)


async def allocate(stage: Stage, name: str, *pods: str, driver: str = DRIVER) -> None:
    """Allocate a claim and reserve it for pods, as the scheduler does."""
    result = DeviceRequestAllocationResult("r", driver, POOL, "d0")
    users = [ResourceClaimConsumerReference("pods", one, (await stage.pod(one)).uid) for one in pods]
    status = {
        "allocation": encoded(AllocationResult(DeviceAllocationResult((result,)))),
        "reservedFor": [encoded(one) for one in users],
    }
    await stage.cluster.write(
        Merge(ResourceClaim, Key("default", name), Version(""), {"status": status}, status=True)
    )


async def scene(stage: Stage, *pods: Pod) -> Driver:
    """Put up a node, a claim allocated and reserved for the pods, and the pods, bound."""
    await stage.put(node(N), claim("c"), *pods)
    names = [one.metadata.name for one in pods]
    await allocate(stage, "c", *names)
    for name in names:
        await bind(stage, name)
    return Driver(stage)
