"""What the scheduler does with pods that have room, pods that have none, and news."""

import random
from collections.abc import AsyncGenerator
from itertools import pairwise

import msgspec

from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.informer import Ear, Informer
from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import Object, ObjectMeta, OwnerReference
from jackfield.model.names import DeviceID, Key, Seconds, Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod, PodResourceClaim
from jackfield.model.policy import DRIVER, READY
from jackfield.ports import EVERYTHING, Change, Changed, Merge, Selection, Synced
from unit.cluster.small_cluster import (
    CLASS,
    LOCAL_DRIVER,
    Stage,
    choosy_claim,
    claim,
    cordoned,
    device_class,
    fabric_slice,
    local_slice,
    node,
    play,
    pod,
)


async def delete_pod(stage: Stage, name: str) -> None:
    """Delete a pod at once, whether it is bound or not."""
    await stage.cluster.delete(Pod, Key("default", name), Version(""), grace_seconds=0)


async def clear(stage: Stage, name: str) -> None:
    """Deallocate a claim, as the claim controller does."""
    body = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
    await stage.cluster.write(Merge(ResourceClaim, Key("default", name), Version(""), body, status=True))


def test_pods_are_spread_over_the_emptiest_nodes() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(*(node(f"n{index}") for index in range(4)), *(pod(f"p{index}") for index in range(8)))
        stage.scheduler()
        await stage.wait(1)
        homes = [await stage.node_of(f"p{index}") for index in range(8)]
        assert sorted(homes) == sorted([f"n{index}" for index in range(4)] * 2)

    play(story)


def test_in_a_large_cluster_each_cycle_goes_on_where_the_last_one_stopped() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(*(node(f"n{index:03}") for index in range(300)))
        stage.scheduler()
        await stage.put(pod("p"), pod("q"), pod("r"))
        await stage.wait(1)
        p, q, r = [await stage.node_of(name) for name in "pqr"]
        assert "n000" <= p < "n144" <= q < "n288"
        assert r >= "n288" or r < "n132"

    play(story)


def test_the_more_important_pod_gets_the_last_room() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(pod("low", cpu="8"), pod("high", cpu="8", priority=5), node("n"))
        stage.scheduler()
        await stage.wait(1)
        assert (await stage.node_of("low"), await stage.node_of("high")) == ("", "n")

    play(story)


def test_a_pod_without_room_is_told_why_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node("a"), node("b"), cordoned("c"), pod("p", cpu="9"))
        scheduler = stage.scheduler()
        await stage.wait(1)
        message = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu."
        assert await stage.message("p") == message
        assert (await stage.pod("p")).unschedulable
        version = (await stage.pod("p")).metadata.resource_version
        await stage.wait(700)
        assert scheduler.metrics.cycles == 3
        assert scheduler.lengths().unschedulable == 1
        assert (await stage.pod("p")).metadata.resource_version == version
        assert [one.message for one in stage.events("FailedScheduling")] == [message]

    play(story)


def test_a_pod_gets_its_chance_when_room_comes() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node("a"), pod("first", cpu="8"), pod("second", cpu="8"))
        stage.scheduler()
        await stage.wait(1)
        assert not await stage.node_of("second")
        await delete_pod(stage, "first")
        await stage.wait(0.1)
        assert await stage.node_of("second") == "a"
        await stage.put(pod("third", cpu="8"))
        await stage.wait(60)
        await stage.put(node("b"))
        await stage.wait(0.1)
        assert await stage.node_of("third") == "b"

    play(story)


def test_a_cordoned_node_takes_pods_again_when_it_is_let() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(cordoned("a"), pod("p"))
        stage.scheduler()
        await stage.wait(30)
        assert not await stage.node_of("p")
        await stage.patch_node("a", {"spec": {"unschedulable": None}})
        await stage.wait(0.1)
        assert await stage.node_of("p") == "a"

    play(story)


def test_a_change_that_no_pod_cares_about_wakes_nobody() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node("a"), pod("p", cpu="9"))
        scheduler = stage.scheduler()
        await stage.wait(30)
        await stage.patch_node("a", {"metadata": {"annotations": {"seen": "today"}}})
        await stage.wait(30)
        assert scheduler.metrics.cycles == 1

    play(story)


