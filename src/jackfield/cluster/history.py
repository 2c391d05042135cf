"""What was stored when: versions of objects, and the events between them.

Knows how far back it remembers. Must not know why anything was written.
"""

from collections import deque
from enum import StrEnum
from itertools import takewhile

import msgspec

from jackfield.cluster import errors, selectors
from jackfield.cluster.ownership.managers import Managers, managed_fields
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.model.meta import Object
from jackfield.model.names import Key

EVENTS_MAX = 1_000
"""Events remembered of one kind; a watch from before them starts over."""
BYTES_MAX = 64 * 1024 * 1024
"""JSON of all objects in them, where strangers may write."""


class Stored(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One version of an object. Everybody who reads it shares it, so nobody may change `raw`."""

    kind: Kind
    version: int
    raw: Raw
    object: Object
    """The same, typed; decoded once."""
    managers: Managers = ()
    gone: bool = False
    """Whether this is how an object was last; or would have been, had its deletion not been a dry run."""

    @property
    def key(self) -> Key:
        """Which object it is a version of."""
        return self.object.key

    def wire(self) -> Raw:
        """Return the object with its managed fields, as a client sees it."""
        if not self.managers:
            return self.raw
        entries = managed_fields(self.managers)
        return {**self.raw, "metadata": {**self.raw["metadata"], "managedFields": entries}}


class EventType(StrEnum):
    """What a watch tells."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


class Event(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A step from one version of an object to the next."""

    type: EventType
    version: int
    stored: Stored
    """The object now; for a deletion, how it was last, with the version of its going."""
    before: Stored | None = None
    by: str = ""
    """Who wrote it, where that is known: nobody is told so by a watch."""

    def seen_by(self, selector: selectors.Selector) -> EventType | None:
        """Return what a watcher with this selector is told; None for nothing.

        An object that begins or ceases to match comes or goes, as far as that watcher can see.
        """
        now = self.type is not EventType.DELETED and selector.matches(self.stored.raw)
        then = self.before is not None and selector.matches(self.before.raw)
        if now:
            return EventType.MODIFIED if then else EventType.ADDED
        return EventType.DELETED if then else None


class History:
    """The latest events of one kind."""

    def __init__(self, events_max: int = EVENTS_MAX, bytes_max: int = 0) -> None:
        """Begin with nothing; without `bytes_max`, objects are not weighed."""
        self._events: deque[Event] = deque()
        self._sizes: deque[int] = deque()
        self._events_max, self._bytes_max = events_max, bytes_max
        self._bytes = 0
        self._forgotten = 0

    def anew(self) -> "History":
        """Return one that remembers nothing, and as much as this one can."""
        return History(self._events_max, self._bytes_max)

    def add(self, event: Event) -> None:
        """Remember an event; the oldest are forgotten if there are too many, or if they are too large."""
        self._events.append(event)
        self._sizes.append(len(msgspec.json.encode(event.stored.raw)) if self._bytes_max else 0)
        self._bytes += self._sizes[-1]
        while len(self._events) > self._events_max or self._bytes > self._bytes_max > 0:
            self._forgotten = self._events.popleft().version
            self._bytes -= self._sizes.popleft()

    def since(self, version: int) -> tuple[Event, ...]:
        """Return the events after a version; costs what it returns. Raises Expired if some are forgotten."""
        if version < self._forgotten:
            raise errors.expired(version, self._forgotten)
        newest_first = takewhile(lambda event: event.version > version, reversed(self._events))
        return tuple(reversed(tuple(newest_first)))
