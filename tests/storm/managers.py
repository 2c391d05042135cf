"""The fabric managers of a storm: `jackfield fabric serve` as processes that are killed, one for each kind.

Knows processes, files and the manager's own extras. Must not know what should come of a storm.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Self

import aiohttp
import msgspec
import yaml

from jackfield import fabric
from jackfield.cli.clock import WallClock
from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.fabric_manager.faces import USER
from jackfield.fabric_manager.faces.control import PREFIX, Attach, Shown
from jackfield.fabric_manager.faces.fsas import MACHINE_LABEL
from jackfield.fabric_manager.faults import Fault
from jackfield.fabric_manager.folder import Folder
from jackfield.fabric_manager.store import Event
from jackfield.model.fabric import Done, Inventory, Order, Progress
from jackfield.model.names import FabricName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Retry

START_SECONDS_MAX: Final = 60.0
CALL_SECONDS_MAX: Final = 5.0
MODELS: Final = ("A100", "B200", "C30", "D40", "E50", "F60")
WANTED_MAX: Final = 3
"""Devices that one caller wants at a time."""
SPARE: Final = 6
"""Devices of a model that may be gone, ill, or attached for somebody who wants another."""
TENANT: Final = "00000000-1111-2222-3333-444444444444"
NEC_ORDERS: Final = 5
"""So many times as long an order may wait where one is carried out at a time, not one for each machine."""
CREDENTIALS: Final = ("realm", "client_id", "client_secret", "username")


class Plan(msgspec.Struct, frozen=True):
    """How large a fabric is, and how it is spoken to."""

    kind: str
    machines: int
    slots: int = 8
    foreign: int = 2
    """Devices that somebody else has on our machines."""
    devices: int = 0
    """Of each model; as many as can be wanted, and a few more, if nobody says."""
    effect_seconds: float = 3.0
    """Within this time a call that a manager without order ids was sent takes effect; it may be killed meanwhile."""
    queue_seconds: float = 2.0

    @property
    def name(self) -> FabricName:
        """The fabric's name."""
        return FabricName(f"rack-{self.kind}")

    @property
    def nodes(self) -> tuple[NodeName, ...]:
        """Its machines."""
        return tuple(NodeName(f"{self.kind}-{number}") for number in range(1, self.machines + 1))

    @property
    def models(self) -> tuple[str, ...]:
        """The models it has."""
        return MODELS

    @property
    def callers(self) -> tuple[tuple[NodeName, str], ...]:
        """Who wants devices, of what model on which machine: one everywhere, and two on every third."""
        some = [(node, MODELS[number % len(MODELS)]) for number, node in enumerate(self.nodes)]
        more = [(node, MODELS[(number + 1) % len(MODELS)]) for number, node in enumerate(self.nodes)]
        return (*some, *more[::3])

    @property
    def _wanted(self) -> int:
        callers = [model for _, model in self.callers]
        return max(map(callers.count, MODELS)) * WANTED_MAX + self.foreign + SPARE

    def machine(self, node: NodeName) -> str:
        """Return what Fsas' managers call a machine."""
        return f"machine-{node}"

    @property
    def taken(self) -> dict[PhysicalID, NodeName]:
        """What somebody else has."""
        return {PhysicalID(f"a-{number}"): self.nodes[number - 1] for number in range(1, self.foreign + 1)}

    def lab(self) -> dict[str, object]:
        """Return the manager's inventory: as many devices as can be wanted at a time, and a few more."""
        return {
            "fabric": self.name,
            "machines": [
                {"name": node, "slots": self.slots, "labels": {MACHINE_LABEL: self.machine(node)}}
                for node in self.nodes
            ],
            "devices": [
                {"name": model[0].lower(), "count": self.devices or self._wanted, "model": model}
                for model in MODELS
            ],
            "limits": {"jobs": 64},
        }


