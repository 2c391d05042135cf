"""What `jackfield fabric serve` carries: attach and detach orders with zero attach time, 50 in flight, over HTTP.

Starts it as a user would, in a process of its own with its database on disk: every answer is committed before it is
given. Each of 50 callers attaches a device and detaches it again, over and over, by the native protocol. In the end the
pool must be whole. Prints one JSON object and writes it to bench/results/fabric_manager.json.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import yaml

from jackfield.codec import native
from jackfield.fabric_manager.folder import Folder
from jackfield.model.fabric import Done, Order
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds

RESULTS: Final = Path(__file__).parent / "results" / "fabric_manager.json"
FABRIC: Final = FabricName("bench")
IN_FLIGHT: Final = 50
SECONDS: Final = 10.0
WARM_UP: Final = 2.0
ORDERS_PER_SECOND_MIN: Final = 500
START_SECONDS_MAX: Final = 30.0


@contextmanager
def running(folder: Folder) -> Iterator[str]:
    """Have it up; yields where it is."""
    folder.make()
    lab = {
        "fabric": FABRIC,
        "machines": [{"name": "n", "count": IN_FLIGHT, "slots": 2}],
        "devices": [{"name": "d", "count": IN_FLIGHT, "model": "A100"}],
        "limits": {"jobs": IN_FLIGHT},
    }
    folder.inventory.write_text(yaml.safe_dump(lab))
    command = [
        sys.executable,
        "-m",
        "jackfield",
        "fabric",
        "serve",
        "--state",
        str(folder.path),
        "--port",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves
    try:
        until = time.monotonic() + START_SECONDS_MAX
        while not folder.url.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("jackfield fabric serve did not start")
            time.sleep(0.05)  # noqa: TID251 - there is no loop yet
        yield folder.url.read_text().strip()
    finally:
        process.terminate()
        process.wait(30)


class Callers:
    """Fifty callers, and how long each answer took."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self.spans: list[float] = []

    async def ask(self, verb: str, order: Order) -> None:
        """Place an order and wait for its end, as an adapter does."""
        began = time.perf_counter()
        path = f"{self._url}{native.path(FABRIC, verb)}"
        headers = {"Prefer": native.preference(Seconds(0.9)), "Content-Type": native.JSON}
        answer: object = None
        while not isinstance(answer, Done):
            async with self._session.post(path, data=native.encode(order), headers=headers) as response:
                body = await response.read()
                assert response.status == HTTPStatus.OK, body
                answer = native.progress(body)
        self.spans.append(time.perf_counter() - began)

    async def caller(self, number: int, until: float) -> None:
        """Attach and detach one device until the time is over."""
        turn = 0
        device, node = PhysicalID(f"d-{number}"), NodeName(f"n-{number}")
        while time.perf_counter() < until:
            turn += 1
            order = Order(OrderID(f"{number}/{turn}/{until}"), FABRIC, node, ModelName("A100"), device)
            await self.ask("attach", order)
            await self.ask("detach", order)

    async def all(self, seconds: float) -> float:
        """Let all of them call for so long; return how long it took."""
        self.spans.clear()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(1, IN_FLIGHT + 1):
                group.create_task(self.caller(number, began + seconds))
        return time.perf_counter() - began


async def measured(url: str, token: str) -> dict[str, object]:
    """Return the figures."""
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=IN_FLIGHT), headers={"Authorization": f"Bearer {token}"}
    ) as session:
        callers = Callers(session, url)
        await callers.all(WARM_UP)
        took = await callers.all(SECONDS)
        async with session.get(f"{url}{native.path(FABRIC, 'inventory')}") as response:
            shown = native.inventory(await response.read())
    assert not [device for device in shown.devices if device.node], "every device is back in the pool"
    percentiles = statistics.quantiles(callers.spans, n=100)
    return {
        "name": "fabric_manager",
        "orders_per_second": round(len(callers.spans) / took),
        "in_flight": IN_FLIGHT,
        "orders": len(callers.spans),
        "p50_milliseconds": round(percentiles[49] * 1000, 1),
        "p99_milliseconds": round(percentiles[98] * 1000, 1),
        "cores": os.cpu_count(),
    }


def main() -> None:
    """Measure, print and write the figures."""
    with tempfile.TemporaryDirectory(prefix="jackfield-bench-") as name:
        folder = Folder(Path(name) / "state")
        with running(folder) as url:
            figures = asyncio.run(measured(url, folder.read_secret().reveal()))
    print(json.dumps(figures))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2) + "\n")
    if int(str(figures["orders_per_second"])) < ORDERS_PER_SECOND_MIN:
        raise SystemExit(f"slower than {ORDERS_PER_SECOND_MIN} orders per second")


if __name__ == "__main__":
    main()
