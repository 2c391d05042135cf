"""The way between a program and the API, in any weather: calls that fail, answers that get lost, watches that break.

Knows what can happen to calls, answers and events on their way. Must not know what is asked, or why. The weather
belongs to a program, not to one of its lives: whoever is restarted comes back into the same storm.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

import msgspec

from jackfield.cluster.api import Client
from jackfield.cluster.errors import ApiError
from jackfield.cluster.history import EventType
from jackfield.controllers.ending import is_ending
from jackfield.model.meta import Object
from jackfield.model.names import LONG_AGO, Key, Seconds, Uid, Version
from jackfield.ports import (
    EVERYTHING,
    Apply,
    Change,
    Changed,
    Clock,
    Conflict,
    Merge,
    PortError,
    Retry,
    Rewound,
    Selection,
    Synced,
)
from jackfield.sim.chance import Chance, Distribution, Fixed
from jackfield.sim.loop import world

T = TypeVar("T")
Kind = TypeVar("Kind", bound=Object)

Effect = Callable[[Client], Coroutine[None, None, T]]
"""A call, as a handle carries it out."""

CALM: Final = Fixed(Seconds(0.0))
TIMEOUT: Final = Seconds(10.0)
"""After so long a program takes a call to have failed."""
LATE_MAX: Final = Seconds(20.0)
"""How much later than its time-out a call may still take effect."""
LAGS: Final = (Seconds(10.0), Seconds(30.0), Seconds(100.0))
"""How long a server that lags behind shows what was."""
AGES: Final = (0.0, 0.2, 1.0)
"""Kinds are listed one by one: one list may be old and the next one new."""


class Mishap(StrEnum):
    """What becomes of a call to the API."""

    CONFLICT = "conflict"
    """Somebody else was faster, says the server."""
    BUSY = "busy"
    """429: come back later."""
    ERROR = "error"
    """500."""
    BEFORE = "before"
    """No answer, and it was not done."""
    AFTER = "after"
    """No answer, and it was done."""
    LATE = "late"
    """No answer, and it is done when nobody expects it any more."""
    SLOW = "slow"
    """It is done and answered, seconds later."""


class Spell(msgspec.Struct, frozen=True):
    """A spell of bad weather."""

    mishap: Mishap
    likely: float
    until: Seconds


class Fuse:
    """Lets a program die at a call to come: before it takes effect, or after, with the answer on its way."""

    def __init__(self, calls: int, *, effect: bool, burn: Callable[[], None]) -> None:
        self._calls = calls
        self._effect = effect
        self._burn = burn

    def blows(self, *, effect: bool) -> bool:
        """Count a call, told before and after its effect; return whether the program is dead by now."""
        if not effect:
            self._calls -= 1
        if self._calls >= 0 or effect is not self._effect:
            return False
        self._burn()
        return True


class Weather:
    """What the way is like for one program, at any time."""

    def __init__(self, clock: Clock, chance: Chance, latency: Distribution = CALM) -> None:
        self.latency = latency
        self.clock = clock
        self.fuse: Fuse | None = None
        self.deaf: dict[str, Seconds] = {}
        """Until when no event of a kind arrives; of any kind, where none is named."""
        self.stale: int = 0
        """So many versions old are the first lists of the program's next life, at the most."""
        self.lost: Callable[[], None] = _nobody
        """Hears of every effect whose answer was lost."""
        self.spells: tuple[Spell, ...] = ()
        self._dice = chance.generator

    async def pass_by(self) -> None:
        """Let a call be on its way."""
        if self.latency is not CALM:
            await self.clock.sleep(self.latency.draw(self._dice))

    @property
    def deaf_until(self) -> Seconds:
        """Until when some event does not arrive."""
        return max(self.deaf.values(), default=LONG_AGO)

    def deafen(self, kind: str, until: Seconds) -> None:
        """Let no event of a kind arrive until then; of any kind, if none is named."""
        self.deaf[kind] = max(until, self.deaf.get(kind, LONG_AGO))

    def hears_at(self, kind: type[Object], selection: Selection) -> Seconds:
        """Return when an event arrives that is sent now; who asks for a selection has a line of its own for it."""
        only = self.deaf.get(kind.__name__, LONG_AGO) if selection is EVERYTHING else LONG_AGO
        return max(only, self.deaf.get("", LONG_AGO))

    def clear(self) -> None:
        """Be fine from now on."""
        self.spells = ()
        self.deaf.clear()
        self.stale = 0
        self.fuse = None

    def mishap(self) -> Mishap | None:
        """Return what becomes of a call that is sent now."""
        if not self.spells:
            return None
        now = self.clock.now()
        self.spells = tuple(one for one in self.spells if now < one.until)
        for one in self.spells:
            if self._dice.random() < one.likely:
                return one.mishap
        return None

    def late(self) -> Seconds:
        """Return how much later a late call is executed."""
        return Seconds(TIMEOUT + LATE_MAX * self._dice.random())

    def slow(self) -> Seconds:
        """Return how long one way of a slow call is."""
        return Seconds(0.5 * TIMEOUT * self._dice.random())

    def age(self) -> int:
        """Return how many versions old the first list of a kind is."""
        return int(self.stale * self._dice.choice(AGES))

    def lag(self) -> Seconds:
        """Return how long such a list is all that is heard."""
        return self._dice.choice(LAGS)


