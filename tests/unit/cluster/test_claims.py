"""Claims of pods: made from templates, taken back from those who have ended, and given to nobody else."""

from collections.abc import Sequence

import msgspec
import pytest

from jackfield.cluster.upkeep import claims
from jackfield.cluster.upkeep.claims import PROTECTION, Create, Delete, Release
from jackfield.model.claim import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from jackfield.model.meta import Object, ObjectMeta, OwnerReference
from jackfield.model.names import Key, NodeName, Time, Uid, Version
from jackfield.model.node import Node
from jackfield.model.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodSpec, PodStatus
from jackfield.ports import Merge

DELETED = Time("2026-01-01T00:00:00Z")


class Told:
    """All that has been told, from a plain list."""

    def __init__(self, *objects: Object) -> None:
        self._objects: dict[tuple[type[Object], Key], Object] = {(type(one), one.key): one for one in objects}

    def pod(self, key: Key) -> Pod | None:
        found = self._objects.get((Pod, key))
        return found if isinstance(found, Pod) else None

    def node(self, key: Key) -> Node | None:
        found = self._objects.get((Node, key))
        return found if isinstance(found, Node) else None

    def template(self, key: Key) -> ResourceClaimTemplate | None:
        found = self._objects.get((ResourceClaimTemplate, key))
        return found if isinstance(found, ResourceClaimTemplate) else None

    def claim(self, key: Key) -> ResourceClaim | None:
        found = self._objects.get((ResourceClaim, key))
        return found if isinstance(found, ResourceClaim) else None

    def claims_made_for(self, pod: Uid) -> tuple[ResourceClaim, ...]:
        return tuple(
            one
            for one in self._objects.values()
            if isinstance(one, ResourceClaim)
            and any(owner.uid == pod for owner in one.metadata.owner_references)
        )


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod of the table is like."""

    node: str = ""
    phase: str = "Pending"
    deleting: bool = False
    noted: str = ""
    template: bool = True


def pod(state: State, uid: str = "pod-uid") -> Pod:
    wanted = PodResourceClaim(
        name="gpu",
        resource_claim_template_name="t" if state.template else "",
        resource_claim_name="" if state.template else "shared",
    )
    noted = (PodResourceClaimStatus("gpu", state.noted),) if state.noted else ()
    return Pod(
        metadata=ObjectMeta(
            name="p",
            namespace="d",
            uid=Uid(uid),
            resource_version=Version("5"),
            deletion_timestamp=DELETED if state.deleting else Time(""),
        ),
        spec=PodSpec(node_name=NodeName(state.node), resource_claims=(wanted,)),
        status=PodStatus(phase=state.phase, resource_claim_statuses=noted),
    )


NODE = Node(metadata=ObjectMeta(name="n"))
TEMPLATE = ResourceClaimTemplate(
    metadata=ObjectMeta(name="t", namespace="d"),
    spec=ResourceClaimTemplateSpec(
        metadata=ObjectMeta(labels={"a": "b"}, annotations={"c": "d"}), spec=ResourceClaimSpec()
    ),
)
OWNER = OwnerReference(api_version="v1", kind="Pod", name="p", uid=Uid("pod-uid"), controller=True)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a claim of the table is like."""

    name: str = "shared"
    made: bool = False
    allocated: bool = False
    reserved: tuple[str, ...] = ()
    deleting: bool = False
    protected: bool = False
    resource: str = "pods"


def claim(state: Claim) -> ResourceClaim:
    reserved = tuple(
        ResourceClaimConsumerReference(resource=state.resource, name="p", uid=Uid(uid))
        for uid in state.reserved
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            name=state.name,
            namespace="d",
            resource_version=Version("7"),
            annotations={claims.POD_CLAIM_NAME: "gpu"} if state.made else {},
            owner_references=(OWNER,) if state.made else (),
            finalizers=(PROTECTION, "other/one") if state.protected else (),
            deletion_timestamp=DELETED if state.deleting else Time(""),
        ),
        status=ResourceClaimStatus(
            allocation=AllocationResult() if state.allocated else None, reserved_for=reserved
        ),
    )


