"""An embedded API in a process of its own, with little patience, for whoever wants to hurt it.

Prints one line of JSON when it is up: where it is, its token, its authority. Ends when its standard input does.
"""

import asyncio
import base64
import sys
from typing import Final

import msgspec

from jackfield.cli import up
from jackfield.cli.clock import WallClock
from jackfield.cluster.face import certificates
from jackfield.cluster.face.api import Api
from jackfield.cluster.face.limits import Limits
from jackfield.cluster.face.server import LOOPBACK, ApiServer, Gate
from jackfield.model.account import ServiceAccount

TOKEN: Final = "t0ken"  # noqa: S105 - a secret of nobody
IMPATIENT: Final = Limits(
    connections=300,
    watches=100,
    unread_bytes=64 * 1024 * 1024,
    handshake_seconds=1.0,
    first_word_seconds=1.0,
    body_seconds=1.0,
    read_seconds=2.0,
    idle_seconds=3.0,
)


def _complain(what: str) -> None:
    sys.stderr.write(f"{what}\n")
    sys.stderr.flush()


async def _serve() -> None:
    clock = WallClock()
    store = up.new_store(clock)
    store.create(ServiceAccount, {"metadata": {"name": "default", "namespace": "default"}})
    gate = Gate(certificates.made(clock.now(), LOOPBACK), TOKEN, limits=IMPATIENT)
    api = Api(store, clock.now, "v1.36.4", _complain)
    async with ApiServer(store, api, clock, gate) as server:
        authority = base64.b64encode(gate.certificates.authority).decode()
        line = msgspec.json.encode({"url": server.url, "authority": authority})
        sys.stdout.write(f"{line.decode()}\n")
        sys.stdout.flush()
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve())