class RoughClient(Client):
    """A program's handle to the API, out of doors."""

    weather: Weather
    """Set by whoever hands the handle out."""
    _drops = 0
    age = 0
    """In which age of the API its program lives: how often it has noticed that a backup was restored."""

    def drop_watches(self) -> None:
        """Break every watch of the program; it lists anew, and what happened in between it sees as one."""
        self._drops += 1
        for feed in self._feeds.values():
            feed.wake()

    def watch(self, kind: type[Kind], selection: Selection = EVERYTHING) -> AsyncGenerator[Change, None]:
        """Tell all objects, then `Synced`, then every change; in bad weather late, or over again."""
        self._count("watch", kind)
        return self._told(kind, selection)

    async def _told(self, kind: type[Kind], selection: Selection) -> AsyncGenerator[Change, None]:
        weather, clock, born = self.weather, self.weather.clock, self._store.age
        lives_by_it = selection is EVERYTHING  # whoever only asks for something does not learn how late it is
        self.age = max(self.age, born) if lives_by_it else self.age
        age = weather.age() if weather.stale and lives_by_it else 0
        if age:
            weather.deafen(kind.__name__, Seconds(clock.now() + weather.lag()))
            for change in self._as_it_was(kind, self._store.version - age):
                yield change
        while True:
            drops = self._drops
            follow = self._feeds[kind].follow(selection, partial(self._is_broken, drops))
            try:
                async for change in follow:
                    while weather.deaf and clock.now() < (hears_at := weather.hears_at(kind, selection)):
                        await clock.sleep(Seconds(hears_at - clock.now()))
                    self._see_that_time_went_on(born)
                    if drops != self._drops or self._dead:
                        break
                    yield change
            except asyncio.CancelledError:
                if drops == self._drops or is_ending():
                    raise
            finally:
                await follow.aclose()
            if self._dead:
                raise asyncio.CancelledError

    def _see_that_time_went_on(self, born: int) -> None:
        """Notice that a backup was restored since a watch began."""
        if self._store.age != born:
            self.age = self._store.age
            raise Rewound("the API server went back in time")

    def _is_broken(self, drops: int) -> bool:
        """Whether a watch that began after so many drops is over."""
        return self._dead or drops != self._drops

    def _as_it_was(self, kind: type[Object], version: int) -> list[Change]:
        """Return what a server that lags behind would list."""
        objects = {item.key: item.object for item in self._store.list(kind).items}
        with suppress(ApiError):  # nobody remembers that long: then it is as it is
            for event in reversed(self._store.since(kind, version)):
                objects.pop(event.stored.key, None)
                if event.before is not None and event.type is not EventType.ADDED:
                    objects[event.stored.key] = event.before.object
        told: list[Change] = [Changed(objects[key]) for key in sorted(objects)]
        return [*told, Synced(kind, frozenset(objects))]

    # --- calls

    async def read(self, kind: type[Kind], key: Key) -> Kind:
        """Read the object as it is now."""
        return await self._call(lambda hand: Client.read(hand, kind, key), reads=True)

    async def create(self, new: Kind) -> Kind:
        """Create the object."""
        return await self._call(lambda hand: Client.create(hand, new))

    async def write(self, patch: Merge | Apply) -> Object:
        """Change the object."""
        return await self._call(lambda hand: Client.write(hand, patch))

    async def delete(
        self, kind: type[Object], key: Key, version: Version, *, grace_seconds: int | None = None
    ) -> None:
        """Ask for the object's deletion."""
        await self._call(lambda hand: Client.delete(hand, kind, key, version, grace_seconds=grace_seconds))

    async def bind(self, pod: Key, uid: Uid, node: str) -> Object:
        """Bind a pod."""
        return await self._call(lambda hand: Client.bind(hand, pod, uid, node))

    async def _call(self, effect: Effect[T], *, reads: bool = False) -> T:
        weather, age = self.weather, self._store.age
        await weather.pass_by()
        self._demand(weather.fuse is None or not weather.fuse.blows(effect=False))
        self._need(age)
        mishap = weather.mishap()
        slow = mishap is Mishap.SLOW
        if slow:
            await weather.clock.sleep(weather.slow())
            self._demand(alive=True)
            self._need(age)
        elif mishap is not None and not (mishap is Mishap.CONFLICT and reads):
            await self._go_wrong(mishap, effect, reads=reads)
        answer = await effect(self)
        if slow:
            await weather.clock.sleep(weather.slow())
        self._demand(weather.fuse is None or not weather.fuse.blows(effect=True))
        return answer

    def _demand(self, alive: bool) -> None:  # noqa: FBT001 - a condition is what it is about
        if not alive or self._dead:
            raise asyncio.CancelledError

    def _need(self, age: int) -> None:
        """Break off a call that was on its way when the server was stopped to restore a backup."""
        if self._store.age != age:
            raise Retry("the connection broke")

    async def _go_wrong(self, mishap: Mishap, effect: Effect[object], *, reads: bool) -> None:
        weather = self.weather
        match mishap:
            case Mishap.CONFLICT:
                raise Conflict(
                    "the object has been modified; please apply your changes to the latest version"
                )
            case Mishap.BUSY:
                raise Retry("429: too many requests, please try again later")
            case Mishap.ERROR:
                raise Retry("500: the server has had a mishap")
            case Mishap.AFTER:
                await effect(self)
            case Mishap.LATE if not reads:
                _ = asyncio.get_running_loop().create_task(
                    self._later(weather.late(), effect), context=world()
                )
            case _:
                pass
        if not reads and mishap in {Mishap.AFTER, Mishap.LATE}:
            weather.lost()
        await weather.clock.sleep(TIMEOUT)
        raise Retry(f"no answer within {TIMEOUT:g} s")

    async def _later(self, delay: Seconds, effect: Effect[object]) -> None:
        age = self._store.age
        await self.weather.clock.sleep(delay)
        with suppress(PortError):
            self._need(age)
            # It left before its sender died, if he did.
            await effect(Client(self._store, self._feeds, self.name))


def _nobody() -> None:
    """Tell nobody."""
