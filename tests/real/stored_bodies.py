"""Objects as people write them, short and long: what a server makes of each is a test."""

from typing import Final

from jackfield.codec import Raw, RawValue
from jackfield.model.account import ServiceAccount
from jackfield.model.claim import ResourceClaim, ResourceClaimTemplate
from jackfield.model.config import ConfigMap, Secret
from jackfield.model.event import Event
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass, ResourceSlice


def container(**fields: RawValue) -> Raw:
    """Return a container."""
    return {"name": "c", "image": "registry/app:1", **fields}


def pod(**spec: RawValue) -> Raw:
    """Return a pod that nobody schedules."""
    return {"metadata": {"name": "p"}, "spec": {"schedulerName": "none", "containers": [container()], **spec}}


def claim(**devices: RawValue) -> Raw:
    """Return a claim."""
    return {"metadata": {"name": "c"}, "spec": {"devices": devices}}


def one_slice(*devices: Raw, **spec: RawValue) -> Raw:
    """Return a slice of a node's devices."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n",
            "pool": pool,
            "devices": list(devices),
            **spec,
        },
    }


EXACTLY: Final[Raw] = {"deviceClassName": "gpu"}
PODS: Final[dict[str, Raw]] = {
    "the least": pod(),
    "the default scheduler's": {
        "metadata": {"name": "p"},
        "spec": {"nodeName": "none", "containers": [container()]},
    },
    "an image without a tag": pod(containers=[container(image="app")]),
    "the latest image": pod(containers=[container(image="host:5000/app:latest")]),
    "an image by digest": pod(containers=[container(image="app@sha256:" + "0" * 64)]),
    "an image of a port": pod(containers=[container(image="host:5000/app")]),
    "requests and limits": pod(
        containers=[
            container(resources={"limits": {"cpu": "1", "memory": "1024Mi"}, "requests": {"cpu": "0.5"}})
        ]
    ),
    "guaranteed": pod(containers=[container(resources={"limits": {"cpu": 2, "memory": "1G"}})]),
    "odd amounts": pod(
        containers=[
            container(
                resources={
                    "limits": {"cpu": "1500m", "memory": "1e9", "example.com/gpu": "2"},
                    "requests": {"cpu": "0.1", "memory": "1000000"},
                }
            )
        ]
    ),
    "nothing requested": pod(containers=[container(resources={"limits": {}, "requests": {}})]),
    "ports": pod(
        containers=[container(ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}])]
    ),
    "the host's network": pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])]),
    "words that say nothing": pod(
        hostNetwork=False,
        hostPID=False,
        nodeSelector={},
        tolerations=[],
        volumes=[],
        initContainers=[],
        containers=[container(command=[], env=[], stdin=False, tty=False, ports=[], args=[])],
    ),
    "probes": pod(
        containers=[
            container(
                livenessProbe={"httpGet": {"port": 80}},
                readinessProbe={"tcpSocket": {"port": "http"}, "periodSeconds": 3},
                startupProbe={"grpc": {"port": 90}, "initialDelaySeconds": 0},
                lifecycle={
                    "preStop": {"httpGet": {"port": 80}},
                    "postStart": {"exec": {"command": ["true"]}},
                },
            )
        ]
    ),
    "init containers": pod(
        initContainers=[
            {"name": "i", "image": "app:2", "resources": {"limits": {"cpu": "1"}}},
            {"name": "s", "image": "app:2", "restartPolicy": "Always"},
        ]
    ),
    "volumes": pod(
        volumes=[
            {"name": "nothing"},
            {"name": "dir", "emptyDir": {"sizeLimit": "1024Mi"}},
            {"name": "secret", "secret": {"secretName": "x"}},
            {"name": "map", "configMap": {"name": "x", "items": [{"key": "a", "path": "b"}]}},
            {"name": "host", "hostPath": {"path": "/x"}},
            {
                "name": "down",
                "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.name"}}]},
            },
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "t"}},
                        {"secret": {"name": "x"}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.uid"}}]
                            }
                        },
                    ]
                },
            },
            {"name": "claim", "persistentVolumeClaim": {"claimName": "x"}},
        ],
        containers=[container(volumeMounts=[{"name": "dir", "mountPath": "/d", "readOnly": False}])],
    ),
    "variables": pod(
        containers=[
            container(
                env=[
                    {"name": "A", "value": "b"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                    {"name": "D", "value": ""},
                ]
            )
        ]
    ),
    "claims": pod(
        resourceClaims=[
            {"name": "a", "resourceClaimName": "x"},
            {"name": "b", "resourceClaimTemplateName": "y"},
        ],
        containers=[container(resources={"claims": [{"name": "a"}, {"name": "b", "request": "r"}]})],
    ),
    "tolerations": pod(
        tolerations=[{"key": "a"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    ),
    "tolerates everything": pod(tolerations=[{"operator": "Exists"}]),
    "affinity": pod(
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
                ],
            },
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
                ]
            },
        }
    ),
    "spread": pod(
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
        ]
    ),
    "security": pod(
        securityContext={"runAsUser": 1000, "fsGroup": 2000},
        containers=[container(securityContext={"privileged": False, "capabilities": {"drop": ["ALL"]}})],
    ),
    "critical": pod(priorityClassName="system-node-critical"),
    "gates": pod(schedulingGates=[{"name": "a.example/b"}]),
    "a negative grace": pod(terminationGracePeriodSeconds=-1),
    "no token": pod(automountServiceAccountToken=False),
    "a token of its own": pod(
        volumes=[{"name": "v", "emptyDir": {}}],
        containers=[
            container(
                volumeMounts=[{"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
            )
        ],
    ),
    "an account": pod(serviceAccount="default"),
    "metadata": {
        "metadata": {
            "name": "p",
            "labels": {},
            "annotations": {},
            "generation": 7,
            "uid": "x",
            "creationTimestamp": None,
            "selfLink": "/x",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        },
        "spec": {"schedulerName": "none", "containers": [container()]},
        "status": {"phase": "Running", "podIP": "1.2.3.4"},
    },
    "resources of the pod": pod(resources={"limits": {"cpu": "2", "memory": "1Gi"}}),
    "two containers": pod(
        containers=[
            container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
            {"name": "d", "image": "x", "resources": {"requests": {"cpu": "1"}}},
        ]
    ),
}

OTHERS: Final[dict[str, tuple[type[Object], Raw]]] = {
    "a namespace": (Namespace, {"metadata": {"name": "n"}}),
    "a namespace with labels": (Namespace, {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {}}),
    "a node": (Node, {"metadata": {"name": "n"}}),
    "a node with a namespace": (Node, {"metadata": {"name": "n", "namespace": "x"}}),
    "a node with all": (
        Node,
        {
            "metadata": {"name": "n", "labels": {"a": "b"}},
            "spec": {
                "unschedulable": False,
                "podCIDR": "10.0.0.0/24",
                "taints": [{"key": "a", "effect": "NoExecute"}],
                "providerID": "x://y",
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "1024Mi", "pods": 110},
                "conditions": [{"type": "Ready", "status": "True", "reason": "r"}],
                "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
                "nodeInfo": {"kubeletVersion": "v1"},
                "phase": "Running",
            },
        },
    ),
    "an unschedulable node": (
        Node,
        {"metadata": {"name": "n"}, "spec": {"unschedulable": True, "taints": []}},
    ),
    "a lease": (Lease, {"metadata": {"name": "l"}}),
    "a lease of nobody": (Lease, {"metadata": {"name": "l"}, "spec": {"holderIdentity": ""}}),
    "a held lease": (
        Lease,
        {
            "metadata": {"name": "l"},
            "spec": {
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-01T00:00:00.000000Z",
                "leaseTransitions": 0,
            },
        },
    ),
    "an event": (
        Event,
        {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}},
    ),
    "an event with all": (
        Event,
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p", "uid": "u"},
            "reason": "R",
            "message": "m",
            "type": "Normal",
            "count": 1,
            "source": {"component": "c"},
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
    ),
    "a map": (ConfigMap, {"metadata": {"name": "m"}, "data": {"a": "b"}, "binaryData": {"x": "AAEC"}}),
    "an empty map": (ConfigMap, {"metadata": {"name": "m"}, "data": {}, "immutable": False}),
    "an immutable map": (ConfigMap, {"metadata": {"name": "m"}, "data": {"a": ""}, "immutable": True}),
    "a secret": (
        Secret,
        {"metadata": {"name": "s"}, "data": {"a": "Yg=="}, "stringData": {"c": "d", "a": "e"}},
    ),
    "a secret of a type": (Secret, {"metadata": {"name": "s"}, "type": "example.com/x", "immutable": True}),
    "an account": (ServiceAccount, {"metadata": {"name": "a"}}),
    "an account with all": (
        ServiceAccount,
        {
            "metadata": {"name": "a"},
            "secrets": [{"name": "s"}],
            "imagePullSecrets": [{"name": "i"}],
            "automountServiceAccountToken": False,
        },
    ),
    "a claim of nothing": (ResourceClaim, {"metadata": {"name": "c"}, "spec": {}}),
    "a claim": (ResourceClaim, claim(requests=[{"name": "r", "exactly": EXACTLY}])),
    "a claim for all": (
        ResourceClaim,
        claim(
            requests=[{"name": "r", "exactly": {**EXACTLY, "allocationMode": "All", "adminAccess": False}}]
        ),
    ),
    "a claim with alternatives": (
        ResourceClaim,
        claim(
            requests=[
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "a", "deviceClassName": "gpu", "count": 2},
                        {"name": "b", "deviceClassName": "gpu", "tolerations": [{"key": "k"}]},
                    ],
                }
            ],
            constraints=[{"requests": ["r"], "matchAttribute": "example.com/a"}],
            config=[{"opaque": {"driver": "x.example", "parameters": {"a": 1}}}],
        ),
    ),
    "a claim with conditions": (
        ResourceClaim,
        claim(
            requests=[
                {
                    "name": "r",
                    "exactly": {
                        **EXACTLY,
                        "count": 3,
                        "selectors": [{"cel": {"expression": "true"}}],
                        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
                        "capacity": {"requests": {"memory": "1024Mi"}},
                    },
                }
            ]
        ),
    ),
    "a template": (
        ResourceClaimTemplate,
        {
            "metadata": {"name": "t"},
            "spec": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": EXACTLY}]}},
            },
        },
    ),
    "the least template": (ResourceClaimTemplate, {"metadata": {"name": "t"}, "spec": {"spec": {}}}),
    "a class": (DeviceClass, {"metadata": {"name": "k"}}),
    "a class with all": (
        DeviceClass,
        {
            "metadata": {"name": "k"},
            "spec": {
                "selectors": [{"cel": {"expression": "device.driver == 'x'"}}],
                "config": [{"opaque": {"driver": "x.example", "parameters": {"a": {"b": None}}}}],
                "extendedResourceName": "example.com/gpu",
            },
        },
    ),
    "a slice of nothing": (ResourceSlice, one_slice()),
    "a slice": (
        ResourceSlice,
        one_slice(
            {
                "name": "d",
                "attributes": {
                    "a": {"string": "x"},
                    "b": {"int": 5},
                    "c": {"bool": True},
                    "d": {"version": "1.2.3"},
                },
                "capacity": {"memory": {"value": "1024Mi"}, "n": {"value": 5}},
            }
        ),
    ),
    "a slice for all nodes": (
        ResourceSlice,
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com",
                "allNodes": True,
                "pool": {"name": "n", "generation": 0, "resourceSliceCount": 1},
                "sharedCounters": [{"name": "c", "counters": {"m": {"value": "1000m"}}}],
            },
        },
    ),
    "a slice with taints": (
        ResourceSlice,
        one_slice(
            {
                "name": "d",
                "taints": [{"key": "a.example/b", "effect": "NoSchedule"}],
                "allowMultipleAllocations": True,
                "capacity": {
                    "m": {
                        "value": "10Gi",
                        "requestPolicy": {"default": "1024Mi", "validRange": {"min": "1Gi", "step": "1Gi"}},
                    }
                },
            }
        ),
    ),
}

BODIES: Final[dict[str, tuple[type[Object], Raw]]] = {
    **{f"a pod: {name}": (Pod, raw) for name, raw in PODS.items()},
    **OTHERS,
}
