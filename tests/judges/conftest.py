"""A fabric manager in another thread, over TLS, for clients and judges that block."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import pytest
import trustme

from jackfield.cli.clock import WallClock
from jackfield.fabric_manager import hardware
from jackfield.fabric_manager.durations import Fixed, Times
from jackfield.fabric_manager.faces import USER
from jackfield.fabric_manager.faces.redfish import Redfish
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.server import Gate, Server
from jackfield.model.names import Seconds
from unit.fabric_manager.lab import TOKEN, managing

INVENTORY = Path(__file__).resolve().parents[2] / "examples" / "fabric" / "inventory.yaml"


class Service:
    """Serves from its own thread until it is told to end."""

    user = USER
    password = TOKEN.reveal()

    def __init__(self, folder: Path, seconds: float) -> None:
        self.authority = folder / "ca.pem"
        self.url = ""
        self._folder = folder
        lab = hardware.read(INVENTORY).lab
        self._hardware = Hardware(msgspec.structs.replace(lab, times=Times(Fixed(Seconds(seconds)), Fixed())))
        self._up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(30.0)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(30.0)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        async with (
            managing(self._folder, self._hardware, clock=WallClock()) as manager,
            Server(manager, (Redfish(answer_seconds=Seconds(0.0)),), Gate(TOKEN, tls=context)) as server,
        ):
            self.url = server.url
            self._up.set()
            await self._ended.wait()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Return a service that takes a second to attach, so that there are tasks."""
    with Service(tmp_path, 1.0) as made:
        yield made
