"""The kubelet's two calls: prepared or a reason, and undone again."""

from collections.abc import Callable, Coroutine
from typing import TypeVar, cast

import pytest
from msgspec.structs import replace

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store as ApiStore
from jackfield.controllers.plugin import Plugin
from jackfield.controllers.runner import Runner
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import HOLDER, ComposableResource
from jackfield.model.fabric import Order
from jackfield.model.meta import Object
from jackfield.model.names import Key, OrderID, PhysicalID, Uid, Version, named
from jackfield.ports import Merge, Prepared, Retry
from jackfield.sim.chance import Chance
from jackfield.sim.host import HostSpec, SimHost
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard, play

CLAIM = Key("default", "c")
CR = named("a100-1.rack-a")
ANY = Version("")
T = TypeVar("T", bound=Object)


class Scene:
    """A claim whose device is online on the node and recorded for it, and the node's plugin."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.heard = Heard()
        self.runner = Runner(bench.world, bench.store, (), self.heard)
        self.plugin = Plugin(b.NODE, bench.world, self.runner, self.heard)

    async def set(self) -> ResourceClaim:
        bench = self.bench
        order = Order(OrderID("o"), b.FABRIC, b.NODE, b.MODEL, PhysicalID("0000"))
        await bench.world.fabrics[b.FABRIC].attach(order)
        await bench.wait(10)
        await bench.host.rescan()
        self.runner.sense(b.NODE)
        claim = await bench.put(b.claim("c"))
        await bench.put(b.resource(physical="0000", uuid="GPU-1", record=claim))
        return claim


def on_stage(story: Callable[[Scene, ResourceClaim], Coroutine[None, None, None]]) -> None:
    async def scene(bench: Bench) -> None:
        stage = Scene(bench)
        await story(stage, await stage.set())

    play(scene)


def test_a_claim_is_prepared_and_undone() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        assert (await scene.bench.resource()).holder == claim.uid
        assert [one.uid for one in scene.bench.host.prepared()] == [claim.uid]
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        assert await scene.plugin.unprepare(CLAIM, claim.uid) == ""
        assert (await scene.bench.resource()).holder == ""
        assert scene.bench.host.prepared() == ()
        assert await scene.plugin.unprepare(CLAIM, claim.uid) == ""
        assert [did.removeprefix("prepare.decide ") for _, did, _ in scene.heard.done] == [
            "Hold",
            "WriteCDI",
            "RemoveCDI",
            "LetGo",
        ]

    on_stage(story)


def test_a_claim_that_is_gone_is_undone_and_not_prepared() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        assert await scene.plugin.prepare(CLAIM, claim.uid) == "claim default/c does not exist"
        assert await scene.plugin.unprepare(CLAIM, claim.uid) == ""
        assert scene.bench.host.prepared() == ()

    on_stage(story)


def test_the_claim_is_read_live() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        nothing: dict[str, object] = {"status": {"allocation": None}}
        await scene.bench.cluster.write(Merge(ResourceClaim, CLAIM, ANY, nothing, status=True))
        refusal = await scene.plugin.prepare(CLAIM, claim.uid)
        assert refusal == "waiting for an allocation to n1; it is to no node"
        assert scene.bench.host.prepared() == ()
        assert scene.heard.waiting[-1][1][0].reason == "Preparing"

    on_stage(story)


@pytest.mark.parametrize("holder", ["", "u"])
def test_a_resource_that_changed_meanwhile_is_not_prepared(holder: str) -> None:
    """Our view of it is old: the holder is written by version, and only then anything else."""

    async def story(scene: Scene, claim: ResourceClaim) -> None:
        uid = str(claim.uid) if holder else ""
        note: dict[str, object] = {"metadata": {"annotations": {"jackfield.dev/holder": uid or None}}}
        scene.bench.store.put(await scene.bench.cluster.write(Merge(ComposableResource, CR, ANY, note)))
        await scene.bench.cluster.write(
            Merge(ComposableResource, CR, ANY, {"status": {"state": "Detaching"}}, status=True)
        )
        refusal = await scene.plugin.prepare(CLAIM, claim.uid)
        assert refusal.startswith("Conflict: ")
        assert scene.bench.host.prepared() == ()
        assert [error for _, _, error in scene.heard.done] == [refusal]

    on_stage(story)


def test_another_claim_of_the_name_is_not_prepared() -> None:
    async def story(scene: Scene, _: ResourceClaim) -> None:
        assert "another of its name exists" in await scene.plugin.prepare(CLAIM, Uid("old"))

    on_stage(story)


class Deaf(EmbeddedCluster):
    """A cluster that does not answer reads."""

    async def read(self, kind: type[T], key: Key) -> T:
        raise Retry(f"no answer about {kind.__name__} {key}")


def test_a_cluster_that_does_not_answer_is_a_reason() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        world = replace(scene.bench.world, cluster=Deaf(scene.bench.cluster.store))
        plugin = Plugin(b.NODE, world, scene.runner, scene.heard)
        assert await plugin.prepare(CLAIM, claim.uid) == "no answer about ResourceClaim default/c"

    on_stage(story)


class Slow(EmbeddedCluster):
    """A cluster whose first answers are on their way while something is told of a resource."""

    old: ResourceClaim
    """The claim as it was when it was first read."""
    meanwhile: Callable[[], Coroutine[None, None, None]]
    times: int

    async def read(self, kind: type[T], key: Key) -> T:
        if self.times == 0:
            return await super().read(kind, key)
        self.times -= 1
        await self.meanwhile()
        return cast("T", self.old)


@pytest.mark.parametrize(
    ("times", "refusal"),
    [
        (0, "waiting for an allocation to n1; it is to no node"),
        (1, "waiting for an allocation to n1; it is to no node"),
        (99, "the resources of claim default/c changed whenever it was read"),
    ],
)
def test_what_is_told_of_a_resource_while_its_claim_is_read_is_of_another_time(
    times: int, refusal: str
) -> None:
    """A record that came late says that the claim has the device, and so does an answer from before it gave it up."""

    async def story(scene: Scene, claim: ResourceClaim) -> None:
        async def note() -> None:
            body: dict[str, object] = {"metadata": {"annotations": {"note": f"{cluster.times}"}}}
            scene.bench.store.put(await scene.bench.cluster.write(Merge(ComposableResource, CR, ANY, body)))

        cluster = Slow(scene.bench.cluster.store)
        cluster.old, cluster.times, cluster.meanwhile = claim, times, note
        nothing: dict[str, object] = {"status": {"allocation": None}}
        await scene.bench.cluster.write(Merge(ResourceClaim, CLAIM, ANY, nothing, status=True))
        plugin = Plugin(b.NODE, replace(scene.bench.world, cluster=cluster), scene.runner, scene.heard)
        assert await plugin.prepare(CLAIM, claim.uid) == refusal
        assert scene.bench.host.prepared() == ()

    on_stage(story)


class Forgetful(SimHost):
    """A node that does not keep what is written on it."""

    async def write(self, prepared: Prepared | None, uid: Uid) -> None:
        del prepared, uid


def test_a_call_ends_though_its_steps_have_no_effect() -> None:
    async def scene(bench: Bench) -> None:
        forgetful = Forgetful(b.NODE, bench.clock, Chance("host"), HostSpec())
        bench.manager.pool.listen(b.NODE, forgetful.moved)
        bench.world = replace(bench.world, hosts={b.NODE: forgetful})
        stage = Scene(bench)
        claim = await stage.set()
        assert await stage.plugin.prepare(CLAIM, claim.uid) == "not all steps could be taken yet"

    play(scene)


async def hold(scene: Scene, claim: ResourceClaim) -> None:
    """Have a holder of two for whom nothing is prepared, as a backup shows that was made while something was."""
    body = {"metadata": {"annotations": {HOLDER: claim.uid}}}
    scene.bench.store.put(await scene.bench.client.write(Merge(ComposableResource, CR, ANY, body)))
    await scene.bench.put(b.resource("a100-2", physical="0001", record=claim, holder=claim.uid))


def test_a_holder_for_whom_nothing_is_prepared_is_cleared_when_its_claim_has_ended() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        await hold(scene, claim)
        await scene.plugin.tidy()
        assert (await scene.bench.resource()).holder == claim.uid
        await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        await scene.plugin.tidy()
        assert (await scene.bench.resource()).holder == ""
        assert (await scene.bench.resource("a100-2.rack-a")).holder == ""

    on_stage(story)


def test_a_holder_for_whom_something_is_prepared_is_the_kubelets_business() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        scene.runner.sense(b.NODE)
        await scene.plugin.tidy()
        assert (await scene.bench.resource()).holder == claim.uid

    on_stage(story)


def test_nobody_is_cleared_while_something_is_being_prepared_for_him() -> None:
    """The holder is written first, and the checkpoint after that."""

    async def story(scene: Scene, claim: ResourceClaim) -> None:
        async def meanwhile() -> None:
            await hold(scene, claim)
            await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
            await scene.plugin.tidy()
            assert (await scene.bench.resource()).holder == claim.uid

        world = replace(scene.bench.world, cluster=Meanwhile(scene.bench.cluster.store, meanwhile))
        scene.plugin = Plugin(b.NODE, world, scene.runner, scene.heard)
        await scene.plugin.prepare(CLAIM, claim.uid)

    on_stage(story)


def test_what_another_plugin_of_the_node_prepared_meanwhile_is_undone_as_well() -> None:
    """During an update there are two: the kubelet asks the old one until it knows the new one; both write one file."""

    async def story(scene: Scene, claim: ResourceClaim) -> None:
        later = Scene(scene.bench)
        later.runner = Runner(scene.bench.world, b.world(), (), later.heard)
        later.plugin = Plugin(b.NODE, scene.bench.world, later.runner, later.heard)
        later.runner.sense(b.NODE)
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        later.runner.store.put(await scene.bench.resource())
        assert await later.plugin.unprepare(CLAIM, claim.uid) == ""
        assert scene.bench.host.prepared() == ()

    on_stage(story)


def test_nobody_is_cleared_whose_containers_may_run_though_the_checkpoint_is_lost() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        assert await scene.plugin.prepare(CLAIM, claim.uid) == ""
        scene.bench.host.damage()
        await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        assert await scene.plugin.repair() == ""
        await scene.plugin.tidy()
        assert (await scene.bench.resource()).holder == claim.uid
        assert await scene.plugin.unprepare(CLAIM, claim.uid) == ""
        assert (await scene.bench.resource()).holder == ""

    on_stage(story)


def test_a_holder_that_a_backup_shows_is_cleared_though_the_checkpoint_was_lost() -> None:
    async def story(scene: Scene, claim: ResourceClaim) -> None:
        await hold(scene, claim)
        scene.bench.host.damage()
        await scene.bench.cluster.delete(ResourceClaim, CLAIM, ANY)
        assert await scene.plugin.repair() == ""
        assert (await scene.bench.resource()).holder == ""

    on_stage(story)


class Meanwhile(EmbeddedCluster):
    """A cluster in which something happens the first time that somebody reads."""

    def __init__(self, store: ApiStore, then: Callable[[], Coroutine[None, None, None]]) -> None:
        super().__init__(store)
        self._then = [then]

    async def read(self, kind: type[T], key: Key) -> T:
        found = await super().read(kind, key)
        if self._then:
            await self._then.pop()()
        return found
