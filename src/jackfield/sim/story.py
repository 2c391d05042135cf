"""The story: one line for every step, whoever took it; of a whole run, or of one object's life.

Knows what lines are made of and how they are laid out. Must not know why a step was taken: the action says so.
"""

from collections.abc import Callable, Iterable

import msgspec

from jackfield.controllers.store import Store
from jackfield.core import explain
from jackfield.model.names import NodeName, Seconds
from jackfield.model.plan import (
    AnyAction,
    Finding,
    FreeRequest,
    KeepRequest,
    PutRequestStatus,
    Rescan,
    Waiting,
)

BOOKKEEPING = (PutRequestStatus, KeepRequest, FreeRequest, Rescan)
"""Steps that tell a reader nothing: what they show was told when it happened."""


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step: when, to what, in which phase of life, what, decided by whom, because of what."""

    at: float
    object: str
    phase: str
    action: str
    by: str
    because: str
    about: tuple[str, ...] = ()
    """Every object whose life this step is part of."""
    error: str = ""
    bookkeeping: bool = False


class Story:
    """Hears of every step and keeps it; a `controllers.runner.Recorder`."""

    def __init__(self, store: Callable[[], Store], listener: Callable[[Line], object]) -> None:
        self.lines: list[Line] = []
        self.waiting: dict[str, Waiting] = {}
        self._store = store  # where relations are looked up: the controllers' own, which a restart replaces
        self._start: Seconds | None = None
        self._listener = listener
        self._last: dict[str, tuple[str, str, str]] = {}

    def begin(self, start: Seconds) -> None:
        """Count time from here; what came before is not part of the story."""
        self._start = start

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Take a step of ours; one that repeats the last step on its object says nothing new."""
        if self._start is None:
            return
        what = " ".join(part for part in (type(action).__name__, explain.detail(action)) if part)
        line = Line(
            at=round(at - self._start, 3),
            object=explain.subject(action),
            phase=action.phase.value,
            action=what,
            by=by,
            because=action.because,
            about=self._about(action),
            error=error,
            bookkeeping=isinstance(action, BOOKKEEPING) or bool(error),
        )
        self._take(line)

    def happened(self, at: Seconds, line: Line) -> None:
        """Take a step of somebody else's: the scheduler's, a kubelet's, a user's."""
        if self._start is not None:
            self._take(msgspec.structs.replace(line, at=round(at - self._start, 3)))

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Remember what each object last waited for."""
        del at, by
        for one in waiting:
            self.waiting[one.object] = one

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Take what is not as the books say, or that it is over."""
        what = f"{'Over' if over else 'Found'} {finding.reason}"
        about = (finding.object,)
        self.happened(at, Line(0.0, finding.object, "", what, by, finding.what, about))

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Pass over how long it took: our own time does not pass in a story."""

    def _take(self, line: Line) -> None:
        said = (line.action, line.because, line.error)
        if self._last.get(line.object) == said:
            return
        if not line.bookkeeping:
            self._last[line.object] = said
        self.lines.append(line)
        self._listener(line)

    def _about(self, action: AnyAction) -> tuple[str, ...]:
        """Everything the step concerns: its object, and through its resource a device, a node, claims and pods."""
        store = self._store()
        about = {explain.subject(action): None}
        devices = dict.fromkeys(explain.devices(action))
        nodes: dict[NodeName, None] = {}
        claims = {action.claim: None} if action.claim.name else {}
        name = getattr(action, "resource", "")
        resource = store.resource(name) if isinstance(name, str) else None
        if resource is not None:
            nodes[resource.node] = None
            if resource.device is not None:
                devices[resource.device] = None
        if len(devices) == 1:
            for device in devices:
                claims |= {claim.key: None for claim in store.claims_holding(device)}
        about |= {f"device/{device}": None for device in devices}
        about |= {f"node/{node}": None for node in nodes}
        about |= {f"claim/{claim}": None for claim in claims}
        pods = (pod.key for claim in claims for pod in store.pods_using(claim))
        return tuple({**about, **{f"pod/{pod}": None for pod in pods}})


def of(lines: Iterable[Line], name: str) -> tuple[Line, ...]:
    """Return one object's life."""
    return tuple(line for line in lines if name in line.about and not line.bookkeeping)


def names(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return all objects that a story is about."""
    return tuple(dict.fromkeys(name for line in lines for name in line.about))


def rendered(line: Line, width_object: int = 36) -> str:
    """Return the line in fixed columns: time, object, phase, action, decided by, because."""
    because = f"{line.because} [{line.error}]" if line.error else line.because
    return (
        f"{line.at:9.1f}  {_fit(line.object, width_object)}  {line.phase:<9}  {_fit(line.action, 34)}  "
        f"{line.by:<15}  {because}"
    ).rstrip()


HEADER = f"{'seconds':>9}  {'object':<36}  {'phase':<9}  {'action':<34}  {'decided by':<15}  because"


def _fit(text: str, width: int) -> str:
    return (
        f"{text:<{width}}"
        if len(text) <= width
        else f"{text[: width // 2 - 1]}…{text[-(width - width // 2) :]}"
    )
