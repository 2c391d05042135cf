"""Watches: what happened to a kind since a version, and what happens from now on, line by line.

Knows versions, bookmarks, and how far a watcher may be behind. Must not know sockets: whoever writes the lines asks
for them. An object is encoded once for all who watch it whole.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from jackfield.cluster import errors, selectors
from jackfield.cluster.face import status
from jackfield.cluster.face.limits import PIECE_BYTES
from jackfield.cluster.face.negotiation import Form
from jackfield.cluster.face.options import Listing
from jackfield.cluster.face.rendering import View
from jackfield.cluster.history import Event, EventType, Stored
from jackfield.cluster.store import Store
from jackfield.codec import Raw
from jackfield.codec.kinds import Kind
from jackfield.model.names import Seconds

NEWS_MAX: Final = 20_000
"""Events a watcher may be behind; one that is further behind is cut off, and comes back for what it missed."""
LINES_MAX: Final = 500
"""Lines that are written at once."""
PAUSE_SECONDS: Final = 0.0006
"""How long others are served between two wakings, for each that is woken: news of many writes is told at once."""
BOOKMARK_SECONDS: Final = Seconds(60.0)
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_encode = msgspec.json.Encoder().encode


class News:
    """An event and its object's bytes, made when first asked for."""

    __slots__ = ("_whole", "event")

    def __init__(self, event: Event) -> None:
        self.event = event
        self._whole = b""

    def whole(self) -> bytes:
        """Return the object as JSON."""
        if not self._whole:
            self._whole = _encode(self.event.stored.wire())
        return self._whole


