"""Mistakes that people make: what a server says to each is a test."""

from typing import Final

from jackfield.codec import Raw, RawValue
from jackfield.model.account import ServiceAccount
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.composition import ComposableResource
from jackfield.model.config import ConfigMap, Secret
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass
from real.stored_bodies import claim, container, pod

OWNER: Final[Raw] = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}


def named(name: str, **metadata: RawValue) -> Raw:
    """Return a map with such metadata."""
    return {"metadata": {"name": name, **metadata}}


METADATA: Final[dict[str, tuple[type[Object], Raw]]] = {
    "no name": (ConfigMap, {"metadata": {}}),
    "a bad name": (ConfigMap, named("A_b")),
    "a long name": (ConfigMap, named("a" * 254)),
    "a name with a slash": (ConfigMap, named("a/b")),
    "dots": (ConfigMap, named("..")),
    "a bad pod's name": (Pod, {**pod(), "metadata": {"name": "A_b"}}),
    "a namespace with dots": (Namespace, named("a.b")),
    "a bad namespace's name": (Namespace, named("A_b")),
    "a long namespace's name": (Namespace, named("a" * 64)),
    "a bad node's name": (Node, named("A_b")),
    "a bad class's name": (DeviceClass, named("A_b")),
    "a bad account's name": (ServiceAccount, named("A_b")),
    "a bad lease's name": (Lease, named("A_b")),
    "bad labels": (ConfigMap, named("m", labels={"a b": "c d"})),
    "a label with two slashes": (ConfigMap, named("m", labels={"a/b/c": "d"})),
    "a label without a name": (ConfigMap, named("m", labels={"a.b/": "d"})),
    "a label without a prefix": (ConfigMap, named("m", labels={"/a": "d"})),
    "a label with a bad prefix": (ConfigMap, named("m", labels={"A_b/a": "d"})),
    "a long label": (ConfigMap, named("m", labels={"a" * 64: "d" * 64})),
    "a bad annotation": (ConfigMap, named("m", annotations={"a b": "c"})),
    "large annotations": (ConfigMap, named("m", annotations={"a": "c" * 270_000})),
    "a bad finalizer": (ConfigMap, named("m", finalizers=["a b"])),
    "two finalizers at odds": (ConfigMap, named("m", finalizers=["orphan", "foregroundDeletion"])),
    "an owner without a uid": (ConfigMap, named("m", ownerReferences=[{**OWNER, "uid": ""}])),
    "an owner without anything": (
        ConfigMap,
        named("m", ownerReferences=[{"apiVersion": "", "kind": "", "name": "", "uid": ""}]),
    ),
    "two controllers": (
        ConfigMap,
        named(
            "m",
            ownerReferences=[
                {**OWNER, "controller": True},
                {**OWNER, "name": "q", "uid": "v", "controller": True},
            ],
        ),
    ),
    "an event as owner": (ConfigMap, named("m", ownerReferences=[{**OWNER, "kind": "Event"}])),
}

PODS: Final[dict[str, Raw]] = {
    "no containers": pod(containers=[]),
    "no spec": {"metadata": {"name": "p"}},
    "no image": pod(containers=[{"name": "c"}]),
    "no container's name": pod(containers=[{"image": "a:1"}]),
    "a bad container's name": pod(containers=[container(name="A_b")]),
    "a container twice": pod(containers=[container(), container()]),
    "a container as init container": pod(initContainers=[container()]),
    "an unknown restart policy": pod(restartPolicy="Sometimes"),
    "an unknown pull policy": pod(containers=[container(imagePullPolicy="Sometimes")]),
    "an unknown dns policy": pod(dnsPolicy="Sometimes"),
    "a bad node": pod(nodeName="A_b"),
    "a bad deadline": pod(activeDeadlineSeconds=0),
    "a request over its limit": pod(
        containers=[container(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})]
    ),
    "a negative request": pod(containers=[container(resources={"requests": {"cpu": "-1"}})]),
    "an unknown resource": pod(containers=[container(resources={"requests": {"gpus": "1"}})]),
    "a part of a device": pod(containers=[container(resources={"limits": {"example.com/gpu": "500m"}})]),
    "a device without a limit": pod(containers=[container(resources={"requests": {"example.com/gpu": "1"}})]),
    "a bad port": pod(containers=[container(ports=[{"containerPort": 70000}])]),
    "no port": pod(containers=[container(ports=[{"name": "a"}])]),
    "a bad port's name": pod(
        containers=[container(ports=[{"containerPort": 80, "name": "A_long-port-name"}])]
    ),
    "a port's name twice": pod(
        containers=[container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}])]
    ),
    "an unknown protocol": pod(containers=[container(ports=[{"containerPort": 80, "protocol": "X"}])]),
    "a mount of nothing": pod(containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]),
    "a mount nowhere": pod(
        volumes=[{"name": "v"}], containers=[container(volumeMounts=[{"name": "v", "mountPath": ""}])]
    ),
    "two mounts at a place": pod(
        volumes=[{"name": "v"}],
        containers=[
            container(volumeMounts=[{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}])
        ],
    ),
    "a volume twice": pod(volumes=[{"name": "v"}, {"name": "v"}]),
    "a bad volume's name": pod(volumes=[{"name": "A_b"}]),
    "a volume of two sources": pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
    "a volume of no secret": pod(volumes=[{"name": "v", "secret": {}}]),
    "a volume of no map": pod(volumes=[{"name": "v", "configMap": {}}]),
    "a volume of no path": pod(volumes=[{"name": "v", "hostPath": {"path": ""}}]),
    "a variable without a name": pod(containers=[container(env=[{"value": "a"}])]),
    "a bad variable's name": pod(containers=[container(env=[{"name": "a=b", "value": "a"}])]),
    "a variable of two sources": pod(
        containers=[
            container(
                env=[{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
            )
        ]
    ),
    "a claim twice": pod(
        resourceClaims=[{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "y"}]
    ),
    "a claim of two kinds": pod(
        resourceClaims=[{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]
    ),
    "a claim of no kind": pod(resourceClaims=[{"name": "a"}]),
    "a claim's bad name": pod(resourceClaims=[{"name": "A_b", "resourceClaimName": "X_y"}]),
    "a use of no claim": pod(containers=[container(resources={"claims": [{"name": "a"}]})]),
    "a use of a claim twice": pod(
        resourceClaims=[{"name": "a", "resourceClaimName": "x"}],
        containers=[container(resources={"claims": [{"name": "a"}, {"name": "a"}]})],
    ),
    "an unknown operator": pod(tolerations=[{"key": "a", "operator": "Like"}]),
    "an existing value": pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    "an unknown effect": pod(tolerations=[{"key": "a", "effect": "Never"}]),
    "a toleration of nothing": pod(tolerations=[{"value": "b"}]),
    "seconds of no execution": pod(
        tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3}]
    ),
    "a bad toleration's key": pod(tolerations=[{"key": "a b"}]),
    "a bad node selector": pod(nodeSelector={"a b": "c d"}),
    "no affinity terms": pod(
        affinity={
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
        }
    ),
    "a bad affinity": pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "a", "operator": "In"},
                                {"key": "b", "operator": "Like"},
                                {"key": "c d", "operator": "Exists", "values": ["x"]},
                                {"key": "e", "operator": "Gt", "values": ["1", "2"]},
                            ]
                        }
                    ]
                }
            }
        }
    ),
    "a priority": pod(priority=5),
    "an unknown priority class": pod(priorityClassName="nope"),
    "an unknown account": pod(serviceAccountName="nope"),
    "a bad account": pod(serviceAccountName="A_b"),
    "a probe of nothing": pod(containers=[container(livenessProbe={})]),
    "a probe of two": pod(
        containers=[container(livenessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 80}})]
    ),
    "a bad hostname": pod(hostname="A_b"),
    "a bad label of a pod": {"metadata": {"name": "p", "labels": {"a": "b c"}}, "spec": pod()["spec"]},
}

