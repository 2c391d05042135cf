"""What the API server fills in where a writer said nothing.

Knows the defaults of each kind. Must not know what is valid.

Objects are completed in place. That is safe for parts shared with an older version: those have their defaults.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping

from jackfield.cluster import pod_defaults
from jackfield.codec import Raw, RawValue, dig, objects
from jackfield.model.names import Time

NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
OTHER_SPEC = ("milli_cpu", "memory", "ephemeral_storage", "allowed_pod_number")


def complete(kind: str, raw: Raw, now: Time, old: Raw | None = None) -> None:
    """Fill in what the writer left out, and spell amounts as Kubernetes does. A spec that is the old one has it all."""
    if old is None or raw.get("spec") is not old.get("spec"):
        fill = _SPECS.get(kind)
        if fill is not None:
            fill(raw, now)
    fill = _OTHERS.get(kind)
    if fill is not None:
        fill(raw, now)


def _pod(raw: Raw, _now: Time) -> None:
    pod_defaults.complete(raw.setdefault("spec", {}))


def _pod_status(raw: Raw, _now: Time) -> None:
    pod_defaults.complete_status(raw.get("status"))


def _node(raw: Raw, _now: Time) -> None:
    spec = raw.setdefault("spec", {})
    if spec.get("unschedulable") is False:
        del spec["unschedulable"]
    _without_empty(spec, ("taints",))
    if spec.get("podCIDR"):
        spec.setdefault("podCIDRs", [spec["podCIDR"]])


def _node_status(raw: Raw, _now: Time) -> None:
    status = raw.setdefault("status", {})
    pod_defaults.amounts(status.get("capacity"))
    pod_defaults.amounts(status.get("allocatable"))
    if isinstance(status.get("capacity"), dict):
        status.setdefault("allocatable", dict(status["capacity"]))
    for one in objects(status.get("conditions")):
        one.setdefault("lastHeartbeatTime", None)
        one.setdefault("lastTransitionTime", None)
    for endpoint in objects([status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {})]):
        endpoint.setdefault("Port", 0)
    for name in NODE_INFO:
        status.setdefault("nodeInfo", {}).setdefault(name, "")


def _namespace(raw: Raw, _now: Time) -> None:
    metadata = raw["metadata"]
    if metadata.get("name"):
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "kubernetes.io/metadata.name": metadata["name"],
        }


def _secret(raw: Raw, _now: Time) -> None:
    """What is given as text is kept as bytes."""
    if not raw.get("type"):
        raw["type"] = "Opaque"
    texts = raw.pop("stringData", None)
    _bytes(raw, "data")
    if isinstance(texts, dict) and texts:
        encoded = {name: b64encode(str(text).encode()).decode() for name, text in texts.items()}
        raw["data"] = {**(raw.get("data") or {}), **encoded}
    _without_empty(raw, ("data",))


def _bytes(raw: Raw, name: str) -> None:
    """Spell bytes in the one way in which they are written, whichever way they were."""
    found = raw.get(name)
    if isinstance(found, dict):
        raw[name] = {
            key: b64encode(b64decode(text)).decode() if isinstance(text, str) else text
            for key, text in found.items()
        }


def _config_map(raw: Raw, _now: Time) -> None:
    _bytes(raw, "binaryData")
    _without_empty(raw, ("data", "binaryData"))


def _definition(raw: Raw, _now: Time) -> None:
    for spec in objects([raw.get("spec")]):
        spec.setdefault("conversion", {"strategy": "None"})


def _event(raw: Raw, _now: Time) -> None:
    raw.setdefault("source", {})
    for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
        raw.setdefault(name, None)
    for name in ("reportingComponent", "reportingInstance"):
        raw.setdefault(name, "")


def _without_empty(raw: Raw, names: tuple[str, ...]) -> None:
    for name in names:
        if name in raw and not raw[name]:
            del raw[name]


def _claim(raw: Raw, _now: Time) -> None:
    _claim_spec(raw.setdefault("spec", {}))


def _claim_status(raw: Raw, _now: Time) -> None:
    raw.setdefault("status", {})
    for result in objects(dig(raw, "status", "allocation", "devices", "results")):
        pod_defaults.amounts(result.get("consumedCapacity"))


def _template(raw: Raw, _now: Time) -> None:
    spec = raw.get("spec")
    if isinstance(spec, dict):
        spec.setdefault("metadata", {})
        _claim_spec(spec.setdefault("spec", {}))


def _with_spec(raw: Raw, _now: Time) -> None:
    raw.setdefault("spec", {})


def _claim_spec(spec: RawValue) -> None:
    if isinstance(spec, dict):
        spec.setdefault("devices", {})
        if isinstance(spec["devices"], dict):
            spec["devices"].setdefault("requests", None)
    for request in objects(dig(spec, "devices", "requests")):
        for one in (*objects([request.get("exactly")]), *objects(request.get("firstAvailable"))):
            mode = one.setdefault("allocationMode", "ExactCount")
            if mode == "ExactCount":
                one.setdefault("count", 1)
            for toleration in objects(one.get("tolerations")):
                _toleration(toleration)
            pod_defaults.amounts(dig(one, "capacity", "requests"))


def _slice(raw: Raw, now: Time) -> None:
    for spec in objects([raw.get("spec")]):
        _without_empty(spec, ("devices", "sharedCounters"))
    for counters in objects(dig(raw, "spec", "sharedCounters")):
        _values(counters.get("counters"))
    for device in objects(dig(raw, "spec", "devices")):
        _values(device.get("capacity"))
        for consumption in objects(device.get("consumesCounters")):
            _values(consumption.get("counters"))
        for taint in objects(device.get("taints")):
            taint.setdefault("timeAdded", now)


def _request(raw: Raw, _now: Time) -> None:
    for resource in objects([dig(raw, "spec", "resource")]):
        resource.setdefault("allocation_policy", "samenode")
        resource.setdefault("target_node", "")
        for other in objects([resource.get("other_spec")]):
            for name in OTHER_SPEC:
                other.setdefault(name, 0)


def _toleration(toleration: Raw) -> None:
    toleration.setdefault("operator", "Equal")


def _values(members: RawValue) -> None:
    if isinstance(members, dict):
        for member in objects(list(members.values())):
            if "value" in member:
                member["value"] = pod_defaults.amount(member["value"])
            for policy in objects([member.get("requestPolicy")]):
                _policy(policy)


def _policy(policy: Raw) -> None:
    if "default" in policy:
        policy["default"] = pod_defaults.amount(policy["default"])
    values = policy.get("validValues")
    if isinstance(values, list):
        policy["validValues"] = [pod_defaults.amount(one) for one in values]
    pod_defaults.amounts(policy.get("validRange"))


def _taint_rule(raw: Raw, now: Time) -> None:
    for taint in objects([dig(raw, "spec", "taint")]):
        taint.setdefault("timeAdded", now)


_SPECS: Mapping[str, Callable[[Raw, Time], None]] = {
    "Pod": _pod,
    "Node": _node,
    "Lease": _with_spec,
    "CustomResourceDefinition": _definition,
    "DeviceClass": _with_spec,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
    "DeviceTaintRule": _taint_rule,
    "ComposabilityRequest": _request,
}
_OTHERS: Mapping[str, Callable[[Raw, Time], None]] = {
    "Namespace": _namespace,
    "Pod": _pod_status,
    "Node": _node_status,
    "Event": _event,
    "ConfigMap": _config_map,
    "Secret": _secret,
    "ResourceClaim": _claim_status,
}
