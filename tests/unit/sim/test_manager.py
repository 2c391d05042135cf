"""A simulated manager that knows order ids does what real ones do."""

import asyncio
from functools import partial

import msgspec
import pytest

from jackfield.model.fabric import Done, Failed, Machine, Order, Traits, Working
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.ports import Refused
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Uniform
from jackfield.sim.manager import Manager
from jackfield.sim.pool import serial
from jackfield.sim.spec import Batch, FabricSpec, Refusals
from unit.sim.small_fabric import (
    A100,
    BLIND,
    CHOOSING,
    H100,
    N0,
    N1,
    SPEC,
    TOLD,
    after,
    attach,
    detach,
    on,
    order,
    play,
    shown,
    with_jobs,
)


def test_an_attach_takes_its_time_and_then_shows() -> None:
    async def scenario(manager: Manager) -> None:
        assert attach(manager, order(device="0002")) == Working()
        assert manager.busy
        await after(9.9)
        assert attach(manager, order(device="0002")) == Working()
        assert on(manager, N0) == []
        now = await after(0.1)
        assert attach(manager, order(device="0002")) == Done(
            PhysicalID("0002"), serial(FabricName("rack0"), 2)
        )
        device = shown(manager, "0002")
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
        assert on(manager, N0) == ["0004"]

    play(CHOOSING, scenario)


@pytest.mark.parametrize("spec", [SPEC, CHOOSING, BLIND, TOLD])
def test_the_inventory_is_the_same_object_while_nothing_changes(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        before = manager.inventory()
        attach(manager, order(device="0000"))
        await after(5)
        assert manager.inventory() is before
        await after(5)
        assert manager.inventory() is not before
        assert manager.inventory() is manager.inventory()

    play(spec, scenario)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (order(node=NodeName("n9"), device="0000"), "no machine n9"),
        (order(device="0009"), "no device 0009"),
        (order(device="0004"), "of model H100, not A100"),
        (order(model=ModelName("B200"), device="0000"), "no devices of model B200"),
        (order(device="0001"), "0001 is taken by n1"),
        (order(device="0003"), "0003 is not healthy"),
        (order(node=NodeName("full"), device="0000"), "all 0 slots of full are taken"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_fails_at_once_and_says_why(wanted: Order, reason: str) -> None:
    async def scenario(manager: Manager) -> None:
        manager.pool.add_machine(Machine(NodeName("full"), 0))
        manager.pool.set_health(PhysicalID("0003"), healthy=False)
        attach(manager, order("other", N1, A100, "0001"))
        for _ in range(2):
            answer = attach(manager, wanted)
            assert isinstance(answer, Failed)
            assert reason in answer.reason
        assert manager.counts.attaches_failed == 1

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
        (Refusals(devices=(PhysicalID("0000"),)), "device 0000 does not answer"),
        (Refusals(nodes=(N0,)), "the link to n0 does not come up"),
        (Refusals(attach=1.0), "did not come up on n0"),
    ],
    ids=repr,
)
def test_a_refusal_ends_the_order_and_leaves_nothing(refusals: Refusals, reason: str) -> None:
    async def scenario(manager: Manager) -> None:
        manager.refusals = refusals
        before = manager.inventory()
        attach(manager, order(device="0000"))
        await after(10)
        answer = attach(manager, order(device="0000"))
        assert isinstance(answer, Failed)
        assert reason in answer.reason
        assert manager.inventory() == before
        assert detach(manager, order(device="0000")) == Done(
            PhysicalID("0000"), serial(FabricName("rack0"), 0)
        )
        manager.refusals = Refusals()
        assert attach(manager, order("b", device="0000")) == Working()
        assert manager.counts.attaches_failed == 1

    play(SPEC, scenario)


def test_a_failed_detach_is_told_once_and_then_tried_again() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(10)
        manager.refusals = Refusals(detach=1.0)
        assert detach(manager, order()) == Working()
        await after(10)
        assert detach(manager, order()) == Failed("device 0000 did not come off n0")
        assert on(manager, N0) == ["0000"]
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
        assert on(manager, N0) == ["0000"]
        assert manager.counts.attaches == 1
        assert not manager.busy

    play(with_jobs(CHOOSING, 1), scenario)


@pytest.mark.parametrize("spec", [CHOOSING, TOLD])
def test_an_attach_under_way_is_not_stopped_but_turned_round(spec: FabricSpec) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order(device="0000"))
        await after(5)
        assert detach(manager, order(device="0000")) == Working()
        await after(30)
        moves = manager.pool.history[PhysicalID("0000")]
        assert [(move.at - loop.START, move.present) for move in moves] == [(10, True), (20, False)]

    play(spec, scenario)


def test_an_order_is_over_when_it_is_closed_and_nothing_of_it_is_left() -> None:
    async def scenario(manager: Manager) -> None:
        wanted = order(device="0002")
        attach(manager, wanted)
        await after(10.0)
        assert not manager.is_over(wanted.id)
        assert detach(manager, wanted) == Working()
        assert not manager.is_over(wanted.id)
        await after(10.0)
        assert manager.is_over(wanted.id)
        assert not manager.is_over(order("b").id)

    play(SPEC, scenario)


def test_an_id_means_one_order() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order("a", N0))
        with pytest.raises(Refused, match="order a was placed for A100 on n0"):
            attach(manager, order("a", N1))
        with pytest.raises(Refused, match="is for fabric rack9"):
            attach(manager, msgspec.structs.replace(order("b"), fabric=FabricName("rack9")))

    play(CHOOSING, scenario)


@pytest.mark.parametrize("fails", [0.0, 1.0])
def test_a_device_lost_while_it_is_detached_leaves_its_order_ended(fails: float) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(10)
        manager.refusals = Refusals(detach=fails)
        detach(manager, order())
        await after(5)
        manager.lose(PhysicalID("0000"))
        await after(10)
        assert detach(manager, order()) == Done(PhysicalID("0000"))
        assert (manager.counts.detaches, manager.counts.detaches_failed) == (0, 0)

    play(CHOOSING, scenario)


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
            attach(manager, order("x", N1, device="0001"))
        attach(manager, order("a", N0, device="0000"))
        await after(100)
        times.append(manager.pool.history[PhysicalID("0000")][0].at)

    spec = msgspec.structs.replace(SPEC, attach=Uniform(Seconds(1.0), Seconds(60.0)))
    play(spec, partial(scenario, disturbed=False))
    play(spec, partial(scenario, disturbed=True))
    assert times[0] == times[1]


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


def test_a_manager_may_go_on_showing_what_there_was() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order(device="0002"))
        manager.outdate(Seconds(clock.running().now() + 30.0))
        await after(20)
        assert on(manager, N0) == []
        assert attach(manager, order(device="0002")) == Done(
            PhysicalID("0002"), serial(FabricName("rack0"), 2)
        )
        await after(10)
        assert on(manager, N0) == ["0002"]

    play(SPEC, scenario)
