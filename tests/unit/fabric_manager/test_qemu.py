"""Devices that QEMU plugs into guests, by a monitor that a task plays; `tests/guests` has a real one."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from jackfield.fabric_manager import wiring
from jackfield.fabric_manager.backends import BackendError
from jackfield.fabric_manager.backends.qemu import name
from jackfield.fabric_manager.backends.qmp import Monitor
from jackfield.fabric_manager.hardware import Hardware
from jackfield.fabric_manager.manager import Manager
from jackfield.model.fabric import Done, Failed, Order, Progress
from jackfield.model.names import ModelName, NodeName, PhysicalID, Seconds
from unit.fabric_manager.lab import SMALL, managing, order, places

LONG = Seconds(60.0)
"""Real seconds that nothing here takes."""
FIRST = "jackfield-a-1"
GREETING = {"QMP": {"version": {}, "capabilities": ["oob"]}}
Json = dict[str, object]


class Guest:
    """A QEMU with two ports, whose guest lets go of a device as it is told to."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "qmp.sock"
        self.ports: dict[str, list[str]] = {"rp1": [], "rp2": []}
        self.asked: list[Json] = []
        self.lets_go = "later"
        """at once, later, never, with an error, or as the line breaks."""
        self.greets = True
        self.lines = 0
        self._pending: set[str] = set()
        self._writer: asyncio.StreamWriter | None = None

    @property
    def commands(self) -> list[str]:
        return [str(one["execute"]) for one in self.asked if one["execute"] != "qmp_capabilities"]

    def plugged(self) -> list[str]:
        return [*itertools.chain(*self.ports.values())]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        server = await asyncio.start_unix_server(self._serve, self.socket)
        async with server:
            try:
                yield
            finally:
                self.hang_up()

    def hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines += 1
        self._writer = writer
        if self.greets:
            self._say(GREETING)
        while line := await reader.readline():
            question = msgspec.json.decode(line, type=dict[str, object])
            self.asked.append(question)
            self._answer(question)
        writer.close()

    def _say(self, message: object) -> None:
        if self._writer is not None:
            self._writer.write(msgspec.json.encode(message) + b"\r\n")

    def _event(self, event: str, device: str) -> None:
        self._say({"event": event, "data": {"device": device, "path": "/machine"}, "timestamp": {}})

    def _answer(self, question: Json) -> None:
        number = question["id"]
        said = msgspec.convert(question.get("arguments", {}), dict[str, object])
        match question["execute"]:
            case "query-pci":
                self._event("NIC_RX_FILTER_CHANGED", "net0")  # events come between question and answer
                self._say({"return": [{"bus": 0, "devices": self._devices()}], "id": number})
            case "device_add":
                self._say({**self._add(said), "id": number})
            case "device_del":
                self._delete(str(said["id"]), number)
            case _:
                self._say({"return": {}, "id": number})

    def _devices(self) -> list[Json]:
        host: Json = {"qdev_id": "", "slot": 0}
        ports: list[Json] = [
            {"qdev_id": port, "pci_bridge": _bridge(ids)} for port, ids in self.ports.items()
        ]
        return [host, *ports]

    def _add(self, said: Json) -> Json:
        if said["driver"] == "nonsense":
            return {"error": {"class": "GenericError", "desc": "'nonsense' is not a valid device model name"}}
        if said["driver"] != "usb-mouse":
            self.ports[str(said.get("bus", "rp1"))].append(str(said["id"]))
        return {"return": {}}

    def _delete(self, device: str, number: object) -> None:
        if device not in self.plugged():
            self._say(_error("DeviceNotFound", f"Device '{device}' not found", number))
            return
        if device in self._pending and self.lets_go != "as the line breaks":
            words = f"Device {device} is already in the process of unplug"
            self._say(_error("GenericError", words, number))
        elif self.lets_go == "at once":
            self.let_go(device)  # its event comes before the answer
            self._say({"return": {}, "id": number})
        else:
            self._pending.add(device)
            self._say({"return": {}, "id": number})
        if self.lets_go == "later":
            asyncio.get_running_loop().call_later(0.02, self.let_go, device)
        elif self.lets_go == "with an error":
            self._event("DEVICE_UNPLUG_GUEST_ERROR", device)
        elif self.lets_go == "as the line breaks":
            self.hang_up()
            self.let_go(device)

    def let_go(self, device: str) -> None:
        for ids in self.ports.values():
            if device in ids:
                ids.remove(device)
                self._event("DEVICE_DELETED", device)


