"""Calls and answers meet every fate, and the manager's deeds are what they would be in earnest."""

from collections.abc import Callable, Coroutine

import msgspec
import pytest

from jackfield.fabric.sights import Sights
from jackfield.model.fabric import Done, Inventory, Machine, Order, Traits, Working
from jackfield.model.names import NEVER, FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.fabric import Call, Fate, SimFabric, Verb
from jackfield.sim.manager import Manager
from jackfield.sim.pool import serial
from jackfield.sim.spec import Batch, FabricSpec

ORDER = Order(OrderID("a"), FabricName("rack0"), NodeName("n0"), ModelName("A100"))
SPEC = FabricSpec(
    name=FabricName("rack0"),
    machines=(Machine(NodeName("n0")),),
    batches=(Batch(ModelName("A100"), 4), Batch(ModelName("H100"), 1)),
    traits=Traits(chooses_device=True, call_timeout=Seconds(60.0)),
    attach=Fixed(Seconds(10.0)),
    detach=Fixed(Seconds(10.0)),
)
BLIND = msgspec.structs.replace(
    SPEC, traits=Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(60.0))
)


class Script:
    """Fates in a row, and then none; remembers what was called."""

    def __init__(self, *fates: Fate) -> None:
        self.fates = list(fates)
        self.calls: list[Call] = []

    def fate(self, call: Call) -> Fate:
        self.calls.append(call)
        return self.fates.pop(0) if self.fates else Fate()


Scenario = Callable[[SimFabric, Manager], Coroutine[None, None, None]]


def play(spec: FabricSpec, script: Script, scenario: Scenario) -> None:
    async def main() -> None:
        manager = Manager(spec, clock.running(), Chance(1))
        await scenario(SimFabric(manager, script), manager)

    loop.run(main())


async def after(seconds: float) -> None:
    await clock.running().sleep(Seconds(seconds))


def attached(manager: Manager) -> int:
    return len(manager.inventory().devices)


