"""A program of a simulated site, over all its lives: what its clock shows, and what happens to what it sends.

Knows what can befall a program from outside. Must not know what it does.
"""

import asyncio

import msgspec

from jackfield.model.names import FabricName, Seconds
from jackfield.ports import Clock
from jackfield.sim.chance import Chance, Distribution
from jackfield.sim.fabric import FINE, Call, Fate
from jackfield.sim.weather import CALM, RoughClient, Weather


class ShiftedClock:
    """A wall's clock that somebody may set; how long a sleep lasts does not depend on it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead = Seconds(0.0)

    def now(self) -> Seconds:
        """Return what it shows."""
        return Seconds(self._clock.now() + self.ahead)

    async def sleep(self, duration: Seconds) -> None:
        """Wait."""
        await self._clock.sleep(duration)


class Static(msgspec.Struct, frozen=True):
    """Noise on the line to a manager, for a while."""

    fabric: FabricName
    fate: Fate
    likely: float
    until: Seconds


class Wire:
    """What becomes of a program's calls to managers; a `fabric.Faults`."""

    def __init__(self, program: "Program", chance: Chance) -> None:
        self._program = program
        self._dice = chance.generator
        self.noise: tuple[Static, ...] = ()

    def fate(self, call: Call) -> Fate:
        """Return the fate of this call."""
        fuse = self._program.weather.fuse
        if fuse is not None:
            if fuse.blows(effect=False):
                raise asyncio.CancelledError
            if fuse.blows(effect=True):  # it has been sent, and whoever sent it is dead
                return Fate(lost=True)
        if not self.noise:
            return FINE
        self.noise = tuple(one for one in self.noise if call.at < one.until)
        for one in self.noise:
            if one.fabric in {"", call.fabric} and self._dice.random() < one.likely:
                return one.fate
        return FINE


class Program:
    """One program."""

    def __init__(self, name: str, clock: Clock, chance: Chance, latency: Distribution = CALM) -> None:
        self.name = name
        self.weather = Weather(clock, chance.branch("weather"), latency)
        self.clock = ShiftedClock(clock)
        self.wire = Wire(self, chance.branch("wire"))
        self.client: RoughClient | None = None
        """The handle of its present life."""

    def clear(self) -> None:
        """Let nothing befall it any more."""
        self.weather.clear()
        self.wire.noise = ()
        self.clock.ahead = Seconds(0.0)
