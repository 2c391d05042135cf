"""A manager of our own behind its Redfish face, and the adapters that speak to it, in every way they can."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from jackfield import fabric
from jackfield.fabric import FabricSettings, Line
from jackfield.fabric_manager.durations import Distribution, Fixed
from jackfield.fabric_manager.faces import USER
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.fabric_manager.hardware import Lab
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import Seconds
from jackfield.ports import Clock
from unit.fabric_manager.lab import FABRIC, SMALL, TOKEN, lab, managing

PREFIX: Final = "RACK_A_"
ENVIRONMENT: Final = {"RACK_A_USERNAME": USER, "RACK_A_PASSWORD": TOKEN.reveal()}
MODES: Final[Mapping[str, Mapping[str, object]]] = {
    "action": {},
    "patch": {"actions": False, "authentication": "basic"},
    "constrained": {"composition": "constrained"},
}
"""The ways in which a device is attached, and with them the ways in."""


def settings(url: str, **more: object) -> FabricSettings:
    options: dict[str, object] = {
        "models": [{"name": "A100"}, {"name": "H100"}],
        "slots": 10,
        "credentialsPrefix": PREFIX,
        "effectSeconds": 15.0,
        "queueSeconds": 35.0,
        "jobs": 3,
        **more,
    }
    return FabricSettings(FABRIC, "redfish", url, call_timeout_seconds=Seconds(5.0), options=options)


def line(url: str, clock: Clock, **more: object) -> Line:
    return fabric.load(settings(url, **more), ENVIRONMENT, clock)


@asynccontextmanager
async def serving(
    folder: Path,
    duration: Distribution = Fixed(),
    *,
    clock: Clock | None = None,
    face: Redfish | None = None,
    base: Lab = SMALL,
) -> AsyncIterator[Server]:
    async with (
        managing(folder, lab(duration, base), clock=clock) as manager,
        Server(manager, (face or Redfish(),), Gate(TOKEN)) as server,
    ):
        yield server
