"""The scheduler's queue: pods to try now, pods to try a little later, and pods that wait for something to change.

Knows order, backoff and who waits for whose events, as kube-scheduler 1.36 does it: the active queue is ordered by
priority, then age; a pod without a node waits until an event that one of the plugins that refused it cares about, or
five minutes; after each refusal it backs off for 1 s, 2 s, ... 10 s, but is taken out of its backoff early when there
is nothing else to do; a pod whose attempt ended in an error is not. Must not know what a pod is, nor what an attempt
is. Time comes in as `now`.

Of pods that are alike, an event wakes the first alone, and the next follows when that one did not find the door still
closed. The outcome is the same as if all were tried, without a thousand attempts for every device that becomes free.
"""

import heapq
import itertools
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.cluster.scheduling.filters import Plugin
from jackfield.model.names import NEVER, Key, Seconds, Time, Uid

BACKOFF_FIRST: Final = Seconds(1.0)
BACKOFF_MAX: Final = Seconds(10.0)
UNSCHEDULABLE_MAX: Final = Seconds(300.0)
"""After this a pod is tried again though nothing has happened."""
_DOUBLINGS_MAX: Final = 16

_Item = tuple[int, Time, int]
_Timed = tuple[Seconds, _Item, int, "Entry"]


class Place(StrEnum):
    """Where an entry is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    IN_FLIGHT = "in flight"
    """Popped: in its cycle, or waiting to be bound."""
    GONE = "gone"


class Entry:
    """A pod in the queue."""

    __slots__ = (
        "errors",
        "key",
        "leads",
        "likeness",
        "order",
        "place",
        "plugins",
        "refusals",
        "since",
        "ticket",
        "uid",
    )

    def __init__(self, key: Key, uid: Uid, order: _Item) -> None:
        self.key = key
        self.uid = uid
        self.order = order
        self.place = Place.GONE
        self.refusals = 0
        """How often no node was found."""
        self.errors = 0
        """How many errors in a row ended the attempt."""
        self.plugins: frozenset[Plugin] = frozenset()
        """Who refused it last."""
        self.likeness = b""
        """What it was refused as; pods of the same likeness are refused alike."""
        self.leads = b""
        """The likeness of those who wait for how it fares."""
        self.since = Seconds(0.0)
        self.ticket = 0
        """Tells the entry's place in a heap from the places it had before."""

    def backoff_until(self) -> Seconds:
        """Return when it may be tried again after what happened last."""
        count = self.errors or self.refusals
        if not count:
            return self.since
        duration = BACKOFF_FIRST * 2 ** min(count - 1, _DOUBLINGS_MAX)
        return Seconds(self.since + min(duration, BACKOFF_MAX))


class _Crowd:
    """Pods that are alike and wait for the same: the first of them goes ahead."""

    def __init__(self) -> None:
        self.plugins: frozenset[Plugin] = frozenset()
        self._heap: list[tuple[_Item, int, Entry]] = []

    def join(self, entry: Entry) -> None:
        self.plugins |= entry.plugins
        heapq.heappush(self._heap, (entry.order, entry.ticket, entry))

    def first(self) -> Entry | None:
        while self._heap and self._heap[0][1] != self._heap[0][-1].ticket:
            heapq.heappop(self._heap)
        return self._heap[0][-1] if self._heap else None


class Lengths(msgspec.Struct, frozen=True):
    """How many pods are where."""

    active: int
    backoff: int
    unschedulable: int


