"""Controllers of the embedded cluster at work: claims come with pods and go with them."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable

from jackfield.cluster.api import NEWS_MAX, Client, EmbeddedCluster
from jackfield.cluster.crew import Crew
from jackfield.cluster.deletion import Deletion
from jackfield.cluster.store import Store, Write
from jackfield.cluster.upkeep.claims import PROTECTION
from jackfield.cluster.upkeep.collector import Collector
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.codec import Raw
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.ports import EVERYTHING, Change, Conflict, Refused, Retry, Selection, Synced, T

STATUS = Write(status=True)
POD = Key("d", "p")
ROUNDS_MAX = 1000


class StandingClock:
    """A clock that stands, and notes who waits."""

    def __init__(self) -> None:
        self.slept: list[Seconds] = []

    def now(self) -> Seconds:
        return Seconds(1.7e9)

    async def sleep(self, duration: Seconds) -> None:
        self.slept.append(duration)


class Bench:
    """A cluster with both controllers, and a way to let them finish."""

    def __init__(self, handle: type[Client] = Client) -> None:
        self.clock = StandingClock()
        self.store = Store(self.clock.now, random.Random("controllers"))  # noqa: S311 - no cryptography
        self.cluster = EmbeddedCluster(self.store)
        self.client = self.cluster.client("controllers", handle)
        self.manager = ControllerManager(self.client, self.clock)
        self.collector = Collector(self.client, self.clock)
        self.tasks: list[asyncio.Task[None]] = []

    async def settle(self) -> None:
        """Let the controllers run until the cluster has been the same for a while."""
        quiet = 0
        for _ in range(ROUNDS_MAX):
            version = self.store.version
            await _turn()
            assert not [task for task in self.tasks if task.done()], "a controller died"
            still = version == self.store.version and self.manager.quiet
            quiet = quiet + 1 if still else 0
            if quiet > 20:
                return
        raise AssertionError("the controllers never come to rest")

    def make(self, kind: type[Object], name: str, **fields: object) -> None:
        metadata = {"name": name, "namespace": "d"} if kind.namespaced else {"name": name}
        self.store.create(kind, {"metadata": metadata, **fields})

    def names(self, kind: type[Object]) -> list[str]:
        return [one.key.name for one in self.store.list(kind).items]


async def _turn() -> None:
    """Let every task have its turn once."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(done.set_result, None)
    await done


def played(scene: Callable[[Bench], Awaitable[None]], handle: type[Client] = Client) -> None:
    async def run() -> None:
        bench = Bench(handle)
        bench.tasks = [asyncio.ensure_future(one.run()) for one in (bench.manager, bench.collector)]
        try:
            await scene(bench)
        finally:
            for task in bench.tasks:
                task.cancel()
            await asyncio.wait(bench.tasks)

    asyncio.run(run())


