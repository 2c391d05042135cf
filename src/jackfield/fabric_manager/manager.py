"""The manager: orders become work, work takes time, and everything is written down before it is told.

This is what faces speak to. Knows in which order things happen: the intent is on disk before a back end hears of it,
the outcome before anybody is answered; what a restart finds unfinished is carried on. Must not know how anybody asks.
"""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

import msgspec

from jackfield.fabric_manager import orders
from jackfield.fabric_manager.backends import Backend, BackendError
from jackfield.fabric_manager.books import Books, seeded
from jackfield.fabric_manager.faults import (
    CHOICE,
    FAULTS_MAX,
    HOLDING,
    STANDING,
    WORK,
    Call,
    Fault,
    Faults,
    Kind,
    Verb,
    wrong,
)
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.orders import Entry, State
from jackfield.fabric_manager.store import Event, Store
from jackfield.model.fabric import Done, Failed, Inventory, Order, Progress, Working
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock, Gone, Refused

FAULTS: Final = "faults"
"""Under this name faults are noted in the store."""
BEFORE: Final = "before"
"""The owner of what was attached before any order."""


class Manager:
    """The manager of one fabric, at work while the context is open."""

    def __init__(
        self, hardware: Hardware, store: Store, backend: Backend, clock: Clock, generator: random.Random
    ) -> None:
        self.hardware = hardware
        self.store = store
        self.clock = clock
        self._backend = backend
        self._generator = generator
        known = {key: msgspec.json.decode(text, type=Fault) for key, text in store.notes(FAULTS).items()}
        self.faults = Faults(known, self._keep, generator)
        self.books = Books(hardware, store, self.faults)
        self._queue: deque[OrderID] = deque()
        self._running: dict[OrderID, asyncio.Task[None]] = {}
        self._waiting: dict[OrderID, asyncio.Event] = {}
        self._any_news = asyncio.Event()
        self.ended: Callable[[Verb, str, Seconds], None] = lambda *_: None
        """Hears that work came to an end: what it was, why it failed if it did, and how long it took."""
        self.mistake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with a mistake of ours in the work; whoever runs the manager must end then."""

    async def __aenter__(self) -> Self:
        taken_over = self.store.notes(BEFORE)
        for entry in seeded(self.hardware, BEFORE):
            if entry.device in taken_over:
                continue
            if self.store.entry(entry.order.id) is None and self.books.holder(entry.device) is None:
                self.books.put(entry, self.clock.now())
            self.store.note(BEFORE, entry.device, b"")  # remembered for longer than its order
        await self.store.committed()
        self._queue.extend(entry.order.id for entry in self.books.unfinished())
        self._pump()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._backend.close()
        self.mistake.cancel()

    @property
    def name(self) -> FabricName:
        """The fabric's name."""
        return self.hardware.name

    # --- what faces ask

    async def inventory(self, owner: str) -> Inventory:
        """Return what there is, as this owner sees it; the same object while nothing changes and no fault ages it."""
        shown = self.books.shown(owner, self.clock.now())
        await self.store.committed()
        return shown

    async def attach(self, order: Order, owner: str) -> Progress:
        """Attach, or say how far it is. The same id is one order, for ever; Refused if it was placed for another."""
        known = self._known(order, owner)
        if known is not None and (difference := orders.another(known, order)):
            raise Refused(difference)
        answer = orders.attach_answer(known or self._begin(order, owner))
        await self.store.committed()
        return answer

    async def detach(self, order: Order, owner: str) -> Progress:
        """Take back what this order attached and close it for good; Done also when nothing ever was attached."""
        known = self._known(order, owner)
        if known is None and order.foreign:
            known = self._anothers(order, owner)
        entry, answer = (
            orders.detach_asked(known) if known else (orders.never(order, owner), Done(PhysicalID("")))
        )
        if entry != known:
            self._put(entry)
            if known is not None and entry.state is State.DETACHING and known.state is not State.DETACHING:
                self._enqueue(entry.order.id)
        await self.store.committed()
        return answer

    async def settle(self, ask: Callable[[], Awaitable[Progress]], order: OrderID, span: Seconds) -> Progress:
        """Ask again at every news of the order until it is done or has failed, for so long at most."""
        progress = await ask()
        try:
            async with asyncio.timeout(span):
                while isinstance(progress, Working):
                    entry = self.books.find(order)
                    # It may have ended while the answer was written down: then there is nothing to wait for.
                    if entry is None or entry.unfinished:
                        await self._waiting.setdefault(order, asyncio.Event()).wait()
                    progress = await ask()
        except TimeoutError:
            pass
        return progress

    async def events(self, after: int, span: Seconds) -> tuple[Event, ...]:
        """Return what happened after that number; waits so long for something to happen."""
        found = self.store.events(after)
        try:
            async with asyncio.timeout(span):
                while not found:
                    await self._any_news.wait()
                    found = self.store.events(after)
        except TimeoutError:
            pass
        await self.store.committed()
        return found

    # --- faults

    async def set_fault(self, fault: Fault) -> Fault:
        """Set a fault, in place of one of the same name; return it with its name. Raises Refused."""
        reason = self.objection(fault)
        if reason or (len(self.faults) >= FAULTS_MAX and not self.faults.get(fault.id)):
            raise Refused(reason or f"there are {FAULTS_MAX} faults already")
        self._clear_fault(fault.id)
        named = self._set_fault(fault)
        await self.store.committed()
        return named

    def _set_fault(self, fault: Fault) -> Fault:
        named = self.faults.set(msgspec.structs.replace(fault, since=self.clock.now()))
        holder = self.books.holder(fault.device)
        if fault.kind is Kind.VANISH and holder is not None:
            self._put(orders.vanished(holder))
        self._stood(named, "vanished" if fault.kind is Kind.VANISH else str(fault.kind))
        return named

    async def clear_fault(self, name: str) -> Fault:
        """Clear a fault; what hung goes on, what vanished is back. Raises Gone."""
        cleared = self._clear_fault(name)
        if cleared is None:
            raise Gone(f"there is no fault {name!r}")
        await self.store.committed()
        return cleared

    def _clear_fault(self, name: str) -> Fault | None:
        cleared = self.faults.clear(name)
        if cleared is not None:
            self._stood(cleared, "back")
            self._announce()
        return cleared

    def _stood(self, fault: Fault, what: str) -> None:
        if fault.kind in STANDING:
            self.books.changed()
            if fault.device or fault.node:
                self.store.tell(Event(self.clock.now(), what, fault.device, fault.node, reason=fault.reason))
            self._announce()

    def objection(self, fault: Fault) -> str:
        """Return why a fault cannot be set; empty if it can."""
        if fault.device and fault.device not in self.hardware.devices:
            return f"there is no device {fault.device!r}"
        if fault.node and fault.node not in self.hardware.machines:
            return f"there is no machine {fault.node!r}"
        return wrong(fault)

    def _keep(self, name: str, fault: Fault | None) -> None:
        self.store.note(FAULTS, name, msgspec.json.encode(fault) if fault is not None else None)

    def stopped(self, call: Call) -> Fault | None:
        """Return the fault because of which this call begins nothing; what is known may be asked about."""
        fault = self.faults.suspended
        if fault is None or call.verb not in {"attach", "detach"}:
            return None
        return None if call.order and self.books.find(call.order) is not None else fault

    # --- from beginning to end

    def _known(self, order: Order, owner: str) -> Entry | None:
        if order.fabric != self.name:
            raise Refused(f"order {order.id} is for fabric {order.fabric}, this is {self.name}")
        known = self.books.find(order.id)
        if known is not None and known.owner != owner:
            raise Refused(f"order {order.id} was placed by somebody else")
        return known

    def _anothers(self, order: Order, owner: str) -> Entry | None:
        """Return another owner's order that holds the device there: whoever asks says that it is to go all the same."""
        holder = self.books.holder(order.device)
        if holder is None or holder.order.node != order.node:
            return None
        if holder.owner == owner:
            raise Refused(f"device {order.device} was attached by another order of yours, {holder.order.id}")
        return holder

    def _begin(self, order: Order, owner: str) -> Entry:
        call = Call(owner, "attach", order.device, order.node, order.id)
        fault = self.faults.met(call, CHOICE)
        kind = fault.kind if fault is not None else None
        device = self.books.over_quota(order, owner) or self.books.choice(order, kind)
        if isinstance(device, Failed):
            entry = orders.impossible(order, owner, device.reason)
            self._put(entry)
            return entry
        entry = orders.begun(order, owner, device.id, device.serial)
        if kind is Kind.ASTRAY:
            entry = orders.misled(entry, self.books.elsewhere(device, order.node))
        self._put(entry)
        self._enqueue(order.id)
        return self.books.find(order.id) or entry

    def _put(self, entry: Entry) -> None:
        self.books.put(entry, self.clock.now())
        news = self._waiting.pop(entry.order.id, None)
        if news is not None:
            news.set()
        self._announce()

    def _announce(self) -> None:
        news, self._any_news = self._any_news, asyncio.Event()
        news.set()

    # --- work

    def _enqueue(self, order: OrderID) -> None:
        self._queue.append(order)
        self._pump()

    def _pump(self) -> None:
        while self._queue and len(self._running) < self.hardware.lab.limits.jobs:
            order = self._queue.popleft()
            entry = self.books.find(order)
            if entry is not None and entry.unfinished and order not in self._running:
                begun = orders.started(entry)
                if begun != entry:
                    self._put(begun)
                task = asyncio.get_running_loop().create_task(self._work(order))
                self._running[order] = task
                task.add_done_callback(partial(self._ended, order))

    def _ended(self, order: OrderID, task: asyncio.Task[None]) -> None:
        del self._running[order]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            if not self.mistake.done():
                self.mistake.set_exception(error)
            return
        entry = self.books.find(order)
        if entry is not None and entry.state is State.DETACHING:
            self._queue.append(order)  # the attach was turned round under way
        self._pump()

    async def _work(self, order: OrderID) -> None:
        """Do one thing for an order, attach or detach, and write down what came of it."""
        entry = self._now(order)
        verb: Verb = "detach" if entry.state is State.DETACHING else "attach"
        await self.store.committed()  # what is meant stands on disk before anything is moved
        began = self.clock.now()
        times = self.hardware.lab.times
        drawn = (times.detach if verb == "detach" else times.attach).draw(self._generator)
        if drawn:
            await self.clock.sleep(drawn)
        reason = await self._outcome(verb, entry)
        self.ended(verb, reason, Seconds(self.clock.now() - began))
        before = self._now(order)
        after = (orders.detach_ended if verb == "detach" else orders.attach_ended)(before, reason)
        if after == before:
            return  # its device vanished meanwhile
        if after.reason:
            self.books.tell("failed", after, self.clock.now())
        self._put(after)
        await self.store.committed()

    async def _outcome(self, verb: Verb, entry: Entry) -> str:
        """Return why the work failed; empty if it did not."""
        fault = await self._befallen(Call(entry.owner, verb, entry.device, entry.node, entry.order.id))
        if fault is not None and fault.kind is Kind.FAIL:
            return fault.reason or f"{verb} of {entry.device} failed, as it was told to"
        if not self._now(entry.order.id).holds:
            return ""  # its device vanished meanwhile, and may be another's by now
        if fault is not None and fault.kind is Kind.PRETEND:
            return ""
        device, node = self.hardware.devices[entry.device], entry.node
        try:
            await (self._backend.detach if verb == "detach" else self._backend.attach)(device, node)
        except BackendError as error:
            if verb == "attach":
                await self._undo(entry)
            return str(error) or f"{verb} of {entry.device} failed"
        return ""

    async def _befallen(self, call: Call) -> Fault | None:
        """Return what befalls the work, once nothing keeps it any more: neither a fault nor a machine cut off."""
        fault = self.faults.keeper(call.order) or self.faults.met(call, WORK)
        if fault is not None and fault.kind is Kind.HANG and fault.seconds:
            await self.clock.sleep(fault.seconds)
        elif fault is not None and fault.kind in HOLDING:
            self.faults.hold(fault.id, call.order)
            while self.faults.keeper(call.order) is not None:
                await self._any_news.wait()
        while self.faults.cut(call.node):
            await self._any_news.wait()
        return fault

    async def _undo(self, entry: Entry) -> None:
        """Leave nothing of a failed attach behind; a device of which that is not certain is not given out again."""
        try:
            await self._backend.detach(self.hardware.devices[entry.device], entry.node)
        except BackendError as error:
            why = f"it may still be on {entry.node}: {error}"
            self._set_fault(Fault(Kind.ILL, device=entry.device, reason=why))

    def _now(self, order: OrderID) -> Entry:
        entry = self.books.find(order)
        if entry is None:
            raise KeyError(order)
        return entry

    def order(self, name: OrderID, device: PhysicalID, node: NodeName) -> Order:
        """Return an order for a device by its name, for faces that are told nothing else. Raises Gone."""
        known = self.hardware.devices.get(device)
        if known is None:
            raise Gone(f"fabric {self.name} has no device {device}")
        return Order(name, self.name, node, ModelName(known.batch.model), device, known.batch.type)