class Process:
    """A command of ours, as a process that may be killed."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self.kills = 0

    @property
    def pid(self) -> int:
        """Its id, while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll() if self._process is not None else 0

    def start(self) -> None:
        """Start it."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "jackfield", *self._arguments), stdout=log, stderr=log
            )

    def kill(self) -> None:
        """End it by SIGKILL, where it stands."""
        assert self.status is None, f"it ended by itself:\n{self.last_words()}"
        self._end(signal.SIGKILL)
        self.kills += 1

    def pause(self) -> None:
        """Stop it where it stands, by SIGSTOP: its connections stay open, and nobody answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it if it runs, paused or not."""
        if self.status is None:
            self.resume()
            self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """Return the end of what it said."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-30:])


class Manager:
    """One manager: its folder, its process, and a line to its extras."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self._folder = Folder(folder / f"manager-{plan.name}")
        self._folder.make()
        self._folder.inventory.write_text(yaml.safe_dump(plan.lab()))
        self.token = self._folder.secret()
        self.url = f"http://127.0.0.1:{_free_port()}"
        state, port = str(self._folder.path), self.url.rpartition(":")[2]
        log = folder / f"manager-{plan.name}.log"
        self.process = Process(log, "fabric", "serve", "--state", state, "--port", port)
        self._session: aiohttp.ClientSession | None = None
        self._clock = WallClock()

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {self.token.reveal()}"},
            timeout=aiohttp.ClientTimeout(total=CALL_SECONDS_MAX),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()
        self.process.close()

    # --- its life

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        self._folder.url.unlink(missing_ok=True)
        self.process.start()
        until = self._clock.now() + START_SECONDS_MAX
        while not self._folder.url.exists():
            assert self.process.status is None, f"it did not start:\n{self.process.last_words()}"
            assert self._clock.now() < until, f"it did not start in time:\n{self.process.last_words()}"
            await self._clock.sleep(Seconds(0.02))

    # --- how it is spoken to

    def line(self) -> NativeFabric:
        """Return a line to its native face, for whoever looks on."""
        settings = FabricSettings(self.plan.name, "native", self.url, call_timeout_seconds=Seconds(2.0))
        return NativeFabric(settings, lambda: Secret(self.token.reveal()))

    def settings(self, folder: Path, url: str = "") -> dict[str, object]:
        """Return its entry in the operator's fabrics file; it may be reached by another way than straight."""
        way = WAYS[self.plan.kind](self, folder)
        return {
            "name": self.plan.name,
            "type": self.plan.kind,
            "url": url or self.url,
            "callTimeoutSeconds": 5.0,
            **way,
        }

    @property
    def token_file(self) -> Path:
        """Where its token is."""
        return self._folder.token

    async def attach_by_hand(self, device: PhysicalID, node: NodeName) -> None:
        """Be somebody else who has a device."""
        wanted = Attach(OrderID(f"somebody-else/{device}"), device, node, Seconds(5.0))
        answer = await self._call("POST", "attach", wanted)
        assert isinstance(msgspec.json.decode(answer, type=Progress), Done), answer

    async def state(self) -> Shown:
        """Return all that it has to say."""
        return msgspec.json.decode(await self._call("GET", "state"), type=Shown)

    async def events(self, after: int) -> tuple[Event, ...]:
        """Return what happened after that number."""
        return msgspec.json.decode(await self._call("GET", f"events?after={after}"), type=tuple[Event, ...])

    async def set_fault(self, fault: Fault) -> Fault:
        """Set a fault."""
        return msgspec.json.decode(await self._call("POST", "faults", fault), type=Fault)

    async def clear_fault(self, name: str) -> None:
        """Clear a fault."""
        await self._call("DELETE", f"faults/{name}")

    async def _call(self, method: str, path: str, body: object = None) -> bytes:
        assert self._session is not None
        data = None if body is None else msgspec.json.encode(body)
        async with self._session.request(method, f"{self.url}{PREFIX}/{path}", data=data) as response:
            answer = await response.read()
            response.raise_for_status()
            return answer


