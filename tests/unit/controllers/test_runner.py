"""The loop: one round at a time for a key, looked at again when and only when there is reason to."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Hashable

import pytest

from jackfield.cluster.api import Client
from jackfield.controllers.lead import Lead
from jackfield.controllers.runner import (
    ALONE,
    BACKOFF_FIRST,
    BACKOFF_MAX,
    OBSERVED,
    Controller,
    Runner,
)
from jackfield.controllers.store import Store
from jackfield.core import lead
from jackfield.model.claim import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from jackfield.model.composition import ResourceState
from jackfield.model.fabric import Inventory, Traits
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NEVER, Key, NodeName, Seconds
from jackfield.model.node import Node
from jackfield.model.plan import LabelNode, Phase, Plan
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View
from jackfield.ports import EVERYTHING, Bug, Conflict, Gone, PortError, Refused, Retry, World
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import running
from jackfield.sim.fabric import Call, Fate, SimFabric, Verb
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.sim.world import SimWorld
from jackfield.testing import builders as b
from unit.controllers.bench import Bench, Heard
from unit.controllers.leading import Some
from unit.controllers.scene import WAITS, Decision, Host, Scene, play, running_for


def times(asked: list[tuple[Hashable, float]], key: str) -> list[float]:
    return [round(at, 2) for name, at in asked if name == key]


def test_a_key_has_one_round_at_a_time_and_is_looked_at_again_if_marked_meanwhile() -> None:
    async def scene() -> None:
        decision, host = Decision(rounds=2), Host(takes=10)
        stage = Scene(decision, host)
        task = asyncio.get_running_loop().create_task(stage.runner.run({Node: EVERYTHING}))
        await stage.bench.wait(1)
        for _ in range(5):
            await stage.mark("a")
            await stage.bench.wait(1)
        await stage.bench.wait(30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert host.at_once_max == 1
        assert times(decision.asked, "a") == [1, 11]

    play(scene)


def test_keys_run_side_by_side() -> None:
    async def scene() -> None:
        host = Host(takes=10)
        await running_for(Scene(Decision(), host), 5, "a", "b", "c")
        assert host.at_once_max == 3

    play(scene)


def test_a_decision_says_when_it_wants_to_be_asked_again() -> None:
    async def scene() -> None:
        decision = Decision(
            rounds=1, again_at=lambda now: Seconds(now + 7) if now < loop.START + 15 else NEVER
        )
        await running_for(Scene(decision, Host()), 100, "a")
        assert times(decision.asked, "a") == [0, 7, 14, 21]

    play(scene)


@pytest.mark.parametrize(
    ("wrong", "pauses"),
    [
        ((Conflict("x"),), [BACKOFF_FIRST]),
        ((Gone("x"),), [BACKOFF_FIRST]),
        ((Conflict("x"), Conflict("x"), Conflict("x")), [0.05, 0.1, 0.2]),
        ((Conflict("x"),) * 12, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30]),
        ((Retry("x", Seconds(4.0)),), [4]),
        ((Retry("x", Seconds(0.01)),), [BACKOFF_FIRST]),
        ((Refused("x"),), [BACKOFF_MAX]),
        ((Conflict("x"), None, Conflict("x")), [0.05, NEVER]),
    ],
    ids=["conflict", "gone", "conflicts", "many", "retry", "retry at once", "refused", "success in between"],
)
def test_what_goes_wrong_is_tried_again_after_a_while(
    wrong: tuple[PortError | None, ...], pauses: list[float]
) -> None:
    async def scene() -> None:
        host, decision = Host(wrong=wrong), Decision(rounds=len(wrong) + 1)
        stage = Scene(decision, host)
        await running_for(stage, 250, "a")
        asked = [at for _, at in decision.asked]
        found = [round(after - before, 2) for before, after in itertools.pairwise(asked)]
        assert found == [pause for pause in pauses if pause < NEVER]
        said = [f"{type(one).__name__}: x" if one is not None else "" for one in wrong]
        assert await stage.errors() == [*said, ""][: len(found) + 1]

    play(scene)


def test_the_pause_begins_anew_after_a_round_with_nothing_to_do() -> None:
    async def scene() -> None:
        host, decision = Host(wrong=(Conflict("x"), Conflict("x"), None)), Decision(rounds=2)
        stage = Scene(decision, host)
        await running_for(stage, 10, "a")  # twice wrong, then nothing is left to be done
        asked = times(decision.asked, "a")
        assert [round(after - before, 2) for before, after in itertools.pairwise(asked)] == [
            0.05,
            0.1,
        ]
        assert stage.runner._failures == {}  # noqa: SLF001 - the one thing a runner remembers

    play(scene)


def test_a_bug_ends_the_run() -> None:
    async def scene() -> None:
        stage = Scene(Decision(), Host(wrong=(Bug("ours"),)))
        with pytest.RaisesGroup(Bug):
            await running_for(stage, 10, "a")

    play(scene)


def test_observe_only_decides_tells_and_writes_nothing() -> None:
    async def scene() -> None:
        host, decision = Host(), Decision(rounds=5)
        stage = Scene(decision, host, b.policy(base=Policy(observe_only=True)))
        await running_for(stage, 10, "a")
        assert host.begun == []
        assert stage.bench.client.writes == 0
        assert [(by, error) for _, by, error in stage.heard.done] == [("test.decide Rescan", OBSERVED)]
        assert stage.heard.waiting == [("test.decide", WAITS)]

    play(scene)


def test_what_is_decided_is_told_with_its_decider() -> None:
    async def scene() -> None:
        stage = Scene(Decision(), Host())
        await running_for(stage, 10, "a")
        assert [(by, error) for _, by, error in stage.heard.done] == [("test.decide Rescan", "")]
        assert stage.heard.waiting == [("test.decide", WAITS)]
        assert stage.runner.rounds == 1

    play(scene)


def test_nothing_is_decided_before_everything_has_been_heard() -> None:
    async def scene() -> None:
        decision = Decision()
        bench = Bench()
        await bench.put(b.node(annotations={"keys": "a"}))
        await bench.put(b.claim("c"))
        seen: list[bool] = []

        def decide(view: View, key: str, policy: Policy, now: Seconds) -> Plan:
            del key, policy, now
            seen.append(view.claim(Key("default", "c")) is not None)
            return Plan()

        controller = Controller("test", decide, decision.wakes, lead.of_none)
        runner = Runner(World(bench.client, bench.clock), Store(b.policy()), (controller,), Heard())
        task = asyncio.get_running_loop().create_task(
            runner.run({Node: EVERYTHING, ResourceClaim: EVERYTHING})
        )
        await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert seen == [True]

    play(scene)


def test_a_watch_that_begins_anew_removes_what_is_gone() -> None:
    async def scene() -> None:
        stage = Scene(Decision(), Host())
        stage.bench.store.put(b.node("long-gone", version="1"))
        await stage.bench.put(b.node())
        await running_for(stage, 1)
        assert [one.metadata.name for one in stage.bench.store.all(Node)] == ["n1"]

    play(scene)


def test_what_is_done_is_heard_at_once() -> None:
    """The answer to a write wakes whoever it is about, before any watch has told of it."""

    async def scene() -> None:
        bench = Bench()
        await bench.put(b.node())
        calls: list[bool] = []

        def decide(view: View, key: str, policy: Policy, now: Seconds) -> Plan:
            del key, policy, now
            node = view.node(b.NODE)
            assert node is not None
            calls.append("done" in node.metadata.labels)
            label = LabelNode(phase=Phase.OFFERED, because="of a test", node=b.NODE, labels={"done": "true"})
            return Plan() if calls[-1] else Plan((label,))

        def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
            del view, policy
            return ("n1",) if isinstance(delta, ObjectChanged) and isinstance(delta.new, Node) else ()

        runner = Runner(
            World(bench.client, bench.clock),
            bench.store,
            (Controller("test", decide, wakes, lead.of_none),),
            Heard(),
        )
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        runner.hear((ObjectChanged(None, await bench.node()),))
        await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert calls == [False, True]
        assert bench.client.writes == 1

    play(scene)


def test_everything_is_looked_at_again_now_and_then() -> None:
    async def scene() -> None:
        decision = Decision(rounds=0)
        stage = Scene(decision, Host(), b.policy(base=Policy(resync_seconds=Seconds(60.0))))
        await stage.bench.put(b.node(annotations={"keys": "a"}))
        await running_for(stage, 150)
        assert times(decision.asked, "a") == [60.0, 120.0]

    play(scene)


def test_a_full_pass_is_about_every_object_and_every_fabric() -> None:
    async def scene() -> None:
        stage = Scene(Decision(), Host())
        node = await stage.bench.put(b.node())
        stage.bench.store.see(b.inventory(attached={"1": b.NODE, "2": "not-listed-any-more"}))
        assert stage.runner.everything() == (
            ObjectChanged(None, node),
            InventoryChanged(b.FABRIC, (b.NODE, NodeName("not-listed-any-more")), ()),
        )

    play(scene)


# --- inventories


class Counting:
    """Counts calls, and lets the first so many fail."""

    def __init__(self, failing: int = 0) -> None:
        self.at: list[float] = []
        self._failing = failing

    def fate(self, call: Call) -> Fate:
        if call.verb is not Verb.INVENTORY:
            return Fate()
        self.at.append(round(call.at - loop.START, 2))
        return Fate(error="not now") if len(self.at) <= self._failing else Fate()


def looked(
    duration: float,
    faults: Counting,
    traits: Traits = Traits(),
    *,
    under_way: bool = False,
    leading: Lead = ALONE,
) -> list[float]:
    async def scene() -> None:
        bench = Bench(traits, faults=faults)
        runner = Runner(
            World(bench.client, bench.clock, bench.world.fabrics), bench.store, (), Heard(), leading
        )
        if under_way:
            bench.store.put(b.resource(state=ResourceState.ATTACHING))
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.wait(duration)
        if duration > 90:
            runner.hands.moved(b.FABRIC)
            await bench.wait(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        inventory: Inventory | None = bench.store.inventory(b.FABRIC)
        assert inventory is not None

    loop.run(scene())
    return faults.at


def test_a_manager_is_asked_what_it_has_now_and_then() -> None:
    assert looked(70, Counting()) == [0, 30, 60]


def test_a_manager_that_does_not_answer_is_asked_again_soon() -> None:
    assert looked(20, Counting(failing=3)) == [0, 1, 2, 3]


def test_a_manager_is_asked_at_once_when_something_moved() -> None:
    assert looked(100, Counting()) == [0, 30, 60, 90, 100]


def test_a_manager_without_ids_is_asked_what_it_has_instead_of_what_became_of_an_order() -> None:
    blind = Traits(knows_orders=False)
    assert looked(3.5, Counting(), blind, under_way=True) == [0, 1, 2, 3]
    assert looked(3.5, Counting(), blind) == [0]
    assert looked(3.5, Counting(), under_way=True) == [0]


def test_a_manager_without_ids_is_asked_often_only_by_who_gave_the_order() -> None:
    blind = Traits(knows_orders=False)
    assert looked(3.5, Counting(), blind, under_way=True, leading=Some()) == [0]


class Down:
    """Every call to the manager is refused."""

    def fate(self, _: Call) -> Fate:
        return Fate(error="503 no backend")


def test_a_manager_that_does_not_answer_is_named_with_its_own_words() -> None:
    async def scene() -> None:
        heard = Heard()
        bench = Bench(faults=Down())
        world = World(bench.client, bench.clock, {b.FABRIC: SimFabric(bench.manager, Down())})
        runner = Runner(world, bench.store, (), heard)
        task = asyncio.get_running_loop().create_task(runner.run({Node: EVERYTHING}))
        await bench.clock.sleep(Seconds(3.5))
        task.cancel()
        told = [one.what for by, waiting in heard.waiting if by == "inventory" for one in waiting]
        assert len(told) == 4
        assert all("manager of fabric rack-a" in what and "503 no backend" in what for what in told)

    play(scene)


# --- a quiet world


def _pod(name: str, claim: str) -> Pod:
    spec = PodSpec(containers=(Container("main", "app"),), resource_claims=(PodResourceClaim("gpu", claim),))
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def _claim(name: str) -> ResourceClaim:
    request = DeviceRequest("gpu", ExactDeviceRequest("gpu", (DeviceSelector(CELDeviceSelector("true")),)))
    return ResourceClaim(
        metadata=ObjectMeta(name=name, namespace="default"), spec=ResourceClaimSpec(DeviceClaim((request,)))
    )


def test_a_quiet_world_makes_no_writes() -> None:
    """An hour in which a pod runs with its device: the machines renew their leases, and we ask nothing of the API."""

    async def scene() -> None:
        setting = Setting(
            nodes=(Nodes("n", 3, fabric=b.FABRIC),),
            fabrics=(FabricSpec(b.FABRIC, batches=(Batch(b.MODEL, 4),), attach=Fixed(Seconds(20.0))),),
            classes=(Class("gpu", f'device.driver == "{DRIVER}"'),),
            policy=b.policy(),
        )
        async with SimWorld(setting, running(), Chance(1), Heard()) as world:
            await world.clock.sleep(Seconds(200))
            await world.cluster.create(_claim("c"))
            await world.cluster.create(_pod("p", "c"))
            await world.clock.sleep(Seconds(200))
            pod = await world.cluster.read(Pod, Key("default", "p"))
            assert pod.status.phase == "Running"
            calls, version = _calls(world), world.api.version
            await world.clock.sleep(Seconds(3600))
            assert _calls(world) == calls
            assert world.api.version > version  # the leases

    play(scene)


def _calls(world: SimWorld) -> list[Counter[tuple[str, str]]]:
    """All that our controllers and our plugins have asked of the API so far."""
    node = world.hardware.node_client
    assert isinstance(node, Client)
    return [world.client.calls.copy(), node.calls.copy()]
