"""The face on a socket: HTTPS on loopback, a token, and limits on all that a client may do to us.

Knows aiohttp. Must not know Kubernetes: `api` answers.
"""

import asyncio
import hmac
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

import msgspec
from aiohttp import hdrs, web
from multidict import CIMultiDict

from jackfield.cluster.errors import ApiError
from jackfield.cluster.face import bodies, status, watching
from jackfield.cluster.face.api import PUBLIC, Api
from jackfield.cluster.face.calls import Answer, Call
from jackfield.cluster.face.certificates import Certificates
from jackfield.cluster.face.limits import PIECE_BYTES, USUAL, Limits
from jackfield.cluster.face.reading import Watching
from jackfield.cluster.face.watching import BOOKMARK_SECONDS, Hub, Watch
from jackfield.cluster.store import Store
from jackfield.codec import kinds
from jackfield.door import Connection, Door, Patience
from jackfield.line import hang_up
from jackfield.model.names import Seconds
from jackfield.ports import Clock

LOOPBACK: Final = "127.0.0.1"
WARNINGS_MAX: Final = 4 * 1024
WARNING_MAX: Final = 256
"""Letters of all warnings, and of each where there are too many."""
GO_ON: Final = "100-continue"


class Gate(msgspec.Struct, frozen=True):
    """Who is let in, and where."""

    certificates: Certificates
    token: str
    port: int = 0
    limits: Limits = USUAL


class ApiServer:
    """An API server over a store, serving while the context is open."""

    def __init__(self, store: Store, api: Api, clock: Clock, gate: Gate) -> None:
        self._store = store
        self._api = api
        self._clock = clock
        self.gate = gate
        self._limits = gate.limits
        self._expected = f"Bearer {gate.token}".encode()
        self._calls = 0
        self._unread = 0
        self._port = gate.port

    @property
    def url(self) -> str:
        """Where it is, once the context is open."""
        return f"https://{LOOPBACK}:{self._port}"

    async def __aenter__(self) -> Self:
        self._hub = Hub(self._store, kinds.KINDS)
        loop = asyncio.get_running_loop()
        # Whoever hangs up is not served to the end: a watch would go on for half an hour.
        self._server = web.Server(self._serve, handler_cancellation=True)
        limits = self._limits
        patience = Patience(limits.first_word_seconds, limits.idle_seconds, limits.read_seconds)
        self._listening = await loop.create_server(
            lambda: Connection(self._server, loop, patience),
            sock=Door.opened(LOOPBACK, self.gate.port, self._limits.connections),
            ssl=self.gate.certificates.context,
            ssl_handshake_timeout=self._limits.handshake_seconds,
            ssl_shutdown_timeout=1.0,
            backlog=512,
        )
        self._port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._hub.close()
        left = [one.transport for one in self._server.connections if one.transport is not None]
        await self._server.shutdown(timeout=1.0)
        for one in left:  # nobody waits for a client to say goodbye
            hang_up(one)

    # --- one call

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol
        assert isinstance(connection, Connection)
        connection.understood()
        try:
            return await self._served(request)
        except (ConnectionError, TimeoutError):
            connection.cut_off()
            return web.Response()
        finally:
            connection.answered()

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._calls >= self._limits.calls:
            return _response(status.answer(status.too_many("too many requests, please try again later")))
        self._calls += 1
        try:
            answer = await self._answer(request)
            if isinstance(answer, Answer):
                return await self._tell(request, answer)
        finally:
            self._calls -= 1
        return await self._watch(request, answer)

    async def _tell(self, request: web.BaseRequest, answer: Answer) -> web.StreamResponse:
        """Send an answer to whoever reads it in time."""
        too_much = self._unread + len(answer.body) > self._limits.unread_bytes
        # What was done must be told, and little can always be.
        if too_much and request.method == hdrs.METH_GET and len(answer.body) > PIECE_BYTES:
            answer = status.answer(status.too_many("too much is unread, please try again later"))
        if len(answer.body) <= PIECE_BYTES:
            response: web.StreamResponse = _response(answer)
            async with asyncio.timeout(self._limits.read_seconds):
                await response.prepare(request)
                await response.write_eof()
            return response
        response = web.StreamResponse(status=answer.code, headers=_headers(answer))
        response.content_length = len(answer.body)
        async with asyncio.timeout(self._limits.read_seconds):
            await response.prepare(request)
            await self._write(response, answer.body)
            await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        self._unread += len(data)
        try:
            for start in range(0, len(data), PIECE_BYTES):
                await response.write(data[start : start + PIECE_BYTES])
        finally:
            self._unread -= len(data)

    async def _answer(self, request: web.BaseRequest) -> Answer | Watching:
        if request.path not in PUBLIC and not self._is_known(request.headers):
            return status.answer(status.UNAUTHORIZED)
        try:
            body = await _body(request, self._limits.body_seconds)
        except ApiError as error:
            return status.answer(error)
        return self._api.answer(
            Call(
                method=request.method,
                path=request.rel_url.raw_path,
                query=dict(request.query),
                body=body,
                content_type=_legible(request.headers.get(hdrs.CONTENT_TYPE, "")),
                accept=_legible(",".join(request.headers.getall(hdrs.ACCEPT, []))),
                agent=_legible(request.headers.get(hdrs.USER_AGENT, "")),
            )
        )

    def _is_known(self, headers: Mapping[str, str]) -> bool:
        said = headers.get(hdrs.AUTHORIZATION, "").encode(errors="surrogateescape")
        return hmac.compare_digest(said, self._expected)

    # --- one watch

    async def _watch(self, request: web.BaseRequest, watching_: Watching) -> web.StreamResponse:
        if self._hub.count >= self._limits.watches:
            return _response(status.answer(status.too_many("there are too many watches already")))
        try:
            watch, first = self._hub.begin(watching_.view, watching_.asked, self._clock.now())
        except ApiError as error:
            if error.reason != "Expired":
                return _response(status.answer(error))
            watch, first = None, watching.error_line(error)
        response = web.StreamResponse(headers={hdrs.CONTENT_TYPE: "application/json"})
        response.enable_chunked_encoding()
        try:
            if self._unread + len(first) > self._limits.unread_bytes:
                words = "too much is unread, please try again later"
                return _response(status.answer(status.too_many(words)))
            await response.prepare(request)
            await self._write_in_time(response, first)
            if watch is not None:
                await self._follow(watch, response)
            await response.write_eof()
        finally:
            if watch is not None:
                self._hub.leave(watch)
        return response

    async def _follow(self, watch: Watch, response: web.StreamResponse) -> None:
        until = self._clock.now() + min(
            watch.asked.seconds or self._limits.watch_seconds, self._limits.watch_seconds_max
        )
        bookmark_at = self._clock.now() + BOOKMARK_SECONDS if watch.asked.bookmarks else until
        while not watch.behind and (now := self._clock.now()) < until:
            lines = watch.lines(now)
            if not lines and now >= bookmark_at:
                lines, bookmark_at = self._hub.bookmark(watch), now + BOOKMARK_SECONDS
            if lines:
                await self._write_in_time(response, lines)
            else:
                await watch.wait(Seconds(min(until, bookmark_at) - now))

    async def _write_in_time(self, response: web.StreamResponse, lines: bytes) -> None:
        async with asyncio.timeout(self._limits.read_seconds):
            await self._write(response, lines)


