"""Several replicas: each decides for the fabrics it leads, and whoever comes to lead looks at everything."""

import asyncio

import pytest
from msgspec.structs import replace

from jackfield.codec.encoding import encoded
from jackfield.controllers import app
from jackfield.controllers.runner import Controller, Runner
from jackfield.core import lead
from jackfield.model.claim import ResourceClaim
from jackfield.model.event import Event
from jackfield.model.gates import Gates
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NO_TIME, FabricName, Key, NodeName, Seconds, Version
from jackfield.model.node import Node
from jackfield.model.plan import Plan, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, ObjectChanged, View
from jackfield.ports import EVERYTHING, Merge, World
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard, play
from unit.controllers.leading import Some

OTHER = FabricName("rack-b")


# --- deciding


class Nodes:
    """Decides nothing about nodes, and remembers which it was asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def decide(self, view: View, key: NodeName, policy: Policy, now: Seconds) -> Plan:
        del view, policy, now
        self.asked.append(key)
        return Plan(waiting=(Waiting(f"node/{key}", "Test", "nothing"),))

    def wakes(self, view: View, policy: Policy, delta: Delta) -> tuple[NodeName, ...]:
        del view, policy
        match delta:
            case ObjectChanged(new=Node() as node):
                return (NodeName(node.metadata.name),)
            case _:
                return ()


def replica(bench: Bench, nodes: Nodes, leader: Some, heard: Heard) -> Runner:
    controller = Controller("test", nodes.decide, nodes.wakes, lead.of_node)
    return Runner(World(bench.client, bench.clock), bench.store, (controller,), heard, leader)


async def two_fabrics(bench: Bench) -> None:
    """Let `n1` be a machine of one fabric, `n2` of the other, and `n3` of none."""
    bench.store.see(b.inventory())
    bench.store.see(b.inventory(OTHER, machines=("n2",)))
    for name in ("n1", "n2", "n3"):
        await bench.cluster.create(Node(metadata=ObjectMeta(name=name)))


@pytest.mark.parametrize(
    ("leads", "asked"),
    [
        ((b.FABRIC,), ["n1"]),
        ((OTHER,), ["n2"]),
        ((lead.NO_FABRIC,), ["n3"]),
        ((b.FABRIC, OTHER, lead.NO_FABRIC), ["n1", "n2", "n3"]),
        ((), []),
    ],
)
def test_only_keys_of_fabrics_that_we_lead_are_decided(
    leads: tuple[FabricName, ...], asked: list[str]
) -> None:
    async def scene(bench: Bench) -> None:
        await two_fabrics(bench)
        nodes, heard = Nodes(), Heard()
        runner = replica(bench, nodes, Some(*leads), heard)
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert sorted(nodes.asked) == asked
        assert runner.rounds == len(asked)
        assert sorted(one.object for _, waiting in heard.waiting for one in waiting) == [
            f"node/{name}" for name in asked
        ]

    play(scene)


def test_what_another_replica_led_is_decided_as_soon_as_we_lead_it() -> None:
    async def scene(bench: Bench) -> None:
        await two_fabrics(bench)
        nodes, leader = Nodes(), Some(b.FABRIC)
        runner = replica(bench, nodes, leader, Heard())
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.wait(1)
        assert nodes.asked == ["n1"]
        leader.fabrics = (OTHER, lead.NO_FABRIC)
        nodes.asked.clear()
        runner.look_again()
        await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert sorted(nodes.asked) == ["n2", "n3"]

    play(scene)


def test_what_another_replica_leads_is_not_even_queued_but_what_nobody_knows_is() -> None:
    """What is heard next may show whose it is: a machine that comes to its fabric before the key's turn is decided."""

    async def scene(bench: Bench) -> None:
        await two_fabrics(bench)
        nodes = Nodes()
        runner = replica(bench, nodes, Some(b.FABRIC), Heard())
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.wait(1)
        nodes.asked.clear()
        depths = []
        for name in ("n1", "n2", "n3"):
            runner.hear((ObjectChanged(None, bench.store.node(NodeName(name))),))
            depths.append(runner.backlog)
        bench.store.see(b.inventory(machines=("n1", "n3")))
        await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert depths == [1, 1, 2]
        assert nodes.asked == ["n1", "n3"]

    play(scene)


# --- the gatekeeper


async def given(bench: Bench, name: str) -> None:
    """Let a scheduler without the gate allocate a claim: its allocation bears no time."""
    allocation = b.claim(name).status.allocation
    assert allocation is not None
    body = {"status": {"allocation": encoded(replace(allocation, allocation_timestamp=NO_TIME))}}
    await bench.cluster.write(Merge(ResourceClaim, Key("default", name), Version(""), body, status=True))


def test_a_scheduler_that_does_not_wait_is_told_of_on_the_claim_it_allocated() -> None:
    """Not on those that it was seen to have allocated before: the gate may have been switched on since."""

    async def scene(bench: Bench) -> None:
        for name in ("before", "now"):
            meta = ObjectMeta(name=name, namespace="default")
            await bench.cluster.create(ResourceClaim(metadata=meta, spec=b.claim(name).spec))
        await given(bench, "before")
        heard, keeper = Heard(), app.gatekeeper(Gates("v1.36.4"))
        runner = Runner(
            World(bench.client, bench.clock), bench.store, (keeper,), heard, Some(b.FABRIC, lead.NO_FABRIC)
        )
        task = asyncio.get_running_loop().create_task(runner.run({ResourceClaim: EVERYTHING}))
        await bench.wait(1)
        await given(bench, "now")
        await bench.wait(10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        said = [(by, one.object, one.reason) for by, waiting in heard.waiting for one in waiting]
        assert dict.fromkeys(said) == {("gates.decide", "claim/default/now", "SchedulerGate"): None}
        (event,) = (one.object for one in bench.cluster.store.list(Event).items)
        assert isinstance(event, Event)
        assert (event.involved_object.name, event.reason) == ("now", "SchedulerGate")

    play(scene)
