"""Changes that people ask for, allowed or not: what a server says to each is a test."""

from typing import Final

from jackfield.codec import Raw, RawValue
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposableResource
from jackfield.model.config import ConfigMap, Secret
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.namespace import Namespace
from jackfield.model.node import Node
from jackfield.model.pod import Pod
from jackfield.model.slice import DeviceClass
from real.stored_bodies import claim, container, pod

Case = tuple[type[Object], Raw, Raw, bool]
"""A kind, an object, a merge patch of it, and whether that is of the status."""


def metadata(**words: RawValue) -> Raw:
    """Return a patch of metadata."""
    return {"metadata": words}


MAP: Final[Raw] = {"metadata": {"name": "x"}, "data": {"a": "b"}}
FIXED: Final[Raw] = {**MAP, "immutable": True}
HELD: Final[Raw] = {"metadata": {"name": "x", "finalizers": ["example.com/held"]}}
POD: Final[Raw] = {**pod(activeDeadlineSeconds=100, tolerations=[{"key": "a", "operator": "Exists"}])}
NODE: Final[Raw] = {
    "metadata": {"name": "x"},
    "spec": {"providerID": "a://b"},
    "status": {"capacity": {"cpu": "1"}},
}
RESOURCE: Final[Raw] = {"metadata": {"name": "x"}, "spec": {"type": "gpu", "model": "A", "target_node": "n"}}

CHANGES: Final[dict[str, Case]] = {
    "labels": (ConfigMap, MAP, metadata(labels={"a": "b"}), False),
    "bad labels": (ConfigMap, MAP, metadata(labels={"a b": "c d"}), False),
    "a bad annotation": (ConfigMap, MAP, metadata(annotations={"a b": "c d"}), False),
    "a bad finalizer": (ConfigMap, MAP, metadata(finalizers=["a"]), False),
    "a bad owner": (
        ConfigMap,
        MAP,
        metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "", "uid": "u"}]),
        False,
    ),
    "another name": (ConfigMap, MAP, metadata(name="other"), False),
    "another namespace": (ConfigMap, MAP, metadata(namespace="other"), False),
    "another uid": (ConfigMap, MAP, metadata(uid="other"), False),
    "an end": (ConfigMap, MAP, metadata(deletionTimestamp="2026-01-01T00:00:00Z"), False),
    "another beginning": (ConfigMap, MAP, metadata(creationTimestamp="2026-01-01T00:00:00Z"), False),
    "an old version": (ConfigMap, MAP, metadata(resourceVersion="1"), False),
    "data": (ConfigMap, MAP, {"data": {"a": None, "c": "d"}}, False),
    "no data": (ConfigMap, MAP, {"data": None}, False),
    "fixed data": (ConfigMap, FIXED, {"data": {"c": "d"}, "binaryData": {"x": "AA=="}}, False),
    "fixed no more": (ConfigMap, FIXED, {"immutable": False}, False),
    "labels of fixed data": (ConfigMap, FIXED, metadata(labels={"a": "b"}), False),
    "a secret's type": (Secret, {"metadata": {"name": "x"}}, {"type": "example.com/x"}, False),
    "a secret's text": (Secret, {"metadata": {"name": "x"}}, {"stringData": {"a": "b"}}, False),
    "a namespace's label": (Namespace, {"metadata": {"name": "x0"}}, metadata(labels={"a": "b"}), False),
    "a namespace's own label": (
        Namespace,
        {"metadata": {"name": "x1"}},
        metadata(labels={"kubernetes.io/metadata.name": "y"}),
        False,
    ),
    "a namespace's phase": (
        Namespace,
        {"metadata": {"name": "x2"}},
        {"status": {"phase": "Terminating"}},
        True,
    ),
    "a namespace's finalizers": (
        Namespace,
        {"metadata": {"name": "x3"}},
        {"spec": {"finalizers": []}},
        False,
    ),
    "a node's taint": (Node, NODE, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, False),
    "a node's bad taint": (Node, NODE, {"spec": {"taints": [{"key": "a b", "effect": "Never"}]}}, False),
    "a node's provider": (Node, NODE, {"spec": {"providerID": "c://d"}}, False),
    "a cordon": (Node, NODE, {"spec": {"unschedulable": True}}, False),
    "a node's status the wrong way": (Node, NODE, {"status": {"capacity": {"cpu": "2"}}}, False),
    "a node's status": (Node, NODE, {"status": {"capacity": {"cpu": "2000m"}}}, True),
    "a node's condition": (
        Node,
        NODE,
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        True,
    ),
    "a pod's image": (
        Pod,
        pod(automountServiceAccountToken=False),
        {"spec": {"containers": [container(image="other:1")]}},
        False,
    ),
    "a pod's policy": (Pod, POD, {"spec": {"restartPolicy": "Never"}}, False),
    "a pod's unknown policy": (Pod, POD, {"spec": {"restartPolicy": "Sometimes"}}, False),
    "a pod's node": (Pod, POD, {"spec": {"nodeName": "n"}}, False),
    "a pod's containers": (
        Pod,
        POD,
        {"spec": {"containers": [container(), container(name="d")]}},
        False,
    ),
    "a pod's deadline": (Pod, POD, {"spec": {"activeDeadlineSeconds": 50}}, False),
    "a pod's later deadline": (Pod, POD, {"spec": {"activeDeadlineSeconds": 500}}, False),
    "no deadline": (Pod, POD, {"spec": {"activeDeadlineSeconds": None}}, False),
    "a pod's tolerations": (Pod, POD, {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}, False),
    "a pod's labels": (Pod, POD, metadata(labels={"a": "b"}), False),
    "a pod's bad labels": (Pod, POD, metadata(labels={"a b": "c"}), False),
    "a pod's phase": (Pod, POD, {"status": {"phase": "Running", "podIP": "10.0.0.1"}}, True),
    "a pod's status the wrong way": (Pod, POD, {"status": {"phase": "Running"}}, False),
    "a pod's condition": (
        Pod,
        POD,
        {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
        True,
    ),
    "a pod's bad condition": (
        Pod,
        POD,
        {"status": {"conditions": [{"type": "a b", "status": "True"}]}},
        True,
    ),
    "a pod's labels by its status": (Pod, POD, metadata(labels={"a": "b"}), True),
    "a node's labels by its status": (Node, NODE, metadata(labels={"a": "b"}), True),
    "a claim's labels by its status": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a"}}]),
        metadata(labels={"a": "b"}),
        True,
    ),
    "a resource's labels by its status": (
        ComposableResource,
        RESOURCE,
        {**metadata(labels={"a": "b"}), "status": {"state": "Attaching"}},
        True,
    ),
    "a pod's nomination": (Pod, POD, {"status": {"nominatedNodeName": "A_b"}}, True),
    "a lease": (Lease, {"metadata": {"name": "x"}}, {"spec": {"holderIdentity": "me"}}, False),
    "a lease without time": (
        Lease,
        {"metadata": {"name": "x"}},
        {"spec": {"leaseDurationSeconds": 0}, "metadata": {"labels": {"a b": "c"}}},
        False,
    ),
    "a claim's wish": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a"}}]),
        {"spec": {"devices": {"requests": [{"name": "s", "exactly": {"deviceClassName": "a"}}]}}},
        False,
    ),
    "a claim's labels": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a"}}]),
        metadata(labels={"a b": "c"}),
        False,
    ),
    "a class": (
        DeviceClass,
        {"metadata": {"name": "x"}},
        {"spec": {"selectors": [{"cel": {"expression": "true"}}]}},
        False,
    ),
    "a class's label": (DeviceClass, {"metadata": {"name": "x"}}, metadata(labels={"a b": "c"}), False),
    "a resource's model": (ComposableResource, RESOURCE, {"spec": {"model": "B"}}, False),
    "a resource's labels": (ComposableResource, RESOURCE, metadata(labels={"a b": "c"}), False),
    "a resource's state": (ComposableResource, RESOURCE, {"status": {"state": "Attaching"}}, True),
    "a resource without a state": (ComposableResource, RESOURCE, {"status": {"error": "x"}}, True),
    "a resource's type": (ComposableResource, RESOURCE, {"spec": {"type": 7}}, False),
}

