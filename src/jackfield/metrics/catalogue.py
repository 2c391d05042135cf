"""Every figure of the controllers: its name, its labels, and what it says.

The only place where they are named: `docs/metrics.md` is written from it. Knows no values. Labels are such as a
cluster has few of (fabrics, models, reasons), never names of claims, pods, nodes or devices.
"""

from enum import StrEnum
from typing import Final

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics
from prometheus_client.core import GaugeMetricFamily

STAGES: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Seconds of a claim's life; a scheduler gives up after 600."""
CALLS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
HOPS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Seconds between news and request: our own time, which should be milliseconds."""

disable_created_metrics()  # type: ignore[no-untyped-call] # twice the figures, which nobody asks for


class Sort(StrEnum):
    """How a figure behaves."""

    COUNTER = "counter"
    """Only rises; one that is restarted begins at 0."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(msgspec.Struct, frozen=True):
    """One figure, in as many versions as its labels have values."""

    name: str
    sort: Sort
    labels: tuple[str, ...]
    words: str
    buckets: tuple[float, ...] = ()
    read: bool = False
    """Whether it is looked up when somebody asks; gauges are, and what is counted elsewhere."""


def _counter(name: str, words: str, *labels: str) -> Family:
    return Family(name, Sort.COUNTER, labels, words)


def _gauge(name: str, words: str, *labels: str) -> Family:
    return Family(name, Sort.GAUGE, labels, words)


def _histogram(name: str, words: str, buckets: tuple[float, ...], *labels: str) -> Family:
    return Family(name, Sort.HISTOGRAM, labels, words, buckets)


# --- the life of a claim

STAGE = _histogram(
    "jackfield_claim_stage_seconds",
    "How long each stage of a claim's way to its device took: ordered (from its allocation to the first call to the "
    "manager), attached (to the manager's answer that it is), visible (to Online, when the node sees it), ready (to "
    "the condition FabricDeviceReady), bound (to the pod's binding, which is the scheduler's).",
    STAGES,
    "fabric",
    "model",
    "stage",
)
CLAIM = _histogram(
    "jackfield_claim_seconds",
    "From a claim's allocation to its pod's binding; warm: its devices were attached already.",
    STAGES,
    "fabric",
    "model",
    "warm",
)
WAITING = _gauge(
    "jackfield_claims_waiting",
    "Claims that are allocated and not ready, by what they were last said to wait for.",
    "fabric",
    "reason",
)
OLDEST = _gauge(
    "jackfield_oldest_waiting_claim_seconds",
    "How long ago the oldest of the claims that are not ready was allocated; 0 while none waits.",
    "fabric",
)
CONDITIONS = _counter(
    "jackfield_conditions_total",
    "Conditions written on claims: FabricDeviceReady, FabricDeviceReschedule, FabricDeviceFailed, which the scheduler "
    "reads, and FabricDeviceAdmitted where a namespace has a quota.",
    "fabric",
    "condition",
)

# --- devices and orders

ATTACHES = _counter("jackfield_attaches_total", "Devices that came online.", "fabric", "model")
FAILURES = _counter(
    "jackfield_attach_failures_total",
    "Orders to attach that came to nothing, by reason.",
    "fabric",
    "model",
    "reason",
)
DETACHES = _counter("jackfield_detaches_total", "Devices that went back to the pool.", "fabric", "model")
DETACHING = _histogram(
    "jackfield_detach_seconds",
    "From the decision to detach to the end of the resource.",
    STAGES,
    "fabric",
    "model",
)
UNUSED = _counter(
    "jackfield_unused_attaches_total",
    "Devices that came online and went back without having served any claim.",
    "fabric",
    "model",
)
DEVICES = _gauge(
    "jackfield_devices",
    "Devices by state: free (in the pool, nobody's), attaching, idle (attached, nobody's), in_use, detaching, "
    "unhealthy (in the pool, and not to be used), foreign (attached by somebody else).",
    "fabric",
    "model",
    "state",
)
ORDERS = _gauge("jackfield_orders", "Orders under way, by what they are to do.", "fabric", "verb")
DRIFT = _gauge(
    "jackfield_drift_devices",
    "Devices about which books and fabric differ, by the reason of the Event that tells of it.",
    "fabric",
    "reason",
)

# --- the managers

