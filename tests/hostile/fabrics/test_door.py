"""Nobody gets past the manager's door without credentials, by any route of any face; nor does what is large or slow."""

import asyncio
import base64
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from hostile.fabrics import hurried
from hostile.fabrics.callers import Answered, House, house, request
from jackfield.codec import native
from jackfield.door import Patience
from jackfield.fabric_manager.server import BODY_BYTES_MAX
from unit.fabric_manager.lab import FABRIC, TOKEN, order

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW")
ATTACH = native.path(FABRIC, "attach")
BEARER = f"Bearer {TOKEN.reveal()}"
PUBLIC = {
    ("GET", "/redfish"),
    ("GET", "/redfish/v1"),
    ("GET", "/redfish/v1/"),
    ("GET", "/redfish/v1/odata"),
    ("GET", "/redfish/v1/$metadata"),
}
"""What may be read by anybody, as DSP0266 has it; by HEAD too."""
LOG_INS = {
    ("POST", "/id_manager/realms/{realm}/protocol/openid-connect/token"),
    ("POST", "/redfish/v1/SessionService/Sessions"),
    ("POST", "/redfish/v1/SessionService/Sessions/Members"),
}
"""What judges by the body whether somebody may come in."""


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


PROOFS: tuple[dict[str, str], ...] = (
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer"},
    {"Authorization": "Bearer another-token-altogether"},
    {"Authorization": f"{BEARER}x"},
    {"Authorization": BEARER[:-1]},
    {"Authorization": f"Bearer{TOKEN.reveal()}"},
    {"Authorization": f"Digest {TOKEN.reveal()}"},
    {"Authorization": "Bearer e30.e30.e30"},
    {"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTk5OTl9."},
    {"Authorization": "Bearer \udcff\udcfe"},
    {"Authorization": basic("jackfield", "")},
    {"Authorization": basic("", TOKEN.reveal())},
    {"Authorization": basic("root", TOKEN.reveal())},
    {"Authorization": "Basic !!!"},
    {"Authorization": "Basic \udcff"},
    {"X-Auth-Token": ""},
    {"X-Auth-Token": "another-token-altogether"},
    {"Cookie": f"token={TOKEN.reveal()}"},
)


def played(
    folder: Path,
    play: Callable[[House], Awaitable[None]],
    patience: Patience = Patience(),
    connections_max: int = 500,
) -> None:
    async def main() -> None:
        async with house(folder, patience, connections_max) as one:
            await play(one)
            books = await one.server.manager.inventory("native")
            assert all(not device.node for device in books.devices)
            assert one.server.manager.store.last_event() == 0
            assert one.server.manager.store.entry(order("o").id) is None
            assert len(one.server.manager.faults) == 0
            assert (
                await one.say(request("GET", native.path(FABRIC, "inventory"), {"Authorization": BEARER}))
            ).status == 200

    hurried.run(main())


def routes(of: House) -> list[tuple[str, str]]:
    """Return every path of the router itself, with every method, whether it is meant or not."""
    runner = of.server._runner  # noqa: SLF001 - from the horse's mouth, so that no route is forgotten
    assert isinstance(runner, web.AppRunner)
    paths = dict.fromkeys(resource.canonical for resource in runner.app.router.resources())
    assert len(paths) >= 20
    return [(method, path) for path in (*paths, "/", "/nothing", "/manager/v1/../x") for method in METHODS]


def concrete(path: str) -> str:
    for name, text in {"{fabric}": str(FABRIC), "{realm}": "cdi"}.items():
        path = path.replace(name, text)
    return "/".join("x" if part.startswith("{") else part for part in path.split("/"))


def expected(method: str, path: str, answer: Answered) -> bool:
    if method in {"CONNECT", "BREW"}:
        return answer.status in {400, 401, 404}
    if ("GET" if method == "HEAD" else method, path) in PUBLIC:
        return answer.status in {200, 301, 308}
    if (method, path) in LOG_INS:  # asked for a body that never came
        return answer.status in {400, 401, 408}
    return answer.status == 401


async def turned_away(of: House, method: str, path: str, proof: dict[str, str]) -> None:
    # The body never comes: whoever waited for it would be told that it took too long (408).
    headers = {**proof, "Content-Length": "100", "Content-Type": "application/json"}
    answer = await of.say(request(method, concrete(path), headers))
    assert expected(method, path, answer), (method, path, proof, answer)
    assert TOKEN.reveal().encode() not in answer.body
    if answer.status == 401 and (method, path) not in LOG_INS:
        assert answer.headers.get("www-authenticate"), (method, path)


