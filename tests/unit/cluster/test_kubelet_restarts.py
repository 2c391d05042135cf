"""A kubelet that is started anew, or is told of a backup that was restored: what it finds, and what it left."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeVar

import pytest
from msgspec.structs import replace

from jackfield.cluster.api import Client
from jackfield.cluster.nodes.kubelet import Kubelets, KubeletSettings
from jackfield.cluster.nodes.prepared import Checkpoint
from jackfield.model.claim import (
    ResourceClaim,
)
from jackfield.model.meta import Object
from jackfield.model.names import Key, NodeName, Seconds, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.ports import EVERYTHING, Change, Changed, Deleted, Merge, Selection, Synced
from jackfield.sim.clock import running
from unit.cluster.kubelets import Driver, N, kubelets, scene
from unit.cluster.small_cluster import Stage, node, play, pod

T = TypeVar("T", bound=Object)


class Apart(Client):
    """A handle that tells of pods in a way of its own."""

    async def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        found = await self.read(Pod, Key("default", "p"))
        async for change in self.told(found) if kind is Pod else super().watch(kind, selection):
            yield change

    async def told(self, pod: Pod) -> AsyncGenerator[Change, None]:
        yield Changed(pod)
        yield Synced(Pod, frozenset({pod.key}))


class Rewinding(Apart):
    """It tells of a backup that was restored, and of what came of it."""

    async def told(self, pod: Pod) -> AsyncGenerator[Change, None]:
        async for change in super().told(pod):
            yield change
        await running().sleep(Seconds(3.0))
        yield Changed(replace(pod, spec=replace(pod.spec, node_name=NodeName(""))))
        yield Changed(pod)
        await asyncio.Event().wait()


class Moving(Apart):
    """It tells of a backup that was restored, and of a pod that is bound to another node then."""

    async def told(self, pod: Pod) -> AsyncGenerator[Change, None]:
        async for change in super().told(pod):
            yield change
        for name, seconds in (("", 3.0), ("m", 10.0)):
            await running().sleep(Seconds(seconds))
            yield Changed(replace(pod, spec=replace(pod.spec, node_name=NodeName(name))))
        await asyncio.Event().wait()


class Behind(Apart):
    """It tells of a pod once more as it was before it ended."""

    async def told(self, pod: Pod) -> AsyncGenerator[Change, None]:
        async for change in super().told(pod):
            yield change
        await running().sleep(Seconds(10.0))
        yield Changed(pod)
        await asyncio.Event().wait()


class Late(Apart):
    """It tells in one breath that a pod is there, and that it is gone."""

    async def told(self, pod: Pod) -> AsyncGenerator[Change, None]:
        await running().sleep(Seconds(1.0))
        async for change in super().told(pod):
            yield change
        yield Deleted(pod)
        await asyncio.Event().wait()


async def killed_after(seconds: float, stage: Stage, driver: Driver) -> Checkpoint:
    """Let a kubelet live for so long; return what it left on the disk."""
    checkpoint = Checkpoint()
    kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
    await stage.wait(seconds)
    stage.tasks.pop().cancel()
    return checkpoint


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


def test_a_pod_bound_to_another_node_waits_for_no_end_on_one_that_is_gone() -> None:
    async def story(stage: Stage) -> None:
        driver, there = await scene(stage, pod("p", "c")), Driver(stage)
        await stage.put(node("m"))
        client = stage.cluster.client("kubelet", Moving)
        plugins = {N: driver, NodeName("m"): there}
        stage.start(Kubelets(client, stage.clock, lambda one: {DRIVER: plugins[one]}).run())
        await stage.wait(2.5)
        driver.takes = Seconds(1e6)
        await stage.wait(2.5)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]
        await stage.cluster.delete(Node, named(N), Version(""))
        await stage.wait(10)
        assert there.calls == [("prepare", "c")]

    play(story)


@pytest.mark.parametrize(
    ("phase", "calls"),
    [
        ("Succeeded", ["prepare", "unprepare"]),
        ("Pending", ["prepare", "unprepare", "prepare", "unprepare"]),
    ],
    ids=["which has ended", "which a restored backup lets run again"],
)
def test_a_pod_whose_end_was_told_runs_again_only_if_it_is_to(phase: str, calls: list[str]) -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="2"))
        client = stage.cluster.client("kubelet", Behind)
        stage.start(Kubelets(client, stage.clock, lambda _: {DRIVER: driver}).run())
        await stage.wait(8)
        assert (await stage.pod("p")).status.phase == "Succeeded"
        assert [what for what, _ in driver.calls] == ["prepare", "unprepare"]
        body = {"status": {"phase": phase}}
        await stage.cluster.write(Merge(Pod, Key("default", "p"), Version(""), body, status=True))
        await stage.wait(20)
        assert [what for what, _ in driver.calls] == calls
        assert (await stage.pod("p")).status.phase == "Succeeded"

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


def test_a_pod_that_is_gone_before_a_restarted_kubelet_has_begun_with_it_is_unprepared() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = await killed_after(5, stage, driver)
        client = stage.cluster.client("kubelet", Late)
        stage.start(Kubelets(client, stage.clock, lambda _: {DRIVER: driver}, checkpoint=checkpoint).run())
        await stage.wait(30)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)


def test_a_restarted_kubelet_lets_a_pod_run_on_whose_claim_was_taken_back() -> None:
    """Its containers run, so that nothing is prepared; it may not use the claim any more, and nobody asks."""

    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c", run_seconds="60"))
        checkpoint = await killed_after(30, stage, driver)
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
        checkpoint = await killed_after(5, stage, driver)
        await stage.wait(1)
        await stage.cluster.delete(Node, named(N), Version(""))
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]
        await stage.put(node(N))
        await stage.wait(5)
        assert driver.calls == [("prepare", "c")]

    play(story)


def test_a_restarted_kubelet_unprepares_what_pods_left_that_went_meanwhile() -> None:
    async def story(stage: Stage) -> None:
        driver = await scene(stage, pod("p", "c"))
        checkpoint = await killed_after(5, stage, driver)
        await stage.wait(1)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""), grace_seconds=0)
        kubelets(stage, {DRIVER: driver}, checkpoint=checkpoint)
        await stage.wait(1)
        assert driver.calls == [("prepare", "c"), ("unprepare", "c")]

    play(story)
