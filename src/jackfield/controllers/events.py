"""Events: what is worth telling a user about an object, said once and counted when it is said again.

Knows how an Event is named, counted and kept from becoming a flood. Must not know what is worth telling. Whoever tells
never waits and never fails: an Event is a courtesy, and is written when there is time for it.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress

import msgspec

from jackfield.controllers.dirty import Dirty
from jackfield.model.event import Event, EventSource, ObjectReference
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import Key, Seconds, Version, rfc3339
from jackfield.ports import Clock, Cluster, Conflict, Gone, Merge, PortError, Refused

COMPONENT = "jackfield"
DIGEST_LENGTH = 12
NAME_MAX = 253
MESSAGE_BYTES_MAX = 1024
QUIET_SECONDS = Seconds(10.0)
"""The same words about the same object are written once in this time, with a count."""
UNSAID_MAX = 1_000
"""Different words that may wait to be written; whatever comes on top is lost."""
SAID_MAX = 10_000
"""Words remembered, so that saying them again costs one call."""


class _Said(msgspec.Struct, frozen=True):
    at: Seconds
    count: int


class Teller:
    """Takes words at once, and writes them one after the other."""

    def __init__(
        self, cluster: Cluster, clock: Clock, refused: Callable[[str], None] = lambda _: None
    ) -> None:
        """Whoever is `refused` hears why an Event may not be written; it is not tried again."""
        self.mute = False
        """Whether nothing is told at all."""
        self._cluster = cluster
        self._refused = refused
        self._clock = clock
        self._due = Dirty(clock)
        self._unsaid: dict[Key, Event] = {}
        self._said: dict[Key, _Said] = {}

    def tell(self, about: Object, words: Event) -> None:
        """Have it told: now, or together with the next of the same words."""
        key = _name(about, words)
        waiting = self._unsaid.get(key)
        if self.mute or (waiting is None and len(self._unsaid) >= UNSAID_MAX):
            return
        now = self._clock.now()
        spelt = rfc3339(now)
        self._unsaid[key] = Event(
            metadata=ObjectMeta(name=key.name, namespace=key.namespace),
            involved_object=_reference(about),
            type=words.type,
            reason=words.reason,
            message=_shortened(words.message),
            source=EventSource(COMPONENT),
            count=waiting.count + 1 if waiting else 1,
            first_timestamp=waiting.first_timestamp if waiting else spelt,
            last_timestamp=spelt,
        )
        said = self._said.get(key)
        self._due.later(key, max(now, Seconds(said.at + QUIET_SECONDS)) if said else now)

    async def run(self) -> None:
        """Write what was told, until cancelled."""
        while True:
            key = await self._due.get()
            assert isinstance(key, Key)
            words = self._unsaid.pop(key)
            try:
                await self._say(key, words)
            except PortError as error:
                if isinstance(error, Refused):
                    self._refused(str(error))
            self._due.done(key)

    async def _say(self, key: Key, words: Event) -> None:
        said = self._said.pop(key, None)
        self._remember(key, (said.count if said else 0) + words.count)
        if said is not None:
            with suppress(Gone):  # the server keeps Events for an hour only
                await self._count(key, said.count, words)
                return
            self._remember(key, words.count)
        try:
            await self._cluster.create(words)
        except Conflict:  # said in an earlier life of ours
            known = await self._cluster.read(Event, key)
            self._remember(key, known.count + words.count)
            await self._count(key, known.count, words)

    async def _count(self, key: Key, before: int, words: Event) -> None:
        body = {"count": before + words.count, "lastTimestamp": words.last_timestamp}
        await self._cluster.write(Merge(Event, key, Version(""), body))

    def _remember(self, key: Key, count: int) -> None:
        self._said[key] = _Said(self._clock.now(), count)
        while len(self._said) > SAID_MAX:
            del self._said[next(iter(self._said))]


def _name(about: Object, words: Event) -> Key:
    """The same words about the same object are one Event."""
    said = f"{about.uid}/{words.reason}/{words.message}"
    digest = hashlib.sha256(said.encode()).hexdigest()[:DIGEST_LENGTH]
    stem = about.metadata.name[: NAME_MAX - DIGEST_LENGTH - 1].rstrip("-.")
    return Key(about.metadata.namespace or "default", f"{stem}.{digest}")


def _shortened(message: str) -> str:
    return message.encode()[:MESSAGE_BYTES_MAX].decode(errors="ignore")


def _reference(about: Object) -> ObjectReference:
    kind = type(about)
    return ObjectReference(
        api_version=f"{kind.group}/{kind.version}" if kind.group else kind.version,
        kind=kind.__name__,
        namespace=about.metadata.namespace,
        name=about.metadata.name,
        uid=about.uid,
    )
