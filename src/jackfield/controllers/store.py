"""The one mutable store behind the View.

Written by watch events and by the answers to our own writes, never across an await; an older version never
replaces a newer one, so no decision is made on our own stale past. Knows which indexes decisions read. Must not
know what they decide.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec.structs import replace

from jackfield.controllers.indexes import COUNTED, Indexes, place
from jackfield.controllers.supply import Supply
from jackfield.core import naming, quota, room
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import ComposabilityRequest, ComposableResource
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.host import Facts
from jackfield.model.lease import Lease
from jackfield.model.meta import Object
from jackfield.model.names import (
    LONG_AGO,
    NEVER,
    DeviceID,
    FabricName,
    Key,
    ModelName,
    NodeName,
    PhysicalID,
    Seconds,
    Uid,
    named,
    seconds,
)
from jackfield.model.node import HEARTBEATS, Node
from jackfield.model.pod import Pod
from jackfield.model.policy import Policy
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import (
    Delta,
    FactsChanged,
    Failure,
    InventoryChanged,
    ObjectChanged,
    SupplyChanged,
)
from jackfield.ports import Change, Changed, Deleted, Synced

T = TypeVar("T", bound=Object)

NO_GRAVE: Final[tuple[int, frozenset[Uid]]] = -1, frozenset()
NOTHING: Final[dict[Key, Object]] = {}
GRAVES_MAX = 10_000
"""How many ends are remembered."""


class Store:
    """Everything heard of, indexed. Implements `model.view.View`."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.news = 0
        """How many changes of objects it has taken."""
        self.clock: Callable[[], Seconds] = _long_ago
        """What time it is to the process that knows all this."""
        self.clear()

    def clear(self) -> None:
        """Know nothing, as if just started."""
        self._changed: dict[tuple[type[Object], str], int] = {}
        self._heard: dict[tuple[type[Object], Key], Seconds] = {}
        self._left: dict[tuple[FabricName, PhysicalID], Seconds] = {}
        self._complete: dict[type[Object], None] = {}
        """The kinds of which everything was told once."""
        self._born: dict[Uid, Seconds] = {}
        self._supply = Supply(self.policy)
        self._objects: dict[type[Object], dict[Key, Object]] = {}
        self._gone: dict[tuple[type[Object], Key], tuple[int, frozenset[Uid]]] = {}
        self._by = Indexes(self.policy)
        self._facts: dict[NodeName, Facts] = {}
        self._doubted: dict[FabricName, bool] = {}
        """Managers that would show something else by now, and whether they have been asked since."""
        self._asking: dict[FabricName, Seconds] = {}
        self._asked: dict[FabricName, Seconds] = {}

    def follow(self, policy: Policy) -> None:
        """Know the same as before, as another policy names and counts it."""
        before, self.policy = self.policy, policy
        if (before.models, before.namespaces) == (policy.models, policy.namespaces):
            self._supply.policy = self._by.policy = policy
            return
        shown, absent = tuple(self._supply.inventories.values()), self._supply.absent
        self._supply, self._by = Supply(policy), Indexes(policy)
        self._supply.absent = absent
        for inventory in shown:
            self._supply.see(inventory)
        touched = dict.fromkeys(self._supply.physical)
        for kind in self.kinds():
            for one in self.all(kind):
                self._by.put_in(one, touched)
        for device in touched:
            self._touch(device)
        for inventory in shown:
            self._supply.flips(inventory.fabric)

    # --- writing

    def observe(self, change: Change) -> tuple[Delta, ...]:
        """Take an event; return what it changed."""
        match change:
            case Changed(object=new):
                return self.put(new)
            case Deleted(object=gone):
                return self.remove(gone)
            case Synced(kind=kind, keys=keys):
                self._complete[kind] = None
                known = self._objects.get(kind, {})
                lost = [known[key] for key in sorted(known) if key not in keys]
                # No grave for these: one that we wrote after the list was made is about to be told of.
                return tuple(delta for one in lost for delta in self._drop(one))

    def put(self, new: Object) -> tuple[Delta, ...]:
        """Take an object as it is now; an older version than the known one is passed over."""
        kind, key = type(new), new.key
        known = self._objects.setdefault(kind, {})
        old = known.get(key)
        version = _version(new)
        if old is not None and version <= _version(old):
            return ()
        if version <= self._gone.get((kind, key), NO_GRAVE)[0]:
            return ()
        known[key] = new
        return self._reindex(old, new)

    def remove(self, gone: Object) -> tuple[Delta, ...]:
        """Take it that an object is gone, unless a later one of its name is known."""
        old = self._objects.get(type(gone), {}).get(gone.key)
        if old is not None and _version(old) > _version(gone):
            return ()
        self._bury(gone)
        return self._drop(old) if old is not None else ()

    def doubt(self, fabric: FabricName) -> None:
        """Take it that a manager would show something else by now."""
        self._doubted[fabric] = False

    def ask(self, fabric: FabricName, at: Seconds) -> None:
        """Take it that a manager is asked for its inventory now."""
        self._asking[fabric] = at
        if fabric in self._doubted:
            self._doubted[fabric] = True
        self._supply.absent.ask(fabric)

    def see(
        self, inventory: Inventory, *, current: bool = True, at: Seconds = Seconds(0.0)
    ) -> tuple[Delta, ...]:
        """Take what a fabric's manager shows now; it is current if no doubt came up since it was asked."""
        fabric = inventory.fabric
        self._asked[fabric] = min(inventory.begun, self._asking.get(fabric, LONG_AGO))
        if current and self._doubted.get(fabric, True):
            self._doubted.pop(fabric, None)
        first = self.inventory(fabric) is None
        undated = inventory if inventory.begun == NEVER else replace(inventory, begun=NEVER)
        changed = self._supply.see(undated)
        if changed is not None:
            self._compare(changed, everything=first)
        news = self._supply.absent.answered(fabric, at, current=current)
        if changed is None and not news:
            return ()
        nodes = dict.fromkeys((*(changed.nodes if changed else ()), *(one.node for one in news)))
        devices = dict.fromkeys((*(changed.devices if changed else ()), *(one.device for one in news)))
        told = InventoryChanged(fabric, tuple(nodes), tuple(one for one in devices if one is not None))
        return (told, *self._supply.flips(fabric))

    def _compare(self, changed: InventoryChanged, *, everything: bool) -> None:
        """Look again at all that another inventory bears on; the first bears on every resource there is."""
        there = (one.device for node in changed.nodes for one in self.resources_on(node))
        for device in dict.fromkeys((*changed.devices, *there)):
            if device is not None:
                self._touch(device)
        for one in self.all(ComposableResource) if everything else ():
            assert isinstance(one, ComposableResource)
            self._supply.seek(one)

    def sense(self, node: NodeName, facts: Facts) -> tuple[Delta, ...]:
        """Take what a node sees and has prepared."""
        if self._facts.get(node) == facts:
            return ()
        self._facts[node] = facts
        return (FactsChanged(node),)

    # --- fabrics

    def fabrics(self) -> tuple[FabricName, ...]:
        return tuple(sorted(self._supply.inventories))

    def inventory(self, fabric: FabricName) -> Inventory | None:
        return self._supply.inventories.get(fabric)

    def asked(self, fabric: FabricName) -> Seconds:
        return self._asked.get(fabric, LONG_AGO)

    def current(self, fabric: FabricName) -> bool:
        return fabric in self._supply.inventories and fabric not in self._doubted

    def fabric_of(self, node: NodeName) -> FabricName | None:
        return self._supply.fabric_of(node)

    def machine(self, node: NodeName) -> Machine | None:
        return self._supply.machine(node)

    def physical(self, device: DeviceID) -> FabricDevice | None:
        return self._supply.physical.get(device)

    def place_of(self, fabric: FabricName, physical: PhysicalID) -> NodeName:
        there = self._supply.places.get((fabric, physical))
        return there.node if there is not None else NodeName("")

    def attached(self, node: NodeName) -> tuple[FabricDevice, ...]:
        return self._supply.attached(node)

    def free(self, fabric: FabricName, model: ModelName) -> int:
        return self._supply.free(fabric, model)

    def free_devices(self, fabric: FabricName, model: ModelName, limit: int) -> tuple[DeviceID, ...]:
        return self._supply.free_devices(fabric, model, limit)

    def handing_over(self, fabric: FabricName, model: ModelName) -> tuple[ComposableResource, ...]:
        return self._supply.handing_over.get((fabric, model))

    def congested(self, fabric: FabricName) -> bool:
        return self._supply.congested(fabric)

    def ahead(self, fabric: FabricName, claim: ResourceClaim) -> int:
        waiting = (self._by.claims_holding.first(one) for one in self._supply.unordered(fabric))
        rank = quota.rank(claim, self.policy)
        older = sum(one is not None and quota.rank(one, self.policy) < rank for one in waiting)
        return self._supply.ordered(fabric) + older

    def attach_seconds(self, fabric: FabricName) -> Seconds:
        return self._supply.attach_seconds(fabric)

    def idle(self, fabric: FabricName, model: ModelName) -> tuple[ComposableResource, ...]:
        return self._supply.idle.get((fabric, model))

    def idle_count(self, fabric: FabricName, model: ModelName) -> int:
        """Return how many devices are idle, however many there are."""
        return self._supply.idle.count((fabric, model))

    def under_way(self, fabric: FabricName) -> tuple[ComposableResource, ...]:
        return self._supply.under_way.get(fabric)

    def nodes_of(self, fabric: FabricName) -> tuple[NodeName, ...]:
        return self._supply.nodes_of.get(fabric)

    # --- nodes

    def node(self, name: NodeName) -> Node | None:
        return self.get(Node, named(name))

    def heartbeat(self, node: NodeName) -> Seconds:
        lease = self.get(Lease, Key(HEARTBEATS, node))
        return seconds(lease.spec.renew_time) if lease else Seconds(float("-inf"))

    def facts(self, node: NodeName) -> Facts | None:
        return self._facts.get(node)

    def failures_on(self, node: NodeName) -> tuple[Failure, ...]:
        return self._by.failures_on.get(node, ())

    def failures_of(self, device: DeviceID) -> tuple[Failure, ...]:
        return self._by.failures_of.get(device)

    # --- slices

    def slices(self, driver: str, pool: str) -> tuple[ResourceSlice, ...]:
        return self._by.slices.get((driver, pool))

    def slice_with(self, device: DeviceID) -> ResourceSlice | None:
        return self._by.slice_with.first(device)

    def taint_rule(self, name: str) -> DeviceTaintRule | None:
        return self.get(DeviceTaintRule, named(name))

    def published(self, uuid: str) -> tuple[DeviceID, ...]:
        return tuple(dict.fromkeys(self._by.published.get(uuid))) if uuid else ()

    def claims_at(self, driver: str, node: NodeName) -> tuple[ResourceClaim, ...]:
        return self._by.claims_at.get((driver, node))

    def unshown(self, driver: str, node: NodeName) -> tuple[DeviceID, ...]:
        claims = self.claims_at(driver, node)
        if not claims:
            return ()
        given = (result.id for claim in claims for result in claim.results)
        there = dict.fromkeys(one for one in given if one.driver == driver)
        return tuple(one for one in there if not self._by.slice_with.count(one))

    # --- claims and pods

    def claim(self, key: Key) -> ResourceClaim | None:
        return self.get(ResourceClaim, key)

    def claims_on(self, node: NodeName) -> tuple[ResourceClaim, ...]:
        return self._by.claims_on.get(node)

    def claims_in(self, namespace: str) -> tuple[ResourceClaim, ...]:
        return self._by.claims_in.get(namespace)

    def claims_holding(self, device: DeviceID) -> tuple[ResourceClaim, ...]:
        return self._by.claims_holding.get(device)

    def pods_using(self, claim: Key) -> tuple[Pod, ...]:
        return self._by.pods_using.get(claim)

    def pods_on(self, node: NodeName) -> tuple[Pod, ...]:
        return self._by.pods_on.get(node)

    def nodes_in_group(self, group: str) -> tuple[Node, ...]:
        return self._by.groups.get(group)

    def nodes(self) -> tuple[Node, ...]:
        return tuple(one for one in self.all(Node) if isinstance(one, Node))

    def pods_unschedulable(self) -> tuple[Pod, ...]:
        return self._by.unschedulable.get(None)

    # --- requests and resources

    def request(self, name: str) -> ComposabilityRequest | None:
        return self.get(ComposabilityRequest, named(name))

    def requests_on(self, node: NodeName) -> tuple[ComposabilityRequest, ...]:
        return self._by.requests_on.get(node)

    def requests_by_hand(self, model: ModelName) -> tuple[ComposabilityRequest, ...]:
        return self._by.requests_by_hand.get(model)

    def requests_wanting(self, device: DeviceID) -> tuple[ComposabilityRequest, ...]:
        return self._by.requests_wanting.get(device)

    def resource(self, name: str) -> ComposableResource | None:
        return self.get(ComposableResource, named(name))

    def missing_since(self, resource: ComposableResource) -> Seconds:
        return self._supply.absent.since(resource.uid)

    def resource_of(self, device: DeviceID) -> ComposableResource | None:
        return self._by.resource_of.first(device)

    def resource_with(self, fabric: FabricName, physical: PhysicalID) -> ComposableResource | None:
        named = self._by.resource_with.first((fabric, physical))
        if named is not None:
            return named
        # Ids are one manager's words: of those without a name the node says which manager is meant.
        unnamed = self._by.unnamed.get(physical)
        return next((one for one in unnamed if self.fabric_of(one.node) == fabric), None)

    def resources_on(self, node: NodeName) -> tuple[ComposableResource, ...]:
        return self._by.resources_on.get(node)

    def resources_of(self, request: str) -> tuple[ComposableResource, ...]:
        return self._by.resources_of.get(request)

    def resources_recording(self, claim: Key) -> tuple[ComposableResource, ...]:
        return self._by.recording.get(claim)

    def resources_held_by(self, uid: Uid) -> tuple[ComposableResource, ...]:
        return self._by.held_by.get(uid)

    def resources_recorded_in(self, namespace: str) -> tuple[ComposableResource, ...]:
        return self._by.recorded_in.get(namespace)

    def resource_behind(self, device: DeviceID) -> ComposableResource | None:
        return self._by.resource_behind(device)

    # --- anything, by name

    def known(self, kind: type[T], key: Key) -> T | None:
        """Return an object of any kind, if it was heard of."""
        return self.get(kind, key)

    def changed(self, kind: type[Object], place: str) -> int:
        """Return how many changes it had taken when one of a kind on a node last was another; of taints, by name."""
        return self._changed.get((kind, place), 0)

    def left_at(self, fabric: FabricName, physical: PhysicalID) -> Seconds:
        return self._left.get((fabric, physical), LONG_AGO)

    def born_at(self, resource: ComposableResource) -> Seconds:
        born = self._born.get(resource.uid, LONG_AGO)
        return born if LONG_AGO < born <= self.clock() else seconds(resource.metadata.creation_timestamp)

    def heard_at(self, one: Object) -> Seconds:
        """Return when a change of an object was last taken."""
        return self._heard.get((type(one), one.key), LONG_AGO)

    # --- everything, for repair and for checks: these cost the cluster

    def kinds(self) -> tuple[type[Object], ...]:
        """Return the kinds heard of, by name."""
        return tuple(sorted(self._objects, key=lambda kind: kind.__name__))

    def all(self, kind: type[Object]) -> tuple[Object, ...]:
        """Return every object of a kind, by key."""
        known = self._objects.get(kind, {})
        return tuple(known[key] for key in sorted(known))

    # --- inside

    def get(self, kind: type[T], key: Key) -> T | None:
        """Return the object as it was last heard of."""
        return self._objects.get(kind, NOTHING).get(key)  # type: ignore[return-value]  # each is filed under its kind

    def _drop(self, old: Object) -> tuple[Delta, ...]:
        del self._objects[type(old)][old.key]
        return self._reindex(old, None)

    def _reindex(self, old: Object | None, new: Object | None) -> tuple[Delta, ...]:
        """Take the old object out of the indexes, put the new one in, and look again at what it touches."""
        touched: dict[DeviceID, None] = {}
        self._note(old, new)
        if old is not None:
            self._by.take_out(old, touched)
            if isinstance(old, ComposableResource):
                self._supply.displace(old)
                if not isinstance(new, ComposableResource) or new.uid != old.uid:
                    self._supply.part(old)
                    self._outlived(old)
        if new is not None:
            self._by.put_in(new, touched)
        fabrics: dict[FabricName, None] = {}
        for device in touched:
            fabric = self._touch(device)
            if fabric is not None:
                fabrics[fabric] = None
        flips: tuple[SupplyChanged, ...] = tuple(flip for one in fabrics for flip in self._supply.flips(one))
        return (ObjectChanged(old, new), *flips)

    def _note(self, old: Object | None, new: Object | None) -> None:
        """Remember that something changed, and when."""
        self.news += 1
        for one in (old, new):
            if isinstance(one, COUNTED):
                self._changed[type(one), place(one)] = self.news
        fresh = new is not None and (old is None or old.uid != new.uid)
        if fresh and isinstance(new, ComposableResource) and ComposableResource in self._complete:
            self._born[new.uid] = self.clock()
        if isinstance(new, (ComposableResource, DeviceTaintRule)):
            self._heard[type(new), new.key] = self.clock()
        elif old is not None:
            self._heard.pop((type(old), old.key), None)

    def _outlived(self, gone: ComposableResource) -> None:
        """Doubt a manager that still shows what a resource had: another process of ours may have had it detached."""
        self._born.pop(gone.uid, None)
        fabric = naming.fabric_of(gone.device, self.policy) if gone.device is not None else None
        if fabric is not None:
            came = (one.id for one in self.attached(gone.node) if one.order == gone.order)
            self._left[fabric, gone.status.cdi_device_id or next(came, PhysicalID(""))] = self.clock()
        if fabric is not None and self.place_of(fabric, gone.status.cdi_device_id) == gone.node:
            self.doubt(fabric)

    def _bury(self, gone: Object) -> None:
        """Remember for a while that it is gone: events from before may still be on their way."""
        if len(self._gone) >= GRAVES_MAX:
            del self._gone[next(iter(self._gone))]
        owners = frozenset(one.uid for one in gone.metadata.owner_references)
        self._gone[type(gone), gone.key] = _version(gone), owners

    def had(self, new: Object) -> bool:
        """Return whether an object of this name has gone that had an owner of this one's, not long ago."""
        _, owners = self._gone.get((type(new), new.key), NO_GRAVE)
        return any(one.uid in owners for one in new.metadata.owner_references)

    def _touch(self, device: DeviceID) -> FabricName | None:
        resource = self._by.resource_of.first(device)
        held = self._by.claims_holding.count(device) > 0
        if resource is not None:
            in_use = held or any(
                self._by.claims_holding.count(one) for one in room.drivers_names(self, resource)
            )
            self._supply.place(resource, held=in_use)
            self._supply.seek(resource)
        queued = held and any(quota.admitted(one, self.policy) for one in self._by.claims_holding.get(device))
        self._supply.touch(device, held=held, queued=queued, resource=resource)
        return naming.fabric_of(device, self.policy)


def _long_ago() -> Seconds:
    """Have no clock: nothing is known to be new."""
    return LONG_AGO


def _version(one: Object) -> int:
    """Versions rise over the whole store; one that is no number has never been written."""
    text = one.metadata.resource_version
    return int(text) if text.isdecimal() else 0
