"""The manager is killed again and again while orders run: whatever it answered stays true."""

import asyncio
import itertools
import signal
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from jackfield.fabric.native import NativeFabric
from jackfield.fabric.settings import FabricSettings, Secret
from jackfield.fabric_manager.folder import Folder
from jackfield.fabric_manager.store import Event, Store
from jackfield.model.fabric import Done, Failed, Order, Progress, Working
from jackfield.model.names import FabricName, ModelName, NodeName, OrderID, PhysicalID, Seconds
from jackfield.ports import Fabric, Retry

KILLS = (4, pytest.param(20, marks=pytest.mark.slow))
SECONDS_MAX = 120.0
LIVES = 0.4
"""Seconds of a life after the first answer."""
WORKERS = 6
DEVICES = 12

SWITCH = """#!/bin/sh
# Hardware made of files: a device is on the machine whose name stands in its file.
set -C
file="HARDWARE/$2"
case $1 in
attach)
    if { echo "$3" >"$file"; } 2>/dev/null; then exit 0; fi
    [ "$(cat "$file")" = "$3" ] && exit 0
    echo "$2 on $3 and on $(cat "$file")" >>"DOUBLED"
    exit 1 ;;
detach)
    [ -e "$file" ] && [ "$(cat "$file")" != "$3" ] && echo "$2 taken from $3" >>"DOUBLED"
    rm -f "$file" ;;
esac
"""


class Lab:
    """The manager as a process that does not live long, and hardware that outlives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder / "state")
        self.folder.make()
        self.hardware = folder / "hardware"
        self.hardware.mkdir()
        self.doubled = folder / "doubled"
        self.script = folder / "switch"
        self.script.write_text(
            SWITCH.replace("HARDWARE", str(self.hardware)).replace("DOUBLED", str(self.doubled))
        )
        self.script.chmod(0o700)
        lab = {
            "fabric": "rack",
            "machines": [{"name": "n", "count": 3, "slots": 4}],
            "devices": [{"name": "d", "count": DEVICES, "model": "A100"}],
            "times": {"attach": {"kind": "uniform", "min": 0.0, "max": 0.1}},
            "limits": {"jobs": 4},
            "backend": {"kind": "script", "command": [str(self.script)], "timeoutSeconds": 10.0},
        }
        self.folder.inventory.write_text(yaml.safe_dump(lab))
        self.kills = 0

    async def start(self) -> asyncio.subprocess.Process:
        self.folder.url.unlink(missing_ok=True)
        command = ("-m", "jackfield", "fabric", "serve", "--state", str(self.folder.path), "--port", "0")
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=asyncio.subprocess.DEVNULL
        )
        while not self.folder.url.exists():
            assert process.returncode is None, "it did not start again"
            await asyncio.sleep(0.02)  # noqa: TID251 - real processes take real time
        return process

    async def kill_until(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            process = await self.start()
            try:
                async with asyncio.timeout(LIVES):
                    await ended.wait()
            except TimeoutError:
                process.send_signal(signal.SIGKILL)
                self.kills += 1
            else:
                process.send_signal(signal.SIGTERM)
            await process.wait()

    def line(self) -> NativeFabric:
        """Return a line to the manager as it is now; to nobody, while there is none."""
        url = self.folder.url.read_text().strip() if self.folder.url.exists() else "http://127.0.0.1:9"
        token = self.folder.token.read_text().strip() if self.folder.token.exists() else "none-yet"
        settings = FabricSettings(FabricName("rack"), "native", url, call_timeout_seconds=Seconds(2.0))
        return NativeFabric(settings, lambda: Secret(token))

    async def settled(self, ask: Callable[[Fabric], Awaitable[Progress]]) -> Progress:
        """Ask whichever manager there is until it is done or has failed."""
        while True:
            try:
                async with self.line() as line:
                    progress = await ask(line)
            except (Retry, FileNotFoundError):
                progress = Working()
            if not isinstance(progress, Working):
                return progress
            await asyncio.sleep(0.05)  # noqa: TID251 - likewise


class Caller:
    """Somebody who orders, asks again, and keeps books of what was answered."""

    def __init__(self, lab: Lab, number: int) -> None:
        self._lab = lab
        self._number = number
        self.holds: dict[OrderID, tuple[PhysicalID, NodeName]] = {}
        self.orders = 0

    async def run(self, kills: int) -> None:
        for turn in itertools.count():
            if self._lab.kills >= kills:
                return
            node = NodeName(f"n-{(turn + self._number) % 3 + 1}")
            order = Order(OrderID(f"{self._number}/{turn}"), FabricName("rack"), node, ModelName("A100"))
            await self._one(order, keep=turn % 3 == 0)

    async def _one(self, order: Order, *, keep: bool) -> None:
        answer = await self._lab.settled(lambda line: line.attach(order))
        self.orders += 1
        if isinstance(answer, Failed):
            assert "slots" in answer.reason or "is free" in answer.reason
            await self._give_back()
            return
        assert isinstance(answer, Done)
        self.holds[order.id] = (answer.device, order.node)
        again = await self._lab.settled(lambda line: line.attach(order))
        assert again == answer, "the same order is given the same answer, whoever died in between"
        if not keep:
            await self._detach(order)

    async def _give_back(self) -> None:
        for order, (_, node) in tuple(self.holds.items()):
            await self._detach(Order(order, FabricName("rack"), node, ModelName("A100")))

    async def _detach(self, order: Order) -> None:
        answer = await self._lab.settled(lambda line: line.detach(order))
        assert isinstance(answer, Done)
        del self.holds[order.id]
        late = await self._lab.settled(lambda line: line.attach(order))
        assert isinstance(late, Failed), "a closed id attaches nothing, whoever died in between"


def _steps(events: tuple[Event, ...]) -> dict[PhysicalID, list[str]]:
    steps: dict[PhysicalID, list[str]] = defaultdict(list)
    for event in events:
        steps[event.device].append(event.what)
    return steps


@pytest.mark.parametrize("kills", KILLS)
def test_nothing_that_was_answered_is_lost_or_doubled_by_kills(tmp_path: Path, kills: int) -> None:
    lab = Lab(tmp_path)
    callers = [Caller(lab, number) for number in range(WORKERS)]

    async def main() -> None:
        ended = asyncio.Event()
        killer = asyncio.create_task(lab.kill_until(ended))
        async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
            for caller in callers:
                group.create_task(caller.run(kills))
        ended.set()
        await killer
        process = await lab.start()
        async with lab.line() as line:
            shown = await line.inventory()
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
        books = {order: held for caller in callers for order, held in caller.holds.items()}
        assert {one.order: (one.id, one.node) for one in shown.devices if one.node} == books
        hardware = {path.name: path.read_text().strip() for path in lab.hardware.iterdir()}
        assert hardware == {str(device): str(node) for device, node in books.values()}
        store = Store(lab.folder.database, FabricName("rack"))
        events = _all_events(store)
        store.close()
        for device, steps in _steps(events).items():
            pairs = itertools.cycle(("attached", "detached"))
            assert steps == [next(pairs) for _ in steps], device

    asyncio.run(main())
    assert not lab.doubled.exists(), lab.doubled.read_text()
    assert sum(caller.orders for caller in callers) >= 5 * kills


def _all_events(store: Store) -> tuple[Event, ...]:
    found: list[Event] = []
    while new := store.events(found[-1].number if found else 0):
        found += new
    return tuple(found)
