"""NEC's layout-apply (project-cdim): carries out one job at a time for the whole fabric, and shows what became of it.

Knows what its calls mean and what may become of them. Must not know why a device is moved. An order is a job of one
procedure, sent once, by a task of its own; orders wait for each other, and for the jobs of others. What stands where
the configuration manager says. A job that the manager has suspended is an operator's to resume: it is told, with what
to do, and the manager left alone for a while. Where no answer comes, the list of jobs says whether one has begun.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Final, Self, TypeVar

import msgspec

from jackfield.codec import nec
from jackfield.codec.nec import Job, Operation, Status
from jackfield.fabric.asking import BACK_OFF_MAX, Asking
from jackfield.fabric.errands import Errands
from jackfield.fabric.http import Request
from jackfield.fabric.nec import (
    DELETED,
    POLL,
    Begun,
    Busy,
    Declined,
    Halted,
    Place,
    Shown,
    Site,
    Unknown,
    Wiring,
    site,
)
from jackfield.fabric.settings import FabricSettings
from jackfield.fabric.sights import Sights
from jackfield.model.fabric import Done, FabricDevice, Failed, Inventory, Machine, Order, Progress
from jackfield.model.names import PhysicalID, Seconds
from jackfield.ports import Clock, Refused, Retry

T = TypeVar("T")

AGAIN: Final = Seconds(60.0)
"""For so long a manager is left alone that needs an operator, or time."""
NOTICED_SECONDS: Final = Seconds(30.0)
"""A job that has begun is in the list of jobs within this time, whatever became of the answer."""
CANCEL_SECONDS: Final = Seconds(60.0)
"""How long the end of a job is waited for that was cancelled since it took too long."""
ORDERS_MAX: Final = 256
"""So many orders may wait for their turn."""

_Judge = Callable[[Order, Shown, Job | None], Progress | None]
"""What can be said of an order from what is shown, and from the job that is under way."""


def connect(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> "NecLayoutApply":
    """Return the line to the manager. Raises BadFabric."""
    return NecLayoutApply(site(settings, environment), clock)


class _Over(msgspec.Struct, frozen=True):
    """A job for an order, which has ended."""

    job: Job
    before: frozenset[PhysicalID]
    """What stood on the node when it began."""
    deadline: Seconds
    """By when the configuration shows what came of it."""


class NecLayoutApply:
    """One process's line to layout-apply and its configuration manager."""

    def __init__(self, site: Site, clock: Clock) -> None:
        self._site = site
        self._clock = clock
        self._errands = Errands(clock)
        self._sights = Sights(clock)
        self._asking = Asking(clock, POLL)
        self._turns = asyncio.Lock()  # lets in who came first
        self._waiting = 0

    def __repr__(self) -> str:
        return f"NecLayoutApply({self._site.name!r}, {self._site.applies.wire.base!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._errands.close()
        await self._site.applies.wire.close()
        await self._site.configuration.wire.close()

    # --- the port

    async def inventory(self) -> Inventory:
        """Return what the configuration manager shows; the same object while nothing changes."""
        options = self._site.options
        look = await self._site.look()
        machines = tuple(Machine(one.node, options.slots) for one in look.places)
        devices = tuple(look.devices.values())
        return self._sights.shown(Inventory(self._site.name, options.traits, machines, devices))

    async def attach(self, order: Order) -> Progress:
        """Begin to attach, or say how far it is."""
        return await self._errands.ask(
            "attach", order, lambda: self._attach(order), lambda _: self._on(order)
        )

    async def detach(self, order: Order) -> Progress:
        """Begin to take back the very device, or say how far it is."""
        return await self._errands.ask("detach", order, lambda: self._detach(order), self._always_new)

    async def _on(self, order: Order) -> bool:
        return order.device in (await self._site.look()).on(order.node)

    async def _always_new(self, _: Done) -> bool:
        return False  # what was detached may have come back: a detach is looked into whenever it is asked for

    # --- attaching

    async def _attach(self, order: Order) -> Progress:
        async with self._turn() as until:
            over = await self._carried_out(order, Operation.CONNECT, self._attachable, until)
            return over if not isinstance(over, _Over) else await self._arrived(order, over)

    def _attachable(self, order: Order, shown: Shown, _: Job | None) -> Progress | None:
        """Return what there is to say without a job: the device is there, or cannot come."""
        device = shown.devices.get(order.device)
        if device is not None and device.node == order.node and device.ours:
            return Done(device.id, device.serial)
        wrong = self._unfit(order, shown, device)
        return Failed(f"{self._base}: {wrong}") if wrong else None

    def _unfit(self, order: Order, shown: Shown, device: FabricDevice | None) -> str:
        """Return why a device cannot be attached; empty if it can."""
        if shown.place(order.node) is None:
            return f"fabric {self._site.name} has no machine {order.node}"
        if order.device in shown.elsewhere:
            return f"device {order.device} is on a machine that is none of this fabric's"
        if device is None:
            return f"there is no device {order.device}" if order.device else "an order must name its device"
        if not device.ours:
            return f"device {device.id} is not ours, by options.models, groups or foreign"
        if device.node:
            return f"device {device.id} is taken by {device.node}"
        if device.model != order.model:
            return f"device {device.id} is of model {device.model}, not {order.model}"
        return "" if device.healthy else f"device {device.id} is not available: see its status and annotation"

    async def _arrived(self, order: Order, over: _Over) -> Progress:
        """Believe what the configuration shows; what a job has done may take a while to show there."""
        completed = over.job.status == Status.COMPLETED

        async def look() -> Progress | None:
            shown = await self._site.look()
            there = shown.on(order.node)
            if order.device in there:
                return Done(order.device, shown.devices[order.device].serial)
            others = ", ".join(sorted(there - over.before))
            # Whose they are nobody can say, so they are left alone: the inventory shows them.
            wrong = f"but not {order.device} came to {order.node} but {others}"
            return Failed(f"{self._why(over)}, {wrong}") if others and completed else None

        answer: Progress | None = await self._asking.until(
            look, over.deadline if completed else self._clock.now()
        )
        if answer is None and completed:
            unseen = f"but the configuration manager does not show {order.device} on {order.node}"
            raise Retry(f"{self._why(over)}, {unseen}", AGAIN)
        return answer or Failed(self._why(over))

    # --- detaching

    async def _detach(self, order: Order) -> Progress:
        if not order.device:
            return Done()  # nothing of it can be attached
        async with self._turn() as until:
            over = await self._carried_out(order, Operation.DISCONNECT, self._detachable, until)
            return over if not isinstance(over, _Over) else await self._departed(order, over)

    def _detachable(self, order: Order, shown: Shown, running: Job | None) -> Progress | None:
        """Return what there is to say without a job: the device is not there, and no job may yet bring it."""
        if order.device in shown.on(order.node):
            if not shown.devices[order.device].ours and not order.foreign:
                raise Refused(f"device {order.device} was attached by somebody else")
            return None
        others = running is not None and running.suspended and order.device not in running.devices
        return Done(order.device) if running is None or others else None

    async def _departed(self, order: Order, over: _Over) -> Progress:
        async def look() -> Progress | None:
            there = order.device in (await self._site.look()).on(order.node)
            return None if there else Done(order.device)

        completed = over.job.status == Status.COMPLETED
        answer: Progress | None = await self._asking.until(
            look, over.deadline if completed else self._clock.now()
        )
        still = f", but the configuration manager still shows {order.device} on {order.node}"
        return answer or Failed(f"{self._why(over)}{still if completed else ''}")

    # --- jobs

    async def _carried_out(
        self, order: Order, operation: Operation, judged: _Judge, until: Seconds
    ) -> Progress | _Over:
        """Return what can be said without a job, or how it ended. Raises Retry if nothing was done, or nobody knows."""
        pause = POLL
        while True:
            # Jobs first: what one did that has ended by then is shown.
            known = await self._asking.insisted(self._site.applies.newest, until)
            running = next((one for one in known if one.under_way), None)
            shown = await self._asking.insisted(self._site.look, until)
            answer = judged(order, shown, running)
            if answer is not None:
                return answer
            procedure = self._procedure(operation, shown.place(order.node), order.device)
            within = self._site.options.effect_seconds
            deadline = self._deadline(within)
            sent = _refusal(running) if running else await self._site.applies.begin(procedure, within)
            match sent:
                case Begun(job):
                    ended = await self._asking.until(lambda: self._ended(job), deadline)
                    ended = ended or await self._cancelled(job, operation)
                    return _Over(self._resting(ended), shown.on(order.node), deadline)
                case Unknown(reason):
                    ended = await self._found_again(procedure, known, deadline)
                    if ended is None or not _same(ended, procedure):
                        raise Retry(f"{reason}; no layout apply for {order.device} is known to have begun")
                    return _Over(self._resting(ended), shown.on(order.node), deadline)
                case Halted(job):
                    raise self._halted(job)
                case Declined(reason):
                    return Failed(reason)
                case Busy(reason, after):
                    pause = await self._asking.paused(reason, max(pause, after), until)

    async def _cancelled(self, job: str, operation: Operation) -> Job:
        """Cancel a job of ours that takes too long, and return how it ended. Raises Retry if it does not."""
        # Only an attach is rolled back: a device that is half taken back must not return.
        path = nec.cancel_path(job, rollback=operation is Operation.CONNECT)
        with suppress(Retry):
            await self._site.applies.call(Request("PUT", path))
        ended = await self._asking.until(lambda: self._ended(job), self._deadline(CANCEL_SECONDS))
        if ended is not None:
            return ended
        span = f"within {self._site.options.effect_seconds:g} s, nor after it was cancelled"
        words = f"layout apply {job} has not ended {span}; until it has, the manager begins no other"
        raise Retry(f"{self._base}: {words}", AGAIN)

    def _resting(self, job: Job) -> Job:
        """Return a job that has ended. Raises Retry if it waits for an operator instead."""
        if job.suspended:
            raise self._halted(job.apply_id)
        return job

    async def _ended(self, job: str) -> Job | None:
        shown = await self._site.applies.job(job)
        return shown if shown.ended or shown.suspended or shown.status == DELETED else None

    async def _found_again(
        self, procedure: nec.Procedure, known: tuple[Job, ...], deadline: Seconds
    ) -> Job | None:
        """Return the end of a job that has begun though nobody said so; it may be another's, and is not cancelled."""
        before = {one.apply_id for one in known}

        async def look() -> str | None:
            new = [one for one in await self._site.applies.newest() if one.apply_id not in before]
            # What a job does need not be shown while it runs.
            return next((one.apply_id for one in new if not one.procedures or _same(one, procedure)), None)

        found = await self._asking.until(look, min(deadline, self._deadline(NOTICED_SECONDS)))
        return await self._asking.until(lambda: self._ended(found), deadline) if found is not None else None

    def _procedure(self, operation: Operation, place: Place | None, device: PhysicalID) -> nec.Procedure:
        port = place.port if place is not None else None
        if self._site.options.wiring is Wiring.CPU:
            return nec.Procedure(1, operation, (), target_cpu=port, target_device=device)
        return nec.Procedure(1, operation, (), source=port, destination=device)

    def _why(self, over: _Over) -> str:
        job = over.job
        span, completed = self._site.options.effect_seconds, job.status == Status.COMPLETED
        late = f" after more than {span:g} s" if self._clock.now() > over.deadline and not completed else ""
        rollback = f", its rollback {job.rollback_status}" if job.rollback_status else ""
        words = f": {job.reason}" if job.reason else ""
        return f"{self._base}: layout apply {job.apply_id} is {job.status}{late}{rollback}{words}"

    def _halted(self, job: str) -> Retry:
        """Return what there is to tell of a job that waits for an operator."""
        where = f"{self._base}{nec.apply_path(job) if job else f'{nec.APPLIES}/APPLY_ID'}"
        return Retry(
            f"{self._base}: layout apply {job or '(look for it in the list)'} is SUSPENDED, and the manager begins no "
            f"other: see what failed (GET {where}), mend it, then resume it (PUT {where}?action=resume) or cancel "
            "it (action=cancel); orders go on by themselves afterwards",
            AGAIN,
        )

    # --- turns and time

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Seconds]:
        """Be the one who changes the fabric; gives until when a job may be sent. Raises Retry if it is too late."""
        if self._waiting >= ORDERS_MAX:
            raise Retry(f"{self._base}: {self._waiting} orders wait already; nothing was sent", BACK_OFF_MAX)
        until = self._deadline(self._site.options.queue_seconds)
        self._waiting += 1
        try:
            async with self._turns:
                if self._clock.now() > until:
                    span = self._site.options.queue_seconds
                    raise Retry(f"{self._base}: other jobs took {span:g} s; nothing was sent")
                yield until
        finally:
            self._waiting -= 1

    def _deadline(self, span: Seconds) -> Seconds:
        return Seconds(self._clock.now() + span)

    @property
    def _base(self) -> str:
        return self._site.applies.wire.base


def _refusal(running: Job) -> Busy | Halted:
    """Return what the manager would say to a job while this one is not over."""
    if running.suspended:
        return Halted(running.apply_id)
    since = f" since {running.started_at}" if running.started_at else ""
    return Busy(f"layout apply {running.apply_id} is {running.status}{since}")


def _same(job: Job, procedure: nec.Procedure) -> bool:
    meant = (procedure.operation, procedure.port, procedure.device)
    return [(one.operation, one.port, one.device) for one in job.procedures or ()] == [meant]
