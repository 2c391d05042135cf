"""Connections that are given up: nothing of them is left behind."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from jackfield.cli.clock import WallClock
from jackfield.cluster.face import certificates
from jackfield.kube.bucket import Bucket
from jackfield.kube.connection import Connection, Trust
from jackfield.kube.credentials import Fixed
from jackfield.kube.transport import Call, Transport
from jackfield.ports import Retry

PATIENCE_SECONDS = 20.0


@contextmanager
def standing_still() -> Iterator[Connection]:
    """Serve TLS as a program does that was stopped after it had read a request: no answer, and no good-bye."""
    proof = certificates.made(WallClock().now(), "127.0.0.1")
    over = threading.Event()

    def serve(door: socket.socket) -> None:
        line, _ = door.accept()
        with proof.context.wrap_socket(line, server_side=True) as secured:
            secured.recv(2**16)
            over.wait(PATIENCE_SECONDS)

    with socket.create_server(("127.0.0.1", 0)) as door:
        server = threading.Thread(target=serve, args=(door,))
        server.start()
        try:
            yield Connection(
                f"https://127.0.0.1:{door.getsockname()[1]}", Fixed(), Trust(proof.authority.decode())
            )
        finally:
            over.set()
            server.join()


def test_a_call_that_got_no_answer_leaves_no_connection_behind() -> None:
    async def main(to: Connection) -> None:
        async with Transport(to, "tests", Bucket(10, 10)) as transport:
            with pytest.raises(Retry, match="no answer in time"):
                await transport.ask(Call("GET", "/", seconds_max=0.5))

    with standing_still() as to:
        asyncio.run(main(to))
        gc.collect()  # whoever was left behind says so now, which fails the test
