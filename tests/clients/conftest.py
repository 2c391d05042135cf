"""A served store in another thread, for clients that block."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.model.account import ServiceAccount


class Cluster:
    """Serves from its own thread until it is told to end."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(30.0)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        clock = WallClock()
        store = up.new_store(clock)
        store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": "default"}})
        async with up.serving(store, clock) as server:
            self.kubeconfig.write_bytes(up.way_in(server))
            self._up.set()
            await self._ended.wait()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[str]:
    with Cluster(tmp_path) as cluster:
        yield str(cluster.kubeconfig)
