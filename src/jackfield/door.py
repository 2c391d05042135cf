"""The door of every HTTP server here: how many may be connected, and how long they may keep silent.

Knows connections before anything was asked on them. Must not know what is asked, or who answers. A client that connects
and says nothing, or says it one letter at a time, is cut off; one that comes on top of too many others is not let in.
"""

import asyncio
import errno
import logging
import resource
import socket
from typing import Final, Self

import msgspec
from aiohttp import web

from jackfield.line import hang_up

FILES_KEPT: Final = 100
"""Files that this process may need for other things than connections."""
SILENT: Final = logging.getLogger("jackfield.access")
"""Nobody reads who asked for what: calls are not logged, nor what cannot be understood."""
SILENT.setLevel(logging.CRITICAL + 1)


class Patience(msgspec.Struct, frozen=True):
    """How long a client may keep silent."""

    first_word_seconds: float = 15.0
    """How long it may take to say what it wants."""
    idle_seconds: float = 75.0
    """How long a connection is kept for another call."""
    read_seconds: float = 60.0
    """How long it may take to read an answer."""


class Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_impatience", "_patience", "_reading", "_serving")

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, patience: Patience) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=patience.idle_seconds,
            logger=SILENT,
            access_log=SILENT,
            lingering_time=1.0,
            # A packed body is far longer than it looks, and nobody here takes one.
            auto_decompress=False,
        )
        self._patience = patience
        self._serving = False
        self._impatience: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for what the client wants."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Wait no longer."""
        self._calm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hear something; it should amount to a question soon."""
        if self._impatience is None and not self._serving:
            self._wait()
        super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Say what is wrong with what is no HTTP, without repeating it: it may be half of a secret."""
        return super().handle_error(request, status, exc, message and message.partition("\n")[0])

    def understood(self) -> None:
        """Take note that the client has said what it wants."""
        self._serving = True
        self._calm()

    def answered(self) -> None:
        """Take note that the client is given what it wanted, should read it, and may ask for more."""
        self._serving = False
        loop = asyncio.get_running_loop()
        self._reading = loop.call_later(self._patience.read_seconds, self._unread)

    def cut_off(self) -> None:
        """Have nothing more to do with this client."""
        hang_up(self.transport)

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._impatience = loop.call_later(self._patience.first_word_seconds, self.cut_off)

    def _unread(self) -> None:
        if self.transport is not None and self.transport.get_write_buffer_size():
            self.cut_off()

    def _calm(self) -> None:
        for timer in (self._impatience, self._reading):
            if timer is not None:
                timer.cancel()
        self._impatience = self._reading = None


class Door(socket.socket):
    """Listens, and lets in only so many at a time, whether or not they ever speak our language."""

    most = 0
    inside = 0

    @classmethod
    def opened(cls, address: str, port: int, most: int) -> Self:
        """Return a door at an address or name; fewer are let in where this process may not have so many files."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files <= FILES_KEPT:
            words = (
                f"this process may open only {files} files; raise that (ulimit -n) to more than {FILES_KEPT}"
            )
            raise OSError(errno.EMFILE, words)
        family, _, _, _, place = socket.getaddrinfo(
            address, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        door = cls(family, socket.SOCK_STREAM)
        door.most = min(most, files - FILES_KEPT)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind(place)
        except OSError:
            door.close()
            raise
        return door

    def accept(self) -> tuple["Guest", tuple[str, int]]:
        """Let one in; whoever comes on top of too many others finds the door shut."""
        one, address = super().accept()
        if self.inside >= self.most:
            one.close()
            raise BlockingIOError("there is no room")
        return Guest(self, one), address


class Guest(socket.socket):
    """A connection that makes room when it is closed."""

    def __init__(self, door: Door, one: socket.socket) -> None:
        super().__init__(one.family, one.type, one.proto, fileno=one.detach())
        self._door: Door | None = door
        door.inside += 1

    def close(self) -> None:
        """Leave."""
        if self._door is not None:
            self._door.inside -= 1
            self._door = None
        super().close()
