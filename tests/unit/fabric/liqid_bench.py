"""A manager of our own behind its Liqid face, and the adapter that speaks to it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from jackfield import fabric
from jackfield.codec import liqid
from jackfield.fabric import FabricSettings, Line
from jackfield.fabric_manager.durations import Distribution, Fixed
from jackfield.fabric_manager.faces.liqid import Liqid, Named
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.fabric import FabricDevice, Order, Progress, Working
from jackfield.model.names import ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock, Retry
from unit.fabric_manager.lab import FABRIC, TOKEN, lab, managing

VARIABLE: Final = "RACK_A_TOKEN"
ENVIRONMENT: Final = {VARIABLE: TOKEN.reveal()}
EFFECT: Final = Seconds(30.0)
QUEUE: Final = Seconds(35.0)
EDIT: Final = Seconds(40.0)


def settings(url: str, **more: object) -> FabricSettings:
    options: dict[str, object] = {
        "user": "jackfield",
        "models": [{"name": "A100"}, {"name": "H100"}],
        "slots": 10,
        "effectSeconds": EFFECT,
        "queueSeconds": QUEUE,
        "editSeconds": EDIT,
        "jobs": 3,
        **more,
    }
    return FabricSettings(
        FABRIC,
        "liqid",
        url,
        token_variable=VARIABLE,
        call_timeout_seconds=Seconds(5.0),
        options=options,
    )


def line(url: str, clock: Clock, **more: object) -> Line:
    return fabric.load(settings(url, **more), ENVIRONMENT, clock)


@asynccontextmanager
async def serving(
    folder: Path, duration: Distribution = Fixed(), clock: Clock | None = None
) -> AsyncIterator[Server]:
    async with (
        managing(folder, lab(duration), clock=clock) as manager,
        Server(manager, (Liqid(),), Gate(TOKEN)) as server,
    ):
        yield server


# --- what tests do with it

ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"), PhysicalID("a-1"))
PROOF = {liqid.KEY_HEADER: TOKEN.reveal()}
SOON = 30.0
"""Real seconds within which anything here must have happened."""

Scene = Callable[[Server, Line], Awaitable[None]]
Ask = Callable[[Order], Awaitable[Progress]]


def play(folder: Path, scene: Scene, seconds: float = 0.0, **more: object) -> None:
    async def main() -> None:
        async with (
            serving(folder, Fixed(Seconds(seconds))) as server,
            line(server.url, server.manager.clock, **more) as fabric,
            asyncio.timeout(SOON),
        ):
            await scene(server, fabric)

    asyncio.run(main())


async def settled(server: Server, call: Ask, order: Order = ORDER) -> Progress:
    """Ask until it is done or has failed."""
    while True:
        try:
            answer = await call(order)
        except Retry:
            answer = Working()
        if not isinstance(answer, Working):
            return answer
        await server.manager.clock.sleep(Seconds(0.5))


async def told(server: Server, call: Ask, order: Order = ORDER) -> Retry:
    """Ask until there is an error, and return it."""
    while True:
        try:
            assert isinstance(await call(order), Working)
        except Retry as error:
            return error
        await server.manager.clock.sleep(Seconds(0.5))


async def there(fabric: Line, node: str = "n-1") -> tuple[FabricDevice, ...]:
    """Return what stands on a node."""
    return tuple(one for one in (await fabric.inventory()).devices if one.node == node)


def edits(server: Server) -> set[str]:
    """Return the machines whose edits are noted as open."""
    return {*server.manager.store.notes("liqid-edits")}


async def posted(server: Server, path: str, node: str = "n-1") -> tuple[int, str]:
    """Ask for something about a machine as somebody else does; return status and words."""
    body = msgspec.json.encode(Named(server.manager).machine(NodeName(node)))
    async with (
        aiohttp.ClientSession(server.url, headers=PROOF) as session,
        session.post(path, data=body) as response,
    ):
        return response.status, liqid.error(await response.read())
