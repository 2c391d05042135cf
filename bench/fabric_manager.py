"""What `jackfield fabric serve` carries: attach and detach orders with zero attach time, 50 in flight, over HTTP.

Starts it as a user would, in a process of its own with its database on disk: every answer is committed before it is
given. Each of 50 callers attaches a device to its machine and detaches it again, over and over: by each face, with a
client that does no more than it must, and then by each adapter, as `jackfield run` does. In the end the pool must be
whole. Wall time depends on who else uses the machine; the processor time of both sides for an order does not, much.
Prints one JSON object a line and writes all to bench/results/fabric_manager.json. Given names, such as "face fsas-fm",
it measures only these and writes nothing.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import msgspec

from jackfield import fabric
from jackfield.cli.clock import WallClock
from jackfield.codec import fsas, native
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import ModelName, OrderID, PhysicalID, Seconds
from jackfield.ports import Fabric, Retry
from storm.managers import KINDS, MODELS, TENANT, Manager, Plan

RESULTS: Final = Path(__file__).parent / "results" / "fabric_manager.json"
IN_FLIGHT: Final = 50
SECONDS: Final = 10.0
WARM_UP: Final = 2.0
ORDERS_PER_SECOND_MIN: Final = {"native": 500, "fsas-fm": 500}
"""For faces, on two cores that nobody else uses."""
CLUSTER: Final = "00000000-5555-6666-7777-888888888888"
MODEL: Final = ModelName(MODELS[0])
CLOCK: Final = WallClock()
AGAIN: Final = Seconds(0.02)
"""So long after an answer that it is under way an adapter is asked again; `jackfield run` waits longer."""


class Line:
    """One connection, kept alive, for one call at a time."""

    def __init__(self, manager: Manager) -> None:
        host, _, port = manager.url.removeprefix("http://").partition(":")
        self._place = (host, int(port))
        self._head = f"Host: {host}:{port}\r\nAuthorization: Bearer {manager.token.reveal()}\r\n".encode()

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(*self._place)

    async def call(self, method: str, path: str, body: bytes = b"", more: str = "") -> tuple[int, bytes]:
        """Return status and body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\n{more}Content-Length: {len(body)}\r\n".encode()
        self._writer.write(b"".join((head, self._head, b"\r\n", body)))
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = answer.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return int(answer[9:12]), await self._reader.readexactly(int(length or b"0"))

    async def ok(self, method: str, path: str, body: bytes = b"", more: str = "") -> bytes:
        """Return the body of an answer that must be a good one."""
        status, answer = await self.call(method, path, body, more)
        assert status == HTTPStatus.OK, answer
        return answer


# --- each face, and what one caller does there: give back what was attached, to be detached


class Native:
    """The native protocol."""

    def __init__(self, plan: Plan, line: Line, number: int) -> None:
        self._line = line
        self._fabric, self._node = plan.name, plan.nodes[number]
        self._device = PhysicalID(f"a-{number + 1}")
        self._turn = 0

    async def attach(self) -> None:
        """Attach the caller's own device."""
        self._turn += 1
        order = OrderID(f"{self._node}/{self._turn}")
        self._order = Order(order, self._fabric, self._node, MODEL, self._device)
        await self._asked("attach")

    async def detach(self) -> None:
        """Detach it."""
        await self._asked("detach")

    async def _asked(self, verb: str) -> None:
        path, body = native.path(self._fabric, verb), native.encode(self._order)
        answer: Progress = Working()
        while isinstance(answer, Working):
            answer = native.progress(await self._line.ok("POST", path, body, "Prefer: wait=1\r\n"))
        assert isinstance(answer, Done), answer


