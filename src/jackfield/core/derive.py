"""CoHDI's settings → ours: a policy, and where the fabric managers are.

Knows what CoHDI's components are told, and by which names. Must not know where it stands written, nor any secret.
What cannot be derived is said in words that an operator can act on.
"""

from collections.abc import Iterator, Mapping

import msgspec

from jackfield.core import policies
from jackfield.model.cohdi import CONFIG_MAP, DRIVER_NAMESPACE, SECRET, Program, Settings, Worker
from jackfield.model.names import FabricName, NodeName, Seconds
from jackfield.model.policy import Policy

VARIABLES = (
    "CDI_ENDPOINT",
    "FTI_CDI_ENDPOINT",
    "TENANT_ID",
    "FTI_CDI_TENANT_ID",
    "CLUSTER_ID",
    "FTI_CDI_CLUSTER_ID",
    "FTI_CDI_API_TYPE",
    "CDI_PROVIDER_TYPE",
    "USE_CAPI_BMH",
    "DEVICE_NO_REMOVAL_DURATION",
)
"""What CoHDI's components are told that matters to us."""
CREDENTIALS = ("realm", "client_id", "client_secret", "username", "password")
CERTIFICATE = "certificate"
INSTEAD = "or give --policy and --fabrics"


class Manager(msgspec.Struct, frozen=True):
    """A fabric and its manager, as CoHDI speaks to it."""

    name: FabricName
    """What CoHDI's node labels and pools call the fabric: its number."""
    type: str
    url: str
    tenant: str
    cluster: str
    machines: Mapping[NodeName, str]


class Derived(msgspec.Struct, frozen=True):
    """What CoHDI's settings come to."""

    policy: Policy
    managers: tuple[Manager, ...] = ()
    notes: tuple[str, ...] = ()
    """What an operator should know."""
    faults: tuple[str, ...] = ()
    """What keeps us from starting."""


def derived(found: Settings) -> Derived:
    """Return what CoHDI's settings come to; nothing of it may be used while there are faults."""
    told = environment(found)
    policy = _policy(found, told)
    managers = tuple(_managers(found, told, policy))
    faults = (*_config_faults(found, policy), *_manager_faults(found, told, managers, policy))
    return Derived(policy, managers, tuple(_notes(found, told, managers, policy)), faults)


def environment(found: Settings) -> dict[str, str]:
    """Return what CoHDI's components are told: by our own process first, then by their Deployments."""
    sources = [found.remembered, *(one.environment for one in found.programs), found.told]
    return {name: one[name] for one in sources for name in VARIABLES if one.get(name)}


def running(found: Settings) -> tuple[Program, ...]:
    """Return the components of CoHDI's that run, or are about to."""
    return tuple(one for one in found.programs if one.replicas > 0)


def _policy(found: Settings, told: Mapping[str, str]) -> Policy:
    idle = told.get("DEVICE_NO_REMOVAL_DURATION", "")
    defaults = Policy()
    return Policy(
        models=found.models,
        label_prefix=found.label_prefix or defaults.label_prefix,
        hold_seconds=Seconds(float(idle)) if idle.isdecimal() else defaults.hold_seconds,
    )


def _config_faults(found: Settings, policy: Policy) -> Iterator[str]:
    where = f"ConfigMap {DRIVER_NAMESPACE}/{CONFIG_MAP}"
    if not found.there:
        yield f"{where} is not there, so that no model is known; put it back, {INSTEAD}"
        return
    yield from (f"{where}: {one}" for one in found.faults)
    if not found.faults:
        yield from (f"{where}: {one.replace('models[', 'device-info[')}" for one in policies.faults(policy))


# --- the managers


def _fabric(worker: Worker, policy: Policy) -> str:
    return worker.labels.get(policy.fabric_label(), "")


