"""Claims, slices and a node → an allocation, or why not.

Knows what is prepared for a cycle and what for a node, so that asking about the next node is cheap. Must
not know who asks: kube-scheduler's rules are the only ones here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import assert_never

from jackfield.core.allocate import result
from jackfield.core.allocate.features import Features
from jackfield.core.allocate.gathering import Pools, Seen
from jackfield.core.allocate.outcome import NoFit, Reason
from jackfield.core.allocate.requests import Reader, UnreadableError, Wish
from jackfield.core.allocate.search import CHECKS_MAX, Outcome, Search
from jackfield.core.allocate.selectors import Selectors
from jackfield.core.allocate.state import Allocated
from jackfield.core.allocate.usage import Usage
from jackfield.model.claim import AllocationResult, ResourceClaim
from jackfield.model.node import Node
from jackfield.model.slice import DeviceClass, ResourceSlice


class Allocator:
    """Gives devices to claims, as kube-scheduler would.

    It stands for one moment: slices, classes, and what claims hold. It changes nothing but what it remembers of
    its own work. For the next moment derive one from it, which keeps whatever work is still good.
    """

    def __init__(
        self,
        slices: Iterable[ResourceSlice],
        classes: Mapping[str, DeviceClass],
        allocated: Allocated,
        features: Features = Features(),
        selectors: Selectors | None = None,
    ) -> None:
        """Look at nothing yet: slices are prepared when a node that sees them is asked about."""
        self.features = features
        self.selectors = selectors or Selectors()
        self.classes = classes
        self.pools = Pools(slices, features)
        self.usage = Usage(allocated, features)
        self._reader = Reader(classes, features, self.selectors)

    def derive(
        self,
        *,
        slices: Iterable[ResourceSlice] | None = None,
        classes: Mapping[str, DeviceClass] | None = None,
        allocated: Allocated | None = None,
    ) -> "Allocator":
        """Return an Allocator for a world of which only this has changed.

        Slices are told apart by identity: hand over the same objects where nothing changed.
        """
        derived = object.__new__(Allocator)
        derived.features = self.features
        derived.selectors = self.selectors
        derived.classes = self.classes if classes is None else classes
        derived.pools = self.pools if slices is None else Pools(slices, self.features, self.pools)
        derived.usage = self.usage if allocated is None else Usage(allocated, self.features)
        derived._reader = Reader(derived.classes, self.features, self.selectors)
        return derived

    def allocate(self, claims: Sequence[ResourceClaim], node: Node) -> tuple[AllocationResult, ...] | NoFit:
        """Return an allocation for each claim, or that this node does not fit.

        Raises AllocationError where no node could be judged; then the scheduling cycle is over.
        """
        return outcome(self.search(claims, node), self.wishes(claims), self.pools.seen(node), self.features)

    def search(self, claims: Sequence[ResourceClaim], node: Node) -> Search:
        """Return the search for these claims on the node, not begun."""
        seen = self.pools.seen(node)

        def begun(wishes: Sequence[Wish]) -> Search:
            return Search(wishes, seen, self.usage, self.features)

        return begun(read(claims, self._reader, begun))

    def wishes(self, claims: Sequence[ResourceClaim]) -> tuple[Wish, ...]:
        """Return the claims, read."""
        return tuple(self._reader.wish(claim) for claim in claims)


def read(
    claims: Iterable[ResourceClaim], reader: Reader, search: Callable[[Sequence[Wish]], Search]
) -> tuple[Wish, ...]:
    """Return the claims, read; raises the first error that upstream would meet, which may be in the searching."""
    wishes: list[Wish] = []
    for claim in claims:
        try:
            wishes.append(reader.wish(claim))
        except UnreadableError as error:
            search(wishes).check(error)
            raise
    return tuple(wishes)


def outcome(
    search: Search, wishes: Sequence[Wish], seen: Seen, features: Features, checks_max: int = CHECKS_MAX
) -> tuple[AllocationResult, ...] | NoFit:
    """Return what a search, not begun, finds for these claims on the node that sees this."""
    match search.run(checks_max):
        case Outcome.FOUND:
            return tuple(
                _allocation(search, number, wish, seen.node, features) for number, wish in enumerate(wishes)
            )
        case Outcome.NONE | Outcome.LIMIT:
            return NoFit(seen.reason)
        case Outcome.GIVEN_UP:
            return NoFit(Reason.SEARCH_LIMIT)
        case _ as never:
            assert_never(never)


def _allocation(search: Search, number: int, wish: Wish, node: Node, features: Features) -> AllocationResult:
    placed = [one for one in search.attempt.placed if one.claim == number]
    asks = [
        search.chosen.get((number, index), request.asks[0]) for index, request in enumerate(wish.requests)
    ]
    return result.allocation(wish.claim, asks, placed, node, features)
