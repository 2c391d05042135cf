"""What is wrong with a Namespace, a Node, a Pod, an Event or a Lease.

Knows as much of core/v1 as keeps nonsense out. Must not know DRA.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import Change, limited, named, node_selector, one_of, unique
from jackfield.codec import Raw, dig, objects
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.node import Node
from jackfield.model.pod import Container, Pod, PodResourceClaim

PHASES: Final = ("Failed", "Pending", "Running", "Succeeded", "Unknown")
TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "PreferNoSchedule")
RESTART_POLICIES: Final = ("Always", "Never", "OnFailure")
CLAIMS_MAX: Final = 256
MESSAGE_BYTES_MAX: Final = 1024


def namespace(_: Change) -> Iterator[Cause]:
    """Yield what is wrong with a namespace beyond its name: nothing can be."""
    yield from ()


def node(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a node."""
    new = change.new
    assert isinstance(new, Node)
    if change.wants:
        pairs = [f"{one.key}:{one.effect}" for one in new.spec.taints]
        yield from unique("spec.taints", pairs)
        for index, one in enumerate(new.spec.taints):
            yield from named(f"spec.taints[{index}].key", one.key, formats.qualified)
            yield from one_of(f"spec.taints[{index}].effect", one.effect, TAINT_EFFECTS)
    if change.status:
        yield from _amounts("status.capacity", new.status.capacity)
        yield from _amounts("status.allocatable", new.status.allocatable)
        yield from unique("status.conditions", [one.type for one in new.status.conditions], ".type")


def pod(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    new, old = change.new, change.old
    assert isinstance(new, Pod)
    if isinstance(old, Pod) and change.wants:
        yield from _pod_unchanged(old, change)
    elif change.wants:
        yield from _pod_spec(new, change.raw)
    if change.status:
        yield from one_of("status.phase", new.status.phase, PHASES)
        if isinstance(old, Pod) and old.finished and new.status.phase != old.status.phase:
            yield errors.forbidden("status.phase", f"a pod that has {old.status.phase.lower()} stays so")


def event(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with an event."""
    new = change.new
    assert isinstance(new, Event)
    namespace = new.involved_object.namespace
    if new.metadata.namespace != (namespace or "default"):
        yield errors.invalid_value(
            "involvedObject.namespace",
            namespace,
            "does not match event.namespace; for objects without one it is default",
        )
    if len(new.message.encode()) > MESSAGE_BYTES_MAX:
        yield errors.too_long("message", MESSAGE_BYTES_MAX)


def lease(change: Change) -> Iterator[Cause]:
    """Yield what is wrong with a lease."""
    new = change.new
    assert isinstance(new, Lease)
    written = change.raw.get("spec", {})
    if "leaseDurationSeconds" in written and new.spec.lease_duration_seconds <= 0:
        yield errors.invalid_value(
            "spec.leaseDurationSeconds", new.spec.lease_duration_seconds, "must be greater than 0"
        )
    if new.spec.lease_transitions < 0:
        yield errors.invalid_value(
            "spec.leaseTransitions", new.spec.lease_transitions, "must be greater than or equal to 0"
        )
    if "holderIdentity" in written and not new.spec.holder_identity:
        yield errors.required("spec.holderIdentity", "must not be empty")


def _pod_spec(new: Pod, raw: Raw) -> Iterator[Cause]:
    spec = new.spec
    if not spec.containers:
        yield errors.required("spec.containers")
    yield from one_of("spec.restartPolicy", raw["spec"]["restartPolicy"], RESTART_POLICIES)
    containers = [one.name for one in (*spec.containers, *spec.init_containers)]
    yield from unique("spec.containers", containers, ".name")
    for field, found in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, one in enumerate(found):
            yield from _container(f"spec.{field}[{index}]", one)
    if spec.node_name:
        yield from named("spec.nodeName", spec.node_name, formats.subdomain)
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is not None and affinity.required is not None:
        field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        yield from node_selector(field, affinity.required)
    yield from limited("spec.resourceClaims", spec.resource_claims, CLAIMS_MAX)
    yield from unique("spec.resourceClaims", [one.name for one in spec.resource_claims], ".name")
    for index, claim in enumerate(spec.resource_claims):
        yield from _claim_reference(f"spec.resourceClaims[{index}]", claim)
    yield from _claims_used(raw, frozenset(one.name for one in spec.resource_claims))


def _container(field: str, found: Container) -> Iterator[Cause]:
    if not found.name:
        yield errors.required(f"{field}.name")
    else:
        yield from named(f"{field}.name", found.name, formats.label)
    yield from _amounts(f"{field}.resources.requests", found.resources.requests)
    yield from _amounts(f"{field}.resources.limits", found.resources.limits)


def _claim_reference(field: str, found: PodResourceClaim) -> Iterator[Cause]:
    yield from named(f"{field}.name", found.name, formats.label)
    if bool(found.resource_claim_name) == bool(found.resource_claim_template_name):
        yield errors.invalid_value(
            field, found.name, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"
        )


def _claims_used(raw: Raw, names: frozenset[str]) -> Iterator[Cause]:
    """Yield a cause for every claim that a container uses and the pod does not name."""
    for field in ("containers", "initContainers"):
        for index, container in enumerate(raw["spec"].get(field, ())):
            for place, used in enumerate(objects(dig(container, "resources", "claims"))):
                name = str(used.get("name", ""))
                if name not in names:
                    at = f"spec.{field}[{index}].resources.claims[{place}].name"
                    yield Cause(at, f'Not found: "{name}"', "FieldValueNotFound")


def _pod_unchanged(old: Pod, change: Change) -> Iterator[Cause]:
    """Yield a cause if more of the pod changed than may: it is bound once, and images can be replaced."""
    new = change.new
    assert isinstance(new, Pod)
    if old.spec.node_name and new.spec.node_name != old.spec.node_name:
        yield errors.forbidden("spec.nodeName", "a pod that is bound stays where it is")
    if _fixed(old) != _fixed(new):
        yield errors.forbidden(
            "spec",
            "pod updates may not change fields other than `spec.containers[*].image`, "
            "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations` (only additions to "
            "existing tolerations) and `spec.terminationGracePeriodSeconds`",
        )
    if any(one not in new.spec.tolerations for one in old.spec.tolerations):
        yield errors.forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _fixed(found: Pod) -> tuple[object, ...]:
    """Return what never changes of a pod, as far as it is read."""
    spec = found.spec
    containers = [(one.name, one.resources) for one in (*spec.containers, *spec.init_containers)]
    return (
        spec.scheduler_name,
        spec.priority,
        spec.node_selector,
        spec.affinity,
        spec.resource_claims,
        containers,
    )


def _amounts(field: str, amounts: Mapping[str, str]) -> Iterator[Cause]:
    for name, amount in amounts.items():
        yield from named(f"{field}[{name}]", amount, formats.amount)
