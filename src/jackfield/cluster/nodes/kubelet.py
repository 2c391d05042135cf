"""The kubelets of all simulated nodes: pods that are bound are prepared, run and end.

Knows a pod's life on its node and the order that keeps devices safe: prepare before anything runs; unprepare after
everything has stopped and before the pod's end is told, since its claims may be taken away the moment it is. Must
not know what a plugin does, or whether containers are real. A node without pods costs nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeVar

import msgspec

from jackfield.cluster.crew import Crew
from jackfield.cluster.informer import Ear, Informer
from jackfield.cluster.nodes import containers
from jackfield.cluster.nodes.prepared import Checkpoint, Plugins, Preparer
from jackfield.cluster.recorder import WARNING, Recorder
from jackfield.codec.encoding import encoded
from jackfield.controllers.ending import is_ending
from jackfield.model.meta import Object
from jackfield.model.names import NEVER, Key, NodeName, Seconds, Uid, Version, rfc3339, seconds
from jackfield.model.node import Node
from jackfield.model.pod import Pod, PodCondition
from jackfield.ports import Clock, Cluster, Conflict, Gone, Merge, Refused, Retry

T = TypeVar("T")

RUN_SECONDS = "jackfield.dev/run-seconds"
"""Annotation of a pod: it ends by itself after so long."""
CONFLICTS_MAX = 5
"""So many conflicts in a row are met at once; then others get a moment to come to rest."""
_READY_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


def annotated_run_seconds(pod: Pod) -> Seconds:
    """Return how long the pod says it runs; NEVER ending if it does not say."""
    text = pod.metadata.annotations.get(RUN_SECONDS, "")
    try:
        return Seconds(float(text)) if text else NEVER
    except ValueError:
        return NEVER


async def always_up(_: NodeName) -> None:
    """Find every machine running."""


def _one_second(_: Pod) -> Seconds:
    return Seconds(1.0)


class KubeletCluster(Cluster, Protocol):
    """The API as a kubelet needs it: with a way to remove what has ended."""

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for its deletion; a grace of 0 takes a pod out of the API at once."""


class KubeletSettings(msgspec.Struct, frozen=True):
    """How pods behave on nodes."""

    start: Callable[[Pod], Seconds] = _one_second
    """How long containers take to start."""
    stop: Callable[[Pod], Seconds] = _one_second
    """How long they take to stop when told to; never more than the pod's grace period."""
    run: Callable[[Pod], Seconds] = annotated_run_seconds
    """How long they run if they are let."""
    up: Callable[[NodeName], Awaitable[None]] = always_up
    """Returns when the node's machine runs: `machines.Machines.up`."""
    ours: Callable[[Node], bool] = lambda _: True
    """Which nodes have such a kubelet; all others are left alone."""
    retry_first: Seconds = Seconds(1.0)
    retry_max: Seconds = Seconds(60.0)


