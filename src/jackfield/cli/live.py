"""A live cluster and its managers, looked at once and never touched.

Knows how everything is read into the store that decisions look at. Must not know what is made of it.
"""

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Final

import msgspec

from jackfield import fabric
from jackfield.cli import policy_file
from jackfield.cli.clock import WallClock
from jackfield.cli.run import Unusable, read_fabrics
from jackfield.controllers import app
from jackfield.controllers.lead import REPLICAS
from jackfield.controllers.store import Store
from jackfield.kube import connection
from jackfield.kube.answers import Unserved
from jackfield.kube.client import KubeCluster
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Seconds
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import Changed, PortError, Selection, Synced

LOOK_SECONDS_MAX: Final = Seconds(30.0)
"""How long the API server, and each manager, may take to answer."""
OPTIONAL: Final = (DeviceTaintRule,)
"""Kinds that a cluster may do without; what is lost without them the controllers say when they start."""
UNREADABLE: Final = (Unusable, policy_file.BadPolicy, fabric.BadFabric, connection.BadConnection)
"""What may be wrong with what was given."""


class Given(msgspec.Struct, frozen=True):
    """Where to look."""

    policy: Path
    fabrics: Path
    kubeconfig: Path | None
    context: str | None


class Seen(msgspec.Struct, frozen=True):
    """What was seen, and what could not be."""

    store: Store
    replicas: tuple[Lease, ...]
    at: Seconds
    unread: Mapping[str, str] = {}
    """Kinds that the API server did not show, and what it said."""
    silent: Mapping[FabricName, str] = {}
    """Fabrics whose manager did not answer, and what it said."""

    @property
    def shows_nothing(self) -> str:
        """What to say if the API server showed nothing at all, and what to do; empty if it showed something."""
        if not all(kind.__name__ in self.unread for kind in app.KINDS):
            return ""
        words = next(iter(self.unread.values()))
        # Nobody there and nobody let in look alike from here: the words before it tell which.
        remedy = "see whether it runs, whether the kubeconfig is the right one, and what its account may read"
        return f"the API server shows nothing: {words}; {remedy} (`kubectl auth can-i --list`)"


async def look(given: Given) -> Seen:
    """Read everything once; what does not answer is told. Raises one of UNREADABLE for what was given."""
    policy, clock = policy_file.read(given.policy), WallClock()
    settings = read_fabrics(given.fabrics)
    reached = connection.load(given.kubeconfig, given.context, os.environ)
    store, unread, silent = Store(policy), dict[str, str](), dict[FabricName, str]()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(KubeCluster(reached, "jackfield-look"))
        # Managers first: what the books say later is then not older than what they show.
        for one in settings:
            line = await stack.enter_async_context(fabric.load(one, os.environ, clock))
            await _ask(store, one.name, line, clock, silent)
        replicas = await _read(cluster, Lease, Selection(namespace=REPLICAS), unread)
        for kind, selection in app.KINDS.items():
            for each in await _read(cluster, kind, selection, unread):
                store.put(each)
    living = tuple(one for one in replicas if isinstance(one, Lease))
    return Seen(store, living, clock.now(), unread, silent)


async def _read(
    cluster: KubeCluster, kind: type[Object], selection: Selection, unread: dict[str, str]
) -> list[Object]:
    try:
        return await _listed(cluster, kind, selection)
    except Unserved as error:
        if kind not in OPTIONAL:
            unread[kind.__name__] = str(error)
    except PortError as error:
        unread[kind.__name__] = str(error)
    except TimeoutError:
        unread[kind.__name__] = f"no answer within {LOOK_SECONDS_MAX:.0f} s"
    return []


async def _ask(
    store: Store, name: FabricName, line: fabric.Line, clock: WallClock, silent: dict[FabricName, str]
) -> None:
    store.ask(name, clock.now())
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            shown = await line.inventory()
    except PortError as error:
        silent[name] = str(error)
    except TimeoutError:
        silent[name] = f"no answer within {LOOK_SECONDS_MAX:.0f} s"
    else:
        store.see(shown, at=clock.now())


async def _listed(cluster: KubeCluster, kind: type[Object], selection: Selection) -> list[Object]:
    """Return all objects of a kind, as a watch begins by telling them."""
    found: list[Object] = []
    async with asyncio.timeout(LOOK_SECONDS_MAX), aclosing(cluster.watch(kind, selection)) as changes:
        async for change in changes:
            if isinstance(change, Changed):
                found.append(change.object)
            if isinstance(change, Synced):
                break
    return found
