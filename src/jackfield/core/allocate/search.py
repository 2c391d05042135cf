"""Which devices win.

Knows the order in which devices are tried and when to turn back: claims, requests, alternatives, pools,
slices, devices, the first complete solution. Must not know why one device may be chosen and another not.
"""

from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from itertools import islice
from typing import Final, TypeAlias

from jackfield.core.allocate import ahead, capacity
from jackfield.core.allocate.attempt import Attempt, Obstacle, Placement
from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.gathering import Seen
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.outcome import AllocationError
from jackfield.core.allocate.pools import Candidate, Pool, PoolState
from jackfield.core.allocate.requests import Ask, Request, UnreadableError, Wish
from jackfield.core.allocate.usage import Usage
from jackfield.model.policy import CLAIM_DEVICES_MAX

CHECKS_MAX: Final = 3_000_000
"""After so many steps and looks at a device a search is given up, as upstream after ten seconds."""
EASY_STEPS: Final = 64
"""A search that takes no more than this is not worth looking far ahead in."""
NOWHERE: Final = -1


class Outcome(Enum):
    """How a branch of the search ended."""

    FOUND = auto()
    NONE = auto()
    LIMIT = auto()
    """The claim would get more devices than it may hold, whichever they are."""
    GIVEN_UP = auto()


Walk: TypeAlias = Generator["Walk", Outcome, Outcome]
"""A branch of the search; it yields the branches it wants followed. Depth thus costs no stack of Python's."""


