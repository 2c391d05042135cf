"""A storm from beginning to end: `python -m storm.run`, or `make storm`.

Knows when it begins, when it is over, and what is told of it. Must not know how any part of it works.
"""

import argparse
import asyncio
import json
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from jackfield.cli.clock import WallClock
from jackfield.model.names import FabricName, ModelName, Seconds
from storm.callers import Caller
from storm.managers import KINDS, Manager, Plan
from storm.site import Site
from storm.weather import AWAY, Reaper, Weather
from storm.witness import Books, Ledger

LOOK: Final = Seconds(0.3)
QUIET_SECONDS_MAX: Final = 600.0
"""Within this time after a storm everything must be quiet."""


Tell = Callable[[Mapping[FabricName, int]], None]
"""Hears how many orders there were until now."""


class Forecast(msgspec.Struct, frozen=True):
    """What kind of storm it will be."""

    kinds: tuple[str, ...]
    orders: int
    """So many at each fabric."""
    machines: int = 48
    manager_lives: tuple[float, float] | None = None
    """How long a manager lives, from and to; None for ever."""
    operator_lives: tuple[float, float] | None = None
    operator_kills: int = 1000
    """It is killed so often at most: whoever comes after it waits until its lease is over."""
    kills_min: int = 0
    """It is not over before every process that may be killed was killed so often."""
    parts: tuple[str, ...] = ()
    """What the operator runs; everything by default."""
    seconds: float = float("inf")
    """It is over after so long, however few orders there were."""
    seconds_max: float = 1200.0
    """Within this time it must be over by itself."""
    seed: str = "storm"


class Report(msgspec.Struct, frozen=True):
    """What became of it at one fabric."""

    fabric: str
    orders: int
    in_flight_max: int
    attached: int
    detached: int
    failed: int
    faults: dict[str, int]
    manager_kills: int
    operator_kills: int
    held_at_the_end: int
    seconds: float
    processor_seconds: float
    """Of all processes, for all fabrics together."""


class Storm:
    """One storm."""

    def __init__(self, forecast: Forecast, folder: Path, tell: Tell) -> None:
        self._forecast = forecast
        self._tell = tell
        self._plans = tuple(Plan(kind, forecast.machines) for kind in forecast.kinds)
        self._site = Site(self._plans, folder, forecast.parts)
        self._books = Books(self._plans)
        self._ledgers = {one.name: Ledger(one) for one in self._plans}
        self._clock = WallClock()
        self._chance = random.Random(forecast.seed)  # noqa: S311 - no secret is made of it
        self._over = asyncio.Event()

    async def run(self) -> tuple[Report, ...]:
        """Let it blow, calm down, and compare all books. Raises AssertionError with what is wrong."""
        async with self._site:
            watching = [
                asyncio.create_task(self._books.watch_resources(self._site.client)),
                asyncio.create_task(self._books.watch_requests(self._site.client)),
                *(asyncio.create_task(self._listen(one)) for one in self._site.managers),
            ]
            try:
                began = self._clock.now()
                self._weather = [Weather(one, self._books, self._chance) for one in self._site.managers]
                async with asyncio.TaskGroup() as group:
                    await self._blow(group)
                took = self._clock.now() - began
                await self._calm()
            finally:
                for task in watching:
                    task.cancel()
                await asyncio.gather(*watching, return_exceptions=True)
        return tuple(self._report(one, took) for one in self._weather)

    # --- while it lasts

    async def _blow(self, group: asyncio.TaskGroup) -> None:
        for weather in self._weather:
            await weather.begin()
            group.create_task(weather.blow(self._over))
        self._callers = [
            Caller(self._site.client, self._books, node, ModelName(model))
            for plan in self._plans
            for node, model in plan.callers
        ]
        for caller in self._callers:
            group.create_task(caller.run(self._over))
        if self._forecast.manager_lives is not None:
            for manager in self._site.managers:
                group.create_task(self._kill_manager(manager, self._forecast.manager_lives))
        if self._forecast.operator_lives is not None:
            group.create_task(self._kill_operator(self._forecast.operator_lives))
        group.create_task(self._time_it())

    async def _time_it(self) -> None:
        began = self._clock.now()
        until, enough = began + self._forecast.seconds_max, began + self._forecast.seconds
        try:
            while self._unfinished() and self._clock.now() < enough:
                self._check()
                self._tell(dict(self._books.orders))
                assert self._clock.now() < until, f"not in time: {self._books.orders}\n{self.last_words()}"
                await self._clock.sleep(LOOK)
        finally:
            self._over.set()

    def _unfinished(self) -> bool:
        forecast, least = self._forecast, self._forecast.kills_min
        orders = any(self._books.orders[one.name] < forecast.orders for one in self._plans)
        managers = forecast.manager_lives and any(one.process.kills < least for one in self._site.managers)
        return bool(orders or managers or (forecast.operator_lives and self._site.operator.kills < least))

    async def _kill_manager(self, manager: Manager, span: tuple[float, float]) -> None:
        reaper = Reaper(manager.process, span, self._chance)
        while await reaper.life(self._over):
            await manager.start()

    async def _kill_operator(self, span: tuple[float, float]) -> None:
        operator = self._site.operator
        reaper = Reaper(operator, span, self._chance)
        while operator.kills < self._forecast.operator_kills and await reaper.life(self._over):
            operator.start()

    async def _listen(self, manager: Manager) -> None:
        ledger = self._ledgers[manager.plan.name]
        while True:
            with suppress(*AWAY):
                ledger.hear(await manager.events(ledger.last))
            await self._clock.sleep(LOOK)

    def _check(self) -> None:
        wrong = [*self._books.wrong, *(text for one in self._ledgers.values() for text in one.wrong)]
        assert not wrong, "\n".join([*wrong, self.last_words()])
        assert self._site.operator.status is None, f"the operator ended by itself\n{self.last_words()}"

    def last_words(self) -> str:
        """Return what the processes last said."""
        return "\n".join(
            [self._site.operator.last_words(), *(one.process.last_words() for one in self._site.managers)]
        )

    # --- afterwards

    async def _calm(self) -> None:
        """Wait until nothing is under way and all books are equal."""
        for weather in self._weather:
            await weather.end()
        until = self._clock.now() + QUIET_SECONDS_MAX
        while True:
            self._check()
            await self._give_up_lost()
            differences = [text for one in self._site.managers for text in await self._differences(one)]
            differences += self._books.unsettled()
            if not differences:
                return
            assert self._clock.now() < until, "\n".join(["not quiet", *differences, self.last_words()])
            await self._clock.sleep(Seconds(0.5))

    async def _give_up_lost(self) -> None:
        """Whoever was given a device that vanished wants it no more, as its owner would."""
        lost = {one.request for uid, one in self._books.resources.items() if uid in self._books.lost}
        for caller in self._callers:
            if caller.name in lost:
                await caller.leave()

    async def _differences(self, manager: Manager) -> list[str]:
        ledger = self._ledgers[manager.plan.name]
        while events := await manager.events(ledger.last):
            ledger.hear(events)
        return ledger.compare(await manager.state(), self._books.held(manager.plan.name))

    def _report(self, weather: Weather, took: float) -> Report:
        manager = weather.manager
        ledger = self._ledgers[manager.plan.name]
        return Report(
            manager.plan.kind,
            self._books.orders[manager.plan.name],
            self._books.in_flight_max[manager.plan.name],
            ledger.counts["attached"],
            ledger.counts["detached"],
            ledger.counts["failed"],
            dict(weather.seen),
            manager.process.kills,
            self._site.operator.kills,
            len(self._books.held(manager.plan.name)),
            round(took, 1),
            round(_processor_seconds(), 1),
        )


