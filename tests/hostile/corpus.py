"""Calls that make sense: every verb on every kind, and what a server says of itself.

Knows objects that are accepted. Must not know how to spoil them.
"""

from collections.abc import Iterator

import msgspec

from jackfield.cluster.face.calls import JSON, Call
from jackfield.codec import Raw, definitions, kinds
from jackfield.codec.kinds import Kind

NAMES = ("a", "b", "c")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
MERGE, STRATEGIC, JSON_PATCH, APPLY = (
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
)
_REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
_CLAIM: Raw = {
    "devices": {
        "requests": [_REQUEST],
        "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}],
        "config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"a": [1, "x", None]}}}],
    }
}
SPECS: dict[str, Raw] = {
    "Namespace": {},
    "Node": {
        "spec": {"unschedulable": False, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    },
    "Pod": {
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "app:1",
                    "env": [{"name": "A", "value": "1"}],
                    "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"cpu": "100m"}, "limits": {"memory": "1Gi"}},
                }
            ],
            "nodeSelector": {"a": "b"},
            "tolerations": [
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}],
            "restartPolicy": "Never",
        }
    },
    "Event": {
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a"},
        "reason": "Because",
        "message": "words",
        "type": "Normal",
        "count": 1,
        "firstTimestamp": "2023-11-14T22:13:20Z",
        "lastTimestamp": "2023-11-14T22:13:20Z",
        "source": {"component": "fuzz"},
    },
    "ConfigMap": {"data": {"a": "1", "b": "two\nlines"}, "binaryData": {"c": "AAECAw=="}},
    "Secret": {"type": "Opaque", "data": {"a": "cGFzcw=="}, "stringData": {"b": "plain"}},
    "ServiceAccount": {"automountServiceAccountToken": False},
    "Lease": {
        "spec": {
            "holderIdentity": "me",
            "leaseDurationSeconds": 15,
            "renewTime": "2023-11-14T22:13:20.000000Z",
            "leaseTransitions": 0,
        }
    },
    "DeviceClass": {"spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}},
    "ResourceSlice": {
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "a",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": "d0",
                    "attributes": {"model": {"string": "A100"}, "index": {"int": 0}},
                    "capacity": {"memory": {"value": "80Gi"}},
                }
            ],
        }
    },
    "ResourceClaim": {"spec": _CLAIM},
    "ResourceClaimTemplate": {"spec": {"spec": _CLAIM}},
    "DeviceTaintRule": {
        "spec": {
            "deviceSelector": {"driver": "gpu.example.com", "pool": "p"},
            "taint": {"key": "example.com/sick", "value": "yes", "effect": "NoSchedule"},
        }
    },
    "ComposabilityRequest": {"spec": {"resource": {"type": "gpu", "model": "A100", "size": 1}}},
    "ComposableResource": {"spec": {"type": "gpu", "model": "A100", "target_node": "a"}},
}
STATUSES: dict[str, Raw] = {
    "Pod": {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    "Node": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "ResourceClaim": {
        "status": {
            "allocation": {
                "devices": {
                    "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "p", "device": "d0"}]
                }
            },
            "reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}],
        }
    },
    "ComposableResource": {"status": {"state": "Online", "device_id": "d"}},
    "ComposabilityRequest": {"status": {"state": "Running"}},
}


def home(kind: Kind) -> str:
    """Return where objects of a kind live."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def whole(kind: Kind, name: str) -> Raw:
    """Return an object of a kind that is accepted."""
    metadata: Raw = {"name": name, "labels": {"app": "x"}, "annotations": {"note": "words"}}
    spec = SPECS.get(kind.kind)
    if spec is None:
        found: Raw = definitions.definitions()[NAMES.index(name) % 2]
        return found
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **spec}


def calls() -> tuple[Call, ...]:
    """Return all of them, in an order in which most are accepted."""
    of_kinds = (one for kind in kinds.KINDS for one in _on(kind))
    return (*_creations(), *of_kinds, *_of_itself(), *_others(), *_packed())


def _creations() -> Iterator[Call]:
    for kind in kinds.KINDS:
        for name in NAMES:
            yield _sent("POST", home(kind), whole(kind, name), fieldManager="fuzz")
        generated = whole(kind, "a")
        generated["metadata"] = {"generateName": "made-up-"}
        yield _sent("POST", home(kind), generated, dryRun="All", fieldValidation="Strict")


def _on(kind: Kind) -> Iterator[Call]:
    place = home(kind)
    for accept in ("", TABLE, METADATA, "application/yaml"):
        yield Call("GET", place, {"limit": "1"}, accept=accept)
        yield Call("GET", f"{place}/a", accept=accept, agent="kubectl/v1.36")
    query = {"labelSelector": "app in (x, y),!z,app!=q", "fieldSelector": "metadata.name!=zz"}
    yield Call("GET", place, {**query, "resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"})
    watching = {"watch": "true", "timeoutSeconds": "5", "allowWatchBookmarks": "true"}
    yield Call("GET", place, {**watching, "resourceVersion": "5"})
    initial = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    yield Call("GET", place, {**watching, **initial}, accept=TABLE)
    for name in NAMES[:2]:
        yield from _changes(kind, f"{place}/{name}", name)
    if kind.has_status:
        body = STATUSES.get(kind.kind, {"status": {}})
        yield _sent("PATCH", f"{place}/a/status", body, MERGE)
        yield _sent("PUT", f"{place}/a/status", {**whole(kind, "a"), **body})
        applied = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, **body}
        yield _sent("PATCH", f"{place}/a/status", applied, APPLY, fieldManager="status", force="true")
    yield _sent("DELETE", f"{place}/c", {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
    yield Call("DELETE", place, {"labelSelector": "app=gone", "dryRun": "All"})


def _changes(kind: Kind, path: str, name: str) -> Iterator[Call]:
    object_ = whole(kind, name)
    labels: Raw = {"metadata": {"labels": {"b": "2", "app": None}, "finalizers": ["example.com/f"]}}
    yield _sent("PUT", path, object_)
    yield _sent("PATCH", path, labels, MERGE, fieldManager="merge")
    yield _sent("PATCH", path, labels, STRATEGIC)
    operations = [
        {"op": "test", "path": "/metadata/name", "value": name},
        {"op": "add", "path": "/metadata/labels", "value": {"j": "1"}},
        {"op": "copy", "from": "/metadata/labels/j", "path": "/metadata/labels/k"},
        {"op": "move", "from": "/metadata/labels/k", "path": "/metadata/labels/l"},
        {"op": "remove", "path": "/metadata/labels/l"},
    ]
    yield _sent("PATCH", path, operations, JSON_PATCH)
    yield _sent("PATCH", path, object_, APPLY, fieldManager="one", force="true")
    yield _sent("PATCH", path, {**object_, "metadata": {"name": name}}, APPLY, fieldManager="two")


def _of_itself() -> Iterator[Call]:
    for path in ("/api", "/apis", "/api/v1", "/apis/resource.k8s.io", "/apis/resource.k8s.io/v1"):
        yield Call("GET", path)
    discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    yield Call("GET", "/apis", accept=discovery)
    for path in ("/version", "/healthz", "/openapi/v3", "/openapi/v3/api/v1", "/openapi/v2", "/"):
        yield Call("GET", path)


def _others() -> Iterator[Call]:
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield _sent("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    yield _sent("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "a"}})
    yield _sent("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    pod = "/api/v1/namespaces/default/pods/b"
    yield _sent("POST", f"{pod}/binding", {"target": {"kind": "Node", "name": "a"}})
    yield _sent("POST", f"{pod}/eviction", {"deleteOptions": {"gracePeriodSeconds": 1}})
    yield Call("GET", f"{pod}/log", {"container": "c"})
    yield _sent(
        "PUT", "/api/v1/namespaces/b/finalize", {"metadata": {"name": "b"}, "spec": {"finalizers": []}}
    )


def _packed() -> Iterator[Call]:
    """Calls of Go clients, which pack their objects."""
    place = "/api/v1/namespaces/default"
    for name in NAMES * 4:
        metadata = _field(1, _field(1, name.encode()) + _field(11, _field(1, b"app") + _field(2, b"x")))
        data = _field(2, _field(1, b"key") + _field(2, b"value"))
        yield _pack("POST", f"{place}/configmaps", "ConfigMap", metadata + data)
        container = _field(
            2, _field(1, b"c") + _field(2, b"image") + _field(7, _field(1, b"A") + _field(2, b"b"))
        )
        yield _pack("POST", f"{place}/pods", "Pod", metadata + _field(2, container))
        yield _pack("PUT", f"/api/v1/nodes/{name}", "Node", metadata + _field(2, b"\x20\x01"))
        yield _pack("DELETE", f"{place}/pods/{name}", "DeleteOptions", b"\x08\x00")


def _pack(method: str, path: str, kind: str, body: bytes) -> Call:
    said = _field(1, _field(1, b"v1") + _field(2, kind.encode()))
    return Call(method, path, {}, b"k8s\x00" + said + _field(2, body), "application/vnd.kubernetes.protobuf")


def _field(number: int, data: bytes) -> bytes:
    assert len(data) < 2**14
    size = bytes([len(data)]) if len(data) < 2**7 else bytes([len(data) & 127 | 128, len(data) >> 7])
    return bytes([number << 3 | 2]) + size + data


def _sent(method: str, path: str, body: object, content_type: str = JSON, /, **query: str) -> Call:
    return Call(method, path, query, msgspec.json.encode(body), content_type, agent="fuzz/1 (x)")