def _bridge(ids: list[str]) -> Json:
    return {"bus": {"number": 1}, "devices": [{"qdev_id": one} for one in ids]} if ids else {"bus": {}}


def _error(kind: str, words: str, number: object) -> Json:
    return {"error": {"class": kind, "desc": words}, "id": number}


def lab(guest: Guest, driver: str = "edu", seconds: Seconds = LONG) -> Hardware:
    virtual = wiring.Virtual(driver=driver, properties={"serial": "{device}/{serial}", "dma_mask": 4096})
    machine = wiring.Guest(socket=str(guest.socket), buses=("rp1", "rp2"))
    backend = wiring.Qemu(
        machines={NodeName("n-1"): machine, NodeName("n-2"): machine},
        models={ModelName("A100"): virtual, ModelName("H100"): virtual},
        timeout_seconds=seconds,
    )
    return Hardware(msgspec.structs.replace(SMALL, backend=backend))


async def settled(manager: Manager, verb: str, of: Order) -> Progress:
    ask = manager.attach if verb == "attach" else manager.detach
    return await manager.settle(lambda: ask(of, "native"), of.id, LONG)


def on(
    tmp_path: Path, guest: Guest, play: Callable[[Manager], Awaitable[None]], of: Hardware | None = None
) -> None:
    async def main() -> None:
        async with guest.running(), managing(tmp_path, of or lab(guest)) as manager:
            await play(manager)

    asyncio.run(main())


# --- what goes well


