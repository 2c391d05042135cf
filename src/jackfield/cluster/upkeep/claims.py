"""Claims and the pods that use them: what kube-controller-manager does about both.

Knows when a claim is made from a template, who may still use it, and when it is given back. Decisions only: nothing
here reads a clock or writes. Must not know how devices are allocated.
"""

from typing import Protocol

import msgspec

from jackfield.codec import kinds
from jackfield.codec.encoding import encoded
from jackfield.model.claim import ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from jackfield.model.meta import Object, ObjectMeta, OwnerReference
from jackfield.model.names import Key, Uid, Version, named
from jackfield.model.node import Node
from jackfield.model.pod import Pod, PodResourceClaim
from jackfield.ports import Merge

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim made from a template: which of the pod's claims it is."""
PROTECTION = "resource.kubernetes.io/delete-protection"
"""Finalizer of a claim that is allocated."""
RESERVED_MAX = 256


class Create(msgspec.Struct, frozen=True):
    """Create this claim."""

    claim: ResourceClaim


class Delete(msgspec.Struct, frozen=True):
    """Delete this object, on exactly this version."""

    kind: type[Object]
    key: Key
    version: Version
    at_once: bool = False
    """Without waiting for a kubelet that is gone."""


class Release(msgspec.Struct, frozen=True):
    """Take the claim from everybody, then take its protection off."""

    claim: ResourceClaim


class Complain(msgspec.Struct, frozen=True):
    """Tell whoever made the pod what it lacks."""

    pod: Pod
    words: str


Action = Create | Delete | Merge | Release | Complain


class Heard(Protocol):
    """What is known of the cluster."""

    def pod(self, key: Key) -> Pod | None:
        """Return the pod, or None."""

    def node(self, key: Key) -> Node | None:
        """Return the node, or None."""

    def template(self, key: Key) -> ResourceClaimTemplate | None:
        """Return the template, or None."""

    def claim(self, key: Key) -> ResourceClaim | None:
        """Return the claim, or None."""

    def claims_made_for(self, pod: Uid) -> tuple[ResourceClaim, ...]:
        """Return the claims that the pod owns."""


def is_done(pod: Pod) -> bool:
    """Return whether the pod needs no devices any more: it has ended, or was deleted before it could begin."""
    return pod.finished or (pod.deleting and not pod.spec.node_name)


# --- pods


def pod_actions(pod: Pod, heard: Heard) -> tuple[Action, ...]:
    """Return what is to be done for a pod."""
    version = pod.metadata.resource_version
    if pod.spec.node_name and heard.node(named(pod.spec.node_name)) is None:
        return (Delete(Pod, pod.key, version, at_once=True),)
    if pod.deleting or is_done(pod):
        return ()
    return (*_claims_to_make(pod, heard), *_claims_to_note(pod, heard), *_reservations(pod, heard))


def _claims_to_make(pod: Pod, heard: Heard) -> tuple[Create | Complain, ...]:
    made = {one.metadata.annotations.get(POD_CLAIM_NAME) for one in _living_claims(pod, heard)}
    wanted = (one for one in pod.spec.resource_claims if one.resource_claim_template_name)
    missing = (one for one in wanted if one.name not in made)
    return tuple(_claim_to_make(pod, reference, heard) for reference in missing)


def _claim_to_make(pod: Pod, reference: PodResourceClaim, heard: Heard) -> Create | Complain:
    name = reference.resource_claim_template_name
    template = heard.template(Key(pod.key.namespace, name))
    if template is not None:
        return Create(_claim(pod, reference, template))
    absent = f'resourceclaimtemplate.resource.k8s.io "{name}" not found'
    return Complain(pod, f'PodResourceClaim {reference.name}: resource claim template "{name}": {absent}')


def _living_claims(pod: Pod, heard: Heard) -> tuple[ResourceClaim, ...]:
    return tuple(one for one in heard.claims_made_for(pod.uid) if not one.deleting)


def _claim(pod: Pod, reference: PodResourceClaim, template: ResourceClaimTemplate) -> ResourceClaim:
    owner = OwnerReference(
        api_version=kinds.of(Pod).api_version,
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.uid,
        controller=True,
    )
    wanted = template.spec.metadata
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=f"{pod.metadata.name}-{reference.name}-",
            namespace=pod.metadata.namespace,
            labels=wanted.labels,
            annotations={**wanted.annotations, POD_CLAIM_NAME: reference.name},
            owner_references=(owner,),
        ),
        spec=template.spec.spec,
    )


