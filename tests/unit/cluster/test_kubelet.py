"""A bound pod is prepared, runs and ends; its claims are prepared before and unprepared in between."""

import asyncio
from typing import TypeVar

import pytest

from jackfield.cluster.nodes.kubelet import KubeletSettings, annotated_run_seconds
from jackfield.cluster.nodes.machines import Machines, MachineSettings
from jackfield.cluster.nodes.prepared import Checkpoint, Preparer
from jackfield.model.claim import (
    ResourceClaim,
)
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, Seconds, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.ports import Gone
from unit.cluster.kubelets import Driver, N, allocate, bind, kubelets, scene
from unit.cluster.small_cluster import Stage, claim, node, play, pod

T = TypeVar("T", bound=Object)


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
