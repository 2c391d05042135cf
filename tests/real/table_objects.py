"""Objects in all the states that a table can show, as a real API server takes them.

Knows kinds and what clients write. Must not know what is shown of them.
"""

import random
from collections.abc import Iterator

from jackfield.codec import Raw, RawValue
from jackfield.codec.definitions import definitions
from jackfield.model.composition import CLAIM
from jackfield.model.names import Seconds, rfc3339_micro

HOLD = ["example.com/hold"]
PODS = 300
PAST = "2026-01-{:02}T03:04:05Z"


def new(api_version: str, kind: str, name: str, **members: RawValue) -> Raw:
    meta = {"name": name, **members.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **members}


# --- pods

WAITING = ["ContainerCreating", "PodInitializing", "CrashLoopBackOff", "ImagePullBackOff", ""]
ENDS: list[Raw] = [
    {"exitCode": 0, "reason": "Completed"},
    {"exitCode": 0},
    {"exitCode": 1, "reason": "Error"},
    {"exitCode": 137, "reason": "OOMKilled"},
    {"exitCode": 3},
    {"exitCode": 0, "signal": 9},
    {"exitCode": 137, "signal": 15},
]
STATES: list[Raw] = [
    {},
    *({"waiting": {"reason": one}} for one in WAITING),
    {"running": {"startedAt": PAST.format(3)}},
    {"running": {"startedAt": PAST.format(3)}},
    {"running": {"startedAt": PAST.format(3)}},
    *({"terminated": one} for one in ENDS),
]
CONDITIONS: list[Raw] = [
    {"type": "Initialized", "status": "True"},
    {"type": "Initialized", "status": "False"},
    {"type": "Ready", "status": "True"},
    {"type": "Ready", "status": "False"},
    {"type": "example.com/one", "status": "True"},
    {"type": "example.com/two", "status": "Unknown"},
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
]
PHASES = ["Pending", "Pending", "Running", "Running", "Running", "Succeeded", "Failed", "Unknown"]
REASONS = ["", "", "", "", "Evicted", "NodeLost", "Completed"]


class Pods:
    """Pods as chance makes them, the same ones each time."""

    def __init__(self) -> None:
        self._chance = random.Random("pods")  # noqa: S311 - a test's chance

    def one(self, name: str) -> tuple[Raw, Raw]:
        """Return a pod and its status."""
        init = [f"i{number}" for number in range(self._chance.choice((0, 0, 0, 1, 2, 3)))]
        main = [f"c{number}" for number in range(self._chance.choice((1, 1, 2, 3)))]
        spec: Raw = {
            "schedulerName": "nobody",
            "containers": [{"name": one, "image": "x"} for one in main],
            "initContainers": [self._init_container(one) for one in init],
        }
        status = self._status(init, main)
        place = self._chance.random()
        if place < 0.2:
            spec["nodeName"] = "n-ready"
        elif place < 0.3:
            status["nominatedNodeName"] = "n-nominated"
        if self._chance.random() < 0.2:
            gates = ("one", "two", "three")
            spec["readinessGates"] = [{"conditionType": f"example.com/{one}"} for one in gates]
        return new("v1", "Pod", name, metadata={"finalizers": HOLD}, spec=spec), status

    def _init_container(self, name: str) -> Raw:
        always = {"restartPolicy": "Always"} if self._chance.random() < 0.5 else {}
        return {"name": name, "image": "x", **always}

    def _status(self, init: list[str], main: list[str]) -> Raw:
        conditions = self._chance.sample(CONDITIONS, self._chance.randrange(len(CONDITIONS)))
        status: Raw = {
            "phase": self._chance.choice(PHASES),
            "reason": self._chance.choice(REASONS),
            "conditions": list({one["type"]: one for one in conditions}.values()),
            "initContainerStatuses": [self._container(one) for one in init],
            "containerStatuses": [self._container(one) for one in main],
        }
        if self._chance.random() < 0.3:
            status["podIPs"] = [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}]
            status["podIP"] = "10.1.2.3"
        return status

    def _container(self, name: str) -> Raw:
        state = self._chance.choice(STATES)
        last: Raw = {}
        if self._chance.random() < 0.4:
            last = {"terminated": {"exitCode": 1, "finishedAt": PAST.format(self._chance.randint(1, 28))}}
        elif self._chance.random() < 0.2:
            last = {"terminated": {"exitCode": 1}}
        return {
            "name": name,
            "image": "x",
            "imageID": "",
            "ready": self._chance.random() < 0.6,
            "started": self._chance.choice((True, True, False)),
            "restartCount": self._chance.choice((0, 0, 1, 7)),
            "state": state,
            "lastState": last,
        }


