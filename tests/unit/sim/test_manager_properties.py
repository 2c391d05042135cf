"""Whatever is ordered, and whatever happens to the calls, the hardware stays in order."""

from contextlib import closing, suppress

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jackfield.model.fabric import Done, Failed, Machine, Order, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import PortError
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Uniform
from jackfield.sim.fabric import Call, Fate, SimFabric
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec, Refusals

NODES = (NodeName("n0"), NodeName("n1"))
A100 = ModelName("A100")
SLOTS, DEVICES = 2, 3


class Step(msgspec.Struct, frozen=True):
    """A call, what becomes of it, and how long nothing follows."""

    verb: str
    number: int
    device: int
    fate: Fate
    pause: float


FATES = st.sampled_from(
    [
        *[Fate()] * 4,
        Fate(error="503"),
        Fate(lost=True),
        Fate(late=Seconds(7.0)),
        Fate(again=Seconds(9.0)),
        Fate(slow=Seconds(3.0)),
        Fate(wrong=True),
    ]
)
STEPS = st.lists(
    st.builds(
        Step,
        verb=st.sampled_from(["attach", "attach", "detach", "inventory", "take", "give", "lose"]),
        number=st.integers(0, 5),
        device=st.integers(0, DEVICES - 1),
        fate=FATES,
        pause=st.sampled_from([0.0, 1.0, 8.0, 20.0]),
    ),
    max_size=30,
)
TRAITS = st.builds(
    Traits,
    chooses_device=st.booleans(),
    knows_orders=st.booleans(),
    jobs=st.sampled_from([1, 2, 8]),
    call_timeout=st.just(Seconds(30.0)),
)


class Scripted:
    """The fate of the step under way."""

    def __init__(self) -> None:
        self.next = Fate()

    def fate(self, _: Call) -> Fate:
        return self.next


def device_id(number: int) -> PhysicalID:
    return PhysicalID(f"rack0-{number:04d}")


def order(step: Step) -> Order:
    """The same number is the same order, device and all."""
    device = device_id(step.number % DEVICES)
    return Order(OrderID(f"o{step.number}"), FabricName("rack0"), NODES[step.number % 2], A100, device)


class World:
    """A manager, a line to it, and what must hold at every turn."""

    def __init__(self, traits: Traits, virtual: loop.VirtualLoop) -> None:
        spec = FabricSpec(
            name=FabricName("rack0"),
            machines=tuple(Machine(node, SLOTS) for node in NODES),
            batches=(Batch(A100, DEVICES),),
            traits=traits,
            attach=Uniform(Seconds(0.0), Seconds(20.0)),
            detach=Uniform(Seconds(0.0), Seconds(10.0)),
            refusals=Refusals(attach=0.2, detach=0.2),
        )
        self.traits = traits
        self.script = Scripted()
        self.manager = Manager(spec, clock.VirtualClock(virtual), Chance(1))
        self.fabric = SimFabric(self.manager, self.script)
        self.closed: set[OrderID] = set()
        self.lost = 0
        virtual.on_turn = self.check

    async def take(self, step: Step) -> None:
        self.script.next = step.fate
        with suppress(PortError):
            await self.call(step.verb, order(step))
        self.others(step)
        await self.manager.clock.sleep(Seconds(step.pause))

    async def call(self, verb: str, wanted: Order) -> None:
        if verb == "attach":
            answer = await self.fabric.attach(wanted)
            known = self.traits.knows_orders and wanted.id in self.closed
            assert isinstance(answer, Failed) or not known
        if verb == "detach" and isinstance(await self.fabric.detach(wanted), Done):
            self.closed.add(wanted.id)
        if verb == "inventory":
            await self.fabric.inventory()

    def others(self, step: Step) -> None:
        """Do what other people do."""
        device = device_id(step.device)
        if step.verb == "take":
            self.manager.pool.take(A100)
        if step.verb == "give":
            self.manager.pool.give_back(device)
        if step.verb == "lose" and self.lost < 1 and self.manager.pool.device(device):
            self.lost += 1
            self.manager.lose(device)

    def check(self) -> None:
        inventory = self.manager.inventory()
        history = self.manager.pool.history
        for moves in history.values():
            assert [move.present for move in moves] == [at % 2 == 0 for at in range(len(moves))]
            for came, went in zip(moves[::2], moves[1::2], strict=False):
                assert (came.node, came.at <= went.at) == (went.node, True)
        for node in NODES:
            assert sum(device.node == node for device in inventory.devices) <= SLOTS
        if self.traits.knows_orders:
            arrivals = [move.device.order for moves in history.values() for move in moves if move.present]
            ours = [arrival for arrival in arrivals if arrival]
            assert len(ours) == len(set(ours)), "an id is executed once at most"

    def check_quiet(self) -> None:
        """When nothing is under way, all devices are somewhere and the slots are counted right."""
        assert not self.manager.busy
        pool = self.manager.pool
        existing = [device for device in map(pool.device, pool.history) if device]
        assert len(existing) == DEVICES - self.lost
        if self.traits.chooses_device:
            free = sum(not device.node for device in existing)
            assert self.manager.inventory().free == {A100: free}
        for order_id in self.closed if self.traits.knows_orders else ():
            assert all(device.order != order_id for device in existing)
        room = SLOTS - sum(device.node == NODES[0] for device in existing)
        spare = sum(not device.node for device in existing)
        anything = Order(OrderID("x"), pool.spec.name, NODES[0], A100)
        got = [not isinstance(pool.reserve(anything), Failed) for _ in range(DEVICES)]
        assert sum(got) == min(room, spare)


@settings(max_examples=150, deadline=None)
@given(TRAITS, STEPS)
def test_no_device_is_ever_in_two_places(traits: Traits, steps: list[Step]) -> None:
    async def main(world: World) -> None:
        for step in steps:
            await world.take(step)
        world.script.next = Fate()
        await world.manager.clock.sleep(Seconds(1_000.0))
        world.check_quiet()

    with closing(loop.VirtualLoop()) as virtual:
        virtual.run_until_complete(main(World(traits, virtual)))