def test_a_device_is_plugged_into_a_free_port_and_unplugged_again(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.ports["rp1"] = ["net1"]  # somebody else's

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        assert guest.ports == {"rp1": ["net1"], "rp2": [FIRST]}
        (added,) = [one["arguments"] for one in guest.asked if one["execute"] == "device_add"]
        serial = manager.hardware.devices[PhysicalID("a-1")].serial
        assert added == {
            "driver": "edu",
            "id": FIRST,
            "bus": "rp2",
            "serial": f"a-1/{serial}",
            "dma_mask": 4096,
        }
        assert isinstance(await settled(manager, "detach", order("o")), Done)
        assert guest.ports == {"rp1": ["net1"], "rp2": []}
        assert guest.commands == ["query-pci", "device_add", "query-pci", "device_del"]
        assert guest.lines == 1

    on(tmp_path, guest, play)


@pytest.mark.parametrize("lets_go", ["at once", "later", "as the line breaks"])
def test_no_way_to_let_go_is_missed(tmp_path: Path, lets_go: str) -> None:
    guest = Guest(tmp_path)
    guest.lets_go = lets_go

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        assert isinstance(await settled(manager, "detach", order("o")), Done)
        assert guest.plugged() == []

    on(tmp_path, guest, play)


def test_what_is_plugged_already_is_attached_and_what_is_gone_is_detached(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.ports["rp2"] = [FIRST]

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        assert guest.commands == ["query-pci"]
        guest.ports["rp2"] = []
        assert isinstance(await settled(manager, "detach", order("o")), Done)

    on(tmp_path, guest, play)


def test_two_at_a_time_never_get_the_same_port(tmp_path: Path) -> None:
    guest = Guest(tmp_path)

    async def play(manager: Manager) -> None:
        both = (order("o"), order("p", "a-2"))
        ends = await asyncio.gather(*(settled(manager, "attach", one) for one in both))
        assert [type(one) for one in ends] == [Done, Done]
        assert sorted(map(len, guest.ports.values())) == [1, 1]

    on(tmp_path, guest, play)


def test_a_line_that_broke_is_made_anew(tmp_path: Path) -> None:
    guest = Guest(tmp_path)

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        guest.hang_up()
        assert isinstance(await settled(manager, "attach", order("p", "a-2")), Done)
        assert guest.lines == 2

    on(tmp_path, guest, play)


@pytest.mark.parametrize("killed", [True, False])
def test_a_guest_that_has_ended_has_let_go_of_everything(tmp_path: Path, *, killed: bool) -> None:
    guest = Guest(tmp_path)

    async def main() -> None:
        async with managing(tmp_path, lab(guest)) as manager:
            async with guest.running():
                assert isinstance(await settled(manager, "attach", order("o")), Done)
            if not killed:
                guest.socket.unlink()  # as QEMU does when it is told to end
            assert isinstance(await settled(manager, "detach", order("o")), Done)

    asyncio.run(main())


def test_every_device_has_a_name_of_its_own_that_qemu_can_use() -> None:
    assert name(PhysicalID("a100-1")) == "jackfield-a100-1"
    given = [name(PhysicalID(one)) for one in ("gpu 1", "gpu_1", "gpu,1", "x" * 61, "x" * 62)]
    assert len({*given}) == len(given)
    assert all(re.fullmatch(r"jackfield-[\w.-]{1,60}", one) for one in given)


# --- what does not


def test_a_guest_that_does_not_let_go_is_asked_again_by_the_next_detach(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.lets_go = "never"

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        answer = await settled(manager, "detach", order("o"))
        assert isinstance(answer, Failed)
        assert answer.reason.startswith(
            "the guest on n-1 did not let go of a-1 within 0.5 s: see that it runs"
        )
        assert await places(manager) == {"a-1": "n-1"}
        guest.lets_go = "later"
        while isinstance(answer, Failed):
            assert answer.reason.startswith("the guest on n-1 did not let go")  # a machine may be slow
            answer = await settled(manager, "detach", order("o"))
        assert guest.plugged() == []

    on(tmp_path, guest, play, lab(guest, seconds=Seconds(0.5)))


def test_a_guest_that_reports_an_error_keeps_its_device(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.lets_go = "with an error"

    async def play(manager: Manager) -> None:
        assert isinstance(await settled(manager, "attach", order("o")), Done)
        answer = await settled(manager, "detach", order("o"))
        assert answer == Failed("a-1 stays on n-1: the guest reports an error")
        assert await places(manager) == {"a-1": "n-1"}

    on(tmp_path, guest, play)


REFUSED = (
    (("x", "y"), "edu", "every port of n-1 has a device in it: rp1, rp2"),
    (
        ("", ""),
        "nonsense",
        "QEMU does not plug a-1 into n-1: 'nonsense' is not a valid device model name",
    ),
    (("", ""), "usb-mouse", "QEMU shows no PCI device jackfield-a-1: is usb-mouse one?"),
)


@pytest.mark.parametrize(("taken", "driver", "words"), REFUSED)
def test_what_cannot_be_plugged_fails_in_words_and_the_device_stays_free(
    tmp_path: Path, taken: tuple[str, str], driver: str, words: str
) -> None:
    guest = Guest(tmp_path)
    guest.ports = {port: [one] if one else [] for port, one in zip(guest.ports, taken, strict=True)}

    async def play(manager: Manager) -> None:
        assert await settled(manager, "attach", order("o")) == Failed(words)
        assert list(manager.faults) == []

    on(tmp_path, guest, play, lab(guest, driver))


def test_a_port_that_the_guest_does_not_have_is_named(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    del guest.ports["rp2"]

    async def play(manager: Manager) -> None:
        answer = await settled(manager, "attach", order("o"))
        assert answer == Failed("the guest on n-1 has no port rp2: see backend.machines.n-1.buses")

    on(tmp_path, guest, play)


def test_a_socket_that_is_not_there_is_named_with_what_to_start(tmp_path: Path) -> None:
    guest = Guest(tmp_path)

    async def main() -> None:
        async with managing(tmp_path, lab(guest)) as manager:
            answer = await settled(manager, "attach", order("o"))
            assert isinstance(answer, Failed)
            assert answer.reason.startswith(f"{guest.socket}: nobody listens: start QEMU with -qmp")
            assert list(manager.faults) == []

    asyncio.run(main())


def test_a_monitor_that_serves_somebody_else_is_said_to(tmp_path: Path) -> None:
    guest = Guest(tmp_path)
    guest.greets = False

    async def main() -> None:
        async with guest.running():
            monitor = Monitor(str(guest.socket), Seconds(0.2))
            with pytest.raises(BackendError, match="does not greet: another program may be using"):
                await monitor.execute("query-pci", {})

    asyncio.run(main())


def test_what_is_no_monitor_is_said_to_be_none(tmp_path: Path) -> None:
    guest = Guest(tmp_path)

    async def chatter(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        writer.close()

    async def main() -> None:
        server = await asyncio.start_unix_server(chatter, guest.socket)
        async with server, managing(tmp_path, lab(guest)) as manager:
            answer = await settled(manager, "attach", order("o"))
            assert isinstance(answer, Failed)
            assert answer.reason.startswith(f"{guest.socket}: is no QMP monitor")

    asyncio.run(main())
