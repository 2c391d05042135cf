"""A manager of our own behind its NEC face, and the adapter that speaks to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from jackfield import fabric
from jackfield.codec import nec
from jackfield.codec.nec import Operation, Procedure
from jackfield.fabric import FabricSettings, Line
from jackfield.fabric_manager.durations import Distribution, Fixed
from jackfield.fabric_manager.faces.nec import Named, Nec
from jackfield.fabric_manager.hardware import Lab
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.fabric import FabricDevice, Order, Progress, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock, Retry
from unit.fabric_manager.lab import FABRIC, SMALL, TOKEN, lab, managing

VARIABLE: Final = "RACK_A_TOKEN"
ENVIRONMENT: Final = {VARIABLE: TOKEN.reveal()}
EFFECT: Final = Seconds(8.0)
QUEUE: Final = Seconds(12.0)


def settings(url: str, **more: object) -> FabricSettings:
    options: dict[str, object] = {
        "models": [{"name": "A100"}, {"name": "H100"}],
        "slots": 10,
        "effectSeconds": EFFECT,
        "queueSeconds": QUEUE,
        **more,
    }
    return FabricSettings(
        FABRIC,
        "nec",
        url,
        token_variable=VARIABLE,
        call_timeout_seconds=Seconds(5.0),
        options=options,
    )


def line(url: str, clock: Clock, **more: object) -> Line:
    return fabric.load(settings(url, **more), ENVIRONMENT, clock)


@asynccontextmanager
async def serving(
    folder: Path, duration: Distribution = Fixed(), clock: Clock | None = None, base: Lab = SMALL
) -> AsyncIterator[Server]:
    async with (
        managing(folder, lab(duration, base), clock=clock) as manager,
        Server(manager, (Nec(),), Gate(TOKEN)) as server,
    ):
        yield server


# --- what tests do with it

ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID("a-1"))
T = Seconds(EFFECT + QUEUE)
PROOF = {"Authorization": f"Bearer {TOKEN.reveal()}"}

Option = str | float | list[str] | list[dict[str, str]] | dict[str, str]
Scene = Callable[[Server, Line], Awaitable[None]]


def play(folder: Path, scene: Scene, seconds: float = 0.0, base: Lab = SMALL, **more: Option) -> None:
    async def main() -> None:
        async with (
            serving(folder, Fixed(Seconds(seconds)), base=base) as server,
            line(server.url, server.manager.clock, **more) as fabric,
            asyncio.timeout(30.0),
        ):
            await scene(server, fabric)

    asyncio.run(main())


async def ask(call: Callable[[Order], Awaitable[Progress]], order: Order) -> Progress:
    try:
        return await call(order)
    except Retry:
        return Working()


async def settled(
    server: Server, call: Callable[[Order], Awaitable[Progress]], order: Order = ORDER
) -> Progress:
    while isinstance(answer := await ask(call, order), Working):
        await server.manager.clock.sleep(Seconds(0.5))
    return answer


async def told(server: Server, call: Callable[[Order], Awaitable[Progress]]) -> Retry:
    """Ask until there is an error, and return it."""
    while True:
        try:
            assert isinstance(await call(ORDER), Working)
        except Retry as error:
            return error
        await server.manager.clock.sleep(Seconds(0.5))


async def there(fabric: Line, node: str = "n-1") -> tuple[FabricDevice, ...]:
    """Return what stands on a node, however often one must ask."""
    while True:
        try:
            return tuple(one for one in (await fabric.inventory()).devices if one.node == node)
        except Retry:
            continue


def attaches(server: Server) -> int:
    """Return how often the manager attached anything."""
    return sum(event.what == "attached" for event in server.manager.store.events(0))


def other(number: int, node: str = "n-1") -> Order:
    return msgspec.structs.replace(
        ORDER, id=OrderID(f"o-{number}"), node=NodeName(node), device=PhysicalID(f"a-{number}")
    )


async def posted(server: Server, device: str, node: str = "n-2", verb: Operation = Operation.CONNECT) -> str:
    """Begin a job as somebody else does."""
    cpu = Named(server.manager).cpus[NodeName(node)]
    body = nec.encode(nec.Procedures((Procedure(7, verb, (), target_cpu=cpu, target_device=device),)))
    async with (
        aiohttp.ClientSession(server.url, headers=PROOF) as session,
        session.post(nec.APPLIES, data=body) as response,
    ):
        assert response.status == 202
        return nec.applied(await response.read())


async def put(server: Server, job: str, action: str) -> None:
    path = f"{nec.apply_path(job)}?action={action}"
    async with (
        aiohttp.ClientSession(server.url, headers=PROOF) as session,
        session.put(path) as response,
    ):
        assert response.status == 202


async def jobs(server: Server) -> tuple[nec.Job, ...]:
    """Return all jobs, the oldest first."""
    async with (
        aiohttp.ClientSession(server.url, headers=PROOF) as session,
        session.get(f"{nec.newest_path()}0") as response,
    ):
        return nec.jobs(await response.read())[::-1]
