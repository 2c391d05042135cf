"""HTTP to an API server: one pool of connections, proofs of who we are, limits of time and rate, errors as the port's.

Knows HTTP and TLS. Must not know kinds, versions or watches. A write is sent once: whoever gets no answer looks again.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import aiohttp
import msgspec

from jackfield.kube import answers, connection
from jackfield.kube.bucket import Bucket
from jackfield.kube.connection import BadConnection, Connection
from jackfield.kube.credentials import BadCredentials, Proof
from jackfield.line import HangsUp, unreached
from jackfield.model.names import Seconds
from jackfield.ports import Refused, Retry

JSON: Final = "application/json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
"""JSON is YAML, and this name is understood by older servers too."""
NO_ANSWER: Final = "error"
"""What is heard in place of a code where there was no answer."""
CONNECTIONS_MAX: Final = 128
KEEP_ALIVE_SECONDS: Final = 60.0
CONNECT_SECONDS_MAX: Final = 10.0
CALL_SECONDS_MAX: Final = 30.0
"""How long an answer may take, waiting for a free connection included."""
CREDENTIALS_AGAIN: Final = Seconds(5.0)
"""When to try again after there was nothing to prove who we are with."""
READ_BYTES: Final = 2**20
"""How much is read ahead of whoever decodes it."""


class Call(msgspec.Struct, frozen=True):
    """Something to ask."""

    method: str
    path: str
    params: Mapping[str, str] = {}
    body: bytes = b""
    content_type: str = JSON
    seconds_max: float = CALL_SECONDS_MAX

    @property
    def what(self) -> str:
        """Say it, for errors."""
        return f"{self.method} {self.path}"

    @property
    def reads(self) -> bool:
        """Whether it changes nothing, so that it may be asked twice."""
        return self.method == "GET"


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    code: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """One program's connections to one API server."""

    def __init__(self, to: Connection, agent: str, bucket: Bucket) -> None:
        self._to = to
        self._agent = agent
        self._bucket = bucket
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Proof, ssl.SSLContext] | None = None
        self.heard: Callable[[Call, str, float], None] = lambda *_: None
        """Hears of every call: the answer's code, and how long it took to begin."""

    async def __aenter__(self) -> Self:
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS_MAX, keepalive_timeout=KEEP_ALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._agent, "Accept": JSON},
            read_bufsize=READ_BYTES,
            response_class=HangsUp,
        )
        # The library would send a DELETE again over a connection that broke; whether it was heard nobody knows.
        session._retry_connection = False  # noqa: SLF001 - there is no public way
        self._session = session
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, call: Call) -> bytes:
        """Return the answer's body. Raises the port's errors."""
        await self._bucket.take()
        with _as_port_errors(call):
            answer = await self._answer(call)
            if answer.code == HTTPStatus.UNAUTHORIZED:  # nothing was done, so a write may be repeated too
                self._to.credentials.doubt()
                answer = await self._answer(call)
        if answer.code >= HTTPStatus.MULTIPLE_CHOICES:
            raise answers.error(answers.status(answer.code, answer.body), call.what, answer.headers)
        return answer.body

    async def open(self, call: Call, silence_max: float) -> "Stream":
        """Return an answer that has no end, as it comes; whoever opens it closes it. Raises the port's errors."""
        with _as_port_errors(call):
            response = await self._sent(call, silence_max)
            if response.status == HTTPStatus.UNAUTHORIZED:
                response.close()
                self._to.credentials.doubt()
                response = await self._sent(call, silence_max)
            if response.status < HTTPStatus.MULTIPLE_CHOICES:
                return Stream(call, response)
            async with response:
                body = await response.read()
        raise answers.error(answers.status(response.status, body), call.what, response.headers)

    async def _answer(self, call: Call) -> Answer:
        """Return the answer; a read whose connection broke is asked once more: the server may just have closed it."""
        try:
            return await self._asked(call)
        except aiohttp.ClientConnectionError as error:
            if not call.reads or isinstance(error, aiohttp.ClientConnectorError | TimeoutError):
                raise
        return await self._asked(call)

    async def _asked(self, call: Call) -> Answer:
        response = await self._sent(call)
        async with response:
            return Answer(response.status, response.headers, await response.read())

    async def _sent(self, call: Call, silence_max: float | None = None) -> aiohttp.ClientResponse:
        loop, code = asyncio.get_running_loop(), NO_ANSWER
        began = loop.time()
        try:
            response = await self._request(call, silence_max)
            code = str(response.status)
            return response
        finally:
            self.heard(call, code, loop.time() - began)

    async def _request(self, call: Call, silence_max: float | None) -> aiohttp.ClientResponse:
        assert self._session is not None, "used outside of `async with`"  # noqa: S101 - only our mistake
        proof = await self._to.credentials.proof()
        headers = {"Authorization": f"Bearer {proof.token}"} if proof.token else {}
        if call.body:
            headers["Content-Type"] = call.content_type
        return await self._session.request(
            call.method,
            f"{self._to.server}{call.path}",
            params=call.params,
            data=call.body or None,
            headers=headers,
            allow_redirects=False,
            proxy=self._to.proxy or None,
            ssl=self._context(proof),
            server_hostname=self._to.trust.server_name or None,
            timeout=aiohttp.ClientTimeout(
                total=call.seconds_max, sock_connect=CONNECT_SECONDS_MAX, sock_read=silence_max
            ),
        )

    def _context(self, proof: Proof) -> ssl.SSLContext | bool:
        if not self._to.server.startswith("https:"):
            return True
        shown = msgspec.structs.replace(proof, token="")
        if self._tls is None or self._tls[0] != shown:
            self._tls = (shown, connection.tls(self._to.trust, shown, self._to.source))
        return self._tls[1]


class Stream:
    """An answer without an end."""

    def __init__(self, call: Call, response: aiohttp.ClientResponse) -> None:
        self._call = call
        self._response = response

    async def chunk(self) -> bytes:
        """Return what has come, or wait for it; nothing once the server has ended. Raises the port's errors."""
        with _as_port_errors(self._call):
            return await self._response.content.readany()

    def close(self) -> None:
        """Hang up."""
        self._response.close()


@contextmanager
def _as_port_errors(call: Call) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise Retry(f"{call.what}: no answer in time") from error
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise Refused(
            f"{call.what}: {unreached(error)}; is this the cluster's CA, and ours the certificate?"
        ) from error
    except aiohttp.ClientConnectorError as error:
        raise Retry(f"{call.what}: {unreached(error)}") from error
    except aiohttp.ClientResponseError as error:
        # Not chained: it holds the request's headers, and with them who we are.
        raise Retry(f"{call.what}: {error.status} {error.message}") from None
    except (aiohttp.ClientError, OSError) as error:
        raise Retry(f"{call.what}: {str(error) or type(error).__name__}") from error
    except (BadCredentials, BadConnection) as error:
        raise Retry(f"{call.what}: {error}", CREDENTIALS_AGAIN) from error
