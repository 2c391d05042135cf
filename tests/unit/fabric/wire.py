"""Managers as bad as they come, each on a socket of its own, and the adapter that speaks to them."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.model.fabric import Order
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, Seconds

TOKEN = Secret("hush-hush-hush")
FABRIC = FabricName("rack-a")
ORDER = Order(OrderID("o-1"), FABRIC, NodeName("n-1"), ModelName("A100"))

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Manager:
    """Answers every connection in its own way, and keeps what it was sent."""

    def __init__(self, answer: Answer, context: ssl.SSLContext | None = None) -> None:
        self.heard: list[str] = []
        self.answer = answer
        self._context = context
        self._lines: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        async with server:
            scheme = "http" if self._context is None else "https"
            try:
                yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            finally:
                for line in self._lines:
                    line.transport.abort()
                await asyncio.gather(*(task for task in self._lines.values() if task), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines[writer] = asyncio.current_task()
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heard.append(head)
            await self.answer(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()


def saying(text: str) -> Answer:
    """Answer with these very bytes."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode())
        await writer.drain()

    return answer


def response(status: str, body: str = "", *headers: str) -> Answer:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers)
    return saying("\r\n".join(lines) + "\r\n\r\n" + body)


async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Hear, and never answer; ends when the caller has had enough."""
    while await reader.read(1024):
        pass


async def hanging_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer that has no end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


def adapter(url: str, *, patience: float = 5.0, ca_file: str = "", insecure: bool = False) -> NativeFabric:
    settings = FabricSettings(
        FABRIC,
        "native",
        url,
        ca_file=ca_file,
        insecure=insecure,
        call_timeout_seconds=Seconds(patience),
    )
    return NativeFabric(settings, lambda: TOKEN)
