"""The door: one HTTP server for all faces. Nobody comes in without the token, and nothing large.

Knows HTTP, TLS, limits, and how a fault looks from outside. Must not know any face's words, nor what an order is.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import msgspec
from aiohttp import web

from jackfield.door import Connection, Door, Patience
from jackfield.fabric.http import legible
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Face, Trouble, bearer
from jackfield.fabric_manager.faces.native import problem
from jackfield.fabric_manager.faults import WIRE, Call, Fault, Kind
from jackfield.fabric_manager.manager import Manager
from jackfield.line import hang_up
from jackfield.model.names import Seconds
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry

LOOPBACK: Final = "127.0.0.1"
BODY_BYTES_MAX: Final = 1 << 20
READ_SECONDS_MAX: Final = 10.0
"""Within this time a body must have come."""
HANDSHAKE_SECONDS_MAX: Final = 10.0
CONNECTIONS_MAX: Final = 2_000
"""How many may be connected; fewer where the process may not have so many files."""
SHUTDOWN_SECONDS: Final = 0.5
"""How long those are waited for who are being answered; to aiohttp, 0 would be for ever."""
BACKLOG: Final = 512
GO_ON: Final = "100-continue"
UNREAD: Final = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT)
"""After these nobody waits for the rest of what was being said."""
LOG: Final = logging.getLogger(__name__)

_STATUS: Final[dict[type[PortError], int]] = {Retry: 503, Conflict: 409, Gone: 404, Refused: 422, Bug: 400}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate(msgspec.Struct, frozen=True):
    """Where it listens and who may come in."""

    token: Secret
    host: str = LOOPBACK
    port: int = 0
    tls: ssl.SSLContext | None = None
    read_seconds_max: float = READ_SECONDS_MAX
    patience: Patience = Patience()
    connections_max: int = CONNECTIONS_MAX


class Server:
    """The manager behind its faces, served while the context is open."""

    def __init__(self, manager: Manager, faces: Sequence[Face], gate: Gate) -> None:
        self._manager = manager
        self._faces = tuple(faces)
        self._gate = gate
        self._port = gate.port
        self._afterwards: dict[int, Fault] = {}
        self.heard: Callable[[str, str, int, float], None] = lambda *_: None
        """Hears of every answer: in whose words, to which method, its code, and how long it took."""

    @property
    def manager(self) -> Manager:
        """Whom faces ask."""
        return self._manager

    @property
    def url(self) -> str:
        """Where it is, once the context is open."""
        scheme = "http" if self._gate.tls is None else "https"
        host = f"[{self._gate.host}]" if ":" in self._gate.host else self._gate.host
        return f"{scheme}://{host}:{self._port}"

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[self._door], client_max_size=BODY_BYTES_MAX)
        for face in self._faces:
            application.add_routes([_patient(route) for route in face.routes(self)])
        application.add_routes([_patient(web.route("*", "/{rest:.*}", _nowhere))])
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await self._runner.setup()
        try:
            self._listening = await self._listen()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._listening.sockets[0].getsockname()[1]
        return self

    async def _listen(self) -> asyncio.Server:
        loop, server, gate = asyncio.get_running_loop(), self._runner.server, self._gate
        if server is None:
            raise OSError("the server did not come up")
        return await loop.create_server(
            lambda: Connection(server, loop, gate.patience),
            sock=Door.opened(gate.host, gate.port, gate.connections_max),
            ssl=gate.tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS_MAX if gate.tls is not None else None,
            backlog=BACKLOG,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        await self._runner.cleanup()

    # --- what faces are helped with

    async def body(self, request: web.Request) -> bytes:
        """Return the whole body, of bounded size and within bounded time."""
        await _go_on(request)
        try:
            async with asyncio.timeout(self._gate.read_seconds_max):
                return await request.read()
        except TimeoutError:
            raise Trouble(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {self._gate.read_seconds_max:g} s"
            ) from None
        except (web.RequestPayloadError, ConnectionError) as error:
            raise Trouble(HTTPStatus.BAD_REQUEST, "the body broke off, or is spelt as no body is") from error

    async def meet(self, request: web.Request, call: Call) -> None:
        """Let happen to a call what was asked for."""
        stopped = self._manager.stopped(call)
        if stopped is not None:
            why = stopped.reason or "work is suspended"
            raise Trouble(HTTPStatus.CONFLICT, f"{why}; it goes on when fault {stopped.id} is cleared")
        fault = self._manager.faults.met(call, WIRE)
        if fault is None:
            return
        await self._manager.store.committed()  # counted before it strikes
        if fault.kind is Kind.STATUS:
            raise Trouble(fault.status, fault.reason or "as it was told to", fault.seconds)
        if fault.kind is Kind.UNAUTHORIZED:
            raise Trouble(HTTPStatus.UNAUTHORIZED, fault.reason or "the token is not accepted")
        self._afterwards[id(request)] = fault

    # --- the door

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.protocol
        if isinstance(connection, Connection):
            connection.understood()
        clock, answer = self._manager.clock, None
        began = clock.now()
        try:
            answer = await self._answered(request, handler)
            return await self._sent(request, answer)
        finally:
            if answer is not None:
                self.heard(self._name(request), request.method, answer.status, clock.now() - began)
            self._afterwards.pop(id(request), None)
            if isinstance(connection, Connection):
                connection.answered()

    def _face(self, request: web.Request) -> Face | None:
        return next((one for one in self._faces if request.path.startswith(one.prefixes)), None)

    def _name(self, request: web.Request) -> str:
        face = self._face(request)
        return face.name if face is not None else "none"

    async def _answered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        face = self._face(request)
        try:
            self._admit(request, face)
            return await self._handled(request, handler)
        except Trouble as trouble:
            trouble.words = legible(trouble.words)  # they may quote what was sent
            if trouble.cause is not None:
                trouble.cause.args = (legible(str(trouble.cause)),)
            answer = face.error(trouble) if face is not None else problem(trouble)
            if trouble.status == HTTPStatus.UNAUTHORIZED:
                answer.headers.setdefault("WWW-Authenticate", "Bearer")
            if isinstance(trouble.__cause__, web.HTTPMethodNotAllowed):
                answer.headers["Allow"] = ", ".join(sorted(trouble.__cause__.allowed_methods))
            if trouble.status in UNREAD:
                answer.force_close()
            return answer

    def _admit(self, request: web.Request, face: Face | None) -> None:
        token = self._gate.token
        if not (bearer(request, token) if face is None else face.admits(request, token)):
            raise Trouble(HTTPStatus.UNAUTHORIZED, "the token is missing or not the right one")
        if (request.content_length or 0) > BODY_BYTES_MAX:
            raise Trouble(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {BODY_BYTES_MAX >> 20} MiB"
            )

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except PortError as error:
            after = error.after if isinstance(error, Retry) else Seconds(0.0)
            raise Trouble(_STATUS.get(type(error), 503), str(error), after, error) from error
        except web.HTTPException as error:
            raise Trouble(error.status, error.reason) from error
        except Trouble:
            raise
        except Exception as error:
            LOG.exception("a mistake of ours in %s %s", request.method, request.path)
            words = f"a mistake of the manager's: {type(error).__name__}; its log says more"
            raise Trouble(HTTPStatus.INTERNAL_SERVER_ERROR, words) from error

    async def _sent(self, request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
        fault = self._afterwards.get(id(request))
        if fault is None:
            return answer
        if fault.kind is Kind.LATE:
            await self._manager.clock.sleep(fault.seconds)
        else:
            hang_up(request.transport)
        return answer


async def _nowhere(request: web.Request) -> web.StreamResponse:
    """Say that there is no such path, or which methods it takes; the library would answer before the door did."""
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        _, methods = await resource.resolve(request)
        allowed |= methods - {"*"}
    raise web.HTTPMethodNotAllowed(request.method, allowed) if allowed else web.HTTPNotFound


# --- whoever asks whether to go on is told by those who read


def _patient(route: web.RouteDef) -> web.RouteDef:
    return web.RouteDef(route.method, route.path, route.handler, {**route.kwargs, "expect_handler": _later})


async def _later(_: web.Request) -> None:
    """Say nothing yet: whoever does not come in is not asked for a body."""


async def _go_on(request: web.Request) -> None:
    expected = request.headers.get("Expect", "")
    if not expected:
        return
    if expected.lower() != GO_ON:
        raise Trouble(HTTPStatus.EXPECTATION_FAILED, "nobody expects that")
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # it is not part of the answer
