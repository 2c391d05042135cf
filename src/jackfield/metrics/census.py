"""Orders and claims under way, as changes tell of them: how many there are, and how long each stage took.

Cost follows the change: what is asked for at a scrape has been counted before. Knows when a stage begins and ends.
Must not know what is done about it; what an object is called when it is counted, `core.figures` says. Only the replica
that leads a fabric takes note of durations and ends, so that replicas can be summed up.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from jackfield.controllers.lead import Lead
from jackfield.controllers.runner import REWOUND
from jackfield.controllers.store import Store
from jackfield.core import figures
from jackfield.core.figures import Place, Sort
from jackfield.metrics import catalogue
from jackfield.metrics.catalogue import Counts
from jackfield.model.claim import ResourceClaim
from jackfield.model.composition import LAST_USED, ComposableResource
from jackfield.model.fabric import Order
from jackfield.model.names import LONG_AGO, DeviceID, FabricName, Key, OrderID, Seconds, Uid, seconds
from jackfield.model.plan import AnyAction, Finding, Waiting
from jackfield.model.pod import Pod
from jackfield.model.view import Delta, ObjectChanged
from jackfield.ports import Clock

ORDERED, ATTACHED, VISIBLE, READY, BOUND = "ordered", "attached", "visible", "ready", "bound"
STAGES: Final = (ORDERED, ATTACHED, VISIBLE, READY, BOUND)
UNSAID: Final = "Unsaid"
"""The reason of a claim about which nobody has said yet what it waits for."""
CLEARING: Final = "leftover.decide"
"""It says what keeps a claim from being cleared, not what its pod waits for."""
VERBS: Final = {Sort.ATTACHING: "attach", Sort.DETACHING: "detach"}


class _Order(msgspec.Struct):
    """A resource, from its beginning to its end; a time that was not seen to come is long ago."""

    place: Place
    device: DeviceID
    sort: Sort
    fresh: bool
    """Whether it was seen to begin: then all that happens to it is seen too."""
    asked: Seconds = LONG_AGO
    attached: Seconds = LONG_AGO
    online: Seconds = LONG_AGO
    leaving: Seconds = LONG_AGO
    came: bool = False
    """Whether it ever was online."""
    served: bool = False


class _Claim(msgspec.Struct):
    """A claim, from its allocation to its pod's binding."""

    place: Place
    name: str
    allocated: Seconds
    ready: Seconds = LONG_AGO
    warm: bool = True
    reason: str = UNSAID


