"""An event loop on virtual time: when nothing is ready, the clock jumps to the next timer.

Knows asyncio's own loop and what must be replaced in it, so that a run depends on nothing but its input: the
selector, the clock, the hash of tasks, threads. Must not know what runs on it.
"""

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import closing
from contextvars import Context, ContextVar, copy_context
from math import inf
from typing import Never, TypeVar

from jackfield.model.names import Seconds

T = TypeVar("T")

START = Seconds(1_767_225_600.0)
"""Where time begins unless told otherwise: the first second of 2026, UTC."""
TURNS_MAX = 100_000
"""After so many turns in which no time passed the loop is taken to spin for ever."""
CANCELLED_MAX = 1_000
"""Cancelled timers that may lie in the heap before it is swept, and then only if they are the larger half."""


class StalledError(RuntimeError):
    """Nothing will ever happen again: no callback is ready and no timer is set."""


class SpinningError(RuntimeError):
    """Callbacks follow one another without end and without time passing."""


class _Task(asyncio.Task[T]):
    """A task whose hash is its number, since TaskGroup, wait and all_tasks keep tasks in sets."""

    def __init__(
        self,
        work: Generator[None, None, T] | Coroutine[None, None, T],
        loop: "VirtualLoop",
        number: int,
        name: str,
        context: Context | None,
    ) -> None:
        self._number = number  # first of all: the parent puts the task into a set while it is being made
        super().__init__(work, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._number


def _nothing() -> None:
    """Do nothing: the hook of a loop that nobody looks at."""


class Process:
    """Tasks that stand still and go on together, as the tasks of a program do that is sent a signal.

    Whatever is started in its context belongs to it, and what that starts in turn.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.held: list[asyncio.Handle] | None = None
        """What it would have done while it stands still; None while it runs."""
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def context(self) -> Context:
        """Return a context for one more task of this process."""
        return self._context.copy()

    @property
    def stopped(self) -> bool:
        """Whether it stands still."""
        return self.held is not None

    def stop(self) -> None:
        """Let nothing of it run; what it would have done is kept."""
        if self.held is None:
            self.held = []

    def go_on(self) -> None:
        """Let it go on where it stood: all that happened meanwhile, it hears of now."""
        held, self.held = self.held, None
        for handle in held or ():
            _ready_again(handle)


PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
"""The process that runs."""


def world() -> Context:
    """Return a context that belongs to no process: for what goes on whoever stands still."""
    return Context()


def _ready_again(handle: asyncio.Handle) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.put_back(handle)


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop that never waits. Same input, same order of everything."""

    _ready: deque[asyncio.Handle]  # asyncio's own queue; call_soon puts into it

    def __init__(self, start: Seconds = START) -> None:
        super().__init__()
        self.now = start
        """The virtual time, in seconds since 1970."""
        self._thread = threading.get_ident()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # those of the future only
        self._timers_made = 0
        self._timers_cancelled = 0
        self._tasks_made = 0
        self._turns = 0
        self._error: BaseException | None = None
        self.on_turn: Callable[[], None] = _nothing
        """Called after every turn; what it raises ends the run."""
        self.on_idle: Callable[[], None] = _nothing
        """Called when all work of a moment is done, before time moves on; what it raises ends the run."""

    def time(self) -> float:
        """Return the virtual time, in seconds since 1970."""
        return self.now

    @property
    def timers(self) -> int:
        """How many timers are kept, those cancelled and not yet swept included."""
        return len(self._timers)

    # --- what asyncio asks of a loop

    def create_task(  # type: ignore[override]  # the stub's Task and ours agree in all that is used
        self,
        coro: Generator[None, None, T] | Coroutine[None, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Return a task that hashes and is named by the order of birth in this very loop."""
        self._tasks_made += 1
        return _Task(coro, self, self._tasks_made, name or f"Task-{self._tasks_made}", context)

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back in the next turn; unlike asyncio's own this looks for no thread and no closed loop."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at that time; those of the same moment in the order in which they were asked for."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self.now:
            self._ready.append(timer)
        else:
            self._timers_made += 1
            heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Sweep the heap now and then: time-outs that were not needed would fill it."""
        self._timers_cancelled += handle.when() > self.now
        if self._timers_cancelled > max(CANCELLED_MAX, len(self._timers) // 2):
            self._timers = [entry for entry in self._timers if not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._timers_cancelled = 0

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back soon; asyncio itself uses this for generators left open. Other threads are refused."""
        if threading.get_ident() != self._thread:
            raise RuntimeError("no threads under virtual time")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, *_: object) -> Never:
        """Refuse: a thread takes real time, in which no virtual time passes, and ends in any order."""
        raise RuntimeError("no threads under virtual time")

    def call_exception_handler(self, context: dict[str, object]) -> None:
        """End the run with the first error that nobody handled: in a simulation it is a finding."""
        if not self.is_running():
            super().call_exception_handler(context)
        elif self._error is None:
            error = context.get("exception")
            self._error = error if isinstance(error, BaseException) else RuntimeError(context.get("message"))

    def put_back(self, handle: asyncio.Handle) -> None:
        """Run a callback in the next turn that a process kept back."""
        self._ready.append(handle)

    # --- turns

    def _run_once(self) -> None:
        """Make one turn: all that is ready now, and nothing that becomes ready meanwhile."""
        if not self._ready:
            self.on_idle()
        if not self._ready:
            self._advance()
        self._turns += 1
        if self._turns > TURNS_MAX:
            raise SpinningError(f"{TURNS_MAX} turns without time passing{self._waiting()}")
        popleft = self._ready.popleft
        for _ in range(len(self._ready)):
            handle = popleft()
            if handle._cancelled:  # noqa: SLF001 - asked for every callback there is
                continue
            process = handle._context.get(PROCESS)  # type: ignore[attr-defined]  # noqa: SLF001 - nobody else knows
            if process is None or process.held is None:
                handle._run()  # noqa: SLF001 - the one way to run a handle
            else:
                process.held.append(handle)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        self.on_turn()

    def _advance(self) -> None:
        """Move time to the next timer, and all timers of that moment to what is ready."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
            self._timers_cancelled -= 1
        if not self._timers or self._timers[0][0] == inf:
            raise StalledError(f"nothing will ever happen{self._waiting()}")
        self.now = Seconds(self._timers[0][0])
        self._turns = 0
        while self._timers and self._timers[0][0] <= self.now:
            timer = heapq.heappop(self._timers)[2]
            self._timers_cancelled -= timer.cancelled()
            self._ready.append(timer)

    def _waiting(self) -> str:
        """Return where the tasks stand, one line each."""
        lines = []
        for task in sorted(asyncio.all_tasks(self), key=hash):
            frames = task.get_stack()
            place = f" at {frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else ""
            lines.append(f"\n  {task.get_name()}{place}")
        return "; tasks waiting:" + "".join(lines) if lines else ""

    def close(self) -> None:
        """Cancel what still runs, oldest first, let it end, and close the loop."""
        if self.is_closed():
            return
        self.on_turn = self.on_idle = _nothing
        self._error = None
        try:
            left = sorted(asyncio.all_tasks(self), key=hash)
            for task in left:
                task.cancel()
            if left:
                self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.run_until_complete(self.shutdown_asyncgens())
        finally:
            super().close()


def run(main: Coroutine[None, None, T], start: Seconds = START) -> T:
    """Run it to its end on virtual time that begins at `start`; whatever it leaves behind is cancelled."""
    with closing(VirtualLoop(start)) as loop:
        return loop.run_until_complete(main)
