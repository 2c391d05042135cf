"""The figures of one process of controllers, and whether it is of use.

Everything that is counted is counted when it happens; what is asked for at a scrape is read from counts, but for an
inventory that has changed since, which is looked through once. Knows where each figure comes from. Must not know who
asks.
"""

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

import jackfield
from jackfield.controllers.lead import Lead
from jackfield.controllers.recorders import Recorders
from jackfield.controllers.runner import Recorder, Runner
from jackfield.controllers.store import Store
from jackfield.core.figures import Failure, Place, Sort
from jackfield.metrics import catalogue
from jackfield.metrics.catalogue import FAMILIES, Counts, Family, gauge
from jackfield.metrics.census import VERBS, Census
from jackfield.metrics.fabrics import CountedFabric
from jackfield.metrics.figures import Figures
from jackfield.model.fabric import Inventory
from jackfield.model.names import FabricName, ModelName
from jackfield.model.policy import FAILED, READY, RESCHEDULE, DeviceModel, Policy
from jackfield.ports import Clock, Fabric

FREE, UNHEALTHY, FOREIGN, IDLE, IN_USE = "free", "unhealthy", "foreign", "idle", "in_use"
RESYNC = "resync"
OTHER = ModelName("other")
"""What stands for all models that the policy does not list."""
Values = dict[tuple[str, ...], float]


class Figured:
    """What a process counts, from its first call on: made before there is a runner, told of it when there is one."""

    def __init__(self, fabrics: Iterable[FabricName], clock: Clock) -> None:
        self._fabrics = tuple(fabrics)
        self._clock = clock
        self.registry = CollectorRegistry()
        self.counts = Counts(FAMILIES, self.registry)
        self.starting = "the API server is being asked for what is needed"
        """What is done before anything is watched; empty once that is over."""
        self._begun: tuple[DeviceModel, ...] | None = None
        """The models whose figures are there, from the first moment on."""
        self._scene: _Scene | None = None
        ProcessCollector(registry=self.registry)
        self.registry.register(_Self(self))

    def counted(self, fabrics: Mapping[FabricName, Fabric]) -> dict[FabricName, CountedFabric]:
        """Return the managers with their calls counted."""
        return {name: CountedFabric(name, one, self.counts, self._clock) for name, one in fabrics.items()}

    def api(self, verb: str, resource: str, code: str, took: float) -> None:
        """Hear of a call to the API server."""
        self.counts.count(catalogue.API_CALLS, verb, resource, code)
        self.counts.time(catalogue.API_SECONDS, took, verb)

    def recorder(self, store: Store, lead: Lead, fabrics: Mapping[FabricName, CountedFabric]) -> "Counting":
        """Return who hears what is decided over this store."""
        census = Census(store, lead, self._clock, self.counts)
        for one in fabrics.values():
            one.asked = census.asked
        return Counting(Figures(self.counts, store), census)

    def watch(self, runner: Runner, lead: Lead, counting: "Counting") -> None:
        """Look at this runner from now on."""
        counting.census.live = runner.synced.is_set
        runner.listeners.append(counting.census.hear)
        self._scene = _Scene(runner, lead, counting, self._fabrics)
        # Whoever follows another policy looks at everything by it at once: that is when this hears of its models.
        runner.listeners.append(lambda _: self._begin(runner.store.policy))
        self._begin(runner.store.policy)
        self.registry.register(self._scene)
        self.starting = ""

    def _begin(self, policy: Policy) -> None:
        """Have figures be there before they rise: a rise from nothing is none to Prometheus."""
        if policy.models is self._begun:
            return
        self._begun = policy.models
        for place in ((fabric, one.cdi_model_name) for fabric in self._fabrics for one in policy.models):
            for family in (catalogue.ATTACHES, catalogue.DETACHES, catalogue.UNUSED):
                self.counts.count(family, *place, by=0)
            for reason in Failure:
                self.counts.count(catalogue.FAILURES, *place, reason, by=0)
        for fabric in self._fabrics:
            for kind in (READY, RESCHEDULE, FAILED):
                self.counts.count(catalogue.CONDITIONS, fabric, kind, by=0)

    def trouble(self) -> str:
        """Return what keeps this replica from being of use; empty if nothing does."""
        return self.starting or (self._scene.trouble() if self._scene is not None else "")

    def text(self) -> bytes:
        """Return all figures as Prometheus reads them."""
        return bytes(generate_latest(self.registry))


class Counting(Recorders):
    """Who hears what is decided, and what it comes to."""

    def __init__(self, figures: Figures, census: Census) -> None:
        super().__init__(figures, census)
        self.figures = figures
        self.census = census

    def beside(self, other: Recorder) -> Recorders:
        """Return one who tells another as well."""
        return Recorders(other, self)


class _Self(Collector):
    """What a process knows of itself from the first moment on."""

    def __init__(self, figured: Figured) -> None:
        self._figured = figured

    def collect(self) -> Iterable[Metric]:
        yield gauge(catalogue.BUILD, {(jackfield.__version__,): 1.0})
        yield gauge(catalogue.READY, {(): float(not self._figured.trouble())})


