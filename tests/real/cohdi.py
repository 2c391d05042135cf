"""CoHDI as its chart installs it, and its books as its operator writes them; none of its programs runs.

Knows its objects, written anew from what its wire and its chart are known to be. Must not know what becomes of them.
"""

import subprocess
from pathlib import Path

import yaml

from jackfield.codec import Raw
from jackfield.testing.control_plane import ControlPlane

DRIVER = "gpu.nvidia.com"
MODEL = "NVIDIA-A100-80GB-PCIe"
GROUP = "cro.hpsys.ibm.ie.com"
FINALIZER = "com.ie.ibm.hpsys/finalizer"
SETTINGS = "composable-dra"
OPERATOR = "composable-resource-operator-system"
RELEASE, HOME = "cohdi", "cohdi"
TENANT = "0b4a5c2e-0000-4000-8000-000000000001"
REQUEST = "composability-x7k2p"
POOL = "nvidia-a100-80gb-fabric1"

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "format": "int64", "minimum": 0}
_KIND = {"type": "string", "enum": ["gpu", "cxlmemory"]}
_SCALAR = {
    "type": "object",
    "required": ["model", "size", "type"],
    "properties": {
        "type": _KIND,
        "model": {"type": "string", "minLength": 1},
        "size": _COUNT,
        "force_detach": {"type": "boolean"},
        "allocation_policy": {"type": "string", "enum": ["samenode", "differentnode"], "default": "samenode"},
        "target_node": _TEXT,
        "other_spec": {
            "type": "object",
            "properties": dict.fromkeys(
                ("milli_cpu", "memory", "ephemeral_storage", "allowed_pod_number"), _COUNT
            ),
        },
    },
}
_CHILD = {
    "type": "object",
    "required": ["state"],
    "properties": dict.fromkeys(("state", "device_id", "cdi_device_id", "node_name", "error"), _TEXT),
}
REQUESTS: Raw = {
    "spec": {"type": "object", "properties": {"resource": _SCALAR}},
    "status": {
        "type": "object",
        "required": ["state"],
        "properties": {
            **dict.fromkeys(("state", "error"), _TEXT),
            "resources": {"type": "object", "additionalProperties": _CHILD},
            "scalarResource": _SCALAR,
        },
    },
}
RESOURCES: Raw = {
    "spec": {
        "type": "object",
        "required": ["model", "target_node", "type"],
        "properties": {
            "type": _KIND,
            "model": _TEXT,
            "target_node": _TEXT,
            "force_detach": {"type": "boolean"},
        },
    },
    "status": {
        "type": "object",
        "required": ["state"],
        "properties": dict.fromkeys(("state", "error", "device_id", "cdi_device_id"), _TEXT),
    },
}


def _definition(kind: str, properties: Raw, conversion: Raw) -> Raw:
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": schema}
    spec = {"group": GROUP, "names": names, "scope": "Cluster", **conversion}
    return _object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        {"name": f"{plural}.{GROUP}"},
        spec={**spec, "versions": [{**version, "subresources": {"status": {}}}]},
    )


def _object(version: str, kind: str, metadata: Raw, **rest: object) -> Raw:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _deployment(namespace: str, name: str, environment: dict[str, str]) -> Raw:
    """A Deployment that stays on the control plane's nodes, of which there are none here."""
    told = [{"name": key, "value": value} for key, value in environment.items()]
    container = {"name": name, "image": f"ghcr.io/cohdi/{name}:v0.2.0", "env": told}
    pod = {
        "containers": [container],
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["cdimgr.localdomain"]}],
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": pod}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return _object("apps/v1", "Deployment", {"name": name, "namespace": namespace}, spec=spec)


def webhook() -> Raw:
    """Return the configuration of its webhook."""
    place = {"name": "composable-resource-operator-webhook-service", "namespace": OPERATOR}
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["composabilityrequests"],
    }
    entry = {
        "name": "vcomposabilityrequest.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {**place, "path": f"/validate-{GROUP.replace('.', '-')}-v1alpha1-composabilityrequest"}
        },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "rules": [rule],
    }
    return _object(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        {"name": "composable-resource-operator-validating-webhook-configuration"},
        webhooks=[entry],
    )


