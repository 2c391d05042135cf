"""The scheduler when the API does not answer, answers too late, or is changed by others meanwhile."""

import random
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import pytest

from jackfield.cluster.scheduling.binding import BindingCluster, PreBind
from jackfield.cluster.scheduling.scheduler import Scheduler, SchedulerSettings
from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Uid, Version
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, READY, RESCHEDULE
from jackfield.ports import EVERYTHING, Apply, Change, Merge, Retry, Selection
from jackfield.sim.clock import running
from unit.cluster.small_cluster import CLASS, Stage, claim, device_class, fabric_slice, node, play, pod

T = TypeVar("T", bound=Object)

Wrong = Callable[[Merge | Apply], bool]


class Moody:
    """A cluster that now and then does not do a write, or does it and does not say so."""

    def __init__(self, cluster: BindingCluster) -> None:
        self._cluster = cluster
        self.fails: Wrong = lambda _: False
        self.loses_answer: Wrong = lambda _: False
        self.takes = Seconds(0.0)

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        return self._cluster.watch(kind, selection)

    async def read(self, kind: type[T], key: Key) -> T:
        return await self._cluster.read(kind, key)

    async def create(self, new: T) -> T:
        return await self._cluster.create(new)

    async def write(self, patch: Merge | Apply) -> Object:
        await running().sleep(self.takes)
        if self.fails(patch):
            raise Retry("no answer")
        written = await self._cluster.write(patch)
        if self.loses_answer(patch):
            raise Retry("the answer was lost")
        return written

    async def delete(self, kind: type[Object], key: Key, version: Version) -> None:
        await self._cluster.delete(kind, key, version)

    async def bind(self, pod: Key, uid: Uid, node: str) -> Object:
        """A binding goes wrong as the write of a node's name would, if there were such a write."""
        patch = Merge(Pod, pod, Version(""), {"spec": {"nodeName": node}})
        await running().sleep(self.takes)
        if self.fails(patch):
            raise Retry("no answer")
        bound = await self._cluster.bind(pod, uid, node)
        if self.loses_answer(patch):
            raise Retry("the answer was lost")
        return bound


def once(wrong: Wrong) -> Wrong:
    """Return what goes wrong the first time only."""
    left = [True]

    def go_wrong(patch: Merge | Apply) -> bool:
        return wrong(patch) and left.pop() if left else False

    return go_wrong


def status_of(kind: type[Object], field: str) -> Wrong:
    def concerns(patch: Merge | Apply) -> bool:
        status = patch.body.get("status")
        return patch.kind is kind and isinstance(status, dict) and field in status

    return concerns


def binds(patch: Merge | Apply) -> bool:
    spec = patch.body.get("spec")
    return patch.kind is Pod and isinstance(spec, dict) and "nodeName" in spec


async def scene(stage: Stage, devices: int = 2) -> tuple[Scheduler, Moody]:
    await stage.put(device_class(CLASS, DRIVER), fabric_slice(devices), node("a"), node("b"))
    moody = Moody(stage.cluster.client("kube-scheduler"))
    dice = random.Random("scheduler")  # noqa: S311 - a test's chance
    scheduler = Scheduler(moody, stage.clock, dice, SchedulerSettings())
    stage.start(scheduler.run())
    return scheduler, moody


@pytest.mark.parametrize(
    "wrong", [status_of(ResourceClaim, "allocation"), status_of(Pod, "nominatedNodeName")]
)
def test_an_allocation_that_could_not_be_written_is_decided_again(wrong: Wrong) -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        moody.fails = once(wrong)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(0.5)
        assert not (await stage.claim("c")).node
        assert scheduler.metrics.pre_binds[PreBind.ERROR] == 1
        await stage.wait(1)
        assert (await stage.claim("c")).status.reserved_for
        assert scheduler.metrics.cycles == 2

    play(story)


def test_a_device_whose_allocation_failed_is_free_for_others() -> None:
    async def story(stage: Stage) -> None:
        _, moody = await scene(stage, devices=1)
        moody.fails = once(status_of(ResourceClaim, "allocation"))
        await stage.put(claim("c"), pod("p", "c"), claim("d"), pod("q", "d"))
        await stage.wait(0.5)
        assert (await stage.claim("d")).node
        await stage.wait(5)
        assert not (await stage.claim("c")).node

    play(story)


