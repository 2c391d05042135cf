"""The store: Kubernetes' API semantics over objects in memory.

Knows versions, preconditions, subresources, finalizers and who hears of a change. Must not know HTTP, asyncio, or
what a valid object of a kind is. Time and chance are handed in.
"""

import random
import uuid
from collections.abc import Callable, Iterable

import msgspec

from jackfield import codec
from jackfield.cluster import admission, apply, errors, fields, patch, selectors
from jackfield.cluster.apply import Dispute, Manager, Managers
from jackfield.cluster.history import EVENTS_MAX, Event, EventType, History, Stored
from jackfield.codec import Raw, kinds
from jackfield.codec.kinds import Kind
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, NO_TIME, Key, Seconds, Time, Uid, Version, rfc3339
from jackfield.model.pod import Pod

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_GENERATED_MAX = 63
_NAMES_TRIED_MAX = 8

Listener = Callable[[Event], None]


class Write(msgspec.Struct, frozen=True):
    """How something is written."""

    manager: str = "unknown"
    status: bool = False
    """Whether the status subresource is spoken to; it changes nothing else, and nothing else changes it."""
    force: bool = False
    """Whether an apply takes fields from their owners."""
    dry_run: bool = False


class Precondition(msgspec.Struct, frozen=True):
    """What must be true of an object; empty means anything."""

    uid: Uid = Uid("")
    version: Version = Version("")


class Page(msgspec.Struct, frozen=True):
    """The objects a list call found, and the version at which that was so."""

    items: tuple[Stored, ...]
    version: int


PLAIN = Write()
ANY = Precondition()