def objects(endpoint: str, password: str) -> list[Raw]:
    """Return what CoHDI's chart installs, for a manager at this address."""
    device = {
        "index": 1,
        "cdi-model-name": MODEL,
        "k8s-device-name": "nvidia-a100-80gb",
        "driver-name": DRIVER,
        "dra-attributes": {"productName": "NVIDIA A100 80GB PCIe", "uuid": ""},
        "cannot-coexist-with": [],
    }
    data = {"label-prefix": "cohdi.io", "fabric-id-range": "[1]", "device-info": yaml.safe_dump([device])}
    credentials = {
        "username": "u",
        "password": password,
        "realm": "r",
        "client_id": "cdi",
        "client_secret": "s",
    }
    service = {"name": "composable-resource-operator-webhook-service", "namespace": OPERATOR}
    conversion = {
        "conversion": {
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {**service, "path": "/convert", "port": 443}},
                "conversionReviewVersions": ["v1"],
            },
        }
    }
    operators = {
        "FTI_CDI_API_TYPE": "FM",
        "CDI_PROVIDER_TYPE": "FTI_CDI",
        "DEVICE_RESOURCE_TYPE": "DRA",
        "FTI_CDI_TENANT_ID": TENANT,
        "FTI_CDI_ENDPOINT": "192.0.2.1:443",
    }
    drivers = {"CDI_ENDPOINT": endpoint, "TENANT_ID": TENANT, "USE_CM": "false", "SCAN_INTERVAL": "5s"}
    return [
        *(_object("v1", "Namespace", {"name": name}) for name in (SETTINGS, OPERATOR)),
        _definition("ComposabilityRequest", REQUESTS, conversion),
        _definition("ComposableResource", RESOURCES, {}),
        _object("v1", "ConfigMap", {"name": "composable-dra-dds", "namespace": SETTINGS}, data=data),
        _object(
            "v1",
            "Secret",
            {"name": "composable-dra-secret", "namespace": SETTINGS},
            stringData=credentials,
            type="Opaque",
        ),
        _object("v1", "Secret", {"name": "credentials", "namespace": OPERATOR}, stringData=credentials),
        _deployment(SETTINGS, "composable-dra-driver", drivers),
        _deployment(SETTINGS, "dds-controller-manager", {"DEVICE_NO_REMOVAL_DURATION": "600"}),
        _deployment(OPERATOR, "composable-resource-operator-controller-manager", operators),
        webhook(),
    ]


class Helm:
    """Real Helm, with a chart of CoHDI's objects."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        script = Path(__file__).resolve().parents[2] / "tools" / "helm" / "build"
        built = subprocess.run([script], capture_output=True, text=True, check=False)
        assert built.returncode == 0, f"there is no Helm here: {built.stderr}"
        self._program = built.stdout.strip()
        self._kubeconfig = plane.kubeconfig
        self._folder = folder / "helm"

    def install(self, made: list[Raw]) -> None:
        """Install CoHDI as one release."""
        chart = self._folder / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text(
            yaml.safe_dump({"apiVersion": "v2", "name": "cohdi", "version": "0.2.0"})
        )
        (chart / "templates" / "all.yaml").write_text(yaml.safe_dump_all(made, explicit_start=True))
        self.run("install", RELEASE, str(chart), "--create-namespace")

    def run(self, *words: str) -> str:
        """Run Helm in the release's namespace; return what it prints."""
        home = {
            name: str(self._folder / name.lower())
            for name in ("HELM_CACHE_HOME", "HELM_DATA_HOME", "HELM_CONFIG_HOME")
        }
        done = subprocess.run(
            [self._program, *words, "--namespace", HOME, "--kubeconfig", str(self._kubeconfig)],
            env={**home, "HOME": str(self._folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr


# --- its books


def request(node: str, size: int, children: dict[str, Raw]) -> tuple[Raw, Raw]:
    """Return a request of its scaler's, served; and its status."""
    wish = {"type": "gpu", "model": MODEL, "size": size, "target_node": node, "allocation_policy": "samenode"}
    made = _object(
        f"{GROUP}/v1alpha1",
        "ComposabilityRequest",
        {"name": REQUEST, "finalizers": [FINALIZER]},
        spec={"resource": wish},
    )
    return made, {"state": "Running", "scalarResource": wish, "resources": children}


def resource(name: str, node: str) -> Raw:
    """Return a resource of its operator's."""
    return _object(
        f"{GROUP}/v1alpha1",
        "ComposableResource",
        {"name": name, "finalizers": [FINALIZER], "labels": {"app.kubernetes.io/managed-by": REQUEST}},
        spec={"type": "gpu", "model": MODEL, "target_node": node, "force_detach": False},
    )


def placeholders(count: int) -> Raw:
    """Return the slice of its DRA driver: so many free devices, for nodes with room."""
    conditions = {
        "bindsToNode": True,
        "bindingConditions": ["FabricDeviceReady"],
        "bindingFailureConditions": ["FabricDeviceReschedule", "FabricDeviceFailed"],
        "attributes": {"productName": {"string": "NVIDIA A100 80GB PCIe"}, "uuid": {"string": ""}},
    }
    needed = [
        {"key": "cohdi.io/fabric", "operator": "In", "values": ["1"]},
        {"key": "cohdi.io/nvidia-a100-80gb", "operator": "In", "values": ["true"]},
    ]
    return _object(
        "resource.k8s.io/v1",
        "ResourceSlice",
        {"name": "gpu.nvidia.com-q8f4w"},
        spec={
            "driver": DRIVER,
            "pool": {"name": POOL, "generation": 7, "resourceSliceCount": 1},
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": needed}]},
            "devices": [{"name": f"nvidia-a100-80gb-{number}", **conditions} for number in range(count)],
        },
    )
