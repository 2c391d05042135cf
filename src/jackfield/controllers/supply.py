"""Supply: which devices nobody has, by fabric and model, kept current one device at a time.

Knows what makes a device free, ordered or handed over. Must not know what is done about it.
"""

from bisect import bisect_left, insort
from heapq import nsmallest
from itertools import count, islice
from statistics import median
from typing import NamedTuple, TypeVar

from jackfield.controllers.absent import Absent
from jackfield.controllers.index import Index
from jackfield.core import naming
from jackfield.model.composition import RELEASED, VISIBLE, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import condition, holds
from jackfield.model.names import DeviceID, FabricName, ModelName, NodeName, PhysicalID, Seconds, seconds
from jackfield.model.policy import DRIVER, Policy
from jackfield.model.view import InventoryChanged, SupplyChanged

_MEASURED_MAX = 32
_UNDER_WAY = (ResourceState.NEW, ResourceState.ATTACHING, ResourceState.DETACHING, ResourceState.DELETING)

Kind = tuple[FabricName, ModelName]
K = TypeVar("K", Kind, FabricName)


class _Place(NamedTuple):
    """Where a resource is in the indexes."""

    fabric: FabricName
    kind: Kind
    took: tuple[Seconds, str, float] | None


class Supply:
    """What each fabric has to give."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.inventories: dict[FabricName, Inventory] = {}
        self.physical: dict[DeviceID, FabricDevice] = {}
        self.nodes_of: Index[FabricName, NodeName, NodeName] = Index()
        self._machines: Index[NodeName, FabricName, tuple[FabricName, Machine]] = Index()
        self._fabric_of: dict[NodeName, FabricName] = {}
        """The first of them by name, as every second question begins with it."""
        self._attached: Index[NodeName, tuple[FabricName, PhysicalID], tuple[FabricName, FabricDevice]] = (
            Index()
        )
        self.places: dict[tuple[FabricName, PhysicalID], FabricDevice] = {}
        self._placed: dict[str, _Place] = {}
        """Where in the next three each resource is, by name."""
        self.under_way: Index[FabricName, str, ComposableResource] = Index()
        self.idle: Index[Kind, str, ComposableResource] = Index(
            lambda one: (one.last_used, one.metadata.name)
        )
        self.handing_over: Index[Kind, str, ComposableResource] = Index()
        self._free: dict[Kind, dict[DeviceID, None]] = {}
        self._spoken_for: dict[Kind, dict[DeviceID, None]] = {}
        self._ordered: dict[FabricName, dict[DeviceID, None]] = {}
        self._unordered: dict[FabricName, dict[DeviceID, None]] = {}
        self._taken: dict[Kind, dict[DeviceID, None]] = {}
        self._took: dict[FabricName, list[tuple[Seconds, str, float]]] = {}
        """How long the devices that stand took to attach, by when they were seen."""
        self._attach_seconds: dict[FabricName, Seconds] = {}
        """Their median, for as long as none joins or leaves them."""
        self._told: dict[Kind, tuple[bool, bool, bool, int]] = {}
        self.absent = Absent()

    # --- reading

    def free(self, fabric: FabricName, model: ModelName) -> int:
        """Return how many devices nobody has."""
        inventory = self.inventories.get(fabric)
        if inventory is None:
            return 0
        if not inventory.traits.chooses_device:
            return len(self._free.get((fabric, model), ()))
        spoken_for = len(self._spoken_for.get((fabric, model), ()))
        return max(0, inventory.free.get(model, 0) - spoken_for)

    def free_devices(self, fabric: FabricName, model: ModelName, limit: int) -> tuple[DeviceID, ...]:
        """Return some of the devices, or slots, that nobody has, by name."""
        inventory, known = self.inventories.get(fabric), self.policy.model(model)
        if inventory is None or known is None or not inventory.traits.chooses_device:
            return tuple(nsmallest(limit, self._free.get((fabric, model), ())))
        taken = self._taken.get((fabric, model), {})
        slots = (naming.slot(fabric, known, number) for number in count())
        return tuple(islice((one for one in slots if one not in taken), min(limit, self.free(fabric, model))))

    def attached(self, node: NodeName) -> tuple[FabricDevice, ...]:
        """Return what the node's own manager shows as attached to it; ids are one manager's words only."""
        own = self.fabric_of(node)
        return tuple(device for fabric, device in self._attached.get(node) if own in {None, fabric})

    def fabric_of(self, node: NodeName) -> FabricName | None:
        """Return the fabric a node is a machine of: the first by name, should two managers show it."""
        return self._fabric_of.get(node)

    def machine(self, node: NodeName) -> Machine | None:
        """Return the node as its manager knows it."""
        shown = self._machines.first(node)
        return shown[1] if shown is not None else None

    def congested(self, fabric: FabricName) -> bool:
        """Return whether one more could not be attached within the binding time-out, as `demand` will count."""
        inventory = self.inventories.get(fabric)
        if inventory is None:
            return False
        patience = self.policy.binding_timeout_seconds - self.policy.binding_margin_seconds
        rounds = max(1, int(patience // max(1.0, self.attach_seconds(fabric))))
        return self.ordered(fabric) + len(self._unordered.get(fabric, ())) >= inventory.traits.jobs * rounds

    def ordered(self, fabric: FabricName) -> int:
        """Return how many orders the manager has, or is about to have: detaches too, as they take its time."""
        return len(self._ordered.get(fabric, ()))

    def unordered(self, fabric: FabricName) -> tuple[DeviceID, ...]:
        """Return the devices that claims wait for and nobody has ordered yet."""
        return tuple(self._unordered.get(fabric, ()))

    def attach_seconds(self, fabric: FabricName) -> Seconds:
        """Return how long an attach takes, as measured."""
        known = self._attach_seconds.get(fabric)
        if known is None:
            took = [one for _, _, one in self._took.get(fabric, ())[-_MEASURED_MAX:]]
            if not took:
                return self.policy.attach_seconds
            known = self._attach_seconds[fabric] = Seconds(median(took))
        return known

    # --- writing

    def see(self, inventory: Inventory) -> InventoryChanged | None:
        """Take what a manager shows; return what is different from before."""
        old = self.inventories.get(inventory.fabric)
        if old is inventory or old == inventory:
            return None
        self.inventories[inventory.fabric] = inventory
        before = {device.id: device for device in old.devices} if old else {}
        after = {device.id: device for device in inventory.devices}
        changed = [*after.values(), *(gone for id_, gone in before.items() if id_ not in after)]
        changed = [one for one in changed if _differs(before.get(one.id), after.get(one.id))]
        for one in changed:
            if old is not None and one.id in before:
                self._withdraw(old, before[one.id])
        for one in changed:
            if one.id in after:
                self._show(inventory, one)
        both = [*changed, *(before[one.id] for one in changed if one.id in before)]
        nodes = {one.node: None for one in both if one.node} | self._join(inventory, old)
        names = dict.fromkeys(self.name(inventory, one) for one in both)
        return InventoryChanged(
            inventory.fabric, tuple(nodes), tuple(one for one in names if one is not None)
        )

    def name(self, inventory: Inventory, device: FabricDevice) -> DeviceID | None:
        """Return the DRA name of a device; None where the manager chooses, or the operator does not list it."""
        model = self.policy.model(device.model)
        if model is None or inventory.traits.chooses_device:
            return None
        return naming.device(inventory.fabric, model, device.id)

    def touch(self, name: DeviceID, *, held: bool, queued: bool, resource: ComposableResource | None) -> None:
        """Look again at who has a device; `queued` says whether it is to be attached for whoever holds it."""
        fabric, model = naming.fabric_of(name, self.policy), naming.model_of(name, self.policy)
        if fabric is None or model is None:
            return
        kind = (fabric, model.cdi_model_name)
        physical = self.physical.get(name)
        free = (
            physical is not None and not physical.node and physical.healthy and not held and resource is None
        )
        _put(self._free, kind, name, there=free)
        _put(self._taken, kind, name, there=held or resource is not None)
        coming = resource is not None and not self._arrived(fabric, resource)
        _put(self._spoken_for, kind, name, there=coming if resource else held)
        _put(self._ordered, fabric, name, there=resource is not None and _is_order(resource))
        _put(self._unordered, fabric, name, there=queued and resource is None)

    def place(self, resource: ComposableResource, *, held: bool) -> None:
        """Index a resource by what it is doing; `held` says whether a claim has its device."""
        name = resource.device
        fabric = naming.fabric_of(name, self.policy) if name else None
        model = naming.model_of(name, self.policy) if name else None
        if fabric is None or model is None:
            return
        self.displace(resource)
        key, kind = resource.metadata.name, (fabric, model.cdi_model_name)
        took = _took(resource)
        self._placed[key] = _Place(fabric, kind, took)
        if took is not None:
            insort(self._took.setdefault(fabric, []), took)
            self._attach_seconds.pop(fabric, None)
        if resource.state in _UNDER_WAY:
            self.under_way.add(fabric, key, resource)
        elif not model.binds and resource.record is not None:
            self.handing_over.add(kind, key, resource)
        elif not held and resource.record is None and not resource.holder:
            self.idle.add(kind, key, resource)

    def displace(self, resource: ComposableResource) -> None:
        """Take a resource out of the indexes."""
        key = resource.metadata.name
        place = self._placed.pop(key, None)
        if place is None:
            return
        if place.took is not None:
            known = self._took[place.fabric]
            del known[bisect_left(known, place.took)]
            self._attach_seconds.pop(place.fabric, None)
        self.under_way.remove(place.fabric, key)
        self.handing_over.remove(place.kind, key)
        self.idle.remove(place.kind, key)

    def flips(self, fabric: FabricName) -> tuple[SupplyChanged, ...]:
        """Return the models of a fabric that ran out, came back, closed or opened since last asked.

        And those of which there are more slots or fewer, where the manager chooses.
        """
        congested = self.congested(fabric)
        flipped = []
        for model in self.policy.models:
            kind = (fabric, model.cdi_model_name)
            free = self.free(*kind)
            now = (free > 0, self.handing_over.count(kind) > 0, congested, self._slots(kind, free))
            if self._told.get(kind, now) != now:
                flipped.append(SupplyChanged(*kind))
            self._told[kind] = now
        return tuple(flipped)

    # --- inside

    def _slots(self, kind: Kind, free: int) -> int:
        """How many names a pool has for devices of a model, where they stand for none in particular."""
        inventory = self.inventories.get(kind[0])
        chooses = inventory is not None and inventory.traits.chooses_device
        return len(self._taken.get(kind, ())) + free if chooses else 0

    def _show(self, inventory: Inventory, device: FabricDevice) -> None:
        name = self.name(inventory, device)
        if name is not None:
            self.physical[name] = device
        if device.node:
            self.places[inventory.fabric, device.id] = device
            self._attached.add(device.node, (inventory.fabric, device.id), (inventory.fabric, device))

    def _withdraw(self, inventory: Inventory, device: FabricDevice) -> None:
        name = self.name(inventory, device)
        if name is not None:
            self.physical.pop(name, None)
        self.places.pop((inventory.fabric, device.id), None)
        self._attached.remove(device.node, (inventory.fabric, device.id))

    def _join(self, inventory: Inventory, old: Inventory | None) -> dict[NodeName, None]:
        fabric = inventory.fabric
        before = {machine.node: machine for machine in old.machines} if old else {}
        after = {machine.node: machine for machine in inventory.machines}
        changed = [node for node in {**before, **after} if before.get(node) != after.get(node)]
        for node in changed:
            if node in after:
                self._machines.add(node, fabric, (fabric, after[node]))
                self.nodes_of.add(fabric, node, node)
            else:
                self._machines.remove(node, fabric)
                self.nodes_of.remove(fabric, node)
            shown = self._machines.first(node)
            if shown is not None:
                self._fabric_of[node] = shown[0]
            else:
                del self._fabric_of[node]
        return dict.fromkeys(changed)

    def part(self, resource: ComposableResource) -> None:
        """Take it that a resource is gone."""
        fabric = naming.fabric_of(resource.device, self.policy) if resource.device is not None else None
        if fabric is not None:
            self.absent.forget(fabric, resource)

    def seek(self, resource: ComposableResource) -> None:
        """Look whether a resource's device is where it should be, and as its manager shows it.

        Before the manager has shown anything nothing is: its first answer counts, if it was asked for since. Books from
        a backup may name what left long ago.
        """
        name = resource.device
        fabric = naming.fabric_of(name, self.policy) if name else None
        if name is None or fabric is None:
            return
        match resource.state:
            case ResourceState.ONLINE if self._shown(fabric, resource):
                self.absent.shown(fabric, resource)
            case ResourceState.ONLINE:
                self.absent.lack(fabric, resource)
            case ResourceState.NEW | ResourceState.ATTACHING if self._vanished(fabric, name):
                self.absent.lack(fabric, resource)
            case _:
                self.absent.forget(fabric, resource)

    def _vanished(self, fabric: FabricName, name: DeviceID) -> bool:
        """Whether there is no such device; where the manager chooses, a name stands for none in particular."""
        inventory = self.inventories.get(fabric)
        if inventory is None or inventory.traits.chooses_device:
            return False
        return naming.model_of(name, self.policy) is not None and name not in self.physical

    def _arrived(self, fabric: FabricName, resource: ComposableResource) -> bool:
        """Whether its manager counts its device as attached, be it that we have not noted yet which one came."""
        here = self._attached.get(resource.node)
        return self._shown(fabric, resource) or any(
            one.order == resource.order for there, one in here if there == fabric and one.order
        )

    def _shown(self, fabric: FabricName, resource: ComposableResource) -> bool:
        there = self.places.get((fabric, resource.status.cdi_device_id))
        if there is None or there.node != resource.node or self.fabric_of(resource.node) != fabric:
            return False
        if not self.inventories[fabric].traits.knows_orders:
            return True
        return there.order in {"", resource.order}  # else it went, and came back for somebody else


def _put(index: dict[K, dict[DeviceID, None]], key: K, name: DeviceID, *, there: bool) -> None:
    if there:
        index.setdefault(key, {})[name] = None
    elif key in index:
        index[key].pop(name, None)


def _is_order(resource: ComposableResource) -> bool:
    """Whether a manager has to do with it; what its node has not let go of may take for ever, and takes no job.

    A vendor's driver says nothing when it has let go: what is detached from under it counts from the beginning.
    """
    match resource.state:
        case ResourceState.NEW | ResourceState.ATTACHING:
            return True
        case ResourceState.DETACHING:
            ours = resource.device is not None and resource.device.driver == DRIVER
            return not ours or holds(resource.status.conditions, RELEASED)
        case _:
            return False


def _took(resource: ComposableResource) -> tuple[Seconds, str, float] | None:
    """When a device that is online was first seen, and how long that took; None for one that is not."""
    seen = condition(resource.status.conditions, VISIBLE)
    if seen is None or resource.state is not ResourceState.ONLINE:
        return None
    at = seconds(seen.last_transition_time)
    return at, resource.metadata.name, max(1.0, at - seconds(resource.metadata.creation_timestamp))


def _differs(one: FabricDevice | None, other: FabricDevice | None) -> bool:
    """A manager in the same process shows what has not changed as the very same object."""
    return one is not other and one != other
