"""Who really moves a device: nobody, or a command of the operator's.

Knows processes. Must not know orders, books or who asked. Every call may be repeated, after a restart above all: what
is attached already is attached, what is gone already is detached.
"""

import asyncio
import fcntl
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from jackfield.fabric_manager.hardware import Device, NoBackend, ScriptBackend
from jackfield.model.names import NodeName, Seconds
from jackfield.ports import Clock

WORDS_MAX: Final = 4096
"""Bytes kept of what a command says on standard error."""
WORDS_SECONDS: Final = 1.0
"""How long the last of it is waited for."""
LOOK_AGAIN: Final = Seconds(0.05)
NOBODY: Final = -1
"""No file."""


class BackendError(Exception):
    """It did not work; the message says why."""


class Backend(Protocol):
    """Moves devices. Raises BackendError; any call may be repeated."""

    async def attach(self, device: Device, node: NodeName) -> None:
        """Bring the device to the machine; nothing if it is there."""

    async def detach(self, device: Device, node: NodeName) -> None:
        """Take the device from the machine; nothing if it is not there."""

    def close(self) -> None:
        """Let go of whatever is held."""


class Nobody:
    """Only the books change."""

    async def attach(self, device: Device, node: NodeName) -> None:
        """Do nothing."""

    async def detach(self, device: Device, node: NodeName) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Script:
    """Runs COMMAND attach|detach DEVICE MACHINE; exit status 0 is success, the last line on standard error why not."""

    def __init__(self, settings: ScriptBackend, lock: Path, clock: Clock) -> None:
        self._settings = settings
        self._lock = lock
        self._clock = clock
        self._held = NOBODY
        self._entering = asyncio.Lock()

    def close(self) -> None:
        """Let others run commands."""
        if self._held != NOBODY:
            os.close(self._held)
            self._held = NOBODY

    async def attach(self, device: Device, node: NodeName) -> None:
        """Run it."""
        await self._run("attach", device, node)

    async def detach(self, device: Device, node: NodeName) -> None:
        """Run it."""
        await self._run("detach", device, node)

    async def _run(self, verb: str, device: Device, node: NodeName) -> None:
        await self._alone()
        async with _words() as words:
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._settings.command,
                    verb,
                    device.id,
                    node,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.DEVNULL,
                    stderr=words.end,
                    env=_environment(verb, device, node),
                    start_new_session=True,
                    pass_fds=(self._held,),
                )
            except (OSError, ValueError) as error:
                raise BackendError(f"{self._settings.command[0]} cannot be run: {error}") from error
            status = await self._ended(process)
            said = await words.last()
        if status is None:
            span = self._settings.timeout_seconds
            raise BackendError(f"{verb} of {device.id} did not end within {span:g} s")
        if status:
            raise BackendError(said or f"{verb} of {device.id} ended with status {status}")

    async def _ended(self, process: asyncio.subprocess.Process) -> int | None:
        """Return the command's status; None if it had to be killed. Whatever it left running goes with it."""
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()

    async def _alone(self) -> None:
        """Wait until no command of an earlier manager runs: one that was killed leaves its commands behind.

        Commands inherit the lock, so that it is held for as long as any of them lives.
        """
        async with self._entering:
            if self._held != NOBODY:
                return
            held = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            until = self._clock.now() + self._settings.timeout_seconds
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


def _environment(verb: str, device: Device, node: NodeName) -> dict[str, str]:
    """Return what a command may want to know beside its arguments; nothing of ours is handed on but the path."""
    known = {
        "JACKFIELD_VERB": verb,
        "JACKFIELD_DEVICE": str(device.id),
        "JACKFIELD_MACHINE": str(node),
        "JACKFIELD_SERIAL": device.serial,
        "JACKFIELD_MODEL": str(device.batch.model),
        "JACKFIELD_TYPE": device.batch.type,
        "JACKFIELD_SWITCH": str(device.batch.switch),
    }
    return {"PATH": os.defpath, "LC_ALL": "C.UTF-8", **known}


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


def of(settings: NoBackend | ScriptBackend, lock: Path, clock: Clock) -> Backend:
    """Return the back end that a file asks for; `lock` is a file that all managers of this lab share."""
    return Script(settings, lock, clock) if isinstance(settings, ScriptBackend) else Nobody()
