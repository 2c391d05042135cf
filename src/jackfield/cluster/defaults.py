"""What the API server fills in where a writer said nothing.

Knows the defaults of each kind. Must not know what is valid.

Objects are completed in place. That is safe for parts shared with an older version: those have their defaults.
"""

from collections.abc import Callable, Mapping

from jackfield.codec import Raw, RawValue, dig, objects
from jackfield.model.names import Time

POD = {
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "priority": 0,
    "enableServiceLinks": True,
}
OTHER_SPEC = ("milli_cpu", "memory", "ephemeral_storage", "allowed_pod_number")


def complete(kind: str, raw: Raw, now: Time) -> None:
    """Fill in what the writer left out; amounts written as numbers become text."""
    fill = _FILL.get(kind)
    if fill is not None:
        fill(raw, now)


def _pod(raw: Raw, _now: Time) -> None:
    spec = raw.setdefault("spec", {})
    for name, value in POD.items():
        spec.setdefault(name, value)
    for toleration in objects(spec.get("tolerations")):
        _toleration(toleration)
    for container in (*objects(spec.get("containers")), *objects(spec.get("initContainers"))):
        for resources in objects([container.setdefault("resources", {})]):
            _resources(resources)
    raw.setdefault("status", {}).setdefault("phase", "Pending")


def _resources(resources: Raw) -> None:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    _amounts(limits)
    _amounts(requests)
    if isinstance(limits, dict) and isinstance(requests, dict) and limits.keys() - requests.keys():
        resources["requests"] = {**limits, **requests}


def _node(raw: Raw, _now: Time) -> None:
    raw.setdefault("spec", {})
    status = raw.setdefault("status", {})
    _amounts(status.get("capacity"))
    _amounts(status.get("allocatable"))
    if isinstance(status.get("capacity"), dict):
        status.setdefault("allocatable", dict(status["capacity"]))


def _claim(raw: Raw, _now: Time) -> None:
    _claim_spec(raw.get("spec"))
    for result in objects(dig(raw, "status", "allocation", "devices", "results")):
        _amounts(result.get("consumedCapacity"))


def _template(raw: Raw, _now: Time) -> None:
    _claim_spec(dig(raw, "spec", "spec"))


def _claim_spec(spec: RawValue) -> None:
    for request in objects(dig(spec, "devices", "requests")):
        for one in (*objects([request.get("exactly")]), *objects(request.get("firstAvailable"))):
            mode = one.setdefault("allocationMode", "ExactCount")
            if mode == "ExactCount":
                one.setdefault("count", 1)
            for toleration in objects(one.get("tolerations")):
                _toleration(toleration)
            _amounts(dig(one, "capacity", "requests"))


def _slice(raw: Raw, now: Time) -> None:
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
            if _is_amount(member.get("value")):
                member["value"] = str(member["value"])
            for policy in objects([member.get("requestPolicy")]):
                _policy(policy)


def _policy(policy: Raw) -> None:
    if _is_amount(policy.get("default")):
        policy["default"] = str(policy["default"])
    values = policy.get("validValues")
    if isinstance(values, list):
        policy["validValues"] = [str(one) if _is_amount(one) else one for one in values]
    _amounts(policy.get("validRange"))


def _amounts(amounts: RawValue) -> None:
    if isinstance(amounts, dict):
        for name, value in amounts.items():
            if _is_amount(value):
                amounts[name] = str(value)


def _is_amount(value: RawValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _taint_rule(raw: Raw, now: Time) -> None:
    for taint in objects([dig(raw, "spec", "taint")]):
        taint.setdefault("timeAdded", now)


_FILL: Mapping[str, Callable[[Raw, Time], None]] = {
    "Pod": _pod,
    "Node": _node,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
    "ResourceSlice": _slice,
    "DeviceTaintRule": _taint_rule,
    "ComposabilityRequest": _request,
}
