"""A manager of our own behind its NEC face, and somebody who speaks to it as clients do."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.nec import Named, Nec
from jackfield.fabric_manager.hardware import Attached
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import NodeName, PhysicalID, Seconds
from unit.fabric_manager.lab import SMALL, TOKEN, lab, managing, places

BEARER = f"Bearer {TOKEN.reveal()}"
BASIC = f"Basic {base64.b64encode(f'jackfield:{TOKEN.reveal()}'.encode()).decode()}"
APPLY = "/cdim/api/v1/layout-apply"

Json = dict[str, Any]


class Client:
    """Somebody who speaks to the face as its clients do."""

    def __init__(self, manager: Manager, session: aiohttp.ClientSession) -> None:
        self.manager = manager
        self._session = session
        self._named = Named(manager)

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Json]:
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        async with self._session.request(method, path, data=data) as response:
            text = await response.read()
            return response.status, msgspec.json.decode(text) if text else {}

    def step(
        self, number: int, operation: str, device: str, node: str = "n-1", after: tuple[int, ...] = ()
    ) -> Json:
        cpu = self._named.cpus[NodeName(node)]
        subject = cpu if operation in {"boot", "shutdown"} else device
        about = {} if operation in {"boot", "shutdown"} else {"targetCPUID": cpu}
        return {
            "operationID": number,
            "operation": operation,
            "targetDeviceID": subject,
            "dependencies": after,
        } | about

    async def begin(self, *steps: Json) -> str:
        status, answer = await self.call("POST", APPLY, {"procedures": steps})
        assert status == 202, answer
        return str(answer["applyID"])

    async def until(self, job: str, *states: str) -> Json:
        while True:
            status, shown = await self.call("GET", f"{APPLY}/{job}")
            assert status == 200, shown
            if shown["status"] in states and shown.get("rollbackStatus") != "IN_PROGRESS":
                return shown
            await self.manager.clock.sleep(Seconds(0.2))

    async def ended(self, job: str) -> Json:
        return await self.until(job, "COMPLETED", "FAILED", "CANCELED")

    async def there(self) -> dict[str, str]:
        return await places(self.manager, "nec")


Play = Callable[[Client], Awaitable[None]]


def served(folder: Path, play: Play, seconds: float = 0.0, proof: str = BEARER, before: str = "") -> None:
    seeded = (Attached(device=PhysicalID(before), machine=NodeName("n-1")),) if before else ()
    hardware = lab(Fixed(Seconds(seconds)), msgspec.structs.replace(SMALL, attached=seeded))

    async def main() -> None:
        async with (
            managing(folder, hardware) as manager,
            Server(manager, (Nec(),), Gate(TOKEN)) as server,
            aiohttp.ClientSession(server.url, headers={"Authorization": proof}) as session,
            asyncio.timeout(30.0),
        ):
            await play(Client(manager, session))

    asyncio.run(main())


def results(job: Json, name: str = "applyResult") -> dict[int, str]:
    return {one["operationID"]: one["status"] for one in job[name]}
