"""What a play costs: pods' lives, devices' stays, and the sum of both.

Knows counters. Must not judge.
"""

from collections.abc import Sequence

import msgspec

from jackfield.controllers.store import Store
from jackfield.model.composition import ComposableResource
from jackfield.model.meta import Object
from jackfield.model.names import Key, NodeName, PhysicalID, Seconds, seconds
from jackfield.model.node import NODE_GROUP, Node
from jackfield.model.pod import Pod
from jackfield.sim.manager import Counts
from jackfield.sim.pool import Movement

TITLE = "app.kubernetes.io/name"
"""Label of a pod: what the scenario calls it."""


class PodLife(msgspec.Struct):
    """When a pod came, ran and went."""

    title: str
    created: Seconds
    running: Seconds | None = None
    phase: str = "Pending"
    devices: int = 0
    node: str = ""


class Stay(msgspec.Struct):
    """A device's stay on a node."""

    device: PhysicalID
    serial: str
    """Two fabrics may call two devices alike; nobody's serial number is another's."""
    node: str
    ours: bool
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


class Ledger:
    """Counts what it is told."""

    def __init__(self) -> None:
        self.pods: dict[Key, PodLife] = {}
        self.nodes_added = 0
        self.events = 0
        self.wasted = 0
        self.stays: dict[tuple[str, PhysicalID], Stay] = {}
        self._before: dict[Key, None] = {}

    def begin(self) -> None:
        """Count from here; what came before is known, but not counted."""
        self._before = dict.fromkeys(self.pods)
        self.events = 0

    def count(self, old: Object | None, new: Object | None, now: Seconds) -> None:
        """Take a change of an object."""
        match new:
            case Pod():
                self._pod(new, now)
            case Node() if old is None and NODE_GROUP in new.metadata.labels:
                self.nodes_added += 1
            case _:
                pass

    def _pod(self, new: Pod, now: Seconds) -> None:
        title = new.metadata.labels.get(TITLE, new.metadata.name)
        life = self.pods.setdefault(new.key, PodLife(title, seconds(new.metadata.creation_timestamp)))
        life.devices = len(new.spec.resource_claims)
        if not new.deleting:
            life.phase, life.node = new.status.phase, new.spec.node_name
        if new.status.phase == "Running" and life.running is None:
            life.running = now

    def serves_request(self, store: Store, new: ComposableResource) -> None:
        """Take it that a device which somebody asked for by hand serves him as soon as it is there."""
        request = store.request(new.request)
        if new.status.cdi_device_id and request is not None and not request.scalers:
            self.served(new.node, new.status.cdi_device_id)

    def served(self, node: NodeName, device: PhysicalID) -> None:
        """Take it that a device has served somebody where it is."""
        stay = self.stays.get((node, device))
        if stay is not None:
            stay.served = True

    def came(self, movement: Movement) -> tuple[str, ...]:
        """Take a device that came to a node; return the nodes that it has not left yet."""
        device = movement.device
        elsewhere = tuple(one.node for one in self.stays.values() if one.serial == device.serial)
        self.stays[movement.node, device.id] = Stay(device.id, device.serial, movement.node, device.ours)
        return elsewhere

    def went(self, movement: Movement, *, excused: bool) -> Stay | None:
        """Take a device that left a node; return its stay there."""
        stay = self.stays.pop((movement.node, movement.device.id), None)
        if stay is not None and not stay.served and movement.device.ours and not excused:
            self.wasted += 1
        return stay

    def counted(self) -> dict[Key, PodLife]:
        """Return the pods since the beginning, by key."""
        return {key: life for key, life in sorted(self.pods.items()) if key not in self._before}

    def summary(self, managers: Sequence[Counts], writes: int, lasted: Seconds) -> Summary:
        """Return what the play has cost so far, with what its managers have counted."""
        attaches, detaches = sum(one.attaches for one in managers), sum(one.detaches for one in managers)
        pods = self.counted()
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
            wasted=self.wasted,
            devices_attached=len(self.stays),
            waited=waited,
            events=self.events,
            writes=writes,
            seconds=round(lasted, 1),
        )
