"""A manager that is away is told as somebody needs it who was just woken: what, why, and what to look at."""

import asyncio
import ssl
from contextlib import closing
from socket import socket

import pytest
import trustme

from hostile.fabrics import benches
from jackfield.cli.clock import WallClock
from jackfield.fabric.http import REACH, RECOGNISE, Request, Wire, too_late
from jackfield.fabric.settings import FabricSettings
from jackfield.model.names import Seconds
from jackfield.ports import Retry
from unit.fabric.wire import FABRIC, Manager, hanging_up, response, saying, silence

LONG = Seconds(60.0)


def nobody() -> str:
    """An address at which nobody listens."""
    with closing(socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


async def told(url: str, patience: Seconds = LONG) -> str:
    """What is said of a manager at this address, behind the address."""
    line = Wire(FabricSettings(FABRIC, "native", url, call_timeout_seconds=patience), "application/json")
    try:
        with pytest.raises(Retry) as caught:
            await line.call(Request("GET", "/"))
    finally:
        await line.close()
    assert str(caught.value).startswith(f"{url}: ")
    return str(caught.value).removeprefix(f"{url}: ")


def said_of(manager: Manager, scheme: str = "http", patience: Seconds = LONG) -> str:
    """What is said of a manager that is spoken to like this; its port stands as 0."""

    async def main() -> str:
        async with manager.up() as url:
            address = url.partition("://")[2]
            words = await told(f"{scheme}://{address}", patience)
            return words.replace(address, "127.0.0.1:0")

    return asyncio.run(main())


@pytest.mark.parametrize("name", benches.SETUPS)
def test_every_adapter_says_that_nobody_answers_and_what_to_look_at(name: str) -> None:
    where = nobody()

    async def main() -> None:
        async with benches.line(name, f"http://{where}", WallClock()) as fabric:
            await fabric.inventory()

    with pytest.raises(Retry) as caught:
        asyncio.run(main())
    said = f"http://{where}: Cannot connect to {where}: Connection refused; {REACH}"
    assert str(caught.value) == said


def test_a_name_that_nobody_knows_is_told() -> None:
    said = asyncio.run(told("https://manager.invalid:8443"))
    assert said.startswith("Cannot connect to manager.invalid: the name is not known: ")
    assert said.endswith(f"; {REACH}")
    assert "ssl" not in said.casefold()


def test_a_certificate_that_nobody_vouches_for_is_told() -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    said = said_of(Manager(response("200 OK"), context), "https")
    why = "the certificate of 127.0.0.1:0 is not accepted: unable to get local issuer certificate"
    assert said == f"the manager cannot be recognised: {why}; {RECOGNISE}"


def test_a_manager_without_tls_is_told() -> None:
    async def plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def main() -> str:
        async with await asyncio.start_server(plainly, "127.0.0.1", 0) as server:
            return await told(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    said = asyncio.run(main())
    assert said.startswith("the manager cannot be recognised: no TLS came about with 127.0.0.1:")
    assert said.endswith(f"; {RECOGNISE}")
    assert "_" not in said


def test_a_manager_that_is_silent_or_hangs_up_is_told() -> None:
    soon = Seconds(0.2)
    assert said_of(Manager(silence), patience=soon) == too_late(soon)
    assert "the manager's own log" in said_of(Manager(hanging_up))
    assert "is the fabric's url that of the manager?" in said_of(
        Manager(saying("SSH-2.0-OpenSSH_9.6\r\n\r\n"))
    )
