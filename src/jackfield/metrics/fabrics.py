"""A manager as it is, with every call counted and timed.

Knows what an answer is called when it is counted. Must not know what is asked for.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from jackfield.metrics import catalogue
from jackfield.metrics.catalogue import Counts
from jackfield.model.fabric import Done, Failed, Inventory, Order, Progress, Working
from jackfield.model.names import FabricName
from jackfield.ports import Bug, Clock, Conflict, Fabric, Gone, PortError, Refused, Retry

T = TypeVar("T", Inventory, Progress)

ERRORS = {Retry: "retry", Gone: "gone", Refused: "refused", Conflict: "conflict", Bug: "bug"}
ANSWERS = {Working: "working", Done: "done", Failed: "failed", Inventory: "done"}
VERBS = ("inventory", "attach", "detach")


class CountedFabric:
    """`ports.Fabric` over another one."""

    def __init__(self, name: FabricName, fabric: Fabric, counts: Counts, clock: Clock) -> None:
        self._name = name
        self._fabric = fabric
        self._counts = counts
        self._clock = clock
        self.asked: Callable[[Order], None] = lambda _: None
        """Hears of every order to attach, before its manager does."""

    async def inventory(self) -> Inventory:
        """Return what is there."""
        return await self._counted("inventory", self._fabric.inventory())

    async def attach(self, order: Order) -> Progress:
        """Attach."""
        self.asked(order)
        return await self._counted("attach", self._fabric.attach(order))

    async def detach(self, order: Order) -> Progress:
        """Take back what this order attached and close it."""
        return await self._counted("detach", self._fabric.detach(order))

    async def _counted(self, verb: str, call: Awaitable[T]) -> T:
        began = self._clock.now()
        try:
            answer = await call
        except PortError as error:
            self._took(verb, _kind(error), began)
            raise
        self._took(verb, ANSWERS[type(answer)], began)
        return answer

    def _took(self, verb: str, result: str, began: float) -> None:
        self._counts.count(catalogue.MANAGER_CALLS, self._name, verb, result)
        self._counts.time(catalogue.MANAGER_SECONDS, self._clock.now() - began, self._name, verb)


def _kind(error: PortError) -> str:
    return next((word for kind, word in ERRORS.items() if isinstance(error, kind)), "bug")
