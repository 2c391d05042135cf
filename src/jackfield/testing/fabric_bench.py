"""A bench to try a fabric adapter on, and the ways of a careful caller, who never orders twice by mistake.

Knows `ports.Fabric` and nothing behind it. Must not know which promises are tried: that is the table's.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from jackfield.model.fabric import Done, FabricDevice, Failed, Inventory, Order, Progress, Traits, Working
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock, Fabric, Refused, Retry

POLL = Seconds(1.0)
DEVICES_MIN = 10
"""So many devices of the plentiful model a bench must have, and each of its nodes as many slots."""


class Violation(AssertionError):  # noqa: N818 - a finding, as tests report them
    """The adapter broke a promise of the port."""


class Bench(msgspec.Struct, frozen=True):
    """A fabric to try an adapter on: nothing attached, nothing under way."""

    connect: Callable[[], Fabric]
    """Makes the adapter as a newly started process would; called again, it plays the restarted one."""
    clock: Clock
    fabric: FabricName
    nodes: tuple[NodeName, NodeName]
    plenty: ModelName
    """A model of which `DEVICES_MIN` devices or more are free."""
    scarce: ModelName
    """A model of which exactly one device is free."""
    another: Callable[[], Awaitable[PhysicalID]]
    """Has somebody else attach a plentiful device to the first node. Adapters that are made afterwards know that it is
    not theirs: the manager says so, or their settings do. For the latter, `taken` attaches it."""
    patience: Seconds = Seconds(600.0)
    """Within this time any order is done or has failed."""


class Trial:
    """One row being tried: the adapter, and the ways of a careful caller."""

    def __init__(self, bench: Bench, fabric: Fabric, traits: Traits) -> None:
        self.bench = bench
        self.fabric = fabric
        self.traits = traits
        self.node, self.other_node = bench.nodes

    # --- looking

    async def inventory(self) -> Inventory:
        """Return what the manager shows."""
        return await self.fabric.inventory()

    async def attached(self, node: NodeName) -> tuple[FabricDevice, ...]:
        """Return what stands on a node."""
        return attached(await self.inventory(), node)

    async def order(self, name: str, node: NodeName, model: ModelName) -> Order:
        """Return an order that names a free device wherever one must be chosen."""
        if self.traits.chooses_device:
            return Order(OrderID(name), self.bench.fabric, node, model)
        return (await self.orders([name], node, model))[0]

    async def orders(self, names: Sequence[str], node: NodeName, model: ModelName) -> tuple[Order, ...]:
        """Return orders for one device each, no two for the same."""
        if self.traits.chooses_device:
            chosen = [PhysicalID("")] * len(names)
        else:
            devices = (await self.inventory()).devices
            chosen = [one.id for one in devices if one.model == model and not one.node][: len(names)]
            expect(len(chosen) == len(names), f"the bench has {len(names)} free devices of {model}")
        pairs = zip(names, chosen, strict=True)
        return tuple(Order(OrderID(name), self.bench.fabric, node, model, device) for name, device in pairs)

    # --- ordering, as a careful caller does

    async def place(self, *orders: Order) -> tuple[Progress, ...]:
        """Attach for all of them at once, and return how each of them ended."""
        if self.traits.chooses_device and not self.traits.knows_orders:
            return await self._place_once(orders)
        return tuple([await self.settle(self.fabric.attach, order) for order in await self._sent(orders)])

    async def _sent(self, orders: Sequence[Order]) -> Sequence[Order]:
        for order in orders:
            await self.ask(self.fabric.attach, order)
        return orders

    async def _place_once(self, orders: Sequence[Order]) -> tuple[Progress, ...]:
        """Send each once, since twice would be two devices; what becomes of them only the inventory shows."""
        before = {device.id for node in self.bench.nodes for device in await self.attached(node)}
        answers = [await self.ask(self.fabric.attach, order) for order in orders]
        ended = {at: answer for at, answer in enumerate(answers) if not isinstance(answer, Working)}
        before.update(answer.device for answer in ended.values() if isinstance(answer, Done))
        until = self.bench.clock.now() + self.traits.call_timeout
        while len(ended) < len(orders) and self.bench.clock.now() <= until:
            for at, order in enumerate(orders):
                new = [one for one in await self.attached(order.node) if one.id not in before]
                if at not in ended and new:
                    before.add(new[0].id)
                    ended[at] = Done(new[0].id)
            await self.bench.clock.sleep(POLL)
        nothing = Failed("nothing appeared within the call time-out")
        return tuple(ended.get(at, nothing) for at in range(len(orders)))

    async def attach(self, name: str, node: NodeName) -> Order:
        """Attach one plentiful device; return the order with the device it got."""
        order = await self.order(name, node, self.bench.plenty)
        (end,) = await self.place(order)
        return msgspec.structs.replace(order, device=done(end, "attach").device)

    async def detach(self, order: Order) -> Progress:
        """Detach, and return how it ended. A manager without ids is told once, and then watched."""
        if self.traits.knows_orders:
            return await self.settle(self.fabric.detach, order)
        answer = await self.ask(self.fabric.detach, order)
        until = self.bench.clock.now() + self.traits.call_timeout
        while isinstance(answer, Working) and self.bench.clock.now() <= until:
            await self.bench.clock.sleep(POLL)
            if all(device.id != order.device for device in await self.attached(order.node)):
                return Done(order.device)
        return answer

    async def settle(self, call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
        """Ask until it is done or has failed."""
        until = self.bench.clock.now() + self.bench.patience
        while self.bench.clock.now() <= until:
            answer = await self.ask(call, order)
            if not isinstance(answer, Working):
                return answer
            await self.bench.clock.sleep(POLL)
        raise Violation(f"order {order.id} was neither done nor failed after {self.bench.patience:g} s")

    async def ask(self, call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
        """Ask once; Retry is Working, Refused is Failed."""
        try:
            return await call(order)
        except Retry:
            return Working()
        except Refused as refused:
            return Failed(str(refused))

    async def quiet(self) -> Inventory:
        """Wait for as long as anything may still take effect, and return what is there then."""
        await self.bench.clock.sleep(Seconds(self.traits.call_timeout + POLL))
        return await self.inventory()


async def taken(bench: Bench) -> PhysicalID:
    """Attach a plentiful device to the first node, as somebody else would who has such an adapter too."""
    fabric = bench.connect()
    inventory = await fabric.inventory()
    return (await Trial(bench, fabric, inventory.traits).attach("somebody-else", bench.nodes[0])).device


# --- words for what is expected


def expect(condition: bool, promise: str) -> None:  # noqa: FBT001 - a condition is what it is about
    """Raise Violation unless it is so."""
    if not condition:
        raise Violation(promise)


def done(answer: Progress, what: str) -> Done:
    """Return the answer if it is Done."""
    if isinstance(answer, Done):
        return answer
    raise Violation(f"{what} is done, but the answer was {answer}")


def failed(answer: Progress, what: str) -> Failed:
    """Return the answer if it is Failed with a reason."""
    if isinstance(answer, Failed) and answer.reason:
        return answer
    raise Violation(f"{what} fails with a reason, but the answer was {answer}")


def attached(inventory: Inventory, node: NodeName) -> tuple[FabricDevice, ...]:
    """Return what stands on a node."""
    return tuple(device for device in inventory.devices if device.node == node)


def free(inventory: Inventory, model: ModelName) -> int:
    """Return how many devices of a model are in the pool, by number or by name."""
    if model in inventory.free:
        return inventory.free[model]
    return sum(device.model == model and not device.node for device in inventory.devices)
