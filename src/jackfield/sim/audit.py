"""The audit: looks at every change as it happens, against what must never be, and counts what the play costs.

Sees the API's own truth and the hardware's, not anybody's cache. Knows invariants and counters. Must not touch
anything.
"""

from collections.abc import Callable

import msgspec

from jackfield.cluster.history import Event, EventType
from jackfield.controllers.store import Store
from jackfield.core import check
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource, ResourceState
from jackfield.model.meta import Object
from jackfield.model.names import Key, PhysicalID, Seconds, Uid, seconds
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import Pod
from jackfield.model.view import ObjectChanged
from jackfield.ports import Changed, Deleted
from jackfield.sim.host import SimHost
from jackfield.sim.pool import Movement
from jackfield.sim.world import SimWorld

TITLE = "app.kubernetes.io/name"
"""Label of a pod: what the scenario calls it."""
KINDS = (Node, Pod, ResourceClaim, ComposabilityRequest, ComposableResource)


class ViolationError(AssertionError):
    """Something was seen that must never be."""


class PodLife(msgspec.Struct):
    """When a pod came, ran and went."""

    title: str
    created: Seconds
    running: Seconds | None = None
    phase: str = "Pending"
    devices: int = 0
    node: str = ""


class Attachment(msgspec.Struct):
    """A device's stay on a node."""

    device: PhysicalID
    node: str
    served: bool = False


class Summary(msgspec.Struct, frozen=True):
    """What came of a play."""

    pods: dict[str, str]
    """The phase each pod is in, or was in when somebody deleted it."""
    attaches: int
    detaches: int
    nodes_added: int
    attaches_per_pod: float
    wasted: int
    """Attaches that served nobody."""
    devices_attached: int
    """Devices of ours on nodes at the end."""
    waited: dict[str, float]
    """Seconds from creation to Running, by pod."""
    events: int
    writes: int
    seconds: float


class Audit:
    """Watches one world."""

    def __init__(self, world: SimWorld, *, on_violation: Callable[[str], None] | None = None) -> None:
        self.violations: list[str] = []
        self.pods: dict[Key, PodLife] = {}
        self.nodes_added = 0
        self.events = 0
        self._world = world
        self._store = Store(world.setting.policy)
        self._on_violation = on_violation
        self._stays: dict[tuple[str, PhysicalID], Attachment] = {}
        self._wasted = 0
        self._before: dict[Key, None] = {}
        self._robbed: dict[Uid, None] = {}  # claims whose device somebody took by force
        self._excused: dict[PhysicalID, None] = {}
        self._began = world.clock.now()
        for kind in KINDS:
            world.api.subscribe(kind, self._hear)
        world.hardware.movements.append(self._moved)
        world.hardware.senses.append(self._sensed)

    def begin(self) -> None:
        """Count from here; what came before is looked at, but not counted."""
        self._began = self._world.clock.now()
        self._before = dict.fromkeys(self.pods)
        self.events = 0

    def excuse(self, device: PhysicalID) -> None:
        """Take it that somebody else moves a device: what it is pulled from is not our fault."""
        self._excused[device] = None

    # --- what happens

    def _hear(self, event: Event) -> None:
        self.events += 1
        gone = event.type is EventType.DELETED
        one = event.stored.object
        for delta in self._store.observe(Deleted(one) if gone else Changed(one)):
            if isinstance(delta, ObjectChanged):
                self._check(delta.old, delta.new)
                self._count(delta.old, delta.new)

    def _check(self, old: Object | None, new: Object | None) -> None:
        faults = list(check.step(old, new))
        around = [new] if new is not None else []
        if isinstance(new, ComposableResource) and new.device is not None:
            holding = self._store.claims_holding(new.device)
            around += holding
            if new.spec.force_detach and new.state is ResourceState.DETACHING:
                self._robbed |= dict.fromkeys(claim.uid for claim in holding)
        for one in around:
            by_hand = isinstance(one, ComposableResource) and one.status.cdi_device_id in self._excused
            if one.uid not in self._robbed and not by_hand:  # no books are right about what somebody moved
                faults += check.state(self._store, one, self._store.policy)
        for fault in faults:
            self._violated(fault)

    def _count(self, old: Object | None, new: Object | None) -> None:
        match new:
            case Pod():
                title = new.metadata.labels.get(TITLE, new.metadata.name)
                created = seconds(new.metadata.creation_timestamp)
                life = self.pods.setdefault(new.key, PodLife(title, created))
                life.devices = len(new.spec.resource_claims)
                if not new.deleting:
                    life.phase, life.node = new.status.phase, new.spec.node_name
                if new.status.phase == "Running" and life.running is None:
                    life.running = self._world.clock.now()
            case Node() if old is None and NODE_GROUP in new.metadata.labels:
                self.nodes_added += 1
            case _:
                pass
        if isinstance(new, ComposableResource) and new.status.cdi_device_id:
            request = self._store.request(new.request)
            if request is not None and not request.scalers:
                self._served(new.node, new.status.cdi_device_id)

    def _sensed(self, host: SimHost) -> None:
        for prepared in host.prepared():
            self._served(host.node, prepared.physical)

    def _moved(self, movement: Movement) -> None:
        key = (movement.node, movement.device.id)
        if movement.present:
            elsewhere = [node for node, device in self._stays if device == movement.device.id]
            if elsewhere:
                self._violated(f"device/{movement.device.id}: on {movement.node} and on {elsewhere[0]}")
            self._stays[key] = Attachment(movement.device.id, movement.node)
            return
        stay = self._stays.pop(key, None)
        excused = movement.device.id in self._excused
        if stay is not None and not stay.served and movement.device.ours and not excused:
            self._wasted += 1
        host = self._world.hardware.hosts.get(movement.node)
        if host is not None and host.pulled_in_use:
            pulled = host.pulled_in_use.pop()
            if not self._forced(pulled.device.id) and not excused:
                self._violated(f"device/{pulled.device.id}: pulled from {pulled.node} while prepared")

    def _served(self, node: str, device: PhysicalID) -> None:
        stay = self._stays.get((node, device))
        if stay is not None:
            stay.served = True

    def _forced(self, device: PhysicalID) -> bool:
        found = (self._store.resource_with(fabric, device) for fabric in self._world.hardware.managers)
        return any(one is not None and one.spec.force_detach for one in found)

    def _violated(self, fault: str) -> None:
        line = f"{self._world.clock.now() - self._began:.3f} {fault}"
        self.violations.append(line)
        if self._on_violation is not None:
            self._on_violation(line)

    # --- what came of it

    def summary(self) -> Summary:
        """Return what the play has cost so far."""
        counts = [one.counts for one in self._world.hardware.managers.values()]
        attaches, detaches = sum(one.attaches for one in counts), sum(one.detaches for one in counts)
        pods = {key: life for key, life in sorted(self.pods.items()) if key not in self._before}
        served = [life for life in pods.values() if life.devices and life.running is not None]
        waited = {
            life.title: round(life.running - life.created, 1)
            for life in pods.values()
            if life.running is not None
        }
        return Summary(
            pods={life.title: life.phase for life in pods.values()},
            attaches=attaches,
            detaches=detaches,
            nodes_added=self.nodes_added,
            attaches_per_pod=round(attaches / len(served), 4) if served else 0.0,
            wasted=self._wasted,
            devices_attached=len(self._stays),
            waited=waited,
            events=self.events,
            writes=self._world.client.writes,
            seconds=round(self._world.clock.now() - self._began, 1),
        )
