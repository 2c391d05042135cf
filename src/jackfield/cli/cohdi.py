"""What `jackfield run` goes by where no file says it: CoHDI's own settings, as they stand in the cluster.

Knows how they become settings of ours, and that secrets stay in memory. Must not know what may be derived from what.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from jackfield.core import derive
from jackfield.core.derive import Derived, Manager
from jackfield.fabric import FabricSettings
from jackfield.kube import cohdi
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import Connection
from jackfield.model.names import Seconds
from jackfield.model.policy import Policy
from jackfield.ports import Clock, Refused, Retry

PREFIX: Final = "JACKFIELD_COHDI_"
"""What the names begin with under which CoHDI's credentials are handed on; no process sees them but ours."""
CALL_SECONDS: Final = Seconds(10.0)
START_SECONDS_MAX: Final = Seconds(120.0)


class Taken(msgspec.Struct, frozen=True):
    """Settings that were taken over."""

    policy: Policy
    fabrics: tuple[FabricSettings, ...]
    environment: Mapping[str, str]


def taken(way: Connection, clock: Clock, note: Callable[[str], None]) -> Taken:
    """Return CoHDI's settings as ours. Raises Refused, saying all that is in the way."""
    return asyncio.run(_read(way, clock, note))


async def _read(way: Connection, clock: Clock, note: Callable[[str], None]) -> Taken:
    until = clock.now() + START_SECONDS_MAX
    async with KubeCluster(way, "jackfield") as cluster:
        while True:
            try:
                return await _taken(cluster, note)
            except Retry as error:
                if clock.now() > until:
                    raise Refused(f"the API server cannot be used: {error}") from error
                note(f"waiting for the API server: {error}")
                await clock.sleep(max(Seconds(1.0), error.after))


async def _taken(cluster: KubeCluster, note: Callable[[str], None]) -> Taken:
    told = {name: os.environ[name] for name in derive.VARIABLES if name in os.environ}
    found = await cohdi.settings(cluster, told)
    came_to = derive.derived(found)
    faults = [*came_to.faults, *(_runs(one.namespace, one.name) for one in derive.running(found))]
    if faults:
        raise Refused("\n".join(("CoHDI's settings cannot be taken over:", *(f"  {one}" for one in faults))))
    note("no --policy and no --fabrics: CoHDI's settings are taken over, and what it attached")
    for words in came_to.notes:
        note(words)
    credentials, certificate = await cohdi.credentials(cluster)
    named = {f"{PREFIX}{name.upper()}": value for name, value in credentials.items()}
    return Taken(came_to.policy, _fabrics(came_to, certificate), {**os.environ, **named})


def _runs(namespace: str, name: str) -> str:
    return (
        f"Deployment {namespace}/{name} still runs: two would attach and detach side by side; "
        "stop CoHDI: jackfield migrate cohdi --apply"
    )


def _fabrics(came_to: Derived, certificate: str) -> tuple[FabricSettings, ...]:
    vouched = _file(certificate) if certificate.strip() else ""
    models = [{"name": one.cdi_model_name, "type": one.type} for one in came_to.policy.models]
    return tuple(_fabric(one, vouched, models) for one in came_to.managers)


def _fabric(manager: Manager, vouched: str, models: list[dict[str, str]]) -> FabricSettings:
    cluster = {"cluster": manager.cluster} if manager.cluster else {}
    options = {
        "tenant": manager.tenant,
        **cluster,
        "credentialsPrefix": PREFIX,
        "fabricId": int(manager.name),
        "models": models,
        "machines": dict(manager.machines),
    }
    return FabricSettings(
        name=manager.name,
        type=manager.type,
        url=manager.url,
        ca_file=vouched if manager.url.startswith("https:") else "",
        call_timeout_seconds=CALL_SECONDS,
        options=options,
    )


def _file(text: str) -> str:
    """Return a file that only this process has and that is gone with it: our root file system may be read-only."""
    number = os.memfd_create("cohdi-certificate")
    os.write(number, text.encode())
    return f"/proc/self/fd/{number}"