async def _body(request: web.BaseRequest, seconds: float) -> bytes:
    """Return the body; one that is too long, or takes too long, is not waited for."""
    if not request.can_read_body:
        return b""
    if (request.content_length or 0) > bodies.BYTES_MAX:
        raise status.too_large_body(bodies.BYTES_MAX)
    expected = request.headers.get(hdrs.EXPECT, "")
    if expected:
        if expected.lower() != GO_ON:
            raise ApiError(417, "", "nobody expects that")
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.content.iter_any():
                size += len(part)
                if size > bodies.BYTES_MAX:
                    raise status.too_large_body(bodies.BYTES_MAX)
                parts.append(part)
    except TimeoutError as error:
        raise ApiError(408, "Timeout", "the body of the request did not come in time") from error
    return b"".join(parts)


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.code, body=answer.body, headers=_headers(answer))


def _headers(answer: Answer) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict(answer.headers)
    headers[hdrs.CONTENT_TYPE] = answer.content_type
    headers[hdrs.CACHE_CONTROL] = "no-cache, private"
    for warning in _short(answer.warnings):
        headers.add("Warning", f'299 - "{_quoted(warning)}"')
    return headers


def _short(warnings: tuple[str, ...]) -> list[str]:
    """Return warnings as far as headers can carry them; where they are too much, each is cut, and the last left out."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) <= WARNINGS_MAX:
        return texts
    told: list[str] = []
    while texts and sum(map(len, told)) < WARNINGS_MAX:
        told.append(texts.pop(0)[:WARNING_MAX])
    return told


def _legible(text: str) -> str:
    """Return a header without the bytes that are no text."""
    return text.encode(errors="replace").decode()


def _quoted(text: str) -> str:
    printable = "".join(one if one.isprintable() and one.isascii() else "?" for one in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