@pytest.mark.parametrize(
    ("fate", "seconds", "devices"),
    [
        (Fate(error="503 Service Unavailable"), 0, 0),
        (Fate(error="503 Service Unavailable", slow=Seconds(20.0)), 20, 0),
        (Fate(lost=True), 0, 1),
        (Fate(lost=True, slow=Seconds(20.0)), 20, 1),
        (Fate(slow=NEVER), 60, 1),
        (Fate(slow=Seconds(60.0)), 60, 1),
        (Fate(late=Seconds(30.0)), 0, 1),
        (Fate(late=Seconds(30.0), slow=Seconds(20.0)), 20, 1),
        (Fate(late=Seconds(60.0)), 0, 0),
        (Fate(error="503 Service Unavailable", again=Seconds(5.0)), 0, 0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("spec", [SPEC, BLIND], ids=["with ids", "without"])
def test_the_caller_is_told_to_retry_whatever_the_manager_did(
    spec: FabricSpec, fate: Fate, seconds: int, devices: int
) -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        with pytest.raises(Retry):
            await fabric.attach(ORDER)
        assert clock.running().now() == loop.START + seconds
        await after(100)
        assert attached(manager) == devices

    play(spec, Script(fate), scenario)


@pytest.mark.parametrize(("spec", "devices"), [(SPEC, 1), (BLIND, 2)], ids=["with ids", "without"])
def test_a_call_repeated_on_the_way_is_a_second_device_only_without_ids(
    spec: FabricSpec, devices: int
) -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        assert await fabric.attach(ORDER) == Working()
        await after(100)
        assert attached(manager) == devices

    play(spec, Script(Fate(again=Seconds(5.0))), scenario)


def test_any_number_of_calls_may_be_under_way() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        for _ in range(3):
            with pytest.raises(Retry):
                await fabric.attach(ORDER)
        await after(100)
        assert attached(manager) == 3

    play(BLIND, Script(*[Fate(late=Seconds(delay)) for delay in (30.0, 10.0, 20.0)]), scenario)


def test_a_late_attach_finds_its_id_closed() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        with pytest.raises(Retry):
            await fabric.attach(ORDER)
        assert await fabric.detach(ORDER) == Done()
        await after(100)
        assert attached(manager) == 0

    play(SPEC, Script(Fate(late=Seconds(30.0))), scenario)


def test_a_late_detach_of_a_closed_id_leaves_the_next_order_alone() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        await fabric.attach(ORDER)
        await after(20)
        with pytest.raises(Retry):
            await fabric.detach(ORDER)
        await fabric.detach(ORDER)
        await after(20)
        await fabric.attach(msgspec.structs.replace(ORDER, id=OrderID("b")))
        await after(100)
        assert [device.order for device in manager.inventory().devices] == ["b"]

    play(SPEC, Script(Fate(), Fate(late=Seconds(50.0))), scenario)


def test_a_late_detach_without_ids_pulls_what_is_there_by_then() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        named = msgspec.structs.replace(ORDER, model=ModelName("H100"), device=PhysicalID("0004"))
        await fabric.attach(named)
        await after(20)
        with pytest.raises(Retry):
            await fabric.detach(named)
        await fabric.detach(named)
        await after(20)
        await fabric.attach(msgspec.structs.replace(named, id=OrderID("b")))
        await after(100)
        assert attached(manager) == 0
        assert manager.counts.detaches == 2

    play(BLIND, Script(Fate(), Fate(late=Seconds(40.0))), scenario)


def test_a_manager_may_take_back_a_device_as_long_as_a_call_to_do_so_is_on_its_way() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        await fabric.attach(ORDER)
        await after(20)
        assert not manager.taking_back
        with pytest.raises(Retry):
            await fabric.detach(ORDER)
        await after(29)
        assert (manager.taking_back, attached(manager)) == (True, 1)
        await after(100)
        assert (manager.taking_back, attached(manager)) == (False, 0)

    play(SPEC, Script(Fate(), Fate(late=Seconds(30.0))), scenario)


def test_a_slow_inventory_is_an_old_one() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        await fabric.attach(ORDER)
        answer: Inventory = await fabric.inventory()
        assert answer.devices == ()
        assert attached(manager) == 1
        assert await fabric.inventory() is manager.inventory()

    play(SPEC, Script(Fate(), Fate(slow=Seconds(20.0))), scenario)


@pytest.mark.parametrize("spec", [SPEC, msgspec.structs.replace(SPEC, traits=Traits())])
def test_a_wrong_device_is_answered_and_shown_as_what_it_is(spec: FabricSpec) -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        named = msgspec.structs.replace(ORDER, device=PhysicalID("0000"))
        await fabric.attach(named)
        await after(20)
        assert await fabric.attach(named) == Done(PhysicalID("0004"), serial(FabricName("rack0"), 4))
        (device,) = (one for one in manager.inventory().devices if one.node)
        assert (device.id, device.model) == ("0004", "H100")

    play(spec, Script(Fate(wrong=True)), scenario)


def test_a_wrong_device_is_a_sibling_where_there_is_no_other_model() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        manager.pool.take(ModelName("H100"))
        named = msgspec.structs.replace(ORDER, device=PhysicalID("0000"))
        await fabric.attach(named)
        await after(20)
        assert await fabric.attach(named) == Done(PhysicalID("0001"), serial(FabricName("rack0"), 1))

    play(msgspec.structs.replace(SPEC, traits=Traits()), Script(Fate(wrong=True)), scenario)


def test_faults_are_told_every_call_once() -> None:
    script = Script()

    async def scenario(fabric: SimFabric, _: Manager) -> None:
        await fabric.inventory()
        await fabric.attach(ORDER)
        await after(5)
        await fabric.detach(ORDER)

    play(SPEC, script, scenario)
    assert script.calls == [
        Call(loop.START, FabricName("rack0"), Verb.INVENTORY),
        Call(loop.START, FabricName("rack0"), Verb.ATTACH, OrderID("a")),
        Call(Seconds(loop.START + 5), FabricName("rack0"), Verb.DETACH, OrderID("a")),
    ]


def test_what_the_manager_knows_survives_the_process_that_asked() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        await fabric.attach(ORDER)
        await after(20)
        assert await SimFabric(manager).attach(ORDER) == Done(
            PhysicalID("0000"), serial(FabricName("rack0"), 0)
        )

    play(SPEC, Script(), scenario)


def test_a_process_that_counts_for_itself_knows_nothing_to_be_older_than_its_first_look() -> None:
    async def scenario(fabric: SimFabric, manager: Manager) -> None:
        await fabric.attach(ORDER)
        await after(100)
        anew = SimFabric(manager, sights=Sights(clock.running()))
        for line, since in ((fabric, loop.START + 10), (anew, loop.START + 100)):
            shown = await line.inventory()
            assert {one.since for one in shown.devices} == {since}
            assert await line.inventory() is shown

    play(BLIND, Script(), scenario)
