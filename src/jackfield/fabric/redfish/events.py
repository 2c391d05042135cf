"""What a service tells unasked: its stream of events (server-sent events, DSP0266), as a reason to look.

Knows that something happened, not what: whoever waits looks at once, and finds out. Must not be depended on: a stream
that breaks is opened again, ever more slowly, and without one everything is merely seen a little later.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import aiohttp

from jackfield.fabric.redfish.access import Door
from jackfield.fabric.settings import FabricSettings, tls
from jackfield.model.names import Seconds
from jackfield.ports import Clock, PortError

AGAIN_FIRST: Final = Seconds(5.0)
AGAIN_MAX: Final = Seconds(300.0)
CHUNK_MAX: Final = 2**16
STREAM: Final = "text/event-stream"


class Events:
    """One process's ear at a service."""

    def __init__(self, settings: FabricSettings, door: Door, clock: Clock) -> None:
        self._settings = settings
        self._door = door
        self._clock = clock
        self._listening: asyncio.Task[None] | None = None
        self.heard = 0
        """How often anything was."""

    def listen(self, find: Callable[[], Awaitable[str]], tell: Callable[[], None]) -> None:
        """Begin to listen where `find` says, if anywhere, and tell whenever there is news; once is enough."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen(find, tell))

    async def close(self) -> None:
        """Listen no more."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
            self._listening = None

    async def _listen(self, find: Callable[[], Awaitable[str]], tell: Callable[[], None]) -> None:
        again = AGAIN_FIRST
        while True:
            heard = self.heard
            try:
                path = await find()
                if not path:
                    return  # there is none: everything is asked about as it is anyway
                await self._heard(path, tell)
            except (PortError, aiohttp.ClientError, OSError, ValueError):
                pass
            again = AGAIN_FIRST if self.heard > heard else Seconds(min(AGAIN_MAX, again * 2))
            await self._clock.sleep(again)

    async def _heard(self, path: str, tell: Callable[[], None]) -> None:
        """Listen until the stream ends; an event is told when its blank line has come."""
        given = await self._door.open()
        context = tls(self._settings)
        connector = aiohttp.TCPConnector() if context is None else aiohttp.TCPConnector(ssl=context)
        async with (
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(
                f"{self._settings.url.rstrip('/')}{path}",
                headers={"Accept": STREAM, **given.headers},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, connect=self._settings.call_timeout_seconds),
            ) as response,
        ):
            if response.status != HTTPStatus.OK or not response.content_type.startswith(STREAM):
                return
            ending = b""
            while chunk := await response.content.read(CHUNK_MAX):
                text = (ending + chunk).replace(b"\r\n", b"\n")
                if b"data:" in text or b"\n\n" in text:
                    self.heard += 1
                    tell()
                ending = text[-len(b"data:") :]
