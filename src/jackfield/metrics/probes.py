"""What a process answers over HTTP: whether it lives, whether it is of use, and what it has counted.

Knows three paths. Must not know what they are about.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from jackfield.door import Connection, Door, Patience

EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - the kubelet's probes and Prometheus come from outside of the pod
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CONNECTIONS_MAX: Final = 32
SHUTDOWN_SECONDS: Final = 0.5
"""How long those are waited for who are being answered; to aiohttp, 0 would be for ever."""
PATIENCE: Final = Patience(first_word_seconds=5.0, idle_seconds=15.0, read_seconds=10.0)


class Answers(msgspec.Struct, frozen=True):
    """What is asked for."""

    trouble: Callable[[], str]
    """What keeps the process from being of use; empty if nothing does."""
    figures: Callable[[], bytes]


@asynccontextmanager
async def served(port: int, answers: Answers, host: str = EVERYWHERE) -> AsyncIterator[int]:
    """Answer at this port, or at any free one if it is 0, while the context is open; yields which one it is."""

    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")  # the loop turns

    async def ready(_: web.Request) -> web.Response:
        trouble = answers.trouble()
        return web.Response(status=503, text=f"{trouble}\n") if trouble else web.Response(text="ok\n")

    async def figures(_: web.Request) -> web.Response:
        return web.Response(body=answers.figures(), headers={"Content-Type": CONTENT_TYPE})

    application = web.Application()
    application.add_routes(
        [web.get("/healthz", alive), web.get("/readyz", ready), web.get("/metrics", figures)]
    )
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        loop, server = asyncio.get_running_loop(), runner.server
        if server is None:
            raise OSError("the server did not come up")
        listening = await loop.create_server(
            lambda: Connection(server, loop, PATIENCE), sock=Door.opened(host, port, CONNECTIONS_MAX)
        )
        try:
            yield int(listening.sockets[0].getsockname()[1])
        finally:
            listening.close()
    finally:
        await runner.cleanup()
