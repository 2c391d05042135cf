"""What the API server adds to a new object, or refuses of it, beyond what the object itself says.

Knows namespaces, accounts, priorities and the tolerations and taints that everybody gets. Must not know where objects
are kept.
"""

import random
from collections.abc import Mapping
from typing import Final, Protocol, TypeVar

from jackfield.cluster import errors
from jackfield.codec import Raw, kinds, objects
from jackfield.codec.kinds import Kind
from jackfield.core.cel.quoting import quoted
from jackfield.model.account import ServiceAccount
from jackfield.model.meta import Object
from jackfield.model.names import Key, named
from jackfield.model.namespace import Namespace

T = TypeVar("T", bound=Object)

SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX_LENGTH: Final = 5

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
TOLERATED_SECONDS: Final = 300
"""How long a pod stays on a node that is not ready, unless it says otherwise."""
PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
"""The classes of priority that every cluster has; the embedded one has no others."""
TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where it lies, not what it is
ROOT_CERTIFICATE: Final = "kube-root-ca.crt"
"""The ConfigMap of every namespace with the certificate by which the API is known."""
MIRROR: Final = "kubernetes.io/config.mirror"
_TOKEN_SECONDS: Final = 3607


class Find(Protocol):
    """What is there of other objects."""

    def __call__(self, kind: type[T], key: Key) -> T | None:
        """Return the object, or None."""


def suffix(dice: random.Random) -> str:
    """Return letters that make a name unique."""
    return "".join(dice.choices(SUFFIX_LETTERS, k=SUFFIX_LENGTH))


def admit(kind: Kind, new: Raw, find: Find, dice: random.Random) -> None:
    """Complete an object that is about to be created. Raises if it may not be."""
    metadata = new["metadata"]
    key = Key(metadata.get("namespace", ""), metadata.get("name", ""))
    if kind.namespaced and key.namespace:
        _refuse_without_namespace(kind, key, find)
    if kind.kind == "Pod":
        _pod(kind, key, new, find, dice)
    elif kind.kind == "Node":
        _node(new)
    elif kind.kind == "CustomResourceDefinition" and not _is_ours(key):
        raise errors.refused(
            kind, key, "the embedded cluster serves no other kinds than those it has definitions of already"
        )


def admit_again(kind: Kind, new: Raw) -> None:
    """Complete an object that is about to be changed: what everybody gets comes back if it was taken away."""
    if kind.kind == "Pod":
        new["spec"] = spec = {**new.get("spec", {})}
        tolerate(spec)


def tolerate(spec: Raw) -> None:
    """Have a pod put up with a node that is not ready, for a while, if it does not say otherwise."""
    there = objects(spec.get("tolerations"))
    for key in (NOT_READY, UNREACHABLE):
        if not any(_covers(one, key) for one in there):
            there = [
                *there,
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": TOLERATED_SECONDS,
                },
            ]
    spec["tolerations"] = there


def _covers(toleration: Raw, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


def _refuse_without_namespace(kind: Kind, key: Key, find: Find) -> None:
    place = find(Namespace, named(key.namespace))
    if place is None:
        raise errors.not_found(kinds.of(Namespace), named(key.namespace))
    if place.deleting:
        why = f"unable to create new content in namespace {key.namespace} because it is being terminated"
        cause = errors.Cause(
            "metadata.namespace", f"namespace {key.namespace} is being terminated", "NamespaceTerminating"
        )
        raise errors.refused(kind, key, why, (cause,))


def _is_ours(key: Key) -> bool:
    return any(one.resource == key.name for one in kinds.KINDS)


# --- nodes


def _node(new: Raw) -> None:
    """Have pods stay away from a new node until somebody says that it is ready."""
    spec = new.setdefault("spec", {})
    taints = objects(spec.get("taints"))
    if not any(one.get("key") == NOT_READY and one.get("effect") == "NoSchedule" for one in taints):
        spec["taints"] = [*taints, {"key": NOT_READY, "effect": "NoSchedule"}]


# --- pods


def _pod(kind: Kind, key: Key, new: Raw, find: Find, dice: random.Random) -> None:
    spec = new.setdefault("spec", {})
    tolerate(spec)
    if MIRROR not in new["metadata"].get("annotations", {}):
        _speak_as(spec, _account(kind, key, spec, find), dice)
    _priority(kind, key, spec)


def _account(kind: Kind, key: Key, spec: Raw, find: Find) -> ServiceAccount:
    name = spec.get("serviceAccountName") or "default"
    account = find(ServiceAccount, Key(key.namespace, name))
    if account is None:
        place = f"error looking up service account {key.namespace}/{name}"
        raise errors.refused(kind, key, f"{place}: serviceaccount {quoted(name)} not found")
    return account


def _speak_as(spec: Raw, account: ServiceAccount, dice: random.Random) -> None:
    spec["serviceAccountName"] = spec["serviceAccount"] = account.metadata.name
    if account.image_pull_secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": one.name} for one in account.image_pull_secrets]
    if spec.get("automountServiceAccountToken", account.automount_service_account_token):
        _mount_token(spec, dice)


def _mount_token(spec: Raw, dice: random.Random) -> None:
    name = f"kube-api-access-{suffix(dice)}"
    mount = {"name": name, "readOnly": True, "mountPath": TOKEN}
    lacking = [
        one
        for field in ("initContainers", "containers")
        for one in objects(spec.get(field))
        if not any(there.get("mountPath") == TOKEN for there in objects(one.get("volumeMounts")))
    ]
    for one in lacking:
        one["volumeMounts"] = [*objects(one.get("volumeMounts")), dict(mount)]
    if lacking:
        spec["volumes"] = [*objects(spec.get("volumes")), {"name": name, "projected": _token_sources()}]


def _token_sources() -> Raw:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": ROOT_CERTIFICATE, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
        ],
        "defaultMode": 0o644,
    }


def _priority(kind: Kind, key: Key, spec: Raw) -> None:
    name = spec.get("priorityClassName") or ""
    if name and name not in PRIORITIES:
        raise errors.refused(kind, key, f"no PriorityClass with name {name} was found")
    computed = PRIORITIES.get(name, 0)
    said = spec.get("priority", 0) or computed
    if said != computed:
        why = f"the integer value of priority ({said}) must not be provided in pod spec"
        from_class = f"priority admission controller computed {computed} from the given PriorityClass name"
        raise errors.refused(kind, key, f"{why}; {from_class}")
    spec["priority"] = computed
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
