"""Which branches of a search cannot end well.

Knows that devices only get fewer as more are chosen. Must not know an answer of its own: a branch is cut only
where it would have found nothing and raised nothing.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from jackfield.core.allocate.attempt import Attempt
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
    """Requests that want the same devices, from one point of the search on."""

    asks: tuple[tuple[int, Ask], ...]
    """One of each claim and set of constraints."""
    wanted: int
    candidates: Sequence[Candidate]


class Lookahead:
    """Whether the requests still to come can be met, each kind for itself."""

    def __init__(
        self, wishes: Sequence[Wish], attempt: Attempt, candidates: Callable[[Ask], Sequence[Candidate]]
    ) -> None:
        self._wishes = wishes
        self._attempt = attempt
        self._candidates = candidates
        self._groups: dict[tuple[int, int], tuple[Group, ...]] = {}
        self._silent = self._raises_nothing()

    def hopeless(self, claim: int, index: int) -> bool:
        """Return whether some kind of device is wanted more often after this request than it is left."""
        if not self._silent:
            return False
        key = (claim, index)
        if key not in self._groups:
            self._groups[key] = tuple(self._after(claim, index))
        return any(self._short(group) for group in self._groups[key])

    def _raises_nothing(self) -> bool:
        asks = [ask for wish in self._wishes for request in wish.requests for ask in request.asks]
        return not any(
            (ask.all_devices and ask.constraints)
            or any(one.fault is not None for one in self._candidates(ask))
            for ask in asks
        )

    def _after(self, claim: int, index: int) -> Sequence[Group]:
        kinds: dict[tuple[object, ...], list[tuple[int, Ask]]] = {}
        for number in range(claim, len(self._wishes)):
            requests = self._wishes[number].requests
            for request in requests[index + 1 :] if number == claim else requests:
                ask = request.asks[0]
                if not (request.prioritized or ask.all_devices or ask.admin):
                    kind = (ask.matcher, ask.capacity_key, ask.tolerations)
                    kinds.setdefault(kind, []).append((number, ask))
        return [self._group(asks) for asks in kinds.values() if self._exclusive(asks[0][1])]

    def _exclusive(self, ask: Ask) -> bool:
        return not any(one.entry.shareable for one in self._candidates(ask))

    def _group(self, asks: Sequence[tuple[int, Ask]]) -> Group:
        distinct = {(number, ask.constraints): (number, ask) for number, ask in asks}
        wanted = sum(ask.count for _, ask in asks)
        return Group(tuple(distinct.values()), wanted, self._candidates(asks[0][1]))

    def _short(self, group: Group) -> bool:
        wanted = group.wanted
        for one in group.candidates:
            if not wanted:
                return False
            if any(not self._attempt.hopeless(claim, ask, one) for claim, ask in group.asks):
                wanted -= 1
        return wanted > 0
