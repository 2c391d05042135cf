"""One id finds the whole story of a claim in the log, from its allocation until its device is back in the pool."""

from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import CAUSE
from jackfield.model.names import Key
from jackfield.model.pod import Pod
from jackfield.testing import builders as b
from unit.metrics.stage import Stage, play

STORY = [
    "PutRequest size 1",
    "PutResource on n1",
    "MarkState Attaching",
    "Attach 0000 at n1",
    "Rescan",
    "MarkVisible",
    "MarkState Online",
    "RecordClaim",
    "SetCondition FabricDeviceReady",
    "ForgetClaim",
    "Release",
    "Detach 0000 at n1",
]
WAITED = {
    "Waiting Composing",
    "Waiting Attaching",
    "Waiting Visible",
    "Waiting Pod",
    "Waiting Released",
    "Waiting Detaching",
}


def test_one_id_finds_the_whole_story() -> None:
    async def scene(stage: Stage) -> None:
        await stage.make(b.pod("p", "c"))
        await stage.allocate(b.claim("c", devices=("a100-0000",)))
        await stage.wait(9.0)
        claim = await stage.bench.cluster.read(ResourceClaim, Key("default", "c"))
        resource = stage.bench.store.resource("a100-0000.rack-a")
        assert resource is not None
        assert resource.metadata.annotations[CAUSE] == claim.uid
        await stage.bind("p")
        await stage.delete(Pod, "p")
        await stage.delete(ResourceClaim, "c")
        await stage.wait(30.0)
        story = [line.what for line in stage.lines() if line.cause == claim.uid]
        assert [one for one in story if not one.startswith("Waiting")] == STORY
        assert {one for one in story if one.startswith("Waiting")} == WAITED
        others = {line.object.partition("/")[0] for line in stage.lines() if line.cause != claim.uid}
        assert others <= {"slice", "node", "fabric", "request"}

    play(scene)


def test_another_claim_of_the_same_name_is_another_story() -> None:
    async def scene(stage: Stage) -> None:
        for _ in range(2):
            await stage.make(b.pod("p", "c"))
            await stage.allocate(b.claim("c", devices=("a100-0000",)))
            await stage.wait(9.0)
            await stage.delete(Pod, "p")
            await stage.delete(ResourceClaim, "c")
            await stage.wait(2.0)
        ready = [line.cause for line in stage.lines() if line.what == "SetCondition FabricDeviceReady"]
        assert len(set(ready)) == 2

    play(scene)