class Census:
    """Hears of every change, and keeps what is under way; a `controllers.runner.Recorder` as well."""

    def __init__(self, store: Store, lead: Lead, clock: Clock, counts: Counts) -> None:
        self._store = store
        self._lead = lead
        self._clock = clock
        self._counts = counts
        self.live: Callable[[], bool] = lambda: True
        """Whether what is heard has just happened; else it is how things were found."""
        self.clear()

    def clear(self) -> None:
        """Know nothing, as if just started."""
        self._orders: dict[Uid, _Order] = {}
        self._sorts: Counter[tuple[Place, Sort]] = Counter()
        self._claims: dict[Uid, _Claim] = {}
        self._names: dict[str, Uid] = {}

    # --- what there is now

    def sorts(self) -> dict[tuple[Place, Sort], int]:
        """Return how many devices the books have, by fabric, model and where they are."""
        return {key: count for key, count in self._sorts.items() if count}

    def waiting(self) -> dict[tuple[FabricName, str], int]:
        """Return how many claims wait, by fabric and reason."""
        waits = [one for one in self._claims.values() if one.ready == LONG_AGO]
        return dict(Counter((one.place[0], one.reason) for one in waits))

    def oldest(self) -> dict[FabricName, Seconds]:
        """Return for how long the claim that has waited longest has, by fabric."""
        now, oldest = self._clock.now(), dict[FabricName, Seconds]()
        for one in self._claims.values():
            if one.ready == LONG_AGO:
                fabric = one.place[0]
                oldest[fabric] = max(oldest.get(fabric, Seconds(0.0)), Seconds(now - one.allocated))
        return oldest

    # --- hearing

    def hear(self, deltas: tuple[Delta, ...]) -> None:
        """Hear of changes, after the store has."""
        for delta in deltas:
            if not isinstance(delta, ObjectChanged):
                continue
            match delta.new if delta.new is not None else delta.old:
                case ComposableResource():
                    self._resource(delta)
                case ResourceClaim() as claim:
                    self._claim(claim, gone=delta.new is None)
                case Pod() as pod if self._claims and pod.spec.node_name:
                    self._bound(pod, before=delta.old)
                case _:
                    pass

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Hear what claims wait for; and that all is told anew, since time went back."""
        del at
        for one in waiting if by != CLEARING else ():
            found = self._claims.get(self._names.get(one.object, Uid("")))
            if found is not None:
                found.reason = one.reason
            elif one.reason == REWOUND:
                self.clear()

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Hear of an action; what comes of it is heard as a change."""

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Hear what is not as the books say; it is counted elsewhere."""

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Hear how long an action took to be begun; likewise."""

    def asked(self, order: Order) -> None:
        """Hear that a manager is asked to attach, again or for the first time."""
        found = self._orders.get(_uid(order.id))
        if found is None or not found.fresh or found.asked != LONG_AGO:
            return
        found.asked = self._clock.now()
        for claim in self._store.claims_holding(found.device):
            served = self._claims.get(claim.uid)
            if served is not None:
                served.warm = False
                self._took(found.place, ORDERED, served.allocated)

    # --- resources

    def _resource(self, delta: ObjectChanged) -> None:
        old, new = delta.old, delta.new
        if isinstance(old, ComposableResource) and (new is None or new.uid != old.uid):
            self._ended(old)
        if isinstance(new, ComposableResource):
            found = self._orders.get(new.uid) or self._begun(new)
            if found is not None:
                self._stepped(found, new, old if isinstance(old, ComposableResource) else new)

    def _begun(self, new: ComposableResource) -> _Order | None:
        place = figures.place(new.device, self._store.policy)
        if place is None or new.device is None:
            return None
        sort = figures.sort(new)
        order = _Order(place, new.device, sort, fresh=self.live() and sort is Sort.ATTACHING)
        order.came = sort is not Sort.ATTACHING
        self._orders[new.uid] = order
        self._sorts[place, sort] += 1
        return order

    def _stepped(self, order: _Order, new: ComposableResource, old: ComposableResource) -> None:
        used = new.record is not None or new.holder or LAST_USED in new.metadata.annotations
        order.served = order.served or bool(used) or bool(new.foreign)
        now, before, after = self._clock.now(), order.sort, figures.sort(new)
        if new.status.cdi_device_id and order.attached == LONG_AGO and order.asked != LONG_AGO:
            order.attached = now
            self._took(order.place, ATTACHED, order.asked)
        if before is after:
            return
        order.sort = after
        self._sorts[order.place, before] -= 1
        self._sorts[order.place, after] += 1
        if after is Sort.ONLINE:
            order.online, order.came = now, True
            self._took(order.place, VISIBLE, order.attached)
            self._count(catalogue.ATTACHES, order.place)
        elif after is Sort.DETACHING:
            order.leaving = now
            if before is Sort.ATTACHING:
                self._count(catalogue.FAILURES, order.place, figures.failure(self._store, old))

    def _ended(self, old: ComposableResource) -> None:
        order = self._orders.pop(old.uid, None)
        if order is None:
            return
        self._sorts[order.place, order.sort] -= 1
        if order.leaving != LONG_AGO and self._lead.leads(order.place[0]):
            span = self._clock.now() - order.leaving
            self._counts.time(catalogue.DETACHING, span, *order.place)
        if order.came:
            self._count(catalogue.DETACHES, order.place)
        if order.came and not order.served:
            self._count(catalogue.UNUSED, order.place)

    # --- claims

    def _claim(self, claim: ResourceClaim, *, gone: bool) -> None:
        devices = figures.devices(claim)
        place = figures.place(devices[0], self._store.policy) if devices else None
        known = self._claims.get(claim.uid)
        if gone or place is None:
            self._forget(claim)
            return
        ready = figures.ready(claim)
        if known is None and not ready:
            known = _Claim(place, f"claim/{claim.key}", self._allocated(claim))
            self._claims[claim.uid], self._names[known.name] = known, claim.uid
        elif known is not None and ready and known.ready == LONG_AGO:
            known.ready = self._clock.now()
            came = (self._orders.get(one.uid) for one in self._resources(devices))
            since = max((one.online for one in came if one is not None), default=LONG_AGO)
            self._took(place, READY, max(known.allocated, since))

    def _allocated(self, claim: ResourceClaim) -> Seconds:
        """When it was: just now, by our own clock, which is finer than what stands on it; or before we looked."""
        now = self._clock.now()
        if self.live() or claim.status.allocation is None:
            return now
        written = seconds(claim.status.allocation.allocation_timestamp)
        return written if LONG_AGO < written < now else now

    def _resources(self, devices: tuple[DeviceID, ...]) -> tuple[ComposableResource, ...]:
        found = (self._store.resource_of(one) for one in devices)
        return tuple(one for one in found if one is not None)

    def _forget(self, claim: ResourceClaim) -> None:
        known = self._claims.pop(claim.uid, None)
        if known is not None and self._names.get(known.name) == claim.uid:
            del self._names[known.name]

    def _bound(self, pod: Pod, before: object) -> None:
        if isinstance(before, Pod) and before.spec.node_name:
            return
        for name in pod.claim_names:
            claim = self._store.claim(Key(pod.metadata.namespace, name))
            known = self._claims.get(claim.uid) if claim is not None else None
            if claim is None or known is None or known.ready == LONG_AGO:
                continue
            self._took(known.place, BOUND, known.ready)
            if self._lead.leads(known.place[0]):
                warm = "true" if known.warm else "false"
                self._counts.time(catalogue.CLAIM, self._clock.now() - known.allocated, *known.place, warm)
            self._forget(claim)

    # --- taking note

    def _took(self, place: Place, stage: str, since: Seconds) -> None:
        if since != LONG_AGO and self._lead.leads(place[0]):
            self._counts.time(catalogue.STAGE, self._clock.now() - since, *place, stage)

    def _count(self, family: catalogue.Family, place: Place, *labels: str) -> None:
        if self._lead.leads(place[0]):
            self._counts.count(family, *place, *labels)


def _uid(order: OrderID) -> Uid:
    """An order to attach is known by its resource's uid."""
    return Uid(order)