def test_no_route_of_any_face_is_open_by_any_method_to_whoever_has_no_credentials(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        for method, path in routes(of):
            await turned_away(of, method, path, {})

    played(tmp_path, play)


def test_no_route_of_any_face_is_open_to_credentials_that_are_none(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        meant = {(route.method, route.path) for face in of.faces for route in face.routes(of.server)}
        assert len(meant) > 20
        for method, path in sorted(meant):
            for proof in PROOFS:
                await turned_away(of, method, path, proof)

    played(tmp_path, play)


def test_what_opens_one_face_opens_no_other(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        body = f"grant_type=password&password={TOKEN.reveal()}".encode()
        login = await of.say(
            request("POST", "/id_manager/realms/cdi/protocol/openid-connect/token", {}, body)
        )
        given = json.loads(login.body)["access_token"]
        for path in (native.path(FABRIC, "inventory"), "/manager/v1/state", "/redfish/v1/Systems"):
            for proof in ({"Authorization": f"Bearer {given}"}, {"X-Auth-Token": given}):
                assert (await of.say(request("GET", path, proof))).status in {401, 404}, path
        by_name = {"Authorization": basic("jackfield", TOKEN.reveal())}
        for path in (
            native.path(FABRIC, "inventory"),
            "/manager/v1/state",
            "/fabric_manager/api/v1/machines",
        ):
            assert (await of.say(request("GET", path, by_name))).status == 401, path

    played(tmp_path, play)


# --- large


@pytest.mark.parametrize(("proof", "status"), [(BEARER, 413), ("Bearer no", 401)])
def test_a_body_that_is_said_to_be_a_gigabyte_is_refused_before_it_comes(
    tmp_path: Path, proof: str, status: int
) -> None:
    async def play(of: House) -> None:
        for method, path in (
            ("POST", ATTACH),
            ("POST", "/manager/v1/faults"),
            ("DELETE", "/manager/v1/faults/x"),
        ):
            answer = await of.say(
                request(method, path, {"Authorization": proof, "Content-Length": str(1 << 30)})
            )
            assert answer.status == status, path

    played(tmp_path, play)


def test_a_log_in_of_a_gigabyte_is_refused_before_it_comes(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        for method, path in routes(of):
            if (method, path) in LOG_INS:
                answer = await of.say(request(method, concrete(path), {"Content-Length": str(1 << 30)}))
                assert answer.status == 413, path

    played(tmp_path, play)


@pytest.mark.parametrize(("proof", "status"), [(BEARER, 413), ("Bearer no", 401)])
def test_a_body_without_an_end_is_refused_after_the_limit_and_hung_up_on(
    tmp_path: Path, proof: str, status: int
) -> None:
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    async def play(of: House) -> None:
        headers = {"Authorization": proof, "Transfer-Encoding": "chunked", "Connection": "keep-alive"}
        reader, writer = await of.connect()
        writer.write(request("POST", ATTACH, headers))
        line = asyncio.ensure_future(reader.readline())
        sent = 0
        while not writer.is_closing() and sent < 1 << 30:
            try:
                writer.write(chunk)
                await writer.drain()
            except ConnectionError:
                break
            sent += len(chunk)
            if sent > 2 * BODY_BYTES_MAX:  # the rest of it drips in, for as long as anybody listens
                await asyncio.sleep(0.01)  # noqa: TID251 - lets time pass
        writer.transport.abort()
        assert f" {status} ".encode() in await line
        assert sent < 64 * BODY_BYTES_MAX

    played(tmp_path, play)


@pytest.mark.parametrize(
    "head",
    [
        f"GET / HTTP/1.1\r\nHost: x\r\nA: {'b' * 20_000}\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: x\r\n{'b' * 20_000}: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n" + "A: b\r\n" * 500 + "\r\n",
        f"GET /{'a' * 20_000} HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "\x00" * 5_000,
    ],
    ids=range(11),
)
def test_a_head_that_is_too_long_or_no_head_is_refused(tmp_path: Path, head: str) -> None:
    async def play(of: House) -> None:
        assert (await of.say(head.encode())).status in {0, 400}

    played(tmp_path, play)


@pytest.mark.parametrize("later", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [b"", b"2\r\n{}", b"-5\r\nabcde\r\n"], ids=range(3))
def test_chunks_that_are_none_are_told_so_and_not_repeated(
    tmp_path: Path, chunk: bytes, later: float
) -> None:
    async def play(of: House) -> None:
        headers = {"Authorization": BEARER, "Transfer-Encoding": "chunked"}
        for path in (ATTACH, "/manager/v1/attach", "/id_manager/realms/cdi/protocol/openid-connect/token"):
            reader, writer = await of.connect()
            writer.write(request("POST", path, headers))
            await asyncio.sleep(later)  # noqa: TID251 - virtual: the head is read, the body waited for
            writer.write(chunk + TOKEN.reveal().encode() + b"\r\n")
            heard = await reader.read()
            writer.transport.abort()
            # Once the body is waited for, the HTTP library tells nobody who waits: then it takes too long.
            assert heard.split(b" ")[1] == (b"408" if later else b"400"), (path, heard)
            assert TOKEN.reveal().encode() not in heard

    played(tmp_path, play)


def test_whoever_hangs_up_in_the_middle_of_a_body_is_no_mistake_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play(of: House) -> None:
        for path in (ATTACH, "/manager/v1/attach", "/id_manager/realms/cdi/protocol/openid-connect/token"):
            _, writer = await of.connect()
            writer.write(request("POST", path, {"Authorization": BEARER, "Content-Length": "100"}) + b"{")
            await asyncio.sleep(0.1)  # noqa: TID251 - virtual
            writer.transport.abort()
            await asyncio.sleep(0.1)  # noqa: TID251 - virtual

    played(tmp_path, play)
    assert caplog.text == ""


def test_a_packed_body_is_not_unpacked(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        headers = {"Authorization": BEARER, "Content-Encoding": "gzip"}
        body = gzip.compress(native.encode(order("o")))
        assert (await of.say(request("POST", ATTACH, headers, body))).status == 400

    played(tmp_path, play)


def test_an_error_does_not_repeat_at_length_what_was_sent(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        body = json.dumps({"device": "x" * 100_000}).encode()
        answer = await of.say(request("POST", "/manager/v1/detach", {"Authorization": BEARER}, body))
        assert answer.status == 404
        assert len(answer.body) < 2_000

    played(tmp_path, play)


def test_a_method_that_is_not_allowed_is_told_with_those_that_are(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        answer = await of.say(request("PUT", "/manager/v1/faults", {"Authorization": BEARER}))
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD, POST"

    played(tmp_path, play)


# --- slow

IMPATIENT = Patience(first_word_seconds=3.0, idle_seconds=5.0)
FOR_EVER = 300.0
"""Virtual seconds after which nobody will ever hang up."""


async def hung_up_after(of: House, first: bytes, drip: bytes) -> float:
    """Return how many virtual seconds it takes until the manager hangs up, while something drips in."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    reader, writer = await of.connect()
    writer.write(first)
    heard = asyncio.ensure_future(reader.read())
    while not heard.done() and loop.time() - began < FOR_EVER:
        await asyncio.wait((heard,), timeout=0.2)
        if drip and not heard.done():
            writer.write(drip)
    writer.transport.abort()
    await asyncio.gather(heard, return_exceptions=True)
    return loop.time() - began


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"GET /", b""),
        (b"GET /", b"a"),
        (b"GET / HTTP/1.1\r\n", b"A: b\r\n"),
        (request("GET", "/", {"Connection": "keep-alive"}), b""),
        (request("GET", "/", {"Connection": "keep-alive"}) + b"GET /", b"a"),
    ],
    ids=range(6),
)
def test_whoever_never_comes_to_the_point_is_cut_off(tmp_path: Path, first: bytes, drip: bytes) -> None:
    async def play(of: House) -> None:
        assert await hung_up_after(of, first, drip) < FOR_EVER

    played(tmp_path, play, IMPATIENT)


@pytest.mark.parametrize("proof", [BEARER, "Bearer no"])
@pytest.mark.parametrize("drip", [b"", b" "])
def test_a_body_that_drips_in_is_not_waited_for(tmp_path: Path, proof: str, drip: bytes) -> None:
    async def play(of: House) -> None:
        head = request("POST", ATTACH, {"Authorization": proof, "Content-Length": "9999"})
        assert await hung_up_after(of, head + b"{", drip) < FOR_EVER

    played(tmp_path, play, IMPATIENT)


def test_whoever_asks_before_sending_is_told_to_go_on_only_if_he_may_come_in(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        for proof, says in (
            (BEARER, b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 422 "),
            ("Bearer no", b"HTTP/1.1 401 "),
        ):
            reader, writer = await of.connect()
            body = native.encode(order("o")).replace(FABRIC.encode(), b"rack-z")
            headers = {"Authorization": proof, "Expect": "100-continue", "Content-Length": str(len(body))}
            writer.write(request("POST", ATTACH, headers))
            first = await reader.read(len(b"HTTP/1.1 100 Continue\r\n\r\n"))
            if proof == BEARER:
                writer.write(body)
            heard = first + await reader.read()
            writer.transport.abort()
            assert heard.startswith(says), heard
        for path in (ATTACH, "/nothing", "/manager/v1/state"):
            nobody = {"Expect": "\udcffmiracles", "Content-Length": "2"}
            assert (await of.say(request("POST", path, nobody))).status == 401, path
        odd = {"Authorization": BEARER, "Expect": "miracles"}
        assert (await of.say(request("POST", ATTACH, odd, b"{}"))).status == 417

    played(tmp_path, play)


def test_a_crowd_is_turned_away_and_whoever_leaves_makes_room(tmp_path: Path) -> None:
    async def play(of: House) -> None:
        crowd = []
        for _ in range(200):
            reader, writer = await of.connect()
            crowd.append((reader, writer))
        await asyncio.sleep(1.0)  # noqa: TID251 - virtual
        turned_away = [reader.at_eof() for reader, _ in crowd]
        assert sum(not one for one in turned_away) == 20
        await asyncio.sleep(patience.first_word_seconds + 1.0)  # noqa: TID251 - virtual
        assert all(reader.at_eof() for reader, _ in crowd)
        for _, writer in crowd:
            writer.transport.abort()

    patience = Patience(first_word_seconds=100.0)  # nobody must have left before all have come
    played(tmp_path, play, patience, connections_max=20)
