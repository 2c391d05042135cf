"""The binding cycle: from a decision to a bound pod, or back to where it was.

Knows what kube-scheduler 1.36 writes, in which order, and what it does when the answer is no. Must not know how
the decision was made. PreBind writes each claim's finalizer, then its allocation and reservation in one status
update, waits for the binding conditions, and only then is the pod bound. A failure takes the pod off the claims'
`reservedFor` and nothing more: deallocation is a later cycle's business.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from jackfield.cluster.recorder import Recorder
from jackfield.cluster.scheduling.dynamic_resources import Binding, awaits_conditions, readiness, timed_out
from jackfield.cluster.scheduling.filters import PodInfo
from jackfield.cluster.scheduling.placement import Placed
from jackfield.cluster.scheduling.scheduler_cache import SchedulerCache
from jackfield.codec.encoding import encoded
from jackfield.controllers.ending import is_ending
from jackfield.model.claim import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from jackfield.model.meta import Object
from jackfield.model.names import Key, Seconds, Uid, Version, rfc3339
from jackfield.model.pod import Pod, PodCondition
from jackfield.ports import Clock, Cluster, Conflict, Gone, Merge, Refused, Retry

DELETE_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
WRITES_MAX: Final = 5
"""How often a write is repeated on what a fresh read shows."""
_BIND_CONDITION: Final = "PodScheduled"


class PreBind(StrEnum):
    """How a PreBind ended, as the scheduler's metrics call it."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    ERROR = "error"


class BindingFailedError(Exception):
    """The pod cannot be bound there now."""

    def __init__(self, status: PreBind, message: str) -> None:
        super().__init__(message)
        self.status = status


@contextmanager
def _as_failure(step: str) -> Iterator[None]:
    """Turn what the API answers into a failure of this step, and say which step failed."""
    try:
        yield
    except BindingFailedError as failed:
        raise BindingFailedError(failed.status, f"{step}: {failed}") from failed
    except (Conflict, Gone, Refused, Retry) as error:
        raise BindingFailedError(PreBind.ERROR, f"{step}: {error}") from error


class BindingTimes(msgspec.Struct, frozen=True):
    """How long is waited for binding conditions, and how often they are looked at."""

    timeout: Seconds = Seconds(600.0)
    poll: Seconds = Seconds(5.0)


class BindingCluster(Cluster, Protocol):
    """A cluster in which pods can be bound: nobody may write where a pod runs in any other way."""

    async def bind(self, pod: Key, uid: Uid, node: str) -> Object:
        """Bind exactly this pod to a node, and say of it that it is scheduled."""


