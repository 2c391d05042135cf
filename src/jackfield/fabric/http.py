"""What every adapter needs of HTTP: one session per manager, time-outs, limits, and errors that hold no secret.

Knows HTTP, and what a connection may do to a call. Must not know any manager, or what a call is for. The library
repeats no request that may have an effect twice; redirects are not followed and proxies of the environment not used,
since either would show credentials to somebody else.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import aiohttp
import msgspec

import jackfield
from jackfield.fabric.settings import FabricSettings, Secret, tls
from jackfield.model.names import Seconds
from jackfield.ports import PortError, Retry

CONNECTIONS_MAX: Final = 16
"""Calls to one manager at a time."""
ANSWER_BYTES_MAX: Final = 64 * 2**20
CERTIFICATE_AGAIN: Final = Seconds(10.0)
"""When a manager is asked again that could not be recognised."""
RETRY_AFTER_MAX: Final = Seconds(60.0)
"""A manager that wants to be left alone for longer is asked all the same: it may have been restarted."""


class Unsent(Retry):
    """Nothing of the call reached the manager: it may be sent again whatever it is."""


class Request(msgspec.Struct, frozen=True):
    """What is sent; the headers may hold a secret, so it is not shown."""

    method: str
    path: str
    """With its query, as it stands on the wire."""
    body: bytes = b""
    headers: Mapping[str, str] = {}
    timeout: Seconds = Seconds(0.0)
    """How long the answer may take; as the settings say where it is 0."""
    secrets: tuple[Secret, ...] = ()
    """What must be in no error, should the other side repeat what it was sent."""

    def __repr__(self) -> str:
        return f"Request({self.method} {self.path.partition('?')[0]})"


class Answer(msgspec.Struct, frozen=True):
    """What came back, whatever its status; the body may hold a secret, so it is not shown."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    """With names in lower case."""

    def __repr__(self) -> str:
        return f"Answer({self.status})"

    @property
    def retry_after(self) -> Seconds:
        """How long the manager wants to be left alone; 0 if it does not say."""
        text = self.headers.get("retry-after", "")
        named = float(text) if text.isascii() and text.isdigit() and len(text) < len("1000000000") else 0.0
        return min(Seconds(named), RETRY_AFTER_MAX) if math.isfinite(named) else Seconds(0.0)


class Wire:
    """One process's connections to a manager; opened by the first call, closed for a while by `close`."""

    def __init__(self, settings: FabricSettings, accept: str) -> None:
        self.base = settings.url.rstrip("/")
        self._settings = settings
        self._accept = accept
        self._tls = tls(settings)
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Wire({self.base!r})"

    async def close(self) -> None:
        """Hang up."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(self, request: Request) -> Answer:
        """Send it once and return the answer. Raises Retry naming the manager; Unsent if it was never sent."""
        patience = request.timeout or self._settings.call_timeout_seconds
        failure: PortError
        try:
            return await self._answer(request, patience)
        except TimeoutError:
            failure = Retry(f"no answer within {patience:g} s")
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            failure = Unsent(f"the manager cannot be recognised: {error}", CERTIFICATE_AGAIN)
        except aiohttp.ClientConnectorError as error:
            failure = Unsent(str(error) or type(error).__name__)
        except aiohttp.ClientResponseError as error:
            failure = Retry(f"the answer is not HTTP: {error.message or type(error).__name__}")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            failure = Retry(str(error) or type(error).__name__)
        # Raised out here, unchained: the library's errors hold the request's headers, and with them the token.
        raise self.named(failure, request.secrets)

    async def _answer(self, request: Request, patience: Seconds) -> Answer:
        async with self._opened().request(
            request.method,
            f"{self.base}{request.path}",
            data=request.body or None,
            headers=request.headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=patience),
        ) as response:
            headers = {name.lower(): text for name, text in response.headers.items()}
            return Answer(response.status, await self._read(response), headers)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size > ANSWER_BYTES_MAX:
                raise self.named(Retry(f"the answer is larger than {ANSWER_BYTES_MAX >> 20} MiB"))
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
                headers={"User-Agent": f"jackfield/{jackfield.__version__}", "Accept": self._accept},
            )
        return self._session

    def named(self, failure: PortError, secrets: Sequence[Secret] = ()) -> PortError:
        """Return the failure with the manager's address, which is where one looks first, and without secrets."""
        failure.args = (f"{self.base}: {without(str(failure), secrets)}",)
        return failure


def without(text: str, secrets: Sequence[Secret]) -> str:
    """Return the text with every secret struck out."""
    for secret in secrets:
        if secret.reveal():
            text = text.replace(secret.reveal(), "…")
    return text
