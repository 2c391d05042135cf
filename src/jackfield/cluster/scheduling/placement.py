"""One scheduling cycle: a pod comes in, a node comes out, or the reasons why there is none.

Knows in which order nodes are looked at, and when enough have been seen. Must not know the queue or the API.
Claims are asked for last and best node first, since they cost most: unless the devices themselves make one node
better than another, the first node whose claims fit is the one that looking at all of them would have chosen.
No pod is preempted for another.
"""

import random
from collections.abc import Iterator

import msgspec

from jackfield.cluster.scheduling.dynamic_resources import (
    ClaimsCycle,
    DynamicResources,
    disposable,
    normalised,
)
from jackfield.cluster.scheduling.filters import (
    NodeInfo,
    Plugin,
    PodInfo,
    Refusal,
    feasible_nodes_wanted,
    least_allocated,
    name_of,
    no_node,
    refusal,
    tally,
)
from jackfield.cluster.scheduling.scheduler_cache import SchedulerCache
from jackfield.model.claim import AllocationResult, ResourceClaim
from jackfield.model.names import Key, NodeName, Seconds

CLAIMS_WEIGHT = 2
"""How much the plugin's score counts in the default profile; that of resources counts 1."""
_KNOWN_MAX = 10_000


class Placed(msgspec.Struct, frozen=True):
    """The pod goes there, with these allocations for its claims."""

    node: NodeName
    claims: tuple[Key, ...]
    """All its claims, in order."""
    allocations: dict[Key, AllocationResult]
    """For those that are not allocated yet."""


class Unplaced(msgspec.Struct, frozen=True):
    """No node fits. `give_up` are claims of which one may be deallocated, to try other devices."""

    message: str
    plugins: frozenset[Plugin]
    likeness: bytes = b""
    """Pods of the same likeness are refused alike; empty for a pod like no other."""
    give_up: tuple[ResourceClaim, ...] = ()


class Placement:
    """Finds nodes for pods."""

    def __init__(
        self, cache: SchedulerCache, claims: DynamicResources, generator: random.Random, percentage: int = 0
    ) -> None:
        self._cache = cache
        self._claims = claims
        self._random = generator
        self._percentage = percentage
        self._start = 0
        self._known: dict[bytes, Unplaced] = {}
        self._known_since = (-1, -1)

    def place(self, info: PodInfo, now: Seconds) -> Placed | Unplaced:
        """Return where the pod goes. Raises AllocationError if that cannot be told."""
        cycle = self._claims.begin(info)
        if isinstance(cycle, Refusal):
            message = no_node(len(self._cache.names), cycle.reasons[0])
            return Unplaced(message, frozenset({cycle.plugin}))
        if cycle.settled:
            return self._search(cycle, now)
        # Pods alike are refused alike, until something is freed or added.
        freed = (self._cache.room_freed, self._cache.devices_freed)
        if self._known_since != freed or len(self._known) > _KNOWN_MAX:
            self._known.clear()
            self._known_since = freed
        likeness = _likeness(cycle)
        known = self._known.get(likeness)
        if known is not None:
            return known
        found = self._search(cycle, now)
        if isinstance(found, Unplaced):
            found = self._known[likeness] = msgspec.structs.replace(found, likeness=likeness)
        return found

    def _search(self, cycle: ClaimsCycle, now: Seconds) -> Placed | Unplaced:
        names = self._cache.names
        wanted = feasible_nodes_wanted(len(names), self._percentage)
        refusals: list[Refusal] = []
        for batch in self._batches(cycle.info, wanted, refusals):
            node = self._best(cycle, batch, refusals, now)
            if node is not None:
                claims = tuple(one.key for one in cycle.claims)
                return Placed(node, claims, cycle.allocations(node))
        after = "still not schedulable" if cycle.claims else ""
        return Unplaced(
            no_node(len(names), tally(refusals), after),
            frozenset(one.plugin for one in refusals),
            give_up=disposable(cycle),
        )

    def _batches(self, info: PodInfo, wanted: int, refusals: list[Refusal]) -> Iterator[list[NodeInfo]]:
        """Yield nodes that fit but for claims, so many at a time, from where the last cycle stopped."""
        names = self._cache.names
        start = self._start
        batch: list[NodeInfo] = []
        for step in range(len(names)):
            target = self._cache.node(names[(start + step) % len(names)])
            no = refusal(info, target)
            if no is not None:
                refusals.append(no)
                continue
            batch.append(target)
            if len(batch) == wanted:
                self._start = (start + step + 1) % len(names)
                yield batch
                batch = []
        if batch:
            yield batch

    def _best(
        self, cycle: ClaimsCycle, batch: list[NodeInfo], refusals: list[Refusal], now: Seconds
    ) -> NodeName | None:
        # Sorting keeps the order of equals, so shuffling first is choosing among them at random.
        self._random.shuffle(batch)
        batch.sort(key=lambda target: least_allocated(cycle.info, target), reverse=True)
        fitting = []
        for target in batch:
            no = self._claims.refusal(cycle, target, now) if cycle.claims else None
            if no is not None:
                refusals.append(no)
                continue
            if not cycle.scores:
                return name_of(target)
            fitting.append(target)
        return self._highest(cycle, fitting)

    def _highest(self, cycle: ClaimsCycle, fitting: list[NodeInfo]) -> NodeName | None:
        ranks = normalised({name_of(target): cycle.score(name_of(target)) for target in fitting})
        best = max(
            fitting,
            key=lambda target: CLAIMS_WEIGHT * ranks[name_of(target)] + least_allocated(cycle.info, target),
            default=None,
        )
        return name_of(best) if best is not None else None


def _likeness(cycle: ClaimsCycle) -> bytes:
    spec = cycle.info.pod.spec
    return cycle.signature + msgspec.msgpack.encode(
        (spec.node_name, spec.node_selector, spec.affinity, spec.tolerations, cycle.info.requests)
    )
