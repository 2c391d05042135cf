"""The door: who comes in, what is refused early, and how faults look from outside."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
import trustme
from aiohttp import web

from jackfield.codec import native
from jackfield.door import Patience
from jackfield.fabric_manager.faces import Desk, registry
from jackfield.fabric_manager.faces.native import Native
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.server import BODY_BYTES_MAX, Gate, Server
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Fabric, Refused, Retry
from unit.fabric_manager.lab import FABRIC, TOKEN, lab, line, managing, order, serving

PROOF = {"Authorization": f"Bearer {TOKEN.reveal()}"}
ATTACH = native.path(FABRIC, "attach")
INVENTORY = native.path(FABRIC, "inventory")


def served(
    folder: Path,
    play: Callable[[Server, aiohttp.ClientSession], Awaitable[None]],
    gate: Gate = Gate(TOKEN),
) -> None:
    async def main() -> None:
        async with serving(folder, lab(), gate) as server, aiohttp.ClientSession(server.url) as session:
            await play(server, session)

    asyncio.run(main())


async def ended(fabric: Fabric, of: Order) -> Progress:
    """Ask until it is done or has failed; the machine may be busy with other things."""
    while isinstance(progress := await fabric.attach(of), Working):
        pass
    return progress


# --- the token

OPEN: tuple[tuple[str, str], ...] = ()
"""What a face lets in without the token and judges itself: a log-in must be possible."""
PROOFS: tuple[dict[str, str], ...] = (
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer another-token-altogether"},
    {"Authorization": f"Bearer {TOKEN.reveal()}x"},
    {"Authorization": f"Bearer {TOKEN.reveal()[:-1]}"},
    {"Authorization": f"bearer{TOKEN.reveal()}"},
    {"Authorization": "Basic amFja2ZpZWxkOg=="},
    {"Cookie": f"token={TOKEN.reveal()}"},
)


@pytest.mark.parametrize("proof", PROOFS)
def test_no_request_without_the_token_gets_past_the_door(tmp_path: Path, proof: dict[str, str]) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        every = [(one.method, one.path) for face in registry.chosen(()) for one in face.routes(server)]
        assert len(every) >= 10
        closed = [one for one in every if one not in OPEN]
        paths = [(method, path.replace("{fabric}", FABRIC)) for method, path in closed]
        for method, path in (*paths, ("GET", "/"), ("GET", "/nothing"), ("PUT", ATTACH), ("OPTIONS", "/")):
            async with session.request(
                method, path, headers=proof, data=native.encode(order("o"))
            ) as response:
                assert response.status == 401, (method, path)
                assert TOKEN.reveal() not in await response.text()
        assert server.manager.store.last_event() == 0
        assert server.manager.store.entry(order("o").id) is None

    served(tmp_path, play)


def test_with_the_token_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        for method, path, status in (
            ("GET", "/", 404),
            ("GET", "/v1/fabrics/other/inventory", 404),
            ("PUT", ATTACH, 405),
            ("GET", INVENTORY, 200),
        ):
            async with session.request(method, path, headers=PROOF) as response:
                assert response.status == status, path

    served(tmp_path, play)


# --- what is too much

HEADERS = {
    "said": "Content-Length: 1073741824",
    "unsaid": "Transfer-Encoding: chunked",
}


@asynccontextmanager
async def connection(server: Server) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield reader, writer
    finally:
        writer.close()


@pytest.mark.parametrize("size", HEADERS)
@pytest.mark.parametrize(("proof", "status"), [(PROOF["Authorization"], b"413"), ("Bearer no", b"401")])
def test_a_body_of_a_gigabyte_is_refused_early(tmp_path: Path, size: str, proof: str, status: bytes) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        async with connection(server) as (reader, writer):
            head = f"POST {ATTACH} HTTP/1.1\r\nHost: x\r\nAuthorization: {proof}\r\n{HEADERS[size]}\r\n\r\n"
            writer.write(head.encode())
            answer = asyncio.ensure_future(reader.readline())
            chunk = b"x" * 65536
            sent = 0
            while not answer.done() and sent < 1 << 30:
                writer.write(b"10000\r\n" + chunk + b"\r\n" if size == "unsaid" else chunk)
                sent += len(chunk)
                await writer.drain()
                await asyncio.sleep(0)  # noqa: TID251 - lets the answer in
            assert status in await answer
            assert sent <= 16 * BODY_BYTES_MAX

    served(tmp_path, play)


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(tmp_path: Path) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        async with connection(server) as (reader, writer):
            head = f"POST {ATTACH} HTTP/1.1\r\nHost: x\r\nAuthorization: {PROOF['Authorization']}\r\n"
            writer.write(f"{head}Content-Length: {BODY_BYTES_MAX + 1}\r\n\r\n".encode())
            assert b"413" in await asyncio.wait_for(reader.readline(), 5.0)

    served(tmp_path, play)


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        async with connection(server) as (reader, writer):
            head = f"POST {ATTACH} HTTP/1.1\r\nHost: x\r\nAuthorization: {PROOF['Authorization']}\r\n"
            writer.write(f"{head}Content-Length: 100\r\n\r\n{{".encode())
            assert b"408" in await asyncio.wait_for(reader.readline(), 5.0)

    served(tmp_path, play, Gate(TOKEN, read_seconds_max=0.1))


NONSENSE = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff\xfe\x00",
    b'{"id": 1}',
    b"[" * 100_000,
    b'{"id": "' + b"x" * 300 + b'", "fabric": "rack-a", "node": "n-1", "model": "A100"}',
    b'{"id": "", "fabric": "rack-a", "node": "n-1", "model": "A100"}',
    b'{"id": "a\\u0000b", "fabric": "rack-a", "node": "n-1", "model": "A100"}',
    b'{"id": "o", "fabric": "rack-a", "node": ["n-1"], "model": "A100"}',
    b'{"id": "\\ud800", "fabric": "rack-a", "node": "n-1", "model": "A100"}',
)


@pytest.mark.parametrize("body", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_answered_with_a_problem(tmp_path: Path, body: bytes) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        for path in (ATTACH, "/manager/v1/attach", "/manager/v1/detach", "/manager/v1/faults"):
            async with session.post(path, data=body, headers=PROOF) as response:
                told = msgspec.json.decode(await response.read(), type=native.Problem)
                assert told.type == f"{native.TYPES}bug", path
                assert told.detail

    served(tmp_path, play)


def test_an_order_for_another_fabric_is_refused_here(tmp_path: Path) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        other = msgspec.structs.replace(order("o"), fabric=FabricName("rack-b"))
        async with session.post(ATTACH, data=native.encode(other), headers=PROOF) as response:
            assert response.status == 422

    served(tmp_path, play)


# --- answers


def test_an_inventory_that_did_not_change_is_not_sent_again(tmp_path: Path) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        async with line(server) as fabric:
            async with session.get(INVENTORY, headers=PROOF) as response:
                tag = response.headers["ETag"]
            async with session.get(INVENTORY, headers={**PROOF, "If-None-Match": tag}) as response:
                assert (response.status, await response.read()) == (304, b"")
            await ended(fabric, order("o"))
            async with session.get(INVENTORY, headers={**PROOF, "If-None-Match": tag}) as response:
                assert response.status == 200

    served(tmp_path, play)


def test_https_is_served_with_a_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)

    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        assert server.url.startswith("https://")
        async with session.get(INVENTORY, headers=PROOF, ssl=trusting) as response:
            assert response.status == 200
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(INVENTORY, headers=PROOF)

    served(tmp_path, play, Gate(TOKEN, tls=context))


# --- faults on the wire


def test_a_call_whose_answer_is_lost_was_carried_out(tmp_path: Path) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        await server.manager.set_fault(Fault(Kind.LOST, verb="attach", times=1))
        async with line(server) as fabric:
            with pytest.raises(Retry):
                await fabric.attach(order("o"))
            assert isinstance(await ended(fabric, order("o")), Done)
            assert len([one for one in (await fabric.inventory()).devices if one.node]) == 1

    served(tmp_path, play)


def test_an_answer_that_is_late_comes_late(tmp_path: Path) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        await server.manager.set_fault(Fault(Kind.LATE, verb="inventory", seconds=Seconds(30.0), times=1))
        async with line(server) as fabric:
            clock = asyncio.get_running_loop().time
            began = clock()
            await fabric.inventory()
            late = clock() - began
            await fabric.inventory()
        assert late >= 0.3  # thirty seconds of a clock that is a hundred times as fast

    served(tmp_path, play)


@pytest.mark.parametrize("status", [409, 429, 499, 500, 502, 503, 504])
def test_a_burst_of_errors_says_nothing_about_the_order(tmp_path: Path, status: int) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        burst = Fault(Kind.STATUS, status=status, seconds=Seconds(7.0), times=3, verb="attach")
        await server.manager.set_fault(burst)
        async with line(server) as fabric:
            for _ in range(2):
                with pytest.raises(Retry) as told:
                    await fabric.attach(order("o"))
                assert told.value.after == 7.0
            async with session.post(ATTACH, data=native.encode(order("o")), headers=PROOF) as response:
                assert (response.status, response.headers["Retry-After"]) == (status, "7")
            assert server.manager.store.entry(order("o").id) is None
            assert isinstance(await ended(fabric, order("o")), Done)

    served(tmp_path, play)


def test_a_token_is_refused_for_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        await server.manager.set_fault(Fault(Kind.UNAUTHORIZED, face="native", times=1))
        async with session.get(INVENTORY, headers=PROOF) as response:
            assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        async with session.get(INVENTORY, headers=PROOF) as response:
            assert response.status == 200

    served(tmp_path, play)


@pytest.mark.parametrize(("force", "status", "left"), [(False, 422, 1), (True, 200, 0)])
def test_what_another_attached_is_detached_by_hand_only_by_force(
    tmp_path: Path, status: int, left: int, *, force: bool
) -> None:
    async def play(server: Server, session: aiohttp.ClientSession) -> None:
        async with line(server) as fabric:
            assert isinstance(await ended(fabric, order("o")), Done)
            wanted = {"device": "a-1", "force": force, "wait": 5}
            async with session.post("/manager/v1/detach", json=wanted, headers=PROOF) as response:
                assert response.status == status
            assert len([one for one in (await fabric.inventory()).devices if one.node]) == left

    served(tmp_path, play)


def test_the_extras_describe_themselves(tmp_path: Path) -> None:
    async def play(_: Server, session: aiohttp.ClientSession) -> None:
        async with session.get("/manager/v1/openapi.json", headers=PROOF) as response:
            assert (await response.json())["openapi"] == "3.1.0"

    served(tmp_path, play)


def test_an_id_placed_for_another_node_is_refused(tmp_path: Path) -> None:
    async def play(server: Server, _: aiohttp.ClientSession) -> None:
        async with line(server) as fabric:
            assert isinstance(await ended(fabric, order("o")), Done)
            with pytest.raises(Refused, match="was placed for A100 on n-1"):
                await fabric.attach(order("o", node="n-2"))
            assert isinstance(await ended(fabric, order("p", node="nowhere")), Failed)

    served(tmp_path, play)


# --- mistakes of ours


class Mistaken(Native):
    """A face with a mistake in it."""

    prefixes = ("/mistaken",)

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        async def answer(_: web.Request) -> web.Response:
            raise KeyError(desk.manager.name)

        return (web.get("/mistaken", answer),)


def test_a_mistake_of_ours_is_told_in_the_faces_words_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with (
            managing(tmp_path, lab()) as manager,
            Server(manager, (Mistaken(),), Gate(TOKEN)) as server,
            aiohttp.ClientSession(server.url) as session,
            session.get("/mistaken", headers=PROOF) as response,
        ):
            assert response.status == 500
            told = msgspec.json.decode(await response.read(), type=native.Problem)
            assert told.detail == "a mistake of the manager's: KeyError; its log says more"

    asyncio.run(main())
    assert "a mistake of ours in GET /mistaken" in caplog.text
    assert "Traceback" in caplog.text


class Talkative(Native):
    """A face that says more than any socket holds."""

    prefixes = ("/talkative",)

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=desk.manager.name.encode() * 16_000_000)

        return (web.get("/talkative", answer),)


def test_whoever_does_not_read_the_answer_is_cut_off(tmp_path: Path) -> None:
    async def main() -> None:
        gate = Gate(TOKEN, patience=Patience(read_seconds=0.1))
        async with (
            managing(tmp_path, lab()) as manager,
            Server(manager, (Talkative(),), gate) as server,
            connection(server) as (reader, writer),
        ):
            head = f"GET /talkative HTTP/1.1\r\nHost: x\r\nAuthorization: {PROOF['Authorization']}\r\n\r\n"
            writer.write(head.encode())
            assert b"200" in await reader.readline()
            inside = server._runner.server  # noqa: SLF001 - who is connected
            assert inside is not None
            async with asyncio.timeout(60.0):
                while inside.connections:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.05)  # noqa: TID251 - the server's time is real

    asyncio.run(main())
