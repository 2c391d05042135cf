"""Every namespace has an account; one that is to go is emptied first, and only then goes."""

import asyncio
import random
from collections.abc import Callable, Coroutine

import pytest

from jackfield.cluster import bootstrap
from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.store import Store
from jackfield.cluster.upkeep.namespaces import Namespaces
from jackfield.model.account import ServiceAccount
from jackfield.model.config import ConfigMap
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, NodeName, Seconds, Version, named
from jackfield.model.namespace import TERMINATING, Namespace, NamespaceSpec
from jackfield.model.pod import Container, Pod, PodSpec
from jackfield.ports import Merge
from jackfield.sim.clock import VirtualClock, running
from jackfield.sim.loop import run

ANYHOW = Version("")


class Scene:
    """A served store, and who looks after its namespaces."""

    def __init__(self, clock: VirtualClock, authority: str) -> None:
        self.clock = clock
        self.store = Store(clock.now, random.Random(1), served=True)  # noqa: S311 - no cryptography
        bootstrap.furnish(self.store, clock.now())
        self.cluster = EmbeddedCluster(self.store)
        self.namespaces = Namespaces(self.cluster.client("namespaces"), clock, authority)

    async def settle(self) -> None:
        await self.clock.sleep(Seconds(1.0))
        assert self.namespaces.quiet

    async def make(self, name: str) -> None:
        await self.cluster.create(Namespace(metadata=ObjectMeta(name=name)))

    async def settings(self, namespace: str, name: str, *finalizers: str) -> None:
        metadata = ObjectMeta(name=name, namespace=namespace, finalizers=finalizers)
        await self.cluster.create(ConfigMap(metadata=metadata))

    def names(self, kind: type[Object], namespace: str = "") -> list[str]:
        return [one.key.name for one in self.store.list(kind, namespace).items]


def play(story: Callable[[Scene], Coroutine[None, None, None]], authority: str = "pem") -> None:
    async def main() -> None:
        scene = Scene(running(), authority)
        task = asyncio.get_running_loop().create_task(scene.namespaces.run())
        await story(scene)
        task.cancel()

    run(main())


def test_every_namespace_has_an_account_and_knows_whom_to_trust() -> None:
    async def story(scene: Scene) -> None:
        await scene.make("new")
        await scene.settle()
        for namespace in ("default", "kube-system", "new"):
            assert scene.names(ServiceAccount, namespace) == ["default"]
            trust = await scene.cluster.read(ConfigMap, Key(namespace, "kube-root-ca.crt"))
            assert trust.data == {"ca.crt": "pem"}

    play(story)


@pytest.mark.parametrize("kind", [ServiceAccount, ConfigMap])
def test_what_somebody_deletes_of_it_comes_back(kind: type[Object]) -> None:
    async def story(scene: Scene) -> None:
        await scene.settle()
        (before,) = scene.names(kind, "default")
        await scene.cluster.delete(kind, Key("default", before), ANYHOW)
        assert scene.names(kind, "default") == []
        await scene.settle()
        assert scene.names(kind, "default") == [before]

    play(story)


def test_a_namespace_that_is_to_go_takes_all_that_is_in_it_along() -> None:
    async def story(scene: Scene) -> None:
        await scene.make("brief")
        await scene.settings("brief", "one")
        await scene.settle()
        await scene.cluster.delete(Namespace, named("brief"), ANYHOW)
        await scene.settle()
        assert "brief" not in scene.names(Namespace)
        assert scene.names(ConfigMap, "brief") == scene.names(ServiceAccount, "brief") == []
        assert scene.names(ConfigMap, "default") == ["kube-root-ca.crt"]

    play(story)


def test_a_namespace_waits_for_the_last_that_is_in_it() -> None:
    async def story(scene: Scene) -> None:
        await scene.make("slow")
        await scene.settings("slow", "kept", "example.com/wait")
        await scene.cluster.delete(Namespace, named("slow"), ANYHOW)
        await scene.settle()
        space = await scene.cluster.read(Namespace, named("slow"))
        assert space.status.phase == TERMINATING
        assert scene.names(ConfigMap, "slow") == ["kept"]
        no_more = {"metadata": {"finalizers": None}}
        await scene.cluster.write(Merge(ConfigMap, Key("slow", "kept"), ANYHOW, no_more))
        await scene.settle()
        assert "slow" not in scene.names(Namespace)

    play(story)


def test_where_nobody_is_to_be_trusted_nobody_is_told() -> None:
    async def story(scene: Scene) -> None:
        await scene.settle()
        assert scene.names(ConfigMap) == []
        assert set(scene.names(ServiceAccount)) == {"default"}

    play(story, authority="")


def test_a_namespace_says_what_it_waits_for() -> None:
    async def story(scene: Scene) -> None:
        await scene.make("slow")
        for name in ("one", "two"):
            await scene.settings("slow", name, "example.com/wait")
        await scene.cluster.delete(Namespace, named("slow"), ANYHOW)
        await scene.settle()
        space = await scene.cluster.read(Namespace, named("slow"))
        said = {one.type: (one.status, one.message) for one in space.status.conditions}
        assert said["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: configmaps. has 2 resource instances",
        )
        assert said["NamespaceFinalizersRemaining"] == (
            "True",
            "Some content in the namespace has finalizers remaining: example.com/wait in 2 resource instances",
        )
        assert [one for one, (status, _) in said.items() if status == "False"] == [
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
        ]

    play(story)


def test_pods_go_first_and_in_their_own_time() -> None:
    async def story(scene: Scene) -> None:
        await scene.make("busy")
        await scene.settle()
        spec = PodSpec(node_name=NodeName("n"), containers=(Container("c", "i"),))
        await scene.cluster.create(Pod(metadata=ObjectMeta(name="p", namespace="busy"), spec=spec))
        await scene.cluster.delete(Namespace, named("busy"), ANYHOW)
        await scene.settle()
        assert (await scene.cluster.read(Pod, Key("busy", "p"))).deleting
        assert scene.names(ServiceAccount, "busy") == ["default"]
        space = await scene.cluster.read(Namespace, named("busy"))
        assert {one.type for one in space.status.conditions if one.true} == {"NamespaceContentRemaining"}
        await scene.cluster.delete(Pod, Key("busy", "p"), ANYHOW, grace_seconds=0)
        await scene.settle()
        assert "busy" not in scene.names(Namespace)

    play(story)


def test_what_others_have_to_agree_to_is_left_to_them() -> None:
    async def story(scene: Scene) -> None:
        spec = NamespaceSpec(finalizers=("example.com/other",))
        await scene.cluster.create(Namespace(metadata=ObjectMeta(name="held"), spec=spec))
        await scene.cluster.delete(Namespace, named("held"), ANYHOW)
        await scene.settle()
        held = await scene.cluster.read(Namespace, named("held"))
        assert held.spec.finalizers == ("example.com/other",)

    play(story)