class Binder:
    """Carries decisions out. Raises BindingFailedError where one cannot be."""

    def __init__(
        self,
        cluster: BindingCluster,
        clock: Clock,
        cache: SchedulerCache,
        recorder: Recorder,
        times: BindingTimes,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._cache = cache
        self._recorder = recorder
        self._times = times
        self._waits: dict[Uid, asyncio.Task[None]] = {}

    async def bind(self, info: PodInfo, placed: Placed) -> None:
        """Write the claims, wait for their conditions, bind the pod."""
        if placed.claims:
            with _as_failure('running PreBind plugin "DynamicResources"'):
                await self._pre_bind(info, placed)
        with _as_failure('running Bind plugin "DefaultBinder"'):
            await self._bind(info.pod, placed)

    def give_up(self, pod: Uid) -> None:
        """End the pod's wait for its conditions, if it waits: it is not wanted any more."""
        wait = self._waits.get(pod)
        if wait is not None:
            wait.cancel()

    async def unreserve(self, info: PodInfo, placed: Placed) -> None:
        """Take the pod off its claims' `reservedFor`; what cannot be written is left, as by the real one."""
        for key in placed.claims:
            self._cache.landed(key)
            try:
                await self._unreserve(info.uid, key)
            except (Conflict, Gone, Refused, Retry):
                continue

    async def deallocate(self, claim: ResourceClaim) -> None:
        """Take an allocation back, on exactly the version that was judged. Raises the port's errors."""
        body: dict[str, object] = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
        # Not assumed: as upstream, the event that comes back is what brings the pod its next attempt.
        await self._write(claim, body, status=True)

    # --- PreBind

    async def _pre_bind(self, info: PodInfo, placed: Placed) -> None:
        nominated = Merge(
            Pod, info.key, Version(""), {"status": {"nominatedNodeName": placed.node}}, status=True
        )
        await self._cluster.write(nominated)
        waits = False
        for key in placed.claims:
            claim = await self._reserve(info.pod, key, placed.allocations.get(key))
            waits = waits or awaits_conditions(claim)
        if waits:
            await self._await_conditions(info, placed)

    async def _reserve(self, pod: Pod, key: Key, allocation: AllocationResult | None) -> ResourceClaim:
        """Write allocation and reservation, on what a fresh read shows if the claim has changed meanwhile."""
        claim = self._cache.claims.get(key)
        if claim is None:
            raise BindingFailedError(PreBind.ERROR, f"claim {key.name} is gone")
        try:
            for _ in range(WRITES_MAX):
                try:
                    written = await self._reserve_once(pod, claim, allocation)
                except Conflict:
                    # As upstream, the claim may by now be another of the same name.
                    claim = await self._cluster.read(ResourceClaim, key)
                    continue
                self._cache.put_claim(written)
                return written
            raise BindingFailedError(PreBind.ERROR, f"claim {key.name} keeps changing")
        finally:
            # Written or not, what counts from now on is what the cache shows. If the answer of the write got lost,
            # the device is believed free until the event arrives: upstream's behaviour, and our controllers' to bear.
            self._cache.landed(key)

    async def _reserve_once(
        self, pod: Pod, claim: ResourceClaim, allocation: AllocationResult | None
    ) -> ResourceClaim:
        name = claim.metadata.name
        if claim.deleting:
            raise BindingFailedError(PreBind.ERROR, f"claim {name} got deleted in the meantime")
        status: dict[str, object] = {}
        if allocation is not None:
            if claim.status.allocation is not None:
                raise BindingFailedError(
                    PreBind.ERROR, f"claim {name} got allocated elsewhere in the meantime"
                )
            if DELETE_PROTECTION not in claim.metadata.finalizers:
                finalizers = [*claim.metadata.finalizers, DELETE_PROTECTION]
                claim = await self._write(claim, {"metadata": {"finalizers": finalizers}}, status=False)
            now = rfc3339(self._clock.now())
            stamped = msgspec.structs.replace(allocation, allocation_timestamp=now)
            status["allocation"] = encoded(stamped)
        elif claim.status.allocation is None:
            raise BindingFailedError(PreBind.ERROR, f"claim {name} got deallocated in the meantime")
        users = claim.status.reserved_for
        if not any(user.uid == pod.uid for user in users):
            us = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.uid)
            status["reservedFor"] = [encoded(user) for user in (*users, us)]
        return await self._write(claim, {"status": status}, status=True) if status else claim

    async def _await_conditions(self, info: PodInfo, placed: Placed) -> None:
        waited_for = ", ".join(key.name for key in placed.claims)
        await self._recorder.tell(
            info.pod,
            "BindingConditionsPending",
            f"waiting for binding conditions for device on node {placed.node}: claims {waited_for}",
        )
        if self._unwanted(info):
            raise BindingFailedError(PreBind.ERROR, "the pod was deleted")
        wait = asyncio.get_running_loop().create_task(self._poll(placed))
        self._waits[info.uid] = wait
        try:
            await wait
        except asyncio.CancelledError:
            if is_ending():
                raise
            raise BindingFailedError(PreBind.ERROR, "the pod was deleted while it waited") from None
        finally:
            del self._waits[info.uid]

    async def _poll(self, placed: Placed) -> None:
        deadline = Seconds(self._clock.now() + self._times.timeout)
        while not self._all_ready(placed):
            left = deadline - self._clock.now()
            if left <= 0:
                raise BindingFailedError(PreBind.TIMEOUT, "device binding timeout")
            await self._clock.sleep(Seconds(min(self._times.poll, left)))

    def _all_ready(self, placed: Placed) -> bool:
        """Return whether all claims are ready; the first that is not ends the look."""
        for key in placed.claims:
            claim = self._cache.claims.get(key)
            if claim is None or claim.status.allocation is None:
                raise BindingFailedError(PreBind.ERROR, f"claim {key.name} is not allocated any more")
            found = readiness(claim)
            if found.binding is Binding.FAILED:
                raise BindingFailedError(PreBind.FAILURE, found.message)
            if found.binding is Binding.PENDING:
                if timed_out(claim, self._times.timeout, self._clock.now()):
                    raise BindingFailedError(PreBind.TIMEOUT, f"claim {key.name} binding timeout")
                return False
        return True

    def _unwanted(self, info: PodInfo) -> bool:
        now = self._cache.pods.get(info.key)
        return now is None or now.uid != info.uid or now.pod.deleting

    # --- Bind

    async def _bind(self, pod: Pod, placed: Placed) -> None:
        await self._cluster.bind(pod.key, pod.uid, placed.node)

    async def condition(self, pod: Pod, new: PodCondition) -> None:
        """Write the condition PodScheduled, unless the pod says so already or is bound by now."""
        try:
            for _ in range(WRITES_MAX):
                status = self._status_with(pod, new)
                if not status:
                    return
                version = pod.metadata.resource_version
                try:
                    await self._cluster.write(Merge(Pod, pod.key, version, {"status": status}, status=True))
                except Conflict:
                    uid, pod = pod.uid, await self._cluster.read(Pod, pod.key)
                    if pod.uid != uid or (pod.spec.node_name and new.status != "True"):
                        return
                else:
                    return
        except (Gone, Refused, Retry):
            return  # a condition is for people to read; the next attempt writes it again

    def _status_with(self, pod: Pod, new: PodCondition) -> dict[str, object]:
        """Return what has to be written for the condition to hold; nothing if it does."""
        status: dict[str, object] = {"nominatedNodeName": None} if pod.status.nominated_node_name else {}
        old = next((one for one in pod.status.conditions if one.type == new.type), None)
        same = old is not None and old.status == new.status
        since = old.last_transition_time if old is not None and same else rfc3339(self._clock.now())
        seen = pod.metadata.generation
        new = msgspec.structs.replace(new, last_transition_time=since, observed_generation=seen)
        if old != new:
            others = [one for one in pod.status.conditions if one.type != new.type]
            status["conditions"] = [encoded(one) for one in (*others, new)]
        return status

    # --- leaves

    async def _unreserve(self, pod: Uid, key: Key) -> None:
        for _ in range(WRITES_MAX):
            claim = await self._cluster.read(ResourceClaim, key)
            left = [encoded(user) for user in claim.status.reserved_for if user.uid != pod]
            if len(left) == len(claim.status.reserved_for):
                return
            try:
                written = await self._write(claim, {"status": {"reservedFor": left or None}}, status=True)
            except Conflict:
                continue
            self._cache.put_claim(written)
            return

    async def _write(self, claim: ResourceClaim, body: dict[str, object], *, status: bool) -> ResourceClaim:
        version = claim.metadata.resource_version
        written = await self._cluster.write(Merge(ResourceClaim, claim.key, version, body, status=status))
        assert isinstance(written, ResourceClaim)
        return written
