"""What a driver counts, for Prometheus.

Knows names and labels. Must not know why anything is counted. Every driver has a registry of its own, so that two in
one process do not disturb each other.
"""

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 45.0)
"""Seconds; the kubelet hangs up after 45."""


class Metrics:
    """One driver's figures."""

    def __init__(self, driver: str) -> None:
        self._driver = driver
        self._registry: Final = CollectorRegistry()
        self._seconds = Histogram(
            "jackfield_driver_claim_seconds",
            "How long the kubelet's calls took, for each claim.",
            ("driver", "operation", "result"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._writes = Counter(
            "jackfield_driver_slice_writes_total",
            "Writes of ResourceSlices, and what became of them.",
            ("driver", "verb", "result"),
            registry=self._registry,
        )
        self._checkpoint = Histogram(
            "jackfield_driver_checkpoint_seconds",
            "How long writes of the checkpoint took, with the files that follow from it.",
            ("driver",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._gauges = {
            name: Gauge(f"jackfield_driver_{name}", words, ("driver",), registry=self._registry)
            for name, words in _GAUGES.items()
        }
        self.set()

    def claim(self, operation: str, seconds: float, *, done: bool) -> None:
        """Take note that a claim was prepared or unprepared, or not."""
        self._seconds.labels(self._driver, operation, "ok" if done else "error").observe(seconds)

    def slice_written(self, verb: str, result: str) -> None:
        """Take note of a write."""
        self._writes.labels(self._driver, verb, result).inc()

    def checkpoint_written(self, writes: int, seconds: float) -> None:
        """Take note that the checkpoint was written so often, and how long all that took."""
        for _ in range(writes):
            self._checkpoint.labels(self._driver).observe(seconds / writes)

    def set(self, **figures: float) -> None:
        """Take note of how many there are; what is not named stays."""
        for name, gauge in self._gauges.items():
            labelled = gauge.labels(self._driver)
            if name in figures:
                labelled.set(figures[name])

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return joined(self)

    def families(self) -> Iterable[Metric]:
        """Return all figures, by what they count."""
        return self._registry.collect()


def joined(*every: Metrics) -> bytes:
    """Return the figures of several drivers as one text, in which everything that is counted is explained once."""
    return bytes(generate_latest(_Joined(every)))


class _Joined(Collector):
    def __init__(self, every: tuple[Metrics, ...]) -> None:
        self._every = every

    def collect(self) -> Iterable[Metric]:
        found: dict[str, Metric] = {}
        for family in (one for metrics in self._every for one in metrics.families()):
            if family.name in found:
                found[family.name].samples.extend(family.samples)
            else:
                found[family.name] = family
        return found.values()


_GAUGES: Final = {
    "devices": "Devices that are published.",
    "unhealthy_devices": "Devices that are tainted, since they are unhealthy.",
    "prepared_claims": "Claims that are prepared on this node.",
    "registered": "1 while the kubelet has registered the driver.",
    "published": "1 while the ResourceSlices are as they should be.",
}
