"""What our replicas ask of a manager, held against what the objects say at that moment.

Knows calls as they are sent, and orders as they take effect. Must not know what a manager does with them. Two things
cannot be held against anybody: a call that left a process long ago and comes late, and one by a process that was paused
between its last look at its lease and the wire (`docs/torture.md`).
"""

from collections.abc import Iterator

import msgspec

from jackfield.controllers.store import Store
from jackfield.model.composition import RELEASED, ComposableResource, ResourceState
from jackfield.model.fabric import FabricDevice, Order, Traits
from jackfield.model.meta import holds
from jackfield.model.names import LONG_AGO, FabricName, OrderID, Seconds
from jackfield.model.policy import DRIVER
from jackfield.sim.audit.checkers import Checker
from jackfield.sim.audit.ending import CATCHING_UP_SECONDS
from jackfield.sim.pool import Movement

Said = Iterator[tuple[Checker, str, str]]
"""What must not be: who saw it, on what, and what it is."""


class Call(msgspec.Struct, frozen=True):
    """Something that was asked of a manager."""

    by: str
    verb: str
    order: Order
    at: Seconds


class Line(msgspec.Struct, frozen=True):
    """Whom a call is sent to, and by whom."""

    traits: Traits
    shown: tuple[FabricDevice, ...]
    """What the manager would show at this moment."""
    lease: Seconds
    """When the sender's lease runs out."""
    wrong_until: Seconds = LONG_AGO
    """Until when the manager shows what there was a while ago, or not all there is."""
    over: bool = False
    """Whether the manager has closed the order, and nothing of it is left."""


