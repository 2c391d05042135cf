"""Several who hear the same.

Knows that one recorder may be many. Must not know what any of them makes of it.
"""

from jackfield.controllers.runner import Recorder
from jackfield.model.names import Seconds
from jackfield.model.plan import AnyAction, Finding, Waiting


class Recorders:
    """A `controllers.runner.Recorder` that hands everything on, in the order in which the others came."""

    def __init__(self, *recorders: Recorder) -> None:
        self._recorders = list(recorders)

    def add(self, recorder: Recorder) -> None:
        """Have one more hear of everything from now on."""
        self._recorders.append(recorder)

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Hand on an action."""
        for one in self._recorders:
            one.did(at, by, action, error)

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Hand on what is waited for."""
        for one in self._recorders:
            one.waits(at, by, waiting)

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Hand on what was found."""
        for one in self._recorders:
            one.found(at, by, finding, over=over)

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Hand on how long it took."""
        for one in self._recorders:
            one.hop(action, after)
