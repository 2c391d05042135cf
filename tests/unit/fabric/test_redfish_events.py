"""Events of a service are a reason to look; without them, or with broken ones, everything is seen a little later."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web

from jackfield.codec import redfish
from jackfield.fabric.http import Wire
from jackfield.fabric.redfish.access import Credentials, Door
from jackfield.fabric.redfish.events import Events
from jackfield.fabric.redfish.options import Authentication
from jackfield.fabric.redfish.site import Bell
from jackfield.fabric.settings import Secret
from jackfield.model.names import Seconds
from jackfield.ports import Retry
from unit.fabric.redfish_bench import settings
from unit.sim.hasty import Hasty

STREAM = "/redfish/v1/EventService/SSE"
EVENT = "id: 1\ndata: {}\n\n"


class Service:
    """Streams what it is told to, and then ends the stream."""

    def __init__(self, *streams: str, status: int = 200, kind: str = "text/event-stream") -> None:
        self.streams = [*streams]
        self.opened = 0
        self._status = status
        self._kind = kind

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.opened += 1
        response = web.StreamResponse(status=self._status, headers={"Content-Type": self._kind})
        await response.prepare(request)
        if self.streams:
            await response.write(self.streams.pop(0).encode())
        return response

    @contextlib.asynccontextmanager
    async def up(self) -> AsyncIterator[str]:
        application = web.Application()
        application.router.add_get(STREAM, self._answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


def ear(url: str, clock: Hasty) -> Events:
    given = settings(url)
    source = Credentials(Secret("u"), Secret("p"))
    door = Door(Wire(given, redfish.JSON), Authentication.BASIC, lambda: source, clock)
    return Events(given, door, clock)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30.0):
        while not condition():  # noqa: ASYNC110 - what is waited for knows of no event
            await asyncio.sleep(0.01)  # noqa: TID251 - real sockets


def test_every_event_is_told_and_a_stream_that_ended_is_opened_again() -> None:
    async def main() -> None:
        service = Service(EVENT, EVENT, "")
        told: list[int] = []
        async with service.up() as url:
            events = ear(url, Hasty(1000.0))

            async def find() -> str:
                return STREAM

            events.listen(find, lambda: told.append(1))
            events.listen(find, lambda: told.append(2))
            await until(lambda: service.opened >= 4)
            await events.close()
            assert told == [1, 1]

    asyncio.run(main())


@pytest.mark.parametrize(
    "service",
    [Service(EVENT, status=500), Service(EVENT, kind="application/json"), Service("")],
    ids=["an error", "no stream", "silence"],
)
def test_a_service_that_streams_nothing_is_asked_again_ever_more_slowly(service: Service) -> None:
    async def main() -> None:
        told: list[int] = []
        async with service.up() as url:
            clock = Hasty(1000.0)
            events = ear(url, clock)

            async def find() -> str:
                return STREAM

            begun = clock.now()
            events.listen(find, lambda: told.append(1))
            await until(lambda: service.opened >= 3)
            await events.close()
            assert clock.now() - begun >= 10.0 + 20.0
            assert told == []

    asyncio.run(main())


def test_where_there_is_no_stream_nobody_listens() -> None:
    async def main() -> None:
        events = ear("http://127.0.0.1:1", Hasty(1000.0))
        asked = []

        async def find() -> str:
            asked.append(1)
            if len(asked) < 3:
                raise Retry("not yet")
            return ""

        events.listen(find, lambda: None)
        await until(lambda: len(asked) == 3)
        await asyncio.sleep(0.1)  # noqa: TID251 - nothing is to happen in it
        assert len(asked) == 3
        await events.close()

    asyncio.run(main())


def test_whoever_waits_looks_when_the_bell_rings_but_not_more_often_than_it_may() -> None:
    async def main() -> None:
        bell, clock = Bell(), Hasty(1.0)
        waiting = asyncio.create_task(bell.wait(clock, Seconds(3600.0)))
        for _ in range(30):
            await asyncio.sleep(0.05)  # noqa: TID251 - real time
            bell.ring()
        await waiting

    asyncio.run(main())
