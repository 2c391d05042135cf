"""Why a node does not fit, counted.

Knows at which step each device drops out for each request. Must not know rules of its own: it asks those of the
search again.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import assert_never

import msgspec

from jackfield.core.allocate.allocator import Allocator, outcome
from jackfield.core.allocate.attempt import Attempt, Obstacle, Placement
from jackfield.core.allocate.features import Features
from jackfield.core.allocate.gathering import Seen
from jackfield.core.allocate.outcome import AllocationError, NoFit
from jackfield.core.allocate.pools import Candidate, PoolState
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.search import Search
from jackfield.core.allocate.selectors import Answer, Fault
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, NodeName
from jackfield.model.node import Node

FITS = "fits"


class Step(StrEnum):
    """Where a device drops out, in this order; the words complete "so many are"."""

    NODE = "for other nodes"
    POOL = "in a pool that is incomplete or invalid"
    BINDING = "to be waited for, which the scheduler cannot"
    CLASS = "not of the class"
    SELECTOR = "not selected"
    FAULT = "such that a selector fails on them"
    IN_USE = "in use"
    TAKEN = "taken by other requests of the same pod"
    COUNTER = "out of shared counters"
    TAINT = "tainted"
    CONSTRAINT = "excluded by a constraint"
    CAPACITY = "short of capacity"


class Removed(msgspec.Struct, frozen=True):
    """So many devices dropped out at a step."""

    step: Step
    devices: int


class RequestWhy(msgspec.Struct, frozen=True):
    """What became of all devices for one request, or one alternative of it."""

    claim: Key
    request: str
    wanted: int
    """How many devices; for `All` those that selectors mean."""
    removed: tuple[Removed, ...]
    left: int
    stuck: bool
    """Whether the search got no further than this request, given the devices chosen for those before."""

    def __str__(self) -> str:
        counts = ", ".join(f"{one.devices} are {one.step}" for one in self.removed) or "none dropped out"
        total = self.left + sum(one.devices for one in self.removed)
        wish = f"claim {self.claim}, request {self.request} wants {self.wanted}"
        return f"{wish}, {self.left} of {total} devices are left: {counts}"


class Why(msgspec.Struct, frozen=True):
    """Why a node does not fit."""

    node: NodeName
    verdict: str
    """The reason, or the words of the error, or that it fits after all."""
    requests: tuple[RequestWhy, ...]

    def __str__(self) -> str:
        stuck = [one for one in self.requests if one.stuck] or self.requests
        return "; ".join([f"node {self.node}: {self.verdict}", *map(str, stuck)])


def why(allocator: Allocator, claims: Sequence[ResourceClaim], node: Node) -> Why:
    """Return how many devices each step removes for each request.

    It searches again and looks at every device: ask when somebody reads it, not for every node that did not fit.
    """
    try:
        search = allocator.search(claims, node)
        wishes = allocator.wishes(claims)
    except AllocationError as error:
        return Why(node.name, str(error), ())
    verdict = _verdict(search, wishes, allocator.pools.seen(node), allocator.features)
    place = _stuck(search, wishes) if verdict != FITS else None
    counting = _Counting(allocator, wishes, node)
    requests: list[RequestWhy] = []
    for number, wish in enumerate(wishes):
        for index, request in enumerate(wish.requests):
            stuck = (number, index) == place
            before = search.furthest if stuck else ()
            requests.extend(counting.of(number, ask, before, stuck=stuck) for ask in request.asks)
    return Why(node.name, verdict, tuple(requests))


def _verdict(search: Search, wishes: Sequence[Wish], seen: Seen, features: Features) -> str:
    try:
        found = outcome(search, wishes, seen, features)
    except AllocationError as error:
        return str(error)
    return found.reason if isinstance(found, NoFit) else FITS


def _stuck(search: Search, wishes: Sequence[Wish]) -> tuple[int, int] | None:
    """Return the first request that the furthest attempt left without all its devices."""
    requests = (
        (number, index, request)
        for number, wish in enumerate(wishes)
        for index, request in enumerate(wish.requests)
    )
    return next(
        (
            (number, index)
            for number, index, request in requests
            if not any(_served(search, number, ask) for ask in request.asks)
        ),
        None,
    )


def _served(search: Search, claim: int, ask: Ask) -> bool:
    had = sum(one.claim == claim and one.ask is ask for one in search.furthest)
    # What `All` means may not be countable; then there was no search, and nothing was had.
    return had >= (search.count(ask) if had or not ask.all_devices else 1)


class _Counting:
    def __init__(self, allocator: Allocator, wishes: Sequence[Wish], node: Node) -> None:
        self._allocator = allocator
        self._wishes = wishes
        self._seen = allocator.pools.seen(node)

    def of(self, claim: int, ask: Ask, before: Sequence[Placement], *, stuck: bool) -> RequestWhy:
        attempt = Attempt(self._wishes, self._allocator.usage, self._allocator.features)
        for one in before:
            if (one.claim, one.ask.request) != (claim, ask.request):
                attempt.place(one.claim, one.ask, one.candidate)
        counts = dict.fromkeys(Step, 0)
        left = meant = 0
        counts[Step.NODE] = self._allocator.pools.size - sum(pool.size for pool in self._seen.pools)
        for pool in self._seen.pools:
            if pool.state is not PoolState.USABLE:
                counts[Step.POOL] += pool.size
            for entry in pool.entries:
                step = self._step(attempt, claim, ask, Candidate(pool, entry, None))
                if step is None:
                    left += 1
                else:
                    counts[step] += 1
        meant = left + sum(count for step, count in counts.items() if step in _MEANT)
        removed = tuple(Removed(step, count) for step, count in counts.items() if count > 0)
        wanted = meant if ask.all_devices else ask.count
        return RequestWhy(ask.claim.key, ask.name, wanted, removed, left, stuck)

    def _step(self, attempt: Attempt, claim: int, ask: Ask, one: Candidate) -> Step | None:
        try:
            here = self._seen.here(one.entry)
        except AllocationError:
            # The device's own node selector cannot be read; a search that never came to it did not mind.
            return Step.FAULT
        if not here:
            return Step.NODE
        if not one.pool.offers(one.entry):
            return Step.BINDING
        verdict = ask.matcher.verdict(one.entry)
        if isinstance(verdict, Fault):
            return Step.FAULT
        match verdict:
            case Answer.NOT_CLASS:
                return Step.CLASS
            case Answer.NOT_REQUEST:
                return Step.SELECTOR
            case Answer.MEANT:
                return self._obstacle(attempt, claim, ask, one)
            case _ as never:
                assert_never(never)

    def _obstacle(self, attempt: Attempt, claim: int, ask: Ask, one: Candidate) -> Step | None:
        match attempt.obstacle(claim, ask, one):
            case None:
                return None
            case Obstacle.IN_USE:
                held = not ask.admin and one.entry in self._allocator.usage.held(one.pool)
                return Step.IN_USE if held else Step.TAKEN
            case Obstacle.COUNTER:
                return Step.COUNTER
            case Obstacle.TAINT:
                return Step.TAINT
            case Obstacle.CONSTRAINT:
                return Step.CONSTRAINT
            case Obstacle.CAPACITY:
                return Step.CAPACITY
            case _ as never:
                assert_never(never)


_MEANT = frozenset((Step.IN_USE, Step.TAKEN, Step.COUNTER, Step.TAINT, Step.CONSTRAINT, Step.CAPACITY))
