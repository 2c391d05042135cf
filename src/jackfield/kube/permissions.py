"""What each of our processes may do in a cluster, as data: from it roles are printed and the chart is rendered.

Knows Kubernetes' verbs, also those that exist only to be asked about, and what each is needed for. Must not know what a
process decides. A right that nothing uses is a mistake here, and so is one that is missing.
"""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from jackfield.codec import Raw, kinds
from jackfield.codec.definitions import API_VERSION, definitions
from jackfield.controllers.lead import REPLICAS
from jackfield.model import cohdi
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


class Role(StrEnum):
    """What a part of ours may do, under a name of its own."""

    SHARED = "shared"
    """What every process with controllers needs, whichever of them it runs."""
    PUBLISHER = "publisher"
    SCALER = "scaler"
    OPERATOR = "operator"
    AUTOSCALER = "autoscaler"
    MIGRATION = "migration"
    """What is read where CoHDI's own settings are used instead of files."""
    NODE = "node"


class Part(StrEnum):
    """A process of ours."""

    CONTROLLERS = "controllers"
    """All controllers in one."""
    PUBLISHER = "publisher"
    SCALER = "scaler"
    OPERATOR = "operator"
    AUTOSCALER = "autoscaler"
    NODE = "node"


ROLES: Final[Mapping[Part, tuple[Role, ...]]] = {
    Part.CONTROLLERS: (Role.SHARED, Role.PUBLISHER, Role.SCALER, Role.OPERATOR, Role.AUTOSCALER),
    Part.PUBLISHER: (Role.SHARED, Role.PUBLISHER),
    Part.SCALER: (Role.SHARED, Role.SCALER),
    Part.OPERATOR: (Role.SHARED, Role.OPERATOR),
    Part.AUTOSCALER: (Role.SHARED, Role.AUTOSCALER),
    Part.NODE: (Role.NODE,),
}
"""The roles that each process is bound to."""


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


def rights(role: Role, drivers: tuple[str, ...] = (DRIVER,)) -> tuple[Right, ...]:
    """Return what a role holds; `drivers` are those whose devices the policy names."""
    return {**_RIGHTS, Role.SCALER: _scaler(drivers)}[role]


def manifests(
    part: Part, account: Account, drivers: tuple[str, ...] = (DRIVER,), *, cohdi: bool = False
) -> tuple[Raw, ...]:
    """Return the service account with roles and bindings, ready for the API.

    With `cohdi` the controllers may also read CoHDI's settings, in its two namespaces.
    """
    beside = (Role.MIGRATION,) if cohdi and part is not Part.NODE else ()
    account_object = _object("v1", "ServiceAccount", {"name": account.name, "namespace": account.namespace})
    return (
        account_object,
        *(one for role in (*ROLES[part], *beside) for one in _bound(role, account, drivers)),
    )


def _bound(role: Role, account: Account, drivers: tuple[str, ...]) -> Iterator[Raw]:
    """Yield a role, in each namespace that it is limited to, with the binding of an account to it."""
    needed = rights(role, drivers)
    name = f"jackfield-{role}"
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    for namespace in dict.fromkeys(one.namespace for one in needed):
        kind = "Role" if namespace else "ClusterRole"
        place = {"namespace": namespace} if namespace else {}
        rules = [_rule(one) for one in needed if one.namespace == namespace]
        yield _object(RBAC_VERSION, kind, {"name": name, **place}, rules=rules)
        yield _object(
            RBAC_VERSION,
            f"{kind}Binding",
            {"name": f"{name}:{account.namespace}:{account.name}", **place},
            roleRef={"apiGroup": RBAC, "kind": kind, "name": name},
            subjects=[subject],
        )


def _right(kind: type[Object], verbs: str, why: str, *, part: str = "", **limits: tuple[str, ...]) -> Right:
    names = kinds.of(kind)
    resource = f"{names.plural}/{part}" if part else names.plural
    return Right(names.group, resource, tuple(verbs.split()), why, names=limits.get("names", ()))


def _leases(namespace: str, verbs: str, why: str) -> Right:
    return Right(Lease.group, Lease.plural, tuple(verbs.split()), why, namespace=namespace)


_NAMESPACES = (HEARTBEATS, REPLICAS)

