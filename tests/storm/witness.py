"""What must be true at every moment of a storm, and what is counted of it.

Knows what the API server shows of ComposableResources, and what every manager says happened. Must not know who
brought it about. It looks on from outside: nothing here helps the operator.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing

import msgspec

from jackfield.fabric_manager.faces.control import OWNER, Shown
from jackfield.fabric_manager.store import Event
from jackfield.model.composition import ComposabilityRequest, ComposableResource, RequestState, ResourceState
from jackfield.model.names import FabricName, NodeName, OrderID, PhysicalID, Uid
from jackfield.ports import Changed, Cluster, Deleted, Synced
from storm.managers import Plan

HAVING = (ResourceState.ATTACHING, ResourceState.ONLINE)
MOVING = (ResourceState.ATTACHING, ResourceState.DETACHING)


class Books:
    """What the API server shows: the operator's books."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._fabrics = {node: plan.name for plan in plans for node in plan.nodes}
        self.resources: dict[Uid, ComposableResource] = {}
        self.requests: dict[str, ComposabilityRequest] = {}
        self.devices: dict[Uid, PhysicalID] = {}
        self.orders: Counter[FabricName] = Counter()
        self.in_flight_max: Counter[FabricName] = Counter()
        self._ordered: set[Uid] = set()
        self.lost: set[Uid] = set()
        """Resources whose device vanished: they are wrong about it until they go, and another may have it by then."""
        self._vanished: dict[tuple[FabricName, PhysicalID], None] = {}
        self.wrong: list[str] = []

    def vanishes(self, fabric: FabricName, device: PhysicalID, *, back: bool = False) -> None:
        """A device is gone, or back: what has it, or is given it meanwhile, has lost it."""
        self._vanished[fabric, device] = None
        for one in self.resources.values():
            self._lose(one)
        if back:
            del self._vanished[fabric, device]

    def _lose(self, one: ComposableResource) -> None:
        if (self.fabric(one), one.status.cdi_device_id) in self._vanished:
            self.lost.add(one.metadata.uid)

    async def watch_resources(self, cluster: Cluster) -> None:
        """Follow every ComposableResource; never ends."""
        async with aclosing(cluster.watch(ComposableResource)) as changes:
            async for change in changes:
                match change:
                    case Changed(object=ComposableResource() as one):
                        self._changed(one)
                    case Deleted(object=ComposableResource() as one):
                        self.resources.pop(one.metadata.uid, None)
                    case Synced():  # what went while nobody could be asked is told only by its absence
                        there = self.resources.items()
                        self.resources = {uid: one for uid, one in there if one.key in change.keys}
                    case _:
                        pass

    async def watch_requests(self, cluster: Cluster) -> None:
        """Follow every ComposabilityRequest; never ends."""
        async with aclosing(cluster.watch(ComposabilityRequest)) as changes:
            async for change in changes:
                match change:
                    case Changed(object=ComposabilityRequest() as one):
                        self.requests[one.metadata.name] = one
                    case Deleted(object=ComposabilityRequest() as one):
                        self.requests.pop(one.metadata.name, None)
                    case _:
                        pass

    def _changed(self, one: ComposableResource) -> None:
        uid, device, fabric = one.metadata.uid, one.status.cdi_device_id, self.fabric(one)
        namesakes = [other.metadata.uid for other in self.resources.values() if other.key == one.key]
        for other in namesakes:  # it may have gone while nobody could be asked
            del self.resources[other]
        self.resources[uid] = one
        if one.state is ResourceState.ATTACHING and uid not in self._ordered:
            self._ordered.add(uid)
            self.orders[fabric] += 1
        flying = sum(
            other.state in MOVING and self.fabric(other) == fabric for other in self.resources.values()
        )
        self.in_flight_max[fabric] = max(self.in_flight_max[fabric], flying)
        if not device:
            return
        self._lose(one)
        if self.devices.setdefault(uid, device) != device:
            self.wrong.append(f"{one.metadata.name}: one order, two devices: {self.devices[uid]}, {device}")
        if one.state in HAVING:
            self._alone(one)

    def _alone(self, one: ComposableResource) -> None:
        rivals = [
            other
            for other in self.resources.values()
            if other.status.cdi_device_id == one.status.cdi_device_id
            and other.state in HAVING
            and other.metadata.uid not in self.lost
            and self.fabric(other) == self.fabric(one)
        ]
        if len(rivals) > 1:
            names = ", ".join(f"{other.metadata.name} on {other.node}" for other in rivals)
            self.wrong.append(f"{one.status.cdi_device_id} is in two books: {names}")

    def fabric(self, one: ComposableResource) -> FabricName:
        """Return whose it is."""
        return self._fabrics[one.node]

    def held(self, fabric: FabricName) -> dict[PhysicalID, NodeName]:
        """Return which devices the operator believes to have, where."""
        return {
            one.status.cdi_device_id: one.node
            for one in self.resources.values()
            if self.fabric(one) == fabric
        }

    def unsettled(self) -> list[str]:
        """Return what is under way."""
        resources = [
            f"resource {one.metadata.name} is {one.state or 'new'}"
            for one in self.resources.values()
            if one.deleting or one.state is not ResourceState.ONLINE
        ]
        return resources + [
            f"request {one.metadata.name} is {one.status.state or 'new'}: {one.status.error}"
            for one in self.requests.values()
            if one.deleting or one.status.state is not RequestState.RUNNING
        ]


