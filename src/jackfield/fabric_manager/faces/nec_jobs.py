"""Layout applies: jobs of procedures that depend on each other, one job at a time, carried on after a restart.

Knows what a job has come to: all of it is noted, and each procedure is an order of the manager's, by an id that is made
of the job's. Must not know HTTP. Work that a fault keeps until an operator sees to it suspends the job: to resume it
clears the fault.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from jackfield.codec.nec import Job, Operation, Procedure, Result, Status
from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.manager import Manager
from jackfield.fabric_manager.orders import Entry
from jackfield.model.fabric import Done, Failed, Progress, Working
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds, Time, rfc3339
from jackfield.ports import PortError, Refused

FACE: Final = "nec"
JOBS_MAX: Final = 1000
"""So many jobs are remembered; of more, the oldest that have ended are forgotten."""
ID_BYTES: Final = 5
"""An id has ten hexadecimal digits."""
AT_ONCE: Final = Seconds(60.0)
"""How long an order is waited for before it is asked about again."""


class Moved(msgspec.Struct, frozen=True):
    """A job asked to do something, and what it answered: whether anything came of it."""

    job: Job
    accepted: bool
    """False: it was so already."""


class Impossible(Exception):  # noqa: N818 - what it is
    """A job cannot do this now."""


class _Kept(msgspec.Struct, frozen=True):
    """A job as it is noted, with its place in the order of all."""

    number: int
    job: Job


class Jobs:
    """All jobs, the oldest first."""

    def __init__(
        self, manager: Manager, ports: Mapping[str, NodeName], devices: Mapping[str, PhysicalID]
    ) -> None:
        self._manager = manager
        self._ports = ports
        self._devices = devices
        notes = (msgspec.json.decode(text, type=_Kept) for text in manager.store.notes(FACE).values())
        self._kept = {one.job.apply_id: one for one in sorted(notes, key=lambda one: one.number)}
        self._tasks: set[asyncio.Task[None]] = set()
        for one in tuple(self._kept.values()):
            if one.job.under_way:
                self._start(one.job.apply_id)

    # --- looking

    def __iter__(self) -> Iterator[Job]:
        for name in tuple(self._kept):
            yield self._now(name)

    def find(self, name: str) -> Job | None:
        """Return a job."""
        return self._now(name) if name in self._kept else None

    @property
    def under_way(self) -> Job | None:
        """The job because of which no other can begin."""
        return next((one for one in reversed(tuple(self)) if one.under_way), None)

    # --- what is asked of them

    def begin(self, procedures: tuple[Procedure, ...]) -> Job:
        """Begin a job; nothing else may be under way."""
        name, now = secrets.token_hex(ID_BYTES), self._time
        job = Job(name, Status.IN_PROGRESS, procedures, (), started_at=now)
        if not procedures:
            job = msgspec.structs.replace(job, status=Status.COMPLETED, ended_at=now)
        number = 1 + max((one.number for one in self._kept.values()), default=0)
        self._note(_Kept(number, job))
        if procedures:
            self._start(name)
        self._tidy()
        return job

    async def resume(self, job: Job) -> Moved:
        """Go on with what was suspended. Raises Impossible while it is at work."""
        if job.suspended:
            await self._released(job)
            return Moved(self._now(job.apply_id), accepted=True)
        if job.under_way:
            raise Impossible
        return Moved(job, accepted=False)

    async def cancel(self, job: Job, *, rollback: bool) -> Moved:
        """Do no more of it. Raises Impossible if it has ended, or is being rolled back."""
        now = self._time
        if job.suspended:
            return Moved(await self._given_up(job), accepted=True)
        if job.status == Status.IN_PROGRESS:
            more = {"status": Status.CANCELING, "canceled_at": now, "execute_rollback": rollback}
            return Moved(self._change(job, **more), accepted=True)
        if job.status in {Status.CANCELING, Status.CANCELED} and job.rollback_status != Status.IN_PROGRESS:
            return Moved(job, accepted=False)
        raise Impossible

    async def _given_up(self, job: Job) -> Job:
        """End what was suspended: what its orders have begun is taken back."""
        which = "rollback_status" if job.rollback_status else "status"
        ended = self._change(job, **{which: Status.FAILED, "canceled_at": self._time, "ended_at": self._time})
        for entry in self._begun(job):
            await self._manager.detach(entry.order, FACE)
        await self._released(job)
        return ended

    async def _released(self, job: Job) -> None:
        for fault in {one.id for one in self._keepers(job)}:
            await self._manager.clear_fault(fault)

    def forget(self, job: Job) -> None:
        """Strike a job from the list. Raises Impossible while it is under way."""
        if job.under_way:
            raise Impossible
        del self._kept[job.apply_id]
        self._manager.store.note(FACE, job.apply_id, None)

    # --- what has become of one

    def _now(self, name: str) -> Job:
        """Return a job as it is: suspended while a fault keeps its work, at work again when it does not."""
        job = self._kept[name].job
        if not job.under_way:
            return job
        which = "rollback_status" if job.rollback_status else "status"
        kept = any(self._keepers(job))
        if kept and not job.suspended:
            left = tuple(self._left(job))
            more = {which: Status.SUSPENDED, "suspended_at": self._time, "resume_procedures": left}
            return self._change(job, **more)
        if job.suspended and not kept:
            return self._change(job, **{which: Status.IN_PROGRESS, "resumed_at": self._time})
        return job

    def _left(self, job: Job) -> Iterator[Procedure]:
        rolling = bool(job.rollback_status)
        done = {one.operation_id for one in (job.rollback_result if rolling else job.apply_result) or ()}
        steps = (job.rollback_procedures if rolling else job.procedures) or ()
        return (one for one in steps if one.operation_id not in done)

    def _begun(self, job: Job) -> Iterator[Entry]:
        for one in self._left(job):
            entry = self._manager.books.find(_order(job, one)) or self._held(one)
            if entry is not None:
                yield entry

    def _keepers(self, job: Job) -> Iterator[Fault]:
        for entry in self._begun(job):
            fault = self._manager.faults.keeper(entry.order.id)
            if fault is not None and fault.kind is Kind.SUSPEND:
                yield fault

    def _held(self, procedure: Procedure) -> Entry | None:
        """Return the order that a disconnect is about."""
        if procedure.operation != Operation.DISCONNECT:
            return None
        holder = self._manager.books.holder(self._devices.get(procedure.device, PhysicalID("")))
        return holder if holder is not None and holder.owner == FACE else None

    # --- writing

    @property
    def _time(self) -> Time:
        return rfc3339(self._manager.clock.now())

    def _note(self, kept: _Kept) -> None:
        self._kept[kept.job.apply_id] = kept
        self._manager.store.note(FACE, kept.job.apply_id, msgspec.json.encode(kept))

    def _change(self, job: Job, **more: object) -> Job:
        kept = self._kept[job.apply_id]
        changed = msgspec.structs.replace(kept.job, **more)
        self._note(_Kept(kept.number, changed))
        return changed

    def _tidy(self) -> None:
        ended = [one.job for one in self._kept.values() if not one.job.under_way]
        for job in ended[: max(0, len(self._kept) - JOBS_MAX)]:
            self.forget(job)

    # --- work

    def _start(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._work(name))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PortError) and not self._manager.mistake.done():
            self._manager.mistake.set_exception(error)

    async def _work(self, name: str) -> None:
        """Carry a job to its end, and roll it back if that was asked for."""
        await self._manager.store.committed()
        if not self._kept[name].job.rollback_status:
            await self._applied(name)
        if self._kept[name].job.rollback_status == Status.IN_PROGRESS:
            await self._rolled_back(name)
        await self._manager.store.committed()

    async def _applied(self, name: str) -> None:
        while left := tuple(self._left(self._kept[name].job)):
            job = self._kept[name].job
            results = job.apply_result or ()
            done = {one.operation_id: one.status for one in results}
            if job.status == Status.CANCELING:
                made = [Result(one.operation_id, Status.CANCELED) for one in left]
            else:
                made = await self._wave(job, left, done)
            if not self._kept[name].job.under_way:
                return  # it was given up
            self._change(job, apply_result=(*results, *made))
        self._finish(self._kept[name].job)

    def _finish(self, job: Job) -> None:
        status = _verdict(job.apply_result or ())
        ended: dict[str, object] = {"status": status, "ended_at": self._time}
        if status is Status.CANCELED:
            back = tuple(_reversed(job))
            ended["rollback_procedures"] = back
            if job.execute_rollback:
                ended |= {"rollback_status": Status.IN_PROGRESS, "rollback_started_at": self._time}
        self._change(job, **ended)

    async def _rolled_back(self, name: str) -> None:
        while left := tuple(self._left(self._kept[name].job)):
            job = self._kept[name].job
            results = job.rollback_result or ()
            made = await self._wave(job, left, {one.operation_id: one.status for one in results})
            if not self._kept[name].job.under_way:
                return
            self._change(job, rollback_result=(*results, *made))
        job = self._kept[name].job
        verdict = _verdict(job.rollback_result or ())
        self._change(job, rollback_status=verdict, rollback_ended_at=self._time, ended_at=self._time)

    async def _wave(self, job: Job, left: tuple[Procedure, ...], done: Mapping[int, str]) -> list[Result]:
        """Do all that can be done now, or pass over what depends on what was not done."""
        lost = [
            one
            for one in left
            if any(done.get(step) not in {None, Status.COMPLETED} for step in one.dependencies)
        ]
        if lost:
            return [Result(one.operation_id, Status.SKIPPED) for one in lost]
        ready = [one for one in left if all(step in done for step in one.dependencies)]
        return [*await asyncio.gather(*(self._step(job, one) for one in ready))]

    async def _step(self, job: Job, procedure: Procedure) -> Result:
        begun = self._time
        try:
            progress = await self._moved(job, procedure)
        except Refused as error:
            progress = Failed(str(error))
        failed = isinstance(progress, Failed)
        return Result(
            operation_id=procedure.operation_id,
            status=Status.FAILED if failed else Status.COMPLETED,
            status_code=HTTPStatus.INTERNAL_SERVER_ERROR if failed else HTTPStatus.OK,
            response_body={"code": "failed", "message": progress.reason}
            if isinstance(progress, Failed)
            else {},
            started_at=begun,
            ended_at=self._time,
        )

    async def _moved(self, job: Job, procedure: Procedure) -> Progress:
        if procedure.operation in {Operation.BOOT, Operation.SHUTDOWN}:
            return Done()  # machines are not ours to switch: they are on
        node, device = self._ports.get(procedure.port.lower()), self._devices.get(procedure.device)
        if node is None or device is None:
            what = f"device {procedure.device}" if node is not None else f"CPU or adapter {procedure.port}"
            return Failed(f"there is no {what}")
        connect = procedure.operation == Operation.CONNECT
        return await (self._connected if connect else self._disconnected)(
            _order(job, procedure), device, node
        )

    async def _connected(self, name: OrderID, device: PhysicalID, node: NodeName) -> Progress:
        holder = self._manager.books.holder(device)
        if (
            holder is not None
            and (holder.order.node, holder.owner) == (node, FACE)
            and holder.order.id != name
        ):
            return Done(device)  # to connect what is connected is no fault
        order = self._manager.order(name, device, node)
        return await self._settled(name, partial(self._manager.attach, order, FACE))

    async def _disconnected(self, _: OrderID, device: PhysicalID, node: NodeName) -> Progress:
        holder = self._manager.books.holder(device)
        if holder is None:
            return Done(device)
        if holder.node != node:
            return Failed(f"device {device} is on {holder.node}, not on {node}")
        if holder.owner != FACE:
            return Failed(f"device {device} was attached by {holder.owner}")
        return await self._settled(holder.order.id, partial(self._manager.detach, holder.order, FACE))

    async def _settled(self, name: OrderID, ask: Callable[[], Awaitable[Progress]]) -> Progress:
        progress: Progress = Working()
        while isinstance(progress, Working):
            progress = await self._manager.settle(ask, name, AT_ONCE)
        return progress


def _order(job: Job, procedure: Procedure) -> OrderID:
    """Return the id of a procedure's order: the same after a restart."""
    rollback = "rollback/" if job.rollback_status else ""
    return OrderID(f"{FACE}/{job.apply_id}/{rollback}{procedure.operation_id}")


def _verdict(results: tuple[Result, ...]) -> Status:
    found = {one.status for one in results}
    return next((one for one in (Status.FAILED, Status.CANCELED) if one in found), Status.COMPLETED)


_OPPOSITE: Final[Mapping[str, Operation]] = {
    Operation.CONNECT: Operation.DISCONNECT,
    Operation.DISCONNECT: Operation.CONNECT,
    Operation.BOOT: Operation.SHUTDOWN,
    Operation.SHUTDOWN: Operation.BOOT,
}


def _reversed(job: Job) -> Iterator[Procedure]:
    """Return what undoes the procedures that were carried out, the last first, each after the one before it."""
    done = {one.operation_id for one in job.apply_result or () if one.status == Status.COMPLETED}
    steps = [one for one in reversed(job.procedures or ()) if one.operation_id in done]
    for number, one in enumerate(steps, start=1):
        opposite, after = _OPPOSITE[one.operation], () if number == 1 else (number - 1,)
        yield msgspec.structs.replace(one, operation_id=number, operation=opposite, dependencies=after)
