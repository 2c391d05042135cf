"""A lab with two switches behind the Redfish face, and a client that shows all there is to an answer."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from jackfield.fabric_manager import hardware
from jackfield.fabric_manager.durations import Distribution, Fixed
from jackfield.fabric_manager.faces.native import Native
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.fabric_manager.folder import Folder
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import Seconds
from jackfield.ports import Clock
from unit.fabric_manager.lab import TOKEN, lab, managing

EVER: Final = Seconds(1e9)
"""Longer than any test, by a clock that is a hundred times as fast."""
HANGS: Final = 300.0
"""Seconds after which a test is given up that waits for what never comes."""
LAB: Final = hardware.parse(
    """
fabric: rack-a
switches: [{name: s1, powerWatts: 1000}, {name: s2}]
machines:
  - {name: n, count: 2, slots: 3, ports: [{switch: s1, linkWidth: 8}]}
  - {name: both, ports: [{switch: s1}, {switch: s2}]}
devices:
  - {name: a, model: A100, count: 4, switch: s1, powerWatts: 250,
     attributes: {vendor: NVIDIA}, capacity: {memory: 80Gi}}
  - {name: f, model: VU9P, type: fpga, switch: s1}
  - {name: c, model: CXL-256, type: cxlmemory, count: 2, switch: s2, capacity: {memory: 256Gi}}
  - {name: k, model: NIC-200, type: nic, switch: s2}
  - {name: odd name, model: X, type: quantum}
attached: [{device: k-1, machine: both}]
limits: {jobs: 2}
""",
    "the bench",
)

ROOT: Final = "/redfish/v1"
BLOCKS: Final = f"{ROOT}/CompositionService/ResourceBlocks"
SYSTEMS: Final = f"{ROOT}/Systems"
SESSIONS: Final = f"{ROOT}/SessionService/Sessions"
LOGIN: Final = {"UserName": "jackfield", "Password": TOKEN.reveal()}
BASIC: Final = aiohttp.encode_basic_auth("jackfield", TOKEN.reveal())


class ByHand:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.at = 1_700_000_000.0

    def now(self) -> Seconds:
        return Seconds(self.at)

    async def sleep(self, _: Seconds) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - a clock


class Answer(msgspec.Struct, frozen=True):
    """All there is to an answer."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def messages(self) -> list[str]:
        """What its messages are called."""
        told = self.body.get("error", self.body).get("@Message.ExtendedInfo", [])
        return [one["MessageId"].rpartition(".")[2] for one in told]

    @property
    def words(self) -> str:
        """What it says."""
        return str(self.body["error"]["message"])


class Client:
    """Somebody who asks."""

    def __init__(self, session: aiohttp.ClientSession, proof: Mapping[str, str]) -> None:
        self._session = session
        self._proof = dict(proof)

    def with_proof(self, proof: Mapping[str, str]) -> "Client":
        """Return somebody else."""
        return Client(self._session, proof)

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Ask; headers are spelt with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        kind = {"Content-Type": "application/json"} if sent is not None else {}
        async with self._session.request(
            method, path, data=sent, headers={**self._proof, **kind, **named}
        ) as answer:
            text = await answer.read()
            json = text and answer.content_type == "application/json"
            return Answer(answer.status, answer.headers, msgspec.json.decode(text) if json else text)

    async def get(self, path: str, **headers: str) -> Answer:
        """Read."""
        return await self.ask("GET", path, **headers)

    async def state(self, block: str) -> tuple[str, bool]:
        """Return what a block is doing, and whether it is reserved."""
        status = (await self.get(f"{BLOCKS}/{block}")).body["CompositionStatus"]
        return status["CompositionState"], status["Reserved"]

    async def blocks(self, system: str) -> list[str]:
        """Return what a machine is made of."""
        links = (await self.get(f"{SYSTEMS}/{system}")).body["Links"]["ResourceBlocks"]
        return [one["@odata.id"].rpartition("/")[2] for one in links]

    async def act(self, verb: str, system: str, block: str, **headers: str) -> Answer:
        """Add or remove a block."""
        path = f"{SYSTEMS}/{system}/Actions/ComputerSystem.{verb}ResourceBlock"
        return await self.ask("POST", path, {"ResourceBlock": link(block)}, **headers)

    async def reserve(self, block: str, *, reserved: bool = True, **headers: str) -> Answer:
        """Reserve a block, or let it go."""
        body = {"CompositionStatus": {"Reserved": reserved}}
        return await self.ask("PATCH", f"{BLOCKS}/{block}", body, **headers)

    async def log_in(self) -> "Client":
        """Return the same with a session of its own."""
        answer = await self.with_proof({}).ask("POST", SESSIONS, LOGIN)
        assert answer.status == 201
        return self.with_proof({"X-Auth-Token": answer.headers["X-Auth-Token"]})

    async def followed(self, answer: Answer) -> Answer:
        """Return what comes in the end of what was answered with a task."""
        assert answer.status == 202
        return await self.ended(answer.headers["Location"])

    async def ended(self, monitor: str) -> Answer:
        """Return what a task monitor answers in the end."""
        while (answer := await self.get(monitor)).status == 202:  # noqa: ASYNC110 - real sockets take real time
            await asyncio.sleep(0.01)  # noqa: TID251 - likewise
        return answer


def link(block: str) -> dict[str, str]:
    return {"@odata.id": f"{BLOCKS}/{block}"}


Play = Callable[[Server, Client], Awaitable[None]]


def served(
    folder: Path,
    play: Play,
    duration: Distribution = Fixed(),
    face: Redfish | None = None,
    clock: Clock | None = None,
) -> None:
    """Play with a manager of this folder; again, it is the restarted one."""

    async def main() -> None:
        shown = face or Redfish(Seconds(30.0), EVER, EVER)
        async with (
            managing(folder, lab(duration, LAB.lab), clock=clock) as manager,
            Server(manager, (shown, Native()), Gate(TOKEN)) as server,
            aiohttp.ClientSession(server.url) as session,
            asyncio.timeout(HANGS),
        ):
            await play(server, Client(session, {"Authorization": BASIC}))

    asyncio.run(main())


async def started(folder: Folder) -> asyncio.subprocess.Process:
    """Return a manager of this folder, as a process."""
    folder.url.unlink(missing_ok=True)
    command = ("-m", "jackfield", "fabric", "serve", "--state", str(folder.path), "--port", "0")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.DEVNULL
    )
    while not folder.url.exists():
        assert process.returncode is None
        await asyncio.sleep(0.02)  # noqa: TID251 - real processes take real time
    return process
