"""A fabric of two machines and six devices, and the words to order from its manager."""

from collections.abc import Callable, Coroutine

import msgspec

from jackfield.model.fabric import FabricDevice, Machine, Order, Progress, Traits
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.sim import clock, loop
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.manager import Manager
from jackfield.sim.spec import Batch, FabricSpec

N0, N1 = NodeName("n0"), NodeName("n1")
A100, H100 = ModelName("A100"), ModelName("H100")
FABRIC = FabricName("rack0")
TEN = Fixed(Seconds(10.0))

SPEC = FabricSpec(
    name=FABRIC,
    machines=(Machine(N0, 4), Machine(N1, 4)),
    batches=(Batch(A100, 4, "s0"), Batch(H100, 2, "s1")),
    attach=TEN,
    detach=TEN,
)
CHOOSING = msgspec.structs.replace(SPEC, traits=Traits(chooses_device=True))
BLIND = msgspec.structs.replace(
    SPEC, traits=Traits(chooses_device=True, knows_orders=False, call_timeout=Seconds(60.0))
)
TOLD = msgspec.structs.replace(SPEC, traits=Traits(knows_orders=False, call_timeout=Seconds(60.0)))

Scenario = Callable[[Manager], Coroutine[None, None, None]]


def order(name: str = "a", node: NodeName = N0, model: ModelName = A100, device: str = "") -> Order:
    return Order(OrderID(name), FABRIC, node, model, PhysicalID(device))


def play(spec: FabricSpec, scenario: Scenario, seed: str = "1") -> None:
    async def main() -> None:
        await scenario(Manager(spec, clock.running(), Chance(seed)))

    loop.run(main())


def with_jobs(spec: FabricSpec, jobs: int) -> FabricSpec:
    return msgspec.structs.replace(spec, traits=msgspec.structs.replace(spec.traits, jobs=jobs))


async def after(seconds: float) -> Seconds:
    """Wait, and let everybody else do what they have to do at that moment."""
    await clock.running().sleep(Seconds(seconds))
    for _ in range(10):
        await clock.running().sleep(Seconds(0.0))
    return clock.running().now()


def attach(manager: Manager, wanted: Order) -> Progress:
    return manager.attach(wanted, manager.clock.now())


def detach(manager: Manager, wanted: Order) -> Progress:
    return manager.detach(wanted, manager.clock.now())


def on(manager: Manager, node: NodeName) -> list[PhysicalID]:
    return [device.id for device in manager.inventory().devices if device.node == node]


def shown(manager: Manager, device: str) -> FabricDevice:
    return next(one for one in manager.inventory().devices if one.id == device)