OTHERS: Final[dict[str, tuple[type[Object], Raw]]] = {
    "a taint twice": (
        Node,
        {
            "metadata": {"name": "n"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]},
        },
    ),
    "a bad taint": (
        Node,
        {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a b", "value": "c d", "effect": "Never"}]}},
    ),
    "a taint without an effect": (Node, {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}}),
    "a bad key": (ConfigMap, {**named("m"), "data": {"a b": "c"}}),
    "a key of dots": (ConfigMap, {**named("m"), "data": {"..": "c"}}),
    "a key in both": (ConfigMap, {**named("m"), "data": {"a": "b"}, "binaryData": {"a": "AA=="}}),
    "a large map": (ConfigMap, {**named("m"), "data": {"a": "b" * (1024 * 1024 + 1)}}),
    "a bad key of a secret": (Secret, {**named("s"), "data": {"a b": "AA=="}}),
    "a large secret": (Secret, {**named("s"), "stringData": {"a": "b" * (1024 * 1024 + 1)}}),
    "a certificate without a key": (
        Secret,
        {**named("s"), "type": "kubernetes.io/tls", "data": {"tls.crt": ""}},
    ),
    "a login without anything": (Secret, {**named("s"), "type": "kubernetes.io/basic-auth"}),
    "a token of nobody": (Secret, {**named("s"), "type": "kubernetes.io/service-account-token"}),
    "a secret that is no base64": (Secret, {**named("s"), "data": {"a": "$$$"}}),
    "a secret of a wrong length": (Secret, {**named("s"), "data": {"a": "AAA"}}),
    "a lease without time": (Lease, {**named("l"), "spec": {"leaseDurationSeconds": 0}}),
    "a lease that went back": (Lease, {**named("l"), "spec": {"leaseTransitions": -1}}),
    "an event elsewhere": (
        Event,
        {**named("e"), "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}},
    ),
    "a claim without a class": (ResourceClaim, claim(requests=[{"name": "r", "exactly": {}}])),
    "a claim of no request": (ResourceClaim, claim(requests=[{"name": "r"}])),
    "a claim of a request twice": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a"}}] * 2),
    ),
    "a claim of nothing": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a", "count": -1}}]),
    ),
    "a claim of all and one": (
        ResourceClaim,
        claim(
            requests=[{"name": "r", "exactly": {"deviceClassName": "a", "count": 1, "allocationMode": "All"}}]
        ),
    ),
    "a claim of an unknown mode": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a", "allocationMode": "Some"}}]),
    ),
    "a template without a class": (
        ResourceClaimTemplate,
        {**named("t"), "spec": {"spec": {"devices": {"requests": [{"name": "A_b", "exactly": {}}]}}}},
    ),
    "a resource without a model": (ComposableResource, {**named("r"), "spec": {"type": "gpu"}}),
}

WRONG: Final[dict[str, tuple[type[Object], Raw]]] = {
    **METADATA,
    **{f"a pod: {name}": (Pod, raw) for name, raw in PODS.items()},
    **OTHERS,
}
