"""An ordeal that went wrong → the shortest one that still does, in the same way.

Knows how to leave steps out, and that a pod goes with the claim that it names. Must not know what else any step means,
nor why it matters.
"""

from typing import Final

import msgspec

from jackfield.sim.scenario import CreateClaim, CreatePod
from jackfield.sim.torture.draw import Ordeal
from jackfield.sim.torture.run import Lived, Verdict, suffer

TRIES_MAX: Final = 200
"""How often an ordeal is lived through again to make it shorter."""


class Shortest(msgspec.Struct, frozen=True):
    """What is left of an ordeal."""

    ordeal: Ordeal
    kept: tuple[int, ...]
    """Which of its steps, counted from 1."""
    verdict: Verdict
    tries: int


def checker(verdict: Verdict) -> str:
    """Return the name of what was broken first; nothing if nothing was."""
    words = verdict.violations[0].split() if verdict.violations else []
    return next((word for word in words if not word.replace(".", "").isdigit()), "")


def shortest(ordeal: Ordeal, verdict: Verdict, tries_max: int = TRIES_MAX, live: Lived = suffer) -> Shortest:
    """Return the ordeal without what is not needed for the same thing to be broken."""
    search = _Search(ordeal, verdict, tries_max, live)
    search.cut_the_end()
    search.leave_out()
    return Shortest(only(ordeal, search.kept), search.kept, search.verdict, search.tries)


def only(ordeal: Ordeal, kept: tuple[int, ...]) -> Ordeal:
    """Return an ordeal of some of the steps of another."""
    steps = tuple(ordeal.steps[number - 1] for number in kept if 0 < number <= len(ordeal.steps))
    return msgspec.structs.replace(ordeal, steps=steps)


def _bereft(ordeal: Ordeal, kept: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps of pods that name a claim which nobody makes any more: they could never run."""
    named = [(number, ordeal.steps[number - 1]) for number in kept]
    claims = {step.name for _, step in named if isinstance(step, CreateClaim)}
    return tuple(
        number
        for number, step in named
        if isinstance(step, CreatePod) and step.claim and step.claim not in claims
    )


class _Search:
    def __init__(self, ordeal: Ordeal, verdict: Verdict, tries_max: int, live: Lived) -> None:
        self.kept = tuple(range(1, len(ordeal.steps) + 1))
        self.verdict = verdict
        self.tries = 0
        self._ordeal = ordeal
        self._tries_max = tries_max
        self._live = live
        self._wanted = checker(verdict)

    def cut_the_end(self) -> None:
        """Leave out all steps after the first so many that do it, as few as bisecting finds."""
        # What came after the violation had no part in it: most of the way is made by this.
        before = sum(self._ordeal.steps[number - 1].at <= self.verdict.seconds for number in self.kept)
        self._try(self.kept[:before])
        enough, few = len(self.kept), 0
        while enough - few > 1:
            middle = (enough + few) // 2
            if self._try(self.kept[:middle]):
                enough = len(self.kept)
            else:
                few = middle

    def leave_out(self) -> None:
        """Leave out parts from the end on, large ones first."""
        size = max(1, len(self.kept) // 2)
        while size:
            place = len(self.kept)
            while place > 0 and self.tries < self._tries_max:
                begin = max(0, place - size)
                self._try(self.kept[:begin] + self.kept[place:])
                place = begin
            size //= 2

    def _try(self, kept: tuple[int, ...]) -> bool:
        bereft = _bereft(self._ordeal, kept)
        kept = tuple(number for number in kept if number not in bereft)
        if self.tries >= self._tries_max or kept == self.kept:
            return False
        self.tries += 1
        verdict = self._live(only(self._ordeal, kept))
        if checker(verdict) != self._wanted:
            return False
        self.kept, self.verdict = kept, verdict
        return True
