"""The command line that every driver gets: what it says when it cannot begin, and how it ends."""

import asyncio
import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner, Result

from jackfield import driver
from jackfield.cli import kubeconfigs
from jackfield.driver.command_line import FAILED, OK, UNUSABLE
from jackfield.metrics import probes
from unit.driver.lamps import LAMPS, Lamps
from unit.driver.site import NODE

Then = Callable[[Callable[[], None]], Awaitable[None]]


@pytest.fixture
def node() -> Iterator[Path]:
    """Return the folder of a node whose API server is away; paths of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="jf-") as folder:
        place = Path(folder)
        (place / "plugins").mkdir()
        text = kubeconfigs.text("away", "http://127.0.0.1:1", b"", "token")
        (place / "kubeconfig").write_text(text)
        yield place


def invoked(one: driver.Driver, node: Path, *more: str) -> Result:
    folders = (f"--{name}-dir={node / name}" for name in ("plugins", "registry", "cdi"))
    arguments = (f"--node-name={NODE}", f"--kubeconfig={node / 'kubeconfig'}", *folders, *more)
    return CliRunner().invoke(driver.command(one), arguments)


class Begun(Lamps):
    """A driver that does something when it has begun."""

    def __init__(self, then: Then) -> None:
        super().__init__()
        self._then = then

    async def watch(self, changed: Callable[[], None]) -> None:
        await self._then(changed)


async def told_to_end(_: Callable[[], None]) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


async def broken(_: Callable[[], None]) -> None:
    raise OSError("the bus is gone")


def test_a_driver_that_does_not_know_its_node_says_so() -> None:
    done = CliRunner(env={"NODE_NAME": ""}).invoke(driver.command(Lamps()))
    assert (done.exit_code, "--node-name" in done.output) == (UNUSABLE, True)


def test_a_driver_that_is_told_to_end_ends_well_and_leaves_no_socket(node: Path) -> None:
    done = invoked(Begun(told_to_end), node, "--log-level=error")
    assert (done.exit_code, done.output) == (OK, "")
    assert list(node.rglob("*.sock")) == []


def test_a_driver_whose_watch_fails_says_so_and_ends(node: Path) -> None:
    done = invoked(Begun(broken), node)
    assert (done.exit_code, f"{LAMPS}: the bus is gone\n" in done.output) == (FAILED, True)


def test_a_driver_without_a_way_to_the_api_server_says_where_it_looked(node: Path) -> None:
    (node / "kubeconfig").unlink()
    done = invoked(Lamps(), node)
    assert (done.exit_code, f"{node / 'kubeconfig'} cannot be read" in done.output) == (UNUSABLE, True)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (Lamps("A"), "'a' would do"),
        (Lamps("a", "a"), "two devices are called 'a'"),
        (driver.Driver(), "the driver's name"),
    ],
)
def test_a_driver_that_the_api_would_refuse_ends_with_words(
    one: driver.Driver, words: str, node: Path
) -> None:
    done = invoked(one, node)
    assert (done.exit_code, words in done.output) == (UNUSABLE, True)


def test_a_node_without_the_kubelets_folder_is_told_of(node: Path) -> None:
    (node / "plugins").rmdir()
    done = invoked(Lamps(), node)
    assert (done.exit_code, "is this where the kubelet" in done.output) == (FAILED, True)


def test_a_driver_that_is_served_already_is_told_of(node: Path) -> None:
    folder = node / "plugins" / LAMPS
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(folder / "dra.sock"))
        other.listen()
        done = invoked(Lamps(), node)
    assert (done.exit_code, "another process serves this driver" in done.output) == (UNUSABLE, True)


def test_a_port_that_is_taken_is_told_of(node: Path) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))  # noqa: S104 - it must be where the driver's would be
        other.listen()
        done = invoked(Lamps(), node, f"--health-port={other.getsockname()[1]}")
    assert (done.exit_code, "in use" in done.output) == (FAILED, True)


# --- probes


def test_who_is_not_of_use_says_why_and_lives_all_the_same() -> None:
    async def asked() -> list[tuple[int, str]]:
        answers = probes.Answers(lambda: "the kubelet does not know us", lambda: b"figures\n")
        async with (
            probes.served(0, answers, "127.0.0.1") as port,
            aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
        ):
            found = []
            for path in ("/healthz", "/readyz", "/metrics", "/etc/passwd"):
                async with session.get(path) as answer:
                    found.append((answer.status, await answer.text()))
            return found

    assert asyncio.run(asked())[:3] == [
        (200, "ok\n"),
        (503, "the kubelet does not know us\n"),
        (200, "figures\n"),
    ]
    assert asyncio.run(asked())[3][0] == 404
