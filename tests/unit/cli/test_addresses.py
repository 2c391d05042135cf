"""Where a process listens is typed as HOST:PORT; what cannot be one is told with what could."""

import asyncio
import socket

import aiohttp
import click
import pytest

from jackfield.cli.addresses import HostAndPort, Place
from jackfield.cli.serving import Unheard, answering
from jackfield.metrics.probes import Answers

GOOD = {
    "127.0.0.1:8080": Place("127.0.0.1", 8080),
    "0.0.0.0:0": Place("0.0.0.0", 0),  # noqa: S104 - nobody listens
    "localhost:65535": Place("localhost", 65535),
    "[::]:8080": Place("::", 8080),
    "[fe80::1%eth0]:80": Place("fe80::1%eth0", 80),
}


@pytest.mark.parametrize(("text", "place"), GOOD.items(), ids=GOOD)
def test_an_address_is_read_and_spelt_alike(text: str, place: Place) -> None:
    assert HostAndPort().convert(text, None, None) == place
    assert str(place) == text


@pytest.mark.parametrize(
    "text", ["8080", ":8080", "127.0.0.1", "127.0.0.1:", "::1:80", "a:65536", "a b:1", ""]
)
def test_what_is_no_address_is_told_with_one(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"is not HOST:PORT, such as 127\.0\.0\.1:8080"):
        HostAndPort().convert(text, None, None)


def test_a_process_answers_where_it_listens() -> None:
    async def main() -> None:
        troubles = ["", "waiting for the API server to show every Pod"]
        answers = Answers(lambda: troubles.pop(0), lambda: b"figures\n")
        async with answering(Place("127.0.0.1", 0), answers) as where, aiohttp.ClientSession() as session:
            heard = []
            for path in ("healthz", "readyz", "readyz", "metrics"):
                async with session.get(f"http://{where}/{path}") as answer:
                    heard.append((answer.status, await answer.text()))
        assert heard == [
            (200, "ok\n"),
            (200, "ok\n"),
            (503, "waiting for the API server to show every Pod\n"),
            (200, "figures\n"),
        ]

    asyncio.run(main())


def test_a_port_that_is_taken_is_told() -> None:
    async def main(port: int) -> None:
        with pytest.raises(Unheard, match=rf"--listen 127\.0\.0\.1:{port}: .*; choose an address"):
            async with answering(Place("127.0.0.1", port), Answers(str, bytes)):
                pass

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(main(taken.getsockname()[1]))
