"""The garbage collector: what belongs to nobody any more is deleted, in the background.

Knows owner references. Must not know what any kind is for.
"""

from collections.abc import Callable

import msgspec

from jackfield.cluster.cache import Cache
from jackfield.cluster.rounds import Rounds
from jackfield.codec import kinds
from jackfield.codec.encoding import encoded
from jackfield.model.meta import Object, OwnerReference
from jackfield.model.names import Key, Uid
from jackfield.ports import Change, Changed, Clock, Cluster, Deleted, Gone, Merge, Synced


class Place(msgspec.Struct, frozen=True):
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


class Collector:
    """Deletes objects whose owners are all gone, and takes owners that are gone off the others."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._rounds: Rounds[Place] = Rounds(cluster, clock)
        self._seen = Cache()
        for kind in kinds.TYPES:
            self._seen.index(kind, owner=_owner_uids)
        self._uids: dict[Uid, None] = {}

    @property
    def quiet(self) -> bool:
        """Whether there is nothing left to look at."""
        return self._rounds.quiet

    async def run(self) -> None:
        """Collect; never ends."""
        await self._rounds.run(kinds.TYPES, self._take, self._look)

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
        old = self._seen.get(type(new), new.key)
        if old is not None and old.uid != new.uid:
            self._forget(old)
        self._seen.put(new)
        self._uids[new.uid] = None
        if new.metadata.owner_references:
            self._rounds.mark(Place(type(new), new.key))

    def _forget(self, gone: Object) -> None:
        self._seen.drop(gone)
        self._uids.pop(gone.uid, None)
        for kind in kinds.TYPES:
            for dependent in self._seen.find(kind, "owner", gone.uid):
                self._rounds.mark(Place(kind, dependent.key))

    async def _look(self, place: Place) -> None:
        dependent = self._seen.get(place.kind, place.key)
        if dependent is None:
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

    async def _is_gone(self, dependent: Object, owner: OwnerReference) -> bool:
        """Return whether an owner is gone; one that nobody told of yet is asked for. Foreign kinds never are."""
        kind = kinds.by_kind(owner.api_version, owner.kind)
        if kind is None or owner.uid in self._uids:
            return False
        namespace = dependent.metadata.namespace if kind.namespaced else ""
        try:
            found = await self._cluster.read(kind.type, Key(namespace, owner.name))
        except Gone:
            return True
        return found.uid != owner.uid


def _owner_uids(one: Object) -> tuple[Uid, ...]:
    return tuple(owner.uid for owner in one.metadata.owner_references)
