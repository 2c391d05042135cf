"""How fast the Kubernetes client takes in objects: lists of 10,000 claims and 10,000 events, from a loopback server.

The server is another process that has all its bytes ready, so that what is measured is the client: HTTP, decoding, and
telling. Prints JSON, and fails if a figure is out of its bound.
"""

import asyncio
import gc
import json
import multiprocessing
import resource
import sys
from multiprocessing.connection import Connection as Pipe
from time import perf_counter
from typing import Final

import msgspec
from aiohttp import web

from jackfield.codec import encode
from jackfield.kube.client import KubeCluster
from jackfield.kube.connection import Connection
from jackfield.kube.credentials import Fixed
from jackfield.model.claim import ResourceClaim
from jackfield.ports import Changed, Synced
from jackfield.testing import builders as b

OBJECTS: Final = 10_000
PAGE: Final = 500
LISTED_PER_SECOND_MIN: Final = 4_000
TOLD_PER_SECOND_MIN: Final = 4_000
"""A tenth of what a free machine does, since others may use this one."""
MEGABYTE: Final = 1024.0


def claims() -> list[bytes]:
    """Return claims as a server spells them: allocated, reserved, and with what managers wrote about themselves."""
    one = encode(b.claim("c", ready=True))
    managed = [
        {
            "manager": f"manager-{number}",
            "operation": "Update",
            "fieldsV1": {f"f:{name}": {} for name in "abcdef" * 9},
        }
        for number in range(4)
    ]
    one["metadata"]["managedFields"] = managed
    made: list[bytes] = []
    for number in range(OBJECTS):
        one["metadata"] |= {
            "name": f"claim-{number}",
            "uid": f"uid-{number}",
            "resourceVersion": str(number + 1),
        }
        made.append(msgspec.json.encode(one))
    return made


def serve(pipe: Pipe) -> None:
    """Answer lists by page, and watches with one event per object."""
    items = claims()
    pages = [
        b'{"metadata":{"resourceVersion":"%d"%s},"items":[%s]}'
        % (
            OBJECTS,
            b"" if at + PAGE >= OBJECTS else b',"continue":"%d"' % (at + PAGE),
            b",".join(items[at : at + PAGE]),
        )
        for at in range(0, OBJECTS, PAGE)
    ]
    news = b"".join(b'{"type":"MODIFIED","object":%s}\n' % item for item in items)

    async def handler(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=pages[int(request.query.get("continue", "0")) // PAGE])
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(news)
        await asyncio.get_running_loop().create_future()
        return response

    async def main() -> None:
        runner = web.AppRunner(web.Application())
        runner.app.router.add_get("/{path:.*}", handler)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send((runner.addresses[0][1], sum(map(len, pages)), len(news)))
        await asyncio.get_running_loop().create_future()

    asyncio.run(main())


async def measured(port: int) -> dict[str, float]:
    """Return seconds and memory."""
    kept: list[ResourceClaim] = []
    async with KubeCluster(Connection(f"http://127.0.0.1:{port}", Fixed())) as cluster:
        gc.collect()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        changes = cluster.watch(ResourceClaim)
        begun = perf_counter()
        async for change in changes:
            if isinstance(change, Synced):
                break
            assert isinstance(change, Changed)
            assert isinstance(change.object, ResourceClaim)
            kept.append(change.object)
        listed = perf_counter() - begun
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        changes = cluster.watch(ResourceClaim)
        while not isinstance(await anext(changes), Synced):
            pass
        begun = perf_counter()
        for _ in range(OBJECTS):
            await anext(changes)
        told = perf_counter() - begun
        await changes.aclose()
    assert len(kept) == OBJECTS
    return {"list_seconds": listed, "watch_seconds": told, "list_memory_mib": grown / MEGABYTE}


def main() -> int:
    """Measure, print, judge."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port, list_bytes, watch_bytes = ours.recv()
        found = asyncio.run(measured(port))
    finally:
        server.terminate()
        server.join()
    listed, told = OBJECTS / found["list_seconds"], OBJECTS / found["watch_seconds"]
    figures = {
        "objects": OBJECTS,
        "list_megabytes": round(list_bytes / 1e6, 1),
        "listed_per_second": round(listed),
        "list_memory_mib": round(found["list_memory_mib"], 1),
        "watch_megabytes": round(watch_bytes / 1e6, 1),
        "told_per_second": round(told),
    }
    print(json.dumps(figures))
    return 0 if listed >= LISTED_PER_SECOND_MIN and told >= TOLD_PER_SECOND_MIN else 1


if __name__ == "__main__":
    sys.exit(main())