class Search:
    """A search for devices for all claims on one node."""

    def __init__(self, wishes: Sequence[Wish], seen: Seen, usage: Usage, features: Features) -> None:
        self.seen = seen
        self.attempt = Attempt(wishes, usage, features)
        self.chosen: dict[tuple[int, int], Ask] = {}
        """The alternative taken, by claim and request."""
        self.furthest: tuple[Placement, ...] = ()
        """The most devices that were ever chosen together."""
        self.steps = 0
        self.prunes = True
        """Whether branches that cannot end well are left out, which changes nothing but the time it takes."""
        self.patience = EASY_STEPS
        """After so many steps it looks ahead to the requests to come."""
        self._wishes = wishes
        self._usage = usage
        self._features = features
        self._candidates: dict[Ask, Sequence[Candidate]] = {}
        self._turned_back = False
        self._lookahead: ahead.Lookahead | None = None

    def run(self, checks_max: int = CHECKS_MAX) -> Outcome:
        """Search, and leave the devices in `attempt`. Raises AllocationError where upstream does."""
        self.check()
        stack = [self._claim(0)]
        answer: Outcome | None = None
        while stack:
            try:
                # The first thing a generator is sent must be None, which no branch looks at.
                branch = stack[-1].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                stack.pop()
                answer = end.value
            else:
                self.steps += 1
                if self.steps + self.attempt.checks > checks_max:
                    return Outcome.GIVEN_UP
                stack.append(branch)
                answer = None
        assert answer is not None
        return answer

    # --- before the search

    def check(self, unreadable: UnreadableError | None = None) -> None:
        """Raise the first error there is: upstream reads a request, counts what `All` means, and reads the next."""
        for wish in self._wishes:
            self._check_count(wish)
        if unreadable is None:
            return
        for ask in unreadable.asks:
            self.count(ask)
        if unreadable.wish is not None:
            self._check_count(unreadable.wish)

    def _check_count(self, wish: Wish) -> None:
        least = sum(min(self.count(ask) for ask in request.asks) for request in wish.requests)
        if least > CLAIM_DEVICES_MAX:
            raise AllocationError(
                f"claim {wish.claim.key}: number of requested devices {least} "
                f"exceeds the claim limit of {CLAIM_DEVICES_MAX}"
            )

    def count(self, ask: Ask) -> int:
        """Return how many devices the request wants."""
        return len(self.candidates(ask)) if ask.all_devices else ask.count

    def candidates(self, ask: Ask) -> Sequence[Candidate]:
        """Return the devices to try, or for `All` to take, in order."""
        known = self._candidates.get(ask)
        if known is None:
            found = self.seen.candidates(ask.matcher)
            if ask.all_devices:
                known = self._all(ask, found)
            elif ask.admin:
                known = found
            else:
                known = self._free(found)
            self._candidates[ask] = known
        return known

    def _free(self, found: Sequence[Candidate]) -> Sequence[Candidate]:
        free: list[Candidate] = []
        pool: Pool | None = None
        held: AbstractSet[Entry] = frozenset()
        for one in found:
            if one.pool is not pool:
                pool = one.pool
                held = self._usage.held(pool)
            if one.entry not in held:
                free.append(one)
        return free

    def _all(self, ask: Ask, found: Sequence[Candidate]) -> Sequence[Candidate]:
        by_pool = {id(one.pool): one for one in reversed(found) if one.fault is not None}
        for pool in self.seen.pools:
            if pool.state is not PoolState.USABLE:
                raise AllocationError(
                    f"{ask.place}: asks for all devices, but resource pool {pool} is {pool.state}"
                )
            faulty = by_pool.get(id(pool))
            if faulty is not None and faulty.fault is not None:
                raise ask.refusal(faulty.fault, faulty.entry.id)
        if not self._features.consumable_capacity:
            return found
        if self._features.profile is Profile.V1_36:
            # By all devices it means those that are not full.
            return [one for one in found if self.attempt.capacity_suffices(ask, one.entry)]
        return [one for one in found if capacity.demand(one.entry, ask) is not None]

    # --- the search

    def _claim(self, claim: int) -> Walk:
        if claim == len(self._wishes):
            return Outcome.FOUND
        answer = yield self._request(claim, 0)
        # Another choice for a claim before may leave an alternative here that takes fewer devices.
        return answer if answer is not Outcome.LIMIT or claim == 0 else Outcome.NONE

    def _request(self, claim: int, index: int) -> Walk:
        requests = self._wishes[claim].requests
        if index == len(requests):
            return self._claim(claim + 1)
        request = requests[index]
        if request.prioritized:
            return self._first_available(claim, index, request)
        return self._ask(claim, index, request.asks[0])

    def _first_available(self, claim: int, index: int, request: Request) -> Walk:
        ended = Outcome.LIMIT
        for ask in request.asks:
            answer = yield self._ask(claim, index, ask)
            if answer is Outcome.FOUND:
                self.chosen[claim, index] = ask
                return answer
            if answer is Outcome.NONE:
                ended = Outcome.NONE
        return ended

    def _ask(self, claim: int, index: int, ask: Ask) -> Walk:
        count = self.count(ask)
        if ask.all_devices and not count:
            return Outcome.NONE
        if not count:
            return (yield self._request(claim, index + 1))
        if self.attempt.per_claim[claim] + count > CLAIM_DEVICES_MAX:
            return Outcome.LIMIT
        if ask.all_devices:
            return (yield self._every(claim, index, ask))
        return (yield self._some(claim, index, ask, count))

    def _every(self, claim: int, index: int, ask: Ask) -> Walk:
        attempt = self.attempt
        before = len(attempt.placed)
        answer = Outcome.NONE
        for one in self.candidates(ask):
            obstacle = attempt.obstacle(claim, ask, one)
            if obstacle is Obstacle.CONSTRAINT:
                raise AllocationError(
                    f"{ask.place}: cannot add device {one.entry.id} "
                    "because a claim constraint would not be satisfied"
                )
            if obstacle is not None:
                break
            self._place(claim, ask, one)
        else:
            answer = yield self._request(claim, index + 1)
        if answer is not Outcome.FOUND:
            while len(attempt.placed) > before:
                attempt.undo()
        return answer

    def _some(self, claim: int, index: int, ask: Ask, wanted: int, start: int = 0) -> Walk:
        if not wanted:
            return (yield self._request(claim, index + 1))
        position = start
        while not self._in_vain(claim, index, ask, wanted, position):
            position = self._take(claim, ask, position)
            if position == NOWHERE:
                break
            answer = yield self._some(claim, index, ask, wanted - 1, position)
            if answer is Outcome.FOUND:
                return answer
            self.attempt.undo()
            self._turned_back = True
            if answer is Outcome.LIMIT:
                return answer
        return Outcome.NONE

    def _take(self, claim: int, ask: Ask, start: int) -> int:
        """Choose the next device that can be had, and return the position after it."""
        attempt, candidates = self.attempt, self.candidates(ask)
        for position in range(start, len(candidates)):
            one = candidates[position]
            if one.fault is not None:
                if attempt.busy(claim, ask, one):
                    continue
                raise ask.refusal(one.fault, one.entry.id)
            obstacle = attempt.obstacle(claim, ask, one)
            if obstacle is None:
                self._place(claim, ask, one)
                return position + 1
            if obstacle is Obstacle.CONSTRAINT:
                attempt.refuse(claim, ask, one)
        return NOWHERE

    def _place(self, claim: int, ask: Ask, one: Candidate) -> None:
        self.attempt.place(claim, ask, one)
        if len(self.attempt.placed) > len(self.furthest):
            self.furthest = tuple(self.attempt.placed)

    def _in_vain(self, claim: int, index: int, ask: Ask, wanted: int, start: int) -> bool:
        # A search that never turned back has been cheap so far, and looking ahead is not.
        if not self.prunes or not self._turned_back:
            return False
        left = islice(self.candidates(ask), start, None)
        if wanted > 1 and ahead.too_few(self.attempt, claim, ask, left, wanted):
            return True
        if self.steps <= self.patience:
            return False
        if self._lookahead is None:
            self._lookahead = ahead.Lookahead(self._wishes, self.attempt, self.candidates)
        return self._lookahead.hopeless(claim, index, ask, wanted)