def test_a_claim_made_from_a_template_belongs_to_its_pod() -> None:
    (create,) = claims.pod_actions(pod(State()), Told(TEMPLATE))
    assert isinstance(create, Create)
    metadata = create.claim.metadata
    assert (metadata.generate_name, metadata.namespace) == ("p-gpu-", "d")
    assert metadata.labels == {"a": "b"}
    assert metadata.annotations == {"c": "d", "resource.kubernetes.io/pod-claim-name": "gpu"}
    assert metadata.owner_references == (OWNER,)
    assert create.claim.spec == TEMPLATE.spec.spec


def names(actions: Sequence[claims.Action]) -> list[str]:
    return [type(one).__name__ for one in actions]


@pytest.mark.parametrize(
    ("state", "others", "expected"),
    [
        (State(), (), ["Complain"]),
        (State(), (TEMPLATE,), ["Create"]),
        (State(), (TEMPLATE, claim(Claim(name="p-gpu-x", made=True))), ["Merge"]),
        (State(noted="p-gpu-x"), (TEMPLATE, claim(Claim(name="p-gpu-x", made=True))), []),
        (State(noted="gone"), (TEMPLATE,), ["Create"]),
        (State(), (TEMPLATE, claim(Claim(name="old", made=True, deleting=True))), ["Create"]),
        (State(deleting=True), (TEMPLATE,), []),
        (State(phase="Succeeded"), (TEMPLATE,), []),
        (State(phase="Failed", node="n"), (TEMPLATE, NODE), []),
        (State(node="n"), (TEMPLATE, NODE), ["Create"]),
        (State(node="n"), (TEMPLATE,), ["Delete"]),
        (State(node="n", phase="Succeeded"), (), ["Delete"]),
        (State(node="n", deleting=True), (), ["Delete"]),
        (State(template=False), (), []),
        (State(template=False, node="n"), (NODE,), []),
        (State(template=False, node="n"), (NODE, claim(Claim())), []),
        (State(template=False, node="n"), (NODE, claim(Claim(allocated=True))), ["Merge"]),
        (State(template=False, node="n"), (NODE, claim(Claim(allocated=True, reserved=("pod-uid",)))), []),
        (State(template=False, node="n"), (NODE, claim(Claim(allocated=True, deleting=True))), []),
        (State(template=False), (claim(Claim(allocated=True)),), []),
    ],
)
def test_what_is_done_for_a_pod(state: State, others: tuple[Object, ...], expected: list[str]) -> None:
    assert names(claims.pod_actions(pod(state), Told(*others))) == expected


def test_a_pod_is_told_the_names_of_its_claims_on_the_version_seen() -> None:
    (merge,) = claims.pod_actions(pod(State()), Told(TEMPLATE, claim(Claim(name="p-gpu-x", made=True))))
    assert merge == Merge(
        Pod,
        Key("d", "p"),
        Version("5"),
        {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]}},
        status=True,
    )


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_a_pod_keeps_the_claim_that_it_was_told_though_another_was_made_for_it(
    names: tuple[str, str],
) -> None:
    """A creation that timed out took effect after all, when the next one had long been noted."""
    both = (claim(Claim(name=f"p-gpu-{one}", made=True)) for one in names)
    assert claims.pod_actions(pod(State(noted="p-gpu-x")), Told(TEMPLATE, *both)) == ()


def test_a_pod_bound_past_the_scheduler_gets_its_reservation_beside_the_others() -> None:
    held = claim(Claim(allocated=True, reserved=("other",)))
    (merge,) = claims.pod_actions(pod(State(template=False, node="n")), Told(NODE, held))
    assert isinstance(merge, Merge)
    assert merge.status
    assert merge.body == {
        "status": {
            "reservedFor": [
                {"resource": "pods", "name": "p", "uid": "other"},
                {"resource": "pods", "name": "p", "uid": "pod-uid"},
            ]
        }
    }


