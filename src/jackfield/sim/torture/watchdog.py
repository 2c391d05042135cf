"""Barks when a controller decides for ever, or does the same to an object again and again.

Knows how often is too often. Must not know what is decided.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from jackfield.core import explain
from jackfield.model.names import LONG_AGO, Seconds
from jackfield.model.plan import AnyAction, Attach, Detach, Finding, Rescan, Waiting
from jackfield.sim.loop import SpinningError

DECISIONS_MAX = 20_000
"""So many decisions at one moment are no longer work."""


WINDOW: Final = Seconds(5.0)
ACTIONS_MAX: Final = 40
"""So often within the window nobody does the same to one object with success, but in a quarrel with somebody else."""
ASKING: Final = (Attach, Detach, Rescan)
"""What is done again until it is done."""


class Watchdog:
    """A `controllers.runner.Recorder` that counts by the time that really passes: a clock may be wrong."""

    def __init__(self, now: Callable[[], Seconds]) -> None:
        self._now = now
        self._at = LONG_AGO
        self._decisions = 0
        self._window = LONG_AGO
        self._done: Counter[tuple[str, str]] = Counter()

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Count a decision. Raises SpinningError."""
        del at
        now = self._now()
        if now != self._at:
            self._at, self._decisions = now, 0
        self._decisions += 1
        if self._decisions > DECISIONS_MAX:
            what = f", waiting for {waiting[0].what} ({waiting[0].object})" if waiting else ""
            raise SpinningError(f"{by} decides for ever{what}")

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Count what is done. Raises SpinningError."""
        del at
        if error or isinstance(action, ASKING):
            return
        now = self._now()
        if now >= self._window + WINDOW:
            self._window = now
            self._done.clear()
        name = explain.subject(action)
        self._done[type(action).__name__, name] += 1
        if self._done[type(action).__name__, name] > ACTIONS_MAX:
            what = f"{type(action).__name__} on {name} {ACTIONS_MAX} times within {WINDOW:.0f} s"
            raise SpinningError(f"{by} does {what}: {action.because}")

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Pass over what is found."""

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Pass over how long it took."""
