"""Machines: they are ordered, boot, and break; a Node object is what the cluster sees of one.

Knows how a machine and its node plugin show that they are alive. Must not know what runs on them. A Node without a
Ready condition is a machine that was ordered: it becomes Ready after its boot time. A Node that is deleted is a
machine that was given back. What the node lifecycle controller would do with taints follows in the embedded cluster
from the Ready condition where it is read (`filters.NOT_READY`), so nothing is written for it; beside a real API, where
admission taints what is new and the scheduler reads taints alone, it is written here.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

import msgspec

from jackfield.cluster.crew import Crew
from jackfield.cluster.informer import Ear, Informer
from jackfield.cluster.insist import insist
from jackfield.codec.encoding import encoded
from jackfield.model.lease import Lease, LeaseSpec
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NEVER, Key, NodeName, Seconds, Version, named, rfc3339, rfc3339_micro
from jackfield.model.namespace import Namespace
from jackfield.model.node import HEARTBEATS, Node, NodeCondition, Taint
from jackfield.ports import Clock, Cluster, Conflict, Gone, Merge, Refused, Retry

READY = "Ready"
UNREACHABLE = (
    Taint(key="node.kubernetes.io/unreachable", effect="NoSchedule"),
    Taint(key="node.kubernetes.io/unreachable", effect="NoExecute"),
)
PRESENCE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The taints that say whether a node is there."""
AGAIN = Seconds(1.0)
"""When to look again where nobody says when."""


class MachineSettings(msgspec.Struct, frozen=True):
    """How machines behave."""

    boot: Callable[[NodeName], Seconds] = lambda _: Seconds(60.0)
    """How long an ordered machine takes until it is Ready; NEVER for one that does not come."""
    heartbeat: Seconds = Seconds(10.0)
    """How often a plugin renews its Lease; NEVER for once only, as renewals outnumber all other events by far."""
    ours: Callable[[Node], bool] = lambda _: True
    """Which nodes are machines of this kind; all others are left alone."""
    real_api: bool = False
    """Whether to taint nodes, take up those that are there already, and spread signs of life over time."""


