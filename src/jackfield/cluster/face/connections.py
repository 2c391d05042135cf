"""How many may be connected, and how long they may keep silent.

Knows connections before anything was asked on them. Must not know what is asked. A client that connects and says
nothing, or says it one letter at a time, is cut off; one that comes on top of too many others is not let in.
"""

import asyncio
import errno
import logging
import resource
import socket
from typing import Final, Self

from aiohttp import web

from jackfield.cluster.face.limits import Limits

FILES_KEPT: Final = 100
"""Files that this process may need for other things than connections."""
SILENT: Final = logging.getLogger("jackfield.access")
"""Nobody reads who asked for what: calls are not logged, nor what cannot be understood."""
SILENT.setLevel(logging.CRITICAL + 1)


class Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_impatience", "_patience", "_serving")

    def __init__(self, server: web.Server, loop: asyncio.AbstractEventLoop, limits: Limits) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=limits.idle_seconds,
            logger=SILENT,
            access_log=SILENT,
            lingering_time=1.0,
            # A packed body is far longer than it looks, and no API server takes one.
            auto_decompress=False,
        )
        self._patience = limits.first_word_seconds
        self._serving = False
        self._impatience: asyncio.TimerHandle | None = None

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

    def understood(self) -> None:
        """Take note that the client has said what it wants."""
        self._serving = True
        self._calm()

    def answered(self) -> None:
        """Take note that the client has what it wanted, and may ask for more."""
        self._serving = False

    def cut_off(self) -> None:
        """Have nothing more to do with this client."""
        if self.transport is not None:
            self.transport.abort()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._impatience = loop.call_later(self._patience, self.cut_off)

    def _calm(self) -> None:
        if self._impatience is not None:
            self._impatience.cancel()
            self._impatience = None


class Door(socket.socket):
    """Listens, and lets in only so many at a time, whether or not they ever speak our language."""

    most = 0
    inside = 0

    @classmethod
    def opened(cls, address: str, port: int, most: int) -> Self:
        """Return a door at an address; fewer are let in where this process may not have so many files."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if files <= FILES_KEPT:
            words = (
                f"this process may open only {files} files; raise that (ulimit -n) to more than {FILES_KEPT}"
            )
            raise OSError(errno.EMFILE, words)
        door = cls(socket.AF_INET, socket.SOCK_STREAM)
        door.most = min(most, files - FILES_KEPT)
        try:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((address, port))
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
