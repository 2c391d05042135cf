"""A small lab, and a manager of it that is served while a test needs it."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.fabric_manager import backends
from jackfield.fabric_manager.backends import Backend
from jackfield.fabric_manager.durations import Distribution, Fixed, Times
from jackfield.fabric_manager.faces import registry
from jackfield.fabric_manager.hardware import Batch, Hardware, Lab, Limits, Machine
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.server import Gate, Server
from jackfield.fabric_manager.store import Store
from jackfield.model.fabric import Order, Progress
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock
from unit.sim.hasty import Hasty

TOKEN = Secret("a-token-of-this-test")
FABRIC = FabricName("rack-a")
SMALL = Lab(
    fabric=FABRIC,
    machines=(Machine(name=NodeName("n"), count=2, slots=10),),
    devices=(
        Batch(name="a", model=ModelName("A100"), count=10),
        Batch(name="h", model=ModelName("H100"), count=1),
    ),
    limits=Limits(jobs=3, call_timeout_seconds=Seconds(20.0)),
)


def lab(duration: Distribution = Fixed(), base: Lab = SMALL) -> Hardware:
    return Hardware(msgspec.structs.replace(base, times=Times(duration, duration)))


def order(name: str, device: str = "a-1", node: str = "n-1", model: str = "A100") -> Order:
    return Order(OrderID(name), FABRIC, NodeName(node), ModelName(model), PhysicalID(device))


@asynccontextmanager
async def managing(
    folder: Path, of: Hardware, backend: Backend | None = None, clock: Clock | None = None
) -> AsyncIterator[Manager]:
    store = Store(folder / "manager.db", of.name)
    try:
        time = clock or Hasty()
        chance = random.Random("lab")  # noqa: S311 - no secret is made of it
        moved = backend or backends.of(of.lab.backend, folder / "lock", time)
        async with Manager(of, store, moved, time, chance) as manager:
            yield manager
    finally:
        store.close()


@asynccontextmanager
async def serving(folder: Path, of: Hardware, gate: Gate = Gate(TOKEN)) -> AsyncIterator[Server]:
    async with (
        managing(folder, of) as manager,
        Server(manager, registry.chosen(()), gate) as server,
    ):
        yield server


def line(server: Server) -> NativeFabric:
    settings = FabricSettings(FABRIC, "native", server.url, call_timeout_seconds=Seconds(5.0))
    return NativeFabric(settings, lambda: TOKEN)


# --- without a wire

SOON = Seconds(5.0)
"""Real seconds within which anything here must happen."""


async def attached(manager: Manager, of: Order, owner: str = "native") -> Progress:
    return await manager.settle(lambda: manager.attach(of, owner), of.id, SOON)


async def detached(manager: Manager, of: Order, owner: str = "native") -> Progress:
    return await manager.settle(lambda: manager.detach(of, owner), of.id, SOON)


async def places(manager: Manager, owner: str = "native") -> dict[str, str]:
    shown = await manager.inventory(owner)
    return {str(one.id): str(one.node) for one in shown.devices if one.node}


def on(folder: Path, of: Hardware, play: Callable[[Manager], Awaitable[None]]) -> None:
    """Play with a manager of this folder; again, it is the restarted one."""

    async def main() -> None:
        async with managing(folder, of) as manager:
            await play(manager)

    asyncio.run(main())
