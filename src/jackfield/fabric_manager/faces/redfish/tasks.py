"""Tasks: work that was answered for before it was done, as a client can follow it.

Knows which orders a task is made of, across restarts, and reads from the books how far they are. Must not know HTTP.
What came of a task is written down when it is first seen to have ended, and before anybody asks for the opposite.
"""

import secrets
from collections.abc import Iterator
from typing import Final

import msgspec

from jackfield.fabric_manager.books import Books
from jackfield.fabric_manager.faces.redfish.names import FACE
from jackfield.fabric_manager.orders import State
from jackfield.fabric_manager.store import Store
from jackfield.model.fabric import Done, Failed, Progress, Working
from jackfield.model.names import NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Clock

PREFIX: Final = "task/"
"""Under this name tasks are noted."""
TAKEN_BACK: Final = "it was taken back under way"
TASKS_MAX: Final = 1000
"""Tasks kept; of those that have ended the oldest go first."""


class Step(msgspec.Struct, frozen=True):
    """One order of a task."""

    order: OrderID
    device: PhysicalID
    attach: bool
    """Or else a detach."""


class Task(msgspec.Struct, frozen=True):
    """A task, as it is noted."""

    id: str
    node: NodeName
    method: str
    target: str
    """What was asked for, and where."""
    started: Seconds
    steps: tuple[Step, ...]
    ended: Seconds = Seconds(0.0)
    """0 while it runs."""
    failures: tuple[str, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.ended > 0


class Tasks:
    """All tasks, oldest first."""

    def __init__(self, store: Store, books: Books, clock: Clock) -> None:
        self._store = store
        self._books = books
        self._clock = clock
        noted = store.notes(FACE)
        known = [msgspec.json.decode(noted[key], type=Task) for key in noted if key.startswith(PREFIX)]
        self._tasks = {one.id: one for one in sorted(known, key=lambda one: one.started)}
        self._running = {one.id for one in known if not one.over}

    def __iter__(self) -> Iterator[Task]:
        self.look()
        yield from tuple(self._tasks.values())

    def get(self, name: str) -> Task | None:
        """Return the task of that id, as it is now."""
        self.look()
        return self._tasks.get(name)

    def made(self, node: NodeName, method: str, target: str, steps: tuple[Step, ...]) -> Task:
        """Return a task for orders that were placed, as far as they are; it is not kept yet."""
        return self._seen(Task(secrets.token_hex(8), node, method, target, self._clock.now(), steps))

    def keep(self, task: Task) -> None:
        """Keep a task, so that it can be followed."""
        self._put(task)
        ended = [one.id for one in self._tasks.values() if one.over]
        for name in ended[: max(0, len(self._tasks) - TASKS_MAX)]:
            self.forget(name)

    def forget(self, name: str) -> None:
        """Forget a task that is over."""
        del self._tasks[name]
        self._store.note(FACE, f"{PREFIX}{name}", None)

    def look(self, taken_back: OrderID = OrderID("")) -> None:
        """Write down what came of the tasks that have ended since; one that is about to be taken back has failed."""
        for name in sorted(self._running):
            task = self._seen(self._tasks[name], taken_back)
            if task.over:
                self._put(task)

    def _seen(self, task: Task, taken_back: OrderID = OrderID("")) -> Task:
        """Return the task as it is now."""
        progress = [self.progress(step) for step in task.steps]
        for at, step in enumerate(task.steps):
            if step.attach and step.order == taken_back and isinstance(progress[at], Working):
                progress[at] = Failed(TAKEN_BACK)
        if any(isinstance(one, Working) for one in progress):
            return task
        failures = tuple(one.reason for one in progress if isinstance(one, Failed))
        return msgspec.structs.replace(task, ended=self._clock.now(), failures=failures)

    def progress(self, step: Step) -> Progress:
        """Return how far a step is, by the books."""
        entry = self._books.find(step.order)
        if entry is None:
            return Failed("what came of it is not remembered any more")
        if step.attach:
            match entry.state:
                case State.QUEUED | State.ATTACHING:
                    return Failed(TAKEN_BACK) if entry.closed else Working()
                case State.ENDED if entry.reason or not entry.closed:
                    return Failed(entry.reason)
                case State.ATTACHED | State.DETACHING | State.ENDED:
                    return Done(entry.device, entry.serial)
        if entry.state is State.ENDED:
            return Done(entry.device, entry.serial)
        return Failed(entry.reason or "it is still attached") if entry.state is State.ATTACHED else Working()

    def _put(self, task: Task) -> None:
        self._tasks[task.id] = task
        (self._running.discard if task.over else self._running.add)(task.id)
        self._store.note(FACE, f"{PREFIX}{task.id}", msgspec.json.encode(task))
