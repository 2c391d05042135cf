"""Values that people may give the chart: one table for all tests of it. Must not know what is rendered from them."""

from typing import Final

from jackfield.codec import Raw

MODEL: Final[Raw] = {
    "index": 1,
    "cdi-model-name": "A100",
    "k8s-device-name": "a100",
    "dra-attributes": {"productName": "A100"},
}
VENDORS: Final[Raw] = {
    "index": 2,
    "cdi-model-name": "H100",
    "k8s-device-name": "h100",
    "driver-name": "gpu.nvidia.com",
}
FABRIC: Final[Raw] = {
    "name": "rack-a",
    "type": "native",
    "url": "https://manager.example.com:8443",
    "existingSecret": "rack-a-token",
    "tokenKey": "token",
    "caKey": "ca.crt",
}
FSAS: Final[Raw] = {
    "name": "rack-c",
    "type": "fsas-fm",
    "url": "https://cdi.example.com",
    "existingSecret": "rack-c-credentials",
    "options": {
        "tenant": "0b4a5c2e-0000-4000-8000-000000000001",
        "credentialsDirectory": "/etc/jackfield/secrets/rack-c",
        "models": [{"name": "H100"}],
    },
}
INVENTORY: Final[Raw] = {
    "fabric": "lab",
    "machines": [{"name": "worker", "count": 4}],
    "devices": [{"name": "gpu", "model": "A100", "count": 8}],
}
LAB: Final[Raw] = {"enabled": True, "inventory": INVENTORY, "existingSecret": "lab-token"}
WATCHED: Final[Raw] = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
    "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
}
PODS: Final[Raw] = {
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "fabric", "operator": "Exists"}]}]
            }
        }
    },
    "podAnnotations": {"example.com/owner": "platform"},
    "podLabels": {"team": "platform"},
    "priorityClassName": "",
    "resources": {"requests": {"cpu": 1, "memory": "100Mi"}},
}
MORE: Final[Raw] = {
    "extraArgs": ["--identity=me"],
    "extraEnv": [{"name": "RACK_B_TOKEN", "valueFrom": {"secretKeyRef": {"name": "rack-b", "key": "token"}}}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
}
EVERYTHING: Final[Raw] = {
    "image": {
        "repository": "registry.example.com:5000/mirror/jackfield",
        "digest": "sha256:" + "0123456789abcdef" * 4,
        "pullPolicy": "Always",
    },
    "imagePullSecrets": [{"name": "mirror"}],
    "commonLabels": {"example.com/site": "north"},
    "logFormat": "text",
    "policy": {"holdSeconds": 300, "models": [MODEL, VENDORS]},
    "fabrics": [FABRIC, FSAS],
    "controllers": {
        "replicas": 3,
        "parts": ["publisher", "scaler"],
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "topologySpreadConstraints": [],
        **PODS,
        **MORE,
    },
    "node": {
        "kubeletRoot": "/srv/kubelet",
        "cdiRoot": "/etc/cdi",
        "netDevices": True,
        "sharing": {"partitions": "OnDemand", "shares": {"count": 4}},
        "runtimeClassName": "nvidia",
        "maxSurge": "10%",
        **PODS,
        **MORE,
        "extraArgs": ["--no-net-devices"],
    },
    "fabricManager": {
        **LAB,
        "tls": {"existingSecret": "lab-tls"},
        "faces": ["native"],
        "storage": {"size": "5Gi", "storageClassName": "fast"},
        **PODS,
    },
    "deviceClasses": {
        "node.jackfield.dev": None,
        "shared.example.com": {
            "expressions": ['device.driver == "node.jackfield.dev"'],
            "config": [{"opaque": {"driver": "node.jackfield.dev", "parameters": {"a": "b"}}}],
        },
    },
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}],
        "egress": [{"ports": [{"port": 443}]}],
    },
    **WATCHED,
}
GOOD: Final[dict[str, Raw]] = {
    "nothing": {},
    "a fabric": {"policy": {"models": [MODEL]}, "fabrics": [FABRIC]},
    "a lab": {"policy": {"models": [MODEL]}, "fabricManager": LAB, "networkPolicy": {"enabled": True}},
    "a vendor's driver": {
        "policy": {"models": [VENDORS]},
        "fabrics": [FSAS],
        "node": {"enabled": False},
        **WATCHED,
    },
    "CoHDI's settings": {"cohdi": {"takeOver": True, "drivers": ["gpu.nvidia.com", "gpu.example.com"]}},
    "others' permissions": {"permissions": {"create": False}, "namespaces": {"create": False}},
    "everything": EVERYTHING,
}
BAD: Final[list[tuple[str, Raw, str]]] = [
    ("a misspelt value", {"controllers": {"replica": 3}}, "'replica' not allowed"),
    ("a word for a number", {"controllers": {"replicas": "two"}}, "replicas': got string, want integer"),
    (
        "an unknown part",
        {"controllers": {"parts": ["scheduler"]}},
        "parts/0': value must be one of 'publisher'",
    ),
    (
        "a misspelt setting of the policy",
        {"policy": {"holdSecond": 3}},
        "'/policy': additional properties 'holdSec",
    ),
    (
        "half a model",
        {"policy": {"models": [{"index": 1}]}},
        "missing properties 'cdi-model-name', 'k8s-device",
    ),
    (
        "an unknown manager",
        {"fabrics": [{**FABRIC, "type": "redfsh"}]},
        "fabrics/0/type': value must be one of",
    ),
    ("a fabric without address", {"fabrics": [{"name": "a", "type": "nec"}]}, "missing property 'url'"),
    (
        "a fabric's name that is no folder's",
        {"fabrics": [{**FABRIC, "name": "../a"}]},
        "'../a' does not match",
    ),
    (
        "a token in the values",
        {"fabrics": [{**FABRIC, "token": "x"}]},
        "additional properties 'token' not allowed",
    ),
    (
        "a key of no Secret",
        {"fabrics": [{"name": "a", "type": "nec", "url": "https://a", "tokenKey": "t"}]},
        "'existingSecret' required, if 'tokenKey' exists",
    ),
    (
        "a manager without a lab",
        {"fabricManager": {"enabled": True}},
        "missing properties 'fabric', 'machines'",
    ),
    (
        "a manager without a token",
        {"fabricManager": {**LAB, "existingSecret": ""}},
        "'/fabricManager/existingSecret': minLength: got 0, want 1",
    ),
    (
        "CoHDI's settings beside ours",
        {"cohdi": {"takeOver": True}, "fabrics": [FABRIC]},
        "at '/fabrics': maxItems: got 1, want 0",
    ),
    ("a tag as digest", {"image": {"digest": "latest"}}, "'/image/digest': 'latest' does not match pattern"),
    (
        "an image with its tag",
        {"image": {"repository": "jackfield:1"}},
        "'/image/repository': 'jackfield:1' does not",
    ),
    (
        "a plugin in no folder",
        {"node": {"kubeletRoot": "kubelet"}},
        "'/node/kubeletRoot': 'kubelet' does not match",
    ),
]
