"""The rest of a storm: an API server and nodes in this process, `jackfield run` as a process that is killed.

Knows how the parts are put together. Must not know what should come of a storm. What the API server has outlives the
operator, as etcd does.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import yaml

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cluster.api import EmbeddedCluster, PoliteClient
from jackfield.cluster.upkeep.collector import Collector
from jackfield.model.names import ModelName, Seconds
from jackfield.model.policy import DeviceModel, Policy
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.hardware import Hardware
from jackfield.sim.host import HostSpec
from jackfield.sim.setting import Nodes, Setting
from storm.managers import MODELS, Bus, Manager, Plan, Process

POLICY: Final = Policy(
    models=tuple(DeviceModel(number, ModelName(name), name.lower()) for number, name in enumerate(MODELS, 1)),
    hold_seconds=Seconds(0.0),
    blame_seconds=Seconds(0.5),
    attach_deadline_seconds=Seconds(20.0),
    poll_seconds=Seconds(0.5),
    inventory_seconds=Seconds(2.0),
    heartbeat_seconds=Seconds(120.0),
)


class Silent:
    """Hears of what the plugins do and keeps nothing."""

    def did(self, *_: object) -> None:
        """Hear of an action."""

    def waits(self, *_: object) -> None:
        """Hear of a wait."""

    def found(self, *_: object, over: bool) -> None:
        """Hear of a finding."""

    def hop(self, *_: object) -> None:
        """Hear how long it took."""


class Site:
    """Everything but the weather, while the context is open."""

    def __init__(self, plans: Sequence[Plan], folder: Path, parts: Sequence[str] = ()) -> None:
        self._folder = folder
        self.clock = WallClock()
        self.managers = tuple(Manager(plan, folder) for plan in plans)
        self.operator = Process(
            folder / "operator.log",
            "run",
            *("--policy", str(folder / "policy.yaml")),
            *("--fabrics", str(folder / "fabrics.yaml")),
            *("--kubeconfig", str(folder / "kubeconfig")),
            *("--identity", "storm"),
            *(word for part in parts for word in ("--only", part)),
        )
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        store = up.new_store(self.clock)
        self._cluster = EmbeddedCluster(store, PoliteClient)
        self.client = self._cluster.client("storm")
        async with AsyncExitStack() as stack:
            stack.callback(self.operator.close)
            server = await stack.enter_async_context(up.serving(store, self.clock))
            (self._folder / "kubeconfig").write_bytes(up.way_in(server))
            for manager in self.managers:
                await stack.enter_async_context(manager)
                await manager.start()
                for device, node in manager.plan.taken.items():
                    await manager.attach_by_hand(device, node)
            self._write_files()
            await stack.enter_async_context(self._nodes())
            collector = asyncio.create_task(Collector(self._cluster.client("collector"), self.clock).run())
            stack.callback(collector.cancel)
            self.operator.start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def _nodes(self) -> Hardware:
        nodes = tuple(
            Nodes(node, fabric=one.plan.name, slots=one.plan.slots)
            for one in self.managers
            for node in one.plan.nodes
        )
        setting = Setting(nodes, policy=POLICY, host=HostSpec(Fixed(Seconds(0.05))), real_api=True)
        hardware = Hardware(setting, self.clock, Chance(1), Silent(), self._cluster.client)
        for manager in self.managers:
            hardware.mirror(manager.plan.name, Bus(manager))
        return hardware

    def _write_files(self) -> None:
        fabrics = {"fabrics": [one.settings(self._folder) for one in self.managers]}
        (self._folder / "fabrics.yaml").write_text(yaml.safe_dump(fabrics))
        (self._folder / "policy.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(POLICY)))