class Watch:
    """One client's watch."""

    def __init__(self, view: View, asked: Listing, selector: selectors.Selector) -> None:
        self.view = view
        self.asked = asked
        self.behind = False
        """Whether it was too slow, and misses something."""
        self._selector = selector
        self._namespace = asked.namespace
        self._news: deque[News] = deque()
        self._woken: asyncio.Future[None] | None = None
        self._columns_told = False

    # --- from the store's side

    def tell(self, news: News) -> None:
        """Hear of an event; whoever waits for it is still to be woken."""
        if len(self._news) >= NEWS_MAX:
            self.behind = True
            self._news.clear()
        if not self.behind:
            self._news.append(news)

    def wake(self) -> None:
        """Have whoever waits look up."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    # --- from the client's side

    async def wait(self, seconds: Seconds) -> None:
        """Wait for news, but not longer than that."""
        if self._news or self.behind:
            return
        loop = asyncio.get_running_loop()
        self._woken = loop.create_future()
        timer = loop.call_later(seconds, self.wake)
        try:
            await self._woken
        finally:
            timer.cancel()

    def lines(self, now: Seconds) -> bytes:
        """Return what is news, as lines; nothing if there is none that this client would see."""
        lines: list[bytes] = []
        size = 0
        while self._news and len(lines) < LINES_MAX and size < PIECE_BYTES:
            news = self._news.popleft()
            line = self._line(news, now)
            if line:
                lines.append(line)
                size += len(line)
        return b"".join(lines)

    @property
    def caught_up(self) -> bool:
        """Whether there is nothing more to tell now."""
        return not self._news

    def added(self, items: Iterable[Stored], now: Seconds) -> bytes:
        """Return lines for objects that are there already."""
        return b"".join(self._event(EventType.ADDED, one, now) for one in items)

    def bookmark(self, body: Raw, *, initial: bool = False) -> bytes:
        """Return the line that says how far we are."""
        metadata: Raw = dict(body["metadata"])
        if initial:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        told: Raw = {**body, "metadata": metadata}
        if self.view.wanted.form is Form.TABLE:
            told = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
            told |= {"columnDefinitions": None, "rows": []}
        return b'{"type":"BOOKMARK","object":' + _encode(told) + b"}\n"

    def _line(self, news: News, now: Seconds) -> bytes:
        event = news.event
        if self._namespace and event.stored.key.namespace != self._namespace:
            return b""
        seen = event.type if self._selector is selectors.EVERYTHING else event.seen_by(self._selector)
        if seen is None:
            return b""
        stored = event.stored
        if seen is EventType.DELETED and event.type is not EventType.DELETED:
            stored = _as_it_was(event)
        elif self.view.wanted.form is Form.WHOLE:
            return b'{"type":"' + seen.value.encode() + b'","object":' + news.whole() + b"}\n"
        return self._event(seen, stored, now)

    def _event(self, kind: EventType, stored: Stored, now: Seconds) -> bytes:
        body = self.view.one(stored, now)
        if self.view.wanted.form is Form.TABLE:
            if self._columns_told:  # the first event says what the columns are
                body["columnDefinitions"] = None
            self._columns_told = True
        return _encode({"type": kind.value, "object": body}) + b"\n"


class Audience:
    """All who watch one kind: few are woken at every event, many now and then."""

    def __init__(self) -> None:
        self.watches: dict[Watch, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def tell(self, event: Event) -> None:
        """Have all hear of an event."""
        if not self.watches:
            return
        news = News(event)
        for watch in self.watches:
            watch.tell(news)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, self._next - loop.time()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._next = asyncio.get_running_loop().time() + PAUSE_SECONDS * len(self.watches)
        for watch in self.watches:
            watch.wake()

    def close(self) -> None:
        """Let all of them end."""
        for watch in self.watches:
            watch.behind = True
            watch.wake()


class Hub:
    """All watches of all kinds, each hearing of its own."""

    def __init__(self, store: Store, kinds: Iterable[Kind]) -> None:
        self._store = store
        self._audiences = {kind: Audience() for kind in kinds}
        self._ends = [store.subscribe(kind.type, one.tell) for kind, one in self._audiences.items()]

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(one.watches) for one in self._audiences.values())

    def close(self) -> None:
        """Hear of nothing any more, and let all watches end."""
        for end in self._ends:
            end()
        for one in self._audiences.values():
            one.close()

    def leave(self, watch: Watch) -> None:
        """Tell a watch no more."""
        self._audiences[watch.view.kind].watches.pop(watch, None)

    def begin(self, view: View, asked: Listing, now: Seconds) -> tuple[Watch, bytes]:
        """Return a watch that hears of everything from now on, and the lines of what it must be told first."""
        kind = view.kind.type
        selector = selectors.selector(view.kind.kind, asked.labels, asked.fields)
        watch = Watch(view, asked, selector)
        lines = b""
        if asked.initial_events or (asked.initial_events is None and asked.version in ("", "0")):
            page = self._store.list(kind, asked.namespace, selector)
            lines = watch.added(page.items, now)
            if asked.initial_events and asked.bookmarks:
                lines += watch.bookmark(self._store.bookmark(kind), initial=True)
        elif asked.version not in ("", "0"):
            for event in self._store.since(kind, int(asked.version)):
                watch.tell(News(event))
        self._audiences[view.kind].watches[watch] = None
        return watch, lines

    def bookmark(self, watch: Watch) -> bytes:
        """Return the line that says to a client how far it is."""
        return watch.bookmark(self._store.bookmark(watch.view.kind.type))


def checked(asked: Listing) -> Listing:
    """Refuse a watch that contradicts itself."""
    if asked.initial_events is not None and asked.match != "NotOlderThan":
        cause = errors.forbidden(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
        raise status.bad_option("ListOptions", cause)
    if asked.match and asked.initial_events is None:
        cause = errors.forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
        raise status.bad_option("ListOptions", cause)
    return asked


def error_line(error: errors.ApiError) -> bytes:
    """Return the last line of a watch that cannot go on."""
    return b'{"type":"ERROR","object":' + _encode(error.status()) + b"}\n"


def _as_it_was(event: Event) -> Stored:
    """Return what a watcher is told that ceases to see an object: how it was last, at the time of its going."""
    assert event.before is not None
    metadata = {**event.before.raw["metadata"], "resourceVersion": str(event.version)}
    return msgspec.structs.replace(event.before, raw={**event.before.raw, "metadata": metadata})
