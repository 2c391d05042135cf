"""The scheduler: one cycle at a time decides for one pod; what is decided is carried out side by side.

Knows which event lets which pod try again, and what becomes of a pod after a cycle. Must not know how a node is
chosen (placement), how claims are judged (dynamic_resources) or what is written to bind (binding). It behaves as
kube-scheduler 1.36 does with its default profile, as far as pods here have anything to decide by: no preemption, no
spreading, no affinity between pods, no volumes or ports.
"""

import asyncio
import random
from collections.abc import Callable

import msgspec

from jackfield.cluster.crew import Crew
from jackfield.cluster.informer import Ear, Informer, Lag, no_lag
from jackfield.cluster.recorder import WARNING, Recorder
from jackfield.cluster.scheduling.binding import (
    Binder,
    BindingCluster,
    BindingFailedError,
    BindingTimes,
    PreBind,
)
from jackfield.cluster.scheduling.dynamic_resources import DynamicResources
from jackfield.cluster.scheduling.filters import NODE_PLUGINS, Plugin, PodInfo
from jackfield.cluster.scheduling.placement import Placed, Placement, Unplaced
from jackfield.cluster.scheduling.scheduler_cache import SchedulerCache
from jackfield.cluster.scheduling.scheduling_queue import Entry, Lengths, SchedulingQueue
from jackfield.core.allocate import AllocationError, Features
from jackfield.model.claim import ResourceClaim
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, Seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod, PodCondition
from jackfield.model.slice import DeviceClass, ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.ports import Clock, Conflict, Gone, Refused, Retry

_KINDS = (Node, DeviceClass, DeviceTaintRule, ResourceSlice, ResourceClaim, Pod)
_FIT = frozenset({Plugin.NODE_RESOURCES_FIT})
_CLAIMS = frozenset({Plugin.DYNAMIC_RESOURCES})
_DEALLOCATED = "deallocation of ResourceClaim completed"


class SchedulerSettings(msgspec.Struct, frozen=True):
    """What an administrator may choose."""

    name: str = "default-scheduler"
    binding: BindingTimes = BindingTimes()
    percentage_of_nodes_to_score: int = 0
    """0 adapts to the size of the cluster."""
    features: Features = Features()


class Metrics:
    """What has happened so far."""

    def __init__(self) -> None:
        self.cycles = 0
        self.scheduled = 0
        self.unschedulable = 0
        self.errors = 0
        self.binds = 0
        self.deallocations = 0
        self.pre_binds = dict.fromkeys(PreBind, 0)
        """Ended PreBinds of pods with claims, by how they ended."""
        self.pre_bind_seconds = Seconds(0.0)
        """Time spent in them, all together."""


