"""A line between two programs that somebody can cut: a TCP proxy on loopback.

Knows bytes and connections. Must not know what is said on them, nor by whom. What is held up is not lost: as on a real
network it arrives when the way is open again, whoever still waits for it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Final, Self
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
CHUNK: Final = 64 * 1024


class Way(StrEnum):
    """What happens to what is said."""

    OPEN = "open"
    CUT = "cut"
    """Connections break, and no new one is made."""
    HOLE = "hole"
    """Nothing arrives, on either side, and nobody is told."""
    DEAF = "deaf"
    """What is asked arrives, and no answer comes back."""
    SLOW = "slow"
    """Everything arrives late."""


class Line:
    """A way to a server, open while the context is."""

    def __init__(self, target: str, delay: float = 0.5) -> None:
        split = urlsplit(target)
        assert split.hostname is not None
        assert split.port is not None
        self._scheme, self._host, self._port = split.scheme, split.hostname, split.port
        self._delay = delay
        self._way = Way.OPEN
        self._changed = asyncio.Event()
        self._talks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()
        await self._hang_up()

    @property
    def url(self) -> str:
        """Where the server seems to be."""
        return f"{self._scheme}://{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"

    async def turn(self, way: Way) -> None:
        """Let this happen from now on."""
        self._way = way
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        if way is Way.CUT:
            await self._hang_up()

    async def _hang_up(self) -> None:
        talks = tuple(self._talks)
        for talk in talks:
            talk.cancel()
        await asyncio.gather(*talks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.get_running_loop().create_task(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry what is said to and fro until both have said all, or the line breaks."""
        ends = [writer]
        try:
            if self._way is Way.CUT:
                return
            there, back = await asyncio.open_connection(self._host, self._port)
            ends.append(back)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, back, self._asks))
                group.create_task(self._carry(there, writer, self._answers))
        except (OSError, ExceptionGroup):
            pass  # whoever is still there sees the connection break
        finally:
            for end in ends:
                end.transport.abort()
            for end in ends:
                with suppress(OSError):
                    await end.wait_closed()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held: Callable[[], bool]
    ) -> None:
        while chunk := await reader.read(CHUNK):
            await self._pass(held)
            writer.write(chunk)
            await writer.drain()
        await self._pass(held)
        writer.write_eof()

    async def _pass(self, held: Callable[[], bool]) -> None:
        if self._way is Way.SLOW:
            await asyncio.sleep(self._delay)  # noqa: TID251 - a real wire's time
        while held():
            await self._changed.wait()

    def _asks(self) -> bool:
        """Whether what is asked is held up."""
        return self._way is Way.HOLE

    def _answers(self) -> bool:
        """Whether answers are held up."""
        return self._way in {Way.HOLE, Way.DEAF}
