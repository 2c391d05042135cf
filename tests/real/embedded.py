"""The embedded cluster on a thread of this process, without machines: nobody runs its pods.

Knows how its parts are put together. Must not know who speaks to it.
"""

import asyncio
import random
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cluster.api import EmbeddedCluster
from jackfield.cluster.face.server import ApiServer
from jackfield.cluster.scheduling.scheduler import Scheduler
from jackfield.cluster.upkeep.collector import Collector
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.cluster.upkeep.namespaces import Namespaces
from jackfield.testing.control_plane.api import Api

READY_SECONDS_MAX = 20.0


class Embedded:
    """An embedded cluster that runs while the context of `embedded` is open."""

    def __init__(self) -> None:
        self.up = threading.Event()
        self.loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Run until somebody ends it."""
        clock = WallClock()
        store = up.new_store(clock)
        cluster = EmbeddedCluster(store)
        dice = random.SystemRandom()
        async with up.serving(store, clock) as self._server, asyncio.TaskGroup() as group:
            authority = self._server.gate.certificates.authority.decode()
            tasks = [
                group.create_task(ControllerManager(cluster.client("kube-controller-manager"), clock).run()),
                group.create_task(
                    Namespaces(
                        cluster.client("kube-controller-manager"),
                        clock,
                        self._server.gate.certificates.authority.decode(),
                    ).run()
                ),
                group.create_task(
                    Namespaces(cluster.client("kube-controller-manager"), clock, authority).run()
                ),
                group.create_task(Collector(cluster.client("kube-controller-manager"), clock).run()),
                group.create_task(Scheduler(cluster.client("kube-scheduler"), clock, dice).run()),
            ]
            self.up.set()
            await self._ended.wait()
            for task in tasks:
                task.cancel()

    def end(self) -> None:
        """Have it end."""
        self.loop.call_soon_threadsafe(self._ended.set)

    @property
    def server(self) -> ApiServer:
        """Its API."""
        return self._server

    def api(self) -> Api:
        """Return a connection for a few plain requests."""
        gate = self._server.gate
        trust = ssl.create_default_context(cadata=gate.certificates.authority.decode())
        return Api(int(self._server.url.rpartition(":")[2]), trust, gate.token)

    def kubeconfig(self, folder: Path) -> Path:
        """Write the way in."""
        path = folder / "embedded.kubeconfig"
        path.write_bytes(up.way_in(self._server))
        return path


@contextmanager
def embedded() -> Iterator[Embedded]:
    """Run an embedded cluster beside us."""
    one = Embedded()
    thread = threading.Thread(target=one.loop.run_until_complete, args=(one.run(),))
    thread.start()
    try:
        assert one.up.wait(READY_SECONDS_MAX)
        yield one
    finally:
        one.end()
        thread.join()
        one.loop.close()
