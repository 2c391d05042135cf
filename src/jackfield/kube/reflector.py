"""A watch that never ends: list, then follow, then mend whatever breaks.

Knows pages, versions, bookmarks and what to do when a version is too old. Must not know what any object means.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, closing
from typing import Final, Generic, TypeVar

import msgspec

from jackfield import codec
from jackfield.codec import kinds
from jackfield.codec.wire import collector_paused
from jackfield.kube import answers, paths
from jackfield.kube.answers import Expired
from jackfield.kube.bucket import pause
from jackfield.kube.transport import Call, Transport
from jackfield.model.meta import Object
from jackfield.model.names import Key
from jackfield.ports import Change, Changed, Deleted, PortError, Retry, Rewound, Selection, Synced

T = TypeVar("T", bound=Object)

PAGE_OBJECTS: Final = 500
LIST_SECONDS_MAX: Final = 60.0
WATCH_SECONDS: Final = (300.0, 600.0)
"""After how long the server is to end a watch: at different times, so that not all come back at once."""
SILENCE_SECONDS_MAX: Final = 150.0
"""A server sends a bookmark every minute; one that says nothing for longer is no longer there."""
PAUSE_SECONDS_FIRST: Final = 0.2
PAUSE_SECONDS_MAX: Final = 30.0
FAILURES_QUIET: Final = 3
"""Connections end; only when that happens again and again somebody has to hear of it."""
HEALTHY_SECONDS: Final = 5.0
"""A watch that lasted this long did not fail, even if nothing happened in it."""
LINE_BYTES_MAX: Final = 64 * 2**20
"""An object is limited to a few megabytes by etcd; whatever is longer is no event."""

_log = logging.getLogger(__name__)


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw()


class _Meta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")


class _Bookmark(msgspec.Struct):
    metadata: _Meta


_events = msgspec.json.Decoder(_Event)
_bookmarks = msgspec.json.Decoder(_Bookmark)


class Timeline:
    """How far the server's time has come, as all calls of a program have heard of it together.

    A watch of its own may have heard nothing for long, and would not notice that the server went back.
    """

    def __init__(self) -> None:
        self.age = 0
        """How often it was seen to go back; what was heard in another age is void."""
        self.went = ""
        """From where to where, the last time."""
        self.latest = ""

    def heard(self, version: str) -> None:
        """Take a version as one that was."""
        if not _is_before(version, self.latest):
            self.latest = version

    def go_back(self, version: str) -> None:
        """Take a version as that of now, though later ones were heard of."""
        self.age += 1
        self.went = f"from {self.latest} to {version}"
        self.latest = version


class Reflector(Generic[T]):
    """One watch of one kind."""

    def __init__(
        self,
        transport: Transport,
        kind: type[T],
        selection: Selection,
        dice: random.Random,
        time: Timeline | None = None,
    ) -> None:
        self._transport = transport
        self._kind = kind
        self._names = kinds.of(kind)
        self._path = paths.collection(self._names, selection.namespace)
        self._selection = paths.parameters(selection)
        self._dice = dice
        self._time = time or Timeline()
        self._age = self._time.age
        self._version = ""
        """From where to follow; empty means that everything has to be listed first."""
        self._failures = 0
        self._broke = False
        """Whether the server may have been another since the version was heard of."""

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Tell all objects, then Synced, then every change. Raises only before the first Synced."""
        synced = False
        while True:
            try:
                async with aclosing(self._news() if self._version else self._all()) as source:
                    async for change in source:
                        synced = synced or isinstance(change, Synced)
                        yield change
            except PortError as error:
                if not synced or isinstance(error, Rewound):
                    raise
                await self._mend(error)

    async def _mend(self, error: PortError) -> None:
        """Decide where to go on, and rest the longer the more often it went wrong."""
        self._failures += 1
        self._broke = True
        if isinstance(error, Expired) or not isinstance(error, Retry):
            self._version = ""
        level = logging.WARNING if self._failures >= FAILURES_QUIET else logging.INFO
        _log.log(level, "the watch of %s broke: %s", self._names.resource, error)
        longest = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2.0 ** min(self._failures - 1, 16))
        asked = error.after if isinstance(error, Retry) and error.after > answers.RETRY_AFTER else 0.0
        await pause(max(asked, longest * self._dice.uniform(0.5, 1.0)))

    # --- listing

    async def _all(self) -> AsyncGenerator[Change, None]:
        """Tell all objects page by page, as of one version that is no older than now, then Synced."""
        keys: list[Key] = []
        more = ""
        limit = PAGE_OBJECTS
        while True:
            # No resourceVersion: only then may the server not answer from a cache that lags behind.
            asked = {"limit": str(limit), "continue": more} if more else {"limit": str(limit)}
            call = Call("GET", self._path, {**self._selection, **asked}, seconds_max=LIST_SECONDS_MAX)
            try:
                page = self._page(await self._transport.ask(call))
            except Expired:
                if not more:
                    raise
                # The pages took so long that the server forgot the first: all at once, then, which cannot expire.
                keys, more, limit = [], "", 0
                continue
            for one in page.objects:
                keys.append(one.key)
                yield Changed(one)
            for bad in page.errors:
                keys.append(bad.key)  # it exists, whatever is wrong with it
                _log.warning("passed over: %s", bad)
            more = page.more
            if not more:
                break
        self._went_on_to(page.version)
        yield Synced(self._kind, frozenset(keys))

    def _page(self, body: bytes) -> codec.Listing[T]:
        try:
            page = codec.decode_list(self._kind, body)
        except codec.BadObject as error:
            raise Retry(f"GET {self._path}: the answer is no list: {error}") from error
        if not page.version:
            raise Retry(f"GET {self._path}: the answer is no list: it has no resourceVersion")
        return page

    # --- following

    async def _news(self) -> AsyncGenerator[Change, None]:
        """Tell what happened since the version, until the server ends the watch. Raises Expired to start over."""
        if self._broke:
            await self._see_that_time_went_on()
        seconds = self._dice.uniform(*WATCH_SECONDS)
        asked = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": f"{seconds:.0f}",
        }
        call = Call("GET", self._path, {**self._selection, **asked}, seconds_max=seconds + LIST_SECONDS_MAX)
        began = asyncio.get_running_loop().time()
        lines = Lines()
        heard = False
        with closing(await self._transport.open(call, SILENCE_SECONDS_MAX)) as stream:
            while chunk := await stream.chunk():
                for told in self._told(lines.of(chunk)):
                    if isinstance(told, PortError):
                        raise told
                    heard = True
                    self._failures = 0
                    yield told
        if not heard and asyncio.get_running_loop().time() - began < HEALTHY_SECONDS:
            raise Retry(f"{call.what}: the watch ended as soon as it had begun")
        self._failures = 0

    async def _see_that_time_went_on(self) -> None:
        """Ask for the version of now: after a backup was restored it is an older one than we know of.

        A watch from the future is accepted all the same, tells nothing until that time has come, and leaves a gap.
        """
        before = self._time.latest  # what is heard while we ask may be later than the answer
        page = self._page(await self._transport.ask(Call("GET", self._path, {"limit": "1"})))
        self._broke = False
        if self._time.age == self._age and _is_before(page.version, before):
            self._time.go_back(page.version)
        if self._time.age != self._age:
            raise Rewound(f"the API server went back in time, {self._time.went}")

    def _told(self, lines: Iterable[bytes]) -> list[Change | PortError]:
        """Return what the lines say; an error ends them."""
        told: list[Change | PortError] = []
        with collector_paused():
            for line in lines:
                try:
                    news = self._read(line)
                except (codec.BadObject, msgspec.DecodeError) as bad:
                    _log.warning("an event about %s was passed over: %s", self._names.resource, bad)
                    continue
                if news is not None:
                    told.append(news)
                if isinstance(news, PortError):
                    break
        return told

    def _read(self, line: bytes) -> Change | PortError | None:
        event = _events.decode(line)
        match event.type:
            case "ADDED" | "MODIFIED":
                return Changed(self._object(event))
            case "DELETED":
                return Deleted(self._object(event))
            case "BOOKMARK":
                self._went_on_to(_bookmarks.decode(event.object).metadata.resource_version)
                return None
            case "ERROR":
                return answers.error(answers.event(bytes(event.object)), f"the watch of {self._path}", {})
            case other:
                _log.warning("a watch of %s told of an unknown event %r", self._names.resource, other[:40])
                return None

    def _object(self, event: _Event) -> T:
        one = codec.decode(self._kind, bytes(event.object))
        self._went_on_to(one.metadata.resource_version)
        return one

    def _went_on_to(self, version: str) -> None:
        if version:
            self._version = version
            self._time.heard(version)


def _is_before(one: str, other: str) -> bool:
    """Versions of one server can be compared; what is no number is not judged."""
    return one.isdecimal() and other.isdecimal() and int(one) < int(other)


class Lines:
    """Bytes as they come, cut into lines, however long."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def of(self, chunk: bytes) -> list[bytes]:
        """Return the lines that are now complete."""
        first, *rest = chunk.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if not rest:
            if self._size > LINE_BYTES_MAX:
                raise Retry(f"a line of more than {LINE_BYTES_MAX} bytes: this is no watch")
            return []
        whole = [b"".join(self._parts), *rest[:-1]]
        self._parts = [rest[-1]]
        self._size = len(rest[-1])
        return [line for line in whole if line]
