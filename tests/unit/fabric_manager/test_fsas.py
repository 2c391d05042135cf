"""The Fsas face gives tokens only to those who know the manager's, takes only its own, and survives a restart."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest

from jackfield.codec import fsas
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.fsas import Fsas, Named
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import NodeName, Seconds
from unit.fabric_manager.lab import TOKEN, lab, managing

LOGIN = fsas.token_path("cdi")
PASSWORD = {"grant_type": "password", "username": "anybody", "password": TOKEN.reveal()}
CLIENT = {"grant_type": "client_credentials", "client_id": "any", "client_secret": TOKEN.reveal()}
TENANT = "00000000-1111-2222-3333-444444444444"
CLUSTER = "00000000-5555-6666-7777-888888888888"
OWN = {"Authorization": f"Bearer {TOKEN.reveal()}"}

Play = Callable[[Server, aiohttp.ClientSession], Awaitable[None]]


def served(folder: Path, play: Play, seconds: float = 0.0) -> None:
    async def main() -> None:
        async with (
            managing(folder, lab(Fixed(Seconds(seconds)))) as manager,
            Server(manager, (Fsas(Seconds(100.0)),), Gate(TOKEN)) as server,
            aiohttp.ClientSession(server.url) as session,
        ):
            await play(server, session)

    asyncio.run(main())


async def log_in(session: aiohttp.ClientSession, form: object) -> tuple[int, str]:
    async with session.post(LOGIN, data=form) as response:
        answer = msgspec.json.decode(await response.read())
        return response.status, answer.get("access_token") or answer["error"]


async def machines(session: aiohttp.ClientSession, proof: str) -> int:
    headers = {"Authorization": proof}
    async with session.get(fsas.machines_path(TENANT), headers=headers) as response:
        return response.status


@pytest.mark.parametrize("form", [PASSWORD, CLIENT])
def test_who_knows_the_token_is_given_one_that_ends(tmp_path: Path, form: dict[str, str]) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        status, token = await log_in(session, form)
        assert (status, await machines(session, f"Bearer {token}")) == (200, 200)
        assert TOKEN.reveal() not in token
        await server.manager.clock.sleep(Seconds(101.0))
        assert await machines(session, f"Bearer {token}") == 401

    served(tmp_path, play)


@pytest.mark.parametrize(
    "form",
    [
        {},
        b"\xff\xfe",
        "&".join(f"a{number}=b" for number in range(1000)),
        {**PASSWORD, "password": "wrong"},
        {**PASSWORD, "grant_type": "client_credentials"},
        {**CLIENT, "grant_type": "password"},
        {**PASSWORD, "grant_type": "magic"},
    ],
)
def test_who_does_not_know_the_token_is_given_none(tmp_path: Path, form: object) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        assert await log_in(session, form) == (401, "invalid_grant")

    served(tmp_path, play)


def test_a_token_that_was_made_elsewhere_opens_nothing(tmp_path: Path) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        token = (await log_in(session, PASSWORD))[1]
        head, payload, signature = token.split(".")
        later = msgspec.json.encode({"exp": 9e9}).hex()
        for shown in (
            f"{head}.{later}.{signature}",
            f"{head}.{payload}.",
            f"{head}.{payload}",
            "..",
            "é.é.é",
            token[:-1],
        ):
            assert await machines(session, f"Bearer {shown}") == 401
        assert await machines(session, f"Basic {token}") == 401

    served(tmp_path, play)


def machine_uuid(server: Server, node: str) -> str:
    return Named(server.manager).uuids[NodeName(node)]


async def counted(server: Server, session: aiohttp.ClientSession) -> fsas.CmSpec:
    path = fsas.cm_machine_path(TENANT, CLUSTER, machine_uuid(server, "n-1"))
    async with session.get(path, headers=OWN) as response:
        specs = fsas.cm_machine(await response.read()).resspecs or ()
    return next(one for one in specs if one.model == "A100")


async def resized(server: Server, session: aiohttp.ClientSession, resize: fsas.Resize) -> int:
    path = fsas.resize_path(TENANT, CLUSTER, machine_uuid(server, "n-1"))
    async with session.post(path, data=fsas.encode(resize), headers=OWN) as response:
        return response.status


def test_what_failed_to_come_stays_in_the_list_over_a_restart_until_it_is_removed(tmp_path: Path) -> None:
    async def before(server: Server, session: aiohttp.ClientSession) -> None:
        spec = await counted(server, session)
        await server.manager.set_fault(Fault(Kind.FAIL, verb="attach", times=1, reason="no link"))
        assert await resized(server, session, fsas.Resize(fsas.Increase(spec.spec_uuid, 2))) == 200
        while server.manager.books.unfinished():
            await server.manager.clock.sleep(Seconds(1.0))
        assert (await counted(server, session)).device_count == 2

    async def after(server: Server, session: aiohttp.ClientSession) -> None:
        spec = await counted(server, session)
        shown = {one.status: one for one in spec.devices or ()}
        assert (spec.device_count, [*shown]) == (2, [fsas.ADD_COMPLETE, fsas.ADD_FAILED])
        failed = shown[fsas.ADD_FAILED]
        assert failed.status_reason == "no link"
        removal = fsas.Remove(spec.spec_uuid, 1, (failed.device_id or "",))
        wrong = msgspec.structs.replace(removal, device_count=0)
        assert await resized(server, session, fsas.Resize(remove_resources=wrong)) == 400
        assert await resized(server, session, fsas.Resize(remove_resources=removal)) == 200
        assert [one.status for one in (await counted(server, session)).devices or ()] == [fsas.ADD_COMPLETE]
        assert await resized(server, session, fsas.Resize(remove_resources=removal)) == 404
        assert await resized(server, session, fsas.Resize()) == 400

    served(tmp_path, before, 1.0)
    served(tmp_path, after)