def test_a_pod_of_a_lost_node_goes_at_once() -> None:
    (delete,) = claims.pod_actions(pod(State(node="n")), Told())
    assert delete == Delete(Pod, Key("d", "p"), Version("5"), at_once=True)


LIVING = pod(State(node="n", phase="Running"))
WAITING = pod(State())
ENDED = pod(State(node="n", phase="Failed"))
GOING = pod(State(node="n", phase="Running", deleting=True))
NEVER = pod(State(deleting=True))
ANOTHER = pod(State(), uid="another")


@pytest.mark.parametrize(
    ("state", "others", "expected"),
    [
        # Nobody holds it.
        (Claim(), (), []),
        (Claim(allocated=True), (), []),
        (Claim(allocated=True, protected=True), (), []),
        # Somebody holds it.
        (Claim(allocated=True, reserved=("pod-uid",)), (LIVING,), []),
        (Claim(allocated=True, reserved=("pod-uid",)), (WAITING,), []),
        (Claim(allocated=True, reserved=("pod-uid",)), (GOING,), []),
        (Claim(allocated=True, reserved=("u",), resource="podgroups"), (), []),
        # Whoever held it does not any more.
        (Claim(allocated=True, reserved=("pod-uid",)), (), ["Release"]),
        (Claim(allocated=True, reserved=("pod-uid",)), (ENDED,), ["Release"]),
        (Claim(allocated=True, reserved=("pod-uid",)), (NEVER,), ["Release"]),
        (Claim(allocated=True, reserved=("pod-uid",)), (ANOTHER,), ["Release"]),
        (Claim(allocated=True, reserved=("pod-uid", "gone")), (LIVING,), ["Merge"]),
        # It is being deleted.
        (Claim(deleting=True, protected=True), (), ["Release"]),
        (Claim(deleting=True, protected=True, allocated=True), (), ["Release"]),
        (Claim(deleting=True, protected=True, allocated=True, reserved=("pod-uid",)), (LIVING,), []),
        (Claim(deleting=True), (), []),
        # It was made for a pod.
        (Claim(made=True), (WAITING,), []),
        (Claim(made=True, allocated=True, reserved=("pod-uid",)), (LIVING,), []),
        (Claim(made=True), (ENDED,), ["Delete"]),
        (Claim(made=True), (ANOTHER,), ["Delete"]),
        (Claim(made=True), (), []),
        (Claim(made=True, allocated=True, reserved=("pod-uid",)), (ENDED,), ["Release"]),
    ],
)
def test_what_is_done_about_a_claim(state: Claim, others: tuple[Object, ...], expected: list[str]) -> None:
    assert names(claims.claim_actions(claim(state), Told(*others))) == expected


def test_only_the_stale_consumer_goes() -> None:
    held = claim(Claim(allocated=True, reserved=("gone", "pod-uid")))
    (merge,) = claims.claim_actions(held, Told(LIVING))
    assert isinstance(merge, Merge)
    assert merge.version == "7"
    assert merge.body == {"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "pod-uid"}]}}


def test_a_release_frees_the_devices_and_takes_off_only_the_protection() -> None:
    held = claim(Claim(allocated=True, protected=True, reserved=("gone",)))
    assert claims.claim_actions(held, Told()) == (Release(held),)
    assert claims.deallocated(held).body == {
        "status": {"reservedFor": None, "allocation": None, "devices": None}
    }
    assert claims.unprotected(held).body == {"metadata": {"finalizers": ["other/one"]}}


def test_pods_that_nobody_has_told_of_are_asked_for() -> None:
    held = claim(Claim(allocated=True, reserved=("pod-uid",)))
    assert claims.absent_consumers(held, Told()) == (Key("d", "p"),)
    assert claims.absent_consumers(held, Told(LIVING)) == ()
    group = claim(Claim(allocated=True, reserved=("u",), resource="podgroups"))
    assert claims.absent_consumers(group, Told()) == ()