def _claims_to_note(pod: Pod, heard: Heard) -> tuple[Merge, ...]:
    """Return the pod's status with the names of its claims, if any is not there yet.

    What was noted stays, as long as it is there: a write that was believed lost may make a second claim later.
    """
    noted = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    made: dict[str, str] = {}
    for one in _living_claims(pod, heard):
        reference = one.metadata.annotations.get(POD_CLAIM_NAME, "")
        if reference not in made or noted.get(reference) == one.metadata.name:
            made[reference] = one.metadata.name
    names = [one.name for one in pod.spec.resource_claims if one.resource_claim_template_name]
    statuses = {name: made[name] for name in names if name in made}
    if all(noted.get(name) == claim for name, claim in statuses.items()):
        return ()
    listed = [
        {"name": name, "resourceClaimName": claim} for name, claim in sorted({**noted, **statuses}.items())
    ]
    body = {"status": {"resourceClaimStatuses": listed}}
    return (Merge(Pod, pod.key, pod.metadata.resource_version, body, status=True),)


def _reservations(pod: Pod, heard: Heard) -> tuple[Merge, ...]:
    """Return the reservations that a pod lacks which was bound without them, past the scheduler."""
    if not pod.spec.node_name:
        return ()
    claims = [heard.claim(Key(pod.key.namespace, name)) for name in pod.claim_names if name]
    return tuple(_reserved(one, pod) for one in claims if one is not None and _may_reserve(one, pod))


def _may_reserve(claim: ResourceClaim, pod: Pod) -> bool:
    reserved = claim.status.reserved_for
    return (
        claim.status.allocation is not None
        and not claim.deleting
        and len(reserved) < RESERVED_MAX
        and all(one.uid != pod.uid for one in reserved)
    )


def _reserved(claim: ResourceClaim, pod: Pod) -> Merge:
    me = ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.uid)
    return _reserving(claim, (*claim.status.reserved_for, me))


def _reserving(claim: ResourceClaim, consumers: tuple[ResourceClaimConsumerReference, ...]) -> Merge:
    body = {"status": {"reservedFor": [encoded(one) for one in consumers]}}
    return Merge(ResourceClaim, claim.key, claim.metadata.resource_version, body, status=True)


# --- claims


def claim_actions(claim: ResourceClaim, heard: Heard) -> tuple[Action, ...]:
    """Return what is to be done about a claim: stale consumers go, and with the last of them the devices."""
    consumers = claim.status.reserved_for
    left = tuple(one for one in consumers if not _is_stale(claim, one, heard))
    version = claim.metadata.resource_version
    if left and len(left) < len(consumers):
        return (_reserving(claim, left),)
    if left:
        return ()
    if consumers or (claim.deleting and PROTECTION in claim.metadata.finalizers):
        return (Release(claim),)
    if not claim.deleting and _outlived(claim, heard):
        return (Delete(ResourceClaim, claim.key, version),)
    return ()


def absent_consumers(claim: ResourceClaim, heard: Heard) -> tuple[Key, ...]:
    """Return the pods a claim is reserved for that nobody has told of: they may be new, or gone."""
    keys = (Key(claim.key.namespace, one.name) for one in claim.status.reserved_for if one.resource == "pods")
    return tuple(key for key in keys if heard.pod(key) is None)


def unprotected(claim: ResourceClaim) -> Merge:
    """Return the change that takes a claim's protection off."""
    kept = [one for one in claim.metadata.finalizers if one != PROTECTION]
    body = {"metadata": {"finalizers": kept}}
    return Merge(ResourceClaim, claim.key, claim.metadata.resource_version, body)


def deallocated(claim: ResourceClaim) -> Merge:
    """Return the change that takes a claim's devices away."""
    body = {"status": {"reservedFor": None, "allocation": None, "devices": None}}
    return Merge(ResourceClaim, claim.key, claim.metadata.resource_version, body, status=True)


def owner_pod(claim: ResourceClaim) -> OwnerReference | None:
    """Return the pod that a claim was made for, or None if somebody else made it."""
    owners = claim.metadata.owner_references
    return next((one for one in owners if one.controller and one.kind == "Pod"), None)


def _is_stale(claim: ResourceClaim, consumer: ResourceClaimConsumerReference, heard: Heard) -> bool:
    if consumer.resource != "pods" or consumer.api_group:
        return False
    pod = heard.pod(Key(claim.key.namespace, consumer.name))
    return pod is None or pod.uid != consumer.uid or is_done(pod)


def _outlived(claim: ResourceClaim, heard: Heard) -> bool:
    """Return whether the claim's pod will not run any more; where the pod is gone, the collector comes."""
    owner = owner_pod(claim)
    if owner is None:
        return False
    pod = heard.pod(Key(claim.key.namespace, owner.name))
    return pod is not None and (pod.uid != owner.uid or is_done(pod))
