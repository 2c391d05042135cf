"""What the runner tells of, as figures.

Knows which figure each thing that is heard of raises. Must not know why it was done. Whatever is heard is one of a few:
names of objects do not become labels.
"""

from collections import Counter
from typing import Final

from jackfield.controllers import findings
from jackfield.controllers.runner import OBSERVED, REWOUND
from jackfield.controllers.store import Store
from jackfield.core import naming
from jackfield.metrics import catalogue
from jackfield.metrics.catalogue import Counts
from jackfield.model.names import FabricName, Seconds
from jackfield.model.plan import AnyAction, Finding, SetCondition, Waiting

DECIDES: Final = ".decide"
ERRORS: Final = frozenset({"Retry", "Conflict", "Gone", "Refused", "Bug"})
DONE, WATCHED, OTHER = "done", "observed", "retry"


class Figures:
    """Counts what it hears; a `controllers.runner.Recorder`."""

    def __init__(self, counts: Counts, store: Store) -> None:
        self._counts = counts
        self._store = store
        self._findings: dict[tuple[str, str], Finding] = {}
        self.reloaded = True
        """Whether the policy in force is the one in the file."""

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Count an action by what came of it."""
        del at
        name = type(action).__name__
        self._counts.count(catalogue.ACTIONS, by.removesuffix(DECIDES), name, result(error))
        if isinstance(action, SetCondition) and not error:
            fabric = naming.fabric_of(action.devices[0], self._store.policy)
            self._counts.count(catalogue.CONDITIONS, fabric or "", action.type)

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Count a decision, and how often time went back."""
        del at
        if by.endswith(DECIDES):
            self._counts.count(catalogue.DECISIONS, by.removesuffix(DECIDES))
        elif any(one.reason == REWOUND for one in waiting):
            self._counts.count(catalogue.REWINDS)
            self._findings.clear()

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Remember what differs now; what sums it up adds nothing."""
        del at, by
        if finding.reason == findings.SUM:
            return
        if over:
            self._findings.pop((finding.object, finding.reason), None)
        else:
            self._findings[finding.object, finding.reason] = finding

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Take note of our own time."""
        self._counts.time(catalogue.HOP, after, type(action).__name__)

    def policy_reloaded(self, ok: bool, words: str) -> None:  # noqa: FBT001 - the hook of whoever reads it
        """Hear that the policy's file has changed, and whether it could be used."""
        del words
        self._counts.count(catalogue.RELOADS if ok else catalogue.RELOAD_FAILURES)
        self.reloaded = ok

    def drift(self) -> dict[tuple[FabricName, str], int]:
        """Return how many devices differ, by fabric and reason."""
        counted: Counter[tuple[FabricName, str]] = Counter()
        for one in self._findings.values():
            counted[one.fabric, one.reason] += one.count
        return dict(counted)


def result(error: str) -> str:
    """Return what came of an action, in a word; `error` begins with the error's kind."""
    if not error:
        return DONE
    if error == OBSERVED:
        return WATCHED
    kind = error.partition(":")[0]
    return kind.lower() if kind in ERRORS else OTHER
