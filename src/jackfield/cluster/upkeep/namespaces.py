"""The life of a namespace: what it gets when it begins, and how it is emptied before it goes.

Knows accounts, the certificate of the API, and that a namespace goes last. Must not know what lives in one.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from jackfield.cluster.plugins import ROOT_CERTIFICATE
from jackfield.cluster.upkeep.cache import Cache
from jackfield.cluster.upkeep.rounds import Rounds
from jackfield.codec import kinds
from jackfield.codec.encoding import encoded
from jackfield.model.account import ServiceAccount
from jackfield.model.config import ConfigMap
from jackfield.model.meta import Condition, Object, ObjectMeta, with_condition
from jackfield.model.names import Key, Time, named, rfc3339
from jackfield.model.namespace import Namespace
from jackfield.model.pod import Pod
from jackfield.ports import Change, Changed, Clock, Cluster, Conflict, Deleted, Gone, Merge, Synced

KUBERNETES: Final = "kubernetes"
CONTENT: Final[tuple[type[Object], ...]] = tuple(one for one in kinds.TYPES if one.namespaced)
KINDS: Final[tuple[type[Object], ...]] = (Namespace, *CONTENT)
_DESCRIPTION: Final = {
    "kubernetes.io/description": (
        "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
        "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
        "Kubernetes clusters."
    )
}


class FinalizingCluster(Cluster, Protocol):
    """A cluster in which somebody can agree to the end of a namespace."""

    async def finalize(self, namespace: Namespace) -> None:
        """Write the finalizers in a namespace's spec."""


class Namespaces:
    """Furnishes namespaces that begin, and empties those that are to go."""

    def __init__(self, cluster: FinalizingCluster, clock: Clock, certificate: str = "") -> None:
        self._cluster = cluster
        self._clock = clock
        self._certificate = certificate
        self._rounds: Rounds[str] = Rounds(cluster, clock)
        self._seen = Cache()

    @property
    def quiet(self) -> bool:
        """Whether there is nothing left to look at."""
        return self._rounds.quiet

    async def run(self) -> None:
        """Do so; never ends."""
        self._seen = Cache()
        for kind in CONTENT:
            self._seen.index(kind, space=_space)
        await self._rounds.run(KINDS, self._take, self._look)

    def _take(self, change: Change) -> None:
        match change:
            case Changed(object=new):
                if self._seen.put(new):
                    self._mark(new)
            case Deleted(object=gone):
                if self._seen.drop(gone):
                    self._mark(gone)
            case Synced(kind=kind, keys=keys):
                for one in self._seen.not_among(kind, keys):
                    self._seen.drop(one)
                    self._mark(one)

    def _mark(self, one: Object) -> None:
        """Have a namespace looked at, unless what happened in it is no concern of ours."""
        if isinstance(one, Namespace):
            self._rounds.mark(one.metadata.name)
            return
        place = self._seen.get(Namespace, named(one.key.namespace))
        if isinstance(one, ServiceAccount | ConfigMap) or (place is not None and place.deleting):
            self._rounds.mark(one.key.namespace)

    async def _look(self, name: str) -> None:
        found = self._seen.get(Namespace, named(name))
        if found is None:
            return
        if not found.deleting:
            await self._furnish(name)
        elif KUBERNETES in found.spec.finalizers:
            await self._empty(found)

    async def _furnish(self, name: str) -> None:
        """Make what every namespace has; whoever deletes it gets it again."""
        there = self._seen.get(ServiceAccount, Key(name, "default"))
        if there is None:
            await self._make(ServiceAccount(metadata=ObjectMeta(name="default", namespace=name)))
        if self._certificate and self._seen.get(ConfigMap, Key(name, ROOT_CERTIFICATE)) is None:
            metadata = ObjectMeta(name=ROOT_CERTIFICATE, namespace=name, annotations=_DESCRIPTION)
            await self._make(ConfigMap(metadata=metadata, data={"ca.crt": self._certificate}))

    async def _make(self, new: Object) -> None:
        with contextlib.suppress(Conflict):  # it is there, and its event is on the way
            await self._cluster.create(new)

    async def _empty(self, namespace: Namespace) -> None:
        """Delete pods, then all else, and agree to the end when nothing is left."""
        name = namespace.metadata.name
        content = {kind: self._seen.find(kind, "space", name) for kind in CONTENT}
        for one in content[Pod] or [one for found in content.values() for one in found]:
            if not one.deleting:
                with contextlib.suppress(Gone):
                    await self._cluster.delete(type(one), one.key, one.metadata.resource_version)
        if any(content.values()):
            if all(one.deleting for one in content[Pod]):
                await self._tell(namespace, content)
            return
        left = tuple(one for one in namespace.spec.finalizers if one != KUBERNETES)
        spec = msgspec.structs.replace(namespace.spec, finalizers=left)
        await self._cluster.finalize(msgspec.structs.replace(namespace, spec=spec))

    async def _tell(self, namespace: Namespace, content: Mapping[type[Object], Sequence[Object]]) -> None:
        """Say what keeps a namespace, once all of it has been asked to go."""
        held = {kind: [one for one in found if one.deleting] for kind, found in content.items()}
        if not any(held.values()):
            return
        conditions = namespace.status.conditions
        for one in _conditions(held, rfc3339(self._clock.now())):
            conditions = with_condition(conditions, one)
        if conditions != namespace.status.conditions:
            body = {"status": {"conditions": [encoded(one) for one in conditions]}}
            version = namespace.metadata.resource_version
            await self._cluster.write(Merge(Namespace, namespace.key, version, body, status=True))


def _conditions(held: Mapping[type[Object], Sequence[Object]], now: Time) -> Iterable[Condition]:
    counts = {kinds.of(kind).resource: len(found) for kind, found in held.items() if found}
    finalizers = Counter(name for found in held.values() for one in found for name in one.metadata.finalizers)
    remaining = ", ".join(f"{name}. has {count} resource instances" for name, count in sorted(counts.items()))
    waiting = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    told = (
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            f"Some resources are remaining: {remaining}",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True" if waiting else "False",
            "SomeFinalizersRemain" if waiting else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {waiting}"
            if waiting
            else "All content-preserving finalizers finished",
        ),
    )
    return (
        Condition(kind, status, reason, message, last_transition_time=now)
        for kind, status, reason, message in told
    )


def _space(one: Object) -> tuple[str, ...]:
    return (one.key.namespace,)
