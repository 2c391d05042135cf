"""Claims in a scheduling cycle: what kube-scheduler's plugin `DynamicResources` asks of a node.

Knows which claims a pod still needs allocated, whether an allocated one may be used from a node, and when it has to
be given up. Must not know the queue, the API or the other plugins. Behaviour is that of 1.36. Extended resources
that a DeviceClass stands for, pod groups and DeviceTaintRules are left out.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.cluster.scheduling.filters import SCORE_MAX, NodeInfo, Plugin, PodInfo, Refusal
from jackfield.cluster.scheduling.scheduler_cache import SchedulerCache
from jackfield.core.allocate import (
    Allocated,
    AllocationError,
    Allocator,
    Features,
    NoFit,
    Reason,
    node_matches,
)
from jackfield.model.claim import AllocationResult, DeviceRequest, ResourceClaim
from jackfield.model.meta import condition, holds
from jackfield.model.names import Key, NodeName, Seconds, Uid, named, seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod

ALTERNATIVES_MAX: Final = 8
"""The most alternatives a prioritized list may have; the first of them scores so much."""
NOT_AVAILABLE: Final = "resourceclaim not available on the node"
NOT_ALLOCATED: Final = "cannot allocate all claims"
_UNFIT_MAX: Final = 100_000


class Binding(StrEnum):
    """How far an allocated claim has come."""

    READY = "ready"
    PENDING = "pending"
    FAILED = "failed"


class Readiness(msgspec.Struct, frozen=True):
    """How far it has come, and in which words."""

    binding: Binding
    message: str = ""


class ClaimsCycle:
    """What one cycle learns about a pod's claims."""

    def __init__(self, info: PodInfo, claims: tuple[ResourceClaim, ...]) -> None:
        self.info = info
        self.claims = claims
        self.pending = tuple(one for one in claims if one.status.allocation is None)
        self.settled = tuple(one for one in claims if one.status.allocation is not None)
        self.signature = msgspec.msgpack.encode([one.spec for one in self.pending])
        """What is still asked for; pods that ask for the same get the same answer."""
        self.unavailable: dict[Key, ResourceClaim] = {}
        self.results: dict[NodeName, tuple[AllocationResult, ...]] = {}
        self.scores = any(
            request.first_available for one in self.pending for request in one.spec.devices.requests
        )
        """Whether the choice of devices makes one node better than another."""

    def allocations(self, node: NodeName) -> dict[Key, AllocationResult]:
        """Return what is to be allocated if the pod goes to that node."""
        results = self.results.get(node, ())
        return {claim.key: result for claim, result in zip(self.pending, results, strict=bool(results))}

    def score(self, node: NodeName) -> int:
        """Return the sum over the prioritized lists: 8 for the first alternative, 7 for the second."""
        results = self.results.get(node, ())
        return sum(
            _rank(request, result)
            for claim, result in zip(self.pending, results, strict=bool(results))
            for request in claim.spec.devices.requests
        )


