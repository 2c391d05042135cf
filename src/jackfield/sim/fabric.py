"""`ports.Fabric` over a simulated manager: the wire between, and what can happen to a call on it.

Knows calls, answers and their fates. Must not know what a manager does with an order.
"""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol, TypeVar

import msgspec

from jackfield.fabric.sights import Sights
from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import NEVER, FabricName, OrderID, Seconds
from jackfield.ports import PortError, Retry
from jackfield.sim.loop import world
from jackfield.sim.manager import Manager

T = TypeVar("T")


class Verb(StrEnum):
    """What is called."""

    INVENTORY = "inventory"
    ATTACH = "attach"
    DETACH = "detach"


class Call(msgspec.Struct, frozen=True):
    """A call that is about to be sent."""

    at: Seconds
    fabric: FabricName
    verb: Verb
    order: OrderID = OrderID("")


class Fate(msgspec.Struct, frozen=True):
    """What becomes of a call. The default is nothing out of the ordinary."""

    error: str = ""
    """The manager answers with this, and does nothing."""
    slow: Seconds = Seconds(0.0)
    """The answer, made at once, takes so long to come; NEVER is a manager that is silent."""
    lost: bool = False
    """The answer does not come: the manager did it, and nobody was told."""
    late: Seconds = Seconds(0.0)
    """The manager hears of it so much later, when nobody waits for the answer any more."""
    again: Seconds = NEVER
    """Somewhere on the way the call is repeated after so long, and nobody sees that answer."""
    wrong: bool = False
    """An attach gets another device than was meant."""


FINE = Fate()


class Unanswered(Exception):  # noqa: N818 - what happened, as the cause of what the caller must do
    """No answer came: a real wire shows that by silence or a broken connection."""


class Faults(Protocol):
    """Decides what becomes of calls."""

    def fate(self, call: Call) -> Fate:
        """Return the fate of this call; asked once for each."""


class NoFaults:
    """Every call arrives, every answer too."""

    def fate(self, _: Call) -> Fate:
        """Return the fate of this call."""
        return FINE


class SimFabric:
    """One process's line to a manager. Several may share one manager; what it knows survives them."""

    def __init__(
        self,
        manager: Manager,
        faults: Faults | None = None,
        by: str = "jackfield",
        sights: Sights | None = None,
    ) -> None:
        """Make a line; without `sights` the manager says itself since when things stand as they do."""
        self._manager = manager
        self._sights = sights
        self._by = by
        self._clock = manager.clock
        self._faults = faults or NoFaults()
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._sent = 0
        self._dead = False

    async def inventory(self) -> Inventory:
        """Return what the manager shows."""
        self._live()
        fate = self._fate(Verb.INVENTORY, OrderID(""))
        shown = await self._call(fate, self._manager.inventory)
        return self._sights.shown(shown) if self._sights is not None else shown

    async def attach(self, order: Order) -> Progress:
        """Ask the manager to attach, or how far it is."""
        self._tell(Verb.ATTACH, order)
        fate, sent = self._fate(Verb.ATTACH, order.id), self._clock.now()
        return await self._call(fate, lambda: self._manager.attach(order, sent, wrong=fate.wrong))

    async def detach(self, order: Order) -> Progress:
        """Ask the manager to take back, or how far it is."""
        self._tell(Verb.DETACH, order)
        fate, sent = self._fate(Verb.DETACH, order.id), self._clock.now()
        return await self._call(fate, lambda: self._manager.detach(order, sent))

    async def news(self) -> None:
        """Return when there may be another answer to an order; never, where asking again is a second order."""
        if not self._manager.inventory().traits.knows_orders:
            await asyncio.Event().wait()
        await self._manager.news()

    def stop(self) -> None:
        """Cut the line: what is still on its way does not arrive."""
        for task in tuple(self._under_way.values()):
            task.cancel()

    def kill(self) -> None:
        """Take the line away: whoever uses it from now on ends as if cancelled. What was sent arrives all the same."""
        self._dead = True

    def _live(self) -> None:
        if self._dead:
            raise asyncio.CancelledError

    def _tell(self, verb: Verb, order: Order) -> None:
        self._live()
        for listener in self._manager.asked:
            listener(self._by, verb, order)

    def _fate(self, verb: Verb, order: OrderID) -> Fate:
        return self._faults.fate(Call(self._clock.now(), self._manager.name, verb, order))

    async def _call(self, fate: Fate, execute: Callable[[], T]) -> T:
        patience = self._manager.call_timeout
        if fate.error:
            await self._pass(min(fate.slow, patience))
            raise Retry(fate.error)
        self._later(fate.again, execute)
        if fate.late:
            self._later(fate.late, execute)
            await self._pass(min(fate.slow, patience))
            raise Retry("the call was not answered") from Unanswered()
        answer = execute()
        await self._pass(min(fate.slow, patience))
        if fate.lost or fate.slow >= patience:
            words = "the answer was lost" if fate.lost else f"no answer within {patience:g} s"
            raise Retry(words) from Unanswered()
        return answer

    async def _pass(self, duration: Seconds) -> None:
        if duration:  # a call that takes no time does not let others in between
            await self._clock.sleep(duration)

    def _later(self, delay: Seconds, execute: Callable[[], object]) -> None:
        """Let the manager hear of it in a while; calls older than their time-out are thrown away on the way."""
        if delay >= self._manager.call_timeout:
            return
        self._sent += 1
        self._manager.calls_under_way += 1
        task = asyncio.get_running_loop().create_task(
            self._deliver(delay, execute, self._sent), context=world()
        )
        self._under_way[self._sent] = task

    async def _deliver(self, delay: Seconds, execute: Callable[[], object], number: int) -> None:
        try:
            await self._clock.sleep(delay)
            execute()
        except PortError:
            pass  # nobody waits for this answer
        finally:
            del self._under_way[number]
            self._manager.calls_under_way -= 1
