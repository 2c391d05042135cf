"""What `jackfield up` carries: 5,000 nodes and 40,000 devices, lists, a hundred watches, 500 writes a second.

Starts it as a user would, in a process of its own, and speaks to it over HTTPS. A hundred clients watch ConfigMaps
while 500 a second are written; each carries when it was sent, and every watch must hear of all of them. Falling behind
would show as a delay that grows: those of the first and of the last second are told apart. Prints one JSON object a
figure and writes all of them to bench/results/embedded_api.json.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
import yaml

RESULTS: Final = Path(__file__).parent / "results" / "embedded_api.json"
NODES: Final = 5_000
DEVICES_PER_NODE: Final = 8
WATCHES: Final = 100
WRITES_PER_SECOND: Final = 500
SECONDS: Final = 20
WRITERS: Final = 8
DELAY_MAX: Final = 1.0
"""Seconds after which a write must have been heard of by everybody, in the middle."""
LISTS: Final = ("nodes", "resourceslices", "pods", "leases")
PATHS: Final = {
    "nodes": "/api/v1/nodes",
    "resourceslices": "/apis/resource.k8s.io/v1/resourceslices",
    "pods": "/api/v1/pods",
    "leases": "/apis/coordination.k8s.io/v1/leases",
}
MAPS: Final = "/api/v1/namespaces/default/configmaps"
TABLE: Final = "application/json;as=Table;g=meta.k8s.io;v=v1"
SENT: Final = re.compile(rb'"sent":"([0-9.]+)"')

Figures = dict[str, object]


def world(folder: Path) -> Path:
    """Write the world of the bench."""
    local = [{"driver": "gpu.example.com", "count": DEVICES_PER_NODE, "attributes": {"productName": "L4"}}]
    nodes = [{"name": "node", "count": NODES, "local": local}]
    path = folder / "world.yaml"
    path.write_text(yaml.safe_dump({"setting": {"nodes": nodes}}))
    return path


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path, float]]:
    """Have it up; yields the process, the way in, and how long it took."""
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "jackfield", "up", "--world", str(world(folder)), "--log", "off"]
    began = time.monotonic()
    command += ["--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 - ourselves
    try:
        while not kubeconfig.exists():
            if process.poll() is not None:
                raise SystemExit(f"jackfield up ended with {process.returncode}")
            time.sleep(0.1)  # noqa: TID251 - there is no loop yet
        yield process, kubeconfig, time.monotonic() - began
    finally:
        process.terminate()
        process.wait(30)


class Api:
    """A client that counts bytes instead of reading them."""

    def __init__(self, kubeconfig: Path) -> None:
        said = yaml.safe_load(kubeconfig.read_text())
        self._server = said["clusters"][0]["cluster"]["server"]
        self._token = said["users"][0]["user"]["token"]
        authority = base64.b64decode(said["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=authority)

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Yield a session that knows the server and the token."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            self._server, connector=connector, headers=headers, timeout=timeout, read_bufsize=2**20
        ) as session:
            yield session


async def lists(api: Api) -> Figures:
    """How long lists take, whole, as tables and in pages of 500."""
    found: Figures = {}
    async with api.session() as session:
        for name in LISTS:
            whole, size = await _timed(session, PATHS[name])
            table, _ = await _timed(session, PATHS[name], accept=TABLE)
            pages = await _paged(session, PATHS[name])
            found[name] = {"whole, s": whole, "MB": size, "table, s": table, "pages of 500, s": pages}
    return found


async def _timed(
    session: aiohttp.ClientSession, path: str, accept: str = "application/json"
) -> tuple[float, float]:
    began = time.monotonic()
    async with session.get(path, headers={"Accept": accept}) as answer:
        assert answer.status == HTTPStatus.OK, await answer.text()
        body = await answer.read()
    return round(time.monotonic() - began, 3), round(len(body) / 1e6, 1)


async def _paged(session: aiohttp.ClientSession, path: str) -> float:
    began, token = time.monotonic(), ""
    while True:
        async with session.get(path, params={"limit": "500", "continue": token}) as answer:
            assert answer.status == HTTPStatus.OK, await answer.text()
            token = (await answer.json())["metadata"].get("continue", "")
        if not token:
            return round(time.monotonic() - began, 3)


class Ear:
    """One watch: counts events, and remembers how old the newest of each chunk was."""

    def __init__(self) -> None:
        self.heard = 0
        self.delays: list[tuple[float, float]] = []

    async def listen(self, session: aiohttp.ClientSession, version: str) -> None:
        """Watch until cancelled."""
        query = {"watch": "true", "resourceVersion": version}
        async with session.get(MAPS, params=query) as answer:
            assert answer.status == HTTPStatus.OK, await answer.text()
            async for chunk in answer.content.iter_any():
                now = time.time()  # noqa: TID251 - compared with what the writer wrote
                self.heard += chunk.count(b"\n")
                found = SENT.search(chunk)
                if found:
                    self.delays.append((now, now - float(found[1])))


async def writes(api: Api) -> Figures:
    """A hundred watches while 500 ConfigMaps a second are written."""
    total = WRITES_PER_SECOND * SECONDS
    ears = [Ear() for _ in range(WATCHES)]
    async with api.session() as listening, api.session() as writing:
        async with writing.get(MAPS) as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        tasks = [asyncio.get_running_loop().create_task(ear.listen(listening, version)) for ear in ears]
        began = time.monotonic()
        await asyncio.gather(*(_write(writing, number, began) for number in range(WRITERS)))
        written = time.monotonic() - began
        deadline = time.monotonic() + 30
        while min(ear.heard for ear in ears) < total and time.monotonic() < deadline:  # noqa: ASYNC110 - as below
            await asyncio.sleep(0.05)  # noqa: TID251 - counted by a hundred ears, and nobody to tell
        heard = time.monotonic() - began
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return _verdict(ears, total, written, heard)


async def _write(session: aiohttp.ClientSession, number: int, began: float) -> None:
    """Write every so many-eighth ConfigMap at its time; late ones are not left out."""
    for place in range(number, WRITES_PER_SECOND * SECONDS, WRITERS):
        await asyncio.sleep(max(0.0, began + place / WRITES_PER_SECOND - time.monotonic()))  # noqa: TID251
        body = {"metadata": {"name": f"map-{place}"}, "data": {"sent": f"{time.time():.6f}"}}  # noqa: TID251
        async with session.post(MAPS, json=body) as answer:
            assert answer.status == HTTPStatus.CREATED, await answer.text()
            await answer.read()


def _verdict(ears: list[Ear], total: int, written: float, heard: float) -> Figures:
    delays = [(at, delay) for ear in ears for at, delay in ear.delays]
    first = min(at for at, _ in delays)
    last = max(at for at, _ in delays)
    middle = statistics.median(delay for _, delay in delays)
    late = statistics.median(delay for at, delay in delays if at > last - 1)
    early = statistics.median(delay for at, delay in delays if at < first + 1)
    complete = all(ear.heard == total for ear in ears)
    rate = total / written
    return {
        "watches": WATCHES,
        "writes": total,
        "writes per second": round(rate, 1),
        "all heard after the last write, s": round(heard - written, 2),
        "every watch heard of every write": complete,
        "delay, median, s": round(middle, 3),
        "delay in the first second, s": round(early, 3),
        "delay in the last second, s": round(late, 3),
        "met": complete and rate >= WRITES_PER_SECOND * 0.98 and middle <= DELAY_MAX,
    }


def memory(pid: int) -> float:
    """Return the resident memory of a process, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


def work(pid: int) -> float:
    """Return the seconds that a process has worked."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def _measured(kubeconfig: Path, pid: int) -> dict[str, Figures]:
    api = Api(kubeconfig)
    listed = await lists(api)
    before, began = work(pid), time.monotonic()
    written = await writes(api)
    seconds = time.monotonic() - began
    written["server's work per second, s"] = round((work(pid) - before) / seconds, 2)
    return {"lists": listed, "writes": written}


def main() -> int:
    """Run it; return the exit status."""
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as (process, kubeconfig, seconds):
        before = memory(process.pid)
        found = asyncio.run(_measured(kubeconfig, process.pid))
        found["process"] = {
            "nodes": NODES,
            "devices": NODES * DEVICES_PER_NODE,
            "start, s": round(seconds, 1),
            "memory after start, MiB": before,
            "memory in the end, MiB": memory(process.pid),
        }
    for figure, said in found.items():
        sys.stdout.write(json.dumps({figure: said}) + "\n")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=2) + "\n")
    return 0 if found["writes"]["met"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
