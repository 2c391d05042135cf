"""The hardware of a fabric is shared with others, breaks, and tells where it is."""

import msgspec
import pytest

from jackfield.model.fabric import Done, Failed, Machine, Working
from jackfield.model.names import NodeName, PhysicalID
from jackfield.sim import loop, pool
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, Foreign
from unit.sim.small_fabric import (
    A100,
    CHOOSING,
    H100,
    N0,
    N1,
    SPEC,
    after,
    attach,
    detach,
    on,
    order,
    play,
    shown,
)


def test_foreign_devices_take_slots_and_are_shown_as_not_ours() -> None:
    async def scenario(manager: Manager) -> None:
        assert [(one.id, one.node, one.ours) for one in manager.inventory().devices] == [
            ("0000", N0, False),
            ("0001", N0, False),
        ]
        manager.pool.add_machine(Machine(N0, 2))
        assert isinstance(attach(manager, order()), Failed)
        manager.pool.give_back(PhysicalID("0001"))
        assert attach(manager, order("b")) == Working()

    play(msgspec.structs.replace(CHOOSING, foreign=(Foreign(N0, A100, 2),)), scenario)


def test_another_cluster_takes_from_the_same_pool_and_gives_back() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        taken = manager.pool.take(A100, 5)
        assert taken == ("0001", "0002", "0003")
        assert manager.inventory().free == {A100: 1, H100: 2}
        assert attach(manager, order("b")) == Failed("no device of model A100 is free")
        await after(10)
        assert manager.inventory().free == {A100: 0, H100: 2}
        assert on(manager, N0) == ["0000"]
        manager.pool.give_back(taken[0])
        manager.pool.give_back(PhysicalID("0000"))
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
        manager.lose(PhysicalID("0000"))
        await after(20)
        assert attach(manager, order()) == Failed("device 0000 was lost")
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
        manager.pool.set_health(PhysicalID("0005"), healthy=True)
        assert attach(manager, order("b", model=H100)) == Working()
        manager.pool.set_health(PhysicalID("0005"), healthy=False)
        await after(10)
        detach(manager, order("b", model=H100))
        await after(10)
        assert manager.inventory().free == {A100: 4, H100: 0}

    play(CHOOSING, scenario)


@pytest.mark.parametrize("seconds", [5.0, 15.0])
def test_a_device_in_use_that_recovers_is_not_given_out_twice(seconds: float) -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(seconds)
        for healthy in (False, True):
            manager.pool.set_health(PhysicalID("0000"), healthy=healthy)
        assert len(manager.pool.take(A100, 4)) == 3

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
        assert heard == [(0, "0000", True), (10, "0001", True), (20, "0001", False)]
        end()
        attach(manager, order("c", N0))
        await after(10)
        assert len(heard) == 3

    play(msgspec.structs.replace(CHOOSING, foreign=(Foreign(N0, A100),)), scenario)


def test_history_tells_where_a_device_has_been() -> None:
    async def scenario(manager: Manager) -> None:
        for name, node in (("a", N0), ("b", N1)):
            attach(manager, order(name, node, device="0000"))
            await after(10)
            detach(manager, order(name, node))
            await after(10)
        moves = manager.pool.history[PhysicalID("0000")]
        assert [(move.node, move.present) for move in moves] == [
            (N0, True),
            (N0, False),
            (N1, True),
            (N1, False),
        ]
        assert [move.at - loop.START for move in moves] == [10, 20, 30, 40]

    play(SPEC, scenario)


def test_devices_on_a_machine_that_was_taken_out_are_shown_until_they_are_detached() -> None:
    async def scenario(manager: Manager) -> None:
        attach(manager, order())
        await after(10)
        manager.pool.remove_machine(N0)
        assert [machine.node for machine in manager.inventory().machines] == [N1]
        assert on(manager, N0) == ["0000"]
        assert isinstance(attach(manager, order("b")), Failed)
        detach(manager, order())
        await after(10)
        assert manager.inventory().free == {A100: 4, H100: 2}

    play(CHOOSING, scenario)


def test_the_inventory_shows_what_was_put_in_and_taken_out() -> None:
    async def scenario(manager: Manager) -> None:
        manager.inventory()
        manager.pool.add(Batch(H100, 1, "s1"))
        assert manager.inventory().free == {A100: 4, H100: 3}
        manager.pool.add_machine(Machine(NodeName("n2"), 1))
        assert [machine.node for machine in manager.inventory().machines] == [N0, N1, "n2"]
        manager.pool.remove_machine(N0)
        assert [machine.node for machine in manager.inventory().machines] == [N1, "n2"]
        manager.pool.lose(PhysicalID("0006"))
        assert manager.inventory().free == {A100: 4, H100: 2}
        manager.pool.add(Batch(A100, 1, "s1"))
        assert manager.pool.behind("s1") == ("0004", "0005", "0007")

    play(CHOOSING, scenario)


def test_a_device_in_the_pool_is_nobodys_and_has_no_order() -> None:
    async def scenario(manager: Manager) -> None:
        before = manager.inventory().devices
        (taken,) = manager.pool.take(A100)
        attach(manager, order(device="0001"))
        await after(10)
        manager.pool.give_back(taken)
        detach(manager, order())
        now = await after(10)
        assert shown(manager, taken).since == now - 10
        assert shown(manager, "0001").since == now
        unmoved = [msgspec.structs.replace(one, since=loop.START) for one in manager.inventory().devices]
        assert tuple(unmoved) == before

    play(SPEC, scenario)
