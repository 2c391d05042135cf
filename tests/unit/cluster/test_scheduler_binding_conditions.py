"""KEP-5007 as kube-scheduler does it: allocate, wait for the conditions, bind; or go round again."""

import pytest

from jackfield.cluster.scheduling.binding import DELETE_PROTECTION, BindingTimes, PreBind
from jackfield.cluster.scheduling.dynamic_resources import NOT_AVAILABLE
from jackfield.cluster.scheduling.scheduler import SchedulerSettings
from jackfield.model.names import Seconds, Version, named
from jackfield.model.node import Node
from jackfield.model.policy import DRIVER, FAILED, READY, RESCHEDULE
from unit.cluster.small_cluster import (
    CLASS,
    Stage,
    claim,
    device_class,
    fabric_slice,
    node,
    play,
    pod,
)

SHORT = SchedulerSettings(binding=BindingTimes(timeout=Seconds(60.0)))


async def scene(stage: Stage, nodes: int = 2, devices: int = 2) -> None:
    await stage.put(device_class(CLASS, DRIVER), fabric_slice(devices))
    await stage.put(*(node(f"n{index}") for index in range(nodes)))


def test_a_pod_is_bound_in_one_cycle_after_its_device_is_ready() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(1)
        found = await stage.claim("c")
        assert found.status.allocation is not None
        assert found.node in {"n0", "n1"}
        assert DELETE_PROTECTION in found.metadata.finalizers
        assert found.status.allocation.allocation_timestamp
        assert [one.name for one in found.status.reserved_for] == ["p"]
        waiting = await stage.pod("p")
        assert waiting.status.nominated_node_name == found.node
        assert not waiting.spec.node_name
        assert len(stage.events("BindingConditionsPending")) == 1

        await stage.wait(12)
        assert not await stage.node_of("p")
        await stage.say("c", READY)
        await stage.wait(5)
        bound = await stage.pod("p")
        assert bound.spec.node_name == found.node
        assert [(one.type, one.status) for one in bound.status.conditions] == [("PodScheduled", "True")]
        assert not bound.status.nominated_node_name
        assert scheduler.metrics.cycles == 1
        assert scheduler.metrics.binds == 1
        assert scheduler.metrics.pre_binds[PreBind.SUCCESS] == 1

    play(story)


@pytest.mark.parametrize("condition", [RESCHEDULE, FAILED])
def test_a_failure_condition_costs_two_more_cycles_and_the_claim_is_allocated_anew(condition: str) -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(1)
        first = await stage.claim("c")
        await stage.say("c", condition)
        await stage.wait(4.5)
        unreserved = await stage.claim("c")
        assert unreserved.status.allocation == first.status.allocation
        assert not unreserved.status.reserved_for
        assert scheduler.metrics.cycles == 1
        assert scheduler.metrics.pre_binds[PreBind.FAILURE] == 1

        await stage.wait(2)
        second = await stage.claim("c")
        assert second.status.allocation is not None
        assert not second.status.devices
        assert [one.name for one in second.status.reserved_for] == ["p"]
        assert scheduler.metrics.cycles == 3
        assert scheduler.metrics.deallocations == 1
        told = [one.message for one in stage.events("FailedScheduling")]
        assert told == [
            'running PreBind plugin "DynamicResources": claim c binding failed: reason=Test, message=""',
            f"0/2 nodes are available: 2 {NOT_AVAILABLE}. deallocation of ResourceClaim completed",
        ]

        await stage.say("c", READY)
        await stage.wait(5)
        assert await stage.node_of("p") == second.node
        assert scheduler.metrics.cycles == 3

    play(story)


def test_a_device_that_never_gets_ready_is_given_up_after_the_time_out() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler(SHORT)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(59)
        assert scheduler.metrics.pre_binds[PreBind.TIMEOUT] == 0
        await stage.wait(6)
        assert scheduler.metrics.pre_binds[PreBind.TIMEOUT] == 1
        assert scheduler.metrics.deallocations == 1
        assert scheduler.metrics.cycles == 3
        again = await stage.claim("c")
        assert again.status.reserved_for

    play(story)


def test_a_restarted_scheduler_waits_on_for_the_same_device_no_longer_than_the_first_would_have() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        stage.scheduler(SHORT)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(40)
        first = await stage.claim("c")
        stage.tasks.pop().cancel()
        await stage.wait(1)
        kept = await stage.claim("c")
        assert kept == first

        successor = stage.scheduler(SHORT)
        await stage.wait(15)
        assert (await stage.claim("c")).status == first.status
        assert successor.metrics.cycles == 1
        await stage.wait(10)
        assert successor.metrics.pre_binds[PreBind.TIMEOUT] == 1

    play(story)


