"""An inventory that cannot be is not believed, whoever shows it."""

import asyncio
import math
from types import TracebackType
from typing import Self

import msgspec
import pytest

from jackfield.fabric.sound import DEVICES_MAX, MACHINES_MAX, Sound, contradictions
from jackfield.model.fabric import Done, FabricDevice, Inventory, Machine, Order, Progress, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID
from jackfield.ports import Retry

FABRIC = FabricName("rack-a")
DEVICE = FabricDevice(PhysicalID("d-1"), ModelName("A100"))
MACHINE = Machine(NodeName("n-1"))
PLAIN = Inventory(FABRIC, Traits(), (MACHINE,), (DEVICE,), {ModelName("A100"): 1})


def device(**more: object) -> Inventory:
    return msgspec.structs.replace(PLAIN, devices=(msgspec.structs.replace(DEVICE, **more),))


def machine(**more: object) -> Inventory:
    return msgspec.structs.replace(PLAIN, machines=(msgspec.structs.replace(MACHINE, **more),))


def traits(**more: object) -> Inventory:
    return msgspec.structs.replace(PLAIN, traits=msgspec.structs.replace(PLAIN.traits, **more))


BAD = {
    "two devices of one name": msgspec.structs.replace(PLAIN, devices=(DEVICE, DEVICE)),
    "two machines of one name": msgspec.structs.replace(PLAIN, machines=(MACHINE, MACHINE)),
    "a device without a name": device(id=""),
    "a device with a line break in its name": device(id="a\nb"),
    "a name without an end": device(id="x" * 1001),
    "a model that does something to the terminal": device(model="\x1b[2J"),
    "a node that cannot be printed": device(node="n\x00"),
    "a serial number that cannot be printed": device(serial="\n"),
    "since no time": device(since=math.inf),
    "a machine without a name": machine(node=""),
    "fewer slots than none": machine(slots=-1),
    "a machine since no time": machine(since=math.nan),
    "fewer free than none": msgspec.structs.replace(PLAIN, free={ModelName("A100"): -1}),
    "a free model that cannot be printed": msgspec.structs.replace(PLAIN, free={ModelName("\n"): 1}),
    "no time for a call": traits(call_timeout=0.0),
    "for ever for a call": traits(call_timeout=math.inf),
    "no jobs": traits(jobs=0),
    "too many devices": msgspec.structs.replace(PLAIN, devices=(DEVICE,) * (DEVICES_MAX + 1)),
    "too many machines": msgspec.structs.replace(PLAIN, machines=(MACHINE,) * (MACHINES_MAX + 1)),
}


class Shows:
    """A line to a manager that shows one thing after the other."""

    def __init__(self, *shown: Inventory) -> None:
        self._shown = list(shown)
        self.ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended = True

    async def inventory(self) -> Inventory:
        return self._shown.pop(0)

    async def attach(self, order: Order) -> Progress:
        return Done(order.device, "attached")

    async def detach(self, order: Order) -> Progress:
        return Done(order.device, "detached")


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_is_not_believed(what: str) -> None:
    async def main() -> None:
        async with Sound(Shows(PLAIN, BAD[what], PLAIN), FABRIC) as line:
            assert await line.inventory() is PLAIN
            with pytest.raises(Retry, match=r"fabric rack-a: what the manager shows cannot be: ") as caught:
                await line.inventory()
            assert str(caught.value).isprintable()
            assert len(str(caught.value)) < 300
            assert await line.inventory() is PLAIN

    asyncio.run(main())


def test_what_can_be_is_shown_as_it_is_and_all_else_is_passed_on() -> None:
    async def main() -> None:
        behind = Shows(PLAIN)
        async with Sound(behind, FABRIC) as line:
            order = Order(OrderID("o"), FABRIC, MACHINE.node, DEVICE.model, DEVICE.id)
            assert await line.inventory() is PLAIN
            assert await line.attach(order) == Done(DEVICE.id, "attached")
            assert await line.detach(order) == Done(DEVICE.id, "detached")
            assert repr(line) == repr(behind)
        assert behind.ended

    asyncio.run(main())


def test_an_empty_fabric_and_one_with_devices_on_unknown_machines_can_be() -> None:
    elsewhere = device(node=NodeName("of-somebody-else"), ours=False)
    assert [*contradictions(Inventory(FABRIC)), *contradictions(elsewhere)] == []
