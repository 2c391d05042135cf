"""Looks at every change as it happens, against what must never be; at rest and in the end, against what must be.

Sees the API's own truth and the hardware's, not anybody's cache. Hears what our processes say they wait for, as one of
their recorders. Knows which checker looks at what. Must not touch anything.
"""

from collections.abc import Callable, Iterable

from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import Event, EventType, Stored
from jackfield.controllers.lead import REPLICAS
from jackfield.controllers.store import Store
from jackfield.core import check, drift
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import (
    RELEASED,
    VISIBLE,
    ComposabilityRequest,
    ComposableResource,
    ResourceState,
)
from jackfield.model.fabric import Order
from jackfield.model.lease import Lease
from jackfield.model.meta import Object, holds
from jackfield.model.names import (
    LONG_AGO,
    NEVER,
    Key,
    NodeName,
    PhysicalID,
    Seconds,
    Uid,
    seconds,
)
from jackfield.model.node import Node
from jackfield.model.plan import AnyAction, DeleteRequest, Finding, PutRequest, Waiting
from jackfield.model.pod import Pod
from jackfield.model.policy import DRIVER
from jackfield.model.slice import ResourceSlice
from jackfield.model.taint import DeviceTaintRule
from jackfield.model.view import Delta, ObjectChanged
from jackfield.ports import Changed, Deleted, Prepared
from jackfield.sim.audit import ending
from jackfield.sim.audit.changes import Changes
from jackfield.sim.audit.checkers import Checker
from jackfield.sim.audit.forsaken import Forsaken
from jackfield.sim.audit.given_up import GivenUp
from jackfield.sim.audit.ledger import Ledger, PodLife, Summary
from jackfield.sim.audit.orders import Call, Line, Orders
from jackfield.sim.audit.overlooked import Overlooked
from jackfield.sim.host import SimHost
from jackfield.sim.manager import Manager
from jackfield.sim.pool import Movement
from jackfield.sim.weather import LATE_MAX, TIMEOUT
from jackfield.sim.world import SimWorld

KINDS = (Node, Pod, ResourceClaim, ComposabilityRequest, ComposableResource, ResourceSlice, DeviceTaintRule)


OUR_CONTROLLERS = ("jackfield", "replica-")
"""How the names begin under which our processes write."""
NODE_PLUGINS = "jackfield-node"
SERVES_CLAIMS = "scale.decide"
GLANCE_SECONDS = 10.0
FAIR_SECONDS = 120.0
"""So long after the last trouble everybody has heard of everything."""
BY_THE_CLOCK = (
    check.Checker.RETURNED_EARLY,
    check.Checker.TAKEN_BACK,
    check.Checker.IDLE_TOO_LONG,
)
"""What nobody can keep who is shown a wrong time: hold times."""
HEARSAY = (check.Checker.RETURNED_EARLY, check.Checker.ENTRY_REMOVED)
"""What is done rightly by all that who does it has heard."""
IDLE_WRITES_MAX = 30
"""Writes of ours that may change nothing, in a whole play: a manager may give the same reason twice."""
REWIND_WRITES_MAX = 30
"""So many more when a backup is restored: what was just written may be written again, or be there once more."""


class ViolationError(AssertionError):
    """Something was seen that must never be."""


