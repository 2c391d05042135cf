"""A node for drivers: the embedded cluster with its scheduler, the kubelet's double, and folders of its own."""

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cluster import bootstrap
from jackfield.cluster.api import Client, EmbeddedCluster
from jackfield.cluster.crew import Crew
from jackfield.cluster.scheduling.scheduler import Scheduler
from jackfield.cluster.store import Store, Write
from jackfield.cluster.upkeep.controller_manager import ControllerManager
from jackfield.cluster.upkeep.namespaces import Namespaces
from jackfield.codec import Raw, kinds
from jackfield.driver import Driver, Kit, Places
from jackfield.model.account import ServiceAccount
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, Seconds, named
from jackfield.model.node import Node
from jackfield.model.slice import ResourceSlice
from jackfield.testing.kubelet import Claim, Kubelet

NODE = "n1"
LOOK_SECONDS = Seconds(0.01)
AMOUNTS = {"cpu": "8", "memory": "32Gi", "pods": "110"}


Scene = Callable[["Site"], Coroutine[object, object, None]]


class Site:
    """One node of a cluster."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.cluster = EmbeddedCluster(store)
        self.store = store
        self.places = Places(folder / "plugins", folder / "registry", folder / "cdi")
        self.places.plugins.mkdir()
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"

    def client(self, name: str = "driver") -> Client:
        """Return a handle to the API whose calls are counted."""
        return self.cluster.client(name)

    def kit(self, driver: Driver, node: str = NODE, pod_uid: str = "") -> Kit:
        """Return a driver on the node, with a handle of its own."""
        places = msgspec.structs.replace(self.places, pod_uid=pod_uid)
        return Kit(driver, self.client(driver.name), node, places)

    def kubelet(self) -> Kubelet:
        """Return the node's kubelet."""
        self.places.registry.mkdir(parents=True, exist_ok=True)
        return Kubelet(self.places.registry)

    def apply(self, *texts: str) -> None:
        """Create what stands in YAML."""
        for text in texts:
            for part in text.split("\n---\n"):
                raw: Raw = msgspec.yaml.decode(part)
                kind = next(one for one in kinds.TYPES if kinds.of(one).kind == raw["kind"])
                self.store.create(kind, raw)

    def slices(self) -> list[ResourceSlice]:
        """Return all slices, by name."""
        found = [one.object for one in self.store.list(ResourceSlice).items]
        return sorted(
            (one for one in found if isinstance(one, ResourceSlice)), key=lambda one: one.metadata.name
        )

    def claim(self, name: str, namespace: str = "default") -> ResourceClaim:
        """Return a claim as it is."""
        found = self.store.get(ResourceClaim, Key(namespace, name)).object
        assert isinstance(found, ResourceClaim)
        return found

    async def allocated(self, name: str) -> Claim:
        """Wait until the scheduler has allocated a claim, and return what the kubelet tells of it."""
        await self.until(lambda: self.claim(name).status.allocation is not None)
        return Claim("default", name, self.claim(name).uid)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        while not holds():
            await WallClock().sleep(LOOK_SECONDS)


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[Site]:
    """A cluster that is spoken to in this process, with a scheduler."""
    clock = WallClock()
    store = Store(clock.now, random.Random("drivers"))  # noqa: S311 - no cryptography
    bootstrap.furnish(store, clock.now())
    site = Site(store, folder)
    async with Crew() as crew:
        _have_node(store)
        crew.start(_scheduler(site).run())
        yield site


@asynccontextmanager
async def _served(folder: Path) -> AsyncIterator[Site]:
    """A cluster with its API over HTTPS, as `jackfield up` has it, and all that makes claims and places pods."""
    clock = WallClock()
    store = up.new_store(clock)
    site = Site(store, folder)
    async with up.serving(store, clock) as server, Crew() as crew:
        client, authority = (
            site.client("kube-controller-manager"),
            server.gate.certificates.authority.decode(),
        )
        crew.start(Namespaces(client, clock, authority).run())
        crew.start(ControllerManager(client, clock).run())
        crew.start(_scheduler(site).run())
        _have_node(store)
        account = Key("default", "default")
        await site.until(lambda: any(one.key == account for one in store.list(ServiceAccount).items))
        site.kubeconfig.write_bytes(up.way_in(server))
        yield site


def _scheduler(site: Site) -> Scheduler:
    dice = random.Random("scheduler")  # noqa: S311 - likewise
    return Scheduler(site.client("kube-scheduler"), WallClock(), dice)


def _have_node(store: Store) -> None:
    store.create(Node, {"metadata": {"name": NODE}})
    ready = {"capacity": AMOUNTS, "allocatable": AMOUNTS, "conditions": [{"type": "Ready", "status": "True"}]}
    store.patch(Node, named(NODE), {"status": ready}, Write(status=True))
    store.patch(Node, named(NODE), {"spec": {"taints": None}}, Write())


def on_a_node(scene: Scene) -> None:
    """Play a scene on a node whose API is in this process."""
    _play(scene, _running)


def on_a_served_node(scene: Scene) -> None:
    """Play a scene on a node whose API is reached by `site.kubeconfig`."""
    _play(scene, _served)


def _play(scene: Scene, stage: Callable[[Path], AbstractAsyncContextManager[Site]]) -> None:
    async def play(folder: Path) -> None:
        async with stage(folder) as site:
            await scene(site)

    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="jf-") as folder:
        asyncio.run(play(Path(folder)))