class DynamicResources:
    """The plugin."""

    def __init__(self, cache: SchedulerCache, features: Features, binding_timeout: Seconds) -> None:
        self._cache = cache
        self._features = features
        self._timeout = binding_timeout
        self._allocator: Allocator | None = None
        self._allocator_for: tuple[int, Allocated] = (-1, Allocated())
        self._unfit: dict[tuple[bytes, NodeName], None] = {}
        self._unfit_since = -1

    # --- before nodes are looked at

    def gate(self, pod: Pod) -> str:
        """Return what must happen before the pod may enter the queue; empty if nothing."""
        for reference, name in zip(pod.spec.resource_claims, pod.claim_names, strict=True):
            if not name:
                return f'waiting for resourceclaim of "{reference.name}" to be created from its template'
            claim = self._cache.claims.get(Key(pod.metadata.namespace, name))
            if claim is None:
                return f'waiting for resourceclaim "{name}" to be created'
            if claim.deleting:
                return f'resourceclaim "{name}" is being deleted'
            if reference.resource_claim_template_name and not owned_by(claim, pod.uid):
                return f'resourceclaim "{name}" was not created for the pod'
        return ""

    def begin(self, info: PodInfo) -> ClaimsCycle | Refusal:
        """Return the pod's claims for a cycle, or why no node needs to be looked at."""
        pod = info.pod
        reason = self.gate(pod)
        if reason:
            return _refused(reason)
        claims = tuple(self._cache.claims[Key(pod.metadata.namespace, name)] for name in pod.claim_names)
        # A claim named twice by one pod is one claim.
        cycle = ClaimsCycle(info, tuple({claim.key: claim for claim in claims}.values()))
        for claim in cycle.pending:
            if self._cache.in_flight(claim.key):
                return _refused(f'resourceclaim "{claim.metadata.name}" is in the process of being allocated')
            for request, name in _classes(claim):
                if named(name) not in self._cache.classes:
                    return _refused(f"request {request}: device class {name} does not exist")
        return cycle

    # --- one node

    def refusal(self, cycle: ClaimsCycle, target: NodeInfo, now: Seconds) -> Refusal | None:
        """Return why the node will not do for the pod's claims; None if it will. Raises AllocationError."""
        assert target.node is not None
        unavailable = [one for one in cycle.settled if not self._available(one, target.node, now)]
        if unavailable:
            cycle.unavailable.update((one.key, one) for one in unavailable)
            return _refused(NOT_AVAILABLE)
        if not cycle.pending:
            return None
        found = self._allocate(cycle, target.node)
        if found is None:
            return _refused(NOT_ALLOCATED)
        cycle.results[target.node.name] = found
        return None

    def _available(self, claim: ResourceClaim, node: Node, now: Seconds) -> bool:
        assert claim.status.allocation is not None
        if not node_matches(claim.status.allocation.node_selector, node):
            return False
        if not self._features.binding_conditions:
            return True
        match readiness(claim).binding:
            case Binding.READY:
                return True
            case Binding.PENDING:
                return not timed_out(claim, self._timeout, now)
            case Binding.FAILED:
                return False

    def _allocate(self, cycle: ClaimsCycle, node: Node) -> tuple[AllocationResult, ...] | None:
        # Taking more devices never makes claims fit that did not: an answer of no stands until something is freed.
        if self._unfit_since != self._cache.devices_freed or len(self._unfit) > _UNFIT_MAX:
            self._unfit.clear()
            self._unfit_since = self._cache.devices_freed
        known = (cycle.signature, node.name)
        if known in self._unfit:
            return None
        found = self._current().allocate(cycle.pending, node)
        if not isinstance(found, NoFit):
            return found
        if found.reason is Reason.SEARCH_LIMIT:
            # Upstream's filterTimeout: the whole cycle ends in an error.
            raise AllocationError(f"timed out trying to allocate devices for node {node.name}")
        self._unfit[known] = None
        return None

    def _current(self) -> Allocator:
        """Return the allocator for what is offered and taken now; the same one until that changes."""
        taken = self._cache.allocated()
        offered, taken_before = self._allocator_for
        if self._allocator is None or offered != self._cache.offered:
            classes = {key.name: one for key, one in self._cache.classes.items()}
            slices = tuple(self._cache.slices.values())
            if self._allocator is None:
                self._allocator = Allocator(slices, classes, taken, self._features)
            else:
                self._allocator = self._allocator.derive(slices=slices, classes=classes, allocated=taken)
        elif taken_before is not taken:
            self._allocator = self._allocator.derive(allocated=taken)
        self._allocator_for = (self._cache.offered, taken)
        return self._allocator


# --- afterwards


def disposable(cycle: ClaimsCycle) -> tuple[ResourceClaim, ...]:
    """Return the claims that may be deallocated to try other devices: unavailable, and nobody else's."""
    return tuple(
        claim
        for claim in cycle.unavailable.values()
        if all(user.uid == cycle.info.uid for user in claim.status.reserved_for)
    )


def normalised(scores: Mapping[NodeName, int]) -> dict[NodeName, int]:
    """Return the scores stretched to 0..100."""
    most = max(scores.values(), default=0)
    return {name: score * SCORE_MAX // most if most else 0 for name, score in scores.items()}


# --- binding conditions


def awaits_conditions(claim: ResourceClaim) -> bool:
    """Return whether any device of the claim has binding conditions."""
    return any(result.binding_conditions for result in claim.results)


def readiness(claim: ResourceClaim) -> Readiness:
    """Return whether the devices may be used: the first device that is not ready has the last word."""
    for result in claim.results:
        if not result.binding_conditions:
            continue
        conditions = claim.conditions(result.id)
        if not conditions:
            return Readiness(Binding.PENDING)
        for kind in result.binding_failure_conditions:
            found = condition(conditions, kind)
            if found is not None and found.true:
                return Readiness(
                    Binding.FAILED,
                    f'claim {claim.metadata.name} binding failed: reason={found.reason}, message="{found.message}"',
                )
        if not all(holds(conditions, kind) for kind in result.binding_conditions):
            return Readiness(Binding.PENDING)
    return Readiness(Binding.READY)


def timed_out(claim: ResourceClaim, timeout: Seconds, now: Seconds) -> bool:
    """Return whether the claim was allocated so long ago that it should have become ready."""
    allocation = claim.status.allocation
    if allocation is None or not allocation.allocation_timestamp:
        return False
    return seconds(allocation.allocation_timestamp) + timeout < now


# --- leaves


def _refused(reason: str) -> Refusal:
    return Refusal(Plugin.DYNAMIC_RESOURCES, (reason,))


def owned_by(claim: ResourceClaim, pod: Uid) -> bool:
    """Return whether the claim was made for the pod."""
    return any(owner.controller and owner.uid == pod for owner in claim.metadata.owner_references)


def _classes(claim: ResourceClaim) -> list[tuple[str, str]]:
    """Return every class the claim names, with the request that names it."""
    names = []
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            names.append((request.name, request.exactly.device_class_name))
        names += [(f"{request.name}/{one.name}", one.device_class_name) for one in request.first_available]
    return names


def _rank(request: DeviceRequest, result: AllocationResult) -> int:
    chosen = {one.request for one in result.devices.results}
    for index, alternative in enumerate(request.first_available):
        if f"{request.name}/{alternative.name}" in chosen:
            return ALTERNATIVES_MAX - index
    return 0
