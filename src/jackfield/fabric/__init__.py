"""The Fabric port over the managers that exist: one file per way to speak to one, all listed here.

Knows how each is spoken to. Must not know why a device is moved.
"""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Protocol, Self

from jackfield.fabric import native
from jackfield.fabric.settings import BadFabric, FabricSettings, faults, parse
from jackfield.fabric.vendors import fsas_cm, fsas_fm
from jackfield.ports import Clock, Fabric

__all__ = ["TYPES", "BadFabric", "FabricSettings", "Line", "load", "parse"]


class Line(Fabric, Protocol):
    """The Fabric port over a connection that ends with the context."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


TYPES: Final[Mapping[str, Callable[[FabricSettings, Mapping[str, str], Clock], Line]]] = {
    "native": native.connect,
    "fsas-fm": fsas_fm.connect,
    "fsas-cm": fsas_cm.connect,
}
"""The ways to speak to a manager, by the word in the settings."""


def load(settings: FabricSettings, environment: Mapping[str, str], clock: Clock) -> Line:
    """Return the line to a fabric's manager; nothing is sent yet. Raises BadFabric naming fabric and setting."""
    connect = TYPES.get(settings.type)
    wrong = list(faults(settings))
    if connect is None:
        wrong.insert(0, f"type: {settings.type!r} is none of {', '.join(TYPES)}")
    if connect is None or wrong:
        raise BadFabric("\n".join(f"fabric {settings.name}: {one}" for one in wrong))
    try:
        return connect(settings, environment, clock)
    except BadFabric as error:
        raise BadFabric(f"fabric {settings.name}: {error}") from error