# --- nodes

INFO: Raw = {
    "machineID": "",
    "systemUUID": "",
    "bootID": "",
    "kubeProxyVersion": "",
    "operatingSystem": "linux",
    "kubeletVersion": "v1.36.4",
    "osImage": "An OS 1",
    "kernelVersion": "6.1",
    "architecture": "arm64",
    "containerRuntimeVersion": "containerd://2",
}
ADDRESSES = [
    {"type": "Hostname", "address": "h"},
    {"type": "ExternalIP", "address": "192.0.2.1"},
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "InternalIP", "address": "fd00::2"},
]
ROLE = "node-role.kubernetes.io/"


def ready(*statuses: str) -> list[Raw]:
    return [
        {"type": "MemoryPressure", "status": "True"},
        *({"type": "Ready", "status": one} for one in statuses),
    ]


def nodes() -> Iterator[Raw]:
    cases: dict[str, tuple[Raw, Raw, Raw]] = {
        "ready": ({}, {}, {"conditions": ready("True"), "nodeInfo": INFO, "addresses": ADDRESSES}),
        "not-ready": ({}, {"unschedulable": True}, {"conditions": ready("False")}),
        "silent": ({}, {}, {"conditions": ready("Unknown")}),
        "without": ({}, {"unschedulable": True}, {"conditions": ready()}),
        "twice": ({}, {}, {"conditions": ready("True", "False")}),
        "role": ({f"{ROLE}worker": ""}, {}, {"addresses": ADDRESSES[1:2]}),
        "roles": (
            {f"{ROLE}z": "", f"{ROLE}a": "x", "kubernetes.io/role": "m"},
            {},
            {"addresses": ADDRESSES[2:]},
        ),
        "same-role": ({f"{ROLE}a": "", "kubernetes.io/role": "a"}, {}, {}),
        "no-role": (
            {"kubernetes.io/role": "", "other": "x"},
            {},
            {"nodeInfo": {**INFO, "kernelVersion": ""}},
        ),
        "no-architecture": ({}, {}, {"nodeInfo": {**INFO, "architecture": ""}}),
    }
    for name, (labels, spec, status) in cases.items():
        yield new("v1", "Node", f"n-{name}", metadata={"labels": labels}, spec=spec, status=status)


# --- events


def events(namespace: str) -> Iterator[Raw]:
    about: Raw = {"kind": "Pod", "namespace": namespace, "name": "p"}
    seen = {"firstTimestamp": PAST.format(2), "lastTimestamp": PAST.format(4)}
    modern: Raw = {
        "eventTime": "2026-01-05T03:04:05.123456Z",
        "reportingComponent": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Try",
    }
    series = {"count": 5, "lastObservedTime": "2026-01-06T03:04:05.123456Z"}
    cases: dict[str, Raw] = {
        "bare": {},
        "old": {**seen, "count": 3, "source": {"component": "kubelet", "host": "n1"}, "message": " a\n b \n"},
        "once": {
            "firstTimestamp": PAST.format(2),
            "source": {"component": "kubelet"},
            "message": "\u00a0x\u2003",
        },
        "last": {"lastTimestamp": PAST.format(4), "source": {"host": "n1"}, "message": "\x1cx\x1f"},
        "field": {"involvedObject": {**about, "fieldPath": "spec.containers{c}"}},
        "nameless": {"involvedObject": {"kind": "ResourceClaim", "namespace": namespace}},
        "new": {**modern, "reason": "Tried"},
        "series": {**modern, "reason": "Tried", "series": series},
        "mixed": {**modern, **seen, "reason": "Tried", "source": {"component": "kubelet"}, "count": 2},
        "all": {**modern, **seen, "reason": "Tried", "series": series, "count": 2},
    }
    for name, said in cases.items():
        rest = {"involvedObject": about, "type": "Normal", "reason": "Because", **said}
        yield new("v1", "Event", f"e-{name}", metadata={"namespace": namespace}, **rest)


