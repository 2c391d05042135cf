"""A driver at work on its node: published in the API, known to the kubelet, its claims prepared and remembered.

Knows in which order a driver comes up and goes down, and what it has. Must not know what the devices are, how the
kubelet speaks, or how anything is written down.
"""

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Final, Self

from msgspec.structs import replace

from jackfield.core.offer import Pool, Publisher
from jackfield.driver import claims, faults, keeping
from jackfield.driver.claims import Place
from jackfield.driver.device import BadDevice
from jackfield.driver.driver import Driver
from jackfield.driver.health import DeviceHealth, Health, HealthSource
from jackfield.driver.metrics import Metrics
from jackfield.driver.notices import Notices
from jackfield.driver.preparing import Preparing
from jackfield.driver.service import Service
from jackfield.driver.slices import Shown, Slices
from jackfield.driver.sockets import Places
from jackfield.driver.store import PreparedStore
from jackfield.driver.writer import Done, Writer
from jackfield.model.device import Device, DeviceTaint
from jackfield.model.names import NodeName
from jackfield.ports import Cluster, Retry

LOG: Final = logging.getLogger(__name__)
MISSING: Final = "missing"
"""The value of the taint of what the driver does not list any more."""
GONE: Final = "it is gone while a claim has it: its driver does not list it any more"


class Kit:
    """A driver that serves its node while the context is open: `async with Kit(driver, cluster, node) as kit`."""

    def __init__(self, driver: Driver, cluster: Cluster, node: str, places: Places = Places()) -> None:
        if wrong := faults.of_driver(driver.name):
            raise BadDevice(wrong)
        self.driver = driver
        self.node: Final = NodeName(node)
        self.metrics: Final = Metrics(driver.name)
        self._cluster = cluster
        self._store = PreparedStore(driver.name, places.plugins, places.cdi)
        self._offer = _Offer(driver, self.node)
        tells_health = type(driver).health is not Driver.health
        self._health = HealthSource() if tells_health else None
        self._writer = Writer(self._store)
        self._writer.heard = self._written
        self._notices = Notices(cluster, self.node, driver.name)
        self._held: tuple[keeping.Place, ...] = ()
        self._missing: tuple[keeping.Place, ...] = ()
        """What is published only since a claim has it: the driver does not list it any more."""
        self._preparer = Preparing(driver, cluster, self._writer, self._place(), self.metrics)
        self._service = Service(driver.name, self._preparer, places, self._health)
        self._slices = Slices(cluster, Publisher(driver.name, self.node), self._kept, self.metrics)
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.wrong = ""
        """What the API server would refuse of what the driver has now; while there is such, the old is published."""

    def _place(self) -> Place:
        return Place(self.driver.name, self.node, self._offer.published, self.driver.published_only)

    # --- for whoever runs it

    async def __aenter__(self) -> Self:
        """Begin. Raises BadDevice or what the driver raises; Refused where a newer driver wrote the checkpoint."""
        self._tell_findings(self._store.open())
        self._offer.ask()
        self._tell_health()
        await self.driver.restore(
            tuple(
                claims.remembered(entry, held, self._offer.published)
                for entry in self._store.entries()
                for held in entry.held
            )
        )
        await self._stack.enter_async_context(self._service)
        for work in (self._slices.run(), self.driver.watch(self.changed), self._notices.run()):
            self._tasks.append(asyncio.get_running_loop().create_task(work))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End. The slices stay, and what is prepared stays prepared: the next life finds both."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()
        await self._writer.close()

    def changed(self) -> None:
        """Ask the driver again for its pools and their health, and publish what is new.

        What the API server would refuse is told in the log, and what was published before stays.
        """
        try:
            self._offer.ask()
        except BadDevice as wrong:
            self.wrong = str(wrong)
            LOG.error("what %s has now is not published: %s", self.driver.name, wrong)  # noqa: TRY400 - it says where
            return
        self.wrong = ""
        self._tell_health()
        self._slices.changed()

    async def published(self) -> None:
        """Wait until the slices show what the driver has."""
        await self._slices.published.wait()

    async def registered(self) -> None:
        """Wait until the kubelet has taken us."""
        await self._service.registered.wait()

    async def failure(self) -> None:
        """Wait until something fails that should not, such as the driver's own `watch`, and raise it."""
        waiting = [task for task in self._tasks if not (task.done() and task.exception() is None)]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()

    @property
    def trouble(self) -> str:
        """What keeps pods from being given devices here; nothing if all is well. For a readiness probe."""
        dead = next((one.exception() for one in self._tasks if one.done() and not one.cancelled()), None)
        if dead is not None:
            return f"the driver does not look after its devices any more: {type(dead).__name__}: {dead}"
        slices = (
            "" if self._slices.published.is_set() else self._slices.trouble or "the slices are being written"
        )
        return self._service.trouble() or self.wrong or slices

    def figures(self) -> bytes:
        """Return all that is counted, as Prometheus reads it."""
        return self.counted().text()

    def counted(self) -> Metrics:
        """Return all that is counted, as it is now; `metrics.joined` makes one text of several drivers'."""
        self.metrics.set(
            prepared_claims=len(self._store.entries()),
            registered=self._service.registered.is_set(),
            published=self._slices.published.is_set(),
            devices=sum(len(pool.devices) for pool in self._offer.pools),
            unhealthy_devices=len(dict.fromkeys((*self._offer.unhealthy, *self._missing))),
        )
        return self.metrics

    def _tell_health(self) -> None:
        if self._health is not None:
            gone = (DeviceHealth(*place, Health.UNHEALTHY, GONE) for place in self._missing)
            self._health.tell((*gone, *self._offer.health))  # what the driver itself says counts more

    def _tell_findings(self, findings: tuple[str, ...]) -> None:
        for finding in findings:
            LOG.warning("%s", finding)
        self._notices.damaged(self._store.damage())

    def _written(self, done: Done) -> None:
        """Take note of what was written down."""
        self.metrics.checkpoint_written(done.writes, done.seconds)
        self._tell_findings(self._store.findings())
        if self._missing:  # its claim may have been unprepared
            self._slices.changed()

    def _kept(self, shown: Shown) -> tuple[Pool, ...]:
        """Return what is published: all that the driver lists, and what is gone while a claim has it."""
        with suppress(Retry):  # as long as the disk cannot be read, what was read last counts
            entries = self._store.entries()
            self._held = tuple((held.pool, held.device) for one in entries for held in one.held)
        taint = replace(self._offer.taint, value=MISSING)
        found = keeping.kept(self._offer.pools, shown, self._held, taint)
        if found.missing != self._missing:
            for pool, device in found.missing:
                if (pool, device) not in self._missing:
                    LOG.warning(
                        "device %s of pool %s: %s; it stays published, tainted %s, until it is unprepared",
                        *(device, pool, GONE, taint.key),
                    )
            self._missing = found.missing
            self._tell_health()
        return found.pools


