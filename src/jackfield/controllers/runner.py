"""The loop: hear, wake, decide, act, report. One round at a time per key, keys side by side.

Knows ports, store and queues. Must not know the domain: which keys a change touches, and what to do about them, are
the controllers' pure functions.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from typing import Protocol

import msgspec

from jackfield.controllers.act import act
from jackfield.controllers.dirty import Dirty
from jackfield.controllers.ending import is_ending
from jackfield.controllers.events import Teller
from jackfield.controllers.findings import Findings
from jackfield.controllers.lead import Alone, Lead
from jackfield.controllers.patience import Patience
from jackfield.controllers.store import Store
from jackfield.controllers.writing import Hands, sense
from jackfield.core.lead import NO_FABRIC
from jackfield.model.meta import Object
from jackfield.model.names import FabricName, NodeName, Seconds
from jackfield.model.plan import AnyAction, Finding, Plan, Waiting
from jackfield.model.policy import Policy
from jackfield.model.view import Delta, InventoryChanged, ObjectChanged, View
from jackfield.ports import Conflict, Gone, PortError, Refused, Retry, Rewound, Selection, Synced, World

ROUNDS_MAX = 64
"""How many keys of one controller are worked on side by side."""
TURN_MAX = Seconds(0.002)
"""After so long a controller that has more to decide lets others go on: what was decided is to be sent."""
BACKOFF_FIRST = Seconds(0.05)
BACKOFF_MAX = Seconds(30.0)
ALONE = Alone()
OBSERVED = "observed only: the policy forbids to write"
REWOUND = "Rewound"
"""The reason of what is waited for when the API server has gone back in time."""


class Controller(msgspec.Struct, frozen=True):
    """A decision, and which changes make it necessary."""

    name: str
    """The module in `core` that decides; the story says `<name>.decide`."""
    decide: Callable[..., Plan]
    wakes: Callable[[View, Policy, Delta], tuple[Hashable, ...]]
    fabric: Callable[..., FabricName]
    """The fabric that a key belongs to, and with it who decides."""


class Decided(msgspec.Struct, frozen=True):
    """A plan, and what it is carried out with: hands that know how much was known when it was made."""

    plan: Plan
    hands: Hands


class Recorder(Protocol):
    """Hears all that is decided and done; logs, Events, metrics and stories are renderings of it."""

    def did(self, at: Seconds, by: str, action: AnyAction, error: str) -> None:
        """Hear of an action, and of what went wrong with it (empty: nothing)."""

    def waits(self, at: Seconds, by: str, waiting: tuple[Waiting, ...]) -> None:
        """Hear what is waited for."""

    def found(self, at: Seconds, by: str, finding: Finding, *, over: bool) -> None:
        """Hear that something is not as the books say, or that it is over."""

    def hop(self, action: AnyAction, after: Seconds) -> None:
        """Hear that an action is about to be done, so long after the news that brought it about."""


class Runner:
    """Runs controllers over one store."""

    def __init__(
        self,
        world: World,
        store: Store,
        controllers: tuple[Controller, ...],
        recorder: Recorder,
        lead: Lead = ALONE,
    ) -> None:
        self.store = store
        store.clock = world.clock.now
        self._events = Teller(world.cluster, world.clock, self._unsaid)
        self._lead = lead
        self.hands = Hands(world, store, self.hear, self._refresh, self._events.tell, lead)
        self._patience = Patience(store, self._events.tell)
        self._unexplained: Dirty = Dirty(world.clock)
        self._findings = Findings(store, world.clock, self._events.tell, recorder.found)
        self.rounds = 0
        self._world = world
        self._controllers = controllers
        self._recorder = recorder
        self._dirty = {one.name: Dirty(world.clock, ROUNDS_MAX) for one in controllers}
        self._failures: dict[tuple[str, Hashable], int] = {}
        self._refreshing = {fabric: asyncio.Event() for fabric in world.fabrics}
        self._unsynced: dict[type[Object], None] = {}
        self.synced = asyncio.Event()
        """All kinds have been told once: from here on decisions are made."""
        self.rewound = asyncio.Event()
        """The API went back in time, and everything is told anew; whoever has done what that calls for clears it."""
        self.listeners: list[Callable[[tuple[Delta, ...]], None]] = []
        """Hear of every change, after the store and the controllers."""
        self.resyncs = 0
        """How often the safety net looked at everything again."""

    @property
    def backlog(self) -> int:
        """How many keys are to be looked at now, or are being."""
        return sum(len(one) for one in self._dirty.values())

    async def run(self, kinds: Mapping[type[Object], Selection]) -> None:
        """Run until cancelled: watch these kinds, every fabric and every host."""
        while True:
            rewound = ""
            try:
                # A task of its own: a group that ends with errors does not tell that it was cancelled as well.
                await asyncio.get_running_loop().create_task(self._live(kinds))
            except* Rewound as errors:
                rewound = str(errors.exceptions[0])
            if is_ending():
                raise asyncio.CancelledError
            if not rewound:
                return
            # Versions have lost their meaning: nothing that is remembered can be compared with what is told now.
            again = Waiting("kind/all", REWOUND, f"everything to be told anew; {rewound}")
            self._recorder.waits(self._world.clock.now(), "watch", (again,))
            self._lead.doubt()
            self.store.clear()
            self._dirty = {one.name: Dirty(self._world.clock, ROUNDS_MAX) for one in self._controllers}
            self._unexplained = Dirty(self._world.clock)
            self._findings.clear()
            self._failures.clear()
            self.hands.unclaimed.clear()
            self.rewound.set()

    async def _live(self, kinds: Mapping[type[Object], Selection]) -> None:
        """Run until cancelled, or until the API goes back in time."""
        self._unsynced = dict.fromkeys(kinds)
        self.synced.clear()
        async with asyncio.TaskGroup() as group:
            for kind, selection in kinds.items():
                group.create_task(self._watch(kind, selection), name=f"watch {kind.__name__}")
            for fabric in self._world.fabrics:
                group.create_task(self._look(fabric), name=f"inventory {fabric}")
            for node in self._world.hosts:
                sense(self.hands, node)
            await self.synced.wait()
            for controller in self._controllers:
                group.create_task(self._work(controller, group), name=controller.name)
            group.create_task(self._repair(), name="repair")
            group.create_task(self._events.run(), name="events")
            group.create_task(self._explain(), name="explain")
            group.create_task(self._findings.run(), name="findings")

    # --- how it is

    @property
    def unsynced(self) -> tuple[str, ...]:
        """The kinds that the API server has not told of yet."""
        return tuple(kind.__name__ for kind in self._unsynced)

    def depths(self) -> dict[str, int]:
        """Return how many keys wait or are worked on, by controller."""
        return {name: len(dirty) for name, dirty in self._dirty.items()}

    # --- hearing

    def hear(self, deltas: tuple[Delta, ...]) -> None:
        """Mark every key that a change is about."""
        policy = self.store.policy
        for delta in deltas:
            for controller in self._controllers:
                dirty = self._dirty[controller.name]
                for key in controller.wakes(self.store, policy, delta):
                    if self._concerns_us(controller, key):
                        dirty.mark(key)
        for listener in self.listeners if deltas else ():
            listener(deltas)

    def _concerns_us(self, controller: Controller, key: Hashable) -> bool:
        """Whether a key may be ours when its turn comes.

        Whose it is nobody knows until all has been told; and what belongs to no fabric may belong to one by what is
        heard next, such as the claim for which a request was written.
        """
        fabric = controller.fabric(self.store, self.store.policy, key)
        return fabric == NO_FABRIC or not self.synced.is_set() or self._lead.leads(fabric)

    def sense(self, node: NodeName) -> None:
        """Look at what a node sees; called when the node says that it changed."""
        sense(self.hands, node)

    def tell_no_events(self) -> None:
        """Write no Events, as one must not who may write none on what it decides about; its conditions say the same."""
        self._events.mute = True

    def _unsaid(self, words: str) -> None:
        """Hear that an Event may not be written: without this nobody would miss it."""
        what = f"the API server to take Events; it says: {words}"
        waiting = Waiting("kind/Event", "Unsaid", what)
        self._recorder.waits(self._world.clock.now(), "events", (waiting,))

    async def _watch(self, kind: type[Object], selection: Selection) -> None:
        """Hear of a kind; a server that does not show it yet, or not to us, is asked again."""
        while True:
            try:
                await self._hear_of(kind, selection)
            except Rewound:
                raise
            except PortError as error:
                what = f"the API server to show every {kind.__name__}; it says: {error}"
                unseen = Waiting(f"kind/{kind.__name__}", "Unseen", what)
                self._recorder.waits(self._world.clock.now(), "watch", (unseen,))
                await self._world.clock.sleep(self.store.policy.poll_seconds)
            else:
                return

    async def _hear_of(self, kind: type[Object], selection: Selection) -> None:
        async for change in self._world.cluster.watch(kind, selection):
            self.hear(self.store.observe(change))
            if isinstance(change, Synced) and kind in self._unsynced:
                del self._unsynced[kind]
                if not self._unsynced:
                    self.synced.set()

    async def _look(self, fabric: FabricName) -> None:
        refresh = self._refreshing[fabric]
        while True:
            refresh.clear()
            asked = self._world.clock.now()
            self.store.ask(fabric, asked)
            try:
                shown = await self._world.fabrics[fabric].inventory()
                current, now = not refresh.is_set() and shown.begun >= asked, self._world.clock.now()
                self.hear(self.store.see(shown, current=current, at=now))
            except PortError as error:
                what = f"the manager of fabric {fabric} to answer; it says: {error}"
                silent = Waiting(f"fabric/{fabric}", "Silent", what)
                self._recorder.waits(self._world.clock.now(), "inventory", (silent,))
                pause = self.store.policy.poll_seconds
            else:
                pause = self._inventory_pause(fabric)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await refresh.wait()

    def _inventory_pause(self, fabric: FabricName) -> Seconds:
        """A manager without order ids is asked what it has instead of what became of an order, by who gave it."""
        inventory = self.store.inventory(fabric)
        policy = self.store.policy
        blind = inventory is not None and not inventory.traits.knows_orders
        asks = blind and self._lead.leads(fabric) and self.store.under_way(fabric)
        return policy.poll_seconds if asks else policy.inventory_seconds

    def _refresh(self, fabric: FabricName) -> None:
        self.store.doubt(fabric)
        self._refreshing[fabric].set()

    # --- working

    async def _work(self, controller: Controller, group: asyncio.TaskGroup) -> None:
        dirty = self._dirty[controller.name]
        clock, spent = self._world.clock, 0.0
        while True:
            if spent > TURN_MAX:
                await clock.sleep(Seconds(0.0))
                spent = 0.0
            key = await dirty.get()
            began = clock.now()
            plan = self._decide(controller, key)
            self._explain_later(controller, key, plan)
            spent += clock.now() - began
            if not plan.actions:  # most rounds end here: no task is needed for nothing
                self._failures.pop((controller.name, key), None)
                dirty.done(key)
                dirty.later(key, plan.again_at)
                continue
            decided = Decided(plan, msgspec.structs.replace(self.hands, decided=self.store.news))
            group.create_task(self._round(controller, key, decided))

    def _decide(self, controller: Controller, key: Hashable) -> Plan:
        policy = self.store.policy
        if not self._lead.leads(controller.fabric(self.store, policy, key)):
            return Plan()  # another replica's; whoever takes over looks at everything
        self.rounds += 1
        now = self._world.clock.now()
        plan = controller.decide(self.store, key, policy, now)
        by = f"{controller.name}.decide"
        self._recorder.waits(now, by, plan.waiting)
        self._findings.take(by, key, plan.findings)
        if not policy.observe_only:
            return plan
        for action in plan.actions:
            self._recorder.did(now, by, action, OBSERVED)
        return msgspec.structs.replace(plan, actions=())

    async def _round(self, controller: Controller, key: Hashable, decided: Decided) -> None:
        dirty, plan = self._dirty[controller.name], decided.plan
        again_at = plan.again_at
        try:
            self._recorder.hop(plan.actions[0], Seconds(self._world.clock.now() - dirty.marked(key)))
            for action in plan.actions:
                await self._do(controller, action, decided.hands)
            self._failures.pop((controller.name, key), None)
        except PortError as error:
            again_at = min(again_at, self._again(controller, key, error))
        finally:
            dirty.done(key)
        dirty.later(key, again_at)

    async def _do(self, controller: Controller, action: AnyAction, hands: Hands) -> None:
        by = f"{controller.name}.decide"
        try:
            await act(action, hands)
        except PortError as error:
            self._recorder.did(self._world.clock.now(), by, action, f"{type(error).__name__}: {error}")
            raise
        self._recorder.did(self._world.clock.now(), by, action, "")

    def _again(self, controller: Controller, key: Hashable, error: PortError) -> Seconds:
        """Look again: soon after a conflict, later the more often it goes wrong."""
        failures = self._failures.get((controller.name, key), 0)
        self._failures[controller.name, key] = failures + 1
        pause = min(BACKOFF_MAX, BACKOFF_FIRST * 2.0 ** min(failures, 16))
        match error:
            case Retry(after=after):
                pause = max(pause, after)
            case Refused():
                pause = BACKOFF_MAX
            case Conflict() | Gone():
                pass
            case _:
                raise error
        return Seconds(self._world.clock.now() + pause)

    # --- explaining

    def _explain_later(self, controller: Controller, key: Hashable, plan: Plan) -> None:
        if plan.waiting:
            due = self._patience.take(plan.waiting, self._world.clock.now())
            self._unexplained.later((self._controllers.index(controller), key), due)

    async def _explain(self) -> None:
        """Tell what is still waited for when patience ends: decide once more, and do nothing about it."""
        while True:
            place = await self._unexplained.get()
            assert isinstance(place, tuple)
            index, key = place
            controller, now = self._controllers[index], self._world.clock.now()
            plan = controller.decide(self.store, key, self.store.policy, now)
            self._unexplained.done(place)
            self._explain_later(controller, key, plan)

    # --- repairing

    def look_again(self) -> None:
        """Look at everything, as one must who has come to lead: another has led until now."""
        for fabric in self._world.fabrics:
            self._refresh(fabric)
        self.hear(self.everything())

    def follow(self, policy: Policy) -> None:
        """Decide by another policy from now on, and look at everything: what was right before need not be any more."""
        self.store.follow(policy)
        self.look_again()

    async def _repair(self) -> None:
        """A safety net: look at everything again now and then; what it brings about was a lost event."""
        while True:
            await self._world.clock.sleep(self.store.policy.resync_seconds)
            self.resyncs += 1
            self.look_again()

    def overlooked(self) -> Iterator[tuple[str, Hashable, Plan]]:
        """Yield what there is to do that nobody is going to look at: by which controller, for which key, and what.

        A change that should have woken a key and did not. What was done and not heard of yet is among it.
        """
        policy, now = self.store.policy, self._world.clock.now()
        if policy.observe_only:
            return
        keys = {
            (controller.name, key): controller
            for delta in self.everything()
            for controller in self._controllers
            for key in controller.wakes(self.store, policy, delta)
        }
        for (name, key), controller in keys.items():
            if key in self._dirty[name] or not self._lead.leads(controller.fabric(self.store, policy, key)):
                continue
            plan = controller.decide(self.store, key, policy, now)
            if plan.actions:
                yield name, key, plan

    def everything(self) -> tuple[Delta, ...]:
        """Return a change about every object and fabric, as if all had just been heard of."""
        objects = (ObjectChanged(None, one) for kind in self.store.kinds() for one in self.store.all(kind))
        inventories = (self.store.inventory(fabric) for fabric in self.store.fabrics())
        fabrics = (InventoryChanged(one.fabric, one.nodes, ()) for one in inventories if one is not None)
        return (*objects, *fabrics)
