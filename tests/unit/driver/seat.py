"""A node's folders for one test, with short paths, since a socket's must be; and a driver that does as it is told."""

import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

from jackfield.driver.service import Answer, ClaimRef, Places, PreparedDevice
from jackfield.testing.kubelet import Claim

DRIVER = "gpu.example.com"
DEVICE = PreparedDevice(("gpu",), "pool-a", "gpu-0", ("example.com/gpu=u-gpu-0",))

T = TypeVar("T")


@contextlib.contextmanager
def seat() -> Iterator[Places]:
    with tempfile.TemporaryDirectory(prefix="jf", dir="/tmp") as folder:
        root = Path(folder)
        yield Places(root / "plugins", root / "registry", root / "cdi")


def run(main: Coroutine[object, object, T]) -> T:
    """Run it, and give up only where it can never end."""
    return asyncio.run(asyncio.wait_for(main, 300))


def claim(name: str = "a", uid: str = "") -> Claim:
    return Claim("default", name, uid or f"uid-{name}")


class Obedient:
    """Prepares everything; what a test puts into `instead` is done in its place."""

    def __init__(self, instead: Callable[[ClaimRef], Awaitable[Answer]] | None = None) -> None:
        self.instead = instead
        self.calls: list[str] = []
        """What was begun and what has ended, in order."""
        self.claims: list[ClaimRef] = []

    async def prepare(self, claim: ClaimRef) -> Answer:
        return await self._do("prepare", claim)

    async def unprepare(self, claim: ClaimRef) -> str:
        return (await self._do("unprepare", claim)).error

    async def _do(self, verb: str, claim: ClaimRef) -> Answer:
        self.claims.append(claim)
        self.calls.append(f"{verb} {claim.name}")
        try:
            return await self.instead(claim) if self.instead else Answer((DEVICE,))
        except asyncio.CancelledError:
            self.calls.append(f"cancelled {claim.name}")
            raise
        finally:
            self.calls.append(f"end {claim.name}")


class Gate:
    """Keeps whoever comes until it is opened."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._came = asyncio.Condition()
        self.inside = 0
        self.inside_most = 0

    async def __call__(self, _: ClaimRef) -> Answer:
        self.inside += 1
        self.inside_most = max(self.inside, self.inside_most)
        async with self._came:
            self._came.notify_all()
        try:
            await self._open.wait()
        finally:
            self.inside -= 1
        return Answer((DEVICE,))

    async def crowded(self, count: int = 1) -> None:
        """Wait until so many stand before it."""
        async with self._came:
            await self._came.wait_for(lambda: self.inside == count)

    def open(self) -> None:
        self._open.set()
