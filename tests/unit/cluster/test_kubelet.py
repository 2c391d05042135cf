"""A bound pod is prepared, runs and ends; its claims are prepared before and unprepared in between."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TypeVar

import pytest
from msgspec.structs import replace

from jackfield.cluster.api import Client
from jackfield.cluster.nodes.kubelet import Kubelets, KubeletSettings, annotated_run_seconds
from jackfield.cluster.nodes.machines import Machines, MachineSettings
from jackfield.cluster.nodes.prepared import Checkpoint, Plugin, Preparer
from jackfield.codec.encoding import encoded
from jackfield.model.claim import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
)
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, NodeName, Seconds, Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.ports import EVERYTHING, Change, Changed, Deleted, Gone, Merge, Selection, Synced
from jackfield.sim.clock import running
from unit.cluster.small_cluster import POOL, Stage, claim, node, play, pod

T = TypeVar("T", bound=Object)
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


async def gone(stage: Stage, name: str) -> bool:
    try:
        await stage.pod(name)
    except Gone:
        return True
    return False


def test_a_pod_runs_after_its_claim_is_prepared() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        driver.takes = Seconds(5.0)
        kubelets(stage, {DRIVER: driver})
        await stage.wait(4)
        assert (await stage.pod("p")).status.phase == "Pending"
        await stage.wait(3)
        running = await stage.pod("p")
        assert running.status.phase == "Running"
        assert running.status.start_time
        assert {(one.type, one.status) for one in running.status.conditions} >= {("Ready", "True")}
        assert driver.calls == [("prepare", "c")]

    play(story)


def test_a_pod_without_claims_just_runs() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node(N), pod("p"))
        kubelets(stage, {})
        await bind(stage, "p")
        await stage.wait(2)
        assert (await stage.pod("p")).status.phase == "Running"

    play(story)


def test_a_pod_that_ends_by_itself_is_unprepared_before_its_end_is_told() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="30"))
        kubelets(stage, {DRIVER: driver})
        await stage.wait(30)
        assert (await stage.pod("p")).status.phase == "Running"
        driver.takes = Seconds(10.0)
        await stage.wait(5)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        assert (await stage.pod("p")).status.phase == "Running"
        await stage.wait(10)
        assert (await stage.pod("p")).status.phase == "Succeeded"

    play(story)


def test_a_deleted_pod_gets_its_grace_then_is_unprepared_then_removed() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        kubelets(stage, {DRIVER: driver}, KubeletSettings(stop=lambda _: Seconds(100.0)))
        await stage.wait(5)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""))
        await stage.wait(29)
        assert driver.calls == [("prepare", "c")]
        assert (await stage.pod("p")).deleting
        await stage.wait(2)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        assert await gone(stage, "p")

    play(story)


def test_a_pod_deleted_before_it_started_is_removed_at_once() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        driver.answers = ["no device yet"] * 100
        kubelets(stage, {DRIVER: driver})
        await stage.wait(20)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""))
        driver.answers = []
        await stage.wait(0.1)
        assert driver.calls[-1] == ("unprepare", "c")
        assert await gone(stage, "p")

    play(story)


def test_a_pod_force_deleted_is_unprepared_all_the_same() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        kubelets(stage, {DRIVER: driver})
        await stage.wait(5)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""), grace_seconds=0)
        await stage.wait(5)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_refusal_to_prepare_is_told_and_tried_again_ever_more_seldom() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        driver.answers = ["the device is not attached"] * 3
        kubelets(stage, {DRIVER: driver})
        await stage.wait(6.9)
        assert len(driver.calls) == 3
        await stage.wait(2)
        assert len(driver.calls) == 4
        assert (await stage.pod("p")).status.phase == "Running"
        told = stage.events("FailedPrepareDynamicResources")
        assert len(told) == 3
        assert told[0].message.endswith("the device is not attached")

    play(story)


def test_a_refusal_to_unprepare_keeps_the_pod() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="5"))
        kubelets(stage, {DRIVER: driver})
        await stage.wait(4)
        driver.answers = ["somebody still has the device open"] * 3
        await stage.wait(5)
        assert (await stage.pod("p")).status.phase == "Running"
        await stage.wait(6)
        assert (await stage.pod("p")).status.phase == "Succeeded"

    play(story)


def test_a_claim_of_a_driver_that_is_not_there_is_told_as_such() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage, pod("p", "c"))
        kubelets(stage, {})
        await stage.wait(1.5)
        (told, *_) = stage.events("FailedPrepareDynamicResources")
        assert told.message == (
            "Failed to prepare dynamic resources: DRA driver fabric.jackfield.dev is not registered"
        )

    play(story)


def test_a_pod_that_the_claim_is_not_reserved_for_does_not_run() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node(N), claim("c"), pod("p", "c"), pod("q", "c"))
        await allocate(stage, "c", "q")
        await bind(stage, "p")
        driver = Driver(stage)
        kubelets(stage, {DRIVER: driver})
        await stage.wait(5)
        assert driver.calls == []
        assert (
            "is not allowed to use resource claim c"
            in stage.events("FailedPrepareDynamicResources")[0].message
        )

    play(story)


def test_a_shared_claim_is_prepared_with_the_first_pod_and_unprepared_with_the_last() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="10"), pod("q", "c", run_seconds="20"))
        driver.takes = Seconds(1.0)
        kubelets(stage, {DRIVER: driver})
        await stage.wait(17)
        assert (await stage.pod("p")).status.phase == "Succeeded"
        assert driver.calls == [("prepare", "c")]
        await stage.wait(10)
        assert (await stage.pod("q")).status.phase == "Succeeded"
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_pod_waits_while_its_claim_is_being_unprepared() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="10"))
        kubelets(stage, {DRIVER: driver})
        await stage.wait(10)
        driver.takes = Seconds(5.0)
        await stage.wait(2)
        await stage.put(pod("q", "c"))
        await allocate(stage, "c", "p", "q")
        await bind(stage, "q")
        await stage.wait(3)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        assert "still being unprepared" in stage.events("FailedPrepareDynamicResources")[0].message
        await stage.wait(20)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c"), ("prepare", "c")]
        assert (await stage.pod("q")).status.phase == "Running"

    play(story)


def test_a_claim_of_the_same_name_is_not_taken_for_the_old_one() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        kubelets(stage, {DRIVER: driver})
        await stage.wait(5)
        await stage.cluster.delete(ResourceClaim, Key("default", "c"), Version(""))
        await stage.put(claim("c"), pod("q", "c"))
        await allocate(stage, "c", "q")
        await bind(stage, "q")
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]
        assert "different UID" in stage.events("FailedPrepareDynamicResources")[0].message
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""))
        await stage.wait(20)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c"), ("prepare", "c")]

    play(story)


class Rewinding(Client):
    """A handle whose watch of pods tells of a backup that was restored, and of what came of it."""

    async def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        if kind is not Pod:
            async for change in super().watch(kind, selection):
                yield change
            return
        bound = await self.read(Pod, Key("default", "p"))
        unbound = replace(bound, spec=replace(bound.spec, node_name=NodeName("")))
        yield Changed(bound)
        yield Synced(Pod, frozenset({bound.key}))
        await running().sleep(Seconds(3.0))
        yield Changed(unbound)
        yield Changed(bound)
        await asyncio.Event().wait()


def test_a_pod_bound_no_more_is_stopped_and_runs_anew_when_it_is_bound_again() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        client = stage.cluster.client("kubelet", Rewinding)
        stage.start(Kubelets(client, stage.clock, lambda _: {DRIVER: driver}).run())
        await stage.wait(2.5)
        driver.takes = Seconds(5.0)
        await stage.wait(5)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")], "it must have stopped first"
        await stage.wait(20)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c"), ("prepare", "c")]

    play(story)


def test_a_restarted_kubelet_neither_prepares_again_nor_starts_the_run_anew() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="60"))
        checkpoint, settings = Checkpoint(), KubeletSettings(start=lambda _: Seconds(10.0))
        kubelets(stage, {DRIVER: driver}, settings, checkpoint)
        await stage.wait(65)
        stage.tasks.pop().cancel()
        await stage.wait(1)
        kubelets(stage, {DRIVER: driver}, settings, checkpoint)
        await stage.wait(3)
        assert driver.calls == [("prepare", "c")]
        assert (await stage.pod("p")).status.phase == "Running"
        await stage.wait(2)
        assert (await stage.pod("p")).status.phase == "Succeeded"

    play(story)


class Late(Client):
    """A handle whose watch of pods tells in one breath that a pod is there, and that it is gone."""

    async def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        if kind is not Pod:
            async for change in super().watch(kind, selection):
                yield change
            return
        await running().sleep(Seconds(1.0))
        found = await self.read(Pod, Key("default", "p"))
        yield Changed(found)
        yield Synced(Pod, frozenset({found.key}))
        yield Deleted(found)
        await asyncio.Event().wait()


def test_a_pod_that_is_gone_before_a_restarted_kubelet_has_begun_with_it_is_unprepared() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = Checkpoint()
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        stage.tasks.pop().cancel()
        client = stage.cluster.client("kubelet", Late)
        stage.start(Kubelets(client, stage.clock, lambda _: {DRIVER: driver}, checkpoint=checkpoint).run())
        await stage.wait(30)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_restarted_kubelet_lets_a_pod_run_on_whose_claim_was_taken_back() -> None:
    """Its containers run, so that nothing is prepared; it may not use the claim any more, and nobody asks."""

    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="60"))
        checkpoint = Checkpoint()
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(30)
        stage.tasks.pop().cancel()
        nothing = {"status": {"allocation": None, "reservedFor": None}}
        await stage.cluster.write(
            Merge(ResourceClaim, Key("default", "c"), Version(""), nothing, status=True)
        )
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(40)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        assert (await stage.pod("p")).status.phase == "Succeeded"

    play(story)


def test_a_restarted_kubelet_leaves_the_claims_of_a_node_alone_that_is_not_there() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = Checkpoint()
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        stage.tasks.pop().cancel()
        await stage.wait(1)
        await stage.cluster.delete(Node, named(N), Version(""))
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]
        await stage.put(node(N))
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]

    play(story)


def test_a_claim_is_unprepared_once_though_two_ask() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        driver.takes = Seconds(1.0)
        found = await stage.pod("p")
        preparer = Preparer(stage.cluster, lambda _: {DRIVER: driver}, Checkpoint())
        assert not await preparer.prepare(N, found)
        twice = await asyncio.gather(preparer.unprepare(N, found.uid), preparer.unprepare(N, found.uid))
        assert not any(twice)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_restarted_kubelet_unprepares_what_pods_left_that_went_meanwhile() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = Checkpoint()
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        stage.tasks.pop().cancel()
        await stage.wait(1)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""), grace_seconds=0)
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(1)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_lost_machine_stands_still_until_it_comes_back() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="10"))
        machines = Machines(stage.cluster.client("machines"), stage.clock, MachineSettings(heartbeat=NEVER))
        stage.start(machines.run())
        kubelets(stage, {DRIVER: driver}, KubeletSettings(up=machines.up))
        await stage.wait(5)
        await machines.lose(N)
        await stage.wait(60)
        assert driver.calls == [("prepare", "c")]
        assert not (await stage.cluster.read(Node, named(N))).ready
        await machines.recover(N)
        await stage.wait(1)
        assert (await stage.pod("p")).status.phase == "Succeeded"
        assert (await stage.cluster.read(Node, named(N))).ready

    play(story)


def test_a_machine_given_back_takes_its_pods_and_preparations_with_it() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = Checkpoint()
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        await stage.cluster.delete(Node, named(N), Version(""))
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]
        assert not checkpoint.users()
        assert (await stage.pod("p")).status.phase == "Running"

    play(story)


def test_a_pod_that_went_before_its_node_came_is_not_started() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(pod("p"), pod("q"))
        for name in ("p", "q"):
            await bind(stage, name)
        kubelets(stage, {})
        await stage.wait(1)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""), grace_seconds=0)
        await stage.put(node(N), pod("p"))
        await stage.wait(5)
        assert (await stage.pod("q")).status.phase == "Running"
        assert (await stage.pod("p")).status.phase == "Pending"

    play(story)


@pytest.mark.parametrize(("text", "expected"), [("", NEVER), ("90", 90.0), ("1.5", 1.5), ("soon", NEVER)])
def test_a_pod_says_in_an_annotation_how_long_it_runs(text: str, expected: float) -> None:
    assert annotated_run_seconds(pod("p", run_seconds=text)) == Seconds(expected)