class Machines:
    """All machines of a cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, settings: MachineSettings = MachineSettings()) -> None:
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._informer = Informer(cluster, clock)
        self._crew = Crew()
        self._known: dict[NodeName, Node] = {}
        self._booting: dict[NodeName, asyncio.Task[None]] = {}
        self._lost: dict[NodeName, asyncio.Event] = {}
        self._silent: set[NodeName] = set()
        self._leases: set[NodeName] = set()
        self._beating: set[NodeName] = set()

    async def run(self) -> None:
        """Let machines boot and plugins give signs of life, for ever."""
        async with self._crew:
            self._crew.start(self._informer.follow(Node, Ear(self._hear, self._forget)))
            if self._settings.heartbeat < NEVER:
                spread = self._settings.real_api
                self._crew.start(self._spread_heartbeats() if spread else self._heartbeats())
            await self._crew.failure()

    # --- for the kubelet

    async def up(self, node: NodeName) -> None:
        """Return when the machine runs; at once, unless it is lost."""
        lost = self._lost.get(node)
        if lost is not None:
            await lost.wait()

    # --- for scenarios

    async def add(self, node: Node) -> None:
        """Order a machine; it comes up by itself."""
        try:
            made = await insist(self._clock, partial(self._cluster.create, node))
        except Conflict:
            if not self._settings.real_api:
                raise
            made = await self._adopt(node)
        if made.status.capacity != node.status.capacity:
            status = {"capacity": dict(node.status.capacity), "allocatable": dict(node.status.allocatable)}
            await self._patch(Merge(Node, node.key, Version(""), {"status": status}, status=True))

    async def _adopt(self, node: Node) -> Node:
        """Take up a node of an earlier life. Raises Refused if it is somebody else's."""
        found = await insist(self._clock, partial(self._cluster.read, Node, node.key))
        if not self._settings.ours(found):
            raise Refused(f"node {node.name} exists, and is no simulated one")
        labels = {
            key: text for key, text in node.metadata.labels.items() if found.metadata.labels.get(key) != text
        }
        if labels:
            await self._patch(Merge(Node, node.key, Version(""), {"metadata": {"labels": labels}}))
        if any(one.type == READY for one in found.status.conditions):
            await self._say(node.name, "True", "KubeletReady", "kubelet is posting ready status")
        return found

    async def remove(self, name: NodeName) -> None:
        """Give a machine back, unless that is done. Nothing that runs on it is asked."""
        with suppress(Gone):
            await insist(self._clock, partial(self._cluster.delete, Node, named(name), Version("")))

    async def cordon(self, name: NodeName, *, unschedulable: bool = True) -> None:
        """Keep new pods away from a node, or no longer."""
        await self._patch(Merge(Node, named(name), Version(""), {"spec": {"unschedulable": unschedulable}}))

    async def lose(self, name: NodeName) -> None:
        """Cut a machine off: its kubelet and plugin stand still, and after a while nobody believes in it."""
        self._lost.setdefault(name, asyncio.Event())
        await self._say(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")

    async def recover(self, name: NodeName) -> None:
        """Bring a lost machine back as it was."""
        lost = self._lost.pop(name, None)
        if lost is not None:
            lost.set()
        await self._say(name, "True", "KubeletReady", "kubelet is posting ready status")
        await self._beat(name)

    async def tell_again(self) -> None:
        """Say of every node whether its machine is there, as kubelets and their watchers do now and then."""
        for name in self._alive():
            if name in self._lost:
                await self._say(name, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
            else:
                await self._say(name, "True", "KubeletReady", "kubelet is posting ready status")

    def silence(self, name: NodeName) -> None:
        """Let the plugin of a node die: its Lease runs out."""
        self._silent.add(name)

    async def restore(self, name: NodeName) -> None:
        """Let the plugin of a node live again."""
        self._silent.discard(name)
        await self._beat(name)

    # --- what is heard

    def _hear(self, node: Node) -> None:
        if not self._settings.ours(node):
            return
        self._known[node.name] = node
        ordered = not any(one.type == READY for one in node.status.conditions)
        if ordered and node.name not in self._booting:
            self._booting[node.name] = self._crew.task(self._boot(node))
        elif not ordered and node.name not in self._leases:
            self._leases.add(node.name)
            self._crew.start(self._beat(node.name))

    def _forget(self, node: Node) -> None:
        if not self._settings.ours(node):
            return
        name = node.name
        self._known.pop(name, None)
        self._lost.pop(name, None)
        self._silent.discard(name)
        self._leases.discard(name)
        boot = self._booting.pop(name, None)
        if boot is not None:
            boot.cancel()
        self._crew.start(self._end_lease(name))

    # --- what is done

    async def _boot(self, node: Node) -> None:
        duration = self._settings.boot(node.name)
        if duration >= NEVER:
            return
        await self._clock.sleep(duration)
        await self._say(node.name, "True", "KubeletReady", "kubelet is posting ready status")
        self._booting.pop(node.name, None)

    async def _say(self, name: NodeName, status: str, reason: str, message: str) -> None:
        """Write the condition Ready."""
        node = self._known.get(name)
        if node is None:
            node = await insist(self._clock, partial(self._cluster.read, Node, named(name)))
        now = rfc3339(self._clock.now())
        said = NodeCondition(READY, status, reason, message, now, now)
        others = [one for one in node.status.conditions if one.type != READY]
        body: dict[str, object] = {"conditions": [encoded(one) for one in (*others, said)]}
        if not node.status.allocatable:
            body["allocatable"] = dict(node.status.capacity)
        told = await self._patch(Merge(Node, named(name), Version(""), {"status": body}, status=True))
        if self._settings.real_api and told is not None:
            await self._taint(told, () if status == "True" else UNREACHABLE)

    async def _taint(self, node: Node, taints: tuple[Taint, ...]) -> None:
        """Leave these and no other of the taints that say whether a node is there."""
        while True:
            try:
                others = [one for one in node.spec.taints if one.key not in PRESENCE]
                if (*others, *taints) == node.spec.taints:
                    return
                body = {"spec": {"taints": [encoded(one) for one in (*others, *taints)]}}
                await self._cluster.write(Merge(Node, node.key, node.metadata.resource_version, body))
            except Retry as retry:
                await self._clock.sleep(retry.after)
            except Conflict:
                node = await insist(self._clock, partial(self._cluster.read, Node, node.key))
            except (Gone, Refused):
                return
            else:
                return

    async def _patch(self, patch: Merge) -> Node | None:
        """Write, however long that takes: a machine that cannot reach the API tries on. None if the node is gone."""
        while True:
            try:
                written = await self._cluster.write(patch)
            except Retry as retry:
                await self._clock.sleep(retry.after)
            except Conflict:
                await self._clock.sleep(AGAIN)
            except Gone:
                return None
            else:
                assert isinstance(written, Node)
                return written

    # --- heartbeats: one task for all nodes

    async def _heartbeats(self) -> None:
        while True:
            await self._clock.sleep(self._settings.heartbeat)
            for name in self._alive():
                await self._beat(name)

    async def _spread_heartbeats(self) -> None:
        """Renew one after the other, evenly over the interval, and none while its last renewal is under way."""
        while True:
            names = list(self._alive())
            began = self._clock.now()
            for number, name in enumerate(names, 1):
                if name not in self._beating:
                    self._crew.start(self._beat_once(name))
                due = began + self._settings.heartbeat * number / len(names)
                await self._clock.sleep(Seconds(max(0.0, due - self._clock.now())))
            if not names:
                await self._clock.sleep(AGAIN)

    async def _beat_once(self, name: NodeName) -> None:
        self._beating.add(name)
        try:
            await self._beat(name)
        finally:
            self._beating.discard(name)

    def _alive(self) -> Iterable[NodeName]:
        return [name for name in self._known if name in self._leases]

    async def _beat(self, name: NodeName) -> None:
        """Renew the Lease of a node's plugin, if both live. A renewal that fails is made up for by the next."""
        if name in self._lost or name in self._silent or name not in self._leases:
            return
        now = rfc3339_micro(self._clock.now())
        key = Key(HEARTBEATS, name)
        try:
            await self._cluster.write(Merge(Lease, key, Version(""), {"spec": {"renewTime": now}}))
        except Gone:
            spec = LeaseSpec(
                holder_identity=name, lease_duration_seconds=40, acquire_time=now, renew_time=now
            )
            await self._make_lease(
                Lease(metadata=ObjectMeta(name=key.name, namespace=key.namespace), spec=spec)
            )
        except (Conflict, Refused, Retry):
            return

    async def _make_lease(self, lease: Lease) -> None:
        """Create the Lease, and the namespace if that is what is missing."""
        with suppress(Conflict, Refused, Retry):
            try:
                await self._cluster.create(lease)
            except Gone:
                with suppress(Conflict):  # another node's plugin was faster
                    await self._cluster.create(Namespace(metadata=ObjectMeta(name=HEARTBEATS)))
                await self._cluster.create(lease)

    async def _end_lease(self, name: NodeName) -> None:
        """Remove the Lease of a node that is gone, which its owner reference would do."""
        try:
            await self._cluster.delete(Lease, Key(HEARTBEATS, name), Version(""))
        except (Conflict, Gone, Refused, Retry):
            return