# --- data

DATA = {"a": "eA==", "b": "eA=="}
MAPS: dict[str, Raw] = {
    "none": {},
    "data": {"data": DATA},
    "both": {"data": DATA, "binaryData": {"c": "eA=="}},
}
SECRETS: dict[str, Raw] = {"none": {}, "data": {"data": DATA, "type": "example.com/t"}}

# --- devices

RESOURCE = "resource.k8s.io/v1"
REQUESTS: Raw = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION: Raw = {
    "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]}
}
USER = {"apiGroup": "example.com", "resource": "users", "name": "u", "uid": "1"}
CLAIMS: dict[str, Raw] = {
    "pending": {},
    "allocated": {"allocation": ALLOCATION},
    "reserved": {"allocation": ALLOCATION, "reservedFor": [USER]},
}


def claim(name: str) -> Raw:
    return new(RESOURCE, "ResourceClaim", name, metadata={"finalizers": HOLD}, spec=REQUESTS)


def slices() -> Iterator[Raw]:
    chosen = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
    cases: dict[str, Raw] = {
        "node": {"nodeName": "n1"},
        "all": {"allNodes": True},
        "some": {"nodeSelector": chosen},
    }
    for name, where in cases.items():
        pool = {"name": f"pool-{name}", "generation": 1, "resourceSliceCount": 1}
        yield new(
            RESOURCE, "ResourceSlice", f"s-{name}", spec={"driver": "d.example.com", "pool": pool, **where}
        )


def taint_rules() -> Iterator[Raw]:
    cases: dict[str, Raw] = {
        "bare": {"key": "example.com/k", "effect": "NoSchedule"},
        "full": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": PAST.format(7)},
    }
    for name, taint in cases.items():
        spec = {"deviceSelector": {"driver": "nobody.example.com"}, "taint": taint}
        yield new("resource.k8s.io/v1beta2", "DeviceTaintRule", f"t-{name}", spec=spec)


# --- custom resources