class _Scene(Collector):
    """What is looked at when somebody asks."""

    def __init__(
        self, runner: Runner, lead: Lead, counting: Counting, fabrics: tuple[FabricName, ...]
    ) -> None:
        self._runner = runner
        self._lead = lead
        self._figures, self._census = counting.figures, counting.census
        self._fabrics = fabrics
        self._shown: dict[FabricName, tuple[Inventory, Policy, Values]] = {}

    def trouble(self) -> str:
        if not self._runner.synced.is_set():
            unseen = ", ".join(self._runner.unsynced) or "object that is watched"
            return f"waiting for the API server to show every {unseen}"
        if self._lead.left() <= 0.0:
            return "our Lease has run out, and could not be renewed; the log says what the API server answers"
        return ""

    def collect(self) -> Iterable[Metric]:
        now: dict[Family, Values] = {
            catalogue.RELOADED: {(): float(self._figures.reloaded)},
            catalogue.QUEUE: {(name,): depth for name, depth in self._runner.depths().items()},
            catalogue.LEADER: {(one,): float(self._lead.leads(one)) for one in self._fabrics},
            catalogue.INVENTORY: {(one,): self._asked(one) for one in self._fabrics},
            catalogue.PAUSED: {(one,): float(self._paused(one)) for one in self._fabrics},
            catalogue.DEVICES: self._devices(),
            catalogue.ORDERS: self._orders(),
            catalogue.DRIFT: _led(self._lead, self._figures.drift()),
            catalogue.WAITING: _led(self._lead, self._census.waiting()),
            catalogue.OLDEST: self._oldest(),
        }
        yield from (gauge(family, values) for family, values in now.items())
        net = CounterMetricFamily(catalogue.NET.name, catalogue.NET.words, labels=catalogue.NET.labels)
        net.add_metric((RESYNC,), self._runner.resyncs)
        yield net

    # --- the parts

    def _led_fabrics(self) -> list[FabricName]:
        return [one for one in self._fabrics if self._lead.leads(one)]

    def _asked(self, fabric: FabricName) -> float:
        return max(0.0, self._runner.store.asked(fabric))

    def _paused(self, fabric: FabricName) -> bool:
        policy = self._runner.store.policy
        return policy.paused or policy.observe_only or fabric in policy.fabrics_paused

    def _oldest(self) -> Values:
        oldest = self._census.oldest()
        return {(one,): oldest.get(one, 0.0) for one in self._led_fabrics()}

    def _orders(self) -> Values:
        counts: Values = {(one, verb): 0.0 for one in self._led_fabrics() for verb in VERBS.values()}
        for ((fabric, _), sort), count in self._census.sorts().items():
            if sort in VERBS and (fabric, VERBS[sort]) in counts:
                counts[fabric, VERBS[sort]] += count
        return counts

    def _devices(self) -> Values:
        sorts, values = self._census.sorts(), Values()
        for fabric in self._led_fabrics():
            for model in self._runner.store.policy.models:
                values |= self._of((fabric, model.cdi_model_name), sorts)
            values |= self._inventory(fabric)
        return values

    def _of(self, place: Place, sorts: Mapping[tuple[Place, Sort], int]) -> Values:
        store = self._runner.store
        idle = store.idle_count(*place)
        return {
            (*place, FREE): store.free(*place),
            (*place, IDLE): idle,
            (*place, IN_USE): max(0, sorts.get((place, Sort.ONLINE), 0) - idle),
            (*place, Sort.ATTACHING): sorts.get((place, Sort.ATTACHING), 0),
            (*place, Sort.DETACHING): sorts.get((place, Sort.DETACHING), 0),
        }

    def _inventory(self, fabric: FabricName) -> Values:
        """What only the manager shows; looked through again only if it shows something else."""
        inventory, policy = self._runner.store.inventory(fabric), self._runner.store.policy
        if inventory is None:
            return {}
        known = self._shown.get(fabric)
        if known is None or known[0] is not inventory or known[1] is not policy:
            known = self._shown[fabric] = (inventory, policy, _counted(inventory, policy))
        return known[2]


def _counted(inventory: Inventory, policy: Policy) -> Values:
    listed = {one.cdi_model_name for one in policy.models}
    counts: Values = {(inventory.fabric, one, state): 0.0 for one in listed for state in (UNHEALTHY, FOREIGN)}
    for one in inventory.devices:
        state = _state(node=bool(one.node), ours=one.ours, healthy=one.healthy)
        if state:
            place = (inventory.fabric, one.model if one.model in listed else OTHER, state)
            counts[place] = counts.get(place, 0.0) + 1.0
    return counts


def _state(*, node: bool, ours: bool, healthy: bool) -> str:
    if node:
        return "" if ours else FOREIGN
    return "" if healthy else UNHEALTHY


def _led(lead: Lead, counts: Mapping[tuple[FabricName, str], int]) -> Values:
    return {(fabric, reason): count for (fabric, reason), count in counts.items() if lead.leads(fabric)}
