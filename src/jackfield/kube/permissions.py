"""What each of our processes may do in a cluster, as data: from it roles are printed and the chart is rendered.

Knows Kubernetes' verbs, also those that exist only to be asked about, and what each is needed for. Must not know what a
process decides. A right that nothing uses is a mistake here, and so is one that is missing.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jackfield.codec import Raw, kinds
from jackfield.codec.definitions import API_VERSION, definitions
from jackfield.controllers.lead import REPLICAS
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.namespace import Namespace
from jackfield.model.node import HEARTBEATS, Node
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER, LOCAL_DRIVER
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule

RBAC = "rbac.authorization.k8s.io"
RBAC_VERSION = f"{RBAC}/v1"
ADMISSION_VERSION = "admissionregistration.k8s.io/v1"


class Part(StrEnum):
    """A process of ours."""

    CONTROLLERS = "controllers"
    NODE = "node"


class Right(msgspec.Struct, frozen=True):
    """Something that a process may do."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """Objects that it is limited to; none means all."""
    namespace: str = ""
    """The namespace that it is limited to; empty means all."""


class Account(msgspec.Struct, frozen=True):
    """The service account that a process runs under."""

    namespace: str
    name: str


def rights(part: Part, drivers: tuple[str, ...] = (DRIVER,)) -> tuple[Right, ...]:
    """Return what a process needs; `drivers` are those whose devices the policy names."""
    match part:
        case Part.CONTROLLERS:
            return _controllers(drivers)
        case Part.NODE:
            return _NODE


def manifests(part: Part, account: Account, drivers: tuple[str, ...] = (DRIVER,)) -> tuple[Raw, ...]:
    """Return the service account with roles and bindings, ready for the API."""
    needed = rights(part, drivers)
    name = f"jackfield-{part}"
    made: list[Raw] = [
        _object("v1", "ServiceAccount", {"name": account.name, "namespace": account.namespace})
    ]
    for namespace in dict.fromkeys(one.namespace for one in needed):
        kind = "Role" if namespace else "ClusterRole"
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        rules = [_rule(one) for one in needed if one.namespace == namespace]
        subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
        made.append(_object(RBAC_VERSION, kind, metadata, rules=rules))
        made.append(
            _object(
                RBAC_VERSION,
                f"{kind}Binding",
                metadata,
                roleRef={"apiGroup": RBAC, "kind": kind, "name": name},
                subjects=[subject],
            )
        )
    return tuple(made)


def _right(kind: type[Object], verbs: str, why: str, *, part: str = "", **limits: tuple[str, ...]) -> Right:
    names = kinds.of(kind)
    resource = f"{names.plural}/{part}" if part else names.plural
    return Right(names.group, resource, tuple(verbs.split()), why, names=limits.get("names", ()))


def _leases(namespace: str, verbs: str, why: str) -> Right:
    return Right(Lease.group, Lease.plural, tuple(verbs.split()), why, namespace=namespace)


_NAMESPACES = (HEARTBEATS, REPLICAS)


def _controllers(drivers: tuple[str, ...]) -> tuple[Right, ...]:
    return (
        _right(Node, "list watch patch", "labels for room, and which devices failed there"),
        _right(Pod, "list watch", "who waits for a claim, and who runs where"),
        _right(Event, "get create patch", "to tell users why their claim waits or failed"),
        _right(ResourceSlice, "list watch create patch", "to offer the pool's devices"),
        _right(
            ResourceClaim, "get list watch patch", "to serve claims; patch counts attempts in an annotation"
        ),
        _right(ResourceClaim, "patch", "to write conditions, and to clear what was left over", part="status"),
        # From 1.36 on the API server asks these two of whoever may write a claim's status. No such resource exists.
        _right(
            ResourceClaim,
            "arbitrary-node:patch",
            "to write conditions of these drivers' devices, whatever node they are for",
            part="driver",
            names=drivers,
        ),
        _right(ResourceClaim, "patch", "to clear an allocation that was left over", part="binding"),
        _right(
            DeviceTaintRule, "list watch create delete", "to keep a vendor's device from being given away"
        ),
        _right(
            ComposabilityRequest,
            "get list watch create patch delete",
            "the devices wanted, by node and model",
        ),
        _right(ComposabilityRequest, "patch", "to show what became of them", part="status"),
        _right(ComposableResource, "get list watch create patch delete", "one for each device on its way"),
        _right(ComposableResource, "patch", "to write intent before it becomes effect", part="status"),
        Right(
            API_VERSION.partition("/")[0],
            "customresourcedefinitions",
            ("get", "create", "patch"),
            "to install both definitions where they are missing or older",
            names=tuple(str(one["metadata"]["name"]) for one in definitions()),
        ),
        # Not to be created: a role that is bound in them needs them before us.
        _right(Namespace, "get", "to see that both namespaces with Leases are there", names=_NAMESPACES),
        _leases(HEARTBEATS, "list watch", "the signs of life of the nodes' plugins"),
        _leases(REPLICAS, "get list watch create patch delete", "which replicas live, and so who leads"),
    )


_NODE = (
    _right(
        ComposableResource,
        "list watch patch",
        "what is to come and go on this node; patch names who holds it",
    ),
    _right(ComposableResource, "patch", "to say that a device was seen, or let go", part="status"),
    _right(ResourceClaim, "get", "to read the claim that a pod is about to use"),
    _right(ResourceSlice, "list watch create patch delete", "to publish devices of the node's own"),
    _right(Node, "get", "the node's uid, so that slices and Lease go with it"),
    _leases(HEARTBEATS, "create patch", "the plugin's own sign of life"),
)


# --- what RBAC cannot say


def admission(account: Account) -> tuple[Raw, ...]:
    """Return what keeps a node's plugin to its own node: RBAC knows kinds and names, not whose node an object is of.

    A pod's token says since Kubernetes 1.32 which node the pod runs on; who has none of these may write nothing.
    """
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    rules = [
        _guarded(ComposableResource, ["UPDATE"], part="status"),
        _guarded(ResourceSlice, ["CREATE", "UPDATE", "DELETE"]),
        _guarded(Lease, ["CREATE", "UPDATE"]),
    ]
    spec: Raw = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [
            {"name": "is-the-plugin", "expression": f"request.userInfo.username == {user!r}"}
        ],
        "variables": [
            {"name": "node", "expression": _NODE_OF_POD},
            {"name": "it", "expression": "request.operation == 'DELETE' ? oldObject : object"},
        ],
        "validations": [
            {
                "expression": "variables.node != ''",
                "message": "the token does not say which node its pod runs on",
            },
            *(
                {"expression": f"request.resource.resource != {plural!r} || ({own})", "message": message}
                for plural, own, message in _OWN
            ),
        ],
    }
    name = {"name": "jackfield-node"}
    binding = {"policyName": "jackfield-node", "validationActions": ["Deny"]}
    return (
        _object(ADMISSION_VERSION, "ValidatingAdmissionPolicy", name, spec=spec),
        _object(ADMISSION_VERSION, "ValidatingAdmissionPolicyBinding", name, spec=binding),
    )


_NODE_OF_POD = (
    "'authentication.kubernetes.io/node-name' in request.userInfo.extra"
    " ? request.userInfo.extra['authentication.kubernetes.io/node-name'][0] : ''"
)
_HAS_NODE = "has(variables.it.spec.nodeName) && variables.it.spec.nodeName == variables.node"
_OWN = (
    (
        ComposableResource.plural,
        "object.spec.target_node == variables.node && oldObject.spec.target_node == variables.node",
        "a node's plugin may write only on ComposableResources of its node",
    ),
    (
        ResourceSlice.plural,
        f"{_HAS_NODE} && variables.it.spec.driver == {LOCAL_DRIVER!r}",
        f"a node's plugin may publish only devices of its node, as {LOCAL_DRIVER}",
    ),
    (Lease.plural, "object.metadata.name == variables.node", "a node's plugin may renew only its own Lease"),
)


def _guarded(kind: type[Object], operations: list[str], *, part: str = "") -> Raw:
    names = kinds.of(kind)
    resources = [names.plural, *([f"{names.plural}/{part}"] if part else [])]
    return {
        "apiGroups": [names.group],
        "apiVersions": ["*"],
        "operations": operations,
        "resources": resources,
    }


def _rule(right: Right) -> Raw:
    rule: Raw = {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)}
    return {**rule, "resourceNames": list(right.names)} if right.names else rule


def _object(api_version: str, kind: str, metadata: Mapping[str, str], **rest: object) -> Raw:
    return {"apiVersion": api_version, "kind": kind, "metadata": dict(metadata), **rest}