REQUESTS: Raw = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
RESULT = {"request": "gpu", "driver": "x.dev", "pool": "p", "device": "d0"}
TEMPLATED: Raw = {
    "containers": [{"name": "c", "image": "i"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
}
SHARED: Raw = {
    "containers": [{"name": "c", "image": "i"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}],
}


async def running_pod(bench: Bench) -> ResourceClaim:
    """A pod with a claim of its own, scheduled and running, as a scheduler would leave it."""
    bench.make(Node, "n")
    bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
    bench.make(Pod, "p", spec=TEMPLATED)
    await bench.settle()
    (made,) = bench.store.list(ResourceClaim).items
    pod = bench.store.get(Pod, POD).object
    bench.store.patch(ResourceClaim, made.key, {"metadata": {"finalizers": [PROTECTION]}})
    status = {
        "allocation": {"devices": {"results": [RESULT]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": pod.uid}],
    }
    bench.store.patch(ResourceClaim, made.key, {"status": status}, STATUS)
    bench.store.bind(POD, "n")
    await bench.settle()
    claim = bench.store.get(ResourceClaim, made.key).object
    assert isinstance(claim, ResourceClaim)
    return claim


def test_a_pod_gets_a_claim_from_its_template_and_learns_its_name() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(Pod, "p", spec=TEMPLATED)
        await bench.settle()
        assert bench.names(ResourceClaim) == []
        bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
        await bench.settle()
        (claim,) = bench.names(ResourceClaim)
        assert claim.startswith("p-gpu-")
        pod = bench.store.get(Pod, POD).object
        assert isinstance(pod, Pod)
        assert pod.claim_names == (claim,)

    played(scene)


def test_one_pod_gets_one_claim_however_often_it_changes() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
        bench.make(Pod, "p", spec=TEMPLATED)
        for number in range(10):
            bench.store.patch(Pod, POD, {"metadata": {"labels": {"a": f"{number}"}}})
            await _turn()
        await bench.settle()
        assert len(bench.names(ResourceClaim)) == 1

    played(scene)


def test_a_claim_in_use_is_left_alone() -> None:
    async def scene(bench: Bench) -> None:
        claim = await running_pod(bench)
        assert claim.status.allocation is not None
        assert len(claim.status.reserved_for) == 1
        before = bench.client.writes
        bench.store.patch(Pod, POD, {"status": {"phase": "Running"}}, STATUS)
        await bench.settle()
        assert bench.client.writes == before

    played(scene)


def test_the_claim_of_a_pod_that_ended_is_given_back_and_goes() -> None:
    async def scene(bench: Bench) -> None:
        await running_pod(bench)
        bench.store.patch(Pod, POD, {"status": {"phase": "Succeeded"}}, STATUS)
        await bench.settle()
        assert bench.names(ResourceClaim) == []
        assert bench.names(Pod) == ["p"]

    played(scene)


def test_the_claim_of_a_pod_that_is_gone_is_given_back_and_goes() -> None:
    async def scene(bench: Bench) -> None:
        await running_pod(bench)
        bench.store.delete(Pod, POD)
        await bench.settle()
        assert len(bench.names(ResourceClaim)) == 1, "while the kubelet has not ended it"
        bench.store.delete(Pod, POD, how=Deletion(0))
        await bench.settle()
        assert bench.names(ResourceClaim) == []

    played(scene)


def test_the_pods_of_a_lost_node_go_and_their_claims_with_them() -> None:
    async def scene(bench: Bench) -> None:
        await running_pod(bench)
        bench.store.delete(Node, named("n"))
        await bench.settle()
        assert bench.names(Pod) == []
        assert bench.names(ResourceClaim) == []

    played(scene)


def test_a_shared_claim_is_freed_by_its_last_user_and_stays() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(Node, "n")
        bench.make(ResourceClaim, "shared", spec=REQUESTS)
        shared = Key("d", "shared")
        bench.store.patch(ResourceClaim, shared, {"metadata": {"finalizers": [PROTECTION]}})
        allocation = {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
        bench.store.patch(ResourceClaim, shared, allocation, STATUS)
        for name in ("a", "b"):
            bench.make(Pod, name, spec={**SHARED, "nodeName": "n"})
        await bench.settle()
        assert [
            one["name"] for one in bench.store.get(ResourceClaim, shared).raw["status"]["reservedFor"]
        ] == [
            "a",
            "b",
        ]
        bench.store.delete(Pod, Key("d", "a"), how=Deletion(0))
        await bench.settle()
        claim = bench.store.get(ResourceClaim, shared).object
        assert isinstance(claim, ResourceClaim)
        assert [one.name for one in claim.status.reserved_for] == ["b"]
        assert claim.status.allocation is not None
        bench.store.delete(Pod, Key("d", "b"), how=Deletion(0))
        await bench.settle()
        freed = bench.store.get(ResourceClaim, shared)
        assert freed.raw["status"] == {}
        assert freed.object.metadata.finalizers == ()

    played(scene)


class NoClaims(Client):
    """A cluster whose administrator allows no claims, as a webhook would."""

    async def create(self, new: T) -> T:
        if isinstance(new, ResourceClaim):
            raise Refused("no claims here")
        return await super().create(new)


def test_a_claim_that_is_refused_is_told_of_on_its_pod() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
        bench.make(Pod, "p", spec=TEMPLATED)
        await bench.settle()
        (event,) = bench.store.list(Event).items
        assert isinstance(event.object, Event)
        assert (event.object.reason, event.object.message) == (
            "FailedResourceClaimCreation",
            "no claims here",
        )
        assert event.object.involved_object.name == "p"

    played(scene, NoClaims)


class Busy(Client):
    """A cluster that has no time for the first creation."""

    async def create(self, new: T) -> T:
        if self.calls["create", type(new).__name__] == 0:
            self.calls["create", type(new).__name__] += 1
            raise Retry("busy", Seconds(5.0))
        return await super().create(new)


def test_what_could_not_be_done_is_done_later() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
        bench.make(Pod, "p", spec=TEMPLATED)
        await bench.settle()
        assert len(bench.names(ResourceClaim)) == 1
        assert bench.clock.slept == [5.0]

    played(scene, Busy)


class Disputed(Client):
    """A cluster that calls the first creation a conflict, though nobody else wrote anything."""

    async def create(self, new: T) -> T:
        if self.calls["create", type(new).__name__] == 0:
            self.calls["create", type(new).__name__] += 1
            raise Conflict("somebody was faster")
        return await super().create(new)


def test_a_conflict_that_no_event_follows_is_not_the_end() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(ResourceClaimTemplate, "t", spec={"spec": REQUESTS})
        bench.make(Pod, "p", spec=TEMPLATED)
        await bench.settle()
        assert len(bench.names(ResourceClaim)) == 1

    played(scene, Disputed)


class DeafToNodes(Client):
    """A cluster whose news of nodes never comes."""

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        return _nothing(kind) if kind is Node else super().watch(kind, selection)


class DeafToPods(Client):
    """A cluster whose news of pods never comes."""

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        return _nothing(kind) if kind is Pod else super().watch(kind, selection)


async def _nothing(kind: type[Object]) -> AsyncGenerator[Change, None]:
    yield Synced(kind, frozenset())
    await asyncio.get_running_loop().create_future()


def test_a_pod_does_not_go_because_the_news_of_its_node_is_late() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(Node, "n")
        bench.make(Pod, "p", spec={"containers": [{"name": "c", "image": "i"}], "nodeName": "n"})
        await bench.settle()
        assert bench.names(Pod) == ["p"]

    played(scene, DeafToNodes)


def test_a_claim_is_not_taken_from_a_pod_because_the_news_of_it_is_late() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(Node, "n")
        bench.make(Pod, "p", spec={**SHARED, "nodeName": "n"})
        bench.make(ResourceClaim, "shared", spec=REQUESTS)
        uid = bench.store.get(Pod, POD).object.uid
        status = {
            "allocation": {"devices": {"results": [RESULT]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": uid}],
        }
        bench.store.patch(ResourceClaim, Key("d", "shared"), {"status": status}, STATUS)
        await bench.settle()
        assert "allocation" in bench.store.get(ResourceClaim, Key("d", "shared")).raw["status"]

    played(scene, DeafToPods)


def test_controllers_that_start_again_find_everything_as_it_should_be() -> None:
    async def scene(bench: Bench) -> None:
        await running_pod(bench)
        before = bench.store.version
        again = ControllerManager(bench.client, StandingClock())
        async with Crew() as crew:
            crew.start(again.run())
            await bench.settle()
            assert again.quiet
        assert bench.store.version == before

    played(scene)


def test_what_was_done_while_nobody_watched_is_made_good() -> None:
    async def run() -> None:
        bench = Bench()
        async with Crew() as crew:
            crew.start(bench.manager.run())
            await running_pod(bench)
        bench.store.patch(Pod, POD, {"status": {"phase": "Failed"}}, STATUS)
        assert len(bench.names(ResourceClaim)) == 1
        async with Crew() as crew:
            crew.start(bench.manager.run())
            await bench.settle()
        assert bench.names(ResourceClaim) == []

    asyncio.run(run())


def test_a_pod_of_the_same_name_is_another_pod_even_to_who_missed_the_change() -> None:
    async def scene(bench: Bench) -> None:
        shared = Key("d", "shared")
        bench.make(Node, "n")
        bench.make(ResourceClaim, "shared", spec=REQUESTS)
        allocation = {"status": {"allocation": {"devices": {"results": [RESULT]}}}}
        bench.store.patch(ResourceClaim, shared, allocation, STATUS)
        bench.make(Pod, "p", spec={**SHARED, "nodeName": "n"})
        await bench.settle()
        assert "reservedFor" in bench.store.get(ResourceClaim, shared).raw["status"]
        bench.store.delete(Pod, POD, how=Deletion(0))
        bench.make(Pod, "p", spec={"containers": [{"name": "c", "image": "i"}]})
        for number in range(NEWS_MAX + 1):
            bench.store.patch(Pod, POD, {"metadata": {"labels": {"a": f"{number}"}}})
        await bench.settle()
        assert bench.store.get(ResourceClaim, shared).raw["status"] == {}

    played(scene)


def test_a_dependent_with_one_owner_left_stays_with_that_one() -> None:
    async def scene(bench: Bench) -> None:
        for name in ("a", "b"):
            bench.make(Pod, name, spec={"containers": [{"name": "c", "image": "i"}]})
        owners = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": name,
                "uid": bench.store.get(Pod, Key("d", name)).object.uid,
            }
            for name in ("a", "b")
        ]
        metadata = {"name": "c", "namespace": "d", "ownerReferences": owners}
        bench.store.create(ResourceClaim, {"metadata": metadata, "spec": REQUESTS})
        await bench.settle()
        assert bench.client.calls["get", "Pod"] == 0, "who is known is not asked for"
        bench.store.delete(Pod, Key("d", "a"))
        await bench.settle()
        left = bench.store.get(ResourceClaim, Key("d", "c")).object.metadata.owner_references
        assert [one.name for one in left] == ["b"]
        bench.store.delete(Pod, Key("d", "b"))
        await bench.settle()
        assert bench.names(ResourceClaim) == []

    played(scene)


def test_a_dependent_does_not_go_because_the_news_of_its_owner_is_late() -> None:
    async def scene(bench: Bench) -> None:
        bench.make(Pod, "p", spec={"containers": [{"name": "c", "image": "i"}]})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": bench.store.get(Pod, POD).object.uid}
        metadata = {"name": "c", "namespace": "d", "ownerReferences": [owner]}
        bench.store.create(ResourceClaim, {"metadata": metadata, "spec": REQUESTS})
        await bench.settle()
        assert bench.names(ResourceClaim) == ["c"]
        assert bench.client.calls["get", "Pod"] == 1

    played(scene, DeafToPods)


def test_an_object_of_a_foreign_owner_is_left_alone() -> None:
    async def scene(bench: Bench) -> None:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}
        metadata = {"name": "p", "namespace": "d", "ownerReferences": [owner]}
        bench.store.create(Pod, {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        await bench.settle()
        assert bench.names(Pod) == ["p"]

    played(scene)


def test_an_object_whose_owner_never_was_goes() -> None:
    async def scene(bench: Bench) -> None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "nobody", "uid": "u"}
        metadata = {"name": "c", "namespace": "d", "ownerReferences": [owner]}
        bench.store.create(ResourceClaim, {"metadata": metadata, "spec": REQUESTS})
        await bench.settle()
        assert bench.names(ResourceClaim) == []

    played(scene)
