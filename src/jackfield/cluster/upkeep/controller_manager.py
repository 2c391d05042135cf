"""The loop around the decisions of `claims`: kube-controller-manager, as far as claims and pods need it.

Knows which change touches which pod or claim, and how each action is carried out. Must not decide anything.
"""

import contextlib
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum
from typing import Protocol

import msgspec

from jackfield.cluster.recorder import WARNING, Recorder
from jackfield.cluster.upkeep import claims
from jackfield.cluster.upkeep.cache import Cache
from jackfield.cluster.upkeep.rounds import Rounds
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.meta import Object
from jackfield.model.names import Key, Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.ports import Change, Changed, Clock, Cluster, Deleted, Gone, Merge, Refused, Synced

KINDS: tuple[type[Object], ...] = (Node, Pod, ResourceClaim, ResourceClaimTemplate)

CREATION_FAILED = "FailedResourceClaimCreation"


class EndingCluster(Cluster, Protocol):
    """A cluster in which a pod can be ended at once, as for a node that is gone."""

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Delete on exactly this version, after this grace."""


class Subject(Enum):
    """What a round is about."""

    POD = "pod"
    CLAIM = "claim"


class Round(msgspec.Struct, frozen=True, gc=False):
    """One pod or claim to look at."""

    subject: Subject
    key: Key


class Seen(Cache):
    """What the controller has heard."""

    def __init__(self) -> None:
        super().__init__()
        self.index(Pod, node=_nodes, claim=_claims_of_pod, template=_templates)
        self.index(ResourceClaim, owner=_owners, consumer=_consumers)

    def pod(self, key: Key) -> Pod | None:
        """Return the pod, or None."""
        return self.get(Pod, key)

    def node(self, key: Key) -> Node | None:
        """Return the node, or None."""
        return self.get(Node, key)

    def template(self, key: Key) -> ResourceClaimTemplate | None:
        """Return the template, or None."""
        return self.get(ResourceClaimTemplate, key)

    def claim(self, key: Key) -> ResourceClaim | None:
        """Return the claim, or None."""
        return self.get(ResourceClaim, key)

    def claims_made_for(self, pod: Uid) -> tuple[ResourceClaim, ...]:
        """Return the claims that the pod owns."""
        return self.find(ResourceClaim, "owner", pod)

    def touched(self, one: Object) -> Iterator[Round]:
        """Yield the rounds that a change of an object calls for; costs its neighbourhood."""
        match one:
            case Pod():
                yield Round(Subject.POD, one.key)
                for index in ("owner", "consumer"):
                    yield from _rounds(Subject.CLAIM, self.find(ResourceClaim, index, one.uid))
            case ResourceClaim():
                yield Round(Subject.CLAIM, one.key)
                yield from _rounds(Subject.POD, self.find(Pod, "claim", one.key))
                yield from (Round(Subject.POD, Key(one.key.namespace, name)) for name in _owner_names(one))
            case ResourceClaimTemplate():
                yield from _rounds(Subject.POD, self.find(Pod, "template", one.key))
            case Node():
                yield from _rounds(Subject.POD, self.find(Pod, "node", one.name))
            case _:
                return


class ControllerManager:
    """Makes claims from templates, takes them back from pods that have ended, and clears up after lost nodes."""

    def __init__(self, cluster: EndingCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._rounds: Rounds[Round] = Rounds(cluster, clock)
        self._recorder = Recorder(cluster, clock, "resource-claim-controller")
        self._seen = Seen()

    @property
    def quiet(self) -> bool:
        """Whether there is nothing left to look at."""
        return self._rounds.quiet

    async def run(self) -> None:
        """Do so; never ends."""
        self._seen = Seen()
        await self._rounds.run(KINDS, self._take, self._look)

    # --- hearing

    def _take(self, change: Change) -> None:
        match change:
            case Changed(object=new):
                self._put(new)
            case Deleted(object=gone):
                self._drop(gone)
            case Synced(kind=kind, keys=keys):
                for one in self._seen.not_among(kind, keys):
                    self._drop(one)

    def _put(self, new: Object) -> None:
        # What a change touches is asked of the old and of the new: another object may have taken the name.
        old = self._seen.get(type(new), new.key)
        before = tuple(self._seen.touched(old)) if old is not None else ()
        if self._seen.put(new):
            self._rounds.mark(*before, *self._seen.touched(new))

    def _drop(self, gone: Object) -> None:
        if self._seen.drop(gone):
            self._rounds.mark(*self._seen.touched(gone))

    # --- looking and acting

    async def _look(self, one: Round) -> None:
        for action in await self._actions(one):
            await self._act(action)

    async def _actions(self, one: Round) -> tuple[claims.Action, ...]:
        match one.subject:
            case Subject.POD:
                pod = self._seen.pod(one.key)
                if pod is None:
                    return ()
                await self._ask_for_node(pod)
                return claims.pod_actions(pod, self._seen)
            case Subject.CLAIM:
                claim = self._seen.claim(one.key)
                if claim is None:
                    return ()
                await self._ask_for_absent(claim)
                return claims.claim_actions(claim, self._seen)

    async def _ask_for_node(self, pod: Pod) -> None:
        """Read a node that nobody has told of: it may be new, and its pods must not go for that."""
        node = named(pod.spec.node_name)
        if node.name and self._seen.node(node) is None:
            with contextlib.suppress(Gone):
                self._put(await self._cluster.read(Node, node))

    async def _ask_for_absent(self, claim: ResourceClaim) -> None:
        """Read pods that nobody has told of: an event may be late, and a claim must not be taken from a new pod."""
        for key in claims.absent_consumers(claim, self._seen):
            with contextlib.suppress(Gone):
                self._put(await self._cluster.read(Pod, key))

    async def _act(self, action: claims.Action) -> None:
        match action:
            case claims.Create(claim=claim):
                await self._make(claim)
            case claims.Delete(kind=kind, key=key, version=version, at_once=at_once):
                await self._cluster.delete(kind, key, version, grace_seconds=0 if at_once else None)
            case claims.Release(claim=claim):
                await self._release(claim)
            case claims.Complain(pod=pod, words=words):
                await self._recorder.tell(pod, CREATION_FAILED, words, WARNING)
            case Merge():
                self._put(await self._cluster.write(action))

    async def _make(self, claim: ResourceClaim) -> None:
        try:
            self._put(await self._cluster.create(claim))
        except Refused as refused:
            # The template is at fault, and only the pod's owner can mend it: tell them.
            owner = claims.owner_pod(claim)
            pod = self._seen.pod(Key(claim.key.namespace, owner.name)) if owner else None
            if pod is not None:
                await self._recorder.tell(pod, CREATION_FAILED, str(refused), WARNING)

    async def _release(self, claim: ResourceClaim) -> None:
        # The devices go before the protection: unprotected, the claim could vanish while it still holds them.
        freed = await self._cluster.write(claims.deallocated(claim))
        assert isinstance(freed, ResourceClaim)
        self._put(freed)
        if claims.PROTECTION in freed.metadata.finalizers:
            self._put(await self._cluster.write(claims.unprotected(freed)))


def _nodes(pod: Pod) -> tuple[Hashable, ...]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def _claims_of_pod(pod: Pod) -> tuple[Hashable, ...]:
    return tuple(Key(pod.key.namespace, name) for name in dict.fromkeys(pod.claim_names) if name)


def _templates(pod: Pod) -> tuple[Hashable, ...]:
    names = dict.fromkeys(one.resource_claim_template_name for one in pod.spec.resource_claims)
    return tuple(Key(pod.key.namespace, name) for name in names if name)


def _rounds(subject: Subject, objects: Iterable[Object]) -> Iterator[Round]:
    return (Round(subject, one.key) for one in objects)


def _owner_names(claim: ResourceClaim) -> tuple[str, ...]:
    owner = claims.owner_pod(claim)
    return (owner.name,) if owner else ()


def _owners(claim: ResourceClaim) -> tuple[Hashable, ...]:
    owner = claims.owner_pod(claim)
    return (owner.uid,) if owner else ()


def _consumers(claim: ResourceClaim) -> tuple[Hashable, ...]:
    return tuple(one.uid for one in claim.status.reserved_for)
