"""The embedded cluster behind the port that controllers speak to.

Knows how to turn the store's answers into the port's, and how watchers are told. Must not know what is valid, nor
what time it is. Runs on any asyncio loop; nothing here waits but a watcher without news.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import TypeVar, cast

import msgspec

from jackfield import codec
from jackfield.cluster import selectors
from jackfield.cluster.deletion import Deletion
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import Event, EventType, Stored
from jackfield.cluster.store import Precondition, Store, Write
from jackfield.codec import kinds
from jackfield.model.meta import Object
from jackfield.model.names import Key, Uid, Version
from jackfield.model.namespace import Namespace
from jackfield.model.pod import Pod
from jackfield.ports import (
    EVERYTHING,
    Apply,
    Bug,
    Change,
    Changed,
    Conflict,
    Deleted,
    Gone,
    Merge,
    PortError,
    Refused,
    Retry,
    Selection,
    Synced,
)

T = TypeVar("T", bound=Object)

NEWS_MAX = 10_000
"""Changes a watcher may be behind; one that is further behind is told everything anew."""
WRITES = frozenset({"create", "patch", "apply", "delete"})


class Watcher:
    """One subscriber's queue: references to changes that all subscribers share."""

    def __init__(self, news_max: int = NEWS_MAX) -> None:
        self._news: deque[Change] = deque()
        self._news_max = news_max
        self._waiting: asyncio.Future[None] | None = None
        self.behind = False
        """Whether it missed something and must be told everything anew."""

    def tell(self, change: Change) -> None:
        """Queue a change, at the same cost whoever watches what."""
        if len(self._news) >= self._news_max:
            self._news.clear()
            self.behind = True
        if not self.behind:
            self._news.append(change)
        self.wake()

    def start_over(self) -> None:
        """Have everything told anew: what was queued is of a time that never was."""
        self._news.clear()
        self.behind = True
        self.wake()

    def wake(self) -> None:
        """Have the subscriber look up."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def take(self) -> Change | None:
        """Return the next change, or None if there is no news."""
        return self._news.popleft() if self._news else None

    async def wait(self) -> None:
        """Wait until somebody calls."""
        self._waiting = asyncio.get_running_loop().create_future()
        await self._waiting


class Feed:
    """The changes of one kind, made once and handed to all who watch it."""

    def __init__(self, store: Store, kind: type[Object]) -> None:
        self._store = store
        self._kind = kind
        self._watchers: dict[Watcher, selectors.Selector] = {}
        store.subscribe(kind, self._tell)
        store.rewinds.append(self._start_over)

    def _tell(self, event: Event) -> None:
        if not self._watchers:
            return
        gone = event.type is EventType.DELETED
        change = Deleted(event.stored.object) if gone else Changed(event.stored.object)
        for watcher, selector in self._watchers.items():
            told = change if selector is selectors.EVERYTHING else _selected(event, selector, change)
            if told is not None:
                watcher.tell(told)

    def _start_over(self) -> None:
        for watcher in self._watchers:
            watcher.start_over()

    async def follow(self, selection: Selection, is_dead: Callable[[], bool]) -> AsyncGenerator[Change, None]:
        """Tell all objects selected, then Synced, then every change; over again for whoever falls behind."""
        watcher = Watcher()
        with _as_port_errors:
            selector = selectors.of(kinds.of(self._kind), selection)
        self._watchers[watcher] = selector
        try:
            while not is_dead():
                watcher.behind = False
                items = self._store.list(self._kind, selector=selector).items
                for item in items:
                    yield Changed(item.object)
                yield Synced(self._kind, frozenset(item.key for item in items))
                while not (watcher.behind or is_dead()):
                    change = watcher.take()
                    if change is not None:
                        yield change
                    else:
                        await watcher.wait()
        finally:
            del self._watchers[watcher]
        raise asyncio.CancelledError

    def wake(self) -> None:
        """Have all subscribers look up."""
        for watcher in self._watchers:
            watcher.wake()


class Client:
    """One program's handle to the cluster; counts what it is used for, and can be taken away."""

    def __init__(self, store: Store, feeds: Mapping[type[Object], Feed], name: str) -> None:
        self._store = store
        self._feeds = feeds
        self._dead = False
        self.name = name
        self.calls: Counter[tuple[str, str]] = Counter()
        """How often each verb was used on each kind."""

    @property
    def writes(self) -> int:
        """How many calls meant to change something."""
        return sum(count for (verb, _), count in self.calls.items() if verb in WRITES)

    def kill(self) -> None:
        """Take the handle away: whoever uses it from now on ends as if cancelled, and does nothing more."""
        self._dead = True
        for feed in self._feeds.values():
            feed.wake()

    def watch(self, kind: type[T], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        """Tell all objects, then `Synced`, then every change."""
        self._count("watch", kind)
        return self._feeds[kind].follow(selection, lambda: self._dead)

    async def read(self, kind: type[T], key: Key) -> T:
        """Read the object as it is now."""
        self._count("get", kind)
        with _as_port_errors:
            return cast("T", self._store.get(kind, key).object)

    async def create(self, new: T) -> T:
        """Create the object."""
        self._count("create", type(new))
        with _as_port_errors:
            stored = self._store.create(type(new), codec.encode(new), Write(manager=self.name))
            return cast("T", stored.object)

    async def write(self, patch: Merge | Apply) -> Object:
        """Change the object. An apply takes over what others own, as controllers should."""
        self._count("apply" if isinstance(patch, Apply) else "patch", patch.kind)
        with _as_port_errors:
            return self._written(patch).object

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for the object's deletion; a kubelet ends a pod with a grace of 0."""
        self._count("delete", kind)
        with _as_port_errors:
            self._store.delete(kind, key, Precondition(version=version), Deletion(grace_seconds))

    async def bind(self, pod: Key, uid: Uid, node: str) -> Object:
        """Bind a pod, as the scheduler's subresource does."""
        self._count("create", Pod)
        with _as_port_errors:
            return self._store.bind(pod, node, Precondition(uid=uid)).object

    async def finalize(self, namespace: Namespace) -> None:
        """Write who still has to agree before a namespace goes, as its subresource does."""
        self._count("update", Namespace)
        with _as_port_errors:
            self._store.finalize(codec.encode(namespace), Write(manager=self.name))

    def _written(self, patch: Merge | Apply) -> Stored:
        body = codec.copied(patch.body)
        if patch.version:
            body["metadata"] = {**body.get("metadata", {}), "resourceVersion": patch.version}
        match patch:
            case Merge():
                how = Write(manager=self.name, status=patch.status)
                return self._store.patch(patch.kind, patch.key, body, how)
            case Apply():
                how = Write(manager=patch.manager, status=patch.status, force=True)
                return self._store.apply(patch.kind, patch.key, body, how)

    def _count(self, verb: str, kind: type[Object]) -> None:
        if self._dead:
            raise asyncio.CancelledError
        self.calls[verb, kind.__name__] += 1


class _Turn:
    """Lets everybody else on the loop have a turn."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class PoliteClient(Client):
    """A handle for programs that share their loop with others: every call lets these have a turn.

    Otherwise nothing here ever waits, and a program with five thousand things to write would hold up everybody.
    """

    async def read(self, kind: type[T], key: Key) -> T:
        """Read the object as it is now."""
        await _Turn()
        return await super().read(kind, key)

    async def create(self, new: T) -> T:
        """Create the object."""
        await _Turn()
        return await super().create(new)

    async def write(self, patch: Merge | Apply) -> Object:
        """Change the object."""
        await _Turn()
        return await super().write(patch)

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for the object's deletion."""
        await _Turn()
        await super().delete(kind, key, version, grace_seconds=grace_seconds)


class EmbeddedCluster(Client):
    """A cluster in memory. It is a handle itself, and gives every program one of its own."""

    def __init__(self, store: Store, handle: type[Client] = Client) -> None:
        feeds = {kind: Feed(store, kind) for kind in kinds.TYPES}
        super().__init__(store, feeds, "cluster")
        self.store = store
        self._handle = handle

    def client(self, name: str, handle: type[Client] | None = None) -> Client:
        """Return a new handle, named for the program that gets it; a simulator may have kinds of its own."""
        return (handle or self._handle)(self.store, self._feeds, name)


def _selected(event: Event, selector: selectors.Selector, change: Change) -> Change | None:
    """Return what a watcher with a selector is told; what it ceases to see goes as it was, at the time of its going."""
    match event.seen_by(selector):
        case None:
            return None
        case EventType.DELETED if event.before is not None and event.type is not EventType.DELETED:
            last = event.before.object
            version = Version(str(event.version))
            metadata = msgspec.structs.replace(last.metadata, resource_version=version)
            return Deleted(msgspec.structs.replace(last, metadata=metadata))
        case _:
            return change


class _AsPortErrors:
    """Turns what the store says into the port's words; a class, since it is entered for every call there is."""

    def __enter__(self) -> None:
        """Let something be tried."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ApiError):
            raise port_error(error) from error


_as_port_errors = _AsPortErrors()


def port_error(error: ApiError) -> PortError:
    """Return which of the port's five errors an answer amounts to."""
    match error.code:
        case HTTPStatus.CONFLICT:
            return Conflict(error.message)
        case HTTPStatus.NOT_FOUND:
            return Gone(error.message)
        case HTTPStatus.UNPROCESSABLE_ENTITY | HTTPStatus.FORBIDDEN | HTTPStatus.BAD_REQUEST:
            return Refused(error.message)
        case HTTPStatus.TOO_MANY_REQUESTS:
            return Retry(error.message)
        case code if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Retry(error.message)
        case _:
            return Bug(f"an answer that nobody expects: {error.code} {error.message}")
