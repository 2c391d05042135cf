"""The store: Kubernetes' API semantics over objects in memory.

Knows versions, preconditions, subresources, finalizers and who hears of a change. Must not know HTTP, asyncio, or
what a valid object of a kind is. Time and chance are handed in.
"""

import copy
import random
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

import msgspec

from jackfield import codec
from jackfield.cluster import admission, deletion, errors, plugins, selectors
from jackfield.cluster.deletion import PLAINLY, Deletion
from jackfield.cluster.history import BYTES_MAX, EVENTS_MAX, Event, EventType, History, Stored
from jackfield.cluster.ownership import books
from jackfield.cluster.ownership.managers import Manager, Managers, settled
from jackfield.cluster.patches import patch
from jackfield.codec import Raw, kinds
from jackfield.codec.kinds import Kind
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, NO_TIME, Key, Seconds, Time, Uid, Version, named, rfc3339
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod

_GENERATED_MAX = 63
_NAMES_TRIED_MAX = 8

Listener = Callable[[Event], None]
T = TypeVar("T", bound=Object)


class Write(msgspec.Struct, frozen=True, gc=False):
    """How something is written."""

    manager: str = "unknown"
    status: bool = False
    """Whether the status subresource is spoken to; it changes nothing else, and nothing else changes it."""
    force: bool = False
    """Whether an apply takes fields from their owners."""
    dry_run: bool = False


class Precondition(msgspec.Struct, frozen=True, gc=False):
    """What must be true of an object; empty means anything."""

    uid: Uid = Uid("")
    version: Version = Version("")


class Page(msgspec.Struct, frozen=True):
    """The objects a list call found, and the version at which that was so."""

    items: tuple[Stored, ...]
    version: int


class Backup(msgspec.Struct, frozen=True):
    """All that there was at a moment."""

    version: int
    tables: Mapping[Kind, Mapping[Key, Stored]]


class _Draft(msgspec.Struct, frozen=True, gc=False):
    """What is about to be stored."""

    old: Stored | None
    kind: Kind
    raw: Raw
    managers: Managers
    dry_run: bool
    by: str = ""


PLAIN = Write()
ANY = Precondition()


