"""The weather of a storm: faults of every kind at every manager, and processes that are killed.

Knows what goes wrong and how often. Must not know what should come of it.
"""

import asyncio
import random
from collections import Counter
from typing import Final

import aiohttp
import msgspec

from jackfield.cli.clock import WallClock
from jackfield.fabric_manager.faults import NEEDS, Fault, Kind
from jackfield.model.names import Seconds
from storm.managers import FACES, Manager, Process
from storm.witness import Books

LASTING: Final = (
    Fault(Kind.FAIL, likely=0.2),
    Fault(Kind.PRETEND, likely=0.05),
    Fault(Kind.WRONG, likely=0.1),
    Fault(Kind.SWAP, likely=0.07),
    Fault(Kind.ASTRAY, likely=0.03),
    Fault(Kind.LOST, likely=0.05),
    Fault(Kind.LATE, likely=0.05, seconds=Seconds(0.5)),
    Fault(Kind.STATUS, likely=0.03, status=500),
    Fault(Kind.STATUS, likely=0.03, status=429),
    Fault(Kind.STATUS, likely=0.03, status=409),
    Fault(Kind.UNAUTHORIZED, likely=0.03),
)
"""All the time: a fifth of all work fails, a fifth of all attaches get another device or machine than was meant, and a
fifth of all calls go wrong."""
PASSING: Final = (
    Fault(Kind.HANG, times=1),
    Fault(Kind.SUSPEND, times=1),
    Fault(Kind.VANISH),
    Fault(Kind.ILL),
    Fault(Kind.CUT),
    Fault(Kind.STALE, seconds=Seconds(1.0)),
    Fault(Kind.QUOTA, limit=10),
)
"""Now and then, to one order, device or machine, until it is over."""
PASSING_SECONDS: Final = 1.5
AWAY = (aiohttp.ClientError, OSError, TimeoutError)
"""What is heard of a manager that was just killed."""


class Weather:
    """Bad weather at one manager, until it is over."""

    def __init__(self, manager: Manager, books: Books, chance: random.Random) -> None:
        self.manager = manager
        self._books = books
        self._chance = chance
        self._clock = WallClock()
        self.seen: Counter[str] = Counter()

    async def begin(self) -> None:
        """Set what lasts."""
        for fault in LASTING:
            await self.manager.set_fault(msgspec.structs.replace(fault, face=FACES[self.manager.plan.kind]))

    async def blow(self, over: asyncio.Event) -> None:
        """Set what passes, one after another."""
        while not over.is_set():
            try:
                await self._gust()
            except AWAY:
                await self._clock.sleep(Seconds(0.1))

    async def _gust(self) -> None:
        fault = await self._aimed(self._chance.choice(PASSING))
        if fault.kind is Kind.VANISH:
            self._books.vanishes(self.manager.plan.name, fault.device)
        await self.manager.set_fault(fault)
        await self._clock.sleep(Seconds(PASSING_SECONDS * self._chance.random()))
        await self._clear(tuple(one.kind for one in PASSING))

    async def _aimed(self, fault: Fault) -> Fault:
        """Return the fault for one of the devices or machines, where it needs one, and never for somebody else's."""
        plan = self.manager.plan
        match NEEDS.get(fault.kind):
            case "device":
                shown = (await self.manager.state()).inventory.devices
                ours = [one.id for one in shown if one.id not in plan.taken]
                return msgspec.structs.replace(fault, device=self._chance.choice(ours))
            case "node":
                ours_too = [one for one in plan.nodes if one not in plan.taken.values()]
                return msgspec.structs.replace(fault, node=self._chance.choice(ours_too))
            case _:
                return msgspec.structs.replace(fault, face=FACES[plan.kind])

    async def end(self) -> None:
        """Clear everything; counts what was hit."""
        await self._clear(tuple(Kind))

    async def _clear(self, kinds: tuple[Kind, ...]) -> None:
        for fault in (await self.manager.state()).faults:
            if fault.kind in kinds:
                self.seen[fault.kind] += max(fault.seen, 1)
                if fault.kind is Kind.VANISH:
                    self._books.vanishes(self.manager.plan.name, fault.device, back=True)
                await self.manager.clear_fault(fault.id)


class Reaper:
    """Kills a process every few seconds, and has it started again."""

    def __init__(self, process: Process, span: tuple[float, float], chance: random.Random) -> None:
        self._process = process
        self._span = span
        self._chance = chance

    async def life(self, over: asyncio.Event) -> bool:
        """Let it live for a while, and kill it; whether it must be started again."""
        try:
            async with asyncio.timeout(self._chance.uniform(*self._span)):
                await over.wait()
        except TimeoutError:
            self._process.kill()
            return True
        return False