class Store:
    """All objects of a cluster. Every method either does all it says or raises ApiError and does nothing."""

    def __init__(
        self, now: Callable[[], Seconds], dice: random.Random, *, events_max: int = EVENTS_MAX
    ) -> None:
        self._now = now
        self._dice = dice
        self._version = 0
        self._spelt = (NEVER, NO_TIME)
        self._tables: dict[Kind, dict[Key, Stored]] = {kind: {} for kind in kinds.KINDS}
        self._histories = {kind: History(events_max) for kind in kinds.KINDS}
        self._listeners: dict[Kind, list[Listener]] = {kind: [] for kind in kinds.KINDS}

    # --- reading

    @property
    def version(self) -> int:
        """The version of the last write, whatever it was."""
        return self._version

    def get(self, kind: type[Object], key: Key) -> Stored:
        """Return the object as it is now."""
        names = kinds.of(kind)
        found = self._tables[names].get(key)
        if found is None:
            raise errors.not_found(names, key)
        return found

    def list(
        self, kind: type[Object], namespace: str = "", selector: selectors.Selector = selectors.EVERYTHING
    ) -> Page:
        """Return the objects of a kind, by namespace and name as an API server does."""
        items: Iterable[Stored] = self._tables[kinds.of(kind)].values()
        if namespace:
            items = (one for one in items if one.key.namespace == namespace)
        if selector.tests:
            items = (one for one in items if selector.matches(one.raw))
        return Page(tuple(sorted(items, key=_key)), self._version)

    def since(self, kind: type[Object], version: int) -> tuple[Event, ...]:
        """Return what happened to a kind after a version. Raises Expired if that is too long ago."""
        return self._histories[kinds.of(kind)].since(version)

    def bookmark(self, kind: type[Object]) -> Raw:
        """Return what a watch is told from time to time, so that it can go on from here later."""
        names = kinds.of(kind)
        metadata = {"resourceVersion": str(self._version)}
        return {"apiVersion": names.api_version, "kind": names.kind, "metadata": metadata}

    def subscribe(self, kind: type[Object], listener: Listener) -> Callable[[], None]:
        """Have every later event of a kind told; returns what ends it. A listener must not write."""
        listeners = self._listeners[kinds.of(kind)]
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    # --- writing

    def create(self, kind: type[Object], raw: Raw, write: Write = PLAIN) -> Stored:
        """Create an object; a name is made up if only its beginning is given."""
        names = kinds.of(kind)
        new = admission.read(raw)
        metadata = new["metadata"]
        if metadata.get("resourceVersion"):
            raise errors.internal("resourceVersion should not be set on objects to be created")
        self._name(names, metadata)
        key = Key(metadata.get("namespace", ""), metadata.get("name", ""))
        if key in self._tables[names]:
            raise errors.already_exists(names, key)
        admission.prepare_create(names, new)
        metadata["uid"] = str(uuid.UUID(int=self._dice.getrandbits(128), version=4))
        metadata["creationTimestamp"] = self._time()
        self._clear(names)
        return self._commit(names, None, new, ((), write))

    def update(self, kind: type[Object], raw: Raw, write: Write = PLAIN) -> Stored:
        """Replace an object, or its status."""
        new = admission.read(raw)
        metadata = new["metadata"]
        old = self.get(kind, Key(metadata.get("namespace", ""), metadata.get("name", "")))
        return self._replace(old, new, write)

    def patch(self, kind: type[Object], key: Key, body: Raw, write: Write = PLAIN) -> Stored:
        """Merge a JSON merge patch, which becomes the store's own, into an object or into its status."""
        old = self.get(kind, key)
        new = admission.shaped(patch.merged(old.raw, body))
        admission.refuse_another(old, new)
        return self._replace(old, new, write)

    def apply(self, kind: type[Object], key: Key, body: Raw, write: Write) -> Stored:
        """Server-side apply; creates the object if there is none, unless only its status is spoken of."""
        names = kinds.of(kind)
        old = self._tables[names].get(key)
        if old is None:
            return self._create_by_apply(names, key, body, write)
        new = admission.read(body)
        admission.refuse_another(old, new)
        self._check(old, _precondition(new))
        outcome = apply.applied(
            fields.ownable(old.raw),
            admission.part(names, fields.ownable(new), status=write.status),
            Manager(write.manager, applies=True, status=write.status, fields=frozenset()),
            old.managers,
        )
        if outcome.disputes and not write.force:
            raise _disputed(names, key, outcome.disputes)
        system = {name: one for name, one in old.raw["metadata"].items() if name in fields.SYSTEM}
        merged = {
            "apiVersion": names.api_version,
            "kind": names.kind,
            **outcome.part,
            "metadata": {**system, **outcome.part.get("metadata", {})},
        }
        prepared = admission.prepare_update(names, old.raw, merged, status=write.status)
        return self._commit(names, old, prepared, (outcome.managers, write))

    def bind(self, key: Key, node: str, when: Precondition = ANY) -> Stored:
        """Bind a pod to a node, as the scheduler's `binding` subresource does."""
        old = self.get(Pod, key)
        self._check(old, when)
        new = admission.bound(old.raw, node, self._time())
        return self._commit(old.kind, old, new, (old.managers, PLAIN))

    def delete(
        self, kind: type[Object], key: Key, when: Precondition = ANY, grace_seconds: int | None = None
    ) -> Stored:
        """Delete an object; it only goes when its last finalizer has gone, and a running pod has ended."""
        old = self.get(kind, key)
        self._check(old, when)
        metadata, asked = old.raw["metadata"], grace_seconds
        grace = admission.grace_seconds(old.object) if asked is None else asked
        if grace == 0 and not metadata.get("finalizers"):
            return self._remove(old, old.raw)
        if "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds", 0) <= grace:
            return old
        new = {
            **metadata,
            "deletionTimestamp": rfc3339(Seconds(self._now() + grace)),
            "deletionGracePeriodSeconds": grace,
        }
        if "generation" in new:
            new["generation"] += 1
        return self._put(old.kind, old, {**old.raw, "metadata": new}, (old.managers, PLAIN))

    def _clear(self, kind: Kind) -> None:
        """Clear away what the server keeps only for a time; the oldest come first, so that it costs what goes."""
        now = self._now()
        while (oldest := next(iter(self._tables[kind].values()), None)) and admission.is_stale(
            oldest.object, now
        ):
            self._remove(oldest, oldest.raw)

    # --- the way every write takes

    def _replace(self, old: Stored, new: Raw, write: Write) -> Stored:
        self._check(old, _precondition(new))
        prepared = admission.prepare_update(old.kind, old.raw, new, status=write.status)
        return self._commit(old.kind, old, prepared, (old.managers, write))

    def _create_by_apply(self, kind: Kind, key: Key, body: Raw, write: Write) -> Stored:
        """A version guards against changes of what is there, so that it says nothing here; a uid does."""
        if write.status:
            raise errors.not_found(kind, key)
        metadata = {**body.get("metadata", {}), "name": key.name}
        metadata.pop("resourceVersion", None)
        if metadata.get("uid"):
            raise errors.conflict(kind, key, "uid mismatch: no existing object was found")
        if key.namespace:
            metadata["namespace"] = key.namespace
        created = self.create(kind.type, {**body, "metadata": metadata}, write)
        wanted = fields.fields_of(admission.part(kind, fields.ownable(body), status=False))
        mine = Manager(write.manager, applies=True, status=False, fields=wanted)
        booked = msgspec.structs.replace(created, managers=(mine,))
        if not write.dry_run:
            self._tables[kind][key] = booked
        return booked

    def _commit(self, kind: Kind, old: Stored | None, new: Raw, how: tuple[Managers, Write]) -> Stored:
        """Complete, check and store a new version; nothing happens if nothing would change."""
        managers, write = how
        admission.complete(kind, new, self._time())
        if old is not None:
            new = admission.settled(kind, old.raw, new)
            if managers is old.managers and managers:
                me = Manager(write.manager, applies=False, status=write.status, fields=frozenset())
                managers = apply.updated(fields.ownable(old.raw), fields.ownable(new), me, managers)
            if new == old.raw and managers == old.managers:
                return old
            if admission.is_over(new):
                return old if write.dry_run else self._remove(old, new)
        return self._put(kind, old, new, (managers, write), check=True)

    def _put(
        self,
        kind: Kind,
        old: Stored | None,
        new: Raw,
        how: tuple[Managers, Write],
        *,
        check: bool = False,
    ) -> Stored:
        managers, write = how
        stored = self._stored(kind, new, managers)
        if check:
            causes = admission.problems(old, stored)
            if causes:
                raise errors.invalid(kind, stored.key, causes)
        if write.dry_run:
            return stored
        self._version = stored.version
        self._tables[kind][stored.key] = stored
        self._tell(Event(EventType.MODIFIED if old else EventType.ADDED, stored.version, stored, old))
        return stored

    def _remove(self, old: Stored, last: Raw) -> Stored:
        stored = self._stored(old.kind, last, old.managers)
        self._version = stored.version
        del self._tables[old.kind][old.key]
        self._tell(Event(EventType.DELETED, stored.version, stored, old))
        return stored

    def _stored(self, kind: Kind, new: Raw, managers: Managers) -> Stored:
        version = self._version + 1
        raw = {**new, "metadata": {**new["metadata"], "resourceVersion": str(version)}}
        try:
            typed = codec.decode(kind.type, raw)
        except codec.BadObject as error:
            raise admission.undecodable(kind, error) from error
        return Stored(kind, version, raw, typed, managers, self._time() if managers else NO_TIME)

    def _tell(self, event: Event) -> None:
        kind = event.stored.kind
        self._histories[kind].add(event)
        for listener in self._listeners[kind]:
            listener(event)

    # --- names, times and preconditions

    def _time(self) -> Time:
        """Return the time as objects spell it; spelt once for all that happens at that instant."""
        now = self._now()
        if now != self._spelt[0]:
            self._spelt = (now, rfc3339(now))
        return self._spelt[1]

    def _name(self, kind: Kind, metadata: Raw) -> None:
        prefix = metadata.get("generateName")
        if metadata.get("name") or not prefix:
            return
        namespace = metadata.get("namespace", "")
        for _ in range(_NAMES_TRIED_MAX):
            suffix = "".join(self._dice.choices(_SUFFIX_LETTERS, k=_SUFFIX_LENGTH))
            metadata["name"] = prefix[: _GENERATED_MAX - _SUFFIX_LENGTH] + suffix
            if Key(namespace, metadata["name"]) not in self._tables[kind]:
                return

    def _check(self, old: Stored, when: Precondition) -> None:
        metadata = old.raw["metadata"]
        if when.uid and when.uid != metadata["uid"]:
            raise errors.conflict(
                old.kind,
                old.key,
                f"Precondition failed: UID in precondition: {when.uid}, UID in object meta: {metadata['uid']}",
            )
        if when.version and when.version != metadata["resourceVersion"]:
            raise errors.conflict(
                old.kind,
                old.key,
                "the object has been modified; please apply your changes to the latest version and try again",
            )


def _key(one: Stored) -> Key:
    return one.key


def _precondition(raw: Raw) -> Precondition:
    metadata = raw.get("metadata") or {}
    return Precondition(metadata.get("uid") or Uid(""), metadata.get("resourceVersion") or Version(""))


def _disputed(kind: Kind, key: Key, disputes: tuple[Dispute, ...]) -> errors.ApiError:
    causes = tuple(
        errors.Cause(one.path, f'conflict with "{one.manager}"', "FieldManagerConflict") for one in disputes
    )
    return errors.conflict(kind, key, f"Apply failed with {len(causes)} conflicts", causes)
