"""Which nodes a pod may run on, which of them it likes best, and the words for none at all.

Knows what kube-scheduler's plugins ask of a node and in which words they refuse it. Must not know about claims,
queues or the API. Values come in, reasons go out.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.core.allocate import node_matches
from jackfield.model import quantity
from jackfield.model.names import Key, NodeName, Uid
from jackfield.model.node import Node, Taint
from jackfield.model.pod import Container, Pod, Toleration

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
PODS_MAX_DEFAULT: Final = 110
"""The kubelet's own default, for nodes that do not say."""
CPU_ASSUMED_MILLI: Final = 100
MEMORY_ASSUMED_BYTES: Final = 200 * 1024 * 1024
"""What a pod that asks for nothing counts for in a score, though not in a fit."""
SCORE_MAX: Final = 100

NOT_READY: Final = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
"""The API server and the node lifecycle controller put it on nodes; here it follows from the condition Ready."""
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


class Plugin(StrEnum):
    """Who refused a node, and so whose events may change the answer."""

    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    NODE_NAME = "NodeName"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    NODE_RESOURCES_FIT = "NodeResourcesFit"
    DYNAMIC_RESOURCES = "DynamicResources"


NODE_PLUGINS: Final = frozenset(Plugin)
"""A new or changed node may satisfy any of them."""


class Refusal(msgspec.Struct, frozen=True):
    """Why a node will not do."""

    plugin: Plugin
    reasons: tuple[str, ...]


class PodInfo(msgspec.Struct, frozen=True):
    """A pod with its requests summed up once: CPUs in thousandths, everything else in units."""

    pod: Pod
    requests: Mapping[str, int]

    @property
    def key(self) -> Key:
        """The pod's namespace and name."""
        return self.pod.key

    @property
    def uid(self) -> Uid:
        """The pod's identity."""
        return self.pod.uid