# Every process watches all that a decision may look at, whichever of them it makes.
_SHARED = (
    _right(Node, "list watch", "which nodes there are, their labels, and which devices failed there"),
    _right(Pod, "list watch", "who waits for a claim, and who runs where"),
    _right(Event, "get create patch", "to tell users why their claim waits or failed"),
    _right(
        ResourceSlice,
        "list watch create",
        "what is offered; create also to find out gates, by a dry run at the start",
    ),
    _right(ResourceClaim, "list watch", "who was given which device"),
    _right(DeviceTaintRule, "list watch", "which vendors' devices are kept from being given away"),
    _right(ComposabilityRequest, "list watch", "the devices wanted"),
    _right(ComposableResource, "list watch", "the devices on their way"),
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
_PUBLISHER = (
    _right(ResourceSlice, "patch", "to offer the pool's devices, as they come and go"),
    _right(Node, "patch", "labels for the fabric and for room"),
)


def _scaler(drivers: tuple[str, ...]) -> tuple[Right, ...]:
    return (
        _right(ComposabilityRequest, "create patch delete", "the devices wanted, by node and model"),
        _right(
            ComposableResource,
            "create patch",
            "to record which claim a device is for, and to put a stray device into the books",
        ),
        _right(ResourceClaim, "get patch", "to see that a claim has left; patch counts attempts"),
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
    )


_OPERATOR = (
    _right(ComposabilityRequest, "get patch", "to keep a request until its devices are returned"),
    _right(ComposabilityRequest, "patch", "to show what became of it", part="status"),
    _right(ComposableResource, "get create patch delete", "one for each device on its way"),
    _right(ComposableResource, "patch", "to write intent before it becomes effect", part="status"),
    _right(DeviceTaintRule, "create delete", "to keep a vendor's device from being given away as it leaves"),
    _right(Node, "patch", "to note which devices failed on it"),
)
_AUTOSCALER = (_right(Node, "create", "to add a node of a group"),)
_MIGRATION = (
    Right(
        "",
        "configmaps",
        ("get",),
        "the models and the label prefix",
        names=(cohdi.CONFIG_MAP,),
        namespace=cohdi.DRIVER_NAMESPACE,
    ),
    Right(
        "",
        "secrets",
        ("get",),
        "the credentials for the fabric manager, and who vouches for it",
        names=(cohdi.SECRET,),
        namespace=cohdi.DRIVER_NAMESPACE,
    ),
    Right(
        "apps",
        "deployments",
        ("list",),
        "where the fabric manager is, and that CoHDI is stopped",
        namespace=cohdi.DRIVER_NAMESPACE,
    ),
    Right(
        "apps",
        "deployments",
        ("list",),
        "where the fabric manager is, and that CoHDI is stopped",
        namespace=cohdi.OPERATOR_NAMESPACE,
    ),
    _right(
        Namespace,
        "get",
        "whether they are still there",
        names=(cohdi.DRIVER_NAMESPACE, cohdi.OPERATOR_NAMESPACE),
    ),
    Right("metal3.io", "baremetalhosts", ("list",), "which machine a node is, where CoHDI asks Metal3"),
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
    Right(
        "", "events", ("create",), "to tell on the Node that a checkpoint was damaged", namespace="default"
    ),
)
_RIGHTS: Final[Mapping[Role, tuple[Right, ...]]] = {
    Role.SHARED: _SHARED,
    Role.PUBLISHER: _PUBLISHER,
    Role.OPERATOR: _OPERATOR,
    Role.AUTOSCALER: _AUTOSCALER,
    Role.MIGRATION: _MIGRATION,
    Role.NODE: _NODE,
}


# --- a right that is missing

_WHO = re.compile(r'User "system:serviceaccount:([^:"]+):([^"]+)" cannot')
_WHAT = re.compile(r'cannot (\S+) resource "([^"]+)"')


def remedy(words: str) -> str:
    """Return the command that grants what the API server's words find missing; empty if they speak of no right."""
    who, what = _WHO.search(words), _WHAT.search(words)
    return _command(what[1], what[2], Account(who[1], who[2])) if who and what else ""


def _command(verb: str, resource: str, account: Account) -> str:
    """Return how an account gets a right: by the roles of the part that it is named for, or that needs it."""
    parts = [part for part in Part if any(_covers(role, verb, resource) for role in ROLES[part])]
    cohdi = not parts and _covers(Role.MIGRATION, verb, resource)
    if not parts and not cohdi:
        return f"no part of Jackfield needs this; is {account.name} another's account?"
    named = next(
        (part for part in parts or Part if account.name.endswith(part)), (*parts, Part.CONTROLLERS)[0]
    )
    words = f"--part {named} --namespace {account.namespace} --service-account {account.name}"
    return f"grant it: jackfield rbac {words}{' --cohdi' if cohdi else ''} | kubectl apply -f -"


def _covers(role: Role, verb: str, resource: str) -> bool:
    return any(one.resource == resource and verb in one.verbs for one in rights(role))


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
        _guarded(Event, ["CREATE"]),
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
    (
        Event.plural,
        "object.involvedObject.kind == 'Node' && object.involvedObject.name == variables.node",
        "a node's plugin may write only Events about its node",
    ),
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
