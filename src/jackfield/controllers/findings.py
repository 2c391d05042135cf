"""What is not as the books say: told when it begins, told when it is over, summed up by fabric.

Decisions say what they find every time they look. Knows what was found before, so that the same is told once, and
that what comes and goes all the time is not news. Must not know what a finding means: the decision said so.
"""

from collections.abc import Callable, Hashable
from typing import Final, Protocol

from jackfield.controllers.dirty import Dirty
from jackfield.controllers.store import Store
from jackfield.core import drift
from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, Seconds, named
from jackfield.model.node import Node
from jackfield.model.plan import Finding
from jackfield.ports import Clock

OVER: Final = "DriftOver"
"""The reason of the Event that tells that a finding is over."""
SUM: Final = "Drift"
"""The reason of the line that sums a fabric up."""
SUM_SECONDS: Final = Seconds(5.0)
"""So long after a change a fabric is summed up, with all that changed meanwhile."""
AGAIN_SECONDS: Final = Seconds(600.0)
"""What comes back within this time has not been away: it is logged, and no Event tells of it."""
NOT_YET: Final = Seconds(float("-inf"))
REMEMBERED_MAX: Final = 10_000
"""How many findings that are over are remembered."""
_KINDS: Final[dict[str, type[Object]]] = {"node": Node, "resource": ComposableResource}

Place = tuple[str, Hashable]


class Heard(Protocol):
    """Hears of a finding, or that it is over."""

    def __call__(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Hear."""


class Findings:
    """Remembers what each decision last found."""

    def __init__(
        self, store: Store, clock: Clock, tell: Callable[[Object, Event], None], heard: Heard
    ) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._heard = heard
        self.clear()

    def clear(self) -> None:
        """Know nothing, as if just started."""
        self._known: dict[Place, tuple[Finding, ...]] = {}
        self._told: dict[tuple[Finding, bool], Seconds] = {}
        self._counts: dict[FabricName, dict[str, int]] = {}
        self._summed: dict[FabricName, str] = {}
        self._due = Dirty(self._clock)

    def take(self, by: str, key: Hashable, found: tuple[Finding, ...]) -> None:
        """Take all that a decision finds about its key now; what it found before and not now is over."""
        place = (by, key)
        before = self._known.get(place, ())
        if found == before:
            return
        if found:
            self._known[place] = found
        else:
            del self._known[place]
        changed = {(one.object, one.reason) for one in found}
        for one in before:
            self._count(one, -one.count)
            if (one.object, one.reason) not in changed:
                self._say(by, one, over=True)
        for one in found:
            self._count(one, one.count)
            if one not in before:
                self._say(by, one, over=False)

    def counts(self, fabric: FabricName) -> dict[str, int]:
        """Return how many devices of a fabric differ, by reason."""
        return {reason: count for reason, count in self._counts.get(fabric, {}).items() if count}

    async def run(self) -> None:
        """Sum fabrics up whenever they have changed, until cancelled."""
        while True:
            fabric = await self._due.get()
            self._sum_up(FabricName(str(fabric)))
            self._due.done(fabric)

    def _sum_up(self, fabric: FabricName) -> None:
        words = drift.summary(self.counts(fabric))
        if words == self._summed.get(fabric, ""):
            return
        self._summed[fabric] = words
        summed = Finding(f"fabric/{fabric}", SUM, words or "books and fabric agree again", fabric)
        self._heard(self._clock.now(), "drift", summed, over=not words)

    def _count(self, finding: Finding, by: int) -> None:
        counts = self._counts.setdefault(finding.fabric, {})
        counts[finding.reason] = counts.get(finding.reason, 0) + by
        self._due.later(finding.fabric, Seconds(self._clock.now() + SUM_SECONDS))

    def _say(self, by: str, finding: Finding, *, over: bool) -> None:
        now = self._clock.now()
        self._heard(now, by, finding, over=over)
        about = self._about(finding)
        if about is None or not finding.told or self._store.policy.observe_only:
            return
        if over and (finding, False) not in self._told:
            return  # nobody was told that it began
        told_at = self._told.pop((finding, over), NOT_YET)
        news = now >= told_at + AGAIN_SECONDS
        self._told[finding, over] = now if news else told_at
        while len(self._told) > REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        if news:
            self._tell(about, _event(finding, over=over))

    def _about(self, finding: Finding) -> Object | None:
        """Return the object that it is told on; a fabric is none."""
        kind, _, name = finding.object.partition("/")
        return self._store.known(_KINDS[kind], named(name)) if kind in _KINDS else None


def _event(finding: Finding, *, over: bool) -> Event:
    if over:
        return Event(reason=OVER, message=f"over: {finding.what}")
    return Event(type="Warning" if finding.grave else "Normal", reason=finding.reason, message=finding.what)