class NodeInfo:
    """A node and the pods that count against it, kept current by adding and removing.

    `node` is None while pods name a node that is not there.
    """

    __slots__ = ("allocatable", "cpu", "memory", "node", "pods", "requested", "taints")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.allocatable: Mapping[str, int] = {}
        self.taints: tuple[Taint, ...] = ()
        """Those that keep pods away."""
        self.pods: dict[Uid, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.cpu = 0
        self.memory = 0

    def put(self, node: Node) -> None:
        """Take the node as it is now."""
        if self.node is None or self.node.status.allocatable != node.status.allocatable:
            self.allocatable = amounts(node.status.allocatable)
        self.taints = tuple(taint for taint in node.spec.taints if taint.effect in _KEEPS_AWAY)
        if not node.ready:
            self.taints = (NOT_READY, *self.taints)
        self.node = node

    def add(self, info: PodInfo) -> None:
        """Count a pod; twice is once."""
        if info.uid in self.pods:
            return
        self.pods[info.uid] = info
        self._count(info, 1)

    def remove(self, uid: Uid) -> bool:
        """Count a pod no longer; return whether it was counted."""
        info = self.pods.pop(uid, None)
        if info is None:
            return False
        self._count(info, -1)
        return True

    def _count(self, info: PodInfo, sign: int) -> None:
        for name, amount in info.requests.items():
            self.requested[name] = self.requested.get(name, 0) + sign * amount
        self.cpu += sign * (info.requests.get(CPU, 0) or CPU_ASSUMED_MILLI)
        self.memory += sign * (info.requests.get(MEMORY, 0) or MEMORY_ASSUMED_BYTES)


# --- what a pod asks for


def amounts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Return the quantities as whole numbers: CPUs in thousandths, everything else in units."""
    return {
        name: quantity.milli(text) if name == CPU else quantity.as_int(text)
        for name, text in quantities.items()
    }


def requests(pod: Pod) -> dict[str, int]:
    """Return what a pod asks for: all its containers together, or its hungriest init container."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in _container_requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in _container_requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    return total


def _container_requests(container: Container) -> dict[str, int]:
    # The API server copies a limit to a request that is missing.
    return amounts({**container.resources.limits, **container.resources.requests})


# --- filters, in the order of the default profile


def refusal(info: PodInfo, target: NodeInfo) -> Refusal | None:
    """Return why the node will not do for the pod, claims aside; None if it will."""
    node = target.node
    assert node is not None
    spec = info.pod.spec
    if node.spec.unschedulable and not tolerates(spec.tolerations, UNSCHEDULABLE):
        return Refusal(Plugin.NODE_UNSCHEDULABLE, ("node(s) were unschedulable",))
    if spec.node_name and spec.node_name != node.name:
        return Refusal(Plugin.NODE_NAME, ("node(s) didn't match the requested node name",))
    if target.taints and not all(tolerates(spec.tolerations, taint) for taint in target.taints):
        return Refusal(Plugin.TAINT_TOLERATION, ("node(s) had untolerated taint(s)",))
    if not affine(info.pod, node):
        return Refusal(Plugin.NODE_AFFINITY, ("node(s) didn't match Pod's node affinity/selector",))
    lacking = insufficient(info, target)
    return Refusal(Plugin.NODE_RESOURCES_FIT, lacking) if lacking else None


def tolerates(tolerations: tuple[Toleration, ...], taint: Taint) -> bool:
    """Return whether one of the tolerations is for this taint."""
    return any(
        (not one.effect or one.effect == taint.effect)
        and (one.key == taint.key if one.key else one.operator == "Exists")
        and (one.operator == "Exists" or (one.operator in ("", "Equal") and one.value == taint.value))
        for one in tolerations
    )


def affine(pod: Pod, node: Node) -> bool:
    """Return whether the node has the labels that the pod insists on."""
    wanted = pod.spec.node_selector
    if wanted and any(node.metadata.labels.get(name) != value for name, value in wanted.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity is None or affinity.required is None or node_matches(affinity.required, node)


def insufficient(info: PodInfo, target: NodeInfo) -> tuple[str, ...]:
    """Return what the node has too little of."""
    reasons = []
    if len(target.pods) + 1 > target.allocatable.get(PODS, PODS_MAX_DEFAULT):
        reasons.append("Too many pods")
    for name, amount in info.requests.items():
        free = target.allocatable.get(name, 0) - target.requested.get(name, 0)
        if 0 < amount > free:
            reasons.append(f"Insufficient {name}")
    return tuple(reasons)


# --- scores


def least_allocated(info: PodInfo, target: NodeInfo) -> int:
    """Return 0 to 100: how much of CPU and memory would be left, on average."""
    cpu, memory = target.allocatable.get(CPU, 0), target.allocatable.get(MEMORY, 0)
    total = kinds = 0
    if cpu:
        taken = target.cpu + (info.requests.get(CPU, 0) or CPU_ASSUMED_MILLI)
        total, kinds = max(cpu - taken, 0) * SCORE_MAX // cpu, 1
    if memory:
        taken = target.memory + (info.requests.get(MEMORY, 0) or MEMORY_ASSUMED_BYTES)
        total, kinds = total + max(memory - taken, 0) * SCORE_MAX // memory, kinds + 1
    return total // kinds if kinds else 0


# --- words


def no_node(nodes: int, why: Mapping[str, int] | str, after: str = "") -> str:
    """Return why no node fits, as kube-scheduler puts it: one reason for all, or how many nodes have which."""
    if not nodes:
        return "no nodes available to schedule pods"
    # Sorted as text, counts included: "10 x" comes before "2 y", there as here.
    reasons = [why] if isinstance(why, str) else sorted(f"{count} {reason}" for reason, count in why.items())
    message = ": ".join(filter(None, (f"0/{nodes} nodes are available", ", ".join(reasons)))) + "."
    return f"{message} {after}" if after else message


def tally(refusals: Iterable[Refusal]) -> dict[str, int]:
    """Return how many nodes were refused for each reason."""
    counts: dict[str, int] = {}
    for one in refusals:
        for reason in one.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


# --- how many nodes are looked at

FEASIBLE_NODES_MIN: Final = 100
PERCENTAGE_MIN: Final = 5
_PERCENTAGE_START: Final = 50
_NODES_PER_PERCENT: Final = 125


def feasible_nodes_wanted(nodes: int, percentage: int = 0) -> int:
    """Return after how many feasible nodes the search may stop; percentage 0 adapts to the cluster's size."""
    if nodes < FEASIBLE_NODES_MIN:
        return nodes
    percentage = percentage or max(_PERCENTAGE_START - nodes // _NODES_PER_PERCENT, PERCENTAGE_MIN)
    return min(nodes, max(nodes * percentage // 100, FEASIBLE_NODES_MIN))


def name_of(target: NodeInfo) -> NodeName:
    """Return the name of a node that is there."""
    assert target.node is not None
    return target.node.name
