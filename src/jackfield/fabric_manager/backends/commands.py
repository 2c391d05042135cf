"""Commands in processes of their own: bounded in time, heard to the end, and never beside an earlier manager's.

Knows processes. Must not know what a command does.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from jackfield.fabric_manager.backends.backend import BackendError
from jackfield.model.names import Seconds
from jackfield.ports import Clock

WORDS_MAX: Final = 4096
"""Bytes kept of what a command says on standard error."""
WORDS_SECONDS: Final = 1.0
"""How long the last of it is waited for."""
REAP_SECONDS: Final = 5.0
LOOK_AGAIN: Final = Seconds(0.05)
NOBODY: Final = -1
"""No file."""


class End(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: int | None
    """None if it had to be killed."""
    said: str
    """The last line on standard error."""


class Commands:
    """Runs commands; no shell reads them, and nothing of our environment is handed on but what is given."""

    def __init__(self, lock: Path, clock: Clock, timeout: Seconds) -> None:
        self.timeout = timeout
        self._lock = lock
        self._clock = clock
        self._held = NOBODY
        self._entering = asyncio.Lock()

    def close(self) -> None:
        """Let others run commands."""
        if self._held != NOBODY:
            os.close(self._held)
            self._held = NOBODY

    async def run(self, command: Sequence[str], environment: Mapping[str, str]) -> End:
        """Run a command to its end. Raises BackendError if it cannot be run at all."""
        await self._alone()
        async with _words() as words:
            try:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=words.end,
                    env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", **environment},
                    start_new_session=True,
                    pass_fds=(self._held,),
                )
            except (OSError, ValueError) as error:
                raise BackendError(f"{command[0]} cannot be run: {error}") from error
            status = await self._ended(process)
            return End(status, await words.last())

    async def _ended(self, process: asyncio.subprocess.Process) -> int | None:
        """Return the command's status; None if it had to be killed. Whatever it left running goes with it."""
        try:
            async with asyncio.timeout(self.timeout):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # One that is deep in the kernel does not die yet. It keeps the lock, and nobody waits for it here.
            with suppress(TimeoutError):
                async with asyncio.timeout(REAP_SECONDS):
                    await process.wait()

    async def _alone(self) -> None:
        """Wait until no command of an earlier manager runs: one that was killed leaves its commands behind.

        Commands inherit the lock, so that it is held for as long as any of them lives.
        """
        async with self._entering:
            if self._held != NOBODY:
                return
            held = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            until = self._clock.now() + self.timeout
            while not _locked(held):
                if self._clock.now() > until:
                    os.close(held)
                    raise BackendError("a command of an earlier manager is still running")
                await self._clock.sleep(LOOK_AGAIN)
            self._held = held


def _locked(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Words:
    """What a command says on standard error.

    The pipe is our own: with asyncio's, a command's children, who inherit it, would hold up the end of the command.
    """

    def __init__(self, reader: asyncio.StreamReader, end: int) -> None:
        self.end = end
        self._kept = b""
        self._task = asyncio.get_running_loop().create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(WORDS_MAX):
            self._kept = (self._kept + chunk)[-WORDS_MAX:]

    async def last(self) -> str:
        """Return the last line; whoever still holds the pipe is not waited for."""
        os.close(self.end)
        self.end = NOBODY
        await asyncio.wait((self._task,), timeout=WORDS_SECONDS)
        lines = [line.strip() for line in self._kept.decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def close(self) -> None:
        self._task.cancel()
        if self.end != NOBODY:
            os.close(self.end)


@asynccontextmanager
async def _words() -> AsyncIterator[_Words]:
    ours, theirs = os.pipe()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ours, "rb", 0)
    )
    words = _Words(reader, theirs)
    try:
        yield words
    finally:
        words.close()
        transport.close()