def _managers(found: Settings, told: Mapping[str, str], policy: Policy) -> Iterator[Manager]:
    numbers = dict.fromkeys(_fabric(one, policy) for one in found.workers)
    clustered = told.get("FTI_CDI_API_TYPE") == "CM"
    for number in sorted(one for one in numbers if one.isdecimal()):
        here = (one for one in found.workers if _fabric(one, policy) == number)
        machines = {one.name: _machine(one, found, told) for one in here}
        yield Manager(
            FabricName(number),
            "fsas-cm" if clustered else "fsas-fm",
            _url(told),
            told.get("TENANT_ID") or told.get("FTI_CDI_TENANT_ID", ""),
            (told.get("CLUSTER_ID") or told.get("FTI_CDI_CLUSTER_ID", "")) if clustered else "",
            {node: machine for node, machine in machines.items() if machine},
        )


def _url(told: Mapping[str, str]) -> str:
    """Return the address that its certificate is for; the operator's own is an IP address, by CoHDI's chart."""
    operators = told.get("FTI_CDI_ENDPOINT", "")
    return told.get("CDI_ENDPOINT") or (f"https://{operators}" if operators else "")


def _machine(worker: Worker, found: Settings, told: Mapping[str, str]) -> str:
    last = worker.provider_id.rpartition("/")[2]
    return found.hosts.get(last, "") if told.get("USE_CAPI_BMH") == "true" else last


def _manager_faults(
    found: Settings, told: Mapping[str, str], managers: tuple[Manager, ...], policy: Policy
) -> Iterator[str]:
    provider = told.get("CDI_PROVIDER_TYPE", "FTI_CDI")
    if provider != "FTI_CDI":
        yield (
            f"CoHDI's operator speaks to {provider}: its settings do not say which machine is which node; "
            "give --policy and --fabrics, as docs/adapters.md says for this manager"
        )
        return
    if not _url(told):
        yield f"nobody says where the fabric manager is: set CDI_ENDPOINT, {INSTEAD}"
    yield from _identity_faults(told)
    missing = [key for key in CREDENTIALS if key not in found.credentials]
    if missing:
        where = f"Secret {DRIVER_NAMESPACE}/{SECRET}"
        yield f"{where} has no {', '.join(missing)}; put them there, {INSTEAD}"
    if not managers:
        label = policy.fabric_label()
        yield f"no node bears the label {label} with a fabric's number; label the nodes, {INSTEAD}"
    for one in managers:
        if not one.machines:
            yield f"no node of fabric {one.name} says by spec.providerID which machine it is; set it, {INSTEAD}"


def _identity_faults(told: Mapping[str, str]) -> Iterator[str]:
    if not (told.get("TENANT_ID") or told.get("FTI_CDI_TENANT_ID")):
        yield f"nobody says which tenant we are: set TENANT_ID, {INSTEAD}"
    clustered = told.get("FTI_CDI_API_TYPE") == "CM"
    if clustered and not (told.get("CLUSTER_ID") or told.get("FTI_CDI_CLUSTER_ID")):
        yield f"nobody says which cluster we are to Cluster Manager: set CLUSTER_ID, {INSTEAD}"


# --- what should be known


def _notes(
    found: Settings, told: Mapping[str, str], managers: tuple[Manager, ...], policy: Policy
) -> Iterator[str]:
    known = {node for one in managers for node in one.machines}
    for worker in found.workers:
        if _fabric(worker, policy) and worker.name not in known:
            yield (
                f"node {worker.name} is of fabric {_fabric(worker, policy)}, and nothing says which machine it is: it "
                "is offered nothing; set its spec.providerID, and start us again"
            )
    if CERTIFICATE not in found.credentials:
        yield f"Secret {DRIVER_NAMESPACE}/{SECRET} has no {CERTIFICATE}: the system's authorities are believed"
    host = _url(told).partition("://")[2].partition(":")[0].partition("/")[0]
    address = next((one.aliases[host] for one in found.programs if host in one.aliases), "")
    if address:
        yield (
            f"CoHDI's pods know {host} as {address} by their hostAliases: give ours the same, if it does not "
            "resolve otherwise"
        )
