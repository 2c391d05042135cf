"""A manager that speaks our own protocol, `codec.native`: the Fabric port over HTTP.

Knows HTTP, and what a connection may do to a call. Must not know what an order is for. Every call ends within its
time-out; what that leaves open is asked about again, which the port allows. An attach is sent once per call: the
library repeats no POST, and whoever gets no answer looks again.
"""

from collections.abc import Callable
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self, TypeVar

import aiohttp
import msgspec

import jackfield
from jackfield.codec import native
from jackfield.fabric.settings import FabricSettings, Token, tls
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Refused, Retry

T = TypeVar("T")

CONNECTIONS_MAX: Final = 16
"""Calls to one manager at a time."""
WAITS_MAX: Final = 8
"""Calls whose answer may be held back at a time; the others must not wait for a connection because of them."""
ANSWER_BYTES_MAX: Final = 64 * 2**20
CERTIFICATE_AGAIN: Final = Seconds(10.0)
"""When a manager is asked again that could not be recognised."""


class NativeFabric:
    """One process's line to a manager; opened by the first call, closed by leaving the context."""

    def __init__(self, settings: FabricSettings, token: Token) -> None:
        self._settings = settings
        self._token = token
        self._tls = tls(settings)
        self._base = settings.url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self._shown: Inventory | None = None
        self._tag = ""
        self._waits = 0

    def __repr__(self) -> str:
        return f"NativeFabric({self._settings.name!r}, {self._settings.url!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the manager shows; the same object while it says that nothing changed."""
        headers = {"If-None-Match": self._tag} if self._tag and self._shown is not None else {}
        answer = await self._call("GET", "inventory", b"", headers)
        if answer.status == HTTPStatus.NOT_MODIFIED and self._shown is not None:
            return self._shown
        shown = self._understood(native.inventory, answer.body)
        if shown.fabric != self._settings.name:
            raise Refused(
                f"{self._base} shows fabric {shown.fabric!r} where {self._settings.name!r} was asked for"
            )
        self._shown, self._tag = shown, answer.tag
        return shown

    async def attach(self, order: Order) -> Progress:
        """Ask the manager to attach, or how far it is."""
        return await self._ask("attach", order)

    async def detach(self, order: Order) -> Progress:
        """Ask the manager to take back, or how far it is."""
        return await self._ask("detach", order)

    # --- the wire

    async def _ask(self, verb: str, order: Order) -> Progress:
        headers = {"Content-Type": native.JSON}
        span = Seconds(min(native.WAIT_SECONDS_MAX, self._settings.call_timeout_seconds / 2))
        if self._waits < WAITS_MAX:
            headers["Prefer"] = native.preference(span)
        self._waits += 1
        try:
            answer = await self._call("POST", verb, native.encode(order), headers)
        finally:
            self._waits -= 1
        return self._understood(native.progress, answer.body)

    async def _call(self, method: str, verb: str, body: bytes, headers: dict[str, str]) -> "_Answer":
        token = self._token()
        failure: PortError
        try:
            proof = {"Authorization": f"Bearer {token.reveal()}"} if token.reveal() else {}
            return await self._answer(method, verb, body, headers | proof)
        except TimeoutError:
            failure = Retry(f"no answer within {self._settings.call_timeout_seconds:g} s")
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            failure = Retry(f"the manager cannot be recognised: {error}", CERTIFICATE_AGAIN)
        except aiohttp.ClientResponseError as error:
            failure = Retry(f"the answer is not HTTP: {error.message or type(error).__name__}")
        except (aiohttp.ClientError, OSError) as error:
            failure = Retry(str(error) or type(error).__name__)
        # Raised out here, unchained: the library's errors hold the request's headers, and with them the token.
        raise self._named(failure)

    async def _answer(self, method: str, verb: str, body: bytes, headers: dict[str, str]) -> "_Answer":
        async with self._opened().request(
            method,
            f"{self._base}{native.path(self._settings.name, verb)}",
            data=body or None,
            headers=headers,
            allow_redirects=False,
        ) as response:
            read = await self._read(response)
            if response.status in {HTTPStatus.OK, HTTPStatus.NOT_MODIFIED}:
                return _Answer(response.status, response.headers.get("ETag", ""), read)
            raise self._named(native.error(response.status, read, response.headers.get("Retry-After", "")))

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > ANSWER_BYTES_MAX:
                raise self._named(Retry(f"the answer is larger than {ANSWER_BYTES_MAX >> 20} MiB"))
        return b"".join(chunks)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = (
                aiohttp.TCPConnector(limit=CONNECTIONS_MAX)
                if self._tls is None
                else aiohttp.TCPConnector(limit=CONNECTIONS_MAX, ssl=self._tls)
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={
                    "User-Agent": f"jackfield/{jackfield.__version__}",
                    "Accept": f"{native.JSON}, {native.PROBLEM_JSON}",
                },
                timeout=aiohttp.ClientTimeout(total=self._settings.call_timeout_seconds),
            )
        return self._session

    def _understood(self, decode: Callable[[bytes], T], body: bytes) -> T:
        try:
            return decode(body)
        except native.BadMessage as error:
            raise self._named(Retry(f"the answer is not understood: {error}", native.BUG_AFTER)) from error

    def _named(self, failure: PortError) -> PortError:
        """Return the failure with the manager's address, which is where one looks first."""
        failure.args = (f"{self._base}: {failure}",)
        return failure


class _Answer(msgspec.Struct, frozen=True):
    status: int
    tag: str
    body: bytes
