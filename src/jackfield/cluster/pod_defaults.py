"""What the API server fills in where a pod says nothing, and what it leaves out because it says nothing.

Knows the defaults of core/v1's PodSpec. Must not know other objects, nor what is valid.

Specs are completed in place; one that is complete stays as it is.
"""

from collections.abc import Mapping
from typing import Final

from jackfield.codec import Raw, RawValue, dig, objects
from jackfield.model import quantity

SPEC: Final = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
MODE: Final = 0o644
TOKEN_SECONDS: Final = 3600

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS: Final = ("postStart", "preStop")
_NO_WORD: Final = ("hostNetwork", "hostPID", "hostIPC")
_NO_WORD_OF_CONTAINER: Final = ("stdin", "stdinOnce", "tty")
_LISTS: Final = (
    "nodeSelector",
    "tolerations",
    "volumes",
    "imagePullSecrets",
    "resourceClaims",
    "initContainers",
    "hostAliases",
)
_LISTS_OF_CONTAINER: Final = ("command", "args", "env", "envFrom", "ports", "volumeMounts", "volumeDevices")
_MESSAGES: Final = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_STATUS: Final = {"name": "", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
_GUARANTEED: Final = ("cpu", "memory")


def complete(spec: Raw) -> None:
    """Fill in a pod's defaults."""
    for name, value in SPEC.items():
        if not spec.get(name) and (name not in spec or isinstance(value, str)):
            spec[name] = value
    grace = spec["terminationGracePeriodSeconds"]
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1
    spec.setdefault("securityContext", {})
    _drop(spec, _NO_WORD, _LISTS)
    _account(spec)
    for volume in objects(spec.get("volumes")):
        _volume(volume)
    for field in _CONTAINERS:
        for container in objects(spec.get(field)):
            _container(container)
            if spec.get("hostNetwork"):
                _host_ports(container)
    _resources(spec.get("resources"))


def _account(spec: Raw) -> None:
    """An account can be named in two ways, an old one included: what is said in one is said in the other."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def complete_status(status: RawValue) -> None:
    """Say of a pod's status what Kubernetes says even where it is nothing."""
    if not isinstance(status, dict):
        return
    for one in objects(status.get("conditions")):
        one.setdefault("lastProbeTime", None)
        one.setdefault("lastTransitionTime", None)
    for field in _STATUSES:
        for one in objects(status.get(field)):
            for name, value in _STATUS.items():
                one.setdefault(name, value)
            for name in ("state", "lastState"):
                one.setdefault(name, {})
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]


def amounts(found: RawValue) -> None:
    """Spell amounts as Kubernetes does, whoever wrote them how; what is none is left to be complained of."""
    if isinstance(found, dict):
        for name, value in found.items():
            found[name] = amount(value)


