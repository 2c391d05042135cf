"""What becomes of every device when it is a request's turn.

Knows which devices a node sees and which it does not, and what the search had chosen before. Must not know why a
device drops out, beyond the causes it is told.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

import msgspec

from jackfield.core.allocate.allocator import Allocator
from jackfield.core.allocate.attempt import Placement
from jackfield.core.allocate.causes import Judge, Selection, closure
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Candidate, Pool, PoolState
from jackfield.core.allocate.reasons import NEAREST_MAX, Cause, Miss, RequestWhy, Step
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.search import Search
from jackfield.core.allocate.selectors import Answer
from jackfield.core.allocate.surroundings import Surroundings
from jackfield.core.allocate.tally import Tally, meant_here, nearest
from jackfield.core.allocate.trial import Holders, Trial
from jackfield.model.names import DeviceID
from jackfield.model.policy import CLAIM_DEVICES_MAX

LOOKS_MAX: Final = 20_000
"""Among so many devices on the node, and as many elsewhere, the nearest are looked for."""


class Turn(msgspec.Struct, frozen=True):
    """A request, or one alternative of it, when the search comes to it."""

    claim: int
    index: int
    ask: Ask
    stuck: bool
    aborted: bool
    """Whether the search ended in an error."""


class Scene:
    """One node, and the devices that a search had chosen there when it got furthest."""

    def __init__(
        self,
        allocator: Allocator,
        search: Search,
        wishes: Sequence[Wish],
        reached: Sequence[Placement],
        known: Holders,
    ) -> None:
        self._known = known
        self._allocator = allocator
        self._search = search
        self._wishes = wishes
        self._reached = reached
        self._surroundings = Surroundings(allocator.pools, search.seen)
        self._selection = Selection(allocator.selectors, lists=allocator.features.list_attributes)
        self._turns = {
            ask: (number, index)
            for number, wish in enumerate(wishes)
            for index, request in enumerate(wish.requests)
            for ask in request.asks
        }
        pools = search.seen.pools
        self._closed = tuple(pool for pool in pools if pool.state is not PoolState.USABLE and pool.size)
        self._devices = tuple(Candidate(pool, entry, None) for pool in pools for entry in pool.entries)
        self._unusable = self._surroundings.tally()
        for pool in self._closed:
            self._unusable.add(closure(pool), _first(pool), pool.size)

    def account(self, turn: Turn) -> RequestWhy:
        """Return what becomes of every device."""
        ask, wanted, trial = turn.ask, self._wanted(turn.ask), self._trial(turn)
        judge = Judge(self._search.seen, self._selection, trial, limit(trial.per_claim[turn.claim] + wanted))
        own: set[Entry] = set()
        for each in self._reached:
            if each.ask is ask:
                trial.place(each.claim, ask, each.candidate)
                own.add(each.candidate.entry)
        tally, left = Tally(self._unusable), 0
        for one in self._devices:
            if one.entry in own:
                continue
            cause = next(judge.causes(turn.claim, ask, one), None)
            if cause is not None:
                tally.add(cause, one.entry.id)
            elif len(own) < wanted and not (turn.stuck and turn.aborted):
                # Another alternative of the request, or one that the search never came to.
                trial.place(turn.claim, ask, one)
                own.add(one.entry)
            else:
                left += 1
        found = RequestWhy(
            claim=ask.claim.key,
            request=ask.name,
            every=ask.all_devices,
            wanted=wanted,
            had=len(own),
            left=left,
            removed=tally.removed,
            stuck=turn.stuck,
            nearest=(),
        )
        if not found.missing:
            return found
        # An error is about one thing, which comes before all others.
        count = 1 if turn.aborted and turn.stuck else min(found.missing, NEAREST_MAX)
        misses = self._nearest(turn, judge, own, count)
        return msgspec.structs.replace(found, nearest=misses)

    def _wanted(self, ask: Ask) -> int:
        if not ask.all_devices:
            return ask.count
        try:
            return self._search.count(ask)
        except AllocationError:
            # Nobody can tell how many all are, only how many there are of those that can be judged.
            return sum(self._means(ask, one.entry) for one in self._devices)

    def _means(self, ask: Ask, entry: Entry) -> bool:
        try:
            return self._search.seen.here(entry) and ask.matcher.verdict(entry) is Answer.MEANT
        except AllocationError:
            return False

    def _trial(self, turn: Turn) -> Trial:
        trial = Trial(self._wishes, self._allocator.usage, self._allocator.features, self._known)
        for one in self._reached:
            if self._turns[one.ask] < (turn.claim, turn.index):
                trial.place(one.claim, one.ask, one.candidate)
        return trial

    def _nearest(self, turn: Turn, judge: Judge, own: AbstractSet[Entry], count: int) -> tuple[Miss, ...]:
        here = nearest(self._misses(turn, judge, own), count, aborted=turn.aborted)
        if len(here) == count and all(meant_here(one.causes) for one in here):
            return here
        elsewhere = (
            Miss(entry.id, tuple(judge.elsewhere(turn.ask, entry, cause)))
            for entry, cause in islice(self._surroundings, LOOKS_MAX)
        )
        return nearest((*here, *elsewhere), count, aborted=turn.aborted)

    def _misses(self, turn: Turn, judge: Judge, own: AbstractSet[Entry]) -> Iterator[Miss]:
        for one in islice(self._devices, LOOKS_MAX):
            if one.entry not in own:
                causes = tuple(judge.causes(turn.claim, turn.ask, one))
                if causes:
                    yield Miss(one.entry.id, causes)
        for pool in self._closed:
            yield Miss(_first(pool), (closure(pool),))


def limit(devices: int) -> tuple[Cause, ...]:
    """Return what keeps a claim from having so many devices."""
    if devices <= CLAIM_DEVICES_MAX:
        return ()
    return (Cause(Step.LIMIT, "devices of one claim", f"at most {CLAIM_DEVICES_MAX}", str(devices)),)


def _first(pool: Pool) -> DeviceID:
    listed = next(one.spec.devices[0] for one in pool.shown if not one.counts and one.spec.devices)
    return DeviceID(pool.driver, pool.name, listed.name)