class FabricManager:
    """Fsas Fabric Manager."""

    def __init__(self, plan: Plan, line: Line, number: int) -> None:
        self._line = line
        self._machine = plan.machine(plan.nodes[number])
        self._path = fsas.update_path(TENANT, self._machine)
        self._body = fsas.attachment(TENANT, self._machine, "gpu", MODEL)

    async def attach(self) -> None:
        """Attach any device of the model."""
        (machine,) = fsas.machines(await self._line.ok("PATCH", self._path, self._body))
        (self._device,) = machine.resources or ()

    async def detach(self) -> None:
        """Detach it."""
        body = fsas.detachment(TENANT, self._machine, "gpu", self._device.res_uuid)
        await self._line.ok("DELETE", self._path, body)


class ClusterManager:
    """Fsas Cluster Manager: says yes at once, and shows what came of it."""

    def __init__(self, plan: Plan, line: Line, number: int) -> None:
        self._line = line
        machine = plan.machine(plan.nodes[number])
        self._path = fsas.cm_machine_path(TENANT, CLUSTER, machine)

    async def attach(self) -> None:
        """Ask for one device, and look until it is there."""
        spec = await self._spec()
        await self._resize(fsas.Resize(increase_resource_count=fsas.Increase(spec.spec_uuid, 1)))
        while not [one for one in (await self._spec()).devices or () if one.status == fsas.ADD_COMPLETE]:
            pass

    async def detach(self) -> None:
        """Ask for none, and look until it is gone."""
        spec = await self._spec()
        (device,) = spec.devices or ()
        await self._resize(
            fsas.Resize(remove_resources=fsas.Remove(spec.spec_uuid, 0, (device.device_id or "",)))
        )
        while (await self._spec()).devices:
            pass

    async def _resize(self, asked: fsas.Resize) -> None:
        await self._line.ok("POST", f"{self._path}/actions/resize", fsas.encode(asked))

    async def _spec(self) -> fsas.CmSpec:
        machine = fsas.cm_machine(await self._line.ok("GET", self._path))
        return next(one for one in machine.resspecs or () if one.model == MODEL)


FACES: Final = {"native": Native, "fsas-fm": FabricManager, "fsas-cm": ClusterManager}


class Adapter:
    """One caller of an adapter, which is all callers' own."""

    def __init__(self, plan: Plan, line: Fabric, number: int, chosen: PhysicalID) -> None:
        self._line = line
        self._plan, self._node = plan, plan.nodes[number]
        self._chosen = chosen
        self._turn = 0

    async def attach(self) -> None:
        """Attach a device, and ask until it is there."""
        self._turn += 1
        order = OrderID(f"{self._node}/{self._turn}")
        self._order = Order(order, self._plan.name, self._node, MODEL, self._chosen)
        answer = await self._settled(self._line.attach)
        self._order = msgspec.structs.replace(self._order, device=answer.device)

    async def detach(self) -> None:
        """Detach it."""
        await self._settled(self._line.detach)

    async def _settled(self, ask: Callable[[Order], Awaitable[Progress]]) -> Done:
        while True:
            try:
                answer = await ask(self._order)
            except Retry:
                answer = Working()
            assert not isinstance(answer, Failed), answer
            if isinstance(answer, Done):
                return answer
            await CLOCK.sleep(AGAIN)


Caller = Native | FabricManager | ClusterManager | Adapter


# --- measuring


