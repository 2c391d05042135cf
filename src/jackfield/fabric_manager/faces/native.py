"""The native face: `codec.native`, as docs/fabric-native.md describes it.

Knows the protocol. Must not know what becomes of an order.
"""

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec import native
from jackfield.fabric.settings import Secret
from jackfield.fabric_manager.faces import Desk, Trouble, bearer
from jackfield.fabric_manager.faults import Call, Verb
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.ports import Bug, Gone

TEXT_MAX: Final = 253
"""Characters of an id, a name, a model: Kubernetes has no longer ones."""
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


class Native:
    """The fabric at /v1/fabrics/NAME."""

    name = "native"
    prefixes = (native.PREFIX,)

    def __init__(self) -> None:
        self._shown: tuple[Inventory, bytes, str] | None = None

    def routes(self, desk: Desk) -> Iterable[web.RouteDef]:
        """Return the three calls."""
        place = f"{native.PREFIX}/{{fabric}}"

        async def inventory(request: web.Request) -> web.Response:
            return await self._inventory(request, desk)

        async def attach(request: web.Request) -> web.Response:
            return await self._ordered(request, desk, "attach", desk.manager.attach)

        async def detach(request: web.Request) -> web.Response:
            return await self._ordered(request, desk, "detach", desk.manager.detach)

        return (
            web.get(f"{place}/inventory", inventory),
            web.post(f"{place}/attach", attach),
            web.post(f"{place}/detach", detach),
        )

    def admits(self, request: web.Request, token: Secret) -> bool:
        """Whether it carries the token."""
        return bearer(request, token)

    def error(self, trouble: Trouble) -> web.Response:
        """Return an RFC 9457 problem."""
        return problem(trouble)

    async def _inventory(self, request: web.Request, desk: Desk) -> web.Response:
        _check(request, desk)
        await desk.meet(request, Call(self.name, "inventory"))
        shown = await desk.manager.inventory(self.name)
        known = self._shown
        if known is None or known[0] is not shown:  # the same object is shown while nothing changes
            body = native.encode(shown)
            known = self._shown = (shown, body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
        _, body, tag = known
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        return web.Response(body=body, content_type=native.JSON, headers={"ETag": tag})

    async def _ordered(
        self,
        request: web.Request,
        desk: Desk,
        verb: Verb,
        ask: Callable[[Order, str], Awaitable[Progress]],
    ) -> web.Response:
        _check(request, desk)
        order = _order(await desk.body(request))
        await desk.meet(request, Call(self.name, verb, order.device, order.node, order.id))
        span = native.wait(request.headers.get("Prefer", ""))
        progress = await desk.manager.settle(lambda: ask(order, self.name), order.id, span)
        return web.Response(body=native.encode(progress), content_type=native.JSON)


def _check(request: web.Request, desk: Desk) -> None:
    name = request.match_info["fabric"]
    if name != desk.manager.name:
        raise Gone(f"there is no fabric {name!r} here")


def _order(body: bytes) -> Order:
    try:
        order = native.order(body)
    except native.BadMessage as error:
        raise Bug(f"the order is not understood: {error}") from error
    texts = (order.id, order.fabric, order.node, order.model, order.device, order.type)
    if not order.id or any(len(text) > TEXT_MAX or not text.isprintable() for text in texts):
        raise Bug(f"an order has an id, and every text of it at most {TEXT_MAX} printable characters")
    return order


def problem(trouble: Trouble) -> web.Response:
    """Return an error as RFC 9457 spells it."""
    if trouble.cause is not None:
        told = msgspec.structs.replace(native.problem(trouble.cause), status=trouble.status)
    else:
        told = native.Problem(
            f"{native.TYPES}http",
            _PHRASES.get(trouble.status, "Error"),
            trouble.status,
            trouble.words,
            trouble.after,
        )
    after = native.retry_after(told)
    return web.Response(
        status=told.status,
        body=native.encode(told),
        content_type=native.PROBLEM_JSON,
        headers={"Retry-After": after} if after else {},
    )