MANAGER_CALLS = _counter(
    "jackfield_fabric_calls_total",
    "Calls to the managers (inventory, attach, detach) and what came of them: working, done, failed, or an error: "
    "retry, gone, refused, conflict, bug.",
    "fabric",
    "verb",
    "result",
)
MANAGER_SECONDS = _histogram(
    "jackfield_fabric_call_seconds", "How long managers took to answer.", CALLS, "fabric", "verb"
)
INVENTORY = _gauge(
    "jackfield_inventory_timestamp_seconds",
    "When the inventory that is known was asked for, in seconds since 1970; 0 if none was ever seen.",
    "fabric",
)
LEADER = _gauge("jackfield_leader", "1 if this replica leads the fabric, else 0.", "fabric")
PAUSED = _gauge(
    "jackfield_paused",
    "1 if the policy keeps the fabric's devices from being attached and detached: paused, or only observed.",
    "fabric",
)

# --- the process

READY = _gauge("jackfield_ready", "1 if this replica has seen everything and keeps its Lease.")
BUILD = _gauge("jackfield_build_info", "Always 1; the label says which release this is.", "version")
DECISIONS = _counter("jackfield_decisions_total", "Decisions made, by who made them.", "controller")
ACTIONS = _counter(
    "jackfield_actions_total",
    "Actions and what came of them: done, observed (the policy forbids to write), or an error: conflict and gone (the "
    "world was another; looked at again), retry, refused, bug.",
    "controller",
    "action",
    "result",
)
HOP = _histogram(
    "jackfield_hop_seconds",
    "From the news that brings an action about to its request: our own time.",
    HOPS,
    "action",
)
QUEUE = _gauge("jackfield_queue_depth", "Keys that wait for a decision or are worked on.", "controller")
NET = Family(
    "jackfield_safety_net_timers_total",
    Sort.COUNTER,
    ("timer",),
    "How often a timer fired that only guards against a lost event: resync, which looks at everything again.",
    read=True,
)
REWINDS = _counter(
    "jackfield_api_rewinds_total", "How often the API server went back in time: a backup was restored."
)
API_CALLS = _counter(
    "jackfield_api_calls_total",
    "Calls to the API server, by verb, resource and the status code of the answer; error where there was no answer.",
    "verb",
    "resource",
    "code",
)
API_SECONDS = _histogram(
    "jackfield_api_call_seconds", "How long the API server took to begin an answer.", CALLS, "verb"
)
RELOADS = _counter("jackfield_policy_reloads_total", "Changed policies that were taken over.")
RELOAD_FAILURES = _counter(
    "jackfield_policy_reload_failures_total",
    "Changed policies that cannot be used; the one before stays in force.",
)
RELOADED = _gauge(
    "jackfield_policy_last_reload_successful", "1 if the policy in force is the one in the file, else 0."
)

FAMILIES: Final = (
    *(STAGE, CLAIM, WAITING, OLDEST, CONDITIONS),
    *(ATTACHES, FAILURES, DETACHES, DETACHING, UNUSED, DEVICES, ORDERS, DRIFT),
    *(MANAGER_CALLS, MANAGER_SECONDS, INVENTORY, LEADER, PAUSED),
    *(READY, BUILD, DECISIONS, ACTIONS, HOP, QUEUE, NET, REWINDS),
    *(API_CALLS, API_SECONDS, RELOADS, RELOAD_FAILURES, RELOADED),
)


class Counts:
    """The counters and histograms of a catalogue, in one registry."""

    def __init__(self, families: tuple[Family, ...], registry: CollectorRegistry) -> None:
        self._counters = {
            one.name: Counter(one.name, one.words, one.labels, registry=registry)
            for one in families
            if one.sort is Sort.COUNTER and not one.read
        }
        self._histograms = {
            one.name: Histogram(one.name, one.words, one.labels, buckets=one.buckets, registry=registry)
            for one in families
            if one.sort is Sort.HISTOGRAM
        }

    def count(self, family: Family, *labels: str, by: int = 1) -> None:
        """Count so many more; 0 makes the figure be there, so that its first rise is seen."""
        counter = self._counters[family.name]
        (counter.labels(*labels) if labels else counter).inc(by)

    def time(self, family: Family, seconds: float, *labels: str) -> None:
        """Take note of a duration; a clock that was set back measures nothing."""
        histogram = self._histograms[family.name]
        (histogram.labels(*labels) if labels else histogram).observe(max(0.0, seconds))


def gauge(family: Family, values: dict[tuple[str, ...], float]) -> GaugeMetricFamily:
    """Return a gauge as it is now, by its labels."""
    shown = GaugeMetricFamily(family.name, family.words, labels=family.labels)
    for labels, value in values.items():
        shown.add_metric(labels, value)
    return shown
