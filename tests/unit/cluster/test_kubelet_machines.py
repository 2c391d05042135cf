"""Machines are ordered by creating a Node, come up after a while, and show that they live."""

import pytest

from jackfield.cluster.api import Client
from jackfield.cluster.nodes.machines import Machines, MachineSettings
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, NodeName, Seconds, Version, named, seconds
from jackfield.model.node import HEARTBEATS, Node
from jackfield.ports import Gone, Retry
from unit.cluster.small_cluster import Stage, node, play, pod

A, B = NodeName("a"), NodeName("b")


def machines(stage: Stage, settings: MachineSettings = MachineSettings()) -> Machines:
    made = Machines(stage.cluster.client("machines"), stage.clock, settings)
    stage.start(made.run())
    return made


async def ready(stage: Stage, name: NodeName) -> bool:
    return (await stage.cluster.read(Node, named(name))).ready


async def silent_for(stage: Stage, name: NodeName) -> float:
    lease = await stage.cluster.read(Lease, Key(HEARTBEATS, name))
    return stage.clock.now() - seconds(lease.spec.renew_time)


def test_a_node_without_a_ready_condition_boots_and_then_takes_pods() -> None:
    async def story(stage: Stage) -> None:
        machines(stage, MachineSettings(boot=lambda _: Seconds(90.0)))
        stage.scheduler()
        await stage.put(node(A, ready=False), pod("p"))
        await stage.wait(89)
        assert not await ready(stage, A)
        assert await stage.message("p") == "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
        await stage.wait(2)
        assert await ready(stage, A)
        assert await stage.node_of("p") == A

    play(story)


def test_a_machine_may_never_come() -> None:
    async def story(stage: Stage) -> None:
        boots = {A: NEVER, B: Seconds(1.0)}
        machines(stage, MachineSettings(boot=lambda name: boots[name]))
        await stage.put(node(A, ready=False), node(B, ready=False))
        await stage.wait(10_000)
        assert (await ready(stage, A), await ready(stage, B)) == (False, True)

    play(story)


def test_a_machine_given_back_while_it_boots_is_forgotten() -> None:
    async def story(stage: Stage) -> None:
        park = machines(stage)
        await park.add(node(A, ready=False))
        await stage.wait(30)
        await park.remove(A)
        await park.add(node(A, ready=False))
        await stage.wait(40)
        assert not await ready(stage, A)
        await stage.wait(30)
        assert await ready(stage, A)

    play(story)


class Breaking(Client):
    """A handle whose line breaks when a deletion has taken effect."""

    breaks = 2

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        self.breaks -= 1
        await super().delete(kind, key, version, grace_seconds=grace_seconds)
        if self.breaks:
            raise Retry("the connection broke")


def test_a_machine_is_given_back_though_the_line_breaks() -> None:
    async def story(stage: Stage) -> None:
        park = Machines(stage.cluster.client("machines", Breaking), stage.clock)
        await stage.put(node(A))
        await park.remove(A)
        with pytest.raises(Gone):
            await stage.cluster.read(Node, named(A))

    play(story)


def test_a_plugin_renews_its_lease_while_it_lives() -> None:
    async def story(stage: Stage) -> None:
        park = machines(stage)
        await stage.put(node(A), node(B))
        await stage.wait(65)
        assert await silent_for(stage, A) <= 10
        park.silence(A)
        await stage.wait(60)
        assert await silent_for(stage, A) >= 60
        assert await silent_for(stage, B) <= 10
        await park.restore(A)
        assert await silent_for(stage, A) == 0

    play(story)


def test_a_lost_machine_falls_silent_and_a_machine_given_back_leaves_no_lease() -> None:
    async def story(stage: Stage) -> None:
        park = machines(stage)
        await stage.put(node(A), node(B))
        await stage.wait(1)
        await park.lose(A)
        await park.remove(B)
        await stage.wait(60)
        assert await silent_for(stage, A) >= 60
        assert not await ready(stage, A)
        try:
            await silent_for(stage, B)
        except Gone:
            pass
        else:
            raise AssertionError("the lease of a machine that is gone is still there")
        await park.recover(A)
        assert await silent_for(stage, A) == 0
        assert await ready(stage, A)

    play(story)


def test_heartbeats_can_be_switched_off() -> None:
    async def story(stage: Stage) -> None:
        machines(stage, MachineSettings(heartbeat=NEVER))
        await stage.put(node(A))
        await stage.wait(1)
        before = stage.cluster.store.version
        await stage.wait(1000)
        assert stage.cluster.store.version == before
        assert await silent_for(stage, A) >= 1000

    play(story)


def test_a_cordoned_node_takes_no_pods_until_it_is_let() -> None:
    async def story(stage: Stage) -> None:
        park = machines(stage)
        stage.scheduler()
        await stage.put(node(A))
        await park.cordon(A)
        await stage.put(pod("p"))
        await stage.wait(20)
        assert not await stage.node_of("p")
        await park.cordon(A, unschedulable=False)
        await stage.wait(1)
        assert await stage.node_of("p") == A

    play(story)