def test_an_allocation_whose_answer_was_lost_is_found_and_used() -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        moody.loses_answer = once(status_of(ResourceClaim, "allocation"))
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(0.5)
        first = await stage.claim("c")
        assert first.node
        assert scheduler.metrics.pre_binds[PreBind.ERROR] == 1
        await stage.wait(1)
        again = await stage.claim("c")
        assert again.status.allocation == first.status.allocation
        assert again.status.reserved_for
        await stage.say("c", READY)
        await stage.wait(5)
        assert await stage.node_of("p") == first.node

    play(story)


def test_a_bind_whose_answer_was_lost_stays_bound() -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        moody.loses_answer = once(binds)
        await stage.put(pod("p"))
        await stage.wait(30)
        assert await stage.node_of("p")
        assert scheduler.metrics.cycles == 1

    play(story)


def test_a_bind_that_failed_is_tried_again() -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        moody.fails = once(binds)
        await stage.put(pod("p"))
        await stage.wait(0.5)
        assert not await stage.node_of("p")
        assert await stage.message("p") == 'running Bind plugin "DefaultBinder": no answer'
        await stage.wait(1)
        assert await stage.node_of("p")
        assert scheduler.metrics.cycles == 2

    play(story)


def test_the_room_of_a_pod_that_could_not_be_bound_is_free_for_others() -> None:
    async def story(stage: Stage) -> None:
        _, moody = await scene(stage)
        moody.fails = lambda patch: binds(patch) and patch.key.name == "p"
        await stage.put(pod("p", cpu="8"), pod("q", cpu="8"), pod("r", cpu="8"))
        await stage.wait(0.5)
        assert {await stage.node_of("q"), await stage.node_of("r")} == {"a", "b"}

    play(story)


def test_a_pod_deleted_before_its_wait_began_is_not_waited_for() -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        moody.takes = Seconds(2.0)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(3)
        await stage.cluster.delete(Pod, Key("default", "p"), Version(""))
        await stage.wait(20)
        assert scheduler.metrics.pre_binds[PreBind.ERROR] == 1
        assert not (await stage.claim("c")).status.reserved_for

    play(story)


def test_a_deallocation_that_failed_is_tried_again_after_a_backoff() -> None:
    async def story(stage: Stage) -> None:
        scheduler, moody = await scene(stage)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(1)
        deallocates = status_of(ResourceClaim, "devices")
        moody.fails = once(deallocates)
        await stage.say("c", RESCHEDULE)
        await stage.wait(20)
        assert scheduler.metrics.deallocations == 1
        assert (await stage.claim("c")).status.reserved_for

    play(story)


def test_nothing_is_lost_when_a_third_of_all_writes_fail() -> None:
    async def story(stage: Stage) -> None:
        _, moody = await scene(stage, devices=8)
        dice = random.Random("faults")  # noqa: S311 - a test's chance
        moody.fails = lambda _: dice.random() < 1 / 6
        moody.loses_answer = lambda _: dice.random() < 1 / 6
        await stage.put(*(claim(f"c{index}") for index in range(8)))
        await stage.put(*(pod(f"p{index}", f"c{index}", cpu="10m") for index in range(8)))
        for _ in range(40):
            await stage.wait(5)
            for index in range(8):
                found = await stage.claim(f"c{index}")
                if found.results and not found.status.devices:
                    await stage.say(f"c{index}", READY)
        for index in range(8):
            assert await stage.node_of(f"p{index}") == (await stage.claim(f"c{index}")).node

    play(story)


def test_a_killed_scheduler_writes_nothing_more() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(device_class(CLASS, DRIVER), fabric_slice(1), node("a"))
        client = stage.cluster.client("kube-scheduler")
        dice = random.Random("scheduler")  # noqa: S311 - a test's chance
        stage.start(Scheduler(client, stage.clock, dice).run())
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(7)
        before = await stage.claim("c")
        client.kill()
        await stage.say("c", RESCHEDULE)
        version = stage.cluster.store.version
        await stage.wait(30)
        stage.tasks.pop().cancel()
        await stage.wait(30)
        assert stage.cluster.store.version == version
        assert (await stage.claim("c")).status.allocation == before.status.allocation

    play(story)
