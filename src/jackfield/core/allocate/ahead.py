"""Which branches of a search cannot end well.

Knows that devices only get fewer as more are chosen. Must not know an answer of its own: a branch is cut only
where it would have found nothing and raised nothing.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from jackfield.core.allocate.attempt import Attempt
from jackfield.core.allocate.offers import Entry
from jackfield.core.allocate.pools import Candidate
from jackfield.core.allocate.requests import Ask, Wish


def too_few(attempt: Attempt, claim: int, ask: Ask, candidates: Iterable[Candidate], wanted: int) -> bool:
    """Return whether fewer devices are left than the request still wants.

    A device that a selector cannot judge is never skipped: the search must come to it and say so.
    """
    for one in candidates:
        if attempt.busy(claim, ask, one):
            continue
        if one.fault is not None:
            return False
        if not attempt.hopeless(claim, ask, one):
            wanted -= 1
            if not wanted:
                return False
    return True


class Group(msgspec.Struct, frozen=True, eq=False):
    """Requests for the same devices, from one point of the search on."""

    asks: tuple[tuple[int, Ask], ...]
    """One of each claim and set of constraints."""
    wanted: int
    candidates: Sequence[Candidate]


class Lookahead:
    """Whether the requests still to come can be met: each kind for itself, and all of them together."""

    def __init__(
        self, wishes: Sequence[Wish], attempt: Attempt, candidates: Callable[[Ask], Sequence[Candidate]]
    ) -> None:
        self._wishes = wishes
        self._attempt = attempt
        self._candidates = candidates
        self._groups: dict[tuple[int, int, Ask, int], tuple[Group, ...]] = {}
        self._silent = self._raises_nothing()

    def hopeless(self, claim: int, index: int, ask: Ask, wanted: int) -> bool:
        """Return whether more devices are wanted than are left, by this request and those after it."""
        if not self._silent:
            return False
        key = (claim, index, ask, wanted)
        if key not in self._groups:
            self._groups[key] = tuple(self._from(claim, index, ask, wanted))
        everything: set[Entry] = set()
        total = 0
        for group in self._groups[key]:
            left = self._left(group)
            if len(left) < group.wanted:
                return True
            everything |= left
            total += group.wanted
        return len(everything) < total

    def _raises_nothing(self) -> bool:
        asks = [ask for wish in self._wishes for request in wish.requests for ask in request.asks]
        return not any(
            (ask.all_devices and ask.constraints)
            or any(one.fault is not None for one in self._candidates(ask))
            for ask in asks
        )

    def _from(self, claim: int, index: int, ask: Ask, wanted: int) -> Iterable[Group]:
        kinds: dict[tuple[object, ...], list[tuple[int, Ask, int]]] = {}
        for number, one, count in ((claim, ask, wanted), *self._after(claim, index)):
            # Admin access takes no device from others, and shared devices serve any number of requests.
            if not one.admin and not any(each.entry.shareable for each in self._candidates(one)):
                kind = (one.matcher, one.capacity_key, one.tolerations)
                kinds.setdefault(kind, []).append((number, one, count))
        for asks in kinds.values():
            distinct = {(number, one.constraints): (number, one) for number, one, _ in asks}
            total = sum(count for _, _, count in asks)
            yield Group(tuple(distinct.values()), total, self._candidates(asks[0][1]))

    def _after(self, claim: int, index: int) -> Iterable[tuple[int, Ask, int]]:
        for number in range(claim, len(self._wishes)):
            requests = self._wishes[number].requests
            for request in requests[index + 1 :] if number == claim else requests:
                ask = request.asks[0]
                if not request.prioritized and not ask.all_devices:
                    yield number, ask, ask.count

    def _left(self, group: Group) -> set[Entry]:
        hopeless, asks = self._attempt.hopeless, group.asks
        return {
            one.entry for one in group.candidates if not all(hopeless(claim, ask, one) for claim, ask in asks)
        }