class Scheduler:
    """A scheduler. `run` it; a new one is what a restart makes."""

    def __init__(
        self,
        cluster: BindingCluster,
        clock: Clock,
        generator: random.Random,
        settings: SchedulerSettings = SchedulerSettings(),
        lag: Lag = no_lag,
    ) -> None:
        self.metrics = Metrics()
        self._clock = clock
        self._random = generator
        self._settings = settings
        self._informer = Informer(cluster, clock, lag)
        self._recorder = Recorder(cluster, clock, settings.name)
        self._cache = SchedulerCache()
        self._cache.on_claim = self._claim_changed
        self._queue = SchedulingQueue()
        self._claims = DynamicResources(self._cache, settings.features, settings.binding.timeout)
        self._placement = Placement(
            self._cache, self._claims, generator, settings.percentage_of_nodes_to_score
        )
        self._binder = Binder(cluster, clock, self._cache, self._recorder, settings.binding)
        self._crew = Crew()
        self._told: dict[Key, str] = {}
        self._wake = asyncio.Event()
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = NEVER
        self._deaf: set[type[Object]] = set(_KINDS)
        """Kinds not yet heard in full: nothing is decided before."""

    async def run(self) -> None:
        """Schedule for ever; ends by being cancelled, or with what went wrong."""
        async with self._crew:
            follow, synced = self._informer.follow, self._synced
            self._crew.start(follow(Node, Ear(self._node_put, self._node_gone, synced(Node))))
            self._crew.start(follow(DeviceClass, Ear(self._class_put, self._class_gone, synced(DeviceClass))))
            self._crew.start(
                follow(DeviceTaintRule, Ear(self._rule_put, self._rule_gone, synced(DeviceTaintRule)))
            )
            self._crew.start(
                follow(ResourceSlice, Ear(self._slice_put, self._slice_gone, synced(ResourceSlice)))
            )
            self._crew.start(
                follow(ResourceClaim, Ear(self._cache.put_claim, self._claim_gone, synced(ResourceClaim)))
            )
            self._crew.start(follow(Pod, Ear(self._pod_put, self._pod_gone, synced(Pod))))
            self._crew.start(self._schedule())
            await self._crew.failure()

    def lengths(self) -> Lengths:
        """Return how many pods wait for what; those waiting to be bound are not among them."""
        return self._queue.lengths()

    # --- the scheduling cycle

    async def _schedule(self) -> None:
        while True:
            entry = await self._next()
            info = self._cache.pods.get(entry.key)
            if info is None or info.uid != entry.uid:
                self._queue.remove(entry.key)
            elif self._claims.gate(info.pod):
                # PreEnqueue: not even an attempt is made before the claims exist.
                self._queue.park(entry, Plugin.DYNAMIC_RESOURCES, self._clock.now())
            else:
                await self._cycle(entry, info)

    async def _cycle(self, entry: Entry, info: PodInfo) -> None:
        self.metrics.cycles += 1
        try:
            found = self._placement.place(info, self._clock.now())
        except AllocationError as error:
            await self._failed(entry, info, str(error))
            return
        match found:
            case Placed():
                self._reserve(info, found)
                self._queue.placed(entry)
                self._crew.start(self._bind(entry, info, found))
            case Unplaced():
                await self._refused(entry, info, found)

    def _reserve(self, info: PodInfo, placed: Placed) -> None:
        self.metrics.scheduled += 1
        self._cache.assume(info, placed.node)
        for key, allocation in placed.allocations.items():
            self._cache.send_off(self._cache.claims[key], allocation)

    async def _refused(self, entry: Entry, info: PodInfo, found: Unplaced) -> None:
        self.metrics.unschedulable += 1
        # Back into the queue first: the event that what follows causes must find the pod there.
        self._queue.refuse(entry, found.plugins, self._clock.now(), found.likeness)
        message = found.message
        if found.give_up:
            claim = self._random.choice(found.give_up)
            try:
                await self._binder.deallocate(claim)
            except (Conflict, Gone) as error:
                # The claim has changed, and the event that says so lets the pod try again.
                message = str(error)
            except (Refused, Retry) as error:
                message = str(error)
                self._queue.fail(entry, self._clock.now())
            else:
                self.metrics.deallocations += 1
                message = f"{message.removesuffix('still not schedulable')}{_DEALLOCATED}"
        await self._tell(info, "Unschedulable", message)

    async def _failed(self, entry: Entry, info: PodInfo, message: str) -> None:
        self.metrics.errors += 1
        self._queue.fail(entry, self._clock.now())
        self._look_again()
        await self._tell(info, "SchedulerError", message)

    async def _tell(self, info: PodInfo, reason: str, message: str) -> None:
        """Say on the pod and in an Event why it is not scheduled, once for every change of words."""
        # The queue knows the pod as it was when the cycle began; the condition goes on it as it is now.
        now = self._cache.pods.get(info.key)
        if now is None or now.uid != info.uid:
            return
        condition = PodCondition("PodScheduled", "False", reason, message)
        await self._binder.condition(now.pod, condition)
        if self._told.get(info.key) != message:
            self._told[info.key] = message
            await self._recorder.tell(now.pod, "FailedScheduling", message, WARNING)

    # --- the binding cycle

    async def _bind(self, entry: Entry, info: PodInfo, placed: Placed) -> None:
        began = self._clock.now()
        try:
            await self._binder.bind(info, placed)
        except BindingFailedError as failed:
            self._count(placed, failed.status, began)
            await self._binder.unreserve(info, placed)
            self._cache.forget(info.uid)
            self._wake_pods(_FIT | _CLAIMS)
            await self._failed(entry, info, str(failed))
            return
        self._count(placed, PreBind.SUCCESS, began)
        self.metrics.binds += 1
        self._told.pop(info.key, None)
        await self._recorder.tell(info.pod, "Scheduled", f"Successfully assigned {info.key} to {placed.node}")

    def _count(self, placed: Placed, status: PreBind, began: Seconds) -> None:
        if placed.claims:
            self.metrics.pre_binds[status] += 1
            self.metrics.pre_bind_seconds = Seconds(self.metrics.pre_bind_seconds + self._clock.now() - began)

    # --- waiting

    async def _next(self) -> Entry:
        while True:
            entry = None if self._deaf else self._queue.pop(self._clock.now())
            if entry is not None:
                return entry
            self._wake.clear()
            self._set_alarm(NEVER if self._deaf else self._queue.due())
            await self._wake.wait()

    def _set_alarm(self, at: Seconds) -> None:
        if at >= self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = self._crew.task(self._ring(at))

    async def _ring(self, at: Seconds) -> None:
        await self._clock.sleep(Seconds(max(at - self._clock.now(), 0.0)))
        self._alarm, self._alarm_at = None, NEVER
        self._look_again()

    def _look_again(self) -> None:
        self._wake.set()

    def _wake_pods(self, plugins: frozenset[Plugin]) -> None:
        if self._queue.wake(plugins, self._clock.now()):
            self._look_again()

    def _wake_users(self, claim: Key) -> None:
        """Let pods be tried again that name the claim; one that could not even be queued may be able to now."""
        self._wake_each(self._cache.users(claim))

    def _wake_each(self, pods: tuple[Key, ...]) -> None:
        if self._queue.wake_each(pods, Plugin.DYNAMIC_RESOURCES, self._clock.now()):
            self._look_again()

    # --- what is heard

    def _synced(self, kind: type[Object]) -> Callable[[], None]:
        def hear() -> None:
            self._deaf.discard(kind)
            self._look_again()

        return hear

    def _node_put(self, node: Node) -> None:
        if self._cache.put_node(node):
            self._wake_pods(NODE_PLUGINS)

    def _node_gone(self, node: Node) -> None:
        self._cache.drop_node(node.name)

    def _class_put(self, new: DeviceClass) -> None:
        self._cache.put_class(new)
        self._wake_pods(_CLAIMS)

    def _class_gone(self, gone: DeviceClass) -> None:
        self._cache.drop_class(gone.key)

    def _rule_put(self, new: DeviceTaintRule) -> None:
        self._cache.put_rule(new)

    def _rule_gone(self, gone: DeviceTaintRule) -> None:
        self._cache.drop_rule(gone.key)
        self._wake_pods(_CLAIMS)

    def _slice_put(self, new: ResourceSlice) -> None:
        self._cache.put_slice(new)
        self._wake_pods(_CLAIMS)

    def _slice_gone(self, gone: ResourceSlice) -> None:
        # A pool that loses a slice may become complete by it.
        self._cache.drop_slice(gone.key)
        self._wake_pods(_CLAIMS)

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim) -> None:
        if old is not None and old.status.allocation is not None and new.status.allocation is None:
            self._wake_pods(_CLAIMS)  # devices may have become free for anybody
        elif old is None or old.uid != new.uid or old.status != new.status:
            self._wake_users(new.key)

    def _claim_gone(self, gone: ResourceClaim) -> None:
        self._cache.drop_claim(gone)
        if gone.status.allocation is not None:
            self._wake_pods(_CLAIMS)

    def _pod_put(self, pod: Pod) -> None:
        before = self._cache.pods.get(pod.key)
        if before is not None and before.uid != pod.uid:
            self._pod_gone(before.pod)
            before = None
        if self._cache.put_pod(pod):
            self._wake_pods(_FIT)
        if pod.spec.node_name or pod.finished or pod.deleting:
            self._leave_queue(pod)
        elif pod.spec.scheduler_name == self._settings.name:
            self._enter_queue(pod, before)

    def _enter_queue(self, pod: Pod, before: PodInfo | None) -> None:
        entry = self._queue.entry(pod.key)
        if entry is None:
            entry = self._queue.enter(
                pod.key, pod.uid, priority=pod.spec.priority, created=pod.metadata.creation_timestamp
            )
            self._queue.activate(entry)
            self._look_again()
        elif before is not None and before.pod.claim_names != pod.claim_names:
            self._wake_each((pod.key,))

    def _leave_queue(self, pod: Pod) -> None:
        self._queue.remove(pod.key)
        self._look_again()
        if not pod.spec.node_name:
            self._binder.give_up(pod.uid)

    def _pod_gone(self, pod: Pod) -> None:
        self._told.pop(pod.key, None)
        self._queue.remove(pod.key)
        self._look_again()
        self._binder.give_up(pod.uid)
        if self._cache.drop_pod(pod.key):
            self._wake_pods(_FIT)