GROUP, PLURAL = "tables.example.com", "exhibits"
MEMBERS = {"string": "s", "integer": "i", "number": "n", "boolean": "b", "date": "d"}
COLUMNS: list[Raw] = [
    *(
        {"name": f"{kind} of {member}", "type": kind, "jsonPath": f".spec.{member}"}
        for kind in MEMBERS
        for member in [*MEMBERS.values(), "o", "l", "x"]
    ),
    {"name": "Wide", "type": "string", "jsonPath": ".spec.s", "priority": 2, "format": "byte"},
    {"name": "Escaped", "type": "string", "jsonPath": r".metadata.annotations.example\.com/a\.b"},
    {"name": "Quoted", "type": "string", "jsonPath": ".metadata.annotations['example\\.com/a\\.b']"},
    {"name": "First", "type": "string", "jsonPath": ".spec.l[0]"},
    {"name": "Last", "type": "string", "jsonPath": ".spec.l[-1]"},
    {"name": "Deep", "type": "integer", "jsonPath": ".spec.o.a"},
    {"name": "Too deep", "type": "integer", "jsonPath": ".spec.s.a"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
EXHIBITS: dict[str, Raw] = {
    "nothing": {},
    "strings": dict.fromkeys([*MEMBERS.values(), "o", "x"], "text"),
    "empty": {**dict.fromkeys(MEMBERS.values(), ""), "l": [], "o": {}},
    "integers": {**dict.fromkeys(MEMBERS.values(), 7), "l": [1, 2], "o": {"b": 1, "a": 2}},
    "truths": {**dict.fromkeys(MEMBERS.values(), True), "l": [False], "o": {"a": False}},
    "numbers": {**dict.fromkeys(MEMBERS.values(), 2.75), "l": ["a", {"z": 1, "y": [2]}], "o": {"a": 2.5}},
    "nulls": {**dict.fromkeys(MEMBERS.values()), "l": [None], "o": {"a": None}},
    "dates": {**dict.fromkeys(MEMBERS.values(), PAST.format(9)), "l": [PAST.format(1)]},
    "early": {"d": "1066-10-14T09:00:00Z"},
    "zero": {"d": "0001-01-01T00:00:00Z"},
    "future": {"d": "2999-01-01T00:00:00Z"},
    "zoned": {"d": "2026-01-01T00:00:00.123+05:30"},
    "day": {"d": "2026-01-01"},
    "small": {"d": "2026-01-01t00:00:00z"},
    "week": {"d": "2026-W01-1T00:00:00Z"},
    "null-text": {"d": "null"},
}


def definition() -> Raw:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": COLUMNS,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": free}}},
    }
    plain = {key: value for key, value in version.items() if key != "additionalPrinterColumns"}
    names = {"kind": "Exhibit", "listKind": "ExhibitList", "plural": PLURAL, "singular": "exhibit"}
    return new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{PLURAL}.{GROUP}",
        spec={
            "group": GROUP,
            "names": names,
            "scope": "Cluster",
            "versions": [version, {**plain, "name": "v1alpha1", "storage": False}],
        },
    )


AGES = [
    0,
    119,
    120,
    121,
    180,
    599,
    600,
    10799,
    10800,
    10860,
    28799,
    28800,
    172799,
    172800,
    176400,
    691199,
    691200,
]
YEARS = [year * 365 * 86400 + rest for year in (1, 2, 3, 8, 100, 300) for rest in (-1, 0, 1, 86400)]


def aged(now: Seconds) -> Iterator[Raw]:
    """Return objects with times around the points at which ages are spelt otherwise."""
    for seconds in (-5, -1, *AGES, *YEARS):
        spec = {"d": rfc3339_micro(Seconds(now - seconds))}
        yield new(f"{GROUP}/v1", "Exhibit", f"age{seconds}", spec=spec)


def exhibits() -> Iterator[Raw]:
    notes = {"example.com/a.b": "noted"}
    for name, spec in EXHIBITS.items():
        yield new(f"{GROUP}/v1", "Exhibit", name, metadata={"annotations": notes} if spec else {}, spec=spec)


def compositions() -> Iterator[tuple[str, Raw, Raw]]:
    """Return plural, object and status of objects of our own kinds."""
    requests, resources = (one["metadata"]["name"].partition(".")[0] for one in definitions())
    ours = "cro.hpsys.ibm.ie.com/v1alpha1"
    wish: Raw = {"type": "gpu", "model": "A100", "size": 2}
    yield requests, new(ours, "ComposabilityRequest", "r-bare", spec={"resource": wish}), {}
    full = {**wish, "target_node": "n1", "allocation_policy": "samenode"}
    status: Raw = {"state": "Running", "error": "no\nsuch thing", "scalarResource": full}
    yield requests, new(ours, "ComposabilityRequest", "r-full", spec={"resource": full}), status
    device: Raw = {"type": "gpu", "model": "A100", "target_node": "n1"}
    yield resources, new(ours, "ComposableResource", "d-bare", spec=device), {}
    notes = dict.fromkeys((CLAIM, "jackfield.dev/other"), "a/b")
    seen = {"state": "Online", "error": "", "device_id": "GPU-1", "cdi_device_id": "res-1"}
    yield (
        resources,
        new(ours, "ComposableResource", "d-full", metadata={"annotations": notes}, spec=device),
        seen,
    )
