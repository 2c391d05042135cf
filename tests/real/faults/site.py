"""What an ordeal in real time is about: a real control plane, two replicas, fabric managers, simulated nodes.

Replicas and managers are processes, and every line from a replica to the API server and to a manager is a proxy of
ours. Nodes are simulated in this process and believe the managers' inventories. Knows how the parts are put together
and what they are called. Must not know what goes wrong, nor what should come of it.
"""

from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import yaml

from jackfield.cli import live
from jackfield.cli.clock import WallClock
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Conflict
from jackfield.sim.chance import Chance
from jackfield.sim.hardware import Hardware
from jackfield.testing.control_plane import ControlPlane
from real.faults.draw import API, REPLICAS, Ordeal
from real.faults.proxy import Line
from real.site import Replica, Silent
from storm.managers import Manager

NAMESPACES: Final = ("jackfield-node", "jackfield-controllers")
CLIENTS: Final = ("machines", "kubelet", "jackfield-node", "hardware", "users", "witness")
READY_SECONDS_MAX: Final = 120.0
LOOK: Final = Seconds(0.2)
LEADS: Final = "leads fabric"


class Site:
    """All of it, while the context is open."""

    def __init__(self, plane: ControlPlane, ordeal: Ordeal, folder: Path) -> None:
        self.plane = plane
        self.ordeal = ordeal
        self.clock = WallClock()
        self.managers = {f"manager-{one.name}": Manager(one, folder) for one in ordeal.racks}
        self.lines: dict[str, Line] = {}
        """By who speaks to whom, as in `replica-1>apiserver`."""
        self.replicas: dict[str, Replica] = {}
        self.clients: dict[str, KubeCluster] = {}
        self._folder = folder
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._connect(stack)
            for manager in self.managers.values():
                await stack.enter_async_context(manager)
                await manager.start()
            await self._build_nodes(stack)
            (self._folder / "policy.yaml").write_text(
                yaml.safe_dump(msgspec.to_builtins(self.ordeal.setting.policy))
            )
            self._write_fabrics("nobody", {})
            stack.push_async_callback(self._kill_replicas)
            for name in REPLICAS:
                await self._add_replica(name, stack)
            await self._ready()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    # --- its parts

    async def _connect(self, stack: AsyncExitStack) -> None:
        way = connection.load(self.plane.kubeconfig)
        for name in CLIENTS:
            self.clients[name] = await stack.enter_async_context(KubeCluster(way, name))
        for name in NAMESPACES:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with suppress(Conflict):
                await self.clients["hardware"].raw("POST", "/api/v1/namespaces", body)

    async def _build_nodes(self, stack: AsyncExitStack) -> None:
        setting = msgspec.structs.replace(self.ordeal.setting, fabrics=())
        chance = Chance(self.ordeal.seed).branch("hardware")
        self.hardware = Hardware(setting, self.clock, chance, Silent(), self._client)
        for manager in self.managers.values():
            line = await stack.enter_async_context(manager.line())
            self.hardware.mirror(manager.plan.name, line)
        await stack.enter_async_context(self.hardware)

    def _client(self, name: str) -> KubeCluster:
        return self.clients.get(name, self.clients["hardware"])

    async def _add_replica(self, name: str, stack: AsyncExitStack) -> None:
        to_api = await stack.enter_async_context(Line(self.plane.server))
        self.lines[f"{name}>{API}"] = to_api
        urls = {}
        for target, manager in self.managers.items():
            line = await stack.enter_async_context(Line(manager.url))
            self.lines[f"{name}>{target}"] = line
            urls[manager.plan.name] = line.url
        kubeconfig = self._folder / f"kubeconfig-{name}"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(self.plane.kubeconfig.read_text().replace(self.plane.server, to_api.url))
        arguments = [
            *("--policy", str(self._folder / "policy.yaml")),
            *("--fabrics", str(self._write_fabrics(name, urls))),
            *("--kubeconfig", str(kubeconfig)),
            *("--log", "json"),
        ]
        self.replicas[name] = Replica(arguments, name, self._folder)
        await self.replicas[name].start()

    def _write_fabrics(self, name: str, urls: dict[FabricName, str]) -> Path:
        """Write down where the managers are for somebody, who may have to go by our lines."""
        path = self._folder / f"fabrics-{name}.yaml"
        fabrics = [one.settings(self._folder, urls.get(one.plan.name, "")) for one in self.managers.values()]
        path.write_text(yaml.safe_dump({"fabrics": fabrics}))
        return path

    async def _kill_replicas(self) -> None:
        for one in self.replicas.values():
            await one.kill()

    async def _ready(self) -> None:
        """Wait until somebody leads a fabric: by then users find the kinds that they ask for."""
        until = self.clock.now() + READY_SECONDS_MAX
        while not any(line.because.startswith(LEADS) for one in self.replicas.values() for line in one.lines):
            assert self.clock.now() < until, f"the replicas do not come up:\n{self.last_words()}"
            await self.clock.sleep(LOOK)

    # --- what is looked at

    @property
    def given(self) -> live.Given:
        """Where somebody looks who is no part of it, and whose lines nobody cuts."""
        return live.Given(
            self._folder / "policy.yaml", self._folder / "fabrics-nobody.yaml", self.plane.kubeconfig, None
        )

    def last_words(self) -> str:
        """Return what the processes last said."""
        words = [f"--- {name}\n{one.process.last_words()}" for name, one in self.managers.items()]
        for name, replica in self.replicas.items():
            said = [
                f"{one.time} {one.by} {one.object} {one.what} {one.because} {one.error}"
                for one in replica.lines
            ]
            words += [f"--- {name}", *said[-40:], replica.errors]
        return "\n".join(words)
