"""The door: one HTTP server for all faces. Nobody comes in without the token, and nothing large.

Knows HTTP, TLS, limits, and how a fault looks from outside. Must not know any face's words, nor what an order is.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import msgspec
from aiohttp import web

from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Face, Trouble, bearer
from jackfield.fabric_manager.faces.native import problem
from jackfield.fabric_manager.faults import WIRE, Call, Fault, Kind
from jackfield.fabric_manager.manager import Manager
from jackfield.model.names import Seconds
from jackfield.ports import Bug, Conflict, Gone, PortError, Refused, Retry

LOOPBACK: Final = "127.0.0.1"
BODY_BYTES_MAX: Final = 1 << 20
READ_SECONDS_MAX: Final = 10.0
"""Within this time a body must have come."""
IDLE_SECONDS_MAX: Final = 75.0
LINGER_SECONDS: Final = 1.0
"""How long what nobody wants is still swallowed, so that the answer is not lost with it."""
SHUTDOWN_SECONDS: Final = 0.5
"""How long those are waited for who are being answered; to aiohttp, 0 would be for ever."""
BACKLOG: Final = 512

_STATUS: Final[dict[type[PortError], int]] = {Retry: 503, Conflict: 409, Gone: 404, Refused: 422, Bug: 400}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Gate(msgspec.Struct, frozen=True):
    """Where it listens and who may come in."""

    token: Secret
    host: str = LOOPBACK
    port: int = 0
    tls: ssl.SSLContext | None = None
    read_seconds_max: float = READ_SECONDS_MAX


class Server:
    """The manager behind its faces, served while the context is open."""

    def __init__(self, manager: Manager, faces: Sequence[Face], gate: Gate) -> None:
        self._manager = manager
        self._faces = tuple(faces)
        self._gate = gate
        self._port = gate.port
        self._afterwards: dict[int, Fault] = {}

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
            application.add_routes([*face.routes(self)])
        self._runner = web.AppRunner(
            application,
            access_log=None,
            shutdown_timeout=SHUTDOWN_SECONDS,
            keepalive_timeout=IDLE_SECONDS_MAX,
            lingering_time=LINGER_SECONDS,
        )
        await self._runner.setup()
        try:
            await web.TCPSite(
                self._runner, self._gate.host, self._port, ssl_context=self._gate.tls, backlog=BACKLOG
            ).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    # --- what faces are helped with

    async def body(self, request: web.Request) -> bytes:
        """Return the whole body, of bounded size and within bounded time."""
        try:
            async with asyncio.timeout(self._gate.read_seconds_max):
                return await request.read()
        except TimeoutError:
            raise Trouble(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {self._gate.read_seconds_max:g} s"
            ) from None

    async def meet(self, request: web.Request, call: Call) -> None:
        """Let happen to a call what was asked for."""
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
        face = next((one for one in self._faces if request.path.startswith(one.prefixes)), None)
        try:
            self._admit(request, face)
            answer = await self._handled(request, handler)
        except Trouble as trouble:
            answer = face.error(trouble) if face is not None else problem(trouble)
            if trouble.status == HTTPStatus.UNAUTHORIZED:
                answer.headers.setdefault("WWW-Authenticate", "Bearer")
            if trouble.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                answer.force_close()
        try:
            return await self._sent(request, answer)
        finally:
            self._afterwards.pop(id(request), None)

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

    async def _sent(self, request: web.Request, answer: web.StreamResponse) -> web.StreamResponse:
        fault = self._afterwards.get(id(request))
        if fault is None:
            return answer
        if fault.kind is Kind.LATE:
            await self._manager.clock.sleep(fault.seconds)
        elif request.transport is not None:
            request.transport.abort()
        return answer