class Orders:
    """Follows the orders of all fabrics."""

    def __init__(self, store: Store, lease: Seconds) -> None:
        """Begin; whoever leads is certain to be alone for a `lease`, and who comes back waits for longer."""
        self._store = store
        self._lease = lease
        self._resources: dict[OrderID, str] = {}
        self._void: dict[OrderID, None] = {}
        """Orders that somebody may be at whom nobody remembers to have asked."""
        self._arrived: dict[OrderID, str] = {}
        self._acts: dict[FabricName, list[tuple[Seconds, str]]] = {}
        self._sent: dict[tuple[str, str], Seconds] = {}
        """Until when a call to a manager without ids may take effect, by resource and verb."""

    def know(self, old: object, new: object, now: Seconds) -> Said:
        """Take a change of a resource: its order stands, or has been closed. Return what is wrong with that."""
        if isinstance(old, ComposableResource) and (
            not isinstance(new, ComposableResource) or new.uid != old.uid
        ):
            self._resources.pop(old.order, None)
            for verb in ("attach", "detach"):
                until = self._sent.pop((old.uid, verb), LONG_AGO)
                if now < until and not old.spec.force_detach:
                    what = f"goes while its {verb} may still take effect for {until - now:.0f} s (rule 20)"
                    yield Checker.GONE_TOO_SOON, f"resource/{old.metadata.name}", what
        if isinstance(new, ComposableResource):
            self._resources[new.order] = new.metadata.name

    def forget(self) -> None:
        """Take it that the API was restored from a backup: what it said of orders is void."""
        self._void |= dict.fromkeys(self._resources)
        self._resources.clear()
        self._arrived.clear()
        self._sent.clear()

    def _resource(self, order: OrderID) -> ComposableResource | None:
        """The resource of an order; one that was repeated to a manager without ids goes by its first id."""
        name = self._resources.get(order) or self._resources.get(OrderID(order.rpartition("/")[0]))
        return self._store.resource(name) if name is not None else None

    # --- as it is sent

    def asked(self, call: Call, line: Line) -> Said:
        """Return what is wrong with a call that is about to be sent."""
        yield from self._alone(call)
        resource = self._resource(call.order.id)
        if resource is None or resource.spec.force_detach or resource.foreign:
            return
        name = f"resource/{resource.metadata.name}"
        if call.verb == "attach" and resource.state is ResourceState.NEW:
            yield (
                Checker.EFFECT_BEFORE_INTENT,
                name,
                "the manager hears of it before it says Attaching (rule 5)",
            )
        # Who has an old list asks again to close what is closed; whoever took the order up since, for what an old
        # inventory shows of it, has nothing to lose.
        if call.verb == "detach" and not line.over:
            yield from self._detach(resource, name)
        if not line.traits.knows_orders:
            yield from self._blindly(call, resource, name, line)
            yield from self._again(call, resource, name, line.traits)
            left = line.lease - call.at
            if left < line.traits.call_timeout:
                what = f"{call.by} asks for {call.verb} with {left:.0f} s left of its lease (rule 18)"
                yield Checker.LEASE_TOO_SHORT, name, what

    def _detach(self, resource: ComposableResource, name: str) -> Said:
        gone = self._store.node(resource.node) is None
        if resource.record is not None or (resource.holder and not gone):
            yield (
                Checker.DETACH_UNRELEASED,
                name,
                "the manager is asked to take it while it is in use (rule 13)",
            )
        leaving = resource.state in {ResourceState.DETACHING, ResourceState.DELETING}
        binds = resource.device is not None and resource.device.driver == DRIVER
        released = holds(resource.status.conditions, RELEASED) or gone or not binds
        if not leaving or not released:
            what = f"the manager is asked to take it while it is {resource.state} and not released (rule 15)"
            yield Checker.DETACH_UNRELEASED, name, what

    def _blindly(self, call: Call, resource: ComposableResource, name: str, line: Line) -> Said:
        """What an attach has brought fills the slot, and the attach is not repeated (rule 19)."""
        if call.verb != "attach" or (resource.uid, "attach") not in self._sent:
            return
        if call.at < line.wrong_until + CATCHING_UP_SECONDS:
            return  # when that was decided nobody could see what stands where
        fabric, settled = call.order.fabric, call.at - line.traits.call_timeout
        unclaimed = [
            one.id
            for one in line.shown
            if one.node == resource.node
            and one.ours
            and one.model == resource.spec.model
            and one.since <= settled
            and call.order.device in {"", one.id}
            and self._store.resource_with(fabric, one.id) is None
        ]
        waiting = [one for one in self._store.resources_on(resource.node) if _waits_for(one, resource)]
        if unclaimed and len(unclaimed) >= (1 if call.order.device else len(waiting)):
            what = f"attach is asked for again, and {unclaimed[0]} stands on {resource.node} for nobody (rule 19)"
            yield Checker.REPEATED_BLINDLY, name, what

    def _again(self, call: Call, resource: ComposableResource, name: str, traits: Traits) -> Said:
        """Nothing is asked twice of a manager without ids before it is quiet (rule 20), nor before that is noted."""
        place = (resource.uid, call.verb)
        until, self._sent[place] = self._sent.get(place, LONG_AGO), Seconds(call.at + traits.call_timeout)
        if call.at < until:
            what = f"{call.verb} is asked for again {until - call.at:.0f} s before the last one is over (rule 20)"
            yield Checker.ASKED_TOO_SOON, name, what
        if resource.sent[0] != call.verb:
            yield (
                Checker.EFFECT_BEFORE_INTENT,
                name,
                f"{call.verb} is asked for before it is noted that it is",
            )

    def _alone(self, call: Call) -> Said:
        """Whoever acts, is relieved and comes back has waited for a whole lease in between."""
        acts = self._acts.setdefault(call.order.fabric, [])
        acts[:] = [one for one in acts if one[0] > call.at - self._lease]
        mine = [at for at, by in acts if by == call.by]
        between = [by for at, by in acts if by != call.by and mine and at > mine[0]]
        acts.append((call.at, call.by))
        if between:
            what = f"{call.by} and {between[0]} both ask its manager within {self._lease:.0f} s"
            yield Checker.TWO_WRITERS, f"fabric/{call.order.fabric}", what

    # --- as it takes effect

    def arrived(self, movement: Movement) -> Said:
        """Return what is wrong with a device that has just come to a node by an order."""
        order, name = movement.device.order, f"device/{movement.device.id}"
        if not order:
            return
        if order in self._arrived:
            what = f"order {order} is carried out again; it had brought {self._arrived[order]}"
            yield Checker.ORDER_TWICE, name, what
        self._arrived[order] = movement.device.id
        if self._resource(order) is None and order not in self._void:
            what = f"comes to {movement.node} by order {order}, and no resource stands for it (rule 15)"
            yield Checker.ORDER_OF_NOBODY, name, what


def _waits_for(one: ComposableResource, resource: ComposableResource) -> bool:
    """Whether a resource waits for any device of the same model."""
    empty = one.state is ResourceState.ATTACHING and not one.status.cdi_device_id
    return empty and one.spec.model == resource.spec.model
