"""Fifty callers, and a fifth of all calls and work going wrong in every way: the books are right in the end."""

import asyncio
import random
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric.native import NativeFabric
from jackfield.fabric_manager.durations import Uniform
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.hardware import Limits, Machine
from jackfield.fabric_manager.server import Server
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry
from unit.fabric_manager.lab import SMALL, lab, line, order, serving

CALLERS = 50
ORDERS = (400, pytest.param(10_000, marks=pytest.mark.slow))
DEVICES = 60
TROUBLES = (
    Fault(Kind.FAIL, likely=0.2),
    Fault(Kind.HANG, likely=0.05, seconds=Seconds(5.0)),
    Fault(Kind.PRETEND, likely=0.05),
    Fault(Kind.WRONG, likely=0.2),
    Fault(Kind.SWAP, likely=0.1),
    Fault(Kind.LOST, likely=0.05),
    Fault(Kind.LATE, likely=0.05, seconds=Seconds(2.0)),
    Fault(Kind.STATUS, likely=0.03, status=500),
    Fault(Kind.STATUS, likely=0.03, status=429),
    Fault(Kind.STATUS, likely=0.03, status=409),
    Fault(Kind.UNAUTHORIZED, likely=0.03),
)
LAB = msgspec.structs.replace(
    SMALL,
    machines=(Machine(name=NodeName("n"), count=10, slots=6),),
    devices=(msgspec.structs.replace(SMALL.devices[0], count=DEVICES), SMALL.devices[1]),
    limits=Limits(jobs=16),
)


class Callers:
    """Callers who keep books of what they were answered."""

    def __init__(self, fabric: NativeFabric, orders: int) -> None:
        self._fabric = fabric
        self._numbers = iter(range(orders))
        self._chance = random.Random("callers")  # noqa: S311 - no secret is made of it
        self.holds: dict[OrderID, tuple[PhysicalID, NodeName]] = {}
        self.failures = 0

    async def run(self) -> None:
        for number in self._numbers:
            node = f"n-{self._chance.randrange(10) + 1}"
            await self._one(order(f"o-{number}", "", node), keep=self._chance.random() < 0.05)

    async def _one(self, of: Order, *, keep: bool) -> None:
        answer = await self._settled("attach", of)
        if isinstance(answer, Failed):
            self.failures += 1
        elif isinstance(answer, Done) and keep:
            self.holds[of.id] = (answer.device, of.node)
            return
        while not isinstance(await self._settled("detach", of), Done):
            self.failures += 1

    async def _settled(self, verb: str, of: Order) -> Progress:
        while True:
            try:
                answer = await (self._fabric.attach(of) if verb == "attach" else self._fabric.detach(of))
            except Retry:
                continue
            if not isinstance(answer, Working):
                return answer


@pytest.mark.parametrize("orders", ORDERS)
def test_no_device_is_lost_or_doubled_by_faults(tmp_path: Path, orders: int) -> None:
    async def play(server: Server) -> None:
        for trouble in TROUBLES:
            await server.manager.set_fault(trouble)
        async with line(server) as fabric:
            callers = Callers(fabric, orders)
            async with asyncio.TaskGroup() as group:
                for _ in range(CALLERS):
                    group.create_task(callers.run())
            for fault in tuple(server.manager.faults):
                assert fault.seen > 0
                await server.manager.clear_fault(fault.id)
            shown = await fabric.inventory()
        assert len({one.id for one in shown.devices}) == DEVICES + 1
        assert {one.order: (one.id, one.node) for one in shown.devices if one.node} == callers.holds
        assert callers.failures > orders / 10

    async def main() -> None:
        async with serving(tmp_path, lab(Uniform(Seconds(0.0), Seconds(2.0)), LAB)) as server:
            await play(server)

    asyncio.run(main())
