"""A witness of what others do: users, the scheduler, kubelets and machines, told as lines of the story.

Knows what a change of a pod, a claim or a node means in words. Must not know what we do about it.
"""

import asyncio

from jackfield.cluster.informer import Ear, Informer
from jackfield.model.claim import ResourceClaim
from jackfield.model.node import Node
from jackfield.model.plan import Phase
from jackfield.model.pod import Pod
from jackfield.sim.story import Line, Story
from jackfield.sim.world import SimWorld

SCHEDULER, KUBELET, USER, MACHINE = "kube-scheduler", "kubelet", "user", "machine"


class Witness:
    """Watches pods, claims and nodes."""

    def __init__(self, world: SimWorld, story: Story) -> None:
        self._world = world
        self._story = story
        self._pods: dict[str, Pod] = {}
        self._claims: dict[str, ResourceClaim] = {}
        self._ready: dict[str, bool] = {}

    async def run(self) -> None:
        """Tell until cancelled."""
        informer = Informer(self._world.cluster.client("witness"), self._world.clock)
        async with asyncio.TaskGroup() as group:
            group.create_task(informer.follow(ResourceClaim, Ear(self._claim, self._claim_gone)))
            group.create_task(informer.follow(Pod, Ear(self._pod, self._pod_gone)))
            group.create_task(informer.follow(Node, Ear(self._node, self._node_gone)))

    def _tell(
        self, subject: str, what: tuple[str, str, str], because: str, about: tuple[str, ...] = ()
    ) -> None:
        phase, action, by = what
        line = Line(0.0, subject, phase, action, by, because, (subject, *about))
        self._story.happened(self._world.clock.now(), line)

    def _pod(self, pod: Pod) -> None:
        name = f"pod/{pod.key}"
        old = self._pods.get(name)
        self._pods[name] = pod
        claims = tuple(f"claim/{pod.metadata.namespace}/{claim}" for claim in pod.claim_names if claim)
        if old is None:
            self._tell(name, ("", "Created", USER), _asks(pod), claims)
        if pod.unschedulable and not (old is not None and old.unschedulable):
            reason = next(one.message for one in pod.status.conditions if one.type == "PodScheduled")
            self._tell(name, ("", "Pending", SCHEDULER), reason, claims)
        nominated = pod.status.nominated_node_name
        if (
            nominated
            and claims
            and not pod.spec.node_name
            and (old is None or old.status.nominated_node_name != nominated)
        ):
            because = f"nominated to {nominated}, waits for its device to be attached"
            self._tell(name, (Phase.ALLOCATED, "Pending", SCHEDULER), because, (*claims, f"node/{nominated}"))
        if pod.spec.node_name and not (old is not None and old.spec.node_name):
            about = (*claims, f"node/{pod.spec.node_name}")
            self._tell(name, (Phase.BINDABLE, "Bound", SCHEDULER), f"to {pod.spec.node_name}", about)
        if old is not None and old.status.phase != pod.status.phase:
            about = (*claims, f"node/{pod.spec.node_name}")
            phase = Phase.PREPARED if pod.status.phase == "Running" else Phase.RELEASED
            self._tell(name, (phase, pod.status.phase, KUBELET), f"on {pod.spec.node_name}", about)
        if pod.deleting and not (old is not None and old.deleting):
            self._tell(name, ("", "Deleted", USER), "somebody asked for it", claims)

    def _pod_gone(self, pod: Pod) -> None:
        self._pods.pop(f"pod/{pod.key}", None)

    def _claim(self, claim: ResourceClaim) -> None:
        name = f"claim/{claim.key}"
        old = self._claims.get(name)
        self._claims[name] = claim
        pods = tuple(f"pod/{pod.key}" for pod in self._world.store.pods_using(claim.key))
        devices = tuple(f"device/{result.id}" for result in claim.results)
        if claim.results and not (old is not None and old.results):
            given = ", ".join(result.device for result in claim.results[:3])
            because = f"given {given}{' …' if len(claim.results) > len(claim.results[:3]) else ''}"
            where = f" on {claim.node}" if claim.node else ""
            self._tell(name, (Phase.ALLOCATED, "Allocated", SCHEDULER), because + where, (*pods, *devices))
        if old is not None and old.results and not claim.results:
            freed = tuple(f"device/{result.id}" for result in old.results)
            self._tell(
                name, (Phase.RELEASED, "Deallocated", "kubernetes"), "its devices are free", (*pods, *freed)
            )

    def _claim_gone(self, claim: ResourceClaim) -> None:
        old = self._claims.pop(f"claim/{claim.key}", None)
        if old is not None and old.results:
            freed = tuple(f"device/{result.id}" for result in old.results)
            self._tell(
                f"claim/{claim.key}", (Phase.RELEASED, "Deleted", "kubernetes"), "its pod is gone", freed
            )

    def _node(self, node: Node) -> None:
        before = self._ready.get(node.name)
        self._ready[node.name] = node.ready
        if before is not None and before != node.ready:
            word = "Ready" if node.ready else "NotReady"
            self._tell(f"node/{node.name}", ("", word, MACHINE), "its kubelet says so")

    def _node_gone(self, node: Node) -> None:
        if self._ready.pop(node.name, None) is not None:
            self._tell(f"node/{node.name}", ("", "Gone", MACHINE), "its Node object was deleted")


def _asks(pod: Pod) -> str:
    requests = [
        f"{text} {name}"
        for one in pod.spec.containers
        for name, text in sorted(one.resources.requests.items())
    ]
    claims = [
        f"claim {one.resource_claim_name or one.resource_claim_template_name}"
        for one in pod.spec.resource_claims
    ]
    return f"asks for {', '.join([*claims, *requests])}"