class _Worker:
    """One pod's life on its node."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.node = pod.spec.node_name
        self.halted = False
        self.gone = False
        """The pod is not in the API any more."""
        self.nap: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None

    def halt(self) -> None:
        """Tell it to end; what it waits for is not worth waiting for any more."""
        self.halted = True
        if self.nap is not None:
            self.nap.cancel()


def _lost_on(node: NodeName, workers: dict[T, _Worker]) -> None:
    """Cancel those on a node that is gone, and forget them."""
    for key, worker in list(workers.items()):
        if worker.node == node:
            del workers[key]
            if worker.task is not None:
                worker.task.cancel()


class Kubelets:
    """All kubelets. `run` them; new ones with the same checkpoint are what a restart makes."""

    def __init__(
        self,
        cluster: KubeletCluster,
        clock: Clock,
        plugins: Plugins,
        settings: KubeletSettings = KubeletSettings(),
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._preparer = Preparer(cluster, plugins, checkpoint or Checkpoint())
        self._informer = Informer(cluster, clock)
        self._recorder = Recorder(cluster, clock, "kubelet")
        self._crew = Crew()
        self._nodes: dict[NodeName, None] = {}
        self._waiting: dict[NodeName, dict[Key, Pod]] = {}
        """Pods on nodes that are not there."""
        self._workers: dict[Key, _Worker] = {}
        self._leaving: dict[Uid, _Worker] = {}
        """Those that still have to stop and to unprepare; the same pod may be back by then."""
        self._ended: dict[Uid, None] = {}
        """Pods whose end we have told, for as long as they are there: what is heard of them may be older."""

    async def run(self) -> None:
        """Serve all nodes, for ever."""
        async with self._crew:
            self._crew.start(self._informer.follow(Node, Ear(self._node_put, self._node_gone)))
            self._crew.start(self._informer.follow(Pod, Ear(self._pod_put, self._pod_gone, self._reconcile)))
            await self._crew.failure()

    # --- what is heard

    def _node_put(self, node: Node) -> None:
        if node.name not in self._nodes and self._settings.ours(node):
            self._nodes[node.name] = None
            for pod in self._waiting.pop(node.name, {}).values():
                self._pod_put(pod)

    def _node_gone(self, node: Node) -> None:
        """Lose a machine: nothing on it is stopped, unprepared or told; it is simply not there."""
        name = node.name
        self._nodes.pop(name, None)
        _lost_on(name, self._workers)
        _lost_on(name, self._leaving)
        self._preparer.checkpoint.forget(name)

    def _pod_put(self, pod: Pod) -> None:
        node = pod.spec.node_name
        worker = self._workers.get(pod.key)
        # Bound no more, or to another node: only a restored backup does that.
        if worker is not None and (worker.pod.uid, worker.node) != (pod.uid, node):
            self._pod_gone(worker.pod)
            worker = None
        if not node:
            return
        if worker is not None:
            worker.pod = pod
            if pod.deleting and not worker.halted:
                worker.halt()
        elif node not in self._nodes:
            self._waiting.setdefault(node, {})[pod.key] = pod
        elif not pod.finished:
            self._start(pod)
        elif pod.deleting:  # whoever told its end did not live to remove it
            self._crew.start(self._persist(_Worker(pod), lambda: self._delete(pod)))

    def _pod_gone(self, pod: Pod) -> None:
        self._waiting.get(pod.spec.node_name, {}).pop(pod.key, None)
        self._ended.pop(pod.uid, None)
        worker = self._workers.pop(pod.key, None)
        if worker is not None:
            worker.gone = True
            worker.halt()
            self._leaving[pod.uid] = worker

    def _start(self, pod: Pod) -> None:
        worker = _Worker(pod)
        self._workers[pod.key] = worker
        if pod.deleting:
            worker.halt()
        worker.task = self._crew.task(self._live(worker))

    def _reconcile(self) -> None:
        """Unprepare what pods left behind that went while we were away."""
        living = {worker.pod.uid for worker in self._workers.values()}
        living.update(pod.uid for waiting in self._waiting.values() for pod in waiting.values())
        for node, uid in self._preparer.checkpoint.users():
            if uid not in living:
                self._crew.start(self._unprepare(node, uid))

    # --- a pod's life

    async def _live(self, worker: _Worker) -> None:
        before = self._leaving.get(worker.pod.uid)
        # One that is gone before it could begin is among them itself.
        if before is not None and before is not worker and before.task is not None:
            await asyncio.wait((before.task,))
        if worker.pod.uid not in self._ended or not await self._is_over(worker):
            await self._serve(worker)
        elif worker.halted:
            await self._persist(worker, lambda: self._delete(worker.pod))
        if self._workers.get(worker.pod.key) is worker:
            del self._workers[worker.pod.key]
        if self._leaving.get(worker.pod.uid) is worker:
            del self._leaving[worker.pod.uid]

    async def _is_over(self, worker: _Worker) -> bool:
        """Whether a pod whose end was told is over indeed; after a restored backup it may have to run again."""
        found: list[Pod] = []

        async def read() -> None:
            found.append(await self._cluster.read(Pod, worker.pod.key))

        await self._persist(worker, read)
        return not any(one.uid == worker.pod.uid and not one.finished for one in found)

    async def _serve(self, worker: _Worker) -> None:
        started = self._is_started(worker) or (await self._prepare(worker) and await self._begin(worker))
        if started:
            await self._doze(worker, self._run_seconds_left(worker.pod))
            if worker.halted:
                # Told to end: containers get their grace, and nothing cuts it short.
                grace = Seconds(float(worker.pod.spec.termination_grace_period_seconds))
                await self._clock.sleep(min(self._settings.stop(worker.pod), grace))
        await self._unprepare(worker.node, worker.pod.uid)
        if not worker.gone:
            self._ended[worker.pod.uid] = None
            await self._end(worker, "Succeeded" if started else "Failed")

    def _is_started(self, worker: _Worker) -> bool:
        """Whether the pod's containers are found running, or ended: as upstream, nothing is prepared for it then."""
        pod = worker.pod
        over = self._run_seconds_left(pod) <= 0
        return pod.status.phase == "Running" and (over or self._preparer.has_prepared(worker.node, pod))

    async def _prepare(self, worker: _Worker) -> bool:
        """Have the pod's claims prepared; return whether it may start."""
        pause = self._settings.retry_first
        while not worker.halted:
            await self._settings.up(worker.node)
            problem = await self._preparer.prepare(worker.node, worker.pod)
            if not problem:
                return not worker.halted
            await self._recorder.tell(
                worker.pod,
                "FailedPrepareDynamicResources",
                f"Failed to prepare dynamic resources: {problem}",
                WARNING,
            )
            await self._doze(worker, pause)
            pause = self._longer(pause)
        return False

    async def _begin(self, worker: _Worker) -> bool:
        """Start the containers; return whether they run. A kubelet that was restarted finds them running."""
        if worker.pod.status.phase == "Running":
            return True
        await self._doze(worker, self._settings.start(worker.pod))
        if worker.halted:
            return False
        now = rfc3339(self._clock.now())
        ready = [PodCondition(kind, "True", last_transition_time=now) for kind in _READY_CONDITIONS]
        await self._tell(worker, "Running", ready)
        return True

    async def _unprepare(self, node: NodeName, pod: Uid) -> None:
        """Have everything of the pod unprepared, however long it takes: a device in use is never let go."""
        pause = self._settings.retry_first
        while True:
            await self._settings.up(node)
            if not await self._preparer.unprepare(node, pod):
                return
            await self._clock.sleep(pause)
            pause = self._longer(pause)

    async def _end(self, worker: _Worker, phase: str) -> None:
        """Tell that the pod has ended, and remove it if somebody wants that."""
        now = rfc3339(self._clock.now())
        over = [PodCondition(kind, "False", "PodCompleted", "", now) for kind in ("Ready", "ContainersReady")]
        await self._tell(worker, phase, over)
        if worker.halted:
            await self._persist(worker, lambda: self._delete(worker.pod))

    # --- writing

    async def _tell(self, worker: _Worker, phase: str, conditions: list[PodCondition]) -> None:
        await self._persist(worker, lambda: self._write(worker.pod, phase, conditions))

    async def _write(self, pod: Pod, phase: str, conditions: list[PodCondition]) -> None:
        live = await self._cluster.read(Pod, pod.key)
        if live.uid != pod.uid:
            return
        news = {one.type for one in conditions}
        kept = [one for one in live.status.conditions if one.type not in news]
        status: dict[str, object] = {
            "phase": phase,
            "conditions": [encoded(one) for one in (*kept, *conditions)],
            **containers.told(live, phase, rfc3339(self._clock.now())),
        }
        version = live.metadata.resource_version
        await self._cluster.write(Merge(Pod, pod.key, version, {"status": status}, status=True))

    async def _delete(self, pod: Pod) -> None:
        live = await self._cluster.read(Pod, pod.key)
        if live.uid == pod.uid:
            await self._cluster.delete(Pod, pod.key, live.metadata.resource_version, grace_seconds=0)

    async def _persist(self, worker: _Worker, call: Callable[[], Coroutine[None, None, None]]) -> None:
        """Call until it works, or the pod is gone."""
        pause, conflicts = self._settings.retry_first, 0
        while True:
            await self._settings.up(worker.node)
            try:
                await call()
            except Conflict:
                conflicts += 1
                if conflicts % CONFLICTS_MAX == 0:
                    await self._clock.sleep(pause)
            except Retry:
                await self._clock.sleep(pause)
                pause = self._longer(pause)
            except Refused as refused:
                await self._recorder.tell(worker.pod, "FailedStatusUpdate", str(refused), WARNING)
                return
            except Gone:
                return
            else:
                return

    # --- waiting

    async def _doze(self, worker: _Worker, duration: Seconds) -> None:
        """Wait so long, or until the pod has to end."""
        if worker.halted:
            return
        worker.nap = asyncio.get_running_loop().create_task(self._sleep(duration))
        try:
            await worker.nap
        except asyncio.CancelledError:
            if is_ending():
                raise
        finally:
            worker.nap = None

    async def _sleep(self, duration: Seconds) -> None:
        if duration < NEVER:
            await self._clock.sleep(duration)
        else:
            await asyncio.Event().wait()

    def _run_seconds_left(self, pod: Pod) -> Seconds:
        whole = self._settings.run(pod)
        if whole >= NEVER or not pod.status.start_time:
            return whole
        return Seconds(max(seconds(pod.status.start_time) + whole - self._clock.now(), 0.0))

    def _longer(self, pause: Seconds) -> Seconds:
        return min(Seconds(pause * 2), self._settings.retry_max)
