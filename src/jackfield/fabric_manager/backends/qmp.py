"""QMP: a line to the monitor of one QEMU, made when it is needed and made anew after it broke.

Knows the protocol: greeting, capabilities, commands with ids, events between the answers. Every event is read as it
comes, and whoever waits for one is told when the line breaks, since it may be missed then. Must not know devices.
"""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Final

import msgspec

from jackfield.fabric_manager.backends.backend import BackendError
from jackfield.model.names import Seconds

LINE_BYTES_MAX: Final = 16 << 20
"""query-pci of a large guest is one line."""
DELETED: Final = "DEVICE_DELETED"
UNPLUG_ERROR: Final = "DEVICE_UNPLUG_GUEST_ERROR"


class Ended(BackendError):  # noqa: N818 - what QEMU did
    """Nobody listens: QEMU has ended, and its guest with it, or was never there."""


class Broken(Exception):  # noqa: N818 - what happened to the line
    """The line broke; whether the command was carried out is not known."""


class Declined(Exception):  # noqa: N818 - what QEMU did
    """QEMU answered with an error."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


class _Error(msgspec.Struct, frozen=True):
    kind: str = msgspec.field(default="", name="class")
    desc: str = ""


class _About(msgspec.Struct, frozen=True):
    device: str = ""


class _Message(msgspec.Struct, frozen=True):
    """Whatever comes: the greeting, an answer, or an event."""

    greeting: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="QMP")
    id: int = -1
    answer: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="return")
    error: _Error | None = None
    event: str = ""
    data: _About = _About()


class Monitor:
    """One QEMU's monitor."""

    def __init__(self, path: str, patience: Seconds) -> None:
        self._path = path
        self._patience = patience
        self._connecting = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._watched: dict[str, asyncio.Future[str]] = {}

    def close(self) -> None:
        """Hang up."""
        if self._reading is not None and self._writer is not None:
            self._reading.cancel()
            self._hang_up(self._writer, "the manager ends")

    async def execute(self, command: str, arguments: Mapping[str, object]) -> bytes:
        """Return what QEMU answers. Raises Declined, Broken, and BackendError if there is nobody to ask."""
        writer = await self._line()
        return await self._asked(writer, command, arguments)

    def watch(self, device: str) -> "asyncio.Future[str]":
        """Return what will be heard of a device: empty when it is deleted, or why the guest does not give it up.

        Raises Broken when the line breaks. Begin to watch before asking for anything.
        """
        known = self._watched.get(device)
        if known is None or known.done():
            known = self._watched[device] = asyncio.get_running_loop().create_future()
        return known

    # --- the line

    async def _line(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await self._opened()
                self._reading = asyncio.get_running_loop().create_task(self._read(reader, self._writer))
            return self._writer

    async def _opened(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=LINE_BYTES_MAX)
        except (
            FileNotFoundError,
            ConnectionRefusedError,
        ) as error:  # it takes the socket along, unless it was killed
            raise Ended(
                f"{self._path}: nobody listens: start QEMU with -qmp unix:{self._path},server=on,wait=off"
            ) from error
        except PermissionError as error:
            raise BackendError(
                f"{self._path}: may not be opened: run the manager as the user that runs QEMU"
            ) from error
        except OSError as error:
            raise BackendError(f"{self._path}: {error.strerror or error}") from error
        try:
            async with asyncio.timeout(self._patience):
                greeted = msgspec.json.decode(await reader.readline(), type=_Message)
                writer.write(b'{"execute": "qmp_capabilities", "id": 0}\n')
                agreed = msgspec.json.decode(await reader.readline(), type=_Message)
        except TimeoutError as error:
            writer.close()
            raise BackendError(
                f"{self._path}: QEMU does not greet: another program may be using this monitor, and it serves one "
                "at a time; give the manager a -qmp socket of its own"
            ) from error
        except (msgspec.DecodeError, OSError, ValueError) as error:
            writer.close()
            raise BackendError(f"{self._path}: is no QMP monitor: {error}") from error
        if not greeted.greeting or agreed.error is not None:
            writer.close()
            raise BackendError(f"{self._path}: is no QMP monitor that we can use")
        return reader, writer

    async def _asked(
        self, writer: asyncio.StreamWriter, command: str, arguments: Mapping[str, object]
    ) -> bytes:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        question = {"execute": command, "arguments": arguments, "id": number}
        try:
            async with asyncio.timeout(self._patience):
                writer.write(msgspec.json.encode(question) + b"\n")
                await writer.drain()
                return bytes(await answer)
        except TimeoutError as error:
            raise BackendError(
                f"{self._path}: QEMU did not answer {command} within {self._patience:g} s"
            ) from error
        except OSError as error:
            self._hang_up(writer, str(error))
            raise Broken(str(error)) from error
        finally:
            answer.cancel()
            self._answers.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read to the end, and tell everybody who waits for something."""
        why = "QEMU hung up"
        try:
            while line := await reader.readline():
                self._heard(msgspec.json.decode(line, type=_Message))
        except (OSError, ValueError, msgspec.DecodeError) as error:
            why = f"QEMU cannot be understood: {error}"
        self._hang_up(writer, why)

    def _heard(self, message: _Message) -> None:
        answer = self._answers.get(message.id)
        if message.event:
            self._happened(message.event, message.data.device)
        elif answer is None or answer.done():
            return  # nobody waits for it any more
        elif message.error is not None:
            answer.set_exception(Declined(message.error.kind, message.error.desc))
        else:
            answer.set_result(message.answer)

    def _happened(self, event: str, device: str) -> None:
        waiting = self._watched.get(device)
        if event not in {DELETED, UNPLUG_ERROR} or waiting is None or waiting.done():
            return
        del self._watched[device]
        waiting.set_result("" if event == DELETED else "the guest reports an error")

    def _hang_up(self, writer: asyncio.StreamWriter, why: str) -> None:
        writer.close()
        if writer is not self._writer:
            return  # there is a new line already
        self._writer = None
        for answer in self._answers.values():
            _fail(answer, why)
        for waiting in self._watched.values():
            _fail(waiting, why)
        self._watched.clear()


def _fail(future: asyncio.Future[msgspec.Raw] | asyncio.Future[str], why: str) -> None:
    if not future.done():
        future.set_exception(Broken(why))
        future.exception()  # whoever waited may have gone
