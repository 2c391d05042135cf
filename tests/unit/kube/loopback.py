"""A server on loopback that answers as a test's script says, and remembers what it was asked."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from jackfield.kube.connection import Connection
from jackfield.kube.credentials import Credentials, Fixed, Proof

Raw = dict[str, object]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """What was asked, in order."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.connection = Connection("", Fixed())

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        self.bodies.append(await request.read())
        return await self._handler(request)

    def queries(self, name: str) -> list[str]:
        return [one.query.get(name, "") for one in self.asked]


@asynccontextmanager
async def serving(handler: Handler, credentials: Credentials | None = None) -> AsyncIterator[Api]:
    api = Api(handler)
    runner = web.AppRunner(web.Application(client_max_size=2**26), shutdown_timeout=0.1)
    runner.app.router.add_route("*", "/{path:.*}", api.handle)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    api.connection = Connection(f"http://{host}:{port}", credentials or Fixed(Proof("t0ken")))
    try:
        yield api
    finally:
        await runner.cleanup()


def answer(body: object, code: int = 200, **headers: str) -> web.Response:
    spelt = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(
        body=msgspec.json.encode(body), status=code, headers=spelt, content_type="application/json"
    )


def status(code: int, reason: str = "", **more: object) -> Raw:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"no: {reason or code}",
        **more,
    }


def resource(name: str, version: int, **metadata: object) -> Raw:
    meta = {"name": name, "resourceVersion": str(version), "uid": f"u-{name}", **metadata}
    return {"metadata": meta, "spec": {"type": "gpu", "model": "A100", "target_node": "n"}}


def listing(version: int, *items: Raw, more: str = "") -> Raw:
    metadata = {"resourceVersion": str(version), **({"continue": more} if more else {})}
    return {"kind": "List", "metadata": metadata, "items": list(items)}


def event(kind: str, one: Raw) -> bytes:
    return msgspec.json.encode({"type": kind, "object": one}) + b"\n"


async def stream(request: web.Request, *chunks: bytes) -> web.StreamResponse:
    """Answer in chunks, then end."""
    response = web.StreamResponse()
    await response.prepare(request)
    for chunk in chunks:
        await response.write(chunk)
    await response.write_eof()
    return response
