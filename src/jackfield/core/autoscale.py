"""Pods that no node has room for → one more node of a group.

Attaching is for devices, adding nodes for everything else: a pod that would fit a node but for a device is not
helped by a node. Knows requests and capacity. Must not know how a machine is brought up.
"""

import itertools
from collections.abc import Mapping

from jackfield.model import quantity
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Seconds
from jackfield.model.node import NODE_GROUP, Node, NodeSpec, NodeStatus
from jackfield.model.plan import AddNode, Phase, Plan, Waiting
from jackfield.model.pod import Pod
from jackfield.model.policy import NodeGroup, Policy
from jackfield.model.view import Delta, ObjectChanged, View

Amounts = dict[str, int]


def decide(view: View, group: str, policy: Policy, now: Seconds) -> Plan:
    """Return the nodes that must be added to a group so that every pod has a node with room."""
    del now
    pods = view.pods_unschedulable()
    template = next((one for one in policy.node_groups if one.name == group), None)
    if not pods or template is None:
        return Plan()
    members = view.nodes_in_group(group)
    there = [_free(view, one) for one in view.nodes() if one.ready and _open(one)]
    coming = [_free(view, one) for one in view.nodes() if _booting(one)]
    actions: list[AddNode] = []
    waiting: list[Waiting] = []
    for pod in pods:
        needs = _needs(pod)
        if any(_fits(needs, free) for free in there):
            continue  # room there is; something else stands in its way
        if _take(needs, coming):
            waiting.append(Waiting(f"pod/{pod.key}", "NodeComing", "a node on its way to be ready"))
            continue
        refused = _refused(view, policy, template, needs, len(actions))
        if refused is not None:
            waiting.append(Waiting(f"pod/{pod.key}", *refused))
            continue
        actions.append(_add(template, members, len(actions), pod))
        coming.append(_amounts(template.capacity))
        _take(needs, coming)
    return Plan(tuple(actions), tuple(waiting))


def _refused(
    view: View, policy: Policy, template: NodeGroup, needs: Amounts, added: int
) -> tuple[str, str] | None:
    """Return why this group adds no node for a pod, as a word and in words; None if it does."""
    if not _fits(needs, _amounts(template.capacity)):
        return "TooLarge", f"a larger node than group {template.name} has"
    before = itertools.takewhile(lambda one: one.name != template.name, policy.node_groups)
    for other in before:  # of several that could, one must: the first
        if _fits(needs, _amounts(other.capacity)) and len(view.nodes_in_group(other.name)) < other.max_size:
            return "OtherGroup", f"group {other.name}, which comes first, to add a node"
    if len(view.nodes_in_group(template.name)) + added >= template.max_size:
        return "GroupFull", f"group {template.name} to be allowed more than {template.max_size} nodes"
    return None


def wakes(view: View, policy: Policy, delta: Delta) -> tuple[str, ...]:
    """Return the groups that a change is about: all of them, if a pod found no node or a node changed."""
    match delta:
        case ObjectChanged(new=Pod() as pod) if pod.unschedulable and not pod.spec.node_name:
            return tuple(group.name for group in policy.node_groups)
        case ObjectChanged(old=old, new=new) if isinstance(new or old, Node) and view.pods_unschedulable():
            return tuple(group.name for group in policy.node_groups)
        case _:
            return ()


def _add(group: NodeGroup, members: tuple[Node, ...], added: int, pod: Pod) -> AddNode:
    taken = {one.metadata.name for one in members}
    numbers = (number for number in range(1, group.max_size + len(taken) + 1))
    names = [name for name in (f"{group.name}-{number}" for number in numbers) if name not in taken]
    node = Node(
        metadata=ObjectMeta(name=names[added], labels={**group.labels, NODE_GROUP: group.name}),
        spec=NodeSpec(provider_id=f"jackfield://{group.name}/{names[added]}"),
        status=NodeStatus(capacity=group.capacity, allocatable=group.capacity),
    )
    because = f"pod {pod.key} fits no node, and would fit one of group {group.name}"
    return AddNode(phase=Phase.SCALED, node=node, because=because)


def _booting(node: Node) -> bool:
    """A node whose kubelet has not said anything yet has been ordered and is on its way."""
    return not node.deleting and all(one.type != "Ready" for one in node.status.conditions)


def _open(node: Node) -> bool:
    return not node.spec.unschedulable and not node.deleting


def _needs(pod: Pod) -> Amounts:
    needs: Amounts = {"pods": 1000}
    for container in pod.spec.containers:
        for name, text in container.resources.requests.items():
            needs[name] = needs.get(name, 0) + quantity.milli(text)
    for container in pod.spec.init_containers:
        for name, text in container.resources.requests.items():
            needs[name] = max(needs.get(name, 0), quantity.milli(text))
    return needs


def _amounts(capacity: Mapping[str, str]) -> Amounts:
    return {name: quantity.milli(text) for name, text in capacity.items()}


def _free(view: View, node: Node) -> Amounts:
    free = _amounts(node.status.allocatable)
    for pod in view.pods_on(node.name):
        if not pod.finished:
            for name, amount in _needs(pod).items():
                free[name] = free.get(name, 0) - amount
    return free


def _fits(needs: Amounts, free: Amounts) -> bool:
    return all(free.get(name, 0) >= amount for name, amount in needs.items())


def _take(needs: Amounts, coming: list[Amounts]) -> bool:
    """Give the pod room on a node that is coming; return whether one has it."""
    for free in coming:
        if _fits(needs, free):
            for name, amount in needs.items():
                free[name] -= amount
            return True
    return False
