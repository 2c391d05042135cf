"""A gRPC server on a socket of the file system, which comes into sight when it can answer and goes out of it first.

Knows gRPC's servers and their bounds. Must not know what is asked.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import grpc
import grpc.aio
import msgspec

from jackfield.driver import sockets

SOCKET_MODE: Final = 0o600
"""Only its owner, and root, may connect."""


class Bounds(msgspec.Struct, frozen=True):
    """How much is taken from whoever connects."""

    message_bytes: int = 1024 * 1024
    """Of one request; a thousand claims with the longest names have half of that."""
    calls: int = 128
    """Calls under way at a time, streams included; one more is refused."""


class Listener:
    """Listens at a path, once, until it is closed."""

    def __init__(
        self, path: Path, driver: str, handlers: tuple[grpc.GenericRpcHandler, ...], bounds: Bounds
    ) -> None:
        self.path = path
        self._driver = driver
        self._handlers = handlers
        self._bounds = bounds
        self._server: grpc.aio.Server | None = None
        self._inode = 0

    async def open(self) -> None:
        """Begin to listen. Raises Misplaced where that cannot be, or where another process was faster."""
        # gRPC makes its socket under a name of no meaning, since it takes a name from whoever has it, and removes it at
        # its end, whoever has it then. A link does neither. And whoever sees the socket finds it answering.
        made = sockets.unfinished(self.path, self._driver)
        server = self._made()
        try:
            server.add_insecure_port(f"unix:{made}")
            made.chmod(SOCKET_MODE)
            await _started(server)
            os.link(made, self.path, follow_symlinks=False)
            self._inode = self.path.lstat().st_ino
            made.unlink()
        except BaseException as error:
            await server.stop(None)
            if isinstance(error, FileExistsError):
                raise sockets.taken(self.path) from error
            if isinstance(error, OSError | RuntimeError):
                words = f"cannot make a socket in {self.path.parent}: {error}; is it mounted, and can we write there?"
                raise sockets.Misplaced(words) from error
            raise
        self._server = server

    def _made(self) -> grpc.aio.Server:
        """Return a server; it belongs to the loop that runs now."""
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", self._bounds.message_bytes),
                ("grpc.max_concurrent_streams", self._bounds.calls),
            ],
            maximum_concurrent_rpcs=self._bounds.calls,
        )
        server.add_generic_rpc_handlers(self._handlers)
        return server

    @property
    def lost(self) -> bool:
        """Whether we listen, but where nobody finds us."""
        return self._server is not None and not self._visible()

    def _visible(self) -> bool:
        try:
            return self.path.lstat().st_ino == self._inode
        except FileNotFoundError:
            return False

    async def close(self, grace_seconds: float = 0.0) -> None:
        """Go out of sight, take no new calls, and wait this long for those under way."""
        if self._server is None:
            return
        if self._visible():
            self.path.unlink(missing_ok=True)
        server, self._server = self._server, None
        await server.stop(grace_seconds)


async def _started(server: grpc.aio.Server) -> None:
    """Start it, to the end: one that is told to end halfway through its start cannot be stopped any more."""
    starting = asyncio.get_running_loop().create_task(server.start())
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait((starting,))
        raise
