"""A clock for what needs sockets, which cannot wait on a virtual loop."""

import asyncio

from jackfield.model.names import Seconds


class Hasty:
    """`ports.Clock` by which time passes so many times as fast as the loop's own."""

    def __init__(self, factor: float = 100.0) -> None:
        self._factor = factor

    def now(self) -> Seconds:
        return Seconds(1_700_000_000.0 + asyncio.get_running_loop().time() * self._factor)

    async def sleep(self, duration: Seconds) -> None:
        await asyncio.sleep(duration / self._factor)  # noqa: TID251 - a clock