def amount(value: RawValue) -> RawValue:
    """Return an amount as Kubernetes spells it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        return str(quantity.parse(value.strip() if isinstance(value, str) else str(value)))
    except quantity.QuantityError:
        return str(value)


def quality(spec: Raw) -> str:
    """Return the quality of service that a pod asks for by its requests and limits."""
    level = spec.get("resources")
    pod_level = isinstance(level, dict)
    found = (
        [level]
        if pod_level
        else [
            dig(one, "resources")
            for field in ("containers", "initContainers")
            for one in objects(spec.get(field))
        ]
    )
    requests, limits = _sums(found, "requests"), _sums(found, "limits")
    if not requests and not limits:
        return "BestEffort"
    limited = all(set(_GUARANTEED) <= _sums([one], "limits").keys() for one in found)
    return "Guaranteed" if limited and requests == limits else "Burstable"


# --- containers


def _container(container: Raw) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = _pull_policy(container.get("image"))
    for name, value in _MESSAGES.items():
        if not container.get(name):
            container[name] = value
    _drop(container, _NO_WORD_OF_CONTAINER, _LISTS_OF_CONTAINER)
    _resources(container.setdefault("resources", {}))
    for port in objects(container.get("ports")):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in objects(container.get("env")):
        _variable(variable)
    for mount in objects(container.get("volumeMounts")):
        _drop(mount, ("readOnly",), ())
    _checks(container)


def _checks(container: Raw) -> None:
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    if "lifecycle" in container:
        for name in _HANDLERS:
            _http(dig(container, "lifecycle", name, "httpGet"))


def _variable(variable: Raw) -> None:
    if variable.get("value") == "":
        del variable["value"]
    source = variable.get("valueFrom")
    if source is not None:
        _reference(dig(source, "fieldRef"))
        _divisor(dig(source, "resourceFieldRef"))


def _resources(resources: RawValue) -> None:
    """Spell amounts; what is limited is requested, as far as nothing else is said."""
    if not resources or not isinstance(resources, dict):
        return
    limits, requests = resources.get("limits"), resources.get("requests")
    amounts(limits)
    amounts(requests)
    for name, found in (("limits", limits), ("requests", requests)):
        if name in resources and not found:
            del resources[name]
    if (
        isinstance(limits, dict)
        and isinstance(requests or {}, dict)
        and limits.keys() - (requests or {}).keys()
    ):
        resources["requests"] = {**limits, **(requests or {})}


def _host_ports(container: Raw) -> None:
    for port in objects(container.get("ports")):
        if not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]


def _probe(probe: RawValue) -> None:
    if isinstance(probe, dict):
        for name, value in PROBE.items():
            if not probe.get(name):
                probe[name] = value
        if not probe.get("initialDelaySeconds", 1):
            del probe["initialDelaySeconds"]
        _http(probe.get("httpGet"))
        if isinstance(probe.get("grpc"), dict):
            probe["grpc"].setdefault("service", "")


def _http(action: RawValue) -> None:
    if isinstance(action, dict):
        if not action.get("path"):
            action["path"] = "/"
        if not action.get("scheme"):
            action["scheme"] = "HTTP"


def _reference(field: RawValue) -> None:
    if isinstance(field, dict) and not field.get("apiVersion"):
        field["apiVersion"] = "v1"


def _divisor(field: RawValue) -> None:
    if isinstance(field, dict):
        field["divisor"] = amount(field.get("divisor", "0"))


def _pull_policy(image: RawValue) -> str:
    """Return when to fetch an image: always if it may be another one tomorrow, by its tag or for want of one."""
    if not isinstance(image, str) or not image:
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    _, colon, tag = name.rpartition("/")[2].partition(":")
    return "Always" if tag == "latest" or (not colon and not digest) else "IfNotPresent"


# --- volumes


def _volume(volume: Raw) -> None:
    if len(volume) <= 1:
        volume["emptyDir"] = {}
    for name, source in volume.items():
        if isinstance(source, dict):
            _source(name, source)


def _source(name: str, source: Raw) -> None:
    match name:
        case "secret" | "configMap" | "downwardAPI" | "projected":
            source.setdefault("defaultMode", MODE)
            _projections(name, source)
        case "hostPath":
            source.setdefault("type", "")
        case "image" if not source.get("pullPolicy"):
            source["pullPolicy"] = _pull_policy(source.get("reference"))
        case "emptyDir" if "sizeLimit" in source:
            source["sizeLimit"] = amount(source["sizeLimit"])
        case "ephemeral":
            for spec in objects([dig(source, "volumeClaimTemplate", "spec")]):
                spec.setdefault("volumeMode", "Filesystem")
                amounts(dig(spec, "resources", "requests"))
        case _:
            return


def _projections(name: str, source: Raw) -> None:
    if name == "downwardAPI":
        _downward(source)
    for one in objects(source.get("sources")):
        _downward(one.get("downwardAPI"))
        for token in objects([one.get("serviceAccountToken")]):
            token.setdefault("expirationSeconds", TOKEN_SECONDS)


def _downward(source: RawValue) -> None:
    for item in objects(dig(source, "items")):
        _reference(item.get("fieldRef"))
        _divisor(item.get("resourceFieldRef"))


# --- both


def _drop(part: Raw, words: tuple[str, ...], lists: tuple[str, ...]) -> None:
    """Leave out what Kubernetes does not write: a false that is the default, a list without items."""
    for name in words:
        if part.get(name) is False:
            del part[name]
    for name in lists:
        if name in part and not part[name]:
            del part[name]


def _sums(found: list[RawValue], name: str) -> Mapping[str, quantity.Quantity]:
    sums: dict[str, quantity.Quantity] = {}
    for one in found:
        listed = dig(one, name)
        for resource in _GUARANTEED if isinstance(listed, dict) else ():
            value = _quantity(listed.get(resource))
            if value > quantity.ZERO:
                sums[resource] = sums[resource] + value if resource in sums else value
    return sums


def _quantity(value: RawValue) -> quantity.Quantity:
    try:
        return quantity.parse(str(value)) if value is not None else quantity.ZERO
    except quantity.QuantityError:
        return quantity.ZERO
