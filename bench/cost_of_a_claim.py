"""What it costs to serve one claim, with 100 and with 5,000 nodes in the store: the same.

Counts Python calls inside our own packages instead of seconds, since seconds depend on who else uses the machine. The
scheduler is left out, as it is not ours: the claim is allocated by hand, as kube-scheduler would write it.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Self

from jackfield.controllers.store import Store
from jackfield.core import naming
from jackfield.model.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NEVER, FabricName, Key, ModelName, NodeName, PhysicalID, Seconds, rfc3339
from jackfield.model.plan import AnyAction, Finding, Waiting
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec
from jackfield.model.policy import FAILED, READY, RESCHEDULE, DeviceModel, Policy
from jackfield.ports import Merge
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import running
from jackfield.sim.setting import Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.sim.world import SimWorld

FABRIC = FabricName("hall")
MODEL = DeviceModel(0, ModelName("A100"), "a100")
RATIO_MAX = 1.20
OURS = ("jackfield/core/", "jackfield/controllers/", "jackfield/model/")


class Silent:
    """Hears everything, says nothing."""

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Pass over it."""

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Pass over it."""

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Pass over it."""

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Pass over it."""


def setting(nodes: int) -> Setting:
    """Return a stage with so many nodes and always the same pool."""
    return Setting(
        nodes=(Nodes("node", nodes, fabric=FABRIC),),
        fabrics=(
            FabricSpec(FABRIC, batches=(Batch(MODEL.cdi_model_name, 200),), attach=Fixed(Seconds(20.0))),
        ),
        policy=Policy(
            models=(MODEL,),
            hold_seconds=Seconds(30.0),
            heartbeat_seconds=Seconds(1e9),
            resync_seconds=Seconds(1e9),
        ),
        heartbeat=NEVER,
    )


class Calls:
    """Counts the calls of our own functions."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and any(part in frame.f_code.co_filename for part in OURS):
            self.count += 1


async def allocate(world: SimWorld, key: Key, node: NodeName) -> None:
    """Write a claim and its allocation, as the scheduler would."""
    device = naming.device(FABRIC, MODEL, PhysicalID("0007"))
    request = DeviceRequest("gpu", ExactDeviceRequest("gpu"))
    await world.cluster.create(
        ResourceClaim(
            metadata=ObjectMeta(name=key.name, namespace=key.namespace),
            spec=ResourceClaimSpec(DeviceClaim((request,))),
        )
    )
    pod = await world.cluster.create(
        Pod(
            metadata=ObjectMeta(name="pod", namespace=key.namespace),
            spec=PodSpec(
                containers=(Container("main", "app"),),
                resource_claims=(PodResourceClaim("gpu", resource_claim_name=key.name),),
            ),
        )
    )
    result = {
        "request": "gpu",
        "driver": device.driver,
        "pool": device.pool,
        "device": device.device,
        "bindingConditions": [READY],
        "bindingFailureConditions": [RESCHEDULE, FAILED],
    }
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    status = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [here]},
            "allocationTimestamp": rfc3339(world.clock.now()),
        },
        "reservedFor": [{"resource": "pods", "name": "pod", "uid": pod.uid}],
    }
    claim = await world.cluster.read(ResourceClaim, key)
    version = claim.metadata.resource_version
    await world.cluster.write(Merge(ResourceClaim, key, version, {"status": status}, status=True))


async def serve(nodes: int, tell: Callable[[str], None]) -> int:
    """Serve one claim from allocation to Ready and back to the pool; return the calls it took."""
    tell(f"{nodes} nodes: coming up")
    world = SimWorld(setting(nodes), running(), Chance(1), Silent())
    world.unscheduled = True
    async with world:
        await world.clock.sleep(Seconds(120.0))
        key = Key("default", "claim")
        with Calls() as calls:
            await allocate(world, key, NodeName(f"node-{nodes // 2:0{len(str(nodes))}}"))
            await world.clock.sleep(Seconds(60.0))
        _expect_ready(world.store, key)
    tell(f"{nodes} nodes: {calls.count} calls")
    return calls.count


def _expect_ready(store: Store, key: Key) -> None:
    claim = store.claim(key)
    assert claim is not None
    assert any(one.type == READY and one.true for entry in claim.status.devices for one in entry.conditions)


def main() -> int:
    """Print the figures; return 1 if the ratio is out of its bound."""
    few = loop.run(serve(100, print))
    many = loop.run(serve(5000, print))
    ratio = many / few
    print(f"one claim, 5,000 nodes against 100: {ratio:.3f} times the calls (at most {RATIO_MAX})")
    return int(ratio > RATIO_MAX)


if __name__ == "__main__":
    sys.exit(main())