REPLACEMENTS: Final[dict[str, Case]] = {
    "other data": (ConfigMap, MAP, {"metadata": {"name": "x"}, "data": {"c": "d"}}, False),
    "another uid": (ConfigMap, MAP, {"metadata": {"name": "x", "uid": "u"}}, False),
    "an old version": (ConfigMap, MAP, {"metadata": {"name": "x", "resourceVersion": "1"}}, False),
    "a version that never was": (ConfigMap, MAP, {"metadata": {"name": "x", "resourceVersion": "y"}}, False),
    "another node's uid": (Node, NODE, {"metadata": {"name": "x", "uid": "u"}}, False),
    "another resource's uid": (
        ComposableResource,
        RESOURCE,
        {**RESOURCE, "metadata": {"name": "x", "uid": "u", "resourceVersion": "1"}},
        False,
    ),
    "a lease on no version": (Lease, {"metadata": {"name": "x"}}, {"metadata": {"name": "x"}}, False),
    "a resource on no version": (ComposableResource, RESOURCE, RESOURCE, False),
    "a pod without its account": (Pod, POD, POD, False),
    "a node's spec": (Node, NODE, {"metadata": {"name": "x"}, "spec": {"providerID": "a://b"}}, False),
    "a claim's status": (
        ResourceClaim,
        claim(requests=[{"name": "r", "exactly": {"deviceClassName": "a"}}]),
        {
            "metadata": {"name": "c"},
            "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
        },
        True,
    ),
}
"""A kind, an object, another in its place, and whether that is of the status."""