class Audit:
    """Watches one world; a `controllers.runner.Recorder`."""

    def __init__(self, world: SimWorld, *, on_violation: Callable[[str], None] | None = None) -> None:
        self.violations: list[str] = []
        self.hopeless: dict[Key, str] = {}
        """Pods that cannot ever run, and why: whoever drew them knows, or Kubernetes took their claim."""
        self.repeats = IDLE_WRITES_MAX
        """So many more writes may change nothing; one more for each of ours whose answer was lost, and each death."""
        self.clocks_were_set = False
        """Whether somebody set a clock: then times on objects say little."""
        self._world = world
        self._store = Store(world.setting.policy)
        self._on_violation = on_violation
        self._ledger = Ledger()
        self._orders = Orders(self._store, world.setting.lease_seconds)
        # Claims whose device was taken by force, and pods whose claim was taken by Kubernetes.
        self._robbed: dict[Uid, None] = {}
        self._excused: dict[PhysicalID, Seconds] = {}  # when somebody last moved it
        self._astray: dict[PhysicalID, None] = {}  # devices that a restored backup shows where they were
        self._abandoned: dict[Uid, None] = {}  # claims of pods that went before they had ended
        self._prepared: dict[NodeName, dict[tuple[Uid, PhysicalID], None]] = {}
        self._given_up = GivenUp()
        self._forsaken = Forsaken()
        self._overlooked = Overlooked(world)
        self._unshown: dict[str, None] = {}  # nodes and resources whose manager forgot something
        self._by_hand: dict[str, int] = {}  # requests that somebody else wrote: at which version they came
        self._waits: dict[str, tuple[Seconds, Waiting]] = {}
        self._began = world.clock.now()
        self._changes = Changes(self._began)
        self._next_glance = self._began
        self._look()
        self._listen()

    def _listen(self) -> None:
        hardware = self._world.hardware
        for kind in KINDS:
            self._world.api.subscribe(kind, self._hear)
        self._world.api.subscribe(Lease, self._tick)  # signs of life come all the time
        hardware.movements.append(self._moved)
        hardware.senses.append(self._sensed)
        self._world.api.idle.append(self._idle)
        self._world.knowing.append(self._knows)
        for manager in hardware.managers.values():
            manager.asked.append(self._ear(manager))

    def _ear(self, manager: Manager) -> Callable[[str, str, Order], None]:
        def hear(by: str, verb: str, order: Order) -> None:
            if any(
                one.name == by and ending.lives_in_the_past(self._world, one) for one in self._world.replicas
            ):
                return
            shown, over = manager.inventory(), manager.is_over(order.id)
            call = Call(by, verb, order, self._world.clock.now())
            wrong_until = max(manager.outdated_until, manager.forgetful_until)
            line = Line(shown.traits, shown.devices, self._lease(by), wrong_until, over)
            for checker, name, what in self._orders.asked(call, line):
                if order.device not in self._excused:
                    self._violated(checker, f"{name}: {what}")

        return hear

    def _lease(self, by: str) -> Seconds:
        """When a replica's lease runs out, as everybody can read; never for one that is alone."""
        if len(self._world.replicas) <= 1:
            return NEVER
        try:
            lease = self._world.api.get(Lease, Key(REPLICAS, by)).object
        except ApiError:
            return LONG_AGO
        assert isinstance(lease, Lease)
        return Seconds(seconds(lease.spec.renew_time) + lease.spec.lease_duration_seconds)

    @property
    def pods(self) -> dict[Key, PodLife]:
        """Every pod that ever was."""
        return self._ledger.pods

    @property
    def events(self) -> int:
        """How many changes were looked at."""
        return self._ledger.events

    def begin(self) -> None:
        """Count from here; what came before is looked at, but not counted."""
        self._began = self._world.clock.now()
        self._ledger.begin()

    def excuse(self, device: PhysicalID) -> None:
        """Take it that somebody else moves a device now: what it is pulled from, and its books, are not our fault."""
        self._excused[device] = self._world.clock.now()

    def rewound(self) -> None:
        """Take it that the API was restored from a backup: steps back, and orders of nobody, are not our fault."""
        self._orders.forget()
        self._store.clear()
        self._look()
        self._changes.fair_since = self._world.clock.now()
        self.repeats += REWIND_WRITES_MAX
        for kind in KINDS:
            for item in self._world.api.list(kind).items:
                self._store.put(item.object)
                self._astray |= ending.astray(self._world, item.object)
                _ = tuple(self._orders.know(None, item.object, self._world.clock.now()))

    # --- what happens in the API

    def _hear(self, event: Event) -> None:
        self._ledger.events += 1
        gone = event.type is EventType.DELETED
        one = event.stored.object
        if gone and isinstance(one, Pod) and not one.finished:
            claims = (self._store.claim(Key(one.metadata.namespace, name)) for name in one.claim_names)
            self._abandoned |= {claim.uid: None for claim in claims if claim is not None}
        for pod in self._forsaken.pods(event, self._store):
            self._robbed[pod.uid], self.hopeless[pod.key] = None, "its claim was taken back when it was bound"
        for delta in self._store.observe(Deleted(one) if gone else Changed(one)):
            if isinstance(delta, ObjectChanged):
                for checker, name, what in self._orders.know(delta.old, delta.new, self._world.clock.now()):
                    self._violated(checker, f"{name}: {what}")
                self._check(delta.old, delta.new)
                self._count(delta.old, delta.new)

    def _check(self, old: Object | None, new: Object | None) -> None:
        now = self._world.clock.now()
        found = check.step(old, new, self._store, self._store.policy, now)
        faults = [one for one in found if not self._is_unshown(one, new) and not self._is_unheard(one, new)]
        for one in self._around(new):
            by_hand = isinstance(one, ComposableResource) and one.status.cdi_device_id in self._excused
            if one.uid not in self._robbed and not by_hand:  # no books are right about what somebody moved
                found = self._changes.judged(
                    check.state(self._store, one, self._store.policy), one, self._store
                )
                faults += [fault for fault in found if not self._is_astray(fault, one)]
        for fault in faults:
            self._violated(fault.checker, str(fault))
        if isinstance(new, ComposableResource):
            self._said(old, new)
            self._entered(old, new)

    def _is_astray(self, fault: check.Fault, one: Object) -> bool:
        """Whether two have a device since a backup says of one where its device was; that one goes soon (rule 1)."""
        physical = one.status.cdi_device_id if isinstance(one, ComposableResource) else ""
        return fault.checker is check.Checker.DEVICE_IN_TWO_BOOKS and physical in self._astray

    def _entered(self, old: Object | None, new: ComposableResource) -> None:
        """Nothing that somebody else attached comes into our books but what the policy wants off."""
        physical = new.status.cdi_device_id
        known = isinstance(old, ComposableResource) and old.status.cdi_device_id == physical
        if known or not physical or new.foreign or physical in self._excused:
            return
        pools = (manager.pool for manager in self._world.hardware.managers.values())
        there = [one for pool in pools if (one := pool.device(physical)) is not None and one.node == new.node]
        if there and not any(one.ours for one in there):
            what = f"takes {physical}, which somebody else attached to {new.node} (rule 19)"
            self._violated(Checker.FOREIGN_TOUCHED, f"resource/{new.metadata.name}: {what}")

    def _knows(self, who: str, deltas: tuple[Delta, ...]) -> None:
        """What a controller knows of an object never gets older."""
        for delta in deltas:
            if isinstance(delta, ObjectChanged) and delta.old is not None and delta.new is not None:
                old, new = (int(one.metadata.resource_version) for one in (delta.old, delta.new))
                if new < old:
                    what = f"knew version {old} of {type(delta.new).__name__} {delta.new.key}, and takes {new} for it"
                    self._violated(Checker.KNOWLEDGE_WENT_BACK, f"{who}: {what}")

    def _is_unshown(self, fault: check.Fault, new: Object | None) -> bool:
        """Whether a device is returned because its manager once did not show it, or its node's others."""
        node = f"node/{new.node}" if isinstance(new, ComposableResource) else ""
        early = fault.checker is check.Checker.RETURNED_EARLY
        return early and (fault.object in self._unshown or node in self._unshown)

    def _is_unheard(self, fault: check.Fault, new: Object | None) -> bool:
        """Whether a claim is taken back while who does it may not have heard of the pod (rule 17 lets him).

        Likewise what is returned, or listed no more, by who may not have heard that it is in use: what is safe is
        written by version, and no safety rests on a slice (rules 3 and 13).
        """
        if fault.checker in HEARSAY:
            return ending.is_behind(self._world) or self._was_wanted(new)
        return fault.checker is check.Checker.TAKEN_BACK and ending.is_stormy(self._world)

    def _was_wanted(self, new: Object | None) -> bool:
        """Whether it had a reason to be returned until a moment ago: a claim for it or its room, a closed node."""
        since = Seconds(self._world.clock.now() - ending.CATCHING_UP_SECONDS)
        return isinstance(new, ComposableResource) and self._given_up.explains(new, since)

    def _around(self, new: Object | None) -> list[Object]:
        """What a change bears on."""
        around = [new] if new is not None else []
        if isinstance(new, ComposableResource) and new.device is not None:
            holding = self._store.claims_holding(new.device)
            around += holding
            if new.spec.force_detach and new.state is ResourceState.DETACHING:
                self._robbed |= dict.fromkeys(claim.uid for claim in holding)
        if isinstance(new, ResourceClaim):
            around += self._store.pods_using(new.key)
        return around

    def _idle(self, stored: Stored, manager: str) -> None:
        """Count a write that changed nothing; a plugin that writes a holder again asks for its version by that."""
        if manager.startswith(OUR_CONTROLLERS) and manager != NODE_PLUGINS:
            self.repeats -= 1
            if self.repeats < 0:
                what = f"{stored.kind.type.__name__} {stored.key}: {manager} writes what is there already"
                self._violated(Checker.WRITE_WITHOUT_CHANGE, what)

    def _said(self, old: Object | None, new: ComposableResource) -> None:
        """What a node says of a device is so."""
        before = old.status.conditions if isinstance(old, ComposableResource) else ()
        host, physical = self._world.hardware.hosts.get(new.node), new.status.cdi_device_id
        binds = new.device is not None and new.device.driver == DRIVER
        if host is None or not binds or physical in self._excused or new.spec.force_detach:
            return
        name, conditions = f"resource/{new.metadata.name}", new.status.conditions
        # What was said before the node was started anew may be under way.
        booted = self._world.clock.now() < host.booted_at + TIMEOUT + LATE_MAX
        seen = booted or any(one.physical == physical for one in host.seen())
        if holds(conditions, VISIBLE) and not holds(before, VISIBLE) and not seen:
            self._violated(Checker.VISIBLE_UNSEEN, f"{name}: {new.node} does not see {physical} (rule 6)")
        used = any(one.physical == physical for one in host.prepared())
        holder = old.holder if isinstance(old, ComposableResource) else ""
        if (
            holder
            and not new.holder
            and any((holder, physical) == (one.uid, one.physical) for one in host.prepared())
        ):
            what = (
                f"{physical} is prepared on {new.node} for {holder}, and nothing says so any more (rule 12)"
            )
            self._violated(Checker.LET_GO_IN_USE, f"{name}: {what}")
        if holds(conditions, RELEASED) and not holds(before, RELEASED) and used and physical:
            self._violated(Checker.RELEASED_IN_USE, f"{name}: {physical} is prepared on {new.node} (rule 14)")

    def _count(self, old: Object | None, new: Object | None) -> None:
        now = self._world.clock.now()
        self._ledger.count(old, new, now)
        if isinstance(new, ComposableResource):
            self._ledger.serves_request(self._store, new)
        self._changes.note(old, new, now)
        self._given_up.note(old, new, now)
        if isinstance(new, ComposabilityRequest) and old is None:
            self._by_hand.pop(new.metadata.name, None)
            self._by_hand |= {} if new.scalers else {new.metadata.name: int(new.metadata.resource_version)}

    # --- what happens to hardware

    def _sensed(self, host: SimHost) -> None:
        known = self._prepared.get(host.node, {})
        for one in host.prepared():
            self._ledger.served(host.node, one.physical)
            ours = one.device.startswith(f"{DRIVER}/")  # what other drivers prepare is their own business
            if ours and (one.uid, one.physical) not in known:
                self._prepare(host.node, one)
        self._prepared[host.node] = {(one.uid, one.physical): None for one in host.prepared()}

    def _prepare(self, node: NodeName, prepared: Prepared) -> None:
        """What is prepared was lent to this very claim, on this node, and is the device that it was given."""
        found = self._store.resources_recording(prepared.claim)
        lent = [one for one in found if str(one.device) == prepared.device and one.node == node]
        fit = any(
            one.state is ResourceState.ONLINE
            and one.holder == prepared.uid
            and one.record is not None
            and one.record.uid == prepared.uid
            and one.status.cdi_device_id == prepared.physical
            for one in lent
        )
        if not fit and prepared.physical not in self._excused:
            what = f"{prepared.device} is prepared for claim {prepared.claim} on {node} and not lent to it (rule 10)"
            self._violated(Checker.PREPARED_UNLENT, f"device/{prepared.physical}: {what}")

    def _moved(self, movement: Movement) -> None:
        name = f"device/{movement.device.id}"
        excused = movement.device.id in self._excused
        if movement.present:
            elsewhere = self._ledger.came(movement)
            if elsewhere:
                self._violated(Checker.ON_TWO_NODES, f"{name}: on {movement.node} and on {elsewhere[0]}")
            for checker, about, what in self._orders.arrived(movement):
                if not excused:
                    self._violated(checker, f"{about}: {what}")
            return
        stay = self._ledger.went(movement, excused=excused)
        for host in [one for one in self._world.hardware.hosts.values() if one.pulled_in_use]:
            pulled = host.pulled_in_use.pop()
            allowed = self._forced(pulled.device.id) or pulled.device.id in self._excused
            if not allowed and not self._is_unknowable(pulled, host):
                what = f"device/{pulled.device.id}: pulled from {host.node} while prepared"
                self._violated(Checker.PULLED_IN_USE, what)
        by_hand = self._excused.get(movement.device.id) == self._world.clock.now()
        if stay is not None and not stay.ours and not by_hand and not self._may_go(movement):
            self._violated(
                Checker.FOREIGN_TOUCHED, f"{name}: was not ours, and was taken from {movement.node}"
            )

    def _may_go(self, movement: Movement) -> bool:
        """Whether the policy names a device of somebody else's."""
        device = movement.device
        return any(
            (rule.device or rule.model or rule.node)
            and rule.device in {"", device.id}
            and rule.model in {"", device.model}
            and rule.node in {"", movement.node}
            for rule in self._store.policy.detach_foreign
        )

    def _is_unknowable(self, pulled: Movement, host: SimHost) -> bool:
        """Whether a vendor's device was in use only for pods deleted by force: nobody says that they have not ended."""
        model = self._store.policy.model(pulled.device.model)
        vendors = model is not None and not model.binds
        return vendors and all(uid in self._abandoned for uid in host.users(pulled.device.id))

    def _forced(self, device: PhysicalID) -> bool:
        found = (self._store.resource_with(fabric, device) for fabric in self._world.hardware.managers)
        return any(one is not None and one.spec.force_detach for one in found)

    # --- what our processes say

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Hear of an action: what others asked for is left alone."""
        del at
        if error or not isinstance(action, PutRequest | DeleteRequest):
            return
        if isinstance(action, PutRequest):
            name, version = action.request.metadata.name, action.request.metadata.resource_version
        else:
            name, version = action.name, action.version
        # It is told when it is answered, and by then another's may have the name of what was written.
        if name in self._by_hand and int(version or 0) >= self._by_hand[name]:
            self._violated(Checker.FOREIGN_TOUCHED, f"request/{name}: is not ours, and {by} changed it")

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Hear what is waited for; of a claim, what the one says who serves it."""
        for one in waiting:
            if by == SERVES_CLAIMS or not one.object.startswith("claim/"):
                self._waits[one.object] = (at, one)

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Hear what a manager does not show: what nobody can see may be given up. The rest is compared here."""
        del at, by, over
        if finding.reason in {drift.Kind.UNSHOWN, drift.Kind.MISSING}:
            self._unshown[finding.object] = None

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Pass over how long it took."""

    # --- when nothing should be under way, and in the end

    def _tick(self, _: Event) -> None:
        if self._world.clock.now() >= self._next_glance:
            self._next_glance = Seconds(self._world.clock.now() + GLANCE_SECONDS)
            self._glance()

    def _glance(self) -> None:
        """Look now and then whether whoever waits is told why, and not in vain; while nothing is wrong with anybody."""
        now = self._world.clock.now()
        self._told(self._overlooked.look(now))
        if ending.is_stormy(self._world):
            self._changes.fair_since = now
        elif now >= self._changes.fair_since + FAIR_SECONDS and not self._store.policy.paused:
            scene = ending.Scene(self._world, self._store, now, self._excused, self.hopeless)
            vain = ending.in_vain(scene, self._changes)
            self._told((*ending.unexplained(scene, self._changes, self._waits), *vain))

    def quiet(self) -> tuple[str, ...]:
        """Look at everything: for a moment at which nothing is under way."""
        return self._told(ending.at_rest(self._scene()))

    def lacks(self) -> tuple[str, ...]:
        """Return what is not yet as it must be in the end, and hold it against nobody: for whoever waits for it."""
        scene = self._scene()
        faults = (*ending.at_rest(scene), *ending.fulfilled(scene, self._waits))
        return tuple(f"{checker} {words}" for checker, words in faults)

    def end(self) -> tuple[str, ...]:
        """Look at everything, long after the last trouble: all that is good has happened."""
        scene = self._scene()
        return self._told((*ending.at_rest(scene), *ending.fulfilled(scene, self._waits)))

    def _scene(self) -> ending.Scene:
        self._look()
        return ending.Scene(self._world, self._store, self._world.clock.now(), self._excused, self.hopeless)

    def _look(self) -> None:
        """Have all managers show what they have; whenever books are begun too, since what they can is part of it."""
        now = self._world.clock.now()
        for fabric, manager in self._world.hardware.managers.items():
            self._store.ask(fabric, now)
            self._store.see(manager.inventory(), at=now)

    def _told(self, faults: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        before = len(self.violations)
        for checker, words in faults:
            self._violated(checker, words)
        return tuple(self.violations[before:])

    def _violated(self, checker: str, words: str) -> None:
        if self.clocks_were_set and checker in BY_THE_CLOCK:
            return
        line = f"{self._world.clock.now() - self._began:.3f} {checker} {words}"
        self.violations.append(line)
        if self._on_violation is not None:
            self._on_violation(line)

    # --- what came of it

    def summary(self) -> Summary:
        """Return what the play has cost so far."""
        counts = [one.counts for one in self._world.hardware.managers.values()]
        lasted = Seconds(self._world.clock.now() - self._began)
        return self._ledger.summary(counts, self._world.client.writes, lasted)
