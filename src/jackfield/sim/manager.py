"""A simulated fabric manager: orders become jobs, jobs take time, and some of them fail.

Knows order ids and how a manager without them behaves: there every attach is another device. Must not know who
calls, or what happens to calls and answers on their way.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import StrEnum

import msgspec

from jackfield.model.fabric import Done, Failed, Inventory, Order, Progress, Working
from jackfield.model.names import (
    LONG_AGO,
    NEVER,
    FabricName,
    ModelName,
    NodeName,
    OrderID,
    PhysicalID,
    Seconds,
)
from jackfield.ports import Clock, Refused, Retry
from jackfield.sim.chance import Chance
from jackfield.sim.loop import world
from jackfield.sim.pool import Pool
from jackfield.sim.spec import FabricSpec


class State(StrEnum):
    """How far an attachment has come; it never goes back, but for a detach that failed."""

    QUEUED = "queued"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    DETACHING = "detaching"
    ENDED = "ended"


class Attachment:
    """What one attach became."""

    def __init__(self, order: Order, device: PhysicalID, state: State, reason: str = "") -> None:
        self.order = order
        self.device = device
        self.state = state
        self.reason = reason
        """Why its last job failed; empty if it did not."""
        self.closed = False
        """Whether a detach was asked for; there is no way back from that."""


class Job(msgspec.Struct, frozen=True):
    """Work on one attachment: towards its end or its beginning."""

    attachment: Attachment
    detach: bool
    deadline: Seconds
    """After this it has no effect any more."""


class Counts(msgspec.Struct):
    """What a manager has done so far."""

    attaches: int = 0
    detaches: int = 0
    attaches_failed: int = 0
    detaches_failed: int = 0


class Manager:
    """The manager of one fabric. Calls return at once; work goes on by the clock."""

    def __init__(self, spec: FabricSpec, clock: Clock, chance: Chance) -> None:
        self.pool = Pool(spec, clock)
        self.refusals = spec.refusals
        """May be exchanged while it runs."""
        self.asked: list[Callable[[str, str, Order], None]] = []
        """Hear who sends what, the moment it is sent: the process, `attach` or `detach`, the order."""
        self.calls_under_way = 0
        """Calls that were sent, got no answer, and have not arrived yet."""
        self.stalled_until = LONG_AGO
        """Until then orders are taken, and nothing is done about them."""
        self.outdated_until = LONG_AGO
        """Until then the inventory of an earlier moment is shown."""
        self.forgetful_until = LONG_AGO
        """Until then some devices are not shown."""
        self._old: Inventory | None = None
        self.counts = Counts()
        self.clock = clock
        self._spec = spec
        self._chance = chance
        self._queue: deque[Job] = deque()
        self._running: dict[Job, asyncio.Task[None]] = {}
        self._orders: dict[OrderID, Attachment] = {}
        self._by_device: dict[PhysicalID, Attachment] = {}
        self._failures: dict[tuple[NodeName, ModelName, PhysicalID], str] = {}
        self._ended = asyncio.Event()

    @property
    def name(self) -> FabricName:
        """The fabric's name."""
        return self._spec.name

    @property
    def call_timeout(self) -> Seconds:
        """How long after it was sent a call may still take effect, where the manager knows no orders."""
        return self._spec.traits.call_timeout

    @property
    def knows_orders(self) -> bool:
        """Whether it executes an order id once."""
        return self._spec.traits.knows_orders

    @property
    def busy(self) -> bool:
        """Whether any order is under way."""
        return bool(self._queue or self._running)

    @property
    def taking_back(self) -> bool:
        """Whether it is about to take a device off its node, or may yet hear so, whatever anybody says by now."""
        under_way = (State.ATTACHING, State.DETACHING)
        leaving = any(one.closed and one.state in under_way for one in self._by_device.values())
        return leaving or self.calls_under_way > 0

    async def news(self) -> None:
        """Return when the next job has ended."""
        await self._ended.wait()

    def inventory(self) -> Inventory:
        """Return what there is, or was; the same object while nothing changes."""
        if self._old is not None and self.clock.now() < self.outdated_until:
            return self._old
        return self.pool.inventory()

    def outdate(self, until: Seconds) -> None:
        """Go on showing what there is now until then."""
        self._old, self.outdated_until = self.inventory(), until

    def attach(self, order: Order, sent: Seconds, *, wrong: bool = False) -> Progress:
        """Attach for this order, which left its sender at `sent`; `wrong` gives it a device it did not mean."""
        if order.fabric != self.name:
            raise Refused(f"order {order.id} is for fabric {order.fabric}, this is {self.name}")
        if self._spec.traits.knows_orders:
            return self._attach_known(order, wrong=wrong)
        return self._attach_blindly(order, Seconds(sent + self.call_timeout), wrong=wrong)

    def detach(self, order: Order, sent: Seconds) -> Progress:
        """Take back what the order attached: by its id, or, where ids are unknown, the device it names."""
        if self._spec.traits.knows_orders:
            return self._detach_known(order)
        return self._detach_blindly(order, Seconds(sent + self.call_timeout))

    def lose(self, device: PhysicalID) -> None:
        """Let a device vanish, wherever it is; its order has failed, or has nothing left to detach."""
        there = self._by_device.pop(device, None)
        if there is not None:
            there.state, there.reason = State.ENDED, f"device {device} was lost"
        self.pool.lose(device)

    def move(self, device: PhysicalID, node: NodeName) -> None:
        """Let somebody attach a device by hand, or pull it where no node is named, behind everybody's back."""
        there = self._by_device.pop(device, None)
        if there is not None:
            there.state, there.reason = State.ENDED, f"device {device} was pulled by hand"
        self.pool.move(device, node)

    def stop(self) -> None:
        """Cut the power: what is under way stays as it is."""
        for task in tuple(self._running.values()):
            task.cancel()

    # --- with order ids: once, and never after the id was closed

    def is_over(self, order: OrderID) -> bool:
        """Whether an order is closed and nothing of it is left: whatever is asked for it changes nothing any more."""
        known = self._orders.get(order)
        return known is not None and known.closed and known.state is State.ENDED

    def _attach_known(self, order: Order, *, wrong: bool) -> Progress:
        known = self._orders.get(order.id)
        if known is None:
            known = self._orders[order.id] = self._begin(order, NEVER, wrong=wrong)
        if (known.order.node, known.order.model) != (order.node, order.model):
            raise Refused(f"order {order.id} was placed for {known.order.model} on {known.order.node}")
        return Failed(f"order {order.id} is closed") if known.closed else self._attach_progress(known)

    def _detach_known(self, order: Order) -> Progress:
        known = self._orders.get(order.id)
        if known is None and order.foreign:
            known = self._orders[order.id] = self._taken_over(order)
        if known is None:  # closed before it began: an attach that comes late finds it so
            known = self._orders[order.id] = Attachment(order, PhysicalID(""), State.ENDED)
        return self._end(known, NEVER)

    # --- without: whoever asks twice gets two

    def _attach_blindly(self, order: Order, deadline: Seconds, *, wrong: bool) -> Progress:
        there = self._by_device.get(order.device)
        if there is not None and there.order.node == order.node and not self._spec.traits.chooses_device:
            if there.state is State.DETACHING or (there.state is State.ATTACHING and there.closed):
                raise Retry(f"device {order.device} is being detached")
            return self._attach_progress(there)
        reason = self._failures.pop(_place(order), "")
        if reason:
            return Failed(reason)
        begun = self._begin(order, deadline, wrong=wrong)
        return self._attach_progress(begun)

    def _detach_blindly(self, order: Order, deadline: Seconds) -> Progress:
        device = self.pool.device(order.device)
        if device is not None and device.node == order.node and not device.ours and not order.foreign:
            raise Refused(f"device {order.device} was attached by somebody else")
        there = self._by_device.get(order.device)
        if order.foreign and (there is None or there.order.id != order.id):
            there = self._taken_over(order)
        if there is None or there.order.node != order.node:
            return Done(order.device)
        return self._end(there, deadline)

    def _taken_over(self, order: Order) -> Attachment:
        """Return what somebody else attached as if this order had, so that it can be ended."""
        device = self.pool.device(order.device)
        if device is None or device.node != order.node:
            return Attachment(order, PhysicalID(""), State.ENDED)
        if device.ours:
            raise Refused(f"device {order.device} was attached by another order of yours")
        there = self._by_device[device.id] = Attachment(order, device.id, State.ATTACHED)
        return there

    # --- from beginning to end

    def _begin(self, order: Order, deadline: Seconds, *, wrong: bool) -> Attachment:
        device = self.pool.reserve(order, wrong=wrong)
        if isinstance(device, Failed):
            self.counts.attaches_failed += 1
            return Attachment(order, PhysicalID(""), State.ENDED, device.reason)
        begun = Attachment(order, device, State.QUEUED)
        self._by_device[device] = begun
        self._enqueue(Job(begun, detach=False, deadline=deadline))
        return begun

    def _end(self, there: Attachment, deadline: Seconds) -> Progress:
        """Bring it to its end from wherever it is; a detach that failed is told once, then tried again."""
        there.closed = True
        match there.state:
            case State.QUEUED:
                self._drop(there)
            case State.ATTACHED if there.reason:
                reason, there.reason = there.reason, ""
                return Failed(reason)
            case State.ATTACHED:
                there.state = State.DETACHING
                self._enqueue(Job(there, detach=True, deadline=deadline))
            case State.ATTACHING | State.DETACHING | State.ENDED:
                pass  # an attach under way cannot be stopped; when it is through, it is turned round
        if there.state is not State.ENDED:
            return Working()
        return Done(there.device, self._serial(there.device))

    def _attach_progress(self, there: Attachment) -> Progress:
        match there.state:
            case State.QUEUED | State.ATTACHING:
                return Working()
            case State.ATTACHED | State.DETACHING:
                return Done(there.device, self._serial(there.device))
            case State.ENDED:
                return Failed(there.reason)

    def _drop(self, there: Attachment) -> None:
        """Forget an attachment that came to nothing."""
        there.state = State.ENDED
        self.pool.unreserve(there.device)
        self._by_device.pop(there.device, None)

    def _serial(self, device: PhysicalID) -> str:
        known = self.pool.device(device)
        return known.serial if known else ""

    # --- jobs

    def _enqueue(self, job: Job) -> None:
        self._queue.append(job)
        self._pump()

    def _pump(self) -> None:
        while self._queue and len(self._running) < self._spec.traits.jobs:
            job = self._queue.popleft()
            if job.attachment.state is not State.ENDED:
                self._running[job] = asyncio.get_running_loop().create_task(self._work(job), context=world())

    async def _work(self, job: Job) -> None:
        if not job.detach:
            job.attachment.state = State.ATTACHING
        duration, reason = self._prospect(job)
        try:
            await self.clock.sleep(duration)
            reason = reason or await self._stall(job)
        finally:
            del self._running[job]
        if job.detach:
            self._detached(job.attachment, reason)
        else:
            self._attached(job, reason)
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()
        self._pump()

    async def _stall(self, job: Job) -> str:
        """Wait while nothing is done; return why the job has failed by that (empty if it has not)."""
        while self.clock.now() < self.stalled_until:
            end = min(self.stalled_until, job.deadline)
            await self.clock.sleep(Seconds(max(0.0, end - self.clock.now())))
            if self.clock.now() >= job.deadline:
                return f"nothing was done about {job.attachment.device} within {self.call_timeout:g} s"
        return ""

    def _prospect(self, job: Job) -> tuple[Seconds, str]:
        """Return how long the job will take, and why it will fail (empty if it will not).

        Both are drawn in any case, so that a refusal added to a scenario leaves all other durations alone.
        """
        order, verb = job.attachment.order, "detach" if job.detach else "attach"
        generator = self._chance.branch(verb).branch(order.node).generator
        drawn = (self._spec.detach if job.detach else self._spec.attach).draw(generator)
        luck = generator.random()
        left = Seconds(max(0.0, job.deadline - self.clock.now()))
        if drawn > left:
            return left, f"{verb} of {job.attachment.device} was not done within {self.call_timeout:g} s"
        return drawn, self._refusal(job, luck)

    def _refusal(self, job: Job, luck: float) -> str:
        device, node = job.attachment.device, job.attachment.order.node
        if job.detach:
            return f"device {device} did not come off {node}" if luck < self.refusals.detach else ""
        if device in self.refusals.devices:
            return f"device {device} does not answer"
        if node in self.refusals.nodes:
            return f"the link to {node} does not come up"
        return f"device {device} did not come up on {node}" if luck < self.refusals.attach else ""

    def _attached(self, job: Job, reason: str) -> None:
        there = job.attachment
        if not reason and not self.pool.arrive(there.device, there.order.id):
            reason = f"device {there.device} was lost"
        if reason:
            self.counts.attaches_failed += 1
            there.reason = reason
            self._drop(there)
            self._failures[_place(there.order)] = reason
            return
        self.counts.attaches += 1
        there.state = State.ATTACHED
        self._failures.pop(_place(there.order), None)
        if there.closed:
            self._end(there, job.deadline)

    def _detached(self, there: Attachment, reason: str) -> None:
        if there.state is State.ENDED:
            return  # the device was lost meanwhile
        if reason:
            self.counts.detaches_failed += 1
            there.state, there.reason = State.ATTACHED, reason
            return
        self.counts.detaches += 1
        there.state = State.ENDED
        self._by_device.pop(there.device, None)
        self.pool.leave(there.device)  # last: whoever listens finds the books closed


def _place(order: Order) -> tuple[NodeName, ModelName, PhysicalID]:
    """Return all that a manager without ids can tell an order by."""
    return order.node, order.model, order.device