class Bench:
    """Fifty callers of one manager, and how long each answer took."""

    def __init__(self, manager: Manager, callers: list[Caller]) -> None:
        self._manager = manager
        self._callers = callers
        self._spans: list[float] = []

    async def measured(self, name: str) -> dict[str, object]:
        """Return the figures."""
        await self._all(WARM_UP)
        busy = self._processor_seconds()
        took = await self._all(SECONDS)
        server, client = (
            after - before for before, after in zip(busy, self._processor_seconds(), strict=True)
        )
        shown = (await self._manager.state()).inventory
        assert not [one for one in shown.devices if one.node], "every device is back in the pool"
        percentiles = statistics.quantiles(self._spans, n=100)
        orders = len(self._spans)
        return {
            "name": name,
            "orders_per_second": round(orders / took),
            "in_flight": IN_FLIGHT,
            "orders": orders,
            "p50_milliseconds": round(percentiles[49] * 1000, 1),
            "p99_milliseconds": round(percentiles[98] * 1000, 1),
            "server_cpu_milliseconds_per_order": round(server / orders * 1000, 2),
            "client_cpu_milliseconds_per_order": round(client / orders * 1000, 2),
            "cores": os.cpu_count(),
        }

    async def _all(self, seconds: float) -> float:
        """Let all of them call for so long; return how long it took."""
        self._spans.clear()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for caller in self._callers:
                group.create_task(self._call(caller, began + seconds))
        return time.perf_counter() - began

    async def _call(self, caller: Caller, until: float) -> None:
        while time.perf_counter() < until:
            for ask in (caller.attach, caller.detach):
                began = time.perf_counter()
                await ask()
                self._spans.append(time.perf_counter() - began)

    def _processor_seconds(self) -> tuple[float, float]:
        """Return what the manager and what we have used of the processor."""
        fields = Path(f"/proc/{self._manager.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK"), time.process_time()


@asynccontextmanager
async def running(kind: str, folder: Path) -> AsyncIterator[Manager]:
    """Have a manager up, with a machine and more than a device for each caller."""
    async with Manager(
        Plan(kind, IN_FLIGHT, foreign=0, devices=IN_FLIGHT, effect_seconds=30.0, queue_seconds=30.0), folder
    ) as manager:
        await manager.start()
        yield manager


async def of_face(kind: str) -> dict[str, object]:
    """Measure a face alone."""
    with tempfile.TemporaryDirectory(prefix="jackfield-bench-") as folder:
        async with running(kind, Path(folder)) as manager:
            lines = [Line(manager) for _ in range(IN_FLIGHT)]
            for line in lines:
                await line.open()
            callers: list[Caller] = [
                FACES[kind](manager.plan, line, number) for number, line in enumerate(lines)
            ]
            return await Bench(manager, callers).measured(f"face {kind}")


async def of_adapter(kind: str) -> dict[str, object]:
    """Measure an adapter and its face together."""
    with tempfile.TemporaryDirectory(prefix="jackfield-bench-") as folder:
        async with AsyncExitStack() as stack:
            manager = await stack.enter_async_context(running(kind, Path(folder)))
            text = json.dumps({"fabrics": [manager.settings(Path(folder))]})
            (settings,) = fabric.parse(text, "bench")
            line = await stack.enter_async_context(fabric.load(settings, os.environ, CLOCK))
            devices = await chosen(line)
            callers: list[Caller] = [
                Adapter(manager.plan, line, number, devices[number]) for number in range(IN_FLIGHT)
            ]
            return await Bench(manager, callers).measured(f"adapter {kind}")


async def chosen(line: Fabric) -> list[PhysicalID]:
    """Return a device for each caller, under the adapter's name for it; none where the manager chooses."""
    shown = await line.inventory()
    if shown.traits.chooses_device:
        return [PhysicalID("")] * IN_FLIGHT
    return [one.id for one in shown.devices if one.model == MODEL]


def main(names: list[str]) -> None:
    """Measure, print and write the figures; fails if a face is too slow."""
    benches = {f"face {kind}": of_face(kind) for kind in FACES}
    benches |= {f"adapter {kind}": of_adapter(kind) for kind in KINDS}
    found = []
    for name, bench in benches.items():
        if names and name not in names:
            bench.close()
            continue
        found.append(asyncio.run(bench))
        print(json.dumps(found[-1]), flush=True)
    if names:
        return
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    for kind, least in ORDERS_PER_SECOND_MIN.items():
        (figures,) = (one for one in found if one["name"] == f"face {kind}")
        if int(str(figures["orders_per_second"])) < least:
            raise SystemExit(f"face {kind}: slower than {least} orders per second")


if __name__ == "__main__":
    main(sys.argv[1:])
