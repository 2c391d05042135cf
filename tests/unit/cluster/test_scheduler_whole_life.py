"""Scheduler, kubelet and controller manager together: templates, devices that go round, pods that end."""

import msgspec

from jackfield.cluster.nodes.kubelet import Kubelets
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate, ResourceClaimTemplateSpec
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import DeviceID, Key, NodeName, Uid
from jackfield.model.pod import Pod, PodResourceClaim
from jackfield.model.policy import DRIVER, READY
from jackfield.ports import Changed
from unit.cluster.small_cluster import CLASS, Stage, claim, device_class, fabric_slice, node, play, pod


class Holder:
    """A plugin that notices when a device would be prepared for two claims."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._held: dict[DeviceID, Uid] = {}
        self.prepared = 0

    async def prepare(self, claim: Key, uid: Uid) -> str:
        found = await self._stage.cluster.read(ResourceClaim, claim)
        assert found.uid == uid
        for result in found.results:
            assert self._held.setdefault(result.id, uid) == uid
        self.prepared += 1
        return ""

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        assert claim.name
        self._held = {device: holder for device, holder in self._held.items() if holder != uid}
        return ""


async def attach(stage: Stage) -> None:
    """Say Ready a while after a device is allocated, as a fabric does."""
    async for change in stage.cluster.client("fabric").watch(ResourceClaim):
        match change:
            case Changed(ResourceClaim() as found) if found.results and not found.status.devices:
                stage.start(_later(stage, found))


async def _later(stage: Stage, found: ResourceClaim) -> None:
    await stage.wait(3)
    now = await stage.claim(found.metadata.name)
    if now.results and not now.status.devices:
        await stage.say(found.metadata.name, READY)


def from_template(name: str, seconds: int) -> Pod:
    plain = pod(name, cpu="100m", run_seconds=str(seconds))
    reference = PodResourceClaim("gpu", resource_claim_template_name="gpu")
    return msgspec.structs.replace(
        plain, spec=msgspec.structs.replace(plain.spec, resource_claims=(reference,))
    )


def test_twelve_pods_take_turns_on_three_devices() -> None:
    async def story(stage: Stage) -> None:
        holder = Holder(stage)
        plugins: dict[NodeName, dict[str, Holder]] = {}
        stage.scheduler()
        stage.start(attach(stage))
        stage.start(ControllerManager(stage.cluster.client("kcm"), stage.clock).run())
        kubelets = Kubelets(
            stage.cluster.client("kubelet"),
            stage.clock,
            lambda name: plugins.setdefault(name, {DRIVER: holder}),
        )
        stage.start(kubelets.run())
        await stage.put(device_class(CLASS, DRIVER), fabric_slice(3), node("a"), node("b"))
        spec = ResourceClaimTemplateSpec(spec=claim("any").spec)
        meta = ObjectMeta(name="gpu", namespace="default")
        await stage.cluster.create(ResourceClaimTemplate(metadata=meta, spec=spec))
        for index in range(12):
            await stage.cluster.create(from_template(f"p{index}", 20))
        await stage.wait(150)
        for index in range(12):
            assert (await stage.pod(f"p{index}")).status.phase == "Succeeded"
        assert holder.prepared == 12
        assert list(plugins) == ["a", "b"] or list(plugins) == ["b", "a"]

    play(story)
