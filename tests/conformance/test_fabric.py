"""The simulated fabric keeps every promise of the port, whatever its traits, and so does the same over HTTP."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.model.fabric import Done, Failed, Inventory, Machine, Order, Progress, Traits, Working
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock, Refused
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Distribution, Fixed, Lognormal
from jackfield.sim.fabric import SimFabric
from jackfield.sim.face import Face, lines
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.testing import fabric as conformance
from unit.sim.hasty import Hasty

TRAITS = tuple(
    Traits(chooses_device=chooses, knows_orders=knows, jobs=jobs, call_timeout=Seconds(120.0))
    for chooses in (False, True)
    for knows in (False, True)
    for jobs in (1, 3, 8)
)
CASES = [
    pytest.param(traits, row, id=f"{conformance.kind(traits)}-{traits.jobs} jobs-{row}")
    for traits in TRAITS
    for row in conformance.rows(traits)
]
DURATIONS: tuple[Distribution, ...] = (
    Fixed(Seconds(0.0)),
    Fixed(Seconds(5.0)),
    Lognormal(Seconds(4.0), 0.5, max=Seconds(9.0)),
)


def manager(traits: Traits, duration: Distribution, time: Clock | None = None) -> Manager:
    slots = conformance.DEVICES_MIN
    spec = FabricSpec(
        name=FabricName("rack0"),
        machines=(Machine(NodeName("n0"), slots), Machine(NodeName("n1"), slots)),
        batches=(Batch(ModelName("A100"), slots, "switch0"), Batch(ModelName("H100"), 1, "switch1")),
        traits=traits,
        attach=duration,
        detach=duration,
    )
    return Manager(spec, time or clock.running(), Chance("conformance"))


def bench(simulated: Manager) -> conformance.Bench:
    async def another() -> PhysicalID:
        device = simulated.pool.behind("switch0")[0]
        simulated.pool.move(device, NodeName("n0"))
        return device

    return conformance.Bench(
        connect=lambda: SimFabric(simulated),
        clock=simulated.clock,
        fabric=FabricName("rack0"),
        nodes=(NodeName("n0"), NodeName("n1")),
        plenty=ModelName("A100"),
        scarce=ModelName("H100"),
        another=another,
    )


@pytest.mark.parametrize(("traits", "row"), CASES)
def test_the_simulated_fabric_keeps_its_promises(traits: Traits, row: conformance.Row) -> None:
    async def main(duration: Distribution) -> None:
        await row.run(bench(manager(traits, duration)))

    for duration in DURATIONS:
        loop.run(main(duration))


# --- the same manager behind its native face, spoken to by the adapter for it


OVER_HTTP = [
    pytest.param(traits, row, id=f"{conformance.kind(traits)}-{row}")
    for traits in TRAITS
    if traits.jobs == 3
    for row in conformance.rows(traits)
]


@pytest.mark.parametrize(("traits", "row"), OVER_HTTP)
def test_the_native_adapter_keeps_its_promises_over_http(traits: Traits, row: conformance.Row) -> None:
    async def main() -> None:
        brief = msgspec.structs.replace(traits, call_timeout=Seconds(20.0))
        simulated = manager(brief, Fixed(Seconds(5.0)), Hasty())
        secret = Secret("a-token-of-this-test")
        async with AsyncExitStack() as stack:
            face = await stack.enter_async_context(Face(lines({simulated.name: simulated}), secret))
            settings = FabricSettings(simulated.name, "native", face.url, call_timeout_seconds=Seconds(5.0))

            def connect() -> NativeFabric:
                made = NativeFabric(settings, lambda: secret)
                stack.push_async_exit(made)
                return made

            await row.run(msgspec.structs.replace(bench(simulated), connect=connect))

    asyncio.run(main())


# --- every promise can be broken: an adapter that breaks it is found out


class Broken(SimFabric):
    """An adapter with a mistake."""

    def __init__(self, simulated: Manager) -> None:
        super().__init__(simulated)
        self.simulated = simulated


class ForgetsIds(Broken):
    """Sends every attach as a new order."""

    async def attach(self, order: Order) -> Progress:
        count = sum(map(len, self.simulated.pool.history.values()))
        fresh = OrderID(f"{order.id}/{self.simulated.clock.now()}/{count}")
        return await super().attach(msgspec.structs.replace(order, id=fresh))


class KeepsIdsInMemory(Broken):
    """Knows an order only until it is restarted."""

    async def attach(self, order: Order) -> Progress:
        return await super().attach(msgspec.structs.replace(order, id=OrderID(f"{order.id}/{id(self)}")))


class TurnsRoundForOthers(Broken):
    """Detaches by device, whoever attached it, and forgets that an id was closed."""

    async def detach(self, order: Order) -> Progress:
        for device in (await self.inventory()).devices:
            if device.node == order.node and (device.id == order.device or device.order == order.id):
                self.simulated.pool.leave(device.id)
        return Done(order.device)


class DoesNotKnowTheWord(Broken):
    """Reads `foreign` over: finds nothing of the order attached, and is done."""

    async def detach(self, order: Order) -> Progress:
        return await super().detach(msgspec.structs.replace(order, foreign=False))


class RefusesAndDoesIt(Broken):
    """Takes off what it says it cannot."""

    async def detach(self, order: Order) -> Progress:
        if order.foreign:
            self.simulated.pool.leave(order.device)
            raise Refused("not mine")
        return await super().detach(order)


class RefusesToDetachNothing(Broken):
    """Cannot detach what is not there."""

    async def detach(self, order: Order) -> Progress:
        if all(device.node != order.node for device in (await self.inventory()).devices):
            raise Refused("nothing to detach")
        return await super().detach(order)


class DetachesTooSoon(Broken):
    """Says that a detach is done as soon as it was ordered."""

    async def detach(self, order: Order) -> Progress:
        await super().detach(order)
        return Done(order.device)


class NeverGivesUp(Broken):
    """Takes every failure for a delay."""

    async def attach(self, order: Order) -> Progress:
        answer = await super().attach(order)
        return Working() if isinstance(answer, Failed) else answer


class OneAtATime(Broken):
    """Fails what it cannot start at once."""

    async def attach(self, order: Order) -> Progress:
        if self.simulated.busy:
            return Failed("busy")
        return await super().attach(order)


class RepeatsForEver(Broken):
    """Its transport repeats an attach after the time-out."""

    async def attach(self, order: Order) -> Progress:
        asyncio.get_running_loop().call_later(150, self._again, order)
        return await super().attach(order)

    def _again(self, order: Order) -> None:
        self.simulated.attach(msgspec.structs.replace(order, id=OrderID("again")), self.simulated.clock.now())


class ShowsTheTime(Broken):
    """Puts into the inventory when it was asked for."""

    async def inventory(self) -> Inventory:
        shown = await super().inventory()
        now = self.simulated.clock.now()
        devices = tuple(msgspec.structs.replace(device, since=now) for device in shown.devices)
        machines = (*shown.machines, Machine(NodeName(f"asked at {now}")))
        return msgspec.structs.replace(shown, devices=devices, machines=machines)


class ShowsNothingOfOurs(Broken):
    """Takes all devices for somebody else's."""

    async def inventory(self) -> Inventory:
        shown = await super().inventory()
        devices = tuple(msgspec.structs.replace(device, ours=False) for device in shown.devices)
        return msgspec.structs.replace(shown, devices=devices)


