"""What a fabric manager counts, for Prometheus.

Knows names and labels, and where each figure comes from. Must not know why anything is counted. Devices are counted
again only when something has moved.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

import jackfield
from jackfield.fabric_manager.faults import Verb
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.orders import State
from jackfield.metrics.catalogue import BUILD, CALLS, STAGES, Counts, Family, Sort, gauge
from jackfield.model.fabric import FabricDevice, Inventory
from jackfield.model.names import Seconds

DEVICES: Final = Family(
    "jackfield_manager_devices",
    Sort.GAUGE,
    ("fabric", "model", "state"),
    "Devices by state: free, attached, unhealthy (in the pool, and not to be used).",
)
ORDERS: Final = Family(
    "jackfield_manager_orders", Sort.GAUGE, ("fabric", "verb"), "Orders under way, by what is being done."
)
ENDED: Final = Family(
    "jackfield_manager_orders_ended_total",
    Sort.COUNTER,
    ("fabric", "verb", "result"),
    "Work that came to an end: done or failed.",
)
WORK: Final = Family(
    "jackfield_manager_order_seconds",
    Sort.HISTOGRAM,
    ("fabric", "verb"),
    "How long the work of an order took, its time in the queue not counted.",
    STAGES,
)
FAULTS: Final = Family(
    "jackfield_manager_faults", Sort.GAUGE, ("fabric",), "Faults that somebody has asked for and not cleared."
)
REQUESTS: Final = Family(
    "jackfield_manager_requests_total",
    Sort.COUNTER,
    ("face", "method", "code"),
    "Requests by the protocol they were spoken in, and the status code of the answer.",
)
REQUEST_SECONDS: Final = Family(
    "jackfield_manager_request_seconds",
    Sort.HISTOGRAM,
    ("face",),
    "How long answers took, waiting that was asked for included.",
    CALLS,
)
FAMILIES: Final = (DEVICES, ORDERS, ENDED, WORK, FAULTS, REQUESTS, REQUEST_SECONDS)
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
NOBODY: Final = ""
"""Whose eyes devices are counted with: nobody's are hidden from him."""


class Figures:
    """One manager's figures."""

    def __init__(self, manager: Manager) -> None:
        self._fabric = manager.name
        self._manager = manager
        self.registry = CollectorRegistry()
        self._counts = Counts(FAMILIES, self.registry)
        ProcessCollector(registry=self.registry)
        self.registry.register(_Look(manager))
        manager.ended = self.ended

    def ended(self, verb: Verb, reason: str, took: Seconds) -> None:
        """Hear that work came to an end, and why it failed if it did."""
        self._counts.count(ENDED, self._fabric, verb, "failed" if reason else "done")
        self._counts.time(WORK, took, self._fabric, verb)

    def answered(self, face: str, method: str, code: int, took: float) -> None:
        """Hear of a request and its answer."""
        self._counts.count(REQUESTS, face, method if method in METHODS else "other", str(code))
        self._counts.time(REQUEST_SECONDS, took, face)

    def trouble(self) -> str:
        """Return what keeps the manager from being of use; empty if nothing does."""
        return self._manager.store.failure

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return bytes(generate_latest(self.registry))


class _Look(Collector):
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._shown: tuple[Inventory, dict[tuple[str, ...], float]] | None = None

    def collect(self) -> Iterable[Metric]:
        manager, fabric = self._manager, self._manager.name
        yield gauge(BUILD, {(jackfield.__version__,): 1.0})
        yield gauge(DEVICES, self._devices())
        under_way = Counter(one.state is State.DETACHING for one in manager.books.unfinished())
        yield gauge(ORDERS, {(fabric, "attach"): under_way[False], (fabric, "detach"): under_way[True]})
        yield gauge(FAULTS, {(fabric,): len(manager.faults)})

    def _devices(self) -> dict[tuple[str, ...], float]:
        shown = self._manager.books.inventory(NOBODY)
        if self._shown is None or self._shown[0] is not shown:
            counts = Counter((shown.fabric, one.model, _state(one)) for one in shown.devices)
            self._shown = (shown, {key: float(count) for key, count in counts.items()})
        return self._shown[1]


def _state(device: FabricDevice) -> str:
    if device.node:
        return "attached"
    return "free" if device.healthy else "unhealthy"
