"""What an inventory must be like to be believed, whoever shows it.

Knows the model of a fabric. Must not know any manager. An adapter translates what it is shown; that no two devices have
one name, that names can be printed, that there is not more than anybody could have, is asked here once for all of them.
"""

import math
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Protocol, Self

from jackfield.model.fabric import Inventory, Order, Progress
from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Fabric, Retry

DEVICES_MAX: Final = 100_000
MACHINES_MAX: Final = 10_000
NAME_LENGTH_MAX: Final = 1000
UNSOUND_AGAIN: Final = Seconds(30.0)
"""When a manager is asked again that contradicts itself."""


class Line(Fabric, Protocol):
    """The Fabric port over a connection that ends with the context."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Sound:
    """A line whose inventories are looked over before anybody believes them."""

    def __init__(self, line: Line, fabric: FabricName) -> None:
        self._line = line
        self._fabric = fabric
        self._believed: Inventory | None = None

    def __repr__(self) -> str:
        return repr(self._line)

    async def __aenter__(self) -> Self:
        await self._line.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._line.__aexit__(kind, error, trace)

    async def inventory(self) -> Inventory:
        """Return what the manager shows. Raises Retry if that cannot be."""
        shown = await self._line.inventory()
        if shown is not self._believed:  # the same object is shown while nothing changes
            wrong = next(contradictions(shown), "")
            if wrong:
                raise Retry(
                    f"fabric {self._fabric}: what the manager shows cannot be: {wrong}", UNSOUND_AGAIN
                )
            self._believed = shown
        return shown

    async def attach(self, order: Order) -> Progress:
        """Attach, or say how far it is."""
        return await self._line.attach(order)

    async def detach(self, order: Order) -> Progress:
        """Detach, or say how far it is."""
        return await self._line.detach(order)


def contradictions(shown: Inventory) -> Iterator[str]:
    """Return what in an inventory cannot be."""
    if len(shown.devices) > DEVICES_MAX or len(shown.machines) > MACHINES_MAX:
        yield f"{len(shown.devices)} devices and {len(shown.machines)} machines are more than there can be"
        return
    yield from _names("device", [one.id for one in shown.devices])
    yield from _names("machine", [one.node for one in shown.machines])
    for device in shown.devices:
        texts = (device.model, device.type, device.serial, device.switch, device.node, device.order)
        if not all(_legible(text) for text in texts) or not math.isfinite(device.since):
            yield f"something that device {device.id} is said to have cannot be printed"
    for machine in shown.machines:
        if machine.slots < 0 or not math.isfinite(machine.since):
            yield f"machine {machine.node} has {machine.slots} slots since {machine.since}"
    for model, count in shown.free.items():
        if count < 0 or not _legible(model):
            yield f"{count} devices of model {model!r:.100} are free"
    if not 0 < shown.traits.call_timeout < math.inf or shown.traits.jobs < 1:
        yield f"it works on {shown.traits.jobs} orders for {shown.traits.call_timeout} s"


def _names(kind: str, names: list[str]) -> Iterator[str]:
    bad = next((one for one in names if not one or not _legible(one)), None)
    if bad is not None:
        yield f"a {kind} is called {bad!r:.100}"
    if len(set(names)) < len(names):
        seen: dict[str, int] = {}
        for one in names:
            seen[one] = seen.get(one, 0) + 1
        yield f"two {kind}s are called {next(name for name, count in seen.items() if count > 1)!r:.100}"


def _legible(text: str) -> bool:
    return len(text) <= NAME_LENGTH_MAX and text.isprintable()
