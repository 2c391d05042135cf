"""Why no node fits: how many nodes fail for which main reason, and which came nearest.

Knows how to ask about thousands of nodes without searching on each. Must not know rules of allocation: a node on which
each request for itself could be met is searched as any other.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jackfield.core.allocate.account import limit
from jackfield.core.allocate.allocator import Allocator, outcome
from jackfield.core.allocate.causes import Judge
from jackfield.core.allocate.gathering import Seen
from jackfield.core.allocate.glances import NOTHING, Glance, Glances, glance
from jackfield.core.allocate.outcome import AllocationError, NoFit, Reason
from jackfield.core.allocate.pools import Pool
from jackfield.core.allocate.reasons import GROUPS_MAX, Everywhere, NodesWhy, Step, cut
from jackfield.core.allocate.requests import Ask, Request, Wish
from jackfield.core.allocate.search import CHECKS_MAX, Search
from jackfield.core.allocate.trial import NOBODY, Holders, Trial
from jackfield.core.allocate.why import stuck, why
from jackfield.model.claim import ResourceClaim
from jackfield.model.node import Node
from jackfield.model.policy import CLAIM_DEVICES_MAX

NOT_ASKED: Final = "not looked at: too many searches"
OTHER: Final = "other errors"
REASONS_MAX: Final = len(Step) + GROUPS_MAX


def why_nowhere(
    allocator: Allocator, claims: Sequence[ResourceClaim], nodes: Iterable[Node], known: Holders = NOBODY
) -> Everywhere:
    """Return how many nodes do not fit for which main reason, and of the node that came nearest all there is to say.

    A node where some request lacks devices is judged at a glance. Those where only all requests together cannot be met
    are searched, all together in no more than CHECKS_MAX steps.
    """
    listed = tuple(nodes)
    try:
        survey = Survey(allocator, allocator.wishes(claims))
    except AllocationError:
        # Most often the same error on every node; but one may have another that comes before it.
        standings = [Standing(cut(why(allocator, claims, one).verdict), errs=True) for one in listed]
    else:
        standings = [survey.standing(node) for node in listed]
    fitting = sum(not one.reason for one in standings)
    ranked = sorted(range(len(listed)), key=lambda at: standings[at].rank)
    groups: dict[str, list[int]] = {}
    for at in ranked:
        if standings[at].reason:
            groups.setdefault(standings[at].reason, []).append(at)
    reasons = [NodesWhy(reason, len(ats), listed[ats[0]].name) for reason, ats in groups.items()]
    nearest = () if fitting else tuple(why(allocator, claims, listed[at], known) for at in ranked[:1])
    return Everywhere(len(listed), fitting, _bounded(reasons), nearest)


def _bounded(reasons: Sequence[NodesWhy]) -> tuple[NodesWhy, ...]:
    found = sorted(reasons, key=lambda one: -one.nodes)
    told, rest = found[:REASONS_MAX], found[REASONS_MAX:]
    if rest:
        told.append(NodesWhy(OTHER, sum(one.nodes for one in rest), rest[0].example))
    return tuple(told)


class Standing(msgspec.Struct, frozen=True):
    """How a node fares."""

    reason: str
    """Empty where it fits."""
    missing: int = 0
    glance: Glance = NOTHING
    errs: bool = False

    @property
    def rank(self) -> tuple[bool, int, tuple[int, int, int]]:
        """The less the nearer; nodes that could not be judged come last."""
        return self.errs, self.missing, self.glance.nearest


class Survey:
    """Looks at one node after the other."""

    def __init__(self, allocator: Allocator, wishes: Sequence[Wish], checks_max: int = CHECKS_MAX) -> None:
        """Take the steps that all searches together may take."""
        self._allocator = allocator
        self._wishes = wishes
        self._glances = Glances(allocator, wishes)
        self._checks_left = checks_max
        # How many `All` are, and whether that is too many for a claim, only a search can say.
        self._plain = all(
            not any(ask.all_devices for request in wish.requests for ask in request.asks)
            and sum(min(ask.count for ask in request.asks) for request in wish.requests) <= CLAIM_DEVICES_MAX
            for wish in wishes
        )

    def standing(self, node: Node) -> Standing:
        """Return how a node fares."""
        try:
            pools = self._allocator.pools.gather(node)
            quick = self._quick(pools, node) if self._plain else None
            return quick or self._searched(Seen(node, pools, self._allocator.pools.places))
        except AllocationError as error:
            return Standing(cut(str(error)), errs=True)

    def _quick(self, pools: Sequence[Pool], node: Node) -> Standing | None:
        """Return how the node fares where some request cannot be met even for itself."""
        lacks: list[tuple[int, Glance]] = []
        for number, wish in enumerate(self._wishes):
            for request in wish.requests:
                seen = [(ask.count, self._glances.of(number, ask, pools, node)) for ask in request.asks]
                clear = [(count - one.passing, one) for count, one in seen if one is not None]
                if len(clear) < len(seen):
                    return None
                lacks.append(min(clear, key=lambda lack: (lack[0], lack[1].nearest)))
        missing = [lack for lack in lacks if lack[0] > 0]
        if not missing:
            return None
        first = missing[0][1]
        return Standing(first.step, sum(count for count, _ in missing), first)

    def _searched(self, seen: Seen) -> Standing:
        if self._checks_left <= 0:
            return Standing(NOT_ASKED, errs=True)
        search = Search(self._wishes, seen, self._allocator.usage, self._allocator.features)
        try:
            found = outcome(search, self._wishes, seen, self._allocator.features, self._checks_left)
        finally:
            self._checks_left -= search.steps + search.attempt.checks
        if not isinstance(found, NoFit):
            return Standing("")
        if found.reason is Reason.SEARCH_LIMIT:
            return Standing(found.reason, errs=True)
        return self._short(search)

    def _short(self, search: Search) -> Standing:
        """Return how a node fares where requests cannot be met together."""
        place = stuck(search, self._wishes, search.furthest)
        assert place is not None, "a search that served every request has found a solution"
        number, index = place
        request = self._wishes[number].requests[index]
        missing = sum(
            min(max(max(search.count(ask), ask.all_devices) - _had(search, ask), 0) for ask in one.asks)
            for wish in self._wishes
            for one in wish.requests
        )
        seen = [self._closer(search, number, request, ask) for ask in request.asks]
        nearest = min(seen, key=lambda one: one.nearest)
        return Standing(nearest.step, missing, nearest)

    def _closer(self, search: Search, number: int, request: Request, ask: Ask) -> Glance:
        """Return how near devices come that are meant; where none is, how near the others come."""
        trial = Trial(self._wishes, self._allocator.usage, self._allocator.features, NOBODY)
        mine = [one for one in search.furthest if (one.claim, one.ask.request) == (number, request.name)]
        for one in search.furthest:
            if one not in mine:
                trial.place(one.claim, one.ask, one.candidate)
        beyond = limit(trial.per_claim[number] + search.count(ask))
        own = {one.candidate.entry for one in mine if one.ask is ask}
        for one in mine:
            if one.ask is ask:
                trial.place(number, ask, one.candidate)
        judge = Judge(search.seen, self._glances.selection, trial, beyond)
        found = [
            glance(tuple(judge.causes(number, ask, one)))
            for one in search.seen.candidates(ask.matcher)
            if one.entry not in own
        ]
        if found:
            return min(found, key=lambda one: one.nearest)
        return self._glances.of(number, ask, search.seen.pools, search.seen.node) or NOTHING


def _had(search: Search, ask: Ask) -> int:
    return sum(one.ask is ask for one in search.furthest)
