"""A simulated manager does what real ones do, with ids and without."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial

import msgspec
import pytest

from jackfield.model.fabric import Done, FabricDevice, Failed, Machine, Order, Progress, Traits, Working
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Refused, Retry
from jackfield.sim import clock, loop, pool
from jackfield.sim.chance import Chance, Fixed, Uniform
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec, Foreign, Refusals

N0, N1 = NodeName("n0"), NodeName("n1")
A100, H100 = ModelName("A100"), ModelName("H100")
FABRIC = FabricName("rack0")
TEN = Fixed(Seconds(10.0))

SPEC = FabricSpec(
    name=FABRIC,
    machines=(Machine(N0, 4), Machine(N1, 4)),
    batches=(Batch(A100, 4, "s0"), Batch(H100, 2, "s1")),
    attach=TEN,
    detach=TEN,
)
CHOOSING = msgspec.structs.replace(SPEC, traits=Traits(chooses_device=True))
BLIND = msgspec.structs.replace(
    SPEC, traits=Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(60.0))
)
TOLD = msgspec.structs.replace(SPEC, traits=Traits(knows_orders=False, call_timeout=Seconds(60.0)))

Scenario = Callable[[Manager], Coroutine[None, None, None]]


def order(name: str = "a", node: NodeName = N0, model: ModelName = A100, device: str = "") -> Order:
    return Order(OrderID(name), FABRIC, node, model, PhysicalID(device))


def play(spec: FabricSpec, scenario: Scenario, seed: str = "1") -> None:
    async def main() -> None:
        await scenario(Manager(spec, clock.running(), Chance(seed)))

    loop.run(main())


def with_jobs(spec: FabricSpec, jobs: int) -> FabricSpec:
    return msgspec.structs.replace(spec, traits=msgspec.structs.replace(spec.traits, jobs=jobs))


async def after(seconds: float) -> Seconds:
    """Wait, and let everybody else do what they have to do at that moment."""
    await clock.running().sleep(Seconds(seconds))
    for _ in range(10):
        await clock.running().sleep(Seconds(0.0))
    return clock.running().now()


def attach(manager: Manager, wanted: Order) -> Progress:
    return manager.attach(wanted, manager.clock.now())


def detach(manager: Manager, wanted: Order) -> Progress:
    return manager.detach(wanted, manager.clock.now())


def on(manager: Manager, node: NodeName) -> list[PhysicalID]:
    return [device.id for device in manager.inventory().devices if device.node == node]


def shown(manager: Manager, device: str) -> FabricDevice:
    return next(one for one in manager.inventory().devices if one.id == device)


def test_an_attach_takes_its_time_and_then_shows() -> None:
    async def scenario(manager: Manager) -> None:
        assert attach(manager, order(device="rack0-0002")) == Working()
        assert manager.busy
        await after(9.9)
        assert attach(manager, order(device="rack0-0002")) == Working()
        assert on(manager, N0) == []
        now = await after(0.1)
        assert attach(manager, order(device="rack0-0002")) == Done(PhysicalID("rack0-0002"), "SN-RACK0-0002")
        device = shown(manager, "rack0-0002")
        assert (device.node, device.order, device.since, device.ours, device.switch) == (
            N0,
            "a",
            now,
            True,
            "s0",
        )
        assert not manager.busy

    play(SPEC, scenario)


def test_a_manager_that_chooses_shows_numbers_and_attached_devices_only() -> None:
    async def scenario(manager: Manager) -> None:
        assert manager.inventory().devices == ()
        assert manager.inventory().free == {A100: 4, H100: 2}
        attach(manager, order(model=H100))
        assert manager.inventory().free == {A100: 4, H100: 2}
        await after(10)
        assert manager.inventory().free == {A100: 4, H100: 1}
        assert on(manager, N0) == ["rack0-0004"]

    play(CHOOSING, scenario)


@pytest.mark.parametrize("spec", [SPEC, CHOOSING, BLIND, TOLD])
def test_the_inventory_is_the_same_object_while_nothing_changes(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        before = manager.inventory()
        attach(manager, order(device="rack0-0000"))
        await after(5)
        assert manager.inventory() is before
        await after(5)
        assert manager.inventory() is not before
        assert manager.inventory() is manager.inventory()

    play(spec, scenario)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (order(node=NodeName("n9"), device="rack0-0000"), "no machine n9"),
        (order(device="rack0-0009"), "no device rack0-0009"),
        (order(device="rack0-0004"), "of model H100, not A100"),
        (order(model=ModelName("B200"), device="rack0-0000"), "no devices of model B200"),
        (order(device="rack0-0001"), "rack0-0001 is taken by n1"),
        (order(device="rack0-0003"), "rack0-0003 is not healthy"),
        (order(node=NodeName("full"), device="rack0-0000"), "all 0 slots of full are taken"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_fails_at_once_and_says_why(wanted: Order, reason: str) -> None:
    async def scenario(manager: Manager) -> None:
        manager.pool.add_machine(Machine(NodeName("full"), 0))
        manager.pool.set_health(PhysicalID("rack0-0003"), healthy=False)
        attach(manager, order("other", N1, A100, "rack0-0001"))
        for _ in range(2):
            answer = attach(manager, wanted)
            assert isinstance(answer, Failed)
            assert reason in answer.reason

    play(SPEC, scenario)


def test_a_machine_takes_no_more_than_it_has_slots_for() -> None:
    async def scenario(manager: Manager) -> None:
        manager.pool.add_machine(Machine(N0, 2))
        answers = [attach(manager, order(str(number))) for number in range(3)]
        assert answers == [Working(), Working(), Failed("all 2 slots of n0 are taken")]
        await after(10)
        detach(manager, order("0"))
        assert isinstance(attach(manager, order("3")), Failed)
        await after(10)
        assert attach(manager, order("4")) == Working()

    play(CHOOSING, scenario)


@pytest.mark.parametrize(("jobs", "times"), [(1, [10, 20, 30]), (2, [10, 10, 20]), (8, [10, 10, 10])])
def test_a_manager_works_on_no_more_orders_than_it_has_jobs(jobs: int, times: list[int]) -> None:
    async def scenario(manager: Manager) -> None:
        for number in range(3):
            attach(manager, order(str(number)))
        await after(40)
        arrived = sorted(moves[0].at - loop.START for moves in manager.pool.history.values() if moves)
        assert arrived == times

    play(with_jobs(CHOOSING, jobs), scenario)


@pytest.mark.parametrize(
    ("refusals", "reason"),
    [
        (Refusals(devices=(PhysicalID("rack0-0000"),)), "device rack0-0000 does not answer"),
        (Refusals(nodes=(N0,)), "the link to n0 does not come up"),
        (Refusals(attach=1.0), "did not come up on n0"),
    ],
    ids=repr,
)
def test_a_refusal_ends_the_order_and_leaves_nothing(refusals: Refusals, reason: str) -> None:
    async def scenario(manager: Manager) -> None:
        manager.refusals = refusals
        before = manager.inventory()
        attach(manager, order(device="rack0-0000"))
        await after(10)
        answer = attach(manager, order(device="rack0-0000"))
        assert isinstance(answer, Failed)
        assert reason in answer.reason
        assert manager.inventory() == before
        assert detach(manager, order(device="rack0-0000")) == Done(PhysicalID("rack0-0000"), "SN-RACK0-0000")
        manager.refusals = Refusals()
        assert attach(manager, order("b", device="rack0-0000")) == Working()
        assert manager.counts.attaches_failed == 1

    play(SPEC, scenario)


def test_a_failed_detach_is_told_once_and_then_tried_again() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(10)
        manager.refusals = Refusals(detach=1.0)
        assert detach(manager, order()) == Working()
        await after(10)
        assert detach(manager, order()) == Failed("device rack0-0000 did not come off n0")
        assert on(manager, N0) == ["rack0-0000"]
        manager.refusals = Refusals()
        assert detach(manager, order()) == Working()
        await after(10)
        assert isinstance(detach(manager, order()), Done)
        assert on(manager, N0) == []
        assert (manager.counts.detaches, manager.counts.detaches_failed) == (1, 1)

    play(CHOOSING, scenario)


def test_failures_now_and_then_come_as_often_as_they_should() -> None:
    async def scenario(manager: Manager) -> None:
        for number in range(400):
            attach(manager, order(str(number)))
            await after(10)
            detach(manager, order(str(number)))
            await after(10)
        assert 0.2 < manager.counts.attaches_failed / 400 < 0.4
        assert manager.counts.attaches + manager.counts.attaches_failed == 400
        assert manager.counts.detaches == manager.counts.attaches

    play(msgspec.structs.replace(CHOOSING, refusals=Refusals(attach=0.3)), scenario)


def test_an_order_that_waits_in_the_queue_is_withdrawn_without_a_device_moving() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("a"))
        attach(manager, order("b"))
        assert isinstance(detach(manager, order("b")), Done)
        await after(60)
        assert on(manager, N0) == ["rack0-0000"]
        assert manager.counts.attaches == 1
        assert not manager.busy

    play(with_jobs(CHOOSING, 1), scenario)


def test_an_id_means_one_order() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("a", N0))
        with pytest.raises(Refused, match="order a was placed for A100 on n0"):
            attach(manager, order("a", N1))
        with pytest.raises(Refused, match="is for fabric rack9"):
            attach(manager, msgspec.structs.replace(order("b"), fabric=FabricName("rack9")))

    play(CHOOSING, scenario)


# --- without ids


def test_without_ids_an_attach_asked_twice_is_two_devices() -> None:
    async def scenario(manager: Manager) -> None:
        assert attach(manager, order()) == Working()
        assert attach(manager, order()) == Working()
        await after(10)
        assert on(manager, N0) == ["rack0-0000", "rack0-0001"]
        assert {device.order for device in manager.inventory().devices} == {""}

    play(BLIND, scenario)


def test_without_ids_a_named_device_is_attached_once() -> None:
    async def scenario(manager: Manager) -> None:
        wanted = order(device="rack0-0001")
        assert [attach(manager, wanted), attach(manager, wanted)] == [Working(), Working()]
        await after(10)
        assert isinstance(attach(manager, wanted), Done)
        assert detach(manager, wanted) == Working()
        with pytest.raises(Retry, match="being detached"):
            attach(manager, wanted)

    play(TOLD, scenario)


def test_without_ids_any_detach_pulls_the_device_it_names() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("a", device="rack0-0001"))
        await after(10)
        assert detach(manager, order("b", device="rack0-0001")) == Working()
        await after(10)
        assert on(manager, N0) == []

    play(TOLD, scenario)


def test_without_ids_a_failure_is_told_to_whoever_asks_next_for_the_same() -> None:
    async def scenario(manager: Manager) -> None:
        manager.refusals = Refusals(nodes=(N0,))
        attach(manager, order())
        await after(10)
        assert attach(manager, order(node=N1)) == Working()
        assert attach(manager, order()) == Failed("the link to n0 does not come up")
        assert attach(manager, order()) == Working()

    play(BLIND, scenario)


@pytest.mark.parametrize("spec", [BLIND, TOLD])
def test_without_ids_a_job_that_takes_too_long_has_no_effect(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order(device="rack0-0000"))
        await after(60)
        assert not manager.busy
        assert on(manager, N0) == []
        answer = attach(manager, order(device="rack0-0000"))
        assert answer == Failed("attach of rack0-0000 was not done within 60 s")

    play(msgspec.structs.replace(spec, attach=Fixed(Seconds(61.0))), scenario)


def test_without_ids_a_job_that_waits_too_long_has_no_effect() -> None:
    async def scenario(manager: Manager) -> None:
        for number in range(3):
            attach(manager, order(str(number)))
        await after(200)
        assert len(on(manager, N0)) == 2

    play(with_jobs(msgspec.structs.replace(BLIND, attach=Fixed(Seconds(25.0))), 1), scenario)


def test_without_ids_what_somebody_else_attached_is_not_detached() -> None:
    async def scenario(manager: Manager) -> None:
        with pytest.raises(Refused, match="attached by somebody else"):
            detach(manager, order(device="rack0-0000"))

    play(msgspec.structs.replace(TOLD, foreign=(Foreign(N0, A100),)), scenario)


# --- others


def test_foreign_devices_take_slots_and_are_shown_as_not_ours() -> None:
    async def scenario(manager: Manager) -> None:
        assert [(one.id, one.node, one.ours) for one in manager.inventory().devices] == [
            ("rack0-0000", N0, False),
            ("rack0-0001", N0, False),
        ]
        manager.pool.add_machine(Machine(N0, 2))
        assert isinstance(attach(manager, order()), Failed)
        manager.pool.give_back(PhysicalID("rack0-0001"))
        assert attach(manager, order("b")) == Working()

    play(msgspec.structs.replace(CHOOSING, foreign=(Foreign(N0, A100, 2),)), scenario)


def test_another_cluster_takes_from_the_same_pool_and_gives_back() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        taken = manager.pool.take(A100, 5)
        assert taken == ("rack0-0001", "rack0-0002", "rack0-0003")
        assert manager.inventory().free == {A100: 1, H100: 2}
        assert attach(manager, order("b")) == Failed("no device of model A100 is free")
        await after(10)
        assert manager.inventory().free == {A100: 0, H100: 2}
        assert on(manager, N0) == ["rack0-0000"]
        manager.pool.give_back(taken[0])
        manager.pool.give_back(PhysicalID("rack0-0000"))
        assert manager.inventory().free == {A100: 1, H100: 2}
        assert attach(manager, order("c")) == Working()

    play(CHOOSING, scenario)


def test_what_another_cluster_took_is_shown_as_elsewhere_and_not_ours() -> None:
    async def scenario(manager: Manager) -> None:
        (taken,) = manager.pool.take(H100)
        assert (shown(manager, taken).node, shown(manager, taken).ours) == (pool.ELSEWHERE, False)

    play(SPEC, scenario)


@pytest.mark.parametrize("seconds", [0.0, 5.0, 15.0])
def test_a_lost_device_ends_its_order_wherever_it_was(seconds: float) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(seconds)
        manager.lose(PhysicalID("rack0-0000"))
        await after(20)
        assert attach(manager, order()) == Failed("device rack0-0000 was lost")
        assert isinstance(detach(manager, order()), Done)
        assert manager.inventory().free == {A100: 3, H100: 2}
        assert manager.inventory().devices == ()
        assert [attach(manager, order(str(number))) for number in range(4)][3] == Failed(
            "no device of model A100 is free"
        )

    play(CHOOSING, scenario)


def test_an_ill_device_is_not_given_out_until_it_recovers() -> None:
    async def scenario(manager: Manager) -> None:
        for device in manager.pool.behind("s1"):
            manager.pool.set_health(device, healthy=False)
        assert manager.inventory().free == {A100: 4, H100: 0}
        assert isinstance(attach(manager, order("a", model=H100)), Failed)
        manager.pool.set_health(PhysicalID("rack0-0005"), healthy=True)
        assert attach(manager, order("b", model=H100)) == Working()
        manager.pool.set_health(PhysicalID("rack0-0005"), healthy=False)
        await after(10)
        detach(manager, order("b", model=H100))
        await after(10)
        assert manager.inventory().free == {A100: 4, H100: 0}

    play(CHOOSING, scenario)


def test_listeners_hear_what_is_there_and_what_comes_and_goes_on_their_node() -> None:
    async def scenario(manager: Manager) -> None:
        heard: list[tuple[float, str, bool]] = []

        def listener(movement: pool.Movement) -> None:
            heard.append((movement.at - loop.START, movement.device.id, movement.present))

        end = manager.pool.listen(N0, listener)
        attach(manager, order("a", N0))
        attach(manager, order("b", N1))
        await after(10)
        detach(manager, order("a", N0))
        await after(10)
        assert heard == [(0, "rack0-0000", True), (10, "rack0-0001", True), (20, "rack0-0001", False)]
        end()
        attach(manager, order("c", N0))
        await after(10)
        assert len(heard) == 3

    play(msgspec.structs.replace(CHOOSING, foreign=(Foreign(N0, A100),)), scenario)


def test_history_tells_where_a_device_has_been() -> None:
    async def scenario(manager: Manager) -> None:
        for name, node in (("a", N0), ("b", N1)):
            attach(manager, order(name, node, device="rack0-0000"))
            await after(10)
            detach(manager, order(name, node))
            await after(10)
        moves = manager.pool.history[PhysicalID("rack0-0000")]
        assert [(move.node, move.present) for move in moves] == [
            (N0, True),
            (N0, False),
            (N1, True),
            (N1, False),
        ]
        assert [move.at - loop.START for move in moves] == [10, 20, 30, 40]

    play(SPEC, scenario)


def test_a_run_depends_on_its_seed_alone() -> None:
    told: list[list[tuple[float, str]]] = []

    async def scenario(manager: Manager) -> None:
        for number in range(4):
            attach(manager, order(str(number), N0 if number % 2 else N1))
        await after(100)
        moves = [move for history in manager.pool.history.values() for move in history]
        told.append([(move.at, move.device.id) for move in moves])

    spec = msgspec.structs.replace(CHOOSING, attach=Uniform(Seconds(1.0), Seconds(60.0)))
    for seed in ("1", "1", "2"):
        play(spec, scenario, seed)
    assert told[0] == told[1] != told[2]


def test_an_order_for_one_node_does_not_change_how_long_those_for_another_take() -> None:
    times: list[float] = []

    async def scenario(manager: Manager, *, disturbed: bool) -> None:
        if disturbed:
            attach(manager, order("x", N1, device="rack0-0001"))
        attach(manager, order("a", N0, device="rack0-0000"))
        await after(100)
        times.append(manager.pool.history[PhysicalID("rack0-0000")][0].at)

    spec = msgspec.structs.replace(SPEC, attach=Uniform(Seconds(1.0), Seconds(60.0)))
    play(spec, partial(scenario, disturbed=False))
    play(spec, partial(scenario, disturbed=True))
    assert times[0] == times[1]


def test_devices_on_a_machine_that_was_taken_out_are_shown_until_they_are_detached() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(10)
        manager.pool.remove_machine(N0)
        assert [machine.node for machine in manager.inventory().machines] == [N1]
        assert on(manager, N0) == ["rack0-0000"]
        assert isinstance(attach(manager, order("b")), Failed)
        detach(manager, order())
        await after(10)
        assert manager.inventory().free == {A100: 4, H100: 2}

    play(CHOOSING, scenario)


def test_a_fabric_is_read_from_a_scenario() -> None:
    text = """
    name: rack0
    machines: [{node: n0, slots: 4}]
    batches: [{model: A100, count: 2, switch: s0, attributes: {memory: 80Gi}}]
    traits: {chooses_device: true, jobs: 1}
    attach: {kind: fixed, seconds: 10}
    refusals: {nodes: [n1], attach: 0.1}
    foreign: [{node: n0, model: A100}]
    """
    spec = msgspec.yaml.decode(text, type=FabricSpec)
    assert spec.traits == Traits(chooses_device=True, jobs=1)
    assert spec.batches == (Batch(A100, 2, "s0", attributes={"memory": "80Gi"}),)

    async def main() -> int:
        return len(Manager(spec, clock.running(), Chance(1)).inventory().devices)

    assert loop.run(main()) == 1


def test_a_thousand_devices_move_at_the_cost_of_what_moves() -> None:
    async def scenario(manager: Manager) -> None:
        for round_ in range(10):
            for number in range(100):
                attach(manager, order(f"{round_}/{number}", NodeName(f"n{number}")))
            await after(10)
            for number in range(100):
                detach(manager, order(f"{round_}/{number}", NodeName(f"n{number}")))
            await after(10)
        assert manager.counts.attaches == manager.counts.detaches == 1000
        assert len(asyncio.all_tasks()) == 1

    spec = msgspec.structs.replace(
        with_jobs(CHOOSING, 1000),
        machines=tuple(Machine(NodeName(f"n{number}")) for number in range(100)),
        batches=(Batch(A100, 1000),),
    )
    play(spec, scenario)
