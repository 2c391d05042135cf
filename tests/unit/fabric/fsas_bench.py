"""A manager of our own behind its Fsas face, and the two adapters that speak to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from jackfield import fabric
from jackfield.fabric import FabricSettings, Line
from jackfield.fabric_manager.durations import Distribution, Fixed
from jackfield.fabric_manager.faces.fsas import Fsas
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import Seconds
from jackfield.ports import Clock
from unit.fabric_manager.lab import FABRIC, TOKEN, lab, managing

TYPES: Final = ("fsas-fm", "fsas-cm")
PREFIX: Final = "RACK_A_"
USERNAME: Final = "a-user-of-this-test"
CLIENT: Final = "a-client-of-this-test"
CLIENT_SECRET: Final = "a-client-secret-of-this-test"  # noqa: S105 - there is no such client
ENVIRONMENT: Final = {
    "RACK_A_REALM": "cdi",
    "RACK_A_CLIENT_ID": CLIENT,
    "RACK_A_CLIENT_SECRET": CLIENT_SECRET,
    "RACK_A_USERNAME": USERNAME,
    "RACK_A_PASSWORD": TOKEN.reveal(),
}
SECRETS: Final = (USERNAME, CLIENT, CLIENT_SECRET, TOKEN.reveal())


def settings(kind: str, url: str, **more: object) -> FabricSettings:
    options: dict[str, object] = {
        "tenant": "00000000-1111-2222-3333-444444444444",
        "models": [{"name": "A100"}, {"name": "H100"}],
        "slots": 10,
        "credentialsPrefix": PREFIX,
        "effectSeconds": 10.0,
        "queueSeconds": 20.0,
        "jobs": 3,
        **more,
    }
    if kind == "fsas-cm":
        options["cluster"] = "00000000-5555-6666-7777-888888888888"
    return FabricSettings(FABRIC, kind, url, call_timeout_seconds=Seconds(5.0), options=options)


def line(kind: str, url: str, clock: Clock, **more: object) -> Line:
    return fabric.load(settings(kind, url, **more), ENVIRONMENT, clock)


@asynccontextmanager
async def serving(
    folder: Path, duration: Distribution = Fixed(), clock: Clock | None = None, lifetime: float = 300.0
) -> AsyncIterator[Server]:
    async with (
        managing(folder, lab(duration), clock=clock) as manager,
        Server(manager, (Fsas(Seconds(lifetime)),), Gate(TOKEN)) as server,
    ):
        yield server