class _Offer:
    """What the driver last said that it has."""

    def __init__(self, driver: Driver, node: NodeName) -> None:
        self._driver = driver
        self._node = node
        self.taint: Final = DeviceTaint(f"{driver.name}/unhealthy", effect=driver.unhealthy_effect)
        self._devices: dict[tuple[str, str], Device] = {}
        self.pools: tuple[Pool, ...] = ()
        self.health: tuple[DeviceHealth, ...] = ()
        self.unhealthy: tuple[tuple[str, str], ...] = ()

    def ask(self) -> None:
        """Ask the driver. Raises BadDevice, and then knows what it knew before."""
        health = tuple(replace(one, pool=one.pool or self._node) for one in self._driver.health())
        unhealthy = tuple((one.pool, one.device) for one in health if one.health is Health.UNHEALTHY)
        named = (replace(one, name=one.name or self._node) for one in self._driver.pools())
        pools = tuple(self._tainted(one, unhealthy) for one in named)
        wrong = [words for pool in pools for words in faults.of_pool(pool)]
        names = [pool.name for pool in pools]
        wrong += [f"two pools are called {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
        if wrong:
            raise BadDevice(wrong)
        self.pools, self.health, self.unhealthy = pools, health, unhealthy
        self._devices = {(pool.name, device.name): device for pool in pools for device in pool.devices}

    def published(self, pool: str, device: str) -> Device | None:
        """Return the device of a pool, if there is one."""
        return self._devices.get((pool, device))

    def _tainted(self, pool: Pool, unhealthy: tuple[tuple[str, str], ...]) -> Pool:
        """Return a pool whose unhealthy devices say so: nobody is given them any more."""
        devices = (
            replace(one, taints=(*one.taints, self.taint)) if (pool.name, one.name) in unhealthy else one
            for one in pool.devices
        )
        return replace(pool, devices=tuple(devices))
