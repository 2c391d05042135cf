"""A device → to whom it is offered: to all with room, to the node it is on, to nobody, or as before.

Knows why a device is not to be had. Must not know slices, nor how an offer is written there.
"""

import msgspec

from jackfield.core import naming, room
from jackfield.model.composition import VISIBLE, ComposableResource, ResourceState
from jackfield.model.meta import holds
from jackfield.model.names import NEVER, DeviceID, FabricName, NodeName, Seconds
from jackfield.model.policy import DeviceModel, Policy
from jackfield.model.view import Failure, View

DEVICE_FAILURES_MAX = 2
"""A device that failed on so many nodes is to blame itself."""


class Open(msgspec.Struct, frozen=True, gc=False):
    """Offered to every node of the fabric that has room."""

    but: tuple[NodeName, ...] = ()
    """Nodes on which it failed lately: the same pair is not tried again so soon."""


class Pinned(msgspec.Struct, frozen=True, gc=False):
    """Offered to the node it is on."""

    node: NodeName


class Closed(msgspec.Struct, frozen=True, gc=False):
    """Offered to nobody."""

    because: str


class AsItIs(msgspec.Struct, frozen=True, gc=False):
    """Offered as before: somebody holds it, or it comes back in a moment, and a write would be for nobody."""


Offer = Open | Pinned | Closed | AsItIs


class Shelf:
    """What is on offer at one moment; what holds for a whole model is found out once."""

    def __init__(self, view: View, policy: Policy, now: Seconds) -> None:
        self.view = view
        self.policy = policy
        self._now = now
        self._barred: dict[tuple[FabricName, int], str] = {}

    def offer(self, device: DeviceID) -> Offer:
        """Return to whom a device is offered."""
        view = self.view
        model, fabric = naming.model_of(device, self.policy), naming.fabric_of(device, self.policy)
        if model is None or fabric is None:
            return Closed("its model is not in the policy")
        resource = view.resource_of(device)
        if resource is not None:
            return self._offer_of_resource(resource, model, fabric)
        physical = view.physical(device)
        inventory = view.inventory(fabric)
        if physical is None and inventory is not None and not inventory.traits.chooses_device:
            return Closed("its manager does not show it any more")
        if physical is not None and physical.node:
            return Closed(f"attached to {physical.node}, not by us")
        if physical is not None and not physical.healthy:
            return Closed("its manager calls it unhealthy")
        return self._offer_to_all(device, model, fabric)

    def _offer_of_resource(
        self, resource: ComposableResource, model: DeviceModel, fabric: FabricName
    ) -> Offer:
        if not resource.stands or resource.foreign:
            back = _goes_idle(resource, model) and self._has_room(resource.node, model)
            return AsItIs() if back else Closed("on its way back to the pool")
        if not model.binds:
            return Closed(f"the driver on {resource.node} offers it")
        assert resource.device is not None
        missing = self.view.missing_since(resource) != NEVER
        if missing or room.vanished(self.view, resource.device, self.policy):
            return Closed("its manager does not show it any more")
        physical = self.view.physical(resource.device)
        if physical is not None and not physical.healthy:
            return Closed("its manager calls it unhealthy")  # whoever has it keeps it
        if _may_move(self.view, resource, model):
            # What could not be attached elsewhere now is not offered there either: it would be moved for nothing.
            everywhere = self._offer_to_all(resource.device, model, fabric)
            return everywhere if isinstance(everywhere, Open) else Pinned(resource.node)
        # A claim keeps it from others until its pod has run; by then it must be pinned.
        on_its_way = self.view.claims_holding(resource.device) and not resource.holder
        return AsItIs() if on_its_way else Pinned(resource.node)

    def _has_room(self, node: NodeName, model: DeviceModel) -> bool:
        """Whether a node may be given a device; what leaves to make room is given there again and again otherwise."""
        found = self.view.node(node)
        return found is not None and found.metadata.labels.get(self.policy.room_label(model)) == "true"

    def _offer_to_all(self, device: DeviceID, model: DeviceModel, fabric: FabricName) -> Open | Closed:
        """Return whether any node may be given it, whoever has it now."""
        kind = (fabric, model.index)
        if kind not in self._barred:
            self._barred[kind] = _bar(self.view, model, fabric, self.policy)
        if self._barred[kind]:
            return Closed(self._barred[kind])
        failed_on = tuple(one.node for one in recent_failures(self.view, device, self.policy, self._now))
        return (
            Open(failed_on) if len(failed_on) < DEVICE_FAILURES_MAX else Closed("it failed on several nodes")
        )


def _goes_idle(resource: ComposableResource, model: DeviceModel) -> bool:
    """Whether it was attached and goes because nobody wants it, which is over soon unless somebody keeps it."""
    well = not resource.status.error and not room.kept(resource)
    return model.binds and holds(resource.status.conditions, VISIBLE) and well


def _bar(view: View, model: DeviceModel, fabric: FabricName, policy: Policy) -> str:
    """Return why nothing of a model is offered now; empty if it is."""
    if policy.paused or fabric in policy.fabrics_paused:
        return "attaching is paused"
    if view.congested(fabric):
        return "its manager has more orders than it can carry out in time"
    if view.handing_over(fabric, model.cdi_model_name):
        return "a device of its model waits for the claim it was attached for"
    return ""


def _may_move(view: View, resource: ComposableResource, model: DeviceModel) -> bool:
    """Whoever is allocated an idle device causes its move; what somebody else asked for stays put."""
    fabric = view.fabric_of(resource.node)
    if fabric is None or view.free(fabric, model.cdi_model_name) > 0:
        return False
    request = view.request(resource.request)
    if resource.state is not ResourceState.ONLINE or (request is not None and not request.scalers):
        return False
    held = any(view.claims_holding(name) for name in room.names_of(view, resource))
    return not held and not resource.holder and resource.record is None


def recent_failures(view: View, device: DeviceID, policy: Policy, now: Seconds) -> tuple[Failure, ...]:
    """Return where a device failed lately, and when."""
    return tuple(one for one in view.failures_of(device) if one.at + policy.blame_seconds > now)
