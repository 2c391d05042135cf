"""Why a node does not fit: what became of every device for each request, and which came nearest.

Knows where a search ended. Must not know rules of its own: it asks those of the search again.
"""

from collections.abc import Sequence

from jackfield.core.allocate.account import Scene, Turn
from jackfield.core.allocate.allocator import Allocator, outcome
from jackfield.core.allocate.attempt import Placement
from jackfield.core.allocate.outcome import AllocationError, NoFit
from jackfield.core.allocate.reasons import FITS, Why
from jackfield.core.allocate.requests import Ask, Wish
from jackfield.core.allocate.search import Search
from jackfield.core.allocate.trial import NOBODY, Holders
from jackfield.model.claim import ResourceClaim
from jackfield.model.node import Node


def why(allocator: Allocator, claims: Sequence[ResourceClaim], node: Node, known: Holders = NOBODY) -> Why:
    """Return what became of all devices for each request, and which came nearest.

    It searches again and looks at every device: ask when somebody reads it, not for every node that did not fit. The
    answer is bounded, however many devices there are. Claims that hold devices are named as far as they are `known`.
    """
    try:
        search = allocator.search(claims, node)
        wishes = allocator.wishes(claims)
    except AllocationError as error:
        return Why(node.name, str(error), aborts=True, requests=())
    verdict, aborts = FITS, False
    try:
        found = outcome(search, wishes, allocator.pools.seen(node), allocator.features)
        verdict = str(found.reason) if isinstance(found, NoFit) else FITS
    except AllocationError as error:
        verdict, aborts = str(error), True
    reached = search.attempt.placed if aborts else search.furthest
    place = None if verdict == FITS else _culprit(search, wishes, verdict) or stuck(search, wishes, reached)
    scene = Scene(allocator, search, wishes, reached, known)
    requests = [
        scene.account(Turn(number, index, ask, stuck=(number, index) == place, aborted=aborts))
        for number, wish in enumerate(wishes)
        for index, request in enumerate(wish.requests)
        for ask in request.asks
    ]
    return Why(node.name, verdict, aborts, tuple(requests))


def _culprit(search: Search, wishes: Sequence[Wish], verdict: str) -> tuple[int, int] | None:
    """Return the request that keeps the search from being begun."""
    for number, wish in enumerate(wishes):
        for index, request in enumerate(wish.requests):
            for ask in request.asks:
                try:
                    search.count(ask)
                except AllocationError as error:
                    if str(error) == verdict:
                        return number, index
    return None


def stuck(search: Search, wishes: Sequence[Wish], reached: Sequence[Placement]) -> tuple[int, int] | None:
    """Return the first request that was left without all its devices."""
    for number, wish in enumerate(wishes):
        for index, request in enumerate(wish.requests):
            if not any(_served(search, reached, ask) for ask in request.asks):
                return number, index
    return None


def _served(search: Search, reached: Sequence[Placement], ask: Ask) -> bool:
    had = sum(one.ask is ask for one in reached)
    # What `All` means may not be countable; then there was no search, and nothing was had.
    return had >= (search.count(ask) if had or not ask.all_devices else 1)
