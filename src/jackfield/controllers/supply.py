"""Supply: which devices nobody has, by fabric and model, kept current one device at a time.

Knows what makes a device free, ordered or handed over. Must not know what is done about it.
"""

from collections import deque
from statistics import median

from jackfield.controllers.index import Index
from jackfield.core import naming
from jackfield.model.composition import VISIBLE, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Inventory, Machine
from jackfield.model.meta import condition
from jackfield.model.names import DeviceID, FabricName, ModelName, NodeName, PhysicalID, Seconds, seconds
from jackfield.model.policy import Policy
from jackfield.model.view import InventoryChanged, SupplyChanged

_MEASURED_MAX = 32
_UNDER_WAY = (ResourceState.NEW, ResourceState.ATTACHING, ResourceState.DETACHING, ResourceState.DELETING)

Kind = tuple[FabricName, ModelName]


class Supply:
    """What each fabric has to give."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.inventories: dict[FabricName, Inventory] = {}
        self.physical: dict[DeviceID, FabricDevice] = {}
        self.fabric_of: dict[NodeName, FabricName] = {}
        self.machines: dict[NodeName, Machine] = {}
        self.attached: Index[NodeName, PhysicalID, FabricDevice] = Index(lambda device: device.id)
        self.under_way: Index[FabricName, str, ComposableResource] = Index(lambda one: one.metadata.name)
        self.idle: Index[Kind, str, ComposableResource] = Index(
            lambda one: (one.last_used, one.metadata.name)
        )
        self.handing_over: Index[Kind, str, ComposableResource] = Index(lambda one: one.metadata.name)
        self._free: dict[Kind, dict[DeviceID, None]] = {}
        self._spoken_for: dict[Kind, dict[DeviceID, None]] = {}
        self._waiting: dict[FabricName, dict[DeviceID, None]] = {}
        self._measured: dict[FabricName, deque[float]] = {}
        self._told: dict[Kind, tuple[bool, bool, bool]] = {}

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
        """Return some of the devices that nobody has, by name."""
        return tuple(sorted(self._free.get((fabric, model), ())))[:limit]

    def congested(self, fabric: FabricName) -> bool:
        """Return whether more is waited for than can be attached within the binding time-out."""
        inventory = self.inventories.get(fabric)
        if inventory is None:
            return False
        rounds = max(1, int(self._policy.binding_timeout_seconds // max(1.0, self.attach_seconds(fabric))))
        return len(self._waiting.get(fabric, ())) >= inventory.traits.jobs * rounds

    def attach_seconds(self, fabric: FabricName) -> Seconds:
        """Return how long an attach takes, as measured."""
        measured = self._measured.get(fabric)
        return Seconds(median(measured)) if measured else self._policy.attach_seconds

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
        changed = [one for one in changed if before.get(one.id) != after.get(one.id)]
        for one in changed:
            self._place(inventory, before.get(one.id), after.get(one.id))
        nodes = {one.node: None for one in changed if one.node}
        nodes |= {before[one.id].node: None for one in changed if one.id in before and before[one.id].node}
        nodes |= self._join(inventory, old)
        devices = (self.name(inventory, one) for one in changed)
        return InventoryChanged(
            inventory.fabric, tuple(nodes), tuple(one for one in devices if one is not None)
        )

    def name(self, inventory: Inventory, device: FabricDevice) -> DeviceID | None:
        """Return the DRA name of a device; None where the manager chooses, or the operator does not list it."""
        model = self._policy.model(device.model)
        if model is None or inventory.traits.chooses_device:
            return None
        return naming.device(inventory.fabric, model, device.id)

    def touch(self, name: DeviceID, *, held: bool, resource: ComposableResource | None) -> None:
        """Look again at who has a device."""
        fabric, model = naming.fabric_of(name, self._policy), naming.model_of(name, self._policy)
        if fabric is None or model is None:
            return
        kind = (fabric, model.cdi_model_name)
        physical = self.physical.get(name)
        free = (
            physical is not None and not physical.node and physical.healthy and not held and resource is None
        )
        _put(self._free.setdefault(kind, {}), name, there=free)
        ordered = resource is not None and not self._shown(fabric, resource)
        _put(self._spoken_for.setdefault(kind, {}), name, there=ordered if resource else held)
        attaching = resource.state in {ResourceState.NEW, ResourceState.ATTACHING} if resource else held
        _put(self._waiting.setdefault(fabric, {}), name, there=attaching)

    def place(self, resource: ComposableResource, *, held: bool) -> None:
        """Index a resource by what it is doing; `held` says whether a claim has its device."""
        name = resource.device
        fabric = naming.fabric_of(name, self._policy) if name else None
        model = naming.model_of(name, self._policy) if name else None
        if fabric is None or model is None:
            return
        key, kind = resource.metadata.name, (fabric, model.cdi_model_name)
        self.displace(resource)
        if resource.state in _UNDER_WAY:
            self.under_way.add(fabric, key, resource)
        elif not model.binds and resource.record is not None:
            self.handing_over.add(kind, key, resource)
        elif not held and resource.record is None and not resource.holder:
            self.idle.add(kind, key, resource)

    def displace(self, resource: ComposableResource) -> None:
        """Take a resource out of the indexes."""
        name = resource.device
        fabric = naming.fabric_of(name, self._policy) if name else None
        if name is None or fabric is None:
            return
        key, kind = resource.metadata.name, (fabric, resource.spec.model)
        self.under_way.remove(fabric, key)
        self.handing_over.remove(kind, key)
        self.idle.remove(kind, key)

    def measure(self, resource: ComposableResource) -> None:
        """Learn from a resource that has just come online how long an attach takes."""
        seen = condition(resource.status.conditions, VISIBLE)
        name = resource.device
        fabric = naming.fabric_of(name, self._policy) if name else None
        if seen is None or fabric is None:
            return
        took = seconds(seen.last_transition_time) - seconds(resource.metadata.creation_timestamp)
        self._measured.setdefault(fabric, deque(maxlen=_MEASURED_MAX)).append(max(1.0, took))

    def flips(self, fabric: FabricName) -> tuple[SupplyChanged, ...]:
        """Return the models of a fabric that ran out, came back, closed or opened since last asked."""
        congested = self.congested(fabric)
        flipped = []
        for model in self._policy.models:
            kind = (fabric, model.cdi_model_name)
            now = (self.free(*kind) > 0, self.handing_over.count(kind) > 0, congested)
            if self._told.get(kind, now) != now:
                flipped.append(SupplyChanged(*kind))
            self._told[kind] = now
        return tuple(flipped)

    # --- inside

    def _place(self, inventory: Inventory, old: FabricDevice | None, new: FabricDevice | None) -> None:
        known = new or old
        assert known is not None
        name = self.name(inventory, known)
        if name is not None and new is not None:
            self.physical[name] = new
        elif name is not None:
            self.physical.pop(name, None)
        if old is not None and old.node:
            self.attached.remove(old.node, old.id)
        if new is not None and new.node:
            self.attached.add(new.node, new.id, new)

    def _join(self, inventory: Inventory, old: Inventory | None) -> dict[NodeName, None]:
        before = {machine.node: machine for machine in old.machines} if old else {}
        after = {machine.node: machine for machine in inventory.machines}
        changed = [node for node in {**before, **after} if before.get(node) != after.get(node)]
        for node in changed:
            if node in after:
                self.fabric_of[node] = inventory.fabric
                self.machines[node] = after[node]
            else:
                self.fabric_of.pop(node, None)
                self.machines.pop(node, None)
        return dict.fromkeys(changed)

    def _shown(self, fabric: FabricName, resource: ComposableResource) -> bool:
        wanted = resource.status.cdi_device_id
        return bool(wanted) and any(
            one.id == wanted and self.fabric_of.get(resource.node) == fabric
            for one in self.attached.get(resource.node)
        )


def _put(names: dict[DeviceID, None], name: DeviceID, *, there: bool) -> None:
    if there:
        names[name] = None
    else:
        names.pop(name, None)
