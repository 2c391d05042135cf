"""Simulated nodes see what a manager that is not simulated says is attached to them."""

import asyncio

import pytest

from jackfield.model.fabric import FabricDevice, Inventory, Order, Progress
from jackfield.model.names import FabricName, ModelName, NodeName, PhysicalID, Seconds
from jackfield.ports import Retry
from jackfield.sim import loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.clock import running
from jackfield.sim.host import HostSpec, SimHost
from jackfield.sim.mirror import Mirror
from jackfield.sim.pool import Movement
from unit.sim.hasty import Hasty

A, B = NodeName("a"), NodeName("b")


class Shown:
    """A manager that shows what it is told to."""

    def __init__(self) -> None:
        self.devices: tuple[FabricDevice, ...] = ()
        self.silent = False

    async def inventory(self) -> Inventory:
        if self.silent:
            raise Retry("nobody answers")
        return Inventory(FabricName("rack"), devices=self.devices)

    async def attach(self, order: Order) -> Progress:
        raise AssertionError(order)

    async def detach(self, order: Order) -> Progress:
        raise AssertionError(order)


def device(number: int, node: NodeName = NodeName("")) -> FabricDevice:
    return FabricDevice(PhysicalID(f"d{number}"), ModelName("m"), node=node)


def test_what_comes_and_goes_is_told_to_the_node_it_comes_to_and_leaves() -> None:
    async def scene() -> None:
        fabric, told = Shown(), list[Movement]()
        mirror = Mirror(fabric, Hasty())
        mirror.listen(A, told.append)
        mirror.listen(B, told.append)
        for devices, expected in (
            ((device(1), device(2)), []),
            ((device(1, A), device(2)), [("d1", A, True)]),
            ((device(1, A), device(2)), []),
            ((device(1, A), device(2, B)), [("d2", B, True)]),
            ((device(1, B), device(2, B)), [("d1", A, False), ("d1", B, True)]),
            ((device(2, B),), [("d1", B, False)]),
        ):
            fabric.devices = devices
            await mirror.look()
            assert [(one.device.id, one.node, one.present) for one in told] == expected
            told.clear()
        assert mirror.device(PhysicalID("d2")) == device(2, B)
        assert mirror.device(PhysicalID("d1")) is None

    asyncio.run(scene())


def test_a_manager_that_does_not_answer_has_moved_nothing() -> None:
    async def scene() -> None:
        fabric, told = Shown(), list[Movement]()
        mirror = Mirror(fabric, Hasty())
        mirror.listen(A, told.append)
        fabric.devices = (device(1, A),)
        await mirror.look()
        fabric.silent, fabric.devices = True, ()
        await mirror.look()
        assert [one.present for one in told] == [True]
        fabric.silent = False
        await mirror.look()
        assert [one.present for one in told] == [True, False]

    asyncio.run(scene())


@pytest.mark.parametrize("silent", ["", "it is silent"])
def test_a_bus_that_is_asked_shows_nothing_that_has_left_since_the_last_look(silent: str) -> None:
    async def scene() -> None:
        fabric = Shown()
        mirror = Mirror(fabric, Hasty())
        host = SimHost(A, running(), Chance(1), HostSpec(Fixed(Seconds(1.0))))
        host.ask_bus = mirror.look
        mirror.listen(A, host.moved)
        fabric.devices = (device(1, A),)
        await mirror.look()
        await running().sleep(Seconds(2.0))
        assert [one.physical for one in host.seen()] == ["d1"]
        await host.release(PhysicalID("d1"), force=False)
        fabric.devices, fabric.silent = (device(1, B),), bool(silent)
        await host.rescan()
        assert host.seen() == ()

    loop.run(scene())


def test_a_node_that_left_is_told_nothing() -> None:
    async def scene() -> None:
        fabric, told = Shown(), list[Movement]()
        mirror = Mirror(fabric, Hasty())
        end = mirror.listen(A, told.append)
        mirror.listen(B, told.append)
        mirror.remove_machine(B)
        end()
        fabric.devices = (device(1, A), device(2, B))
        await mirror.look()
        assert told == []

    asyncio.run(scene())
