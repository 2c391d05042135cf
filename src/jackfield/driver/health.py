"""What a driver says of its devices' health, and how the kubelet hears of it: all at first, changes at once, all again.

Knows who listens, and the kubelet's patience. Must not know how health is found out, or what a connection is.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from enum import StrEnum
from typing import Final

import msgspec

from jackfield._proto import health_pb2

AGAIN_SECONDS: Final = 10.0
"""How long the kubelet is left without news. After 30 seconds it would take every device for unknown."""
MESSAGE_LETTERS_MAX: Final = 1024
"""What the kubelet takes of a message."""


def legible(words: str) -> str:
    """Return words as the kubelet can read them: not too many, and none of what a file's name may hold but no text."""
    return words[:MESSAGE_LETTERS_MAX].encode(errors="backslashreplace").decode()


class Health(StrEnum):
    """How a device is."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class DeviceHealth(msgspec.Struct, frozen=True):
    """How one device is, and why."""

    pool: str
    device: str
    health: Health
    message: str = ""
    """For the owner of a pod that has the device: it is shown in the pod's status."""


class HealthSource:
    """What is known of the devices' health: the driver tells it here, and everybody who listens hears of it."""

    def __init__(
        self,
        devices: Iterable[DeviceHealth] = (),
        again_seconds: float = AGAIN_SECONDS,
        now: Callable[[], float] = time.time,  # noqa: TID251 - the kubelet wants the time of day, in no simulator
    ) -> None:
        self._devices: tuple[DeviceHealth, ...] = ()
        self._news = asyncio.Event()
        self._again_seconds = again_seconds
        self._now = now
        self.tell(devices)

    @property
    def devices(self) -> tuple[DeviceHealth, ...]:
        """How all devices are."""
        return self._devices

    def tell(self, devices: Iterable[DeviceHealth]) -> None:
        """Say how all devices are now; of two entries for one device the later counts."""
        told = tuple({(one.pool, one.device): one for one in devices}.values())
        if told != self._devices:
            self._devices = told
            self.repeat()

    def repeat(self) -> None:
        """Have all devices reported once more to everybody who listens."""
        self._news.set()
        self._news = asyncio.Event()

    async def reports(self) -> AsyncGenerator[health_pb2.NodeWatchResourcesResponse, None]:
        """Report all devices at once, after every change, and again before the kubelet forgets; without end."""
        while True:
            # Taken before the report goes out: what is told while it does is news.
            news = self._news
            yield health_pb2.NodeWatchResourcesResponse(devices=map(self._report, self._devices))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), self._again_seconds)

    def _report(self, one: DeviceHealth) -> health_pb2.DeviceHealth:
        return health_pb2.DeviceHealth(
            device=health_pb2.DeviceIdentifier(pool_name=legible(one.pool), device_name=legible(one.device)),
            health=one.health.name,
            last_updated_time=int(self._now()),
            message=legible(one.message),
        )