def _processor_seconds() -> float:
    """Return what we have used of the processor, and those of our processes that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def run(forecast: Forecast, folder: Path, tell: Tell = lambda _: None) -> tuple[Report, ...]:
    """Let a storm blow; return what became of it. Raises AssertionError."""

    async def main() -> tuple[Report, ...]:
        return await Storm(forecast, folder, tell).run()

    return asyncio.run(main())


def main(arguments: Sequence[str]) -> None:
    """Read what is wanted, let it blow, print what became of it."""
    parser = argparse.ArgumentParser(prog="storm", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append", help="which managers; all by default")
    parser.add_argument("--orders", type=int, default=10_000, help="orders at each manager")
    parser.add_argument("--machines", type=int, default=48, help="of each manager")
    parser.add_argument("--manager-lives", type=float, default=0.0, help="seconds; 0 for ever")
    parser.add_argument("--operator-lives", type=float, default=0.0, help="seconds; 0 for ever")
    parser.add_argument(
        "--only", action="append", default=[], help="what the operator runs; everything by default"
    )
    parser.add_argument("--seconds", type=float, default=1020.0, help="it is over after so long in any case")
    parser.add_argument("--keep", type=Path, help="where logs and databases are kept")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the processes end with us
    forecast = Forecast(
        tuple(given.kind or KINDS),
        given.orders,
        given.machines,
        _span(given.manager_lives),
        _span(given.operator_lives),
        parts=tuple(given.only),
        seconds=given.seconds,
        seconds_max=float("inf"),
    )
    with tempfile.TemporaryDirectory(prefix="jackfield-storm-") as name:
        folder = given.keep or Path(name)
        folder.mkdir(exist_ok=True)
        for report in run(forecast, folder, _told):
            sys.stdout.write(f"{json.dumps(msgspec.to_builtins(report))}\n")


def _told(orders: Mapping[FabricName, int]) -> None:
    words = ", ".join(f"{fabric} {count}" for fabric, count in orders.items())
    sys.stderr.write(f"\r{words} " if sys.stderr.isatty() else "")


def _span(seconds: float) -> tuple[float, float] | None:
    return (seconds / 2, seconds * 3 / 2) if seconds else None


if __name__ == "__main__":
    main(sys.argv[1:])
