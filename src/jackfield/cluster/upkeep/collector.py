"""The garbage collector: what belongs to nobody any more is deleted, in the background.

Knows owner references, and the two finalizers by which an owner waits until its dependents are gone or have forgotten
it. Must not know what any kind is for.
"""

from collections.abc import Callable, Hashable
from typing import Final

import msgspec

from jackfield.cluster.deletion import FOREGROUND, ORPHAN
from jackfield.cluster.upkeep.cache import Cache
from jackfield.cluster.upkeep.rounds import Rounds
from jackfield.codec import kinds
from jackfield.codec.encoding import encoded
from jackfield.model.event import Event
from jackfield.model.meta import Object, OwnerReference
from jackfield.model.names import Key, Uid
from jackfield.ports import Change, Changed, Clock, Cluster, Deleted, Gone, Merge, Synced

KINDS: Final = tuple(kind for kind in kinds.TYPES if kind is not Event)
"""What is collected: events, of which there are most, are left alone as Kubernetes does, and run out by themselves."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """An object of any kind."""

    kind: type[Object]
    key: Key


def remaining(
    dependent: Object, is_gone: Callable[[OwnerReference], bool]
) -> tuple[OwnerReference, ...] | None:
    """Return the owners an object should name: none if it should go; None if nothing is to be done."""
    owners = dependent.metadata.owner_references
    left = tuple(one for one in owners if not is_gone(one))
    return None if dependent.deleting or len(left) == len(owners) else left


def waits(owner: Object) -> bool:
    """Return whether an object only goes when something was done about its dependents."""
    return owner.deleting and any(one in (FOREGROUND, ORPHAN) for one in owner.metadata.finalizers)


def _ties(one: Object) -> Hashable:
    """All about an object that bears on whether it, its owners or its dependents may stay."""
    return one.uid, one.metadata.owner_references, one.metadata.finalizers, one.deleting


class Collector:
    """Deletes objects whose owners are all gone, and takes owners that are gone off the others."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._rounds: Rounds[Place] = Rounds(cluster, clock)
        self._seen = Cache()
        for kind in KINDS:
            self._seen.index(kind, owner=_owner_uids)
        self._places: dict[Uid, Place] = {}

    @property
    def quiet(self) -> bool:
        """Whether there is nothing left to look at."""
        return self._rounds.quiet

    async def run(self) -> None:
        """Collect; never ends."""
        await self._rounds.run(KINDS, self._take, self._look)

    def _take(self, change: Change) -> None:
        match change:
            case Changed(object=new):
                self._put(new)
            case Deleted(object=gone):
                self._forget(gone)
            case Synced(kind=kind, keys=keys):
                for one in self._seen.not_among(kind, keys):
                    self._forget(one)

    def _put(self, new: Object) -> None:
        place = Place(type(new), new.key)
        old = self._seen.get(place.kind, place.key)
        if old is not None and old.uid != new.uid:
            self._forget(old)
        self._seen.put(new)
        owned = all(one.uid in self._places for one in new.metadata.owner_references)
        if owned and old is not None and _ties(old) == _ties(new):
            return  # most changes are about something else
        self._places[new.uid] = place
        if new.metadata.owner_references or waits(new):
            self._rounds.mark(place)
        for one in old.metadata.owner_references if old is not None else ():
            self._look_at_owner(one.uid)

    def _forget(self, gone: Object) -> None:
        self._seen.drop(gone)
        self._places.pop(gone.uid, None)
        for dependent in self._dependents(gone):
            self._rounds.mark(Place(type(dependent), dependent.key))
        for one in gone.metadata.owner_references:
            self._look_at_owner(one.uid)

    def _dependents(self, owner: Object) -> list[Object]:
        return [one for kind in KINDS for one in self._seen.find(kind, "owner", owner.uid)]

    def _look_at_owner(self, uid: Uid) -> None:
        place = self._places.get(uid)
        owner = self._seen.get(place.kind, place.key) if place is not None else None
        if place is not None and owner is not None and waits(owner):
            self._rounds.mark(place)

    async def _look(self, place: Place) -> None:
        dependent = self._seen.get(place.kind, place.key)
        if dependent is None:
            return
        if waits(dependent):
            await self._let_go(dependent)
            return
        gone = [one.uid for one in dependent.metadata.owner_references if await self._is_gone(dependent, one)]
        left = remaining(dependent, lambda owner: owner.uid in gone)
        if left is None:
            return
        version = dependent.metadata.resource_version
        if not left:
            await self._cluster.delete(place.kind, place.key, version)
            return
        body = {"metadata": {"ownerReferences": [encoded(one) for one in left]}}
        await self._cluster.write(Merge(place.kind, place.key, version, body))

    async def _let_go(self, owner: Object) -> None:
        """Have the dependents of an object go or forget it; when none stands in its way any more, let it go."""
        dependents = self._dependents(owner)
        if ORPHAN in owner.metadata.finalizers:
            for one in dependents:
                await self._orphan(one, owner.uid)
            await self._unfinalize(owner, ORPHAN)
            return
        for one in dependents:
            if await self._has_another(one, owner.uid):
                await self._orphan(one, owner.uid)
            elif not one.deleting:
                await self._cluster.delete(type(one), one.key, one.metadata.resource_version)
        if not any(_blocks(one, owner.uid) for one in dependents):
            await self._unfinalize(owner, FOREGROUND)

    async def _has_another(self, dependent: Object, owner: Uid) -> bool:
        """Return whether an object belongs to somebody else who stays."""
        for one in dependent.metadata.owner_references:
            place = self._places.get(one.uid)
            other = self._seen.get(place.kind, place.key) if place is not None else None
            is_going = other is not None and other.deleting and FOREGROUND in other.metadata.finalizers
            if one.uid != owner and not is_going and not await self._is_gone(dependent, one):
                return True
        return False

    async def _orphan(self, dependent: Object, owner: Uid) -> None:
        left = [one for one in dependent.metadata.owner_references if one.uid != owner]
        body = {"metadata": {"ownerReferences": [encoded(one) for one in left] or None}}
        version = dependent.metadata.resource_version
        await self._cluster.write(Merge(type(dependent), dependent.key, version, body))

    async def _unfinalize(self, one: Object, finalizer: str) -> None:
        left = [other for other in one.metadata.finalizers if other != finalizer]
        body = {"metadata": {"finalizers": left or None}}
        await self._cluster.write(Merge(type(one), one.key, one.metadata.resource_version, body))

    async def _is_gone(self, dependent: Object, owner: OwnerReference) -> bool:
        """Return whether an owner is gone; one that nobody told of yet is asked for. Foreign kinds never are."""
        kind = kinds.by_kind(owner.api_version, owner.kind)
        if kind is None or owner.uid in self._places:
            return False
        namespace = dependent.metadata.namespace if kind.namespaced else ""
        try:
            found = await self._cluster.read(kind.type, Key(namespace, owner.name))
        except Gone:
            return True
        return found.uid != owner.uid


def _owner_uids(one: Object) -> tuple[Uid, ...]:
    return tuple(owner.uid for owner in one.metadata.owner_references)


def _blocks(dependent: Object, owner: Uid) -> bool:
    return any(one.uid == owner and one.block_owner_deletion for one in dependent.metadata.owner_references)