def test_other_schedulers_pods_are_left_alone_but_counted() -> None:
    async def story(stage: Stage) -> None:
        other = pod("other", cpu="8")
        spec = msgspec.structs.replace(other.spec, scheduler_name="mine")
        await stage.put(node("a"), msgspec.structs.replace(other, spec=spec))
        stage.scheduler()
        await stage.wait(1)
        assert not await stage.node_of("other")
        await stage.cluster.bind(other.key, Uid(""), "a")
        await stage.put(pod("p"))
        await stage.wait(1)
        assert not await stage.node_of("p")

    play(story)


# --- claims


async def pool(stage: Stage, nodes: int = 2, devices: int = 2) -> None:
    await stage.put(device_class(CLASS, DRIVER), fabric_slice(devices))
    await stage.put(*(node(f"n{index}") for index in range(nodes)))


def test_a_pod_is_not_tried_before_its_claim_exists() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage)
        scheduler = stage.scheduler()
        await stage.put(pod("p", "c"))
        await stage.wait(10)
        assert scheduler.metrics.cycles == 0
        await stage.put(claim("c"))
        await stage.wait(0.1)
        assert (await stage.claim("c")).node

    play(story)


def test_a_claim_made_from_a_template_is_awaited() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage)
        scheduler = stage.scheduler()
        plain = pod("p")
        reference = PodResourceClaim("gpu", resource_claim_template_name="t")
        spec = msgspec.structs.replace(plain.spec, resource_claims=(reference,))
        made = await stage.cluster.create(msgspec.structs.replace(plain, spec=spec))
        await stage.wait(5)
        owner = OwnerReference("v1", "Pod", "p", made.uid, controller=True)
        new = claim("p-gpu-x")
        meta = ObjectMeta(name="p-gpu-x", namespace="default", owner_references=(owner,))
        await stage.put(msgspec.structs.replace(new, metadata=meta))
        await stage.wait(5)
        assert scheduler.metrics.cycles == 0
        statuses = [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]
        await stage.cluster.write(
            Merge(Pod, made.key, Version(""), {"status": {"resourceClaimStatuses": statuses}}, status=True)
        )
        await stage.wait(0.1)
        assert (await stage.claim("p-gpu-x")).node

    play(story)


def test_a_pod_waits_for_its_device_class() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(fabric_slice(1), node("n"), claim("c"), pod("p", "c"))
        stage.scheduler()
        await stage.wait(5)
        assert (
            await stage.message("p") == "0/1 nodes are available: request r: device class gpu does not exist."
        )
        await stage.put(device_class(CLASS, DRIVER))
        await stage.wait(0.1)
        assert (await stage.claim("c")).node

    play(story)


def test_a_pod_gets_the_device_that_another_gives_back() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage, devices=1)
        scheduler = stage.scheduler()
        await stage.put(claim("a"), pod("p", "a"))
        await stage.wait(1)
        await stage.put(claim("b"), pod("q", "b"))
        await stage.wait(20)
        assert await stage.message("q") == (
            "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable"
        )
        assert scheduler.metrics.cycles == 2
        await delete_pod(stage, "p")
        await stage.wait(1)
        await clear(stage, "a")
        await stage.wait(0.1)
        assert (await stage.claim("b")).results[0].device == "d0"

    play(story)


def test_a_device_given_back_costs_one_attempt_and_not_one_for_everybody_who_waits() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage, devices=1)
        scheduler = stage.scheduler()
        names = [f"x{index:02}" for index in range(12)]
        for name in names:
            await stage.put(claim(name), pod(name, name, cpu="10m"))
        await stage.wait(60)
        for name, following in pairwise(names):
            before = scheduler.metrics.cycles
            await delete_pod(stage, name)
            await clear(stage, name)
            await stage.wait(20)
            assert (await stage.claim(following)).results
            # Beside the one who gets it only the next one tries: after the claim's event, and after the pod's.
            assert scheduler.metrics.cycles - before <= 3

    play(story)