class Store:
    """All objects of a cluster. Every method either does all it says or raises ApiError and does nothing."""

    def __init__(
        self,
        now: Callable[[], Seconds],
        dice: random.Random,
        *,
        events_max: int = EVENTS_MAX,
        served: bool = False,
        books: bool = False,
    ) -> None:
        """Begin with nothing.

        A store that is `served` to others insists on namespaces and accounts, as a real server does; a simulation
        need not make them first. With `books` it says of every field who wrote it, and not only of those that
        somebody applied.
        """
        self._served = served
        self._books = books
        self._now = now
        self._dice = dice
        self._version = 0
        self._spelt = (NEVER, NO_TIME)
        self._tables: dict[Kind, dict[Key, Stored]] = {kind: {} for kind in kinds.KINDS}
        self._histories = {kind: History(events_max, BYTES_MAX if served else 0) for kind in kinds.KINDS}
        self._listeners: dict[Kind, list[Listener]] = {kind: [] for kind in kinds.KINDS}
        self.idle: list[Callable[[Stored, str], None]] = []
        """Hear of writes that changed nothing, and who wrote."""
        self.age = 0
        """How often a backup was restored; versions of one age mean nothing in another."""
        self.rewinds: list[Callable[[], None]] = []
        """Hear that a backup was restored."""

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
        return self._create(kinds.of(kind), admission.read(raw), write)

    def update(self, kind: type[Object], raw: Raw, write: Write = PLAIN) -> Stored:
        """Replace an object, or its status; some kinds are created by that if they are not there."""
        names = kinds.of(kind)
        new = admission.read(raw)
        metadata = new["metadata"]
        key = Key(metadata.get("namespace", ""), metadata.get("name", ""))
        old = self._tables[names].get(key)
        if old is None:
            if write.status or not admission.is_created_by_update(names, metadata):
                raise errors.not_found(names, key)
            return self._create(names, {**new, "metadata": {**metadata, "resourceVersion": ""}}, write)
        admission.refuse_unconditional(names, new)
        return self._replace(old, new, write)

    def patch(self, kind: type[Object], key: Key, body: Raw, write: Write = PLAIN) -> Stored:
        """Merge a JSON merge patch, which becomes the store's own, into an object or into its status."""
        old = self.get(kind, key)
        return self._patch(old, admission.shaped(patch.merged(old.raw, body)), write)

    def rewrite(
        self, kind: type[Object], key: Key, change: Callable[[Raw], Raw], write: Write = PLAIN
    ) -> Stored:
        """Change an object or its status in any way; `change` must leave alone what it is given."""
        old = self.get(kind, key)
        return self._patch(old, admission.read(change(old.wire())), write)

    def apply(self, kind: type[Object], key: Key, body: Raw, write: Write) -> Stored:
        """Server-side apply; creates the object if there is none, unless only its status is spoken of."""
        names = kinds.of(kind)
        old = self._tables[names].get(key)
        if old is None:
            return self._create_by_apply(names, key, body, write)
        new = admission.read(body)
        admission.refuse_another(old, new)
        if self._served:
            books.of(names).refuse(body)
        me = self._me(names, write)
        outcome = books.of(names).applied(old.raw, body, me, old.managers, force=write.force)
        self._check(old, _precondition(new))  # a dispute is told first
        prepared = admission.prepare_update(names, old.raw, outcome.object, status=write.status)
        admission.complete(names, prepared, self._time(), old.raw)
        self._admit_again(names, prepared, write)
        return self._settle(old, prepared, outcome.managers, write)

    def bind(self, key: Key, node: str, when: Precondition = ANY, *, dry_run: bool = False) -> Stored:
        """Bind a pod to a node, as the scheduler's `binding` subresource does."""
        old = self.get(Pod, key)
        self._check(old, when)
        new = admission.bound(old, node, self._find(Node, named(node)), self._time())
        # Being bound is no change of what is wanted: nothing else of it could be wrong.
        draft = _Draft(old, old.kind, new, old.managers, dry_run)
        return self._put(self._typed(draft), draft)

    def finalize(self, raw: Raw, write: Write = PLAIN) -> Stored:
        """Say who still has to agree before a namespace goes, as its `finalize` subresource does."""
        new = admission.read(raw)
        old = self.get(Namespace, named(new["metadata"].get("name", "")))
        self._check(old, _precondition(new))
        spec = {**old.raw.get("spec", {}), "finalizers": codec.dig(new, "spec", "finalizers") or []}
        return self._settle(old, {**old.raw, "spec": spec}, old.managers, write)

    def delete(
        self, kind: type[Object], key: Key, when: Precondition = ANY, how: Deletion = PLAINLY
    ) -> Stored:
        """Delete an object; it only goes when its last finalizer has gone, and a running pod has ended."""
        old = self.get(kind, key)
        admission.refuse_deletion(old)
        _check_deletable(old, when)
        outcome = deletion.outcome(old, how, self._now())
        if outcome.raw is not old.raw:
            draft = _Draft(old, old.kind, outcome.raw, old.managers, how.dry_run)
            old = self._put(self._typed(draft), draft)
        return self._remove(old, old.raw, dry_run=how.dry_run) if outcome.gone else old

    def evict(self, key: Key, when: Precondition = ANY, how: Deletion = PLAINLY) -> Stored:
        """Delete a pod, and say on it that it was evicted, as its `eviction` subresource does."""
        old = self.get(Pod, key)
        _check_deletable(old, when)
        if not how.dry_run:
            self._settle(old, admission.evicted(old.raw, self._time()), old.managers, PLAIN)
        return self.delete(Pod, key, Precondition(uid=when.uid), how)

    def _clear(self, kind: Kind) -> None:
        """Clear away what the server keeps only for a time; the oldest come first, so that it costs what goes."""
        now = self._now()
        while (oldest := next(iter(self._tables[kind].values()), None)) and admission.is_stale(
            oldest.object, now
        ):
            self._remove(oldest, oldest.raw, dry_run=False)

    # --- going back in time

    def backup(self) -> Backup:
        """Return all that there is; what is done afterwards does not change it."""
        return Backup(self._version, {kind: dict(table) for kind, table in self._tables.items()})

    def restore(self, backup: Backup) -> None:
        """Be as at the time of a backup, versions included, and remember nothing of what happened since."""
        self._version = backup.version
        self._tables = {kind: dict(backup.tables[kind]) for kind in self._tables}
        self._histories = {kind: one.anew() for kind, one in self._histories.items()}
        self.age += 1
        for listener in tuple(self.rewinds):
            listener()

    # --- the way every write takes

    def _create(self, kind: Kind, new: Raw, write: Write, managers: Managers = ()) -> Stored:
        """Complete, check and store a new object. That its name is taken is said last, as the storage finds it."""
        metadata = new["metadata"]
        if not kind.namespaced:
            metadata.pop("namespace", None)
        # A dry run leaves no trace, not even in what chance brings next.
        dice = _likewise(self._dice) if write.dry_run else self._dice
        self._clear(kind)  # a name of what goes now is free
        is_free = self._name(kind, metadata, dice)
        is_generated = bool(metadata.get("generateName"))
        has_version = bool(metadata.get("resourceVersion"))
        admission.complete(kind, new, self._time())
        if self._books and not managers:
            managers = books.of(kind).created(new, self._me(kind, write))
        if self._served:
            plugins.admit(kind, new, self._find, dice)
        admission.prepare_create(kind, new, self._time())
        metadata = new["metadata"]
        metadata["uid"] = str(uuid.UUID(int=dice.getrandbits(128), version=4)) if is_free else ""
        metadata["creationTimestamp"] = self._time()
        draft = _Draft(None, kind, new, managers, write.dry_run, write.manager)
        stored = self._checked(draft)
        if has_version and not write.dry_run:
            raise errors.unexplained("resourceVersion should not be set on objects to be created")
        if not is_free:
            raise _taken(self._tables[kind][stored.key], is_generated=is_generated)
        return self._put(stored, draft)

    def _patch(self, old: Stored, new: Raw, write: Write) -> Stored:
        admission.refuse_another(old, new)
        return self._replace(old, new, write)

    def _replace(self, old: Stored, new: Raw, write: Write) -> Stored:
        self._check(old, _precondition(new))
        prepared = admission.prepare_update(old.kind, old.raw, new, status=write.status)
        admission.complete(old.kind, prepared, self._time(), old.raw)
        managers = self._booked(old, prepared, new, write)
        self._admit_again(old.kind, prepared, write)  # what everybody gets is nobody's
        return self._settle(old, prepared, managers, write)

    def _booked(self, old: Stored, prepared: Raw, new: Raw, write: Write) -> Managers:
        """Return who owns what after a write; it may say so itself."""
        said = new["metadata"].get("managedFields")
        if not old.managers and said is None:
            return ()
        if said is not None:
            prepared = {**prepared, "metadata": {**prepared["metadata"], "managedFields": said}}
        return books.of(old.kind).updated(old.raw, prepared, self._me(old.kind, write), old.managers)

    def _me(self, kind: Kind, write: Write) -> Manager:
        where = "status" if write.status else ""
        return Manager(
            write.manager, applies=False, version=kind.api_version, subresource=where, time=self._time()
        )

    def _create_by_apply(self, kind: Kind, key: Key, body: Raw, write: Write) -> Stored:
        """A version guards against changes of what is there, so that it says nothing here; a uid does."""
        if write.status:
            raise errors.not_found(kind, key)
        metadata = {**body.get("metadata", {}), "name": key.name}
        metadata.pop("resourceVersion", None)
        if metadata.get("uid"):
            why = f"the provided object specified uid {metadata['uid']}, and no existing object was found"
            raise errors.conflict(kind, key, f"uid mismatch: {why}")
        if key.namespace:
            metadata["namespace"] = key.namespace
        new = {**body, "metadata": metadata}
        if self._served:
            books.of(kind).refuse(body)
        outcome = books.of(kind).applied({}, body, self._me(kind, write), (), force=True)
        return self._create(kind, admission.read(new), write, outcome.managers)

    def _admit_again(self, kind: Kind, new: Raw, write: Write) -> None:
        if self._served and not write.status:
            plugins.admit_again(kind, new)

    def _settle(self, old: Stored, new: Raw, managers: Managers, write: Write) -> Stored:
        """Check and store a new version; nothing happens if nothing would change."""
        new = admission.settled(old.kind, old.raw, new)
        if new == old.raw:
            managers = settled(old.managers, managers)
            if managers == old.managers:
                for listener in self.idle:
                    listener(old, write.manager)
                return old
        if admission.is_over(new):
            return self._remove(old, new, dry_run=write.dry_run)
        draft = _Draft(old, old.kind, new, managers, write.dry_run, write.manager)
        return self._put(self._checked(draft), draft)

    def _checked(self, draft: _Draft) -> Stored:
        """Return what is to be stored. Raises what is wrong with it."""
        stored = self._typed(draft)
        causes = admission.problems(draft.old, stored)
        if causes:
            raise errors.invalid(stored.kind, stored.key, causes)
        return stored

    def _put(self, stored: Stored, draft: _Draft) -> Stored:
        if not draft.dry_run:
            self._version = stored.version
            self._tables[stored.kind][stored.key] = stored
            type_ = EventType.MODIFIED if draft.old else EventType.ADDED
            self._tell(Event(type_, stored.version, stored, draft.old, draft.by))
        return stored

    def _remove(self, old: Stored, last: Raw, *, dry_run: bool) -> Stored:
        stored = self._typed(_Draft(old, old.kind, last, old.managers, dry_run))
        stored = msgspec.structs.replace(stored, gone=True)
        if not dry_run:
            self._version = stored.version
            del self._tables[old.kind][old.key]
            self._tell(Event(EventType.DELETED, stored.version, stored, old))
        return stored

    def _typed(self, draft: _Draft) -> Stored:
        """Return the draft as it would be stored now. A dry run uses up no version, and says none that never was."""
        metadata: Raw = {**draft.raw["metadata"]}
        version = self._version + 1
        if not draft.dry_run:
            metadata["resourceVersion"] = str(version)
        raw = {**draft.raw, "metadata": metadata}
        try:
            typed = codec.decode(draft.kind.type, raw)
        except codec.BadObject as error:
            raise admission.undecodable(draft.kind, raw, error) from error
        return Stored(draft.kind, version, raw, typed, draft.managers)

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

    def _find(self, kind: type[T], key: Key) -> T | None:
        found = self._tables[kinds.of(kind)].get(key)
        return cast("T", found.object) if found is not None else None

    def _name(self, kind: Kind, metadata: Raw, dice: random.Random) -> bool:
        """Make up a name if only its beginning is given; returns whether the name is free."""
        prefix = metadata.get("generateName")
        namespace = metadata.get("namespace", "")
        if metadata.get("name") or not prefix:
            return Key(namespace, metadata.get("name", "")) not in self._tables[kind]
        for _ in range(_NAMES_TRIED_MAX):
            metadata["name"] = prefix[: _GENERATED_MAX - plugins.SUFFIX_LENGTH] + plugins.suffix(dice)
            if Key(namespace, metadata["name"]) not in self._tables[kind]:
                return True
        return False

    def _check(self, old: Stored, when: Precondition) -> None:
        metadata = old.raw["metadata"]
        if when.uid and when.uid != metadata["uid"]:
            raise errors.another(old.kind, old.key, when.uid, metadata["uid"])
        if when.version and when.version != metadata["resourceVersion"]:
            raise errors.modified(old.kind, old.key, when.version)


