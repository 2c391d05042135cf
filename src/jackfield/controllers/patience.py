"""What is waited for long enough to be worth an Event on the object that waits.

Knows how long is long. Must not know why anything waits: the decision said so.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from jackfield.controllers.store import Store
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.event import Event
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, Seconds
from jackfield.model.plan import Waiting

PATIENCE_SECONDS: Final = Seconds(5.0)
"""What is over sooner needs no explanation."""
REMEMBERED_MAX: Final = 10_000
"""How many waits are remembered; a forgotten one may be told twice."""
_KINDS: Final[dict[str, type[Object]]] = {
    "claim": ResourceClaim,
    "request": ComposabilityRequest,
    "resource": ComposableResource,
}
"""What users make or look at; for anything else there is the log, and no reason to look again."""


class _Wait(msgspec.Struct, frozen=True):
    words: str
    since: Seconds
    told: bool = False


class Patience:
    """Remembers since when what is waited for, and tells it once."""

    def __init__(self, store: Store, tell: Callable[[Object, Event], None]) -> None:
        self._store = store
        self._tell = tell
        self._waits: dict[str, _Wait] = {}

    def take(self, waiting: tuple[Waiting, ...], now: Seconds) -> Seconds:
        """Hear what is waited for; return when to look again so that it can be told."""
        return min((self._one(each, now) for each in waiting), default=NEVER)

    def _one(self, waiting: Waiting, now: Seconds) -> Seconds:
        about = self._about(waiting)
        if about is None:
            return NEVER  # nobody to tell it to
        words = f"{waiting.reason}: {waiting.what}"
        known = self._waits.pop(waiting.object, None)
        if known is None or known.words != words:
            known = _Wait(words, now)
        due = Seconds(known.since + PATIENCE_SECONDS)
        if not known.told and now >= due:
            self._tell(about, Event(reason=waiting.reason, message=f"waiting for {waiting.what}"))
            known = msgspec.structs.replace(known, told=True)
        self._waits[waiting.object] = known
        if len(self._waits) > REMEMBERED_MAX:
            del self._waits[next(iter(self._waits))]
        return NEVER if known.told else due

    def _about(self, waiting: Waiting) -> Object | None:
        kind, _, name = waiting.object.partition("/")
        namespace, _, last = name.rpartition("/")
        return self._store.known(_KINDS[kind], Key(namespace, last)) if kind in _KINDS else None
