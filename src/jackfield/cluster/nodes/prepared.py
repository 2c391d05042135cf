"""What a kubelet remembers of claims, and how it has them prepared and unprepared.

Knows the order of checks, and that a claim is prepared once however many pods share it. Must not know how pods start
and stop, or what a plugin does. Every answer is a text: empty means done, anything else says what is in the way, and
asking again is always allowed.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from jackfield.cluster.scheduling.dynamic_resources import owned_by
from jackfield.model.claim import ResourceClaim
from jackfield.model.names import Key, NodeName, Uid
from jackfield.model.pod import Pod, PodResourceClaim
from jackfield.ports import Cluster, Conflict, Gone, Refused, Retry


class Plugin(Protocol):
    """A DRA driver on a node. Both calls may be repeated."""

    async def prepare(self, claim: Key, uid: Uid) -> str:
        """Make the claim's devices usable on this node; return what is in the way, or nothing."""

    async def unprepare(self, claim: Key, uid: Uid) -> str:
        """Undo it; the claim may be gone by now."""


Plugins = Callable[[NodeName], Mapping[str, Plugin]]
"""The drivers registered on a node, by name, at this moment."""


class ClaimInfo:
    """A claim that pods on a node use."""

    def __init__(self, claim: ResourceClaim) -> None:
        self.key = claim.key
        self.uid = claim.uid
        self.drivers = tuple(dict.fromkeys(result.driver for result in claim.results))
        self.pods: dict[Uid, None] = {}
        self.prepared = False
        self.unpreparing = False
        self.lock = asyncio.Lock()


class Checkpoint:
    """What survives a kubelet's restart: the claims that are, or may be, prepared on each node."""

    def __init__(self) -> None:
        self._nodes: dict[NodeName, dict[Key, ClaimInfo]] = {}

    def claims(self, node: NodeName) -> dict[Key, ClaimInfo]:
        """Return the claims of a node."""
        return self._nodes.setdefault(node, {})

    def used_by(self, node: NodeName, pod: Uid) -> tuple[ClaimInfo, ...]:
        """Return the claims that a pod uses."""
        return tuple(one for one in self._nodes.get(node, {}).values() if pod in one.pods)

    def users(self) -> tuple[tuple[NodeName, Uid], ...]:
        """Return every pod that uses a claim, with its node."""
        found = {
            (node, pod): None
            for node, all_ in self._nodes.items()
            for one in all_.values()
            for pod in one.pods
        }
        return tuple(found)

    def forget(self, node: NodeName) -> None:
        """Lose a machine, and all that was prepared on it."""
        self._nodes.pop(node, None)


class Preparer:
    """Has claims prepared and unprepared."""

    def __init__(self, cluster: Cluster, plugins: Plugins, checkpoint: Checkpoint) -> None:
        self._cluster = cluster
        self._plugins = plugins
        self.checkpoint = checkpoint

    def has_prepared(self, node: NodeName, pod: Pod) -> bool:
        """Return whether all claims of a pod were prepared for it, though they may be about to be unprepared."""
        used = [one.key.name for one in self.checkpoint.used_by(node, pod.uid) if one.prepared]
        return set(used) == set(pod.claim_names)

    async def prepare(self, node: NodeName, pod: Pod) -> str:
        """Prepare all claims of a pod."""
        for reference, name in zip(pod.spec.resource_claims, pod.claim_names, strict=True):
            if not name:
                return f"pod {pod.key}: no claim has been made for {reference.name} yet"
            try:
                claim = await self._cluster.read(ResourceClaim, Key(pod.metadata.namespace, name))
            except (Conflict, Gone, Refused, Retry) as error:
                return f"failed to fetch ResourceClaim {name} referenced by pod {pod.metadata.name}: {error}"
            problem = _unusable(claim, pod, reference) or await self._prepare(node, pod.uid, claim)
            if problem:
                return problem
        return ""

    async def unprepare(self, node: NodeName, pod: Uid) -> str:
        """Unprepare the claims that nobody but this pod uses, and forget that it used the others."""
        for info in self.checkpoint.used_by(node, pod):
            if len(info.pods) > 1:
                del info.pods[pod]
                continue
            info.unpreparing = True
            async with info.lock:
                problem = await self._unprepare(node, info)
            if problem:
                return problem
        return ""

    async def _prepare(self, node: NodeName, pod: Uid, claim: ResourceClaim) -> str:
        claims = self.checkpoint.claims(node)
        info = claims.setdefault(claim.key, ClaimInfo(claim))
        if info.uid != claim.uid:
            return (
                f"old ResourceClaim with same name {claim.metadata.name} and different UID {info.uid} "
                "still exists (previous pod force-deleted?!)"
            )
        if info.unpreparing:
            return f"ResourceClaim {claim.metadata.name} is still being unprepared"
        # Written before the driver is asked: whatever it did is undone even if its answer is lost.
        info.pods[pod] = None
        async with info.lock:
            for driver in () if info.prepared else info.drivers:
                plugin = self._plugins(node).get(driver)
                if plugin is None:
                    return f"DRA driver {driver} is not registered"
                problem = await plugin.prepare(info.key, info.uid)
                if problem:
                    return f"NodePrepareResources failed for ResourceClaim {claim.metadata.name}: {problem}"
            info.prepared = True
        return ""

    async def _unprepare(self, node: NodeName, info: ClaimInfo) -> str:
        claims = self.checkpoint.claims(node)
        if claims.get(info.key) is not info:
            return ""  # somebody else was faster, and the claim may be in use again
        for driver in info.drivers:
            plugin = self._plugins(node).get(driver)
            if plugin is None:
                return f"DRA driver {driver} is not registered"
            problem = await plugin.unprepare(info.key, info.uid)
            if problem:
                return f"NodeUnprepareResources failed for ResourceClaim {info.key.name}: {problem}"
        del claims[info.key]
        return ""


def _unusable(claim: ResourceClaim, pod: Pod, reference: PodResourceClaim) -> str:
    """Return why the pod may not use the claim."""
    name = claim.metadata.name
    if reference.resource_claim_template_name and not owned_by(claim, pod.uid):
        return f"ResourceClaim {name} was not created for pod {pod.metadata.name}"
    if not any(user.uid == pod.uid for user in claim.status.reserved_for):
        return f"pod {pod.metadata.name}({pod.uid}) is not allowed to use resource claim {name}({claim.uid})"
    if claim.status.allocation is None:
        return f"ResourceClaim {name} is not allocated"
    return ""
