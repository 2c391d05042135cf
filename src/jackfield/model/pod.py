"""Pod: the thing that wants to run.

Knows the core/v1 fields that scheduling reads. Must not know how it is scheduled.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from jackfield.model.meta import NodeSelector, Object, Wire
from jackfield.model.names import NO_TIME, NodeName, Time


class ResourceRequirements(Wire, frozen=True, gc=False):
    """How much a container asks for."""

    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}


class Container(Wire, frozen=True, gc=False):
    """A container, as far as scheduling sees it."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()


class Toleration(Wire, frozen=True, gc=False):
    """A node's taint that a pod puts up with."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeAffinity(Wire, frozen=True, gc=False):
    """Which nodes a pod may run on."""

    required: NodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire, frozen=True, gc=False):
    """Where a pod wants to be; only what is required of nodes is read."""

    node_affinity: NodeAffinity | None = None


class PodResourceClaim(Wire, frozen=True, gc=False):
    """A claim a pod uses: one by name, or one made for it from a template."""

    name: str
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(Wire, frozen=True, gc=False):
    """What a pod needs."""

    node_name: NodeName = NodeName("")
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    node_selector: Mapping[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    termination_grace_period_seconds: int = 30


class PodCondition(Wire, frozen=True, gc=False):
    """What the scheduler or the kubelet says of a pod."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Time = NO_TIME
    observed_generation: int = 0


class PodResourceClaimStatus(Wire, frozen=True, gc=False):
    """Which claim was made for a template reference."""

    name: str
    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True, gc=False):
    """What became of a pod."""

    phase: str = "Pending"
    nominated_node_name: NodeName = NodeName("")
    conditions: tuple[PodCondition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    start_time: Time = NO_TIME


class Pod(Object, frozen=True, gc=False, kw_only=True):
    """Something that wants to run."""

    plural: ClassVar[str] = "pods"
    namespaced: ClassVar[bool] = True

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def finished(self) -> bool:
        """Whether it will never run again."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def claim_names(self) -> tuple[str, ...]:
        """The claims it uses, in order; an empty name stands for one not made yet."""
        made = {one.name: one.resource_claim_name for one in self.status.resource_claim_statuses}
        return tuple(one.resource_claim_name or made.get(one.name, "") for one in self.spec.resource_claims)

    @property
    def unschedulable(self) -> bool:
        """Whether the scheduler has said that no node fits."""
        return any(
            one.type == "PodScheduled" and one.status == "False" and one.reason == "Unschedulable"
            for one in self.status.conditions
        )