class SchedulingQueue:
    """Which pod is next."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._active: list[tuple[_Item, int, Entry]] = []
        self._backoff: list[_Timed] = []
        self._error_backoff: list[_Timed] = []
        self._stale: list[_Timed] = []
        self._unschedulable: dict[Key, Entry] = {}
        self._loners: dict[Key, Entry] = {}
        """Those of the unschedulable that an event wakes, each like no other."""
        self._crowds: dict[bytes, _Crowd] = {}
        """Likewise, those that are alike."""
        self._tickets = itertools.count(1)
        self._births = itertools.count(1)

    def entry(self, key: Key) -> Entry | None:
        """Return the pod's entry, or None."""
        return self._entries.get(key)

    def lengths(self) -> Lengths:
        """Return how many pods are where."""
        places = [one.place for one in self._entries.values()]
        return Lengths(
            places.count(Place.ACTIVE), places.count(Place.BACKOFF), places.count(Place.UNSCHEDULABLE)
        )

    # --- in and out

    def enter(self, key: Key, uid: Uid, *, priority: int, created: Time) -> Entry:
        """Return a new entry for the pod; it is nowhere yet."""
        self.remove(key)
        entry = Entry(key, uid, (-priority, created, next(self._births)))
        self._entries[key] = entry
        return entry

    def activate(self, entry: Entry) -> None:
        """Let the pod be tried now."""
        self._move(entry, Place.ACTIVE)
        heapq.heappush(self._active, (entry.order, entry.ticket, entry))

    def park(self, entry: Entry, plugin: Plugin, now: Seconds) -> None:
        """Let the pod wait for its very own event of this plugin, without counting that as an attempt."""
        self._hand_on(entry)
        self._shelve(entry, frozenset({plugin}), now)

    def refuse(self, entry: Entry, plugins: frozenset[Plugin], now: Seconds, likeness: bytes = b"") -> None:
        """Put back a pod for which these plugins found no node."""
        if entry.place is not Place.IN_FLIGHT:
            return
        entry.refusals += 1
        entry.errors = 0
        if entry.leads != likeness:
            self._hand_on(entry)
        entry.leads = b""
        entry.likeness = likeness
        self._shelve(entry, plugins, now)
        if likeness:
            self._crowds.setdefault(likeness, _Crowd()).join(entry)
        else:
            self._loners[entry.key] = entry

    def placed(self, entry: Entry) -> None:
        """Note that the pod has found a node; it stays in flight until it is removed or fails."""
        self._hand_on(entry)

    def _shelve(self, entry: Entry, plugins: frozenset[Plugin], now: Seconds) -> None:
        entry.plugins = plugins
        entry.since = now
        self._move(entry, Place.UNSCHEDULABLE)
        self._unschedulable[entry.key] = entry
        heapq.heappush(self._stale, (Seconds(now + UNSCHEDULABLE_MAX), entry.order, entry.ticket, entry))

    def fail(self, entry: Entry, now: Seconds) -> None:
        """Put back a pod whose attempt ended in an error, perhaps after it was refused: it waits out its backoff."""
        if entry.place not in {Place.IN_FLIGHT, Place.UNSCHEDULABLE}:
            return
        self._hand_on(entry)
        entry.errors += 1
        entry.since = now
        self._back_off(entry)

    def remove(self, key: Key) -> None:
        """Forget the pod, wherever it is."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._hand_on(entry)
            self._move(entry, Place.GONE)

    def pop(self, now: Seconds) -> Entry | None:
        """Return the next pod to try, which is then in flight; None if none may be tried now."""
        self._flush(now)
        # An error's backoff is there to spare the API server: it is kept even by an idle scheduler.
        entry = self._active[0][-1] if self._active else self._backoff[0][-1] if self._backoff else None
        if entry is not None:
            self._move(entry, Place.IN_FLIGHT)
        return entry

    def due(self) -> Seconds:
        """Return when `pop` may have an answer though nothing happens; NEVER if it will not."""
        self._tidy()
        if self._active or self._backoff:
            return Seconds(0.0)
        ends = [heap[0][0] for heap in (self._error_backoff, self._stale) if heap]
        return min(ends, default=NEVER)

    # --- events

    def wake(self, plugins: frozenset[Plugin], now: Seconds) -> bool:
        """Let pods be tried again that one of these plugins refused; return whether there were any."""
        found = [one for one in self._loners.values() if one.plugins & plugins]
        for likeness in [one for one, crowd in self._crowds.items() if crowd.plugins & plugins]:
            first = self._first_of(likeness)
            if first is not None:
                first.leads = likeness
                found.append(first)
        for entry in found:
            self._wake(entry, now)
        return bool(found)

    def wake_each(self, keys: Iterable[Key], plugin: Plugin, now: Seconds) -> bool:
        """Let these pods be tried again if the plugin refused them; return whether there were any."""
        entries = [self._unschedulable.get(key) for key in keys]
        found = [one for one in entries if one is not None and plugin in one.plugins]
        for entry in found:
            self._wake(entry, now)
        return bool(found)

    def _wake(self, entry: Entry, now: Seconds) -> None:
        if entry.backoff_until() > now:
            self._back_off(entry)
        else:
            self.activate(entry)

    def _first_of(self, likeness: bytes) -> Entry | None:
        crowd = self._crowds.get(likeness)
        first = crowd.first() if crowd is not None else None
        if first is None:
            self._crowds.pop(likeness, None)
        return first

    def _hand_on(self, entry: Entry) -> None:
        """Let the next one try of those who waited for how this one fares."""
        likeness, entry.leads = entry.leads, b""
        following = self._first_of(likeness) if likeness else None
        if following is not None:
            following.leads = likeness
            self._back_off(following)

    def _back_off(self, entry: Entry) -> None:
        self._move(entry, Place.BACKOFF)
        heap = self._error_backoff if entry.errors else self._backoff
        heapq.heappush(heap, (entry.backoff_until(), entry.order, entry.ticket, entry))

    # --- the heaps: an entry that has moved on leaves its old place behind, to be passed over

    def _move(self, entry: Entry, place: Place) -> None:
        if entry.place is Place.UNSCHEDULABLE:
            del self._unschedulable[entry.key]
            self._loners.pop(entry.key, None)
        entry.place = place
        entry.ticket = next(self._tickets)

    def _flush(self, now: Seconds) -> None:
        self._tidy()
        for heap in (self._backoff, self._error_backoff):
            while heap and heap[0][0] <= now:
                self.activate(heap[0][-1])
                self._tidy()
        while self._stale and self._stale[0][0] <= now:
            self._wake(self._stale[0][-1], now)
            self._tidy()

    def _tidy(self) -> None:
        while self._active and self._active[0][1] != self._active[0][-1].ticket:
            heapq.heappop(self._active)
        for heap in (self._backoff, self._error_backoff, self._stale):
            while heap and heap[0][2] != heap[0][-1].ticket:
                heapq.heappop(heap)
