"""A whole site on a real control plane: simulated hardware beside it, `jackfield run` as processes of their own.

Knows how the parts are put together and what tests ask of them. Must not know what should come of it.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, Unpack

import msgspec
import yaml

from jackfield.cli.clock import WallClock
from jackfield.fabric.settings import Secret
from jackfield.kube import connection
from jackfield.kube.client import KubeCluster
from jackfield.model.claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from jackfield.model.composition import ComposableResource
from jackfield.model.event import Event
from jackfield.model.meta import Object, ObjectMeta
from jackfield.model.names import FabricName, Key, ModelName, Seconds
from jackfield.model.pod import Container, Pod, PodResourceClaim, PodSpec
from jackfield.model.policy import DRIVER, DeviceModel, Policy
from jackfield.ports import Changed, Conflict, Gone, Synced
from jackfield.sim.chance import Chance, Fixed
from jackfield.sim.fabric import Call, Fate, Faults, NoFaults, SimFabric
from jackfield.sim.face import Face
from jackfield.sim.hardware import Hardware
from jackfield.sim.pool import Movement
from jackfield.sim.setting import Class, Nodes, Setting
from jackfield.sim.spec import Batch, FabricSpec
from jackfield.testing.control_plane import ControlPlane

TOKEN = "only-for-this-test"  # noqa: S105 - guards a simulated manager on loopback
FABRIC = FabricName("rack-a")
POLL_SECONDS = 0.05


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


class Line(msgspec.Struct, frozen=True):
    """A line of a controller's log."""

    time: str
    by: str
    what: str
    object: str = ""
    phase: str = ""
    claim: str = ""
    because: str = ""
    error: str = ""
    hop: float = 0.0


class Stage(TypedDict, total=False):
    """What a test may want to say of its site."""

    nodes: int
    devices: int
    slots: int
    attach: float
    driver: str
    policy: Policy


class Wishes(TypedDict, total=False):
    """What a test may want to say of its pod."""

    template: str
    claim: str
    seconds: float
    node: str
    namespace: str
    scheduler: str


def setting(**said: Unpack[Stage]) -> Setting:
    """Return a site of alike nodes on one fabric with one model."""
    driver = said.get("driver", DRIVER)
    model = DeviceModel(
        1,
        ModelName("A100"),
        "a100",
        driver_name=driver,
        dra_attributes={"productName": "A100"},
    )
    chosen = said.get("policy", Policy(hold_seconds=Seconds(30.0), inventory_seconds=Seconds(5.0)))
    return Setting(
        nodes=(Nodes("n", said.get("nodes", 4), fabric=FABRIC, slots=said.get("slots", 8)),),
        fabrics=(
            FabricSpec(
                FABRIC,
                batches=(Batch(ModelName("A100"), said.get("devices", 8)),),
                attach=Fixed(Seconds(said.get("attach", 0.3))),
                detach=Fixed(Seconds(0.2)),
            ),
        ),
        classes=(Class("gpu", f"device.driver in ['{DRIVER}', '{driver}']"),),
        policy=msgspec.structs.replace(chosen, models=(model,)),
        pod_start=Fixed(Seconds(0.1)),
        pod_stop=Fixed(Seconds(0.1)),
        real_api=True,
    )


class Replica:
    """One `jackfield run`, as a process."""

    def __init__(self, arguments: Sequence[str], name: str, folder: Path, identity: str = "") -> None:
        self.name = name
        self._arguments = [*arguments, "--identity", identity or name]
        self._log = folder / f"{name}.log"
        self._errors = folder / f"{name}.err"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with self._log.open("ab") as log, self._errors.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "jackfield", "run", *self._arguments, stdout=log, stderr=errors
            )

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Its exit status, if it has ended."""
        return self._process.returncode if self._process is not None else None

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """End it by SIGKILL, where it stands."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        """Ask it to end; return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return await asyncio.wait_for(self._process.wait(), 20)

    async def ended(self) -> int:
        """Wait until it ends by itself; return its exit status."""
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), 120)

    @property
    def lines(self) -> list[Line]:
        text = self._log.read_bytes() if self._log.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        return [msgspec.json.decode(one, type=Line) for one in whole.splitlines()]

    @property
    def errors(self) -> str:
        return self._errors.read_text() if self._errors.exists() else ""


