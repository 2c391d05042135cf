"""What the Redfish face answered stays true when the manager is killed: reservations, sessions, tasks."""

import asyncio
import signal
import time
from pathlib import Path

import aiohttp
import yaml

from jackfield.fabric_manager.faces.redfish import reservations
from jackfield.fabric_manager.folder import Folder
from unit.fabric_manager.redfish_bench import SESSIONS, Client, started

LAB = {
    "fabric": "rack",
    "machines": [{"name": "n", "count": 2}],
    "devices": [{"name": "a", "count": 3, "model": "A100"}],
    "times": {"attach": {"kind": "fixed", "seconds": 2.0}},
}


def test_reservations_sessions_and_tasks_survive_a_kill(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.make()
    folder.inventory.write_text(yaml.safe_dump(LAB))

    begun = time.monotonic()

    async def before() -> tuple[str, str]:
        process = await started(folder)
        login = {"UserName": "jackfield", "Password": folder.token.read_text().strip()}
        async with aiohttp.ClientSession(folder.url.read_text().strip()) as session:
            nobody = Client(session, {})
            token = (await nobody.ask("POST", SESSIONS, login)).headers["X-Auth-Token"]
            client = nobody.with_proof({"X-Auth-Token": token})
            assert (await client.reserve("a-2")).status == 200
            added = await client.act("Add", "n-1", "a-1", Prefer="respond-async")
            assert added.status == 202
            process.send_signal(signal.SIGKILL)  # the very moment after the answer
        await process.wait()
        return token, added.headers["Location"]

    async def after(token: str, monitor: str) -> None:
        process = await started(folder)
        async with aiohttp.ClientSession(folder.url.read_text().strip()) as session:
            client = Client(session, {"X-Auth-Token": token})
            state, reserved = await client.state("a-2")
            in_time = time.monotonic() - begun < reservations.LASTS
            assert (state, reserved or not in_time) == ("Unused", True)
            assert (await client.ended(monitor)).status == 204
            assert await client.state("a-1") == ("Composed", False)
            assert await client.blocks("n-1") == ["compute-n-1", "a-1"]
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0

    asyncio.run(after(*asyncio.run(before())))
