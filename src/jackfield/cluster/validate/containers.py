"""What is wrong with the containers of a pod.

Knows core/v1's rules for a container, as far as people break them. Must not know what a pod is for.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from jackfield.cluster import errors
from jackfield.cluster.errors import Cause
from jackfield.cluster.validate import formats
from jackfield.cluster.validate.checks import items, named, text
from jackfield.codec import Raw, RawValue, dig, objects
from jackfield.model import quantity

PORTS: Final = range(1, 65536)
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
NATIVE: Final = ("cpu", "memory", "ephemeral-storage")
_ONLY_RUNNING: Final = "may not be set for init containers without restartPolicy=Always"
_WHOLE: Final = "must be an integer"


def containers(spec: Raw, volumes: frozenset[str]) -> Iterator[Cause]:
    """Yield what is wrong with the containers that run, and with those that run before."""
    claims = {text(one.get("name")): None for one in objects(spec.get("resourceClaims"))}
    known = tuple(sorted(name for name in claims if name))
    field = "spec.containers"
    if not spec.get("containers"):
        yield errors.required(field)
    names: dict[str, None] = {}
    for at, one in items(field, spec):
        yield from _common(at, one, volumes, known)
        yield from _unique(at, one, names)
        yield from _running(at, one)
    for at, one in items("spec.initContainers", spec):
        yield from _common(at, one, volumes, known)
        yield from _unique(at, one, names)
        if one.get("restartPolicy") == "Always":
            yield from _running(at, one)
        else:
            for name in ("lifecycle", *PROBES):
                if name in one:
                    yield errors.forbidden(f"{at}.{name}", _ONLY_RUNNING)


def resources(field: str, found: Raw, claims: tuple[str, ...]) -> Iterator[Cause]:
    """Yield what is wrong with what is requested and limited, and with the claims that are used."""
    limits, requests = _amounts(found.get("limits")), _amounts(found.get("requests"))
    for name, value in limits.items():
        yield from _resource(f"{field}.limits[{name}]", name, value)
        yield from named(f"{field}.limits[{name}]", str(found["limits"][name]), formats.amount)
    for name, value in requests.items():
        yield from _resource(f"{field}.requests[{name}]", name, value)
        yield from named(f"{field}.requests[{name}]", str(found["requests"][name]), formats.amount)
        yield from _against_limit(field, name, value, limits.get(name))
    yield from _claims(f"{field}.claims", objects(found.get("claims")), claims)


def resource_name(field: str, name: str) -> Iterator[Cause]:
    """Yield what is wrong with the name of something that containers can request."""
    wrong = tuple(named(field, name, formats.qualified))
    yield from wrong
    if "/" in name:
        domain = name.partition("/")[0]
        if not _is_native(name) and (domain.startswith("requests.") or wrong):
            yield errors.invalid_value(field, name, "doesn't follow extended resource name standard")
    elif not _is_native(name):
        if not wrong:
            yield errors.invalid_value(field, name, "must be a standard resource type or fully qualified")
        yield errors.invalid_value(field, name, "must be a standard resource for containers")


# --- one container


def _common(field: str, one: Raw, volumes: frozenset[str], claims: tuple[str, ...]) -> Iterator[Cause]:
    name = text(one.get("name"))
    if name:
        yield from named(f"{field}.name", name, formats.label)
    else:
        yield errors.required(f"{field}.name")
    if not one.get("image"):
        yield errors.required(f"{field}.image")
    policy = text(one.get("terminationMessagePolicy"))
    if policy not in MESSAGE_POLICIES:
        yield errors.unsupported(f"{field}.terminationMessagePolicy", policy, MESSAGE_POLICIES)
    yield from _ports(f"{field}.ports", objects(one.get("ports")))
    yield from _variables(f"{field}.env", objects(one.get("env")))
    yield from _mounts(f"{field}.volumeMounts", objects(one.get("volumeMounts")), volumes)
    pull = text(one.get("imagePullPolicy"))
    if pull not in PULL_POLICIES:
        yield errors.unsupported(f"{field}.imagePullPolicy", pull, PULL_POLICIES)
    yield from resources(f"{field}.resources", one.get("resources") or {}, claims)


def _unique(field: str, one: Raw, names: dict[str, None]) -> Iterator[Cause]:
    name = text(one.get("name"))
    if name in names:
        yield errors.duplicate(f"{field}.name", name)
    names[name] = None


def _running(field: str, one: Raw) -> Iterator[Cause]:
    """Yield what is wrong with what is asked of a container while it runs."""
    for name in ("postStart", "preStop"):
        handler = dig(one, "lifecycle", name)
        if isinstance(handler, dict):
            yield from _handler(f"{field}.lifecycle.{name}", handler)
    for name in PROBES:
        probe = one.get(name)
        if isinstance(probe, dict):
            yield from _handler(f"{field}.{name}", probe)


def _handler(field: str, handler: Raw) -> Iterator[Cause]:
    named_ones = [name for name in HANDLERS if name in handler]
    if not named_ones:
        yield errors.required(field, "must specify a handler type")
    for name in named_ones[1:]:
        yield errors.forbidden(f"{field}.{name}", "may not specify more than 1 handler type")


def _ports(field: str, ports: list[Raw]) -> Iterator[Cause]:
    names: dict[str, None] = {}
    for index, one in enumerate(ports):
        at = f"{field}[{index}]"
        name = text(one.get("name"))
        if name:
            wrong = tuple(named(f"{at}.name", name, formats.port_name))
            yield from wrong
            if not wrong:
                yield from _unique(at, one, names)
        if not one.get("containerPort"):
            yield errors.required(f"{at}.containerPort")
        for number in ("containerPort", "hostPort"):
            if one.get(number) and one[number] not in PORTS:
                yield errors.invalid_value(
                    f"{at}.{number}", one[number], f"must be between 1 and {PORTS[-1]}, inclusive"
                )
        if one.get("protocol") not in PROTOCOLS:
            yield errors.unsupported(f"{at}.protocol", text(one.get("protocol")), PROTOCOLS)


def _variables(field: str, variables: list[Raw]) -> Iterator[Cause]:
    for index, one in enumerate(variables):
        at = f"{field}[{index}]"
        name = text(one.get("name"))
        if name:
            yield from named(f"{at}.name", name, formats.variable)
        else:
            yield errors.required(f"{at}.name")
        source = one.get("valueFrom")
        if isinstance(source, dict) and one.get("value"):
            yield errors.invalid_value(
                f"{at}.valueFrom", "", "may not be specified when `value` is not empty"
            )
        elif isinstance(source, dict) and len(source) != 1:
            words = (
                "may not have more than one field specified at a time" if source else "must specify one of: "
            )
            kinds = "" if source else "`fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            yield errors.invalid_value(f"{at}.valueFrom", "", f"{words}{kinds}")


def _mounts(field: str, mounts: list[Raw], volumes: frozenset[str]) -> Iterator[Cause]:
    places: dict[str, None] = {}
    for index, one in enumerate(mounts):
        at = f"{field}[{index}]"
        name, place = text(one.get("name")), text(one.get("mountPath"))
        if not name:
            yield errors.required(f"{at}.name")
        if name not in volumes:
            yield errors.missing(f"{at}.name", name)
        if not place:
            yield errors.required(f"{at}.mountPath")
        if place in places:
            yield errors.invalid_value(f"{at}.mountPath", place, "must be unique")
        places[place] = None


# --- resources


def _resource(field: str, name: str, value: quantity.Quantity | None) -> Iterator[Cause]:
    yield from resource_name(field, name)
    if value is None:
        return
    if value.sign < 0:
        yield errors.invalid_value(field, str(value), "must be greater than or equal to 0")
    if "/" in name and not _is_native(name) and value.milli() % 1000:
        yield errors.invalid_value(field, str(value), _WHOLE)


def _against_limit(
    field: str, name: str, value: quantity.Quantity | None, limit: quantity.Quantity | None
) -> Iterator[Cause]:
    if value is None:
        return
    if limit is None:
        if not _is_shared(name):
            yield errors.required(f"{field}.limits", "Limit must be set for non overcommitable resources")
    elif not _is_shared(name) and value != limit:
        yield errors.invalid_value(
            f"{field}.requests", str(value), f"must be equal to {name} limit of {limit}"
        )
    elif value > limit:
        yield errors.invalid_value(
            f"{field}.requests", str(value), f"must be less than or equal to {name} limit of {limit}"
        )


def _claims(field: str, used: list[Raw], known: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a cause for every claim that is used twice, or that the pod does not name."""
    seen: dict[str, None] = {}
    for index, one in enumerate(used):
        at = f"{field}[{index}]"
        name, request = text(one.get("name")), text(one.get("request"))
        if not name:
            yield errors.required(at)
            continue
        whole = f"{name}/{request}" if request else name
        if request:
            yield from named(f"{at}.request", request, formats.label)
        if name in seen or whole in seen:
            yield errors.duplicate(at, name if name in seen else whole)
        elif not request and any(there.startswith(f"{name}/") for there in seen):
            yield errors.duplicate(at, name)
        seen[whole] = None
        if name not in known:
            listed = f": {', '.join(known)}" if known else " which is empty"
            cause = errors.missing(at, name)
            words = f"{cause.message}: must be one of the names in pod.spec.resourceClaims{listed}"
            yield Cause(at, words, cause.reason)


def _amounts(found: RawValue) -> Mapping[str, quantity.Quantity | None]:
    return {name: _amount(found[name]) for name in sorted(found)} if isinstance(found, dict) else {}


def _amount(value: RawValue) -> quantity.Quantity | None:
    try:
        return quantity.parse(str(value))
    except quantity.QuantityError:
        return None


def _is_shared(name: str) -> bool:
    """Return whether more can be promised of something than there is."""
    return ("/" not in name or _is_native(name)) and not name.startswith("hugepages-")


def _is_native(name: str) -> bool:
    domain, slash, _ = name.rpartition("/")
    if slash:
        return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return name in NATIVE or name.startswith("hugepages-")