class Heard:
    """Faults that write down what was called."""

    def __init__(self, calls: list[Call], faults: Faults) -> None:
        self._calls = calls
        self._faults = faults

    def fate(self, call: Call) -> Fate:
        """Return the fate of a call."""
        self._calls.append(call)
        return self._faults.fate(call)


class Site:
    """Control plane, hardware and controllers, while the context is open."""

    def __init__(self, plane: ControlPlane, stage: Setting, folder: Path, replicas: int = 1) -> None:
        self.plane = plane
        self.stage = stage
        self.clock = WallClock()
        self.movements: list[Movement] = []
        self.calls: list[Call] = []
        """Every call that a manager was sent."""
        self.faults: Faults = NoFaults()
        """What happens to calls; set before the context opens."""
        self.kubeconfig = plane.kubeconfig
        """As whom the replicas come; set before the context opens."""
        self._folder = folder
        self._count = replicas
        self._stack = AsyncExitStack()
        self._clients: dict[str, KubeCluster] = {}

    async def __aenter__(self) -> Self:
        way = connection.load(self.plane.kubeconfig)
        names = ("machines", "kubelet", "jackfield-node", "hardware", "test")
        async with AsyncExitStack() as stack:
            for name in names:
                self._clients[name] = await stack.enter_async_context(KubeCluster(way, name))
            self.cluster = self._clients["test"]
            await self._namespaces()
            self.hardware = Hardware(self.stage, self.clock, Chance(1), Silent(), self._client)
            self.hardware.movements.append(self.movements.append)
            await stack.enter_async_context(self.hardware)
            self.fabrics = {
                name: SimFabric(one, Heard(self.calls, self.faults))
                for name, one in self.hardware.managers.items()
            }
            face = await stack.enter_async_context(Face(dict(self.fabrics), Secret(TOKEN)))
            self._write_files(face.url)
            self.replicas: list[Replica] = []
            stack.push_async_callback(self._kill_all)
            for _ in range(self._count):
                await self.replica().start()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    def replica(self, identity: str = "") -> Replica:
        """Return one more replica, which is still to be started; it may come under another's name."""
        one = Replica(self._arguments(), f"replica-{len(self.replicas) + 1}", self._folder, identity)
        self.replicas.append(one)
        return one

    async def _kill_all(self) -> None:
        for one in self.replicas:
            await one.kill()

    def _client(self, name: str) -> KubeCluster:
        return self._clients.get(name, self._clients["hardware"])

    async def _namespaces(self) -> None:
        for name in ("jackfield-node", "jackfield-controllers"):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            with suppress(Conflict):  # it may stand there with the roles that are bound in it
                await self.cluster.raw("POST", "/api/v1/namespaces", body)

    def _write_files(self, url: str) -> None:
        fabrics = [
            {"name": one, "type": "native", "url": url, "tokenVariable": "JACKFIELD_TEST_TOKEN"}
            for one in self.fabrics
        ]
        (self._folder / "fabrics.yaml").write_text(yaml.safe_dump({"fabrics": fabrics}))
        policy = msgspec.to_builtins(self.stage.policy)
        (self._folder / "policy.yaml").write_text(yaml.safe_dump(policy))
        os.environ["JACKFIELD_TEST_TOKEN"] = TOKEN

    def _arguments(self) -> list[str]:
        return [
            *("--policy", str(self._folder / "policy.yaml")),
            *("--fabrics", str(self._folder / "fabrics.yaml")),
            *("--kubeconfig", str(self.kubeconfig)),
            *("--log", "json"),
        ]

    # --- what users do

    async def template(self, name: str = "gpu", count: int = 1) -> None:
        await self.cluster.create(
            ResourceClaimTemplate(
                metadata=ObjectMeta(name=name, namespace="default"),
                spec=ResourceClaimTemplateSpec(spec=_claims(count)),
            )
        )

    async def claim(
        self, name: str, *requests: DeviceRequest, count: int = 1, namespace: str = "default"
    ) -> ResourceClaim:
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=requests)) if requests else _claims(count)
        return await self.cluster.create(
            ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)
        )

    async def pod(self, name: str, *claims: str, **said: Unpack[Wishes]) -> Pod:
        """Create a pod with any number of claims by name, or with one by template; it may want a certain node."""
        seconds, claim, template, node = (
            said.get("seconds", 0),
            said.get("claim", ""),
            said.get("template", ""),
            said.get("node", ""),
        )
        notes = {"jackfield.dev/run-seconds": str(seconds)} if seconds else {}
        used = [
            PodResourceClaim(one, resource_claim_name=one) for one in (*claims, *((claim,) if claim else ()))
        ]
        used += [PodResourceClaim("gpu", resource_claim_template_name=template)] if template else []
        return await self.cluster.create(
            Pod(
                metadata=ObjectMeta(name=name, namespace=said.get("namespace", "default"), annotations=notes),
                spec=PodSpec(
                    scheduler_name=said.get("scheduler", "default-scheduler"),
                    containers=(Container(name="main", image="none"),),
                    node_selector={"kubernetes.io/hostname": node} if node else {},
                    resource_claims=tuple(used),
                ),
            )
        )

    async def delete(self, kind: type[Object], name: str, namespace: str = "default") -> None:
        one = await self.cluster.read(kind, Key(namespace, name))
        await self.cluster.delete(kind, one.key, one.metadata.resource_version)

    # --- what tests look at

    async def all(self, kind: type[Object]) -> list[Object]:
        found = []
        async with aclosing(self.cluster.watch(kind)) as changes:
            async for change in changes:
                if isinstance(change, Changed):
                    found.append(change.object)
                if isinstance(change, Synced):
                    break
        return found

    async def pods(self) -> dict[str, Pod]:
        return {one.metadata.name: one for one in await self.all(Pod) if isinstance(one, Pod)}

    async def resources(self) -> list[ComposableResource]:
        return [one for one in await self.all(ComposableResource) if isinstance(one, ComposableResource)]

    async def events(self, about: str) -> list[Event]:
        found = [one for one in await self.all(Event) if isinstance(one, Event)]
        return [one for one in found if one.involved_object.name == about]

    @property
    def attached(self) -> list[str]:
        devices = (one for manager in self.hardware.managers.values() for one in manager.inventory().devices)
        return [one.id for one in devices if one.node]

    @property
    def attaches(self) -> int:
        return sum(one.present for one in self.movements)

    @property
    def lines(self) -> list[Line]:
        return sorted((line for one in self.replicas for line in one.lines), key=lambda line: line.time)

    async def until(self, condition: Callable[[], object], seconds: float = 60) -> None:
        """Wait until a condition holds, which may be asked of a coroutine; fail with the log if it does not."""
        deadline = self.clock.now() + seconds
        while True:
            held = condition()
            if asyncio.iscoroutine(held):
                held = await held
            if held:
                return
            assert self.clock.now() < deadline, self.report()
            await self.clock.sleep(Seconds(POLL_SECONDS))

    async def phases(self, phase: str, count: int) -> bool:
        """Whether that many pods are in a phase."""
        return sum(one.status.phase == phase for one in (await self.pods()).values()) == count

    async def none_left(self) -> bool:
        """Whether no resource of ours is left in the books."""
        return not await self.resources()

    async def phase(self, pod: str) -> str:
        try:
            return (await self.cluster.read(Pod, Key("default", pod))).status.phase
        except Gone:
            return "Gone"

    def report(self) -> str:
        """What the controllers last said."""
        lines = [
            f"{one.time} {one.by} {one.object} {one.what} {one.because} {one.error}" for one in self.lines
        ]
        errors = [f"{one.name}: {one.errors}" for one in self.replicas if one.errors]
        return "\n".join(["not in time; the log ends:", *lines[-40:], *errors])


def _claims(count: int) -> ResourceClaimSpec:
    request = DeviceRequest(name="gpu", exactly=ExactDeviceRequest(device_class_name="gpu", count=count))
    return ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))