def test_a_restarted_scheduler_binds_when_the_device_got_ready_meanwhile() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(7)
        stage.tasks.pop().cancel()
        await stage.say("c", READY)
        await stage.wait(1)
        successor = stage.scheduler()
        await stage.wait(0.1)
        assert await stage.node_of("p") == (await stage.claim("c")).node
        assert successor.metrics.cycles == 1

    play(story)


def test_a_pod_deleted_while_it_waits_leaves_its_claim_allocated_and_unreserved() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler()
        await stage.put(claim("c"), pod("p", "c", cpu="8"), pod("q", cpu="8"), pod("r", cpu="8"))
        await stage.wait(1)
        assert (await stage.claim("c")).status.reserved_for
        await stage.cluster.delete(type(pod("p")), pod("p").key, Version(""))
        await stage.wait(0.5)
        left = await stage.claim("c")
        assert left.status.allocation is not None
        assert not left.status.reserved_for
        assert scheduler.metrics.pre_binds[PreBind.ERROR] == 1
        # The room it was assumed to take is free again.
        assert {await stage.node_of("q"), await stage.node_of("r")} == {"n0", "n1"}

    play(story)


def test_a_pod_with_two_claims_waits_for_both() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        stage.scheduler()
        await stage.put(claim("a"), claim("b"), pod("p", "a", "b"))
        await stage.wait(1)
        assert (await stage.claim("a")).node == (await stage.claim("b")).node
        assert (await stage.claim("a")).results[0].device != (await stage.claim("b")).results[0].device
        await stage.say("a", READY)
        await stage.wait(20)
        assert not await stage.node_of("p")
        await stage.say("b", READY)
        await stage.wait(5)
        assert await stage.node_of("p")

    play(story)


def test_claims_of_one_pod_are_given_up_one_at_a_time() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler()
        await stage.put(claim("a"), claim("b"), pod("p", "a", "b"))
        await stage.wait(1)
        first = await stage.claim("b")
        await stage.say("b", READY)
        await stage.say("a", RESCHEDULE)
        await stage.wait(7)
        again = await stage.claim("a")
        assert (await stage.claim("b")).status.allocation == first.status.allocation
        assert again.node == first.node
        assert scheduler.metrics.deallocations == 1
        assert scheduler.metrics.cycles == 3

    play(story)


def test_pods_that_share_a_claim_are_bound_to_the_same_node_with_one_allocation() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage, nodes=5)
        stage.scheduler()
        await stage.put(claim("c"), *(pod(f"p{index}", "c") for index in range(3)))
        await stage.wait(1)
        shared = await stage.claim("c")
        assert [one.name for one in shared.status.reserved_for] == ["p0", "p1", "p2"]
        await stage.say("c", READY)
        await stage.wait(5)
        assert {await stage.node_of(f"p{index}") for index in range(3)} == {shared.node}

    play(story)


def test_a_shared_claim_is_not_given_up_while_another_pod_is_counted_on_it() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        scheduler = stage.scheduler(SHORT)
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(1)
        await stage.say("c", READY)
        await stage.wait(5)
        home = await stage.node_of("p")
        assert home
        await stage.cluster.delete(Node, named(home), Version(""))
        await stage.put(pod("q", "c"))
        await stage.wait(20)
        assert (await stage.claim("c")).status.allocation is not None
        assert scheduler.metrics.deallocations == 0
        assert (
            await stage.message("q") == f"0/1 nodes are available: 1 {NOT_AVAILABLE}. still not schedulable"
        )

    play(story)


def test_a_ready_claim_whose_node_is_gone_is_given_up_for_another_node() -> None:
    async def story(stage: Stage) -> None:
        await scene(stage)
        stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(1)
        home = (await stage.claim("c")).node
        await stage.cluster.delete(type(pod("p")), pod("p").key, Version(""))
        await stage.say("c", READY)
        await stage.cluster.delete(Node, named(home), Version(""))
        await stage.put(pod("q", "c"))
        await stage.wait(1)
        moved = await stage.claim("c")
        assert moved.node not in {"", home}
        assert [one.name for one in moved.status.reserved_for] == ["q"]

    play(story)
