"""What ordeals have in common: how many lives, troubles and violations; and what each hand-over cost.

Knows sums and medians. Must not know what happened in any one ordeal.
"""

from statistics import median
from typing import Final

import msgspec

from jackfield.model.policy import DRIVER
from jackfield.sim.torture.run import Verdict

BIND: Final = "bind"
RESCHEDULE: Final = "reschedule"


class HandOver(msgspec.Struct, frozen=True):
    """What one way of handing devices over has cost."""

    seeds: int
    pods: int
    """Pods with devices that ran."""
    attaches_per_pod: float
    waited_middle: float
    """Seconds from a pod's creation until it ran, in the middle."""
    waited_most: float
    stranded: int
    """Attaches that served nobody."""


class Figures:
    """Sums over ordeals, as they come in."""

    def __init__(self) -> None:
        self.seeds = 0
        self.lives = 0
        self.troubles = 0
        self.hours = 0.0
        self.failed: list[Verdict] = []
        self._waited: dict[str, list[float]] = {BIND: [], RESCHEDULE: []}
        self._attaches = dict.fromkeys(self._waited, 0)
        self._stranded = dict.fromkeys(self._waited, 0)
        self._seeds = dict.fromkeys(self._waited, 0)

    def add(self, verdict: Verdict) -> None:
        """Count an ordeal."""
        self.seeds += 1
        self.lives += verdict.pods
        self.troubles += verdict.troubles
        self.hours += verdict.seconds / 3600.0
        if verdict.violations:
            self.failed.append(verdict)
        if verdict.summary is not None:
            way = BIND if verdict.driver == DRIVER else RESCHEDULE
            self._seeds[way] += 1
            self._waited[way] += verdict.summary.waited.values()
            self._attaches[way] += verdict.summary.attaches
            self._stranded[way] += verdict.summary.wasted

    def of(self, way: str) -> HandOver | None:
        """Return what a way of handing over has cost; None if nobody went it."""
        waited = self._waited[way]
        if not waited:
            return None
        return HandOver(
            seeds=self._seeds[way],
            pods=len(waited),
            attaches_per_pod=round(self._attaches[way] / len(waited), 3),
            waited_middle=round(median(waited), 1),
            waited_most=round(max(waited), 1),
            stranded=self._stranded[way],
        )
