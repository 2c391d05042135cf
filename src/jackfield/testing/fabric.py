"""The conformance table of `ports.Fabric`, for authors of adapters: one row per promise.

An author builds a `Bench` around the adapter and runs every row that `rows(traits)` gives, each on a fresh bench:

    @pytest.mark.parametrize("row", fabric.rows(traits), ids=str)
    def test_the_adapter_keeps_its_promises(row): asyncio.run(row.run(bench()))

A broken promise raises `Violation`. Knows the port and nothing behind it.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec

from jackfield.model.fabric import Done, Inventory, Order, Traits, Working
from jackfield.model.names import NodeName, OrderID, PhysicalID
from jackfield.ports import Refused, Retry
from jackfield.testing.fabric_bench import (
    DEVICES_MIN,
    POLL,
    Bench,
    Trial,
    Violation,
    attached,
    done,
    expect,
    failed,
    free,
    taken,
)

__all__ = ["DEVICES_MIN", "TABLE", "Bench", "Kind", "Row", "Trial", "Violation", "kind", "rows", "taken"]


class Kind(StrEnum):
    """Managers, by what makes a promise meaningful: do they know orders, and who names the device."""

    KNOWS_ORDERS_AND_CHOOSES = "knows orders, chooses"
    KNOWS_ORDERS = "knows orders, is told the device"
    CHOOSES = "knows no orders, chooses"
    TOLD = "knows no orders, is told the device"


ALL = tuple(Kind)
KNOWING = (Kind.KNOWS_ORDERS_AND_CHOOSES, Kind.KNOWS_ORDERS)
REPEATABLE = (*KNOWING, Kind.TOLD)
"""Where the same attach twice can be one: something in it, id or device, tells it from another."""


def kind(traits: Traits) -> Kind:
    """Return which kind of manager has these traits."""
    if traits.knows_orders:
        return Kind.KNOWS_ORDERS_AND_CHOOSES if traits.chooses_device else Kind.KNOWS_ORDERS
    return Kind.CHOOSES if traits.chooses_device else Kind.TOLD


class Row(msgspec.Struct, frozen=True):
    """A promise, for which managers it means something, and how to see whether it is kept."""

    promise: str
    check: Callable[[Trial], Awaitable[None]]
    kinds: tuple[Kind, ...] = ALL

    def __str__(self) -> str:
        return self.promise

    async def run(self, bench: Bench) -> None:
        """Try it on a fresh bench; raises Violation."""
        fabric = bench.connect()
        inventory = await fabric.inventory()
        expect(inventory.fabric == bench.fabric, f"the inventory is of {bench.fabric}")
        await self.check(Trial(bench, fabric, inventory.traits))


# --- one order


async def _attach_shows(trial: Trial) -> None:
    order = await trial.attach("a", trial.node)
    (device,) = await trial.attached(trial.node)
    expect(device.id == order.device, f"the device answered, {order.device}, is the one shown, {device.id}")
    expect(device.model == order.model, f"the device is of model {order.model}, not {device.model}")
    expect(device.ours, "what we attached is shown as ours")
    expect(device.since <= trial.bench.clock.now(), "the device came to its node in the past")
    if trial.traits.knows_orders:
        expect(device.order == order.id, f"the inventory names the order {order.id}, not {device.order!r}")


async def _same_order_twice(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    await trial.ask(trial.fabric.attach, order)
    await trial.ask(trial.fabric.attach, order)
    first = done(await trial.settle(trial.fabric.attach, order), "attach")
    again = done(await trial.settle(trial.fabric.attach, order), "an attach asked about again")
    expect(first == again, f"the same order gives the same answer, not {first} and {again}")
    expect(len(attached(await trial.quiet(), trial.node)) == 1, "the same order four times is one device")


async def _restart_between_call_and_answer(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    await trial.ask(trial.fabric.attach, order)
    restarted = trial.bench.connect()
    device = done(
        await trial.settle(restarted.attach, order), "an attach asked about by a new process"
    ).device
    shown = attached(await trial.quiet(), trial.node)
    expect([one.id for one in shown] == [device], f"one device is attached, {device}, not {shown}")


async def _effect_within_time_out(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    await trial.ask(trial.fabric.attach, order)
    then = await trial.quiet()
    expect(len(attached(then, trial.node)) <= 1, "one call attaches one device at most")
    expect(await trial.quiet() == then, "after the call time-out a call has no effect any more")


async def _unknown_node(trial: Trial) -> None:
    order = await trial.order("a", NodeName("no-such-node"), trial.bench.plenty)
    failed(await trial.settle(trial.fabric.attach, order), "an attach to an unknown node")


async def _exhausted(trial: Trial) -> None:
    first = await trial.order("a", trial.node, trial.bench.scarce)
    second = msgspec.structs.replace(first, id=OrderID("b"), node=trial.other_node)
    ends = await trial.place(first, second)
    expect(
        isinstance(ends[0], Done),
        f"the last device goes to whoever asked first, but the answer was {ends[0]}",
    )
    failed(ends[1], "an attach of an exhausted model")
    inventory = await trial.quiet()
    expect(free(inventory, trial.bench.scarce) == 0, "none is free any more")
    expect(not attached(inventory, trial.other_node), "nothing of a failed attach is left on the node")


# --- taking back


async def _detach_shows(trial: Trial) -> None:
    before = free(await trial.inventory(), trial.bench.plenty)
    order = await trial.attach("a", trial.node)
    done(await trial.detach(order), "detach")
    after = await trial.inventory()
    expect(not attached(after, trial.node), "when detach is done, nothing is on the node")
    expect(free(after, trial.bench.plenty) == before, "a detached device is free again")


async def _detach_twice(trial: Trial) -> None:
    order = await trial.attach("a", trial.node)
    done(await trial.detach(order), "detach")
    done(await trial.settle(trial.fabric.detach, order), "a detach asked about again")
    done(await trial.settle(trial.bench.connect().detach, order), "a detach asked about by a new process")


async def _detach_of_nothing(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    before = await trial.inventory()
    done(await trial.settle(trial.fabric.detach, order), "a detach of what never was attached")
    unnamed = msgspec.structs.replace(order, id=OrderID("b"), device=PhysicalID(""))
    done(await trial.settle(trial.fabric.detach, unnamed), "a detach that names no device")
    expect(await trial.inventory() == before, "a detach of nothing changes nothing")


async def _another_ids_detach(trial: Trial) -> None:
    order = await trial.attach("a", trial.node)
    await trial.detach(msgspec.structs.replace(order, id=OrderID("b")))
    shown = attached(await trial.quiet(), trial.node)
    expect([one.id for one in shown] == [order.device], "no order detaches what another attached")


async def _closed_before_attach(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    done(await trial.detach(order), "a detach that overtook its attach")
    failed(await trial.settle(trial.fabric.attach, order), "an attach by a closed id")
    expect(not attached(await trial.quiet(), trial.node), "a closed id attaches nothing")


async def _closed_after_attach(trial: Trial) -> None:
    order = await trial.attach("a", trial.node)
    done(await trial.detach(order), "detach")
    failed(await trial.settle(trial.fabric.attach, order), "an attach by a closed id")
    failed(
        await trial.settle(trial.bench.connect().attach, order), "an attach by a closed id in a new process"
    )
    expect(not attached(await trial.quiet(), trial.node), "a closed id attaches nothing")


async def _detach_under_way(trial: Trial) -> None:
    order = await trial.order("a", trial.node, trial.bench.plenty)
    await trial.ask(trial.fabric.attach, order)
    done(await trial.settle(trial.fabric.detach, order), "a detach of an attach under way")
    expect(not attached(await trial.quiet(), trial.node), "when detach is done, nothing comes any more")


async def _move(trial: Trial) -> None:
    first = await trial.attach("a", trial.node)
    done(await trial.detach(first), "detach")
    second = msgspec.structs.replace(first, id=OrderID("b"), node=trial.other_node)
    (end,) = await trial.place(second)
    device = done(end, "an attach to another node").device
    if not trial.traits.chooses_device:
        expect(device == first.device, "the device named is the device attached")
    expect(len(await trial.attached(trial.other_node)) == 1, "the device is on the other node")
    expect(not await trial.attached(trial.node), "it is not on the first any more")


# --- what somebody else attached


async def _another_clusters(trial: Trial) -> None:
    before = free(await trial.inventory(), trial.bench.plenty)
    device = await trial.bench.another()
    ours = Trial(trial.bench, trial.bench.connect(), trial.traits)
    shown = await ours.attached(ours.node)
    expect(
        [(one.id, one.ours) for one in shown] == [(device, False)],
        f"{device} is shown as somebody else's, not {shown}",
    )
    plain = Order(OrderID("a"), ours.bench.fabric, ours.node, ours.bench.plenty, device)
    await ours.settle(ours.fabric.detach, plain)
    expect(bool(await ours.attached(ours.node)), "what somebody else attached stays where it is")
    refused = await _refused(ours, msgspec.structs.replace(plain, id=OrderID("b"), foreign=True))
    after = await ours.quiet()
    if refused:
        expect(bool(attached(after, ours.node)), "what is refused is not done")
        return
    expect(not attached(after, ours.node), "a device that is detached by its name is gone when that is done")
    expect(free(after, ours.bench.plenty) == before, "a detached device is free again")


async def _refused(trial: Trial, order: Order) -> bool:
    """Detach until it is done, or refused; return whether it was refused."""
    until = trial.bench.clock.now() + trial.bench.patience
    while trial.bench.clock.now() <= until:
        try:
            answer = await trial.fabric.detach(order)
        except Refused as refused:
            expect(bool(str(refused)), "who refuses says why")
            return True
        except Retry:
            answer = Working()
        if not isinstance(answer, Working):
            done(answer, "a detach of what somebody else attached, where it is not refused,")
            return False
        await trial.bench.clock.sleep(POLL)
    raise Violation(f"order {order.id} was neither done nor refused after {trial.bench.patience:g} s")


# --- several orders


async def _two_for_one_machine(trial: Trial) -> None:
    orders = await trial.orders(["a", "b"], trial.node, trial.bench.plenty)
    ends = [done(end, "attach") for end in await trial.place(*orders)]
    expect(ends[0].device != ends[1].device, f"two orders are two devices, not twice {ends[0].device}")
    expect(len(await trial.attached(trial.node)) == len(orders), "two orders are two devices on the node")


async def _more_orders_than_jobs(trial: Trial) -> None:
    count = min(trial.traits.jobs + 1, DEVICES_MIN)
    names = [f"order-{number}" for number in range(count)]
    orders = await trial.orders(names, trial.node, trial.bench.plenty)
    devices = {done(end, "each of many attaches").device for end in await trial.place(*orders)}
    expect(len(devices) == count, f"{count} orders are {count} devices, not {len(devices)}")


# --- the inventory


async def _quiet_inventory(trial: Trial) -> None:
    before = await trial.inventory()
    expect(await trial.quiet() == before, "the inventory stays the same while nothing happens")
    await trial.attach("a", trial.node)
    then = await trial.quiet()
    expect(await trial.quiet() == then, "the inventory stays the same while nothing happens")


async def _consistent_at_every_step(trial: Trial) -> None:
    model = trial.bench.plenty
    total = free(await trial.inventory(), model)
    order = await trial.order("a", trial.node, model)
    await trial.ask(trial.fabric.attach, order)
    device = await _watch(trial, order, total, present=True)
    await trial.ask(trial.fabric.detach, msgspec.structs.replace(order, device=device))
    await _watch(trial, order, total, present=False)
    expect(free(await trial.inventory(), model) == total, "in the end all are free again")


async def _watch(trial: Trial, order: Order, total: int, *, present: bool) -> PhysicalID:
    """Look at every step until the device is there, or gone; one of them may be between pool and node."""
    until = trial.bench.clock.now() + trial.bench.patience
    while trial.bench.clock.now() <= until:
        inventory = await trial.inventory()
        shown = attached(inventory, order.node)
        known = free(inventory, order.model) + len(shown)
        expect(total - 1 <= known <= total, f"{total} devices are {total}, not {known}")
        expect(_each_once(inventory), "no device is shown twice")
        if len(shown) == present:
            return shown[0].id if shown else PhysicalID("")
        await trial.bench.clock.sleep(POLL)
    raise Violation(f"the device was not {'shown' if present else 'gone'} after {trial.bench.patience:g} s")


def _each_once(inventory: Inventory) -> bool:
    return len({device.id for device in inventory.devices}) == len(inventory.devices)


TABLE = (
    Row("an attached device is shown on its node, as ours", _attach_shows),
    Row("the same order twice is one device", _same_order_twice, REPEATABLE),
    Row("an order survives a restart between call and answer", _restart_between_call_and_answer, REPEATABLE),
    Row(
        "a call takes effect within the call time-out or never",
        _effect_within_time_out,
        (Kind.CHOOSES, Kind.TOLD),
    ),
    Row("an attach to an unknown node fails with a reason", _unknown_node),
    Row("an attach of an exhausted model fails with a reason", _exhausted),
    Row("a detached device is free again", _detach_shows),
    Row("the same detach twice is done twice", _detach_twice),
    Row("a detach of nothing is done and changes nothing", _detach_of_nothing),
    Row("no order detaches what another attached", _another_ids_detach, KNOWING),
    Row("an id closed before its attach never attaches", _closed_before_attach, KNOWING),
    Row("an id closed after its attach never attaches again", _closed_after_attach, KNOWING),
    Row("a detach of an attach under way leaves nothing behind", _detach_under_way, KNOWING),
    Row("a detached device can go to another node", _move),
    Row("what somebody else attached goes only by an order that says so, if at all", _another_clusters),
    Row("two orders for one machine are two devices", _two_for_one_machine),
    Row("more orders than jobs are all carried out", _more_orders_than_jobs),
    Row("the inventory stays the same while nothing happens", _quiet_inventory),
    Row("free and attached devices add up at every step", _consistent_at_every_step),
)


def rows(traits: Traits) -> tuple[Row, ...]:
    """Return the promises that a manager of these traits must keep."""
    return tuple(row for row in TABLE if kind(traits) in row.kinds)
