"""A socket that hears HTTP and leaves it to somebody else what is said on it, down to the last byte.

Knows requests as our adapters send them. Must not know any manager.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Final

import msgspec

REASONS: Final = {200: "OK", 201: "Created", 202: "Accepted", 204: "No Content", 404: "Not Found"}
Headers = tuple[tuple[str, str], ...]


class Heard(msgspec.Struct, frozen=True):
    """What somebody asked."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    """With names in lower case."""
    body: bytes = b""

    @property
    def key(self) -> tuple[str, str]:
        """What it was about."""
        return self.method, self.path


class Said(msgspec.Struct, frozen=True):
    """What an honest manager answers."""

    status: int
    headers: Headers = ()
    body: bytes = b""

    @property
    def wire(self) -> bytes:
        """It as bytes; an empty answer that may have no body has none."""
        reason = REASONS.get(self.status, "Something")
        lines = [f"HTTP/1.1 {self.status} {reason}", *(f"{name}: {text}" for name, text in self.headers)]
        if self.status not in {204, 304}:
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"
        return head + (b"" if self.status in {204, 304} else self.body)


Answers = Callable[[Heard, asyncio.StreamWriter], Awaitable[bool]]
"""Answers, and says whether it can be asked again on this connection."""


class Front:
    """Hears, counts, and has somebody answer."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.heard = 0
        self._tasks: dict[asyncio.Task[None], None] = {}

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        async with server:
            try:
                yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            finally:
                await self.hang_up()

    async def hang_up(self) -> None:
        """End all connections, whatever is being said."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self.answers(await self._hear(reader), writer):
                    await writer.drain()
                writer.close()
        finally:
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _hear(self, reader: asyncio.StreamReader) -> Heard:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ", 2)
        named = (line.partition(":") for line in lines if line)
        headers = {name.lower(): text.strip() for name, _, text in named}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.heard += 1
        return Heard(method, path, headers, body)