class ShowsAllAsOurs(Broken):
    """Takes all devices for ours."""

    async def inventory(self) -> Inventory:
        shown = await super().inventory()
        devices = tuple(msgspec.structs.replace(device, ours=True) for device in shown.devices)
        return msgspec.structs.replace(shown, devices=devices)


class CountsTwice(Broken):
    """Counts what is attached as free too."""

    async def inventory(self) -> Inventory:
        shown = await super().inventory()
        free = {model: count + len(shown.devices) for model, count in shown.free.items()}
        return msgspec.structs.replace(shown, free=free)


class AnswersOneDevice(Broken):
    """Answers whichever device came to the node first."""

    async def attach(self, order: Order) -> Progress:
        answer = await super().attach(order)
        there = [device for device in (await self.inventory()).devices if device.node == order.node]
        return Done(there[0].id) if isinstance(answer, Done) and there else answer


class ForgetsNodes(Broken):
    """Attaches everything to the node of the first order."""

    async def attach(self, order: Order) -> Progress:
        return await super().attach(msgspec.structs.replace(order, node=NodeName("n0")))


KNOWING = Traits(chooses_device=True, call_timeout=Seconds(120.0))
BLIND = Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(120.0))

BREAKERS: tuple[tuple[str, Traits, Callable[[Manager], Broken]], ...] = (
    ("an attached device is shown on its node, as ours", KNOWING, ShowsNothingOfOurs),
    ("the same order twice is one device", KNOWING, ForgetsIds),
    ("an order survives a restart between call and answer", KNOWING, KeepsIdsInMemory),
    ("a call takes effect within the call time-out or never", BLIND, RepeatsForEver),
    ("an attach to an unknown node fails with a reason", KNOWING, NeverGivesUp),
    ("an attach of an exhausted model fails with a reason", KNOWING, NeverGivesUp),
    ("a detached device is free again", KNOWING, DetachesTooSoon),
    ("the same detach twice is done twice", KNOWING, RefusesToDetachNothing),
    ("a detach of nothing is done and changes nothing", KNOWING, RefusesToDetachNothing),
    ("no order detaches what another attached", KNOWING, TurnsRoundForOthers),
    (
        "what somebody else attached goes only by an order that says so, if at all",
        KNOWING,
        TurnsRoundForOthers,
    ),
    (
        "what somebody else attached goes only by an order that says so, if at all",
        KNOWING,
        DoesNotKnowTheWord,
    ),
    ("what somebody else attached goes only by an order that says so, if at all", KNOWING, RefusesAndDoesIt),
    ("what somebody else attached goes only by an order that says so, if at all", BLIND, ShowsAllAsOurs),
    ("an id closed before its attach never attaches", KNOWING, TurnsRoundForOthers),
    ("an id closed after its attach never attaches again", KNOWING, KeepsIdsInMemory),
    ("a detach of an attach under way leaves nothing behind", KNOWING, TurnsRoundForOthers),
    ("a detached device can go to another node", KNOWING, ForgetsNodes),
    ("two orders for one machine are two devices", KNOWING, AnswersOneDevice),
    ("more orders than jobs are all carried out", KNOWING, OneAtATime),
    ("the inventory stays the same while nothing happens", KNOWING, ShowsTheTime),
    ("free and attached devices add up at every step", KNOWING, CountsTwice),
)


@pytest.mark.parametrize(("promise", "traits", "broken"), BREAKERS)
def test_a_broken_promise_is_found_out(
    promise: str, traits: Traits, broken: Callable[[Manager], Broken]
) -> None:
    (row,) = (row for row in conformance.rows(traits) if row.promise == promise)

    async def main() -> None:
        simulated = manager(traits, Fixed(Seconds(5.0)))
        await row.run(msgspec.structs.replace(bench(simulated), connect=lambda: broken(simulated)))

    with pytest.raises(conformance.Violation):
        loop.run(main())


def test_every_promise_of_the_table_has_an_adapter_that_breaks_it() -> None:
    assert {promise for promise, _, _ in BREAKERS} == {row.promise for row in conformance.TABLE}


@pytest.mark.parametrize("traits", TRAITS)
def test_every_manager_has_promises_to_keep_and_no_two_rows_are_alike(traits: Traits) -> None:
    promises = [row.promise for row in conformance.rows(traits)]
    assert len(promises) == len(set(promises)) >= 12