def _likewise(dice: random.Random) -> random.Random:
    """Return dice that fall as these would, which they leave alone; what the system draws nobody can foresee anyway."""
    return dice if isinstance(dice, random.SystemRandom) else copy.copy(dice)


def _key(one: Stored) -> Key:
    return one.key


def _precondition(raw: Raw) -> Precondition:
    metadata = raw.get("metadata") or {}
    return Precondition(metadata.get("uid") or Uid(""), metadata.get("resourceVersion") or Version(""))


def _check_deletable(old: Stored, when: Precondition) -> None:
    """Raise what a deletion says of another object, or of another version of it."""
    metadata = old.raw["metadata"]
    if when.uid and when.uid != metadata["uid"]:
        pair = (
            f"the UID in the precondition ({when.uid}) does not match the UID in record ({metadata['uid']})"
        )
        why = f"{pair}. The object might have been deleted and then recreated"
        raise errors.undeletable(old.kind, old.key, why)
    version = metadata["resourceVersion"]
    if when.version and when.version != version:
        pair = f"the ResourceVersion in the precondition ({when.version}) does not match the ResourceVersion in record"
        raise errors.undeletable(
            old.kind, old.key, f"{pair} ({version}). The object might have been modified"
        )


def _taken(old: Stored, *, is_generated: bool) -> errors.ApiError:
    if is_generated:
        return errors.no_name_left(old.kind, old.key)
    return errors.already_exists(old.kind, old.key, deleting=old.object.deleting)
