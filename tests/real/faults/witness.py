"""What must never be in an ordeal, and what must be so in the end.

Knows what the API server shows, what every manager says happened, and what nodes went through. Must not know what goes
wrong at the moment. It looks on from outside: nothing here helps the controllers.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Final

from jackfield.cli import check, live
from jackfield.controllers.lead import REPLICAS as LEASES
from jackfield.controllers.store import Store
from jackfield.core.check import Checker, step
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Uid
from jackfield.model.pod import Pod
from jackfield.ports import Changed
from jackfield.sim.scenario import CreateClaim
from jackfield.sim.users import NAMESPACE, object_name
from real.faults.draw import REPLICAS
from real.faults.site import Site
from storm.managers import Manager
from storm.weather import AWAY
from storm.witness import Books, Ledger

LOOK: Final = Seconds(0.3)
ENDED: Final = "Succeeded"
STEPS: Final = (Checker.WENT_BACK, Checker.ANSWER_CHANGED, Checker.ANSWER_WITHOUT_REASON)
"""What can be told of two versions of an object, though others between them may not have been seen."""


class Witness:
    """Looks on at a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._books = Books(site.ordeal.racks)
        self._ledgers = {name: Ledger(one.plan) for name, one in site.managers.items()}
        self._steps: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def looking(self) -> AsyncIterator[None]:
        """Look on while the context is open."""
        cluster = self._site.clients["witness"]
        self._tasks = [
            asyncio.create_task(self._books.watch_resources(cluster)),
            asyncio.create_task(self._follow(ComposableResource)),
            asyncio.create_task(self._follow(ResourceClaim)),
            *(asyncio.create_task(self._listen(name, one)) for name, one in self._site.managers.items()),
        ]
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, kind: type[Object]) -> None:
        """Look at every change of a kind."""
        known: dict[Uid, Object] = {}
        policy = self._site.ordeal.setting.policy
        alone = Store(policy)  # nothing of what stands beside an object is of the same moment
        async with aclosing(self._site.clients["witness"].watch(kind)) as changes:
            async for change in changes:
                if isinstance(change, Changed):
                    old, new = known.get(change.object.uid), change.object
                    known[new.uid] = new
                    found = step(old, new, alone, policy, self._site.clock.now())
                    self._steps += [str(one) for one in found if one.checker in STEPS]

    async def _listen(self, name: str, manager: Manager) -> None:
        ledger = self._ledgers[name]
        while True:
            with suppress(*AWAY):
                ledger.hear(await manager.events(ledger.last))
            await self._site.clock.sleep(LOOK)

    @property
    def counts(self) -> Counter[str]:
        """What the managers did."""
        return sum((one.counts for one in self._ledgers.values()), Counter())

    # --- at every moment

    def wrong(self, dead: set[str]) -> list[str]:
        """Return what must never be and was; `dead` are the processes that somebody killed."""
        return [
            *self._books.wrong,
            *self._steps,
            *(f"nobody looks any more: {one.exception()!r}" for one in self._tasks if one.done()),
            *(words for one in self._ledgers.values() for words in one.wrong),
            *self._torn(),
            *(
                f"{name} ended by itself: status {one.status}"
                for name, one in self._site.replicas.items()
                if one.status is not None and name not in dead
            ),
            *(
                f"{name} failed: {one.errors}"
                for name, one in self._site.replicas.items()
                if "Traceback" in one.errors
            ),
        ]

    def _torn(self) -> Iterator[str]:
        """Yield what left a node while a pod had it. A vendor's driver is not asked who has what."""
        if not all(model.binds for model in self._site.ordeal.setting.policy.models):
            return
        for host in self._site.hardware.hosts.values():
            for one in host.pulled_in_use:
                yield f"device/{one.device.id}: pulled from {one.node} while prepared"

    # --- in the end

    async def lacks(self) -> list[str]:
        """Return what is not yet as it must be in the end."""
        try:
            seen = await live.look(self._site.given)
            said = [f"{one.object}: {one.what} [{one.checker}]" for one in check.faults(seen)]
            said += check.unseen(seen)
            for name, manager in self._site.managers.items():
                said += await self._differences(name, manager, seen)
        except AWAY as error:
            return [f"somebody does not answer: {error}"]
        return [*self._pods(seen), *said, *self._left(seen), *self._kept(seen)]

    def _pods(self, seen: live.Seen) -> Iterator[str]:
        """Every pod that nobody deleted has run to its end: all that are drawn can be served."""
        pods = {one.key: one for one in seen.store.all(Pod) if isinstance(one, Pod)}
        for one in self._site.ordeal.lasting:
            key = Key(one.namespace, object_name(one.name))
            pod = pods.get(key)
            if pod is None:
                yield f"pod/{key}: is gone, and nobody deleted it"
            elif pod.status.phase != ENDED:
                said = [each.message for each in pod.status.conditions if each.message]
                yield f"pod/{key}: is {pod.status.phase}: {'; '.join(said)}"

    async def _differences(self, name: str, manager: Manager, seen: live.Seen) -> list[str]:
        """Return how the manager's journal, its inventory and our books differ."""
        nodes = seen.store.nodes_of(manager.plan.name)
        books = [one for node in nodes for one in seen.store.resources_on(node)]
        held = {one.status.cdi_device_id: one.node for one in books}
        ledger = self._ledgers[name]
        while events := await manager.events(ledger.last):
            ledger.hear(events)
        return ledger.compare(await manager.state(), held)

    def _left(self, seen: live.Seen) -> Iterator[str]:
        """Yield what nobody needs any more and is still in the store, or on a node's disk."""
        store = seen.store
        shared = {Key(NAMESPACE, one.name) for one in self._site.ordeal.steps if isinstance(one, CreateClaim)}
        for claim in store.all(ResourceClaim):
            if claim.key not in shared:
                yield f"claim/{claim.key}: is left, and its pod has ended"
        used = {one.request for one in store.all(ComposableResource) if isinstance(one, ComposableResource)}
        for request in store.all(ComposabilityRequest):
            if request.metadata.name not in used:
                yield f"request/{request.metadata.name}: is left, and nothing belongs to it"
        for lease in seen.replicas:
            if lease.metadata.name not in REPLICAS:
                yield f"lease/{LEASES}/{lease.metadata.name}: is left of nobody"
        for host in self._site.hardware.hosts.values():
            for one in host.prepared():
                yield f"node/{host.node}: {one.device} is still prepared for {one.claim}"
        running = [one for one in store.all(Pod) if isinstance(one, Pod) and one.deleting]
        yield from (f"pod/{one.key}: is being deleted for ever" for one in running)

    def _kept(self, seen: live.Seen) -> Iterator[str]:
        """Yield what is attached beyond what the policy keeps."""
        for fabric in seen.store.fabrics():
            inventory = seen.store.inventory(fabric)
            devices = inventory.devices if inventory is not None else ()
            for model in self._site.ordeal.setting.policy.models:
                there = [one.id for one in devices if one.model == model.cdi_model_name and one.node]
                if len(there) > model.spares:
                    yield f"fabric/{fabric}: {', '.join(there)} attached, and {model.spares} to be kept"