def test_a_new_slice_wakes_who_waits_for_devices() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage, devices=0)
        stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(30)
        assert not (await stage.claim("c")).node
        await stage.put(fabric_slice(1, "shelf"))
        await stage.wait(0.1)
        assert (await stage.claim("c")).node

    play(story)


def test_a_device_built_into_a_node_decides_the_node_and_binds_at_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(device_class(CLASS, LOCAL_DRIVER), local_slice("n2", 1))
        await stage.put(*(node(f"n{index}") for index in range(4)))
        scheduler = stage.scheduler()
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(0.1)
        assert await stage.node_of("p") == "n2"
        assert scheduler.metrics.cycles == 1

    play(story)


def test_the_first_alternative_outweighs_an_emptier_node() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(device_class("local", LOCAL_DRIVER), device_class("pool", DRIVER))
        await stage.put(local_slice("n1", 1), fabric_slice(4), *(node(f"n{index}") for index in range(3)))
        stage.scheduler()
        await stage.put(pod("filler", cpu="2"))
        filler = pod("filler", cpu="2")
        await stage.wait(0.1)
        await delete_pod(stage, "filler")
        bound = msgspec.structs.replace(
            filler.spec, node_name=(await stage.cluster.read(Node, named("n1"))).name
        )
        await stage.put(msgspec.structs.replace(filler, spec=bound))
        await stage.put(choosy_claim("c", "local", "pool"), pod("p", "c"))
        await stage.wait(0.1)
        assert await stage.node_of("p") == "n1"
        assert (await stage.claim("c")).results[0].request == "r/s0"
        await stage.put(choosy_claim("d", "local", "pool"), pod("q", "d"))
        await stage.wait(0.1)
        assert (await stage.claim("d")).results[0].request == "r/s1"

    play(story)


# --- caches that lag


def devices(stage: Stage) -> list[DeviceID]:
    claims = [one.object for one in stage.cluster.store.list(ResourceClaim).items]
    return [result.id for one in claims if isinstance(one, ResourceClaim) for result in one.results]


def test_lagging_caches_never_let_a_device_serve_two_claims() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage, nodes=4, devices=30)
        dice = random.Random("lag")  # noqa: S311 - a test's chance
        stage.scheduler(lag=lambda: Seconds(dice.uniform(0.0, 8.0)))
        for index in range(40):
            await stage.put(claim(f"c{index}"), pod(f"p{index}", f"c{index}", cpu="10m"))
            await stage.wait(dice.uniform(0.0, 1.0))
            taken = devices(stage)
            assert len(taken) == len(set(taken))
        await stage.wait(60)
        taken = devices(stage)
        assert len(taken) == len(set(taken)) == 30

    play(story)


def test_nothing_is_decided_before_everything_has_been_heard_once() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(claim("b"))
        await pool(stage, devices=1)
        stage.scheduler()
        await stage.put(claim("a"), pod("p", "a"))
        await stage.wait(1)
        assert (await stage.claim("a")).node
        stage.tasks.pop().cancel()
        await stage.put(pod("q", "b"))
        # Two nodes, a class, a slice, each kind with its end, and claim b are heard at once; claim a is not.
        early = iter([Seconds(0.0)] * 8 + [Seconds(5.0)] * 2)
        successor = stage.scheduler(lag=lambda: next(early, Seconds(0.0)))
        await stage.wait(4)
        assert successor.metrics.cycles == 0
        await stage.wait(4)
        assert not (await stage.claim("b")).results

    play(story)


def test_events_are_heard_in_order_and_their_lags_do_not_add_up() -> None:
    async def story(stage: Stage) -> None:
        heard: list[tuple[str, float]] = []
        began = stage.clock.now()

        def hear(found: Node) -> None:
            heard.append((found.name, stage.clock.now() - began))

        lags = iter([Seconds(1.0), Seconds(5.0), Seconds(2.0), Seconds(4.0)])
        informer = Informer(stage.cluster, stage.clock, lambda: next(lags))
        stage.start(informer.follow(Node, Ear(hear, lambda _: None)))
        await stage.wait(0.5)
        for name in ("a", "b", "c"):
            await stage.put(node(name))
            await stage.wait(0.5)
        await stage.wait(10)
        assert heard == [("a", 5.5), ("b", 5.5), ("c", 5.5)]

    play(story)