class Bus:
    """What stands on the machines as they themselves would see it: no fault of a protocol hides it, or makes it old."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    async def inventory(self) -> Inventory:
        """Return what is attached where."""
        try:
            return (await self._manager.state()).inventory
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Retry(str(error)) from error

    async def attach(self, order: Order) -> Progress:
        """Refuse: who looks on orders nothing."""
        raise AssertionError(order)

    async def detach(self, order: Order) -> Progress:
        """Refuse likewise."""
        raise AssertionError(order)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


# --- how each kind of manager is spoken to, as an operator would write it down


def _native(manager: Manager, _: Path) -> dict[str, object]:
    return {"tokenFile": str(manager.token_file)}


def _fsas(manager: Manager, folder: Path) -> dict[str, object]:
    directory = folder / f"credentials-{manager.plan.name}"
    directory.mkdir(exist_ok=True)
    for name in CREDENTIALS:
        (directory / name).write_text(f"{name}-of-a-storm")
    (directory / "password").write_text(manager.token.reveal())
    options: dict[str, object] = {
        "tenant": TENANT,
        "models": [{"name": one} for one in manager.plan.models],
        "slots": manager.plan.slots,
        "credentialsDirectory": str(directory),
        "effectSeconds": manager.plan.effect_seconds,
        "queueSeconds": manager.plan.queue_seconds,
        "jobs": 50,
        "foreign": list(manager.plan.taken),
    }
    if manager.plan.kind == "fsas-cm":
        options["cluster"] = "00000000-5555-6666-7777-888888888888"
    return {"options": options}


def _nec(manager: Manager, _: Path) -> dict[str, object]:
    plan = manager.plan
    options: dict[str, object] = {
        "models": [{"name": one} for one in manager.plan.models],
        "slots": plan.slots,
        "effectSeconds": plan.effect_seconds,
        "queueSeconds": plan.queue_seconds * NEC_ORDERS,
        "foreign": list(plan.taken),
    }
    return {"tokenFile": str(manager.token_file), "options": options}


def _redfish(manager: Manager, folder: Path) -> dict[str, object]:
    plan, directory = manager.plan, folder / f"credentials-{manager.plan.name}"
    directory.mkdir(exist_ok=True)
    (directory / "username").write_text(USER)
    (directory / "password").write_text(manager.token.reveal())
    options: dict[str, object] = {
        "models": [{"name": one} for one in manager.plan.models],
        "slots": plan.slots,
        "credentialsDirectory": str(directory),
        "effectSeconds": plan.effect_seconds,
        "queueSeconds": plan.queue_seconds,
        "reservationSeconds": plan.effect_seconds + plan.queue_seconds,
        "jobs": 50,
        "foreign": list(plan.taken),
    }
    if plan.kind == "sunfish":
        options["identity"] = "block"  # as the manager calls it, by which nodes see it
    return {"options": options}


def _liqid(manager: Manager, _: Path) -> dict[str, object]:
    plan = manager.plan
    options: dict[str, object] = {
        "user": USER,
        "models": [{"name": one} for one in manager.plan.models],
        "slots": plan.slots,
        "effectSeconds": plan.effect_seconds,
        "queueSeconds": plan.queue_seconds,
        "editSeconds": plan.effect_seconds + plan.queue_seconds,
        "jobs": 50,
        "foreign": list(plan.taken),
    }
    return {"tokenFile": str(manager.token_file), "options": options}


WAYS: Final[Mapping[str, Callable[[Manager, Path], dict[str, object]]]] = {
    "native": _native,
    "fsas-fm": _fsas,
    "fsas-cm": _fsas,
    "nec": _nec,
    "redfish": _redfish,
    "sunfish": _redfish,
    "liqid": _liqid,
}
FACES: Final[Mapping[str, str]] = {
    "native": "native",
    "fsas-fm": "fsas",
    "fsas-cm": "fsas",
    "nec": "nec",
    "redfish": "redfish",
    "sunfish": "redfish",
    "liqid": "liqid",
}
"""Under which name the manager knows who calls."""
KINDS: Final = tuple(one for one in fabric.TYPES if one in WAYS)
