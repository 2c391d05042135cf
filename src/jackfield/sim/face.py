"""The native face of simulated fabric managers: `codec.native` served over HTTP on loopback.

Knows HTTP, and how a call that got no answer looks from outside: the connection breaks. Must not know what a manager
does with an order. Whatever is a `ports.Fabric` can stand behind it.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Final, Protocol, Self, runtime_checkable

from aiohttp import web

from jackfield.codec import native
from jackfield.fabric.settings import Secret
from jackfield.line import hang_up
from jackfield.model.fabric import Inventory, Order, Progress, Working
from jackfield.model.names import FabricName
from jackfield.ports import Bug, Fabric, Gone, PortError
from jackfield.sim.fabric import Faults, SimFabric, Unanswered
from jackfield.sim.hardware import Hardware
from jackfield.sim.manager import Manager

LOOPBACK: Final = "127.0.0.1"
ORDER_BYTES_MAX: Final = 64 * 1024

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def lines(managers: Mapping[FabricName, Manager], faults: Faults | None = None) -> dict[FabricName, Fabric]:
    """Return a line to each manager, with what happens to calls on it."""
    return {name: SimFabric(manager, faults) for name, manager in managers.items()}


async def serve(hardware: Hardware, face: "Face", started: Callable[["Face"], None]) -> None:
    """Run hardware and the face of its managers until cancelled; `started` hears when both are up."""
    async with hardware, face:
        started(face)
        await asyncio.Event().wait()


@runtime_checkable
class Newsy(Protocol):
    """A fabric that says when it is worth asking again."""

    async def news(self) -> None:
        """Return when there may be another answer to an order."""


class Face:
    """Some fabrics, each at /v1/fabrics/NAME, served while the context is open to whoever has the token."""

    def __init__(self, fabrics: Mapping[FabricName, Fabric], token: Secret, port: int = 0) -> None:
        self._fabrics = fabrics
        self._token = token
        self._port = port
        self._shown: dict[FabricName, tuple[Inventory, bytes, str]] = {}

    @property
    def url(self) -> str:
        """Where it is, once the context is open."""
        return f"http://{LOOPBACK}:{self._port}"

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[self._guard], client_max_size=ORDER_BYTES_MAX)
        place = f"{native.PREFIX}/{{fabric}}"
        application.router.add_get(f"{place}/inventory", self._inventory)
        application.router.add_post(f"{place}/attach", self._attach)
        application.router.add_post(f"{place}/detach", self._detach)
        # Whoever is served when it closes gets no answer: that is what a manager that stops looks like.
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, LOOPBACK, self._port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    # --- what is served

    async def _inventory(self, request: web.Request) -> web.Response:
        name, fabric = self._asked(request)
        shown = await fabric.inventory()
        known = self._shown.get(name)
        if known is None or known[0] is not shown:  # a manager shows the same object while nothing changes
            body = native.encode(shown)
            known = self._shown[name] = (shown, body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        _, body, tag = known
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        return web.Response(body=body, content_type=native.JSON, headers={"ETag": tag})

    async def _attach(self, request: web.Request) -> web.Response:
        return await self._ordered(request, self._asked(request)[1].attach)

    async def _detach(self, request: web.Request) -> web.Response:
        return await self._ordered(request, self._asked(request)[1].detach)

    async def _ordered(
        self, request: web.Request, call: Callable[[Order], Awaitable[Progress]]
    ) -> web.Response:
        try:
            order = native.order(await request.read())
        except native.BadMessage as error:
            raise Bug(f"the order is not understood: {error}") from error
        if order.fabric != request.match_info["fabric"]:
            raise Bug(f"order {order.id} is for fabric {order.fabric!r}, and was sent to another")
        progress = await call(order)
        _, fabric = self._asked(request)
        with suppress(TimeoutError):
            async with asyncio.timeout(native.wait(request.headers.get("Prefer", ""))):
                while isinstance(progress, Working) and isinstance(fabric, Newsy):
                    await fabric.news()
                    progress = await call(order)
        return web.Response(body=native.encode(progress), content_type=native.JSON)

    def _asked(self, request: web.Request) -> tuple[FabricName, Fabric]:
        name = FabricName(request.match_info["fabric"])
        fabric = self._fabrics.get(name)
        if fabric is None:
            raise Gone(f"there is no fabric {name!r} here")
        return name, fabric

    # --- who may ask, and what goes wrong

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._allowed(request):
            told = native.Problem(f"{native.TYPES}unauthorized", "Unauthorized", HTTPStatus.UNAUTHORIZED)
            return _problem(told, {"WWW-Authenticate": "Bearer"})
        try:
            return await handler(request)
        except PortError as error:
            if isinstance(error.__cause__, Unanswered):
                hang_up(request.transport)
            return _problem(native.problem(error))
        except web.HTTPException as error:
            told = native.Problem(f"{native.TYPES}http", error.reason, error.status)
            return _problem(told, {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {})

    def _allowed(self, request: web.Request) -> bool:
        shown = request.headers.get("Authorization", "").encode(errors="replace")
        return hmac.compare_digest(shown, f"Bearer {self._token.reveal()}".encode())


def _problem(problem: native.Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    after = native.retry_after(problem)
    return web.Response(
        status=problem.status,
        body=native.encode(problem),
        content_type=native.PROBLEM_JSON,
        headers={**(headers or {}), **({"Retry-After": after} if after else {})},
    )