class Retelling(EmbeddedCluster):
    """A cluster whose watch loses the thread and tells everything anew."""

    async def watch(
        self, kind: type[Object], selection: Selection = EVERYTHING
    ) -> AsyncGenerator[Change, None]:
        assert selection is EVERYTHING
        for names in (("a", "b"), ("b", "c")):
            for name in names:
                yield Changed(node(name))
            yield Synced(kind, frozenset(named(name) for name in names))


def test_what_went_while_nobody_listened_is_missed_when_all_is_told_anew() -> None:
    async def story(stage: Stage) -> None:
        heard: list[str] = []
        ear: Ear[Node] = Ear(
            put=lambda found: heard.append(f"+{found.name}"),
            drop=lambda found: heard.append(f"-{found.name}"),
            synced=lambda: heard.append("synced"),
        )
        await Informer(Retelling(stage.cluster.store), stage.clock).follow(Node, ear)
        assert heard == ["+a", "+b", "synced", "+b", "+c", "-a", "synced"]

    play(story)


def test_a_lagging_scheduler_binds_though_it_hears_late() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage)
        stage.scheduler(lag=lambda: Seconds(3.0))
        await stage.put(claim("c"), pod("p", "c"))
        await stage.wait(5)
        assert (await stage.claim("c")).node
        await stage.say("c", READY)
        await stage.wait(2.5)
        assert not await stage.node_of("p")
        await stage.wait(6)
        assert await stage.node_of("p")

    play(story)


def test_a_lagging_scheduler_never_fills_a_node_beyond_its_room() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(*(node(f"n{index}", cpu="4") for index in range(3)))
        stage.scheduler(lag=lambda: Seconds(5.0))
        await stage.put(*(pod(f"p{index}", cpu="1") for index in range(20)))
        await stage.wait(60)
        homes = [await stage.node_of(f"p{index}") for index in range(20)]
        assert sorted(homes) == sorted(["", *(f"n{index}" for index in range(3))] * 4 + [""] * 4)

    play(story)


def test_a_lagging_scheduler_tells_a_pod_that_has_changed_why_it_waits() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node("a"))
        stage.scheduler(lag=lambda: Seconds(5.0))
        await stage.put(pod("p", cpu="9"))
        await stage.wait(3)
        labels = {"metadata": {"labels": {"changed": "yes"}}}
        await stage.cluster.write(Merge(Pod, Key("default", "p"), Version(""), labels))
        await stage.wait(3)
        assert await stage.message("p") == "0/1 nodes are available: 1 Insufficient cpu."
        assert (await stage.pod("p")).metadata.labels == {"changed": "yes"}

    play(story)


def test_a_lagging_scheduler_says_nothing_of_a_pod_that_was_bound_meanwhile() -> None:
    async def story(stage: Stage) -> None:
        await stage.put(node("a"))
        stage.scheduler(lag=lambda: Seconds(5.0))
        await stage.put(pod("p", cpu="9"))
        await stage.wait(3)
        await stage.cluster.bind(Key("default", "p"), (await stage.pod("p")).uid, "a")
        bound = await stage.pod("p")
        await stage.wait(10)
        assert await stage.pod("p") == bound

    play(story)


def test_a_claim_changed_behind_a_lagging_cache_is_read_again() -> None:
    async def story(stage: Stage) -> None:
        await pool(stage)
        scheduler = stage.scheduler(lag=lambda: Seconds(5.0))
        await stage.put(claim("c"))
        await stage.wait(6)
        await stage.put(pod("p", "c"))
        await stage.wait(2)
        labels = {"metadata": {"labels": {"changed": "yes"}}}
        await stage.cluster.write(Merge(ResourceClaim, Key("default", "c"), Version(""), labels))
        await stage.wait(4)
        found = await stage.claim("c")
        assert found.node
        assert found.metadata.labels == {"changed": "yes"}
        assert scheduler.metrics.errors == 0

    play(story)