class Ledger:
    """What one manager says happened, one event after another, over all its lives."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.last = 0
        self.counts: Counter[str] = Counter()
        self.where: dict[PhysicalID, NodeName] = {}
        self._attached: set[OrderID] = set()
        self.wrong: list[str] = []

    def hear(self, events: Iterable[Event]) -> None:
        """Take note of what happened, and of what must not have."""
        for event in events:
            if event.number <= self.last:
                continue  # two asked at a time
            self.last = event.number
            self.counts[event.what] += 1
            match event.what:
                case "attached":
                    self._came(event)
                case "detached":
                    self._went(event)
                case _:
                    pass  # it changed nothing

    def _came(self, event: Event) -> None:
        if event.device in self.where:
            self._say(event, f"it is on {self.where[event.device]} already")
        if event.order in self._attached:
            self._say(event, "the order has attached before")
        self._attached.add(event.order)
        self.where[event.device] = event.node

    def _went(self, event: Event) -> None:
        if event.owner == OWNER:
            self._say(event, "somebody else has it")
        if self.where.pop(event.device, None) != event.node:
            self._say(event, "it was not there")

    def _say(self, event: Event, what: str) -> None:
        self.wrong.append(f"{event.what} {event.device} on {event.node} for {event.order}: {what}")

    def compare(self, shown: Shown, held: dict[PhysicalID, NodeName]) -> list[str]:
        """Return how inventory, the manager's own books and the operator's differ when all is quiet."""
        stands = {one.id: one.node for one in shown.inventory.devices if one.node}
        mine = {one.device: one.node for one in shown.held if one.owner != OWNER}
        theirs = {one.device: one.node for one in shown.held if one.owner == OWNER}
        ids = [one.id for one in shown.inventory.devices]
        return [
            *([] if len(ids) == len(set(ids)) == self._devices else [f"{len(ids)} devices are shown"]),
            *([] if stands == self.where else [_difference("inventory and history", stands, self.where)]),
            *([] if stands == mine | theirs else [_difference("inventory and books", stands, mine | theirs)]),
            *([] if held == mine else [_difference("operator and manager", held, mine)]),
            *([] if theirs == self.plan.taken else [_difference("somebody else's", theirs, self.plan.taken)]),
        ]

    @property
    def _devices(self) -> int:
        lab = msgspec.convert(self.plan.lab()["devices"], list[dict[str, int | str]])
        return sum(int(one["count"]) for one in lab)


def _difference(what: str, one: dict[PhysicalID, NodeName], other: dict[PhysicalID, NodeName]) -> str:
    return f"{what} differ: {sorted(set(one.items()) ^ set(other.items()))}"
