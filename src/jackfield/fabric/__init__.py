"""The Fabric port over the managers that exist: one file per way to speak to one, all listed here.

Knows how each is spoken to. Must not know why a device is moved.
"""

from collections.abc import Callable, Mapping
from typing import Final

from jackfield.fabric import native
from jackfield.fabric.settings import BadFabric, FabricSettings, faults, parse
from jackfield.fabric.sound import Line, Sound
from jackfield.fabric.vendors import fsas_cm, fsas_fm, liqid, nec, redfish, sunfish
from jackfield.ports import Clock

__all__ = ["TYPES", "BadFabric", "FabricSettings", "Line", "load", "parse"]


TYPES: Final[Mapping[str, Callable[[FabricSettings, Mapping[str, str], Clock], Line]]] = {
    "native": native.connect,
    "fsas-fm": fsas_fm.connect,
    "fsas-cm": fsas_cm.connect,
    "nec": nec.connect,
    "redfish": redfish.connect,
    "sunfish": sunfish.connect,
    "liqid": liqid.connect,
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
        return Sound(connect(settings, environment, clock), settings.name)
    except BadFabric as error:
        raise BadFabric(f"fabric {settings.name}: {error}") from error
