"""Raw calls to our own manager, and its manager served for them; nothing waits, since its time is the hurried loop's.

Knows bytes on a socket and how an answer is read. Must not know what is asked.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from hostile.fabrics.hurried import HurriedClock
from jackfield.door import Patience
from jackfield.fabric_manager.durations import Fixed
from jackfield.fabric_manager.faces import Face, registry
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import Seconds
from unit.fabric_manager.lab import TOKEN, lab, managing

PATIENCE_SECONDS: Final = 400.0
"""Virtual seconds after which nobody answers any more: some calls are held back for three minutes."""
WORK: Final = Seconds(0.2)


class Answered(msgspec.Struct, frozen=True):
    """What came back, and after how many virtual seconds; status 0 if nothing did."""

    status: int
    headers: Mapping[str, str] = {}
    """With names in lower case."""
    body: bytes = b""
    seconds: float = 0.0
    answers: int = 0
    """How many answers came; a hundred and something is not counted."""


class House(msgspec.Struct, frozen=True):
    """A manager that is served, with the faces it has."""

    server: Server
    faces: tuple[Face, ...]

    @property
    def port(self) -> int:
        return urlsplit(self.server.url).port or 0

    def face(self, path: str) -> Face | None:
        """Return the face that answers for a path."""
        return next((one for one in self.faces if path.startswith(one.prefixes)), None)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def say(self, *parts: bytes) -> Answered:
        """Send something, and return what is answered until it hangs up or time is up."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        reader, writer = await self.connect()
        heard = b""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                with contextlib.suppress(ConnectionError):
                    for part in parts:
                        writer.write(part)
                        await writer.drain()
                while more := await _more(reader):
                    heard += more
        except TimeoutError:
            return Answered(-1, body=heard, seconds=loop.time() - began)
        finally:
            writer.transport.abort()
        return parsed(heard, loop.time() - began)


async def _more(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(ConnectionError):
        return await reader.read(1 << 20)
    return b""


def parsed(heard: bytes, seconds: float) -> Answered:
    """Return the first answer in what was heard."""
    while heard.startswith(b"HTTP/1.1 1"):
        heard = heard.partition(b"\r\n\r\n")[2]
    head, _, rest = heard.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) < 2 or not words[1].isdigit():
        return Answered(0, body=heard, seconds=seconds)
    named = (line.partition(":") for line in lines)
    headers = {name.lower(): text.strip() for name, _, text in named}
    size = int(headers.get("content-length", "0") or "0")
    again = rest[size:].count(b"HTTP/1.1 ")
    return Answered(int(words[1]), headers, rest[:size], seconds, 1 + again)


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Return a call as bytes; the connection is closed after it."""
    lines = {"Host": "x", "Connection": "close", **headers}
    if body and not {"content-length", "transfer-encoding"} & {name.lower() for name in lines}:
        lines["Content-Length"] = str(len(body))
    head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("utf-8", "surrogateescape") + body


@contextlib.asynccontextmanager
async def house(
    folder: Path, patience: Patience = Patience(), connections_max: int = 500
) -> AsyncIterator[House]:
    """Serve a small lab by all faces."""
    faces = registry.chosen(())
    gate = Gate(TOKEN, patience=patience, connections_max=connections_max)
    async with (
        managing(folder, lab(Fixed(WORK)), clock=HurriedClock()) as manager,
        Server(manager, faces, gate) as server,
    ):
        yield House(server, faces)
