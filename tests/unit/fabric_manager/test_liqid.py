"""The face of a Liqid Director: edits are one at a time, survive a restart, and change nothing before reprogramming."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest

from jackfield.codec import liqid
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces.liqid import Named
from jackfield.fabric_manager.server import Server
from jackfield.model.names import NodeName, Seconds
from unit.fabric.liqid_bench import PROOF, edits, serving
from unit.fabric_manager.lab import TOKEN, places

Scene = Callable[[Server, aiohttp.ClientSession], Awaitable[None]]


def play(folder: Path, scene: Scene, seconds: float = 0.0) -> None:
    async def main() -> None:
        async with (
            serving(folder, Fixed(Seconds(seconds))) as server,
            aiohttp.ClientSession(server.url, headers=PROOF) as session,
            asyncio.timeout(30.0),
        ):
            await scene(server, session)

    asyncio.run(main())


async def asked(
    session: aiohttp.ClientSession, method: str, path: str, body: bytes = b""
) -> tuple[int, bytes]:
    async with session.request(method, path, data=body or None) as response:
        return response.status, await response.read()


def machine(server: Server, node: str = "n-1") -> bytes:
    return msgspec.json.encode(Named(server.manager).machine(NodeName(node)))


def relation(server: Server, device: str, node: str = "n-1") -> bytes:
    status = msgspec.json.encode(liqid.Status(device))
    group = msgspec.json.encode(Named(server.manager).group)
    return liqid.related(status, group, machine(server, node))


GPU = liqid.KINDS["gpu"].relation


async def edited(server: Server, session: aiohttp.ClientSession, method: str, device: str) -> None:
    assert (await asked(session, "POST", liqid.EDIT, machine(server)))[0] == 200
    assert (await asked(session, method, GPU, relation(server, device)))[0] == 200
    assert (await asked(session, "POST", liqid.REPROGRAM, machine(server)))[0] == 200
    while (await asked(session, "POST", liqid.EDIT_CANCEL, machine(server)))[0] == 409:
        await server.manager.clock.sleep(Seconds(0.5))


def test_a_device_comes_with_reprogramming_and_goes_with_it(tmp_path: Path) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession) -> None:
        await edited(server, session, "POST", "a-1")
        assert await places(server.manager, "liqid") == {"a-1": "n-1"}
        _, body = await asked(session, "GET", f"{liqid.PREDEVICES}?mach_id=1&dev_type=gpu")
        (shown,) = liqid.predevices(body)
        assert (shown.name, shown.machine, shown.group, shown.mname) == ("a-1", 1, 1, "n-1")
        _, body = await asked(session, "GET", f"{liqid.PREDEVICES}?mach_id=n/a")
        assert len(liqid.predevices(body)) == 10
        await edited(server, session, "DELETE", "a-1")
        assert await places(server.manager, "liqid") == {}

    play(tmp_path, scene, 1.0)


def test_an_edit_changes_nothing_until_it_is_carried_out(tmp_path: Path) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession) -> None:
        assert (await asked(session, "POST", liqid.EDIT, machine(server)))[0] == 200
        assert (await asked(session, "POST", GPU, relation(server, "a-1")))[0] == 200
        assert await places(server.manager, "liqid") == {}
        assert (await asked(session, "POST", liqid.EDIT, machine(server, "n-2")))[0] == 200
        status, body = await asked(session, "POST", GPU, relation(server, "a-1", "n-2"))
        assert (status, liqid.error(body)) == (409, "409: device a-1 is being moved")
        assert (await asked(session, "POST", liqid.EDIT_CANCEL, machine(server)))[0] == 200
        assert (await asked(session, "POST", GPU, relation(server, "a-1", "n-2")))[0] == 200
        assert server.manager.books.holder(Named(server.manager).devices["a-1"]) is None

    play(tmp_path, scene)


def test_an_edit_and_a_key_survive_a_restart(tmp_path: Path) -> None:
    keys: list[str] = []

    async def before(server: Server, session: aiohttp.ClientSession) -> None:
        _, body = await asked(session, "POST", liqid.digest_path("mine"))
        keys.append(liqid.digest(body))
        assert (await asked(session, "POST", liqid.EDIT, machine(server)))[0] == 200
        assert (await asked(session, "POST", GPU, relation(server, "a-1")))[0] == 200

    async def after(server: Server, session: aiohttp.ClientSession) -> None:
        assert edits(server) == {"n-1"}
        status, body = await asked(session, "POST", liqid.EDIT, machine(server))
        assert (status, liqid.error(body)) == (409, "409: machine n-1 is being edited or reprogrammed")
        async with aiohttp.ClientSession(server.url, headers={liqid.KEY_HEADER: keys[0]}) as other:
            assert (await asked(other, "POST", liqid.REPROGRAM, machine(server)))[0] == 200
            while await places(server.manager, "liqid") != {"a-1": "n-1"}:
                await server.manager.clock.sleep(Seconds(0.5))
            assert (await asked(other, "DELETE", liqid.digest_path("mine")))[0] == 200
            assert (await asked(other, "GET", liqid.MACHINES))[0] == 401
        assert TOKEN.reveal() not in keys[0]

    play(tmp_path, before)
    play(tmp_path, after)


REFUSED = (
    (f"POST {liqid.EDIT_CANCEL}", "machine", "400: machine n-1 is not being edited"),
    (f"POST {liqid.REPROGRAM}", "machine", "400: machine n-1 is not being edited"),
    (f"POST {liqid.REPROGRAM_CANCEL}", "machine", "400: machine n-1 is not being reprogrammed"),
    (f"POST {GPU}", "relation", "400: machine n-1 is not being edited"),
    (f"POST {liqid.KINDS['fpga'].relation}", "relation", "404: there is no device a-1 of this kind"),
    (f"POST {liqid.EDIT}", "nonsense", "400: the request is not understood: "),
    (f"POST {GPU}", "nonsense", "400: the request is not understood: "),
    (f"GET {liqid.PREFIX}/status/tpu", "", "404: there are no devices of the kind tpu"),
    (f"DELETE {liqid.digest_path('nobody')}", "", "404: there is no key with the label nobody"),
)


@pytest.mark.parametrize(("call", "what", "words"), REFUSED)
def test_what_cannot_be_done_is_refused(tmp_path: Path, call: str, what: str, words: str) -> None:
    async def scene(server: Server, session: aiohttp.ClientSession) -> None:
        bodies = {"machine": machine(server), "relation": relation(server, "a-1"), "nonsense": b"[}"}
        method, _, path = call.partition(" ")
        status, body = await asked(session, method, path, bodies.get(what, b""))
        assert liqid.error(body).startswith(words)
        assert str(status) == words.partition(":")[0]

    play(tmp_path, scene)
